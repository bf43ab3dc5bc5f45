"""Kernels are plain Python functions; they are compiled when they are first run, and numba is loaded no sooner."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

__all__ = ["at", "compiled", "inlined"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Functions that kernels call, not yet known to the compiler.
_waiting: list[Callable[..., Any]] = []


def inlined(function: _Function) -> _Function:
    """Mark a function that kernels call: Python to whoever calls it from Python, compiled into compiled kernels."""
    _waiting.append(function)
    return function


def at(values, agent):
    """The value of an agent: of an array its own, else the one number that is everybody's."""
    return values[agent] if isinstance(values, np.ndarray) else values


@cache
def _teach_at() -> None:
    """Have the compiler choose between the two cases of :func:`at` by type: a number then costs nothing."""
    from numba import types
    from numba.extending import overload

    @overload(at)
    def chosen(values, agent):
        if isinstance(values, types.Array):
            return lambda values, agent: values[agent]
        return lambda values, agent: values


@cache
def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel as machine code, which holds no interpreter lock and is kept on disk for later processes.

    Parameters
    ----------
    kernel : callable
        A function of arrays and numbers that calls nothing but numpy and functions marked :func:`inlined`.
        Undecorated, it is the readable reference: both give the same bytes.
    """
    from numba import njit
    from numba.extending import register_jitable

    _teach_at()
    while _waiting:
        register_jitable(_waiting.pop())
    try:
        return njit(cache=True, nogil=True)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder can be written to
        return njit(nogil=True)(kernel)  # type: ignore[no-any-return]
