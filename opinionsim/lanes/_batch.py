"""One batch on its way through the queue of a provider, from the intent to the last reply on record."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from opinionsim.errors import ModelCallError, in_short
from opinionsim.foundation.redaction import redacted
from opinionsim.lanes._protocol import BadLine, BatchLane, ItemError, Look, Request, Result, Sought
from opinionsim.llm import Failure, NewCall, RetryPolicy, classify_failure, read_reply, wait_s
from opinionsim.registry import RAISED, find
from opinionsim.store import BatchRow, OwedCall, Paid

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from opinionsim.llm import Endpoint, ModelClient, Price, Reservation, SlotPool
    from opinionsim.store import Store

    #: What a batch brings for a call.
    Got = AIMessage | Failure

_T = TypeVar("_T")


class Unclear(Exception):
    """Nobody knows whether a provider has accepted a batch."""


#: What to do about a batch that cannot be read.
_MEND = "Replies that arrived are kept. Run again to read it once more, or add --resubmit to buy the others again"
#: HTTP statuses of what is not there, or not for this key.
_GONE = (404, 410)
#: HTTP statuses of servers that take nothing now.
_OVERLOADED = (503, 529)
#: Results that are read before other work on the event loop goes on.
_AT_ONCE = 100
#: Tries at closing a batch whose last reply is about to be written.
_CLOSING_TRIES = 20


class Pace(NamedTuple):
    """Times of batches, in seconds."""

    settle_s: float = 2.0
    """Calls wait until none was added for this time and nothing else can make calls ready."""
    longest_s: float = 60.0
    """Longest wait of a call for others."""
    look_s: float = 1.0
    """First wait between two looks at a batch; each is half as long again as the one before."""
    slowest_look_s: float = 30.0
    """Longest wait between two looks."""
    crowded_s: float = 60.0
    """Wait after a provider had no room in its queue."""
    lost_s: float = 120.0
    """Time after which lists of a provider show a batch, if there is one."""
    begins_s: float = 86_400.0
    """Time after which a batch without an input file can no longer begin."""


class InStore(Protocol):
    """Calls a function of the store in its thread."""

    async def __call__(self, function: Callable[..., _T], *arguments: Any) -> _T: ...


class Asker(NamedTuple):
    """A call that waits for a batch, and where the answer goes: None there says that it is to be made now."""

    call: NewCall
    endpoint: Endpoint
    answer: asyncio.Future[Got | None]


@dataclass(frozen=True)
class Batching:
    """What all batches of a sweep use.

    Attributes
    ----------
    store, in_store : Store, callable
        The record, and how to call it.
    slots : SlotPool
        Refuses clients for all runs.
    retry : RetryPolicy
        How to repeat requests after temporary failures.
    pace : Pace
        Times.
    resubmit : bool
        Whether to buy calls again whose batch cannot be found or read.
    """

    store: Store
    in_store: InStore
    slots: SlotPool
    retry: RetryPolicy
    pace: Pace
    resubmit: bool

    async def attempt(self, function: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """Call a method of a lane, again after temporary failures; raises its last error."""
        allowed, failed = self.retry.allowed, 0
        rng = np.random.default_rng()
        while True:
            try:
                return await function(*arguments)
            except Unclear:
                raise
            except RAISED as error:
                failure = classify_failure(error, networked=True)
                failed += 1
                if failed > allowed.get(failure.kind, 0):
                    raise
                first_s, longest_s = self.retry.first_wait_s, self.retry.longest_wait_s
                await asyncio.sleep(wait_s(failed, failure, first_s=first_s, longest_s=longest_s, rng=rng))


class Queue:
    """The calls to one model that wait for the next batch, and the batches under way."""

    def __init__(self, client: ModelClient, part: str, price: Price | None) -> None:
        self.client, self.part, self.price = client, part, price
        self.lane: BatchLane = find("lane", part).target(client)
        self.waiting: dict[str, Asker] = {}
        self.out: set[QueuedBatch] = set()
        self.most = self.lane.most_calls
        #: When the first of the waiting calls joined, and when the provider's queue may have room again.
        self.since, self.closed_until = 0.0, 0.0

    @property
    def crowded(self) -> bool:
        """Whether the provider's queue has had too little room, so that one smaller batch follows the other."""
        return bool(self.most < self.lane.most_calls)

    def intended(self, experiment_id: str, n: int) -> BatchRow:
        """The row of a new batch of `n` calls."""
        token, client = f"opinionsim-{secrets.token_hex(12)}", self.client
        return BatchRow(token, experiment_id, self.part, client.account, client.name, n, time.time())


class QueuedBatch:
    """A batch of calls to one model.

    Parameters
    ----------
    desk : Batching
        Shared with all batches.
    queue : Queue
        Of the model; its lane is the queue of the provider.
    row : BatchRow
        Its state on record.
    calls : dict of str to OwedCall or None
        Its calls by `custom_id`; None for those that it does not owe any more.

    Attributes
    ----------
    owed, known : dict of str to OwedCall, set of str
        Calls that it owes, and names of all of its calls.
    askers : dict of str to Asker
        Calls that wait for it, by `custom_id`.
    holds : dict of str to Reservation
        Reservations of calls that an earlier process asked, until they are asked again.
    arrived : dict of str to AIMessage
        Replies that nobody has asked for yet.
    looked, ended, crowded : bool
        Whether the provider was asked for its state; whether its replies are handed out; and whether the provider's
        queue had no room for it.
    trouble : str
        Why the provider does not say how far it is; empty if it does.
    submitted : asyncio.Event
        Set unless a submission is under way.
    back : list of Asker
        Calls to ask again, because the batch did not answer them.
    """

    def __init__(self, desk: Batching, queue: Queue, row: BatchRow, calls: Mapping[str, OwedCall | None]) -> None:
        self._desk, self._lane, self._client, self._price, self.row = desk, queue.lane, queue.client, queue.price, row
        self.owed = {custom_id: each for custom_id, each in calls.items() if each is not None}
        self.known = frozenset(calls)
        self.askers: dict[str, Asker] = {}
        self.holds: dict[str, Reservation] = {}
        self.arrived: dict[str, AIMessage] = {}
        self.looked = self.crowded = self.ended = False
        self.trouble = self._broken = ""
        self.submitted = asyncio.Event()
        self.back: list[Asker] = []
        self._taken = asyncio.Event()

    def attach(self, asker: Asker) -> None:
        """Let a call wait for its reply, which may have arrived."""
        custom_id = asker.call.custom_id
        if (message := self.arrived.pop(custom_id, None)) is None:
            self.askers[custom_id] = asker
            if self._broken:
                self._end_with(self._broken)
        else:
            _answer(asker, message)
            self._note_taken()

    async def carry(self, requests: Sequence[Request] = ()) -> None:
        """Bring the batch to its end; `requests` are those of a new one.

        Errors go to the calls that wait for it.
        """
        try:
            try:
                if requests:
                    await self._submit(requests)
            finally:
                requests = ()  # the batch may take hours, and they are large
                self.submitted.set()
            if not self.row.batch_id and not await self._sought():
                await self._give_up()
                return
            look = await self._follow()
            if look.state == "failed":
                await self._fail(look)
            else:
                await self._deliver(look, await self._desk.attempt(self._lane.fetch, self.row.batch_id, look))
                await self._close()
        except RAISED as error:
            gone = getattr(error, "status_code", None) in _GONE
            if self._desk.resubmit and self.row.state == "open" and gone:
                await self._write_off(self.owed)
                await self.closed()
                return
            told, row = redacted(in_short(error)).rstrip("."), self.row
            mend = f"; if it is gone, --resubmit buys its {len(self.owed):,} calls again" if gone else ""
            if row.batch_id:
                self._end_with(
                    f"batch {row.batch_id} of {row.account} cannot be read: {told}. Only the key and the address that "
                    f"submitted a batch can read it: check them, then run again{mend}"
                )
            elif self.row.state == "open":
                self._end_with(
                    f"{row.account} may have accepted a batch of {row.calls:,} calls, and it cannot be looked for: "
                    f"{told}. Run again to look for it once more{mend}"
                )
            else:
                self._end_with(f"{row.account} takes no batch: {told}. Nothing was charged; fix that, then run again")

    async def _save(self, **changes: Any) -> None:
        self.row = self.row._replace(**changes)
        await self._desk.in_store(self._desk.store.save_batch, self.row)

    # -- submission --------------------------------------------------------------------------------------------

    async def _submit(self, requests: Sequence[Request]) -> None:
        """Submit the batch; its id stays unknown if nobody knows whether the provider accepted it."""
        desk, lane = self._desk, self._lane
        await desk.in_store(desk.store.save_batch, self.row, list(self.owed.values()))
        try:
            if lane.uploads:
                await self._save(file=await desk.attempt(lane.upload, self.row.token, requests))
            batch_id = await desk.attempt(self._submit_once, requests)
            await self._save(batch_id=batch_id, submitted_at=time.time())
        except Unclear:
            pass
        except RAISED:
            await self._give_up()
            raise

    async def _submit_once(self, requests: Sequence[Request]) -> str:
        try:
            return await self._lane.submit(self.row.token, self.row.file, requests)
        except RAISED as error:
            status = getattr(error, "status_code", None)
            refused = isinstance(status, int) and 400 <= status < 500 and status != 408
            if refused or status in _OVERLOADED or type(error).__name__ == "ClientConnectorError":
                raise  # the provider has not accepted it
            raise Unclear from error

    async def _sought(self) -> bool:
        """Find the batch of a submission that may have failed; False once it can no longer begin."""
        desk, lane, row = self._desk, self._lane, self.row
        others = {each.batch_id for each in await desk.in_store(desk.store.batches)}
        sought, found = Sought(row.token, row.created_at, self.known, row.file, others), None
        if not lane.uploads:
            found = await self._listed(sought, time.time() if desk.resubmit else row.created_at + desk.pace.begins_s)
        elif row.file:
            found = await self._listed(sought, row.created_at + desk.pace.lost_s)
            if found is None:
                # A request that is still on its way finds no file; what came before that may be listed late.
                await desk.attempt(lane.revoke, row.file)
                await self._save(revoked_at=time.time())
        if found is None and self.row.revoked_at is not None:
            found = await self._listed(sought, self.row.revoked_at + desk.pace.lost_s)
        # Nothing is submitted before the name of its file is on record.
        if found is not None:
            await self._save(batch_id=found, submitted_at=row.created_at)
        return found is not None

    async def _listed(self, sought: Sought, until: float) -> str | None:
        """The id of a batch that the provider lists by then, or later if one that may be it has not ended."""
        while not (found := await self._desk.attempt(self._lane.find, sought)):
            if found is None and time.time() >= until:
                return None
            self.looked = True
            pace = self._desk.pace
            await asyncio.sleep(min(pace.slowest_look_s, max(pace.look_s, until - time.time())))
        return found

    async def _give_up(self) -> None:
        """Free all calls of a batch that did not begin."""
        await self._free(self.owed)
        self.row = self.row._replace(ended_at=time.time())
        await self.closed()

    # -- following ---------------------------------------------------------------------------------------------

    async def _follow(self) -> Look:
        """Wait until the batch has ended; cancel it once it is too old."""
        desk, row, wait, cancelled = self._desk, self.row, self._desk.pace.look_s, False
        while True:
            try:
                look = await self._lane.look(row.batch_id)
            except RAISED as error:
                # A batch takes hours, in which the network may fail; and a new one may not be known everywhere.
                new = getattr(error, "status_code", None) == 404 and self._age() <= desk.pace.lost_s
                if not new and not passes(error):
                    raise
                look = Look("open", self.row.done, self.row.expires_at)
                self.trouble = "" if new else f"batch {row.batch_id} cannot be looked at: {redacted(in_short(error))}"
            else:
                self.trouble = ""
            if (look.done, look.expires_at) != (self.row.done, self.row.expires_at) or look.state != "open":
                ended = {} if look.state == "open" else {"ended_at": time.time()}
                await self._save(done=look.done, expires_at=look.expires_at, **ended)
            self.looked = True
            if look.state != "open":
                return look
            patience = min((each.endpoint.terms.patience_s or 0.0 for each in self.askers.values()), default=0.0)
            if patience and self._age() > patience and self._lane.cancels and not cancelled:
                await desk.attempt(self._lane.cancel, row.batch_id)
                cancelled = True
            await asyncio.sleep(wait)
            wait = min(1.5 * wait, desk.pace.slowest_look_s)

    def _age(self) -> float:
        return time.time() - (self.row.submitted_at or self.row.created_at)

    async def _fail(self, look: Look) -> None:
        """Free the calls of a batch that the provider refused as a whole; unless its queue is full, ask no more."""
        self.crowded = look.crowded
        if not look.crowded:
            told = (look.reason or "it gives no reason").rstrip(".")
            self._end_with(
                f"{self.row.account} refused batch {self.row.batch_id}: {told}. Its calls were not charged; fix that, "
                "then run again"
            )
        await self._give_up()

    async def _free(self, custom_ids: Iterable[str], paid: Paid | None = None) -> None:
        """Take calls out of the batch, with what was paid for them; those that wait for it are asked again."""
        freed = list(custom_ids)
        await self._desk.in_store(self._desk.store.free_calls, self.row, freed, paid)
        for custom_id in freed:
            self.owed.pop(custom_id, None)
            if (hold := self.holds.pop(custom_id, None)) is not None:
                hold.cancel()
            if (asker := self.askers.pop(custom_id, None)) is not None:
                self.back.append(asker)

    # -- results -----------------------------------------------------------------------------------------------

    async def _deliver(self, look: Look, results: Sequence[Result | BadLine]) -> None:
        """Hand out replies and errors, and free the calls that have neither."""
        replies: dict[str, AIMessage] = {}
        failures: dict[str, Failure] = {}
        seen, problems = set[str](), list[str]()
        for place, each in enumerate(results):
            if not place % _AT_ONCE:
                await asyncio.sleep(0)
            if isinstance(each, BadLine):
                problems.append(each.problem)
            elif each.custom_id not in self.known:
                problems.append(f"{each.custom_id[:40]!r} answers a call that is not in the batch")
            elif each.custom_id in seen:
                problems.append(f"{each.custom_id} is answered twice")
            else:
                seen.add(each.custom_id)
                if each.custom_id in self.owed:
                    self._read(each, replies, failures)
        if look.done > len(seen):
            problems.append(f"{look.done - len(seen):,} of {look.done:,} results are missing")
        unanswered = set(self.owed) - set(replies) - set(failures)
        if problems:
            # What may have been answered is not bought again unless the user says so.
            unseen, unanswered = unanswered - seen, unanswered & seen
            mend = _MEND if unseen else "All replies are kept; run again to go on"
            if self._desk.resubmit:
                await self._write_off(unseen)
        failed = {custom_id: self.askers.pop(custom_id, None) for custom_id in failures}
        if unanswered or failures:
            await self._free([*unanswered, *failures])
        for custom_id, asker in failed.items():
            _answer(asker, failures[custom_id])
        self.arrived |= replies
        for place, custom_id in enumerate([each for each in replies if each in self.askers]):
            if not place % _AT_ONCE:
                await asyncio.sleep(0)
            if (asker := self.askers.pop(custom_id, None)) is not None:
                self.attach(asker)
        self.ended = True
        self._note_taken()
        if problems and not self._desk.resubmit:
            first = "; ".join(problems[:3]) + (f"; and {len(problems) - 3:,} more" if len(problems) > 3 else "")
            self._end_with(f"the results of batch {self.row.batch_id} are not as they should be: {first}. {mend}")

    def _read(self, result: Result, replies: dict[str, AIMessage], failures: dict[str, Failure]) -> None:
        """Read what the batch has for a call; nothing where the call was not made."""
        try:
            if result.reply is not None:
                replies[result.custom_id] = self._client.read(self._lane.result(result.reply))
            elif result.error is not None or result.status:
                raise ItemError(result)
        except RAISED as error:
            failures[result.custom_id] = classify_failure(error, networked=True)

    def _note_taken(self) -> None:
        if self.ended and not self.arrived:
            self._taken.set()

    async def _close(self) -> None:
        """Close the batch when all of its replies are on record."""
        await self._taken.wait()
        for _ in range(_CLOSING_TRIES):
            if await self.closed():
                return
            await asyncio.sleep(self._desk.pace.settle_s / 4)

    async def closed(self) -> bool:
        """Close the batch if it owes nothing more; replies that no run will ask for go to the ledger."""
        used = {custom_id: self._used(message) for custom_id, message in self.arrived.items()}
        if await self._desk.in_store(self._desk.store.close_batch, self.row, used):
            self.row = self.row._replace(state="closed")
        return self.row.state == "closed"

    def _used(self, message: AIMessage) -> Paid:
        reply = read_reply(message)
        given, said, cached = reply.input_tokens, reply.output_tokens, reply.cached_tokens or 0
        if given is None or said is None:
            return Paid(calls=1, uncounted=1)
        price = self._price
        cost, saved = (0.0, 0.0) if price is None else (price.cost(given, said, cached), price.saved(cached))
        return Paid(1, given, said, cost, 0, cached, saved)

    async def _write_off(self, custom_ids: Iterable[str]) -> None:
        """Free calls whose replies may be paid for and cannot be had; the ledger counts the most that they may cost."""
        lost = list(custom_ids)
        calls = [self.owed[custom_id] for custom_id in lost]
        paid = Paid(len(lost), sum(each.tokens for each in calls), cost=sum(each.money for each in calls))
        await self._free(lost, paid)

    def _end_with(self, reason: str) -> None:
        """Stop every run that waits for the batch, or asks its model."""
        self._broken = reason
        self._desk.slots.refuse(self._client, reason)
        for asker in self.askers.values():
            if not asker.answer.done():
                asker.answer.set_exception(ModelCallError(reason))


def passes(error: BaseException) -> bool:
    """Whether a request may succeed later."""
    return classify_failure(error, networked=True).kind in ("transient", "rate-limited", "no-room")


def _answer(asker: Asker | None, got: Got | None) -> None:
    if asker is not None and not asker.answer.done():
        asker.answer.set_result(got)
