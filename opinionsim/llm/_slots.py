"""One pool of call slots shared by all runs of a sweep."""

from __future__ import annotations

import asyncio
import heapq

from opinionsim.errors import SpecError

__all__ = ["SlotPool"]


class SlotPool:
    """Limits calls in flight; whoever waits is served by priority.

    Parameters
    ----------
    limit : int
        Calls in flight at most, >= 1.

    Notes
    -----
    A slot is held only while an attempt is in flight, never during back-off. Used from one event loop.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise SpecError(f"max_concurrency must be at least 1; got {limit}")
        self.limit = limit
        self.in_flight = 0
        self._arrivals = 0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def take(self) -> bool:
        """Take a slot if one is free and nobody waits for it."""
        if self.in_flight < self.limit:
            self.in_flight += 1
            return True
        return False

    def enqueue(self, priority: float) -> asyncio.Future[None]:
        """A future that is done when a slot has been taken on its behalf; larger `priority` goes first.

        Cancelling the future gives up the place in the queue.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiting, (-priority, self._arrivals, waiter))
        return waiter

    def release(self) -> None:
        """Give a slot back: to the first in the queue, if anybody waits."""
        while self._waiting:
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(None)
                return
        self.in_flight -= 1
