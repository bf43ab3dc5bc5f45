"""The lexicon classifier: rules that read a claim and a text, with no model and nothing to download."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import exp
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classifiers._base import Item, check_items, claims_and_texts
from opinionsim.classifiers._lexicon_claims import ClaimView, view_of
from opinionsim.classifiers._lexicon_clauses import Context, Reading, hedged, read_clause
from opinionsim.classifiers._lexicon_rules import Kind
from opinionsim.classifiers._lexicon_words import Clause, Mark, clauses
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Size of a hedged stance, and largest size of a stance that a later reservation softens.
_HEDGED = 0.45
#: Weight of a reservation without a stance.
_RESERVED = 0.7
#: Weight of a guess at a text without any cue.
_GUESS = 0.2
#: Spread of a stance over positions in [-1, 1].
_SPREAD = 0.22
#: Connectives of clauses that state no view of the author's.
_ASIDE = (Kind.CONCEDE, Kind.CONDITION, Kind.EVEN_IF)
#: Words that, at the head of a clause, point at another person's statement.
_POINTING = frozenset(["that", "this", "which", "it"])
#: Kinds that show that a clause about another person returns to its author.
_OWN = frozenset([Kind.ATTITUDE, Kind.HEDGE])
#: Words between a person and a stance that make the stance the author's: "the post makes me doubt".
_OWN_WORDS = frozenset(["i", "me", "my", "myself", "should"])
#: Stems of saying: to decline to say a thing is not to deny it.
_DISMISSING = frozenset(
    ["dismiss", "rul", "reject", "mock", "discount", "bet", "writ", "laugh", "deny", "throw", "condemn"]
)
_SPEAKING = frozenset(["say", "call", "argu", "claim", "stat"])


class Cue(NamedTuple):
    """One statement that counts: a position in [-1, 1] and its weight."""

    position: float
    weight: float
    sentence: int
    past: bool = False
    """Whether it states an earlier view."""
    denies: bool = False
    """Whether it is put as a denial."""


@dataclass(slots=True)
class _Discourse:
    """The state of the discourse so far."""

    cues: list[Cue] = field(default_factory=list)
    antecedent: int = 1
    """Sign of what "it" stands for."""
    own: int = 0
    """Sign of the assertion the author made last without a word of belief."""
    stranger: int | None = None
    """Sign of the opinion last ascribed to somebody else."""
    statement: int | None = None
    """The same, if nothing else was said since."""
    known: bool = False
    """Whether the text speaks of the claim's subject at all."""
    masked: bool = False
    """Whether the text calls the claim by its masked name or as a theory."""
    other_sentence: int = -1
    """The sentence in which somebody else's opinion goes on."""
    contrast_sentence: int = -1
    """The last sentence with a contrast."""
    outweighed: int = 0
    """Number of cues before the contrast of that sentence."""
    people: dict[str, int] = field(default_factory=dict)
    """Sign of the opinion last ascribed to each person named."""
    asked: tuple[int, int] = (-2, 0)
    """The last sentence that asked something, and the sign of what it asked for."""
    refusal: bool = False
    role_break: bool = False


@part("classifier", name="lexicon")
class LexiconClassifier:
    """Codes an author's opinion of a claim by rules.

    Text is cut into clauses; each clause yields a cue (sign, firmness, weight) from belief words, verdicts and
    restatements of the claim; cues are put together with the last ones and the explicit ones weighing most. Other
    people's views, earlier views, conditions and concessions hardly count. The value is agreement with the claim as
    framed. Reads English only.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale to code on; positions in [-1, 1] are mapped linearly onto it. Default: -2 to 2.

    Notes
    -----
    Stands in for the language model that codes opinions in Chuang et al. 2023, §3 (A2, A9), with the same scale and
    input. Measured on synthetic texts only (``benchmarks/lexicon.py``); a study should validate it on its own texts.
    """

    name = "lexicon"
    needs_claim = True
    reads_context = False
    reads_about = False

    def __init__(self, scale: OpinionScale | None = None) -> None:
        self.scale = scale or OpinionScale()
        spots = (self.scale.values - self.scale.lowest) / (self.scale.highest - self.scale.lowest) * 2 - 1
        self._spots = spots

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
            n rows; equal items have equal rows whatever else is in the batch.

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
        discourse = _read(clauses(text), view_of(claim))
        cues = list(_weighed(discourse.cues))
        total = sum(cue.weight for cue in discourse.cues if not cue.past) or sum(weight for _, weight in cues)
        off = _off_scale(discourse, total)
        if not cues:
            return np.full(len(self.scale), np.nan), off
        return self._spread(_settle(cues), total), off

    def _spread(self, shares: list[tuple[float, float]], total: float) -> np.ndarray:
        """Mixture of one bump for each side, flatter the less was said."""
        mixture = np.zeros(len(self._spots))
        for position, share in shares:
            bump = np.exp(-0.5 * ((self._spots - position) / _SPREAD) ** 2) + 1e-9
            mixture += share * bump / bump.sum()
        certainty = total / (total + 0.3)
        distribution = certainty * mixture + (1 - certainty) / len(mixture)
        return np.asarray(distribution / distribution.sum())


def _read(parts: list[Clause], view: ClaimView) -> _Discourse:
    """Go through the clauses once, first to last."""
    state = _Discourse(known=_speaks_of(parts, view), masked=any(clause.has(Kind.CLAIM) for clause in parts))
    for clause, following in zip_longest(parts, parts[1:]):
        state.role_break = state.role_break or clause.has(Kind.ROLE_BREAK)
        if clause.has(Kind.REFUSAL):
            state.refusal = True
        elif clause.has(Kind.CHANGED):
            _note_change(clause, state)
        elif following is not None and _supposes(clause, following):
            _note_supposition(clause, view, state)
        else:
            _note_clause(clause, view, state)
    if not state.cues and not state.refusal:
        state.cues.extend(_last_resort(parts, view, state))
    return state


def _last_resort(parts: list[Clause], view: ClaimView, state: _Discourse) -> Iterator[Cue]:
    """A guess for a text without cues, from what it quotes, praises, blames or denies."""
    if not parts or all(clause.question for clause in parts):
        return
    soft = any(hedged(clause) and clause.has(Kind.SELF) for clause in parts)
    size = _HEDGED if soft else 0.9
    if state.stranger is not None:
        yield Cue(-state.stranger * size, _GUESS, parts[-1].sentence)
    elif (
        state.known
        and view.favour
        and (taste := sum(m.kinds.get(Kind.TASTE, 0.0) for clause in parts for m in clause.marks))
    ):
        yield Cue((1 if taste > 0 else -1) * view.favour * size, _GUESS, parts[-1].sentence)
    elif state.known:
        denies = any(clause.has(Kind.NEGATION) for clause in parts)
        yield Cue(-size if denies else size, _GUESS, parts[-1].sentence)


def _supposes(clause: Clause, following: Clause) -> bool:
    """Whether a clause supposes what is not so: "if palms told the future, readers would be rich"."""
    return (
        clause.stems[0] == "if"
        and following.sentence == clause.sentence
        and "would" in following.stems
        and not clause.has(Kind.SELF, Kind.UNDECIDED)
    )


def _note_supposition(clause: Clause, view: ClaimView, state: _Discourse) -> None:
    """Note that a supposition against the facts denies its content."""
    reading = read_clause(clause, view, Context(known=state.known))
    if reading is not None and reading.anchored and reading.sign:
        state.cues.append(Cue(-reading.sign * reading.size, 0.8 * reading.overlap, clause.sentence))


def _speaks_of(parts: list[Clause], view: ClaimView) -> bool:
    """Whether a text names the claim's subject, or several other words of the claim."""
    words = {stem for clause in parts for stem in clause.stems}
    return bool(words & view.subject) or sum(view.words[word].rank < 2 for word in words & view.words.keys()) >= 2


def _note_change(clause: Clause, state: _Discourse) -> None:
    """Note a change of mind: the opposite of the last earlier view."""
    earlier = [cue for cue in state.cues if cue.past]
    if earlier and not clause.has(Kind.NEGATION):
        state.cues.append(Cue(-_sign(earlier[-1].position) * 0.9, 1.0, clause.sentence))


def _note_clause(clause: Clause, view: ClaimView, state: _Discourse) -> None:
    """Add what a clause says to the state: another's view, a concession, or a cue."""
    if clause.opener is Kind.CONTRAST:
        state.outweighed, state.contrast_sentence = len(state.cues), clause.sentence
        state.other_sentence = -1
    if clause.has(Kind.GRANTED):
        state.cues = [
            cue._replace(weight=cue.weight * 0.15) if cue.sentence == clause.sentence else cue for cue in state.cues
        ]
        return
    if clause.has(Kind.RESERVE) and _reserve(clause, state):
        return
    said = _ascribed(clause, state)
    if said is not None:
        _note_stranger(clause, said, view, state)
        return
    context = _context(clause, state)
    reading = read_clause(clause, view, context)
    if reading is None:
        near = bool(state.cues) and clause.sentence - state.cues[-1].sentence <= 1
        if near and hedged(clause) and _is_afterthought(clause):
            state.cues[-1] = _softer(state.cues[-1])
        return
    reading = _consistent(clause, reading, context, state)
    cue = _cue(clause, reading)
    _remember(clause, reading, state)
    if state.cues and cue.position * state.cues[-1].position < 0 and _litotes(clause):
        state.cues[-1] = _softer(state.cues[-1])
        return
    if state.cues and _cancels(clause, cue, state.cues[-1]):
        state.cues[-1] = cue = cue._replace(position=0.0)
    if state.contrast_sentence == clause.sentence:
        before = [_lowered(earlier, clause.sentence) for earlier in state.cues[: state.outweighed]]
        state.cues[: state.outweighed], state.outweighed = before, 0
    state.cues.append(cue)


def _context(clause: Clause, state: _Discourse) -> Context:
    """What a clause can point back to."""
    return Context(
        antecedent=state.antecedent,
        # "They may laugh, but I am persuaded": what is set against others' opinion is about the claim.
        statement=None if state.contrast_sentence == clause.sentence else state.statement,
        stranger=state.stranger,
        known=state.known,
        people=state.people,
        asked=state.asked[1] if state.asked[0] == clause.sentence - 1 else None,
        last=_sign(state.cues[-1].position) if state.cues else (state.stranger or 1),
        spoken=bool(state.cues) or state.stranger is not None or state.masked,
    )


def _consistent(clause: Clause, reading: Reading, context: Context, state: _Discourse) -> Reading:
    """Nobody denies what they just asserted: a bare verdict backs it, a bare "I disagree" answers the claim."""
    if reading.anchored or not reading.sign:
        return reading
    asserted = bool(state.own) and clause.opener is not Kind.CONTRAST
    if reading.rejects and (asserted or (state.cues and context.statement is None)):
        return reading._replace(sign=-1, target=1)
    return reading._replace(sign=state.own, target=state.antecedent) if asserted else reading


def _remember(clause: Clause, reading: Reading, state: _Discourse) -> None:
    """Note what a following "it", "yes" or bare verdict stands for."""
    if clause.question and reading.anchored:
        state.asked = (clause.sentence, reading.sign)
    if not reading.explicit and reading.overlap < 0.5:
        return
    if reading.anchored:
        state.antecedent, state.statement = reading.target, None
    bare = not reading.explicit and not clause.question and clause.opener not in _ASIDE
    if bare and reading.overlap >= 0.7:
        state.own = reading.sign
    elif reading.anchored:
        state.own = 0


def _sign(position: float) -> int:
    return (position > 0) - (position < 0)


def _reserve(clause: Clause, state: _Discourse) -> bool:
    """Being unsure softens the stance just taken; where there is none, it is the stance."""
    if clause.has(Kind.UNDECIDED):
        return False
    last = state.cues[-1] if state.cues else None
    if last is not None and last.position and not last.past and clause.sentence - last.sentence <= 1:
        state.cues[-1] = _softer(last)
    elif clause.has(Kind.SELF):
        state.cues.append(Cue(0.0, _RESERVED, clause.sentence))
    return True


def _cancels(clause: Clause, cue: Cue, last: Cue) -> bool:
    """Whether two denials leave nothing: "I do not believe it, and I do not disbelieve it"."""
    near = cue.sentence == last.sentence or ("either" in clause.stems and cue.sentence - last.sentence == 1)
    return near and cue.denies and last.denies and cue.position * last.position < 0


def _is_afterthought(clause: Clause) -> bool:
    """Whether a clause without stance can soften the one before: "though I have my doubts", "only just"."""
    return len(clause.stems) <= 5 or clause.opener is not None or clause.has(Kind.SELF)


def _ascribed(clause: Clause, state: _Discourse) -> int | None:
    """Where in the clause somebody else's opinion starts, None if the clause is the author's own."""
    if clause.quoted:
        return 0
    person = None
    if not clause.has(Kind.STRANGER) and state.other_sentence != clause.sentence:
        return None
    for mark in clause.marks:
        if Kind.STRANGER in mark.kinds and (person is None or mark.start == person.end):
            # "The stranger's tweet" is one person with a message, not somebody who tweets.
            person = mark
            if Kind.SAYING in mark.kinds and mark.end - mark.start > 1:
                state.other_sentence = clause.sentence
                return mark.end
            continue
        if person is not None and _holds(clause, person, mark):
            state.other_sentence = clause.sentence
            return mark.start
    judges = clause.has(Kind.VERDICT) and (clause.stems[0] in _POINTING or clause.has(Kind.STRANGER))
    if state.other_sentence == clause.sentence and not clause.has(Kind.SELF) and not judges and clause.stems[0] != "so":
        return 0
    return None


def _holds(clause: Clause, person: Mark, mark: Mark) -> bool:
    """Whether a phrase after a person says what that person thinks."""
    between = clause.stems[person.end : mark.start]
    if len(between) > 6 or not (Kind.SAYING in mark.kinds or (Kind.ATTITUDE in mark.kinds and len(between) <= 3)):
        return False
    if not _OWN_WORDS.isdisjoint(between):
        return False
    own = [
        m.start for m in clause.marks if m.start >= mark.end and Kind.SELF in m.kinds and clause.stems[m.start] == "i"
    ]
    if own and any(m.start > own[0] and _OWN.intersection(m.kinds) for m in clause.marks):
        return False
    relative = (
        "who" in (*clause.stems[person.start : person.end], *between)
        or "whoever" in clause.stems[person.start : person.end]
    )
    if relative and any(Kind.VERDICT in m.kinds and m.start > mark.end for m in clause.marks):
        return False
    if Kind.ATTITUDE in mark.kinds and not _OWN_WORDS.isdisjoint(clause.stems[mark.start : mark.end]):
        return False
    before = [m for m in clause.marks if m.end <= person.start]
    return not any(Kind.ATTITUDE in m.kinds or (Kind.NEGATION in m.kinds and m.end - m.start > 1) for m in before)


def _note_stranger(clause: Clause, start: int, view: ClaimView, state: _Discourse) -> None:
    """Remember what somebody else thinks; a verdict slipped in before it is the author's own."""
    inner = Clause(
        clause.stems[start:],
        [m._replace(start=m.start - start, end=m.end - start) for m in clause.marks if m.start >= start],
        clause.sentence,
    )
    reading = read_clause(inner, view, Context(known=state.known))
    if reading is None or reading.sign == 0:
        return
    state.stranger = state.statement = reading.sign
    for mark in clause.marks:
        if Kind.STRANGER in mark.kinds and mark.start <= start:
            state.people[clause.stems[mark.end - 1]] = reading.sign
    state.antecedent = reading.target
    state.own = 0
    slip = next(
        (m.kinds[Kind.VERDICT] for m in clause.marks if 0 <= start - m.end <= 2 and Kind.VERDICT in m.kinds), None
    )
    if slip is not None:
        state.cues.append(Cue(0.9 * reading.sign * (1 if slip > 0 else -1), 0.6, clause.sentence))


def _lowered(cue: Cue, sentence: int) -> Cue:
    """What stood before a "but" counts less, the more so within the sentence."""
    if cue.sentence == sentence:
        return cue._replace(weight=cue.weight * 0.2)
    return cue._replace(weight=cue.weight * 0.5) if cue.sentence == sentence - 1 else cue


def _softer(cue: Cue) -> Cue:
    return cue._replace(position=max(-_HEDGED, min(_HEDGED, cue.position)))


def _cue(clause: Clause, reading: Reading) -> Cue:
    """Weigh a reading by how it is put."""
    weight = (1.6 if reading.explicit else 1.0) * reading.overlap
    sign = reading.sign
    if sign == 0:
        weight *= 1.7
    if clause.question:
        if _rhetorical(clause):
            sign = -sign
        elif not reading.explicit and _incredulous(clause):
            sign, weight = -sign, weight * 0.5
        else:
            weight *= 0.05
    if clause.opener in _ASIDE:
        weight *= 0.12
    if clause.past:
        weight *= 0.08
    if _litotes(clause):
        weight *= 0.3
    if clause.has(Kind.CLOSING):
        weight *= 2.0
    if clause.has(Kind.SELF) and reading.explicit:
        weight *= 1.3
    denies = reading.explicit and clause.has(Kind.NEGATION)
    return Cue(sign * reading.size, weight, clause.sentence, clause.past, denies)


def _litotes(clause: Clause) -> bool:
    """Whether the clause only declines to say or dismiss something: "I would not call it absurd"."""
    if not clause.has(Kind.NEGATION):
        return False
    saying = [m.start for m in clause.marks if Kind.OPINE in m.kinds and clause.stems[m.start] in _SPEAKING]
    saying += [m.start for m in clause.marks if clause.stems[m.start] in _DISMISSING and "would" in clause.stems]
    return any(Kind.NEGATION in m.kinds and any(0 <= start - m.end <= 4 for start in saying) for m in clause.marks)


def _rhetorical(clause: Clause) -> bool:
    """Whether a question denies what it asks: "who believes", "isn't it"."""
    opens = any(Kind.RHETORICAL in m.kinds and m.start <= 1 for m in clause.marks)
    return opens or (
        len(clause.stems) > 2
        and "not" in clause.stems[1:3]
        and clause.stems[0] in ("do", "is", "are", "can", "have", "has", "was")
    )


def _incredulous(clause: Clause) -> bool:
    """Whether a question only throws the claim back: "four wheels?"."""
    asks = clause.has(Kind.NEGATION) or clause.stems[0] in ("who", "whos", "what", "whose") or hedged(clause)
    return len(clause.stems) <= 6 and not asks


def _weighed(cues: list[Cue]) -> Iterator[tuple[float, float]]:
    """Positions and weights, later sentences weighing more; views left behind count only against themselves."""
    present = [cue for cue in cues if not cue.past]
    if not present and cues:
        yield -_HEDGED * _sign(cues[-1].position), 0.5
        return
    last = max((cue.sentence for cue in present), default=0)
    for cue in present:
        yield cue.position, cue.weight * (1.0 + cue.sentence / last if last else 1.0)


def _settle(cues: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Mean position and share of each side: against, undecided, for."""
    total = sum(weight for _, weight in cues)
    sides = []
    for side in (-1, 0, 1):
        members = [(position, weight) for position, weight in cues if _sign(position) == side]
        weight = sum(w for _, w in members)
        if weight > 0:
            sides.append((sum(p * w for p, w in members) / weight, weight / total))
    return sides


def _off_scale(state: _Discourse, total: float) -> float:
    """Probability that the text is no answer."""
    if state.role_break:
        return 0.97
    if state.refusal and total < 1.5:
        return 0.9
    return 0.95 * exp(-total / 0.2)
