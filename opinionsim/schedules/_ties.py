"""Changes of ties, and schedules on networks whose ties change at given steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from opinionsim.errors import ScheduleError
from opinionsim.schedules._turns import AnySchedule, Schedule, StaticSchedule, Turn


class TieChange(NamedTuple):
    """A listener has stopped following one agent, or follows another from then on, or both."""

    step: int
    """Step of the change, from 1; the new tie counts from the next step."""
    listener: int
    """The agent that changes its tie."""
    dropped: int | None
    """The agent it followed; None where a tie is added."""
    followed: int | None
    """The agent it follows now; None where a tie is removed."""


def tie_changes(schedule: AnySchedule) -> Sequence[TieChange]:
    """Changes of a schedule's network so far, in order of steps; none for a schedule with fixed ties.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        A schedule that is being or has been carried out, with or without probes around it.
    """
    changes: Sequence[TieChange] = getattr(schedule, "changes", ())
    return changes


class Phase(NamedTuple):
    """The schedule that holds from a step on, and the changes of ties that lead to it."""

    step: int
    """First step."""
    schedule: AnySchedule
    """A schedule of the whole run; its turns from `step` on are taken."""
    changes: tuple[TieChange, ...] = ()
    """Changes in the step before."""


def with_phases(schedule: AnySchedule, phases: Sequence[Phase]) -> AnySchedule:
    """A schedule that others take the place of, one after another.

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
        If one of the schedules decides its turns as it goes on. When turns are asked for: if a turn reads a message
        from before the change, which the schedule before it does not have.
    """
    return _Phased([Phase(0, schedule), *phases]) if phases else schedule


class _Phased(Schedule):
    """Schedules one after another; see :func:`with_phases`."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        first = phases[0].schedule
        self.n_agents, self.others, self.steps = first.n_agents, first.others, first.steps
        self.externals, self.needs, self.acts = first.externals, first.needs, first.acts
        self.changes = tuple(change for phase in phases for change in phase.changes)
        self._parts: list[tuple[int, StaticSchedule]] = []
        for step, schedule, _ in phases:
            if not isinstance(schedule, StaticSchedule):
                raise ScheduleError(
                    f"{type(schedule).__name__} decides its turns as it goes on; its ties cannot change"
                )
            self._parts.append((step, schedule))

    def turns(self) -> Iterator[Turn]:
        """The turns of each schedule from its step to the next one's, numbered anew."""
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
                        f"{type(schedule).__name__} cannot change its ties in the middle"
                    )
                reads = tuple(place[ref] if isinstance(ref, int) else ref for ref in turn.reads)
                place[turn.index] = index
                yield replace(turn, index=index, reads=reads)
                index += 1
