"""Models of pairs against theory: exit probabilities, conserved means, cluster numbers, the regimes of Lorenz 2021."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from opinionsim.classic import simulate
from opinionsim.networks import Network

matplotlib.use("Agg")

Save = Callable[[str, Any], None]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a figure to the folder of figures."""
    folder = Path(os.environ.get("OPINIONSIM_FIGURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def write(name: str, figure: Any) -> None:
        figure.savefig(folder / f"{name}.png", dpi=120, bbox_inches="tight")

    return write


def _figure(columns: int = 1) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * columns, 3.4))
    return figure, figure.subplots(1, columns)


def _exits(network: Any, initial: np.ndarray, replicates: int, **settings: Any) -> float:
    """Part of the runs that end in consensus at the upper end."""
    steps = 400
    final = simulate("voter", network, initial, steps, 11, replicates=replicates, record_every=steps, threads=1,
                     **settings).final  # fmt: skip
    agreed = final.min(axis=1) == final.max(axis=1)
    assert agreed.all(), "every run must have ended"
    return float(final[:, 0].mean())


def test_voter_exit_probability_is_the_initial_share_on_the_complete_graph(save: Save) -> None:
    n, replicates = 20, 1000
    shares = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    found = [_exits(n, (np.arange(n) < share * n).astype(float), replicates) for share in shares]
    errors = np.sqrt(shares * (1 - shares) / replicates)
    assert (np.abs(found - shares) < 4 * errors).all()
    figure, axes = _figure()
    axes.plot([0, 1], [0, 1], color="0.6", label="theory")
    axes.errorbar(shares, found, 2 * errors, fmt="o", label=f"{replicates} runs, N = {n}")
    axes.set(xlabel="initial share", ylabel="exit probability", title="Voter model, complete graph")
    axes.legend()
    save("voter_exit_probability", figure)


def test_voter_exit_probability_weighs_agents_by_who_is_drawn_first(save: Save) -> None:
    # Hub 0 is joined to 11 others, of which 1..4 form a square; hub and square begin at 1.
    edges = [(0, other) for other in range(1, 12)] + [(1, 2), (2, 3), (3, 4), (4, 1)]
    network = Network.from_edges(edges, 12)
    initial = (np.arange(12) < 3).astype(float)
    degree = np.bincount(network.listeners).astype(float)
    replicates = 2000
    rows = []
    for pick, weight in (("edge", degree**0), ("listener", degree), ("speaker", 1 / degree)):
        theory = float((weight * initial).sum() / weight.sum())
        rows.append((pick, theory, _exits(network, initial, replicates, pick=pick)))
    for _, theory, found in rows:
        assert abs(found - theory) < 4 * np.sqrt(theory * (1 - theory) / replicates)
    # The three theories are so far apart that each test can tell them.
    theories = sorted(theory for _, theory, _ in rows)
    assert np.diff(theories).min() > 8 * 0.5 / np.sqrt(replicates)
    figure, axes = _figure()
    places = np.arange(3)
    axes.bar(places - 0.2, [row[1] for row in rows], 0.4, label="weighted initial share")
    axes.bar(places + 0.2, [row[2] for row in rows], 0.4, label=f"{replicates} runs")
    axes.set(xticks=places, ylabel="exit probability", ylim=(0, 0.8), title="Voter model on a heterogeneous graph")
    axes.set_xticklabels(["pair first\n(share)", "listener first\n(by degree)", "speaker first\n(by 1/degree)"])
    axes.legend()
    save("voter_heterogeneous", figure)


def _major(final: np.ndarray, epsilon: float) -> int:
    """Clusters of more than 2 % of agents, at rest."""
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(np.sort(final)) > epsilon, [True]])))
    return int((sizes > 0.02 * final.size).sum())


def test_deffuant_conserves_the_mean_and_leaves_one_cluster_per_two_confidences(save: Save) -> None:
    bounds, sizes = np.array([0.05, 0.07, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5]), (250, 1000, 4000)
    counts = np.empty((len(sizes), bounds.size))
    for row, n in enumerate(sizes):
        for column, epsilon in enumerate(bounds):
            found = simulate("deffuant", n, "uniform", 20_000, 3, replicates=10, until="frozen", record_every=20_000,
                             epsilon=epsilon)  # fmt: skip
            assert (found.ended >= 0).all()
            np.testing.assert_allclose(found.final.mean(axis=1), found.opinions[:, 0].mean(axis=1), rtol=0, atol=1e-12)
            counts[row, column] = np.mean([_major(each, epsilon) for each in found.final])
    # The rule of thumb of the source, the whole part of 1/(2 epsilon), is exact for few clusters, and one off for many.
    rule = np.floor(1 / (2 * bounds) + 1e-9)
    assert (np.abs(counts[-1] - rule) <= np.where(rule > 3, 1.5, 0.2)).all()
    assert (np.diff(counts[-1]) <= 0).all()
    assert (counts[:, -1] == 1).all()
    figure, axes = _figure()
    axes.plot(bounds, rule, color="0.6", drawstyle="steps-post", label="whole part of 1 / (2 epsilon)")
    for n, each in zip(sizes, counts, strict=True):
        axes.plot(bounds, each, "o", ms=4, label=f"N = {n}, mean of 10 runs")
    axes.set(xlabel="epsilon", ylabel="clusters above 2 % of agents", title="Deffuant-Weisbuch, at rest")
    axes.legend(fontsize="small")
    save("deffuant_clusters", figure)


def test_deffuant_splits_in_two_at_the_published_confidence(save: Save) -> None:
    # Ben-Naim, Krapivsky & Redner 2003: opinions in -D..D and confidence 1 split where D is 1.871.
    critical, sizes, bounds = 1 / (2 * 1.871), (250, 1000, 4000), np.arange(0.23, 0.311, 0.01)
    second = np.empty((len(sizes), bounds.size))
    for row, n in enumerate(sizes):
        for column, epsilon in enumerate(bounds):
            found = simulate("deffuant", n, "uniform", 20_000, 5, replicates=60, until="frozen", record_every=20_000,
                             epsilon=epsilon)  # fmt: skip
            second[row, column] = np.mean([_major(each, epsilon) > 1 for each in found.final])
    # Where half of the runs have split, and how wide the range is in which chance decides.
    halves = [np.interp(-0.5, -shares, bounds) for shares in second]
    widths = [np.interp(-0.25, -shares, bounds) - np.interp(-0.75, -shares, bounds) for shares in second]
    print("half of the runs split at", halves, "within", widths)
    figure, axes = _figure()
    for n, shares in zip(sizes, second, strict=True):
        axes.plot(bounds, shares, "o-", ms=4, label=f"N = {n}")
    axes.axvline(critical, color="0.6", lw=1, label="N without end, 1 / (2 · 1.871)")
    axes.set(xlabel="epsilon", ylabel="runs with several clusters above 2 %", title="Deffuant-Weisbuch, 60 runs each")
    axes.legend(fontsize="small", loc="upper right")
    save("deffuant_transition", figure)
    assert abs(halves[-1] - critical) < 0.01
    assert widths[0] > widths[1] > widths[2]


def test_algorithmic_bias_fragments(save: Save) -> None:
    gammas, epsilon = np.array([0.0, 0.5, 1.0, 1.5]), 0.32
    effective, finals = [], []
    for gamma in gammas:
        found = simulate("algorithmic-bias", 200, "uniform", 200, 3, replicates=8, record_every=200, threads=1,
                         gamma=gamma, epsilon=epsilon)  # fmt: skip
        np.testing.assert_allclose(found.final.mean(axis=1), found.opinions[:, 0].mean(axis=1), rtol=0, atol=1e-12)
        numbers = []
        for row in np.sort(found.final, axis=1):
            sizes = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(row) > 0.02, [True]])))
            numbers.append(sizes.sum() ** 2 / (sizes**2).sum())
        effective.append(numbers)
        finals.append(found.final[0])
    means, errors = np.mean(effective, axis=1), np.std(effective, axis=1, ddof=1) / np.sqrt(8)
    assert means[0] < 1.6
    assert means[-1] - means[0] > 4 * np.hypot(errors[0], errors[-1])
    figure, axes = _figure(2)
    axes[0].errorbar(gammas, means, 2 * errors, fmt="o-")
    axes[0].set(xlabel="gamma", ylabel="effective clusters", title=f"Algorithmic bias, epsilon = {epsilon}")
    for gamma, final in zip(gammas, finals, strict=True):
        axes[1].plot(final, np.full(final.size, gamma), "|")
    axes[1].set(xlabel="opinion after 200 sweeps", ylabel="gamma", title="one run each")
    save("algorithmic_bias", figure)


#: Settings, and (bias, diversity, fragmentation), means of 20 runs after 400 sweeps.
_REGIMES: dict[str, tuple[dict[str, Any], tuple[float, float, float]]] = {
    "1-A": ({"rho": 0, "motivated": False}, (0.97, 0.15, 0.15)),
    "1-B": ({"rho": 0, "motivated": False, "theta": 0.17}, (0.04, 0.32, 0.09)),
    "1-C": ({"rho": 1, "motivated": False}, (0.01, 0.05, 0.08)),
    "2-A": ({"rho": 0, "k": 2}, (0.05, 0.77, 0.52)),
    "2-B": ({"rho": 0.9, "k": 10}, (0.03, 0.43, 0.50)),
    "2-C": ({"rho": 1, "k": 10}, (0.01, 0.26, 0.40)),
}


def _regime(opinions: np.ndarray) -> np.ndarray:
    """Bias, diversity and fragmentation of each row, (3, R), written from their definitions."""
    half = 3.5
    grid = np.arange(-350, 351) * 0.01
    spread = opinions.std(axis=1, ddof=1)
    ruggedness = []
    for row in opinions:
        kernels = np.exp(-0.5 * ((grid[:, None] - row) / 0.1) ** 2) / (0.1 * np.sqrt(2 * np.pi))
        ruggedness.append(np.abs(np.diff(kernels.mean(axis=1))).sum())
    return np.stack([np.abs(opinions.mean(axis=1)) / half, spread / half, spread / (4 * half) * np.array(ruggedness)])


def test_regimes_of_lorenz(save: Save) -> None:
    figure, axes = _figure(len(_REGIMES))
    for axis, (name, (settings, expected)) in zip(axes, _REGIMES.items(), strict=True):
        found = simulate("lorenz", 500, "normal", 400, 5, replicates=20, record_every=400, threads=1, **settings)
        measured = _regime(found.final)
        errors = measured.std(axis=1, ddof=1) / np.sqrt(20)
        # Both are means of 20 runs, those expected rounded to 0.01.
        assert (np.abs(measured.mean(axis=1) - expected) < 4 * np.sqrt(2) * errors + 0.005).all(), (
            name,
            measured.mean(1),
        )
        axis.hist(found.final.ravel(), np.linspace(-3.5, 3.5, 71), orientation="horizontal", density=True)
        labels = (f"{value:.2f} ({known:.2f})" for value, known in zip(measured.mean(axis=1), expected, strict=True))
        axis.set(title=f"{name}\n" + ", ".join(labels), xticks=[])
    axes[0].set_ylabel("opinion after 400 sweeps, 20 runs")
    figure.suptitle("Lorenz, Neumann & Schroeder 2021: bias, diversity, fragmentation (expected)", y=1.08)
    save("lorenz_regimes", figure)


def test_lorenz_sharpens_into_bounded_confidence(save: Save) -> None:
    """With rho = 1 and no idiosyncrasy, the distance to one-sided Deffuant on equal pairs vanishes as k grows."""
    rng = np.random.default_rng(2)
    n, events = 60, 3000
    first, gap = rng.integers(n, size=events), rng.integers(1, n, size=events)
    pairs = np.stack([first, (first + gap) % n], axis=1)
    initial = rng.uniform(-3.5, 3.5, n)
    bounded = simulate("deffuant", n, initial, pairs=pairs, record_every=events, mu=0.2, epsilon=1, range=(-3.5, 3.5))
    sharpness = np.array([2, 8, 32, 128, 2048, 10**9])
    distance = [
        np.abs(simulate("lorenz", n, initial, pairs=pairs, record_every=events, rho=1, alpha=0.2, latitude=1, k=k,
                        theta=0.0).final - bounded.final).mean()
        for k in sharpness.tolist()
    ]  # fmt: skip
    assert distance[-1] == 0
    assert distance[0] > 0.1 > distance[-2]
    figure, axes = _figure()
    axes.plot(sharpness[:-1], distance[:-1], "o-")
    axes.set(xscale="log", xlabel="k", ylabel="mean distance of final opinions", title="Lorenz (rho = 1) to Deffuant")
    save("lorenz_to_deffuant", figure)
