"""What the store needs of a database, whichever it is: transactions that last, and errors in one sentence."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.errors import StoreError

_T = TypeVar("_T")

#: Waits between attempts at a transaction, seconds: doubling from the first to the longest.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0


@dataclass(eq=False, repr=False)
class Database:
    """An open database: a place to read, for a writer a place to write, and what closing it takes.

    Parameters
    ----------
    url : str
        Address under which it opens again.
    reading : Engine
        Its transactions see one consistent state.
    writing : Engine or None
        Its transactions may change things; None when opened for reading.
    shared : bool
        Whether other processes may write it at the same time.
    passes : callable
        Whether an error will pass when the transaction is tried again.
    patience_s : float
        How long to go on trying.
    closing : ExitStack
        What closing it undoes.
    present : callable
        Raises StoreError where the database is not any more what was opened.
    """

    url: str
    reading: Engine
    writing: Engine | None
    _: KW_ONLY
    shared: bool
    passes: Callable[[SQLAlchemyError], bool]
    patience_s: float
    closing: ExitStack
    present: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        # A database with one writer at a time has its own way of queueing; among threads this is a better one.
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
            Given the connection. Carried out again, in a transaction of its own, after an error that will
            pass, such as a lost connection; the first may have been committed without our hearing of it.
        patience_s : float, optional
            How long to go on trying; default that of the database.
        failed : callable
            Told whenever an attempt fails and another will be made.

        Raises
        ------
        StoreError
            If the database was opened for reading only, or has been deleted or replaced since it was opened.
        SQLAlchemyError
            As the database raised it.
        """
        if self.writing is None:
            raise StoreError(f"the store {self.url} was opened for reading only; open it with write=True to change it")
        until = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        wait = _FIRST_WAIT_S
        while True:
            try:
                with self._turn, self.writing.begin() as connection:
                    found = work(connection)
                    self.present()
                return found
            except SQLAlchemyError as error:
                if time.monotonic() + wait > until or not self.passes(error):
                    raise
                failed()
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)

    def close(self) -> None:
        """Close all connections and free what the database holds."""
        self.closing.close()


def reason(error: Exception) -> str:
    """What the database says of an error, on one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Turn what the database or the file system raises into one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(f"{what}: {reason(error)}") from error
    except OSError as error:
        raise StoreError(f"{what}: {error.strerror or error}") from error
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise StoreError(f"{what}: {error}") from error
