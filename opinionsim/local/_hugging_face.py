"""Hugging Face chat models in this process, which answer simultaneous calls in batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from pydantic import Field, PrivateAttr

from opinionsim.errors import MeasurementError, SpecError, packages
from opinionsim.foundation.documents import validate
from opinionsim.foundation.provenance import digest_of_weights
from opinionsim.llm import is_planning, lacking, require_weights
from opinionsim.local._batching import Batcher
from opinionsim.local._chat_model import LocalChatModel, LocalOptions

if TYPE_CHECKING:
    from concurrent.futures import Future

    from opinionsim.local._decoder import Decoded, ToDecode

#: Characters of an adapter's digest in the name of a model.
_SHOWN = 12
#: Options of a call of one token that asks for log probabilities.
_TOLD = ("logprobs", "top_logprobs", "temperature")


class HuggingFaceOptions(LocalOptions):
    """Options of a Hugging Face model."""

    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    """`auto` (a CUDA device if there is one), `cpu`, `cuda` or `cuda:N`."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    """Number format; `auto` keeps that of the weights; default float32 on a CPU and bfloat16 on a CUDA device."""
    batch_size: int = Field(16, ge=1, le=4096)
    """Maximum number of calls in one batch."""
    adapter: str | None = None
    """Folder of a PEFT adapter; needs the package peft."""
    revision: str | None = None
    """Branch, tag or commit of a model on the hub."""
    chat_template: str | None = None
    """File with a Jinja chat template to use instead of the tokenizer's."""


class HuggingFaceChatModel(LocalChatModel):
    """A causal language model in this process.

    A reply depends only on messages and seed. This is exact with ``batch_size: 1``; in larger batches, floating-point
    sums may round differently. Made by :func:`load`. Its thread ends with :meth:`close`, or with the object. Its name
    is ``hf:NAME@FINGERPRINT`` or, with an adapter, ``hf:NAME+ADAPTER#DIGEST@FINGERPRINT``, where DIGEST is the
    beginning of the fingerprint on the adapter's card.
    """

    _batcher: Batcher[ToDecode, Decoded] = PrivateAttr()

    def close(self) -> None:
        """End the thread; waiting and later calls fail."""
        self._batcher.close()

    def _ask(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> Future[Decoded]:
        """Queue a call."""
        from opinionsim.local._decoder import ToDecode

        seed, max_tokens = options.pop("seed", self.seed), options.pop("max_tokens", None)
        if max_tokens == 1 and options.get("logprobs"):
            # They are those before temperature and filters, whatever temperature is asked for.
            options = {key: value for key, value in options.items() if key not in _TOLD}
        if stop or options:
            raise ValueError(f"a local model accepts no {', '.join(options) or 'stop sequences'} with a call")
        prompt = tuple(convert_to_openai_messages(messages, text_format="string"))
        length = sum(len(message["content"] or "") for message in prompt)
        return self._batcher.submit(ToDecode(prompt, seed, max_tokens), length)

    def _said(self, answer: Decoded) -> tuple[AIMessage, int, int, int]:
        about: dict[str, Any] = {"finish_reason": "stop" if answer.complete else "length"}
        if answer.likeliest:
            top = [{"token": token, "logprob": log} for token, log in answer.likeliest]
            about["logprobs"] = {"content": [{"top_logprobs": top}]}
        return AIMessage(answer.text, response_metadata=about), answer.input_tokens, answer.output_tokens, 0


def load(
    name: str, *, temperature: float | None = None, max_tokens: int | None = None, **options: Any
) -> HuggingFaceChatModel:
    """Load a causal model with a chat template into this process.

    Parameters
    ----------
    name : str
        A folder, or a name on the Hugging Face hub. The function reads only weights in the safetensors format, and
        never runs code that comes with a model.
    temperature : float, optional
        0 or None chooses the most likely token each time.
    max_tokens : int, optional
        Maximum length of a reply in tokens; None for 1,024. A reply that reaches it, or the end of the context, has the
        finish reason ``length``.
    **options
        See docs/local_models.md: device, dtype, batch_size, top_p, top_k, adapter, revision, chat_template,
        enable_thinking, template_options.

    Returns
    -------
    HuggingFaceChatModel
        The loaded model.

    Raises
    ------
    SpecError
        If an option is not valid, a package is missing, or model, tokenizer or adapter cannot be loaded.
    """
    if "trust_remote_code" in options:
        raise SpecError("model.options: trust_remote_code is not supported; code from a model is never run")
    chosen = validate(HuggingFaceOptions, options, "model.options")
    if is_planning():
        adapter = () if chosen.adapter is None else ("peft",)
        try:
            require_weights(f"model.name: 'hf:{name}'", name, chosen.revision, "torch", "transformers", *adapter)
        except MeasurementError as error:
            lacking(error)
        return HuggingFaceChatModel(model=f"hf:{name}", settings={}, cache=False)
    (decoding,) = packages(f"model.name: 'hf:{name}'", "local", "opinionsim.local._decoder", kind=SpecError)
    sampling = decoding.Sampling(temperature or 0.0, chosen.top_p, chosen.top_k, max_tokens)
    decoder = decoding.load_decoder(name, chosen, sampling)
    label = name
    if chosen.adapter is not None:
        # The same digest as on the card of a training, so that a run leads to it.
        digest = digest_of_weights(Path(chosen.adapter).expanduser()).removeprefix("sha256:")
        label = f"{name}+{chosen.adapter}#{digest[:_SHOWN]}"
    model = HuggingFaceChatModel(
        model=f"hf:{label}@{decoder.fingerprint}",
        settings={**sampling._asdict(), "device": decoder.device, "dtype": decoder.dtype},
        cache=False,
    )
    model._batcher = Batcher(decoder.answer, chosen.batch_size)
    return model


def weights(name: str) -> Path:
    """The folder of the weights, if the name is a folder."""
    return Path(name).expanduser()
