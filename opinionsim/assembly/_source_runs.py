"""Comparison of runs with the runs that they copy content from: texts that were read, and shared turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import call_seed
from opinionsim.schedules import AnySchedule, StaticSchedule, Turn
from opinionsim.specification import PlannedRun

#: The seed of a call of a run, by turn, call and attempt.
Seeds = Callable[[int, str, int], int]


def seeds_of_fork(planned: PlannedRun, schedule: AnySchedule, source: PlannedRun, theirs: AnySchedule) -> Seeds:
    """Seeds of the calls of a fork, which equal those of its source for every turn that both have.

    Two turns match if they have the same agent, act and step. If a step has several, the last ones match, because
    messages are shown at the beginning of a step. In a schedule that decides its turns during the run, turns with the
    same number match.

    Raises
    ------
    SpecError
        If turns before the fork differ from those of its source.
    """
    if not isinstance(schedule, StaticSchedule) or not isinstance(theirs, StaticSchedule):
        return partial(call_seed, source.run_id)
    own, others = list(schedule.turns()), list(theirs.turns())
    step = 0 if planned.spec.fork is None else planned.spec.fork.step
    for here, there in zip_longest(_before(own, step), _before(others, step)):
        if here != there:
            raise SpecError(f"fork: before step {step} its turns differ from run {source.run_id}: {here}, {there}")
    places: defaultdict[tuple[int, int, str], list[int]] = defaultdict(list)
    for turn in others:
        places[turn.step, turn.agent, turn.act].append(turn.index)
    same: dict[int, int] = {}
    for turn in reversed(own):
        if found := places[turn.step, turn.agent, turn.act]:
            same[turn.index] = found.pop()

    def seed(turn: int, call: str, attempt: int) -> int:
        run_id, place = (source.run_id, same[turn]) if turn in same else (planned.run_id, turn)
        return call_seed(run_id, place, call, attempt)

    return seed


def _before(turns: Sequence[Turn], step: int) -> list[Turn]:
    return [turn for turn in turns if turn.step < step]
