"""The stance of one clause: who holds it, on which side it is, how firm, and of what."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from opinionsim.classifiers._lexicon_claims import ClaimView
from opinionsim.classifiers._lexicon_text import DATA, Clause, Mark, stem

_COMMON = frozenset(stem(word) for word in DATA["plain"]["common"].split())
_ME = frozenset(["i", "me", "my", "mine", "we", "our"])
_WERE = frozenset(["was", "were", "had"])
#: Certainty of "it" is certainty of what was said last.
_TRUTH = frozenset(map(stem, "true false right wrong correct incorrect nonsense".split()))
_SURE = frozenset(map(stem, "sure certain doubt confident convinced".split()))
#: Last words of "I don't think it is", "it isn't".
_ELLIPSIS = frozenset("not is does do so".split())
_LOOSE = frozenset("even kinda kind sort sorta of also just always".split())
#: Past forms that tell of a view held from then on.
_INSIGHT = frozenset("noticed realized realised concluded decided learned learnt need indeed".split())
#: Words that put a person or a post beside the point: "after the post, I ...".
_BESIDE = frozenset(map(stem, "after before by from with despite than without reading like unlike".split()))
#: Past forms without the ending -ed.
_TOLD = frozenset("thought held felt leant swore stood saw told said began bought".split())
#: Reach of a negation and of a word of firmness, in words.
_NEGATES, _FIRMS, _HEDGES = 10, 4, 7


class Reading(NamedTuple):
    """What a clause says."""

    sign: int
    """+1 for the claim, -1 against it, 0 undecided."""
    size: str
    """``firm``, ``mild``, or empty where nothing tells."""
    weight: float
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


@dataclass(slots=True)
class Context:
    """What a clause can point back to."""

    known: bool
    """Whether the text speaks of the claim at all."""
    masked: bool = False
    """Whether the text calls the claim a theory."""
    antecedent: int = 1
    """Sign of what "it" stands for."""
    stranger: int | None = None
    """Sign of the opinion last ascribed to somebody else."""
    statement: bool = False
    """Whether that opinion was a statement, to which "it" can refer."""
    answering: bool = False
    """Whether the clause follows one about somebody else or a post."""
    own: int = 0
    """Sign of the author's last stance."""
    so: int = 1
    """Sign of what was said last, by whomever, to which "so" refers."""


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
    first = operators[0].start if operators else len(clause.words)
    holder, judged = _holder(clause, operators, first)
    mine = max((at for at, word in enumerate(clause.words) if word in _ME and at > first), default=-1)
    if holder == "other" and not clause.has("say") and any(mark.start > mine > first for mark in operators):
        operators = [mark for mark in operators if mark.start > mine]  # "a post in its favour makes me doubt it"
        first, holder, judged = operators[0].start, "self", False
    if holder == "theory":
        return None
    past = holder == "self" and _past(clause, first)
    content, overlap = view.content(_outside(clause, operators), context.known and not context.masked)
    if not operators:
        return _unstated(clause, content, overlap, holder, past, context)
    if all(mark.kind == "side" and not _negated(clause, mark, 0) for mark in operators):
        return None
    group = _group(clause, operators)
    sign, size, denies = _side(clause, group)
    if sign == 0:
        return Reading(0, "", 1.6 if holder == "self" else 0.5, holder == "other", past, "claim", context.antecedent)
    label = group[0].kind == "label"
    anchor, target, weight = _target(clause, view, group, judged, label, content, overlap, context)
    if not weight:
        return None
    if not (label or speaks(clause)):
        weight *= 0.8
    said = clause.has("say") and group[0].kind == "verdict"
    return _odds(clause, Reading(sign * target, size, weight, holder == "other", past, anchor, target, denies, said))


def _operators(clause: Clause, view: ClaimView) -> list[Mark]:
    """The words of stance that are asserted: not what is compared with, supposed, or only not excluded."""
    found: list[Mark] = []
    start = _moved_to(clause)
    for mark in clause.marks:
        if mark.start < start:
            continue
        if mark.kind == "short_of" or (mark.kind == "if" and mark.start > 0) or (mark.kind == "than" and found):
            break
        if mark.kind not in ("attitude", "verdict", "label", "side"):
            continue
        own = any(map(view.speaks_of, clause.words[mark.start : mark.end]))
        if not own or clause.has("claim"):
            found.append(mark)
    return found


def _moved_to(clause: Clause) -> int:
    """Position of the new view in "from ... to ...", 0 if there is none."""
    words = clause.words
    gone = next((mark.start for mark in clause.marks if mark.kind == "gone" and words[mark.end - 1] == "way"), -1)
    if gone >= 0 and "to" in words[gone:]:
        return words.index("to", gone)
    if "from" not in words or "to" not in words[words.index("from") :]:
        return 0
    origin = words.index("from")
    moved = words.index("to", origin)
    return moved if any(m.kind in ("label", "attitude") and origin < m.start < moved for m in clause.marks) else 0


def _holder(clause: Clause, operators: list[Mark], first: int) -> tuple[str, bool]:
    """Who holds the opinion, ``self``, ``other`` or ``theory``, and whether it is one of a post."""
    person, at = "", -1
    for position, word in enumerate(clause.words[:first]):
        if word in _ME:
            person, at = "self", position
    for mark in clause.marks:
        if mark.start < at or mark.start >= first or mark.kind not in ("self", "other", "text"):
            continue
        if mark.kind == "self" or mark.start == 0 or clause.words[mark.start - 1] not in _BESIDE:
            person, at = mark.kind, mark.start
    saying = [mark.start for mark in clause.marks if mark.kind == "say" and mark.start < first]
    if person in ("", "self") or at < 0:
        if person or not saying or speaks(clause):
            return "self", False
        named = any(mark.kind == "claim" and 0 <= saying[0] - mark.end <= 3 for mark in clause.marks)
        if named:
            return "theory", False
        it = any(mark.kind == "it" and mark.start < saying[0] for mark in clause.marks)
        return ("other" if it or clause.has("other", "text") else "self"), False
    if any(at < start for start in saying) or not operators:
        said = any(at < start for start in saying) or (person == "other" and not speaks(clause))
        return ("other" if said else "self"), False
    between = any(mark.kind == "claim" and at < mark.start < first for mark in clause.marks)
    if operators[0].kind == "verdict" and not between:
        return "self", len(operators) == 1
    return "other", False


def speaks(clause: Clause) -> bool:
    """Whether the author speaks of themselves."""
    return not _ME.isdisjoint(clause.words) or clause.has("self")


def _past(clause: Clause, first: int) -> bool:
    """Whether the author tells of an earlier view."""
    if clause.has("now"):
        return False
    if any(mark.kind == "past" and mark.start < first for mark in clause.marks):
        return True
    before = clause.raw[:first]
    if "i" in before:
        since = len(before) - before[::-1].index("i")
        verb = [word for word in clause.raw[since : first + 1] if not word.endswith("ly") and word not in _LOOSE]
        if any(word in _WERE for word in verb):
            return True
        return bool(verb) and (verb[0].endswith("ed") or verb[0] in _TOLD) and verb[0] not in _INSIGHT
    return any(word in _WERE for word in before) and speaks(clause)


def _outside(clause: Clause, operators: list[Mark]) -> list[str]:
    """The words of a clause but those of its stance and what negates them."""
    first = operators[0].start if operators else 0
    bearing = [m for m in clause.marks if m.kind == "negation" and first - _NEGATES <= m.start < first]
    taken = {position for mark in (*operators, *bearing) for position in range(mark.start, mark.end)}
    return [word for position, word in enumerate(clause.words) if position not in taken]


def _unstated(
    clause: Clause, content: int, overlap: float, holder: str, past: bool, context: Context
) -> Reading | None:
    """A clause without words of stance: it restates or denies the claim, or answers in a word."""
    if content:
        size = "mild" if clause.has("slight", "soften") else "firm" if clause.has("strong") else ""
        said = clause.has("say")
        return Reading(content, size, 0.9 * overlap, holder == "other", past, "content", content, False, said)
    ends = clause.raw[-1] in _ELLIPSIS and clause.has("negation") and clause.has("it") and context.known
    if ends and len(clause.words) <= 10 and (speaks(clause) or context.answering):
        target = (context.stranger if context.answering else None) or context.antecedent
        return Reading(-target, "mild" if clause.has("slight") else "", 0.8, anchor="it", target=target)
    return None


def _odds(clause: Clause, reading: Reading) -> Reading:
    """A stance put as a percentage: below 45 against, up to 55 undecided, firm from 90 and to 10."""
    share = next((float(a) for a, b in pairwise(clause.raw) if b == "%" and a.replace(".", "").isdigit()), -1.0)
    if share < 0 or "more" in clause.raw or reading.anchor != "claim":
        return reading
    sign = reading.sign * (-1 if share < 45 else 0 if share <= 55 else 1)
    return reading._replace(sign=sign, size="mild" if 10 < share < 90 else "firm")


def _group(clause: Clause, operators: list[Mark]) -> list[Mark]:
    """The operators that count: the last point of the scale if there is one, else those that nest in one another.

    Operators side by side ("wrong and silly", "believe or trust") make groups, of which the last counts; two of
    opposite sides make an empty group, for no side.
    """
    if labels := [mark for mark in operators if mark.kind == "label" and (mark.sign or _kept(clause, mark, operators))]:
        ends = {mark.sign for mark in labels}
        return [] if {1, -1} <= ends or ("neither" in clause.words) else labels[-1:]
    operators = [mark for mark in operators if mark.kind != "label"] or operators
    if "nor" in clause.words and ("neither" in clause.words or len({mark.sign for mark in operators}) > 1):
        return []
    denied = {
        mark.sign for before, mark in pairwise([Mark(0, 0, ""), *operators]) if _negated(clause, mark, before.end)
    }
    if len(denied) > 1:
        return []
    groups: list[list[Mark]] = [operators[:1]]
    for before, after in pairwise(operators):
        joined = any(mark.kind == "and" and before.end <= mark.start < after.start for mark in clause.marks)
        parallel = before.kind == after.kind == "verdict" and (before.size != "mild" or after.start - before.end > 2)
        if joined or parallel or "i" in clause.words[before.end : after.start]:
            groups.append([after])
        else:
            groups[-1].append(after)
    sides = [_product(clause, group, 0 if n == 0 else groups[n - 1][-1].end) for n, group in enumerate(groups)]
    if len(groups) > 1 and 1 in sides and -1 in sides:
        close = groups[-1][0].start - groups[-2][-1].end <= 6
        if "or" in clause.words or "nor" in clause.words or close:
            negated = [
                bool(_negated(clause, group[0], 0 if n == 0 else groups[n - 1][-1].end))
                for n, group in enumerate(groups)
            ]
            if (
                ("or" in clause.words or "nor" in clause.words)
                and any(negated)
                and groups[0][0].sign == groups[-1][0].sign
            ):
                return groups[0]
            return []
    return groups[-1] if not clause.has("than") else groups[0]


def _kept(clause: Clause, middle: Mark, operators: list[Mark]) -> bool:
    """Whether a middle position is not left: "no reason to move away from neutral", but not "no longer neutral"."""
    turned = any(mark.sign < 0 and 0 <= middle.start - mark.end <= 2 for mark in operators)
    return bool(_negated(clause, middle, 0) % 2) == turned


def _negated(clause: Clause, mark: Mark, since: int) -> int:
    """How many negations bear on a word of stance."""
    low = max(since, mark.start - _NEGATES)
    # "Nothing shakes my belief" denies the shaking.
    low = max([low, *(m.start for m in clause.marks if m.kind in ("soften", "moved", "gone") and m.end <= mark.start)])
    return sum(m.kind == "negation" and low <= m.start and m.end <= mark.start for m in clause.marks)


def _product(clause: Clause, group: list[Mark], since: int) -> int:
    """Sign of operators nested in one another."""
    sign = 1
    for mark in group:
        sign *= (mark.sign or 1) * (-1) ** _negated(clause, mark, since)
        since = mark.end
    return sign


def _side(clause: Clause, group: list[Mark]) -> tuple[int, str, bool]:
    """Sign and firmness of operators nested in one another, and whether they are put as a denial."""
    if not group or (group[0].kind == "label" and group[0].sign == 0):
        return 0, "", False
    previous = [m.end for m in clause.marks if m.kind in ("attitude", "verdict") and m.end <= group[0].start]
    since = max(previous, default=0) if group[0].kind != "label" else group[0].start - 3
    sign = _product(clause, group, max(since, 0))
    denied = any(_negated(clause, mark, max(since, 0)) for mark in group)
    lost = any(mark.kind == "gone" and mark.start >= group[-1].end for mark in clause.marks)
    if lost and group[0].kind == "attitude" and speaks(clause):
        return -sign, "", False
    size = _size(clause, group)
    degree = any(
        m.kind == "negation"
        and any(
            s.kind in ("strong", "degree") and 0 <= s.start - m.end <= 1 and s.end <= group[0].start
            for s in clause.marks
        )
        for m in clause.marks
    )
    if degree and denied and sign < 0 and group[0].sign > 0:
        size = "mild" if not ("at" in clause.words and "all" in clause.words) else "firm"
    elif degree and denied and group[0].sign < 0:
        sign, size = -1, "mild"
    return sign, size, denied


def _size(clause: Clause, group: list[Mark]) -> str:
    """Firmness: of the hedge or intensifier nearest to the words of stance, else of these words."""

    def near(kind: str, reach: int) -> int:
        gaps = [max(m.start - mark.end, mark.start - m.end) for m in clause.marks if m.kind == kind for mark in group]
        return min((gap for gap in gaps if gap <= reach), default=99)

    slight, strong = near("slight", _HEDGES), near("strong", _FIRMS)
    if clause.has("than") and any("more" in clause.words[max(0, mark.start - 2) : mark.end] for mark in group):
        return "mild"
    if slight < 99 and slight <= strong + 1:
        return "mild"
    if strong < 99:
        return "firm"
    if clause.has("soften"):
        return "mild"
    sizes = {mark.size for mark in group}
    return "mild" if "mild" in sizes else "firm" if "firm" in sizes else ""


def _target(
    clause: Clause,
    view: ClaimView,
    group: list[Mark],
    judged: bool,
    label: bool,
    content: int,
    overlap: float,
    context: Context,
) -> tuple[str, int, float]:
    """What the stance is of: its name, its sign, and the weight of the stance; weight 0 for something else."""
    end = group[-1].end
    if clause.has("claim") and not judged:
        return "claim", 1, 1.8 if label else 1.5
    about_post = any(mark.kind in ("text", "other") and mark.start >= end for mark in clause.marks)
    if judged or (about_post and not content and group[0].kind == "attitude" and not clause.has("it")):
        return ("post", context.stranger, 0.5) if context.stranger else ("post", 0, 0.0)
    if label:
        return "claim", 1, 1.6
    if content:
        return "content", content, 0.6 + 0.6 * overlap
    if clause.words[-1] == "so":
        return "it", context.so, 1.1
    pointing = _points(clause) or clause.words[0] in ("that", "which") or clause.words[-1] == "that"
    if (
        (pointing or not (content or _unknown(clause, end)))
        and context.own
        and len(group) == 1
        and group[0].sign > 0
        and _SURE.intersection(clause.words[group[0].start : end])
    ):
        return "it", context.own, 1.1
    if pointing and context.known:
        judged = context.answering and group[0].kind == "verdict" and not context.statement and clause.has("it")
        if judged and _TRUTH.isdisjoint(clause.words[group[0].start : end]):
            return "post", context.stranger or 0, 0.4 if context.stranger else 0.0
        statement = context.answering and context.statement and group[0].kind == "attitude"
        if (statement or clause.words[0] in ("that", "this", "which")) and context.stranger:
            return "it", context.stranger, 1.0
        return "it", context.antecedent, 1.1
    if not view.subject.isdisjoint(clause.words):
        return "content", view.about, 0.7
    if (
        context.answering
        and context.stranger
        and group[0].kind == "attitude"
        and speaks(clause)
        and not _unknown(clause, end)
    ):
        return "post", context.stranger, 1.0
    unknown = _unknown(clause, 0 if group[0].kind == "verdict" and not context.known else end)
    if unknown == 0:
        return "", 1, 1.0
    return "", 1, 0.25 if unknown <= 2 and context.known and group[0].kind == "attitude" else 0.0


def _points(clause: Clause) -> bool:
    """Whether "it" or "this" stands alone, not before the name of a thing."""
    marked = {position for mark in clause.marks for position in range(mark.start, mark.end)}
    after = [m.end for m in clause.marks if m.kind == "it"]
    return any(at >= len(clause.words) or at in marked or clause.words[at] in _COMMON for at in after)


def _unknown(clause: Clause, start: int) -> int:
    """How many words from `start` on speak of something that the rules do not know."""
    known = {position for mark in clause.marks for position in range(mark.start, mark.end)}
    return sum(
        word not in _COMMON and position not in known for position, word in enumerate(clause.words[start:], start)
    )
