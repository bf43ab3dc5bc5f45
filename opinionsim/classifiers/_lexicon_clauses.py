"""The stance of one clause: who holds it, on which side it is, how firm, and of what."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from opinionsim.classifiers._lexicon_claims import ClaimView
from opinionsim.classifiers._lexicon_text import WORDS, Clause, Mark

#: Reach of a negation, of an intensifier and of a hedge, in words.
_NEGATES, _FIRMS, _HEDGES = 10, 4, 7
_SCALE, _STANCE = ("label",), ("attitude", "verdict", "label", "side")


class Reading(NamedTuple):
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
    denies: bool = False
    """Whether it is put as a denial."""
    said: bool = False
    """Whether somebody says that something is so, other than taking a stance to it."""
    sentence: int = 0


@dataclass(slots=True)
class Context:
    """What the text has said so far, to which a clause can point back."""

    known: bool
    """Whether the text speaks of the claim at all."""
    masked: bool
    """Whether the text calls the claim a theory."""
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
    cues: list[Reading] = field(default_factory=list)
    """The author's present stances."""
    past: Reading | None = None
    """The last view that the author tells of as an earlier one."""


def read(clause: Clause, view: ClaimView, context: Context) -> Reading | None:
    """Read a clause.

    Parameters
    ----------
    clause : Clause
        The clause.
    view : ClaimView
        The claim.
    context : Context
        What came before.

    Returns
    -------
    Reading or None
        None where the clause takes no position.
    """
    operators = _operators(clause, view)
    holder, judged = _holder(clause, operators)
    mine = max((at for at, word in enumerate(clause.words) if word in WORDS["me"]), default=-1)
    if holder == "other" and operators and not clause.has("say") and operators[0].start < mine < operators[-1].start:
        # "A post in its favour makes me doubt it."
        operators, holder, judged = [mark for mark in operators if mark.start > mine], "self", False
    first = operators[0].start if operators else len(clause.words)
    past, other = holder == "self" and _past(clause, first), holder == "other"
    bearing = [m for m in clause.marks if m.kind == "negation" and first - _NEGATES <= m.start < first]
    taken = {at for mark in (*operators, *(bearing if operators else ())) for at in range(mark.start, mark.end)}
    rest = [word for at, word in enumerate(clause.words) if at not in taken]
    content, overlap = view.content(rest, context.known and not context.masked)
    if holder == "theory" or (operators and all(m.kind == "side" and not _negated(clause, m) for m in operators)):
        return None
    if not operators:
        return _unstated(clause, content, overlap, other, past, context)
    group = _group(clause, operators)
    if not group or (group[0].kind == "label" and not group[0].sign):
        return Reading(0, "", 0.5 if other else 1.6, other, past, "claim", context.antecedent)
    sign, size, denies = _side(clause, group, operators)
    anchor, target, weight = _target(clause, view, group, judged, content, overlap, context)
    weight *= 1.0 if group[0].kind == "label" or speaks(clause) else 0.8
    said = clause.has("say") and group[0].kind == "verdict"
    found = Reading(sign * target, size, weight, other, past, anchor, target, denies, said)
    return _odds(clause, found) if weight else None


def speaks(clause: Clause) -> bool:
    """Whether the author speaks of themselves."""
    return not WORDS["me"].isdisjoint(clause.words) or clause.has("self")


def _operators(clause: Clause, view: ClaimView) -> list[Mark]:
    """The words of stance that are asserted: not what is compared with, supposed, left, or only not excluded."""
    found: list[Mark] = []
    start = _moved_to(clause)
    for mark in clause.marks:
        if mark.kind == "short_of" or (mark.kind == "if" and mark.start > 0) or (mark.kind == "than" and found):
            break
        own = not clause.has("claim") and any(map(view.speaks_of, clause.words[mark.start : mark.end]))
        if mark.kind in _STANCE and mark.start >= start and not own:
            found.append(mark)
    return found


def _moved_to(clause: Clause) -> int:
    """Position of the new view in "from ... to ..." and "... has given way to ...", 0 if there is none."""
    words, stances = clause.words, [mark.start for mark in clause.marks if mark.kind in ("label", "attitude")]
    for at, word in enumerate(words):
        if word == "to" and any(m.kind == "gone" and words[m.end - 1] == "way" and m.end <= at for m in clause.marks):
            return at
        if word == "to" and "from" in words[:at] and any(words.index("from") < start < at for start in stances):
            return at
    return 0


def _holder(clause: Clause, operators: list[Mark]) -> tuple[str, bool]:
    """Who holds the opinion, ``self``, ``other`` or ``theory``, and whether it is one of a post."""
    first = operators[0].start if operators else len(clause.words)
    found = [(at, "self") for at, word in enumerate(clause.words[:first]) if word in WORDS["me"]]
    for mark in clause.marks:
        beside = mark.start > 0 and clause.words[mark.start - 1] in WORDS["beside"]
        if mark.start < first and (mark.kind == "self" or (mark.kind in ("other", "text") and not beside)):
            found.append((mark.start, mark.kind))
    at, person = max(found, default=(-1, ""))
    saying = [mark.start for mark in clause.marks if mark.kind == "say" and mark.start < first]
    saying = [] if "matter" in clause.words or "whatever" in clause.words else saying
    if person in ("", "self"):
        if person or not saying or speaks(clause):
            return "self", False
        if any(mark.kind == "claim" and 0 <= saying[0] - mark.end <= 3 for mark in clause.marks):
            return "theory", False
        return ("other" if clause.has("it", "other", "text") else "self"), False
    if any(at < start for start in saying):
        return "other", False
    if not operators:
        return ("other" if person == "other" and not speaks(clause) else "self"), False
    if operators[0].kind == "verdict" and not any(m.kind == "claim" and at < m.start < first for m in clause.marks):
        return "self", len(operators) == 1
    return "other", False


def _past(clause: Clause, first: int) -> bool:
    """Whether the author tells of an earlier view."""
    before = clause.raw[:first]
    if clause.has("now") or any(mark.kind == "past" and mark.start < first for mark in clause.marks):
        return not clause.has("now")
    if "i" not in before:
        return not WORDS["were"].isdisjoint(before) and speaks(clause)
    since = len(before) - before[::-1].index("i")
    verb = [word for word in clause.raw[since : first + 1] if not word.endswith("ly") and word not in WORDS["loose"]]
    if not WORDS["were"].isdisjoint(verb):
        return True
    return bool(verb) and (verb[0].endswith("ed") or verb[0] in WORDS["told"]) and verb[0] not in WORDS["insight"]


def _unstated(
    clause: Clause, content: int, overlap: float, other: bool, past: bool, context: Context
) -> Reading | None:
    """A clause without words of stance: it restates or denies the claim, or ends like "I don't think it is"."""
    if content:
        size = "mild" if clause.has("slight", "soften") else "firm" if clause.has("strong") else ""
        return Reading(content, size, 0.9 * overlap, other, past, "content", content, said=clause.has("say"))
    denied = clause.has("negation") and clause.has("it") and clause.raw[-1] in WORDS["ellipsis"]
    if denied and context.known and len(clause.words) <= 10 and (speaks(clause) or context.answering):
        target = (context.stranger if context.answering else None) or context.antecedent
        return Reading(-target, "mild" if clause.has("slight") else "", 0.8, anchor="it", target=target)
    return None


def _odds(clause: Clause, reading: Reading) -> Reading:
    """A stance put as a percentage: below 45 against, up to 55 undecided, firm from 90 and to 10."""
    share = next((float(a) for a, b in pairwise(clause.raw) if b == "%" and a.replace(".", "").isdecimal()), -1.0)
    if share < 0 or "more" in clause.raw or reading.anchor != "claim":
        return reading
    sign = reading.sign * (-1 if share < 45 else 0 if share <= 55 else 1)
    return reading._replace(sign=sign, size="mild" if 10 < share < 90 else "firm")


def _group(clause: Clause, operators: list[Mark]) -> list[Mark]:
    """The operators that count: the last point of the scale if there is one, else those that nest in one another.

    Operators side by side ("wrong and silly", "believe or trust") make groups, of which the last counts; two of
    opposite sides make an empty group, for no side.
    """
    words = clause.words
    labels = [m for m in operators if m.kind == "label" and (m.sign or _kept(clause, m, operators))]
    if labels:
        return [] if {1, -1} <= {mark.sign for mark in labels} or "neither" in words else labels[-1:]
    operators = [mark for mark in operators if mark.kind != "label"] or operators
    ends = [0, *(mark.end for mark in operators)]
    denied = {mark.sign for mark, end in zip(operators, ends, strict=False) if _negated(clause, mark, end)}
    if len(denied) > 1 or ("nor" in words and ("neither" in words or len({mark.sign for mark in operators}) > 1)):
        return []
    groups: list[list[Mark]] = [operators[:1]]
    for before, after in pairwise(operators):
        joined = any(mark.kind == "and" and before.end <= mark.start < after.start for mark in clause.marks)
        parallel = before.kind == after.kind == "verdict" and (before.size != "mild" or after.start - before.end > 2)
        if joined or parallel or "i" in words[before.end : after.start]:
            groups.append([])
        groups[-1].append(after)
    sides = {_product(clause, group, operators) for group in groups}
    if len(sides) > 1 and ("or" in words or "nor" in words or groups[-1][0].start - groups[-2][-1].end <= 6):
        return groups[0] if denied and groups[0][0].sign == groups[-1][0].sign else []
    return groups[0] if clause.has("than") else groups[-1]


def _kept(clause: Clause, middle: Mark, operators: list[Mark]) -> bool:
    """Whether a middle position is not left: "no reason to move away from neutral", but not "no longer neutral"."""
    turned = any(mark.sign < 0 and 0 <= middle.start - mark.end <= 2 for mark in operators)
    return bool(_negated(clause, middle) % 2) == turned


def _negated(clause: Clause, mark: Mark, since: int = 0) -> int:
    """How many negations bear on a word of stance; in "nothing shakes my belief" it is the shaking that is denied."""
    shaking = [m.start for m in clause.marks if m.kind in ("soften", "moved", "gone") and m.end <= mark.start]
    low = max([since, mark.start - _NEGATES, *shaking])
    return sum(m.kind == "negation" and low <= m.start and m.end <= mark.start for m in clause.marks)


def _product(clause: Clause, group: list[Mark], operators: list[Mark]) -> int:
    """Sign of operators nested in one another, each with the negations since the operator before it."""
    sign = 1
    for mark in group:
        since = max((m.end for m in operators if m.end <= mark.start), default=0)
        sign *= mark.sign * (-1) ** _negated(clause, mark, mark.start - 3 if mark.kind == "label" else since)
    return sign


def _side(clause: Clause, group: list[Mark], operators: list[Mark]) -> tuple[int, str, bool]:
    """Sign and firmness of operators nested in one another, and whether they are put as a denial."""
    sign, size, head = _product(clause, group, operators), _size(clause, group), group[0]
    since = max((m.end for m in operators if m.end <= head.start), default=0)
    denied = any(_negated(clause, mark, since) for mark in group)
    if (
        head.kind == "attitude"
        and speaks(clause)
        and any(m.kind == "gone" and m.start >= head.end for m in clause.marks)
    ):
        return -sign, "", False
    degrees = [m.start for m in clause.marks if m.kind in ("strong", "degree") and m.end <= head.start]
    partly = any(m.kind == "negation" and 0 <= at - m.end <= 1 for m in clause.marks for at in degrees)
    if denied and partly and (sign < 0 or head.sign < 0):
        return -1, "firm" if head.sign > 0 and "all" in clause.words else "mild", denied
    return sign, size, denied


def _size(clause: Clause, group: list[Mark]) -> str:
    """Firmness: of the hedge or intensifier nearest to the words of stance, else of these words."""

    def gap(kind: str) -> int:
        return min(
            (max(m.start - g.end, g.start - m.end) for m in clause.marks if m.kind == kind for g in group), default=99
        )

    slight, strong = gap("slight"), gap("strong")
    compared = clause.has("than") and any("more" in clause.words[max(0, m.start - 2) : m.end] for m in group)
    if compared or (slight <= _HEDGES and (slight <= strong + 1 or strong > _FIRMS)):
        return "mild"
    if strong <= _FIRMS:
        return "firm"
    sizes = {mark.size for mark in group}
    return "mild" if "mild" in sizes or clause.has("soften") else "firm" if "firm" in sizes else ""


def _target(
    clause: Clause, view: ClaimView, group: list[Mark], judged: bool, content: int, overlap: float, context: Context
) -> tuple[str, int, float]:
    """What the stance is of: its name, its sign, and the weight of the stance; weight 0 for something else."""
    end, kind, own = group[-1].end, group[0].kind, set(clause.words[group[0].start : group[-1].end])
    stranger = context.stranger or 0
    if (clause.has("claim") and not judged) or kind == "label":
        return "claim", 1, 1.8 if clause.has("claim") and kind == "label" else 1.5
    posted = any(mark.kind in ("text", "other") and mark.start >= end for mark in clause.marks)
    if judged or (posted and not content and kind == "attitude" and not clause.has("it")):
        return "post", stranger, 0.5 * abs(stranger)
    if content:
        return "content", content, 0.6 + 0.6 * overlap
    if clause.words[-1] == "so":
        return "it", context.so, 1.1
    unknown = _unknown(clause, 0 if kind == "verdict" and not context.known else end)
    that = clause.words[0] in WORDS["that"]
    pointing = that or clause.words[-1] == "that" or _points(clause)
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


def _covered(clause: Clause) -> set[int]:
    return {at for mark in clause.marks for at in range(mark.start, mark.end)}


def _points(clause: Clause) -> bool:
    """Whether "it" or "this" stands alone, not before the name of a thing."""
    after, covered = [m.end for m in clause.marks if m.kind == "it"], _covered(clause)
    return any(at >= len(clause.words) or at in covered or clause.words[at] in WORDS["common"] for at in after)


def _unknown(clause: Clause, start: int) -> int:
    """How many words from `start` on speak of something that the rules do not know."""
    covered = _covered(clause)
    return sum(word not in WORDS["common"] and at not in covered for at, word in enumerate(clause.words) if at >= start)
