"""Stores, designs and runs as the command line names them, and errors of runs by their causes."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from opinionsim.cli._console import counted, note
from opinionsim.errors import SpecError, StoreError

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, ExperimentRun, Results, RunState, StoreReader

#: Most digits of a row number; a longer number is taken for the beginning of an id.
_ROW_DIGITS = 7
#: States of a run, in the order of output: a run marked as running is under way or was cut off.
STATES = ("complete", "incomplete", "withdrawn", "under way", "cut off", "pending")
#: Runs that one query names; below the limit of every database.
_PORTION = 500
#: Beginning of an error: the place in the run.
_PLACE = re.compile(r"run [0-9a-f]+(?:(?:, step -?\d+)?, turn \d+, agent \d+ \([\w-]+\))?: ")
#: Details in which errors of one cause differ: digests of prompts, agents and acts.
_PARTICULAR = re.compile(r"prompt [0-9a-f]+|agent \d+|act '[\w-]+'")


def spelled(url: str) -> str:
    """A store's address as a user would type it, without its password."""
    from opinionsim.store import shown

    address = shown(url)
    path = address.removeprefix("sqlite:///")
    return shlex.quote(path if path.endswith((".sqlite", ".sqlite3", ".db")) else address)


# -- experiments and designs ---------------------------------------------------------------------------------


def read_results(store: str, experiment: str | None, design: int | None) -> Results:
    """The results of an experiment, with a note of its other designs and of whether it is under way.

    Parameters
    ----------
    store, experiment, design
        As for :func:`opinionsim.load`.

    Raises
    ------
    StoreError
        If the store cannot be read, or has no such experiment or design.
    """
    from opinionsim.store import load

    results = load(store, experiment, design=design)
    if len(results.designs) > 1:
        note(_designs_text(results.design, results.designs))
    if results.under_way:
        runs = f"{results.under_way} of {len(results.run_ids)} runs {'is' if results.under_way == 1 else 'are'}"
        note(f"{runs} under way; this is what was on record at {datetime.now(UTC).astimezone():%H:%M:%S}")
    return results


def _designs_text(shown: int, designs: Sequence[int]) -> str:
    """A note on which design is shown, and how to see the others."""
    others = [number for number in designs if number != shown]
    which = "the others" if len(others) > 1 else "the earlier one" if others[0] < shown else "the later one"
    *most, last = map(str, others)
    listed = f"{', '.join(most)} or {last}" if most else last
    return f"design {shown} of {len(designs)}; --design {listed} for {which}"


def design_of(opened: StoreReader, results: Results) -> DesignRow:
    """The design of the results, as it is on record now."""
    return next(row for row in opened.designs() if (row.name, row.design) == (results.name, results.design))


def states_of(opened: StoreReader, design: DesignRow) -> dict[str, RunState]:
    """The states of the runs of a design.

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


# -- runs ----------------------------------------------------------------------------------------------------


def cells_of(design: DesignRow) -> list[ExperimentRun]:
    """Cells and replicates of a design in the order of the rows of ``Results.runs``, whose numbers name runs."""
    return sorted(design.runs, key=lambda each: (each.cell, each.replicate, each.run_id, each.instrument_id or ""))


def row_of(name: str, run_ids: Sequence[str], run: str) -> int:
    """The row that a number or the beginning of an id names.

    Parameters
    ----------
    name : str
        Name of the experiment, for messages.
    run_ids : sequence of str
        Run id of each row; a run that is measured in several ways has several rows.
    run : str
        Value of the option ``--run``.

    Raises
    ------
    SpecError
        If it names no run, or several.
    """
    if not run_ids:
        raise SpecError(f"--run {run}: the experiment {name!r} has no runs on record")
    last = len(run_ids) - 1
    if run.isdecimal() and len(run) <= _ROW_DIGITS:
        if int(run) <= last:
            return int(run)
        raise SpecError(f"--run {run}: there is no such run; valid: 0 to {last}, or a run id")
    found = [row for row, run_id in enumerate(run_ids) if run and run_id.startswith(run)]
    n_runs = len({run_ids[row] for row in found})
    if n_runs != 1:
        raise SpecError(
            f"--run {run}: {n_runs or 'no'} runs have such an id; give a number from 0 to {last} or the beginning of "
            "one id (see: opinionsim status STORE --runs)"
        )
    return found[0]


def state_of(run_id: str, state: RunState, alive: Collection[str]) -> str:
    """The state of a run, one of :data:`STATES`; `alive` has the runs that a process is carrying out or measuring."""
    if state.status != "running":
        return state.status
    return "under way" if run_id in alive else "cut off"


def count_states(states: Mapping[str, RunState], alive: Collection[str]) -> dict[str, int]:
    """Number of runs in each of :data:`STATES`."""
    found = dict.fromkeys(STATES, 0)
    for run_id, state in states.items():
        found[state_of(run_id, state, alive)] += 1
    return found


def how_far(state: RunState, calls: int) -> str:
    """Calls of a run on record, and the expected number where it is known."""
    if not state.expected:
        return f"{calls:,} {'call' if calls == 1 else 'calls'}"
    return f"{calls:,} of {max(state.expected, calls):,} calls"


def note_standing(opened: StoreReader, run_id: str, row: int) -> None:
    """Print the state of a run on standard error, unless it is complete without an error."""
    states = opened.states([run_id])
    if run_id not in states:
        return
    state = states[run_id]
    far = how_far(state, opened.usage([run_id]).calls)
    error = f": {state.error}" if state.error else ""
    match state_of(run_id, state, opened.under_way(states)):
        case "pending":
            note(f"run {row} has not begun")
        case "under way":
            note(f"run {row} is under way; {far} are on record")
        case "cut off":
            note(f"run {row} was cut off after {far}; `opinionsim run` goes on with it")
        case "incomplete" | "withdrawn":
            note(f"run {row} is {state.status}, after {far}{error}")
        case _ if error:
            note(f"run {row} is complete{error}")


class Replies(NamedTuple):
    """Replies of models on record for a run."""

    number: int = 0
    """Number of replies, rejected ones included."""
    last_at: float | None = None
    """Unix time at which the last one arrived."""
    recent: int = 0
    """Number of replies that arrived after `since`."""
    recent_from: float | None = None
    """Unix time at which the first of these arrived."""


def models_of(opened: StoreReader, run_ids: Iterable[str]) -> dict[str, list[str]]:
    """Models that answered, with their fingerprints in brackets, by the name of the model that was asked."""
    found = sorted(opened.models(run_ids).items())
    return {
        name: [f"{model} ({fingerprint})" if fingerprint else model for model, fingerprint in sorted(returned)]
        for name, returned in found
    }


def several_answered(models: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence on each name under which several models answered, as :func:`models_of` gives them."""
    return [f"Replies of {name} came from {', '.join(found)}." for name, found in models.items() if len(found) > 1]


def replies_of(opened: StoreReader, run_ids: Iterable[str], since: float = math.inf) -> dict[str, Replies]:
    """Replies on record by run; runs without any are absent.

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
        "SELECT run_id, COUNT(*), MAX(arrived_at), SUM(CASE WHEN arrived_at > :since THEN 1 ELSE 0 END), "
        "MIN(CASE WHEN arrived_at > :since THEN arrived_at END) "
        "FROM journal WHERE source = 'model' AND run_id IN :runs GROUP BY run_id"
    ).bindparams(bindparam("runs", expanding=True))
    wanted = list(run_ids)
    found = {}
    with opened.reading() as connection:
        for start in range(0, len(wanted), _PORTION):
            some = wanted[start : start + _PORTION]
            for run_id, number, last_at, recent, first in connection.execute(statement, {"since": since, "runs": some}):
                found[run_id] = Replies(number, last_at, int(recent), first)
    return found


class Reason(NamedTuple):
    """A cause of errors."""

    runs: int
    """Number of runs with this cause."""
    error: str
    """The error of one of them."""
    alike: bool
    """Whether all of them have that same error."""

    def __str__(self) -> str:
        return f"{counted(self.runs, 'run')}{':' if self.alike else ', for instance'} {self.error}"


def reasons(errors: Iterable[str]) -> list[Reason]:
    """Causes of errors, the most frequent first; `errors` has one error a run."""
    causes: dict[str, list[str]] = {}
    for error in errors:
        causes.setdefault(_PARTICULAR.sub("", _PLACE.sub("", error, count=1)), []).append(error)
    found = [Reason(len(alike), alike[0], len(set(alike)) == 1) for alike in causes.values()]
    return sorted(found, key=lambda reason: reason.runs, reverse=True)


def reason_lines(found: Sequence[Reason], shown: int, rest: str) -> list[str]:
    """The first `shown` reasons, a line each, and a line with the number of other runs and the hint `rest`."""
    hidden = sum(reason.runs for reason in found[shown:])
    return [*map(str, found[:shown]), *([f"and {hidden:,} more ({rest})"] if hidden else [])]
