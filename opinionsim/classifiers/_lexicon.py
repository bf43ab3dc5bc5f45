"""The lexicon classifier, which reads a claim and a text by rules, without a model or a download."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from opinionsim.classifiers._base import Item, PlainClassifier, check_items, claims_and_texts
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.classifiers._lexicon_clauses import Cue

#: Position of a hedged stance; on five points the ends start at 0.75.
_HEDGED = 0.45
#: Spread of a stance over positions in [-1, 1].
_SPREAD = 0.22
#: What a stance of each size adds to its side's hedging; firm where the sum is not above 0.
_HEDGING = {"firm": -1.0, "": -0.35, "mild": 1.0}


@part("classifier", name="lexicon")
class LexiconClassifier(PlainClassifier):
    """Codes an author's opinion of a claim by rules.

    The classifier splits a text into clauses. In each clause, it finds who holds the opinion (the author, somebody
    else, the author at an earlier time), its side, its firmness and its target (the claim, what the claim asserts,
    somebody's post). It then combines the author's present stances; the last one has the largest weight. It reads only
    English: a text in another language has no value.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale to code on; positions in [-1, 1] are mapped linearly onto it. Default: -2 to 2.

    Notes
    -----
    This classifier is a substitute for the language model that codes opinions in Chuang et al. 2023, §3 (A2, A9), with
    the same scale and input. It was tested only on texts written for this purpose (``benchmarks/lexicon.py``). Do not
    use it for the texts of a study.
    """

    name = "lexicon"
    needs_claim = True

    def __init__(self, scale: OpinionScale | None = None) -> None:
        super().__init__(scale)
        self._spots = (self.scale.values - self.scale.lowest) / (self.scale.highest - self.scale.lowest) * 2 - 1

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Code one opinion per item.

        Parameters
        ----------
        items : sequence of Item, length n
            Texts, each with its claim.

        Returns
        -------
        OpinionEstimates
            n rows; equal items have equal rows, regardless of the rest of the batch. Two opposite stances give mass at
            both ends (:func:`opinionsim.opinions.ambiguous`).

        Raises
        ------
        SpecError
            If an entry is not an Item, or has no claim.
        """
        check_items(items, self)
        keys = claims_and_texts(items)
        coded = {key: self._code(*key) for key in set(keys)}
        rows = np.array([coded[key][0] for key in keys]).reshape(-1, len(self.scale))
        return OpinionEstimates.from_probabilities(self.scale, rows, np.array([coded[key][1] for key in keys]))

    def _code(self, claim: str, text: str) -> tuple[np.ndarray, float]:
        """Distribution over the points and off-scale mass for one text."""
        # Its tables of words and patterns take a while to make, and most commands code no text.
        from opinionsim.classifiers._lexicon_stances import stances

        cues, parts = stances(claim, text)
        total = sum(cue.weight for cue in cues)
        off = 0.95 * exp(-total / 0.25)
        if any(clause.has("role") for clause in parts):
            off = 0.97
        elif total < 2.5 and any(clause.has("refuse") for clause in parts):
            off = 0.9
        return self._spread(cues, total) if cues else np.full(len(self.scale), np.nan), off

    def _spread(self, cues: list[Cue], total: float) -> np.ndarray:
        """Mixture of one bump for each side, flatter the less was said."""
        mixture = np.zeros(len(self._spots))
        for side in {cue.sign for cue in cues}:
            same = [cue for cue in cues if cue.sign == side]
            hedged = sum(cue.weight * _HEDGING[cue.size] for cue in same) > 0
            bump = np.exp(-0.5 * ((self._spots - side * (_HEDGED if hedged else 1.0)) / _SPREAD) ** 2)
            mixture += sum(cue.weight for cue in same) / total * bump / bump.sum()
        certainty = total / (total + 0.2)
        return np.asarray(certainty * mixture + (1 - certainty) / len(mixture))
