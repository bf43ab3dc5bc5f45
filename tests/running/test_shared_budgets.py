"""One budget over several workers that share a database."""

from __future__ import annotations

import pytest

from opinionsim.running import Invocation, Summary, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import Paid, open_store
from tests.support.postgres import Server
from tests.support.provider import StubProvider
from tests.support.provider_replies import scripted_reply
from tests.support.running import SMALL, assert_same, changed, ended, loaded

SWEEP = changed(
    SMALL,
    replicates=3,
    sweep={"cognition.confirmation_bias": ["none", "strong"]},
    measurement={"classifier": "lexicon"},
)


def side_by_side(spec: dict[str, object], url: str) -> tuple[Summary, Summary]:
    """How two workers end that carry out an experiment at the same time."""
    experiment = load_experiment(spec)
    with under_way(Invocation(experiment, url)) as (_, one), under_way(Invocation(experiment, url)) as (_, other):
        return one.result(), other.result()


def _paid(url: str) -> Paid:
    """What the experiment has paid so far."""
    with open_store(url, write=False) as store:
        (paid,) = store.spending().values()
    return paid


@pytest.mark.long
@pytest.mark.parametrize("budget", [{"calls": 31}, pytest.param({"tokens": 9000}, marks=pytest.mark.long)])
def test_two_workers_spend_one_budget_to_its_end(
    budget: dict[str, int], postgres: Server, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = postgres.database(str(tmp_path))
    ((limit, most),) = budget.items()
    with StubProvider(scripted_reply()) as stub:
        model = {"name": "openai:stub", "max_tokens": 40, "options": {"base_url": stub.base_url}}
        spec = changed(SWEEP, model=model, execution={"budget": budget, "max_concurrency": 5})
        summaries = side_by_side(spec, url)
        paid = _paid(url)
        assert sum(summary.made for summary in summaries) == paid.calls == sum(stub.served.values())
        assert all(summary.stopped for summary in summaries)
        # A worker stops at the first call that does not fit; the other one may still make smaller calls.
        assert all(f" of {most:,} paid" in str(summary.exceeded) for summary in summaries)
        again = side_by_side(spec, url)
        if limit == "calls":
            assert paid.calls == most
            assert [summary.made for summary in again] == [0, 0]
        else:
            used = _paid(url)
            assert most - 2000 < used.input_tokens + used.output_tokens <= most
        free = changed(spec, execution={"max_concurrency": 5})
        assert [summary.complete for summary in side_by_side(free, url)] == [6, 6]
        assert stub.paid_twice == {}
        ended(free, "whole.sqlite")
    assert_same(loaded(url), loaded("whole.sqlite"))
