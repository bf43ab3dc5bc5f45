"""Networks by name: every kind, files, labels, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from opinionsim.errors import SpecError
from opinionsim.networks import Network, build_network
from opinionsim.registry import built_in
from tests.support.tables import refused

PARAMETERS: dict[str, dict[str, Any]] = {
    "watts-strogatz": {"k": 4, "p": 0.3},
    "erdos-renyi": {"p": 0.4},
    "barabasi-albert": {"m": 2},
    "random-regular": {"d": 3},
    "stochastic-block-model": {"shares": [1, 1], "p_within": 0.6, "p_between": 0.2},
    "configuration": {"exponent": 2, "max_degree": 5},
}
RANDOM = sorted(PARAMETERS)
GENERATED = sorted(set(built_in("network")) - {"file", "edges"})


def _edges(network: Network) -> set[tuple[int, int]]:
    return {(a, b) for a, b in network.edges[0].tolist()}


def _both_ways(network: Network) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in network.graph().to_directed().edges}


@pytest.mark.parametrize("kind", GENERATED)
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
        ("0,1\r\n1, 2\r\n", {(0, 1), (1, 2)}),
        ('"Smith, Ann",Bob Jones\nBob Jones,Cy\n', {(0, 1), (1, 2)}),
        ("\ufeff0 1\n1 2\n", {(0, 1), (1, 2)}),
        ("\ufeffSource,Target\n0,1\n1,2\n", {(0, 1), (1, 2)}),
        ("# who,whom\nsource target\n\n2 0\n", {(0, 2)}),
        ("ann bob\nbob cy\n", {(0, 1), (1, 2)}),
        ("from to\nto cy\n", {(0, 1), (1, 2)}),  # agents of these names, since one comes again
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
        *refused(__file__, "edge lists"),
        (b"\xff\x00", "friends.txt: not a text file"),
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
        ("none.txt", None, r"^network: no such file: none\.txt"),
        ("bad.graphml", "<graphml", "cannot be read as GraphML"),
        ("bad.graphml", "0 1\n", "cannot be read as GraphML"),
        (".", None, "is a folder; expected a file"),
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
        *refused(__file__, "networks"),
        (nx.Graph([(0, 1)]), 1, "there must be at least 2 agents; got 1"),
        (Network.of(5), 4, "it has 5 agents, but 4 are needed"),
        ({"edges": np.array([[0, 1, 2]])}, 4, "edges must be pairs of agents"),
        ({"edges": np.array([[0, 4]])}, 4, r"agents 0\.\.3 \(N = 4\); got agent 4"),
        ({"edges": np.array([[0, 1]]), "widths": 1}, 4, "widths: unknown field"),
        ({"edges": np.array([[0, 1]]), "directed": "yes"}, 4, "directed: must be true or false"),
        (nx.Graph([("a", 0)]), 4, "all numbers or all names"),
        (nx.path_graph(5), 4, r"agents must be 0\.\.3"),
        (nx.empty_graph(4), 4, "has no edge"),
    ],
)
def test_bad_networks(spec: Any, n: int | None, message: str) -> None:
    for where in ("network", "interaction.network"):
        with pytest.raises(SpecError, match=rf"^{where}[.:].*{message}"):
            build_network(spec, n, where=where)


def test_errors_call_it_a_network_unless_told_otherwise() -> None:
    with pytest.raises(SpecError, match=r"^network: unknown network 'circle'"):
        build_network("circle", 4)


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
    for name, problem in (
        ("net.graphml", "must be a finite number"),
        ("net.edges", "weight.* is (missing|.*not a number)"),
    ):
        with pytest.raises(SpecError, match=f"^network.* weight .*{problem}" if "gr" in name else f":1: .*{problem}"):
            build_network({"kind": "file", "path": str(tmp_path / name)}, 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_graphml_with_declarations_is_refused(tmp_path: Path, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>'
    (tmp_path / "net.graphml").write_text(text, encoding=encoding)
    with pytest.raises(SpecError, match="contains a document type or entity declaration"):
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


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("0 1 0.5\n1 2 -2\n0 3 1e0\n", [0.5, 1, -2]),
        ("0\t1\t0.5\n1\t2\t-2\n0\t3\t1\n", [0.5, 1, -2]),
        ("source,target,weight\n0,1,0.5\n1,2,-2\n0,3,1\n", [0.5, 1, -2]),
        ("\ufeff0,1,0.5\r\n1,2,-2\r\n0,3,1\r\n", [0.5, 1, -2]),
        ("a b 0.5\nb c -2\na d 1\n", [0.5, 1, -2]),
        ("0 1 1\n1 2 1\n0 3 1 # a friend\n", None),
    ],
)
def test_a_third_column_weighs(tmp_path: Path, text: str, stated: list[float] | None) -> None:
    path = tmp_path / "g.csv"
    path.write_text(text, encoding="utf-8", newline="")
    pairs, weights = build_network({"kind": "file", "path": path}, 4).edges
    assert pairs.tolist() == [[0, 1], [0, 3], [1, 2]]
    assert (None if weights is None else weights.tolist()) == stated


@pytest.mark.parametrize(
    ("text", "n", "labels"),
    [
        ("0 1\n1 2\n", 3, None),
        ("10 20\n20 30\n", 31, None),
        ("zoe ann\nann mia\n", 3, ("zoe", "ann", "mia")),
        ("source,target\n0,1\n", 2, None),
    ],
)
def test_what_is_read_says_how_many_agents_there_are(
    tmp_path: Path, text: str, n: int, labels: tuple[str, ...] | None
) -> None:
    path = tmp_path / "g.txt"
    path.write_text(text, encoding="utf-8")
    network = build_network({"kind": "file", "path": path})
    assert (network.n, network.labels) == (n, labels)
    wider = build_network({"kind": "file", "path": path}, n + 1)
    assert wider.n == n + 1
    assert wider.labels == (labels and (*labels, None))
    assert _edges(wider) == _edges(network)


def test_graphml_says_how_many_agents_there_are(tmp_path: Path) -> None:
    graph = nx.Graph([("a", "b")])
    graph.add_node("c")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    network = build_network({"kind": "file", "path": tmp_path / "g.graphml"})
    assert (network.n, network.labels) == (3, ("a", "b", "c"))
    nx.write_graphml(nx.Graph([(0, 5)]), tmp_path / "g.graphml")
    assert build_network({"kind": "file", "path": tmp_path / "g.graphml"}).n == 6


@pytest.mark.parametrize("edges", [[[0, 4]], np.array([[0, 4]]), [["0", "4"]]])
def test_what_is_written_out_says_how_many_agents_there_are(edges: Any) -> None:
    for kind in ({}, {"kind": "edges"}, {"kind": "edge-list"}):
        assert build_network({**kind, "edges": edges}).n == 5
    assert build_network({"edges": [["a", "b"]]}).n == 2


def test_graphs_and_networks_say_how_many_agents_there_are() -> None:
    assert build_network(nx.Graph([(10, 30), (30, 20)])).edges[0].tolist() == [[0, 2], [1, 2]]
    assert build_network(Network.of(5)).n == 5
    with pytest.raises(SpecError, match=r"agents must be 0\.\.2 \(N = 3\); got agent 30"):
        build_network(nx.Graph([(10, 30), (30, 20)]), 3)


@pytest.mark.parametrize(
    ("text", "options", "directed", "pairs", "weights"),
    [
        ("Ann Bob\nBob Cy\n", {"directed": True}, True, [(0, 1), (1, 2)], None),
        ("Ann Bob\nBob Cy\n", {"directed": True, "first": "listener"}, True, [(1, 0), (2, 1)], None),
        ("0 1 2\n1 0 3\n", {"directed": True}, True, [(0, 1), (1, 0)], [2, 3]),
        ("a,b,ties\n0,1,2\n1,2,3\n", {"weight": "ties"}, False, [(0, 1), (1, 2)], [2, 3]),
        ("0 1 {'ties': 2}\n1 2 {'ties': 3}\n", {"weight": "ties"}, False, [(0, 1), (1, 2)], [2, 3]),
        ("0 1 2\n1 1 3\n1 2 1\n", {"self_loops": "drop"}, False, [(0, 1), (1, 2)], [2, 1]),
        ("Id;Source;Target;Weight\n7;Ann;Bob;0,5\n8;Bob;Cy;2\n", {}, False, [(0, 1), (1, 2)], [0.5, 2]),
        ("Source,Target\nAnn,Bob\nBob,Cy\n", {}, False, [(0, 1), (1, 2)], None),
        ("0.0 2.0\n2.0 1.0\n", {}, False, [(0, 2), (1, 2)], None),
        ("4 5\n5 6\n", {}, False, [(4, 5), (5, 6)], None),
    ],
)
def test_what_is_said_of_an_edge_list(
    tmp_path: Path, text: str, options: dict[str, Any], directed: bool, pairs: Any, weights: Any
) -> None:
    (tmp_path / "g.csv").write_text(text, encoding="utf-8")
    network = build_network({"kind": "file", "path": str(tmp_path / "g.csv"), **options})
    found, stated = network.edges
    assert (network.directed, sorted(map(tuple, found.tolist()))) == (directed, pairs)
    assert (None if stated is None else stated.tolist()) == weights


@pytest.mark.parametrize(
    ("name", "text", "options", "problem"),
    [
        ("g.csv", "0 1\n", {"first": "listener"}, "first needs directed edges"),
        ("g.csv", "0 1\n1 1\n", {}, "an agent cannot be connected to itself"),
        ("g.csv", "source,target,ties\n0,1,2\n", {"weight": "tie"}, r":1: has no column 'tie' \(did you mean ties"),
        ("g.adjlist", "0 1\n", {"directed": True}, "directed is only for edge lists; an adjacency list states"),
    ],
)
def test_what_does_not_go_with_a_file_is_refused(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], problem: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=problem):
        build_network({"kind": "file", "path": str(tmp_path / name), **options})


def test_an_attribute_that_may_be_the_weight_is_not_dropped(tmp_path: Path) -> None:
    nx.write_gml(nx.Graph([(0, 1, {"value": 3})]), tmp_path / "g.gml")
    spec = {"kind": "file", "path": str(tmp_path / "g.gml")}
    with pytest.raises(SpecError, match="edges have 'value' but no 'weight'; set weight: value"):
        build_network(spec)
    assert build_network({**spec, "weight": "value"}).edges[1].tolist() == [3]
    with pytest.raises(SpecError, match=r"no edge has the attribute 'valu' \(did you mean value\?\)"):
        build_network({**spec, "weight": "valu"})
