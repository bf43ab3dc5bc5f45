"""The state of an experiment in its store at one moment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opinionsim.store import Paid
from opinionsim.watching import _run_states as run_states

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, Doing, RunState, StoreReader

#: Seconds over which calls are counted for their rate, and least time before a rate is given.
_MINUTE_S, _LEAST_S = 60.0, 2.0


@dataclass(frozen=True)
class Seen:
    """A design of an experiment at one moment."""

    design: DesignRow
    states: Mapping[str, RunState]  # by run id
    alive: frozenset[str]  # ids of the runs that a process is carrying out, or adding opinions to
    calls: int  # stored replies
    steps: Mapping[str, tuple[int, int]]  # the step that each run alive has come to, and of how many, by run id
    counts: Mapping[str, int]  # runs by state
    expected: int  # expected calls; 0 where none are expected or it is not known
    rate: float | None  # calls a second over the last minute
    left_s: float | None  # seconds until all runs have ended, at this rate
    paid: Mapping[str, tuple[float, float | None]]  # amounts used, and their limits
    doing: tuple[Doing, ...]  # of the processes at work on the store, for any experiment

    @property
    def reasons(self) -> list[run_states.Reason]:
        """Why runs are not complete, or what is wrong with complete runs."""
        return run_states.reasons((state.error, state.cause) for state in self.states.values() if state.error)

    @property
    def over(self) -> bool:
        """Whether all runs have ended and nothing is being added."""
        ended = sum(self.counts[state] for state in ("complete", "incomplete", "withdrawn"))
        return 0 < ended == sum(self.counts.values()) and not self.alive

    def state(self, run_id: str) -> str:
        """The state of a run, one of :data:`STATES`."""
        return run_states.state_of(run_id, self.states[run_id], self.alive)


def look(store: StoreReader, design: DesignRow) -> Seen:
    """Current state of a design of an experiment.

    Raises
    ------
    StoreError
        If a run is not registered.
    """
    states, now = run_states.states_of(store, design), time.time()
    alive = store.under_way(states)
    replies = {run_id: run_states.Replies() for run_id in states} | run_states.replies_of(
        store, states, now - _MINUTE_S
    )
    calls = {run_id: own.number for run_id, own in replies.items()}
    # A complete run needs no more calls than it has; any other run needs the expected calls, if these are more.
    needed = {
        run_id: calls[run_id] if state.status == "complete" else max(state.expected or 0, calls[run_id])
        for run_id, state in states.items()
    }
    # Incomplete runs are tried again by the next invocation, not by this one.
    awaited = [run_id for run_id, state in states.items() if state.status in ("pending", "running")]
    to_come = sum(needed[run_id] - calls[run_id] for run_id in awaited)
    counted_s = now - min((own.recent_from for own in replies.values() if own.recent_from is not None), default=now)
    recent = sum(own.recent for own in replies.values())
    rate = recent / counted_s if alive and counted_s >= _LEAST_S else None
    return Seen(
        design=design,
        states=states,
        alive=frozenset(alive),
        calls=sum(calls.values()),
        steps=run_states.steps_of(store, alive),
        counts=run_states.count_states(states, alive),
        expected=0 if any(state.expected is None for state in states.values()) else sum(needed.values()),
        rate=rate,
        left_s=to_come / rate if rate and to_come else None,
        paid=_paid(store, design),
        doing=tuple(store.doing()),
    )


def _paid(store: StoreReader, design: DesignRow) -> dict[str, tuple[float, float | None]]:
    """Usage of an experiment, with forgotten calls, and the limits of its budget."""
    paid = store.spending().get(design.experiment_id, Paid())
    budget = dict(design.spec.get("execution") or {}).get("budget") or {}
    used = {"calls": paid.calls, "tokens": paid.input_tokens + paid.output_tokens, "money": paid.cost}
    return {name: (amount, budget.get(name)) for name, amount in used.items()}
