"""What is seen of an experiment that is being run: a look at its store, once and again."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from opinionsim.cli._reasons import Reason, reasons
from opinionsim.cli._stores import Replies, cells_of, count_states, replies_of, row_of, spelled, state_of, states_of
from opinionsim.cli._watch_course import Course, Gathering
from opinionsim.errors import StoreError

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, ExperimentRun, RunState, Store

__all__ = ["Amount", "OpenRun", "Seen", "Watcher"]

_T = TypeVar("_T")

#: Time over which calls are counted for their rate, seconds.
_MINUTE_S = 60.0
#: How often it is looked what is being run and what was paid, seconds.
_SELDOM_S = 5.0
#: Time over which they are counted at least before their rate is told, seconds.
_LEAST_S = 2.0
#: These looks read more the larger a store is: the next one comes after so many times as long as they took.
_REST = 50


class OpenRun(NamedTuple):
    """A run that has begun and has not ended, or to which opinions are being added."""

    row: int
    """Its number."""
    state: str
    """``under way``, ``cut off``, or ``complete`` while it is being coded."""
    calls: int
    """Replies on record."""
    expected: int | None
    """Calls it is thought to take; None where that is not known."""
    cell: str
    """Its conditions."""
    last_reply_s: float | None
    """Seconds since its last reply; None before the first."""


class Amount(NamedTuple):
    """How much of something was used, and how much may be."""

    used: float
    """Over all designs of the experiment, forgotten calls and canary questions included."""
    limit: float | None
    """Of the experiment's budget; None where it has none."""


@dataclass(frozen=True)
class Seen:
    """An experiment at one moment.

    Attributes
    ----------
    at : float
        Unix time.
    store : str
        Address, as one would type it.
    experiment : str
        Its name; empty where none is on record yet.
    design, designs : int
        Number of the design that was run last, and how many there are.
    counts : mapping of str to int
        Runs by what they are.
    open : tuple of OpenRun
        Those under way, then those that were cut off.
    calls, expected : int
        Replies on record and calls in all; both 0 where nobody is asked.
    rate : float or None
        Calls a second over the last minute; None before it is known.
    left_s : float or None
        Seconds until all runs have ended at this rate; None where that cannot be told.
    paid : mapping of str to Amount
        Calls, tokens, money.
    reasons : tuple of Reason
        Why runs are not complete, or what is wrong with complete ones.
    doing : tuple of str
        What those say who are at work on the store, for whatever experiment.
    last_reply_s : float or None
        Seconds since the last reply of all; None before the first.
    course : Course or None
        Opinions of one run.
    elsewhere : tuple of str
        Other experiments of the store that are being run.
    away : str
        Why the store cannot be read now; everything else is then as it was seen last.
    """

    at: float
    store: str
    experiment: str = ""
    design: int = 1
    designs: int = 1
    counts: Mapping[str, int] = field(default_factory=dict)
    open: tuple[OpenRun, ...] = ()
    calls: int = 0
    expected: int = 0
    rate: float | None = None
    left_s: float | None = None
    paid: Mapping[str, Amount] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    doing: tuple[str, ...] = ()
    last_reply_s: float | None = None
    course: Course | None = None
    elsewhere: tuple[str, ...] = ()
    away: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is carrying a run out, or adding opinions to one."""
        return any(run.state != "cut off" for run in self.open)

    @property
    def over(self) -> bool:
        """Whether all runs have ended, and nothing is being added."""
        ended = self.counts.get("complete", 0) + self.counts.get("incomplete", 0)
        return 0 < ended == sum(self.counts.values()) and not self.is_under_way and not self.away


class Watcher:
    """Looks at the experiment of a store that is being run.

    Parameters
    ----------
    url : str
        Address of the store.
    experiment : str, optional
        Name or id. Default: whichever was run last.
    run : str, optional
        Number or start of the id of the run whose opinions are gathered. Default: the first that is under way.

    Raises
    ------
    StoreError
        If there is no such store, or it is none of ours.
    """

    def __init__(self, url: str, experiment: str | None = None, run: str | None = None) -> None:
        self._given = (url, experiment, run)
        self._last = Seen(time.time(), spelled(url))
        self._looking: _Looking | None = _Looking(*self._given)

    def close(self) -> None:
        """Close the store."""
        if self._looking is not None:
            self._looking.close()
            self._looking = None

    def look(self) -> Seen:
        """The experiment as it is now; a store that has gone away for a while is said to be away.

        Raises
        ------
        StoreError
            If there is no such experiment, or the store is damaged or none of ours any more.
        SpecError
            If there is no such run.
        """
        try:
            if self._looking is not None and self._looking.is_replaced:
                self.close()
            if self._looking is None:
                self._looking = _Looking(*self._given)
            self._last = self._looking.look()
        except StoreError as error:
            self.close()
            # What is damaged stays so; a server that is down, or a disk that is gone, comes back.
            if error.__cause__ is None and not _is_missing(self._given[0]):
                raise
            self._last = _later(self._last, str(error))
        return self._last


def _is_missing(url: str) -> bool:
    """Whether a store is a file that is not there."""
    path = _path(url)
    return path is not None and not path.exists()


def _path(url: str) -> Path | None:
    """The file of a store; None where it is none."""
    from opinionsim.store import shown

    path = shown(url).removeprefix("sqlite:///")
    return None if "://" in path else Path(path)


def _identity(path: Path | None) -> tuple[int, int] | None:
    """What tells a file from another one under its name; None where there is none."""
    with suppress(OSError):
        found = path.stat() if path is not None else None
        return None if found is None else (found.st_dev, found.st_ino)
    return None


def _later(seen: Seen, away: str) -> Seen:
    """What was seen last, while the store is away."""
    now = time.time()
    waited = now - seen.at
    last = None if seen.last_reply_s is None else seen.last_reply_s + waited
    return replace(seen, at=now, away=away, last_reply_s=last)


class _Seldom(Generic[_T]):
    """Something that is read only now and then.

    Parameters
    ----------
    read : callable
        Reads it.
    """

    def __init__(self, read: Callable[[], _T]) -> None:
        self._read = read
        self._due = -math.inf
        self._value: _T

    def __call__(self, *, anew: bool = False) -> _T:
        """What was read last; what is read now if that is a while ago, or it is wanted anew."""
        began = time.monotonic()
        if anew or began >= self._due:
            self._value = self._read()
            ended = time.monotonic()
            self._due = ended + max(_SELDOM_S, _REST * (ended - began))
        return self._value


class _Looking:
    """Looks at an experiment for as long as its store stays open; parameters are those of :class:`Watcher`."""

    def __init__(self, url: str, experiment: str | None, run: str | None) -> None:
        from opinionsim.store import open_store

        self._file = _path(url)
        self._identity = _identity(self._file)
        self._store = open_store(url, write=False)
        self._name = spelled(url)
        self._experiment = experiment
        self._run = run
        self._designs = _Seldom(self._own_designs)
        self._paid = _Seldom(self._used)
        self._elsewhere = _Seldom(self._others)
        self._pace = _Pace(self._store)
        self._gathering: Gathering | None = None
        self._was_under_way = False

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    @property
    def is_replaced(self) -> bool:
        """Whether the file that is open is no longer the one of its name; such a one can still be read."""
        return _identity(self._file) != self._identity

    def look(self) -> Seen:
        """The experiment as it is now."""
        now = time.time()
        designs = self._designs() or self._designs(anew=True)
        if not designs:
            return Seen(now, self._name)
        design = designs[-1]
        cells = cells_of(design)
        states = states_of(self._store, design)
        alive = self._store.under_way(states)
        replies = self._pace.look(states, alive, now)
        rate = self._pace.rate
        unknown = any(state.expected is None for state in states.values())
        expected = 0 if unknown else sum(_needed(state, replies.get(run_id)) for run_id, state in states.items())
        open_runs = _open_runs(cells, states, alive, replies, now)
        # What was paid in the end is told at once.
        ended, self._was_under_way = self._was_under_way and not alive, bool(alive)
        # What has failed is tried again by the next run of the experiment, not by this one.
        to_come = _left(states, replies, ("pending", "running"))
        return Seen(
            at=now,
            store=self._name,
            experiment=design.name,
            design=design.design,
            designs=len(designs),
            counts=count_states(states, alive),
            open=open_runs,
            calls=expected - to_come - _left(states, replies, ("incomplete",)) if expected else 0,
            expected=expected,
            rate=rate,
            left_s=to_come / rate if alive and rate and to_come else None,
            paid=self._paid(anew=ended),
            reasons=tuple(reasons(state.error for state in states.values() if state.error)),
            doing=tuple(self._store.doing()),
            last_reply_s=self._pace.since_last(now),
            course=self._course(design.name, cells, states, open_runs),
            elsewhere=self._elsewhere(),
        )

    # What is read now and then

    def _own_designs(self) -> list[DesignRow]:
        """The designs of the experiment, the one run last at the end."""
        rows = self._store.designs()
        wanted = self._experiment
        chosen = [row for row in rows if wanted is None or wanted in (row.name, row.experiment_id)]
        if rows and not chosen:
            names = ", ".join(sorted({row.name for row in rows}))
            raise StoreError(f"the store {self._name} has no experiment {wanted!r}; it holds {names}")
        return [row for row in chosen if row.experiment_id == chosen[-1].experiment_id]

    def _used(self) -> dict[str, Amount]:
        """What the experiment has paid, and its budget."""
        design = self._designs()[-1]
        paid = self._store.spending().get(design.experiment_id)
        asked = self._store.canaries(design.experiment_id)
        tokens = sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in asked)
        used = {"calls": float(len(asked)), "tokens": float(tokens), "money": sum(row.cost or 0.0 for row in asked)}
        if paid is not None:
            used["calls"] += paid.calls
            used["tokens"] += paid.input_tokens + paid.output_tokens
            used["money"] += paid.cost
        budget = dict(design.spec.get("execution") or {}).get("budget") or {}
        return {name: Amount(amount, budget.get(name)) for name, amount in used.items()}

    def _others(self) -> tuple[str, ...]:
        """Other experiments of the store that are being run."""
        own = self._designs()[-1].experiment_id
        states = self._store.states()
        alive = self._store.under_way(states)
        found = {
            design.name: None
            for design in (self._store.designs() if alive else ())
            if design.experiment_id != own and any(run.run_id in alive for run in design.runs)
        }
        return tuple(found)

    # The opinions of one run

    def _course(
        self, name: str, cells: Sequence[ExperimentRun], states: Mapping[str, RunState], open_runs: Sequence[OpenRun]
    ) -> Course | None:
        row = self._chosen(name, cells, states, open_runs)
        if row is None:
            return None
        if self._gathering is None or self._gathering.cell != cells[row]:
            self._gathering = Gathering(self._store, row, cells[row])
        found = self._gathering.look()
        return Course(row, "", 0.0, 0.0, 1, 0, ()) if found is None and self._run is not None else found

    def _chosen(
        self, name: str, cells: Sequence[ExperimentRun], states: Mapping[str, RunState], open_runs: Sequence[OpenRun]
    ) -> int | None:
        """Row of the run whose opinions are shown: the one that was until it ends, then the first under way."""
        if self._run is not None:
            return row_of(name, [cell.run_id for cell in cells], self._run)
        going_on = [run.row for run in open_runs if run.state != "cut off"]
        before = [row for row, cell in enumerate(cells) if self._gathering is not None and cell == self._gathering.cell]
        if before and (before[0] in going_on or not going_on):
            return before[0]
        begun = [row for row, cell in enumerate(cells) if states[cell.run_id].status != "pending"]
        return next(iter([*going_on, *(run.row for run in open_runs), *begun]), None)


def _needed(state: RunState, replies: Replies | None) -> int:
    """Calls a run takes: as many as it has taken, or is thought to if that is more and it is not complete."""
    if state.status == "complete":
        return replies.number if replies is not None else 0
    return max(state.expected or 0, replies.number if replies is not None else 0)


def _left(states: Mapping[str, RunState], replies: Mapping[str, Replies], statuses: Collection[str]) -> int:
    """Calls that runs in some states still take."""
    return sum(
        _needed(state, replies.get(run_id)) - replies.get(run_id, Replies()).number
        for run_id, state in states.items()
        if state.status in statuses
    )


def _open_runs(
    cells: Sequence[ExperimentRun],
    states: Mapping[str, RunState],
    alive: Collection[str],
    replies: Mapping[str, Replies],
    now: float,
) -> tuple[OpenRun, ...]:
    """Runs under way, those that wait for their first reply behind the others, then those that were cut off."""
    found: dict[str, OpenRun] = {}
    several = len({cell.replicate for cell in cells}) > 1
    for row, cell in enumerate(cells):
        run_id, state = cell.run_id, states[cell.run_id]
        if run_id in found or not (state.status == "running" or run_id in alive):
            continue
        own = replies.get(run_id, Replies())
        last = None if own.last_at is None else max(0.0, now - own.last_at)
        name = f"{_conditions(cell)}{f', replicate {cell.replicate}' if several else ''}"
        found[run_id] = OpenRun(row, state_of(run_id, state, alive), own.number, state.expected, name, last)
    return tuple(sorted(found.values(), key=lambda run: (run.state == "cut off", not run.calls, run.row)))


def _conditions(cell: ExperimentRun) -> str:
    """Values of the swept axes; the label of the cell where they are no plain values, or there are none."""
    values = list(cell.axes.values())
    if not values or any(isinstance(value, dict | list) for value in values):
        return cell.cell
    return ", ".join(str(value) for value in values)


class _Pace:
    """Counts replies as they come.

    Parameters
    ----------
    store : Store
        An open store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[str, tuple[RunState, bool]] = {}
        self._replies: dict[str, Replies] = {}
        self._last_at: float | None = None
        #: Moments, and replies that had come by then.
        self._history: deque[tuple[float, int]] = deque()

    def look(self, states: Mapping[str, RunState], alive: Collection[str], now: float) -> Mapping[str, Replies]:
        """Replies on record of every run; those of runs that nobody writes are counted once."""
        standing = {run_id: (state, run_id in alive) for run_id, state in states.items()}
        # What was being written at the last look may have been written since.
        written = {run_id for run_id, told in standing.items() if told[1] or self._before.get(run_id) != told}
        found = replies_of(self._store, sorted(run_id for run_id in written if states[run_id].epoch), now - _MINUTE_S)
        if not self._before:
            began = min((own.recent_from for own in found.values() if own.recent_from is not None), default=now)
            self._history.extend([(began, 0), (now, sum(own.recent for own in found.values()))])
        elif any(was_alive for _, was_alive in self._before.values()):
            came = sum(max(0, found[each].number - self._replies.get(each, Replies()).number) for each in found)
            self._note(now, self._history[-1][1] + came)
        else:
            # What comes after a standstill says nothing of it.
            self._history = deque([(now, 0)])
        self._before = standing
        self._replies.update({run_id: found.get(run_id, Replies()) for run_id in written})
        last = [own.last_at for own in found.values() if own.last_at is not None]
        self._last_at = max([*last, *([] if self._last_at is None else [self._last_at])], default=None)
        return self._replies

    @property
    def rate(self) -> float | None:
        """Replies a second over the last minute; None before they have been counted for a while."""
        if not self._history:
            return None
        (then, before), (now, made) = self._history[0], self._history[-1]
        return (made - before) / (now - then) if now - then >= _LEAST_S else None

    def since_last(self, now: float) -> float | None:
        """Seconds since the last reply of all; None before the first."""
        return None if self._last_at is None else max(0.0, now - self._last_at)

    def _note(self, now: float, made: int) -> None:
        self._history.append((now, made))
        while len(self._history) > 2 and self._history[1][0] <= now - _MINUTE_S:
            self._history.popleft()
