"""Forms: how people answer where models answer in free text, and how answers are recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from opinionsim.errors import SpecError

#: Kinds of forms: free text; options put in an order, ties allowed; a number for each of several items; one of several
#: options; and what a person wants out of turn, which is answered at once and never waited for.
Kind = Literal["text", "ranking", "ratings", "choice", "signal"]


@dataclass(frozen=True, slots=True)
class Form:
    """How a person answers an act.

    Attributes
    ----------
    kind : str
        ``text``, ``ranking``, ``ratings``, ``choice`` or ``signal``.
    items : tuple of str
        Labels of the items to rank; names of the items to rate; for a choice, the recorded text of each option.
    shown : tuple of str
        A text next to each item; `items` if empty.
    points : tuple of int
        Numbers that a rating can have, ascending.
    labels : tuple of tuple of str
        For each item, what each of these numbers means; empty for a number that has no label.
    words, min_words : int or None
        Maximum and minimum number of words of a text; None for no limit.
    optional : bool
        Whether an empty answer is valid.
    place : str
        Place of the question among similar ones, as in ``statement 3 of 8``; empty for a single question.
    """

    kind: Kind = "text"
    items: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    points: tuple[int, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    words: int | None = None
    optional: bool = False
    min_words: int | None = None
    place: str = ""

    def as_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as JSON values."""
        stated = {name: value for name, value in asdict(self).items() if value != getattr(TEXT, name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in stated.items()}

    @classmethod
    def of_json(cls, stated: Mapping[str, Any]) -> Form:
        """Restore a form from the fields of :meth:`as_json`."""

        def fixed(value: Any) -> Any:
            return tuple(map(fixed, value)) if isinstance(value, list) else value

        return cls(**{name: fixed(value) for name, value in stated.items()})

    def written(self, given: str | Sequence[str] | Mapping[str, str]) -> str:
        """The text that stands for an answer, as the act's `parse` reads it.

        Parameters
        ----------
        given : str, sequence of str or mapping of str to str
            A text or the item chosen; for a ranking, the place of each item, in the order of `items`, equal for a
            tie; for ratings the number of each item by its name.

        Raises
        ------
        SpecError
            If something is missing or is not among the choices.
        """
        if self.kind == "ranking":
            return self._ranking([given] if isinstance(given, str) else list(given))
        if self.kind == "ratings":
            return self._ratings(given if isinstance(given, Mapping) else {})
        text = given if isinstance(given, str) else ""
        if self.kind == "choice" and text not in self.items and not (self.optional and not text):
            raise SpecError(f"choose one of: {', '.join(self.items)}")
        if not text.strip() and not self.optional:
            raise SpecError("there is no text to send")
        n = len(text.split())
        if self.words is not None and n > self.words:
            raise SpecError(f"the text has {n} words; at most {self.words} are possible")
        if n < (self.min_words or 0):
            raise SpecError(f"the text has {n} {'word' if n == 1 else 'words'}; at least {self.min_words} are needed")
        return text

    def limited(self, words: int | None, min_words: int | None, place: str) -> Form:
        """Return the form with the limits of a seat for texts, and the place of a question."""
        if self.kind != "text":
            return replace(self, place=place)
        most = min((each for each in (words, self.words) if each is not None), default=None)
        return replace(self, words=most, min_words=None if self.optional else min_words, place=place)

    @property
    def length(self) -> str:
        """How long a text may be, in words; empty without a limit."""
        if self.min_words is None:
            return "" if self.words is None else f"at most {self.words} words"
        return f"at least {self.min_words} words" if self.words is None else f"{self.min_words} to {self.words} words"

    def typed(self, line: str) -> str:
        """Like :meth:`written`, for an answer on one line: a ranking as ``B > A = C``, a choice by number from 1."""
        if self.kind == "ranking":
            groups = [group.split("=") for group in line.upper().split(">")]
            places = {label.strip(): str(place) for place, group in enumerate(groups, 1) for label in group}
            return self.written([places.get(label, "") for label in self.items])
        if self.kind == "choice":
            return self.written({str(number): item for number, item in enumerate(self.items, 1)}.get(line, line))
        return self.written(line)

    def _ranking(self, places: Sequence[str]) -> str:
        if len(places) != len(self.items) or not all(re.fullmatch("[0-9]{1,3}", place) for place in places):
            raise SpecError(f"give each of {', '.join(self.items)} a place, 1 for the best")
        groups: dict[int, list[str]] = {}
        for item, place in zip(self.items, places, strict=True):
            groups.setdefault(int(place), []).append(item)
        return " > ".join(" = ".join(groups[place]) for place in sorted(groups))

    def _ratings(self, given: Mapping[str, str]) -> str:
        valid = [str(point) for point in self.points]
        if missing := [item for item in self.items if given.get(item) not in valid]:
            raise SpecError(f"{missing[0]}: choose a number from {valid[0]} to {valid[-1]}")
        return "\n".join(f"{item}: {given[item]}" for item in self.items)


#: Free text.
TEXT = Form()
