"""The classifier of stated answers, which reads the answer on a line that announces it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from opinionsim.classifiers._base import Item, PlainClassifier, check_items
from opinionsim.classifiers._closed import parse_closed
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part


@part("classifier", name="stated")
class StatedClassifier(PlainClassifier):
    """Reads the point of the scale that a text states on a separate line, such as ``Verdict: accepted``.

    The rest of the line must name one point, by its number or its exact verbal anchor
    (:func:`opinionsim.classifiers.parse_closed`). A text without such a line, or with contradictory lines, gives no
    answer; the classifier never guesses.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2 to 2.
    after : str
        Words at the beginning of the line, in upper or lower case; default ``Answer``.

    Raises
    ------
    SpecError
        If `after` is blank.
    """

    name = "stated"

    def __init__(self, scale: OpinionScale | None = None, after: str = "Answer") -> None:
        if not isinstance(after, str) or not after.strip():
            raise SpecError(f"classifier 'stated': after must be the words at the beginning of a line; got {after!r}")
        super().__init__(scale)
        self.after = after.strip()
        words = r"\s+".join(map(re.escape, self.after.split()))
        self._line = re.compile(rf"^\W*{words}\b\W*?[:=\-\s]\W*(.+)$", re.IGNORECASE | re.MULTILINE)

    @property
    def options(self) -> dict[str, Any]:
        """The words that the line begins with."""
        return {"after": self.after}

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """The point that each text states, with probability 1; no opinion if it states none."""
        check_items(items, self)
        stated = [{parse_closed(line, self.scale) for line in self._line.findall(item.text)} for item in items]
        return OpinionEstimates.from_points(self.scale, [each.pop() if len(each) == 1 else None for each in stated])
