"""An event loop whose clock moves only when all tasks wait, so hours of latency take no time and keep their order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for the next timer, moves the loop's clock to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("deadlock: every task waits and no timer is set")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """A selector event loop on a virtual clock that starts at 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual time in seconds."""
        return self._jumping.now


def run_virtual(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end on a new virtual clock.

    Raises
    ------
    RuntimeError
        If every task waits and no timer is set, which is a deadlock.
    """
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(work)
