"""The flan-t5 classifier, which scores the points of a scale with an encoder-decoder model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opinionsim.classifiers._base import Item, PlainClassifier, check_items, claims_and_texts
from opinionsim.classifiers._calibration import load_calibration, softmax
from opinionsim.classifiers._flan_t5_prompt import ScalePrompt
from opinionsim.classifiers._flan_t5_weights import DTYPES, load_weights
from opinionsim.classifiers._label_scorer import LabelScorer
from opinionsim.classifiers._label_trie import LabelTrie
from opinionsim.errors import MeasurementError, SpecError, whole_number
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Default number of prompts in one pass: one is enough to keep a CPU busy, but not a GPU.
_BATCH = {"cpu": 1, "cuda": 16}
#: The options that a calibration is bound to.
_CALIBRATED = ("weights", "wording", "eos")


@part("classifier", name="flan-t5")
class FlanT5Classifier(PlainClassifier):
    """Codes an author's opinion of a claim from the probabilities that Flan-T5 gives to the points of the scale.

    The prompt asks which point a text expresses. One pass of the encoder and one short pass of the decoder give the
    probability of every point. These probabilities are normalised; the remaining probability is the off-scale mass.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale to code on. Default: -2 to 2.
    model : str
        ``small``, ``base``, ``large``, ``xl`` or ``xxl`` for Flan-T5 of that size; or another name on the model hub or
        a folder, with a model of the T5 family and its tokenizer. Chuang et al. 2023 used ``xxl``.
    revision : str, optional
        Branch, tag or commit on the model hub.
    weights : str, optional
        The expected weights: their commit or, for a folder, ``sha256:`` and the digest of its files, as in
        ``options["weights"]``. Other weights under the same name raise an error. This option distinguishes measurements
        with different weights under one name.
    dtype : {"float32", "bfloat16"}
        Number format. bfloat16 is faster on machines that support it, but less precise. float16 raises an error,
        because T5 overflows in it.
    device : str
        ``auto`` (a GPU if available), ``cpu``, ``cuda`` or ``cuda:N``.
    batch_size : int, optional
        Number of texts in one pass; default 1 on a CPU, where larger batches gain little, and 16 on a GPU.
    max_tokens : int
        Maximum length of a prompt. The classifier removes the middle of a text that does not fit, and counts it in
        :attr:`n_cut`; it never cuts the question or the claim. T5 was trained on 512 tokens. Its positions are
        relative, so it accepts longer prompts, but they lie outside its training.
    off_scale_threshold : float
        In [0, 1]. A text has no value if its off-scale mass is larger. Default 0.5; above this, the model is more
        likely to give another answer.
    eos : bool
        Whether an answer must end after the point. False, the default, also accepts answers such as "1." for 1.
    prompt : str, optional
        File with a Jinja2 template that replaces the prompt of the package.
    calibration : str, optional
        File with a calibration from :func:`opinionsim.classifiers.fit_calibration`.

    Raises
    ------
    SpecError
        If an option is not valid.
    MeasurementError
        If the weights or the packages of the extra ``local`` are missing, or the weights are not the expected ones.

    Notes
    -----
    The method follows Chuang et al. 2023, §3 (A2, A9), who let FLAN-T5-XXL (Chung et al. 2022) generate the number. The
    result of a text does not depend on the other texts in its batch. ``docs/classifiers.md`` describes known biases.
    """

    name = "flan-t5"
    needs_claim = True
    loads_weights = True

    def __init__(
        self,
        scale: OpinionScale | None = None,
        *,
        model: str = "large",
        revision: str | None = None,
        weights: str | None = None,
        dtype: str = "float32",
        device: str = "auto",
        batch_size: int | None = None,
        max_tokens: int = 1024,
        off_scale_threshold: float = 0.5,
        eos: bool = False,
        prompt: str | Path | None = None,
        calibration: str | Path | None = None,
    ) -> None:
        _require_text(
            model=model, revision=revision, weights=weights, device=device, prompt=prompt, calibration=calibration
        )
        _require_format(dtype)
        whole_number("max_tokens", max_tokens, 1)
        if batch_size is not None:
            whole_number("batch_size", batch_size, 1)
        if isinstance(off_scale_threshold, bool) or not isinstance(off_scale_threshold, int | float):
            raise SpecError(f"off_scale_threshold must be a number from 0 to 1; got {off_scale_threshold!r}")
        if not 0 <= off_scale_threshold <= 1:
            raise SpecError(f"off_scale_threshold must be from 0 to 1; got {off_scale_threshold!r}")
        if not isinstance(eos, bool):
            raise SpecError(f"eos must be true or false; got {eos!r}")
        super().__init__(scale)
        self._question = ScalePrompt(self.scale, prompt)
        self._calibration = None if calibration is None else load_calibration(calibration)
        loaded = load_weights(str(model), revision, dtype, device, weights)
        self._tokenizer = loaded.tokenizer
        self._special = {*loaded.tokenizer.all_special_ids} - {loaded.tokenizer.unk_token_id}
        self._max_tokens = max_tokens
        device_type = loaded.model.device.type
        self._options = {
            "model": loaded.name,
            "weights": loaded.digest,
            "wording": self._question.digest,
            "dtype": dtype,
            "device": device_type,
            "batch_size": batch_size or _BATCH[device_type],
            "max_tokens": max_tokens,
            "off_scale_threshold": float(off_scale_threshold),
            "eos": eos,
            "calibration": None if self._calibration is None else self._calibration.digest,
        }
        if self._calibration is not None:
            self._calibration.require(self.name, self.scale, {key: self._options[key] for key in _CALIBRATED})
        trie = LabelTrie(self._labels(), loaded.tokenizer.eos_token_id if eos else None)
        self._scorer = LabelScorer(loaded.model, trie, batch_size=self._options["batch_size"])
        self.n_cut = 0
        """Number of shortened texts over all batches; equal items of one batch count once."""

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Code one opinion per item.

        Parameters
        ----------
        items : sequence of Item, length n
            Texts, each with its claim. A text without visible characters has no answer, and the model is not called.

        Returns
        -------
        OpinionEstimates
            n rows; equal items have equal rows, regardless of the rest of the batch.

        Raises
        ------
        SpecError
            If an entry is not an Item, or has no claim.
        MeasurementError
            If a claim leaves no room for a text.
        """
        check_items(items, self)
        asked: dict[tuple[str, str], int] = {}
        pairs = claims_and_texts(items)
        spoken = [index for index, (_, text) in enumerate(pairs) if text.strip()]
        rows = [asked.setdefault(pairs[index], len(asked)) for index in spoken]
        masses = self._scorer.log_masses([self._prompt(claim, text) for claim, text in asked])[rows]
        probabilities = np.full((len(pairs), len(self.scale)), np.nan)
        off_scale = np.ones(len(pairs))
        probabilities[spoken] = self._calibration.probabilities(masses) if self._calibration else softmax(masses)
        off_scale[spoken] = np.clip(1.0 - np.exp(masses).sum(axis=1), 0.0, 1.0)
        return OpinionEstimates.from_probabilities(
            self.scale, probabilities, off_scale, threshold=self._options["off_scale_threshold"]
        )

    def _labels(self) -> list[list[int]]:
        """Tokens of the answers that stand for the points."""
        labels = [self._tokenizer(str(point), add_special_tokens=False).input_ids for point in self.scale.points]
        for point, label in zip(self.scale.points, labels, strict=True):
            if self._tokenizer.unk_token_id in label:
                raise MeasurementError(f"classifier 'flan-t5': the model's tokenizer cannot spell the point {point}")
        return labels

    def _prompt(self, claim: str, text: str) -> list[int]:
        """Tokens of the question about a text, the text shortened where it does not fit."""
        tokens = self._tokens(self._question(claim, text))
        if len(tokens) <= self._max_tokens:
            return tokens
        self.n_cut += 1
        return self._cut(claim, text)

    def _cut(self, claim: str, text: str) -> list[int]:
        """Tokens of the question about the beginning and end of a text, where views stand, as far as they fit."""
        best: list[int] = []
        kept, too_many = 0, len(text)
        while too_many - kept > 1:
            middle = (kept + too_many) // 2
            tokens = self._tokens(self._question.shortened(claim, text, middle))
            if len(tokens) <= self._max_tokens:
                best, kept = tokens, middle
            else:
                too_many = middle
        if not best:
            raise MeasurementError(
                f"classifier 'flan-t5': max_tokens = {self._max_tokens} leaves no room for a text after the question "
                f"and the claim {claim[:80]!r}"
            )
        return best

    def _tokens(self, prompt: str) -> list[int]:
        """Tokens of a prompt, in which text spelled like a special token does not become that token."""
        *body, end = self._tokenizer(prompt, verbose=False).input_ids
        return [*(token for token in body if token not in self._special), end]


def _require_text(**given: object) -> None:
    for name, value in given.items():
        missing = value is None and name not in ("model", "device")
        if not missing and not (isinstance(value, str | Path) and str(value).strip()):
            raise SpecError(f"{name} must be text; got {value!r}")


def _require_format(dtype: str) -> None:
    if dtype == "float16":
        raise SpecError("dtype: T5 overflows in float16; valid: float32, bfloat16")
    if dtype not in DTYPES:
        raise SpecError(f"dtype: unknown number format {dtype!r}; valid: {', '.join(DTYPES)}")
