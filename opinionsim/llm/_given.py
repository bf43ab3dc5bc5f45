"""A chat model with predefined replies, for tests, notebooks and worked examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage

_ROLES = {"human": "user", "ai": "assistant"}

#: A list of replies, or a function that makes one from the prompt.
Replies = Sequence[str | AIMessage] | Callable[[list[ChatMessage]], str | AIMessage]


class GivenReplies(BaseChatModel):
    """A chat model whose replies are a list, or a function of the prompt.

    Parameters
    ----------
    replies : sequence of str or AIMessage, or callable
        Replies in the order of the calls, which is reproducible only with ``max_concurrency=1``; or a function of the
        prompt, a list of :class:`opinionsim.messages.ChatMessage`, which makes a run reproducible at any concurrency.

    Attributes
    ----------
    prompts : list of list of ChatMessage
        The prompts of its calls, in order.

    Raises
    ------
    SpecError
        If `replies` is a text. During a call, if the list is exhausted or the reply is neither a text nor an AIMessage.

    Notes
    -----
    Its replies count as scripted, so runs have the evidence ``scripted``.
    """

    _replies: Replies = PrivateAttr()
    _prompts: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, replies: Replies, **fields: Any) -> None:
        super().__init__(**fields)
        if isinstance(replies, str):
            raise SpecError(
                f"replies must be a list of texts, or a function of the prompt; got the text {replies!r:.60}"
            )
        self._replies = replies if callable(replies) else list(replies)

    @property
    def prompts(self) -> list[list[ChatMessage]]:
        """The prompts of its calls, in order."""
        return self._prompts

    @property
    def _llm_type(self) -> str:
        return "given"

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        prompt = [ChatMessage(_ROLES.get(each.type, each.type), _text(each)) for each in messages]  # type: ignore[arg-type]
        self._prompts.append(prompt)
        number = len(self._prompts)
        if callable(self._replies):
            reply = self._replies(prompt)
        elif number <= len(self._replies):
            reply = self._replies[number - 1]
        else:
            raise SpecError(f"the list of {len(self._replies)} given replies is too short; call {number} has no reply")
        if not isinstance(reply, str | AIMessage):
            raise SpecError(f"a given reply must be a text or an AIMessage; call {number} got {reply!r:.60}")
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages)


def _text(message: BaseMessage) -> str:
    """The text of a message; LangChain's `text`, which is slow, only for content in blocks."""
    return message.content if isinstance(message.content, str) else str(message.text)
