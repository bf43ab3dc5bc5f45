"""Updates on record, against the turns and opinions of real runs, and the curve of responses to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import opinionsim as osim
from opinionsim.comparison import compare, events
from opinionsim.errors import MeasurementError, SpecError
from tests.comparison._studies import response_curve, studies
from tests.support.running import SMALL, changed

SPEC = changed(SMALL, replicates=2, measurement__texts=["post", "report"])
REFUSING = changed(
    SPEC,
    interaction__steps=20,
    model__name="scripted",
    model__options={"refusal_rate": 0.4, "refusal_of": "posts"},
    model__replies={"refused": {"reask": 0}},
)
TOLD = changed(SPEC, events=[{"kind": "message", "step": 3, "text": "A new study leaves no doubt: it is false."}])


def _results(spec: dict[str, Any]) -> osim.Results:
    return osim.run(osim.load_experiment(spec), "store.sqlite")


def _by_hand(results: osim.Results) -> list[tuple[Any, ...]]:
    """Run, turn, before, said, after, number of messages, and of those that were not measured."""
    opinions, rows = results.opinions, []
    value = {(row.run_id, row.turn): row.value for row in opinions.itertuples()}
    for run_id, turns in results.turns.groupby("run_id", sort=False):
        agents = int((results.agents["run_id"] == run_id).sum())
        own = {row.turn: row for row in turns.itertuples() if 0 <= row.agent < agents}
        held: dict[int, float] = {}
        for turn, row in sorted(own.items()):
            heard = [
                ref
                for ref in row.reads
                if isinstance(ref, int | np.integer)
                and ref in own
                and own[ref].agent != row.agent
                and own[ref].status in ("answered", "retried", "shortened")
            ]
            after = value.get((run_id, turn), np.nan)
            if heard:
                said = np.array([value.get((run_id, ref), np.nan) for ref in heard])
                mean = np.nanmean(said) if (~np.isnan(said)).any() else np.nan
                unknown = int(np.isnan(said).sum())
                rows.append((run_id, turn, held.get(row.agent, np.nan), mean, after, len(heard), unknown))
            if not np.isnan(after):
                held[row.agent] = after
    return sorted(rows)


@pytest.mark.parametrize("spec", [SPEC, REFUSING, TOLD], ids=["plain", "refused posts", "external message"])
def test_updates_are_those_on_record(spec: dict[str, Any]) -> None:
    results = _results(spec)
    found = events(results)
    columns = ["run_id", "turn", "before", "said", "after", "n_messages", "n_unmeasured"]
    expected = pd.DataFrame(_by_hand(results), columns=columns)
    told = found[columns].sort_values(["run_id", "turn"], ignore_index=True)
    pd.testing.assert_frame_equal(told, expected, check_dtype=False)
    assert len(found) > 10
    assert (found.groupby(["run_id", "agent"])["exposure"].diff().dropna() == 1).all()
    if spec is REFUSING:
        assert (results.turns["status"] == "refused").any()


def test_assigned_opinions_are_never_used() -> None:
    found = events(_results(SPEC))
    first = found[found["exposure"] == 1]
    posted = first.merge(found[["run_id"]].drop_duplicates(), on="run_id")
    assert posted["before"].isna().any()


def test_a_study_has_every_turn_and_its_messages_by_position() -> None:
    study = next(iter(studies(_results(REFUSING)).values()))
    assert len(study) == 2
    assert study.first[-1] == len(study.agent) == len(study.value)
    reader = np.repeat(np.arange(len(study.agent)), np.diff(study.first_read))
    assert (study.reads < reader).all()
    assert (study.agent[study.reads] != study.agent[reader]).all()
    part = study.of([1])
    assert part.value.tolist() == pytest.approx(study.value[study.first[1] :].tolist(), nan_ok=True)
    assert (part.agent[part.reads] == study.agent[study.reads[reader >= study.first[1]]]).all()


def test_measuring_reports_alone_is_not_enough() -> None:
    with pytest.raises(MeasurementError, match=r"measurement.texts .*\[post, report\]"):
        events(_results(changed(SPEC, measurement__texts=["report"])))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": ["nonsense"]}, "nonsense"),
        ({"margin": 0.0}, "margin must be between 0 and 1"),
        ({"margin": float("nan")}, "margin must be between 0 and 1"),
        ({"cells": ["nowhere"]}, "there is no condition 'nowhere'.*valid: small"),
        ({"noise": 2.0}, "noise must be a rate of errors"),
        ({"models": {"deffuant": {"mu": 7.0}}}, "mu must be"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_error(arguments: dict[str, Any], message: str) -> None:
    results = _results(SPEC)
    with pytest.raises(SpecError, match=message):
        compare(results, **arguments)


def test_one_replicate_is_one_block() -> None:
    with pytest.raises(MeasurementError, match=r"one block.*raise replicates"):
        compare(_results(changed(SPEC, replicates=1)), "voter")


def test_results_do_not_depend_on_which_run_ended_first() -> None:
    frames = []
    for store, order in (("one.sqlite", (0, 1, 2, 3)), ("two.sqlite", (2, 0, 3, 1))):
        experiment = osim.load_experiment(changed(SPEC, replicates=4))
        ids = [run.run_id for run in experiment.runs]
        for place in order:
            results = osim.run(experiment, store, only=[ids[place]])
        frames.append(events(results).to_csv())
    assert frames[0] == frames[1]


# -- response ----------------------------------------------------------------------------------------------


def _updates(rows: list[tuple[str, float, float, float]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["block", "before", "said", "after"])
    return frame.assign(cell="cell", evidence="model")


def test_bands_are_clustered_by_block() -> None:
    rows = [("a", 0, 1, 1), ("a", 0, 1, 0), ("b", 0, 1, 0), ("c", 1, 2, 1), ("c", 0, 1, 1), ("c", 0, 1, 1)]
    found = response_curve(_updates(rows)).iloc[0]
    sums, counts = np.array([1.0, 0.0, 2.0]), np.array([2, 1, 3])
    mean = 3 / 6
    error = np.sqrt(((sums - mean * counts) ** 2).sum() * 3 / 2) / 6
    half = error * stats.t.ppf(0.975, 2)
    assert (found["discrepancy"], found["change"], found["n_updates"], found["n_blocks"]) == (1, mean, 6, 3)
    assert found["low"] == pytest.approx(mean - half)
    assert found["high"] == pytest.approx(mean + half)
    assert (found["changed"], found["changed_low"]) == (0.5, pytest.approx(max(0.5 - half, 0)))


def test_one_block_has_no_band() -> None:
    found = response_curve(_updates([("a", 0, 1, 1), ("a", 1, 2, 1), ("a", 0, np.nan, 1)]))
    assert found[["discrepancy", "change"]].to_numpy().tolist() == [[1, 0.5]]
    assert found[["low", "high"]].isna().all(axis=None)
    with pytest.raises(MeasurementError, match="no update has an opinion before"):
        response_curve(_updates([("a", np.nan, 1, 1)]))
