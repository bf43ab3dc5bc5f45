"""DeGroot, Friedkin-Johnsen and Altafini against their closed forms."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

from opinionsim.classic import simulate

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture
def figures(tmp_path):
    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    plt.close("all")


def _directed(seed: int, n: int = 40) -> np.ndarray:
    """A strongly connected, weighted, directed network: [listener, speaker]."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 6, (n, n)) * (rng.random((n, n)) < 0.1)
    weights = weights + np.roll(np.eye(n), 1, axis=1)
    np.fill_diagonal(weights, 0)
    return weights.astype(float)


def test_degroot_consensus_is_weighted_by_the_left_eigenvector(figures) -> None:
    weights = _directed(1)
    own, start = np.random.default_rng(2).uniform(0.5, 2, 40), np.random.default_rng(3).random(40)
    shares = weights + np.diag(own)
    shares /= shares.sum(axis=1, keepdims=True)
    values, vectors = np.linalg.eig(shares.T)
    power = np.real(vectors[:, np.argmax(values.real)])
    consensus = power @ start / power.sum()
    found = simulate("degroot", weights, start, 200, self_weight=own).opinions[0]
    np.testing.assert_allclose(found[-1], consensus, rtol=0, atol=1e-12)
    # Disagreement decays by the second largest modulus of an eigenvalue.
    second = np.sort(np.abs(values))[-2]
    spread = np.ptp(found, axis=1)
    rate = np.polyfit(np.arange(15, 60), np.log(spread[15:60]), 1)[0]
    assert rate == pytest.approx(np.log(second), rel=0.05)
    # On an undirected network the weights are known without an eigenvector: what each agent hears in all.
    graph = nx.barabasi_albert_graph(200, 2, seed=4)
    start = np.random.default_rng(5).random(200)
    degrees = np.array([graph.degree(node) + 1 for node in range(200)])
    end = simulate("degroot", graph, start, 600).final[0]
    np.testing.assert_allclose(end, degrees @ start / degrees.sum(), rtol=0, atol=1e-10)

    figure, axes = plt.subplots()
    axes.plot(found, color="0.6", lw=0.7)
    axes.axhline(consensus, color="C3", label="left eigenvector")
    axes.set(xlim=(0, 30), xlabel="step", ylabel="opinion", title="DeGroot: consensus")
    axes.legend()
    figure.savefig(figures / "degroot.png", dpi=120)


def test_friedkin_johnsen_rests_at_its_equilibrium(figures) -> None:
    weights = _directed(6)
    rng = np.random.default_rng(7)
    start, susceptibility = rng.random(40), rng.uniform(0.2, 1, 40)
    susceptibility[:5] = 1.0
    shares = weights + np.eye(40)
    shares /= shares.sum(axis=1, keepdims=True)
    mixed = np.diag(susceptibility) @ shares
    limit = np.linalg.inv(np.eye(40) - mixed) @ ((1 - susceptibility) * start)
    found = simulate("friedkin-johnsen", weights, start, 300, susceptibility=susceptibility).opinions[0]
    np.testing.assert_allclose(found[-1], limit, rtol=0, atol=1e-12)
    # Two agents by hand: x = a y + (1 - a) x0 has x - y = (1 - a) / (1 + a) of the gap at first.
    for a in (0.2, 0.5, 0.9):
        pair = simulate("friedkin-johnsen", 2, [0.0, 1.0], 600, susceptibility=a, self_weight=0).final[0]
        assert np.diff(pair)[0] == pytest.approx((1 - a) / (1 + a), abs=1e-12)
    # The deviation decays by the spectral radius of A W.
    radius = np.abs(np.linalg.eigvals(mixed)).max()
    away = np.abs(found - limit).max(axis=1)
    rate = np.polyfit(np.arange(20, 50), np.log(away[20:50]), 1)[0]
    assert rate == pytest.approx(np.log(radius), rel=0.05)

    figure, axes = plt.subplots()
    axes.plot(found[:25], color="0.6", lw=0.7)
    axes.plot(np.full(40, 24.5), limit, "_", color="C3", label="$(I - AW)^{-1}(I - A)x(0)$")
    axes.set(xlabel="step", ylabel="opinion", title="Friedkin-Johnsen: persistent disagreement")
    axes.legend()
    figure.savefig(figures / "friedkin_johnsen.png", dpi=120)


def test_altafini_parts_in_two_exactly_when_balanced(figures) -> None:
    graph = nx.connected_watts_strogatz_graph(60, 6, 0.2, seed=8)
    ties = nx.to_numpy_array(graph)
    rng = np.random.default_rng(9)
    sides = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    start = sides * rng.uniform(-0.4, 1, 60)
    balanced = ties * np.outer(sides, sides)
    found = simulate("altafini", balanced, start, 800).opinions[0]
    # Turning one side round makes it DeGroot's model.
    friends = simulate("degroot", ties, start * sides, 800, range=(-1, 1)).opinions[0]
    np.testing.assert_allclose(found, friends * sides, rtol=0, atol=1e-12)
    weight = ties.sum(axis=1) + 1
    level = weight @ (start * sides) / weight.sum()
    np.testing.assert_allclose(found[-1], level * sides, rtol=0, atol=1e-9)
    # One more foe where a triangle was balanced, and both vanish.
    one, two, _ = next(each for each in nx.enumerate_all_cliques(graph) if len(each) == 3)
    broken = balanced.copy()
    broken[one, two] *= -1
    broken[two, one] *= -1
    gone = simulate("altafini", broken, start, 8000, record_every=10).opinions[0]
    assert np.abs(gone[-1]).max() < 1e-6
    assert abs(level) > 1e-3

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    left.plot(found[:100], color="0.6", lw=0.6)
    left.hlines([level, -level], 0, 100, color="C3")
    left.set(xlabel="step", ylabel="opinion", title="balanced: two sides")
    right.plot(np.arange(len(gone))[:300] * 10, gone[:300], color="0.6", lw=0.6)
    right.set(xlabel="step", title="one sign turned: all vanish")
    figure.savefig(figures / "altafini.png", dpi=120)
