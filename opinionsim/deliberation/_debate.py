"""Debates, in which two agents answer in turn and read each other's statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from opinionsim.deliberation._structure import Sequential
from opinionsim.registry import part
from opinionsim.schedules import Conflict, Setting


@part("interaction", name="debate")
class DebateInteraction(Sequential):
    """Two agents answer in turn, and each sees the last statements, with its own marked as its own.

    After Plurals (Ashkinaze et al. 2025).
    """

    instructed = "debate"
    labelling = "you-other"
    moderated = "named"
    member_name = "Debater {number}"
    smallest: ClassVar[int] = 2

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, which must be two."""
        if size != 2:
            yield ("kind",), f"a debate is between exactly 2 agents; got {size}"
        yield from super().conflicts(size)

    def orders(self, setting: Setting) -> Iterator[tuple[int, list[int]]]:
        """Each cycle, with the two agents in the order of the first cycle, so that they alternate."""
        first: list[int] = []
        for cycle, order in super().orders(setting):
            first = first or order
            yield cycle, first
