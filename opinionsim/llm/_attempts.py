"""Buys the replies to calls: attempts, slots, time limits, back-off, and batches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import ModelCallError, StoreError
from opinionsim.llm._budget import Reservation, bound_tokens
from opinionsim.llm._endpoint import FLEX, BatchQueues, Client, Endpoint, NewCall
from opinionsim.llm._failures import Failure, classify_failure, wait_s
from opinionsim.llm._journal import Journal
from opinionsim.llm._policy import RetryPolicy
from opinionsim.llm._reply import ParsedReply, read_reply
from opinionsim.llm._slots import AccountSlots, Ending, SlotPool
from opinionsim.messages import Prompt
from opinionsim.registry import RAISED

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    #: What an attempt brings.
    _Got = AIMessage | Failure

#: The finish reason on record where a provider refused the prompt with an error instead of a reply.
FILTERED = "content_filter"

#: Tokens of instructions that a provider may add to a prompt, and far more than any is known to add.
_PROVIDERS_OWN = 100_000

#: Seconds between two looks at a journal that is behind.
_LOOK_S = 0.02


class Attempts:
    """Buys the replies to the calls of one run; attempts that failed are repeated with the same seed.

    Parameters
    ----------
    journal : Journal
        Keeps the replies; nothing is bought while it cannot.
    slots : SlotPool
        Shared with all other runs.
    retry : RetryPolicy
        How to repeat attempts after temporary failures.
    timeout_s : float
        Maximum wait for one attempt, in seconds. A batch has no such limit.
    batches : BatchQueues or None
        Shared with all other runs; None if there are none.

    Attributes
    ----------
    repeated : int
        Number of repeated attempts.
    stopped : bool
        Whether no further attempt is made.
    """

    def __init__(
        self, journal: Journal, slots: SlotPool, retry: RetryPolicy, timeout_s: float, batches: BatchQueues | None
    ) -> None:
        self.repeated, self.stopped = 0, False
        self._journal, self._slots, self._retry, self._timeout_s = journal, slots, retry, timeout_s
        self._batches = batches
        self._waiting: set[asyncio.Future[Any]] = set()

    def stop(self) -> None:
        """Make no further attempt, and end all waits except those for attempts under way."""
        self.stopped = True
        for waiter in self._waiting:
            waiter.cancel()

    def queued(self, call: NewCall, endpoint: Endpoint) -> bool:
        """Whether a call goes through a batch queue."""
        return self._batches is not None and self._batches.takes(call, endpoint)

    def reserved(self, call: NewCall) -> Reservation | None:
        """The reservation of a call that is in a batch of an earlier process."""
        return None if self._batches is None else self._batches.reserved(call)

    async def call(self, call: NewCall, endpoint: Endpoint) -> tuple[ParsedReply, float | None]:
        """A model's reply, and the seconds it took; None for a reply from a batch."""
        allowed: dict[str, int] = self._retry.allowed
        failed, flex, queued = dict.fromkeys(allowed, 0), endpoint.lane == "flex", self.queued(call, endpoint)
        pool, client = self._slots, endpoint.client
        while True:
            pool.check(client)
            await self._until_kept()
            if queued:
                got, seconds = await self._from_batch(call, endpoint), None
            else:
                got, seconds = await self._at_once(call, endpoint, flex)
            if got is None:
                queued = False
                continue
            if not isinstance(got, Failure):
                reply = _read(got, call.prompt)
                return (reply._replace(lane="batch") if queued else reply), seconds
            if got.kind == "content-filter":
                return ParsedReply("", status="filtered", finish_reason=FILTERED), seconds
            if got.kind == "any-request":
                # Without the probabilities that a study reads, nothing more is asked of the model behind them either.
                reason = f"{got.reason} (every request to this model would fail, so no more are sent)"
                pool.refuse(getattr(client, "behind", client), reason)
                pool.refuse(client, reason)
                pool.check(client)
            if flex and got.kind == "no-room":
                # That costs nothing: the call waits for the tier as long as it takes.
                if not (flex := endpoint.terms.fallback == "wait"):
                    continue
            elif failed.get(got.kind, 0) >= allowed.get(got.kind, 0):
                tries = sum(failed.values()) + 1
                raise ModelCallError(got.reason + (f" (after {tries} tries)" if tries > 1 else ""))
            failed[got.kind] += 1
            self.repeated += 1
            await self._pause(sum(failed.values()), got, call.seed, client)

    async def _from_batch(self, call: NewCall, endpoint: Endpoint) -> _Got | None:
        """What a batch brings for a call; None if it is to be made now."""
        if self.stopped or self._batches is None:
            raise asyncio.CancelledError
        waiter = self._batches.join(call, endpoint)
        await self.stoppable(waiter, endpoint.client)
        return waiter.result()

    async def _at_once(self, call: NewCall, endpoint: Endpoint, flex: bool) -> tuple[_Got | None, float]:
        """What one attempt brings, and the seconds it took; None if nothing could be kept when the call had a slot."""
        pool, client, clock = self._slots, endpoint.client, asyncio.get_running_loop().time
        # What waits for a model in this process waits here, where its time does not run yet.
        most = getattr(getattr(client, "behind", client), "slots", None)
        account = pool.account(endpoint.account, adaptive=endpoint.networked, most=most)
        await self._take_slot(account, call.priority, client)
        if self._journal.behind or pool.refuses(client):
            account.release("failed")
            return None, 0.0
        began = clock()
        return await self._attempt(account, call, endpoint, flex), clock() - began

    async def _attempt(self, account: AccountSlots, call: NewCall, endpoint: Endpoint, flex: bool) -> _Got:
        """The model's message, or its failure; uses a slot that is already taken, and frees it."""
        ending: Ending = "failed"
        retry_after_s = None
        timeout_s = max(self._timeout_s, FLEX["timeout"] * flex)
        options = endpoint.options(call.cut_off, timeout_s if flex else None)
        try:
            if self.stopped:
                raise asyncio.CancelledError
            try:
                async with asyncio.timeout(timeout_s) as limit:
                    message = await endpoint.client.call(call.prompt, call.seed, **options)
                ending = "ok"
                return message
            except StoreError:
                raise
            except RAISED as error:
                if isinstance(error, TimeoutError) and limit.expired():
                    return Failure("transient", f"no reply within {timeout_s:g} s")
                failure = classify_failure(error, networked=endpoint.networked)
            if failure.kind == "rate-limited":
                ending, retry_after_s = "rate-limited", failure.retry_after_s
            return failure
        finally:
            account.release(ending, retry_after_s=retry_after_s)

    async def _until_kept(self) -> None:
        """Wait as long as replies cannot be made durable: nothing is bought that cannot be kept."""
        self._journal.check()
        while self._journal.behind and not self.stopped:
            await asyncio.sleep(_LOOK_S)
            self._journal.check()

    async def _take_slot(self, account: AccountSlots, priority: float, client: Client) -> None:
        if self.stopped:
            raise asyncio.CancelledError
        if account.take():
            return
        waiter = account.enqueue(priority)
        try:
            await self.stoppable(waiter, client)
        except asyncio.CancelledError:
            # The slot may have been handed over in the same moment: then it must go to the next call.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                account.release("failed")
            raise

    async def _pause(self, repetitions: int, failure: Failure, seed: int, client: Client) -> None:
        """Back off without a slot. The jitter is drawn from the call's seed and changes no result."""
        rng = np.random.default_rng((seed, repetitions))
        first_s, longest_s = self._retry.first_wait_s, self._retry.longest_wait_s
        seconds = wait_s(repetitions, failure, first_s=first_s, longest_s=longest_s, rng=rng)
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        alarm = loop.call_later(seconds, _finish, over)
        try:
            await self.stoppable(over, client)
        finally:
            alarm.cancel()

    async def stoppable(self, waiter: asyncio.Future[Any], client: Client | None = None) -> None:
        """Await `waiter`, unless the run is stopped or its client refused."""
        if self.stopped:
            waiter.cancel()
        self._waiting.add(waiter)
        waiter.add_done_callback(self._waiting.discard)
        if client is not None:
            self._slots.until_refused(client, waiter)
        await waiter


def _read(message: AIMessage, prompt: Prompt) -> ParsedReply:
    """A reply taken apart; if that fails, its whole content as text, since it was paid for.

    Tokens that cannot be those of the prompt, even beside instructions of the provider's own, count as not reported.
    """
    try:
        reply = read_reply(message)
    except Exception:
        return ParsedReply(str(message.content))
    if (reply.input_tokens or 0) > _PROVIDERS_OWN + 20 * bound_tokens(prompt):
        return reply._replace(input_tokens=None, cached_tokens=None)
    return reply


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
