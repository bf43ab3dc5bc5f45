"""The lexicon classifier: rules that read a claim and a text, with no model and nothing to download."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from opinionsim.classifiers._base import Item, PlainClassifier, check_items, claims_and_texts
from opinionsim.classifiers._lexicon_claims import ClaimView, view_of
from opinionsim.classifiers._lexicon_clauses import Context, Reading, read, speaks
from opinionsim.classifiers._lexicon_text import WORDS, Clause, clauses
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Position of a hedged stance; on five points the ends start at 0.75.
_HEDGED = 0.45
#: Spread of a stance over positions in [-1, 1].
_SPREAD = 0.22
#: What a stance of each size adds to its side's hedging; firm where the sum is not above 0.
_HEDGING = {"firm": -1.0, "": -0.35, "mild": 1.0}
#: Times that these stances count: those of the first sentence, the last one, one conceded, one that another replaces.
_EARLY, _LAST, _CONCEDED, _LEFT = 0.6, 1.8, 0.15, 0.3
#: Least weight of a stance that can count as the last one.
_EXPLICIT = 0.8
#: Smallest share of common English words in a text of some length that is read at all.
_ENGLISH, _LENGTH = 0.2, 8


@part("classifier", name="lexicon")
class LexiconClassifier(PlainClassifier):
    """Codes an author's opinion of a claim by rules.

    A text is cut into clauses. Each is read for its holder (the author, somebody else, the author at an earlier time),
    its side, its firmness and its target (the claim, what it asserts, somebody's post); the author's present stances
    are put together, the last one weighing most. Reads English only: a text in another language has no value.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale to code on; positions in [-1, 1] are mapped linearly onto it. Default: -2 to 2.

    Notes
    -----
    Stands in for the language model that codes opinions in Chuang et al. 2023, §3 (A2, A9), with the same scale and
    input. Measured on texts written for it only (``benchmarks/lexicon.py``); not meant for the texts of a study.
    """

    name = "lexicon"
    needs_claim = True

    def __init__(self, scale: OpinionScale | None = None) -> None:
        super().__init__(scale)
        self._spots = (self.scale.values - self.scale.lowest) / (self.scale.highest - self.scale.lowest) * 2 - 1

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Code one opinion an item.

        Parameters
        ----------
        items : sequence of Item, length n
            Texts, each with the claim it is about.

        Returns
        -------
        OpinionEstimates
            n rows; equal items have equal rows whatever else is in the batch. Two stances against each other give
            mass at both ends (:func:`opinionsim.opinions.ambiguous`).

        Raises
        ------
        SpecError
            If an entry is no Item, or has no claim.
        """
        check_items(items, self)
        keys = claims_and_texts(items)
        coded = {key: self._code(*key) for key in set(keys)}
        rows = np.array([coded[key][0] for key in keys]).reshape(-1, len(self.scale))
        return OpinionEstimates.from_probabilities(self.scale, rows, np.array([coded[key][1] for key in keys]))

    def _code(self, claim: str, text: str) -> tuple[np.ndarray, float]:
        """Distribution over the points and off-scale mass for one text."""
        parts = clauses(text, claim)
        cues = _weighed(_stances(parts, view_of(claim)))
        total = sum(cue.weight for cue in cues)
        off = 0.95 * exp(-total / 0.25)
        if any(clause.has("role") for clause in parts):
            off = 0.97
        elif total < 2.5 and any(clause.has("refuse") for clause in parts):
            off = 0.9
        return self._spread(cues, total) if cues else np.full(len(self.scale), np.nan), off

    def _spread(self, cues: list[Reading], total: float) -> np.ndarray:
        """Mixture of one bump for each side, flatter the less was said."""
        mixture = np.zeros(len(self._spots))
        for side in {cue.sign for cue in cues}:
            same = [cue for cue in cues if cue.sign == side]
            hedged = sum(cue.weight * _HEDGING[cue.size] for cue in same) > 0
            bump = np.exp(-0.5 * ((self._spots - side * (_HEDGED if hedged else 1.0)) / _SPREAD) ** 2)
            mixture += sum(cue.weight for cue in same) / total * bump / bump.sum()
        certainty = total / (total + 0.2)
        return np.asarray(certainty * mixture + (1 - certainty) / len(mixture))


def _stances(parts: list[Clause], view: ClaimView) -> list[Reading]:
    """The author's stances, from the first clause to the last."""
    words = [word for clause in parts for word in clause.raw]
    if len(words) >= _LENGTH and sum(map(WORDS["common"].__contains__, words)) < _ENGLISH * len(words):
        return []
    stems = {word for clause in parts for word in clause.words}
    context = Context(not stems.isdisjoint(view.subject | view.core) or any(clause.has("claim") for clause in parts))
    for clause in parts:
        if not clause.question and not clause.starts("if"):
            _note(clause, view, context)
    return context.cues


def _note(clause: Clause, view: ClaimView, context: Context) -> None:
    """Add what a clause says to the context."""
    reading = None if clause.has("reply") else read(clause, view, context)
    if reading is None and clause.has("other", "text") and not speaks(clause):
        context.answering, context.statement = True, False
    reading = reading or _relative(clause, context)
    if reading is None:
        return
    if reading.other:
        if reading.sign:
            context.stranger, context.statement, context.answering = reading.sign, reading.said, True
            context.antecedent, context.so = reading.target, reading.sign
    elif reading.past:
        context.past = reading
        context.antecedent, context.so = reading.target or 1, reading.sign or 1
    else:
        _count(clause, reading, context)


def _relative(clause: Clause, context: Context) -> Reading | None:
    """A stance given by reference: to somebody's post, or to an earlier view that was kept or left."""
    negated, stranger, changes = clause.has("negation"), context.stranger, clause.has("same", "moved")
    if clause.has("reply"):
        sign = next(mark.sign for mark in clause.marks if mark.kind == "reply") * (-1 if negated else 1)
        return Reading(sign * stranger, anchor="post") if stranger else None
    brief = negated and len(clause.words) <= (6 if speaks(clause) else 3)
    if brief and not changes and context.answering and stranger:
        return Reading(-stranger, weight=0.8, anchor="post")
    if not (changes or brief) or context.past is None or context.cues:
        return None
    if clause.has("same") or (negated and changes):
        return context.past._replace(past=False, weight=0.8)
    return context.past._replace(sign=-context.past.sign, size="", past=False, weight=0.8)


def _count(clause: Clause, reading: Reading, context: Context) -> None:
    """Add a stance of the author's, and lower what it takes the place of."""
    weight = reading.weight * (_CONCEDED if clause.starts("although") else 1.0)
    left = _LEFT if weight > 0.5 and (clause.has("now") or clause.starts("but")) else 1.0
    cues = [cue if cue.sign == reading.sign else cue._replace(weight=left * cue.weight) for cue in context.cues]
    context.cues = [*cues, reading._replace(weight=weight, sentence=clause.sentence)]
    context.answering = context.answering and reading.anchor == "post"
    context.own = context.so = reading.sign
    if reading.anchor in ("claim", "content", ""):
        context.antecedent = reading.target or 1


def _weighed(cues: list[Reading]) -> list[Reading]:
    """The cues with their final weights: later ones count more than earlier ones, the last explicit one most."""
    end = max((cue.sentence for cue in cues), default=0) or 1
    weighed = [cue._replace(weight=cue.weight * (_EARLY + (1 - _EARLY) * cue.sentence / end)) for cue in cues]
    last = max(range(len(cues)), key=lambda at: (weighed[at].weight >= _EXPLICIT, at), default=-1)
    return [cue._replace(weight=cue.weight * _LAST) if at == last else cue for at, cue in enumerate(weighed)]
