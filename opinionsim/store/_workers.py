"""Workers that share a database: their heartbeats, by its clock, and their reservations in one budget."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Select, delete, exists, extract, func, literal, select, tuple_
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.errors import StoreError
from opinionsim.llm import Call, Entry, Usage
from opinionsim.store import _schema
from opinionsim.store._counts import FILTERED
from opinionsim.store._database import Database
from opinionsim.store._rows import Doing

if TYPE_CHECKING:
    from opinionsim.llm import Limits

#: Seconds between two signs of life.
HEARTBEAT_S = 5.0
#: Seconds after the last one until a worker counts as dead and its runs may be taken over.
EXPIRY_S = 30.0


#: How long one sign of life is tried: the next one comes soon enough.
_PATIENCE_S = 1.0


class Heartbeat:
    """Heartbeats of the owners with leases through one open store, sent by a thread.

    Each heartbeat reports what the owner is doing.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owners: set[str] = set()
        self._doing: Callable[[], Doing | None] = lambda: None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, connection: Connection, owner: str) -> None:
        """Send a heartbeat within the transaction of a lease, because others could take the run if it had expired."""
        _beat(connection, [owner], self._doing())

    def tell(self, doing: Callable[[], Doing]) -> None:
        """Set the function that reports what the owners are doing."""
        self._doing = doing

    def keep(self, owner: str) -> None:
        """Keep sending heartbeats for an owner whose lease is committed."""
        self._owners.add(owner)
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="opinionsim-heartbeat", daemon=True)
            self._thread.start()

    def is_own(self, owner: str) -> bool:
        """Whether an owner belongs to this store."""
        return owner in self._owners

    def stop(self) -> None:
        """Stop the heartbeats and remove the last ones, so others can lease the owners' runs at once."""
        self._stopped.set()
        if self._thread is None:
            return
        if threading.current_thread() is not self._thread:
            self._thread.join()
        # Where the database is gone, the owners' runs can be leased when their signs of life have expired.
        with suppress(SQLAlchemyError, StoreError):
            self._database.write(self._forget, patience_s=_PATIENCE_S)

    def _loop(self) -> None:
        while not self._stopped.wait(HEARTBEAT_S):
            # The next sign makes up for a missed one. If the runs are taken over, leases still allow one writer only.
            with suppress(SQLAlchemyError, StoreError):
                self._database.write(self._beat_all, patience_s=_PATIENCE_S)

    def _beat_all(self, connection: Connection) -> None:
        _beat(connection, sorted(self._owners), self._doing())

    def _forget(self, connection: Connection) -> None:
        connection.execute(delete(_schema.workers).where(_schema.workers.c.owner.in_(sorted(self._owners))))


def live(connection: Connection) -> Select[tuple[str]]:
    """The owners with a heartbeat that has not expired."""
    workers = _schema.workers
    return select(workers.c.owner).where(workers.c.heartbeat_at > _now(connection) - EXPIRY_S)


def lives(connection: Connection, owner: str) -> bool:
    """Whether an owner has a heartbeat that has not expired."""
    return bool(connection.scalar(select(exists(live(connection).where(_schema.workers.c.owner == owner)))))


def doing(connection: Connection) -> list[Doing]:
    """What each live worker was doing at its last heartbeat, if known."""
    workers = live(connection).with_only_columns(_schema.workers.c.doing).order_by(_schema.workers.c.owner)
    return [Doing(**told) for told in map(json.loads, connection.scalars(workers)) if told]


def _beat(connection: Connection, owners: list[str], doing: Doing | None) -> None:
    now = float(connection.scalars(select(_now(connection))).one())
    told = _schema.to_json({} if doing is None else doing._asdict(), "what a worker is doing")
    _schema.upsert(connection, _schema.workers, [(owner, now, told) for owner in owners])


def _now(connection: Connection) -> ColumnElement[Any]:
    """Unix time; of a shared database by its clock, which is the same for all workers."""
    if connection.dialect.name == "sqlite":
        return literal(time.time())
    return extract("epoch", func.clock_timestamp())


# -- budgets ---------------------------------------------------------------------------------------------------------

_TOTALS, _HELD = _schema.totals, _schema.reservations
_KEY = tuple_(*_HELD.primary_key)


def reserve(
    connection: Connection, experiment_id: str, owner: str, call: Call, worst: Usage, limits: Limits
) -> tuple[bool, Usage]:
    """Reserve the maximum cost of a call, if limits allow it in addition to usage paid and reserved by live workers.

    Until the transaction ends, nobody else reserves or pays for this experiment.

    Parameters
    ----------
    connection : Connection
        Open for writing.
    experiment_id : str
        The experiment that pays.
    owner : str
        The worker that calls. It takes over a reservation that another worker left under the same key.
    call : tuple
        Run, turn, call and attempt.
    worst : Usage
        The maximum cost of the call.
    limits : Limits
        Limits of the total usage of the experiment.

    Returns
    -------
    reserved : bool
        Whether it was reserved.
    paid : Usage
        The usage that is paid.
    """
    total = (
        select(_TOTALS.c.calls, _TOTALS.c.tokens, _TOTALS.c.money)
        .where(_TOTALS.c.experiment_id == experiment_id)
        .with_for_update()
    )
    if (row := connection.execute(total).first()) is None:
        _schema.insert_new(connection, _TOTALS, [(experiment_id, 0, 0, 0.0)])
        row = connection.execute(total).one()
    paid = Usage(**row._asdict())
    sums = [func.coalesce(func.sum(column), 0).label(column.name) for column in (_HELD.c.tokens, _HELD.c.money)]
    others = select(func.count().label("calls"), *sums).where(
        _HELD.c.experiment_id == experiment_id, _KEY.not_in([call])
    )
    held = Usage(**connection.execute(others.where(_HELD.c.owner.in_(live(connection)))).one()._asdict())
    if limits.exceeded_by(paid + held + worst):
        return False, paid
    _schema.upsert(connection, _HELD, [(*call, experiment_id, owner, worst.tokens, worst.money)])
    return True, paid


def release(connection: Connection, call: Call) -> None:
    """End the reservation of a call that cost nothing."""
    connection.execute(delete(_HELD).where(_KEY.in_([call])))


def settle(connection: Connection, entries: Sequence[tuple[str, str, Entry]]) -> None:
    """End the reservations of calls whose replies the transaction stores, and add their cost to the paid usage.

    If a provider did not report the tokens of a call, its cost is the reserved amount.

    Parameters
    ----------
    connection : Connection
        Open for writing. Until its transaction ends, nobody else can reserve for the experiments that pay, so call
        this last.
    entries : sequence of tuple
        Experiment that pays, run, and entry.
    """
    calls = [(run_id, *entry.key) for _, run_id, entry in entries]
    ended = delete(_HELD).where(_KEY.in_(calls)).returning(*_HELD.primary_key, _HELD.c.tokens, _HELD.c.money)
    rows = connection.execute(ended)
    held = {(row.run_id, row.turn, row.call, row.attempt): (row.tokens, row.money) for row in rows}
    paid: dict[str, Usage] = {}
    for (payer, _, entry), call in zip(entries, calls, strict=True):
        cost = (0, 0.0) if entry.finish_reason == FILTERED else held.get(call, (0, 0.0))
        if entry.input_tokens is not None and entry.output_tokens is not None:
            cost = (entry.input_tokens + entry.output_tokens, entry.cost or 0.0)
        paid[payer] = paid.get(payer, Usage()) + Usage(1, *cost)
    # One order for all transactions prevents deadlocks.
    _schema.upsert(connection, _TOTALS, [(payer, *astuple(paid[payer])) for payer in sorted(paid)], adding=True)


def left_behind(connection: Connection) -> dict[str, int]:
    """Calls in flight, by id of experiment, when a worker with a budget in a shared store ended.

    They may have been paid for. When their runs continue, the calls are made again and no longer count here.
    """
    gone = select(_HELD.c.experiment_id, func.count().label("calls")).where(_HELD.c.owner.not_in(live(connection)))
    return {row.experiment_id: row.calls for row in connection.execute(gone.group_by(_HELD.c.experiment_id))}
