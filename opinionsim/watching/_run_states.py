"""Runs of a store at one moment: states, stored replies, and why some runs are not complete."""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from opinionsim.errors import SpecError, StoreError

if TYPE_CHECKING:
    from opinionsim.errors import Cause
    from opinionsim.store import BatchRow, DesignRow, Doing, RunState, StoreReader

#: States of a run, in the order of output: a run marked as running is under way or was cut off.
STATES = ("complete", "incomplete", "withdrawn", "under way", "cut off", "pending")
#: Fewest signs of an id that name a run; fewer could be a replicate.
_ID_SIGNS = 4
#: Runs that one query names; below the limit of every database.
_PORTION = 500


def spelled(url: str) -> str:
    """A store's address as a user would type it, without its password."""
    from opinionsim.store import shown

    address = shown(url)
    path = address.removeprefix("sqlite:///")
    return shlex.quote(path if path.endswith((".sqlite", ".sqlite3", ".db")) else address)


def by_experiment(designs: Iterable[DesignRow]) -> list[list[DesignRow]]:
    """Designs of each experiment, in the order in which they ran; the experiment that ran last comes last."""
    found: dict[str, list[DesignRow]] = {}
    for design in designs:
        # Designs come in the order in which they were run.
        found[design.experiment_id] = [*found.pop(design.experiment_id, []), design]
    return list(found.values())


def states_of(opened: StoreReader, design: DesignRow) -> dict[str, RunState]:
    """States of the runs of a design.

    Raises
    ------
    StoreError
        If a run is not registered.
    """
    run_ids = sorted({run.run_id for run in design.runs})
    states = opened.states(run_ids)
    for run_id in run_ids:
        if run_id not in states:
            raise StoreError(f"the store is damaged: run {run_id} of {design.name} is missing")
    return states


class Named(Protocol):
    """Identity and name of a run."""

    @property
    def run_id(self) -> str: ...
    @property
    def name(self) -> str: ...


def row_of(experiment: str, runs: Sequence[Named], run: int | str) -> int:
    """Find the row of a run by its name or the beginning of its id.

    Parameters
    ----------
    experiment : str
        Name of the experiment, for messages.
    runs : sequence
        The run of each row; a run that is measured in several ways has several rows.
    run : int or str
        Number of a row; name; end of a name from the beginning of one of its words, as in ``weak/3``; or at
        least the first four characters of an id.

    Raises
    ------
    SpecError
        If no run matches, or several do.
    """
    if not runs:
        raise SpecError(f"run {run}: the experiment {experiment!r} has no stored runs")
    if isinstance(run, int):
        if 0 <= run < len(runs):
            return run
        raise SpecError(f"run {run}: there is no such run; valid: 0 to {len(runs) - 1}, a name, or a run id")
    told = "".join(run.split())
    names = ["".join(each.name.split()) for each in runs]
    end = re.compile(rf"(?:.*[.,=/])?{re.escape(told)}")
    found = [row for row, name in enumerate(names) if name == told] or [
        row
        for row, name in enumerate(names)
        if told and (end.fullmatch(name) or (len(told) >= _ID_SIGNS and runs[row].run_id.startswith(told)))
    ]
    n_runs = len({runs[row].run_id for row in found})
    if n_runs != 1:
        raise SpecError(
            f"run {run}: {n_runs or 'no'} runs have such a name or id; give a condition and a replicate, such as "
            f"{runs[0].name!r}, or the first signs of one id (see: opinionsim status STORE --runs)"
        )
    return found[0]


def state_of(run_id: str, state: RunState, alive: Collection[str]) -> str:
    """The state of a run, one of :data:`STATES`; `alive` contains the runs that a process is working on."""
    if state.status != "running":
        return state.status
    return "under way" if run_id in alive else "cut off"


def count_states(states: Mapping[str, RunState], alive: Collection[str]) -> dict[str, int]:
    """Number of runs in each of :data:`STATES`."""
    found = dict.fromkeys(STATES, 0)
    for run_id, state in states.items():
        found[state_of(run_id, state, alive)] += 1
    return found


def units_of(designs: Iterable[DesignRow]) -> dict[str, int]:
    """Units of work of designs without runs, with the requested replicates."""
    wanted: dict[str, int] = {}
    for design in designs:
        for unit_id, _ in design.units:
            wanted[unit_id] = max(wanted.get(unit_id, 0), int(design.manifest.get("replicates", 1)))
    return wanted


def count_units(opened: StoreReader, designs: Iterable[DesignRow]) -> dict[str, int]:
    """Number of replicates of the units of designs, by state; empty if none has units."""
    wanted = units_of(designs)
    if not wanted:
        return {}
    found = opened.unit_counts(wanted)
    done, failed = (sum(each[place] for each in found.values()) for place in (0, 1))
    # The store may hold replicates that the last invocation did not ask for; they are listed too.
    total = sum(max(number, sum(found.get(unit_id, (0,)))) for unit_id, number in wanted.items())
    return {"complete": done, "incomplete": failed, "pending": total - done - failed}


class Replies(NamedTuple):
    """Stored model replies of a run."""

    number: int = 0  # number of replies, rejected ones included
    recent: int = 0  # number of replies that arrived after `since`
    recent_from: float | None = None  # Unix time at which the first of these arrived


def replies_of(opened: StoreReader, run_ids: Iterable[str], since: float = math.inf) -> dict[str, Replies]:
    """Stored replies by run; runs without replies are absent.

    Parameters
    ----------
    opened : StoreReader
        An open store.
    run_ids : iterable of str
        The runs.
    since : float
        Unix time after which a reply counts as recent.
    """
    from sqlalchemy import bindparam, text

    statement = text(
        "SELECT run_id, COUNT(*) AS number, SUM(CASE WHEN arrived_at > :since THEN 1 ELSE 0 END) AS recent, "
        "MIN(CASE WHEN arrived_at > :since THEN arrived_at END) AS recent_from "
        "FROM journal WHERE source = 'model' AND run_id IN :runs GROUP BY run_id"
    ).bindparams(bindparam("runs", expanding=True))
    wanted = list(run_ids)
    found = {}
    with opened.reading() as connection:
        for start in range(0, len(wanted), _PORTION):
            some = wanted[start : start + _PORTION]
            for row in connection.execute(statement, {"since": since, "runs": some}):
                found[row.run_id] = Replies(row.number, int(row.recent), row.recent_from)
    return found


def steps_of(opened: StoreReader, run_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Step of the last stored turn and number of steps, by run; runs without a turn are absent."""
    from sqlalchemy import text

    statement = text(
        "SELECT step, steps FROM turns JOIN runs USING (run_id) WHERE run_id = :run ORDER BY turn DESC LIMIT 1"
    )
    with opened.reading() as connection:
        found = {run_id: connection.execute(statement, {"run": run_id}).first() for run_id in run_ids}
    return {run_id: (row.step, row.steps) for run_id, row in found.items() if row is not None}


def doing_text(doing: Doing) -> str:
    """Describe in one line what a process is doing with a store."""
    calls, runs = ("call" if doing.in_flight == 1 else "calls"), ("run" if doing.runs == 1 else "runs")
    told = [f"{doing.in_flight} {calls} in flight of {doing.limit}, in {doing.runs} {runs}"]
    told += [f"{account} waits {math.ceil(left)} s for its rate limit" for account, left in doing.waiting.items()]
    return "; ".join([*told, *(["stopping"] if doing.stopping else [])])


def batch_text(batch: BatchRow) -> str:
    """Spell the state of an open batch, as of the last look at it."""
    from opinionsim.planning import spell_seconds

    now = time.time()
    told = [f"{batch.done:,} of {batch.calls:,} call{'' if batch.calls == 1 else 's'} done"]
    told += [f"submitted {spell_seconds(now - batch.submitted_at)} ago"] if batch.submitted_at else []
    if batch.ended_at:
        told.append("ended")
    elif batch.expires_at:
        told.append(f"expires in {spell_seconds(max(0.0, batch.expires_at - now))}")
    unclear = "" if batch.batch_id else ", which may not have been submitted"
    return f"batch {batch.batch_id or batch.token} of {batch.model} at {batch.account}{unclear}: {', '.join(told)}"


class Reason(NamedTuple):
    """A cause of errors."""

    runs: int  # number of runs with this cause
    error: str  # the error of one of them
    alike: bool  # whether all of them have that same error
    code: str = ""  # the code of the cause

    def __str__(self) -> str:
        return (
            f"{self.runs:,} {'run' if self.runs == 1 else 'runs'}{':' if self.alike else ', for instance'} {self.error}"
        )


def reasons(errors: Iterable[tuple[str, Cause]]) -> list[Reason]:
    """Causes of errors, most frequent first; `errors` contains the message and cause of one error per run."""
    causes: dict[tuple[str, str], list[str]] = {}
    for error, cause in errors:
        causes.setdefault((cause.code, cause.about), []).append(error)
    found = [Reason(len(alike), alike[0], len(set(alike)) == 1, code) for (code, _), alike in causes.items()]
    return sorted(found, key=lambda reason: reason.runs, reverse=True)
