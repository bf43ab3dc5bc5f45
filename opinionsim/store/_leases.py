"""Leases on runs. A worker takes a lease to carry out a run or add opinions, which excludes other workers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, union, update

from opinionsim.errors import OpinionSimError, StoreError
from opinionsim.store import _counts, _queries, _schema, _stored
from opinionsim.store._rows import SeatRow
from opinionsim.store._workers import Heartbeat, lives

_run = _schema.runs.c
_asked = _run.run_id.in_(bindparam("run_ids", expanding=True))
#: Made once, since every transaction of a run asks. One order for all of them prevents deadlocks.
_EPOCHS = select(_run.run_id, _run.epoch).where(_asked).order_by(_run.run_id).with_for_update()


class HeldElsewhereError(StoreError):
    """An owner tried to change a run without holding its lease; nothing was changed."""


class Leases:
    """The leases on a store's runs; each method works inside the caller's write transaction.

    Parameters
    ----------
    url : str
        Address of the store, for messages.
    heartbeat : Heartbeat or None
        Heartbeats of this store's owners; None if the store has one writer at a time, so earlier owners no longer
        exist.
    """

    def __init__(self, url: str, heartbeat: Heartbeat | None) -> None:
        self._url = url
        self._heartbeat = heartbeat

    def take(self, connection: Connection, run_id: str, owner: str, *, complete: bool) -> int | None:
        """Lease a run; returns the new epoch, or None if the run cannot be leased.

        Parameters
        ----------
        connection : Connection
            Open for writing.
        run_id : str
            A registered run.
        owner : str
            Name of the worker that leases it.
        complete : bool
            True leases only complete runs, to add to them; False leases only other runs, to carry them out.

        Raises
        ------
        StoreError
            If the run is not registered or was withdrawn.
        """
        run = _locked(connection, [run_id]).get(run_id)
        if run is None or run.status == "withdrawn":
            raise StoreError(f"run {run_id} is {'not registered' if run is None else 'withdrawn'} in {self._url}")
        if (run.status == "complete") != complete or (run.owner != owner and self._is_elsewhere(connection, run)):
            return None
        if self._heartbeat is not None:
            self._heartbeat.add(connection, owner)
        epoch: int = run.epoch + 1
        state: dict[str, Any] = {} if complete else {"status": "running", "error": None}
        if run.begun_at is None:
            state["begun_at"] = time.time()
        set_run(connection, run_id, epoch=epoch, owner=owner, held=1, **state)
        if run.epoch == 0:
            _schema.insert_new(connection, _schema.counts, [_counts.Counts().sealed(run_id)])
        return epoch

    def clear(self, connection: Connection, run_ids: Iterable[str]) -> None:
        """Delete the rows of runs and set the runs back to pending, under a new epoch without an owner.

        The cost of their calls stays in the ledger, and the generation of each run increases by one.

        Raises
        ------
        HeldElsewhereError
            If another worker has the lease on one of them.
        """
        wanted = list(run_ids)
        for run_id, run in _locked(connection, wanted).items():
            if self._is_elsewhere(connection, run):
                doing = "measured" if run.status == "complete" else "carried out"
                raise HeldElsewhereError(
                    f"run {run_id} is being {doing} by {run.owner} and cannot start anew; wait for it to end or stop "
                    "it, then try again"
                )
        for some in _schema.chunks(wanted):
            _stored.settle_answered(connection, some)
            _schema.insert_new(connection, _schema.ledger, _queries.spent(connection, some))
            for table in (*_schema.PRODUCED, _schema.reservations, _schema.waits):
                connection.execute(delete(table).where(table.c.run_id.in_(some)))
        for run_id, run in _locked(connection, wanted).items():
            anew: dict[str, Any] = {"epoch": run.epoch + 1, "generation": run.generation + 1}
            set_run(connection, run_id, status="pending", owner="", error=None, held=0, begun_at=None, **anew)
            _schema.upsert(connection, _schema.counts, [_counts.Counts().sealed(run_id)])

    def withdraw(self, connection: Connection, run_id: str, agent: int) -> None:
        """Delete a person's texts in a run and everything after them, except what other people wrote.

        The method keeps only the texts, without calls and prompts, of turns before the person's first turn and of other
        people. It deletes texts and prompts that no run needs any more. The person's reports of harm stay, but without
        their words. The run is withdrawn for good.
        """
        turn, member = _schema.turns, _schema.agents
        cast = list(connection.execute(select(member).where(member.c.run_id == run_id)))
        others = {row.agent for row in cast if row.evidence == "human"} - {agent}
        said = list(connection.execute(select(turn).where(turn.c.run_id == run_id).order_by(turn.c.seq)))
        first = min((row.seq for row in said if row.agent == agent), default=len(said) + 1)
        kept = [row for row in said if row.seq < first or row.agent in others]
        self.clear(connection, [run_id])
        _schema.insert_new(connection, member, cast)
        counts, known = _counts.Counts({(member.name,): len(cast), (turn.name,): len(kept)}), {row.turn for row in kept}
        for seq, row in enumerate(kept, 1):
            reads = [ref for ref in _schema.read_json(turn, row, "reads") if isinstance(ref, str) or ref in known]
            _schema.insert_new(connection, turn, [_schema.sealed_row(turn, row, seq=seq, reads=reads)])
        _schema.upsert(connection, _schema.counts, [counts.sealed(run_id)])
        error = OpinionSimError("a person has withdrawn their texts", code="withdrawn")
        set_run(connection, run_id, status="withdrawn", error=error)
        connection.execute(delete(_schema.labels).where(_schema.labels.c.run_id == run_id))
        _stored.change_seat(connection, run_id, agent, _wordless)
        drop_unused(connection)

    def _is_elsewhere(self, connection: Connection, run: Any) -> bool:
        """Whether another live worker holds a run."""
        if self._heartbeat is None or not run.held or self._heartbeat.is_own(run.owner):
            return False
        return lives(connection, run.owner)


def _wordless(seat: SeatRow) -> SeatRow:
    """A seat without the words of its person."""
    return replace(seat, events=tuple({**event, "text": ""} for event in seat.events))


def drop_unused(connection: Connection) -> None:
    """Delete prompts and texts without any reference from a row."""
    journal, prompts, texts, turns = _schema.journal.c, _schema.prompts, _schema.texts, _schema.turns.c
    used = select(journal.prompt_hash.label("id")).cte("used", recursive=True)
    used = used.union(select(prompts.c.before).join(used, prompts.c.prompt_id == used.c.id))
    connection.execute(delete(prompts).where(prompts.c.prompt_id.not_in(select(used.c.id))))
    needed = union(
        select(turns.text_id), select(journal.text_id), select(prompts.c.text_id),
        select(journal.reasoning_id).where(journal.reasoning_id.is_not(None)),
    )  # fmt: skip
    connection.execute(delete(texts).where(texts.c.text_id.not_in(needed)))


def require_epoch(connection: Connection, run_id: str, epoch: int) -> None:
    """Raise an error if a lease has ended.

    Raises
    ------
    HeldElsewhereError
        If `epoch` is not the run's current one.
    """
    current = current_epochs(connection, [run_id]).get(run_id)
    if current != epoch:
        raise HeldElsewhereError(
            f"run {run_id} is not leased under epoch {epoch} (the store says {current}); another worker leased it, or "
            "nobody did"
        )


def current_epochs(connection: Connection, run_ids: Iterable[str]) -> dict[str, int]:
    """Epochs of runs, their rows held until the transaction ends where the database locks rows."""
    epochs: dict[str, int] = {}
    for some in _schema.chunks(run_ids):
        epochs.update((row.run_id, row.epoch) for row in connection.execute(_EPOCHS, {"run_ids": some}))
    return epochs


def set_run(connection: Connection, run_id: str, **values: Any) -> None:
    """Replace columns of a run's row, which must be intact; `error` is an OpinionSimError, or None for none."""
    table = _schema.runs
    if "error" in values:
        error = values["error"]
        cause = _schema.to_json({} if error is None else error.cause._asdict(), "the cause of an error")
        values |= {"error": "" if error is None else str(error), "cause": cause}
    for row in _schema.sealed(connection, table, select(table).where(table.c.run_id == run_id).with_for_update()):
        changed = {**row._asdict(), **values}
        names = table.columns.keys()
        sound = _schema.seal(table, [changed[name] for name in names[:-1]])
        connection.execute(update(table).where(table.c.run_id == run_id).values(dict(zip(names, sound, strict=True))))


def _locked(connection: Connection, run_ids: Iterable[str]) -> dict[str, Any]:
    """Rows of registered runs, held until the transaction ends where the database locks rows."""
    run = _schema.runs.c
    columns = (run.run_id, run.status, run.epoch, run.owner, run.held, run.generation, run.begun_at)
    statement = select(*columns).order_by(run.run_id).with_for_update()
    return {
        row.run_id: row
        for some in _schema.chunks(run_ids)
        for row in connection.execute(statement.where(run.run_id.in_(some)))
    }
