"""The network in a file. The extension of the file determines its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zipfile import is_zipfile

import numpy as np
from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.networks._edge_list import read_edge_list
from opinionsim.networks._graph_files import read_adjacency, read_gexf, read_gml, read_graphml, read_pajek
from opinionsim.networks._graph_reading import Edges, Unfit, agent_numbers, from_graph, from_labels, from_matrix, refuse
from opinionsim.networks._kind import GivenNetwork, Reader
from opinionsim.networks._network import Network
from opinionsim.registry import part


@part("network", name="file")
class FileNetwork(GivenNetwork):
    """Edges in a file: GraphML, GML, GEXF, Pajek, an adjacency list, a sparse matrix of SciPy, or an edge list."""

    path: str = Field(min_length=1)
    """Path of the file. Its extension determines the format: .graphml, .gml, .gexf, .net, .adjlist, .npz, or .csv and
    similar."""

    directed: bool = False
    """Whether the edges of an edge list are directed. Other formats contain this information."""
    first: Literal["speaker", "listener"] = "speaker"
    """Which agent comes first in a directed edge: the speaker, or the listener, as in lists of followers and the
    accounts they follow."""
    weight: str | None = Field(None, min_length=1)
    """Column of an edge list, or edge attribute, that contains the weights. Null uses the one named `weight`, or the
    third column of an edge list without headings."""
    self_loops: Literal["refuse", "drop"] = "refuse"
    """What to do if a file contains edges from an agent to itself: refuse the file, or drop these edges."""

    def network(self, read: Reader | None = None) -> Network:
        """Read the network, with as many agents as the file names."""
        with _in_file(self.path):
            options = {name: value for name, value in self.stated("path").items() if name != "kind"}
            return (read or _read)(self.path, options)

    def build(
        self,
        size: int | None,
        rng: np.random.Generator,
        read: Reader | None = None,
        names: Sequence[str] | None = None,
    ) -> Network:
        """Build the network. Agents that the file does not name have no neighbour."""
        with _in_file(self.path):
            return super().build(size, rng, read, names)


@contextmanager
def _in_file(path: str) -> Iterator[None]:
    """Name the file in problems with its network."""
    try:
        yield
    except Unfit as problem:
        refuse(str(problem) if problem.fields["file"] else f"{path}: {problem}", path)


def _graph(read: Callable[[Path], object]) -> Callable[[Path, FileNetwork], Edges]:
    """A reader of graphs of networkx as one of edges."""

    def edges(file: Path, given: FileNetwork) -> Edges:
        graph = read(file)
        return from_graph(graph, *agent_numbers(list(graph)), given.weight)  # type: ignore[call-overload]

    return edges


def _edge_list(file: Path, given: FileNetwork) -> Edges:
    return from_labels(*read_edge_list(file, given.weight), directed=given.directed)


def _matrix(file: Path, _: FileNetwork) -> Edges:
    from scipy.sparse import load_npz

    if not is_zipfile(file):
        refuse(f"{file} cannot be read as a sparse matrix of SciPy: it is not an archive of arrays", file)
    matrix = load_npz(file)
    # SciPy computes with places outside the matrix as if they were inside.
    if hasattr(matrix, "check_format"):
        matrix.check_format()
    return from_matrix(matrix)


class _Form(NamedTuple):
    """A kind of file: what it is called, and the function that reads it."""

    name: str
    read: Callable[[Path, FileNetwork], Edges]


_EDGE_LIST = _Form("an edge list", _edge_list)
_FORMS: Mapping[str, _Form] = {
    ".graphml": _Form("GraphML", _graph(read_graphml)),
    ".gml": _Form("GML", _graph(read_gml)),
    ".gexf": _Form("GEXF", _graph(read_gexf)),
    ".net": _Form("Pajek", _graph(read_pajek)),
    ".adjlist": _Form("an adjacency list", _graph(read_adjacency)),
    ".npz": _Form("a sparse matrix of SciPy", _matrix),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el", ".dat", ""), _EDGE_LIST),
}


def _read(path: str, options: Mapping[str, Any]) -> Network:
    """The network in a file, read with the options of its kind."""
    file, given = Path(path), FileNetwork.model_validate({"path": path, **options})
    form = _FORMS.get(file.suffix.lower())
    if not file.exists():
        refuse(f"no such file: {path}", path)
    if form is None:
        endings = {each.name: [ending for ending, other in _FORMS.items() if other is each] for each in _FORMS.values()}
        valid = ", ".join(f"{name} ({' '.join(filter(None, each))})" for name, each in endings.items())
        refuse(f"{path} has an unknown extension; valid formats are {valid}", path)
    if given.directed and form is not _EDGE_LIST:
        refuse(f"{path}: directed is only for edge lists; {form.name} states whether edges are directed", path)
    try:
        edges = form.read(file, given)
        if given.first == "listener":
            if not edges.directed:
                refuse(f"{path}: first needs directed edges; for an edge list, set directed: true", path)
            edges = replace(edges, speakers=edges.listeners, listeners=edges.speakers)
        if given.self_loops == "drop":
            edges = edges.without_loops(path)
        return Network._from(edges)
    except Unfit:
        raise
    except SpecError as problem:
        refuse(str(problem), path)
    except Exception as error:  # readers let errors of several libraries through
        refuse(f"{path} cannot be read as {form.name}: {' '.join(str(error).split()) or type(error).__name__}", path)
