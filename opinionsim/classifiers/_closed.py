"""Reads the point of a scale that a short answer names."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple

from opinionsim.errors import Rejected, quoted
from opinionsim.messages import Message
from opinionsim.opinions import OpinionScale

#: Most characters read, which bounds cost; closed answers are shorter.
_MAX_CHARACTERS = 2_000
#: Minus signs and dashes as a hyphen; compatibility forms are normalised before.
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-") | {"\u2019": "'"})
#: Marks that may touch a number without being a part of it.
_LOOSE = re.escape(":=()[]{}\"'`*_|,;!?<>\\")
_EXACT = re.compile(r"[+-]?\d{1,18}(?:\.0+)?")
_WORDS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("closed.toml").read_text(encoding="utf-8"))
_LEADS, _NEGATIONS, _ABSTAINING = (frozenset(_WORDS[name]) for name in ("leads", "negations", "abstaining"))
_ANSWER = re.compile(r"^(?:(?:my|the|final) )*answer(?: is)?\s*:?\s*")


class _Token(NamedTuple):
    """A piece of an answer."""

    kind: Literal["anchor", "number", "word", "mark"]
    text: str


def _plain(text: str) -> str:
    """A text in one spelling: compatibility forms, dashes and case made equal."""
    return unicodedata.normalize("NFKC", text).translate(_DASHES).casefold()


@lru_cache(maxsize=64)
def _scanner(labels: tuple[str, ...]) -> re.Pattern[str]:
    """The pattern that finds the pieces of an answer on a scale with these labels."""
    anchors = sorted(labels, key=len, reverse=True)
    spelled = "|".join(r"\s+".join(map(re.escape, anchor.split())) for anchor in anchors if anchor.strip())
    return re.compile(
        rf"(?P<anchor>(?<![\w'-])(?:{spelled or '(?!)'})(?![\w'-]))"
        rf"|(?P<number>[^\s{_LOOSE}]*\d[^\s{_LOOSE}]*)"
        r"|(?P<word>[^\W\d_]+(?:['-][^\W\d_]+)*)"
        r"|(?P<mark>\n|[^\w\s]|_)"
    )


def _pieces(text: str, labels: tuple[str, ...]) -> Iterator[_Token]:
    """The pieces of an answer; a full stop at the end of a number is a piece of its own."""
    for found in _scanner(labels).finditer(text):
        kind, piece = found.lastgroup, found.group()
        if kind == "number":
            bare = piece.rstrip(".")
            yield _Token("number", bare)
            if bare != piece:
                yield _Token("mark", ".")
        elif kind == "anchor":
            yield _Token("anchor", " ".join(piece.split()))
        else:
            yield _Token("word" if kind == "word" else "mark", piece)


def parse_closed(text: str, scale: OpinionScale) -> int | None:
    """The point of a scale that an answer names.

    Parameters
    ----------
    text : str
        An answer such as "-1", "Answer: +2", "2 (strongly positive)" or "strongly positive".
    scale : OpinionScale
        Its points and verbal anchors.

    Returns
    -------
    int or None
        The point that the answer names, as a number or as an exact verbal anchor. None if the answer names no point,
        several points or another number, if number and anchor disagree, or if the point is only part of a sentence, as
        in "I have 2 doubts". The function never guesses.
    """
    labels = {" ".join(_plain(label).split()): point for label, point in zip(scale.labels, scale.points, strict=True)}
    tokens = list(_pieces(_plain(text[:_MAX_CHARACTERS]), tuple(labels)))
    named: set[int | None] = set()
    stands = False
    for place, token in enumerate(tokens):
        if token.kind == "number":
            point = _point(token.text, scale)
        elif token.kind == "anchor":
            point = labels[token.text]
        else:
            continue
        named.add(None if _is_ambiguous(tokens, place) else point)
        stands = stands or _stands(tokens, place)
    return named.pop() if len(named) == 1 and stands else None


def read_closed(scale: OpinionScale, call: str, text: str, received: tuple[Message, ...]) -> int | None:
    """The `parse` function of an act whose answer is a point of a scale. Returns None for an abstention.

    Raises
    ------
    Rejected
        If the answer names no point or more than one, according to :func:`parse_closed`.
    """
    point = parse_closed(text, scale)
    if point is None and not is_abstention(text):
        valid = ", ".join(map(str, scale.points))
        raise Rejected(f"one of {valid} is needed and nothing else; {quoted(text.strip())} is none, or says two things")
    return point


def _point(number: str, scale: OpinionScale) -> int | None:
    """The scale point that a number is exactly."""
    if not _EXACT.fullmatch(number):
        return None
    value = int(number.partition(".")[0])
    return value if value in scale.points else None


def _neighbour(tokens: list[_Token], place: int) -> _Token:
    """The piece at a place; a line break beyond either end."""
    return tokens[place] if 0 <= place < len(tokens) else _Token("mark", "\n")


def _stands(tokens: list[_Token], place: int) -> bool:
    """Whether a number or an anchor stands by itself, or beside another one, or after words that announce it."""
    before, after = _neighbour(tokens, place - 1), _neighbour(tokens, place + 1)
    if after.kind == "word" or (before.kind == "word" and before.text not in _LEADS):
        return False
    lead = list(takewhile(lambda token: token.kind == "word", reversed(tokens[:place])))
    return not any(word.text in _NEGATIONS or word.text.endswith("n't") for word in lead)


def _is_ambiguous(tokens: list[_Token], place: int) -> bool:
    """Whether a number may be something else: an item of a list, or one whose sign is a bullet or a dash."""
    token, before, after = tokens[place], _neighbour(tokens, place - 1), _neighbour(tokens, place + 1)
    if token.kind != "number" or not token.text[0].isdigit():
        return False
    if before.text in ("-", "+"):
        return int(token.text) != 0 if token.text.isdigit() else True
    opened = before.text == "("
    heads = _neighbour(tokens, place - 1 - opened).text == "\n"
    return heads and after.text in (".", ")") and _neighbour(tokens, place + 2).kind == "word"


def is_abstention(text: str) -> bool:
    """Whether an answer states no opinion: only "N", "N/A", "None" or "No opinion"."""
    bare = _ANSWER.sub("", _plain(text[:_MAX_CHARACTERS]).strip(" \t\r\n.!*_`\"'()[]"))
    return bare.strip(" \t\r\n.!*_`\"'()[]") in _ABSTAINING
