"""Chat models by name, and single calls to a model."""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property, partial
from itertools import groupby
from typing import Any
from uuid import uuid4

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from langchain_core.utils.utils import LC_ID_PREFIX
from langsmith.run_helpers import tracing_context
from langsmith.utils import tracing_is_enabled
from pydantic import ValidationError

from opinionsim.errors import ModelCallError, SpecError, in_short
from opinionsim.foundation.redaction import redacted
from opinionsim.llm import _providers as providers
from opinionsim.llm._direct import DirectCalls, completed, leaves_messages
from opinionsim.llm._first_token import TokenClient
from opinionsim.llm._given import GivenReplies
from opinionsim.llm._own import in_process, load_own_model, module_of, own_model
from opinionsim.llm._transport import MAX_REPLY_BYTES, ReplyTooLong
from opinionsim.llm.scripted._script import ScriptedChatModel
from opinionsim.messages import ChatMessage, Prompt
from opinionsim.registry import names, places, raised

_MESSAGE_TYPES: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
_LOCAL = " or ".join(repr(each.value["form"]) for each in places("local").values())
_VALID = (
    f"'scripted', 'provider:model' such as 'openai:gpt-4o-mini', {_LOCAL and f'{_LOCAL} for weights in this process, '}"
    "or the import path of your own model, package.module:Name"
)
#: Value of the option `roles` that joins consecutive messages of one role.
_ALTERNATE = "alternate"
#: Option that limits the reply, of providers that do not call it max_tokens.
_LENGTH = {"ollama": "num_predict"}
#: Variables of a retired tracing: with one of them set, LangChain refuses every call.
_RETIRED_TRACING = ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER")


def load_chat_model(
    name: str, *, temperature: float | None = None, max_tokens: int | None = None, **options: Any
) -> BaseChatModel:
    """A chat model by name.

    Parameters
    ----------
    name : str
        ``scripted`` (in the package, no key, no network); ``provider:model`` as LangChain's ``init_chat_model`` takes
        it, for instance ``openai:gpt-4o-mini`` (extra ``llm``); ``hf:NAME_OR_PATH``, a causal model of Hugging Face in
        this process (extra ``local``); ``gguf:PATH``, one in a GGUF file (extra ``small``); or the import path of your
        own chat model, ``package.module:Name``.
    temperature : float, optional
        In [0, 2]; None uses the model's own value. A temperature that the model does not accept is an error.
    max_tokens : int, optional
        Maximum length of a reply in tokens, >= 1; with most providers, reasoning counts too.
    **options
        Further arguments of the model: parameters of :class:`ScriptedChatModel`, or those of the provider's LangChain
        class, such as ``base_url`` of a local server or ``reasoning_effort``. ``api_key_env`` names the environment
        variable of the key if it is not the provider's usual one; keys themselves are an error. ``roles="alternate"``
        joins consecutive messages of one role, and the system message with the user's first, for servers whose chat
        template requires this.

    Returns
    -------
    langchain_core.language_models.BaseChatModel
        The model, with client-side retries and caching off, because the caller handles both.

    Raises
    ------
    SpecError
        If name, temperature or an option is not valid, a package or a key is missing, or a key would be sent to a host
        that is not the provider's. Nothing has been sent in these cases.
    """
    _check_numbers(temperature, max_tokens)
    provider, _, model = name.partition(":")
    if name == "scripted":
        if temperature is not None:
            options["temperature"] = temperature
        try:
            return ScriptedChatModel(**options)
        except (TypeError, ValueError, SpecError) as error:
            raise SpecError(f"model.options: {error}") from None
    roles = None if own_model(name) else options.pop("roles", None)
    if roles not in (None, _ALTERNATE):
        raise SpecError(f"model.options: roles must be {_ALTERNATE!r}, or left out; got {roles!r}")
    settings = {"temperature": temperature, "max_tokens": max_tokens}
    found: BaseChatModel
    if own_model(name):
        found = load_own_model(name, settings, options)
    elif not provider or not model:
        others = "".join(f"; an equation is {{{each}: NAME}}" for each in names("endpoint"))
        raise SpecError(f"model.name: unknown model {name!r}; valid: {_VALID}{others}")
    elif in_process(name):
        found = module_of(name).load(model, **settings, **options)
    else:
        found = _load_from_provider(name, temperature, max_tokens, options)
    if roles is not None:
        # LangChain keeps this beside a model for tracing: it is neither sent, nor lost when the model is copied.
        found.metadata = {**(found.metadata or {}), "roles": roles}
    return found


def _check_numbers(temperature: object, max_tokens: object) -> None:
    for field, value, kind, low, high in (
        ("temperature", temperature, (int, float), 0, 2),
        ("max_tokens", max_tokens, int, 1, float("inf")),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high):
            valid = "a number from 0 to 2" if field == "temperature" else "a whole number from 1"
            raise SpecError(f"model.{field} must be {valid}, or none; got {value!r}")


def _load_from_provider(
    name: str, temperature: float | None, max_tokens: int | None, options: Mapping[str, Any]
) -> BaseChatModel:
    provider, _, model_name = name.partition(":")
    given = providers.connected(name, options, max_tokens)
    asked = {"temperature": temperature, _LENGTH.get(provider, "max_tokens"): max_tokens, **given}
    asked = {option: value for option, value in asked.items() if option in given or value is not None}
    try:
        langchain = importlib.import_module("langchain.chat_models")
        with warnings.catch_warnings():
            # LangChain only warns of options it does not know; below they are errors.
            warnings.simplefilter("ignore", UserWarning)
            model: BaseChatModel = langchain.init_chat_model(
                model_name, model_provider=provider, max_retries=0, cache=False, **asked
            )
    except ImportError as error:
        ours = provider in ("openai", "azure_openai") or (error.name or "").partition(".")[0] == "langchain"
        remedy = "; install with pip install 'opinionsim[llm]'" if ours else ""
        providers.lacking(SpecError(f"model.name: {name!r} cannot be loaded: {in_short(error)}{remedy}"))
        return FakeListChatModel(responses=[])  # to plan with: it answers nothing
    except Exception as error:  # every client has error classes of its own, for instance for a missing key
        raise SpecError(f"model.name: {name!r} cannot be loaded: {_reason(error)}") from None
    providers.check_request(name, model, temperature, max_tokens, given)
    return _keeping_reasoning(model)


def _keeping_reasoning(model: BaseChatModel) -> BaseChatModel:
    """The model with the reasoning that OpenAI-compatible servers send beside a reply, which LangChain leaves out."""
    kind = type(model)
    create = getattr(kind, "_create_chat_result", None)
    if create is None:
        return model

    def created(self: Any, response: Any, *further: Any, **named: Any) -> ChatResult:
        result: ChatResult = create(self, response, *further, **named)
        choices = getattr(response, "choices", None) or []
        for choice, generation in zip(choices, result.generations, strict=False):
            said = getattr(choice, "message", None)
            thought = getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None)
            if isinstance(thought, str) and thought:
                generation.message.additional_kwargs["reasoning_content"] = thought
        return result

    # A subclass with this one method replaced, since an instance of a pydantic model takes no new method.
    model.__class__ = type(kind.__name__, (kind,), {"__module__": kind.__module__, "_create_chat_result": created})
    return model


def _reason(error: Exception) -> str:
    """What an error says, without credentials and without the values it was given."""
    if isinstance(error, ValidationError):
        return "; ".join(": ".join([*map(str, each["loc"]), each["msg"]]) for each in error.errors())
    return redacted(in_short(error))


def _langchain_message(message: ChatMessage) -> BaseMessage:
    """The LangChain form of a message."""
    return _MESSAGE_TYPES[message.role](content=message.content)


def _own_messages(prompt: Iterable[ChatMessage]) -> list[BaseMessage]:
    """The LangChain form of a prompt, made for one call."""
    return [_langchain_message(message) for message in prompt]


def _joined(prompt: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages of a prompt, that of the system as the user's, and consecutive ones of one role as one."""
    together = groupby(prompt, lambda message: message.role.replace("system", "user"))
    return [ChatMessage(role, "\n\n".join(each.content for each in messages)) for role, messages in together]


def _marked_messages(prompt: Iterable[ChatMessage]) -> list[BaseMessage]:
    """The same, with marks at the ends of what the agent's other prompts begin with, for Anthropic's prompt cache.

    These are the system message and the last message before the task of the call.
    """
    messages = _own_messages(prompt)
    ends = {len(messages) - 2, 0 if messages and messages[0].type == "system" else -1}
    for message in (messages[end] for end in ends if end >= 0):
        block = {"type": "text", "text": message.content, "cache_control": {"type": "ephemeral"}}
        message.content = [block] if message.content else ""  # no mark may stand on an empty text
    return messages


def _shared_messages(prompt: Prompt) -> list[BaseMessage]:
    """The LangChain form of a prompt: a new list of messages, shared by prompts that begin alike.

    One list holds the messages of all prompts of a chain, so that a prompt costs as much after a long memory as after
    a short one. A prompt that goes another way than the first to continue a beginning gets a list of its own.
    """
    if prompt.before is None or prompt.message is None:
        return []
    # The last message is the task of this call: few prompts begin with it, so keeping it would not pay.
    added: list[BaseMessage] = []
    link = prompt.before
    while link.converted is None and link.before is not None and link.message is not None:
        added.append(_langchain_message(link.message))
        link = link.before
    shared: list[BaseMessage] = [] if link.converted is None else link.converted
    if added:
        shared = shared if len(shared) == link.length else shared[: link.length]
        shared += reversed(added)
        prompt.before.converted = shared
    return [*shared[: prompt.before.length], _langchain_message(prompt.message)]


class ModelClient:
    """Makes single calls to a LangChain chat model in an event loop.

    Parameters
    ----------
    model : BaseChatModel
        Any LangChain chat model. A model without asynchronous calls runs on threads, one for each call in flight.
        Caches are off. OpenAI-compatible clients run without retries and, unless you configured a transport, through
        aiohttp.
    name : str
        Name of the model in specifications and price tables; by default made of provider and model.
    max_reply_bytes : int
        Maximum size of a reply in bytes; OpenAI-compatible clients stop reading there.

    Attributes
    ----------
    model : BaseChatModel
        The model in use: the given one, or a copy of it.
    evidence : str
        ``scripted`` or ``model``.
    name : str
        As given, or ``provider:model``.
    account : str
        Name of the rate limit: provider and host, without credentials; the model's name for models in the process.
    networked : bool
        Whether a provider answers, with limits and possible changes to the model.
    slots : int or None
        Number of calls that the model computes at once, if it states one.

    Raises
    ------
    SpecError
        If it is not a chat model, if its own retries cannot be switched off, or if the environment makes LangChain
        refuse every call.
    """

    def __init__(self, model: BaseChatModel, name: str = "", max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        if not isinstance(model, BaseChatModel):
            raise SpecError(f"chat_model must be a LangChain BaseChatModel; got {type(model).__name__}")
        for variable in _RETIRED_TRACING:
            if os.environ.get(variable, "").lower() not in ("", "0", "false"):
                raise SpecError(f"the environment variable {variable} makes LangChain refuse every call; unset it")
        # A prompt-keyed cache would make replicates, and repeated attempts, copies of one reply.
        cached = get_llm_cache() is not None if model.cache is None else model.cache is not False
        self.model = providers.prepared(model.model_copy(update={"cache": False}) if cached else model, max_reply_bytes)
        self._max_reply_bytes = max_reply_bytes
        scripted = isinstance(model, ScriptedChatModel)
        self.evidence = "scripted" if scripted or isinstance(model, GivenReplies) else "model"
        provider = providers.provider_of(model)
        self.networked = bool(provider)
        self.slots: int | None = getattr(model, "parallel", None)
        self.name = name or ("scripted" if scripted else _name(provider or type(model).__name__, model))
        self.account = "@".join(filter(None, (provider, providers.endpoint_of(self.model)))) if provider else self.name
        self._direct = DirectCalls(self.model)
        # Other integrations may change the messages they are given, so each call gets its own.
        self._own_messages = _marked_messages if provider == "anthropic" else _own_messages
        self._messages = _shared_messages if leaves_messages(type(model)) else self._own_messages
        if (model.metadata or {}).get("roles") == _ALTERNATE:
            convert = self._own_messages
            self._messages = self._own_messages = lambda prompt: convert(_joined(prompt))
        self._seeding = "call" if scripted else providers.seeding(self.model)
        self._blocking = type(model)._agenerate is BaseChatModel._agenerate

    @cached_property
    def tokens(self) -> TokenClient:
        """A client that asks the same model for the probabilities of first tokens."""
        return TokenClient(self)

    async def call(
        self, messages: Iterable[ChatMessage], seed: int, max_tokens: int | None = None, **options: Any
    ) -> AIMessage:
        """Make one attempt at one call; raises whatever the model raises.

        `max_tokens` overrides the model's own limit, and `options` are further options of this call.

        Raises
        ------
        ModelCallError
            Instead of a ``CancelledError`` if nobody cancelled the call.
        """
        try:
            reply = await self._called(Prompt.of(messages), seed, max_tokens, options)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ModelCallError(f"the chat model raised {raised(error)}") from error
        return self._short(reply)

    def request(self, prompt: Prompt, seed: int) -> tuple[BaseChatModel, list[BaseMessage], dict[str, Any]]:
        """The model, messages and options of a call that goes out in a batch."""
        model, options = self._seeded(seed)
        return model, self._own_messages(prompt), options

    def read(self, result: ChatResult) -> AIMessage:
        """The message of a result that came back in a batch, completed as for :meth:`call`."""
        return self._short(completed(result, f"{LC_ID_PREFIX}-{uuid4()}"))

    def _seeded(self, seed: int) -> tuple[BaseChatModel, dict[str, Any]]:
        """The model and the options that carry the seed of a call, if the model takes one."""
        model = self.model.model_copy(update={"seed": seed}) if self._seeding == "copy" else self.model
        return model, {"seed": seed} if self._seeding == "call" else {}

    def _short(self, reply: AIMessage) -> AIMessage:
        if len(reply.text) > self._max_reply_bytes:
            raise ReplyTooLong(self._max_reply_bytes)
        return reply

    async def _called(self, prompt: Prompt, seed: int, max_tokens: int | None, options: dict[str, Any]) -> AIMessage:
        model, seeds = self._seeded(seed)
        options |= seeds
        if max_tokens is not None and model._llm_type == "opinionsim-local":
            options["max_tokens"] = max_tokens
        elif max_tokens is not None:
            model = providers.lengthened(model, max_tokens)
        if self._blocking:

            def invoke() -> AIMessage:
                with _untraced():
                    return model.invoke(self._own_messages(prompt), **options)

            return await _in_thread(invoke)
        with _untraced():
            if self._direct.would_do(model, options):
                return await self._direct.call(model, self._messages(prompt), options)
            # A callback gets to see the messages, and might change them.
            return await model.ainvoke(self._own_messages(prompt), **options)


def _name(provider: str, model: BaseChatModel) -> str:
    """Name of a model that was given as an object."""
    called = getattr(model, "model_name", None) or getattr(model, "model", None)
    return f"{provider}:{called}" if isinstance(called, str) and called else provider


def _untraced() -> AbstractContextManager[None]:
    """Context in which LangSmith traces no calls, whatever the environment or a traced caller says.

    Only ``OPINIONSIM_TRACING`` (1, true, yes or on) allows tracing: a variable that was meant for other work must not
    export prompts.
    """
    if not tracing_is_enabled():
        return nullcontext()
    allowed = os.environ.get("OPINIONSIM_TRACING", "").strip().lower() in ("1", "true", "yes", "on")
    return nullcontext() if allowed else tracing_context(enabled=False)


async def _in_thread(function: Callable[[], AIMessage]) -> AIMessage:
    """The result of a blocking call, made in a daemon thread.

    In a pool, calls that hang would block all other calls and the end of the process.
    """
    answer: Future[AIMessage] = Future()

    def work() -> None:
        try:
            settle = partial(answer.set_result, function())
        except BaseException as error:
            settle = partial(answer.set_exception, error)
        with suppress(InvalidStateError):  # nobody waits any more
            settle()

    threading.Thread(target=work, name="opinionsim-model", daemon=True).start()
    return await asyncio.wrap_future(answer)
