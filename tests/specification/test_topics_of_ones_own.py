"""Topics of the user's own, from the specification to the frames."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics import METRICS, compute_metrics, named_metrics
from opinionsim.opinions import OpinionScale
from opinionsim.plots import trajectory_data
from opinionsim.registry import part
from opinionsim.specification import load_experiment
from tests.support.running import SMALL, carry_out, changed

SQUARE: dict[str, Any] = {
    "name": "square",
    "title": "What the square is for",
    "claims": {"market": "the square should stay a market", "car-park": "the square should become a car park"},
}


def _spec(title: str = SQUARE["title"], **values: Any) -> dict[str, Any]:
    topic = {"definition": {**SQUARE, "title": title}, "framing": "market"}
    return changed(SMALL, topic=topic, **values)


def test_an_open_question_runs_under_the_names_of_its_sides() -> None:
    sides = ["market", "car-park"]
    results = carry_out(load_experiment(_spec(sweep={"topic.framing": sides})), "sides.sqlite")[1]
    found = results.runs.set_index("framing")
    assert set(found.index) == set(sides)
    assert [found.loc[side, "claim"] for side in sides] == list(SQUARE["claims"].values())
    assert np.isnan(found["truth"]).all()
    assert set(found["topic_title"]) == {"What the square is for"}


@pytest.mark.parametrize(
    ("framing", "message"),
    [
        (None, "topic.framing: topic 'square' needs a framing; valid: market, car-park"),
        ("falsehood", "topic.framing: topic 'square' has no framing 'falsehood'; valid: market, car-park"),
    ],
)
def test_a_side_must_be_one_of_the_topic(framing: str | None, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_experiment(changed(_spec(), topic__framing=framing))
    assert str(caught.value) == f"specification: {message}"


def test_the_side_that_is_meant_by_default_is_the_same_run() -> None:
    runs = [load_experiment(changed(SMALL, topic={"name": "flat-earth", **given})).runs[0].run_id
            for given in ({}, {"framing": "falsehood"}, {"framing": "truth"})]  # fmt: skip
    assert runs[0] == runs[1] != runs[2]


def test_a_changed_title_is_shown_without_another_run() -> None:
    first = carry_out(load_experiment(_spec()), "title.sqlite")[1]
    again = carry_out(load_experiment(_spec("Market or cars")), "title.sqlite")[1]
    assert again.runs["run_id"].tolist() == first.runs["run_id"].tolist()
    assert trajectory_data(first).title.startswith("What the square is for, framing: market")
    assert trajectory_data(again).title.startswith("Market or cars, framing: market")


ARTS: dict[str, Any] = {
    "name": "arts",
    "question": "Should the arts be funded?",
    "claims": {"affirming": "The arts should be funded.", "negating": "The arts should NOT be funded."},
}


def _arts(topic: dict[str, Any] = ARTS, **values: Any) -> dict[str, Any]:
    return changed(SMALL, topic={"definition": topic, "framing": "affirming"}, **values)


def test_a_question_is_part_of_a_run_and_of_its_manifest() -> None:
    experiment = load_experiment(_arts())
    results = carry_out(experiment, "arts.sqlite")[1]
    assert set(results.runs["claim"]) == {"The arts should be funded"}
    assert np.isnan(results.runs["truth"]).all()
    asked = results.prompt(0, 0)[-1].content
    assert "the claim that <claim>The arts should be funded</claim>" in "".join(m.content for m in results.prompt(0, 0))
    assert "funded.." not in asked
    again = load_experiment(results.manifest)
    assert [run.run_id for run in again.runs] == [run.run_id for run in experiment.runs]
    other = load_experiment(_arts({**ARTS, "question": "Must the arts be funded?"}))
    assert other.runs[0].run_id != experiment.runs[0].run_id


def test_a_question_left_out_makes_the_runs_of_before() -> None:
    plain = {**SQUARE, "question": None}
    ids = [load_experiment(changed(SMALL, topic={"definition": topic, "framing": "market"})).runs[0].run_id
           for topic in (SQUARE, plain)]  # fmt: skip
    assert ids[0] == ids[1]


@part("metric")
def nearness(opinions: Any, truth: float) -> float:
    """Mean distance from the accepted truth."""
    return float(np.abs(np.asarray(opinions) - truth).mean())


@part("metric")
def nearness_if_known(opinions: Any, truth: float | None = None) -> float:
    """The same, -1 where there is no truth."""
    return -1.0 if truth is None else nearness(opinions, truth)


def test_measures_that_need_a_truth_say_so_where_none_is_accepted() -> None:
    named = {"measurement__metrics": [nearness]}
    said = r"measurement\.metrics: metric .*nearness.* needs a truth, but the topic accepts no side as true"
    for spec in (_arts(**named), _spec(**named)):
        with pytest.raises(SpecError, match=said):
            load_experiment(spec)
    may = load_experiment(_arts(measurement__metrics=[nearness_if_known])).runs[0].spec.measurement.metrics
    known = changed(SMALL, topic={"name": "flat-earth", "framing": "falsehood"}, **named)
    experiment = load_experiment(known)
    must = experiment.runs[0].spec.measurement.metrics
    results = carry_out(experiment, "truth.sqlite")[1]
    reports = results.opinions[results.opinions["kind"] == "report"]
    found = named_metrics(results.runs, reports, must, OpinionScale()).iloc[:, -1]
    last = reports.sort_values("turn").groupby("agent")["value"].last()
    assert found.tolist() == [pytest.approx(np.abs(last - -2).mean())]
    open_ones = results.runs.assign(truth=np.nan)
    with pytest.raises(MeasurementError, match="needs a truth"):
        named_metrics(open_ones, reports, must, OpinionScale())
    assert named_metrics(open_ones, reports, may, OpinionScale()).iloc[:, -1].tolist() == [-1.0]


def test_compute_metrics_passes_the_truth_on() -> None:
    assert compute_metrics([1.0, 2.0], "bias", truth=2.0).keys() == {"bias"}
    assert "truth" not in str(inspect.signature(METRICS["bias"].function))
