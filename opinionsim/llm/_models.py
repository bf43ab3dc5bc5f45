"""Chat models by name, and how one call to a model is made."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
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


def _langchain_message(message: ChatMessage) -> BaseMessage:
    """The LangChain form of a message."""
    return _MESSAGE_TYPES[message.role](content=message.content)


#: The same, made once for equal messages: memory repeats its messages in every prompt.
_shared_message = lru_cache(maxsize=1 << 16)(_langchain_message)


class ModelClient:
    """Makes single calls to a LangChain chat model from an event loop.

    Parameters
    ----------
    model : BaseChatModel
        Any LangChain chat model. One without asynchronous calls of its own runs on threads of ours, one a call
        in flight; one that would answer from a cache is used without it.
    """

    def __init__(self, model: BaseChatModel) -> None:
        if not isinstance(model, BaseChatModel):
            raise SpecError(f"chat_model must be a LangChain BaseChatModel; got {type(model).__name__}")
        # A prompt-keyed cache would make replicates, and repeated attempts, copies of one reply.
        cached = get_llm_cache() is not None if model.cache is None else model.cache is not False
        self.model = model.model_copy(update={"cache": False}) if cached else model
        scripted = isinstance(model, ScriptedChatModel)
        self.evidence = "scripted" if scripted else "model"
        # Other integrations may change the messages they are given, so each call gets its own.
        self._message = _shared_message if scripted else _langchain_message
        self._takes_seed = scripted or "seed" in type(model).model_fields
        self._blocking = type(model)._agenerate is BaseChatModel._agenerate

    async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
        """One attempt at one call; raises whatever the model raises."""
        prompt = [self._message(message) for message in messages]
        options: dict[str, Any] = {"seed": seed} if self._takes_seed else {}
        if self._blocking:
            return await _in_thread(lambda: self.model.invoke(prompt, **options))
        return await self.model.ainvoke(prompt, **options)


async def _in_thread(function: Callable[[], AIMessage]) -> AIMessage:
    """The result of a blocking call, made in a thread that nobody ever waits for.

    A pool would be full for all others when calls hang, and would hold up the end of the process.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[AIMessage] = loop.create_future()

    def settle(result: AIMessage | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        elif result is not None:
            answer.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as failure:  # whatever it was, the one who waits must hear of it
            error = failure
        with suppress(RuntimeError):  # the loop may be gone by then
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="opinionsim-model", daemon=True).start()
    return await answer
