"""The lexicon classifier: rules that read a claim and a text, with no model and nothing to download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

import numpy as np

from opinionsim.classifiers._base import Item, check_items, claims_and_texts
from opinionsim.classifiers._lexicon_claims import ClaimView, view_of
from opinionsim.classifiers._lexicon_clauses import Context, Reading, read, speaks
from opinionsim.classifiers._lexicon_text import WORDS, Clause, clauses
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Position of a hedged stance; on five points the ends start at 0.75.
_HEDGED = 0.45
#: Spread of a stance over positions in [-1, 1].
_SPREAD = 0.22
#: Times that the last stance counts, and what a conclusion and a word such as "now" multiply a weight by.
_LAST, _CLOSE, _NOW = 1.8, 1.4, 1.3
#: Smallest share of common English words in a text of some length that is read at all.
_ENGLISH, _LENGTH = 0.2, 8


@dataclass(slots=True)
class _Discourse:
    """What the text has said so far."""

    context: Context
    cues: list[Reading] = field(default_factory=list)
    past: Reading | None = None
    """The last view that the author tells of as an earlier one."""
    softened: float = 0.0
    """Weight of remarks that take firmness from the author's view."""
    asked: tuple[int, int] = (-2, 0)
    """The last sentence that asks something, and the sign of what it asks for."""
    refusal: bool = False
    role_break: bool = False


@part("classifier", name="lexicon")
class LexiconClassifier:
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
    reads_context = False
    reads_about = False

    def __init__(self, scale: OpinionScale | None = None) -> None:
        self.scale = scale or OpinionScale()
        self._spots = (self.scale.values - self.scale.lowest) / (self.scale.highest - self.scale.lowest) * 2 - 1

    @property
    def options(self) -> dict[str, Any]:
        """Nothing beside the scale changes a result: an empty dict."""
        return {}

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
        coded: dict[tuple[str, str], tuple[np.ndarray, float]] = {}
        rows = np.empty((len(items), len(self.scale)))
        off = np.empty(len(items))
        for index, key in enumerate(claims_and_texts(items)):
            if key not in coded:
                coded[key] = self._code(*key)
            rows[index], off[index] = coded[key]
        return OpinionEstimates.from_probabilities(self.scale, rows, off)

    def _code(self, claim: str, text: str) -> tuple[np.ndarray, float]:
        """Distribution over the points and off-scale mass for one text."""
        discourse = _read(clauses(text, claim), view_of(claim))
        cues = _weighed(discourse)
        total = sum(cue.weight for cue in cues)
        off = 0.97 if discourse.role_break else 0.9 if discourse.refusal and total < 2.5 else 0.95 * exp(-total / 0.25)
        if not cues:
            return np.full(len(self.scale), np.nan), off
        return self._spread(cues, total, discourse.softened), off

    def _spread(self, cues: list[Reading], total: float, softened: float) -> np.ndarray:
        """Mixture of one bump for each side, flatter the less was said."""
        mixture = np.zeros(len(self._spots))
        for side in (-1, 0, 1):
            share = sum(cue.weight for cue in cues if cue.sign == side) / total
            if share:
                position = side * _firmness([cue for cue in cues if cue.sign == side], softened)
                bump = np.exp(-0.5 * ((self._spots - position) / _SPREAD) ** 2) + 1e-9
                mixture += share * bump / bump.sum()
        certainty = total / (total + 0.2)
        distribution = certainty * mixture + (1 - certainty) / len(mixture)
        return np.asarray(distribution / distribution.sum())


def _firmness(cues: list[Reading], softened: float) -> float:
    """Position of one side: firm unless more is hedged; where nothing tells, firm."""
    firm = sum(cue.weight * (1.0 if cue.size else 0.35) for cue in cues if cue.size != "mild")
    mild = softened + sum(cue.weight for cue in cues if cue.size == "mild")
    return 1.0 if firm >= mild else _HEDGED


def _read(parts: list[Clause], view: ClaimView) -> _Discourse:
    """Go through the clauses once, first to last."""
    words = [word for clause in parts for word in clause.raw]
    foreign = len(words) >= _LENGTH and sum(word in WORDS["common"] for word in words) < _ENGLISH * len(words)
    stems = {word for clause in parts for word in clause.words}
    masked = "xyz" in stems or "theory" in stems
    state = _Discourse(
        Context(masked or any(c.has("claim") for c in parts) or not stems.isdisjoint(view.subject | view.core), masked)
    )
    for clause in [] if foreign else parts:
        state.role_break = state.role_break or clause.has("role")
        state.refusal = state.refusal or clause.has("refuse")
        _note(clause, view, state)
    return state


def _note(clause: Clause, view: ClaimView, state: _Discourse) -> None:
    """Add what a clause says to the state."""
    context = state.context
    if clause.starts("if"):
        return
    if _answers(clause, state):
        return
    changes = clause.has("moved", "same", "reply")
    reading = None if clause.has("reply") else read(clause, view, context)
    if clause.question:
        if reading is not None:
            state.asked = (clause.sentence, reading.sign)
        return
    if reading is not None and reading.other:
        if reading.sign:
            context.stranger, context.statement, context.answering = reading.sign, reading.said, True
            context.antecedent, context.so = reading.target, reading.sign
        return
    if reading is None and clause.has("other", "text") and not speaks(clause):
        context.answering, context.statement = True, False
    changes = changes or (
        clause.has("negation") and reading is None and len(clause.words) <= (6 if speaks(clause) else 3)
    )
    if changes and (reading is None or reading.past or reading.anchor in ("", "post", "it")):
        reading = _relative(clause, state)
    if clause.has("less") and clause.has("negation"):
        state.softened += 0.7
        return
    soft = clause.has("short_of") or (clause.has("soften") and not clause.has("negation"))
    if soft and (reading is None or not reading.past):
        state.softened += 0.7
    if reading is None and state.cues and (soft or clause.has("slight")):
        last = state.cues[-1]
        after = clause.sentence - last.sentence
        if (after == 0 and not last.size) or (after <= 1 and len(clause.words) <= 5 and clause.has("slight")):
            state.cues[-1] = last._replace(size="mild")
    if reading is None:
        return
    if reading.past:
        apart = state.past is not None and state.past.denies and reading.denies and state.past.sign * reading.sign < 0
        state.past = reading._replace(sign=0, size="") if apart else reading
        context.antecedent, context.so = reading.target or 1, reading.sign or 1
        return
    _count(clause, reading, state)


def _answers(clause: Clause, state: _Discourse) -> bool:
    """Note a "yes" or "no" to the author's own question."""
    if state.asked[0] != clause.sentence - 1 or clause.raw[0] not in ("yes", "no", "not") or len(clause.raw) > 4:
        return False
    sign = state.asked[1] * (1 if clause.raw[0] == "yes" else -1)
    _count(clause, Reading(sign, "mild" if clause.has("slight") else "", 1.0, anchor="claim"), state)
    return True


def _relative(clause: Clause, state: _Discourse) -> Reading | None:
    """A stance given by reference: to an earlier view that was kept or left, or to somebody's post."""
    negated = clause.has("negation")
    if clause.has("reply"):
        sign = next(mark.sign for mark in clause.marks if mark.kind == "reply")
        stranger = state.context.stranger
        return Reading(sign * (-1 if negated else 1) * stranger, "", 1.0, anchor="post") if stranger else None
    kept = clause.has("same") or (negated and clause.has("moved"))
    if state.context.answering and state.context.stranger and not clause.has("same", "moved"):
        return Reading(-state.context.stranger, "", 0.8, anchor="post")
    if state.past is not None and not state.cues:
        if kept:
            return state.past._replace(past=False, weight=0.8)
        return state.past._replace(sign=-state.past.sign, size="", past=False, weight=0.8) if state.past.sign else None
    return None


def _count(clause: Clause, reading: Reading, state: _Discourse) -> None:
    """Add a stance of the author's, and lower what it takes the place of."""
    weight = reading.weight
    weight *= 0.15 if clause.starts("although") else 1.0
    weight *= _CLOSE if clause.has("close") else 1.0
    weight *= _NOW if clause.has("now") else 1.0
    context = state.context
    if reading.denies and state.cues and _cancels(reading, state.cues[-1], clause.sentence):
        last = state.cues[-1]
        state.cues[-1] = last._replace(sign=0, size="", weight=1.5 * last.weight)
        return
    turns = clause.has("now") or clause.starts("but")
    for at, cue in enumerate(state.cues):
        if turns and cue.sign != reading.sign and weight > 0.5:
            near = clause.starts("but") and clause.sentence - cue.sentence <= 1
            state.cues[at] = cue._replace(weight=cue.weight * (0.3 if near else 0.5))
    state.cues.append(reading._replace(weight=weight, sentence=clause.sentence))
    context.answering = context.answering and reading.anchor == "post"
    context.own = context.so = reading.sign
    if reading.anchor in ("claim", "content", ""):
        context.antecedent = reading.target or 1


def _cancels(reading: Reading, last: Reading, sentence: int) -> bool:
    """Whether two denials leave the middle: "I am not for it", "I am not against it"."""
    return last.denies and last.sign * reading.sign < 0 and sentence - last.sentence <= 1


def _weighed(state: _Discourse) -> list[Reading]:
    """The cues with their final weights: the last explicit one counts more, later ones more than earlier ones."""
    cues = state.cues
    if not cues:
        if state.past is not None and state.past.sign and state.softened:
            return [Reading(state.past.sign, "mild", 0.5)]
        return [Reading(0, "", 0.4)] if state.softened and state.context.known else []
    end = max(cue.sentence for cue in cues) or 1
    weighed = [cue._replace(weight=cue.weight * (0.7 + 0.3 * cue.sentence / end)) for cue in cues]
    explicit = [at for at, cue in enumerate(weighed) if cue.weight >= 0.8]
    last = explicit[-1] if explicit else len(weighed) - 1
    weighed[last] = weighed[last]._replace(weight=_LAST * weighed[last].weight)
    return weighed
