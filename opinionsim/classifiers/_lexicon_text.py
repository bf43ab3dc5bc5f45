"""Divides a text into clauses, using spelling, words, stems, phrases of the data file and clause boundaries."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

#: Most characters read of a text, which bounds cost.
_MAX_CHARACTERS = 20_000

DATA: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text(encoding="utf-8"))


def entries(table: str) -> list[str]:
    """The entries of a table of the data file; ``no (firm|clear) view`` stands for two."""
    found: list[str] = []
    for entry in filter(str.strip, table.replace("\n", " / ").split(" / ")):
        choices = [part.strip("()").split("|") for part in re.findall(r"\([^)]*\)|[^\s()]+", entry)]
        found.extend(" ".join(words) for words in product(*choices))
    return found


def _pairs(key: str, mark: str) -> dict[str, str]:
    """The entries of a table of pairs, each parted by `mark`."""
    found = (entry.partition(mark) for entry in entries(DATA["world"][key]))
    return {left.strip(): right.strip() for left, _, right in found}


_STEMS, _DIGITS, _SPELLINGS = _pairs("irregular", " "), _pairs("numbers", " "), _pairs("spellings", "=")


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A crude stem: plural, past and progressive endings and a final e are taken off."""
    word = _STEMS.get(word, word)
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and any(vowel in rest for vowel in "aeiouy"):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


#: Sets of single words, as they are or as stems, and of forms as they are.
WORDS = {key: frozenset([*text.split(), *map(stem, text.split())]) for key, text in DATA["words"].items()}
WORDS |= {key: frozenset(text.split()) for key, text in DATA["forms"].items()}
_REWRITES = [
    (needed, [(re.compile(pattern, re.MULTILINE), instead) for pattern, instead in table.items()])
    for needed, table in DATA["rewrites"].items()
]
_SPELLED = re.compile(rf"(?<![\w'])(?:{'|'.join(sorted(map(re.escape, _SPELLINGS), key=len, reverse=True))})(?!\w)")
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|[0-9]+(?:[.,][0-9]+)*|%|[.!?;:,()\n]| - ")
_ENDS, _PAUSES = frozenset(".!?\n;"), frozenset([",", "(", ")", " - ", ":"])


def tokens(text: str, claim: str = "") -> list[str]:
    """Words in lower case with short forms written out, numbers as digits, and punctuation marks.

    Markup, openings such as "I, NAME, will go step by step ..." and quotations are taken out; the claim, where it is
    repeated word for word, becomes the one word ``xclaim``.
    """
    text = text[:_MAX_CHARACTERS].strip()
    if len(claim) > 5:
        head, comma, _ = claim.partition(",")
        if not text.isascii() or claim.lower() in text.lower():
            text = re.sub(rf"(?<!\w){re.escape(claim)}(?!\w)", "xclaim", text, flags=re.IGNORECASE)
        text = text.replace(head + comma, head)  # the other side of a claim mostly shares its opening
    for needed, rewrites in _REWRITES:
        if needed in text or not needed.strip() or not (needed.isascii() or text.isascii()):
            for pattern, instead in rewrites:
                text = pattern.sub(instead, text)
    text = _SPELLED.sub(lambda found: _SPELLINGS[found[0]], text.lower())
    # A date or a version, with several points, is no number.
    return [_DIGITS.get(word, word) for word in _TOKEN.findall(text) if word.count(".") < 2]


class Phrase(NamedTuple):
    """A phrase of the data file found in a clause."""

    start: int
    end: int
    kind: str
    """Table and key of the data file; stances have the table alone."""
    sign: int = 0
    """+1 for, -1 against, 0 neither."""
    size: str = ""
    """``mild`` or ``firm`` where the word itself says so."""


@dataclass(slots=True)
class Clause:
    """A stretch of text that says one thing."""

    words: list[str]
    """Stems."""
    raw: list[str]
    """The words themselves."""
    marks: list[Phrase]
    kinds: frozenset[str]
    """Kinds of the marks."""
    sentence: int
    question: bool = False

    def has(self, *kinds: str) -> bool:
        """Whether a phrase of one of these kinds occurs."""
        return not self.kinds.isdisjoint(kinds)

    def starts(self, kind: str) -> bool:
        """Whether a phrase of this kind is among the first two words."""
        return any(mark.kind == kind and mark.start <= 1 for mark in self.marks)


_SIDES = {"for": 1, "against": -1, "middle": 0}


def _trie() -> dict[str, Any]:
    """All phrases by stems, word after word; the key "" holds kind, sign and size of a complete phrase."""
    root: dict[str, Any] = {}
    for table, keys in DATA["phrases"].items():
        for key, text in keys.items():
            side, _, size = key.partition("_")
            meaning = (table, _SIDES[side], size) if side in _SIDES else (key, 0, "")
            for entry in entries(text):
                node = root
                for word in entry.split():
                    node = node.setdefault(stem(word), {})
                node.setdefault("", meaning)
    return root


_PHRASES = _trie()


def _marks(words: list[str]) -> list[Phrase]:
    """The longest phrases, left to right; an adverb may stand inside one: "stand firmly by"."""
    found: list[Phrase] = []
    passed, end = 0, len(words)
    for position, word in enumerate(words):
        node = _PHRASES.get(word)
        if node is None or position < passed:
            continue
        ahead, meaning = position, None
        while node is not None:
            ahead += 1
            if "" in node:
                passed, meaning = ahead, node[""]
            if ahead + 1 < end and words[ahead] not in node and words[ahead].endswith("ly"):
                ahead += words[ahead + 1] in node
            node = node.get(words[ahead]) if ahead < end else None
        if meaning is not None:
            found.append(Phrase(position, passed, *meaning))
            for at in range(position + 1, passed - 1):
                if words[at].endswith("ly") and "" in (node := _PHRASES.get(words[at], {})):
                    found.append(Phrase(at, at + 1, *node[""]))
    return found


def clauses(text: str, claim: str = "") -> list[Clause]:
    """Divide a text into clauses.

    Parameters
    ----------
    text : str
        Anything.
    claim : str
        The claim, for places where the text repeats it.

    Returns
    -------
    list of Clause
        In the order of the text; empty if it contains no words.
    """
    found: list[Clause] = []
    run: list[str] = []
    sentence = 0
    for word in [*tokens(text, claim), "."]:
        if word not in _ENDS:
            run.append(word)
            continue
        if not _PAUSES.issuperset(run):
            found.extend(_split(run, sentence, word == "?"))
            sentence += 1
        run = []
    return found


def _split(run: list[str], sentence: int, question: bool) -> Iterator[Clause]:
    """Part a sentence at connectives, dashes, and commas or "and" before a new subject."""
    raw: list[str] = []
    cuts = {0}
    for word, following in zip(run, [*run[1:], ""], strict=True):
        if word not in _PAUSES:
            if word in ("and", "so") and following in WORDS["after_and"]:
                cuts.add(len(raw))
            raw.append(word)
        elif word != "," or following in WORDS["subjects"] or (raw and raw[0] in WORDS["aside"]):
            cuts.add(len(raw))
    words = list(map(stem, raw))
    marks = _marks(words)
    cuts.update([mark.start for mark in marks if mark.kind in ("but", "although", "because")])
    for mark in marks:
        if mark.end - mark.start > 1:
            cuts.difference_update(range(mark.start + 1, mark.end))
    for start, end in pairwise(sorted(cuts | {0, len(raw)})):
        own = [m if not start else Phrase(m[0] - start, m[1] - start, *m[2:]) for m in marks if start <= m[0] < end]
        yield Clause(words[start:end], raw[start:end], own, frozenset([mark[2] for mark in own]), sentence, question)
