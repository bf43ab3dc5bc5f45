"""Networks by name: every kind, files, labels, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from opinionsim.errors import SpecError
from opinionsim.networks import NETWORKS, Network, build_network

PARAMETERS: dict[str, dict[str, Any]] = {
    "watts-strogatz": {"k": 4, "p": 0.3},
    "erdos-renyi": {"p": 0.4},
    "barabasi-albert": {"m": 2},
    "random-regular": {"d": 3},
    "stochastic-block-model": {"shares": [1, 1], "p_within": 0.6, "p_between": 0.2},
    "configuration": {"exponent": 2, "max_degree": 5},
}
RANDOM = sorted(PARAMETERS)


def _edges(network: Network) -> set[tuple[int, int]]:
    return {(a, b) for a, b in network.edges[0].tolist()}


def _both_ways(network: Network) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in network.graph().to_directed().edges}


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_kind_is_a_simple_network_of_all_agents(kind: str) -> None:
    for n in (6, 20):
        network = build_network({"kind": kind, **PARAMETERS.get(kind, {})}, n, seed=3)
        graph = network.graph()
        assert network.n == n
        assert sorted(graph.nodes) == list(range(n))
        assert not network.directed
        assert nx.number_of_selfloops(graph) == 0
        assert network.complete == (kind == "complete")


@pytest.mark.parametrize(
    ("spec", "n", "edges"),
    [
        ("complete", 4, {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}),
        ("ring", 4, {(0, 1), (1, 2), (2, 3), (3, 0)}),
        ("path", 4, {(0, 1), (1, 2), (2, 3)}),
        ("star", 4, {(0, 1), (0, 2), (0, 3)}),
        ({"kind": "ring"}, 2, {(0, 1)}),
        ({"edges": [[0, 1], [3, 1]]}, 5, {(0, 1), (1, 3)}),
        ({"kind": "edges", "edges": [["b", "a"], ["a", "c"]]}, 3, {(0, 1), (1, 2)}),
        ({"edges": [["2", "0"]]}, 3, {(0, 2)}),
        ({"kind": "watts-strogatz", "k": 2, "p": 0}, 4, {(0, 1), (1, 2), (2, 3), (3, 0)}),
        ({"kind": "erdos-renyi", "p": 1}, 3, {(0, 1), (0, 2), (1, 2)}),
    ],
)
def test_closed_forms(spec: Any, n: int, edges: set[tuple[int, int]]) -> None:
    network = build_network(spec, n)
    assert network.n == n
    assert _both_ways(network) == edges | {(b, a) for a, b in edges}


def test_counts_of_random_kinds() -> None:
    n = 30
    built = {kind: build_network({"kind": kind, **PARAMETERS[kind]}, n, seed=1).graph() for kind in RANDOM}
    assert built["watts-strogatz"].number_of_edges() == n * 4 // 2
    assert built["barabasi-albert"].number_of_edges() == 2 * (n - 2)
    assert {degree for _, degree in built["random-regular"].degree} == {3}
    # Binomial(435, 0.4): mean 174, standard deviation 10.2.
    assert abs(built["erdos-renyi"].number_of_edges() - 174) < 5 * 10.2


@pytest.mark.parametrize("kind", RANDOM)
def test_a_seed_settles_a_random_network(kind: str) -> None:
    spec = {"kind": kind, **PARAMETERS[kind]}
    first = _edges(build_network(spec, 20, seed=7))
    assert _edges(build_network(spec, 20, seed=7)) == first
    assert len({frozenset(_edges(build_network(spec, 20, seed=seed))) for seed in range(5)}) == 5


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("0 1\n1 2\n", {(0, 1), (1, 2)}),
        ("# who knows whom\n\n2 0  # friends\n", {(0, 2)}),
        ("Ann Bob\nBob Cy\n", {(0, 1), (1, 2)}),
        ("0 1 {}\n1 2 {'weight': 3}\n", {(0, 1), (1, 2)}),
        ("0\t1\r\n", {(0, 1)}),
    ],
)
def test_edge_lists(tmp_path: Path, text: str, edges: set[tuple[int, int]]) -> None:
    path = tmp_path / "friends.txt"
    path.write_text(text, encoding="utf-8")
    assert _both_ways(build_network({"kind": "file", "path": str(path)}, 4)) == edges | {(b, a) for a, b in edges}


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.gnp_random_graph(9, 0.4, seed=2, directed=True)])
def test_files_written_by_networkx_come_back(tmp_path: Path, graph: nx.Graph) -> None:
    nx.write_graphml(graph, tmp_path / "g.graphml")
    read = build_network({"kind": "file", "path": tmp_path / "g.graphml"}, len(graph))
    expected = Network.of(graph)
    assert read.directed == graph.is_directed()
    assert _edges(read) == _edges(expected)
    assert (read.weights is None) == (expected.weights is None)
    if expected.weights is not None:
        assert read.weights.tolist() == expected.weights.tolist()
    if not graph.is_directed():
        nx.write_edgelist(graph, tmp_path / "g.txt")
        listed = build_network({"kind": "file", "path": tmp_path / "g.txt"}, len(graph))
        assert _both_ways(listed) == _both_ways(expected)


def test_names_are_numbered_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    nx.write_graphml(nx.DiGraph([("zoe", "ann"), ("ann", "mia")]), path)
    assert _edges(build_network({"kind": "file", "path": path}, 4)) == {(0, 1), (1, 2)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n1,2\n", r"friends\.txt:2: must hold two agents, separated by a space; got '1,2'"),
        ("0 1\n2\n", r"friends\.txt:2: must hold two agents"),
        ("0 1 0.5\n", r"friends\.txt:1: must hold two agents"),
        ("", "has no edge"),
        (b"\xff\x00", "is not a readable edge list or GraphML"),
        ("0 0\n", "an agent cannot be joined to itself"),
        ("0 9\n", r"node labels must be agents 0\.\.3"),
        ("-1 0\n", r"node labels must be agents 0\.\.3"),
        ("a b\nc d\ne f\n", r"at most 4 of them; got 6 nodes"),
        ("0 ann\n", "must be all numbers or all names; got the number 0 and the name 'ann'"),
        ("0 1\n1 00\n", r"node labels must be agents"),
    ],
)
def test_bad_edge_lists(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "friends.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SpecError, match=message) as caught:
        build_network({"kind": "file", "path": str(path)}, 4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.txt", None, r"interaction\.network\.path: no such file: none\.txt"),
        ("bad.graphml", "<graphml", "is not a readable edge list or GraphML"),
        ("bad.graphml", "0 1\n", "is not a readable edge list or GraphML"),
        (".", None, "is not a readable edge list or GraphML"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=message):
        build_network({"kind": "file", "path": name}, 4)


@pytest.mark.parametrize(
    ("spec", "n", "message"),
    [
        ("circle", 4, "unknown kind 'circle'; valid: complete, ring, path, star, .*, file, edges"),
        ({}, 4, "unknown kind None"),
        ({"kind": ["ring"]}, 4, "unknown kind"),
        (4, 4, "must be a name, a mapping or a graph; got 4"),
        (None, 4, "must be a name, a mapping or a graph; got None"),
        ({"kind": "path", "k": 2}, 4, "'path' takes no parameters; got k"),
        ("watts-strogatz", 4, "'watts-strogatz' takes k, p; got none"),
        ({"kind": "watts-strogatz", "k": 9, "p": 0.1}, 6, "cannot be built for N = 6"),
        ({"kind": "watts-strogatz", "k": "two", "p": 0.1}, 6, "cannot be built for N = 6"),
        ({"kind": "watts-strogatz", "k": 2, "p": 1.1}, 6, "p must be a probability, from 0 to 1"),
        ({"kind": "erdos-renyi", "p": -0.1}, 6, "p must be a probability, from 0 to 1"),
        ({"kind": "erdos-renyi", "p": float("nan")}, 6, "p must be a probability, from 0 to 1"),
        ({"kind": "erdos-renyi", "p": "half"}, 6, "cannot be built for N = 6"),
        ({"kind": "erdos-renyi", "p": 0}, 6, "the network on 6 agents has no edge"),
        ({"kind": "barabasi-albert", "m": 6}, 6, "cannot be built for N = 6"),
        ({"kind": "random-regular", "d": 3}, 5, "cannot be built for N = 5"),
        ("complete", 1, "has no edge"),
        ("star", 0, "cannot be built for N = 0"),
        ("ring", 1, "joined to itself"),
        ({"kind": "file"}, 4, "'file' takes path; got none"),
        ({"kind": "file", "path": "x", "directed": True}, 4, "'file' takes path; got path, directed"),
        ({"kind": "file", "path": 5}, 4, "must be the name of a file; got 5"),
        ({"kind": "edges"}, 4, "'edges' takes edges, weights, directed; got none"),
        ({"edges": [[0, 1]], "widths": [1]}, 4, "'edges' takes edges, weights, directed; got edges, widths"),
        ({"edges": [[0, 1]], "weights": [1, 2]}, 4, "weights must give a finite number for each of the 1 edges"),
        ({"edges": [[0, 1]], "weights": 1}, 4, "weights must give a finite number for each of the 1 edges"),
        ({"edges": [[0, 1]], "weights": [float("nan")]}, 4, "weights must give a finite number"),
        ({"edges": [[0, 1]], "directed": "yes"}, 4, "directed must be true or false; got 'yes'"),
        ({"edges": [[0, 1], [1, 0]], "weights": [1, 2]}, 4, "is given twice, with the weights"),
        (Network.of(5), 4, "is on 5 agents; population.size is 4"),
        ({"kind": "ring", "k": 3}, 6, "k must be even"),
        ({"kind": "ring", "k": 8}, 6, "k must be at most N = 6"),
        ({"kind": "lattice", "sides": [2, 2]}, 6, "product is N = 6; got 2 and 2"),
        ({"kind": "lattice", "sides": [6]}, 6, "sides must be two numbers"),
        ({"kind": "lattice", "neighbours": 6}, 6, "neighbours must be 4 or 8"),
        ({"kind": "lattice", "periodic": 1}, 6, "periodic must be true or false"),
        ("erdos-renyi", 6, "needs exactly one of p and mean_degree"),
        ({"kind": "erdos-renyi", "mean_degree": 6}, 6, "mean_degree must be from 0 to N - 1 = 5"),
        ({"kind": "random-regular", "d": 6}, 6, "d must be at least 1 and below N = 6"),
        ({"kind": "configuration", "degrees": [1, 1]}, 3, "one whole number for each of the 3 agents"),
        ({"kind": "configuration", "degrees": [1, 1, 1]}, 3, "must have an even sum; got 3"),
        ({"kind": "configuration", "degrees": [3, 1, 0]}, 3, "must be from 0 to N - 1 = 2"),
        ({"kind": "configuration", "degrees": [3, 3, 1, 1]}, 4, "no network without loops and repeated edges"),
        ({"kind": "configuration", "degrees": [1, 1], "max_degree": 1}, 2, "go with exponent"),
        ({"kind": "configuration", "exponent": 2, "max_degree": 6}, 6, "max_degree <= N - 1 = 5 must hold"),
        ({"kind": "configuration", "exponent": 2, "min_degree": 3, "max_degree": 3}, 5, "must be even; got 5 times 3"),
        ({"kind": "configuration", "exponent": float("inf")}, 6, "exponent must be a finite number"),
        ({"kind": "configuration"}, 6, "needs exactly one of degrees and exponent"),
        ({"kind": "stochastic-block-model", "sizes": [2, 3], "p": [[1]]}, 6, "sizes must be whole numbers that sum"),
        ({"kind": "stochastic-block-model", "shares": [1, 0], "p": [[1]]}, 6, "shares must be positive"),
        ({"kind": "stochastic-block-model", "shares": [1, 1], "p": [[1, 0], [1, 0]]}, 6, "2 blocks and be symmetric"),
        ({"kind": "stochastic-block-model", "shares": [1, 1], "p": [[1], [1, 0]]}, 6, "2 blocks and be symmetric"),
        ({"kind": "stochastic-block-model", "shares": [1, 1], "p_within": 0.5}, 6, "p_between must be a probability"),
        ({"kind": "stochastic-block-model", "shares": [1], "p": [[1]], "p_within": 1}, 6, "needs either p or p_within"),
        ({"kind": "stochastic-block-model", "p_within": 1, "p_between": 0}, 6, "exactly one of sizes and shares"),
        ({"edges": 5}, 4, "must be a list of pairs of agents"),
        ({"edges": ["01"]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[0, 1, 2]]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[0]]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[[0], 1]]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[None, 1]]}, 4, "must be a list of pairs of agents"),
        ({"edges": []}, 4, "has no edge"),
        ({"edges": [[2, 2]]}, 4, "an agent cannot be joined to itself"),
        ({"edges": [[0, 4]]}, 4, r"agents 0\.\.3 \(N = 4\)"),
        (nx.Graph([("a", 0)]), 4, "all numbers or all names"),
        (nx.path_graph(5), 4, r"agents 0\.\.3"),
        (nx.empty_graph(4), 4, "has no edge"),
    ],
)
def test_bad_networks(spec: Any, n: int, message: str) -> None:
    with pytest.raises(SpecError, match=rf"interaction\.network.*{message}"):
        build_network(spec, n)


@pytest.mark.parametrize(
    ("graph", "edges"),
    [
        (nx.Graph([("a", "b"), ("b", "c")]), {(0, 1), (1, 2)}),
        (nx.Graph([("2", "0")]), {(0, 2)}),
        (nx.Graph([(np.int64(2), np.int64(0))]), {(0, 2)}),
        (nx.grid_2d_graph(2, 2), {(0, 2), (0, 1), (1, 3), (2, 3)}),
        (nx.Graph([(0.5, 1.5)]), {(0, 1)}),  # numbers that number nobody are names
        (nx.MultiGraph([(0, 1), (0, 1)]), {(0, 1)}),
    ],
)
def test_a_graph_of_ones_own(graph: nx.Graph, edges: set[tuple[int, int]]) -> None:
    before = sorted(graph.nodes, key=str)
    built = build_network(graph, 4)
    assert built.n == 4
    assert _both_ways(built) == edges | {(b, a) for a, b in edges}
    assert sorted(graph.nodes, key=str) == before


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "heavy", True])
def test_a_weight_is_a_finite_number(tmp_path: Path, weight: Any) -> None:
    graph = nx.Graph([(0, 1)])
    graph.edges[0, 1]["weight"] = weight
    nx.write_graphml(graph, tmp_path / "net.graphml")
    nx.write_edgelist(graph, tmp_path / "net.edges")
    for name in ("net.graphml", "net.edges"):
        with pytest.raises(SpecError, match=r"interaction\.network.* weight .*must be a finite number"):
            build_network({"kind": "file", "path": str(tmp_path / name)}, 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_graphml_with_declarations_is_refused(tmp_path: Path, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>'
    (tmp_path / "net.graphml").write_text(text, encoding=encoding)
    with pytest.raises(SpecError, match="holds a document type or entity declaration"):
        build_network({"kind": "file", "path": str(tmp_path / "net.graphml")}, 2)


def test_weights_and_directions_written_out_are_kept() -> None:
    spec = {"edges": [["b", "a"], ["a", "c"]], "weights": [2, -0.5], "directed": True}
    network = build_network(spec, 4)
    assert network.directed
    pairs, weights = network.edges
    assert (pairs.tolist(), weights.tolist()) == ([[0, 1], [1, 2]], [2, -0.5])


def test_weights_in_an_edge_list_are_kept(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0 1 {'weight': 3}\n1 2 {'weight': -2e-1, 'since': 4}\n0 3\n", encoding="utf-8")
    pairs, weights = build_network({"kind": "file", "path": str(tmp_path / "g.txt")}, 4).edges
    assert (pairs.tolist(), weights.tolist()) == ([[0, 1], [0, 3], [1, 2]], [3, 1, -0.2])
