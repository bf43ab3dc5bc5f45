"""From text to clauses: spelling, words, stems, phrases and clause boundaries. Knows nothing of claims."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from opinionsim.classifiers._lexicon_rules import IRREGULAR, MOVING, NUMBERS, PAST_FORMS, PHRASES, SHORT_FORMS, Kind

#: Most characters read of a text, which bounds cost.
_MAX_CHARACTERS = 20_000


def entries(table: str) -> list[str]:
    """The entries of a table."""
    return [" ".join(entry.split()) for entry in re.split(r"[/\n]", table) if entry.strip()]


_STEMS: dict[str, str] = {word: root for word, _, root in (entry.partition(" ") for entry in entries(IRREGULAR))}


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A crude stem: plural, past and progressive endings and a final e are taken off."""
    if word in _STEMS:
        return _STEMS[word]
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith("ies") or word.endswith("ied"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and any(vowel in rest for vowel in "aeiouy"):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


#: Typographic quotes, apostrophes, dashes and the ellipsis as plain marks.
_UNIFORM = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2026": ".",
        "\u2013": ",",
        "\u2014": ",",
        "\t": " ",
    }
)
_USA = re.compile(r"\b(?:U\.S\.A\.?|U\.S\.?(?=\W)|USA|US|[Uu]nited [Ss]tates(?: of [Aa]merica)?)(?!\w)")
_LINKS = re.compile(r"https?://\S+|@\w+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: The lead-in "I, Name, ..." of a report and short quotations read better without their punctuation.
_LEAD_IN = re.compile(r"\b(I), [A-Z]\w+(?: [A-Z]\w+)?,")
_SCARE_QUOTE = re.compile(r"\"((?:[^\s\".!?,]+ ?){1,4})\"")
_HASHTAG = re.compile(r"#(\w+)")
#: Colours of a terminal, which some programs leave in their output.
_TERMINAL = re.compile(r"\x1b?\[\d{0,3}(?:;\d{1,3})*m")
_SHORT = re.compile(
    r"(?<![\w'])(?:" + "|".join(sorted(map(re.escape, SHORT_FORMS), key=len, reverse=True)) + r")(?!\w)"
)
_IS = re.compile(r"\b(it|that|he|she|there|what|who|here|where|how)'s\b")
_ENDINGS = {"n't": " not", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will", "'d": " would", "'s": ""}
_ENDING = re.compile(r"n't\b|'(?:m|re|ve|ll|d|s)\b")
_INITIAL = re.compile(r"\b([a-z])\.(?=\s?[a-z]\.|\s?rex\b)|\b(dr|mr|mrs|ms|prof|vs|etc|no)\.(?=\s\w)")
_FRACTION = re.compile(r"\b\d+/\d+\b")
_DRAWN_OUT = re.compile(r"([a-z])\1{2,}")
_PREFIX = re.compile(r"\b(e|co)-(?=[a-z])")
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:[.,]\d+)*|%|[.!?;:,()\"\n]| - |[^\w\s'*_\-/&+$#@\[\]]")
_PUNCTUATION = frozenset('.!?;:,()"\n') | {" - "}
_ENDS = frozenset(".!?\n;")


def tokens(text: str) -> list[str]:
    """Words in lower case with short forms written out, numbers as digits, and punctuation marks."""
    text = text[:_MAX_CHARACTERS].translate(_UNIFORM)
    # Most texts need few of these; looking for a character is a hundred times faster than a pattern.
    if "I, " in text:
        text = _LEAD_IN.sub(r"\1", text)
    if "[" in text:
        text = _TERMINAL.sub(" ", text)
    if '"' in text:
        text = _SCARE_QUOTE.sub(r"\1", text)
    if "#" in text:
        text = _HASHTAG.sub(lambda tag: _CAMEL.sub(" ", tag[1]), text)
    if "@" in text or "://" in text:
        text = _LINKS.sub(" ", text)
    if "U" in text or "united" in text:
        text = _USA.sub("usa", text)
    text = _DRAWN_OUT.sub(r"\1", text.lower())
    text = _INITIAL.sub(lambda found: found[1] or found[2], text)
    text = _SHORT.sub(lambda found: SHORT_FORMS[found[0]], text)
    if "/" in text:
        text = _FRACTION.sub(" ", text)
    if "'" in text:
        text = _IS.sub(r"\1 is", text)
        text = _ENDING.sub(lambda found: _ENDINGS[found[0]], text)
    if "-" in text:
        text = _PREFIX.sub(r"\1", text)
    return list(_numbers(_TOKEN.findall(text)))


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def number(word: str) -> float | None:
    """The value of a word of digits, None for any other word."""
    return float(word) if _NUMBER.fullmatch(word) else None


def _share(value: str, ahead: list[str]) -> tuple[str, int] | None:
    """A share such as *four in ten* or *2 out of 5* in per cent, and how many words it takes beyond the first."""
    skip = 2 if ahead[:2] == ["out", "of"] else 1
    if len(ahead) <= skip or (skip == 1 and ahead[0] != "in") or not value.isdigit():
        return None
    whole = NUMBERS.get(ahead[skip]) or (int(ahead[skip]) if ahead[skip].isdigit() else 0)
    if not 3 <= whole <= 100 or int(value) > whole:
        return None
    return f"{100 * int(value) / whole:g}", skip + 1


def _numbers(words: list[str]) -> Iterator[str]:
    """Number words as digits: *forty-five* is 45, *four in ten* is 40 %."""
    position = 0
    while position < len(words):
        word = words[position]
        if word not in NUMBERS and word != "one" and not word[0].isdecimal():
            yield word
            position += 1
            continue
        after = words[position + 1] if position + 1 < len(words) else ""
        if word in NUMBERS or word[0].isdecimal():
            value = str(NUMBERS[word]) if word in NUMBERS else word.replace(",", "")
            if NUMBERS.get(word, 0) >= 20 and NUMBERS.get(after, 99) < 10:
                value, position = str(NUMBERS[word] + NUMBERS[after]), position + 1
            elif (share := _share(value, words[position + 1 : position + 4])) is not None:
                yield share[0]
                value, position = "%", position + share[1]
            yield value
        elif word == "one" and (share := _share("1", words[position + 1 : position + 4])) is not None:
            yield from (share[0], "%")
            position += share[1]
        else:
            yield word
        position += 1


#: Words of the author that a longer phrase may hide.
_FIRST_PERSON = frozenset(["i", "me", "my", "mine", "myself"])


class Mark(NamedTuple):
    """A phrase of the tables found in a clause."""

    start: int
    end: int
    kinds: dict[Kind, float]
    """All kinds the phrase can be, with its value in each."""


@dataclass(slots=True)
class Clause:
    """A stretch of text that says one thing."""

    stems: list[str]
    marks: list[Mark]
    sentence: int
    question: bool = False
    quoted: bool = False
    opener: Kind | None = None
    """The connective at its head, if any."""
    past: bool = False
    """Whether it states an earlier view."""
    kinds: frozenset[Kind] = field(init=False)
    """All kinds its phrases can be."""

    def __post_init__(self) -> None:
        found = frozenset().union(*(mark.kinds for mark in self.marks))
        self.kinds = found if _FIRST_PERSON.isdisjoint(self.stems) else found | {Kind.SELF}

    def has(self, *kinds: Kind) -> bool:
        """Whether a phrase of one of these kinds occurs."""
        return not self.kinds.isdisjoint(kinds)


def _trie() -> dict[str, Any]:
    """All phrases by stems, word after word; the key "" holds the kinds of a complete phrase."""
    root: dict[str, Any] = {}
    for kind, value, table in PHRASES:
        for entry in entries(table):
            node = root
            for word in tokens(entry):
                node = node.setdefault(stem(word), {})
            node.setdefault("", {})[kind] = value
    return root


_PHRASES = _trie()


def _marks(stems: list[str]) -> Iterator[Mark]:
    """The longest phrases, left to right, not overlapping."""
    position = 0
    while position < len(stems):
        node = _PHRASES.get(stems[position])
        if node is None:
            position += 1
            continue
        ahead, found = position, None
        while node is not None:
            ahead += 1
            if "" in node:
                found = Mark(position, ahead, node[""])
            node = node.get(stems[ahead]) if ahead < len(stems) else None
        if found:
            yield found
            position = found.end
        else:
            position += 1


_PAST_FORMS = frozenset(PAST_FORMS.split())
_MOVING = frozenset(MOVING.split())
_OPENERS = (Kind.CONTRAST, Kind.CONCEDE, Kind.EVEN_IF, Kind.CONDITION, Kind.REASON)
#: Words that start a new clause after "and".
_SUBJECTS = frozenset(
    ["i", "it", "this", "that", "the", "my", "we", "there", "xyz", "they", "he", "she", "no", "so", "now"]
)


_SPLITTING = frozenset(["but", "because", "although", "whereas"])
#: Words that hold on to the connective after them: "not because".
_BOUND = frozenset(["not", "just", "only", "simply", "even", "anything", "nothing"])


def _spans(words: list[str]) -> Iterator[tuple[list[str], str]]:
    """Stretches between punctuation marks, each with the mark that ends it; "and I" parts clauses too."""
    run: list[str] = []
    for position, word in enumerate(words):
        if word in _PUNCTUATION or not (word[0].isalnum() or word == "%"):
            yield run, word
            run = []
            continue
        following = words[position + 1] if position + 1 < len(words) else ""
        if run and (
            (word in ("and", "so") and following in _SUBJECTS) or (word in _SPLITTING and run[-1] not in _BOUND)
        ):
            yield run, ","
            run = []
        run.append(word)
    yield run, "."


def clauses(text: str) -> list[Clause]:
    """Cut a text into clauses.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    list of Clause
        In the order of the text; empty when it holds no words.
    """
    found: list[Clause] = []
    sentence, first, quoted = 0, 0, False
    for run, end in _spans(tokens(text)):
        if run:
            stems = [stem(word) for word in run]
            recalled = any(a == "i" and b in _PAST_FORMS for a, b in pairwise(run))
            for part in _split(stems, list(_marks(stems))):
                part.sentence, part.quoted = sentence, quoted
                part.past = part.past or ((recalled or part.has(Kind.PAST)) and not part.has(Kind.NOW))
                found.append(part)
        if end == '"':
            quoted = not quoted
        if end in _ENDS:
            for clause in found[first:]:
                clause.question = end == "?"
            if len(found) > first:
                sentence, first = sentence + 1, len(found)
    return found


def _split(stems: list[str], marks: list[Mark]) -> Iterator[Clause]:
    """Part a stretch before connectives inside it, and name the connective that heads each part."""
    openers = [m.start for m in marks if m.start > 1 and any(kind in m.kinds for kind in _OPENERS)]
    moved = _left_behind(stems)
    cuts = sorted({0, moved, *(start for start in openers if stems[start - 1] not in _BOUND), len(stems)})
    if len(cuts) == 2:
        yield Clause(stems, marks, 0, opener=_opener(marks))
        return
    for start, end in pairwise(cuts):
        inside = [Mark(m.start - start, m.end - start, m.kinds) for m in marks if start <= m.start < end]
        yield Clause(stems[start:end], inside, 0, opener=_opener(inside), past=end == moved)


def _opener(marks: list[Mark]) -> Kind | None:
    """The connective among the first words."""
    return next((kind for m in marks if m.start <= 1 for kind in _OPENERS if kind in m.kinds), None)


def _left_behind(stems: list[str]) -> int:
    """Position of the new view in "moved from ... to ...", 0 if there is none."""
    if "from" not in stems or "to" not in stems or not _MOVING.intersection(stems):
        return 0
    return stems.index("to", stems.index("from")) if "to" in stems[stems.index("from") :] else 0
