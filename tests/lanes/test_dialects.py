"""Studies bought in batches of each dialect: the same replies as at once, for half the money."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.batch_answers import Answer
from tests.support.batch_dialects import chat_completion
from tests.support.batch_faults import Faults
from tests.support.batch_runs import BOUGHT, PROVIDERS, assert_settled, at_once, batches, bought, complete, paid, study
from tests.support.batches import BatchProvider
from tests.support.examples import few
from tests.support.running import assert_same, loaded

HALF, FULL = "batch.sqlite", "now.sqlite"


@pytest.mark.parametrize("dialect", PROVIDERS)
def test_a_study_in_batches_is_the_study_at_once_at_half_the_price(dialect: str) -> None:
    with BatchProvider(closes=True) as provider:
        spec = study(provider, dialect)
        found = complete(provider, spec, HALF)
        assert_settled(provider, HALF)
        assert provider.at_once.total() == 0
        now = complete(provider, at_once(spec), FULL)
    assert_same(found, now, but_for=BOUGHT)
    assert found.runs["run_id"].tolist() == now.runs["run_id"].tolist()
    assert (set(found.calls["lane"]), set(now.calls["lane"])) == ({"batch"}, {"now"})
    assert found.calls["cost"].to_numpy() == pytest.approx(now.calls["cost"].to_numpy() / 2, rel=1e-12)


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_a_refused_call_is_asked_again_at_once_at_the_list_price(dialect: str) -> None:
    with BatchProvider(closes=True, refuse=0.5) as provider:
        spec = study(provider, dialect)
        found = complete(provider, spec, HALF)
        assert_settled(provider, HALF)
        again = found.calls[found.calls["attempt"] > 0]
        assert provider.at_once.total() == len(again) > 0
        assert provider.cost("now") == pytest.approx(again["cost"].sum(), abs=1e-9)
        now = complete(provider, at_once(spec), FULL)
    assert_same(found, now, but_for=BOUGHT)
    assert set(again["lane"]) == {"now"}
    assert set(found.calls.loc[found.calls["attempt"] == 0, "lane"]) == {"batch"}


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_a_prompt_that_the_content_filter_stops_is_data_and_costs_nothing(dialect: str) -> None:
    # A prompt of its own stops every attempt; an agent that was asked three times in vain says nothing.
    with BatchProvider(closes=True, faults=Faults(item_errors={"400": 0.5})) as provider:
        found = complete(provider, study(provider, dialect), HALF)
        calls = found.calls[found.calls["attempt"] == 0].set_index("status")
        assert set(calls.index) == {"answered", "filtered"}, (calls[["lane", "cost"]], provider.counts())
        assert calls.loc["answered", "lane"].eq("batch").all()
        assert calls.loc[["filtered"], "cost"].fillna(0).eq(0).all()
        assert len(found.calls) - len(calls.loc[["filtered"]]) == provider.bought.total() + provider.at_once.total()
        assert paid(HALF).cost == pytest.approx(provider.cost(), abs=1e-9)


@pytest.mark.parametrize("dialect", few(PROVIDERS, 3))
def test_errors_of_items_are_retried_in_the_next_batch_with_the_same_seed(dialect: str) -> None:
    with BatchProvider(closes=True, faults=Faults(item_errors={"500": 0.25, "429": 0.25})) as provider:
        spec = study(
            provider,
            dialect,
            retry={"transient": 30, "rate_limited": 30, "first_wait_s": 0.001, "longest_wait_s": 0.01},
        )
        summary = bought(provider, spec, HALF)
        assert_settled(provider, HALF)
        failed = sum(each.tally()[1] for each in provider.batches.values())
        assert summary.repeated == failed > 0
        provider.faults = Faults()
        now = complete(provider, at_once(spec), FULL)
    found = loaded(HALF)
    assert_same(found, now, but_for=BOUGHT)
    assert set(found.calls["lane"]) == {"batch"}


def test_errors_of_items_that_do_not_pass_end_a_run_after_so_many_batches() -> None:
    with BatchProvider(faults=Faults(item_errors={"500": 1.0})) as provider:
        summary = bought(provider, study(provider))
        (said,) = {error.unplaced for error in summary.causes.values()}
        assert said == "The server had an error while processing your request. (after 3 tries)"
        assert [each.calls for each in batches()] == [batches()[0].calls] * 3
        assert_settled(provider)


def thorough(answer: Answer) -> dict[str, Any]:
    """A reply that thinks, uses the provider's cache, and is cut off now and then."""
    found = chat_completion(answer)
    (choice,) = found["choices"]
    choice["message"] |= {"reasoning_content": "I have to think.", "reasoning": "I have to think."}
    choice["finish_reason"] = "length" if answer.tokens % 2 == 0 else "stop"
    found["usage"]["completion_tokens_details"] = {"reasoning_tokens": 2}
    found["usage"]["prompt_tokens_details"] = {"cached_tokens": answer.asked.tokens // 2}
    return found


@pytest.mark.parametrize("dialect", few(("openai", "groq", "mistral", "together", "openrouter"), 1))
def test_thoughts_caches_and_cut_off_replies_are_read_as_at_once(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dialects", "files", "inline"):
        monkeypatch.setattr(f"tests.support.batch_{module}.chat_completion", thorough)
    with BatchProvider(closes=True, refuse=0.2) as provider:
        spec = study(provider, dialect)
        found = complete(provider, spec, HALF)
        assert_settled(provider, HALF)
        assert_same(found, complete(provider, at_once(spec), FULL), but_for=BOUGHT)
    assert "truncated" in set(found.calls["status"])
    if dialect != "mistral":  # LangChain's class reads neither thoughts nor cached tokens
        assert set(found.calls["reasoning"]) == {"I have to think."}
        assert found.calls["cached_tokens"].gt(0).all()
