"""Stores in SQLite files: locks, waits, and opening without leftovers after a failure."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import LRUCache

from opinionsim.errors import StoreError
from opinionsim.foundation.sqlite_logs import keep_aside, lacks_pages, log_of, size_of, tidy
from opinionsim.store import _log
from opinionsim.store._address import VALID
from opinionsim.store._database import Database, as_store_error, create, holds_store, require_store

if TYPE_CHECKING:
    from filelock import BaseFileLock

#: How long a connection waits for another one's transaction before it tries anew.
_BUSY_TIMEOUT_S = 5.0
#: What the engines of all files have in common, so that a statement is spelled once and not for each store.
_COMMON, _SPELLED = create_engine("sqlite://"), LRUCache[Any, Any](500)
#: How long to try for the lock of a file.
_LOCK_S = 0.2
#: SQLite's own codes of errors that pass: busy, locked, disk full.
_PASSING = (5, 6, 13)


def open_for_writing(given: Path) -> Database:
    """Lock a store's file and open it; creates the file and its folders if they do not exist."""
    with as_store_error(f"cannot write the store {given}"), ExitStack() as undo, ExitStack() as closing:
        path = _resolved(given)
        if path.is_dir():
            raise StoreError(f"the store {given} is a folder; {VALID}")
        _make_folders(path.parent, undo)
        lock = _lock(path, given)
        closing.callback(_free, lock, _identity(lock.lock_file))
        _log.require_file(path, given)
        if not path.exists():
            undo.callback(_remove, path)
        with ExitStack() as checking:
            is_store = size_of(path) > 0 and _is_store(path, given, checking)
        engine = _engine(path, "mode=rwc", read_only=False)
        closing.callback(engine.dispose)
        _use_wal(engine)
        log = _log.Log(path, _connected(path, "mode=rw", read_only=False))
        closing.callback(log.close)
        event.listen(engine, "begin", log.renew)
        writing = engine.execution_options(write=True)
        if not is_store:
            with writing.begin() as connection:
                create(connection)
        log.tend()
        undo.pop_all()
        return _database(
            given,
            engine,
            writing,
            closing.pop_all(),
            present=_Present(given, path, written=True),
            settled=log.tend,
            scrub=log.scrub,
        )


def _is_store(path: Path, given: Path, closing: ExitStack) -> bool:
    """Whether a locked file holds a store, read with its log but so that neither is changed."""
    engine, has_log, damage = _examined(path, given, closing, alone=True)
    with engine.connect() as connection:
        is_store = holds_store(connection, f"the file {given}")
        if damage or (is_store and not has_log and _log.warn_unclean(path, given)):
            # A part of a lost log may have been brought in: on half of a change nothing must be built.
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
            if found != "ok":
                raise StoreError(f"the store {given} is damaged without its log ({found}); restore it from a backup")
    if damage:
        keep_aside(path)
    return is_store


def _examined(path: Path, given: Path, closing: ExitStack, *, alone: bool) -> tuple[Engine, bool, str]:
    """Connections that only read a file, whose log is its own; whether there was a log, and what is damaged in it."""
    mode = _reading_mode(path, given, alone=alone)
    # Beside a writer, SQLite takes frames by the writer's index of the log, and checks none of them.
    damage = "" if not alone and is_written(given) else _log.warn_damaged(path, given)
    has_log = _log.require_own(path, given, mode)
    engine = _engine(path, mode, read_only=True)
    closing.callback(engine.dispose)
    return engine, has_log, damage


def open_for_reading(given: Path) -> Database:
    """Open an existing store for reading only, without a lock."""
    with as_store_error(f"cannot read the store {given}"), ExitStack() as closing:
        path = _resolved(given)
        if not path.is_file():
            if path.is_dir():
                raise StoreError(f"the store {given} is a folder; {VALID}")
            _log.require_file(path, given)
            raise StoreError(f"there is no store at {given}; check the path, or run an experiment to make one")
        _log.require_file(path, given)
        closing.callback(tidy, path)
        engine, has_log, damage = _examined(path, given, closing, alone=False)
        with engine.connect() as connection:
            require_store(connection, f"the file {given}")
        if not has_log and not is_written(given):
            _log.warn_unclean(path, given)
        present = _Present(given, path, written=False)
        return _database(given, engine, None, closing.pop_all(), present=present, has_log=has_log, damage=damage)


def copy(given: Path, target: Path) -> None:
    """Copy a store, even while it is written, into a new file; a failure leaves nothing behind."""
    with ExitStack() as closing, as_store_error(f"cannot copy the store {given} to {target}"), ExitStack() as undo:
        source = open_for_reading(given)
        closing.callback(source.close)
        path = _resolved(target)
        if path.exists():
            raise StoreError(f"{target} already exists; choose another name for the copy")
        _make_folders(path.parent, undo)
        # Under another name until it is whole: a copy that is cut off never passes for a store.
        part = path.with_name(f".{path.name}.{os.getpid()}")
        undo.callback(_remove, part)
        with source.reading.connect() as connection:
            raw: Any = connection.connection.driver_connection
            _log.copy(raw, part)
        part.replace(path)
        undo.pop_all()


def is_written(given: Path) -> bool:
    """Whether a process has a store's file open for writing."""
    path = _resolved(given)
    try:
        import fcntl

        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDONLY)
    except FileNotFoundError:
        return False
    except (ImportError, OSError):
        # Where the lock cannot be tested, its file decides: it exists while the lock is held, or if its holder died.
        return path.with_name(path.name + ".lock").exists()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def writer_of(given: Path) -> int | None:
    """Number of the process of this machine that has a store's file open for writing; None if there is none."""
    return _holder(_resolved(given)) if is_written(given) else None


def _database(given: Path, reading: Engine, writing: Engine | None, closing: ExitStack, **hooks: Any) -> Database:
    url = f"sqlite:///{given}"
    return Database(url, reading, writing, shared=False, passes=_passes, closing=closing, **hooks)


class _Present:
    """Checks that the open file, and its log if it is written, are still those found under their names, and whole.

    A deleted or replaced file can still be written, but its content is lost when the last process closes it.
    """

    def __init__(self, given: Path, path: Path, *, written: bool) -> None:
        self._given = given
        self._doing = "written; it accepts no more rows" if written else "read"
        self._files = {str(path): _identity(str(path))} | ({f"{path}-wal": None} if written else {})
        self._path, self._size = path, 0
        if self._files[str(path)] is None:
            raise StoreError(f"the store {given} was deleted or moved while it was being opened")

    def __call__(self) -> None:
        for name, before in self._files.items():
            now = _identity(name)
            if before is None:
                self._files[name] = now
            elif now != before:
                what = "deleted or moved" if now is None else "replaced by another"
                raise StoreError(
                    f"{Path(name).name} of the store {self._given} was {what} while it was being {self._doing}"
                )
        # SQLite counts pages by the log, of which a file that was cut knows nothing. A file becomes shorter only where
        # it is rewritten without what was withdrawn, and then says itself how many pages it has.
        size = self._path.stat().st_size
        if size < self._size and lacks_pages(self._path, "mode=ro"):
            raise StoreError(
                f"the store {self._given} was cut from {self._size:,} to {size:,} bytes while it was being "
                f"{self._doing}. Restore it from a backup"
            )
        self._size = size


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _passes(error: SQLAlchemyError) -> bool:
    """Whether an error of an open file will pass."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return code & 0xFF in _PASSING


def _resolved(given: Path) -> Path:
    """The file itself, behind any links; a loop of links is an error of the file system on every Python."""
    path = Path(os.path.realpath(given))
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()
    return path


def _reading_mode(path: Path, given: Path, *, alone: bool = False) -> str:
    """SQLite's options for reading; `alone` where no other process writes the file.

    A connection that may write brings the log in when it closes, whosever it is, even if it has forbidden itself to
    write. One that may not write needs a log and an index of it, and makes them where they are absent; without either
    the file is read by itself.
    """
    log, index = log_of(path), path.with_name(path.name + "-shm")
    may_write = os.access(path.parent, os.W_OK)
    if not size_of(log) and (alone or not (may_write or (log.exists() and index.exists()))):
        return "mode=ro&immutable=1"
    if not may_write and not index.exists():
        raise StoreError(
            f"the store {given} can only be read with its log {log.name}, in a writable folder; copy both files into "
            "one"
        )
    return "mode=ro"


def _engine(path: Path, mode: str, *, read_only: bool) -> Engine:
    connect: Any = partial(_connected, path, mode, read_only=read_only)
    pool = QueuePool(connect, dialect=_COMMON.dialect)
    engine = Engine(pool, _COMMON.dialect, _COMMON.url, execution_options={"compiled_cache": _SPELLED})
    event.listen(engine, "begin", _begin)
    return engine


def _connected(path: Path, mode: str, *, read_only: bool) -> sqlite3.Connection:
    # Transactions are begun by the listener below: the driver's own would start them too late, after reads.
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA query_only=ON" if read_only else "PRAGMA wal_autocheckpoint=0")
    return connection


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _use_wal(engine: Engine) -> None:
    """Let readers read while the writer writes; a setting of the file, so made only once it is known to be ours."""
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode=WAL")
    finally:
        raw.close()


def _make_folders(folder: Path, undo: ExitStack) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        undo.callback(_remove_folder, each)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")


def _remove_folder(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _lock(path: Path, given: Path) -> BaseFileLock:
    # Commands that read a store lock nothing and start sooner without it.
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(path.name + ".lock"), thread_local=False)
    try:
        # A process that tests whether the file is being written holds the lock for a moment.
        lock.acquire(timeout=_LOCK_S, poll_interval=0.02)
    except Timeout:
        # Where no file can be made, as in /proc, nobody holds the lock.
        with TemporaryFile(dir=path.parent):
            pass
        holder = f" (process {number})" if (number := _holder(path)) else ""
        raise StoreError(
            f"the store {given} is in use by another run{holder}; wait for it to end or stop it, then try again"
        ) from None
    # The process number serves the error message of other processes; some systems forbid writing it.
    with suppress(OSError):
        Path(lock.lock_file).write_text(str(os.getpid()), encoding="ascii")
    return lock


def _holder(path: Path) -> int | None:
    """Number of the process that holds the lock of a file, if it says so."""
    with suppress(OSError):
        number = path.with_name(path.name + ".lock").read_text(encoding="ascii", errors="replace").strip()
        return int(number) if number.isdecimal() else None
    return None


def _free(lock: BaseFileLock, identity: tuple[int, int] | None) -> None:
    # Removed while still held: a process that has opened the old file finds it without a name and starts over. If the
    # folder was emptied, another process may hold a lock of that name by now.
    with suppress(OSError):
        if identity is not None and _identity(lock.lock_file) == identity:
            Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()
