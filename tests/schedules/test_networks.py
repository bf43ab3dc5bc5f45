"""Networks: every kind, files, labels, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinionsim.errors import SpecError
from opinionsim.schedules import NETWORKS, Neighbours, build_network

PARAMETERS: dict[str, dict[str, Any]] = {
    "watts-strogatz": {"k": 4, "p": 0.3},
    "erdos-renyi": {"p": 0.4},
    "barabasi-albert": {"m": 2},
    "random-regular": {"d": 3},
}
RANDOM = sorted(PARAMETERS)


def _edges(graph: nx.Graph) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in graph.edges()}


def _both_ways(graph: nx.Graph) -> set[tuple[int, int]]:
    edges = _edges(graph)
    return edges if graph.is_directed() else edges | {(b, a) for a, b in edges}


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_kind_is_a_simple_network_of_all_agents(kind: str) -> None:
    for n in (6, 20):
        graph = build_network({"kind": kind, **PARAMETERS.get(kind, {})}, n, seed=3)
        assert sorted(graph.nodes) == list(range(n))
        assert not graph.is_directed()
        assert nx.number_of_selfloops(graph) == 0


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
    graph = build_network(spec, n)
    assert sorted(graph.nodes) == list(range(n))
    assert _both_ways(graph) == edges | {(b, a) for a, b in edges}


def test_counts_of_random_kinds() -> None:
    n = 30
    built = {kind: build_network({"kind": kind, **PARAMETERS[kind]}, n, seed=1) for kind in RANDOM}
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
    assert read.is_directed() == graph.is_directed()
    assert _edges(read) == _edges(graph)
    if not graph.is_directed():
        nx.write_edgelist(graph, tmp_path / "g.txt")
        listed = build_network({"kind": "file", "path": tmp_path / "g.txt"}, len(graph))
        assert _both_ways(listed) == _both_ways(graph)


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
        ({"kind": "ring", "k": 2}, 4, "'ring' takes no parameters; got k"),
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
        ({"kind": "edges"}, 4, "'edges' takes edges; got none"),
        ({"edges": [[0, 1]], "weights": [1]}, 4, "'edges' takes edges; got edges, weights"),
        ({"edges": 5}, 4, "must be a list of pairs of agents"),
        ({"edges": ["01"]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[0, 1, 2]]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[0]]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[[0], 1]]}, 4, "must be a list of pairs of agents"),
        ({"edges": [[None, 1]]}, 4, "must be a list of pairs of agents"),
        ({"edges": []}, 4, "has no edge"),
        ({"edges": [[2, 2]]}, 4, "an agent cannot be joined to itself"),
        ({"edges": [[0, 4]]}, 4, r"agents 0\.\.3 \(population\.size = 4\)"),
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
    assert sorted(built.nodes) == [0, 1, 2, 3]
    assert _both_ways(built) == edges | {(b, a) for a, b in edges}
    assert sorted(graph.nodes, key=str) == before


graphs = st.builds(
    lambda n, edges, directed: build_network((nx.DiGraph if directed else nx.Graph)([(0, n - 1), *edges]), n),
    st.just(7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda edge: edge[0] != edge[1]), max_size=15),
    st.booleans(),
)


@given(graphs)
def test_neighbours_are_those_of_the_graph(graph: nx.Graph) -> None:
    neighbours = Neighbours(graph)
    pairs = _both_ways(graph)
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
        (1, "N >= 2 agents; got population.size = 1"),
        (nx.Graph([("a", "b")]), "build_network numbers other labels"),
        (nx.Graph([(1, 2)]), r"must be the agents 0\.\.1"),
        (nx.Graph([(0, 0), (0, 1)]), "joined to itself"),
        (nx.empty_graph(3), "has no edge"),
    ],
)
def test_neighbours_take_networks_of_agents_only(network: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Neighbours(network)


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
