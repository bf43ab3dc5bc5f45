"""Waiting for what other threads, processes and servers do."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Longest wait for an event, seconds; reached only when a test fails.
PATIENCE_S = 60.0


def wait_until(condition: Callable[[], object], pause_s: float = 0.001) -> None:
    """Look again and again, after each pause, until a condition is true."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "what the test waits for has not come"
        time.sleep(pause_s)
