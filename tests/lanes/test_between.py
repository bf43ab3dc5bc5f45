"""What users do to a study while one of its batches is out, and what others do with one that was bought in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.batch_runs import (
    QUICK,
    assert_settled,
    at_once,
    batches,
    bought,
    complete,
    paid,
    rows,
    study,
)
from tests.support.batches import BatchProvider
from tests.support.editing import own_pack, reword
from tests.support.postgres import Server
from tests.support.running import assert_same

CELLS = {"sweep": {"topic.framing": ["falsehood", "truth"]}}


def left(provider: BatchProvider, spec: dict[str, Any], store: str = "s.sqlite") -> int:
    """Leave a study as soon as its first batch is out; the number of calls in it."""
    summary = bought(provider, spec, store, leave=True)
    assert summary.left
    (row,) = [each for each in summary.batches if each.state == "open"]
    return row.calls


def spent(provider: BatchProvider) -> tuple[int, float]:
    """What the provider has sold."""
    return provider.bought.total() + provider.at_once.total(), provider.cost()


# -- several studies -----------------------------------------------------------------------------------------


def test_a_study_leaves_the_batches_of_another_in_the_same_store_alone() -> None:
    with BatchProvider(delay=0.2) as provider:
        one, two = (study(provider) | {"name": name, "seed": seed} for name, seed in (("one", 1), ("two", 2)))
        left(provider, one)
        complete(provider, two)
        assert [each.state for each in batches()].count("open") == 1
        complete(provider, one)
        with open_store("s.sqlite", write=False) as opened:
            found = opened.spending()
        assert sum(each.calls for each in found.values()) == provider.bought.total()
        assert sum(each.cost for each in found.values()) == pytest.approx(provider.cost(), abs=1e-9)
        assert set(provider.ids.values()) == {1}
        assert {each.state for each in batches()} == {"closed"}


# -- changes while a batch is out ----------------------------------------------------------------------------


def test_replies_for_a_cell_that_was_removed_are_kept_until_it_is_back() -> None:
    with BatchProvider(delay=0.2) as provider:
        both = study(provider) | CELLS
        left(provider, both)
        complete(provider, study(provider))
        complete(provider, both)
        assert_settled(provider)


@pytest.mark.parametrize("fresh", [False, True])
def test_other_prompts_are_bought_anew_and_what_was_in_flight_is_paid(fresh: bool) -> None:
    pack = own_pack(Path("pack"))
    with BatchProvider(delay=0.2) as provider:
        spec = study(provider) | {"prompts": "pack"}
        out = left(provider, spec)
        reword(pack / "system.j2", "You are going to play", "You will play")
        complete(provider, spec, fresh=fresh)
        sold, cost = spent(provider)
        assert sold == out + 16
        assert (paid().calls, paid().cost) == (sold, pytest.approx(cost, abs=1e-9))
        assert rows("s.sqlite", "SELECT custom_id FROM batched") == []


def test_runs_that_are_forgotten_are_bought_anew_and_what_was_in_flight_is_paid() -> None:
    with BatchProvider(delay=0.2) as provider:
        spec = study(provider)
        left(provider, spec)
        with open_store("s.sqlite") as opened:
            opened.forget([each.run_id for each in load_experiment(spec).runs])
        complete(provider, spec)
        sold, cost = spent(provider)
        # The same calls have the same names, so that the batch of before answers them.
        assert (paid().calls, paid().cost) == (sold, pytest.approx(cost, abs=1e-9))
        assert rows("s.sqlite", "SELECT custom_id FROM batched") == []


def test_runs_that_are_forgotten_after_their_replies_arrived_cost_what_they_cost() -> None:
    with BatchProvider(refuse=0.2) as provider:
        spec = study(provider)
        complete(provider, spec)
        once = provider.bought.total() + provider.at_once.total()
        with open_store("s.sqlite") as opened:
            opened.forget([each.run_id for each in load_experiment(spec).runs])
        complete(provider, spec)
        sold, cost = spent(provider)
        assert sold == 2 * once
        assert (paid().calls, paid().cost) == (sold, pytest.approx(cost, abs=1e-9))


@pytest.mark.parametrize("dialect", ["openai", pytest.param("anthropic", marks=pytest.mark.long)])
def test_a_study_that_goes_on_at_once_takes_the_replies_of_its_batch(dialect: str) -> None:
    with BatchProvider(closes=True, delay=0.3) as provider:
        spec = study(provider, dialect)
        out = left(provider, spec)
        found = complete(provider, at_once(spec))
        assert_settled(provider)
        assert (found.calls["lane"] == "batch").sum() == provider.bought.total() == out
        assert provider.at_once.total() == len(found.calls) - out


# -- what is made of a study that was bought in batches ------------------------------------------------------


def test_a_replay_rebuilds_it_and_a_manifest_repeats_it() -> None:
    with BatchProvider(refuse=0.2) as provider:
        spec = study(provider)
        found = complete(provider, spec)
        assert [each.difference for each in replay(found)] == ["", ""]
        again = osim.load_experiment(found.manifest)
        assert again.spec.execution.lane == "batch"
        before = provider.bought.total()
        assert bought(provider, spec).already == 2
        assert_same(osim.run(again, "again.sqlite", pace=QUICK), found)
        assert provider.bought.total() == 2 * before


def test_a_pilot_is_no_second_purchase() -> None:
    with BatchProvider() as provider:
        spec = study(provider) | CELLS
        pilot = load_experiment(spec).pilot
        summary = bought(provider, spec, only=pilot)
        assert summary.complete == summary.total == 2
        complete(provider, spec)
        assert_settled(provider)
        assert provider.bought.total() == 4 * 8


# -- stores and workers that batches do not fit --------------------------------------------------------------


def test_a_store_of_several_workers_is_refused(postgres: Server, tmp_path: Path) -> None:
    with BatchProvider() as provider:
        spec, url = study(provider), postgres.database(str(tmp_path))
        with pytest.raises(SpecError, match=r"^execution\.lane: batch needs a SQLite store, .*; give another store"):
            bought(provider, spec, url)
        with pytest.raises(SpecError, match=r"^execution\.lane: batch needs a SQLite store"):
            bought(provider, study(provider, lane={"openai:m": "batch"}), url)
        assert provider.batches == {}
        # The same study at once is welcome there.
        assert bought(provider, at_once(spec), url).complete == 2


def test_a_cluster_is_refused_before_it_is_asked() -> None:
    store = "postgresql+psycopg://nobody@/none?host=/nowhere"
    with BatchProvider() as provider:
        with pytest.raises(SpecError, match=r"^execution\.lane: batch needs a SQLite store"):
            bought(provider, study(provider), store, cluster="tcp://nowhere:1")
        assert provider.batches == {}
