"""Text generation with a Hugging Face causal model, in batches of independent rows.

Importing this module imports torch and transformers.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import transformers

from opinionsim.errors import SpecError, in_short, packages
from opinionsim.foundation.provenance import device_named
from opinionsim.foundation.streams import stream
from opinionsim.messages import broken_up

if TYPE_CHECKING:
    from opinionsim.local._hugging_face import HuggingFaceOptions

#: Longest reply where none is stated, tokens.
_LONGEST = 1024

#: How many of the likeliest first tokens are told.
_LIKELIEST = 20

#: Values of each weight tensor that enter a model's identity; any training step changes nearly all of them.
_PROBED = 64

_THINKING = "<think>"

#: Typed as Any, since its constructor has no types.
_generation_settings: Any = transformers.GenerationConfig


class PromptError(ValueError):
    """A prompt that this model can never accept."""


class Sampling(NamedTuple):
    """How a token is chosen."""

    temperature: float = 0.0
    """0 takes the likeliest token."""
    top_p: float | None = None
    """Total probability of the smallest set of most likely tokens to choose from; None for all tokens."""
    top_k: int | None = None
    """Number of most likely tokens to choose from; None for all."""
    max_tokens: int | None = None
    """Maximum length of a reply in tokens; None for 1,024."""


class ToDecode(NamedTuple):
    """One prompt, and the seed of its reply."""

    messages: tuple[dict[str, Any], ...]
    seed: int | None
    max_tokens: int | None = None
    """Maximum length of the reply in tokens; None for the model's own limit."""


class Decoded(NamedTuple):
    """One reply."""

    text: str
    input_tokens: int
    output_tokens: int
    """Number of generated tokens, including the token that ends the reply."""
    complete: bool
    """Whether the model ended the reply, instead of the limit of its length."""
    likeliest: tuple[tuple[str, float], ...] = ()
    """The most likely tokens of a reply of one token, with their unmodified log probabilities."""


class Decoder:
    """A causal model with its tokenizer.

    Parameters
    ----------
    model : PreTrainedModel
        In evaluation mode, on its device.
    tokenizer : PreTrainedTokenizerBase
        With a chat template.
    sampling : Sampling
        How tokens are chosen.
    template_options : mapping
        Further variables of the chat template.

    Attributes
    ----------
    fingerprint : str
        Hash of configuration, vocabulary, chat template and a sample of every weight tensor; 12 hexadecimal characters.
    context : int or None
        Maximum length of prompt and reply together, in tokens; None if the model states no limit.
    device, dtype : str
        The device of the weights, and their number format.
    """

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        tokenizer: transformers.PreTrainedTokenizerBase,
        sampling: Sampling,
        template_options: Mapping[str, Any],
    ) -> None:
        self._model: Any = model
        self._tokenizer: Any = tokenizer
        self._sampling = sampling
        self._template_options = dict(template_options)
        # Those of the checkpoint's generation settings, one or several, and the tokenizer's.
        stated = [model.generation_config.eos_token_id, tokenizer.eos_token_id]
        ends = [token for part in stated for token in (part if isinstance(part, list) else [part])]
        self._stops = sorted({token for token in ends if token is not None})
        # Otherwise a checkpoint's own defaults, such as a repetition penalty, would apply unseen.
        self._model.generation_config = _generation_settings()
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None) or tokenizer.model_max_length
        self.context = int(longest) if 0 < longest < 10**9 else None
        self.fingerprint = _fingerprint(model, tokenizer)
        self.device, self.dtype = str(model.device), str(model.dtype).removeprefix("torch.")
        self._plain = broken_up(str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)

    def answer(self, questions: Sequence[ToDecode], abandoned: Callable[[int], bool]) -> list[Decoded | Exception]:
        """Answer all questions, each independently of the others.

        Parameters
        ----------
        questions : sequence of ToDecode
            The batch.
        abandoned : callable
            Tells whether the answer to the question at a position is no longer wanted.

        Returns
        -------
        list
            Answers in order; a :class:`PromptError` for a prompt that the model cannot accept.
        """
        answers: list[Decoded | Exception] = [PromptError()] * len(questions)
        groups: dict[tuple[int, int], list[int]] = {}
        prompts: dict[int, tuple[list[int], bool]] = {}
        for index, question in enumerate(questions):
            try:
                prompts[index] = self._encoded(question)
            except PromptError as error:
                answers[index] = error
                continue
            longest = question.max_tokens or self._sampling.max_tokens or _LONGEST
            room = longest if self.context is None else min(longest, self.context - len(prompts[index][0]))
            # Rows run until the last one ends. A row without room for the longest reply runs alone.
            groups.setdefault((room, -1 if room == longest else index), []).append(index)
        for (room, _), rows in groups.items():
            ids, likeliest = self._generated(
                [prompts[row][0] for row in rows],
                [questions[row].seed for row in rows],
                room,
                lambda position, rows=rows: abandoned(rows[position]),  # type: ignore[misc]
            )
            for row, generated, likely in zip(rows, ids, likeliest, strict=True):
                tokens, thinking = prompts[row]
                complete = generated[-1] in self._stops
                text = self._tokenizer.decode(generated[:-1] if complete else generated, skip_special_tokens=True)
                text = (_THINKING if thinking else "") + text
                answers[row] = Decoded(text, len(tokens), len(generated), complete, likely)
        return answers

    def _encoded(self, question: ToDecode) -> tuple[list[int], bool]:
        """Token ids of a prompt, and whether it leaves the model in the middle of its reasoning."""
        text = self.rendered(question.messages)
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if not ids:
            raise PromptError("the chat template makes an empty prompt from these messages")
        if self.context is not None and len(ids) >= self.context:
            raise PromptError(
                f"the prompt has {len(ids)} tokens, but the context of the model has room for {self.context}, reply "
                "included; shorten what agents remember (cognition.token_budget), or take a model with a longer context"
            )
        return ids, text.rstrip().endswith(_THINKING)

    def rendered(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The prompt as text, made with the chat template; control tokens that a message spells out are broken up."""
        for message in messages:
            if not isinstance(message["content"], str):
                raise PromptError(f"this model reads only text; a message contains {type(message['content']).__name__}")
        # Agents' texts are data: they must not be able to end a message or begin another.
        plain = [{**message, "content": self._plain(message["content"])} for message in messages]
        try:
            text: str = self._tokenizer.apply_chat_template(
                plain, tokenize=False, add_generation_prompt=True, **self._template_options
            )
        except Exception as error:  # the template's own, mostly: roles it does not know or an order it refuses
            raise PromptError(f"the chat template refuses these messages: {error}") from error
        return text

    def _generated(
        self, prompts: list[list[int]], seeds: list[int | None], room: int, abandoned: Callable[[int], bool]
    ) -> tuple[list[list[int]], list[tuple[tuple[str, float], ...]]]:
        """Token ids generated for each prompt, up to and including the token that ends the reply; and the likeliest.

        The latter are :attr:`Decoded.likeliest`.
        """
        width = max(map(len, prompts))
        device = self._model.device
        padding = self._stops[0] if self._stops else 0
        padded = [[padding] * (width - len(ids)) + ids for ids in prompts]
        mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts]
        sampling = transformers.LogitsProcessorList()
        if self._sampling.temperature:
            sampling.append(SeededSampling(self._sampling, seeds, device))
        found = self._model.generate(
            input_ids=torch.tensor(padded, device=device),
            attention_mask=torch.tensor(mask, device=device),
            generation_config=_generation_settings(
                max_new_tokens=room, do_sample=False, eos_token_id=self._stops or None, pad_token_id=padding
            ),
            logits_processor=sampling,
            return_dict_in_generate=True,
            output_logits=room == 1,
            stopping_criteria=transformers.StoppingCriteriaList([_Abandoned(abandoned)]),
        )
        # Up to and including the first token that ends the reply.
        ids = [
            row[: next((place for place, token in enumerate(row, 1) if token in self._stops), len(row))]
            for row in found.sequences[:, width:].tolist()
        ]
        if room > 1:
            return ids, [()] * len(ids)
        logs, tokens = found.logits[0].float().log_softmax(-1).topk(min(_LIKELIEST, found.logits[0].shape[-1]))
        words = [map(self._tokenizer.decode, row) for row in tokens.tolist()]
        return ids, [tuple(zip(*row, strict=True)) for row in zip(words, logs.tolist(), strict=True)]


class SeededSampling(transformers.LogitsProcessor):
    """Turns greedy choice into exact sampling by adding Gumbel noise to the scaled scores, with a seed for each row.

    The most likely token of the noisy scores is distributed like a draw from the softmax of the scores (Gumbel-max).
    Rounding depends on batch and padding. Unlike in a draw by cumulated probabilities, it changes the choice only if
    the two best noisy scores agree to within this rounding.
    """

    def __init__(self, sampling: Sampling, seeds: Sequence[int | None], device: torch.device) -> None:
        self._temperature = sampling.temperature
        self._filters: list[Any] = []
        if sampling.top_k is not None:
            self._filters.append(transformers.TopKLogitsWarper(sampling.top_k))
        if sampling.top_p is not None:
            self._filters.append(transformers.TopPLogitsWarper(sampling.top_p))
        self._draws = [_exponentials(secrets.randbits(31) if seed is None else seed, device) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores / self._temperature
        for narrowed in self._filters:
            scores = narrowed(input_ids, scores)
        noise = torch.empty_like(scores)
        for row, draw in zip(noise, self._draws, strict=True):
            draw(row)
        return scores - noise.clamp_min_(torch.finfo(noise.dtype).tiny).log_()


def _exponentials(seed: int, device: torch.device) -> Callable[[torch.Tensor], object]:
    """A function that fills rows with exponential variates, one row after the other from one seed."""
    if device.type == "cpu":
        # Four times as fast here as torch's generator, which also uses only 32 bits of a seed.
        generator = stream(seed, "sampling")
        return lambda row: generator.standard_exponential(dtype="float32", out=row.numpy())
    on_device = torch.Generator(device=device).manual_seed(seed)
    return lambda row: row.exponential_(generator=on_device)


class _Abandoned(transformers.StoppingCriteria):
    """Ends rows whose answers are no longer wanted."""

    def __init__(self, abandoned: Callable[[int], bool]) -> None:
        self._abandoned = abandoned

    def __call__(self, input_ids: torch.Tensor, scores: object, **kwargs: Any) -> torch.Tensor:
        return torch.tensor([self._abandoned(row) for row in range(len(input_ids))], device=input_ids.device)


def _fingerprint(model: Any, tokenizer: Any) -> str:
    """Identity of what is loaded, independent of where it was loaded from."""
    unsteady = ("_name_or_path", "transformers_version")
    about = {name: value for name, value in model.config.to_dict().items() if name not in unsteady}
    hashed = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode())
    hashed.update(json.dumps([sorted(tokenizer.get_vocab().items()), tokenizer.chat_template]).encode())
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.flatten()
        probe = flat[:: max(1, len(flat) // _PROBED)].float().cpu().numpy()
        hashed.update(name.encode() + probe.tobytes())
    return hashed.hexdigest()[:12]


def load_decoder(name: str, options: HuggingFaceOptions, sampling: Sampling) -> Decoder:
    """Load a model, its tokenizer and its adapter; see :func:`opinionsim.local._hugging_face.load`.

    Raises
    ------
    SpecError
        If one of them cannot be loaded, or there is no chat template.
    """
    where = device_named(torch, options.device)
    try:
        dtype = options.dtype or ("float32" if where.type == "cpu" else "bfloat16")
        model, tokenizer = _loaded(os.path.expanduser(name), options.revision, dtype)
    except Exception as error:  # of many libraries: files, formats, the hub, the network
        raise SpecError(
            f"model.name: 'hf:{name}' cannot be loaded: {in_short(error)}\nvalid: a folder with config.json, "
            "tokenizer files with a chat template, and weights as safetensors; or the name of such a model on the "
            "Hugging Face hub, downloaded before (hf download NAME) or within reach. A server for local models is "
            "reached with openai:NAME and options: {base_url: http://...}; 'scripted' needs no weights"
        ) from error
    if options.adapter is not None:
        (peft,) = packages("model.options: adapter", "local", "peft", kind=SpecError)
        try:
            # Weights that are merged in cost nothing at generation.
            model = peft.PeftModel.from_pretrained(model, str(Path(options.adapter).expanduser())).merge_and_unload()
        except Exception as error:  # as for the model
            raise SpecError(
                f"model.options: adapter {options.adapter!r} cannot be loaded: {in_short(error)}; valid: a folder with "
                "adapter_config.json and weights made for this model, as peft saves them"
            ) from error
    if options.chat_template is not None:
        try:
            tokenizer.chat_template = Path(options.chat_template).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(
                f"model.options: chat_template {options.chat_template!r} cannot be read: {in_short(error)}"
            ) from None
    if not tokenizer.chat_template:
        raise SpecError(
            f"model.name: the tokenizer of 'hf:{name}' has no chat template; use the variant that was trained for "
            "conversation, or name a Jinja file with options: {chat_template: PATH}"
        )
    try:
        decoder = Decoder(model.to(where).eval(), tokenizer, sampling, options.variables)
        decoder.rendered([{"role": "user", "content": "Hello."}])
    except (PromptError, RuntimeError) as error:
        raise SpecError(f"model.options: 'hf:{name}' cannot be used: {in_short(error)}") from error
    return decoder


def _loaded(place: str, revision: str | None, dtype: str) -> tuple[Any, Any]:
    """Model and tokenizer, from this machine if they are on it, else from the hub."""
    is_folder = Path(place).is_dir()
    if not is_folder and place.startswith((".", "/", "~")):
        raise FileNotFoundError("there is no such folder")

    def load(offline: bool) -> tuple[Any, Any]:
        common: dict[str, Any] = {
            "revision": revision or "main",
            "trust_remote_code": False,
            "local_files_only": offline,
        }
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **common)
        # Other weight formats are unpickled, which runs code.
        return transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=dtype, use_safetensors=True, **common
        ), tokenizer

    try:
        return load(offline=True)
    except OSError:
        if is_folder:
            raise
    return load(offline=False)
