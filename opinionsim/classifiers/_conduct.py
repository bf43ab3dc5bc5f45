"""Variables of conduct, in addition to stance: their definitions, and classifiers that read them by rules."""

from __future__ import annotations

import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from opinionsim.classifiers._base import Item, PlainClassifier, check_items
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Characters before a match in which a word can take it back.
_BEFORE = 12
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Variable(NamedTuple):
    """A variable of conduct."""

    definition: str
    """What the variable means, and what it describes."""
    question: str
    """The question to a judge, which answers with a point of :data:`NO_YES`."""
    found: tuple[str, ...]
    """Regular expressions; a sentence that matches one of them has the variable."""
    unless: tuple[str, ...]
    """Regular expressions that cancel a match."""


#: Scale of the variables of conduct: the mean of a group of texts is the share that has it.
NO_YES = OpinionScale((0, 1), ("no", "yes"))
#: The variables of conduct by name.
CONDUCT = {
    name: Variable(
        table["definition"].strip(), table["question"].strip(), *map(tuple, (table["found"], table["unless"]))
    )
    for name, table in tomllib.loads(Path(__file__).with_name("conduct.toml").read_text(encoding="utf-8")).items()
}


class _Rules(PlainClassifier, ABC):
    """A classifier that answers no or yes by rules.

    Parameters
    ----------
    scale : OpinionScale
        A scale of two points: no and yes.

    Raises
    ------
    SpecError
        If the scale does not have two points.
    """

    name: str

    def __init__(self, scale: OpinionScale | None = None) -> None:
        super().__init__(scale)
        if len(self.scale) != 2:
            raise SpecError(
                f"classifier {self.name!r} answers no or yes, so its scale needs two points, as in points: [0, 1], "
                f"labels: [no, yes]; an instrument of the variable {self.name!r} has it by default"
            )

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """The higher point for texts with the variable, the lower one for others, no answer for blank texts."""
        check_items(items, self)
        points = [self.scale.points[self._has(item)] if item.text.strip() else None for item in items]
        return OpinionEstimates.from_points(self.scale, points)

    @abstractmethod
    def _has(self, item: Item) -> bool: ...

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        """What the patterns find in a text and nothing takes back."""
        rules = CONDUCT[self.name]
        for sentence in _SENTENCE.split(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
            for match in chain.from_iterable(re.finditer(rule, sentence, re.IGNORECASE) for rule in rules.found):
                around = sentence[max(match.start() - _BEFORE, 0) : match.end()]
                if not any(re.search(rule, around, re.IGNORECASE) for rule in rules.unless):
                    yield match


@part("classifier", name="role-break")
class RoleBreakClassifier(_Rules):
    """Reads by rules whether the author leaves its role; see ``docs/classifiers.md`` for the definition.

    Parameters
    ----------
    scale : OpinionScale
        A scale of two points: no and yes.

    Raises
    ------
    SpecError
        If the scale does not have two points.
    """

    name = "role-break"

    def _has(self, item: Item) -> bool:
        from opinionsim.classifiers._lexicon_text import clauses

        return any(self._matches(item.text)) or any(clause.has("role") for clause in clauses(item.text))


@part("classifier", name="closed-world")
class ClosedWorldClassifier(_Rules):
    """Reads by rules whether the author cites a source other than its initial belief and the messages it received.

    A source does not count if a received message names it; for "studies show", the message must contain the word
    *studies*. Without context, every cited source counts.

    Parameters
    ----------
    scale : OpinionScale
        A scale of two points: no and yes.

    Raises
    ------
    SpecError
        If the scale does not have two points.
    """

    name = "closed-world"
    reads_context = True

    def _has(self, item: Item) -> bool:
        received = "\n".join(item.context.received).lower() if item.context else ""
        return any(match["source"].lower() not in received for match in self._matches(item.text))
