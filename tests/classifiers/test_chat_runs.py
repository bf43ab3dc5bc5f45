"""Chat models that judge the texts of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim.errors import SpecError
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.judge import Bench, BenchClassifier, by_lexicon
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, loaded, watched

BENCH = "tests.support.judge:BenchClassifier"
JUDGED = changed(SMALL, measurement={"classifier": BENCH})


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(BenchClassifier, "bench", Bench())
    return BenchClassifier.bench


def _judgements(store: str) -> Any:
    calls = loaded(store).calls
    return calls[calls["call"].str.startswith("judge")]


def test_ratings_are_calls_of_the_run(bench: Bench) -> None:
    summary, results = carry_out(JUDGED, "judged.sqlite")
    assert summary.complete == 1
    judged = _judgements("judged.sqlite")
    name = f"judge.{load_experiment(JUDGED).runs[0].spec.instruments[0].instrument_id[:8]}"
    assert judged[["turn", "call"]].to_numpy().tolist() == [[turn, name] for turn in range(12)]
    assert set(judged["model"]) == {"judge-1"}
    with open_store("judged.sqlite", write=False) as store:
        assert store.models(results.run_ids) == {"scripted": {("scripted", "")}, name: {("judge-1", "")}}
    assert summary.made == 24 == summary.paid.calls
    assert len(bench.prompts) == 12
    # Nothing is asked again, and replay needs no judge.
    model, watch = watched()
    summary, again = carry_out(JUDGED, "judged.sqlite", model)
    assert (summary.made, watch.asked, len(bench.prompts)) == (0, [], 12)
    assert_same(again, results)
    assert [each.difference for each in replay(results)] == [""]
    # The judge goes by the lexicon, so the two instruments agree.
    lexicon = carry_out(SMALL, "lexicon.sqlite")[1]
    assert again.opinions["value"].tolist() == pytest.approx(lexicon.opinions["value"].tolist(), nan_ok=True)


@pytest.mark.parametrize("number", [1, 7])
def test_a_run_whose_judge_fails_is_finished_by_the_next(bench: Bench, number: int) -> None:
    bench.fails = lambda n: n == number
    summary, results = carry_out(JUDGED, "judged.sqlite", slots=1)
    (error,) = summary.errors.values()
    assert "the judge is gone" in error
    assert "the judge of 'stance' (classifier 'bench') failed on the text of run" in error
    # The run is complete; its texts are still to be coded.
    assert results.runs[["status", "error"]].values.tolist() == [["complete", error]]
    model, watch = watched()
    bench.fails = lambda n: False
    summary, results = carry_out(JUDGED, "judged.sqlite", model)
    assert (summary.complete, watch.asked) == (1, [])
    assert len(bench.prompts) == 13
    assert_same(results, carry_out(JUDGED, "whole.sqlite")[1])


def test_a_finished_run_is_judged_afterwards(bench: Bench) -> None:
    ended(SMALL, "later.sqlite")
    model, watch = watched()
    summary, results = carry_out(JUDGED, "later.sqlite", model)
    assert (summary.complete, watch.asked, len(bench.prompts)) == (1, [], 12)
    assert results.runs["status"].tolist() == ["complete"]
    assert_same(results, carry_out(JUDGED, "whole.sqlite")[1])
    # A second court judges anew, beside the first.
    second = changed(SMALL, measurement={"classifier": {"name": BENCH, "options": {"court": 2}}})
    ended(second, "later.sqlite")
    assert len(bench.prompts) == 36
    assert _judgements("later.sqlite")["call"].nunique() == 2
    with open_store("later.sqlite", write=False) as store:
        assert sorted(each.classifier for each in store.instruments()) == ["lexicon", f"{BENCH}@1", f"{BENCH}@1"]


def test_a_finished_run_stays_complete_when_its_judge_fails(bench: Bench) -> None:
    before = carry_out(SMALL, "later.sqlite")[1]
    bench.fails = lambda n: n == 5
    summary, results = carry_out(JUDGED, "later.sqlite", slots=1)
    (run_id,) = summary.errors
    assert results.runs[["status", "error"]].to_numpy().tolist() == [["complete", summary.errors[run_id]]]
    bench.fails = lambda n: False
    summary = ended(JUDGED, "later.sqlite")
    assert (summary.complete, summary.errors, len(bench.prompts)) == (1, {}, 13)
    after = carry_out(SMALL, "later.sqlite")[1]
    pd.testing.assert_frame_equal(after.turns, before.turns)
    pd.testing.assert_frame_equal(after.opinions, before.opinions)


def test_what_cannot_be_read_is_missing_and_on_record(bench: Bench) -> None:
    bench.answer = lambda text: "well" if "not" in text else by_lexicon(text)
    _, results = carry_out(changed(JUDGED, interaction__steps=20), "missing.sqlite")
    vague = [turn for turn, text in enumerate(results.turns["message"]) if "not" in text]
    assert 0 < len(vague) < 40
    opinions = results.opinions.set_index("turn")
    assert opinions["value"].loc[vague].isna().all()
    assert (opinions["off_scale"].loc[vague] == 1).all()
    judged = _judgements("missing.sqlite")
    assert judged["turn"].value_counts().loc[vague].tolist() == [3] * len(vague)
    assert set(judged["call"].str.extract(r"\.[0-9a-f]{8}(.*)")[0]) == {"", ".2", ".3"}


def test_the_budget_counts_judgements(bench: Bench) -> None:
    limited = changed(JUDGED, execution={"budget": {"calls": 20}})
    summary, results = carry_out(limited, "limited.sqlite")
    assert "calls" in str(summary.exceeded)
    assert summary.paid.calls == 20
    assert results.runs["status"].tolist() == ["complete"]
    assert results.runs["error"].str.contains("the budget is used up").all()
    assert len(bench.prompts) == 8
    summary = ended(JUDGED, "limited.sqlite")
    assert (summary.complete, len(bench.prompts), summary.paid.calls) == (1, 12, 24)


def test_money_needs_the_price_of_the_judge(bench: Bench) -> None:
    spec = changed(JUDGED, execution={"budget": {"money": 1.0}})
    with pytest.raises(SpecError, match="the price of 'JudgeModel' is not known"):
        ended(spec, "money.sqlite")


def test_an_adaptive_schedule_acts_on_judgements(bench: Bench) -> None:
    similar = changed(JUDGED, interaction={"kind": "similarity", "steps": 8, "strength": 2.0})
    summary, results = carry_out(similar, "similar.sqlite")
    assert summary.complete == 1
    with open_store("similar.sqlite", write=False) as store:
        ratings = [entry for entry in store.entries(results.runs["run_id"][0]) if entry.source == "instrument"]
    assert ratings
    opinions = results.opinions.set_index("turn")["value"]
    for entry in ratings:
        np.testing.assert_equal(float(entry.text), opinions.loc[entry.key.turn])
    assert len(bench.prompts) == 16
    assert [each.difference for each in replay(results)] == [""]
    # Its journal alone gives the run again, up to any point.
    for stop in (3, 9):
        store = f"stopped-{stop}.sqlite"
        broken = len(bench.prompts) + stop
        bench.fails = broken.__eq__
        ended(similar, store, slots=1)
        bench.fails = lambda n: False
        ended(similar, store)
        assert_same(loaded(store), results)


def test_a_stopped_sweep_leaves_no_judgement_behind(bench: Bench) -> None:
    spec = changed(JUDGED, replicates=3)
    bench.fails = lambda n: n > 10
    ended(spec, "stopped.sqlite", slots=2)
    arrived = len(_judgements("stopped.sqlite"))
    assert arrived == 10
    bench.fails = lambda n: False
    asked = len(bench.prompts)
    summary = ended(spec, "stopped.sqlite")
    assert summary.complete == 3
    assert len(bench.prompts) - asked == 36 - arrived
