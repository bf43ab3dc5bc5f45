"""Makes the rows of the tables from the rows that a store receives; batches of calls, and the replies that they owe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, select

from opinionsim.errors import StoreError
from opinionsim.llm import Entry, Question
from opinionsim.store import _queries, _schema
from opinionsim.store._rows import SUMMARY, DesignRow, ExperimentRun, OpinionRow, Paid, RunRow, SeatRow, TurnRow

if TYPE_CHECKING:
    from opinionsim.store._writer import NewTexts

_Row = tuple[Any, ...]

_BATCH, _CALL, _ENTRY = _schema.batches, _schema.batched, _schema.journal


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
    asked = select(runs.c.run_id).where(runs.c.begun_at > 0)
    some = _schema.portions(asked, runs.c.run_id, (run.run_id for run in left))
    begun = {run_id for each in some for run_id in connection.scalars(each)}
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


# -- batches -------------------------------------------------------------------------------------------------


class BatchRow(NamedTuple):
    """A batch of calls.

    Attributes
    ----------
    token : str
        The name that the package gave it.
    experiment_id : str
        The experiment that pays.
    part, account, model : str
        The part of kind ``lane`` that submits it, the provider's account, and the model.
    calls, done : int
        Number of calls, and of those that were done when the provider was last asked.
    created_at, submitted_at, expires_at, ended_at, revoked_at : float or None
        Unix times: when the package began to submit it; when the provider had accepted it; when it expires; when it
        ended; and when its input file was deleted so that it cannot begin. None if unknown.
    file, batch_id : str
        The provider's names of its input file and of the batch; empty if unknown.
    state : str
        ``open`` while it owes replies, then ``closed``.
    """

    token: str
    experiment_id: str
    part: str
    account: str
    model: str
    calls: int
    created_at: float
    file: str = ""
    batch_id: str = ""
    submitted_at: float | None = None
    done: int = 0
    expires_at: float | None = None
    ended_at: float | None = None
    revoked_at: float | None = None
    state: str = "open"


class OwedCall(NamedTuple):
    """A call of an open batch, with its key, the hash of its prompt, and the most that it may cost."""

    custom_id: str
    run_id: str
    turn: int
    call: str
    attempt: int
    prompt_hash: str
    tokens: int
    money: float


#: Whether the journal has the reply to a call of a batch, and whether the batch still owes it.
_ANSWERED = exists().where(
    and_(*(_ENTRY.c[name] == _CALL.c[name] for name in ("run_id", "turn", "call", "attempt", "prompt_hash")))
)
_OWED = and_(_CALL.c.owed == 1, ~_ANSWERED)


def batches(connection: Connection) -> list[BatchRow]:
    """All batches, oldest first."""
    rows = _schema.sealed(connection, _BATCH, select(_BATCH).order_by(_BATCH.c.created_at))
    return [_schema.made(BatchRow, _BATCH, row) for row in rows]


def batched(connection: Connection, token: str) -> dict[str, OwedCall | None]:
    """Calls of an open batch by `custom_id`; None for those that it does not owe any more."""
    every = connection.scalars(select(_CALL.c.custom_id).where(_CALL.c.token == token))
    owed = {each.custom_id: each for each in _owed(connection, token)}
    return {custom_id: owed.get(custom_id) for custom_id in every}


def _owed(connection: Connection, token: str) -> list[OwedCall]:
    rows = _schema.sealed(connection, _CALL, select(_CALL).where(_CALL.c.token == token, _OWED))
    return [_schema.made(OwedCall, _CALL, row) for row in rows]


def save(connection: Connection, batch: BatchRow, calls: Sequence[OwedCall] = ()) -> None:
    """Save the state of a batch, and the calls that it adds."""
    _schema.upsert(connection, _BATCH, [_schema.sealed_row(_BATCH, batch)])
    _schema.insert_new(
        connection, _CALL, [_schema.sealed_row(_CALL, each, token=batch.token, owed=1) for each in calls]
    )


def free(connection: Connection, batch: BatchRow, custom_ids: Iterable[str], paid: Paid | None) -> None:
    """Note that a batch does not owe calls any more, and keep in the ledger what was paid for them."""
    for some in _schema.chunks(custom_ids):
        _settle(connection, and_(_CALL.c.token == batch.token, _CALL.c.custom_id.in_(some)))
    if paid is not None:
        _charge(connection, batch, paid)


def _settle(connection: Connection, which: ColumnElement[bool]) -> None:
    rows = list(_schema.sealed(connection, _CALL, select(_CALL).where(which)))
    _schema.upsert(connection, _CALL, [_schema.sealed_row(_CALL, row, owed=0) for row in rows])


def close(connection: Connection, batch: BatchRow, used: Mapping[str, Paid]) -> bool:
    """Close a batch if it owes nothing more.

    It owes nothing if each reply is in the journal, or answers a call that its run will not make again: then the ledger
    keeps what the reply cost.

    Parameters
    ----------
    connection : Connection
        Open for writing.
    batch : BatchRow
        The batch.
    used : mapping of str to Paid
        Usage of replies that arrived, by `custom_id`.
    """
    left, run, ours = _owed(connection, batch.token), _schema.runs.c, _CALL.c.token == batch.token
    open_runs = select(run.run_id).where(run.status.in_(("pending", "running", "incomplete")))
    unfinished = set(connection.scalars(select(_CALL.c.run_id).where(ours, _CALL.c.run_id.in_(open_runs)).distinct()))
    if any(each.run_id in unfinished or each.custom_id not in used for each in left):
        return False
    if left:
        _charge(connection, batch, sum((used[each.custom_id] for each in left), Paid()))
    connection.execute(delete(_CALL).where(ours))
    save(connection, batch._replace(state="closed"))
    return True


def _charge(connection: Connection, batch: BatchRow, paid: Paid) -> None:
    """Keep in the ledger what was paid for replies that no journal has."""
    ledger, name = _schema.ledger, f"batch {batch.token}"
    before = connection.scalar(select(func.count()).where(ledger.c.run_id == name))
    place = {"experiment_id": batch.experiment_id, "run_id": name, "generation": before}
    _schema.insert_new(connection, ledger, [_schema.sealed_row(ledger, paid, **place, forgotten_at=time.time())])


def settle_answered(connection: Connection, run_ids: list[str]) -> None:
    """Note which calls of runs the journal has answers to, before it forgets them."""
    _settle(connection, and_(_CALL.c.run_id.in_(run_ids), _ANSWERED))
