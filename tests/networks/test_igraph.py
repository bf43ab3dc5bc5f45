"""Graphs of igraph, in the place of those of networkx."""

from __future__ import annotations

from typing import Any

import igraph
import networkx as nx
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.networks import Network, build_network

ends = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1])


def _told(network: Network) -> tuple[Any, ...]:
    pairs, weights = network.edges
    return network.n, network.directed, network.labels, pairs.tolist(), None if weights is None else weights.tolist()


@given(
    st.lists(st.tuples(ends, st.sampled_from([0.5, 1.0, -2.0])), min_size=1),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, list("fbdeca"), [f"v{i}" for i in range(6)], [str(5 - i) for i in range(6)]]),
)
def test_a_graph_of_igraph_is_read_as_that_of_networkx(
    edges: list[Any], directed: bool, weighted: bool, names: list[str] | None
) -> None:
    theirs = igraph.Graph(6, [pair for pair, _ in edges], directed=directed)
    ours = nx.MultiDiGraph() if directed else nx.MultiGraph()
    called = range(6) if names is None else names
    ours.add_nodes_from(called)
    for (a, b), weight in edges:
        ours.add_edge(called[a], called[b], **({"weight": weight} if weighted else {}))
    theirs.vs["weight"] = 9
    if weighted:
        theirs.es["weight"] = [weight for _, weight in edges]
    if names is not None:
        theirs.vs["name"] = names
    expected = _told(Network.of(ours))
    assert _told(Network.of(theirs)) == _told(build_network(theirs)) == expected
    assert _told(Network.of(theirs, 6)) == expected
    assert _told(build_network(theirs, 8)) == _told(build_network(ours, 8))
    if names is not None and not names[0].isdigit():
        others = names[::-1]
        assert _told(Network.of(theirs, names=others)) == _told(Network.of(ours, names=others))


@pytest.mark.parametrize(
    ("graph", "n", "message"),
    [
        (igraph.Graph(2, [(0, 0)]), None, "an agent cannot be connected to itself; got agent 0"),
        (igraph.Graph(3, [(0, 1)]), 4, "it has 3 agents, but 4 are needed"),
        (igraph.Graph(0), None, "there must be at least 1 agent; got 0"),
        (igraph.Graph(2, [(0, 1)], edge_attrs={"weight": ["much"]}), None, "must be a finite number; got 'much'"),
        (igraph.Graph(2, [(0, 1)], edge_attrs={"weight": [float("nan")]}), None, "must be a finite number; got nan"),
        (igraph.Graph(3, [(0, 1)], vertex_attrs={"name": ["a", "b", "a"]}), None, "two vertices have the name 'a'"),
    ],
)
def test_what_is_no_network(graph: Any, n: int | None, message: str) -> None:
    with pytest.raises(SpecError, match=f"^network: .*{message}"):
        Network.of(graph, n)


def test_a_weight_that_is_not_stated_counts_as_1() -> None:
    graph = igraph.Graph(3, [(0, 1), (1, 2)], edge_attrs={"weight": [None, 2.0]})
    assert _told(Network.of(graph))[3:] == ([[0, 1], [1, 2]], [1, 2])
