"""The network in a file, whose ending says of what kind it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zipfile import is_zipfile

import numpy as np
from pydantic import Field

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
    """The file, whose ending says what it is: .graphml, .gml, .gexf, .net, .adjlist, .npz, or .csv and the like."""

    def network(self, read: Reader | None = None) -> Network:
        """The network on as many agents as the file names."""
        with _in_file(self.path):
            return (read or _read)(self.path)

    def build(
        self,
        size: int | None,
        rng: np.random.Generator,
        read: Reader | None = None,
        names: Sequence[str] | None = None,
    ) -> Network:
        """The network; agents that the file does not name have no neighbour."""
        with _in_file(self.path):
            return super().build(size, rng, read, names)


@contextmanager
def _in_file(path: str) -> Iterator[None]:
    """Name the file in problems with its network."""
    try:
        yield
    except Unfit as problem:
        refuse(str(problem) if problem.fields["file"] else f"{path}: {problem}", path)


def _graph(read: Callable[[Path], object]) -> Callable[[Path], Edges]:
    """A reader of graphs of networkx as one of edges."""

    def edges(file: Path) -> Edges:
        graph = read(file)
        return from_graph(graph, *agent_numbers(list(graph)))  # type: ignore[call-overload]

    return edges


def _matrix(file: Path) -> Edges:
    from scipy.sparse import load_npz

    if not is_zipfile(file):
        refuse(f"{file} is not readable as a sparse matrix of SciPy: it is no archive of arrays", file)
    matrix = load_npz(file)
    # SciPy computes with places outside the matrix as if they were inside.
    if hasattr(matrix, "check_format"):
        matrix.check_format()
    return from_matrix(matrix)


class _Form(NamedTuple):
    """A kind of file: what it is called, and the function that reads it."""

    name: str
    read: Callable[[Path], Edges]


_EDGE_LIST = _Form("an edge list", lambda file: from_labels(*read_edge_list(file)))
_FORMS: Mapping[str, _Form] = {
    ".graphml": _Form("GraphML", _graph(read_graphml)),
    ".gml": _Form("GML", _graph(read_gml)),
    ".gexf": _Form("GEXF", _graph(read_gexf)),
    ".net": _Form("Pajek", _graph(read_pajek)),
    ".adjlist": _Form("an adjacency list", _graph(read_adjacency)),
    ".npz": _Form("a sparse matrix of SciPy", _matrix),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el", ".dat", ""), _EDGE_LIST),
}


def _read(path: str) -> Network:
    """The network in a file."""
    file = Path(path)
    form = _FORMS.get(file.suffix.lower())
    if not file.exists():
        refuse(f"no such file: {path}", path)
    if form is None:
        endings = {each.name: [ending for ending, other in _FORMS.items() if other is each] for each in _FORMS.values()}
        valid = ", ".join(f"{name} ({' '.join(filter(None, each))})" for name, each in endings.items())
        refuse(f"{path} is of no kind that can be read, which its ending tells; valid are {valid}", path)
    try:
        return Network._from(form.read(file))
    except Unfit:
        raise
    except Exception as error:  # readers let errors of several libraries through
        refuse(f"{path} is not readable as {form.name}: {' '.join(str(error).split()) or type(error).__name__}", path)
