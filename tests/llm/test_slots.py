"""The pool of call slots: order, hand-over, and no slot lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from opinionsim.errors import SpecError
from opinionsim.llm import MemoryJournal, RunCalls, SlotPool
from opinionsim.messages import ChatMessage
from opinionsim.schedules import ACTS, Turn
from opinionsim.testing import run_virtual


@pytest.mark.parametrize("limit", [0, -1])
def test_a_pool_has_a_slot(limit: int) -> None:
    with pytest.raises(SpecError, match=rf"max_concurrency must be at least 1; got {limit}"):
        SlotPool(limit)


def test_slots_are_taken_up_to_the_limit() -> None:
    pool = SlotPool(2)
    assert [pool.take() for _ in range(3)] == [True, True, False]
    pool.release()
    assert pool.in_flight == 1
    assert [pool.take() for _ in range(2)] == [True, False]


def test_whoever_waits_is_served_by_priority_and_equals_in_order_of_arrival() -> None:
    async def story() -> list[int]:
        pool = SlotPool(1)
        assert pool.take()
        waiters = [pool.enqueue(priority) for priority in (1.0, 3.0, 2.0, 3.0, 1.0)]
        served: list[int] = []
        for _ in waiters:
            pool.release()
            assert pool.in_flight == 1
            served += [i for i, waiter in enumerate(waiters) if waiter.done() and i not in served]
        pool.release()
        assert pool.in_flight == 0
        return served

    assert run_virtual(story()) == [1, 3, 2, 0, 4]


def test_a_cancelled_waiter_gives_up_its_place() -> None:
    async def story() -> None:
        pool = SlotPool(1)
        assert pool.take()
        first, second = pool.enqueue(2.0), pool.enqueue(1.0)
        first.cancel()
        pool.release()
        assert second.done()
        assert not second.cancelled()
        gone = [pool.enqueue(1.0) for _ in range(3)]
        for waiter in gone:
            waiter.cancel()
        pool.release()
        assert pool.in_flight == 0
        assert pool.take()

    run_virtual(story())


class _Slow:
    """Answers after the seconds its prompt names; fails where the prompt says so."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.peak = 0

    async def call(self, messages, seed: int) -> AIMessage:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            seconds, fails = messages[0].content.split()
            await asyncio.sleep(float(seconds))
            if fails == "True":
                raise ConnectionError("gone")
            return AIMessage("done")
        finally:
            self.in_flight -= 1


# Few different times, so that cancellations, arrivals and hand-overs fall into the same moment; and rounds of the
# event loop within that moment, so that a cancellation finds a slot handed over and not yet taken up.
quarters = st.integers(0, 6).map(lambda n: n / 4)
moments = st.tuples(quarters, st.integers(0, 8))
workers = st.lists(
    st.tuples(quarters, quarters, st.integers(0, 3), st.booleans(), st.none() | moments), min_size=1, max_size=14
)


async def _at(moment: tuple[float, int], action: Callable[[], object]) -> None:
    await asyncio.sleep(moment[0])
    for _ in range(moment[1]):
        await asyncio.sleep(0)
    action()


@settings(max_examples=300)
@given(workers, st.integers(1, 3), st.none() | moments)
def test_no_slot_is_lost_whoever_is_cancelled_fails_or_is_stopped(work, limit, stop_at) -> None:
    async def story() -> None:
        pool, client, journal = SlotPool(limit), _Slow(), MemoryJournal()
        calls = RunCalls("run", journal, client, pool, timeout_s=1.25)

        async def worker(index: int, start: float, lasts: float, priority: int, fails: bool) -> None:
            await asyncio.sleep(start)
            await calls.ask(
                Turn(index, 1, 0, "write"), ACTS["write"], priority, "reply", [ChatMessage("user", f"{lasts} {fails}")]
            )

        tasks, interventions = [], []
        for index, (start, lasts, priority, fails, cancel_at) in enumerate(work):
            task = asyncio.create_task(worker(index, start, lasts, priority, fails))
            tasks.append(task)
            if cancel_at is not None:
                interventions.append(asyncio.create_task(_at(cancel_at, task.cancel)))
        if stop_at is not None:
            interventions.append(asyncio.create_task(_at(stop_at, calls.stop)))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*interventions)
        assert client.peak <= limit
        assert pool.in_flight == client.in_flight == 0
        assert [pool.take() for _ in range(limit + 1)] == [True] * limit + [False]
        # Whoever was left alone and could be served was served.
        for index, (result, (_, lasts, _, fails, cancel_at)) in enumerate(zip(results, work, strict=True)):
            if cancel_at is None and stop_at is None and not fails and lasts < 1.25:
                assert not isinstance(result, BaseException), (index, result)
        arrived = {record.key.turn for record in journal.records}
        assert {i for i, result in enumerate(results) if not isinstance(result, BaseException)} <= arrived

    run_virtual(story())
