"""An experiment that is changed under its name, what it has paid, and stores that go away under a sweep."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.analysis import tables
from opinionsim.errors import StoreError
from opinionsim.store import open_store
from tests.support.editing import own_pack
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, loaded, watched

#: Calls of one run of the small experiment.
CALLS = 12


def test_a_changed_specification_adds_a_design_and_hides_nothing() -> None:
    first = carry_out(changed(SMALL, replicates=3), "kept.sqlite")[1]
    larger = carry_out(changed(SMALL, population={"size": 5}), "kept.sqlite")[1]
    assert (larger.design, larger.designs) == (2, (1, 2))
    assert len(larger.runs) == 1
    earlier = osim.load("kept.sqlite", design=1)
    assert_same(earlier, first)
    assert len(earlier.runs) == 3
    with pytest.raises(StoreError, match="no design 3; it has 1, 2"):
        osim.load("kept.sqlite", design=3)


@pytest.mark.parametrize(
    "change",
    [
        {"replicates": 5},
        {"execution": {"max_concurrency": 3, "budget": {"calls": 1000}}},
        {"sweep": {"topic.framing": ["falsehood"]}},
    ],
)
def test_replicates_slots_budgets_and_labels_make_no_design(change: dict[str, Any]) -> None:
    ended(SMALL, "one.sqlite")
    again = carry_out(changed(SMALL, **change), "one.sqlite")[1]
    assert again.designs == (1,)


def test_another_instrument_makes_a_design_of_the_same_runs() -> None:
    ended(SMALL, "instruments.sqlite")
    self_reports = {"classifier": {"name": "lexicon"}, "instruments": [{"variable": "tone", "classifier": "lexicon"}]}
    model, watch = watched()
    second = carry_out(changed(SMALL, measurement=self_reports), "instruments.sqlite", model)[1]
    assert second.designs == (1, 2)
    assert watch.asked == []
    assert set(second.opinions["variable"]) == {"stance", "tone"}
    assert set(osim.load("instruments.sqlite", design=1).opinions["variable"]) == {"stance"}


def test_fewer_replicates_hide_no_run_that_was_begun() -> None:
    ended(changed(SMALL, replicates=3), "fewer.sqlite")
    summary, results = carry_out(SMALL, "fewer.sqlite")
    assert summary.total == 1
    assert results.designs == (1,)
    assert results.runs["replicate"].tolist() == [0, 1, 2]
    assert all(not each.difference for each in osim.running.replay(results))


def test_a_budget_is_over_all_designs_of_a_name() -> None:
    limited = changed(SMALL, execution={"budget": {"calls": CALLS + 3}, "max_concurrency": 1})
    first = ended(limited, "paid.sqlite")
    assert (first.made, first.exceeded) == (CALLS, None)
    second, results = carry_out(changed(limited, topic={"name": "flat-earth", "framing": "truth"}), "paid.sqlite")
    assert second.made == 3
    assert "execution.budget.calls" in str(second.exceeded)
    assert results.designs == (1, 2)


def test_what_is_forgotten_stays_paid_and_another_name_pays_for_itself() -> None:
    ended(SMALL, "ledger.sqlite")
    with open_store("ledger.sqlite") as store:
        (row,) = store.designs()
        store.forget([run.run_id for run in row.runs])
        assert store.usage([run.run_id for run in row.runs]).calls == 0
        assert store.spending()[row.experiment_id].calls == CALLS
    limited = changed(SMALL, execution={"budget": {"calls": CALLS + 5}, "max_concurrency": 1})
    summary = ended(limited, "ledger.sqlite")
    assert summary.made == 5
    assert summary.exceeded
    other = ended(changed(limited, name="other"), "ledger.sqlite")
    assert (other.answered, other.made, other.exceeded) == (5, CALLS - 5, None)


def test_a_table_takes_one_wording_of_the_prompts() -> None:
    template = own_pack(Path("pack")) / "write.j2"
    spec = changed(SMALL, prompts="pack", replicates=2)
    ended(spec, "wordings.sqlite")
    template.write_text(template.read_text(encoding="utf-8") + "\nBe brief.", encoding="utf-8")
    summary, results = carry_out(changed(spec, replicates=3), "wordings.sqlite")
    assert summary.complete == 1
    assert results.runs["wording"].nunique() == 2
    (made,) = tables(results.runs, results.metrics)
    assert any("left out: 2" in note for note in made.notes)
    earlier = results.runs["wording"][0].rpartition("@")[2]
    (of_two,) = tables(results.runs, results.metrics, wording=earlier)
    assert any("left out: 1" in note for note in of_two.notes)


@pytest.mark.parametrize("how", ["deleted", "replaced", "log deleted"])
def test_a_store_that_goes_away_under_a_sweep_is_an_error(how: str) -> None:
    def disturb(number: int) -> None:
        if number != 40:
            return
        if how == "log deleted":
            os.remove("gone.sqlite-wal")
            return
        for name in ("gone.sqlite", "gone.sqlite-wal", "gone.sqlite-shm"):
            os.remove(name)
        if how == "replaced":
            shutil.copy("other.sqlite", "gone.sqlite")

    ended(SMALL, "other.sqlite")
    model, _ = watched(latency=lambda seed: 0.02, noticed=disturb)
    with pytest.raises(StoreError, match=r"was (deleted or moved|replaced by another) while it was being written"):
        ended(changed(SMALL, replicates=8, interaction__steps=20), "gone.sqlite", model, slots=4)
    if how == "replaced":
        assert_same(loaded("gone.sqlite"), loaded("other.sqlite"))
