"""Whether a model's text holds an answer in its role, told by the words in which models leave a role."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from opinionsim.llm import _refusal_words as words
from opinionsim.messages import Condition

#: What is odd about a text that stands all the same: a note to whoever runs the model, or words that may be a refusal.
Flag = Literal["", "note", "suspected"]


class Answer(NamedTuple):
    """Whether a text holds an answer in its role.

    Attributes
    ----------
    condition : str
        ``answered`` or ``refused``.
    flag : str
        ``note``: beside the answer, the model speaks to whoever runs it; ``suspected``: it may be a refusal, or a
        person who declines; empty otherwise.
    """

    condition: Condition
    flag: Flag = ""


_KINDS = {kind: re.compile("|".join(some)) for kind, some in words.KINDS.items()}
_STANCE, _ANNOUNCES = re.compile(words.STANCE), re.compile(words.ANNOUNCED)
_FOREIGN = re.compile(words.ELSEWHERE)
_NO_REPLY = re.compile(words.NOTHING)

#: What the prompts of reports ask to begin with, or the name of the author.
_OPENING = re.compile(r"(?:[^.!?\n]{0,80}step by step through what i believe|\w+(?: \w+)?:)\W*")
_MARKUP = re.compile(r"</?[a-z]+>|[*`]+|(?<!\w)_+|_+(?!\w)|^[ \t]*(?:#{1,6} |>)", re.IGNORECASE | re.MULTILINE)
_QUOTED_WITHIN = re.compile(r"(?<=[\w,] )\"[^\"\n]{1,200}\"")
_ENDS = re.compile(r"(?<=[.!?\u2026:;])[\"')\]]*\s+|\s+[\u2013\u2014-]+\s+|,\s+(?=(?:but|yet|so|still)\b)|\n+")
_ASIDE = re.compile(r"[(\[]|(?:\w+ )?note:|disclaimer:|ooc")
_PARAGRAPHS = re.compile(r"\n\s*(?:-{3,}\s*)?\n|\n(?=\s*(?:\(|\[|note:))", re.IGNORECASE)
_EDGES = " \t\n\"'()[]{}-*_:;,.!?\u2026\u2013\u2014"
_WORD = re.compile(r"[^\W_]+(?:['-]\w+)*")


class _Piece(NamedTuple):
    """A sentence or a part of one."""

    kind: str
    """One of `words.KINDS`, or ``own``."""
    words: int
    stance: bool
    verdict: bool
    """Whether it is ``own`` and states one."""
    aside: bool
    """Whether it begins in brackets or as a note."""
    announces: bool


def read_answer(text: str) -> Answer:
    """Tell whether a text holds an answer in its role.

    Parameters
    ----------
    text : str
        What a model wrote, reasoning split off.

    Returns
    -------
    Answer
        ``refused`` where nothing but words out of the role, offers, apologies and questions to whoever runs the model
        is left; every other text is an answer, on whichever side of the question, or between them.

    Notes
    -----
    A person, too, may "not write another word on this": such words count only where no stance of the author's own
    stands beside them. Words in which the model speaks as itself ("as an AI", "step outside the character") end the
    role: what comes after them is an answer only where it is announced as one.
    """
    plain = _plain(text)
    if _FOREIGN.match(plain) or _tells_of_none(plain):
        return Answer("refused")
    if words.SIGNS.isdisjoint(_WORD.findall(plain)):
        return Answer("answered")
    pieces = [piece for said in _ENDS.split(plain) if (piece := _piece(said)).words]
    score = sum(words.WEIGHTS.get(piece.kind, 0) for piece in pieces)
    if not score:
        return Answer("answered")
    first = next(place for place, piece in enumerate(pieces) if piece.kind in words.WEIGHTS)
    before, after = pieces[:first], pieces[first:]
    outs = [piece.kind for piece in after if piece.kind in words.WEIGHTS]
    last = max(place for place, piece in enumerate(after) if piece.kind in words.WEIGHTS)
    begun = _own(before)
    stance = any(piece.stance for piece in pieces)
    apart = any(piece.aside for piece in after)
    if begun >= 25 or (begun >= 6 and (apart or any(piece.stance for piece in before))):
        return Answer("answered", "note" if score >= 2 else "")
    if any(piece.announces for piece in pieces) and _own(after[last + 1 :]) + _own(before) >= 6:
        return Answer("answered", "note")
    if "break" in outs:
        return Answer("refused")
    if "decline" in outs and not stance:
        return Answer("refused")
    stance = stance or any(piece.verdict for piece in pieces)
    if stance:
        return Answer("answered", "suspected" if score >= 3 else "")
    own = _own(pieces)
    if score >= 3 and own <= (25 if score > 3 else 5):
        return Answer("refused")
    if outs[0] == "offer" and begun <= 3 and own <= (15 if score > 2 else 3):
        return Answer("refused")
    return Answer("answered", "suspected" if score >= 3 else "note" if score >= 2 else "")


def _plain(text: str) -> str:
    """A text without markup, with straight quotes, and without what it quotes within its sentences."""
    for curly, straight in (("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'), ("\u201d", '"')):
        text = text.replace(curly, straight)
    return _QUOTED_WITHIN.sub('""', _OPENING.sub("", _MARKUP.sub("", text.lower()).strip())).strip()


def _tells_of_none(plain: str) -> bool:
    """Whether a text, wholly in brackets or of a few words, says only that there is no post."""
    short = len(plain) < 160 and plain[:1] in "[(" and plain[-1:] in ")]"
    return bool(plain) and (short or len(_WORD.findall(plain)) <= 5) and bool(_NO_REPLY.search(plain))


def _piece(said: str) -> _Piece:
    """What a sentence is."""
    found = _WORD.findall(said)
    letters = "".join(words.CLASS.get(word, ".") for word in found)
    kind = next((kind for kind, signs in _KINDS.items() if signs.search(letters)), "own")
    stance = kind in ("own", "lead") and ("#" in said or bool(_STANCE.search(letters)))
    return _Piece("own" if stance else kind, len(found), stance, kind == "own" and "x" in letters, bool(_ASIDE.match(said)), bool(_ANNOUNCES.search(said)))


def _own(pieces: list[_Piece]) -> int:
    """Words of the author's own in some pieces."""
    return sum(piece.words for piece in pieces if piece.kind == "own")
