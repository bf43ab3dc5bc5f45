"""Budgets: no limit is exceeded, nobody waits for ever, and who cannot go on is told why."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from opinionsim.errors import BudgetExceeded
from opinionsim.llm import Budget, Call, Limits, SharedBudget, Usage
from opinionsim.llm._budget import Reservation, bound_tokens
from opinionsim.messages import ChatMessage
from opinionsim.testing import run_virtual
from tests.support.examples import examples

Story = Callable[[], Coroutine[Any, Any, None]]


def play(story: Story) -> Story:
    """Run a test on a virtual clock, where a deadlock is an error."""

    def test() -> None:
        run_virtual(story())

    test.__name__ = story.__name__
    return test  # type: ignore[return-value]


ONE = Usage(1, 100, 1.0)
ZERO = Usage()
CALL = ("run", 0, "reply", 0)


def reserve(budget: Budget, worst: Usage) -> Coroutine[Any, Any, Reservation]:
    """A reservation for a call that no other is told from."""
    return budget.reserve(worst, CALL)


@play
async def test_what_is_settled_is_paid_and_what_is_cancelled_is_not() -> None:
    budget = Budget(Limits(calls=10, tokens=1000, money=10.0), Usage(1, 5, 0.5))
    first, second = await reserve(budget, ONE), await reserve(budget, ONE)
    assert budget.paid == Usage(1, 5, 0.5)
    first.settle(Usage(1, 40, 0.25))
    second.cancel()
    assert budget.paid == Usage(2, 45, 0.75)
    assert budget.remaining() == Limits(calls=8, tokens=955, money=9.25)
    second.cancel()
    first.cancel()
    assert budget.paid == Usage(2, 45, 0.75)
    with pytest.raises(RuntimeError, match="settled only once"):
        first.settle(ONE)


@play
async def test_without_limits_everything_is_let_through_and_counted() -> None:
    budget = Budget(Limits())
    assert not budget.limited
    reservations = [await reserve(budget, Usage(10**9, 10**12, 1e9)) for _ in range(3)]
    for reservation in reservations:
        reservation.settle(ONE)
    assert budget.paid == Usage(3, 300, 3.0)
    assert budget.remaining() == Limits()


@pytest.mark.parametrize(
    ("limits", "paid", "message"),
    [
        (
            Limits(calls=3),
            Usage(3),
            "calls: 3 of 3 paid, and the next call could cost 1; to continue, raise execution.budget.calls",
        ),
        (Limits(tokens=12_345), Usage(2, 12_246), "tokens: 12,246 of 12,345 paid, and the next call could cost 100"),
        (
            Limits(money=2.5),
            Usage(2, 9, 1.75),
            "money: 1.75 of 2.5 paid, and the next call could cost 1; to continue, raise exec",
        ),
        (Limits(calls=0), Usage(), "calls: 0 of 0 paid"),
    ],
)
def test_who_cannot_be_served_is_told_what_to_raise(limits: Limits, paid: Usage, message: str) -> None:
    with pytest.raises(BudgetExceeded, match=re.escape(message)) as caught:
        run_virtual(_reserve(Budget(limits, paid)))
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


async def _reserve(budget: Budget, worst: Usage = ONE) -> None:
    await reserve(budget, worst)


def test_all_limits_in_the_way_are_named() -> None:
    with pytest.raises(BudgetExceeded) as caught:
        run_virtual(_reserve(Budget(Limits(calls=1, tokens=1, money=1.0)), Usage(2, 2, 0.5)))
    named = re.findall(r"execution\.budget\.(\w+)", str(caught.value))
    assert named == ["calls", "tokens"]


@play
async def test_a_call_that_never_fits_is_told_at_once() -> None:
    budget = Budget(Limits(tokens=150))
    await reserve(budget, ONE)
    with pytest.raises(BudgetExceeded):
        await reserve(budget, Usage(1, 151, 0.0))


@play
async def test_small_calls_do_not_overtake_a_large_one() -> None:
    budget = Budget(Limits(tokens=100))
    first = await reserve(budget, Usage(1, 60))
    order: list[str] = []

    async def call(name: str, tokens: int) -> None:
        (await reserve(budget, Usage(1, tokens))).cancel()
        order.append(name)

    tasks = [asyncio.create_task(call("large", 90)), asyncio.create_task(call("small", 10))]
    await asyncio.sleep(1)
    assert not order
    first.cancel()
    await asyncio.gather(*tasks)
    assert order == ["large", "small"]


@play
async def test_whoever_stands_behind_one_that_gave_up_is_served() -> None:
    budget = Budget(Limits(tokens=100))
    await reserve(budget, Usage(1, 60))
    large = asyncio.create_task(_reserve(budget, Usage(1, 90)))
    small = asyncio.create_task(_reserve(budget, Usage(1, 40)))
    await asyncio.sleep(1)
    large.cancel()
    await small
    with pytest.raises(asyncio.CancelledError):
        await large


@play
async def test_room_handed_to_one_that_is_cancelled_goes_on() -> None:
    budget = Budget(Limits(tokens=100))
    first = await reserve(budget, ONE)
    second, third = (asyncio.create_task(reserve(budget, ONE)) for _ in range(2))
    await asyncio.sleep(1)
    first.cancel()
    second.cancel()
    (await third).settle(ONE)
    assert budget.paid.tokens == 100
    with pytest.raises(asyncio.CancelledError):
        await second


@play
async def test_a_call_that_costs_more_than_reserved_counts_in_full() -> None:
    budget = Budget(Limits(tokens=150))
    (await reserve(budget, ONE)).settle(Usage(1, 200, 0.0))
    assert budget.paid.tokens == 200
    assert budget.remaining() == Limits(tokens=0)
    with pytest.raises(BudgetExceeded, match="200 of 150 paid"):
        await reserve(budget, Usage(1, 0))


# Amounts that have no exact binary form, so that sums are rounded.
amounts = st.builds(lambda calls, tokens, cents: Usage(calls, tokens, cents / 100), *[st.integers(0, 40)] * 3)
limits_of = st.builds(
    lambda calls, tokens, cents: Limits(calls=calls, tokens=tokens, money=None if cents is None else cents / 100),
    *[st.none() | st.integers(0, 200)] * 3,
)
shares = st.sampled_from([0.0, 0.3, 1.0])
jobs = st.lists(
    st.tuples(st.integers(0, 4), amounts, shares, st.integers(0, 3), st.booleans(), st.none() | st.integers(0, 6)),
    max_size=20,
)


@examples(300)
@given(limits_of, amounts, jobs)
def test_no_limit_is_exceeded_and_nobody_waits_for_ever(limits: Limits, paid: Usage, work) -> None:
    async def story() -> None:
        budget = Budget(limits, paid)
        held: list[Usage] = []

        def check() -> None:
            at_stake = sum(held, budget.paid)
            # Only what was paid before may lie above a limit.
            above = limits.exceeded_by(Usage(at_stake.calls, at_stake.tokens, at_stake.money - 1e-9))
            assert set(above) <= set(limits.exceeded_by(paid))
            assert not (above and held and any(held))

        async def job(start: float, worst: Usage, share: float, lasts: float, fails: bool) -> str:
            await asyncio.sleep(start)
            try:
                reservation = await reserve(budget, worst)
            except BudgetExceeded:
                # Certain: nothing that could still be returned would have made room.
                assert limits.exceeded_by(budget.paid + worst)
                return "exceeded"
            held.append(worst)
            check()
            try:
                await asyncio.sleep(lasts)
            finally:
                held.remove(worst)
                if fails:
                    reservation.cancel()
                else:
                    actual = Usage(int(worst.calls * share), int(worst.tokens * share), worst.money * share)
                    reservation.settle(actual)
                check()
            return "done"

        tasks = []
        for start, worst, share, lasts, fails, cancel_at in work:
            task = asyncio.create_task(job(start / 2, worst, share, lasts / 2, fails))
            if cancel_at is not None:
                asyncio.get_running_loop().call_later(cancel_at / 2, task.cancel)
            tasks.append(task)
        # A deadlock raises on the virtual clock.
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(result in ("exceeded", "done") or isinstance(result, asyncio.CancelledError) for result in results)
        # Nothing stays reserved: all that is left can be had.
        left = budget.remaining()
        if not limits.exceeded_by(budget.paid):
            await reserve(budget, Usage(left.calls or 0, left.tokens or 0, math.nextafter(left.money or 0.0, 0.0)))

    run_virtual(story())


@pytest.mark.parametrize("name", ["calls", "tokens", "money"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_limits_are_numbers_from_zero(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]


# --- several processes ------------------------------------------------------------------------------------------


class Shared:
    """A tally as a shared database keeps it; what a call cost counts when its reply is on record."""

    def __init__(self, limits: Limits, paid: Usage = ZERO) -> None:
        self.limits, self.paid = limits, paid
        self.held: dict[Call, Usage] = {}
        self.pauses = 0

    async def reserve(self, call: Call, worst: Usage) -> tuple[bool, Usage]:
        await asyncio.sleep(0.001)
        fits = not self.limits.exceeded_by(sum(self.held.values(), self.paid + worst))
        if fits:
            self.held[call] = worst
        return fits, self.paid

    def release(self, call: Call) -> None:
        del self.held[call]

    def record(self, call: Call, actual: Usage) -> None:
        del self.held[call]
        self.paid += actual

    async def pause(self) -> None:
        self.pauses += 1
        await asyncio.sleep(0.2)


@play
async def test_budgets_of_two_processes_are_one() -> None:
    tally = Shared(Limits(calls=3))
    one, other = (SharedBudget(tally.limits, Usage(), tally) for _ in range(2))
    calls = [("run", turn, "reply", 0) for turn in range(4)]
    first, second = await one.reserve(ONE, calls[0]), await other.reserve(ONE, calls[1])
    await one.reserve(ONE, calls[2])
    waiting = asyncio.create_task(other.reserve(ONE, calls[3]))
    await asyncio.sleep(1)
    assert tally.pauses == 5
    assert not waiting.done()
    second.cancel()
    await waiting
    first.settle(ONE)
    assert set(tally.held) == {calls[0], calls[2], calls[3]}
    for call in list(tally.held):
        tally.record(call, ONE)
    with pytest.raises(BudgetExceeded, match="calls: 3 of 3 paid"):
        await other.reserve(ONE, calls[1])
    assert other.remaining() == Limits(calls=0)


# --- how many tokens a prompt may have ------------------------------------------------------------------------


def _bound(*texts: str) -> int:
    return bound_tokens([ChatMessage("user", text) for text in texts])


def test_the_bound_follows_its_formula() -> None:
    assert _bound() == 16
    assert _bound("") == 24
    assert _bound("abc") == 26
    assert _bound("abc", "abcd") == 16 + 8 + 2 + 8 + 2
    # Two bytes a letter, three, and four.
    assert _bound("é") == 26
    assert _bound("世界") == 30
    assert _bound("🙂") == 28
    assert _bound("aé") == 16 + 8 + 1 + 2
    assert _bound("\ud800") == 27


@given(st.text(st.characters(min_codepoint=128, exclude_categories=["Cs"])))
def test_no_tokenizer_of_bytes_makes_more_of_other_scripts(text: str) -> None:
    assert _bound(text) >= len(text.encode())


@given(st.text())
def test_every_word_counts(text: str) -> None:
    assert _bound(text) >= len(text.split())


@given(st.lists(st.text()), st.text())
def test_a_longer_prompt_has_no_lower_bound(texts: list[str], more: str) -> None:
    assert _bound(*texts, more) >= _bound(*texts) + 8
    assert _bound(*texts, more + "x") >= _bound(*texts, more)
