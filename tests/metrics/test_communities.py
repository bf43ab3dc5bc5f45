"""Modularity against all partitions of small networks and networkx, and what igraph is asked."""

from __future__ import annotations

import math
import random  # noqa: TID251 - what igraph draws from
import sys
from itertools import product
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import MeasurementError
from opinionsim.metrics import METRICS, communities, compute_metrics, modularity
from opinionsim.networks import Network

tie = st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.5, 1.0, 2.0])).filter(lambda t: t[0] != t[1])
labels = st.lists(st.integers(0, 2), min_size=6, max_size=6)


def _graph(ties: list[tuple[int, int, float]]) -> nx.Graph:
    """The weights of both directions of a tie added up."""
    graph = nx.Graph()
    graph.add_nodes_from(range(6))
    for a, b, weight in ties:
        graph.add_edge(a, b, weight=weight + graph.get_edge_data(a, b, {"weight": 0})["weight"])
    return graph


def _of(graph: nx.Graph, partition: Any) -> float:
    groups = [{agent for agent in range(6) if partition[agent] == each} for each in set(partition)]
    return float(nx.community.modularity(graph, groups))


def _arrays(ties: list[tuple[int, int, float]]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(part) for part in zip(*ties, strict=True))


@given(st.lists(tie, min_size=1, max_size=15), labels)
def test_groups_that_are_named(ties: list[tuple[int, int, float]], groups: list[int]) -> None:
    found = modularity(np.zeros(6), _arrays(ties), groups=groups)
    assert found == pytest.approx(_of(_graph(ties), groups), abs=1e-12)


def test_leiden_finds_the_best_of_all_partitions_of_small_networks_but_for_a_few() -> None:
    partitions = np.array(list(product(range(4), repeat=6)))
    together = (partitions[:, :, None] == partitions[:, None, :]).reshape(len(partitions), -1)
    best = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        graph = nx.gnm_random_graph(6, int(draw.integers(3, 13)), seed=seed)
        nx.set_edge_attributes(graph, {edge: float(draw.choice([0.5, 1, 2])) for edge in graph.edges}, "weight")
        weights = nx.to_numpy_array(graph)
        degrees = weights.sum(axis=1)
        gains = weights / degrees.sum() - np.outer(degrees, degrees) / degrees.sum() ** 2
        largest = float((together @ gains.ravel()).max())
        network = Network.of(graph)
        found = modularity(None, network)
        assert found <= largest + 1e-12
        assert found == pytest.approx(_of(graph, communities(network).tolist()), abs=1e-12)
        best.append(found > largest - 1e-12)
    assert sum(best) >= 58


def test_closed_forms() -> None:
    cliques = Network.of(nx.connected_caveman_graph(4, 5))
    assert communities(cliques).tolist() == np.repeat(range(4), 5).tolist()
    # Each clique of ten ties has one tie less, and one to the next clique: 9 of 10 ties are within.
    assert modularity(None, cliques) == pytest.approx(0.9 - 1 / 4)
    # The largest modularity of the karate club without weights (Brandes et al. 2008, doi:10.1109/TKDE.2007.190689).
    karate = Network.from_edges(list(nx.karate_club_graph().edges))
    assert modularity(None, karate) == pytest.approx(0.4198, abs=1e-4)
    assert modularity(None, Network.of(7)) == 0
    whole = modularity(np.zeros(6), Network.of(6), groups=[0, 0, 1, 1, 1, 2])
    assert whole == pytest.approx(_of(nx.complete_graph(6), [0, 0, 1, 1, 1, 2]))
    assert math.isnan(modularity(None, Network.of(nx.empty_graph(3))))
    assert communities(Network.of(nx.empty_graph(3))).tolist() == [0, 1, 2]
    # Two sides all of whose ties are between them.
    assert modularity(None, Network.of(nx.complete_bipartite_graph(3, 3)), groups=[0] * 3 + [1] * 3) == -0.5


def test_agents_without_an_opinion_are_left_out_with_their_ties() -> None:
    network = Network.of(nx.connected_caveman_graph(3, 4))
    opinions = np.zeros((3, 12))
    opinions[1:, :4] = np.nan
    rest = Network.of(nx.connected_caveman_graph(3, 4).subgraph(range(4, 12)))
    found = modularity(opinions, network)
    assert found[1] == found[2] == pytest.approx(modularity(None, rest))
    assert found[0] == modularity(None, network)


def test_a_network_has_one_value_whatever_was_drawn_before() -> None:
    network = Network.of(nx.gnm_random_graph(200, 500, seed=3))
    first = communities(network)
    state = random.getstate()
    np.testing.assert_array_equal(communities(network), first)
    assert random.getstate() == state

    def drawn() -> list[int]:
        # igraph draws from Python's generator, as it does by default.
        random.seed(7)
        return igraph.Graph.Erdos_Renyi(30, 0.2).degree()

    before = drawn()
    communities(network)
    assert drawn() == before


def test_without_igraph_one_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    network = Network.of(nx.path_graph(4))
    with pytest.raises(MeasurementError, match=r"extra 'networks' \(igraph is missing\); .*'opinionsim\[networks\]'"):
        modularity([0.0, 0, 1, 1], network)
    assert modularity([0.0, 0, 1, 1], network, groups=[0, 0, 1, 1]) == pytest.approx(2 / 3 - 1 / 2)
    found = compute_metrics([0.0, 0, 1, 1], network=network, range=(0, 1))
    lacking = {name for name, metric in METRICS.items() if metric.needs <= {"network", "range"}} - set(found)
    assert lacking == {"modularity"}


def test_what_is_no_network() -> None:
    with pytest.raises(MeasurementError, match="must be a Network; got tuple"):
        modularity(None, ([0], [1]))
    with pytest.raises(MeasurementError, match="must be a Network; got tuple"):
        communities(([0], [1]))
