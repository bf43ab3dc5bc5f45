"""Metrics on networks, against sums over ties one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionsim import metrics
from opinionsim.errors import MeasurementError
from opinionsim.metrics import METRICS
from tests.support.examples import examples

RANGE = (-1.0, 1.0)
NAMES = [name for name, metric in METRICS.items() if "network" in metric.needs]
#: Those that are sums over ties; modularity and controversy have tests of their own.
SUMS = sorted(set(NAMES) - {"modularity", "random_walk_controversy"})


@dataclass
class Network:
    """What metrics use of a network."""

    n: int
    speakers: np.ndarray
    listeners: np.ndarray
    weights: np.ndarray | None = None
    complete: bool = False


def _measured(name: str, values: Any, network: Any) -> Any:
    options = {"range": RANGE} if "range" in METRICS[name].needs else {}
    return METRICS[name].function(values, network=network, **options)


def _slowly(name: str, x: np.ndarray, ties: list[tuple[int, int, float]]) -> float:
    """The metric by its definition; ties are (speaker, listener, weight)."""
    ties = [(s, v, w) for s, v, w in ties if s != v and not math.isnan(x[s] + x[v]) and w > 0]
    if name == "disagreement":
        return sum(w * (x[s] - x[v]) ** 2 for s, v, w in ties) / 2 if not np.isnan(x).all() else math.nan
    if name == "neighbour_correlation":
        heard = {v: [(x[s], w) for s, other, w in ties if other == v] for v in {v for _, v, _ in ties}}
        own = [x[v] for v in heard]
        around = [np.average([o for o, _ in pairs], weights=[w for _, w in pairs]) for pairs in heard.values()]
        return _pearson(own, around, [1.0] * len(own))
    if name == "assortativity":
        return _pearson([x[s] for s, _, _ in ties], [x[v] for _, v, _ in ties], [w for _, _, w in ties])
    if name in ("regions", "largest_region"):
        graph = nx.Graph((s, v) for s, v, _ in ties if x[s] == x[v])
        graph.add_nodes_from(np.flatnonzero(~np.isnan(x)))
        sizes = [len(each) for each in nx.connected_components(graph)]
        if not sizes:
            return math.nan
        return len(sizes) if name == "regions" else max(sizes) / sum(sizes)
    if name in ("components", "largest_component"):
        graph = nx.Graph((s, v) for s, v, _ in ties)
        graph.add_nodes_from(np.flatnonzero(~np.isnan(x)).tolist())
        sizes = [len(each) for each in nx.connected_components(graph)]
        return (len(sizes) if name == "components" else max(sizes) / len(graph)) if sizes else math.nan
    if name in ("same_side_share", "ei_index"):
        ties = [(s, v, w) for s, v, w in ties if x[s] != 0 and x[v] != 0]
    kept = {
        "same_side_share": [w for s, v, w in ties if x[s] * x[v] > 0],
        "ei_index": [w for s, v, w in ties if x[s] * x[v] > 0],
        "active_link_density": [w for s, v, w in ties if x[s] != x[v]],
        "partial_overlap": [],
    }[name]
    total = sum(w for _, _, w in ties)
    share = sum(kept) / total if total else math.nan
    return 1 - 2 * share if name == "ei_index" else share


def _pearson(a: list[float], b: list[float], w: list[float]) -> float:
    if not w or np.ptp(a) < 1e-9 or np.ptp(b) < 1e-9:
        return math.nan
    covariance = np.cov(a, b, aweights=w, ddof=0)
    return float(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))


point = st.one_of(st.integers(-2, 2).map(lambda value: value / 2), st.just(math.nan))
tie = st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0, 2.0]))


@pytest.mark.parametrize("name", SUMS)
@settings(max_examples=25)
@given(st.lists(st.lists(point, min_size=7, max_size=7), min_size=1, max_size=3), st.lists(tie, max_size=25))
def test_measures_on_any_network(name: str, rows: list[list[float]], ties: list[tuple[int, int, float]]) -> None:
    speakers, listeners = (np.array([row[end] for row in ties], dtype=np.uint32) for end in (0, 1))
    weights = np.array([row[2] for row in ties])
    found = _measured(name, rows, (speakers, listeners, weights))
    expected = [_slowly(name, np.array(row), ties) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    again = _measured(name, rows, Network(7, speakers, listeners, weights))
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("name", SUMS)
@settings(max_examples=25)
@given(st.lists(point, min_size=6, max_size=6))
def test_a_complete_network_needs_no_pairs(name: str, values: list[float]) -> None:
    none = np.array([], dtype=np.uint32)
    pairs = [(s, v, 1.0) for s, v in permutations(range(6), 2)]
    found = _measured(name, values, Network(6, none, none, complete=True))
    expected = _slowly(name, np.array(values), pairs)
    if name == "neighbour_correlation" and not math.isnan(expected):
        expected = -1
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_assortativity_is_that_of_networkx() -> None:
    graph = nx.karate_club_graph()
    values = np.random.default_rng(1).integers(0, 5, 34)
    nx.set_node_attributes(graph, dict(enumerate(values.tolist())), "opinion")
    ends = np.array([pair for edge in graph.edges for pair in (edge, edge[::-1])]).T
    expected = nx.numeric_assortativity_coefficient(graph, "opinion")
    assert metrics.assortativity(values, tuple(ends)) == pytest.approx(expected)


def test_two_camps_without_a_bridge() -> None:
    ties = (np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2]))
    camps = [-1.0, -1.0, 1.0, 1.0]
    expected = {"neighbour_correlation": 1, "assortativity": 1, "same_side_share": 1, "ei_index": -1}
    expected |= {"active_link_density": 0, "disagreement": 0, "random_walk_controversy": 1, "modularity": 0.5}
    expected |= {"partial_overlap": 0, "regions": 2, "largest_region": 0.5, "components": 2, "largest_component": 0.5}
    assert {name: _measured(name, camps, ties) for name in NAMES} == pytest.approx(expected)


def test_means_that_differ_by_rounding_alone_have_no_correlation() -> None:
    """Every agent of one side hears all of the other, in an order of its own."""
    draw = np.random.default_rng(0)
    values = np.concatenate([draw.random(7), draw.random(7)])
    values[7:] += values[:7].mean() - values[7:].mean()
    pairs = np.array([(s, v) for s in range(7) for v in range(7, 14)]).T
    ties = (np.concatenate([pairs[0], pairs[1]]), np.concatenate([pairs[1], pairs[0]]))
    assert math.isnan(metrics.neighbour_correlation(values, ties))


cultures = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, math.nan]), min_size=3, max_size=3), min_size=7, max_size=7
)


@examples(40)
@given(st.lists(cultures, min_size=1, max_size=3), st.lists(tie, max_size=25), st.booleans())
def test_regions_of_cultures(rows: list[list[list[float]]], ties: list[tuple[int, int, float]], complete: bool) -> None:
    if complete:
        ties = [(s, v, 1.0) for s, v in permutations(range(7), 2)]
    speakers, listeners = (np.array([row[end] for row in ties], dtype=np.uint32) for end in (0, 1))
    network = Network(7, speakers, listeners, np.array([row[2] for row in ties]), complete)
    found = {
        name: METRICS[name].function(rows, network, vectors=True)
        for name in ("regions", "largest_region", "partial_overlap")
    }
    for place, row in enumerate(np.array(rows)):
        # A number for each culture is an opinion of one dimension.
        codes = np.where(np.isnan(row).any(axis=1), math.nan, row @ [1, 3, 9])
        for name in ("regions", "largest_region"):
            assert found[name][place] == pytest.approx(_slowly(name, codes, ties), nan_ok=True)
        kept = [(s, v, w) for s, v, w in ties if s != v and not math.isnan(codes[s] + codes[v])]
        total = sum(w for _, _, w in kept)
        active = sum(w for s, v, w in kept if 0 < (row[s] == row[v]).sum() < 3)
        assert found["partial_overlap"][place] == pytest.approx(active / total if total else math.nan, nan_ok=True)


def test_vectors_need_an_axis_of_agents() -> None:
    with pytest.raises(MeasurementError, match=r"an array \(..., N, D\); got shape \(3,\)"):
        metrics.regions([0.0, 1.0, 1.0], (np.array([0]), np.array([1])), vectors=True)


def test_ties_between_groups_that_are_named() -> None:
    ties = (np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1]))
    opinions = [0.1, 0.2, 0.3]
    assert metrics.ei_index(opinions, ties, RANGE, groups=["a", "a", "b"]) == 0
    assert metrics.ei_index(opinions, ties, RANGE, groups=["a", "b", "a"]) == 1
    assert metrics.ei_index([0.1, 0.2, math.nan], ties, RANGE, groups=["a", "a", "b"]) == -1


def test_tolerance_of_active_links() -> None:
    none = np.array([], dtype=np.int64)
    for network in (
        Network(3, none, none, complete=True),
        (np.array([0, 1, 0, 2, 1, 2]), np.array([1, 0, 2, 0, 2, 1])),
    ):
        assert metrics.active_link_density([0.0, 0.1, 0.5], network, tolerance=0.2) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (None, "Network or a tuple"),
        (([0], [1], [1.0], [2.0]), "Network or a tuple"),
        (([0, 1], [1]), "one length"),
        (([0], [3]), "from 0 to 2"),
        (([0.5], [1.0]), "whole numbers"),
        (([0], [1], [-1.0]), "at least 0"),
        (([0], [1], [math.nan]), "at least 0"),
        (Network(4, np.array([0]), np.array([1])), "4 agents, but there are opinions of 3"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_bad_networks_are_named(name: str, network: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        _measured(name, [0.0, 0.5, 1.0], network)


def test_components_of_ties_between_agents_of_like_opinion() -> None:
    pairs = np.array([(0, 1), (1, 2), (3, 4), (4, 5)])
    network = (np.concatenate(pairs.T), np.concatenate(pairs.T[::-1]))
    x = [0.0, 0.1, 0.5, 0.2, 0.2, math.nan, 1.0]
    assert metrics.components(x, network) == 3
    assert metrics.largest_component(x, network) == pytest.approx(3 / 6)
    assert metrics.components([x, x], network, within=0.1).tolist() == [4, 4]
    assert metrics.largest_component(x, network, within=0.1) == pytest.approx(2 / 6)
    assert metrics.components(x, network, within=0.0) == 5
    complete = Network(7, np.empty(0, dtype=int), np.empty(0, dtype=int), complete=True)
    assert (metrics.components(x, complete), metrics.components(x, complete, within=0.1)) == (1, 3)
    assert metrics.largest_component(x, complete, within=0.1) == pytest.approx(4 / 6)
    assert math.isnan(metrics.largest_component([math.nan] * 7, network))
