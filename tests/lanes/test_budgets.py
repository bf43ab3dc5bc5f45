"""Budgets of studies in batches: never exceeded by the provider's count, whatever is in flight when it is raised."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import BudgetExceeded
from opinionsim.specification import load_experiment
from tests.support.batch_runs import assert_settled, batches, bought, complete, paid, rows, study
from tests.support.batches import BatchProvider
from tests.support.running import changed


def sold(provider: BatchProvider) -> dict[str, float]:
    """What the provider has sold so far, by the names of limits."""
    items = [item for batch in provider.batches.values() for item in batch.items if item.answer is not None]
    tokens = sum(item.asked.tokens + item.answer.tokens for item in items if item.asked and item.answer)
    return {"calls": provider.bought.total() + provider.at_once.total(), "tokens": tokens, "money": provider.cost()}


@pytest.mark.parametrize(
    ("limit", "value", "raised"), [("calls", 9, 1000), ("tokens", 9_000, 10**6), ("money", 0.004, 1.0)]
)
def test_a_limit_ends_a_study_before_it_is_exceeded_and_a_higher_one_goes_on(
    limit: str, value: float, raised: float
) -> None:
    with BatchProvider() as provider:
        spec = changed(study(provider), replicates=3)
        summary = bought(provider, changed(spec, execution__budget={limit: value}))
        assert isinstance(summary.exceeded, BudgetExceeded)
        assert limit in str(summary.exceeded)
        first = sold(provider)[limit]
        assert 0 < first <= value
        assert summary.complete < summary.total
        for higher in (1.5 * value, raised):
            given = int(higher) if limit != "money" else higher
            bought(provider, changed(spec, execution__budget={limit: given}))
            assert first < sold(provider)[limit] <= given
        assert_settled(provider)
        assert complete(provider, spec).runs["status"].eq("complete").all()


def test_calls_asked_again_at_the_list_price_count_as_such() -> None:
    with BatchProvider(refuse=0.4) as provider:
        spec = changed(study(provider), replicates=3)
        value = 0.004
        while bought(provider, changed(spec, execution__budget={"money": value})).exceeded:
            assert provider.cost() <= value
            value *= 1.3
        assert provider.cost("now") > 0
        assert provider.cost() <= value
        assert_settled(provider)


def test_a_budget_too_small_for_the_dearest_replies_at_once_takes_more_batches() -> None:
    with BatchProvider() as provider:
        spec = changed(study(provider), replicates=6)
        free = complete(provider, spec, "free.sqlite")
        spent, rounds = provider.cost(), len(batches("free.sqlite"))
        # Enough for all that is paid in the end, and for no more than some of the first calls at their dearest.
        found = complete(provider, changed(spec, execution__budget={"money": spent + 0.002}), "tight.sqlite")
        assert len(batches("tight.sqlite")) >= rounds
        assert provider.cost() == pytest.approx(2 * spent, abs=1e-9)
        assert paid("tight.sqlite").cost == pytest.approx(spent, abs=1e-9)
    assert found.turns.equals(free.turns)


@pytest.mark.parametrize("tail", [0, 1])
def test_a_call_that_may_be_bought_at_once_is_reserved_at_the_list_price(tail: int) -> None:
    with BatchProvider() as provider:
        spec = changed(study(provider, tail=tail), replicates=1, interaction__steps=1)
        # A reply of 100 tokens costs 0.0004 at the list price and half of that in a batch, and its prompt some 0.0005.
        exceeded = bought(provider, changed(spec, execution__budget={"money": 0.00115})).exceeded
        assert (exceeded is None) == (tail == 0), exceeded


@pytest.mark.timeout(60)
def test_calls_in_flight_are_held_when_another_process_goes_on_with_other_runs() -> None:
    with BatchProvider(delay=0.5) as provider:
        spec = study(provider)
        assert bought(provider, spec, leave=True).left
        out = sum(each.calls for each in batches())
        assert out >= 2
        limit: dict[str, Any] = {"calls": out + 1}
        more = changed(spec, replicates=4, execution__budget=limit)
        before = {run.run_id for run in load_experiment(spec).runs}
        others = {run.run_id for run in load_experiment(more).runs} - before
        # Runs that are added now could buy as many calls again, if those of before did not count.
        assert bought(provider, more, only=others).exceeded
        provider.advance(10)
        assert provider.bought.total() <= out + 1
        assert bought(provider, more).exceeded
        assert provider.bought.total() == out + 1
        complete(provider, changed(spec, replicates=4))
        assert_settled(provider)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lacking", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_removed_cell_holds_what_it_has_in_flight_and_no_more(lacking: int) -> None:
    with BatchProvider(delay=0.3) as provider:
        both = study(provider) | {"sweep": {"topic.framing": ["falsehood", "truth"]}}
        assert bought(provider, both, leave=True).left
        one = changed(study(provider), topic__framing="falsehood")
        kept = {run.run_id for run in load_experiment(one).runs}
        held = sum(run_id not in kept for (run_id,) in rows("s.sqlite", "SELECT run_id FROM batched"))
        assert held >= 2
        summary = bought(provider, changed(one, execution__budget={"calls": 16 + held - lacking}))
        assert (summary.exceeded is None, summary.complete == 2) == ((True, True) if not lacking else (False, False))
        complete(provider, both)
        assert_settled(provider)
