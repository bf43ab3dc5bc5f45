"""Axelrod's culture against its published regions, its order-disorder transitions, and drift."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from opinionsim.classic import simulate

mpl.use("Agg")
from matplotlib import pyplot as plt

_STEPS = 1_000_000


@pytest.fixture
def figures(tmp_path):
    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    plt.close("all")


def _at_rest(side: int, runs: int, initial: Any = "uniform", **settings: Any) -> dict[str, np.ndarray]:
    """Measures of runs on a square lattice that have come to rest."""
    found = simulate(
        "axelrod", "lattice", initial, _STEPS, 2, n=side * side, replicates=runs, until="frozen",
        record_every=_STEPS, **settings,
    )  # fmt: skip
    assert (found.ended >= 0).all()
    measures = found.metrics(["regions", "largest_region", "partial_overlap"])
    assert (measures["partial_overlap"] == 0).all()
    return measures


#: Mean number of regions of 10 runs on a 10 x 10 territory with borders, by features and traits: table 2 of Axelrod
#: 1997.
_PUBLISHED = {
    (5, 5): 1.0, (5, 10): 3.2, (5, 15): 20.0, (10, 5): 1.0, (10, 10): 1.0, (10, 15): 1.4,
    (15, 5): 1.0, (15, 10): 1.0, (15, 15): 1.2,
}  # fmt: skip


def test_regions_are_as_many_as_axelrod_published() -> None:
    runs = 100
    for (features, traits), published in _PUBLISHED.items():
        found = simulate(
            "axelrod", {"kind": "lattice", "periodic": False}, n=100, steps=_STEPS, seed=1, replicates=runs,
            until="frozen", record_every=_STEPS, features=features, traits=traits,
        ).metrics(["regions"])["regions"]  # fmt: skip
        # Published means are of ten runs each, and rounded.
        error = found.std(ddof=1) * np.sqrt(1 / 10 + 1 / runs) + 0.05
        assert abs(found.mean() - published) < 3 * error, (features, traits)


def test_two_agents_agree_after_a_sum_of_waiting_times() -> None:
    # With k of F features shared an update lets them share another with probability k / F.
    features, shared, runs = 6, 2, 3000
    start = np.zeros((2, features))
    start[1, shared:] = 1
    options = {"features": features, "traits": 2, "replicates": runs}
    opinions = simulate("axelrod", 2, start, 11, 5, **options).opinions
    # The law of the number of updates, two a step.
    chain = np.zeros((features + 1, features + 1))
    for k in range(features + 1):
        chain[k, k] = 1 - (k / features if k < features else 0)
        if k < features:
            chain[k, k + 1] = k / features
    done = np.array([np.linalg.matrix_power(chain, 2 * step)[shared, features] for step in range(1, 12)])
    found = (opinions[:, 1:, 0] == opinions[:, 1:, 1]).all(axis=2).mean(axis=0)
    assert (np.abs(found - done) <= 4.5 * np.sqrt(done * (1 - done) / runs)).all()
    assert done[-1] > 0.9


def test_many_features_lose_their_order_abruptly(figures) -> None:
    # Castellano et al. 2000: for F = 10 the largest region drops from almost all agents to almost none at q of 50-60.
    sides, traits, runs = (10, 20, 30), (20, 40, 50, 60, 80), 10
    shares = {
        side: np.array([_at_rest(side, runs, features=10, traits=q)["largest_region"] for q in traits])
        for side in sides
    }
    figure, axes = plt.subplots()
    for side, found in shares.items():
        mean, error = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(runs)
        axes.errorbar(traits, mean, error, marker="o", capsize=2, label=f"{side} x {side}")
    axes.set(xlabel="traits q", ylabel="largest region, share of agents", title="Axelrod's model, F = 10")
    axes.legend()
    figure.savefig(figures / "axelrod_f10.png", dpi=120)
    mean = {side: found.mean(axis=1) for side, found in shares.items()}
    # Below the transition order grows with the lattice, above it falls to nothing: the curves cross.
    assert mean[10][1] < mean[20][1] < mean[30][1]
    assert mean[30][1] > 0.85
    assert mean[10][3] > mean[20][3] > mean[30][3]
    assert mean[30][3] < 0.1
    assert (mean[10][4] > mean[20][4]) & (mean[20][4] > mean[30][4])
    # At it, some runs are in order and others are not.
    assert np.ptp(shares[30][2]) > 0.5


def test_two_features_lose_their_order_gradually(figures) -> None:
    # Peres & Fontanari 2015: traits of a Poisson distribution, F = 2. Regions an agent vanish below a mean of 3.10, and
    # grow from there on as the mean does: there is no jump.
    sides, means, runs = (8, 16, 32), (1.0, 2.0, 3.0, 4.0, 5.0, 7.0), 20
    measures = {
        side: [_at_rest(side, runs, {"kind": "poisson", "mean": q}, features=2, traits=60) for q in means]
        for side in sides
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    density, largest = {}, {}
    for side in sides:
        density[side] = np.array([each["regions"].mean() / side**2 for each in measures[side]])
        largest[side] = np.array([each["largest_region"].mean() for each in measures[side]])
        left.plot(means, largest[side], "o-", label=f"{side} x {side}")
        right.plot(means, density[side], "o-", label=f"{side} x {side}")
    for axes, name in ((left, "largest region, share of agents"), (right, "regions an agent")):
        axes.axvline(3.10, color="0.6", ls="--", label="published")
        axes.set(xlabel="mean trait q", ylabel=name, title="Axelrod's model, F = 2")
    left.legend()
    figure.tight_layout()
    figure.savefig(figures / "axelrod_f2.png", dpi=120)
    above = [4, 5]
    # Below, ever fewer regions an agent, and a share of agents in the largest that does not go away.
    assert (density[32][:2] < 0.4 * density[8][:2]).all()
    assert (largest[32][:2] > 0.3).all()
    # Above, as many regions an agent on any lattice, and a largest one that becomes ever smaller.
    assert (density[32][above] > 0.75 * density[8][above]).all()
    assert (largest[32][above] < 0.75 * largest[16][above]).all()
    assert (largest[16][above] < 0.75 * largest[8][above]).all()
    # No jump: between two means no more than a third of agents leave the largest region.
    assert np.abs(np.diff(largest[32])).max() < 1 / 3


def test_a_little_drift_brings_monoculture_and_much_of_it_disorder(figures) -> None:
    # Klemm et al. 2003: fragments that would be at rest give way to one culture under rare drift.
    side, features, traits, runs = 10, 5, 30, 8
    options = {"n": side * side, "features": features, "traits": traits, "replicates": runs, "seed": 3}
    still = simulate("axelrod", "lattice", steps=_STEPS, until="frozen", record_every=_STEPS, **options)
    rates, shares = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), []
    for noise in rates:
        found = simulate("axelrod", "lattice", steps=200_000, record_every=10_000, noise=noise, **options)
        shares.append(np.mean([found.metrics(["largest_region"], k)["largest_region"] for k in range(10, 21)]))
    rest = still.metrics(["largest_region"])["largest_region"].mean()
    figure, axes = plt.subplots()
    axes.semilogx(rates, shares, "o-", label="after 100,000 steps")
    axes.axhline(rest, color="0.6", ls="--", label="at rest, without noise")
    axes.set(xlabel="noise", ylabel="largest region, share of agents", title="Drift, F = 5, q = 30, 10 x 10")
    axes.legend()
    figure.savefig(figures / "axelrod_drift.png", dpi=120)
    assert rest < 0.3
    assert max(shares) > 0.85
    assert shares[-1] < 0.1
    assert int(np.argmax(shares)) in (1, 2, 3)
