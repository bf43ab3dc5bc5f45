"""Holme and Newman's transition between communities and consensus, its two limits, and fragmentation."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from opinionsim.classic import Trajectories, simulate
from opinionsim.networks import Network

mpl.use("Agg")
from matplotlib import pyplot as plt

#: Ties an agent, agents an opinion, the transition and the exponent of its order parameter, as published.
_TIES, _AGENTS, _CRITICAL, _EXPONENT = 4, 10, 0.458, 0.61
_REWIRE = (0.3, 0.4, 0.43, 0.458, 0.49, 0.53, 0.6)


@pytest.fixture
def figures(tmp_path):
    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    plt.close("all")


def _runs(n: int, rewire: float, runs: int, seed: int, opinions: int | None = None, **settings) -> Trajectories:
    network = {"kind": "erdos-renyi", "p": _TIES / (n - 1)}
    initial = {"kind": "levels", "count": n // _AGENTS if opinions is None else opinions}
    return simulate(
        "holme-newman", network, initial, 20_000, seed, n=n, replicates=runs, until="frozen", record_every=20_000,
        rewire=rewire, **settings,
    )  # fmt: skip


def _communities(found: Trajectories) -> list[np.ndarray]:
    """The sizes of communities, holders of one opinion, at the end of each run."""
    assert (found.ended >= 0).all(), "all runs have come to rest"
    return [np.unique(final, return_counts=True)[1] for final in found.final]


def _labels(network: Network) -> np.ndarray:
    pairs = network.edges[0]
    matrix = csr_array((np.ones(len(pairs)), pairs.T), shape=(network.n, network.n))
    return connected_components(matrix, directed=False)[1]


@pytest.mark.timeout(1200)
def test_communities_form_above_the_published_rewiring(figures) -> None:
    sizes, runs = (200, 400, 800, 1600), {200: 200, 400: 120, 800: 80, 1600: 40}
    largest = np.empty((len(sizes), len(_REWIRE)))
    for row, n in enumerate(sizes):
        for column, rewire in enumerate(_REWIRE):
            # A network for every ten runs.
            found = [_runs(n, rewire, 10, seed) for seed in range(runs[n] // 10)]
            largest[row, column] = np.mean([each.max() / n for part in found for each in _communities(part)])
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    for n, shares in zip(sizes, largest, strict=True):
        left.plot(_REWIRE, shares, "o-", label=f"N = {n}")
        middle.plot(_REWIRE, shares * n**_EXPONENT, "o-", label=f"N = {n}")
    left.set(xlabel="rewire", ylabel="share of the largest community")
    middle.set(xlabel="rewire", ylabel=f"share of the largest community * N^{_EXPONENT}", yscale="log")
    middle.axvline(_CRITICAL, color="0.6", lw=0.8)
    left.legend()
    for rewire in (0.04, _CRITICAL, 0.96):
        counts = np.concatenate([each for seed in range(3) for each in _communities(_runs(1600, rewire, 10, seed))])
        edges = np.unique(np.geomspace(1, 1601, 22).astype(int))
        right.plot(edges[:-1], np.histogram(counts, edges, density=True)[0], "o-", ms=3, label=f"rewire = {rewire}")
    right.set(xlabel="size of a community", ylabel="probability, N = 1600", xscale="log", yscale="log")
    right.legend()
    figure.savefig(figures / "holme_newman.png", dpi=110)
    # Below the transition one community takes most agents whatever their number; above it none does.
    assert (largest[:, 0] > 0.7).all()
    assert largest[-1, -1] < 0.15
    assert (np.diff(largest[:, -1]) < 0).all()
    # Scaled curves of different N cross at the transition: of two, that of more agents lies above before it.
    scaled = np.log(largest * np.array(sizes)[:, None] ** _EXPONENT)
    gaps = scaled[2:] - scaled[:2]
    crossings = [np.interp(0, -gap, _REWIRE) for gap in gaps]
    print("crossings", crossings)
    assert np.abs(np.array(crossings) - _CRITICAL).max() < 0.04


def test_without_copying_communities_are_the_holders_of_each_opinion_at_the_start() -> None:
    found = _runs(2000, 1.0, 4, 1, opinions=20)
    np.testing.assert_array_equal(found.final, found.opinions[:, 0])
    for network, final in zip(found.networks, found.final, strict=True):
        pairs = network.edges[0]
        assert (final[pairs[:, 0]] == final[pairs[:, 1]]).all()
        # Each is a random graph of 4 ties an agent: it has one large component, and few agents outside.
        labels = _labels(network)
        large = [np.bincount(labels[final == opinion]).max() / (final == opinion).sum() for opinion in np.unique(final)]
        assert 0.95 < np.mean(large) < 1


def test_without_rewiring_communities_are_the_components_of_the_network() -> None:
    found = _runs(400, 0.0, 4, 1)
    labels = _labels(found.network)
    assert np.unique(labels).size > 1
    for network, final in zip(found.networks, found.final, strict=True):
        np.testing.assert_array_equal(network.edges[0], found.network.edges[0])
        for label in np.unique(labels):
            assert np.unique(final[labels == label]).size == 1


def test_two_opinions_break_the_network_in_two_where_ties_are_moved_often(figures) -> None:
    rewire, shares = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.7]), []
    for each in rewire:
        found = simulate(
            "holme-newman", {"kind": "random-regular", "d": _TIES}, "uniform", 20_000, 3, n=1000, replicates=30,
            until="frozen", record_every=20_000, rewire=each, ties="discordant",
        )  # fmt: skip
        assert (found.ended >= 0).all()
        shares.append(np.mean([np.bincount(_labels(network)).max() / 1000 for network in found.networks]))
    figure, axes = plt.subplots()
    axes.plot(rewire, shares, "o-")
    axes.set(xlabel="rewire", ylabel="share of the largest component", title="discordant ties, N = 1000, k = 4")
    figure.savefig(figures / "coevolving_voter.png", dpi=110)
    # Vazquez, Eguíluz & San Miguel 2008: connected below about 0.38 for 4 ties an agent, in two halves above.
    assert shares[0] > 0.95
    assert shares[1] > 0.9
    assert 0.5 <= shares[-1] < 0.6
    assert 0.5 <= shares[-2] < 0.65
