"""Who may meet whom."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.networks import Neighbours, Network

networks = st.builds(
    lambda n, edges, directed: Network.from_edges([(0, n - 1), *edges], n, directed=directed),
    st.just(7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda edge: edge[0] != edge[1]), max_size=15),
    st.booleans(),
)


@given(networks)
def test_neighbours_are_those_of_the_graph(network: Network) -> None:
    neighbours = Neighbours(network)
    pairs = set(network.graph().to_directed().edges)
    assert neighbours.n == 7
    for agent in range(7):
        assert neighbours.audience(agent).tolist() == sorted(b for a, b in pairs if a == agent)
        assert neighbours.sources(agent).tolist() == sorted(a for a, b in pairs if b == agent)
    assert neighbours.can_speak.tolist() == sorted({a for a, _ in pairs})
    assert neighbours.can_hear.tolist() == sorted({b for _, b in pairs})
    every = np.array([(a, b) for a in range(-1, 8) for b in range(-1, 8)])
    assert {tuple(pair) for pair in every[neighbours.join(every)].tolist()} == pairs


def test_the_complete_graph_needs_no_graph() -> None:
    short, long = Neighbours(5), Neighbours(nx.complete_graph(5))
    for agent in range(5):
        assert short.audience(agent).tolist() == long.audience(agent).tolist()
        assert short.sources(agent).tolist() == long.sources(agent).tolist()
    every = np.array([(a, b) for a in range(-1, 6) for b in range(-1, 6)])
    np.testing.assert_array_equal(short.join(every), long.join(every))
    assert Neighbours(np.int64(5)).n == 5


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (1, "population.size is 1; it must be at least 2"),
        (Network.of(1), "population.size is 1; it must be at least 2"),
        ("ring", "must be a Network, a number of agents"),
        (nx.Graph([(0, 0), (0, 1)]), "connected to itself"),
        (nx.empty_graph(3), "^network: the network of 3 agents has no edge"),
        (
            nx.Graph([("Ann", "Bob")]),
            r"^network: nodes have names, such as 'Ann'.*Network\.of\(network, names=\[\.\.\.\]\)",
        ),
    ],
)
def test_neighbours_take_networks_of_agents_only(network: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Neighbours(network)
