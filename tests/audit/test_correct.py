"""Corrected mean opinions in closed form, and diversity where the answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from opinionsim.audit import bias_frames, correct_diversity, half_width, plan
from opinionsim.errors import MeasurementError, SpecError

SCALE = [-2, -1, 0, 1, 2]


def texts(*runs: tuple[str, int, list[float]]) -> pd.DataFrame:
    """Texts of runs, each given by condition, replicate and readings."""
    rows = [
        {
            "run_id": f"{condition}{replicate}",
            "turn": turn,
            "value": value,
            "memory": condition,
            "replicate": replicate,
            "block": f"b{replicate}",
        }
        for condition, replicate, values in runs
        for turn, value in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(topic="t", seed=0)


def labelled(all_texts: pd.DataFrame, every: int, error: float) -> pd.DataFrame:
    """Every n-th text with a label that many points below its reading."""
    chosen = all_texts.iloc[::every]
    return chosen.assign(probability=1 / every, label=chosen["value"] - error)


RUNS = texts(("a", 0, [1, 1, 0, 2]), ("a", 1, [0, 0, 1, 1]), ("b", 0, [2, 2, 1, 1]), ("b", 1, [1, 2, 1, 0]))


def test_a_constant_error_is_taken_away_whatever_the_share_of_labels() -> None:
    for every in (1, 2, 4):
        found, contrasts = bias_frames(RUNS, labelled(RUNS, every, 0.5), ["memory"])
        assert found["raw"].tolist() == [0.75, 1.25]
        assert found["corrected"].tolist() == pytest.approx([0.25, 0.75])
        assert found["error"].tolist() == pytest.approx([0.5, 0.5])
        # A constant error leaves the spread of runs as it was.
        raw, corrected = (found[f"{name}_high"] - found[f"{name}_low"] for name in ("raw", "corrected"))
        assert corrected.tolist() == pytest.approx(raw.tolist())
        assert contrasts["corrected"].tolist() == pytest.approx([0.5])


def test_an_error_of_one_condition_makes_a_raw_contrast_and_no_corrected_one() -> None:
    same = texts(*((condition, n, [0.0, 1.0, -1.0, 0.0]) for condition in "ab" for n in range(3)))
    read = same.assign(value=same["value"] + (same["memory"] == "b"))
    labels = read.assign(probability=1.0, label=same["value"])
    _, contrasts = bias_frames(read, labels, ["memory"])
    assert (contrasts["raw"].iloc[0], contrasts["corrected"].iloc[0]) == (1, 0)


def test_with_every_text_labelled_the_corrected_mean_is_that_of_the_labels() -> None:
    rng = np.random.default_rng(5)
    labels = RUNS.assign(probability=1.0, label=rng.integers(-2, 3, len(RUNS)).astype(float))
    found, _ = bias_frames(RUNS, labels, ["memory"])
    runs = labels.groupby(["memory", "run_id"])["label"].mean()
    assert found["corrected"].tolist() == pytest.approx(runs.groupby("memory").mean().tolist())
    one = runs["a"]
    half = 12.706 * one.std(ddof=1) / np.sqrt(2)
    assert found["corrected_high"].iloc[0] - found["corrected"].iloc[0] == pytest.approx(half, rel=1e-3)


def test_texts_in_which_coders_find_no_opinion_have_no_part() -> None:
    labels = labelled(RUNS, 1, 0.5)
    labels.loc[::3, "label"] = np.nan
    assert bias_frames(RUNS, labels, ["memory"])[0]["error"].tolist() == pytest.approx([0.5, 0.5])
    none = labels.assign(label=np.nan)
    assert bias_frames(RUNS, none, [])[0]["corrected"].isna().all()


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


def test_labels_alone_say_how_the_instrument_errs() -> None:
    # Readings without a label change the counts of runs, and never the errors: with these at none, counts are taken
    # as they are.
    read, runs, labels, _ = _study("two camps", 7)
    few = np.where((read == labels) & (np.arange(len(read)) % 2 == 0), labels, np.nan)
    found = correct_diversity(read, runs, few, SCALE, "free", simulations=0)
    assert found.corrected == pytest.approx(found.raw, abs=0.05)


def test_diversity_needs_labels_and_equal_distances() -> None:
    with pytest.raises(MeasurementError, match="one label at least"):
        correct_diversity([0, 1], [0, 0], [np.nan, np.nan], SCALE, "free")
    with pytest.raises(MeasurementError, match="equal distances"):
        correct_diversity([0, 1], [0, 0], [0, 1], [0, 1, 5], "free")
