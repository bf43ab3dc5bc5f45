"""What a claim asserts, and whether a clause restates or contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from opinionsim.classifiers._lexicon_text import DATA, entries, stem, tokens

_WORLD = DATA["world"]
_WEAK = frozenset(stem(word) for word in DATA["plain"]["weak"].split())
_VERBS = frozenset("is are was were be has have had do does did can could will would should may must never not".split())
_NEGATIONS = frozenset("not never no without nor nobody nothing none hardly".split())
_ABOVE = frozenset(map(stem, "higher more above over".split()))
_BELOW = frozenset(map(stem, "lower less fewer below under".split()))


def _lines(table: str) -> list[list[str]]:
    return [[stem(word) for word in entries(line)] for line in table.splitlines() if line.strip()]


_SYNONYMS, _EXCLUSIVES = _lines(_WORLD["synonyms"]), _lines(_WORLD["exclusives"])
_OPPOSITES = [
    (_lines(left)[0], _lines(right)[0])
    for left, _, right in (line.partition("|") for line in _WORLD["opposites"].splitlines() if line.strip())
]


@dataclass(slots=True)
class ClaimView:
    """A claim as stems."""

    subject: set[str] = field(default_factory=set)
    words: dict[str, int] = field(default_factory=dict)
    """Words of the predicate and their signs: +1 in line with the claim, -1 against it, in a clause without negation."""
    core: set[str] = field(default_factory=set)
    """Words that by themselves say what the claim says, or the contrary."""
    numbers: dict[float, int] = field(default_factory=dict)
    above: int = 0
    """+1 where the claim says "more than" its number, -1 for "less than", 0 otherwise."""

    about: int = 1
    """Sign of the subject alone: -1 where the claim denies something or calls it invented."""

    def number(self, value: float) -> int:
        """The sign of a number in a text, 0 where it says nothing."""
        for stated, sign in self.numbers.items():
            if self.above:
                return 0 if value == stated else sign * (self.above if value > stated else -self.above)
            return sign if value == stated else -sign
        return 0

    def speaks_of(self, word: str) -> bool:
        """Whether a stem belongs to what the claim says, comparing words such as "more" aside."""
        return word in self.subject or (word in self.words and not (self.above and word in self.core))

    def content(self, words: Sequence[str], known: bool) -> tuple[int, float]:
        """What a clause says of the claim by its content.

        Parameters
        ----------
        words : sequence of str
            The stems of the clause.
        known : bool
            Whether the text names the subject elsewhere.

        Returns
        -------
        int
            +1 in line with the claim, -1 against it, 0 nothing.
        float
            How surely, in [0, 1].
        """
        votes, heart, negated = 0, False, 1
        counted = not self.above or any(word[0].isdigit() and word not in self.subject for word in words)
        for position, word in enumerate(words):
            if word in _NEGATIONS or (word == "than" and words[position - 1] == "rather"):
                negated = -negated
            elif word in ("and", "but"):
                negated = 1
            elif word in self.words and (counted or word not in self.core):
                heart = heart or word in self.core
                votes += negated * self.words[word] * (2 if word in self.core else 1)
            elif word[0].isdigit() and word not in self.subject:
                sign = self.number(float(word.replace(",", "")))
                heart, votes = heart or sign != 0, votes + 2 * sign * (1 if self.above else negated)
        named = not self.subject.isdisjoint(words)
        if not votes or not (named or known) or not (heart or named):
            return 0, 0.0
        return (1 if votes > 0 else -1), (0.4 + 0.3 * named + 0.3 * heart)


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
    words = [word for word in tokens(claim) if word[0].isalnum()]
    verb = next((at for at, word in enumerate(words) if at > 0 and word in _VERBS), 1 if len(words) > 1 else 0)
    view = ClaimView(subject={stem(word) for word in words[:verb]} - _WEAK)
    sign = 1
    for position in range(verb, len(words)):
        word, root = words[position], stem(words[position])
        if word in _NEGATIONS or (word == "than" and words[position - 1] == "rather"):
            sign = -sign
        elif word in ("and", "but"):
            sign = 1
        elif word[0].isdigit():
            view.numbers[float(word.replace(",", ""))] = sign
        elif root in _ABOVE | _BELOW:
            view.above = 1 if root in _ABOVE else -1
            view.words.setdefault(root, sign)
            view.core.add(root)
        elif root not in _WEAK or word == "possible":
            view.words.setdefault(root, sign)
    if not view.numbers:
        view.above = 0
    view.about = -1 if not _NEGATIONS.isdisjoint(words) or "conspiracy" in words else 1
    _extend(view)
    return view


def _extend(view: ClaimView) -> None:
    """Add synonyms, opposites and exclusives; words that have any, or the first, are the heart of the claim."""
    stated = dict(view.words)
    for word, sign in stated.items():
        for left, right in (*_OPPOSITES, *((right, left) for left, right in _OPPOSITES)):
            if word in left:
                view.core.add(word)
                _enter(view, left, sign)
                _enter(view, right, -sign)
        for line in _EXCLUSIVES:
            if word in line:
                view.core.add(word)
                _enter(view, line, -sign)
    if not view.core and not view.numbers:
        view.core.update(list(stated)[:1])
    for line in _SYNONYMS:
        for word in set(line) & stated.keys():
            for other in line:
                if other not in view.subject:
                    view.words.setdefault(other, stated[word])
                    view.core.update({other} if word in view.core else ())
        if view.subject & set(line):
            view.subject.update(other for other in line if other not in view.words)


def _enter(view: ClaimView, others: list[str], sign: int) -> None:
    for other in others:
        if other not in view.subject and other not in view.words:
            view.words[other] = sign
            view.core.add(other)
