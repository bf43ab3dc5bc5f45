"""Store addresses, the lock beside a SQLite file, and opening the file so that a failure leaves nothing behind."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from opinionsim.errors import StoreError
from opinionsim.store import _schema

__all__ = ["OpenFile", "as_store_error", "open_for_reading", "open_for_writing", "store_path"]

_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_VALID = "give sqlite:///PATH or a path that ends in " + ", ".join(_SUFFIXES)
#: How long a connection waits for another one's transaction before it gives up.
_BUSY_TIMEOUT_S = 30.0


class OpenFile:
    """An engine on a store's file and, for a writer, the lock that keeps other writers out."""

    def __init__(self, engine: Engine, lock: BaseFileLock | None = None) -> None:
        self.engine = engine
        self.lock = lock

    def close(self) -> None:
        """Close all connections and free the lock."""
        self.engine.dispose()
        if self.lock is not None:
            _free(self.lock)


def store_path(url: str) -> Path:
    """File a store address stands for.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH``, or a bare path ending in ``.sqlite``, ``.sqlite3`` or ``.db``.

    Raises
    ------
    StoreError
        For any other address. Its text is not repeated beyond the scheme: it may hold a password.
    """
    scheme = re.match(r"([A-Za-z][\w+.-]*)://", url)
    if scheme and scheme[1] not in ("sqlite", "sqlite+pysqlite"):
        raise StoreError(f"stores of kind {scheme[1]!r} are not supported by this version of opinionsim; {_VALID}")
    path = url[scheme.end() :].removeprefix("/") if scheme else url
    if scheme and not url[scheme.end() :].startswith("/"):
        raise StoreError(f"store address {url!r} needs three slashes before a path; {_VALID}")
    if path in ("", ":memory:") or path.startswith("file:"):
        raise StoreError(f"store address {url!r} names no file; {_VALID}")
    if "?" in path or "\x00" in path:
        raise StoreError(f"store address {url!r} has a '?' or NUL in its path; {_VALID}")
    if not scheme and Path(path).suffix not in _SUFFIXES:
        raise StoreError(f"{url!r} is not a store address; {_VALID}")
    return Path(path)


@contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Turn what the database or the file system raises into one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise StoreError(f"{what}: {reason}") from error
    except OSError as error:
        raise StoreError(f"{what}: {error.strerror or error}") from error
    except (sqlite3.Error, OverflowError) as error:
        raise StoreError(f"{what}: {error}") from error


def open_for_writing(given: Path) -> OpenFile:
    """Lock a store's file and open it, creating the file and its folders where they are absent."""
    with as_store_error(f"cannot write the store {given}"), ExitStack() as undo:
        path = _resolved(given)
        if path.is_dir():
            raise StoreError(f"the store {given} is a folder; {_VALID}")
        _make_folders(path.parent, undo)
        lock = _lock(path, given)
        undo.callback(_free, lock)
        if not path.exists():
            undo.callback(_remove, path)
        engine = _engine(path, "mode=rwc", read_only=False)
        undo.callback(engine.dispose)
        with engine.connect() as connection:
            version = _schema.stored_version(connection, f"the file {given}")
        _use_wal(engine)
        with engine.connect().execution_options(write=True) as connection, connection.begin():
            _schema.migrate(connection, version)
        undo.pop_all()
        return OpenFile(engine, lock)


def open_for_reading(given: Path) -> OpenFile:
    """Open an existing store without lock and without the right to change it."""
    with as_store_error(f"cannot read the store {given}"), ExitStack() as undo:
        path = _resolved(given)
        if not path.is_file():
            raise StoreError(f"there is no store at {given}; check the path, or run an experiment to make one")
        engine = _engine(path, _reading_mode(path), read_only=True)
        undo.callback(engine.dispose)
        with engine.connect() as connection:
            version = _schema.stored_version(connection, f"the file {given}")
        if version == 0:
            raise StoreError(f"the file {given} is empty, not yet an opinionsim store; run an experiment into it first")
        if version < len(_schema.MIGRATIONS):
            raise StoreError(
                f"the store {given} has the older schema version {version}; open it once for writing to bring it to "
                f"version {len(_schema.MIGRATIONS)}"
            )
        undo.pop_all()
        return OpenFile(engine)


def _resolved(given: Path) -> Path:
    """The file itself, behind any links; a loop of links is an error of the file system on every Python."""
    try:
        path = given.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(given)) from None
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()
    return path


def _reading_mode(path: Path) -> str:
    """SQLite's options for reading.

    A connection that may not write leaves its shared-memory files behind, so a reader opens the file
    for writing and forbids itself to use that, except where the folder leaves no choice.
    """
    if os.access(path.parent, os.W_OK):
        return "mode=rw"
    return "mode=ro" if path.with_name(path.name + "-wal").exists() else "mode=ro&immutable=1"


def _engine(path: Path, mode: str, *, read_only: bool) -> Engine:
    uri = f"{path.as_uri()}?{mode}"

    def connect() -> sqlite3.Connection:
        # Transactions are begun by the listener below: the driver's own would start them too late, after reads.
        connection = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous=NORMAL")
        if read_only:
            connection.execute("PRAGMA query_only=ON")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _use_wal(engine: Engine) -> None:
    """Let readers read while the writer writes; a setting of the file, so made only once it is known to be ours."""
    with closing(engine.raw_connection()) as raw:
        raw.cursor().execute("PRAGMA journal_mode=WAL")


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
    for name in (path.name, path.name + "-wal", path.name + "-shm", path.name + "-journal"):
        path.with_name(name).unlink(missing_ok=True)


def _lock(path: Path, given: Path) -> BaseFileLock:
    lock = FileLock(path.with_name(path.name + ".lock"), thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        holder = _holder(Path(lock.lock_file))
        raise StoreError(
            f"the store {given} is in use by another run{holder}; wait until it has ended or stop it, then try again"
        ) from None
    # The owner's process number is a courtesy to whoever finds the store taken; some systems forbid writing it.
    with suppress(OSError):
        Path(lock.lock_file).write_text(str(os.getpid()), encoding="ascii")
    return lock


def _holder(lock_file: Path) -> str:
    try:
        number = lock_file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
    return f" (process {number})" if number.isdecimal() else ""


def _free(lock: BaseFileLock) -> None:
    # Removed while still held: whoever opened the old file meanwhile finds it without a name and starts over.
    with suppress(OSError):
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()
