"""Noise, zealots and media act as often as the transition says, and noisy voters are beta-binomial."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from opinionsim.classic import MODELS, Transition, simulate, transition
from opinionsim.networks import Network

#: Models of pairs with noise, zealots and media, and settings under which agents move.
PAIRS: dict[str, dict[str, Any]] = {
    "algorithmic-bias": {"epsilon": 0.4, "mu": 0.3, "gamma": 1.3},
    "deffuant": {"epsilon": 0.4, "mu": 0.3},
    "jager-amblard": {"range": (0.0, 1.0), "u": 0.4, "t": 0.7, "mu": 0.3},
    "noisy-voter": {"bias": 0.8},
    "voter": {"bias": 0.3},
    "weighted-linear": {"h": 1.5},
}


#: Statistics beyond these come up once in ten thousand tests.
RARE = 1e-4


def _fits(expected: Transition, found: np.ndarray, low: float, high: float) -> None:
    """Drawn opinions (R,) come from the distribution of one receiver: chi-square of masses, KS of the rest."""
    values, places = np.unique(expected.values[0].round(12), return_inverse=True)
    shares = np.bincount(places.ravel(), expected.probabilities[0])
    at = np.abs(found[:, None] - values) < 1e-9
    rest = found[~at.any(axis=1)]
    counts = np.append(at.sum(axis=0), rest.size)
    wanted = np.append(shares, expected.rest[0]) * found.size
    assert not counts[wanted < 1e-6].any(), "nothing that has no probability"
    seen = wanted > 1e-6
    if seen.sum() > 1:
        assert stats.chisquare(counts[seen], wanted[seen] * counts.sum() / wanted[seen].sum()).pvalue > RARE
    if rest.size:
        assert stats.kstest(rest, "uniform", (low, high - low)).pvalue > RARE
        middle = np.array([(low + high) / 2])
        assert expected.density is not None
        assert expected.density(middle)[0] * (high - low) == pytest.approx(expected.rest[0])


@pytest.mark.parametrize("zealot", [0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_transition_says_what_pairs_do(name: str, zealot: int) -> None:
    size = 2000
    settings = {**PAIRS[name], "noise": 0.3, "media": 0.4, "media_opinions": [0.0, 1.0, 1.0], "zealot": zealot}
    initial = np.zeros(2 * size) + 0.0
    initial[size:] = 1.0 if MODELS[name].kind == "discrete" else 0.25
    pairs = np.stack([np.arange(size, 2 * size), np.arange(size)], axis=1)  # every listener once
    found = simulate(name, 2 * size, initial, pairs=pairs, seed=4, machine=False, **settings).final[0]
    expected = transition(name, initial[:1], initial[-1:], **settings)
    _fits(expected, found[:size], 0.0, 1.0)
    assert (found[size:] == initial[size:]).all()


@pytest.mark.parametrize("network", [None, "star"])
def test_transition_says_what_groups_do(network: str | None) -> None:
    # Each agent has one partner, so the first step, all at once, is known.
    joined = 2 if network is None else Network.from_edges([(0, 1)], 2)
    options: dict[str, Any] = {"replicates": 1500, "steps": 1, "threads": 1, "seed": 6, "machine": False}
    settings: dict[str, Any] = {"noise": 0.35, "epsilon": 0.5}
    found = simulate("hegselmann-krause", joined, [0.2, 0.6], **options, **settings).final
    _fits(transition("hegselmann-krause", [0.2], [0.6], **settings), found[:, 0], 0.0, 1.0)
    settings = {"q": 1, "media": 0.3, "media_opinions": [1.0, 0.0, 1.0], "independence": 0.2, "anticonformity": 0.1}
    found = simulate("q-voter", joined, [0.0, 0.0], order="synchronous", **options, **settings).final
    _fits(transition("q-voter", [0.0], [0.0], **settings), found[:, 0], 0.0, 1.0)
    settings = {"r": 2, "noise": 0.35, "ties": "bias"}
    found = simulate("majority", joined, [0.0, 1.0], **options, **settings).final
    _fits(transition("majority", [0.0], [1.0], **settings), found[:, 0], 0.0, 1.0)


@pytest.mark.parametrize("network", ["complete", "ring"])
def test_biased_turns_without_a_meeting_are_as_frequent_as_they_should_be(network: str) -> None:
    # Agents that meet nobody within confidence move by noise and media alone, as the transition says.
    n, runs = 12, 150
    joined = n if network == "complete" else Network.from_edges([(a, (a + 1) % n) for a in range(n)], n)
    settings = {"epsilon": 0.01, "mu": 0.5, "noise": 0.2, "media": 0.3, "media_opinions": [0.105, 0.9]}
    initial = np.linspace(0.1, 0.98, n)
    found = simulate("algorithmic-bias", joined, initial, 1, 3, replicates=runs, order="permutation", gamma=1.5,
                     threads=1, machine=False, **settings).final  # fmt: skip
    moved = found != initial
    # In one turn each: noise, or the medium that is near, which agent 0 alone has.
    jumps = moved[:, 1:].sum()
    assert stats.binomtest(int(jumps), moved[:, 1:].size, 0.2).pvalue > RARE
    near = np.isclose(found[:, 0], 0.1025, atol=1e-12).sum()
    assert stats.binomtest(int(near), runs, 0.8 * 0.3 / 2).pvalue > RARE
    assert stats.kstest(found[:, 1:][moved[:, 1:]], "uniform").pvalue > RARE


def test_noise_of_one_leaves_the_other_of_a_pair_alone() -> None:
    # Of two agents within confidence, the one whose turn it is jumps, and nobody moves towards anybody.
    initial = [0.4, 0.6]
    found = simulate("deffuant", 2, initial, 1, 3, replicates=2000, order="sequential", pick="listener", noise=1,
                     epsilon=1, threads=1, machine=False).final  # fmt: skip
    assert stats.kstest(found[:, 0], "uniform").pvalue > RARE
    assert stats.kstest(found[:, 1], "uniform").pvalue > RARE
    assert abs(np.corrcoef(found.T)[0, 1]) < 0.1


def _beta_binomial_fits(counts: np.ndarray, size: int, a: float, b: float) -> None:
    expected = stats.betabinom(size, a, b).pmf(np.arange(size + 1)) * counts.size
    found = np.bincount(counts, minlength=size + 1)
    # Rare numbers at either side are taken together, so that each cell expects at least 5.
    cells = np.maximum.accumulate(np.floor(np.cumsum(expected) / 8)).astype(int)
    wanted, seen = np.bincount(cells, expected), np.bincount(cells, found)
    kept = wanted > 0
    assert stats.chisquare(seen[kept], wanted[kept] * counts.size / wanted[kept].sum()).pvalue > RARE


@pytest.mark.parametrize(("noise", "bias"), [(0.03, 0.5), (2 / 21, 0.5), (0.3, 0.5), (0.1, 0.8)])
def test_noisy_voters_are_beta_binomial_on_the_complete_graph(noise: float, bias: float) -> None:
    n = 20
    found = simulate("noisy-voter", n, "uniform", 300, 5, replicates=3000, record_every=300, threads=1, noise=noise,
                     bias=bias)  # fmt: skip
    total = (n - 1) * noise / (1 - noise)
    _beta_binomial_fits(found.final.sum(axis=1).astype(int), n, total * bias, total * (1 - bias))
    same = simulate("voter", n, "uniform", 300, 5, replicates=3, record_every=300, threads=1, noise=noise, bias=bias)
    np.testing.assert_array_equal(same.final, found.final[:3])


@pytest.mark.parametrize(("high", "low"), [(1, 1), (3, 2)])
def test_voters_among_opposing_zealots_are_beta_binomial(high: int, low: int) -> None:
    # Mobilia, Petersen & Redner 2007: the free agents at the upper end, zealots being its pseudo-counts.
    free = 15
    initial = np.concatenate([np.ones(high), np.zeros(low), np.arange(free) % 2])
    zealot = np.concatenate([np.ones(high + low, dtype=int), np.zeros(free, dtype=int)])
    found = simulate(
        "voter", initial.size, initial, 250, 8, replicates=3000, record_every=250, threads=1, zealot=zealot
    )
    _beta_binomial_fits(found.final[:, high + low :].sum(axis=1).astype(int), free, high, low)


def test_voters_with_media_are_beta_binomial() -> None:
    n, media = 20, 0.1
    found = simulate("voter", n, "uniform", 200, 9, replicates=3000, record_every=200, threads=1, media=media,
                     media_opinions=[0, 1, 1])  # fmt: skip
    total = (n - 1) * media / (1 - media)
    _beta_binomial_fits(found.final.sum(axis=1).astype(int), n, total * 2 / 3, total / 3)
