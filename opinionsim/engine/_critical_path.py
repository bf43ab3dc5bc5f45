"""Largest possible speed-up of a schedule, computed before its first call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opinionsim.schedules import ActSpec, StaticSchedule


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Largest possible speed-up of a static schedule, in units of one call's latency.

    Attributes
    ----------
    length : int
        Number of calls on the longest chain of dependent calls. No order of execution is faster.
    calls : int
        Number of calls, which is the time of a sequential execution.
    peak_width : int
        Maximum number of calls in flight at a time if every call starts as early as it can.
    """

    length: int
    calls: int
    peak_width: int

    @property
    def mean_width(self) -> float:
        """`calls` / `length`: the largest possible speed-up, and the mean number of calls in flight."""
        return self.calls / self.length if self.length else 0.0


def critical_path(
    schedule: StaticSchedule,
    *,
    calls_per_event: int | Sequence[int] = 0,
    acts: Callable[[int], Mapping[str, ActSpec]] | None = None,
    begins: int = 0,
    unread: Collection[int] = (),
) -> CriticalPath:
    """Critical path and width of a schedule.

    Parameters
    ----------
    schedule : StaticSchedule
        A schedule whose turns are known in advance.
    calls_per_event : int or sequence of int
        Number of calls to remember a turn, for each member of the cast or for all: 0 for cumulative memory, 1 for
        reflective memory.
    acts : callable, optional
        Takes a member of the cast and returns the acts as it carries them out; default the acts of the schedule.
    begins : int
        The first step whose turns make calls.
    unread : collection of int
        Turns that no later turn remembers, and which therefore need no call to remember.

    Returns
    -------
    CriticalPath
        In calls of unit latency. Draws of one turn run in parallel, followed by the call that judges them.
    """
    published: list[int] = []
    busy_until: dict[int, int] = {}
    starts: list[int] = []
    widths: list[int] = []
    for turn in schedule.turns():
        if turn.step < begins:
            published.append(0)
            continue
        spec = (schedule.acts if acts is None else acts(turn.agent))[turn.act]
        start = max((published[ref] for ref in turn.reads if isinstance(ref, int)), default=0)
        if spec.memory != "none":
            start = max(start, busy_until.get(turn.agent, 0))
        starts += [start] * bool(spec.draws)
        widths += [spec.draws] * bool(spec.draws)
        judged = spec.calls - spec.draws
        starts += [start + 1] * judged
        widths += [1] * judged
        end = start + min(spec.draws, 1) + judged
        published.append(end)
        if spec.memory == "keep" and turn.index not in unread:
            after = calls_per_event[turn.agent] if isinstance(calls_per_event, Sequence) else calls_per_event
            busy_until[turn.agent] = end + after
            starts += range(end, end + after)
            widths += [1] * after
    if not starts:
        return CriticalPath(0, 0, 0)
    in_flight = np.bincount(starts, weights=widths)
    return CriticalPath(len(in_flight), int(in_flight.sum()), int(in_flight.max()))
