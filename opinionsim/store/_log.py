"""The log of a store in a file: whether it belongs to the file, and when its rows move into the file.

SQLite writes new rows to a log, ``NAME-wal``, and copies them into the file later. It applies any log that it finds
next to a file, without checking that the log belongs to the file. A store therefore keeps a random number and its
predecessor in the fields ``user_version`` and ``application_id`` of the header, in the first page of the file, which
SQLite copies first. The number in the file alone must be one of the two that file and log show together.

The last two bits of the number in the file tell what the file contains without its log:

- clean: everything, because the store was closed; - emptied: everything up to the time when the log was last emptied; -
working: in addition, some of the rows written since then.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from opinionsim.errors import StoreError
from opinionsim.foundation.sqlite_logs import damaged_from, kept_as, lacks_pages, log_of, number_alone, size_of

CLEAN, _EMPTIED, _WORKING = 0, 1, 2
_KINDS = 4
#: Size of the log above which it is brought in, bytes: that of SQLite's own rule.
LIMIT = 4_000_000
#: How long bringing it in waits for readers, while nothing can be written: in the midst of a run, and at its end.
_WAIT_MS, _LAST_WAIT_MS = 20, 1000
#: Seconds until it is tried again where readers were in the way.
_AGAIN_S = 1.0
_logger = logging.getLogger(__name__)


def require_file(path: Path, given: Path) -> None:
    """Raise an error for a log without its file, because SQLite would delete it.

    Raises
    ------
    StoreError
        If a log is not empty, but its file is missing or empty.
    """
    log = log_of(path)
    if size_of(log) and not size_of(path):
        raise StoreError(
            f"the store {given} is missing, but its log {log.name} exists and has the only copy of some replies; put "
            "the store back, or move the log away to start a new store"
        )


def require_own(path: Path, given: Path, mode: str) -> bool:
    """Before reading, raise an error for a truncated file, or for a log that belongs to another file.

    Parameters
    ----------
    path, given : Path
        The file, and its name in messages.
    mode : str
        How SQLite opens it for reading.

    Returns
    -------
    bool
        Whether there is a log, which may be empty.

    Raises
    ------
    StoreError
        If the number of the file alone does not match file and log together, or both lack a page.
    """
    log = log_of(path)
    if not size_of(log):
        return log.exists()
    with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None)) as connection:
        alone = number_alone(path)
        while alone not in _together(connection):
            before, alone = alone, number_alone(path)
            # A process that writes the store may have emptied the log between the two looks.
            if alone == before:
                raise StoreError(
                    f"{log.name} beside {given} belongs to another state of this store or to another store, and would "
                    f"damage it; if {given} is a restored copy, move {log.name} away and keep it, else put its own "
                    "store back"
                )
        if lacks_pages(path, mode):
            raise StoreError(f"the store {given} was truncated: it and {log.name} lack pages; restore it from a backup")
    return True


def warn_damaged(path: Path, given: Path) -> str:
    """Warn once about a damaged log that nobody writes; returns the damage, or nothing.

    SQLite silently reads a log only up to the damage, and deletes the log when the store is closed.
    """
    log = log_of(path)
    found = damaged_from(log)
    # A process that has begun to write in the meantime changes what there is.
    if found is None or damaged_from(log) != found:
        return ""
    what = f"the log {log.name} of the store {given} is damaged at byte {found:,} and unreadable after it"
    _warn(f"{what}; the next command that writes the store saves it as {kept_as(log).name} and keeps the rest")
    return what


def warn_unclean(path: Path, given: Path) -> bool:
    """Warn once if a file without a log was not closed, so replies may be missing; returns whether it did."""
    unclean = number_alone(path) % _KINDS != CLEAN
    if unclean:
        _warn(
            f"the store {given} was not closed and has no log; if you copied or moved it without {log_of(path).name}, "
            "the last replies are missing; copy the log too, or continue without them"
        )
    return unclean


@cache
def _warn(said: str) -> None:
    _logger.warning("%s", said)


def _together(connection: sqlite3.Connection) -> tuple[int, int]:
    """Number and predecessor that file and log show together."""
    connection.execute("BEGIN")
    number, before = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id"))
    connection.execute("ROLLBACK")
    return number, before


def _give_number(connection: sqlite3.Connection, kind: int, before: int) -> int:
    """Give the file of a connection a new number within its transaction; returns it."""
    number = secrets.randbelow(1 << 29) * _KINDS + kind
    connection.execute(f"PRAGMA user_version={number}")
    connection.execute(f"PRAGMA application_id={before}")
    return number


def copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy file and log into a new file, with a new number and marked as clean."""
    with closing(sqlite3.connect(target)) as connection:
        source.backup(connection)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            _give_number(connection, CLEAN, 0)


class Log:
    """The log of a file that only this process writes; make its calls one at a time.

    Parameters
    ----------
    path : Path
        The file.
    own : sqlite3.Connection
        A connection only for the log; no connection copies the log into the file automatically.
    """

    def __init__(self, path: Path, own: sqlite3.Connection) -> None:
        self._log, self._own = log_of(path), own
        #: Number of the file since the log was last emptied; the transaction that finds it replaces it.
        self._emptied: int | None = None
        self._next = 0.0

    def renew(self, connection: Connection) -> None:
        """Give the file a new number in the first transaction after the log was emptied."""
        if self._emptied is not None and connection.get_execution_options().get("write"):
            raw: Any = connection.connection.driver_connection
            if raw.execute("PRAGMA user_version").fetchone()[0] == self._emptied:
                _give_number(raw, _WORKING, self._emptied)

    def tend(self) -> None:
        """Copy a long log into the file, between two transactions; after a failure, try again later."""
        if (self._emptied is None or size_of(self._log) > LIMIT) and time.monotonic() >= self._next:
            # What was written is safe in the log; if the disk is full, the next transaction says so.
            with suppress(sqlite3.Error):
                if self._bring_in(_EMPTIED, _WAIT_MS):
                    return
            self._next = time.monotonic() + _AGAIN_S

    def scrub(self) -> None:
        """Rewrite the file without deleted rows, and empty the log.

        Raises
        ------
        sqlite3.Error
            If a reader still needs the log.
        """
        self._own.execute("VACUUM")
        if not self._bring_in(_EMPTIED, _LAST_WAIT_MS):
            raise sqlite3.OperationalError("somebody reads it; try again")

    def close(self) -> None:
        """Copy the log into the file and mark it clean; after a failure, the next writer of the store does this."""
        with closing(self._own), suppress(sqlite3.Error):
            self._bring_in(CLEAN, _LAST_WAIT_MS)

    def _bring_in(self, kind: int, wait_ms: int) -> bool:
        """Copy the log into the file, give the file a number by itself, and empty the log.

        False where a reader still needs the log: all is as safe as before, and the log goes on.
        """
        self._own.execute(f"PRAGMA busy_timeout={wait_ms}")
        if not self._copied():
            return False
        # A number of its own only now: the same number on a file that holds all of the log and on one that holds a part
        # of it would let a copy of the latter pass for the former.
        with self._own:
            self._own.execute("BEGIN IMMEDIATE")
            before = self._own.execute("PRAGMA user_version").fetchone()[0]
            number = _give_number(self._own, kind, before)
        if not self._copied():
            return False
        self._emptied = number
        return True

    def _copied(self) -> bool:
        """Copy the log into the file and empty it; whether all was copied, so that the next row may begin it anew."""
        _, written, copied = self._own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return bool(0 <= written == copied)
