"""Queues for classifiers that compute, one per instrument: texts wait until a batch is full or a time has passed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from opinionsim.classifiers import Classifier, Item
from opinionsim.errors import MeasurementError, OpinionSimError
from opinionsim.measurement._instruments import Instrument, Reading
from opinionsim.opinions import OpinionEstimates
from opinionsim.registry import RAISED, raised

#: Items a queue takes as one batch.
_FULL = 512
#: Items a queue holds before further callers have to wait.
_BOUND = 8 * _FULL
#: How long a queue waits for a batch to fill, seconds.
_WAIT_S = 0.1


class Queues:
    """The queues of a process, one per instrument, shared by all its runs.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        Where classifiers compute; None means on the event loop.

    Notes
    -----
    Use this class from a single event loop.
    """

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor
        self._queues: dict[str, _Queue] = {}

    def of(self, instrument: Instrument) -> _Queue:
        """The queue of an instrument."""
        if instrument.instrument_id not in self._queues:
            self._queues[instrument.instrument_id] = _Queue(instrument.classifier, self._executor)
        return self._queues[instrument.instrument_id]


class _Job(NamedTuple):
    """Items that one run has coded together."""

    items: Sequence[Item]
    estimates: asyncio.Future[list[Reading]]


class _Queue:
    """Items that wait for a classifier: taken as a batch when there are enough, or after a short time."""

    def __init__(self, classifier: Classifier, executor: Executor | None) -> None:
        self._classifier = classifier
        self._executor = executor
        self._jobs: deque[_Job] = deque()
        self._urgent: deque[_Job] = deque()
        self._room = asyncio.Condition()
        self._n_items = 0
        self._worker: asyncio.Task[None] | None = None
        self._full = asyncio.Event()

    async def code(self, items: Sequence[Item], *, urgent: bool = False) -> list[Reading]:
        """The classifier's estimate of each item.

        Parameters
        ----------
        items : sequence of Item
            Items to code; the estimates come in the same order.
        urgent : bool
            Whether to code at once, without waiting for a batch to fill.

        Raises
        ------
        MeasurementError
            If the classifier fails on these items; other runs are not affected.
        """
        found: list[Reading] = []
        for start in range(0, len(items), _FULL):
            found += await self._code(_Job(items[start : start + _FULL], asyncio.Future()), urgent)
        return found

    async def _code(self, job: _Job, urgent: bool) -> list[Reading]:
        if not urgent:
            async with self._room:
                await self._room.wait_for(lambda: self._n_items < _BOUND)
        (self._urgent if urgent else self._jobs).append(job)
        self._n_items += len(job.items)
        if urgent or self._n_items >= _FULL:
            self._full.set()
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await job.estimates

    async def _work(self) -> None:
        """Take batches until nothing is left."""
        while self._urgent or self._jobs:
            try:
                async with asyncio.timeout(_WAIT_S):
                    await self._full.wait()
            except TimeoutError:
                pass
            self._full.clear()
            while batch := self._batch():
                await self._make_room()
                await self._carry_out(batch)
            await self._make_room()

    async def _make_room(self) -> None:
        """Wake callers that wait for room in the queue."""
        async with self._room:
            self._room.notify_all()

    def _batch(self) -> list[_Job]:
        """The jobs of the next batch; urgent jobs form batches of their own."""
        waiting = self._urgent or self._jobs
        batch: list[_Job] = []
        n_items = 0
        while waiting and (not batch or n_items + len(waiting[0].items) <= _FULL):
            job = waiting.popleft()
            self._n_items -= len(job.items)
            # The run that brought it may have been stopped.
            if not job.estimates.done():
                batch.append(job)
                n_items += len(job.items)
        return batch

    async def _carry_out(self, batch: list[_Job]) -> None:
        """Code a batch; where that fails, each run's items by themselves, so that each has its own error."""
        items = [item for job in batch for item in job.items]
        try:
            found = iter(await self._classify(items))
        except Exception as error:
            if len(batch) > 1:
                for job in batch:
                    await self._carry_out([job])
            elif not batch[0].estimates.done():
                batch[0].estimates.set_exception(error)
            return
        for job in batch:
            estimates = [next(found) for _ in job.items]
            if not job.estimates.done():
                job.estimates.set_result(estimates)

    async def _classify(self, items: Sequence[Item]) -> list[Reading]:
        """Estimates of items; equal items are coded once, since the classifier computes."""
        distinct = list(dict.fromkeys(items))
        if self._executor is None:
            coded = _computed(self._classifier, distinct)
        else:
            loop = asyncio.get_running_loop()
            coded = await loop.run_in_executor(self._executor, _computed, self._classifier, distinct)
        known = dict(zip(distinct, coded, strict=True))
        return [known[item] for item in items]


def _computed(classifier: Classifier, items: Sequence[Item]) -> list[Reading]:
    """Estimates of items by a classifier; an error of its own becomes a MeasurementError."""
    try:
        estimates = estimates_of(classifier.classify(items))
        if len(estimates) != len(items):
            raise MeasurementError(
                f"classifier {classifier.name!r} returned {len(estimates)} answers for {len(items)} texts"
            )
    except OpinionSimError:
        raise
    except RAISED as error:  # a classifier of the user's own may raise anything
        raise failed(classifier, error) from error
    return estimates


def estimates_of(found: OpinionEstimates) -> list[Reading]:
    """Split estimates into one per row."""
    rows = zip(found.value.tolist(), found.probabilities.tolist(), found.off_scale.tolist(), strict=True)
    return [Reading(value, tuple(probabilities), off_scale) for value, probabilities, off_scale in rows]


def failed(classifier: Classifier, error: BaseException) -> MeasurementError:
    return MeasurementError(f"classifier {classifier.name!r} failed with {raised(error)}")
