"""Chat models by name, and how one call to a model is made."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from opinionsim.errors import SpecError
from opinionsim.llm._scripted import ScriptedChatModel
from opinionsim.messages import ChatMessage

__all__ = ["ModelClient", "load_chat_model"]

_MESSAGE_TYPES: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


def load_chat_model(
    name: str, *, temperature: float | None = None, max_tokens: int | None = None, **options: Any
) -> BaseChatModel:
    """A chat model by name.

    Parameters
    ----------
    name : str
        ``scripted`` (in the package, no key, no network), or ``provider:model`` as LangChain's
        ``init_chat_model`` takes it, for instance ``openai:gpt-4o-mini``; that needs the ``llm`` extra.
    temperature : float, optional
        In [0, 2].
    max_tokens : int, optional
        Longest reply.
    **options
        Further arguments of the model: parameters of :class:`ScriptedChatModel`, or, for example,
        ``base_url`` of a local server.

    Returns
    -------
    langchain_core.language_models.BaseChatModel
        With client-side retries and caching off: the caller owns both.

    Raises
    ------
    SpecError
        If the name or an option is not known, or a package it needs is not installed.
    """
    if temperature is not None:
        options["temperature"] = temperature
    if name == "scripted":
        try:
            return ScriptedChatModel(**options)
        except (TypeError, ValueError, SpecError) as error:
            raise SpecError(f"model.options: {error}") from None
    if ":" not in name:
        raise SpecError(
            f"model.name: unknown model {name!r}; valid: 'scripted' or 'provider:model' such as 'openai:gpt-4o-mini'"
        )
    try:
        init_chat_model = importlib.import_module("langchain.chat_models").init_chat_model
    except ImportError:
        raise SpecError(
            f"model.name: {name!r} needs the packages of the extra 'llm'; install with pip install 'opinionsim[llm]'"
        ) from None
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    try:
        model: BaseChatModel = init_chat_model(name, max_retries=0, cache=False, **options)
    except Exception as error:  # every client has error classes of its own, for a missing key among others
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SpecError(f"model.name: {name!r} cannot be loaded: {reason}") from error
    return model


@lru_cache(maxsize=1 << 16)
def _langchain_message(message: ChatMessage) -> BaseMessage:
    """The LangChain form of a message; cached, for memory repeats its messages in every prompt."""
    return _MESSAGE_TYPES[message.role](content=message.content)


class ModelClient:
    """Makes single calls to a LangChain chat model from an event loop.

    Parameters
    ----------
    model : BaseChatModel
        Any LangChain chat model. One without asynchronous calls of its own runs on a thread pool; one that
        would answer from a cache is used without it.
    threads : int
        Size of that pool.
    """

    def __init__(self, model: BaseChatModel, *, threads: int = 64) -> None:
        if not isinstance(model, BaseChatModel):
            raise SpecError(f"chat_model must be a LangChain BaseChatModel; got {type(model).__name__}")
        # A prompt-keyed cache would make replicates, and repeated attempts, copies of one reply.
        cached = get_llm_cache() is not None if model.cache is None else model.cache is not False
        self.model = model.model_copy(update={"cache": False}) if cached else model
        self.evidence = "scripted" if isinstance(model, ScriptedChatModel) else "model"
        self._takes_seed = isinstance(model, ScriptedChatModel) or "seed" in type(model).model_fields
        blocking = type(model)._agenerate is BaseChatModel._agenerate
        self._pool = ThreadPoolExecutor(threads, "opinionsim-model") if blocking else None

    async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
        """One attempt at one call; raises whatever the model raises."""
        prompt = [_langchain_message(message) for message in messages]
        options: dict[str, Any] = {"seed": seed} if self._takes_seed else {}
        if self._pool is None:
            return await self.model.ainvoke(prompt, **options)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: self.model.invoke(prompt, **options))

    def close(self) -> None:
        """Let go of the thread pool."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
