"""The author's stances in a text, each with its weight."""

from __future__ import annotations

import re

from opinionsim.classifiers._lexicon_claims import ClaimView, view_of
from opinionsim.classifiers._lexicon_clauses import Cue, SoFar, read, speaks
from opinionsim.classifiers._lexicon_text import WORDS, Clause, clauses

#: Times that these stances count: those of the first sentence, the last one, one conceded, one that another replaces.
_EARLY, _LAST, _CONCEDED, _LEFT = 0.6, 1.8, 0.15, 0.3
#: Least weight of a stance that can count as the last one.
_EXPLICIT = 0.8
#: What goes before a claim that is named, not stated.
_NAMED = r"(?:theory|claim|idea|notion|statement|subject|topic|question)(?:\s+(?:that|is|of|whether))?"
#: Smallest share of common English words in a text of some length that is read at all.
_ENGLISH, _LENGTH = 0.2, 8


def stances(claim: str, text: str) -> tuple[list[Cue], list[Clause]]:
    """The author's present stances towards a claim, with their weights, and the clauses of the text."""
    parts = clauses(_without_claim(claim, text), claim)
    return _weighed(_stances(parts, view_of(claim))), parts


def _without_claim(claim: str, text: str) -> str:
    """A text in which the claim is called Theory XYZ where it is only named; blank where nothing else is said."""
    spelled = r"\s+".join(map(re.escape, claim.split()))
    text = re.sub(rf"(?:\bthe\s+)?\b{_NAMED}[\s:,]*[\"'\u201c<]*{spelled}", "Theory XYZ", text, flags=re.IGNORECASE)
    return "" if re.fullmatch(rf"(?:\W|theory xyz|{spelled})*", text, re.IGNORECASE) else text


def _stances(parts: list[Clause], view: ClaimView) -> list[Cue]:
    """The author's stances, from the first clause to the last."""
    words = [word for clause in parts for word in clause.raw]
    if len(words) >= _LENGTH and sum(map(WORDS["common"].__contains__, words)) < _ENGLISH * len(words):
        return []
    stems = {word for clause in parts for word in clause.words}
    context = SoFar(not stems.isdisjoint(view.subject | view.core) or any(clause.has("claim") for clause in parts))
    for clause in parts:
        if not clause.question and not clause.starts("if"):
            _note(clause, view, context)
    return context.cues


def _note(clause: Clause, view: ClaimView, context: SoFar) -> None:
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


def _relative(clause: Clause, context: SoFar) -> Cue | None:
    """A stance given by reference: to somebody's post, or to an earlier view that was kept or left."""
    negated, stranger, changes = clause.has("negation"), context.stranger, clause.has("same", "moved")
    if clause.has("reply"):
        sign = next(mark.sign for mark in clause.marks if mark.kind == "reply") * (-1 if negated else 1)
        return Cue(sign * stranger, anchor="post") if stranger else None
    brief = negated and len(clause.words) <= (6 if speaks(clause) else 3)
    if brief and not changes and context.answering and stranger:
        return Cue(-stranger, weight=0.8, anchor="post")
    if not (changes or brief) or context.past is None or context.cues:
        return None
    if clause.has("same") or (negated and changes):
        return context.past._replace(past=False, weight=0.8)
    return context.past._replace(sign=-context.past.sign, size="", past=False, weight=0.8)


def _count(clause: Clause, reading: Cue, context: SoFar) -> None:
    """Add a stance of the author's, and lower what it takes the place of."""
    weight = reading.weight * (_CONCEDED if clause.starts("although") else 1.0)
    left = _LEFT if weight > 0.5 and (clause.has("now") or clause.starts("but")) else 1.0
    cues = [cue if cue.sign == reading.sign else cue._replace(weight=left * cue.weight) for cue in context.cues]
    context.cues = [*cues, reading._replace(weight=weight, sentence=clause.sentence)]
    context.answering = context.answering and reading.anchor == "post"
    context.own = context.so = reading.sign
    if reading.anchor in ("claim", "content", ""):
        context.antecedent = reading.target or 1


def _weighed(cues: list[Cue]) -> list[Cue]:
    """The cues with their final weights: later ones count more than earlier ones, the last explicit one most."""
    end = max((cue.sentence for cue in cues), default=0) or 1
    weighed = [cue._replace(weight=cue.weight * (_EARLY + (1 - _EARLY) * cue.sentence / end)) for cue in cues]
    last = max(range(len(cues)), key=lambda at: (weighed[at].weight >= _EXPLICIT, at), default=-1)
    return [cue._replace(weight=cue.weight * _LAST) if at == last else cue for at, cue in enumerate(weighed)]
