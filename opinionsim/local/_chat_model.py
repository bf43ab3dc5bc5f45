"""The common base of chat models in this process."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from concurrent.futures import Future
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from opinionsim.foundation.documents import DocumentModel


class LocalOptions(DocumentModel):
    """Options of every chat model in this process."""

    top_p: float | None = Field(None, gt=0, le=1)
    """Choose among the most likely tokens with this total probability."""
    top_k: int | None = Field(None, ge=1)
    """Choose among this number of most likely tokens."""
    enable_thinking: bool | None = None
    """Value of the chat template's variable of this name."""
    template_options: dict[str, Any] = Field(default_factory=dict)
    """Further variables of the chat template."""

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of the chat template."""
        thinking = {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}
        return {**self.template_options, **thinking}


class LocalChatModel(BaseChatModel):
    """A chat model whose weights are in this process.

    Attributes
    ----------
    model : str
        Given name and identity of the contents, ``KIND:NAME@FINGERPRINT``; returned with every reply.
    settings : dict
        Settings that affect its replies.
    seed : int or None
        Seed of calls without a seed; None draws one for each such call.
    """

    model: str
    settings: dict[str, Any] = Field(default_factory=dict)
    seed: int | None = None

    @property
    def _llm_type(self) -> str:
        return "opinionsim-local"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, **self.settings}

    @abstractmethod
    def close(self) -> None:
        """Stop; waiting calls fail or are cancelled."""

    @abstractmethod
    def _ask(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> Future[Any]:
        """Queue a call."""

    @abstractmethod
    def _said(self, answer: Any) -> tuple[AIMessage, int, int, int]:
        """What an answer says, and tokens of its prompt, of itself, and of the prompt that had been read before.

        Raises
        ------
        ModelCallError
            If it is an error.
        """

    def _result(self, answer: Any) -> ChatResult:
        message, tokens_in, tokens_out, cached = self._said(answer)
        message.usage_metadata = UsageMetadata(
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            total_tokens=tokens_in + tokens_out,
            input_token_details=InputTokenDetails(cache_read=cached),
        )
        message.response_metadata["model_name"] = self.model
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._result(self._ask(messages, stop, kwargs).result())

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._result(await asyncio.wrap_future(self._ask(messages, stop, kwargs)))
