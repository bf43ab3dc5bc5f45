"""Cache of fits in a file next to the store, from which an interrupted comparison continues."""

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
    """Optima by the digest of the fitted data and starts; each is written to a file as soon as it is found.

    Truncated or altered lines, and lines from other versions of the code, do not count. The file contains only digests
    and numbers, no texts.

    Parameters
    ----------
    path : Path, optional
        The file. If there is none, or if it cannot be written or belongs to another user, fits are only kept in memory.
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
        """The cache next to the store at an address; without a file if the store is not a file."""
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
        """Return the optimum with this digest, running the `search` if it is not in the cache."""
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
