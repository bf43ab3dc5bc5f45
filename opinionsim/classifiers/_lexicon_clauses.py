"""The stance of one clause on a claim: cues, their signs, and their combination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from opinionsim.classifiers._lexicon_claims import ClaimView, Word
from opinionsim.classifiers._lexicon_rules import (
    AFFECTION,
    AUXILIARIES,
    BARE_NO,
    BARE_YES,
    CLAIM_WORDS,
    COMPARING,
    COPULAS,
    LOSS,
    ODDS,
    REVERSERS,
    STANCE_NOUNS,
    WANING,
    Kind,
)
from opinionsim.classifiers._lexicon_words import Clause, Mark, number

#: Size of a stance: firm, plain and hedged; on a five-point scale the ends start at 0.75.
_FIRM, _PLAIN, _HEDGED = 1.0, 0.9, 0.45
_BE = frozenset(COPULAS.split())
_DETERMINERS = frozenset(["this", "that", "such", "these", "those", "any", "his", "her", "their", "the", "a", "an"])
#: Kinds whose phrases may hide a word of the claim.
_TRANSPARENT = frozenset([Kind.OPINE, Kind.SAYING, Kind.STRANGER, Kind.LINK, Kind.PRONOUN, Kind.SELF, Kind.HEDGE])
#: Words that set two stances side by side instead of one inside the other.
_ALTERNATIVES = frozenset(["than", "or", "nor"])
#: Objects that deny their verb: "predicts nothing".
_EMPTY = frozenset(["nothing", "nobody", "non", "nowher", "0"])
_AUXILIARIES = frozenset(AUXILIARIES.split())
_NO_WORDS = frozenset(BARE_NO.split())
_YES_WORDS = frozenset(BARE_YES.split())
_STANCE_NOUNS, _LOSS, _WANING = (frozenset(table.split()) for table in (STANCE_NOUNS, LOSS, WANING))
#: Words that put the stance after them inside the one before: "right about", "shake my faith".
_INNER = frozenset(["about", "my"])
_AFFECTION = frozenset(AFFECTION.split())
_ODDS = frozenset(ODDS.split())
_COMPARING = frozenset(COMPARING.split())
#: Words before the loser of a comparison.
_OVER = frozenset(["beat", "than", "over", "outperform", "trump"])
#: Kinds whose single words may be content of a claim instead.
_YIELDING = (
    Kind.VERDICT,
    Kind.TASTE,
    Kind.ATTITUDE,
    Kind.OPINE,
    Kind.SAYING,
    Kind.STRANGER,
    Kind.HEDGE,
    Kind.STRONG,
    Kind.PAST,
    Kind.NOW,
)


#: Kinds that take a stance: on any claim, and on one that praises or blames its subject.
_STANCES = (Kind.ATTITUDE, Kind.VERDICT)
_EVALUATIVE = (*_STANCES, Kind.TASTE)


class Reading(NamedTuple):
    """The stance that a clause states."""

    sign: int
    """+1 for the claim, -1 against it, 0 undecided."""
    size: float
    """How firm, in (0, 1]."""
    explicit: bool
    """Whether a belief or a verdict is stated, not only the claim's content restated."""
    overlap: float
    """How surely the clause is about the claim, in [0, 1]."""
    target: int
    """Sign of the topic of the clause, to which a following "it" refers."""
    anchored: bool = True
    """Whether the clause names its topic itself."""
    rejects: bool = False
    """Whether the author says to disbelieve or oppose something."""


@dataclass(slots=True)
class _Unit:
    kind: Kind
    sign: int
    size: float
    start: int
    end: int
    rank: int = 0
    hits: int = 1
    softened: bool = False
    negated: bool = False


class Context(NamedTuple):
    """What a clause can point back to."""

    antecedent: int = 1
    """Sign of what "it" stands for."""
    statement: int | None = None
    """Sign of somebody else's statement, if that was the last thing said."""
    stranger: int | None = None
    """Sign of the opinion last ascribed to somebody else."""
    known: bool = False
    """Whether the text speaks of the claim's subject."""
    people: Mapping[str, int] = MappingProxyType({})
    """Sign of the opinion last ascribed to each person named."""
    asked: int | None = None
    """Sign of what the question before this sentence asks for."""
    last: int = 1
    """Sign of the last statement of any person."""
    spoken: bool = False
    """Whether anything was said of the claim before."""


def read_clause(clause: Clause, view: ClaimView, context: Context) -> Reading | None:
    """Read a clause as its author's own.

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
    if context.asked is not None and len(clause.stems) <= 3:
        context = context._replace(antecedent=context.asked)
    if _takes_no_side(clause):
        return Reading(0, _HEDGED, True, 1.0, context.antecedent)
    if "otherwis" in clause.stems and clause.has(Kind.NEGATION):
        return Reading(context.last, _FIRM, True, 0.6, context.last)
    if clause.has(Kind.ECHO):
        return _echo(clause, context)
    units = _units(clause, view)
    percentage = _percentage(clause, view)
    if not units:
        return (
            _absence(clause, view)
            or _odds(clause, percentage)
            or _bare_answer(clause, context.antecedent)
            or _ellipsis(clause, context)
        )
    content = _content_unit(units)
    sign, used = _combine([unit for unit in units if unit.kind is not Kind.CLAIM], clause)
    answers = any(CLAIM_WORDS.intersection(clause.stems[unit.start : unit.end]) for unit in used)
    named = clause.has(Kind.CLAIM) or (answers and content is None)
    target: int | None
    if used and not named and _judges_subject(clause, view, content, used):
        target, overlap = view.favour, 0.8
    elif used and not named and content is None and _judges_denied(view, context, used):
        target, overlap = -1, 0.6
    else:
        target, overlap = _target(clause, content, used, context, named)
    if target is None or (used and used[0].kind is Kind.TASTE and not (context.known or named)):
        return None
    if not used:
        overlap = _overlap(clause, view, content, context.known)
    elif content is not None and not named:
        overlap = max(0.5, _overlap(clause, view, content, context.known))
    size = min((u.size for u in used), default=_PLAIN)
    softened = any(u.softened for u in used) or (not used and content is not None and content.softened)
    anchored = content is not None or named or any(_about_stranger(clause, unit) is not None for unit in used)
    rejects = sign < 0 and bool(used) and used[0].kind is Kind.ATTITUDE
    if percentage is not None and used:
        sign, softened = (-sign if percentage < 50 else sign), softened or 10 < percentage < 90
    return Reading(sign * target, _size(clause, size, softened), bool(used), overlap, target, anchored, rejects)


def _echo(clause: Clause, context: Context) -> Reading:
    """An opinion given by pointing at another: "so do I", "I beg to differ"."""
    sign = -1 if sum(Kind.NEGATION in mark.kinds and Kind.ECHO not in mark.kinds for mark in clause.marks) % 2 else 1
    sign *= next(1 if mark.kinds[Kind.ECHO] > 0 else -1 for mark in clause.marks if Kind.ECHO in mark.kinds)
    said = context.last if context.statement is None else context.statement
    return Reading(sign * said, _size(clause, _PLAIN, False), True, 0.8, said)


def _percentage(clause: Clause, view: ClaimView) -> float | None:
    """How probable or how sure, in per cent: "70% convinced", "a 40% chance"; None where nothing says so."""
    if "%" not in clause.stems or view.numbers or not (_ODDS.intersection(clause.stems) or clause.has(Kind.CLAIM)):
        return None
    value = number(clause.stems[clause.stems.index("%") - 1])
    return value if value is not None and value < 100 else None


def _absence(clause: Clause, view: ClaimView) -> Reading | None:
    """What is said not to be there is not real: "there is no warming"."""
    real = view.words.get("real")
    if real is None or not any(a == "no" and b in view.subject for a, b in pairwise(clause.stems)):
        return None
    return Reading(-real.sign, _size(clause, _PLAIN, False), False, 0.8, real.sign)


def _odds(clause: Clause, percentage: float | None) -> Reading | None:
    """A probability given to the claim: "I give the theory sixty per cent"."""
    if percentage is None:
        return None
    sign = 0 if 45 <= percentage <= 55 else (1 if percentage > 50 else -1)
    return Reading(sign, _HEDGED if 10 < percentage < 90 else _PLAIN, True, 1.0, 1)


def _judges_subject(clause: Clause, view: ClaimView, content: _Unit | None, used: list[_Unit]) -> bool:
    """Whether a stance is on the thing the claim is about rather than on what the claim says of it."""
    if view.rivals or not view.favour or (content is not None and content.rank > 0):
        return False
    first = used[0]
    liked = first.kind is Kind.TASTE or bool(_AFFECTION.intersection(clause.stems[first.start : first.end]))
    return liked or bool(view.subject.intersection(clause.stems))


def _judges_denied(view: ClaimView, context: Context, used: list[_Unit]) -> bool:
    """Whether a bare "wishful thinking" is said of what the claim denies rather than of the denial."""
    return view.denial and not context.spoken and used[0].kind is Kind.VERDICT


def _content_unit(units: list[_Unit]) -> _Unit | None:
    """The most telling mention of the claim's content: what answers it, then what is denied, then the last."""
    mentions = [unit for unit in units if unit.kind is Kind.CLAIM]
    if not mentions:
        return None
    best = max(mentions, key=lambda unit: (max(unit.rank, unit.negated), unit.start))
    best.hits = sum(unit.hits for unit in mentions)
    return best


def _bare_answer(clause: Clause, antecedent: int) -> Reading | None:
    """A fragment such as "Never." rejects what was spoken of, "Absolutely." accepts it."""
    words = [stem for m in clause.marks if Kind.CLAIM in m.kinds for stem in clause.stems[m.start : m.end]]
    rest = [stem for stem in clause.stems if stem not in words]
    if clause.has(Kind.NEGATION) and _NO_WORDS.issuperset(rest):
        return Reading(-antecedent, _PLAIN, True, 0.4, antecedent)
    if clause.has(Kind.STRONG, Kind.DEGREE) and rest and _YES_WORDS.issuperset(rest):
        return Reading(1 if words else antecedent, _FIRM, True, 0.4, antecedent)
    return None


def _ellipsis(clause: Clause, context: Context) -> Reading | None:
    """An opinion cut short at its verb: "I think it does", "sadly it is not", "I still do", "I will not"."""
    last = clause.stems[-1] if clause.stems[-1] != "not" else " ".join(clause.stems[-2:-1])
    about = clause.has(Kind.PRONOUN) or clause.has(Kind.STRANGER)
    if last not in _AUXILIARIES or not (clause.has(Kind.SELF) or about):
        return None
    if not (clause.has(Kind.OPINE, Kind.HEDGE) and about) and "still" not in clause.stems and len(clause.stems) > 5:
        return None
    target = context.antecedent if about or context.statement is None else context.statement
    sign = (-1) ** sum(Kind.NEGATION in mark.kinds for mark in clause.marks)
    return Reading(sign * target, _size(clause, _PLAIN, False), True, 0.6, target)


def _takes_no_side(clause: Clause) -> bool:
    """Whether the author says to be undecided; a leaning in the same clause outweighs it."""
    if clause.has(Kind.UNDECIDED):
        leans = any(Kind.ATTITUDE in m.kinds for m in clause.marks if Kind.UNDECIDED not in m.kinds)
        return not (leans and clause.has(Kind.HEDGE))
    return "neither" in clause.stems and "nor" in clause.stems


def _units(clause: Clause, view: ClaimView) -> list[_Unit]:
    """Attitudes, verdicts and content in order, each with the negations before it."""
    silent = not clause.has(Kind.ATTITUDE, Kind.VERDICT, Kind.TASTE) and view.words.keys().isdisjoint(clause.stems)
    if silent and not view.numbers:
        return []
    starts = {mark.start: mark for mark in clause.marks}
    stances = _EVALUATIVE if view.favour or view.rivals else _STANCES
    subject = bool(view.subject.intersection(clause.stems)) and not clause.has(Kind.CLAIM)
    found: list[_Unit] = []
    negated, softened, position = 1, False, 0
    while position < len(clause.stems):
        mark = starts.get(position)
        word = _content(clause, view, mark, position, subject)
        if word is not None:
            word = _loser(clause, view, word, position)
            joins = found and found[-1].kind is Kind.CLAIM and negated == 1
            if joins:
                _merge(found[-1], word, position, view.rivals)
            else:
                found.append(
                    _Unit(
                        Kind.CLAIM,
                        word.sign * negated,
                        _PLAIN,
                        position,
                        position + 1,
                        word.rank,
                        1,
                        softened,
                        negated < 0,
                    )
                )
            negated, softened = 1, False
        elif mark is not None:
            kind = next((k for k in stances if k in mark.kinds), None)
            if Kind.NEGATION in mark.kinds and kind is None:
                negated = -negated
                softened = _degree_follows(starts, mark.end)
            elif kind is not None:
                value = mark.kinds[kind]
                # "Not plausible" is as firm as "false".
                size = _PLAIN if negated < 0 < value else abs(value)
                found.append(
                    _Unit(kind, (1 if value > 0 else -1) * negated, size, mark.start, mark.end, softened=softened)
                )
                negated, softened = 1, False
        whole = mark is not None and word is None and not _TRANSPARENT.issuperset(mark.kinds)
        position = mark.end if mark is not None and whole else position + 1
    if negated < 0 and found and _denied_after(clause, found[-1]):
        found[-1].sign = -found[-1].sign
    if not _STANCE_NOUNS.isdisjoint(clause.stems):
        for unit in found:
            _wane(clause, unit)
    return found


def _wane(clause: Clause, unit: _Unit) -> None:
    """Doubts that are gone turn round; support that has weakened is softer."""
    if unit.kind is not Kind.ATTITUDE or not _STANCE_NOUNS.intersection(clause.stems[unit.start : unit.end]):
        return
    if _LOSS.intersection(clause.stems):
        unit.sign = -unit.sign
    unit.softened = unit.softened or bool(_WANING.intersection(clause.stems))


def _denied_after(clause: Clause, unit: _Unit) -> bool:
    """Whether a negation behind a unit turns it round: "predicts nothing", "lean towards saying it is not"."""
    after = clause.stems[unit.end :]
    if unit.kind is Kind.CLAIM and _EMPTY.intersection(after):
        return True
    trailing = len(after) > 1 and after[-1] == "not" and after[-2] in _AUXILIARIES
    if unit.kind is Kind.CLAIM:
        return trailing
    return unit.kind is Kind.ATTITUDE and any(a in _AUXILIARIES and b == "not" for a, b in pairwise(after))


def _loser(clause: Clause, view: ClaimView, word: Word, position: int) -> Word:
    """In a comparison, what is beaten speaks for the other side."""
    before = clause.stems[:position]
    beaten = bool(_OVER.intersection(before[-2:])) or ("prefer" in before and "to" in before[before.index("prefer") :])
    return Word(-word.sign, 1) if view.rivals and word.rank == 1 and beaten else word


def _degree_follows(starts: dict[int, Mark], position: int) -> bool:
    after = starts.get(position)
    return after is not None and Kind.DEGREE in after.kinds


def _content(clause: Clause, view: ClaimView, mark: Mark | None, position: int, subject: bool) -> Word | None:
    """The claim's word at a position, unless a phrase of the tables has it."""
    text = clause.stems[position]
    if text[0].isdecimal():
        return _number(clause, view, position)
    word = view.words.get(text)
    if word is None or mark is None:
        return word
    if mark.end - mark.start > 1 or not any(kind in mark.kinds for kind in _YIELDING):
        return None
    if Kind.VERDICT in mark.kinds or Kind.TASTE in mark.kinds:
        return word if word.rank > 0 and not clause.has(Kind.CLAIM) else None
    if Kind.ATTITUDE in mark.kinds:
        return word if subject and word.rank > 0 else None
    return word


def _number(clause: Clause, view: ClaimView, position: int) -> Word | None:
    """A number counts when it counts what the claim's number counts."""
    value = number(clause.stems[position])
    if value is None or not view.numbers or 1000 <= value <= 2100:
        return None
    ahead = clause.stems[position + 1 : position + 2]
    if "%" not in view.units and (not ahead or ahead[0] in _BE):
        return view.number(value)
    related = bool(view.units.intersection(ahead)) or value in view.numbers or any(view.words.get(w) for w in ahead)
    return view.number(value) if related or (view.above and "%" in view.units and value < 100) else None


def _merge(unit: _Unit, word: Word, position: int, rivals: bool) -> None:
    """Neighbouring words of the claim are one unit; the most telling word gives its sign.

    In a comparison the side named gives the sign and a word such as "worse" turns it round.
    """
    unit.hits += 1
    unit.end = position + 1
    if rivals and word.rank == 2:
        unit.sign *= word.sign
    elif word.rank > unit.rank:
        unit.sign, unit.rank = word.sign, word.rank


def _combine(units: list[_Unit], clause: Clause) -> tuple[int, list[_Unit]]:
    """Sign of nested stances: a product; coordinated ones say the same thing, so the first counts."""
    sign = 1
    used: list[_Unit] = []
    links = [m.start for m in clause.marks if Kind.LINK in m.kinds and m.kinds.get(Kind.STRANGER) is None]
    for unit in units:
        if used:
            last = used[-1]
            nested = any(last.end <= link < unit.start for link in links) or last.kind is Kind.ATTITUDE
            if unit.kind is Kind.ATTITUDE and last.kind is Kind.ATTITUDE:
                nested = any(last.end <= link < unit.start for link in links)
                nested = nested and not _ALTERNATIVES.intersection(clause.stems[last.end : unit.start])
            nested = nested or not _INNER.isdisjoint(clause.stems[last.end : unit.start + 1])
            if not nested or _attributive(clause, unit):
                continue
        used.append(unit)
        sign *= unit.sign
    return sign, used


def _attributive(clause: Clause, unit: _Unit) -> bool:
    """Whether a verdict only decorates its noun: "this silly idea", not "is silly"."""
    if unit.kind is not Kind.VERDICT or unit.sign > 0:
        return False
    before = clause.stems[: unit.start]
    return len(before) > 1 and before[-1] in _DETERMINERS and not _BE.intersection(before[-3:-1])


def _target(
    clause: Clause, content: _Unit | None, used: list[_Unit], context: Context, named: bool
) -> tuple[int | None, float]:
    """What the stance is about: the claim by name, its content, somebody's opinion, or what was spoken of."""
    if REVERSERS.intersection(clause.stems) and (content is None or content.rank < 2):
        return -context.last, 0.6
    if content is not None and (not named or content.rank == 2):
        return content.sign, 1.0
    person = next(filter(None, (_about_stranger(clause, unit) for unit in used)), None)
    if named and not (person is not None and context.stranger and len(used) == 1 and used[0].kind is Kind.VERDICT):
        return 1, 1.0
    if person is not None:
        return context.people.get(clause.stems[person.end - 1], context.stranger), 0.7
    meant = context.antecedent if context.statement is None or "it" in clause.stems else context.statement
    return meant, 0.6 if clause.has(Kind.PRONOUN) or len(clause.stems) <= 4 else 0.4


def _about_stranger(clause: Clause, unit: _Unit) -> Mark | None:
    """Somebody else, or their message, as the object of an attitude or the subject of a verdict."""
    for mark in clause.marks if clause.has(Kind.STRANGER) else ():
        if Kind.STRANGER not in mark.kinds:
            continue
        if unit.kind is Kind.ATTITUDE and 0 <= mark.start - unit.end <= 2:
            return mark
        if unit.kind is Kind.VERDICT and mark.end <= unit.start and not clause.has(Kind.PRONOUN):
            return mark
    return None


def _overlap(clause: Clause, view: ClaimView, content: _Unit | None, known: bool) -> float:
    """How surely a clause with some content of the claim is about it."""
    if content is None:
        return 0.0
    if view.rivals and not _COMPARING.intersection(clause.stems):
        return 0.2
    if view.subject.intersection(clause.stems):
        return 1.0 if content.rank > 0 or content.hits > 1 else 0.3
    if content.hits > 1:
        return 0.8 if known else 0.3
    if content.rank > 0 and (known or clause.has(Kind.PRONOUN) or "they" in clause.stems):
        return 0.7
    return 0.35 if content.rank > 1 else 0.15


def hedged(clause: Clause) -> bool:
    """Whether a hedge occurs that is not itself negated: "nothing tentative" is firm."""
    if not clause.has(Kind.HEDGE):
        return False
    negations = [mark.end for mark in clause.marks if Kind.NEGATION in mark.kinds]
    return any(Kind.HEDGE in m.kinds and not any(0 <= m.start - end <= 1 for end in negations) for m in clause.marks)


def _size(clause: Clause, size: float, softened: bool) -> float:
    if softened or hedged(clause):
        return min(size, _HEDGED)
    if size >= _PLAIN and clause.has(Kind.STRONG, Kind.DEGREE):
        return _FIRM
    return size
