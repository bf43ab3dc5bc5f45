"""The assertion of a claim, for recognising clauses that restate or contradict it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from opinionsim.classifiers._lexicon_rules import WEAK_WORDS
from opinionsim.classifiers._lexicon_topics import EVALUATIONS, EXCLUSIVES, OPPOSITES, SYNONYMS
from opinionsim.classifiers._lexicon_words import entries, number, stem, tokens

_WEAK = frozenset(stem(word) for word in WEAK_WORDS.split())
_VERBS = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "be",
        "has",
        "have",
        "had",
        "do",
        "does",
        "did",
        "can",
        "could",
        "will",
        "would",
        "should",
        "may",
        "might",
        "must",
        "never",
        "not",
    ]
)
_ABOVE = frozenset(["higher", "more", "above", "over"])
_BELOW = frozenset(["lower", "less", "fewer", "below", "under"])
_PREPOSITIONS = frozenset(["for", "in", "at", "on", "to", "of", "when", "as"])
_NEGATIONS = frozenset(["not", "never", "no", "without", "nor"])


def _entry_stems(line: str) -> list[str]:
    return [stem(word) for word in entries(line)]


def _lines(table: str) -> list[list[str]]:
    return [_entry_stems(line) for line in table.splitlines() if line.strip()]


def _pairs(table: str) -> list[tuple[list[str], list[str]]]:
    """The lines of a table of contrasts, each as its two sides."""
    sides = ([_entry_stems(side) for side in line.split("|")] for line in table.splitlines() if line.strip())
    return [(left, right) for left, right in sides]


_SYNONYMS = _lines(SYNONYMS)
_EXCLUSIVES = _lines(EXCLUSIVES)
_EVALUATIONS = _pairs(EVALUATIONS)
_OPPOSITES = _pairs(OPPOSITES) + _EVALUATIONS
_EVALUATING = {
    word: sign for pair in reversed(_EVALUATIONS) for side, sign in zip(pair, (1, -1), strict=True) for word in side
}
_CORE = {word for pair in _OPPOSITES for side in pair for word in side} | {
    word for line in _EXCLUSIVES for word in line
}


@dataclass(frozen=True, slots=True)
class Word:
    """The meaning of a word for the claim, in a clause without negation."""

    sign: int
    """+1 in line with the claim, -1 against it."""
    rank: int
    """0 supports other words, 1 is the heart of the claim, 2 contradicts or answers it."""


@dataclass(slots=True)
class ClaimView:
    """A claim as sets of stems."""

    subject: set[str] = field(default_factory=set)
    words: dict[str, Word] = field(default_factory=dict)
    numbers: dict[float, int] = field(default_factory=dict)
    """Numbers the claim states, with their sign."""
    units: set[str] = field(default_factory=set)
    """Words for the things that the numbers count."""
    above: int = 0
    """+1 where the claim says "more than" its number, -1 for "less than", 0 otherwise."""
    rivals: bool = False
    """Whether the claim compares its subject with something else."""
    denial: bool = False
    """Whether the claim says that something is not so."""
    favour: int = 0
    """+1 where the claim speaks well of its subject or wants it, -1 where ill, 0 where it states a plain fact."""

    def number(self, value: float) -> Word | None:
        """The meaning of a number in a text for the claim."""
        for stated, sign in self.numbers.items():
            if value == stated:
                return Word(sign, 0 if self.above else 1)
            if self.above:
                return Word(sign * (self.above if value > stated else -self.above), 2)
            return Word(-sign, 2)
        return None


@lru_cache(maxsize=512)
def view_of(claim: str) -> ClaimView:
    """Read a claim; cached.

    Parameters
    ----------
    claim : str
        A clause without capital or full stop.

    Returns
    -------
    ClaimView
        Not to be changed.
    """
    words = tokens(claim)
    verb = _verb(words)
    view = ClaimView(subject={stem(word) for word in words[:verb]} - _WEAK)
    signs = _predicate(words, verb, view)
    view.favour = _favour(words, signs)
    view.denial = not _NEGATIONS.isdisjoint(words) and "and" not in words
    if "than" in words[verb:] and words[words.index("than") - 1] != "rather" and not view.numbers:
        _compare(words, verb, signs, view)
    first = next((word for word in signs if word not in _WEAK), None)
    for word, sign in signs.items():
        _add(view, word, sign, 1 if word in _CORE or word == first or view.rivals else 0)
    for word in list(view.subject):
        view.subject.update(other for line in _SYNONYMS if word in line for other in line if other not in view.words)
    return view


def _verb(words: list[str]) -> int:
    """Position of the predicate: the first known verb, else the first word with an opposite."""
    for position, word in enumerate(words):
        if word in _VERBS and position > 0:
            return position
    known = (position for position, word in enumerate(words) if position > 1 and stem(word) in _CORE)
    return next(known, 0)


def _predicate(words: list[str], verb: int, view: ClaimView) -> dict[str, int]:
    """Signs of the content words of the predicate; numbers go to the view."""
    signs: dict[str, int] = {}
    sign = 1
    for position in range(verb, len(words)):
        word = words[position]
        if word in _NEGATIONS or (word == "than" and words[position - 1] == "rather"):
            sign = -sign
        elif word in ("and", "but"):
            sign = 1
        elif (value := number(word)) is not None:
            view.numbers[value] = sign
            view.units.update(stem(unit) for unit in words[position + 1 : position + 2])
        elif word in _ABOVE or word in _BELOW:
            view.above = 1 if word in _ABOVE else -1
            signs[stem(word)] = sign
        elif stem(word) not in _WEAK and (word.isalpha() and len(word) > 1):
            signs.setdefault(stem(word), sign)
        elif word == "in" and "usa" in words:
            signs[word] = sign
    if not view.numbers:
        view.above = 0
    if "have" in words and words[words.index("have") + 1 :][:1] == ["to"]:
        signs["mandatory"] = -1 if "not" in words[: words.index("have")] else 1
    return signs


def _favour(words: list[str], signs: dict[str, int]) -> int:
    """Whether the claim is for or against its subject; a bare "should" is for it."""
    found = [sign * _EVALUATING[word] for word, sign in signs.items() if word in _EVALUATING]
    if found:
        return -1 if sum(sign < 0 for sign in found) % 2 else 1
    if "should" in words:
        return -1 if "not" in words else 1
    return 0


def _compare(words: list[str], verb: int, signs: dict[str, int], view: ClaimView) -> None:
    """Subject against rival: each speaks for its side, the comparing word for the direction."""
    than = words.index("than")
    view.rivals = True
    end = next((at for at in range(than + 2, len(words)) if words[at] in _PREPOSITIONS), len(words))
    rivals = {stem(word) for word in words[than + 1 : end]} - _WEAK
    view.subject, shared = view.subject - rivals, view.subject & rivals
    rivals -= shared
    for word in [word for word in signs if word not in _CORE]:
        del signs[word]
    signs.update(dict.fromkeys(sorted(view.subject), 1))
    signs.update(dict.fromkeys(sorted(rivals), -1))


def _add(view: ClaimView, word: str, sign: int, rank: int) -> None:
    """Enter a word with its synonyms and opposites."""
    if word not in _WEAK:
        view.words[word] = Word(sign, rank)
    for line in (*_SYNONYMS, *(side for pair in _OPPOSITES for side in pair)):
        if word in line:
            for other in line:
                if other not in view.subject and other not in _WEAK:
                    view.words.setdefault(other, Word(sign, rank))
    against = [pair[1 - side] for pair in _OPPOSITES for side in (0, 1) if word in pair[side]]
    against += [[other for other in line if other != word] for line in _EXCLUSIVES if word in line]
    for others in against:
        for other in others:
            if other not in view.subject:
                view.words.setdefault(other, Word(-sign, 2))
