"""The state of an experiment that is being run, as one look at its store finds it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from opinionsim.store import DesignRow, ExperimentRun, Paid, find_design, open_store
from opinionsim.watching._runs import (
    Reason,
    Replies,
    count_states,
    reasons,
    replies_of,
    spelled,
    state_of,
    states_of,
)

if TYPE_CHECKING:
    from opinionsim.store import Doing, RunState, StoreReader

#: Seconds over which calls are counted for their rate, and least time before a rate is given.
_MINUTE_S, _LEAST_S = 60.0, 2.0


class OpenRun(NamedTuple):
    """A run that has begun and has not ended, or to which opinions are being added."""

    row: int  # its number
    state: str  # "under way", "cut off", or "complete" while it is being coded
    calls: int  # replies on record
    expected: int | None  # expected calls in all
    cell: str  # conditions, and the replicate if there are several
    last_reply_s: float | None  # seconds since its last reply


@dataclass(frozen=True)
class Seen:
    """An experiment at one moment."""

    at: float  # Unix time
    store: str
    experiment: str = ""  # empty while no experiment is on record
    counts: Mapping[str, int] = field(default_factory=dict)  # runs by state
    open: tuple[OpenRun, ...] = ()  # runs under way, then those that were cut off
    calls: int = 0  # replies on record
    expected: int = 0  # expected calls; 0 where none are expected or it is not known
    rate: float | None = None  # calls a second over the last minute
    left_s: float | None = None  # seconds until all runs have ended, at this rate
    paid: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)  # amounts used, and their limits
    reasons: tuple[Reason, ...] = ()  # why runs are not complete, or what is wrong with complete ones
    doing: tuple[Doing, ...] = ()  # of the processes at work on the store, for any experiment
    last_reply_s: float | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a process is carrying a run out, or adding opinions to one."""
        return any(run.state != "cut off" for run in self.open)

    @property
    def over(self) -> bool:
        """Whether all runs have ended, and nothing is being added."""
        ended = sum(self.counts.get(state, 0) for state in ("complete", "incomplete", "withdrawn"))
        return 0 < ended == sum(self.counts.values()) and not self.is_under_way


def look_at(url: str, experiment: str | None = None) -> Seen:
    """An experiment of a store as it is now.

    Parameters
    ----------
    url : str
        Address of the store. It is opened for each look: a file that is gone, or another one under its name, is seen at
        once.
    experiment : str, optional
        Name or identity of the experiment; default the one run last.

    Raises
    ------
    StoreError
        If the store cannot be read, or has no such experiment.
    """
    with open_store(url, write=False) as store:
        if not store.designs():
            return Seen(time.time(), spelled(url))
        design, designs = find_design(store, experiment)
        with store.moment() as moment:
            seen = look(moment, design)
        if len(designs) == 1:
            return seen
        return replace(seen, experiment=f"{design.name}, design {design.design} of {len(designs)}")


def look(store: StoreReader, design: DesignRow) -> Seen:
    """A design of an experiment as it is now.

    Raises
    ------
    StoreError
        If a run is not registered.
    """
    states, now = states_of(store, design), time.time()
    alive = store.under_way(states)
    replies = {run_id: Replies() for run_id in states} | replies_of(store, states, now - _MINUTE_S)
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
    waited = [_since(own.last_at, now) for own in replies.values() if own.last_at is not None]
    open_runs = _open_runs(design.rows, states, alive, replies, now)
    return Seen(
        at=now,
        store=spelled(store.url),
        experiment=design.name,
        counts=count_states(states, alive),
        open=open_runs,
        calls=sum(calls.values()),
        expected=0 if any(state.expected is None for state in states.values()) else sum(needed.values()),
        rate=rate,
        left_s=to_come / rate if rate and to_come else None,
        paid=_paid(store, design),
        reasons=tuple(reasons((state.error, state.cause) for state in states.values() if state.error)),
        doing=tuple(store.doing()),
        last_reply_s=min(waited, default=None),
    )


def _paid(store: StoreReader, design: DesignRow) -> dict[str, tuple[float, float | None]]:
    """Usage of an experiment, with forgotten calls, and the limits of its budget."""
    paid = store.spending().get(design.experiment_id, Paid())
    budget = dict(design.spec.get("execution") or {}).get("budget") or {}
    used = {"calls": paid.calls, "tokens": paid.input_tokens + paid.output_tokens, "money": paid.cost}
    return {name: (amount, budget.get(name)) for name, amount in used.items()}


def _since(moment: float, now: float) -> float:
    """Seconds since a moment, which another machine's clock may put later than now."""
    return max(0.0, now - moment)


def _open_runs(
    cells: Sequence[ExperimentRun],
    states: Mapping[str, RunState],
    alive: Collection[str],
    replies: Mapping[str, Replies],
    now: float,
) -> tuple[OpenRun, ...]:
    """Runs under way, those without a reply last, then runs that were cut off."""
    found: dict[str, OpenRun] = {}
    several = len({cell.replicate for cell in cells}) > 1
    for row, cell in enumerate(cells):
        run_id, state, own = cell.run_id, states[cell.run_id], replies[cell.run_id]
        if run_id not in found and (state.status == "running" or run_id in alive):
            name = f"{_conditions(cell)}{f', replicate {cell.replicate}' if several else ''}"
            waited = None if own.last_at is None else _since(own.last_at, now)
            found[run_id] = OpenRun(row, state_of(run_id, state, alive), own.number, state.expected, name, waited)
    return tuple(sorted(found.values(), key=lambda run: (run.state == "cut off", not run.calls, run.row)))


def _conditions(cell: ExperimentRun) -> str:
    """Values of the swept axes; the label of the cell where these are not plain, or nothing is swept."""
    values = list(cell.axes.values())
    if not values or any(isinstance(value, dict | list) for value in values):
        return cell.cell
    return ", ".join(str(value) for value in values)
