"""Makes the rows of the tables from the rows that a store receives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, delete, func, select, tuple_

from opinionsim.errors import StoreError
from opinionsim.llm import Entry, Question
from opinionsim.store import _queries, _schema
from opinionsim.store._rows import SUMMARY, DesignRow, ExperimentRun, OpinionRow, RunRow, SeatRow, TurnRow

if TYPE_CHECKING:
    from opinionsim.llm import EntryKey
    from opinionsim.store._writer import NewTexts

_Row = tuple[Any, ...]


def run_row(run: RunRow) -> _Row:
    """Row of a newly registered run, which is pending and has no lease.

    Raises
    ------
    StoreError
        If its summary lacks a name or has an unknown one.
    """
    if set(run.summary) != set(SUMMARY):
        odd = ", ".join(sorted(set(run.summary) ^ set(SUMMARY)))
        raise StoreError(f"the summary of run {run.run_id} must name exactly {', '.join(SUMMARY)}; check {odd}")
    state = {"status": "pending", "epoch": 0, "owner": "", "error": "", "cause": {}, "held": 0, "generation": 0}
    return _schema.sealed_row(_schema.runs, run, **run.summary, begun_at=None, **state)


def save_design(connection: Connection, row: DesignRow) -> int:
    """Insert a design, or replace the one with its id, except for started runs; returns its number."""
    table, runs = _schema.designs, _schema.runs
    experiment = _schema.experiments
    first = _schema.sealed_row(experiment, row, created_at=time.time(), designs=0)
    _schema.insert_new(connection, experiment, [first])
    # Two workers that add designs at a time must not give them one number.
    locked = select(experiment).where(experiment.c.experiment_id == row.experiment_id).with_for_update()
    known = connection.execute(locked).one()
    own = _queries.designs(connection, row.experiment_id)
    before = next((each for each in own if each.design_id == row.design_id), None)
    number = max((each.design for each in own), default=0) + 1 if before is None else before.design
    cells = {_key(run): run for run in row.runs}
    earlier = () if before is None else before.runs
    left = [run for run in earlier if _key(run) not in cells]
    begun = set[str]()
    for some in _schema.chunks(run.run_id for run in left):
        begun.update(connection.scalars(select(runs.c.run_id).where(runs.c.run_id.in_(some), runs.c.begun_at > 0)))
    # A further replicate gives the last yoked one other counterparts: a new run in the place of the earlier.
    new = {key[1:3] for key in cells.keys() - set(map(_key, earlier))}
    kept = [run for run in left if run.run_id in begun and (run.cell, run.replicate) not in new]
    last = connection.scalar(select(func.max(table.c.saved_at))) or 0.0
    # A coarse or set-back clock must not hide which design was saved last.
    saved_at = max(time.time(), last + 1e-6)
    spelled = [_cell(run) for run in (*row.runs, *kept)]
    design = _schema.sealed_row(table, row, design=number, saved_at=saved_at, runs=spelled)
    _schema.upsert(connection, table, [design])
    counted = _schema.sealed_row(experiment, known, designs=max(known.designs, number))
    _schema.upsert(connection, experiment, [counted])
    return number


def _key(run: ExperimentRun) -> tuple[str, str, int, str | None]:
    return (run.run_id, run.cell, run.replicate, run.instrument_id)


def _cell(run: ExperimentRun) -> dict[str, Any]:
    values = {each.name: getattr(run, each.name) for each in fields(run)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def change_seat(connection: Connection, run_id: str, agent: int, change: Callable[[SeatRow], SeatRow]) -> None:
    """Replace a seat with the result of `change`; it is bare before its first change."""
    table = _schema.seats
    # The insertion makes a second change of the same seat wait for the first.
    _schema.insert_new(connection, table, [_schema.sealed_row(table, SeatRow(run_id, agent))])
    own = select(table).where(table.c.run_id == run_id, table.c.agent == agent).with_for_update()
    (known,) = _schema.sealed(connection, table, own)
    _schema.upsert(connection, table, [_schema.sealed_row(table, change(_queries.seat_of(known)))])


def end_waits(connection: Connection, run_id: str, keys: Sequence[EntryKey]) -> None:
    """End the waits for answers that the transaction records."""
    table = _schema.waits
    key = tuple_(*table.primary_key)
    connection.execute(delete(table).where(key.in_([(run_id, *each) for each in keys])))


def row_of(table: Table, run_id: str, payer: str, number: int, content: Any, texts: NewTexts) -> _Row:
    """Row of one item of a run's record.

    Parameters
    ----------
    table : Table
        The table of the row.
    run_id : str
        The run.
    payer : str
        Identity of the experiment that pays for its calls.
    number : int
        The row's place in the record of the run.
    content : Any
        The journal entry, question to a person, turn, tie with its number, opinion, agent or edge.
    texts : NewTexts
        Collects the texts and prompts that the row refers to.
    """
    given: dict[str, Any] = {"run_id": run_id, "seq": number}
    if isinstance(content, Entry):
        if content.prompt is not None:
            texts.prompt(content.prompt)
        reasoning = texts.text(content.reasoning) if content.reasoning else None
        given |= {**content.key._asdict(), "entry": number, "experiment_id": payer, "reasoning_id": reasoning}
    elif isinstance(content, Question):
        given["question"] = content.as_json()
    elif isinstance(content, OpinionRow):
        probabilities = [_schema.to_nullable(probability) for probability in content.probabilities]
        given |= {"about": _schema.to_index(content.about), "probabilities": probabilities}
    elif table is _schema.ties:
        given["change"], content = content
    if isinstance(content, Entry | TurnRow):
        given["text_id"] = texts.text(content.text)
    return _schema.sealed_row(table, content, **given)
