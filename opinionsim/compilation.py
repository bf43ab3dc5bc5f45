"""Compiled kernels: plain Python functions, compiled when they are first run; only then is numba loaded."""

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
#: Held while functions are registered with the compiler, since several threads may compile at once.
_compiling = Lock()


def inlined(function: _Function) -> _Function:
    """Mark a function that kernels call: plain Python when Python calls it, compiled when a compiled kernel does."""
    _waiting.append(function)
    # The sources are read now, as they are loaded: files may be edited while the process runs.
    _sources(Path(function.__code__.co_filename).parent)
    return function


def at(values, agent):  # type: ignore[no-untyped-def]
    """The value of an agent: its element of an array, or the one number of all agents."""
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
    """A kernel as machine code, which runs without the interpreter lock and is kept on disk for later processes.

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
    # Machine code on disk is found by this name and by the time of the kernel's own file. The functions it calls are in
    # other files: with a digest of all sources in the name, outdated code is never used.
    kernel.__qualname__ += f"-{_sources(Path(kernel.__code__.co_filename).parent)}"
    try:
        return njit(cache=True, nogil=True)(kernel)
    except RuntimeError:  # no folder can be written to
        return njit(nogil=True)(kernel)
