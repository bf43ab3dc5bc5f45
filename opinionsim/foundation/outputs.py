"""Files that commands write. A command overwrites only files that it made, and leaves no file half-written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from opinionsim.errors import SpecError

#: How the file of a store begins, and suffixes by which a damaged one is known.
_STORE, _STORES = b"SQLite format 3\0", (".sqlite", ".sqlite3", ".db")
#: Ends of the names of a store and of the files beside it.
_BESIDE = ("", "-wal", "-shm", "-journal", ".lock")

#: Whether a file that is there was made by the command that is about to replace it.
Made = Callable[[Path], bool]


def begins(path: Path, start: bytes) -> bool:
    """Whether a file begins with these bytes."""
    with path.open("rb") as file:
        return file.read(len(start)) == start


def is_store(path: Path) -> bool:
    """Whether a path is a store in a file, or the log, index or lock of one."""
    names = (path.name.removesuffix(end) for end in _BESIDE if path.name.endswith(end))
    places = [path.with_name(name) for name in names if name]
    return any(each.is_file() and (each.suffix in _STORES or begins(each, _STORE)) for each in places)


def is_stream(path: Path) -> bool:
    """Whether a path is standard output (``-``), a device or a pipe, where output replaces nothing."""
    return str(path) == "-" or (path.exists() and not (path.is_file() or path.is_dir()))


def require_free(path: Path, made: Made, *, force: bool | None = False, read: Iterable[str | Path] = ()) -> None:
    """Refuse to write a file if something else would be lost; writes nothing.

    Parameters
    ----------
    path : Path
        The file to write. An empty file may be replaced.
    made : callable
        Returns whether the same command made the existing file, which may then be replaced.
    force : bool, optional
        Whether any other file may be replaced, too; None if the command never does so. A store is never replaced.
    read : iterable of str or Path
        Inputs of the command, which are never replaced.

    Raises
    ------
    SpecError
        If something would be lost, the folder cannot be written, or the path is a folder, standard output, a device
        or a pipe.
    """
    if is_stream(path):
        raise SpecError(f"{path} is not a file; give the name of a file")
    if path.is_dir():
        raise SpecError(f"{path} is a folder; give the name of a file")
    if is_store(path):
        raise SpecError(f"{path} is a store, or belongs to one, and is never overwritten; give another name")
    try:
        with TemporaryFile(dir=next(each for each in path.absolute().parents if each.exists())):
            pass
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}") from None
    if not path.exists():
        return
    if any(os.path.exists(each) and path.samefile(each) for each in read):
        raise SpecError(f"{path} is an input of this command; give another name")
    if not (force or made(path) or not path.stat().st_size):
        remedy = "" if force is None else ", or replace the file with --force"
        raise SpecError(f"{path} already exists and was not made by this command; give another name{remedy}")


def put(path: Path, write: Callable[[Path], object]) -> None:
    """Write a whole file or nothing; create a missing folder.

    Parameters
    ----------
    path : Path
        The file; an existing file is replaced.
    write : callable
        Writes to a given path, which has the suffix of the file.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    whole = Path(os.path.realpath(path))  # what a link leads to is replaced, and not the link
    part = whole.parent / f".{path.stem}.{os.getpid()}{path.suffix}"
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        part.replace(whole)
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()
