"""The reward classifier, a trained model of how far people agree with statements."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from opinionsim.classifiers import Item, PairClassifier
from opinionsim.errors import MeasurementError, SpecError, in_short, packages
from opinionsim.foundation.provenance import CARD, device_named, digest_of_weights
from opinionsim.llm import NotLoaded, is_planning, require_weights
from opinionsim.messages import printable
from opinionsim.opinions import OpinionScale
from opinionsim.registry import part

#: What stands before question, opinion and statement.
_LEADS = ("Question: ", "\nOpinion: ", "\nStatement: ")


class RewardModel:
    """A model that predicts how far the author of an opinion agrees with a statement, as one real number.

    Parameters
    ----------
    model : PreTrainedModel
        A sequence classifier of ``transformers`` with one output.
    tokenizer : PreTrainedTokenizerBase
        Its tokenizer.
    max_tokens : int
        Maximum length of an input, in tokens.

    Attributes
    ----------
    FORMAT : str
        Name of the format of input and card, which the card records.
    n_cut : int
        Number of inputs whose opinion or statement was shortened, including repeated inputs.
    """

    FORMAT = "opinionsim-reward-1"

    def __init__(self, model: Any, tokenizer: Any, max_tokens: int) -> None:
        self.model, self.tokenizer, self.max_tokens = model, tokenizer, max_tokens
        self._special = {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
        self.n_cut = 0

    def tokens(self, question: str, opinion: str, statement: str) -> list[int]:
        """Token ids of an input: question, opinion, statement, and the special tokens of the tokenizer.

        Text that is spelled like a special token does not become one. If opinion and statement are too long,
        the longer one loses its end, or both do until they have equal lengths.

        Raises
        ------
        MeasurementError
            If the question takes more than half of the tokens.
        """
        texts = zip(_LEADS, (question, opinion, statement), strict=True)
        known, shown = self.tokenizer, [lead + printable(text.strip()) for lead, text in texts]
        encoded = known(shown, add_special_tokens=False, verbose=False)["input_ids"]
        parts = [[token for token in ids if token not in self._special] for ids in encoded]
        first = known.cls_token_id if known.cls_token_id is not None else known.bos_token_id
        last = known.sep_token_id if known.sep_token_id is not None else known.eos_token_id
        before, after = ([] if token is None else [token] for token in (first, last))
        room = self.max_tokens - len(before) - len(after) - len(parts[0])
        if room < self.max_tokens // 2:
            raise MeasurementError(
                f"reward model: its {self.max_tokens} tokens (max_tokens of its training) leave no room for an opinion "
                f"and a statement after the question {question[:80]!r}"
            )
        self.n_cut += len(parts[1]) + len(parts[2]) > room
        opinion_ids = parts[1][: max(room // 2, room - len(parts[2]))]
        return [*before, *parts[0], *opinion_ids, *parts[2][: room - len(opinion_ids)], *after]

    def score(self, question: str, opinion: str, statement: str) -> float:
        """The predicted agreement, computed in a separate pass and therefore independent of other inputs."""
        torch = import_module("torch")
        ids = torch.tensor([self.tokens(question, opinion, statement)], device=self.model.device)
        with torch.inference_mode():
            return float(self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, 0])


@part("classifier", name="reward")
class RewardClassifier(PairClassifier):
    """Predicts how far the author of an opinion agrees with a statement, by a reward model trained on ratings.

    The model reads the question of an item's claim, or the claim if its topic has no question; the second text
    (`about`), which is the opinion; and the text, which is the statement.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2 to 2. Rewards are real numbers without a unit, trained to order statements. They are not
        points of the scale, so probabilities are NaN.
    model : str
        Folder with a model from :func:`opinionsim.consensus.train_reward`.
    weights : str, optional
        Required fingerprint of the weights, as in ``options["weights"]``; other weights are refused. This option
        distinguishes measurements by different weights under one name.
    device : str
        ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``.

    Raises
    ------
    SpecError
        If an option is not valid.
    MeasurementError
        If a package of the extra ``local`` is missing, the folder contains no reward model of this format, or the
        weights have another fingerprint.

    Notes
    -----
    After the reward model of Bakker et al. 2022 (D5). The model scores each pair in a separate pass, without padding.
    On one machine with the same number of threads, a reward therefore does not depend on other pairs, to the last
    digit. Padded batches would be faster on a GPU, but last digits would depend on the longest pair.
    """

    name = "reward"
    needs_claim = True
    loads_weights = True

    def __init__(
        self, scale: OpinionScale | None = None, *, model: str | Path, weights: str | None = None, device: str = "auto"
    ) -> None:
        for name, value in {"model": model, "weights": weights or "any", "device": device}.items():
            if not (isinstance(value, str | Path) and str(value).strip()):
                raise SpecError(f"{name} must be text; got {value!r}")
        super().__init__(scale)
        self._model, fingerprint = _load(model, device, weights)
        self._options = {
            "model": Path(model).expanduser().resolve().name,
            "weights": fingerprint,
            "device": self._model.model.device.type,
        }

    @property
    def n_cut(self) -> int:
        """Number of pairs with a shortened text, over all batches."""
        return self._model.n_cut

    def _score(self, item: Item) -> float:
        question = "" if item.claim is None else item.claim.question or item.claim.text
        return self._model.score(question, str(item.about), item.text)


def _load(folder: str | Path, device: str, expected: str | None = None) -> tuple[RewardModel, str]:
    """The reward model in a folder, and its fingerprint, ``sha256:`` and the digest of the folder's files."""
    place = Path(folder).expanduser()
    try:
        card = json.loads((place / CARD).read_bytes())
        stated = card["format"]
    except (OSError, ValueError, KeyError, TypeError):
        reason = f"it has no {CARD} with its format" if place.is_dir() else "there is no such folder"
        raise _unusable(place, reason) from None
    fingerprint = digest_of_weights(place)
    checks = {
        "its format is another": (stated, RewardModel.FORMAT),
        "its files changed after the training": (fingerprint, card.get("fingerprint")),
        "its weights differ from the option weights": (fingerprint, expected or fingerprint),
    }
    for problem, (found, wanted) in checks.items():
        if found != wanted:
            raise _unusable(place, f"{problem}: found {found!r} instead of {wanted!r}")
    otherwise = ", or use the classifier 'baseline'"
    if is_planning():
        require_weights("classifier 'reward'", str(place), None, "torch", "transformers", otherwise=otherwise)
        raise NotLoaded
    torch, transformers = packages("classifier 'reward'", "local", "torch", "transformers", otherwise=otherwise)
    where = device_named(torch, device)
    try:
        model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            place, dtype=torch.float32, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, local_files_only=True)
    except Exception as error:  # each file format has errors of its own
        raise _unusable(place, f"{type(error).__name__}: {in_short(error)}") from error
    # Parameters that the files lack would be drawn at random.
    if report["missing_keys"] or model.config.num_labels != 1:
        raise _unusable(place, f"it has {model.config.num_labels} outputs; its files lack {report['missing_keys']}")
    return RewardModel(model.to(where).eval(), tokenizer, card["max_tokens"]), fingerprint


def _unusable(place: Path, reason: str) -> MeasurementError:
    return MeasurementError(
        f"classifier 'reward': {str(place)!r} is not usable as a reward model: {reason}; valid: a folder that "
        "opinionsim.consensus.train_reward wrote"
    )
