"""Networks in files of every kind: what networkx and SciPy write comes back, and nothing is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from opinionsim.errors import SpecError
from opinionsim.networks import Network, build_network
from tests.support.tables import refused

WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".graphml": nx.write_graphml,
    ".gml": nx.write_gml,
    ".gexf": nx.write_gexf,
    ".net": nx.write_pajek,
}


def _at(path: Path, n: int | None = None) -> Network:
    return build_network({"kind": "file", "path": str(path)}, n)


def _written(folder: Path, name: str, content: str | bytes) -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def _told(network: Network) -> tuple[Any, ...]:
    """All that a network holds, with each edge by its labels."""
    pairs, weights = network.edges
    called = list(range(network.n)) if network.labels is None else list(network.labels)
    ends = [tuple(called[end] for end in pair) for pair in pairs.tolist()]
    if not network.directed:
        ends = [tuple(sorted(pair)) for pair in ends]
    stated = [1.0] * len(ends) if weights is None else weights.tolist()
    return sorted(called), network.directed, sorted(zip(ends, stated, strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    """Graphs of names with weights, and of numbers without; isolated nodes are among them."""
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph]))
    names = ["Ann", "Bob B", "Cy", "Dé", "O'Neil"] if draw(st.booleans()) else [0, 1, 2, 3, 4]
    pairs = [(a, b) for a in names for b in names if a != b]
    graph = kind()
    graph.add_nodes_from(names)
    for a, b in draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=8)):
        graph.add_edge(a, b, **({"weight": draw(st.sampled_from([0.5, 1.0, -2.0]))} if names[0] == "Ann" else {}))
    nx.set_node_attributes(graph, 7.5, "weight")
    return graph


@pytest.mark.parametrize("ending", WRITERS)
@given(graph=graphs())
def test_what_networkx_writes_comes_back(tmp_path_factory: pytest.TempPathFactory, ending: str, graph: Any) -> None:
    path = tmp_path_factory.mktemp("files") / f"g{ending.upper()}"
    if ending == ".net":
        # Numbers are no values of attributes there.
        graph = nx.relabel_nodes(graph, {node: str(node) for node in graph})
        for node in graph:
            graph.nodes[node].pop("weight")
    WRITERS[ending](graph, path)
    found, expected = _told(_at(path)), _told(Network.of(graph))
    assert found == expected


@given(graph=graphs())
def test_adjacency_lists_come_back_without_directions_and_weights(
    tmp_path_factory: pytest.TempPathFactory, graph: Any
) -> None:
    path = tmp_path_factory.mktemp("files") / "g.adjlist"
    plain = nx.Graph(nx.relabel_nodes(graph, {node: str(node).replace(" ", "_") for node in graph}))
    nx.write_adjlist(plain, path)
    for *_, data in plain.edges(data=True):
        data.clear()
    assert _told(_at(path)) == _told(Network.of(plain))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_come_back(tmp_path: Path, form: str) -> None:
    matrix = np.array([[0, 2, 0], [-1, 0, 0.5], [0, 0, 0]])
    sparse.save_npz(tmp_path / "m.npz", sparse.coo_array(matrix).asformat(form))
    assert _told(_at(tmp_path / "m.npz")) == _told(Network.of(matrix))
    # Agent 0 hears agent 1, who hears both others.
    assert _at(tmp_path / "m.npz").edges[0].tolist() == [[0, 1], [1, 0], [2, 1]]


GML_EDGE = "edge [ source 1 target 2 ]"
GEXF = (
    '<?xml version="1.0" encoding="UTF-8"?><gexf xmlns="http://gexf.net/1.3" version="1.3">'
    '<graph defaultedgetype="undirected">{}<nodes>{}</nodes><edges>{}</edges></graph></gexf>'
)
GEXF_NODES = '<node id="0"/><node id="1"/>'
GEXF_EDGE = '<edge id="0" source="0" target="1"/>'
GEXF_DEFAULT = (
    '<attributes class="edge"><attribute id="w" title="weight" type="double"><default>4</default></attribute>'
    "</attributes>"
)
GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>4</default></key>'
    '<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/><edge source="a" target="b"/>'
    '<edge source="{}" target="c"><data key="w">2</data></edge></graph></graphml>'
)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        # Ids of GML are numbers, and agents where there is no label, as in other files.
        ("g.gml", f"graph [ node [ id 2 ] node [ id 1 ] {GML_EDGE} ]", ([0, 1, 2], False, [((1, 2), 1)])),
        ("g.gml", f'graph [ node [ id 1 label 3 ] node [ id 2 label "0" ] {GML_EDGE} ]', ([0, 1, 2, 3], [(0, 3)])),
        ("g.gml", f'graph [ node [ id 1 label "Dé" ] node [ id 2 label "x" ] {GML_EDGE} ]', [(("Dé", "x"), 1)]),
        ("g.gml", f"graph [ multigraph 1 node [ id 1 ] node [ id 2 ] {GML_EDGE} {GML_EDGE} ]", [((1, 2), 2)]),
        ("g.net", "*Vertices 3\r\n*Edges\r\n1 2\r\n2 3 -1\r\n", ([0, 1, 2], False, [((0, 1), 1), ((1, 2), -1)])),
        ("g.net", '% x\n*Network a\n*Vertices 2\n1 "A B" 0.1 0.2 0.5\n2 Cy\n*Arcs\n*Edges\n2 1', [(("A B", "Cy"), 1)]),
        ("g.net", "*vertices 2\n1\n2\n*arcs\n2 1 0.5\n", ([0, 1], True, [((1, 0), 0.5)])),
        ("g.adjlist", "\ufeff# friends\n0 1 2\n1 2\n3\n", ([0, 1, 2, 3], [(0, 1), (0, 2), (1, 2)])),
        ("g.gexf", GEXF.format("", GEXF_NODES, GEXF_EDGE), ([0, 1], False, [((0, 1), 1)])),
        ("g.gexf", GEXF.format("", '<node id="0" label="b"/><node id="1" label="a"/>', GEXF_EDGE), [(("a", "b"), 1)]),
        ("g.gexf", GEXF.format("", '<node id="0" label="b"/><node id="a"/>', GEXF_EDGE.replace("1", "a")),
         [(("a", "b"), 1)]),
        ("g.gexf", GEXF.format(GEXF_DEFAULT, GEXF_NODES, GEXF_EDGE), ([0, 1], False, [((0, 1), 4)])),
        ("g.graphml", GRAPHML.format("a"), [(("a", "b"), 4), (("a", "c"), 2)]),
        ("g.graphml", GRAPHML.format("a").replace("<graph ", "<!-- <!DOCTYPE --><graph "),
         [(("a", "b"), 4), (("a", "c"), 2)]),
    ],
)  # fmt: skip
def test_what_files_mean(tmp_path: Path, name: str, text: str, told: Any) -> None:
    labels, directed, edges = _told(_at(_written(tmp_path, name, text)))
    if isinstance(told, list):
        assert edges == told
    elif len(told) == 2:
        assert (labels, [pair for pair, _ in edges]) == told
    else:
        assert (labels, directed, edges) == told


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        *refused(__file__, "files"),
        ("g.gml", "graph [" * 5000, "cannot be read as GML: maximum recursion depth"),
        ("g.gml", f"graph [ node [ id 1 ] {GML_EDGE} ]", "undefined target 2"),
        ("g.gml", f'graph [ node [ id 1 label "x" ] node [ id 2 label "x" ] {GML_EDGE} ]', "finds 1; two nodes"),
        ("g.gml", f'graph [ node [ id 1 label "x" ] node [ id 2 ] {GML_EDGE} ]', "the number 2 and the name 'x'"),
        ("g.gml", f'graph [ node [ id 1 label 3 ] node [ id 2 label "3" ] {GML_EDGE} ]', r"must be different numbers"),
        ("g.gml", f"graph [ node [ id 1 ] node [ id 2 ] {GML_EDGE} {GML_EDGE} ]", r"edge #1 \(1--2\) is duplicated"),
        ("g.gexf", GEXF.format("", '<node id="0"/>', GEXF_EDGE), "declares 1 nodes, but networkx finds 2"),
        ("g.gexf", GEXF.format("", '<node id="0"/><node id="0"/><node id="1"/>', GEXF_EDGE), "have the same name"),
        ("g.gexf", GEXF.format("", '<node id="0" label="a"/><node id="1" label="a"/>', GEXF_EDGE), "the same name"),
        ("g.gexf", GEXF.format("", GEXF_NODES, '<edge source="0" target="1" type="directed"/>'), "Directed edge found"),
        ("g.graphml", GRAPHML.format("z"), "declares 3 nodes, but networkx finds 4"),
        ("g.npz", {"a": np.zeros(3)}, "does not contain a sparse array or matrix"),
        ("g.npz", {"format": np.array([{}], dtype=object)}, "Object arrays cannot be loaded"),
        # Places that SciPy would write to outside its arrays.
        ("g.npz", {"format": "csr", "shape": (3, 3), "data": np.ones(2), "indices": [0, 1], "indptr": [0, 10**8, 1, 2]},
         "indptr must be a non-decreasing sequence"),
        ("g.npz", {"format": "coo", "shape": (2, 2), "data": np.ones(1), "row": [1], "col": [1]}, "diagonal must be 0"),
        *((f"g{ending}", "x", "has an unknown extension; valid formats are GraphML .*, "
           r"GML .*, GEXF .*, Pajek .*, an adjacency list .*, a sparse matrix .*, an edge list \(\.csv ")
          for ending in (".xlsx", ".json", ".graphml.gz", ".mtx")),
    ],
)  # fmt: skip
def test_what_is_refused_with_the_name_of_the_file(tmp_path: Path, name: str, text: Any, message: str) -> None:
    path = tmp_path / name
    if isinstance(text, dict):
        np.savez(path, **text)
    else:
        _written(tmp_path, name, text)
    with pytest.raises(SpecError, match=message) as caught:
        _at(path)
    assert str(caught.value).startswith(f"network: {path}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("n", "message"), [(4, r"agents must be 0\.\.3 \(N = 4\); got agent 9"), (None, "has no edge")]
)
def test_problems_with_the_agents_of_a_file_name_it_too(tmp_path: Path, n: int | None, message: str) -> None:
    path = _written(tmp_path, "g.adjlist", "0 9\n" if n else "0\n1\n")
    with pytest.raises(SpecError, match=message) as caught:
        _at(path, n)
    assert str(caught.value).startswith(f"network: {path}: ")


@pytest.mark.parametrize(
    "address",
    ["http://www.gexf.net/1.3", "http://gexf.net/1.2", "https://gexf.net/1.3", "http://www.gexf.net/1.2draft"],
)
def test_versions_of_gexf_are_read_under_each_address_with_empty_labels(tmp_path: Path, address: str) -> None:
    nodes = GEXF_NODES.replace("/>", ' label=""/>')
    text = GEXF.format("", nodes, GEXF_EDGE).replace("http://gexf.net/1.3", address)
    assert _told(_at(_written(tmp_path, "g.gexf", text))) == ([0, 1], False, [((0, 1), 1.0)])


@pytest.mark.parametrize("name", ["g.graphml", "g.gexf"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_declarations_of_entities_are_refused(tmp_path: Path, name: str, encoding: str) -> None:
    body = GEXF.format("", GEXF_NODES, GEXF_EDGE).partition("?>")[2] if "gexf" in name else GRAPHML.format("a")
    bomb = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [<!ENTITY a "{"b" * 50}">]>{body}'
    path = _written(tmp_path, name, bomb.encode(encoding))
    with pytest.raises(SpecError, match=r"contains a document type or entity declaration"):
        _at(path)
