"""Results that are not as they should be: one clear error, what arrived is kept, and the next run goes on."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.lanes import Look, WireError
from opinionsim.registry import find
from opinionsim.running import Summary
from tests.support.batch_faults import Faults
from tests.support.batch_runs import (
    BOUGHT,
    PROVIDERS,
    QUICK,
    assert_settled,
    at_once,
    batches,
    bought,
    complete,
    key,
    paid,
    rows,
    study,
)
from tests.support.batches import BatchProvider
from tests.support.examples import few
from tests.support.running import assert_same, changed

#: Dialects whose results come line by line.
IN_LINES = ("openai", "groq", "mistral", "together", "anthropic")


def reason(summary: Summary) -> str:
    """The one reason for which no run is complete."""
    assert (summary.complete, len(summary.causes)) == (0, summary.total)
    (said,) = {error.unplaced for error in summary.causes.values()}
    print(said)
    return said


def journal(store: str = "s.sqlite") -> int:
    """Number of replies in the journal."""
    return int(rows(store, "SELECT count(*) FROM journal")[0][0])


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
@pytest.mark.parametrize(
    ("fault", "words"),
    [("foreign_ids", "answers a call that is not in the batch"), ("duplicate_ids", "is answered twice")],
)
def test_replies_to_the_wrong_calls_end_the_runs_and_the_right_ones_are_kept(
    dialect: str, fault: str, words: str
) -> None:
    with BatchProvider(closes=True, faults=Faults(**{fault: (0,)})) as provider:
        spec = study(provider, dialect)
        said = reason(bought(provider, spec))
        assert words in said
        assert batches()[0].batch_id in said
        assert journal() == provider.bought.total() > 0
        found = complete(provider, spec)
        assert_settled(provider)
        assert_same(found, complete(provider, at_once(spec), "now.sqlite"), but_for=BOUGHT)


@pytest.mark.parametrize("dialect", few(IN_LINES, 2))
def test_results_that_are_cut_off_keep_whole_lines_and_are_read_again(dialect: str) -> None:
    with BatchProvider(faults=Faults(cut_off=(0,))) as provider:
        spec = study(provider, dialect)
        said = reason(bought(provider, spec))
        assert "cut off" in said
        assert 0 < journal() < provider.bought.total()
        complete(provider, spec)
        assert_settled(provider)


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_results_that_are_gone_are_bought_again_only_if_the_user_says_so(dialect: str) -> None:
    with BatchProvider(faults=Faults(vanish=(0,))) as provider:
        spec = study(provider, dialect)
        for _ in range(2):
            said = reason(bought(provider, spec))
            assert "--resubmit" in said
            assert len(provider.batches) == 1
        gone = provider.bought.total()
        complete(provider, spec, resubmit=True)
        # What is gone is charged to the experiment at the most that it may have cost.
        assert set(provider.ids.values()) == {1, 2}
        assert sum(count - 1 for count in provider.ids.values()) == gone
        assert paid().calls == provider.bought.total()
        assert paid().cost >= provider.cost()
        assert rows("s.sqlite", "SELECT custom_id FROM batched") == []


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_results_that_may_not_be_read_end_the_runs_within_seconds(dialect: str) -> None:
    with BatchProvider(faults=Faults(fetch_fails=True, fetch_status=403)) as provider:
        spec = study(provider, dialect)
        began = time.monotonic()
        said = reason(bought(provider, spec))
        assert time.monotonic() - began < 5
        assert "The results cannot be read." in said
        assert (journal(), [each.state for each in batches()]) == (0, ["open"])
        provider.faults = Faults()
        complete(provider, spec)
        assert_settled(provider)


def test_a_failing_server_is_asked_again_before_the_runs_end() -> None:
    with BatchProvider(faults=Faults(fetch_fails=2)) as provider:
        complete(provider, study(provider))
        assert_settled(provider)


@pytest.mark.parametrize("dialect", few(PROVIDERS, 2))
def test_a_batch_is_read_with_the_key_that_submitted_it(dialect: str) -> None:
    with BatchProvider(delay=0.3) as provider:
        spec = study(provider, dialect)
        assert bought(provider, spec, leave=True).left
        with key("sk-of-another"):
            said = reason(bought(provider, spec))
        assert "key" in said
        assert len(provider.batches) == 1
        complete(provider, spec)
        assert_settled(provider)


def test_a_batch_is_read_at_the_address_where_it_was_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    with BatchProvider(delay=0.3) as provider, BatchProvider() as other:
        spec = changed(study(provider), model__options={})
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
        assert bought(provider, spec, leave=True).left
        monkeypatch.setenv("OPENAI_BASE_URL", other.url("openai"))
        with pytest.raises(SpecError, match=r"was submitted to openai@127\.0\.0\.1:\d+, but the model now answers at"):
            bought(other, spec)
        assert other.batches == {}
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
        complete(provider, spec)
        assert_settled(provider)


@pytest.mark.parametrize("dialect", ["anthropic", "openrouter", "gemini"])
def test_a_lost_submission_without_a_file_is_not_bought_again_in_silence(dialect: str) -> None:
    pace: Any = QUICK._replace(begins_s=1e6)
    with BatchProvider(faults=Faults(drop_before_create=(0,))) as provider:
        spec = study(provider, dialect)
        # The run looks for the batch for as long as it may begin; it can be left.
        for _ in range(2):
            assert bought(provider, spec, pace=pace, leave=True).left
            assert provider.batches == {}
        complete(provider, spec, pace=pace, resubmit=True)
        assert_settled(provider)


def test_a_provider_that_cannot_be_reached_for_a_while_is_waited_for() -> None:
    provider = BatchProvider(delay=0.3)
    with provider:
        spec = study(provider)
        assert bought(provider, spec, leave=True).left
    provider.port = int(provider.address.rpartition(":")[2])
    # Nobody answers now.
    again = bought(provider, spec, leave=True)
    assert (again.left, [each.state for each in again.batches]) == (True, ["open"])
    with provider:
        complete(provider, spec)
        assert_settled(provider)


def test_a_provider_that_cannot_be_reached_at_the_start_takes_no_batch() -> None:
    provider = BatchProvider()
    with provider:
        spec = study(provider)
    said = reason(bought(provider, spec))
    assert "openai@127.0.0.1" in said
    assert "Cannot connect" in said
    assert rows("s.sqlite", "SELECT custom_id FROM batched") == []


def test_a_submission_that_may_have_been_accepted_is_not_said_to_be_free(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forbidden(self: Any, sought: Any) -> None:
        raise WireError(403, "Lists are not for this key.", {})

    with BatchProvider(faults=Faults(drop_after_create=(0,))) as provider:
        spec = study(provider)
        with monkeypatch.context() as patch:
            patch.setattr(find("lane", "openai").target, "find", forbidden)
            said = reason(bought(provider, spec))
        assert "Lists are not for this key." in said
        assert "Nothing was charged" not in said
        assert [each.state for each in batches()] == ["open"]
        complete(provider, spec)
        assert_settled(provider)


@pytest.mark.parametrize("response", ["text", 3, [1], {"status_code": "x", "body": "text"}, {"status_code": None}])
def test_a_result_of_another_shape_is_an_error_of_its_call(response: Any) -> None:
    class File:
        async def text(self, *_: str) -> str:
            return json.dumps({"custom_id": "a", "response": response, "error": None})

    kind = find("lane", "openai").target
    lane = kind.__new__(kind)
    lane.wire = File()
    (found,) = asyncio.run(lane.fetch("batch", Look("ended", found={"output_file_id": "f"})))
    assert (found.custom_id, found.reply) == ("a", None)
    assert found.error
