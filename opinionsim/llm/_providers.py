"""Providers of chat models: their addresses, the keys that go there, and the options they accept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

from opinionsim.errors import MeasurementError, OpinionSimError, SpecError, meant, packages
from opinionsim.foundation.redaction import all_options, is_digest, kept, secret_in
from opinionsim.llm._keys import check_key, is_at, provider_hosts
from opinionsim.llm._transport import fast_client

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


class _Home(NamedTuple):
    """Key and addresses of a provider."""

    key: str
    """Environment variable of its key."""
    address: str
    """Its own address."""
    elsewhere: tuple[str, ...]
    """Environment variables for another address; the first one that is set is used."""


#: Providers whose dialect other servers speak as well, so that `base_url` may name any host.
_HOMES = {
    "openai": _Home("OPENAI_API_KEY", "https://api.openai.com/v1", ("OPENAI_API_BASE", "OPENAI_BASE_URL")),
    "anthropic": _Home("ANTHROPIC_API_KEY", "https://api.anthropic.com", ("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL")),
}
#: Sent to servers that want some key and do not check it.
_NO_KEY = "not-needed"

#: Messages on keys missing for models that are loaded to plan with; None where models are loaded to be called.
_MISSING: ContextVar[list[str] | None] = ContextVar("missing", default=None)

#: Options that name a host.
_ADDRESS = re.compile(r"(^|_)(url|api_base|endpoint|host)$")
#: Options that are set elsewhere, and where or why.
_ELSEWHERE = {
    **dict.fromkeys(("max_retries",), "retries belong to execution.retry"),
    **dict.fromkeys(("timeout", "request_timeout", "default_request_timeout"), "time-outs are execution.timeout_s"),
    "cache": "replies kept by prompt would make replicates copies of each other",
    "seed": "every call has its own seed, derived from the run",
    "n": "each call asks for one reply",
    "model": "write it as model.name",
    "model_provider": "write it as model.name",
    "configurable_fields": "a model is fixed for a run",
}

#: What models and providers call the longest reply.
_LENGTHS = {"max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample"}
_LENGTHS |= {"num_predict", "max_new_tokens"}
#: Names of models whose chat templates take no two messages of one role in a row.
_ALTERNATING = re.compile(
    r"(?<![a-z])(gemma-?(1\.1|[237])|mi[sx]tral-.*instruct|llama-?2-.*chat|codellama-.*instruct)", re.IGNORECASE
)


@contextmanager
def planning() -> Iterator[list[str]]:
    """Load chat models without keys, and models in this process without weights, inside the block.

    All other checks still apply. The models serve only to plan; calls to them fail.

    Yields
    ------
    list of str
        One sentence for each thing that a run needs and lacks; the list grows as models are loaded.
    """
    missing: list[str] = []
    token = _MISSING.set(missing)
    try:
        yield missing
    finally:
        _MISSING.reset(token)


def is_planning() -> bool:
    """Whether models are loaded only to plan."""
    return _MISSING.get() is not None


class NotLoaded(MeasurementError):
    """Weights are not loaded for a plan, but a run would find them."""


def lacking(error: OpinionSimError) -> None:
    """Raise an error or, while planning, record it as something that a run lacks."""
    noted = _MISSING.get()
    if noted is None:
        raise error
    if str(error) not in noted:
        noted.append(str(error))


def require_weights(what: str, name: str, revision: str | None, *modules: str, otherwise: str = "") -> None:
    """Check that the packages of the extra ``local`` and weights are on this machine, without loading them.

    Raises
    ------
    MeasurementError
        If a package or the weights are missing; the message tells how to install or download them.
    """
    if any(find_spec(each) is None for each in modules):
        packages(what, "local", *modules, otherwise=otherwise)
    if Path(name).expanduser().is_dir():
        return
    hub = import_module("huggingface_hub")
    with suppress(ValueError):  # no name on the hub
        if isinstance(hub.try_to_load_from_cache(name, "config.json", revision=revision), str):
            return
    remedy = "there is no such folder" if name[:1] in "./~" else f"download them with: hf download {name}"
    raise MeasurementError(f"{what}: the weights are not on this machine; {remedy}")


def connected(name: str, options: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
    """The options of a model with explicit address, key and parameter for the maximum length of a reply.

    A provider's key goes to the provider's own hosts, or to the address in the provider's environment variable. Any
    other address in a specification receives a key only through ``api_key_env``, and only if the pair of key and
    host is known, local or allowed by the user (:func:`opinionsim.llm._keys.check_key`).

    Parameters
    ----------
    name : str
        ``provider:model``.
    options : mapping
        As in the specification.
    max_tokens : int or None
        Maximum length of a reply.

    Raises
    ------
    SpecError
        If an option belongs elsewhere, a key is missing, or a key would go to another host.
    """
    provider = name.partition(":")[0]
    _check_options(options, max_tokens)
    options = dict(options)
    variable = options.pop("api_key_env", None)
    if variable is not None and not (isinstance(variable, str) and variable.isidentifier()):
        raise SpecError("model.options: api_key_env must be the name of an environment variable that holds a key")
    home = _HOMES.get(provider)
    if home is None:
        _check_stranger(name, options, variable)
        return options if variable is None or provider == "ollama" else {**options, "api_key": _key(name, variable)}
    for option in options:
        if _ADDRESS.search(option) and option != "base_url":
            raise SpecError(f"model.options: {option}: write it as base_url")
    asked = options.get("base_url")
    # An explicit address also keeps LangChain from sending prompts through a gateway that a variable names.
    address = asked or os.environ.get(_elsewhere(home), "") or home.address
    ours = is_at(address, provider_hosts()[home.key])
    if variable is None and (ours or (asked is None and os.environ.get(home.key))):
        variable = home.key
    # An address that no specification names is the user's own, and so is the provider's key there.
    if variable is not None and (asked is not None or variable != home.key):
        check_key(variable, address)
    options |= {"base_url": address, "api_key": SecretStr(_NO_KEY) if variable is None else _key(name, variable)}
    if provider == "openai":
        options |= _openai_options(options, address, max_tokens)
    return options


def _elsewhere(home: _Home) -> str:
    """Name of the variable that replaces a provider's address; '' when none is set."""
    return next((each for each in home.elsewhere if os.environ.get(each)), "")


def _check_options(options: Mapping[str, Any], max_tokens: int | None) -> None:
    for inside in (options, options.get("extra_body"), options.get("model_kwargs")):
        for option in set(inside or ()) & _ELSEWHERE.keys():
            raise SpecError(f"model.options: {option}: {_ELSEWHERE[option]}")
        if inside is not options and "temperature" in (inside or ()):
            raise SpecError("model.options: temperature: write it as model.temperature")
    kept(options)  # what is not kept is not shown either
    for option, value in all_options(options):
        if option in _LENGTHS and None not in (value, max_tokens) and value != max_tokens:
            raise SpecError(
                f"model.options: {option} is {value!r} and model.max_tokens {max_tokens}; write one number in both, to "
                "send it under this name, or model.max_tokens: null"
            )
        if is_digest(value):
            raise SpecError(f"model.options: {option}: the manifest has only its digest; give the value with --set")
    if problem := secret_in(options, strict=True):
        raise SpecError(f"model.options: {problem}; api_key_env names the variable of a key")
    address = options.get("base_url")
    if address is not None and not _is_address(str(address)):
        raise SpecError("model.options: base_url must be an address such as http://localhost:8000/v1")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    named = re.fullmatch(r"[\w.:-]+", parts.hostname or "")  # what other readers of addresses could read otherwise
    return parts.scheme in ("http", "https") and bool(named) and not parts.query and not parts.fragment


def _key(name: str, variable: str) -> SecretStr:
    value = os.environ.get(variable, "").strip()
    if not value:
        said = " (model.options.api_key_env names it)" if variable not in {home.key for home in _HOMES.values()} else ""
        problem = f"model.name: {name!r} needs a key: set the environment variable {variable}{said}"
        lacking(SpecError(problem))
        value = _NO_KEY
    return SecretStr(value)


def _check_stranger(name: str, options: Mapping[str, Any], variable: str | None) -> None:
    """Refuse to send the key of a provider without a known address to a host that it is not for."""
    provider = name.partition(":")[0]
    gateway = os.environ.get("LANGSMITH_GATEWAY", "").lower()
    if provider != "langsmith" and gateway not in ("", "0", "false", "no"):
        raise SpecError(
            f"model.name: LANGSMITH_GATEWAY is set, so calls of {name!r} might pass through that gateway; unset it"
        )
    addresses = {option: str(value) for option, value in all_options(options) if value and _ADDRESS.search(option)}
    for option, address in addresses.items():
        if provider == "ollama":  # its client takes this key, and no other, from the environment
            variable = "OLLAMA_API_KEY" if os.environ.get("OLLAMA_API_KEY") else None
        elif variable is None and not is_at(address, provider_hosts()["AZURE_OPENAI_API_KEY"]):
            raise SpecError(
                f"model.options: with {option}, name the environment variable of the key in api_key_env; for an "
                "OpenAI-compatible server without a key, use openai:MODEL with base_url"
            )
        if variable is not None:
            check_key(variable, address)
    own = provider_hosts().keys() & {variable} and provider.startswith(str(variable).removesuffix("_API_KEY").lower())
    if variable is not None and not addresses and not own:
        check_key(variable, provider)


def _openai_options(options: Mapping[str, Any], address: str, max_tokens: int | None) -> dict[str, Any]:
    added: dict[str, Any] = {}
    if options.get("use_responses_api") and "store" not in options:
        # The Responses API keeps requests with the provider unless told not to.
        added["store"] = False
    if not is_at(address, provider_hosts()[_HOMES["openai"].key]):
        stated = {"use_responses_api", "max_completion_tokens"} & {name for name, value in options.items() if value}
        if max_tokens is not None and not stated:
            # LangChain would send max_completion_tokens, which some servers ignore (Ollama, LM Studio), so that replies
            # had no limit; relays refuse the pair.
            body = options.get("extra_body") or {}
            named = {} if any(name in body for name in _LENGTHS) else {"max_tokens": max_tokens}
            added |= {"max_tokens": None, "extra_body": {**named, **body}}
        if os.environ.keys() & {"OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT_ID"}:
            blank = {"OpenAI-Organization": "", "OpenAI-Project": ""}
            added["default_headers"] = blank | dict(options.get("default_headers") or {})
    return added


def lengthened(model: BaseChatModel, max_tokens: int) -> BaseChatModel:
    """A copy of a model with longer replies. A model without a limit under a known name is unchanged."""
    fields: dict[str, Any] = {name: max_tokens for name in _LENGTHS if isinstance(getattr(model, name, None), int)}
    for extra in ("extra_body", "model_kwargs"):
        given = getattr(model, extra, None)
        if isinstance(given, Mapping) and any(name in given for name in _LENGTHS):
            fields[extra] = {**given, **{name: max_tokens for name in _LENGTHS if name in given}}
    return model.model_copy(update=fields) if fields else model


def check_request(
    name: str, model: BaseChatModel, temperature: float | None, max_tokens: int | None, options: Mapping[str, Any]
) -> None:
    """Check the settings of a model before any call, because LangChain may silently drop them.

    Parameters
    ----------
    name : str
        ``provider:model``.
    model : BaseChatModel
        The model.
    temperature, max_tokens : float or int or None
        The requested values.
    options : mapping
        The options of the model.

    Raises
    ------
    SpecError
        If the next request would lack a setting.
    """
    _check_known(model, options)
    request = request_of(model)
    if request is not None and "input" in request and not options.get("use_responses_api"):
        raise SpecError(
            f"model.options: {name!r} with these options uses the Responses API; set use_responses_api: true"
        )
    sent = dict(all_options(vars(model) if request is None else request))
    if temperature is not None and sent.get("temperature") != temperature:
        raise SpecError(
            f"model.temperature: {name!r} does not accept {temperature:g}: {type(model).__name__} does not send it; "
            "set model.temperature: null"
        )
    if max_tokens is not None and max_tokens not in [sent.get(length) for length in _LENGTHS]:
        raise SpecError(
            f"model.max_tokens: {type(model).__name__} does not send it; set model.max_tokens: null and limit replies "
            "with the model's own option in model.options"
        )


def _check_known(model: BaseChatModel, options: Mapping[str, Any]) -> None:
    """Refuse options that a model does not know; LangChain drops them or passes them on, depending on the model."""
    fields = type(model).model_fields
    known = {*fields, *(field.alias for field in fields.values() if field.alias)}
    passed_on = set(getattr(model, "model_kwargs", None) or ()) - set(options.get("model_kwargs") or ())
    if type(model).model_config.get("extra") == "allow":
        known |= set(options)
    for option in (set(options) - known) | (set(options) & passed_on):
        near = meant(option, known)
        body = "; parameters of the server itself go into extra_body" if "extra_body" in fields else ""
        raise SpecError(f"model.options: {type(model).__name__} has no option {option!r}{near}{body}")


def request_of(model: BaseChatModel) -> Mapping[str, Any] | None:
    """The request that a model would send, as far as its class shows it; otherwise None."""
    from langchain_core.messages import HumanMessage

    prompt: list[BaseMessage] = [HumanMessage("?")]
    build = getattr(model, "_get_request_payload", None) or getattr(model, "_chat_params", None)
    if build is not None:
        try:
            request = build(prompt, stop=None)
        except ValueError as error:
            raise SpecError(f"model.options: {str(error).splitlines()[0]}") from None
    else:
        request = getattr(model, "_default_params", None)
    return request if isinstance(request, Mapping) else None


#: Seed of requests that are inspected and never sent.
_TRIAL_SEED = 1_234_567


def seeding(model: BaseChatModel) -> Literal["call", "copy", "none"]:
    """How a model gets the seed of a call: with the call, through a copy of the model, or never."""
    if "seed" not in type(model).model_fields:
        return "none"
    request = request_of(model.model_copy(update={"seed": _TRIAL_SEED}))
    if request is None:
        return "call"
    if "input" in request:  # OpenAI's Responses API knows no seed
        return "none"
    if request.get("seed") == _TRIAL_SEED:
        return "call"
    return "copy" if dict(all_options(request)).get("seed") == _TRIAL_SEED else "none"


def prepared(model: BaseChatModel, max_reply_bytes: int) -> BaseChatModel:
    """A model that leaves retries to the caller, and uses aiohttp if it is an OpenAI-compatible client.

    The given model stays unchanged.

    Parameters
    ----------
    model : BaseChatModel
        The model.
    max_reply_bytes : int
        Maximum size of a reply in bytes, without compression.

    Raises
    ------
    SpecError
        If the model's own retries cannot be switched off.
    """
    client = getattr(model, "root_async_client", None)
    if client is None:
        # The number of retries was handed to a client when the model was built: a change would not reach it.
        if "max_retries" in type(model).model_fields and getattr(model, "max_retries", 0) != 0:
            raise SpecError(
                f"chat_model: this {type(model).__name__} retries by itself, outside budget and limits; construct it "
                "with max_retries=0"
            )
        return model
    chosen = [getattr(model, name, None) for name in ("http_async_client", "http_socket_options", "openai_proxy")]
    ours = {} if any(chosen) else {"http_client": fast_client(max_reply_bytes)}
    client = client.with_options(max_retries=0, **ours)
    if chosen[0] is None:
        # LangChain's client or ours, which no caller has: what it is sent to, with a key, is what was written.
        client._client.follow_redirects = False
    update = {"max_retries": 0, "root_async_client": client, "async_client": client.chat.completions}
    blocking = getattr(model, "root_client", None)
    if blocking is not None:
        blocking = blocking.with_options(max_retries=0)
        update |= {"root_client": blocking, "client": blocking.chat.completions}
    return model.model_copy(update=update)


def provider_of(model: BaseChatModel) -> str:
    """The provider whose LangChain package a model comes from; '' for other packages and models in the process."""
    for each in type(model).__mro__:
        package = each.__module__.partition(".")[0]
        if package.startswith("langchain_") and package not in ("langchain_core", "langchain_classic"):
            in_process = type(getattr(model, "llm", None)).__name__ == "HuggingFacePipeline"
            return "" if in_process else package.removeprefix("langchain_")
    return ""


def endpoint_of(model: BaseChatModel) -> str:
    """Host and port that a model sends to, if known."""
    client = getattr(model, "root_async_client", None)
    addresses = [getattr(client, "base_url", None)]
    addresses += [getattr(model, name, None) for name in type(model).model_fields if _ADDRESS.search(name)]
    for address in addresses:
        parts = urlsplit(str(address or ""))
        if parts.hostname:
            return parts.hostname + (f":{parts.port}" if parts.port else "")
    return ""


def warnings_for(name: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """Warnings about a model before it is used.

    Parameters
    ----------
    name : str
        As for :func:`load_chat_model`.
    options : mapping, optional
        The model's options.

    Returns
    -------
    list of str
        A sentence if only an environment variable gives the model's address, and one if its chat template requires
        alternating roles and no option is set for this.
    """
    given, found = options or {}, []
    home = _HOMES.get(name.partition(":")[0])
    if home is not None and not given.get("base_url") and (moved := _elsewhere(home)):
        found.append(
            f"model.name: {name!r} sends calls to {urlsplit(os.environ[moved]).hostname}, because {moved} is set; "
            "set base_url in model.options to record it"
        )
    if not given.get("roles") and _ALTERNATING.search(name):
        found.append(
            f"model.name: the chat template of {name!r} refuses two messages of one role in a row, which prompts with "
            "a memory contain; set model.options.roles: alternate to join them"
        )
    return found
