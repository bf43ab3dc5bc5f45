"""The batch queues of a sweep: calls of all runs that are ready go out together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from opinionsim.errors import SpecError
from opinionsim.lanes._batch import Asker, Batching, Queue, QueuedBatch
from opinionsim.lanes._protocol import Request
from opinionsim.llm import Endpoint, ModelClient, Usage
from opinionsim.registry import RAISED, raised
from opinionsim.store import BatchRow, OwedCall

if TYPE_CHECKING:
    from opinionsim.lanes._batch import Got
    from opinionsim.llm import Budget, NewCall, Reservation

#: Looks at waiting calls in the time that they take to settle.
_LOOKS = 8
#: Seconds that a submission may take when a sweep ends.
_LAST_S = 120.0


class Batches:
    """Buys calls of all runs of a sweep through the batch queues of their providers.

    Parameters
    ----------
    desk : Batching
        Store, slots, retries and times.
    experiment_id : str
        The experiment that pays.
    busy : callable
        Whether anything other than a batch may make calls ready.
    stopped : callable
        Whether no further batch may be submitted.
    leave : callable or None
        Called once nothing is left to do but to wait for batches; None waits.

    Attributes
    ----------
    used : bool
        Whether a call may go through a queue.
    """

    def __init__(
        self,
        desk: Batching,
        experiment_id: str,
        *,
        busy: Callable[[], bool],
        stopped: Callable[[], bool],
        leave: Callable[[], None] | None = None,
    ) -> None:
        self._desk, self._experiment_id = desk, experiment_id
        self._busy, self._stopped, self._leave = busy, stopped, leave
        self.used = False
        self._queues: dict[int, Queue] = {}
        self._by_call: dict[str, QueuedBatch] = {}
        self._tasks: dict[asyncio.Task[None], QueuedBatch] = {}
        self._gathering: asyncio.Task[None] | None = None
        self._over: list[QueuedBatch] = []
        #: When a call last joined or a batch last ended, by the clock of the loop.
        self._moved = 0.0

    # -- what calls ask ----------------------------------------------------------------------------------------

    def takes(self, call: NewCall, endpoint: Endpoint) -> bool:
        """Whether a call goes through a queue, or is in a batch that was submitted earlier.

        Calls that are asked again after a reply was rejected do not wait for a batch.
        """
        if not self.used or not isinstance(endpoint.client, ModelClient):
            return False
        return (endpoint.lane == "batch" and not call.key.attempt) or self._batch_of(call) is not None

    def reserved(self, call: NewCall) -> Reservation | None:
        """The reservation of a call that is in a batch of an earlier process."""
        batch = self._batch_of(call)
        return None if batch is None else batch.holds.pop(call.custom_id, None)

    def join(self, call: NewCall, endpoint: Endpoint) -> asyncio.Future[Got | None]:
        """What a batch brings for a call; None if it is to be made now."""
        loop = asyncio.get_running_loop()
        asker = Asker(call, endpoint, loop.create_future())
        # What a run does with a reply may make calls ready.
        asker.answer.add_done_callback(lambda _: setattr(self, "_moved", loop.time()))
        if (batch := self._batch_of(call)) is not None:
            batch.attach(asker)
        else:
            self._wait(asker)
        return asker.answer

    def _batch_of(self, call: NewCall) -> QueuedBatch | None:
        batch = self._by_call.get(call.custom_id) if self._by_call else None
        return batch if batch is not None and call.custom_id in batch.owed else None

    def _wait(self, asker: Asker) -> None:
        queue = self._queue(asker.endpoint, asker.endpoint.queue)
        self._moved = asyncio.get_running_loop().time()
        queue.since = queue.since if queue.waiting else self._moved
        queue.waiting[asker.call.custom_id] = asker

    def _queue(self, endpoint: Endpoint, part: str) -> Queue:
        client, price = endpoint.client, endpoint.price
        if id(client) not in self._queues:
            if not isinstance(client, ModelClient):
                raise TypeError("only a model client has a queue")
            self._queues[id(client)] = Queue(client, part, None if price is None else price.at("batch"))
        return self._queues[id(client)]

    # -- life cycle --------------------------------------------------------------------------------------------

    async def open(self, endpoints: Iterable[Endpoint], run_ids: Iterable[str], budget: Budget | None) -> None:
        """Begin: go on with the batches that earlier processes left, and gather calls.

        Parameters
        ----------
        endpoints : iterable of Endpoint
            All models of the experiment.
        run_ids : iterable of str
            The runs that are carried out.
        budget : Budget or None
            Where calls in flight are reserved.

        Raises
        ------
        SpecError
            If a batch was submitted to another account than that of its model.
        """
        every: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            if isinstance(endpoint.client, ModelClient):
                every.setdefault(endpoint.client.name, {})[endpoint.account] = endpoint
        self.used = any(endpoint.lane == "batch" for own in every.values() for endpoint in own.values())
        wanted, store = set(run_ids), self._desk.store
        rows = [row for row in await self._desk.in_store(store.batches) if row.state == "open"]
        states = await self._desk.in_store(store.states, wanted) if rows else {}
        unfinished = {run_id for run_id in wanted if run_id not in states or states[run_id].status != "complete"}
        for row in rows:
            calls = await self._desk.in_store(store.batched, row.token)
            if not (owed := [each for each in calls.values() if each is not None]):
                await self._desk.in_store(store.close_batch, row, {})
                continue
            holds = {}
            if budget is not None and row.experiment_id == self._experiment_id:
                for each in owed:
                    worst = Usage(1, each.tokens, each.money)
                    hold = budget.hold(worst, (each.run_id, each.turn, each.call, each.attempt))
                    if each.run_id in unfinished:
                        holds[each.custom_id] = hold
                    else:
                        hold.settle(worst)  # nobody asks for it in this sweep
            if row.model in every and any(each.run_id in wanted for each in owed):
                self._go_on(row, calls, every[row.model], holds)
        self._moved = asyncio.get_running_loop().time()
        if self.used:
            self._gathering = asyncio.create_task(self._gather())

    def _go_on(
        self,
        row: BatchRow,
        calls: dict[str, OwedCall | None],
        accounts: dict[str, Endpoint],
        holds: dict[str, Reservation],
    ) -> None:
        """Go on with a batch of an earlier process."""
        if (endpoint := accounts.get(row.account)) is None:
            raise SpecError(
                f"batch {row.batch_id or row.token} of {row.model} was submitted to {row.account}, but the model now "
                f"answers at {', '.join(accounts)}; run with the address of before until the batch has ended"
            )
        self.used = True
        queue = self._queue(endpoint, row.part)
        batch = QueuedBatch(self._desk, queue, row, calls)
        batch.holds = holds
        self._carry(queue, batch)

    def _carry(self, queue: Queue, batch: QueuedBatch, requests: list[Request] | None = None) -> None:
        self._by_call |= dict.fromkeys(batch.owed, batch)
        queue.out.add(batch)

        def over(task: asyncio.Task[None]) -> None:
            del self._tasks[task]
            queue.out.discard(batch)
            if batch.row.state == "open":
                self._over.append(batch)
            else:
                self._by_call = {name: each for name, each in self._by_call.items() if each is not batch}
            self._moved = asyncio.get_running_loop().time()
            if batch.crowded:
                queue.closed_until = self._moved + self._desk.pace.crowded_s
                queue.most = queue.most if queue.out else max(1, batch.row.calls // 2)
            elif batch.row.batch_id:
                queue.most = min(2 * queue.most, queue.lane.most_calls)
            for asker in batch.back:
                if asker.endpoint.lane != "batch" and not asker.answer.done():
                    asker.answer.set_result(None)  # the lane was changed while the batch was out
                elif not asker.answer.done():
                    self._wait(asker)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._desk.slots.refuse(queue.client, f"a batch failed with {raised(error)}")

        task = asyncio.create_task(batch.carry(requests or ()))
        self._tasks[task] = batch
        task.add_done_callback(over)

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a batch to be submitted or to end."""
        return sum(len(queue.waiting) + sum(len(each.askers) for each in queue.out) for queue in self._each())

    @property
    def waits(self) -> str:
        """Why nothing may go on for long, in words; empty if nothing is amiss."""
        full = [f"the queue of {each.client.account} is full" for each in self._each() if each.waiting and each.crowded]
        out = list(self._tasks.copy().values())
        unclear = [each.row for each in out if each.submitted.is_set() and not each.row.batch_id]
        sought = [f"looking for a batch of {row.calls:,} calls that may exist" for row in unclear]
        return "; ".join([*full, *sought, *filter(None, (each.trouble for each in out))])

    def _each(self) -> Iterator[Queue]:
        yield from list(self._queues.values())

    def untaken(self) -> set[str]:
        """Ids of runs that have not yet asked for replies that arrived."""
        batches = list(self._tasks.values())
        return {each.owed[name].run_id for each in batches for name in each.arrived if name in each.owed}

    async def close(self) -> None:
        """End all waits, but no batch at its provider; batches whose replies are all on record are closed."""
        if self._gathering is not None:
            self._gathering.cancel()
        if self._tasks and not self._stopped():
            # Nobody waits for a reply any more, but a batch may be about to be closed.
            await asyncio.wait(list(self._tasks), timeout=self._desk.pace.settle_s)
        if submitting := [batch.submitted.wait() for batch in self._tasks.values()]:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*submitting), _LAST_S)
        batches = [*self._tasks.values(), *self._over]
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        for batch in batches:
            if batch.row.state == "open" and batch.looked:
                await batch.closed()

    # -- gathering ---------------------------------------------------------------------------------------------

    async def _gather(self) -> None:
        """Submit what waits whenever nothing else can become ready."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._desk.pace.settle_s / _LOOKS)
            if self._stopped():
                continue
            for queue in self._each():
                queue.waiting = {name: each for name, each in queue.waiting.items() if not each.answer.done()}
            now = clock()
            if self._busy():
                self._moved = now
            quiet = now - self._moved >= self._desk.pace.settle_s
            waiting = [queue for queue in self._each() if queue.waiting]
            for queue in waiting:
                full = len(queue.waiting) >= queue.most or now - queue.since >= self._desk.pace.longest_s
                if (quiet or full) and now >= queue.closed_until and not (queue.crowded and queue.out):
                    self._send(queue)
            out = [batch for batch in self._tasks.values() if not batch.ended]
            if self._leave is not None and quiet and not waiting and out and all(batch.looked for batch in out):
                self._leave()

    def _send(self, queue: Queue) -> None:
        """Send what waits: as one batch, as several where they would be too large, or now where it is too little."""
        askers = list(queue.waiting.values())[: queue.most if queue.crowded else None]
        for asker in askers:
            del queue.waiting[asker.call.custom_id]
        if not queue.out and len(askers) < max(each.endpoint.terms.tail for each in askers):
            for asker in askers:
                asker.answer.set_result(None)
            return
        try:
            for portion, requests in self._portions(queue, askers):
                row = queue.intended(self._experiment_id, len(portion))
                calls = {asker.call.custom_id: _owed(asker) for asker in portion}
                batch = QueuedBatch(self._desk, queue, row, calls)
                for asker in portion:
                    batch.attach(asker)
                self._carry(queue, batch, requests)
        except RAISED as error:
            self._desk.slots.refuse(queue.client, f"no batch can be made: {raised(error)}")

    def _portions(self, queue: Queue, askers: list[Asker]) -> Iterator[tuple[list[Asker], list[Request]]]:
        """Calls with their requests, in portions of the size that the provider takes."""
        portion: list[Asker] = []
        requests: list[Request] = []
        size = 0
        for asker in askers:
            model, messages, options = queue.client.request(asker.call.prompt, asker.call.seed)
            request = Request(asker.call.custom_id, queue.lane.body(model, messages, options))
            added = queue.lane.size(request)
            if portion and (len(portion) >= queue.most or size + added > queue.lane.most_bytes):
                yield portion, requests
                portion, requests, size = [], [], 0
            portion.append(asker)
            requests.append(request)
            size += added
        yield portion, requests


def _owed(asker: Asker) -> OwedCall:
    call, endpoint = asker.call, asker.endpoint
    worst = endpoint.worst(call.prompt, queued=True)
    return OwedCall(call.custom_id, call.run_id, *call.key, call.prompt.identity, worst.tokens, worst.money)
