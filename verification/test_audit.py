"""Audits against simulated studies whose truth is known: what correction removes, and what its intervals cover.

Seeds are stated here, before anything is drawn: 20261125 for mean opinions, 20261126 for diversity. The figures are
printed with ``pytest verification/test_audit.py -s``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim.audit import bias_frames, coefficients, cohen_kappa, correct_diversity, half_width, krippendorff_alpha

POINTS = np.array([-2, -1, 0, 1, 2])
RUNS, AGENTS = 30, 10
BIAS_SEED, DIVERSITY_SEED = 20261125, 20261126


def _noisy(true: np.ndarray, noise: float | np.ndarray, rng: np.random.Generator, towards: float | None) -> np.ndarray:
    """Readings of which a share is pure chance, or one point whatever was meant."""
    chance = rng.choice(POINTS, size=true.shape) if towards is None else np.full(true.shape, towards)
    return np.where(rng.random(true.shape) < noise, chance, true)


def _study(rng: np.random.Generator, noise: float, differing: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Texts of two conditions, of which 100 each have labels. The noise of the second may pull towards -2."""
    frames = []
    for place, condition in enumerate(("first", "second")):
        middle = rng.normal(-0.6 + place, 0.4, size=(RUNS, 1))
        true = np.clip(np.rint(rng.normal(middle, 0.8, size=(RUNS, AGENTS))), -2, 2)
        read = _noisy(true, noise, rng, -2.0 if differing and place else None)
        run, agent = np.indices(true.shape)
        own = {"block": run.ravel().astype(str), "turn": agent.ravel(), "value": read.ravel(), "true": true.ravel()}
        frames.append(pd.DataFrame(own).assign(condition=condition, topic="t", evidence="model"))
    texts = pd.concat(frames, ignore_index=True)
    texts["run_id"] = texts["condition"] + texts["block"]
    drawn = texts.groupby("condition").sample(100, random_state=int(rng.integers(2**31)))
    return texts, drawn.assign(probability=100 / (RUNS * AGENTS), label=drawn["true"])


@pytest.mark.parametrize("differing", [False, True], ids=["alike", "differs by condition"])
@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_correction_removes_the_error_of_a_contrast_and_its_interval_covers(noise: float, differing: bool) -> None:
    rng, found, studies = np.random.default_rng(BIAS_SEED), [], 400
    for _ in range(studies):
        texts, labels = _study(rng, noise, differing)
        row = bias_frames(texts, labels, ["condition"])[1].iloc[0]
        of_texts = texts.groupby("condition")["true"].mean().diff().iloc[-1]
        found.append(
            (row["raw"] - of_texts, row["corrected"] - of_texts, row["corrected_ci_low"], row["corrected_ci_high"])
        )
    raw, corrected, low, high = np.array(found).T
    # The mean of clipped and rounded normal opinions differs from 1 by what the ends of the scale cut off.
    big = np.random.default_rng(1).normal(np.random.default_rng(2).normal(-0.6, 0.4, 10**6), 0.8)
    ends = np.random.default_rng(1).normal(np.random.default_rng(2).normal(0.4, 0.4, 10**6), 0.8)
    truth = np.clip(np.rint(ends), -2, 2).mean() - np.clip(np.rint(big), -2, 2).mean()
    covered = float(((low < truth) & (truth < high)).mean())
    error = corrected.std() / studies**0.5
    print(f"\nnoise {noise:.0%}, {'differing' if differing else 'alike'}: error of a contrast raw {raw.mean():+.3f}, "
          f"corrected {corrected.mean():+.3f} (SE {error:.3f}), coverage {covered:.1%}")  # fmt: skip
    assert abs(raw.mean()) > 0.05
    assert abs(corrected.mean()) < 4 * error
    assert 0.93 <= covered <= 0.985


@pytest.mark.parametrize("read", [-2.0, np.nan], ids=["as -2", "unread"])
def test_texts_without_an_opinion_in_one_condition_leave_no_bias(read: float) -> None:
    """30 % of the texts of one condition state none, whatever is read there; 100 of 300 of each have labels."""
    rng, found, studies = np.random.default_rng(BIAS_SEED), [], 400
    for _ in range(studies):
        texts, labels = _study(rng, 0.1, False)
        silent = (rng.random(len(texts)) < 0.3) & (texts["condition"] == "second")
        texts.loc[silent, "value"] = read
        labels = labels.assign(label=labels["label"].where(~silent))
        row = bias_frames(texts, labels, ["condition"])[1].iloc[0]
        stated = texts["true"].where(~silent).groupby([texts["condition"], texts["run_id"]]).mean()
        truth = stated.groupby("condition").mean().diff().iloc[-1]
        found.append((row["raw"] - truth, row["corrected"] - truth, row["corrected_ci_low"], row["corrected_ci_high"]))
    raw, corrected, low, high = np.array(found).T
    wide = np.random.default_rng(2).normal(-0.6, 0.4, 10**6), np.random.default_rng(2).normal(0.4, 0.4, 10**6)
    of_all = [np.clip(np.rint(np.random.default_rng(1).normal(middle, 0.8)), -2, 2).mean() for middle in wide]
    covered = float(((low < of_all[1] - of_all[0]) & (of_all[1] - of_all[0] < high)).mean())
    error = corrected.std() / studies**0.5
    print(f"\nno opinion read as {read:g}: error of a contrast raw {raw.mean():+.3f}, corrected "
          f"{corrected.mean():+.3f} (SE {error:.3f}), coverage {covered:.1%}")  # fmt: skip
    assert abs(corrected.mean()) < 4 * error
    assert 0.93 <= covered <= 0.985


@pytest.mark.parametrize("labels", [17, 100, 400])
def test_the_half_width_of_a_plan_is_that_of_audits(labels: int) -> None:
    rng = np.random.default_rng(BIAS_SEED)
    true = rng.choice(POINTS, size=(20_000, 2, labels))
    error = (_noisy(true, 0.3, rng, None) - true).mean(axis=2)
    simulated = 1.96 * (error[:, 0] - error[:, 1]).std()
    print(f"\n{labels} labels a condition: planned ±{half_width(labels):.3f}, simulated ±{simulated:.3f}")
    assert half_width(labels) == pytest.approx(simulated, rel=0.05)


def _diverse(kind: str, rng: np.random.Generator) -> np.ndarray:
    """True opinions of runs: each near one of two neighbouring points, or in two camps of any size."""
    if kind == "consensus":
        middle = rng.choice([-2.0, -1.0], size=(RUNS, 1))
        return np.clip(np.rint(rng.normal(middle, 0.35, size=(RUNS, AGENTS))), -2, 2)
    upper = rng.random((RUNS, AGENTS)) < rng.uniform(0.3, 0.7, size=(RUNS, 1))
    return np.clip(np.rint(rng.normal(np.where(upper, 1.8, -1.8), 0.35)), -2, 2)


def _studies(
    kind: str, noise: float, labels: int, n: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    rng = np.random.default_rng(DIVERSITY_SEED)
    # The truth is the mean of a large number of runs like these.
    truth = float(np.mean([_diverse(kind, rng).std(axis=1).mean() for _ in range(400)]))
    for _ in range(n):
        true = _diverse(kind, rng)
        read = _noisy(true, noise, rng, None)
        told = np.full(true.size, np.nan)
        chosen = rng.permutation(true.size)[:labels]
        told[chosen] = true.ravel()[chosen]
        yield read.ravel(), np.repeat(np.arange(RUNS), AGENTS), told, truth


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("family", ["free", "camps"])
@pytest.mark.parametrize("labels", [100, 300])
@pytest.mark.parametrize("kind", ["consensus", "camps"])
def test_what_is_left_of_noise_in_diversity_and_what_its_intervals_cover(kind: str, labels: int, family: Any) -> None:
    found, studies = [], 20
    for number, (read, runs, told, truth) in enumerate(_studies(kind, 0.3, labels, studies)):
        one = correct_diversity(read, runs, told, POINTS, family, simulations=50, seed=number)
        found.append((one.raw - truth, one.corrected - truth, one.low <= truth <= one.high, one.high - one.low))
    raw, corrected, covered, width = np.array(found).T
    print(f"\n{kind}, {labels} labels, {family}: true {truth:.2f}, error raw {raw.mean():+.3f}, corrected "
          f"{corrected.mean():+.3f} (SD {corrected.std():.3f}), interval {width.mean():.2f} wide, covers in "
          f"{covered.sum():.0f} of {studies}")  # fmt: skip
    assert abs(corrected.mean()) < 0.6 * abs(raw.mean())
    # Of intervals that cover in 90 %, fewer do once in 400 such tests.
    assert covered.sum() >= 14


def test_published_examples_of_agreement() -> None:
    n = np.nan
    labels = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, n, n, n],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, n, 3],
        [n, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, n],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, n],
    ]
    found = [krippendorff_alpha(labels, distance=each).value for each in ("nominal", "ordinal", "interval")]  # type: ignore[arg-type]
    assert found == pytest.approx([0.743, 0.815, 0.849], abs=5e-4)
    # Cohen 1960, and 1968 with costs of disagreements between diagnoses.
    diagnoses = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
    assert cohen_kappa(diagnoses).value == pytest.approx(0.492, abs=5e-4)
    assert cohen_kappa(diagnoses, [[0, 1, 3], [1, 0, 6], [3, 6, 0]]).value == pytest.approx(0.348, abs=5e-4)


def test_independent_ratings_agree_as_chance_has_it() -> None:
    rng = np.random.default_rng(BIAS_SEED)
    values = [
        [each.value for each in coefficients(rng.choice(POINTS, size=(2, 200)).astype(float), POINTS).values()]
        for _ in range(200)
    ]
    assert np.abs(np.mean(values, axis=0)).max() < 0.02
