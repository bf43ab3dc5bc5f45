"""The state of an experiment that is being run, from repeated looks at its store."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opinionsim.cli._reasons import Reason, reasons
from opinionsim.cli._stores import (
    Replies,
    canaries_paid,
    cells_of,
    count_states,
    replies_of,
    row_of,
    spelled,
    state_of,
    states_of,
)
from opinionsim.errors import StoreError
from opinionsim.store import DesignRow, ExperimentRun, OpinionRow, TurnRow, open_store, shown

if TYPE_CHECKING:
    from opinionsim.store import AgentRow, InstrumentRow, RunState, Store

#: Seconds over which calls are counted for their rate, and least time before a rate is given.
_MINUTE_S, _LEAST_S = 60.0, 2.0
#: Seconds between looks at designs and spending. These looks take longer the larger a store is: the next one waits at
#: least this many times as long as the last one took.
_SELDOM_S, _REST = 5.0, 50


class OpenRun(NamedTuple):
    """A run that has begun and has not ended, or to which opinions are being added."""

    row: int  # its number
    state: str  # "under way", "cut off", or "complete" while it is being coded
    calls: int  # replies on record
    expected: int | None  # expected calls in all
    cell: str  # conditions, and the replicate if there are several
    last_reply_s: float | None  # seconds since its last reply


class Amount(NamedTuple):
    """An amount used, with forgotten calls and canary questions, and its limit."""

    used: float
    limit: float | None


class Line(NamedTuple):
    """The opinions of one agent."""

    name: str
    assigned: float | None  # initial opinion
    values: tuple[float, ...]  # last measured opinion at the end of each step on record; NaN before the first


class Trajectory(NamedTuple):
    """The opinions of one run, as far as they are on record."""

    row: int  # number of the run
    what: str  # variable, classifier and kind of evidence
    low: float  # ends of the scale
    high: float
    first: int  # first and last step on record; `last` is less than `first` where there is none
    last: int
    lines: tuple[Line, ...]  # one a participant; empty where nothing is measured


@dataclass(frozen=True)
class Seen:
    """An experiment at one moment; while its store is away, most fields keep their last values."""

    at: float  # Unix time
    store: str
    experiment: str = ""  # empty while no experiment is on record
    design: int = 1  # the one that was run last
    designs: int = 1
    counts: Mapping[str, int] = field(default_factory=dict)  # runs by state
    open: tuple[OpenRun, ...] = ()  # runs under way, then those that were cut off
    calls: int = 0  # replies on record, and expected calls; both 0 where none are expected or it is not known
    expected: int = 0
    rate: float | None = None  # calls a second over the last minute
    left_s: float | None = None  # seconds until all runs have ended, at this rate
    paid: Mapping[str, Amount] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()  # why runs are not complete, or what is wrong with complete ones
    doing: tuple[str, ...] = ()  # reports of the processes at work on the store, for any experiment
    last_reply_s: float | None = None
    trajectory: Trajectory | None = None  # opinions of one run
    elsewhere: tuple[str, ...] = ()  # other experiments of the store that are being run
    away: str = ""  # why the store cannot be read now

    @property
    def is_under_way(self) -> bool:
        """Whether a process is carrying a run out, or adding opinions to one."""
        return any(run.state != "cut off" for run in self.open)

    @property
    def over(self) -> bool:
        """Whether all runs have ended, and nothing is being added."""
        ended = self.counts.get("complete", 0) + self.counts.get("incomplete", 0)
        return 0 < ended == sum(self.counts.values()) and not self.is_under_way and not self.away


class Watcher:
    """Looks at an experiment of a store: by name or id, by default the one run last.

    Opinions are gathered of one run: by number or beginning of its id, by default the first under way.
    """

    def __init__(self, url: str, experiment: str | None = None, run: str | None = None) -> None:
        self._url, self._experiment, self._run = url, experiment, run
        self._last = Seen(time.time(), spelled(url))
        self._store: Store | None = self._opened()

    def _opened(self) -> Store:
        """Open the store and forget all that was known of it."""
        self._identity = _identity(self._url)
        self._designs: list[DesignRow] = []
        self._seldom_due = -math.inf
        self._alive = False
        self._counted: dict[str, tuple[RunState, bool]] = {}
        self._replies: dict[str, Replies] = {}
        #: Moments, and replies on record by then.
        self._history: deque[tuple[float, int]] = deque()
        self._gathering: Gathering | None = None
        return open_store(self._url, write=False)

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def look(self) -> Seen:
        """The experiment as it is now; a store that cannot be read for a while is reported as away.

        Raises
        ------
        StoreError
            If there is no such experiment, or the file is damaged or not a store of this package any more.
        SpecError
            If there is no such run.
        """
        now = time.time()
        try:
            # Without this check, a file that was replaced would still be read through its open handle.
            if _identity(self._url) != self._identity:
                self.close()
            self._store = self._store or self._opened()
            self._last = self._look(self._store, now)
        except StoreError as error:
            self.close()
            # Damage stays; a server that is down, or a disk that is gone, may come back.
            if error.__cause__ is None and _identity(self._url) is not None:
                raise
            before = self._last
            waited = None if before.last_reply_s is None else before.last_reply_s + now - before.at
            self._last = replace(before, at=now, away=str(error), last_reply_s=waited)
        return self._last

    def _look(self, store: Store, now: float) -> Seen:
        if time.monotonic() >= self._seldom_due or not self._designs:
            self._look_seldom(store)
        if not self._designs:
            return Seen(now, spelled(self._url))
        design = self._designs[-1]
        cells = cells_of(design)
        states = states_of(store, design)
        alive = store.under_way(states)
        if self._alive and not alive:
            # The last run has ended: show the final spending at once.
            self._paid = _paid(store, design)
        self._alive = bool(alive)
        rate = self._rate(store, states, alive, now)
        calls = {run_id: own.number for run_id, own in self._replies.items()}
        # A complete run needs no more calls than it has; any other run needs the expected calls, if these are more.
        needed = {
            run_id: calls[run_id] if state.status == "complete" else max(state.expected or 0, calls[run_id])
            for run_id, state in states.items()
        }
        expected = 0 if any(state.expected is None for state in states.values()) else sum(needed.values())
        # Incomplete runs are tried again by the next invocation, not by this one.
        awaited = [run_id for run_id, state in states.items() if state.status in ("pending", "running")]
        to_come = sum(needed[run_id] - calls[run_id] for run_id in awaited)
        last_at = max((own.last_at for own in self._replies.values() if own.last_at is not None), default=None)
        open_runs = _open_runs(cells, states, alive, self._replies, now)
        return Seen(
            at=now,
            store=spelled(self._url),
            experiment=design.name,
            design=design.design,
            designs=len(self._designs),
            counts=count_states(states, alive),
            open=open_runs,
            calls=sum(calls.values()) if expected else 0,
            expected=expected,
            rate=rate,
            left_s=to_come / rate if alive and rate and to_come else None,
            paid=self._paid,
            reasons=tuple(reasons(state.error for state in states.values() if state.error)),
            doing=tuple(store.doing()),
            last_reply_s=_since(last_at, now),
            trajectory=self._trajectory(store, design, states, open_runs),
            elsewhere=self._elsewhere,
        )

    def _look_seldom(self, store: Store) -> None:
        """Read the designs, the spending, and which other experiments are being run."""
        began = time.monotonic()
        rows = store.designs()
        chosen = [row for row in rows if self._experiment in (None, row.name, row.experiment_id)]
        if rows and not chosen:
            names = ", ".join(sorted({row.name for row in rows}))
            raise StoreError(f"the store {spelled(self._url)} has no experiment {self._experiment!r}; it holds {names}")
        self._designs = [row for row in chosen if row.experiment_id == chosen[-1].experiment_id]
        if self._designs:
            others = [row for row in rows if row.experiment_id != self._designs[-1].experiment_id]
            alive = store.under_way(store.states()) if others else set()
            names_alive = [row.name for row in others if any(run.run_id in alive for run in row.runs)]
            self._elsewhere = tuple(dict.fromkeys(names_alive))
            self._paid = _paid(store, self._designs[-1])
        ended = time.monotonic()
        self._seldom_due = ended + max(_SELDOM_S, _REST * (ended - began))

    def _rate(self, store: Store, states: Mapping[str, RunState], alive: Collection[str], now: float) -> float | None:
        """Count the replies of each run; return replies a second over the last minute, None while it is too early."""
        standing = {run_id: (state, run_id in alive) for run_id, state in states.items()}
        # Runs that were alive at the last look may have more replies since.
        kept = {
            run_id: self._replies[run_id]
            for run_id, told in standing.items()
            if not told[1] and self._counted.get(run_id) == told
        }
        begun = sorted(run_id for run_id, state in states.items() if run_id not in kept and state.epoch)
        found = replies_of(store, begun, now - _MINUTE_S)
        self._counted = standing
        self._replies = {run_id: Replies() for run_id in states} | kept | found
        calls = sum(own.number for own in self._replies.values())
        if not alive:
            # The rate before a standstill does not hold after it.
            self._history.clear()
        if not self._history:
            began = min((own.recent_from for own in found.values() if own.recent_from is not None), default=now)
            self._history.append((began, calls - sum(own.recent for own in found.values())))
        self._history.append((now, calls))
        while len(self._history) > 2 and self._history[1][0] <= now - _MINUTE_S:
            self._history.popleft()
        then, before = self._history[0]
        return max(0, calls - before) / (now - then) if now - then >= _LEAST_S else None

    def _trajectory(
        self, store: Store, design: DesignRow, states: Mapping[str, RunState], open_runs: Sequence[OpenRun]
    ) -> Trajectory | None:
        """Opinions of the run asked for; else of the run shown before until it ends, then of the first under way."""
        cells = cells_of(design)
        if self._run is not None:
            row = row_of(design.name, [cell.run_id for cell in cells], self._run)
        else:
            before = self._gathering and self._gathering.cell
            shown = [row for row, cell in enumerate(cells) if cell == before]
            going_on = [run.row for run in open_runs if run.state != "cut off"]
            begun = [row for row, cell in enumerate(cells) if states[cell.run_id].status != "pending"]
            still = [row for row in shown if row in going_on]
            candidates = [*still, *going_on, *shown, *(run.row for run in open_runs), *begun]
            if not candidates:
                return None
            row = candidates[0]
        if self._gathering is None or self._gathering.cell != cells[row]:
            self._gathering = Gathering(store, row, cells[row])
        found = self._gathering.look()
        return Trajectory(row, "", 0.0, 0.0, 1, 0, ()) if found is None and self._run is not None else found


class Gathering:
    """Follows a run and keeps the opinions of each agent by its instrument of stance, or else its first instrument."""

    def __init__(self, store: Store, row: int, cell: ExperimentRun) -> None:
        self.cell = cell
        self._row = row
        self._store = store
        self._follower = store.follow(cell.run_id)
        self._instrument_id = cell.instrument_id or next(iter(cell.instruments), None)
        self._instrument: InstrumentRow | None = None
        self._generation = -1

    def _begin(self) -> None:
        """Start from the beginning of the run, also after it was begun anew."""
        self._generation = self._follower.state.generation
        self._agents: list[AgentRow] = []
        #: Agent and step by turn.
        self._sites: dict[int, tuple[int, int]] = {}
        #: Opinion by agent, step and turn.
        self._values: dict[tuple[int, int, int], float] = {}

    def look(self) -> Trajectory | None:
        """The opinions on record by now; None where the run has no instrument or no agents on record."""
        events = self._follower.poll()
        if self._follower.state.generation != self._generation:
            self._begin()
        for event in events:
            row = event.row
            if isinstance(row, TurnRow):
                self._sites[row.turn] = (row.agent, row.step)
            elif isinstance(row, OpinionRow) and (row.instrument_id, row.about) == (self._instrument_id, None):
                # An opinion comes after its turn.
                self._values[(*self._sites[row.turn], row.turn)] = row.value
        if not self._agents:
            self._agents = [each for each in self._store.agents(self.cell.run_id) if each.role == "participant"]
        if self._instrument is None:
            known = {each.instrument_id: each for each in self._store.instruments()}
            self._instrument = known.get(self._instrument_id or "")
        return self._trajectory(self._instrument) if self._instrument is not None and self._agents else None

    def _trajectory(self, instrument: InstrumentRow) -> Trajectory:
        steps = [step for _, step in self._sites.values()]
        first, last = min(steps, default=1), max(steps, default=0)
        by_step: dict[int, dict[int, float]] = {agent.agent: {} for agent in self._agents}
        for (agent, step, _), value in sorted(self._values.items()):
            if agent in by_step and not math.isnan(value):
                by_step[agent][step] = value
        lines = []
        for each in self._agents:
            values = [math.nan]
            for step in range(first, last + 1):
                values.append(by_step[each.agent].get(step, values[-1]))
            lines.append(Line(each.name, each.assigned_opinion, tuple(values[1:])))
        evidence = " + ".join(sorted({agent.evidence for agent in self._agents}))
        what = f"{instrument.variable} by {instrument.classifier} ({evidence})"
        return Trajectory(self._row, what, min(instrument.points), max(instrument.points), first, last, tuple(lines))


def _identity(url: str) -> tuple[int, int] | None:
    """Device and inode of a store's file; None where there is no file."""
    path = shown(url).removeprefix("sqlite:///")
    if "://" in path:
        # A server has no file that could be replaced.
        return (0, 0)
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _paid(store: Store, design: DesignRow) -> dict[str, Amount]:
    """Usage of an experiment, with the limits of its budget."""
    paid = canaries_paid(store.canaries(design.experiment_id))
    if (of_calls := store.spending().get(design.experiment_id)) is not None:
        paid += of_calls
    budget = dict(design.spec.get("execution") or {}).get("budget") or {}
    used = {"calls": paid.calls, "tokens": paid.input_tokens + paid.output_tokens, "money": paid.cost}
    return {name: Amount(amount, budget.get(name)) for name, amount in used.items()}


def _since(moment: float | None, now: float) -> float | None:
    """Seconds since a moment; None where there was none."""
    return None if moment is None else max(0.0, now - moment)


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
            told = state_of(run_id, state, alive)
            found[run_id] = OpenRun(row, told, own.number, state.expected, name, _since(own.last_at, now))
    return tuple(sorted(found.values(), key=lambda run: (run.state == "cut off", not run.calls, run.row)))


def _conditions(cell: ExperimentRun) -> str:
    """Values of the swept axes; the label of the cell where these are not plain, or nothing is swept."""
    values = list(cell.axes.values())
    if not values or any(isinstance(value, dict | list) for value in values):
        return cell.cell
    return ", ".join(str(value) for value in values)
