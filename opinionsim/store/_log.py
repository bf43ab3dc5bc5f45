"""The log of a store in a file: whether it is this file's own, and when its rows are brought into the file.

SQLite writes new rows to a log, ``NAME-wal``, and copies them into the file later. It applies whatever log it finds
beside a file, without asking whether it is the file's own. A store therefore keeps a random number and its predecessor
in the first page of the file, which SQLite copies before any other: in the fields ``user_version`` and
``application_id`` of the header. What the file alone shows must be one of the two that file and log show together.

The last two bits of a number tell what the file holds by itself where that is its number:

- clean: everything, when it was closed;
- emptied: everything up to the time the log was last emptied;
- working: some of what was written since.
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
    """Refuse a log without its file, which SQLite would delete.

    Raises
    ------
    StoreError
        If there is a log that is not empty, and no file or an empty one beside it.
    """
    log = log_of(path)
    if size_of(log) and not size_of(path):
        raise StoreError(
            f"the store {given} is missing, but its log {log.name} exists and has the only copy of some replies; put "
            "the store back, or move the log away to start a new store"
        )


def require_own(path: Path, given: Path, mode: str) -> bool:
    """Refuse a file whose log is another file's, or that was cut, before anything is read through it.

    Parameters
    ----------
    path, given : Path
        The file, and its name in errors.
    mode : str
        How SQLite opens it for reading.

    Returns
    -------
    bool
        Whether there is a log, which may be empty.

    Raises
    ------
    StoreError
        If the number of the file alone is none that file and log show together, or a page is in neither of them.
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
            raise StoreError(f"the store {given} was cut: it and {log.name} lack pages; restore it from a copy")
    return True


def warn_damaged(path: Path, given: Path) -> str:
    """Say once of a log that nobody writes that it is damaged; returns what is damaged, or nothing.

    SQLite reads a log up to its damage, is silent about the rest, and deletes it when the store is closed.
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
    """Say once, of a file without a log, that it was not closed, so that replies may be missing; whether it is so."""
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
    """Copy file and log into a new file, which gets a number of its own and is marked clean."""
    with closing(sqlite3.connect(target)) as connection:
        source.backup(connection)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            _give_number(connection, CLEAN, 0)


class Log:
    """The log of a file that this process alone writes; the calls are made one at a time.

    Parameters
    ----------
    path : Path
        The file.
    own : sqlite3.Connection
        A connection to it for the log alone; no connection brings the log in by itself.
    """

    def __init__(self, path: Path, own: sqlite3.Connection) -> None:
        self._log, self._own = log_of(path), own
        #: Number of the file since the log was last emptied; the transaction that finds it replaces it.
        self._emptied: int | None = None
        self._next = 0.0

    def renew(self, connection: Connection) -> None:
        """Give the file another number in the first transaction after the log was emptied."""
        if self._emptied is not None and connection.get_execution_options().get("write"):
            raw: Any = connection.connection.driver_connection
            if raw.execute("PRAGMA user_version").fetchone()[0] == self._emptied:
                _give_number(raw, _WORKING, self._emptied)

    def tend(self) -> None:
        """Bring the log in where it has grown long, between two transactions; where that fails, try again later."""
        if (self._emptied is None or size_of(self._log) > LIMIT) and time.monotonic() >= self._next:
            # What was written is safe in the log; if the disk is full, the next transaction says so.
            with suppress(sqlite3.Error):
                if self._bring_in(_EMPTIED, _WAIT_MS):
                    return
            self._next = time.monotonic() + _AGAIN_S

    def scrub(self) -> None:
        """Rewrite the file without what was deleted, and empty the log.

        Raises
        ------
        sqlite3.Error
            If a reader still needs the log.
        """
        self._own.execute("VACUUM")
        if not self._bring_in(_EMPTIED, _LAST_WAIT_MS):
            raise sqlite3.OperationalError("somebody reads it; try again")

    def close(self) -> None:
        """Bring the log in and mark the file clean; where that fails, the next writer of the store does it."""
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
