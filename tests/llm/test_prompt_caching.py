"""What a provider is told of the beginning that the prompts of an agent share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from opinionsim.llm import GivenReplies, ModelClient
from opinionsim.messages import ChatMessage, Prompt

MARK = {"type": "ephemeral"}
MEMORY = Prompt.of(
    [ChatMessage("system", "You are Ann."), ChatMessage("user", "You wrote."), ChatMessage("user", "You read.")]
)


class _Recording(BaseChatModel):
    """Keeps what it is sent."""

    _sent: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recording"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        self._sent.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Yes."))])


class _Awaited(_Recording):
    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return self._generate(messages)


def _sent(kind: type[_Recording], package: str, prompt: Prompt) -> list[Any]:
    model = type(kind.__name__, (kind,), {"__module__": f"{package}.chat_models"})()
    asyncio.run(ModelClient(model).call(prompt, 1))
    return [message.content for message in model._sent[0]]


def _marked(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": MARK}]


@pytest.mark.parametrize("kind", [_Recording, _Awaited])
def test_anthropic_is_told_where_the_shared_beginning_ends(kind: type[_Recording]) -> None:
    prompt = MEMORY.then(ChatMessage("user", "Write."))
    identity = prompt.identity
    assert _sent(kind, "langchain_anthropic", prompt) == [
        _marked("You are Ann."), "You wrote.", _marked("You read."), "Write."
    ]  # fmt: skip
    # What is journalled is the prompt, and no call leaves marks on it.
    assert prompt.identity == identity
    assert _sent(kind, "langchain_openai", prompt) == ["You are Ann.", "You wrote.", "You read.", "Write."]


def test_a_prompt_without_a_beginning_or_with_an_empty_one_has_no_mark() -> None:
    task = ChatMessage("user", "Write.")
    assert _sent(_Awaited, "langchain_anthropic", Prompt.of([task])) == ["Write."]
    assert _sent(_Awaited, "langchain_anthropic", Prompt.of([ChatMessage("user", ""), task])) == ["", "Write."]


def test_prompts_of_a_chain_are_sent_whole_in_whatever_order_they_are_continued() -> None:
    class Kept(GivenReplies):
        async def _agenerate(self, messages: Any, *rest: Any, **options: Any) -> ChatResult:
            seen.append([message.content for message in messages])
            return ChatResult(generations=[ChatGeneration(message=AIMessage("Yes."))])

    seen: list[list[str]] = []
    task = ChatMessage("user", "Write.")
    client = ModelClient(Kept([]))
    one = MEMORY.then(ChatMessage("user", "one"))
    other = MEMORY.then(ChatMessage("user", "other"), ChatMessage("user", "more"))
    asked = [MEMORY, one, other, MEMORY, one.then(ChatMessage("user", "two")), other, one, Prompt.of([])]
    for memory in asked:
        asyncio.run(client.call(memory.then(task), 1))
    assert seen == [[message.content for message in memory] + ["Write."] for memory in asked]
