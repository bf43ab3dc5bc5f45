"""Schedules on networks whose ties change at given steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from opinionsim.errors import ScheduleError
from opinionsim.schedules._turns import AnySchedule, StaticSchedule, TieChange, Turn, called
from opinionsim.schedules._wrapped import Wrapped


class Phase(NamedTuple):
    """The schedule that applies from a step on, and the changes of ties that lead to it."""

    step: int
    """First step."""
    schedule: AnySchedule
    """A schedule of the whole run, of which the turns from `step` on count."""
    changes: tuple[TieChange, ...] = ()
    """Changes in the step before."""


def with_phases(schedule: AnySchedule, phases: Sequence[Phase]) -> AnySchedule:
    """Replace a schedule by others, one after another.

    Parameters
    ----------
    schedule : StaticSchedule
        The schedule from the first step on.
    phases : sequence of Phase
        In ascending order of steps.

    Returns
    -------
    StaticSchedule
        The schedule itself if there are no phases.

    Raises
    ------
    ScheduleError
        If one of the schedules is adaptive; or, when turns are generated, if a turn reads a message from before the
        change that the earlier schedule does not have.
    """
    return _Phased([Phase(0, schedule), *phases]) if phases else schedule


class _Phased(Wrapped):
    """Schedules one after another with the same declarations; see :func:`with_phases`."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        super().__init__(phases[0].schedule)
        self._changes = tuple(change for phase in phases for change in phase.changes)
        self._parts: list[tuple[int, StaticSchedule]] = []
        for step, schedule, _ in phases:
            if not isinstance(schedule, StaticSchedule):
                raise ScheduleError(f"{called(schedule)} decides its turns during the run, so its ties cannot change")
            self._parts.append((step, schedule))

    @property
    def changes(self) -> Sequence[TieChange]:  # type: ignore[override]
        """Changes of the network between the phases."""
        return self._changes

    def turns(self) -> Iterator[Turn]:
        """The turns of each schedule from its first step until the next schedule begins, renumbered."""
        index = 0
        ends = [step for step, _ in self._parts[1:]] + [self.steps + 1]
        for (start, schedule), end in zip(self._parts, ends, strict=True):
            place: dict[int, int] = {}
            for turn in schedule.turns():
                if turn.step >= end:
                    break
                if turn.step < start:
                    continue
                if any(isinstance(ref, int) and ref not in place for ref in turn.reads):
                    raise ScheduleError(
                        f"a turn of step {turn.step} reads one from before step {start}, where ties change; "
                        f"{called(schedule)} cannot change its ties in the middle"
                    )
                reads = tuple(place[ref] if isinstance(ref, int) else ref for ref in turn.reads)
                place[turn.index] = index
                yield replace(turn, index=index, reads=reads)
                index += 1
