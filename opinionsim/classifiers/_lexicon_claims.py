"""What a claim asserts, and whether a clause restates or contradicts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from opinionsim.classifiers._lexicon_text import DATA, WORDS, entries, stem, tokens

_SYNONYMS = [{stem(word) for word in entries(line)} for line in DATA["world"]["synonyms"].splitlines()]
_CONTRASTS: list[tuple[set[str], set[str]]] = []
for _line in DATA["world"]["contrasts"].splitlines():
    _sides = [{stem(word) for word in entries(side)} for side in _line.split("|")]
    _CONTRASTS += [(_sides[0], _sides[-1]), (_sides[-1], _sides[0])]


@dataclass(slots=True)
class ClaimView:
    """A claim as stems."""

    subject: set[str]
    words: dict[str, int] = field(default_factory=dict)
    """Words of the predicate with signs: +1 in line with the claim, -1 against it, in a clause without negation."""
    core: set[str] = field(default_factory=set)
    """Words that by themselves say what the claim says, or the contrary."""
    numbers: dict[float, int] = field(default_factory=dict)
    above: int = 0
    """+1 where the claim says "more than" its number, -1 for "less than", 0 otherwise."""
    about: int = 1
    """Sign of the subject alone: -1 where the claim denies something or calls it invented."""

    def number(self, value: float) -> int:
        """The sign of a number in a text; 0 if the number says nothing about the claim."""
        for stated, sign in self.numbers.items():
            if self.above:
                return 0 if value == stated else sign * (self.above if value > stated else -self.above)
            return sign if value == stated else -sign
        return 0

    def speaks_of(self, word: str) -> bool:
        """Whether a stem belongs to what the claim says, except for comparing words such as "more"."""
        return word in self.subject or (word in self.words and not (self.above and word in self.core))

    def content(self, words: Sequence[str], known: bool) -> tuple[int, float]:
        """What the content of a clause says about the claim.

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
            How certain this is, in [0, 1].
        """
        digits = [word for word in words if word[0].isdecimal()]
        if not digits and "xclaim" not in words and self.words.keys().isdisjoint(words):
            return 0, 0.0
        votes, heart = 0, False
        counted = not self.above or not self.subject.issuperset(digits)
        for word, sign in _signed(words):
            if word == "xclaim":
                heart, votes = True, votes + 3 * sign
            elif word in self.words and (counted or word not in self.core):
                heart = heart or word in self.core
                votes += sign * self.words[word] * (2 if word in self.core else 1)
            elif word[0].isdecimal() and word not in self.subject:
                side = self.number(float(word.replace(",", "")))
                heart, votes = heart or side != 0, votes + 2 * side * (1 if self.above else sign)
        named = "xclaim" in words or not self.subject.isdisjoint(words)
        if not votes or not (named or (known and heart)):
            return 0, 0.0
        return (1 if votes > 0 else -1), (0.4 + 0.3 * named + 0.3 * heart)


def _signed(words: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each stem that denies nothing, with -1 after an odd number of denials since the last "and", else +1."""
    sign = 1
    for before, word in zip(["", *words], words, strict=False):
        if word in WORDS["negations"] or (word == "than" and before == "rather"):
            sign = -sign
        elif word in ("and", "but"):
            sign = 1
        else:
            yield word, sign


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
    verb = next((at for at, word in enumerate(words) if at > 0 and word in WORDS["verbs"]), min(1, len(words)))
    view = ClaimView({stem(word) for word in words[:verb]} - WORDS["weak"])
    view.about = -1 if not WORDS["negations"].isdisjoint(words) else 1
    for word, sign in _signed([stem(word) for word in words[verb:]]):
        if word[0].isdecimal():
            view.numbers[float(word.replace(",", ""))] = sign
        elif word not in view.subject | WORDS["weak"]:
            view.words.setdefault(word, sign)
    view.above = bool(view.numbers) * (WORDS["below"].isdisjoint(words) - WORDS["above"].isdisjoint(words))
    _extend(view)
    return view


def _extend(view: ClaimView) -> None:
    """Add synonyms and contrasts; words that have any, or the first, are the heart of the claim."""
    stated = dict(view.words)
    for word, sign in stated.items():
        for same, contrary in _CONTRASTS:
            if word in same:
                view.core |= same | contrary
                view.words = dict.fromkeys(same, sign) | dict.fromkeys(contrary, -sign) | view.words
    if not view.core and not view.numbers:
        view.core.update(list(stated)[:1])
    for line in _SYNONYMS:
        for word in stated.keys() & line:
            view.words = dict.fromkeys(line, stated[word]) | view.words
            view.core |= line if word in view.core else set()
        view.subject |= line - view.words.keys() if view.subject & line else set()
    view.words = {word: sign for word, sign in view.words.items() if word not in view.subject}
