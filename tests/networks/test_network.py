"""The network itself: what can be read as one, its arrays, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.networks import Network, build_network
from tests.support.tables import refused

weights = st.floats(-5, 5).filter(bool)


@st.composite
def matrices(draw: Any, directed: bool | None = None) -> np.ndarray:
    """Weights of speaker j for listener i at [i, j]; 0 where there is no edge."""
    n = draw(st.integers(1, 6))
    matrix = draw(arrays.arrays(float, (n, n), elements=st.one_of(st.just(0.0), weights)))
    np.fill_diagonal(matrix, 0)
    one_way = draw(st.booleans()) if directed is None else directed
    return matrix if one_way else np.triu(matrix) + np.triu(matrix).T


def _matrix(network: Network) -> np.ndarray:
    """Slow and sure: the weight of every stored pair at [listener, speaker]."""
    matrix = np.zeros((network.n, network.n))
    stated = np.ones(len(network.speakers)) if network.weights is None else network.weights
    for speaker, listener, weight in zip(network.speakers, network.listeners, stated, strict=True):
        assert matrix[listener, speaker] == 0
        matrix[listener, speaker] = weight
    return matrix


@given(matrices())
def test_a_matrix_comes_back(matrix: np.ndarray) -> None:
    for form in (matrix, sparse.csr_array(matrix), sparse.coo_matrix(matrix)):
        network = Network.of(form)
        np.testing.assert_array_equal(_matrix(network), matrix)
        assert network.directed == (matrix != matrix.T).any()
        assert (network.weights is None) == np.isin(matrix, (0, 1)).all()


@given(matrices())
def test_pairs_and_rows_agree_and_ascend(matrix: np.ndarray) -> None:
    network = Network.of(matrix)
    listeners, speakers = np.nonzero(matrix)
    assert network.listeners.tolist() == listeners.tolist()
    assert network.speakers.tolist() == speakers.tolist()
    assert network.listeners.dtype == network.speakers.dtype == np.uint32
    starts, heard = network.heard
    assert (starts.dtype, heard.dtype) == (np.int64, np.uint32)
    stated = np.ones(len(speakers)) if network.weights is None else network.weights
    for agent in range(network.n):
        row = slice(starts[agent], starts[agent + 1])
        assert heard[row].tolist() == np.flatnonzero(matrix[agent]).tolist()
        assert stated[row].tolist() == matrix[agent][matrix[agent] != 0].tolist()
    starts, audience, order = network.audience
    assert (starts.dtype, audience.dtype, order.dtype) == (np.int64, np.uint32, np.int64)
    for agent in range(network.n):
        row = slice(starts[agent], starts[agent + 1])
        assert audience[row].tolist() == np.flatnonzero(matrix[:, agent]).tolist()
        assert stated[order[row]].tolist() == matrix[:, agent][matrix[:, agent] != 0].tolist()


@given(matrices())
def test_a_graph_comes_back(matrix: np.ndarray) -> None:
    network = Network.of(matrix)
    graph = network.graph()
    # networkx has the source of an edge in the row.
    np.testing.assert_array_equal(nx.to_numpy_array(graph, nodelist=range(network.n)), matrix.T)
    again = Network.of(graph)
    np.testing.assert_array_equal(_matrix(again), matrix)
    assert again.directed == network.directed


@given(matrices())
def test_edges_come_back(matrix: np.ndarray) -> None:
    network = Network.of(matrix)
    pairs, stated = network.edges
    assert pairs.tolist() == sorted(pairs.tolist())
    assert network.directed or (pairs[:, 0] < pairs[:, 1]).all()
    again = Network.from_edges(pairs, network.n, stated, directed=network.directed)
    np.testing.assert_array_equal(_matrix(again), matrix)
    if not network.directed:
        listed = np.column_stack([pairs, np.ones(len(pairs)) if stated is None else stated])
        np.testing.assert_array_equal(_matrix(Network.of(listed.tolist() or listed, network.n)), matrix)


@given(matrices(), st.randoms(use_true_random=False))
def test_the_order_of_edges_and_their_repetition_have_no_effect(matrix: np.ndarray, random: Any) -> None:
    network = Network.of(matrix)
    pairs, stated = network.edges
    rows = list(zip(pairs.tolist(), [1.0] * len(pairs) if stated is None else stated.tolist(), strict=True)) * 2
    random.shuffle(rows)
    again = Network.from_edges(
        [pair for pair, _ in rows], network.n, [weight for _, weight in rows], directed=network.directed
    )
    np.testing.assert_array_equal(_matrix(again), matrix)


@pytest.mark.parametrize(
    ("graph", "n", "edges", "stated"),
    [
        (nx.Graph([("a", "b"), ("b", "c")]), 3, [[0, 1], [1, 2]], None),
        (nx.Graph([("2", "0"), ("0", "1")]), 3, [[0, 1], [0, 2]], None),
        (nx.path_graph(4, create_using=nx.DiGraph), 4, [[0, 1], [1, 2], [2, 3]], None),
        (nx.grid_2d_graph(2, 2), 4, [[0, 1], [0, 2], [1, 3], [2, 3]], None),
        (nx.Graph([(0, 1, {"weight": -2}), (1, 2)]), 3, [[0, 1], [1, 2]], [-2, 1]),
        (nx.Graph([(0, 1, {"weight": np.float32(0.5)})]), 2, [[0, 1]], [0.5]),
        (nx.Graph([(0, 1, {"weight": 0})]), 2, [[0, 1]], [0]),
        (nx.MultiGraph([(0, 1), (1, 0)]), 2, [[0, 1]], [2]),
        (nx.MultiDiGraph([(0, 1), (1, 0), (1, 0, {"weight": 3})]), 2, [[0, 1], [1, 0]], [1, 4]),
        (nx.empty_graph(3), 3, [], None),
    ],
)
def test_graphs_of_any_kind(graph: nx.Graph, n: int, edges: list[list[int]], stated: list[float] | None) -> None:
    for network in (Network.of(graph), Network.of(graph, n)):
        pairs, found = network.edges
        assert network.n == n
        assert pairs.tolist() == edges
        assert (None if found is None else found.tolist()) == stated


@pytest.mark.parametrize(
    ("edges", "labels", "pairs"),
    [
        ([(20, 30), (30, 10)], (10, 20, 30), [[0, 2], [1, 2]]),
        ([(7, 1), (1, 0)], (0, 1, 7), [[0, 1], [1, 2]]),
        ([(1, -1), (-1, 5)], (-1, 1, 5), [[0, 1], [0, 2]]),
        ([("20", "100"), ("100", "3")], ("3", "20", "100"), [[0, 2], [1, 2]]),
        ([("b", 5), (5, (0, 1))], ("b", 5, (0, 1)), [[0, 1], [1, 2]]),
        ([(2, "a"), ("a", 1)], (2, "a", 1), [[0, 1], [1, 2]]),
        ([(1, "1")], (1, "1"), [[0, 1]]),
        ([(2, 1), (1, 0)], None, [[0, 1], [1, 2]]),
        ([("c", "b"), ("b", "a")], ("c", "b", "a"), [[0, 1], [1, 2]]),
    ],
)
def test_labels_are_numbered_and_lead_back(edges: Any, labels: tuple[Any, ...] | None, pairs: list[list[int]]) -> None:
    graph = nx.Graph(edges)
    for network in (Network.of(graph), Network.of(graph, len(graph)), build_network(graph)):
        assert network.labels == labels
        assert network.edges[0].tolist() == pairs
        called = range(network.n) if network.labels is None else network.labels
        back = nx.relabel_nodes(network.graph(), dict(enumerate(called)))
        assert {frozenset(edge) for edge in back.edges} == {frozenset(edge) for edge in graph.edges}


@given(st.sets(st.integers(), min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_numbered_nodes_has_no_effect(labels: set[int], random: Any) -> None:
    nodes = list(labels)
    random.shuffle(nodes)
    network = Network.of(nx.Graph(nx.utils.pairwise(nodes)))
    rank = {label: place for place, label in enumerate(sorted(labels))}
    expected = {frozenset((rank[a], rank[b])) for a, b in nx.utils.pairwise(nodes)}
    assert {frozenset(pair) for pair in network.edges[0].tolist()} == expected


def test_a_number_is_the_complete_graph_and_stores_no_pair() -> None:
    network = Network.of(np.int64(10**6))
    assert (network.n, network.complete, network.directed, network.weights) == (10**6, True, False, None)
    assert len(network.speakers) == len(network.listeners) == len(network.edges[0]) == 0
    assert sorted(Network.of(4).graph().edges) == sorted(nx.complete_graph(4).edges)


def test_a_network_is_read_as_itself() -> None:
    network = build_network("ring", 5)
    assert Network.of(network) is network
    assert Network.of(network, 5) is network
    assert build_network(network, 5) is network


def test_it_is_a_public_name() -> None:
    assert osim.networks.Network is Network


def test_small_squares_are_matrices_as_arrays_and_edges_as_lists() -> None:
    square = [[0, 1, 2], [1, 0, 2], [2, 2, 0]]
    np.testing.assert_array_equal(_matrix(Network.of(np.array(square))), square)
    with pytest.raises(SpecError, match="an agent cannot be connected to itself; got agent 2"):
        Network.of(square)
    square = [[0, 1], [1, 2]]
    assert Network.of(square).edges[0].tolist() == square
    with pytest.raises(SpecError, match="the diagonal must be 0"):
        Network.of(np.array(square))


@pytest.mark.parametrize(
    ("network", "n", "message"),
    [
        *refused(__file__, "forms"),
        (nx.Graph(), None, "there must be at least 1 agent; got 0"),
        (np.zeros((4, 5)), None, r"got ndarray of shape \(4, 5\)"),
        (np.zeros((2, 2, 2)), None, r"got ndarray of shape \(2, 2, 2\)"),
        (np.zeros((4, 4), dtype=complex), None, r"must be a Network"),
        (sparse.csr_array((4, 5)), None, r"must be square; got shape \(4, 5\)"),
        (np.eye(3), None, "the diagonal must be 0; got 1 for agent 0"),
        (sparse.eye(3, format="csr"), None, "the diagonal must be 0"),
        (np.array([[0, np.nan], [0, 0]]), None, "agents 1 and 0 must be a finite number; got nan"),
        (np.array([[0, np.nan], [np.nan, 0]]), None, "must be a finite number; got nan"),
        (np.array([[0, np.inf], [np.inf, 0]]), None, "must be a finite number; got inf"),
        (np.empty((0, 2)), None, "n must give the number of agents"),
        (nx.Graph([(0, 0), (0, 1)]), None, "an agent cannot be connected to itself; got agent 0"),
        (nx.Graph([(0, 1, {"weight": "much"})]), None, "agents 0 and 1 must be a finite number; got 'much'"),
        (nx.Graph([(0, 1, {"weight": True})]), None, "must be a finite number; got True"),
        (nx.Graph([(0, 1, {"weight": float("-inf")})]), None, "must be a finite number; got -inf"),
        (nx.path_graph(5), 6, "it has 5 agents, but 6 are needed"),
        (nx.path_graph(5), 4, "it has 5 agents, but 4 are needed"),
        (np.zeros((4, 4)), 5, "it has 4 agents, but 5 are needed"),
        (Network.of(5), 4, "it has 5 agents, but 4 are needed"),
    ],
)
def test_what_is_no_network(network: Any, n: int | None, message: str) -> None:
    with pytest.raises(SpecError, match=rf"^network: .*{message}") as caught:
        Network.of(network, n)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edges", "given", "message"),
    [
        ([[0, 1, 2]], None, r"pairs of agents with shape \(E, 2\)"),
        ([["a", "b"]], None, r"pairs of agents with shape \(E, 2\)"),
        ([[0, 1], [2]], None, r"pairs of agents with shape \(E, 2\)"),
        ([[0, 1]], [1, 2], "weights must contain one number for each of the 1 edges"),
        ([[0, 1]], ["x"], "weights must contain one number for each of the 1 edges"),
        ([[0, 1], [1, 0]], [1, 2], "between agents . and . occurs twice, with the weights"),
        (np.array([[0, 2**63]], dtype=np.uint64), None, "numbers 0, 1, ...; got"),
    ],
)
def test_edges_of_no_network(edges: Any, given: Any, message: str) -> None:
    with pytest.raises(SpecError, match=rf"^network: .*{message}"):
        Network.from_edges(edges, None, given)


def test_both_directions_may_weigh_differently_if_edges_have_one() -> None:
    network = Network.from_edges([[0, 1], [1, 0]], weights=[1, 2], directed=True)
    np.testing.assert_array_equal(_matrix(network), [[0, 2], [1, 0]])


def test_agents_without_neighbours_are_kept() -> None:
    network = Network.from_edges([[1, 3]], 6)
    assert network.n == 6
    assert np.diff(network.heard[0]).tolist() == [0, 1, 0, 1, 0, 0]
    empty = Network.of(np.empty((0, 2)), 3)
    assert (empty.n, len(empty.speakers), empty.complete) == (3, 0, False)


@given(st.permutations(["Ann", "Bob", "Cy", "Di"]), st.booleans())
def test_nodes_with_names_are_the_agents_of_these_names(order: list[str], directed: bool) -> None:
    edges = [("Ann", "Cy", 2.0), ("Di", "Ann", 1.0)]
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(order)
    graph.add_weighted_edges_from(edges)
    names = ["Di", "Cy", "Bob", "Ann"]
    found = Network.of(graph, names=names)
    assert (found.n, found.labels, found.directed) == (4, None, directed)
    back = nx.relabel_nodes(found.graph(), dict(enumerate(names)))
    assert nx.to_dict_of_dicts(back) == nx.to_dict_of_dicts(graph)


def test_numbers_stay_as_they_are_beside_names() -> None:
    names = ["Ann", "Bob", "Cy"]
    assert Network.of([[0, 2]], 3, names).edges[0].tolist() == [[0, 2]]
    assert Network.of(nx.path_graph(3), names=names).edges[0].tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("edges", "names", "message"),
    [
        (
            [("Ann", "Zoe"), ("Yan", "Bob")],
            ["Ann", "Bob"],
            r"^network: 'Zoe', 'Yan' are neither a number nor the name of",
        ),
        ([("Ann", "ann")], ["Ann", "Bob"], r"'ann' is neither .*nodes are the numbers 0 to 1, or names: 'Ann', 'Bob'$"),
        ([(f"p{i}", "Ann") for i in range(30)], ["Ann"], r"'p9', and 20 more are neither"),
        ([("Ann", "Bob")], ["Ann", "Bob", "Ann"], r"two agents have the name 'Ann'"),
        ([(1, "Ann")], ["Ann", "Bob"], r"all numbers or all names of agents; got 1 and 'Ann'"),
    ],
)
def test_names_that_lead_to_no_agent(edges: Any, names: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Network.of(nx.Graph(edges), names=names)
