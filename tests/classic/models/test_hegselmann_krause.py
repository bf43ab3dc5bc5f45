"""Hegselmann-Krause: windows of ranks against plain sums over pairs, thresholds, networks, vectors."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.classic import Process, find_model, set_up, simulate, transition
from opinionsim.networks import Network
from tests.support.examples import examples

MODEL = find_model("hegselmann-krause")


def _naive(opinions, epsilon, with_self=True, heard=None, strict=False) -> np.ndarray:
    """A step by the definition."""
    n = len(opinions)
    points = opinions.reshape(n, -1)
    distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    reach = np.broadcast_to(epsilon, n)[:, None]
    weights = (np.ones((n, n)) if heard is None else np.array(heard, dtype=float)) * (1 - np.eye(n))
    weights = weights * (distances < reach if strict else distances <= reach) + with_self * np.eye(n)
    size = weights.sum(axis=1, keepdims=True)
    return np.where(size > 0, weights @ points / np.where(size > 0, size, 1), points).reshape(opinions.shape)


def _step(opinions, network=None, **options) -> np.ndarray:
    return simulate(MODEL, len(opinions) if network is None else network, opinions, 1, **options).opinions[0, 1]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 50, 51, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.2, 2.0])
def test_ranks_are_pairs(n, epsilon) -> None:
    opinions = np.random.default_rng(n).random(n)
    setup = set_up(MODEL, Network.of(n), settings={"epsilon": epsilon})
    process = Process(setup, opinions, 0)
    for _ in range(4):
        expected = _naive(process.opinions, epsilon)
        np.testing.assert_allclose(process.advance(1)[0], expected, rtol=0, atol=1e-14)


@examples(80)
@given(
    values=st.lists(st.integers(0, 40), min_size=2, max_size=25),
    epsilon=st.integers(0, 41),
    strict=st.booleans(),
    steps=st.integers(1, 4),
)
def test_opinions_at_exactly_the_confidence(values, epsilon, strict, steps) -> None:
    # Multiples of 1/64: sums and differences are exact, so that a threshold is met, or not, without rounding.
    opinions = np.array(values) / 64
    threshold = "<" if strict else "<="
    found = simulate(MODEL, len(values), opinions, steps, epsilon=epsilon / 64, threshold=threshold).opinions[0]
    np.testing.assert_allclose(found[1], _naive(opinions, epsilon / 64, strict=strict), rtol=0, atol=1e-15)
    ranked = found[:, np.argsort(opinions, kind="stable")]
    assert (np.diff(ranked, axis=1) >= 0).all(), "agents never overtake"
    assert (np.diff(found.min(axis=1)) >= 0).all()
    assert (np.diff(found.max(axis=1)) <= 0).all()


@pytest.mark.parametrize("with_self", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_confidence_of_ones_own_and_leaving_oneself_out(with_self, own) -> None:
    rng = np.random.default_rng(1)
    opinions = rng.random(60)
    epsilon = 0.3 * rng.random(60) if own else 0.05
    setup = set_up(MODEL, Network.of(60), settings={"epsilon": epsilon, "with_self": with_self})
    process = Process(setup, opinions, 0)
    for _ in range(4):
        expected = _naive(process.opinions, epsilon, with_self)
        np.testing.assert_allclose(process.advance(1)[0], expected, rtol=0, atol=1e-14)


def test_sums_of_many_keep_their_digits() -> None:
    # A few opinions far above ten thousand others: differences of plain sums would lose the last four digits.
    opinions = np.concatenate([np.linspace(0, 0.9, 20_000), [0.97, 0.97 + 2**-40, 0.97 + 2**-39]])
    found = _step(opinions, epsilon=0.001)
    exact = 0.97 + (2**-40 + 2**-39) / 3
    np.testing.assert_allclose(found[-3:], exact, rtol=0, atol=2e-16)


def test_a_settled_population_stays_to_the_last_bit() -> None:
    found = simulate(MODEL, 300, "uniform", 60, seed=4, epsilon=0.15).opinions[0]
    assert (found[-1] == found[-30]).all()
    levels = np.unique(found[-1])
    assert 2 <= len(levels) <= 4
    assert (np.diff(levels) > 0.15).all()


def test_a_step_at_a_time_is_a_run() -> None:
    setup = set_up(MODEL, Network.of(200))
    opinions = np.random.default_rng(0).random(200)
    one, many = Process(setup, opinions, 0), Process(setup, opinions, 0)
    many_steps = many.advance(7)
    np.testing.assert_array_equal(np.concatenate([one.advance(1) for _ in range(7)]), many_steps)
    np.testing.assert_array_equal(one.opinions, many.opinions)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("with_self", [True, False])
def test_on_networks_only_neighbours_count(weighted, with_self) -> None:
    rng = np.random.default_rng(5)
    heard = nx.to_numpy_array(nx.gnm_random_graph(30, 80, seed=1)) + np.eye(30, k=1) + np.eye(30, k=-1)
    heard = heard * rng.integers(1, 5, (30, 30)) if weighted else (heard > 0) * 1.0
    opinions = rng.random(30)
    found = _step(opinions, heard, epsilon=0.25, with_self=with_self)
    np.testing.assert_allclose(found, _naive(opinions, 0.25, with_self, heard), rtol=0, atol=1e-14)


@pytest.mark.parametrize("network", ["complete", "graph"])
def test_vectors_by_euclidean_distance(network) -> None:
    rng = np.random.default_rng(6)
    heard = np.ones((20, 20)) if network == "complete" else nx.to_numpy_array(nx.cycle_graph(20))
    opinions = rng.random((20, 3))
    found = _step(opinions, 20 if network == "complete" else heard, epsilon=0.5)
    np.testing.assert_allclose(found, _naive(opinions, 0.5, heard=heard), rtol=0, atol=1e-14)
    line = np.zeros((20, 2))
    line[:, 1] = opinions[:, 0]
    alone = _step(opinions[:, 0], 20 if network == "complete" else heard, epsilon=0.3)
    found = _step(line, 20 if network == "complete" else heard, epsilon=0.3)
    np.testing.assert_allclose(found[:, 1], alone, rtol=0, atol=1e-14)


def test_one_after_another() -> None:
    opinions = np.array([0.0, 0.3, 0.6, 0.9])
    found = _step(opinions, order="sequential", epsilon=0.35, machine=False)
    # 0 -> 0.15; 1 hears 0.15 and 0.6: (0.15 + 0.3 + 0.6) / 3 = 0.35; 2: (0.35 + 0.6 + 0.9) / 3; 3: with 2.
    third = 1.85 / 3
    np.testing.assert_allclose(found, [0.15, 0.35, third, (third + 0.9) / 2], rtol=0, atol=1e-15)
    options = {"epsilon": 0.35, "machine": False}
    random = simulate(MODEL, 4, opinions, 1, replicates=400, order="random", **options).opinions[:, 1]
    assert abs((random[:, 0] == 0).mean() - 0.75**4) < 4.5 * np.sqrt(0.25 / 400)
    each = simulate(MODEL, 4, opinions, 1, replicates=50, order="permutation", **options).opinions[:, 1]
    assert (each[:, [0, 3]] != opinions[[0, 3]]).all(), "each has its turn"


def test_transition_says_what_the_kernel_does() -> None:
    rng = np.random.default_rng(7)
    heard = rng.integers(0, 3, (12, 12)) * (1.0 - np.eye(12)) + np.eye(12, k=1) + np.eye(12, k=-1)
    opinions, epsilon = rng.uniform(-2, 2, 12), rng.random(12)
    messages = np.where(heard > 0, opinions, np.nan)
    expected = transition("hegselmann-krause", opinions, messages, heard, epsilon=epsilon, range=(-2, 2))
    found = _step(opinions, heard, epsilon=epsilon, range=(-2, 2))
    np.testing.assert_allclose(found, expected.values[:, 0], rtol=0, atol=1e-14)


def test_confidence_is_in_units_of_opinion() -> None:
    opinions = np.random.default_rng(8).random(40)
    wide = _step(10 * opinions - 5, range=(-5, 5))
    np.testing.assert_allclose(wide, 10 * _step(opinions) - 5, rtol=0, atol=1e-13)
