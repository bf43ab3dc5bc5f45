"""Whether a model's text holds an answer in its role, told by the words in which models leave a role."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from opinionsim.llm import _refusal_phrases as phrases
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


def _any(*some: str) -> re.Pattern[str]:
    """One pattern of several phrases, their signs written out."""
    said = rf"\b(?:{'|'.join(some)})"
    for sign, words in (("~", 6), ("_", 2)):
        said = said.replace(sign, rf"[^\w.!?]+(?:[\w']+[^\w.!?]+){{0,{words}}}?")
    return re.compile(said)


_REFUSES = _any(phrases.NOT)
#: What a piece of a text may be, the first that fits: by phrases in it, or by what follows a negation.
_KINDS: tuple[tuple[str, re.Pattern[str], re.Pattern[str] | None], ...] = (
    ("break", _any(*phrases.BREAKS), _any(*phrases.BREAKS_OFF)),
    ("unwritten", _any(*phrases.UNWRITTEN), _any(*phrases.UNWRITTEN_OFF)),
    ("soft", _any(*phrases.SOFT), _any(*phrases.SOFT_OFF)),
    ("offer", _any(*phrases.OFFERS), None),
    ("task", _any(*phrases.TASK), None),
    ("lead", _any(*phrases.LEADS), None),
)
_DECLINES = frozenset(("break", "unwritten", "soft"))
_HOLDS, _ANNOUNCES, _NO_REPLY = _any(*phrases.STANCE), _any(*phrases.ANNOUNCED), _any(*phrases.NOTHING)
_STANDS_APART, _OF_THE_TEXT = re.compile(phrases.ASIDE), re.compile(phrases.ASIDE_SAYS)
_FOREIGN = re.compile(rf"\W*(?:.{{0,40}}?[,.:!\uff0c\u3001\s]\s*)?(?:{'|'.join(phrases.ELSEWHERE)})")

_MARKUP = re.compile(r"</?[a-z]+>|[*`]+|(?<!\w)_+|_+(?!\w)|^[ \t]*(?:#{1,6} |>)", re.IGNORECASE | re.MULTILINE)
_QUOTED_WITHIN = re.compile(r"(?<=[\w,] )\"[^\"\n]{1,200}\"")
_ENDS = re.compile(r"(?<=[.!?\u2026:;])[\"')\]]*\s+|\s+[\u2013\u2014-]+\s+|,\s+(?=(?:but|yet|so|still)\b)|\n+")
_PARAGRAPHS = re.compile(r"\n\s*(?:-{3,}\s*)?\n|\n(?=\s*(?:\(|\[|note:))", re.IGNORECASE)
_EDGES = " \t\n\"'()[]{}-*_:;,.!?\u2026\u2013\u2014"
_WORD = re.compile(r"[^\W_]+(?:'\w+)?")


class _Piece(NamedTuple):
    """A sentence or a part of one."""

    kind: str
    """One of `_KINDS`, or ``own``: what is left when those are taken away."""
    words: int
    stance: bool
    """Whether it is ``own`` and states one."""
    aside: bool
    """Whether its paragraph stands apart from the text proper."""
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
    if phrases.SIGNS.isdisjoint(_WORD.findall(plain)) and not _REFUSES.search(plain):
        return Answer("answered")
    pieces = _pieces(plain)
    first = next((place for place, piece in enumerate(pieces) if piece.kind in _DECLINES), None)
    if first is None:
        return _with_offers(pieces)
    if pieces[first].kind == "break" or any(piece.kind == "break" for piece in pieces):
        return _out_of_role(pieces, first)
    return _declined(pieces)


def _plain(text: str) -> str:
    """A text without markup, with straight quotes, and without what it quotes within its sentences."""
    for curly, straight in (("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'), ("\u201d", '"')):
        text = text.replace(curly, straight)
    return _QUOTED_WITHIN.sub('""', _MARKUP.sub("", text.lower())).strip()


def _tells_of_none(plain: str) -> bool:
    """Whether a text, wholly in brackets or of a few words, says only that there is no post."""
    short = len(plain) < 160 and plain[:1] in "[(" and plain[-1:] in ")]"
    return bool(plain) and (short or len(_WORD.findall(plain)) <= 5) and bool(_NO_REPLY.search(plain))


def _pieces(plain: str) -> list[_Piece]:
    found = []
    paragraphs = _PARAGRAPHS.split(plain)
    for paragraph in paragraphs:
        aside = len(paragraphs) > 1 and bool(_STANDS_APART.search(paragraph) and _OF_THE_TEXT.search(paragraph))
        for said in _ENDS.split(paragraph):
            said = said.lstrip(_EDGES)
            words = len(_WORD.findall(said))
            if not words:
                continue
            kind = _kind(said)
            stance = kind in ("own", "lead") and ("#" in said or bool(_HOLDS.search(said)))
            if aside and kind in ("own", "lead"):
                kind = "offer"
            elif kind == "lead" and stance and "step by step" not in said:
                kind = "own"
            found.append(_Piece(kind, words, stance and kind == "own", aside, bool(_ANNOUNCES.search(said))))
    return found


def _kind(said: str) -> str:
    """What a piece of a text is."""
    refused = [found.end() for found in _REFUSES.finditer(said)]
    for kind, said_so, following in _KINDS:
        if said_so.search(said) or (following and any(following.match(said, end) for end in refused)):
            return "soft" if kind == "task" and refused else kind
    return "own"


def _own(pieces: list[_Piece]) -> tuple[int, bool]:
    """Words of the author's own in some pieces, and whether they state a stance."""
    own = [piece for piece in pieces if piece.kind == "own"]
    return sum(piece.words for piece in own), any(piece.stance for piece in own)


def _with_offers(pieces: list[_Piece]) -> Answer:
    """Reading of a text that only offers, asks or talks of the task."""
    words, stance = _own(pieces)
    beside = [place for place, piece in enumerate(pieces) if piece.kind == "offer"]
    if not beside:
        return Answer("answered")
    if not stance and (words <= 8 or (beside[0] == 0 and len(beside) > 1 and not pieces[0].announces)):
        return Answer("refused")
    if not stance and beside[0] == 0 and words <= 25 and not pieces[0].announces:
        return Answer("answered", "suspected")
    at_an_end = beside[0] <= 1 or beside[-1] >= len(pieces) - 2
    return Answer("answered", "note" if at_an_end else "")


def _out_of_role(pieces: list[_Piece], first: int) -> Answer:
    """Reading of a text in which the model leaves its role."""
    words, stance = _own(pieces[:first])
    if words >= 30 or (stance and words >= 6) or (pieces[first].aside and words >= 4):
        return Answer("answered", "note")
    last = max(place for place, piece in enumerate(pieces) if piece.kind in _DECLINES)
    after = pieces[last + 1 :]
    words, stance = _own(after)
    announced = any(piece.announces for piece in pieces[first:]) or pieces[last].aside
    if announced and words >= 6 and (stance or words >= 12) and after[-1].kind == "own":
        return Answer("answered", "note")
    return Answer("refused")


def _declined(pieces: list[_Piece]) -> Answer:
    """Reading of a text that declines in words that a person might use."""
    words, stance = _own(pieces)
    unwritten = any(piece.kind == "unwritten" for piece in pieces)
    if stance:
        return Answer("answered", "suspected" if unwritten else "")
    if any(piece.kind in ("offer", "task") for piece in pieces):
        return Answer("refused")
    if words >= (60 if unwritten else 25):
        return Answer("answered", "suspected")
    return Answer("refused")
