"""Direct calls to chat models without LangChain's `ainvoke`, if the outcome is the same."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from types import FunctionType
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForLLMRun
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, chat_models
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.utils.utils import LC_ID_PREFIX

#: Methods that a call passes through from `ainvoke` to `_agenerate`.
_WAY = ("ainvoke", "_convert_input", "agenerate_prompt", "agenerate", "_agenerate_with_cache")
#: LangChain's private function for a reply's metadata; None where it is gone, and then no call is direct.
_metadata_of = getattr(chat_models, "_gen_info_and_msg_metadata", None)
#: Packages whose models, and subclasses of these, do not change the messages they are given.
_CAREFUL = frozenset(("opinionsim", "langchain_openai"))


class DirectCalls:
    """Calls of a model's own `_agenerate`, with the outcome of `ainvoke`.

    `ainvoke` handles callbacks, tracing, a cache, a rate limiter and streaming, which takes ten times as long as a
    model that answers at once. If none of these is in use, only the reply's id and metadata remain to be set, which
    this class does. All other calls go through `ainvoke`.

    Parameters
    ----------
    model : BaseChatModel
        The model; its copies can be called too.
    """

    def __init__(self, model: BaseChatModel) -> None:
        kind = type(model)
        self._kind = kind if _metadata_of is not None and _as_langchain_has_it(kind) else None
        self._takes_manager = "run_manager" in signature(kind._agenerate).parameters

    def would_do(self, model: BaseChatModel, options: Mapping[str, Any]) -> bool:
        """Whether a direct call would now have the same outcome as `ainvoke`.

        Parameters
        ----------
        model : BaseChatModel
            The model or its copy.
        options : mapping
            Options of the call.
        """
        return (
            type(model) is self._kind
            and not model.rate_limiter
            and model.output_version != "v1"
            and (model.cache is False or (model.cache is None and get_llm_cache() is None))
            and not model._should_stream(async_api=True, **options)
            and var_child_runnable_config.get() is None
            and not _heard(model)
        )

    async def call(self, model: BaseChatModel, messages: list[BaseMessage], options: Mapping[str, Any]) -> AIMessage:
        """The reply; raises what the model raises. Valid only if :meth:`would_do` is true."""
        manager = AsyncCallbackManagerForLLMRun.get_noop_manager()
        told = {"run_manager": manager} if self._takes_manager else {}
        result = await model._agenerate(messages, stop=None, **told, **options)
        return completed(result, f"{LC_ID_PREFIX}-{manager.run_id}")


def _as_langchain_has_it(kind: type[BaseChatModel]) -> bool:
    """Whether a class leaves the way to `_agenerate` as LangChain wrote it: not overridden, wrapped or patched."""
    way = [getattr(kind, name, None) for name in _WAY]
    return all(isinstance(step, FunctionType) and step.__globals__ is vars(chat_models) for step in way)


def _heard(model: BaseChatModel) -> bool:
    """Whether any callback would hear of a call to a model made here.

    LangChain itself is asked: it looks at the model, its global settings, the context and instrumentation.
    """
    return bool(AsyncCallbackManager.configure(None, model.callbacks, model.verbose).handlers)


def completed(result: ChatResult, name: str) -> AIMessage:
    """The message of a result, completed with its id and metadata as LangChain does."""
    for place, generation in enumerate(result.generations):
        if generation.message.id is None:
            generation.message.id = f"{name}-{place}"
        if _metadata_of is not None:
            generation.message.response_metadata = _metadata_of(generation)
    message = result.generations[0].message
    if len(result.generations) == 1 and result.llm_output is not None:
        message.response_metadata = {**result.llm_output, **message.response_metadata}
    return cast(AIMessage, message)


def leaves_messages(kind: type[BaseChatModel]) -> bool:
    """Whether models of a class are known to leave their input messages unchanged."""
    return any(each.__module__.partition(".")[0] in _CAREFUL for each in kind.__mro__)
