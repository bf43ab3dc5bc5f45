"""A contrast under choices of analysis, and under variants of the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.analysis import (
    Effect,
    estimate,
    findings,
    robustness_frame,
    robustness_table,
    shift,
    spread_of,
    variance_share,
)
from opinionsim.errors import SpecError
from opinionsim.running import Invocation, under_way
from opinionsim.specification import ContrastSpec, load_experiment
from opinionsim.store import Results
from tests.support.running import ended

SPEC: dict[str, Any] = {
    "name": "study",
    "seed": 5,
    "replicates": 2,
    "population": {"size": 4},
    "topic": {"name": "t-rex"},
    "interaction": {"kind": "dyadic", "steps": 6},
    "measurement": {"classifier": "lexicon", "texts": ["report", "post"]},
    "sweep": {
        "topic.name": ["t-rex", "flat-earth", "moon-landing"],
        "cognition.confirmation_bias": ["none", "strong"],
    },
    "independent_over": ["topic.name"],
    "analysis": {
        "contrasts": {
            "bias divides": {
                "measure": "diversity",
                "of": "strong - none",
            }
        },
        "choices": {"texts": ["report", "post"], "last": [1, 3], "truncated": ["missing", "measure"]},
    },
    "robustness": [
        {"label": name, "change": {"prompts.variant": name}} for name in ("second", "third", "fourth", "fifth")
    ],
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study with all its variants."""
    url = f"sqlite:///{tmp_path_factory.mktemp('study')}/study.sqlite"
    experiment = load_experiment(SPEC)
    for each in experiment.variants.values():
        osim.run(each, store=url)
    return osim.run(experiment, store=url)


@pytest.mark.long
def test_choices_are_crossed_in_full_and_the_usual_one_equals_the_table_of_contrasts(study: Results) -> None:
    frame = robustness_frame(study)
    choices = frame[frame["of"] == "analysis"]
    assert choices["label"].tolist()[:3] == [
        "texts: report, last: 1, truncated: missing",
        "texts: report, last: 1, truncated: measure",
        "texts: report, last: 3, truncated: missing",
    ]
    assert len(choices) == 2 * 2 * 2
    runs, metrics = study.runs, study.metrics
    reports = metrics[metrics["kind"] == "report"].merge(runs, on=["run_id", "cell", "replicate"], suffixes=("", "_"))
    means = reports.groupby(["confirmation_bias", "topic"])["diversity"].mean().groupby("confirmation_bias").mean()
    assert choices["difference"].iloc[0] == pytest.approx(means["strong"] - means["none"])


def test_variants_are_compared_by_block_and_scripted_ones_have_no_finding(study: Results) -> None:
    frame = robustness_frame(study)
    variants = frame[frame["of"] == "agent"].set_index("label")
    assert variants.index.tolist() == ["second", "third", "fourth", "fifth"]
    assert (variants["finding"] == "").all()
    usual = frame["difference"].iloc[0]
    np.testing.assert_allclose(variants["shift"], variants["difference"] - usual)
    notes = " ".join(robustness_table(study).notes)
    assert "each 98.75 % (Bonferroni)" in notes
    assert "Share of prompts.variant in the variance across its 5 levels and 3 topics" in notes
    assert "Not varied: model, memory, temperature, order, network, classifiers." in notes


def test_a_wording_that_is_asked_for_is_that_of_choices_and_variants_without_it_keep_their_own(
    study: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = np.where(study.runs["replicate"] == 0, "default@0123", "default@4567")
    monkeypatch.setitem(study._frames, "runs", study.runs.assign(wording=words, begun_at=study.runs["replicate"] * 1.0))
    first, last = (robustness_frame(study, wording=name).set_index("label") for name in ("default@0123", None))
    reports = study.metrics[(study.metrics["kind"] == "report") & (study.metrics["replicate"] == 0)]
    means = reports.merge(study.runs, on=["run_id", "cell"]).groupby("confirmation_bias")["diversity"].mean()
    usual = "texts: report, last: 1, truncated: missing"
    assert first.loc[usual, "difference"] == pytest.approx(means["strong"] - means["none"])
    assert last.loc[usual, "difference"] != first.loc[usual, "difference"]
    variants = first[first["of"] == "agent"]
    np.testing.assert_array_equal(variants["difference"], last.loc[variants.index, "difference"])
    with pytest.raises(SpecError, match="no wording of the prompts begins with 'quack'"):
        robustness_table(study, wording="quack")


def test_a_variant_has_runs_of_the_same_experiment_and_tables_show_the_specification(study: Results) -> None:
    assert len(study.designs) == 5
    assert set(study.runs["wording"].str.partition("@")[0]) == {"default"}
    blocks = [set(osim.load(study.url, study.name, design=number).runs["block"]) for number in study.designs]
    assert all(each == blocks[0] for each in blocks)


def test_a_variant_that_was_not_carried_out_is_left_out(study: Results, tmp_path: Any) -> None:
    with under_way(Invocation(load_experiment(SPEC), f"sqlite:///{tmp_path}/s.sqlite")):
        pass
    frame = robustness_frame(osim.load(f"sqlite:///{tmp_path}/s.sqlite"))
    assert set(frame["of"]) == {"analysis"}
    assert "Declared but not run: second, third, fourth, fifth." in frame.attrs["notes"]


def test_a_part_of_the_variants_is_compared_at_the_level_of_all_and_about_the_same(tmp_path: Path) -> None:
    """One of four variants, and of it two of three topics."""
    experiment, url = load_experiment(SPEC), f"sqlite:///{tmp_path}/s.sqlite"
    second = experiment.variants["second"]
    only = {run.run_id for run in second.runs if run.spec.topic and run.spec.topic.name != "moon-landing"}
    ended(second, url, only=only)
    frame = robustness_frame(osim.run(experiment, store=url))
    assert frame.attrs["level"] == pytest.approx(1 - 0.05 / 4)
    (row,) = frame[frame["of"] != "analysis"].to_dict("records")
    assert row["shift_no_interval"] == "too few independent units (2 topics), at least 3 are needed"
    assert row["difference_no_interval"] == row["shift_no_interval"]
    said = " ".join(frame.attrs["notes"])
    assert f"No interval for second: {row['shift_no_interval']}." in said
    assert "Declared but not run: third, fourth, fifth." in said


def _effect(values: pd.DataFrame) -> Effect:
    made = estimate(values["topic"], values["block"], values["value"], "topics-like-these", design="nested")
    return Effect("c", ContrastSpec(of={"x": 1}), "primary", made, "model", values)


def test_shifts_are_differences_of_the_same_units() -> None:
    rng = np.random.default_rng(1)
    units = pd.DataFrame(
        [(topic, f"{topic}{block}") for topic in "abcdef" for block in "12"], columns=["topic", "block"]
    )
    own = units.assign(value=rng.normal(size=12))
    other = own.assign(value=own["value"] + 0.5 + rng.normal(0, 0.05, 12)).sample(frac=1, random_state=1)
    found = shift(_effect(own), _effect(other), 0.99)
    assert found.mean == pytest.approx(0.5, abs=0.05)
    assert found.units == "6 topics"
    assert found.spread is not None
    assert findings(found.spread, 5) == "changes"


@pytest.mark.parametrize(
    ("mean", "smallest", "finding"),
    [(0.0, None, "undecided"), (0.0, 0.5, "equivalent"), (0.3, 0.5, "equivalent"), (0.3, None, "changes"),
     (1.0, 0.5, "changes"), (0.0, 0.01, "undecided")],
)  # fmt: skip
def test_findings_weigh_the_change_against_the_smallest_effect(mean: float, smallest: float, finding: str) -> None:
    grid = mean + np.array([[-0.1], [0.1], [-0.05], [0.05], [0.08], [-0.08], [0.02], [-0.02]])
    assert findings(spread_of(grid, "nested", "topics-like-these"), 4, smallest) == finding


def test_a_share_of_variance_equals_the_worked_example_of_shrout_and_fleiss() -> None:
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    share, low, high = variance_share(ratings)
    assert share == pytest.approx(0.29, abs=0.005)
    assert (low, high) == (pytest.approx(0.02, abs=0.005), pytest.approx(0.76, abs=0.005))


@pytest.mark.parametrize("of_levels", [0.0, 1.0])
def test_without_a_rest_no_share_of_variance_is_defined(of_levels: float) -> None:
    grid = of_levels * np.arange(5.0)[:, None] + np.arange(3.0)
    assert np.isnan(variance_share(grid)).all()
