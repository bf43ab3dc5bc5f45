"""q-voter and majority rule on the complete graph against rate and master equations, Sznajd against counting."""

from __future__ import annotations

import os
from math import comb
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from opinionsim.classic import simulate

mpl.use("Agg")
from matplotlib import pyplot as plt

_RUNS = 2000


@pytest.fixture
def figures(tmp_path):
    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    plt.close("all")


def _chain(n: int, r: int, ties: str) -> np.ndarray:
    """Transition matrix of the number of agents at the high end, for one group of `r` of `n`."""
    chain = np.zeros((n + 1, n + 1))
    for high in range(n + 1):
        for inside in range(max(0, r - n + high), min(r, high) + 1):
            odds = comb(high, inside) * comb(n - high, r - inside) / comb(n, r)
            up = 1.0 if 2 * inside > r or (2 * inside == r and ties == "bias") else 0.0
            if 2 * inside == r and ties == "random":
                up = 0.5
            kept = 2 * inside == r and ties == "keep"
            if kept:
                chain[high, high] += odds
            else:
                chain[high, high - inside + r] += odds * up
                chain[high, high - inside] += odds * (1 - up)
    return chain


@pytest.mark.parametrize(("r", "ties"), [(3, "keep"), (4, "keep"), (4, "random"), (4, "bias")])
def test_majorities_follow_their_master_equation(r, ties, figures) -> None:
    n, high, sweeps = 24, 10, 6
    start = (np.arange(n) < high).astype(float)
    counts = simulate("majority", n, start, sweeps, seed=1, replicates=_RUNS, r=r, ties=ties).opinions.sum(axis=2)
    chain = np.linalg.matrix_power(_chain(n, r, ties), n // r)
    law, numbers, means = np.eye(n + 1)[high], np.arange(n + 1), []
    for step in range(sweeps + 1):
        mean = law @ numbers
        spread = np.sqrt(max(law @ numbers**2 - mean**2, 0))
        assert abs(counts[:, step].mean() - mean) <= 4.5 * spread / np.sqrt(_RUNS) + 1e-9
        cumulative = law.cumsum()[:-1]
        found = (counts[:, step, None] <= numbers[:-1]).mean(axis=0)
        assert np.abs(found - cumulative).max() < 1.95 / np.sqrt(_RUNS)  # Kolmogorov-Smirnov at 0.001
        means.append(mean)
        law = law @ chain

    figure, axes = plt.subplots()
    axes.plot(counts[:60].T, color="0.8", lw=0.5)
    axes.plot(counts.mean(axis=0), "o", label=f"{_RUNS} simulations")
    axes.plot(means, "C3", label="master equation")
    axes.set(xlabel="sweep", ylabel="agents at the high end", title=f"Majority rule, groups of {r}, ties: {ties}")
    axes.legend()
    figure.savefig(figures / f"majority_{r}_{ties}.png", dpi=120)


def test_q_voters_win_as_their_birth_death_chain_says(figures) -> None:
    n = 20

    def exits(q: int, epsilon: float) -> np.ndarray:
        """Probability that the high end wins from each number of agents at it: the chain's harmonic function."""
        chain = np.zeros((n + 1, n + 1))
        chain[0, 0] = chain[n, n] = 1.0
        for high in range(1, n):
            up_panel, down_panel = (high / (n - 1)) ** q, ((n - high - 1) / (n - 1)) ** q
            up = (1 - high / n) * (up_panel + epsilon * (1 - up_panel - down_panel))
            up_panel, down_panel = ((high - 1) / (n - 1)) ** q, ((n - high) / (n - 1)) ** q
            down = high / n * (down_panel + epsilon * (1 - up_panel - down_panel))
            chain[high, high - 1 : high + 2] = down, 1 - up - down, up
        inner = np.eye(n - 1) - chain[1:n, 1:n]
        return np.concatenate([[0], np.linalg.solve(inner, chain[1:n, n]), [1]])

    figure, axes = plt.subplots()
    for q, epsilon in ((1, 0.0), (2, 0.0), (3, 0.0), (3, 0.2)):
        theory, found = exits(q, epsilon), []
        for high in (4, 8, 12):
            start = (np.arange(n) < high).astype(float)
            steps = 600
            final = simulate("q-voter", n, start, steps, seed=2, replicates=600, record_every=steps, q=q,
                             epsilon=epsilon).final  # fmt: skip
            decided = (final == final[:, :1]).all(axis=1)
            assert decided.mean() > 0.99
            share = final[decided, 0].mean()
            error = np.sqrt(theory[high] * (1 - theory[high]) / 600)
            assert abs(share - theory[high]) < 4 * error + (1 - decided.mean())
            found.append(share)
        line = axes.plot(np.arange(n + 1) / n, theory, label=f"q = {q}, $\\varepsilon$ = {epsilon}")[0]
        axes.plot(np.array([4, 8, 12]) / n, found, "o", color=line.get_color())
    np.testing.assert_allclose(exits(1, 0.0), np.arange(n + 1) / n, atol=1e-12)
    axes.set(xlabel="share at first", ylabel="probability to win", title="q-voter: exit probability")
    axes.legend()
    figure.savefig(figures / "q_voter_exit.png", dpi=120)


def test_independence_takes_the_majority_away_where_theory_says(figures) -> None:
    n, q = 4000, 3
    critical = (q - 1) / (q - 1 + 2 ** (q - 1))
    assert critical == pytest.approx(1 / 3)
    grid = np.array([0.05, 0.15, 0.25, 0.3, 0.4, 0.6])
    found = []
    for p in grid:
        final = simulate("q-voter", n, np.ones(n), 300, seed=3, record_every=10, q=q, independence=float(p)).opinions[0]
        found.append(abs(2 * final[15:].mean() - 1))
    # At rest (1 - p) (c^3 (1 - c) - c (1 - c)^3) = p (2 c - 1) / 2, hence c (1 - c) = p / (2 (1 - p)) for c != 1/2.
    product = np.minimum(grid / (2 * (1 - grid)), 0.25)
    theory = np.sqrt(1 - 4 * product)
    assert np.abs(np.array(found) - theory).max() < 0.03

    figure, axes = plt.subplots()
    fine = np.linspace(0, 0.7, 300)
    axes.plot(fine, np.sqrt(1 - 4 * np.minimum(fine / (2 * (1 - fine)), 0.25)), "C3", label="mean field")
    axes.plot(grid, found, "o", label=f"N = {n}")
    axes.axvline(critical, color="0.6", ls="--")
    axes.set(xlabel="independence p", ylabel="size of the majority |2c - 1|", title="q-voter with independence, q = 3")
    axes.legend()
    figure.savefig(figures / "q_voter_independence.png", dpi=120)


def test_sznajd_on_the_complete_graph_is_decided_by_pairs() -> None:
    n, shares = 60, (10, 20, 30)
    start = np.repeat([0.0, 0.5, 1.0], shares)
    final = simulate("sznajd", n, start, 2, seed=4, replicates=_RUNS).final
    assert (final == final[:, :1]).all()
    pairs = np.array([k * (k - 1) for k in shares])
    theory = pairs / pairs.sum()
    found = np.array([(final[:, 0] == opinion).mean() for opinion in (0.0, 0.5, 1.0)])
    assert (np.abs(found - theory) < 4.5 * np.sqrt(theory * (1 - theory) / _RUNS)).all()
