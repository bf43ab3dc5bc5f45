"""Fits that were made, kept beside the store, so that a comparison that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from threading import Lock

from opinionsim import classic
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import sources
from opinionsim.foundation.outputs import begins, put, require_free
from opinionsim.foundation.streams import digest

#: How the file begins; what follows in its first line is the version of the code that made the fits.
_HEAD = "opinionsim fits "
#: Parameters at an optimum, and the objective there.
Optimum = tuple[dict[str, float], float]


class KeptFits:
    """Optima by the digest of what was fitted and from where, each added to a file as soon as it is found.

    A line that was cut off or altered does not count, nor does anything that other code has left. What the file holds
    are digests and numbers, and no text.

    Parameters
    ----------
    path : Path, optional
        The file. Without it, or where it cannot be written or is somebody else's, nothing outlasts the process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock, self._made = path, Lock(), dict[str, Optimum]()
        if path is not None:
            try:
                require_free(path, partial(begins, start=_HEAD.encode()), force=None)
                self._read(path)
            except (SpecError, OSError):
                self._path = None

    @classmethod
    def beside(cls, url: str) -> KeptFits:
        """Those beside the store of an address; none where it is no file."""
        store = Path(url.removeprefix("sqlite:///"))
        return cls(store.with_name(f"{store.name}.fits") if url.startswith("sqlite:///") else None)

    def _read(self, path: Path) -> None:
        """Take in what the file holds, and leave it with nothing but that."""
        rooms = [Path(str(file)).parent for file in (__file__, classic.__file__)]
        versions = [*map(sources, rooms), *map(metadata.version, ("numpy", "scipy", "numba"))]
        head = _HEAD + digest(" ".join(versions))
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        kept = [line for line in lines[1:] if lines[0] == head and line == _sealed(line.partition(" ")[2])]
        for line in kept:
            key, values, objective = json.loads(line.partition(" ")[2])
            self._made[key] = dict(values), objective
        text = "".join(f"{line}\n" for line in (head, *kept))
        put(path, lambda part: part.write_text(text, encoding="utf-8", newline="\n"))

    def optimum(self, key: str, search: Callable[[], Optimum]) -> Optimum:
        """The optimum of what has this digest; found by the `search` where it is not kept."""
        if key not in self._made:
            values, objective = search()
            with self._lock, suppress(OSError):
                self._made[key] = values, objective
                if self._path is not None:
                    with self._path.open("ab") as file:
                        file.write(f"{_sealed(json.dumps([key, list(values.items()), objective]))}\n".encode())
        return self._made[key]


def _sealed(text: str) -> str:
    """A line of the file: the digest of what it says, and that."""
    return f"{digest(text)} {text}"
