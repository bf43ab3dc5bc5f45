"""Noise against theory: the bistability of noisy voters, and the dissolution of clusters of bounded confidence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from opinionsim.classic import simulate

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


def _figure(columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * columns, 3.4), layout="constrained")
    return figure, figure.subplots(1, columns)


def test_noisy_voters_flip_between_two_majorities_below_the_critical_noise(save: Save) -> None:
    n, runs = 100, 4000
    figure, axes = _figure(3)
    for ax, times in zip(axes, (0.2, 1.0, 5.0), strict=True):
        noise = times * 2 / (n + 1)
        a = (n - 1) * noise / (1 - noise) / 2
        # Differences decay at the rate of the noise.
        steps = int(8 / noise)
        found = simulate("noisy-voter", n, "uniform", steps, 3, replicates=runs, record_every=steps, threads=1,
                         noise=noise)  # fmt: skip
        highs = found.final.sum(axis=1).astype(int)
        expected = stats.betabinom(n, a, a).pmf(np.arange(n + 1))
        parts = np.arange(0, n, 5)
        counts = np.add.reduceat(np.bincount(highs, minlength=n + 1), parts)
        wanted = np.add.reduceat(expected, parts) * runs
        kept = wanted >= 5
        assert stats.chisquare(counts[kept], wanted[kept] * counts[kept].sum() / wanted[kept].sum()).pvalue > 1e-4
        ax.bar(parts / n, counts / runs / 0.05, 0.05, align="edge", color="#7FB0C8", label=f"{runs} runs")
        ax.plot(np.arange(n + 1) / n, expected * n, color="black", linewidth=1, label="beta-binomial")
        ax.set(title=f"noise {times:g} times critical", xlabel="share at the upper end", ylabel="density")
        ax.set_ylim(0, min(8, 1.15 * (expected * n).max()))
        # More at the ends than in the middle below, even at it, fewer above.
        ends, middle = (highs < n / 4).mean() + (highs >= 3 * n / 4).mean(), (np.abs(highs - n / 2) < n / 4).mean()
        assert np.sign(np.round(ends - middle, 1)) == np.sign(1 - times)
    axes[0].legend(fontsize="small")
    save("noisy_voter_bistability", figure)


def test_the_critical_noise_of_noisy_voters_falls_as_one_over_the_size(save: Save) -> None:
    sizes, runs, spread = [10, 20, 50, 100, 200], 3000, []
    for n in sizes:
        noise = 2 / (n + 1)
        found = simulate("noisy-voter", n, "uniform", 5 * n, 4, replicates=runs, record_every=5 * n, threads=1,
                         noise=noise)  # fmt: skip
        share = found.final.mean(axis=1)
        # At it every number of agents is as probable as any other.
        theory = (n + 2) / (12 * n)
        error = np.sqrt((np.mean((share - 0.5) ** 4) - theory**2) / runs)
        assert abs(np.mean((share - 0.5) ** 2) - theory) < 4 * error
        spread.append((np.mean((share - 0.5) ** 2), theory, 2 * error))
    figure, ax = _figure(1)
    found_, theory_, errors = np.array(spread).T
    ax.plot(sizes, theory_, color="0.6", label="evenly spread")
    ax.errorbar(sizes, found_, errors, fmt="o", label=f"{runs} runs each")
    ax.set(xscale="log", xlabel="N", ylabel="variance of the share", title="Noisy voter at noise 2 / (N + 1)")
    ax.legend()
    save("noisy_voter_critical", figure)


def _growth(u: float) -> float:
    """Growth of a mode q = u / epsilon on evenly spread opinions, per meeting of each agent and unit of epsilon.

    The master equation of Pineda, Toral & Hernandez-Garcia 2009, linear about the even spread: two of mu = 1/2 within
    confidence both come to their midpoint.
    """
    return (16 * np.sin(u / 2) - 4 * np.sin(u)) / u - 4


def test_clusters_of_bounded_confidence_dissolve_at_the_critical_noise(save: Save) -> None:
    epsilon = 0.1
    fastest = minimize_scalar(lambda u: -_growth(u), bounds=(1.5, 4), method="bounded")
    growth = -fastest.fun * epsilon
    critical = growth / (1 + growth)
    assert critical == pytest.approx(0.1033, abs=5e-4)
    # The mode that a window of 0.7 holds three times leaks nothing of the even spread; it is within 4 % of the fastest.
    q = 2 * np.pi * 3 / 0.7
    assert q * epsilon == pytest.approx(fastest.x, rel=0.04)
    parts, order = np.array([0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0]), {}
    for n in (2000, 8000):
        order[n] = []
        for part in parts:
            found = simulate("deffuant", n, "uniform", 600, 1, replicates=4, record_every=50, threads=1,
                             epsilon=epsilon, noise=part * critical)  # fmt: skip
            opinions = found.opinions[:, 5:]
            inside = (opinions > 0.15) & (opinions < 0.85)
            waves = np.abs((np.exp(1j * q * opinions) * inside).sum(axis=-1)) ** 2 / inside.sum(axis=-1) ** 2
            order[n].append(waves.mean())
    small, large = np.array(order[2000]), np.array(order[8000])
    # Order does not depend on the size below the critical noise, and above it falls as one over the size.
    assert (large[:3] > 0.05).all()
    np.testing.assert_allclose(large[:3], small[:3], rtol=0.35)
    assert (large[-2:] < 0.003).all()
    assert (small[-2:] / large[-2:] > 2.5).all()
    figure, ax = _figure(1)
    for n, values in order.items():
        ax.plot(parts, values, "o-", label=f"N = {n}")
    ax.axvline(1, color="0.6", linewidth=1, label="linear stability")
    ax.set(yscale="log", xlabel="noise / critical noise", ylabel="order", title="Deffuant-Weisbuch, epsilon = 0.1")
    ax.legend()
    save("deffuant_noise", figure)
