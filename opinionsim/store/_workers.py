"""Signs of life: which of the processes that share a store are alive, by the clock of the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, exists, extract, func, literal, select
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.errors import StoreError
from opinionsim.store import _schema
from opinionsim.store._database import Database

#: Seconds between two signs of life.
HEARTBEAT_S = 5.0
#: Seconds after the last one until a worker counts as dead and its runs may be taken over.
EXPIRY_S = 30.0


#: How long one sign of life is tried: the next one comes soon enough.
_PATIENCE_S = 1.0


class Heartbeat:
    """Signs of life of the owners that hold claims through one open store, given by a thread.

    Each carries a line on what the owner is doing.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owners: set[str] = set()
        self._doing: Callable[[], str] = str
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, connection: Connection, owner: str) -> None:
        """Give a sign of life within the transaction of a claim: under an expired one, others could take it at once."""
        _beat(connection, [owner], self._doing())

    def tell(self, doing: Callable[[], str]) -> None:
        """Set the function that gives the line on what the owners are doing."""
        self._doing = doing

    def keep(self, owner: str) -> None:
        """Go on giving signs of life of an owner whose claim is committed."""
        self._owners.add(owner)
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="opinionsim-heartbeat", daemon=True)
            self._thread.start()

    def is_own(self, owner: str) -> bool:
        """Whether an owner is one of this store's."""
        return owner in self._owners

    def stop(self) -> None:
        """Give no more signs of life, and take the last ones back: the owners' runs can be claimed at once."""
        self._stopped.set()
        if self._thread is None:
            return
        if threading.current_thread() is not self._thread:
            self._thread.join()
        # Where the database is gone, the owners' runs can be claimed when their signs of life have expired.
        with suppress(SQLAlchemyError, StoreError):
            self._database.write(self._forget, patience_s=_PATIENCE_S)

    def _loop(self) -> None:
        while not self._stopped.wait(HEARTBEAT_S):
            # The next sign makes up for a missed one. If the runs are taken over, claims still allow one writer only.
            with suppress(SQLAlchemyError, StoreError):
                self._database.write(self._beat_all, patience_s=_PATIENCE_S)

    def _beat_all(self, connection: Connection) -> None:
        _beat(connection, sorted(self._owners), self._doing())

    def _forget(self, connection: Connection) -> None:
        connection.execute(delete(_schema.workers).where(_schema.workers.c.owner.in_(sorted(self._owners))))


def live(connection: Connection) -> Select[tuple[str]]:
    """The owners that have given a sign of life that has not expired."""
    workers = _schema.workers
    return select(workers.c.owner).where(workers.c.heartbeat_at > _now(connection) - EXPIRY_S)


def lives(connection: Connection, owner: str) -> bool:
    """Whether an owner has given a sign of life that has not expired."""
    return bool(connection.scalar(select(exists(live(connection).where(_schema.workers.c.owner == owner)))))


def doing(connection: Connection) -> list[str]:
    """Lines of the live owners on what they are doing, sorted."""
    doing = _schema.workers.c.doing
    return sorted(connection.scalars(live(connection).with_only_columns(doing).where(doing != "")))


def _beat(connection: Connection, owners: list[str], doing: str) -> None:
    now = float(connection.scalars(select(_now(connection))).one())
    _schema.upsert(connection, _schema.workers, [(owner, now, doing) for owner in owners])


def _now(connection: Connection) -> ColumnElement[Any]:
    """Unix time; of a shared database by its clock, which is the same for all workers."""
    if connection.dialect.name == "sqlite":
        return literal(time.time())
    return extract("epoch", func.clock_timestamp())
