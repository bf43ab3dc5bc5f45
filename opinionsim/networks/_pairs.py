"""Pairs of agents as arrays, and functions on them that several kinds of networks share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opinionsim.foundation.compilation import compiled

#: Both ends of each edge, (M,) integers each: every edge once, without loops.
Pairs = tuple[np.ndarray, np.ndarray]

#: Edges from which compiling a kernel takes less time than running it as Python.
_COMPILED_FROM = 50_000


def run_kernel(kernel: Callable[..., Any], size: int, *arguments: Any) -> None:
    """Run a kernel over `size` edges, compiled if that is faster; the draws are the same either way."""
    (compiled(kernel) if size >= _COMPILED_FROM else kernel)(*arguments)


def codes(n: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return one number for each pair of n agents, regardless of the order of its ends."""
    return np.asarray(np.minimum(u, v) * n + np.maximum(u, v))


def bernoulli(total: int, p: float, rng: np.random.Generator) -> np.ndarray:
    """Draw places among `total`, each with probability p, ascending, in time proportional to their number.

    Geometric gaps skip empty places (Batagelj and Brandes 2005, doi:10.1103/PhysRevE.71.036113).
    """
    if total == 0 or p == 0:
        return np.empty(0, dtype=np.int64)
    expected = total * p
    size = int(expected + 4 * math.sqrt(expected * (1 - p))) + 16
    found, last = [], -1
    while last < total:
        gaps = np.minimum(rng.geometric(p, size), total + 1)
        places = np.cumsum(gaps, out=gaps)
        places += last
        found.append(places)
        last = int(places[-1])
        size = size // 8 + 16
    places = found[0] if len(found) == 1 else np.concatenate(found)
    return places[: np.searchsorted(places, total)]


def triangle(places: np.ndarray) -> Pairs:
    """Return pairs u < v by their place in (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    v = ((1 + np.sqrt(1 + 8.0 * places)) / 2).astype(np.int64)
    # The square root may have been rounded up to a whole number.
    v -= v * (v - 1) // 2 > places
    v += (v + 1) * v // 2 <= places
    return places - v * (v - 1) // 2, v
