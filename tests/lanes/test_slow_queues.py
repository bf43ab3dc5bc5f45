"""Queues that are slow, full or small: calls that expire, patience, tails, room, lists that lag, limits of batches."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from opinionsim.registry import find
from tests.support.batch_faults import Faults
from tests.support.batch_queue import ENDED
from tests.support.batch_runs import (
    BOUGHT,
    CANCELLING,
    PROVIDERS,
    QUICK,
    assert_settled,
    at_once,
    batches,
    bought,
    complete,
    rows,
    study,
)
from tests.support.batches import BatchProvider
from tests.support.examples import few
from tests.support.running import assert_same, changed, loaded

HALF, FULL = "batch.sqlite", "now.sqlite"


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_calls_that_expire_go_into_the_next_batch_and_count_as_no_attempt(dialect: str) -> None:
    with BatchProvider(closes=True, faults=Faults(expire=lambda batch: 0.6 if batch < 3 else 0.0)) as provider:
        spec = study(provider, dialect, retry={"transient": 0, "rate_limited": 0})
        summary = bought(provider, spec, HALF)
        assert (summary.errors, summary.repeated) == ({}, 0)
        assert_settled(provider, HALF)
        assert sum(each.lapses for each in provider.batches.values()) > 0
        now = complete(provider, at_once(spec), FULL)
    found = loaded(HALF)
    assert set(found.calls["lane"]) == {"batch"}
    assert_same(found, now, but_for=BOUGHT)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a second of the test be five minutes for what counts the age of batches."""
    began = time.time()
    faster = SimpleNamespace(time=lambda: began + 300 * (time.time() - began))
    monkeypatch.setattr("opinionsim.lanes._batch.time", faster)


#: Times in which the clock above does not run out.
LONG = QUICK._replace(lost_s=3600.0, begins_s=86_400.0)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("dialect", few(CANCELLING, 2))
def test_patience_ends_a_stuck_batch_and_keeps_what_it_has_done(dialect: str) -> None:
    with BatchProvider(faults=Faults(stuck=(0,), stuck_done=0.5)) as provider:
        spec = changed(study(provider, dialect, patience_s=60), replicates=4)
        found = complete(provider, spec, pace=LONG)
        assert_settled(provider)
        first = min(provider.batches.values(), key=lambda each: each.number)
        assert first.phase(provider.now_s) == "cancelled"
        assert 0 < first.tally()[0] < len(first.items)
        assert provider.at_once.total() == 0
    assert set(found.calls["lane"]) == {"batch"}


@pytest.mark.usefixtures("hurried")
def test_without_a_way_to_cancel_patience_waits_for_the_end_of_a_batch() -> None:
    with BatchProvider(window_s=1.0, faults=Faults(stuck=(0,), stuck_done=0.5)) as provider:
        found = complete(provider, study(provider, "openrouter", patience_s=60), pace=LONG)
        assert_settled(provider)
        first = min(provider.batches.values(), key=lambda each: each.number)
        assert first.phase(provider.now_s) == "expired"
    assert set(found.calls["lane"]) == {"batch"}


def test_a_tail_is_bought_at_once_at_the_list_price() -> None:
    with BatchProvider() as provider:
        spec = study(provider, tail=3)
        spec = changed(spec, population__size=8, interaction__steps=12)
        found = complete(provider, spec, HALF)
        assert_settled(provider, HALF)
        sizes = [each.calls for each in batches(HALF)]
        print(sizes, provider.at_once.total())
        now = complete(provider, at_once(spec, tail=0), FULL)
    assert_same(found, now, but_for=BOUGHT)
    lanes = found.calls["lane"]
    assert set(lanes) == {"batch", "now"}
    full = now.calls["cost"].to_numpy()
    assert found.calls["cost"].to_numpy() == pytest.approx(full / [2 if each == "batch" else 1 for each in lanes])


def test_a_study_smaller_than_its_tail_makes_no_batch() -> None:
    with BatchProvider() as provider:
        found = complete(provider, study(provider, tail=1000))
        assert_settled(provider)
        assert (provider.batches, batches()) == ({}, [])
    assert set(found.calls["lane"]) == {"now"}


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_a_full_queue_is_waited_for(dialect: str) -> None:
    with BatchProvider(faults=Faults(fails_validation=2)) as provider:
        found = complete(provider, study(provider, dialect))
        assert_settled(provider)
    assert set(found.calls["lane"]) == {"batch"}


def test_a_queue_that_takes_few_tokens_gets_smaller_batches() -> None:
    with BatchProvider(faults=Faults(enqueued_tokens=1500)) as provider:
        spec = changed(study(provider), replicates=6)
        found = complete(provider, spec)
        assert_settled(provider)
        failed = [each for each in provider.batches.values() if each.failure is not None]
        assert failed
        tokens = [sum(item.asked.tokens for item in each.items if item.asked) for each in provider.batches.values()]
        assert max(tokens) > 1500
    assert set(found.calls["lane"]) == {"batch"}


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_any_other_refusal_of_a_batch_ends_its_runs_with_one_error(dialect: str) -> None:
    with BatchProvider(faults=Faults(fails_validation=True, validation_code="url_mismatch")) as provider:
        spec = study(provider, dialect)
        summary = bought(provider, spec)
        (said,) = {error.unplaced for error in summary.causes.values()}
        print(said)
        assert "The batch failed." in said
        assert (summary.complete, provider.bought.total(), provider.at_once.total()) == (0, 0, 0)
        assert len(provider.batches) <= 1
        assert rows("s.sqlite", "SELECT custom_id FROM batched") == []
        # Once the cause is gone, the same command does all of it.
        provider.faults = Faults()
        complete(provider, spec)
        assert_settled(provider)


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_a_submission_whose_reply_is_lost_is_found_in_a_list_that_lags(dialect: str) -> None:
    pace = QUICK._replace(lost_s=1.5, begins_s=5.0)
    with BatchProvider(faults=Faults(drop_after_create=(0,), list_lag_s=0.4), page=2) as provider:
        complete(provider, study(provider, dialect), pace=pace)
        assert_settled(provider)


@pytest.mark.parametrize(("limit", "value"), [("most_calls", 3), ("most_bytes", 8_000)])
def test_what_a_provider_does_not_take_at_once_goes_out_as_several_batches(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = find("lane", "openai").target
    monkeypatch.setattr(lane, limit, value)
    with BatchProvider(most_requests=3 if limit == "most_calls" else None) as provider:
        found = complete(provider, changed(study(provider), replicates=6))
        assert_settled(provider)
        largest = max(provider.batches.values(), key=lambda each: len(each.items))
        assert all(each.phase(provider.now_s) in ENDED - {"failed"} for each in provider.batches.values())
        if limit == "most_calls":
            assert len(largest.items) == 3
        else:
            sent = [stored.content for stored in provider.files.values() if stored.purpose == "batch"]
            assert max(len(content) for content in sent if content.count(b"\n") > 1) <= value
            assert any(content.count(b"\n") > 1 for content in sent)
    assert set(found.calls["lane"]) == {"batch"}


def test_calls_that_have_waited_long_enough_do_not_wait_for_others() -> None:
    pace = QUICK._replace(settle_s=4.0, longest_s=0.1)
    with BatchProvider() as provider:
        began = time.monotonic()
        complete(provider, study(provider), pace=pace)
        # By settling alone, four rounds would take 16 seconds.
        assert time.monotonic() - began < 10
        assert len(provider.batches) >= 4
