"""Compiled kernels: plain Python functions, compiled when they are first run; numba is loaded no sooner."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from opinionsim.streams import digest

__all__ = ["at", "compiled", "inlined"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Functions that kernels call, not yet known to the compiler.
_waiting: list[Callable[..., Any]] = []
#: Held while functions are made known to the compiler, which threads might ask for at once.
_compiling = Lock()


def inlined(function: _Function) -> _Function:
    """Mark a function that kernels call: Python to whoever calls it from Python, compiled into compiled kernels."""
    _waiting.append(function)
    # As it is when it is loaded: a process that goes on while a file is edited still runs what it has loaded.
    _sources(Path(function.__code__.co_filename).parent)
    return function


def at(values, agent):  # type: ignore[no-untyped-def]
    """The value of an agent: of an array its own, else the one number that is everybody's."""
    return values[agent] if isinstance(values, np.ndarray) else values


@cache
def _teach_at() -> None:
    """Have the compiler choose between the two cases of :func:`at` by type: a number then costs nothing."""
    from numba import types
    from numba.extending import overload

    @overload(at)
    def chosen(values, agent):  # type: ignore[no-untyped-def]
        if isinstance(values, types.Array):
            return lambda values, agent: values[agent]
        return lambda values, agent: values


@cache
def _sources(folder: Path) -> str:
    """Digest of the modules of a package, and of this one."""
    files = [*sorted(folder.glob("*.py")), Path(__file__)]
    return digest("".join(file.read_text(encoding="utf-8") for file in files))[:12]


def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel as machine code, which holds no interpreter lock and is kept on disk for later processes.

    Parameters
    ----------
    kernel : callable
        A function of arrays and numbers that calls nothing but numpy and functions marked :func:`inlined`.
        Undecorated, it is the readable reference: both give the same bytes.
    """
    with _compiling:
        return _compiled(kernel)


@cache
def _compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit
    from numba.extending import register_jitable

    _teach_at()
    while _waiting:
        register_jitable(_waiting.pop())
    # What is kept on disk is found by this name and by the time of the kernel's own file. Functions that it calls stand
    # in other files: with a digest of them all in the name, an edited one is never taken for what it was.
    kernel.__qualname__ += f"-{_sources(Path(kernel.__code__.co_filename).parent)}"
    try:
        return njit(cache=True, nogil=True)(kernel)
    except RuntimeError:  # no folder can be written to
        return njit(nogil=True)(kernel)
