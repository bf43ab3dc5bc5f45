"""Queries of a store, each inside the caller's read transaction."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select

from opinionsim.errors import Cause, DamagedError, StoreError
from opinionsim.llm import REPLY
from opinionsim.messages import ChatMessage
from opinionsim.metrics import instrument_validation
from opinionsim.store import _counts, _schema
from opinionsim.store._measured import audit_findings, instruments
from opinionsim.store._rows import (
    SUMMARY,
    AgentRow,
    DesignRow,
    EdgeRow,
    ExperimentRun,
    Extent,
    InstrumentRow,
    OpinionRow,
    Paid,
    RunState,
    SeatRow,
    TieRow,
    TurnRow,
    WaitRow,
)
from opinionsim.store._stored_journal import checked_text, prompt_links, stored_entries, stored_prompts

#: What a cell says of its run by itself.
_OF_CELL = (
    *("run_id", "cell", "replicate", "redraw", "block", "topic_title", "every_report", "least_measured"),
    "instrument_id",
)
_STATUSES = ("pending", "running", "complete", "incomplete", "withdrawn")


def designs(connection: Connection, experiment_id: str | None = None) -> list[DesignRow]:
    """All designs of one experiment or of all, the most recently saved last."""
    table, experiment = _schema.designs, _schema.experiments
    known = {row.experiment_id: row for row in _schema.sealed(connection, experiment, select(experiment))}
    numbers: dict[str, set[int]] = {identity: set() for identity in known}
    statement = select(table).order_by(table.c.saved_at)
    if experiment_id is not None:
        statement = statement.where(table.c.experiment_id == experiment_id)
    found = []
    for row in _schema.sealed(connection, table, statement):
        if row.experiment_id not in known:
            raise DamagedError(f"experiment {row.experiment_id} is missing")
        name = known[row.experiment_id].name
        numbers[row.experiment_id].add(row.design)
        runs = tuple(_experiment_run(run) for run in _schema.read_json(table, row, "runs"))
        found.append(_schema.made(DesignRow, table, row, name=name, runs=runs))
    for identity, own in numbers.items():
        if experiment_id in (None, identity) and own != set(range(1, known[identity].designs + 1)):
            raise DamagedError(f"a design of {known[identity].name} is missing")
    return found


def states(connection: Connection, run_ids: Sequence[str] | None = None) -> dict[str, RunState]:
    """States of runs.

    Parameters
    ----------
    run_ids : sequence of str, optional
        Default: all runs. The result omits runs that are not registered.

    Returns
    -------
    dict of str to RunState
        By run id, sorted.
    """
    table = _schema.runs
    found = {}
    for row in _schema.of_runs(connection, table, run_ids):
        if row.status not in _STATUSES:
            raise DamagedError(f"run {row.run_id} is {row.status!r}; valid: {', '.join(_STATUSES)}")
        cause = Cause(**_schema.read_json(table, row, "cause"))
        found[row.run_id] = _schema.made(RunState, table, row, held=bool(row.held), cause=cause)
    return {run_id: found[run_id] for run_id in sorted(found)}


def registered(connection: Connection, run_ids: Iterable[str]) -> dict[str, Any]:
    """The rows of registered runs by run id, with the columns of their table."""
    return {row.run_id: row for row in _schema.of_runs(connection, _schema.runs, run_ids)}


def waits(connection: Connection, run_id: str | None = None) -> list[WaitRow]:
    """Unanswered questions to people, in a run or by default in all, by key."""
    found = [_schema.made(WaitRow, _schema.waits, row) for row in _of_run(connection, _schema.waits, run_id)]
    return sorted(found, key=lambda row: (row.run_id, row.turn, row.call, row.attempt))


def seats(connection: Connection, run_id: str | None = None) -> list[SeatRow]:
    """The seats of a run, or by default of all, by run and agent."""
    return [seat_of(row) for row in _of_run(connection, _schema.seats, run_id, "run_id", "agent")]


def seat_of(row: Any) -> SeatRow:
    """A seat, from its row."""
    return _schema.made(SeatRow, _schema.seats, row, trial=bool(row.trial), publishes=bool(row.publishes))


def cells(connection: Connection, design: DesignRow) -> list[dict[str, Any]]:
    """The rows of :attr:`Results.runs` as they are now, by column, in the order of the design, without swept axes.

    Raises
    ------
    StoreError
        If a run, or its instrument of stance, is missing or damaged.
    """
    run_ids = [run.run_id for run in design.runs]
    stored = registered(connection, run_ids)
    known = {row.instrument_id: row for row in instruments(connection)}
    tried = {row.run_id for row in seats(connection) if row.trial}
    audited = audit_findings(connection)
    found = []
    for cell in design.runs:
        if cell.run_id not in stored:
            raise DamagedError(f"run {cell.run_id} of {design.name} is missing")
        stance = known.get(cell.instrument_id or "")
        if stance is None and cell.instrument_id:
            raise DamagedError(f"instrument {cell.instrument_id} is missing")
        run = stored[cell.run_id]
        known_of = audited.get((cell.instrument_id or "", run.model), "")
        found.append(_row(design.name, cell, run, stance, known_of))
        if cell.run_id in tried and found[-1]["status"] == "complete":
            found[-1]["status"] = "trial"
    return found


def _row(experiment: str, cell: ExperimentRun, run: Any, stance: InstrumentRow | None, audited: str) -> dict[str, Any]:
    return {
        **{name: getattr(cell, name) for name in _OF_CELL},
        **{name: getattr(run, name) for name in ("status", "evidence", *SUMMARY, "error", "begun_at")},
        "experiment": experiment,
        "question": _schema.read_json(_schema.runs, run, "fields").get("topic", {}).get("question"),
        "texts": ",".join(cell.declared.get("texts", ())),
        "classifier": None if stance is None else stance.classifier,
        "validation": instrument_validation(run.evidence, cell.instruments.get(cell.instrument_id or "", ()), audited),
        "wording": None if run.begun_at is None else run.wording,
    }


def turns(
    connection: Connection, run_id: str, agent: int | None = None, only: Iterable[int] | None = None
) -> list[TurnRow]:
    """The stored turns of a run or of one of its agents, or `only` those with some indices, by index."""
    table = _schema.turns
    statement = _schema.with_text(table).where(table.c.run_id == run_id).order_by(table.c.turn)
    if agent is not None:
        statement = statement.where(table.c.agent == agent)
    some = _schema.portions(statement, table.c.turn, only)
    return [turn_of(row, row.text) for each in some for row in _schema.sealed(connection, table, each)]


def said(connection: Connection, run_ids: Iterable[str]) -> Iterator[Any]:
    """Rows of the turns of runs with column `text`, which is not checked against its identity."""
    return _schema.of_runs(connection, _schema.turns, run_ids, _schema.with_text(_schema.turns))


def turn_of(row: Any, text: str | None) -> TurnRow:
    """A turn from its row and its text."""
    return _schema.made(TurnRow, _schema.turns, row, text=checked_text(row.text_id, text))


def _of_run(connection: Connection, table: Table, run_id: str | None, *order: str) -> Iterator[Any]:
    """The rows of a run, or of all, in a table, in the order of some columns."""
    statement = select(table).order_by(*(table.c[name] for name in order))
    return _schema.sealed(connection, table, statement if run_id is None else statement.where(table.c.run_id == run_id))


def ties(connection: Connection, run_id: str) -> list[TieRow]:
    """The ties that moved in a run, in order."""
    return [_schema.made(TieRow, _schema.ties, row) for row in _of_run(connection, _schema.ties, run_id, "change")]


def edges(connection: Connection, run_id: str) -> list[EdgeRow]:
    """The ties at the start of a run, sorted."""
    rows = _of_run(connection, _schema.edges, run_id, "source", "target")
    return [_schema.made(EdgeRow, _schema.edges, row) for row in rows]


def casts(connection: Connection, run_ids: Iterable[str]) -> dict[str, list[AgentRow]]:
    """The agents of runs, by run id and index; runs without stored agents are absent."""
    found: dict[str, list[AgentRow]] = {}
    for row in _schema.of_runs(connection, _schema.agents, run_ids):
        found.setdefault(row.run_id, []).append(_schema.made(AgentRow, _schema.agents, row))
    return {run_id: sorted(cast, key=lambda row: row.agent) for run_id, cast in found.items()}


def opinions(connection: Connection, run_id: str, only: Iterable[int] | None = None) -> list[OpinionRow]:
    """The opinions of all instruments, or `only` some, on the turns of a run, in the order they became known."""
    table = _schema.opinions
    statement = select(table).where(table.c.run_id == run_id).order_by(table.c.seq)
    some = _schema.portions(statement, table.c.turn, only)
    return [opinion_of(row) for each in some for row in _schema.sealed(connection, table, each)]


def opinion_of(row: Any) -> OpinionRow:
    """An opinion from its row."""
    table = _schema.opinions
    read: dict[str, Any] = {name: _number(getattr(row, name)) for name in ("value", "off_scale")}
    read["probabilities"] = tuple(_number(each) for each in _schema.read_json(table, row, "probabilities"))
    return _schema.made(OpinionRow, table, row, about=_schema.from_index(row.about), **read)


def models(connection: Connection, run_ids: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
    """The models that providers returned with replies to these runs, each with the provider's fingerprint.

    Returns
    -------
    dict of str to set of (str, str)
        By the name of the requested model: that of the agent, or ``judge.ID`` for the model of an instrument. Values
        that a provider did not return are empty.
    """
    found: dict[str, set[tuple[str, str]]] = {}
    for counts in _counts.stored(connection, run_ids).values():
        for name, *returned in counts.models:
            found.setdefault(name, set()).add((returned[0], returned[1]))
    return found


def progress(connection: Connection, run_ids: Iterable[str]) -> dict[str, Extent]:
    """The stored extent of some runs, by run id."""
    wanted = list(run_ids)
    known, nothing = _counts.stored(connection, wanted), _counts.Counts()
    found = {run_id: known.get(run_id, nothing) for run_id in wanted}
    return {
        run_id: Extent(counts.of(*_schema.NUMBERED), sum(counts.paid.values(), Paid()))
        for run_id, counts in found.items()
    }


def spending(connection: Connection) -> dict[str, Paid]:
    """Usage that each experiment, by id, has paid for in all its designs, including deleted calls."""
    ledger = _schema.ledger
    found: dict[str, Paid] = {}
    #: Generations of runs that are in the ledger.
    begun: dict[str, set[int]] = {}
    for counts in _counts.stored(connection).values():
        for payer, paid in counts.paid.items():
            found[payer] = found.get(payer, Paid()) + paid
    for row in _schema.sealed(connection, ledger, select(ledger)):
        forgotten = _schema.made(Paid, ledger, row)
        if row.experiment_id:
            found[row.experiment_id] = found.get(row.experiment_id, Paid()) + forgotten
        begun.setdefault(row.run_id, set()).add(row.generation)
    run = _schema.runs.c
    for row in connection.execute(select(run.run_id, run.generation).where(run.generation > 0)):
        if begun.get(row.run_id) != set(range(row.generation)):
            raise DamagedError(f"the costs of run {row.run_id} from before it started anew are missing")
    return found


def spent(connection: Connection, run_ids: list[str]) -> list[tuple[Any, ...]]:
    """Rows of the ledger with the cost of the stored calls of runs; at least one for each run."""
    run = _schema.runs.c
    counts, rows = _counts.stored(connection, run_ids), []
    for row in connection.execute(select(run.run_id, run.generation).where(run.run_id.in_(run_ids))):
        paid_by = counts[row.run_id].paid if row.run_id in counts else {}
        for payer, paid in (paid_by or {"": Paid()}).items():
            place = {"experiment_id": payer, **row._asdict()}
            rows.append(_schema.sealed_row(_schema.ledger, paid, **place, forgotten_at=time.time()))
    return rows


def require_sound(connection: Connection, run_id: str) -> None:
    """Check that all stored rows of a run are unchanged and that none is missing.

    Raises
    ------
    DamagedError
        Naming the first damaged or missing row.
    """
    _counts.require_whole(connection, [run_id])
    entries = stored_entries(connection, run_id)
    turns(connection, run_id)
    casts(connection, [run_id])
    for read in (edges, ties, opinions):
        read(connection, run_id)
    asked = {entry.prompt_hash for entry in entries if entry.source != "instrument"}
    for row in prompt_links(connection, asked):
        checked_text(row.text_id, row.text)


def texts(connection: Connection, text_ids: Iterable[str]) -> dict[str, str]:
    """Texts by content identity; unknown identities are absent."""
    table = _schema.texts
    return {
        row.text_id: checked_text(row.text_id, row.text)
        for some in _schema.portions(select(table), table.c.text_id, text_ids)
        for row in connection.execute(some)
    }


def prompt(connection: Connection, run_id: str, turn: int, call: str = REPLY, attempt: int = 0) -> list[ChatMessage]:
    """The literal prompt of a journal entry.

    Parameters
    ----------
    run_id, turn, call, attempt Key of the entry.

    Raises
    ------
    StoreError
        If there is no such entry, or it does not answer a prompt.
    """
    found = prompts(connection, run_id, call, turn=turn, attempt=attempt)
    if turn not in found:
        raise StoreError(f"the store has no prompt for run {run_id}, turn {turn}, call {call!r}, attempt {attempt}")
    return found[turn]


def prompts(
    connection: Connection, run_id: str, call: str = REPLY, *, turn: int | None = None, attempt: int = 0
) -> dict[int, list[ChatMessage]]:
    """The literal prompts of the calls with a name and attempt, by default the first, of all turns or of one, by turn.

    Raises
    ------
    StoreError
        If one is damaged or missing.
    """
    table = _schema.journal
    statement = select(table).filter_by(run_id=run_id, call=call, attempt=attempt)
    rows = _schema.sealed(connection, table, statement if turn is None else statement.filter_by(turn=turn))
    # Only a row that was found intact says what its source is.
    asked = {row.turn: row.prompt_hash for row in rows if row.source != "instrument"}
    found = stored_prompts(connection, asked.values())
    return {turn: found[prompt_id] for turn, prompt_id in sorted(asked.items())}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _experiment_run(stored: dict[str, Any]) -> ExperimentRun:
    instruments = {instrument_id: tuple(kinds) for instrument_id, kinds in stored["instruments"].items()}
    return ExperimentRun(**stored | {"instruments": instruments, "uncounted": tuple(stored["uncounted"])})
