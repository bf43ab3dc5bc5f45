"""Read files of graphs with networkx, and refuse those that it would misread."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from opinionsim.foundation.tables import number_in
from opinionsim.networks._graph_reading import agent_number, refuse

if TYPE_CHECKING:
    import networkx as nx

#: Vertices that a file may state without a row for each: networkx holds them as objects.
_MOST_VERTICES = 10_000_000
#: Addresses of versions 1.2 and 1.3 of GEXF, of which networkx knows one each.
_GEXF = re.compile(rb"https?://(?:www\.)?gexf\.net/1\.[23](?:draft)?(?=[\"'/])")
_PAJEK_WORD = re.compile(r'"([^"]*)"|(\S+)')


def read_graphml(file: Path) -> nx.Graph:
    """Read the graph in a GraphML file; ids name the nodes."""
    import networkx as nx

    return _xml(file, nx.read_graphml)


def read_gexf(file: Path) -> nx.Graph:
    """Read the graph in a GEXF file; labels name the nodes, or ids if a node has no label."""
    import networkx as nx

    return _labelled(file, _xml(file, nx.read_gexf, _GEXF))


def read_gml(file: Path) -> nx.Graph:
    """Read the graph in a GML file; labels name the nodes, or ids if a node has no label."""
    import networkx as nx

    return _labelled(file, nx.parse_gml(_text(file), label=None))


def read_pajek(file: Path) -> nx.Graph:
    """Read the graph in a Pajek file; labels name the vertices, which are 0, 1, ... in order if they have no labels."""
    import networkx as nx

    sections: list[tuple[str, list[list[str]]]] = [("", [])]
    for line in map(str.strip, _text(file).splitlines()):
        if line.startswith("*"):
            sections.append((line.lower(), []))
        elif line and not line.startswith("%"):
            sections[-1][1].append([quoted or word for quoted, word in _PAJEK_WORD.findall(line)])
    filled = [(head, rows) for head, rows in sections if rows or head.startswith("*vertices")]
    heads = [head.split()[0] for head, _ in filled if head and not head.startswith("*network")]
    if sections[0][1] or heads not in (["*vertices", "*edges"], ["*vertices", "*arcs"]):
        refuse(
            f"{file}: must contain *Vertices, then rows under one heading, *Edges or *Arcs; "
            f"got {', '.join(heads) or None}",
            file,
        )
    (head, vertices), (_, rows) = filled[-2:]
    stated = head.removeprefix("*vertices").strip()
    count = agent_number(stated)
    if count is None or not 0 < count <= _MOST_VERTICES:
        refuse(f"{file}: *Vertices must state one number, from 1 to {_MOST_VERTICES}; got {stated!r:.60}", file)
    if all(len(row) == 1 for row in vertices):
        vertices = [[str(place + 1), str(place)] for place in range(count)]
    if not len(vertices) == len({row[0] for row in vertices}) == count:
        refuse(f"{file}: *Vertices states {count} vertices but has rows for {len({row[0] for row in vertices})}", file)
    for row in rows:
        if len(row) < 2 or (len(row) > 2 and number_in(row[2]) is None):
            refuse(f"{file}: edges must have two vertices and optionally a weight; got {' '.join(row)!r:.60}", file)
    # networkx reads words as a shell does, to which an apostrophe is a quotation mark.
    lines = [f"*vertices {count}", *map(shlex.join, vertices), heads[1], *map(shlex.join, rows)]
    return _whole(file, nx.parse_pajek(lines), count)


def read_adjacency(file: Path) -> nx.Graph:
    """Read the graph in an adjacency list, which has an agent and then its neighbours in each line."""
    import networkx as nx

    lines = _text(file).splitlines()
    for number, line in enumerate(lines, 1):
        if "," in line.partition("#")[0]:
            refuse(f"{file}:{number}: must contain agents separated by spaces; got {line!r:.60}", file)
    return nx.parse_adjlist(lines)


def _text(file: Path) -> str:
    # A byte order mark may stand before the text.
    return file.read_text(encoding="utf-8-sig")


def _xml(file: Path, read: Callable[[BytesIO], nx.Graph], addresses: re.Pattern[bytes] | None = None) -> nx.Graph:
    """Read the graph in an XML file; edges without a weight have the default weight of the file.

    Declarations are refused because networkx would expand their entities, possibly without end.
    """
    content = file.read_bytes()
    if addresses is not None:
        content = addresses.sub(b"http://www.gexf.net/1.2draft", content)
    count = 0

    def start(name: str, _: Any) -> None:
        nonlocal count
        count += name.rpartition(":")[2] == "node"

    def declared(*_: Any) -> None:
        refuse(f"{file} contains a document type or entity declaration; remove the declaration", file)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = declared
    parser.Parse(content, True)
    graph = _whole(file, read(BytesIO(content)), count)
    weight = graph.graph.get("edge_default", {}).get("weight")
    if weight is not None:
        for *_, attributes in graph.edges(data=True):
            attributes.setdefault("weight", weight)
    return graph


def _whole(file: Path, graph: nx.Graph, declared: int) -> nx.Graph:
    """The graph, if it has the nodes that its file declares: networkx adds missing nodes and merges equal ones."""
    if len(graph) != declared:
        refuse(
            f"{file}: declares {declared} nodes, but networkx finds {len(graph)}; two nodes have the same name, or an "
            "edge connects a node that is not declared",
            file,
        )
    return graph


def _labelled(file: Path, graph: nx.Graph) -> nx.Graph:
    """The graph with labels instead of ids for nodes that have labels."""
    import networkx as nx

    labels = {node: label for node, label in graph.nodes(data="label") if label not in (None, "")}
    return _whole(file, nx.relabel_nodes(graph, labels), len(graph))
