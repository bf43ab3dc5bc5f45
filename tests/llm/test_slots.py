"""The pool of call slots and its lanes: order, hand-over, pace, and no slot lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langchain_core.messages import AIMessage

from opinionsim.errors import SpecError
from opinionsim.llm import AccountSlots, Endpoint, MemoryJournal, RetryPolicy, RunCalls, SlotPool
from opinionsim.messages import ChatMessage
from opinionsim.schedules import Turn
from opinionsim.testing import VirtualClockLoop, run_virtual
from tests.support.examples import examples


@pytest.mark.parametrize("limit", [0, -1])
def test_a_pool_has_a_slot(limit: int) -> None:
    with pytest.raises(SpecError, match=rf"max_concurrency must be at least 1; got {limit}"):
        SlotPool(limit)


def test_accounts_that_wait_are_named_with_the_seconds_left() -> None:
    async def story() -> list[dict[str, float]]:
        pool = SlotPool(4)
        lanes = [pool.account(name, adaptive=True) for name in ("b", "a")]
        pool.account("local")
        told = [pool.waiting()]
        for lane, seconds in zip(lanes, (34.0, 5.0), strict=True):
            assert lane.take()
            lane.release("rate-limited", retry_after_s=seconds)
        told.append(pool.waiting())
        for wait in (4.0, 3.0, 40.0):
            await asyncio.sleep(wait)
            told.append(pool.waiting())
        return told

    assert run_virtual(story()) == [{}, {"a": 5.0, "b": 34.0}, {"a": 1.0, "b": 30.0}, {"b": 27.0}, {}]


def test_lanes_share_the_slots_of_their_pool() -> None:
    pool = SlotPool(3)
    one, other = pool.account("one"), pool.account("other")
    assert pool.account("one") is one
    assert [one.take(), one.take(), other.take(), other.take(), one.take()] == [True, True, True, False, False]
    assert (one.in_flight, other.in_flight, pool.in_flight) == (2, 1, 3)
    assert one.limit == other.limit == 3


# --- the pace of an adaptive lane ----------------------------------------------------------------------------


def _round(lane: AccountSlots, ending: str = "ok") -> int:
    """Fill a lane and let all of it come back, one after the other, with the lane full meanwhile; the limit then."""
    for _ in range(lane.limit):
        while lane.take():
            pass
        lane.release(ending)
    return lane.limit


def _empty(lane: AccountSlots) -> None:
    while lane.in_flight:
        lane.release("failed")


@pytest.mark.parametrize(("pool", "limits"), [(64, [10, 20, 40, 64, 64]), (3, [3, 3])])
def test_an_adaptive_lane_starts_slowly_and_doubles_up_to_the_pool(pool: int, limits: list[int]) -> None:
    async def story() -> list[int]:
        lane = SlotPool(pool).account("a", adaptive=True)
        return [lane.limit, *(_round(lane) for _ in limits[1:])]

    assert run_virtual(story()) == limits


def test_an_episode_cuts_once_and_growth_is_slow_afterwards() -> None:
    async def story() -> None:
        pool = SlotPool(1000)
        lane = pool.account("a", adaptive=True)
        for _ in range(4):
            _round(lane)
        assert lane.limit == 160
        while lane.take():
            pass
        for _ in range(100):
            lane.release("rate-limited")
        assert lane.limit == 128
        # Nothing is learnt from what was under way.
        await asyncio.sleep(14.9)
        lane.release("rate-limited")
        assert lane.limit == 128
        assert _round(lane) == 128
        await asyncio.sleep(0.2)
        assert [_round(lane) for _ in range(3)] == [134, 140, 147]
        lane.take()
        lane.release("rate-limited")
        assert lane.limit == 117
        _empty(lane)

    run_virtual(story())


def test_small_limits_grow_by_one_and_are_cut_down_to_one() -> None:
    async def story() -> list[int]:
        lane = SlotPool(8).account("a", adaptive=True)
        limits = []
        for _ in range(8):
            assert lane.take()
            lane.release("rate-limited")
            limits.append(lane.limit)
            await asyncio.sleep(15)
        limits += [_round(lane) for _ in range(3)]
        return limits

    assert run_virtual(story()) == [6, 4, 3, 2, 1, 1, 1, 1, 2, 3, 4]


def test_a_lane_that_is_not_full_does_not_grow() -> None:
    async def story() -> int:
        lane = SlotPool(100).account("a", adaptive=True)
        for _ in range(7):
            assert lane.take()
        for _ in range(100):
            lane.release()
            assert lane.take()
        assert lane.limit == 10
        # Eight of ten in flight are enough.
        assert lane.take()
        for _ in range(10):
            lane.release()
            assert lane.take()
        return lane.limit

    assert run_virtual(story()) == 20


def test_server_errors_neither_cut_nor_grow() -> None:
    async def story() -> list[int]:
        lane = SlotPool(100).account("a", adaptive=True)
        limits = [_round(lane, "failed") for _ in range(5)]
        while lane.take():
            pass
        for _ in range(9):
            lane.release()
            lane.take()
        lane.release("failed")
        lane.take()
        limits.append(lane.limit)
        lane.release()
        return [*limits, lane.limit]

    assert run_virtual(story()) == [10] * 6 + [20]


def test_nothing_is_sent_before_retry_after_is_over() -> None:
    async def story() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        pool = SlotPool(20)
        limited, other = pool.account("a", adaptive=True), pool.account("b", adaptive=True)
        assert limited.take()
        assert limited.take()
        limited.release("rate-limited", retry_after_s=20)
        served: list[tuple[str, float]] = []

        async def wait(name: str, lane: AccountSlots) -> None:
            assert lane.take() is (lane is other)
            if lane is limited:
                await lane.enqueue(1.0)
            served.append((name, loop.time()))

        tasks = [asyncio.create_task(wait(f"a{i}", limited)) for i in range(10)]
        tasks.append(asyncio.create_task(wait("b", other)))
        # A later end counts, an earlier one does not, and both belong to the episode that goes on.
        await asyncio.sleep(16)
        assert limited.take() is False
        limited.release("rate-limited", retry_after_s=10)
        tasks.append(asyncio.create_task(wait("late", limited)))
        await asyncio.wait(tasks, timeout=12)
        assert limited.limit == 8
        for _ in range(8):
            limited.release()
        await asyncio.gather(*tasks)
        return served

    served = run_virtual(story())
    assert served[0] == ("b", 0.0)
    # Eight at 26 s, as many as the limit allows; the others when these came back.
    assert [name for name, at in served if at == 26.0] == [f"a{i}" for i in range(8)]
    assert {name for name, at in served if at > 26.0} == {"a8", "a9", "late"}


def test_the_lane_settles_at_what_the_provider_allows() -> None:
    """Against a provider with room for 30 calls, limits stay near 30 and most attempts succeed."""

    async def story() -> tuple[list[int], int, int]:
        pool = SlotPool(256)
        lane = pool.account("a", adaptive=True)
        done = refused = 0
        limits: list[int] = []
        room = 30

        async def worker() -> None:
            nonlocal done, refused, room
            while asyncio.get_running_loop().time() < 900:
                if not lane.take():
                    await lane.enqueue(0.0)
                if room == 0:
                    refused += 1
                    lane.release("rate-limited")
                    await asyncio.sleep(0.5)
                    continue
                room -= 1
                await asyncio.sleep(1.0)
                room += 1
                done += 1
                lane.release()
                limits.append(lane.limit)

        await asyncio.gather(*(worker() for _ in range(100)))
        return limits, done, refused

    limits, done, refused = run_virtual(story())
    late = limits[len(limits) // 2 :]
    assert min(late) >= 20
    assert max(late) <= 40
    assert done >= 0.8 * 30 * 900
    assert refused < 0.1 * done


# --- any story at all ----------------------------------------------------------------------------------------

NAMES = ("fixed", "adaptive", "other adaptive")


@dataclass
class _Account:
    """What the model knows of a lane."""

    lane: AccountSlots
    held: int = 0
    paused_until: float = 0.0
    waiting: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)

    def can_send(self, now: float) -> bool:
        return now >= self.paused_until and self.lane.in_flight < self.lane.limit


class SlotStory(RuleBasedStateMachine):
    """Everything that can be done to a pool, checked after every step against what the model knows.

    Slots are taken up to the limit, by priority over all lanes and equals in order of arrival; whoever is cancelled
    gives up its place; a fixed lane does not learn.
    """

    @initialize(limit=st.integers(1, 14))
    def open(self, limit: int) -> None:
        self.loop = VirtualClockLoop()
        self.pool = SlotPool(limit)
        self.arrivals = 0
        self.accounts = [_Account(self.pool.account(name, adaptive=name != "fixed")) for name in NAMES]
        for account in self.accounts:
            assert account.lane.limit == (limit if account.lane.name == "fixed" else min(limit, 10))

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        # Nobody starves: once everything held comes back and pauses are over, everybody has been served.
        for _ in range(10_000):
            if not any(account.held or account.waiting for account in self.accounts):
                break
            for index, account in enumerate(self.accounts):
                while account.held:
                    self.release(index, "ok", None)
            self.wait(700.0)
        assert not any(account.held or account.waiting for account in self.accounts)
        assert self.pool.in_flight == 0
        self.loop.close()

    def _do(self, action: Callable[[], object], seconds: float = 0.0) -> object:
        """Act on the running loop, let time pass, and take note of who was served."""

        async def act() -> object:
            result = action()
            await asyncio.sleep(seconds)
            return result

        before = [account.lane.in_flight for account in self.accounts]
        result = self.loop.run_until_complete(act())
        granted = []
        for account, was in zip(self.accounts, before, strict=True):
            served = [each for each in account.waiting if each[2].done() and not each[2].cancelled()]
            account.waiting = [each for each in account.waiting if not each[2].done()]
            account.held += len(served)
            granted += served
            if served:
                assert self.loop.time() >= account.paused_until
                assert account.lane.in_flight <= max(account.lane.limit, was)
        if seconds == 0:
            # Whoever is served came before everybody who is not and could have been.
            passed_over = [each for a in self.accounts if a.can_send(self.loop.time()) for each in a.waiting]
            assert not (granted and passed_over and max(g[:2] for g in granted) > min(p[:2] for p in passed_over))
        return result

    @rule(index=st.integers(0, 2))
    def take(self, index: int) -> None:
        account = self.accounts[index]
        could = account.can_send(self.loop.time()) and self.pool.in_flight < self.pool.limit
        took = self._do(account.lane.take)
        assert took is could
        account.held += bool(took)

    @rule(index=st.integers(0, 2), priority=st.integers(0, 3))
    def ask(self, index: int, priority: int) -> None:
        """Take a slot, or wait for one."""
        account = self.accounts[index]
        self.arrivals += 1

        def request() -> asyncio.Future[None] | None:
            return None if account.lane.take() else account.lane.enqueue(priority)

        waiter = self._do(request)
        if waiter is None:
            account.held += 1
        else:
            account.waiting.append((-priority, self.arrivals, waiter))

    @precondition(lambda self: any(account.waiting for account in self.accounts))
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        waiting = [each[2] for account in self.accounts for each in account.waiting]
        self._do(data.draw(st.sampled_from(waiting)).cancel)

    @precondition(lambda self: any(account.held for account in self.accounts))
    @rule(
        data=st.data(),
        ending=st.sampled_from(["ok", "ok", "ok", "failed", "rate-limited"]),
        retry_after_s=st.none() | st.sampled_from([0.0, 0.5, 3.0, 20.0, 600.0]),
    )
    def come_back(self, data: st.DataObject, ending: str, retry_after_s: float | None) -> None:
        index = data.draw(st.sampled_from([i for i, account in enumerate(self.accounts) if account.held]))
        self.release(index, ending, retry_after_s)

    def release(self, index: int, ending: str, retry_after_s: float | None) -> None:
        account = self.accounts[index]
        limit = account.lane.limit
        if ending == "rate-limited" and retry_after_s is not None and index > 0:
            account.paused_until = max(account.paused_until, self.loop.time() + retry_after_s)
        account.held -= 1
        self._do(lambda: account.lane.release(ending, retry_after_s=retry_after_s))
        if index == 0 or ending == "failed":
            assert account.lane.limit == limit
        elif ending == "ok":
            assert limit <= account.lane.limit <= self.pool.limit
        else:
            assert account.lane.limit in (limit, max(1, int(0.8 * limit)))

    @rule(seconds=st.sampled_from([0.25, 1.0, 15.0]))
    def wait(self, seconds: float) -> None:
        self._do(lambda: None, seconds)

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "pool"):
            return
        assert [account.lane.in_flight for account in self.accounts] == [account.held for account in self.accounts]
        assert self.pool.in_flight == sum(account.held for account in self.accounts) <= self.pool.limit

    @invariant()
    def no_slot_is_idle_while_somebody_may_have_it(self) -> None:
        if not hasattr(self, "pool"):
            return
        now = self.loop.time()
        if any(account.waiting and account.can_send(now) for account in self.accounts):
            assert self.pool.in_flight == self.pool.limit


SlotStory.TestCase.settings = examples(100, stateful_step_count=40)
TestSlotStory = SlotStory.TestCase


# --- through the caller --------------------------------------------------------------------------------------


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
                raise ValueError("gone")
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


@examples(300)
@given(workers, st.integers(1, 3), st.booleans(), st.none() | moments, st.none() | moments)
def test_no_slot_is_lost_whoever_is_cancelled_fails_is_stopped_or_refused(
    work, limit, networked, stop_at, refuse_at
) -> None:
    async def story() -> None:
        pool, client, journal = SlotPool(limit), _Slow(), MemoryJournal()
        endpoint = Endpoint(client, "account", networked)
        patience = RetryPolicy(transient=0)
        calls = RunCalls("run", journal, [endpoint], pool, retry=patience, timeout_s=1.25)

        async def worker(index: int, start: float, lasts: float, priority: int, fails: bool) -> None:
            await asyncio.sleep(start)
            prompt = [ChatMessage("user", f"{lasts} {fails}")]
            await calls.ask(Turn(index, 1, 0, "write"), "reply", prompt, priority=priority)

        tasks, interventions = [], []
        for index, (start, lasts, priority, fails, cancel_at) in enumerate(work):
            task = asyncio.create_task(worker(index, start, lasts, priority, fails))
            tasks.append(task)
            if cancel_at is not None:
                interventions.append(asyncio.create_task(_at(cancel_at, task.cancel)))
        if stop_at is not None:
            interventions.append(asyncio.create_task(_at(stop_at, calls.stop)))
        if refuse_at is not None:
            refuse = partial(pool.refuse, client, "refused")
            interventions.append(asyncio.create_task(_at(refuse_at, refuse)))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*interventions)
        assert client.peak <= limit
        assert pool.in_flight == client.in_flight == 0
        lane = pool.account("account")
        assert [lane.take() for _ in range(limit + 1)] == [True] * limit + [False]
        # Whoever was left alone and could be served was served.
        for index, (result, (_, lasts, _, fails, cancel_at)) in enumerate(zip(results, work, strict=True)):
            if cancel_at is None and stop_at is None and refuse_at is None and not fails and lasts < 1.25:
                assert not isinstance(result, BaseException), (index, result)
        arrived = {record.key.turn for record in journal.records}
        assert {i for i, result in enumerate(results) if not isinstance(result, BaseException)} <= arrived

    run_virtual(story())
