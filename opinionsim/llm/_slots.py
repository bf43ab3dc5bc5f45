"""A pool of call slots for all runs of a sweep, with the slots of each rate-limit account."""

from __future__ import annotations

import asyncio
import heapq
import math
import time
from collections.abc import Callable
from typing import Any, Literal

from opinionsim.errors import ModelCallError, SpecError

#: Outcome of an attempt, as far as it affects the pace.
Ending = Literal["ok", "failed", "rate-limited"]

#: First limit of an adaptive account, calls in flight.
_START = 10
#: Growth of the limit by a clean round after a first cut, per cent.
_GROWTH = 5
#: Share of the limit that a rate limit leaves, per cent.
_CUT = 80
#: Seconds after a cut without another: calls sent before the cut come back in this time.
_COOL_DOWN_S = 15.0
#: Share of the limit in flight from which on an account learns from a success, per cent.
_SATURATED = 80


class SlotPool:
    """Limits calls in flight over all runs, and serves waiting calls by priority.

    Parameters
    ----------
    limit : int
        Maximum number of calls in flight over all accounts, >= 1.

    Attributes
    ----------
    in_flight : int
        Number of slots in use over all accounts.

    Notes
    -----
    An attempt uses a slot only while it is in flight, never during back-off. Use the pool from one event loop, whose
    clock it reads. No slot stays free while a call waits that may use it.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise SpecError(f"max_concurrency must be at least 1; got {limit}")
        self.limit = limit
        self.in_flight = 0
        self._accounts: dict[str, AccountSlots] = {}
        #: Places in the queues of all accounts; cancelled ones count until they are dropped.
        self._queued = 0
        self._arrivals = 0
        #: By identity of a client, which need not be hashable: the client and why nothing more is sent through it.
        self._refusals: dict[int, tuple[object, str]] = {}
        #: By identity of a client: the waits that its refusal ends.
        self._until_refused: dict[int, set[asyncio.Future[Any]]] = {}

    def account(self, name: str, *, adaptive: bool = False, most: int | None = None) -> AccountSlots:
        """The slots of a rate-limit account; a name always returns the same slots.

        Parameters
        ----------
        name : str
            The account, such as provider and address.
        adaptive : bool
            Whether the account finds a limit below that of the pool. Only the first call for it uses this value.
        most : int, optional
            Limit of the account, if known and lower.
        """
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = (_AdaptiveSlots if adaptive else AccountSlots)(self, name)
            account.limit = min(account.limit, most or account.limit)
        return account

    def waiting(self) -> dict[str, float]:
        """Seconds left for each account that is paused at its provider's request, by name.

        May be called from any thread.
        """
        left = {name: account.waits_s for name, account in self._accounts.copy().items()}
        return {name: seconds for name, seconds in sorted(left.items()) if seconds > 0}

    def refuse(self, client: object, reason: str) -> None:
        """Send nothing more through a client, because every request would fail with the same error.

        Parameters
        ----------
        client : object
            The client, for all runs that share this pool.
        reason : str
            The error; later errors do not replace the first one.
        """
        self._refusals.setdefault(id(client), (client, reason))
        for waiter in self._until_refused.pop(id(client), ()):
            if not waiter.done():
                waiter.set_exception(self._refusal(client))

    def refuses(self, client: object) -> bool:
        """Whether nothing more is sent through a client."""
        return id(client) in self._refusals

    def check(self, client: object) -> None:
        """Raise ModelCallError with the reason if nothing more is sent through a client."""
        if id(client) in self._refusals:
            raise self._refusal(client)

    def until_refused(self, client: object, waiter: asyncio.Future[Any]) -> None:
        """Wait, but raise the error of :meth:`check` as soon as the client is refused."""
        waiters = self._until_refused.setdefault(id(client), set())
        waiters.add(waiter)
        waiter.add_done_callback(waiters.discard)

    def _refusal(self, client: object) -> ModelCallError:
        _, reason = self._refusals[id(client)]
        return ModelCallError(reason)

    def _serve(self) -> None:
        """Hand free slots to waiting calls, first in the queues first."""
        while self._queued and self.in_flight < self.limit:
            first: AccountSlots | None = None
            for account in self._accounts.values():
                # Arrivals differ, so that futures are never compared.
                if account._can_serve() and (first is None or account._waiting[0] < first._waiting[0]):
                    first = account
            if first is None:
                return
            waiter = first._pop()
            first.in_flight += 1
            self.in_flight += 1
            waiter.set_result(None)


class AccountSlots:
    """The slots of one rate-limit account inside a :class:`SlotPool`, with the limit of the pool.

    Attributes
    ----------
    name : str
        The account.
    limit : int
        Current maximum number of calls in flight for this account.
    in_flight : int
        Number of slots in use.
    """

    def __init__(self, pool: SlotPool, name: str) -> None:
        self.name = name
        self.limit = pool.limit
        self.in_flight = 0
        self._pool = pool
        self._paused = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    @property
    def waits_s(self) -> float:
        """Seconds until the end of a pause; 0 if there is none."""
        return 0.0

    def take(self) -> bool:
        """Take a slot if one is free for this account; returns whether it did."""
        pool = self._pool
        if self._paused or self.in_flight >= self.limit or pool.in_flight >= pool.limit:
            return False
        self.in_flight += 1
        pool.in_flight += 1
        return True

    def enqueue(self, priority: float) -> asyncio.Future[None]:
        """A future that is done once it has a slot; larger `priority` goes first.

        Call this after :meth:`take` returned False. Equal priorities are served in order of arrival, over all accounts
        that may send. If you cancel the future, it leaves the queue; release the slot if it received one at the same
        moment.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pool = self._pool
        pool._arrivals += 1
        pool._queued += 1
        heapq.heappush(self._waiting, (-priority, pool._arrivals, waiter))
        return waiter

    def release(self, ending: Ending = "ok", *, retry_after_s: float | None = None) -> None:
        """Return a slot, which then goes to the first waiting call.

        Parameters
        ----------
        ending : {"ok", "failed", "rate-limited"}
            Outcome of the attempt. An adaptive account ignores ``failed``; use it also for a slot that was not used.
        retry_after_s : float, optional
            With ``rate-limited``, the wait in seconds that the provider requested.
        """
        self.in_flight -= 1
        pool = self._pool
        pool.in_flight -= 1
        if pool._queued:
            pool._serve()

    def _pop(self) -> asyncio.Future[None]:
        self._pool._queued -= 1
        return heapq.heappop(self._waiting)[2]

    def _can_serve(self) -> bool:
        """Whether a call waits here that may have a slot; drops cancelled ones."""
        if self._paused or self.in_flight >= self.limit:
            return False
        while self._waiting and self._waiting[0][2].done():
            self._pop()
        return bool(self._waiting)


class _AdaptiveSlots(AccountSlots):
    """An account that seeks the pace its provider allows.

    Notes
    -----
    Additive increase, multiplicative decrease. A round is as many successes as the limit, each of which came back
    while the account was at least 80 % full: a limit that is not used says nothing about a higher one. A round doubles
    the limit until a first rate limit, and later adds 5 %, at least 1. A rate limit starts an episode: the limit is
    cut to 80 % once, nothing is learnt until the episode is over, after 15 s or Retry-After, whichever is longer.
    """

    def __init__(self, pool: SlotPool, name: str) -> None:
        super().__init__(pool, name)
        self.limit = min(pool.limit, _START)
        self._slow_start = True
        self._clean = 0
        self._episode_ends = -math.inf
        self._resume_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        #: The clock of the loop, once the account was paused.
        self._clock: Callable[[], float] = time.monotonic

    @property
    def waits_s(self) -> float:
        """Seconds until the end of a pause; 0 if there is none."""
        return max(0.0, self._resume_at - self._clock()) if self._paused else 0.0

    def release(self, ending: Ending = "ok", *, retry_after_s: float | None = None) -> None:
        """Return a slot, and learn from the outcome of the attempt; see :meth:`AccountSlots.release`."""
        self._learn(ending, retry_after_s)
        super().release(ending)

    def _learn(self, ending: Ending, retry_after_s: float | None) -> None:
        if ending == "failed":
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        in_episode = now < self._episode_ends
        if ending == "ok":
            if not in_episode and 100 * self.in_flight >= _SATURATED * self.limit:
                self._count_clean()
            return
        if not in_episode:
            self.limit = max(1, _CUT * self.limit // 100)
            self._slow_start = False
            self._clean = 0
            self._episode_ends = now + _COOL_DOWN_S
        if retry_after_s is not None and now + retry_after_s > max(now, self._resume_at):
            self._pause(loop, now + retry_after_s)

    def _count_clean(self) -> None:
        self._clean += 1
        if self._clean >= self.limit:
            self._clean = 0
            grown = 2 * self.limit if self._slow_start else self.limit + max(1, _GROWTH * self.limit // 100)
            self.limit = min(self._pool.limit, grown)

    def _pause(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        """Send nothing before `until`, which replaces an earlier end."""
        if self._timer is not None:
            self._timer.cancel()
        self._paused = True
        self._resume_at = until
        self._clock = loop.time
        self._episode_ends = max(self._episode_ends, until)
        self._timer = loop.call_at(until, self._resume)

    def _resume(self) -> None:
        self._paused = False
        self._timer = None
        self._pool._serve()
