"""The stance of one clause: who takes it, its side, its firmness and its target."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import NamedTuple

from opinionsim.classifiers._lexicon_claims import ClaimView
from opinionsim.classifiers._lexicon_text import WORDS, Clause, Phrase

#: Reach of a negation, of an intensifier and of a hedge, in words.
_NEGATES, _FIRMS, _HEDGES = 10, 4, 7
_STANCE = ("attitude", "verdict", "label", "side")


class Cue(NamedTuple):
    """What a clause says."""

    sign: int
    """+1 for the claim, -1 against it, 0 undecided."""
    size: str = ""
    """``firm``, ``mild``, or empty where nothing tells."""
    weight: float = 1.0
    other: bool = False
    """Whether somebody else holds it."""
    past: bool = False
    """Whether its holder held it earlier."""
    anchor: str = ""
    """What names its target: ``claim``, ``content``, ``post``, ``it``, or empty."""
    target: int = 1
    """Sign of that target."""
    said: bool = False
    """Whether somebody says that something is so, other than taking a stance to it."""
    sentence: int = 0


@dataclass(slots=True)
class SoFar:
    """What the text has said so far, to which a clause can point back."""

    known: bool
    """Whether the text speaks of the claim at all."""
    antecedent: int = 1
    """Sign of what "it" stands for."""
    so: int = 1
    """Sign of what was said last, by whomever, to which "so" refers."""
    own: int = 0
    """Sign of the author's last stance."""
    stranger: int | None = None
    """Sign of the opinion last ascribed to somebody else."""
    statement: bool = False
    """Whether that opinion was a statement, to which "it" can refer."""
    answering: bool = False
    """Whether the clause follows one about somebody else or a post."""
    cues: list[Cue] = field(default_factory=list)
    """The author's present stances."""
    past: Cue | None = None
    """The last view that the author tells of as an earlier one."""


def read(clause: Clause, view: ClaimView, context: SoFar) -> Cue | None:
    """Read a clause.

    Parameters
    ----------
    clause : Clause
        The clause.
    view : ClaimView
        The claim.
    context : SoFar
        What came before.

    Returns
    -------
    Reading or None
        None where the clause takes no position.
    """
    operators = _operators(clause, view)
    unstated = (0, 0.0) if operators else view.content(clause.words, context.known)
    if not (operators or unstated[0] or clause.has("negation")):
        return None  # as most clauses
    other, judged = _holder(clause, operators)
    if other and operators and not clause.has("say"):
        mine = max((at for at, word in enumerate(clause.words) if word in WORDS["me"]), default=-1)
        if operators[0].start < mine < operators[-1].start:
            # "A post in its favour makes me doubt it."
            operators, other, judged = [mark for mark in operators if mark.start > mine], False, False
    first = operators[0].start if operators else len(clause.words)
    past = not other and _past(clause, first)
    if not operators:
        return _unstated(clause, unstated, other, past, context)
    bearing = [m for m in clause.marks if m.kind == "negation" and first - _NEGATES <= m.start < first]
    taken = _covered([*operators, *bearing])
    content = view.content([word for at, word in enumerate(clause.words) if at not in taken], context.known)
    if all(mark.kind == "side" for mark in operators):
        return None
    denials = {mark: _denials(clause, mark, operators) for mark in operators}
    group = _group(clause, denials)
    if not group or (group[0].kind == "label" and not group[0].sign):
        return Cue(0, "", 0.5 if other else 1.6, other, past, "claim", context.antecedent)
    sign, size = _side(clause, group, denials)
    anchor, target, weight = _target(clause, view, group, judged, content, context)
    weight *= 1.0 if group[0].kind == "label" or speaks(clause) else 0.8
    said = clause.has("say") and group[0].kind == "verdict"
    return _odds(clause, Cue(sign * target, size, weight, other, past, anchor, target, said)) if weight else None


def speaks(clause: Clause) -> bool:
    """Whether the author speaks of themselves."""
    return not WORDS["me"].isdisjoint(clause.words) or clause.has("self")


def _covered(marks: list[Phrase]) -> set[int]:
    """Positions of the words of some phrases."""
    return {at for mark in marks for at in range(mark.start, mark.end)}


def _operators(clause: Clause, view: ClaimView) -> list[Phrase]:
    """The words of stance that are asserted: not words of the claim, what is compared with, left or not excluded."""
    found: list[Phrase] = []
    for mark in clause.marks:
        if mark.kind == "short_of" or (mark.kind == "than" and found):
            break
        if mark.kind in _STANCE:
            left = "from" in clause.words[: mark.start] and "to" in clause.words[mark.end :]
            own = not clause.has("claim") and any(map(view.speaks_of, clause.words[mark.start : mark.end]))
            if not left and not own:
                found.append(mark)
    return found


def _holder(clause: Clause, operators: list[Phrase]) -> tuple[bool, bool]:
    """Whether somebody else holds the opinion, and whether it is the author's of a post."""
    first = operators[0].start if operators else len(clause.words)
    found = [(at, "self") for at, word in enumerate(clause.words[:first]) if word in WORDS["me"]]
    for mark in clause.marks:
        beside = mark.start > 0 and clause.words[mark.start - 1] in WORDS["beside"]
        if mark.start < first and (mark.kind == "self" or (mark.kind in ("other", "text") and not beside)):
            found.append((mark.start, mark.kind))
    at, person = max(found, default=(-1, ""))
    saying = any(mark.kind == "say" and at < mark.start < first for mark in clause.marks)
    if person in ("", "self"):
        return not person and saying and not speaks(clause) and clause.has("it", "other", "text"), False
    if saying or not operators:
        return saying or (person == "other" and not speaks(clause)), False
    claimed = any(mark.kind == "claim" and at < mark.start < first for mark in clause.marks)
    judged = operators[0].kind == "verdict" and not claimed
    return not judged, judged


def _past(clause: Clause, first: int) -> bool:
    """Whether the author tells of an earlier view."""
    if clause.has("now") or any(mark.kind == "past" and mark.start < first for mark in clause.marks):
        return not clause.has("now")
    start = max((at for at, word in enumerate(clause.raw[:first]) if word == "i"), default=first)
    verbs = [word for word in clause.raw[start + 1 : first + 1] if word not in WORDS["loose"] and word[-2:] != "ly"]
    return bool(verbs) and (verbs[0].endswith("ed") or verbs[0] in WORDS["told"]) and verbs[0] not in WORDS["insight"]


def _unstated(clause: Clause, content: tuple[int, float], other: bool, past: bool, context: SoFar) -> Cue | None:
    """A clause without words of stance: it restates or denies the claim, or ends like "I don't think it is"."""
    side, overlap = content
    if side:
        size = "mild" if clause.has("slight", "soften") else "firm" if clause.has("strong") else ""
        return Cue(side, size, 0.9 * overlap, other, past, "content", side, clause.has("say"))
    denied = clause.has("negation") and clause.has("it") and clause.raw[-1] in WORDS["ellipsis"]
    if denied and context.known and len(clause.words) <= 10 and (speaks(clause) or context.answering):
        target = (context.stranger if context.answering else None) or context.antecedent
        return Cue(-target, "mild" if clause.has("slight") else "", 0.8, anchor="it", target=target)
    return None


def _odds(clause: Clause, reading: Cue) -> Cue:
    """A stance put as a percentage: below 45 against, up to 55 undecided, firm from 90 and to 10."""
    share = next((float(a) for a, b in pairwise(clause.raw) if b == "%" and a.replace(".", "").isdecimal()), -1.0)
    if share < 0 or reading.anchor != "claim":
        return reading
    sign = reading.sign * (-1 if share < 45 else 0 if share <= 55 else 1)
    return reading._replace(sign=sign, size="mild" if 10 < share < 90 else "firm")


def _denials(clause: Clause, mark: Phrase, operators: list[Phrase]) -> int:
    """How many negations bear on a word of stance; in "nothing shakes my belief" it is the shaking that is denied."""
    nearer = [m.end for m in clause.marks if m in operators or m.kind in ("soften", "moved", "gone")]
    low = max([mark.start - _NEGATES, *(end for end in nearer if end <= mark.start)])
    return sum(m.kind == "negation" and low <= m.start and m.end <= mark.start for m in clause.marks)


def _group(clause: Clause, denials: dict[Phrase, int]) -> list[Phrase]:
    """The operators that count: the last point of the scale if there is one, else those that nest in one another.

    Operators side by side ("wrong and silly", "believe or trust") make groups, of which the last counts; two of
    opposite sides make an empty group, for no side.
    """
    words = clause.words
    labels = [mark for mark, count in denials.items() if mark.kind == "label" and (mark.sign or not count % 2)]
    if labels:
        return [] if {1, -1} <= {mark.sign for mark in labels} else labels[-1:]
    operators = [mark for mark in denials if mark.kind != "label"] or list(denials)
    if "nor" in words:
        return []
    groups = [operators[:1]]
    for before, after in pairwise(operators):
        joined = any(mark.kind == "and" and before.end <= mark.start < after.start for mark in clause.marks)
        parallel = before.kind == after.kind == "verdict" and (before.size != "mild" or after.start - before.end > 2)
        if joined or parallel or "i" in words[before.end : after.start]:
            groups.append([])
        groups[-1].append(after)
    sides = {_sign(group, denials) for group in groups}
    if len(sides) > 1 and ("or" in words or groups[-1][0].start - groups[-2][-1].end <= 6):
        return groups[0] if any(denials.values()) and groups[0][0].sign == groups[-1][0].sign else []
    return groups[-1]


def _sign(group: list[Phrase], denials: dict[Phrase, int]) -> int:
    """Sign of operators nested in one another, with their negations."""
    return prod(mark.sign * (-1) ** denials[mark] for mark in group)


def _side(clause: Clause, group: list[Phrase], denials: dict[Phrase, int]) -> tuple[int, str]:
    """Sign and firmness of operators nested in one another; "not fully convinced" is mildly against."""
    sign, head = _sign(group, denials), group[0]
    degrees = [m.start for m in clause.marks if m.kind in ("strong", "degree") and m.end <= head.start]
    partly = any(m.kind == "negation" and 0 <= at - m.end <= 1 for m in clause.marks for at in degrees)
    if partly and any(denials[mark] for mark in group) and (sign < 0 or head.sign < 0):
        return -1, "mild"
    return sign, _size(clause, group)


def _size(clause: Clause, group: list[Phrase]) -> str:
    """Firmness: of the hedge or intensifier nearest to the words of stance, else of these words."""

    def gap(kind: str) -> int:
        gaps = [max(m.start - g.end, g.start - m.end) for m in clause.marks if m.kind == kind for g in group]
        return min(gaps, default=99)

    slight, strong = gap("slight"), gap("strong")
    if slight <= _HEDGES and (slight <= strong + 1 or strong > _FIRMS):
        return "mild"
    if strong <= _FIRMS:
        return "firm"
    return max((mark.size for mark in group), key=("", "firm", "mild").index)


def _target(
    clause: Clause, view: ClaimView, group: list[Phrase], judged: bool, content: tuple[int, float], context: SoFar
) -> tuple[str, int, float]:
    """What the stance is of: its name, its sign, and the weight of the stance; weight 0 for something else."""
    end, kind, own = group[-1].end, group[0].kind, set(clause.words[group[0].start : group[-1].end])
    stranger = context.stranger or 0
    if kind == "label" or (clause.has("claim") and not judged):
        return "claim", 1, 1.8 if clause.has("claim") and kind == "label" else 1.5
    posted = any(mark.kind in ("text", "other") and mark.start >= end for mark in clause.marks)
    if judged or (posted and not content[0] and kind == "attitude" and not clause.has("it")):
        return "post", stranger, 0.5 * abs(stranger)
    if content[0]:
        return "content", content[0], 0.6 + 0.6 * content[1]
    if clause.words[-1] == "so":
        return "it", context.so, 1.1
    start, covered = 0 if kind == "verdict" and not context.known else end, _covered(clause.marks)
    rest = [word for at, word in enumerate(clause.words) if at >= start and at not in covered]
    unknown = sum(word not in WORDS["common"] for word in rest)
    that = clause.words[0] in WORDS["that"]
    pointing = that or clause.has("it")
    sure = len(group) == 1 and group[0].sign > 0 and not own.isdisjoint(WORDS["sure"])
    if sure and context.own and (pointing or not unknown):
        return "it", context.own, 1.1  # certainty of "it" is certainty of what one said last
    if pointing and context.known:
        apart = context.answering and kind == "verdict" and not context.statement and clause.has("it")
        if apart and own.isdisjoint(WORDS["truth"]):
            return "post", stranger, 0.4 * abs(stranger)
        stated = that or (context.answering and context.statement and kind == "attitude")
        return "it", (stranger if stated else 0) or context.antecedent, 1.1
    if not view.subject.isdisjoint(clause.words):
        return "content", view.about, 0.7
    if context.answering and stranger and kind == "attitude" and speaks(clause) and not unknown:
        return "post", stranger, 1.0
    return "", 1, 1.0 if not unknown else 0.25 if unknown <= 2 and context.known and kind == "attitude" else 0.0
