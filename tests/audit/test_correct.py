"""Corrected mean opinions in closed form, and diversity where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim.analysis import estimate
from opinionsim.audit import bias_frames, correct_diversity, half_width, plan
from opinionsim.errors import MeasurementError, SpecError

SCALE = [-2, -1, 0, 1, 2]


def texts(*runs: tuple[str, int, list[float]]) -> pd.DataFrame:
    """Texts of runs, each given by condition, block and readings."""
    rows = [
        {
            "run_id": f"{condition}{replicate}",
            "turn": turn,
            "value": value,
            "memory": condition,
            "block": f"b{replicate}",
        }
        for condition, replicate, values in runs
        for turn, value in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(topic="t", evidence="model")


def labelled(all_texts: pd.DataFrame, every: int, error: float) -> pd.DataFrame:
    """Every n-th text with a label that many points below its reading."""
    chosen = all_texts.iloc[::every]
    return chosen.assign(probability=1 / every, label=chosen["value"] - error)


RUNS = texts(
    *(("a", 0, [1, 1, 0, 2]), ("a", 1, [0, 0, 1, 1]), ("a", 2, [1, 0, 0, 0])),
    *(("b", 0, [2, 2, 1, 1]), ("b", 1, [1, 2, 1, 0]), ("b", 2, [0, 2, 0, 0])),
)


def test_a_constant_error_is_taken_away_whatever_the_share_of_labels() -> None:
    for every in (1, 2, 4):
        found, contrasts, _ = bias_frames(RUNS, labelled(RUNS, every, 0.5), ["memory"])
        assert found["raw"].tolist() == pytest.approx([7 / 12, 1])
        assert found["corrected"].tolist() == pytest.approx([1 / 12, 0.5])
        assert found["error"].tolist() == pytest.approx([0.5, 0.5])
        # A constant error leaves the spread of runs as it was.
        raw, corrected = (found[f"{name}_ci_high"] - found[f"{name}_ci_low"] for name in ("raw", "corrected"))
        assert corrected.tolist() == pytest.approx(raw.tolist())
        assert raw.notna().all()
        assert contrasts["corrected"].tolist() == pytest.approx([5 / 12])


def test_an_error_of_one_condition_makes_a_raw_contrast_and_no_corrected_one() -> None:
    same = texts(*((condition, n, [0.0, 1.0, -1.0, 0.0]) for condition in "ab" for n in range(3)))
    read = same.assign(value=same["value"] + (same["memory"] == "b"))
    labels = read.assign(probability=1.0, label=same["value"])
    _, contrasts, _ = bias_frames(read, labels, ["memory"])
    assert (contrasts["raw"].iloc[0], contrasts["corrected"].iloc[0]) == (1, 0)


def test_with_every_text_labelled_the_corrected_mean_is_that_of_the_labels() -> None:
    rng = np.random.default_rng(5)
    labels = RUNS.assign(probability=1.0, label=rng.integers(-2, 3, len(RUNS)).astype(float))
    found, _, _ = bias_frames(RUNS, labels, ["memory"])
    runs = labels.groupby(["memory", "run_id"])["label"].mean()
    assert found["corrected"].tolist() == pytest.approx(runs.groupby("memory").mean().tolist())
    one = runs["a"]
    half = 4.3027 * one.std(ddof=1) / np.sqrt(3)
    assert found["corrected_ci_high"].iloc[0] - found["corrected"].iloc[0] == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize("unread", ["none", "those without", "others too", "a whole run"])
def test_with_every_text_labelled_the_corrected_mean_is_that_of_the_texts_with_an_opinion(unread: str) -> None:
    """Nothing is left to estimate, whatever the instrument made of the texts that state no opinion."""
    rng = np.random.default_rng(11)
    true = RUNS.assign(probability=1.0, label=rng.integers(-2, 3, len(RUNS)).astype(float))
    true.loc[[0, 5, 6, 13, 18, 22], "label"] = np.nan
    read = RUNS.assign(value=true["label"].fillna(-2.0))
    gone = {
        "none": [],
        "those without": read.index[true["label"].isna()],
        "others too": [0, 1, 7, 13, 14],
        "a whole run": range(4, 8),
    }[unread]
    read.loc[gone, "value"] = np.nan
    found, contrasts, _ = bias_frames(read, true, ["memory"])
    runs = true.groupby(["memory", "block", "run_id"])["label"].mean().reset_index()
    wanted = [estimate(["t"] * 3, own["block"], own["label"]) for _, own in runs.groupby("memory")]
    for name, end in (("corrected", "mean"), ("corrected_ci_low", "low"), ("corrected_ci_high", "high")):
        assert found[name].tolist() == pytest.approx([getattr(each, end) for each in wanted])
    assert contrasts["corrected"].iloc[0] == pytest.approx(wanted[1].mean - wanted[0].mean)
    assert (found["labels"].tolist(), found["without"].tolist()) == ([12, 12], [3, 3])
    if unread == "those without":
        assert found["error"].tolist() == pytest.approx([0, 0], abs=1e-12)


def test_an_instrument_that_reads_as_people_do_has_no_error_whatever_the_share_of_labels() -> None:
    read = RUNS.copy()
    read.loc[[1, 8, 9, 16], "value"] = np.nan
    for every in (1, 2, 4):
        found, _, _ = bias_frames(read, labelled(read, every, 0.0), ["memory"])
        assert found["error"].tolist() == pytest.approx([0, 0], abs=1e-12)
    assert bias_frames(RUNS, RUNS.assign(probability=1.0, label=np.nan), [])[0]["corrected"].isna().all()


def test_each_run_has_its_own_share_of_texts_without_an_opinion() -> None:
    """In half of the runs, whose opinions are others, 80 % of the texts state none and are read like the rest."""
    rng, off = np.random.default_rng(20261128), []
    few = np.repeat([True, False], 4)[:, None]
    for _ in range(25):
        true = np.clip(np.round(rng.normal(np.where(few, 1.5, -1.5), 0.7, (8, 100))), -2, 2)
        label = np.where(few & (rng.random(true.shape) < 0.8), np.nan, true)
        read = texts(*(("a", n, own.tolist()) for n, own in enumerate(true)))
        drawn = read.assign(label=label.ravel(), probability=0.2).groupby("run_id").sample(20, random_state=rng)
        off.append(bias_frames(read, drawn, ["memory"])[0]["corrected"].iloc[0] - np.nanmean(label, axis=1).mean())
    assert abs(np.mean(off)) < 0.04


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("estimand", ["topics-like-these", "these-topics"])
def test_corrected_means_have_the_intervals_of_any_mean_about_either_estimand(estimand: Any, crossed: bool) -> None:
    rng, parts = np.random.default_rng(3), []
    for topic in range(4):
        own = texts(*(("a", block, rng.integers(-2, 3, 6).tolist()) for block in range(5)))
        own["block"] += "" if crossed else f" of {topic}"
        parts.append(own.assign(run_id=own["run_id"] + str(topic), topic=f"t{topic}"))
    read = pd.concat(parts, ignore_index=True)
    labels = read.assign(probability=1.0, label=rng.integers(-2, 3, len(read)).astype(float))
    found, _, (_, (corrected,), _) = bias_frames(read, labels, [], estimand)
    runs = labels.groupby(["topic", "block"])["label"].mean().reset_index()
    wanted = estimate(runs["topic"], runs["block"], runs["label"], estimand)
    row = found.iloc[0]
    assert [row["corrected"], row["corrected_ci_low"], row["corrected_ci_high"]] == pytest.approx(
        [wanted.mean, wanted.low, wanted.high]
    )
    assert (corrected.method, corrected.units, corrected.estimand) == (wanted.method, wanted.units, estimand)


def test_runs_of_more_agents_and_topics_of_more_blocks_count_no_more() -> None:
    read = pd.concat([texts(("a", 0, [1, 1, 1, 1, 1, 1]), ("a", 1, [0, 0])), texts(("a", 2, [2, 2])).assign(topic="u")])
    labels = read.assign(probability=1.0, label=read["value"] - [1, 1, 1, 1, 1, 1, 0, 0, 2, 2])
    row = bias_frames(read, labels, [])[0].iloc[0]
    assert (row["raw"], row["error"], row["corrected"]) == pytest.approx((1.25, 1.25, 0))


def test_conditions_without_a_block_in_common_have_no_contrast_and_the_reason() -> None:
    read = RUNS.assign(block=RUNS["memory"] + RUNS["block"])
    found, contrasts, _ = bias_frames(read, labelled(read, 1, 0.5), ["memory"])
    assert contrasts[["raw", "corrected"]].isna().all(axis=None)
    assert "share no block" in contrasts["no_interval"].iloc[0]
    assert found["corrected_ci_low"].notna().all()


def test_conditions_without_a_labelled_opinion_have_no_contrast_and_the_reason() -> None:
    labels = labelled(RUNS, 1, 0.5)
    labels.loc[labels["memory"] == "b", "label"] = np.nan
    found, contrasts, _ = bias_frames(RUNS, labels, ["memory"])
    assert contrasts["no_interval"].iloc[0].startswith("no run has a value of corrected where memory = b, so that")
    assert found["corrected"].isna().tolist() == [False, True]


@pytest.mark.parametrize(("labels", "half"), [(17, 0.75), (100, 0.31), (400, 0.15)])
def test_half_widths_that_were_simulated_beforehand(labels: int, half: float) -> None:
    assert half_width(labels) == pytest.approx(half, abs=0.02)


def test_a_plan_names_the_smallest_number() -> None:
    needed = plan(0.31)
    assert half_width(needed) <= 0.31 < half_width(needed - 1)
    for bad in (0.0, -1.0, float("nan"), 1e-5):
        with pytest.raises(SpecError):
            plan(bad)


def _study(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Readings with 30 % noise, runs, labels of all texts, and the true diversity."""
    rng = np.random.default_rng(seed)
    true = np.full((30, 10), -1.0) if kind == "consensus" else np.tile([-2.0] * 5 + [2.0] * 5, (30, 1))
    read = np.where(rng.random(true.shape) < 0.3, rng.choice(SCALE, size=true.shape), true)
    return read.ravel(), np.repeat(np.arange(30), 10), true.ravel(), float(true.std(axis=1).mean())


@pytest.mark.parametrize("family", ["free", "camps"])
@pytest.mark.parametrize("kind", ["consensus", "two camps"])
def test_noise_is_taken_out_of_diversity(kind: str, family: str) -> None:
    read, runs, labels, true = _study(kind, 7)
    found = correct_diversity(read, runs, labels, SCALE, family, simulations=0)  # type: ignore[arg-type]
    assert abs(found.corrected - true) < 0.5 * abs(found.raw - true)
    assert np.isnan(found.low)


def test_without_noise_nothing_is_taken_away() -> None:
    _, runs, labels, true = _study("two camps", 7)
    found = correct_diversity(labels, runs, labels, SCALE, "free", simulations=0)
    assert found.raw == true
    assert found.corrected == pytest.approx(true, abs=0.05)


def test_with_every_text_labelled_diversity_is_that_of_the_labels() -> None:
    read, runs, labels, true = _study("two camps", 7)
    for family in ("free", "camps"):
        found = correct_diversity(read, runs, labels, SCALE, family, simulations=0)  # type: ignore[arg-type]
        assert found.corrected == pytest.approx(true)


def test_intervals_of_diversity_need_fifty_simulated_studies_whose_mean_error_is_taken_away() -> None:
    read, runs, labels, true = _study("consensus", 7)
    some = np.where(np.arange(len(read)) % 3 == 0, labels, np.nan)[:100]
    fitted, few, enough = (
        correct_diversity(read[:100], runs[:100], some, SCALE, "free", simulations=n) for n in (0, 10, 50)
    )
    assert np.isnan([fitted.low, few.high]).all()
    assert few.corrected == pytest.approx(max(fitted.corrected - few.removed, 0))
    assert enough.low <= true <= enough.high < enough.raw


def test_labels_alone_say_how_the_instrument_errs() -> None:
    # Readings without a label change the counts of runs, and never the errors: with these at none, counts are taken
    # as they are.
    read, runs, labels, _ = _study("two camps", 7)
    few = np.where((read == labels) & (np.arange(len(read)) % 2 == 0), labels, np.nan)
    found = correct_diversity(read, runs, few, SCALE, "free", simulations=0)
    assert found.corrected == pytest.approx(found.raw, abs=0.05)


def test_diversity_needs_labels_and_equal_distances() -> None:
    with pytest.raises(MeasurementError, match="at least one label"):
        correct_diversity([0, 1], [0, 0], [np.nan, np.nan], SCALE, "free")
    with pytest.raises(MeasurementError, match="equal distances"):
        correct_diversity([0, 1], [0, 0], [0, 1], [0, 1, 5], "free")
