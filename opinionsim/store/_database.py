"""Databases of both kinds: transactions, retries during locks or on a full disk, errors, and table version."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, inspect, select
from sqlalchemy.dialects import registry
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from opinionsim.errors import StoreError
from opinionsim.store._schema import TABLES, schema_version

_T = TypeVar("_T")

#: Version of the schema, raised whenever a table changes.
VERSION = 18

#: How long a transaction is tried again when the disk is full, another process keeps a file locked, or the connection
#: to a server is lost, seconds.
PATIENCE_S = 60.0
#: Waits between attempts at a transaction, seconds: doubling from the first to the longest.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0


@dataclass(eq=False, repr=False)
class Database:
    """An open database, for reading or for reading and writing.

    Parameters
    ----------
    url : str
        Address to open it again.
    reading : Engine
        For transactions that read one consistent state.
    writing : Engine or None
        For transactions that change rows; None if opened for reading.
    shared : bool
        Whether other processes may write to it at the same time.
    passes : callable
        Whether an error is temporary, so the transaction should be tried again.
    closing : ExitStack
        Closes the connections and frees the lock.
    present : callable
        Raises StoreError if the open database was deleted or replaced.
    settled : callable
        Called after each write transaction, before the next one; never raises an error.
    scrub : callable
        Implementation of :meth:`rewrite`.
    has_log : bool
        Whether a log was read together with a file.
    damage : str
        Damage found in the log when the file was opened.
    """

    url: str
    reading: Engine
    writing: Engine | None
    _: KW_ONLY
    shared: bool
    passes: Callable[[SQLAlchemyError], bool]
    closing: ExitStack
    present: Callable[[], None] = lambda: None
    settled: Callable[[], None] = lambda: None
    scrub: Callable[[], None] = lambda: None
    has_log: bool = False
    damage: str = ""

    def __post_init__(self) -> None:
        # Where one writer works at a time, a lock queues the threads of this process better than the database does.
        self._turn: AbstractContextManager[Any] = nullcontext() if self.shared else threading.RLock()

    def write(
        self,
        work: Callable[[Connection], _T],
        *,
        patience_s: float | None = None,
        failed: Callable[[], None] = lambda: None,
    ) -> _T:
        """Carry out `work` inside one write transaction.

        Parameters
        ----------
        work : callable
            Called with the connection, and again, in a new transaction, after an error that will pass, such as a lost
            connection; the failed transaction may have been committed all the same.
        patience_s : float, optional
            How long to go on trying; default `PATIENCE_S`.
        failed : callable
            Called when an attempt fails and another follows.

        Raises
        ------
        StoreError
            If the database was opened for reading only, or has been deleted or replaced since it was opened.
        SQLAlchemyError
            As the database raised it.
        """
        if self.writing is None:
            raise StoreError(f"the store {self.url} was opened for reading only; open it with write=True to change it")
        until = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
        wait = _FIRST_WAIT_S
        while True:
            try:
                with self._turn:
                    with self.writing.begin() as connection:
                        found = work(connection)
                        self.present()
                    self.settled()
                return found
            except SQLAlchemyError as error:
                if time.monotonic() + wait > until or not self.passes(error):
                    # What was done to the file says more than what the database makes of it.
                    self.present()
                    raise
                failed()
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)

    def rewrite(self) -> None:
        """Remove every byte of deleted rows, as far as possible."""
        with self._turn:
            self.scrub()

    def close(self) -> None:
        """Close all connections and release the resources of the database."""
        self.closing.close()


def reason(error: Exception) -> str:
    """First line of the database's message of an error."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Turn errors of the database or the file system into a StoreError of one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(f"{what}: {reason(error)}") from error
    except OSError as error:
        raise StoreError(f"{what}: {error.strerror or error}") from error
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise StoreError(f"{what}: {error}") from error


def create(connection: Connection) -> None:
    """Create all tables in an empty database, inside the caller's transaction."""
    for statement in _statements(f"{connection.dialect.name}.{connection.dialect.driver}"):
        connection.exec_driver_sql(statement)
    connection.execute(schema_version.insert(), {"version": VERSION, "applied_at": time.time()})


@cache
def _statements(driver: str) -> tuple[str, ...]:
    """What creates all tables, spelled once for each kind of database: that takes longer than to create them."""
    dialect = registry.load(driver)()
    return tuple(str(CreateTable(table).compile(dialect=dialect)) for table in TABLES.sorted_tables)


def holds_store(connection: Connection, where: str) -> bool:
    """Whether a database contains a store of this version; False for an empty one.

    Parameters
    ----------
    connection : Connection
        To the database.
    where : str
        Name of the database in errors.

    Raises
    ------
    StoreError
        If the database belongs to another program, or to another version of this one.
    """
    names = set(inspect(connection).get_table_names())
    if not names:
        return False
    if not names >= {"schema_version", "experiments", "runs", "journal"}:
        raise StoreError(f"{where} is the database of another program, not an opinionsim store; give another path")
    version = max(connection.scalars(select(schema_version.c.version)), default=0)
    if version != VERSION:
        advice = (
            "install the version of opinionsim that wrote it, or a later one"
            if version > VERSION
            else "read it with the version of opinionsim that wrote it, or give a new store"
        )
        raise StoreError(
            f"{where} has schema version {version}, but this version of opinionsim reads version {VERSION}; {advice}"
        )
    return True


def require_store(connection: Connection, where: str) -> None:
    """Refuse to read a database that holds no store.

    Raises
    ------
    StoreError
        If it is empty, or as for :func:`holds_store`.
    """
    if not holds_store(connection, where):
        raise StoreError(f"{where} is empty, not yet an opinionsim store; run an experiment into it first")
