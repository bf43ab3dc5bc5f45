"""Random-walk controversy against closed forms, and against walks followed step by step."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionsim.errors import MeasurementError
from opinionsim.metrics import random_walk_controversy
from opinionsim.networks import Network

RANGE = (-1.0, 1.0)
tie = st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0, 2.0]))
point = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, math.nan])


def _step_by_step(x: np.ndarray, ties: list[tuple[int, int, float]], k: int, steps: int = 4000) -> float:
    """The measure by its definition: the chances of every walk, one step after another; ties are (speaker, ...)."""
    side = {agent: x[agent] > 0 for agent in range(len(x)) if not math.isnan(x[agent]) and x[agent] != 0}
    ties = [(s, v, w) for s, v, w in ties if s != v and w > 0 and s in side and v in side]
    degree = {agent: sum(w for s, _, w in ties if s == agent) for agent in side}
    hubs = set()
    for each in (False, True):
        members = sorted((degree[agent] for agent in side if side[agent] == each), reverse=True)
        if members:
            least = members[min(k, len(members)) - 1]
            hubs |= {agent for agent in side if side[agent] == each and degree[agent] >= max(least, 1e-9)}
    move = np.zeros((len(x), len(x)))
    for s, v, w in ties:
        move[v, s] += w / sum(weight for _, listener, weight in ties if listener == v)
    ended = np.zeros((2, 2))
    for each in (False, True):
        chance = np.array([float(side.get(agent) == each) for agent in range(len(x))])
        for _ in range(steps):
            chance = chance @ move
            for hub in hubs:
                ended[int(each), int(side[hub])] += chance[hub]
                chance[hub] = 0
    with np.errstate(invalid="ignore"):
        ended = ended / ended.sum(axis=1, keepdims=True)
        started = ended / ended.sum(axis=0)
    return float(started[0, 0] * started[1, 1] - started[1, 0] * started[0, 1])


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(point, min_size=7, max_size=7), min_size=1, max_size=2),
    st.lists(tie, max_size=25),
    st.integers(1, 3),
)
def test_walks_on_any_network(rows: list[list[float]], ties: list[tuple[int, int, float]], k: int) -> None:
    arrays = tuple(np.array([row[part] for row in ties], dtype=float if part == 2 else int) for part in range(3))
    found = random_walk_controversy(rows, arrays, RANGE, hubs=k)
    expected = [_step_by_step(np.array(row), ties, k) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("n", [3, 6])
def test_a_complete_network_is_its_pairs(n: int) -> None:
    values = np.where(np.arange(n) < 2, -1.0, 1.0)
    pairs = [(s, v, 1.0) for s in range(n) for v in range(n) if s != v]
    found = random_walk_controversy(values, Network.of(n), RANGE)
    assert found == pytest.approx(_step_by_step(values, pairs, 10), abs=1e-12, nan_ok=True)
    assert found < 0


def test_two_stars_with_a_bridge_of_leaves() -> None:
    """Hubs 0 and 1 have three leaves each, and one leaf of each is tied to the other.

    A walk from such a leaf meets its own hub with the probability p = 1/2 + (1 - p)/2.
    """
    edges = [(0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (4, 7)]
    values = [-1, 1, -1, -1, -1, 1, 1, 1]
    p = 2 / 3
    # Starts are the hub, which goes to any of its leaves, two leaves that go to their hub, and the leaf of the bridge.
    stay = ((2 + p) / 3 + 1 + 1 + p) / 4
    expected = stay**2 - (1 - stay) ** 2
    assert random_walk_controversy(values, Network.from_edges(edges), RANGE, hubs=1) == pytest.approx(expected)


def test_camps_mixed_and_apart() -> None:
    values = np.repeat([-1.0, 1.0], 50)
    draw = np.random.default_rng(5)
    apart = Network.of(nx.disjoint_union(nx.gnm_random_graph(50, 200, seed=1), nx.gnm_random_graph(50, 200, seed=2)))
    assert random_walk_controversy(values, apart, RANGE) == pytest.approx(1)
    mixed = Network.of(nx.gnm_random_graph(100, 400, seed=3))
    assert abs(np.mean([random_walk_controversy(draw.permutation(values), mixed, RANGE) for _ in range(40)])) < 0.05
    camps = Network.of(nx.stochastic_block_model([50, 50], [[0.3, 0.02], [0.02, 0.3]], seed=4))
    assert 0.5 < random_walk_controversy(values, camps, RANGE) < 1


def test_large_networks_are_solved_alike_by_iteration_and_elimination(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(6).uniform(-1, 1, 900)
    for graph in (nx.gnm_random_graph(900, 3000, seed=6), nx.random_labeled_tree(900, seed=6)):
        network = Network.of(graph)
        found = random_walk_controversy(values, network, RANGE)
        monkeypatch.setattr("opinionsim.metrics._controversy._ELIMINATED", 10**9)
        assert random_walk_controversy(values, network, RANGE) == pytest.approx(found, abs=1e-9)
        monkeypatch.undo()


def test_sides_that_are_named() -> None:
    network = Network.of(nx.barbell_graph(5, 0))
    values = np.linspace(0.1, 1, 10)
    assert math.isnan(random_walk_controversy(values, network, RANGE))
    sides = ["left"] * 5 + ["right"] * 5
    as_opinions = random_walk_controversy([-1] * 5 + [1] * 5, network, RANGE, hubs=2)
    assert random_walk_controversy(values, network, RANGE, groups=sides, hubs=2) == as_opinions > 0.5
    with pytest.raises(MeasurementError, match="groups must name two sides; got 3 groups"):
        random_walk_controversy(values, network, RANGE, groups=[*sides[:9], "none"])
    with pytest.raises(MeasurementError, match="hubs must be a whole number of at least 1; got 0"):
        random_walk_controversy(values, network, RANGE, hubs=0)
