"""Waiting for what other threads, processes and servers do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")

#: Longest wait for an event, seconds; reached only when a test fails.
PATIENCE_S = 60.0


def wait_until(condition: Callable[[], object], pause_s: float = 0.001) -> None:
    """Look again and again, after each pause, until a condition is true."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "what the test waits for has not come"
        time.sleep(pause_s)


def at_once(*calls: Callable[[], _T]) -> list[_T]:
    """What calls return that begin at the same moment, each on a thread of its own."""
    together = threading.Barrier(len(calls))

    def begin(call: Callable[[], _T]) -> _T:
        together.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begin, calls))
