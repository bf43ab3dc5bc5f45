"""A SQLite file and its log: its user number, whether pages are missing, and whether the log is damaged.

A log consists of frames, each a page as a transaction left it. A frame begins with the number of its page, the size
of the file if it ends a transaction (otherwise 0), the random salt of the log, and a checksum that continues that of
the frame before. SQLite reads up to the first frame with a wrong salt or checksum, ignores the rest, and deletes
the log when the file is closed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from contextlib import closing, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Bytes of the head of a log, and of a frame before its page.
_LOG_HEAD, _HEAD = 32, 24
#: First four bytes of a log; the last bit says in which order of bytes it is summed.
_MAGIC = (0x377F0682, 0x377F0683)
#: Byte of a file that SQLite locks; the page that holds it is never written.
_LOCKED = 0x40000000


def log_of(path: Path) -> Path:
    """The log next to a file.

    Parameters
    ----------
    path : Path
        The file.
    """
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    """Size of a file in bytes; 0 if there is none.

    Parameters
    ----------
    path : Path
        The file.
    """
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def damaged_from(log: Path) -> int | None:
    """Byte at which a log is damaged, after which transactions are not read; None if it is intact.

    An incomplete end, which a killed process leaves, is not damage, because it contains no whole transaction.

    Parameters
    ----------
    log : Path
        A log that no process is writing.
    """
    with suppress(FileNotFoundError), log.open("rb") as file:
        head = file.read(_LOG_HEAD)
        if len(head) < _LOG_HEAD:
            return None
        magic, _, page_size = struct.unpack(">3I", head[:12])
        order = "<>"[magic & 1]
        if magic not in _MAGIC or _sums(head[:24], bytes(8), order) != head[24:]:
            return 0 if file.read(1) else None
        stop, unread, at_end = None, False, False
        before, salt = head[24:], head[16:24]
        for position in count(_LOG_HEAD, _HEAD + page_size):
            frame = file.read(_HEAD + page_size)
            if len(frame) < _HEAD + page_size:
                # A process that is killed while it adds the last frame of a transaction leaves a part of it.
                return stop if unread or (at_end and not frame) else None
            own = frame[8:16] == salt
            whole = own and _sums(frame[:8] + frame[_HEAD:], before, order) == frame[16:_HEAD]
            if not whole and stop is None:
                stop = position
            ends = own and any(frame[4:8])
            unread |= ends and whole and stop is not None
            at_end = ends and not whole
            before = frame[16:_HEAD]
    return None


def lacks_pages(path: Path, mode: str) -> bool:
    """Whether a page that file and log count is in neither, as at no moment of a copy of the log: the file was cut.

    Parameters
    ----------
    path : Path
        The file; other processes may write to it meanwhile.
    mode : str
        How SQLite opens it for reading.
    """
    counted, before = 0, -1
    with closing(_connected(path, mode)) as connection:
        while counted != before:
            before, (size,) = counted, connection.execute("PRAGMA page_size").fetchone()
            try:
                (counted,) = connection.execute("PRAGMA page_count").fetchone()
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT:
                    continue
                raise
            # In this order: a log that is emptied after it was counted is in the file by the time of the third look.
            logged = _logged(log_of(path), size)
            missing = set(range(path.stat().st_size // size + 1, counted + 1)) - logged - {_LOCKED // size + 1}
            if not missing:
                return False
    return True


def _logged(log: Path, page_size: int) -> set[int]:
    """Numbers of the pages that a log has, also while it is written."""
    found = set[int]()
    with suppress(FileNotFoundError), log.open("rb", buffering=0) as file:
        for position in count(_LOG_HEAD, _HEAD + page_size):
            file.seek(position)
            number = file.read(4)
            if len(number) < 4:
                break
            found.add(int.from_bytes(number))
    return found


def number_alone(path: Path) -> int:
    """The number that its user gave a file (``user_version``), whatever its log says, also during a copy of the log.

    It is read through SQLite: a file of this process's own would free, when it is closed, all locks that SQLite holds
    on the same file here; other processes would then take the log away under those who read or write it.

    Parameters
    ----------
    path : Path
        The file.
    """
    with closing(_connected(path, "mode=ro&immutable=1")) as connection:
        # The first page of a file may count pages that are still to be copied. Only a connection that may mend the
        # schema, as this one may not, reads such a file at all.
        connection.execute("PRAGMA writable_schema=ON")
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def keep_aside(path: Path) -> None:
    """Copy the log of a file, which SQLite deletes once the file is closed.

    Parameters
    ----------
    path : Path
        The file.
    """
    log = log_of(path)
    part = log.with_name(f".{log.name}.{os.getpid()}")
    try:
        shutil.copyfile(log, part)
        part.replace(kept_as(log))
    finally:
        part.unlink(missing_ok=True)


def kept_as(log: Path) -> Path:
    """Where a damaged log is kept: under another name for each content.

    Parameters
    ----------
    log : Path
        The log.
    """
    return log.with_name(f"{log.name}.damaged-{crc32(log.read_bytes()):08x}")


def tidy(path: Path) -> None:
    """Remove the empty log and the index that reading needs, unless another process has the file open.

    Parameters
    ----------
    path : Path
        The file.
    """
    log = log_of(path)
    with suppress(OSError, sqlite3.Error):
        if log.stat().st_size == 0 and os.access(path.parent, os.W_OK):
            # The last connection that may write removes them; of an empty log it brings nothing in.
            with closing(_connected(path, "mode=rw")) as connection:
                connection.execute("SELECT 1 FROM sqlite_master").fetchall()


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None)


def _sums(content: bytes, before: bytes, order: str) -> bytes:
    """The check sum of SQLite's logs: for each pair of words, a += word + b, and b += word + a, to 32 bits."""
    # Commands that read a store without a log start sooner without it.
    import numpy as np

    factors = _factors(len(content) // 4)
    words = np.frombuffer(content, f"{order}u4").astype(np.uint32)
    begun = np.frombuffer(before, ">u4")[::-1].astype(np.uint32)
    return (words @ factors[1:] + begun @ factors[:2]).astype(">u4").tobytes()


@cache
def _factors(n: int) -> NDArray[np.uint32]:
    """How often each of n words enters both sums, those of the sums begun with before: Fibonacci numbers."""
    import numpy as np

    numbers = [0, 1]
    for _ in range(n):
        numbers.append(numbers[-1] + numbers[-2] & 0xFFFFFFFF)
    return np.array([(numbers[i - 1], numbers[i]) for i in range(n + 1, 0, -1)], np.uint32)
