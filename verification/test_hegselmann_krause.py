"""Hegselmann-Krause: ranks instead of pairs, finite rest, and the clusters of the bifurcation diagram."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np

from opinionsim.classic import simulate

mpl.use("Agg")
from matplotlib import pyplot as plt


def _naive(opinions: np.ndarray, epsilon: float) -> np.ndarray:
    near = np.abs(opinions[:, None] - opinions) <= epsilon
    return near @ opinions / near.sum(axis=1)


def test_steps_in_rank_are_the_definition_and_come_to_rest(tmp_path) -> None:
    start = np.random.default_rng(0).random(2000)
    for epsilon in (0.05, 0.25):
        found = simulate("hegselmann-krause", 2000, start, 120, epsilon=epsilon).opinions[0]
        for step in range(12):
            np.testing.assert_allclose(found[step + 1], _naive(found[step], epsilon), rtol=0, atol=1e-12)
        ranked = found[:, np.argsort(start)]
        assert (np.diff(ranked, axis=1) >= 0).all(), "order is preserved"
        moves = np.abs(np.diff(found, axis=0)).max(axis=1)
        rest = int(np.argmax(moves == 0))
        assert 0 < rest < 60, "rest after finitely many steps"
        assert (moves[rest:] == 0).all()
        clusters = np.unique(found[-1])
        assert (np.diff(clusters) > epsilon).all()

    # Evenly spaced opinions, as in the article: consensus well above 0.2, plurality below.
    grid = (np.arange(12, 230, 6) + 0.5) / 625  # between two distances, so that rounding decides nothing at first
    even = (np.arange(1, 626) - 0.5) / 625
    ends = [np.unique(simulate("hegselmann-krause", 625, even, 400, record_every=400, epsilon=float(e)).final[0])
            for e in grid]  # fmt: skip
    counts = np.array([len(each) for each in ends])
    assert (counts[grid > 0.25] == 1).all()
    assert (counts[grid < 0.15] >= 2).all()
    assert (counts <= 1 / grid + 1).all()
    assert (counts[grid < 0.15] <= 1.1 / (2 * grid[grid < 0.15]) + 1).all(), "about 1 / (2 epsilon), or fewer"
    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.plot(simulate("hegselmann-krause", 200, start[:200], 12, epsilon=0.1).opinions[0], color="0.4", lw=0.5)
    left.set(xlabel="step", ylabel="opinion", title=r"$\varepsilon = 0.1$")
    for epsilon, clusters in zip(grid, ends, strict=True):
        right.plot(np.full(len(clusters), epsilon), clusters, ".", color="C0")
    right.set(xlabel=r"confidence $\varepsilon$", ylabel="clusters", title="625 evenly spaced opinions")
    figure.savefig(folder / "hegselmann_krause.png", dpi=120)
    plt.close(figure)
