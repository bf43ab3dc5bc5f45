"""Files in the user's folder of caches that hold Python objects, which no other user can write."""

from __future__ import annotations

import os
import pickle
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import put

#: Most bytes of all files in a folder.
_MOST_BYTES = 2_000_000_000
#: End of the names of files.
_END = ".kept"
#: Bytes of the check sum at the start of a file.
_SUM = 4


def usual_folder() -> Path:
    """The folder of the studio in the user's folder of caches, as the operating system has it."""
    given = Path(os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", ""))
    beside = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    try:
        # A relative path counts as none.
        return (given if given.is_absolute() else Path.home() / beside) / "opinionsim" / "studio"
    except RuntimeError:
        # Nothing can be kept for a user without a home.
        return Path(os.devnull) / "studio"


def taken(folder: Path, name: str) -> Any:
    """The object that was put under a name; None if there is none, or it is damaged, or others could have written it.

    Objects are pickled, and a pickle can run code when it is read, so that file and folder must be the user's alone.
    """
    path = folder / f"{name}{_END}"
    try:
        if not (_is_private(folder) and _is_private(path)):
            return None
        found = memoryview(path.read_bytes())
        os.utime(path)
    except OSError:
        return None
    if not found[_SUM:] or zlib.crc32(found[_SUM:]) != int.from_bytes(found[:_SUM]):
        return None
    return pickle.loads(found[_SUM:])  # noqa: S301 - only the user could write the file


def keep(folder: Path, name: str, content: Any) -> None:
    """Put an object under a name, and remove those used longest ago until all fit; without room nothing is written."""
    with suppress(OSError, SpecError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder):
            return
        pickled = pickle.dumps(content, protocol=5)

        def write(part: Path) -> None:
            part.touch(mode=0o600)
            part.write_bytes(zlib.crc32(pickled).to_bytes(_SUM) + pickled)

        put(folder / f"{name}{_END}", write)
        total = 0
        for path in sorted(folder.glob(f"*{_END}"), key=lambda each: -each.stat().st_mtime):
            total += path.stat().st_size
            if total > _MOST_BYTES:
                path.unlink(missing_ok=True)


def _is_private(path: Path) -> bool:
    """Whether only the user can write something; on Windows, the user's own folder decides that."""
    status = path.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
