"""Metrics of stance where other things were measured beside it, and where others than participants took part."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim import metrics
from opinionsim.errors import MeasurementError
from opinionsim.metrics import NOT_VALIDATED, condition_metrics, cut, run_metrics, scale_of, stance_rows
from opinionsim.plots import Frames
from tests.support.instruments import (
    CIVILITY,
    FIVE,
    SEVEN,
    assert_same,
    beside,
    coded,
    measured,
    moderated,
    plain,
    turns_of,
)

pytestmark = pytest.mark.long

#: What each public function makes of the stance in frames.
OF_STANCE: Mapping[str, Callable[[Frames], Any]] = {
    "condition_metrics": lambda f: condition_metrics(
        f.runs, run_metrics(f.runs, f.opinions, f.agents), by=["framing", "confirmation_bias"]
    ),
    "cut": lambda f: cut(f.opinions[f.opinions["about"].isna()] if "about" in f.opinions else f.opinions),
    "exposure": lambda f: metrics.exposure(f.runs, turns_of(f), f.opinions, f.agents),
    "named_metrics": lambda f: metrics.named_metrics(
        f.runs, f.opinions, ["bias", "dispersion"], scale_of(cut(f.opinions))
    ),
    "opinion_metrics": lambda f: metrics.opinion_metrics(
        metrics.trajectories(f.runs, f.agents, f.opinions), ["bias", "esteban_ray"], range=(-3, 3)
    ),
    "run_metrics": lambda f: run_metrics(f.runs, f.opinions, f.agents),
    "scale_of": lambda f: scale_of(cut(f.opinions)),
    "stance_rows": lambda f: stance_rows(f.runs, f.opinions)[["run_id", "instrument_id", "turn", "value"]].reset_index(
        drop=True
    ),
    "step_metrics": lambda f: metrics.step_metrics(f.runs, f.opinions),
    "sycophancy": lambda f: metrics.sycophancy(f.runs, turns_of(f), f.opinions, kind="report"),
    "trajectories": lambda f: metrics.trajectories(f.runs, f.agents, f.opinions),
}


def test_every_function_of_an_opinions_frame_is_checked() -> None:
    takers = {
        name
        for name in dir(metrics)
        if inspect.isfunction(function := getattr(metrics, name))
        and "opinions" in (known := inspect.signature(function).parameters)
        and known["opinions"].annotation == "pd.DataFrame"
    }
    # These read other variables, or take rows of stance that were chosen before.
    others = {"variable_means", "scale_of_all"}
    assert takers - others == set(OF_STANCE) - {"condition_metrics", "opinion_metrics"}


@pytest.mark.parametrize("name", OF_STANCE)
@pytest.mark.parametrize("two_scales", [False, True], ids=["one scale", "two scales"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "plain"])
def test_a_second_instrument_changes_no_frame_of_stance(name: str, two_scales: bool, whole: bool) -> None:
    alone = measured(two_scales=two_scales)
    both = beside(alone, pairs=whole)
    if not whole:
        alone, both = plain(alone), plain(both)
    assert len(both.opinions) > 1.9 * len(alone.opinions)
    made = OF_STANCE[name]
    assert_same(made(both), made(alone))


@pytest.mark.parametrize("name", sorted(set(OF_STANCE) - {"cut"}))
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "plain"])
def test_others_than_participants_change_no_measure(name: str, whole: bool) -> None:
    alone = measured()
    both = moderated(beside(alone))
    if not whole:
        alone, both = plain(alone), plain(moderated(beside(alone, pairs=False)))
    made = OF_STANCE[name]
    assert_same(made(both), made(alone))


def test_a_cut_frame_is_what_it_would_be_had_nothing_else_been_measured() -> None:
    alone = measured()
    both = beside(alone, pairs=False)
    pd.testing.assert_frame_equal(cut(both.opinions), alone.opinions)
    pd.testing.assert_frame_equal(cut(alone.opinions), alone.opinions)
    civil = cut(both.opinions, "civility")
    assert [column for column in civil if column.startswith("p_")] == [f"p_{point}" for point in CIVILITY]
    assert civil["value"].between(1, 7).all()
    pd.testing.assert_frame_equal(cut(both.opinions, instrument_id="a9"), civil)
    assert scale_of(civil).points == CIVILITY
    assert scale_of(both.opinions).points == tuple(range(-2, 8))


def test_rows_about_a_second_text_stay_in_a_cut_and_out_of_the_stance_of_texts() -> None:
    both = beside(measured())
    assert cut(both.opinions)["about"].notna().any()
    assert cut(both.opinions, "civility")["about"].notna().any()
    kept = stance_rows(both.runs, both.opinions)
    assert kept["about"].isna().all()
    assert set(kept["variable"]) == {"stance"}


def test_instruments_of_stance_keep_points_of_their_own() -> None:
    frames = beside(measured(two_scales=True))
    found = run_metrics(frames.runs, frames.opinions, frames.agents).set_index("instrument_id")
    shares = [column for column in found if column.startswith("share_")]
    assert shares == [f"share_{point}" for point in SEVEN]
    assert found.loc["m0", ["share_-3", "share_3"]].isna().all(axis=None)
    assert found.loc["m1", shares].notna().all(axis=None)
    for instrument, points in {"m0": FIVE, "m1": SEVEN}.items():
        own = cut(frames.opinions, instrument_id=instrument)
        assert scale_of(own).points == points
        assert [column for column in own if column.startswith("p_")] == [f"p_{point}" for point in points]


def test_a_scale_is_known_where_no_text_was_an_answer() -> None:
    frames = measured()
    silent = frames.opinions.assign(value=math.nan, **{f"p_{point}": math.nan for point in FIVE})
    frames = frames._replace(opinions=silent)
    both = beside(frames)
    assert scale_of(cut(both.opinions)).points == FIVE
    found = run_metrics(both.runs, both.opinions, both.agents)
    pd.testing.assert_frame_equal(found, run_metrics(frames.runs, frames.opinions, frames.agents))
    assert [column for column in found if column.startswith("share_")] == [f"share_{point}" for point in FIVE]


def test_a_cut_that_leaves_nothing_keeps_the_columns() -> None:
    frames = measured()
    assert list(cut(frames.opinions, "novelty").columns) == list(frames.opinions.columns)
    assert cut(frames.opinions, "novelty").empty


def test_two_instruments_of_stance_in_one_cell_have_a_row_each() -> None:
    frames = measured()
    rows = frames.opinions.to_dict("records")
    again = [
        coded(row, SEVEN, instrument_id="m5", classifier="flan_t5", value=3.0)
        for row in rows
        if row["kind"] == "report"
    ]
    opinions = pd.concat([frames.opinions, pd.DataFrame(again).astype({"about": "Int64"})], ignore_index=True)
    found = run_metrics(frames.runs, opinions, frames.agents)
    alone = run_metrics(frames.runs, frames.opinions, frames.agents)
    assert len(found) == 2 * len(alone)
    own = found[found["instrument_id"] == "m0"].drop(columns=["share_-3", "share_3"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(own, alone)
    other = found[found["instrument_id"] == "m5"]
    assert set(other["bias"]) == {3.0}
    # The runs frame says nothing of this instrument, which read texts of chat models.
    assert set(other["validation"]) == {NOT_VALIDATED}
    assert set(own["validation"]) == {""}


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_cell_without_an_instrument_of_stance_has_no_measures(missing: Any) -> None:
    frames = beside(measured())
    unread = frames.runs["cell"] == "c1"
    runs = frames.runs.assign(
        instrument_id=frames.runs["instrument_id"].astype(object).where(~unread, missing),
        classifier=frames.runs["classifier"].astype(object).where(~unread, missing),
        colour=np.where(unread, "red", "blue"),
    )
    opinions = frames.opinions[(frames.opinions["cell"] != "c1") | (frames.opinions["variable"] != "stance")]
    found = run_metrics(runs, opinions, frames.agents)
    assert sorted(found["cell"].unique()) == ["c0", "c2", "c3"]
    pd.testing.assert_frame_equal(found, run_metrics(runs[~unread], opinions, frames.agents))
    # What only such cells vary in is no condition.
    by_condition = condition_metrics(runs, found)
    assert "colour" not in by_condition.columns
    assert by_condition["n_runs"].tolist() == [2, 2, 2]
    condition_metrics(runs, found, by=["framing", "confirmation_bias"])

    courses = metrics.trajectories(runs, frames.agents, opinions)
    assert courses.loc[courses["cell"] == "c1", "value"].isna().all()
    assert courses.loc[courses["cell"] == "c0", "value"].notna().any()
    steps = metrics.step_metrics(runs, opinions)
    assert set(steps.loc[steps["cell"] == "c1", "n_never"]) == {4}
    assert run_metrics(runs[unread], opinions, frames.agents).empty
    assert condition_metrics(runs[unread], run_metrics(runs[unread], opinions, frames.agents)).empty


def test_participants_alone_are_counted_and_have_assigned_opinions() -> None:
    frames = measured()
    runs, agents, opinions, *_ = moderated(frames)
    assert (opinions["agent"] == 4).any()
    found = run_metrics(runs, opinions, agents).iloc[0]
    assert (found["n_agents"], found["assigned_bias"]) == (4, -0.5)
    assert set(metrics.trajectories(runs, agents, opinions)["agent"]) == {0, 1, 2, 3}
    with pytest.raises(MeasurementError, match="opinion of agent -1; agents are numbered from 0"):
        stance_rows(runs, opinions.assign(agent=-1))


def test_a_scale_that_is_no_list_of_points_is_named() -> None:
    frames = measured()
    for broken in ("-2 to 2", "1", ""):
        with pytest.raises(MeasurementError, match="column scale of the opinions frame must list points"):
            run_metrics(frames.runs, frames.opinions.assign(scale=broken), frames.agents)
    with pytest.raises(MeasurementError, match="lacks the column"):
        cut(frames.opinions.drop(columns="instrument_id"), instrument_id="m0")
