"""Graphs, matrices and rows of numbers, read as pairs of numbered agents."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opinionsim.errors import SpecError, meant
from opinionsim.foundation.tables import tell

if TYPE_CHECKING:
    import networkx as nx

#: Agents are numbered in 32 bits.
MAX_AGENTS = 2**32 - 1


class Unfit(SpecError):
    """A problem with a network, raised by code that does not know the network's name."""


def refuse(problem: str, file: object = "") -> NoReturn:
    """Raise a problem with a network or its file; the problem names the file."""
    raise Unfit(problem, file=str(file))


@contextmanager
def named(what: str) -> Iterator[None]:
    """Turn a problem with a network into a SpecError that begins with the network's name."""
    try:
        yield
    except Unfit as problem:
        raise SpecError(problem.problem, what) from None


def check_size(n: Any, least: int = 1) -> int:
    """Return a number of agents if it is at least `least`; refuse any other."""
    try:
        size = operator.index(n)
    except TypeError:
        refuse(f"the number of agents must be an integer; got {n!r:.60}")
    if size < least:
        refuse(f"there must be at least {least} agent{'s' * (least > 1)}; got {size}")
    if size > MAX_AGENTS:
        refuse(f"there can be at most {MAX_AGENTS} agents; got {size}")
    return size


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges in any order, undirected ones in one direction only.

    Attributes
    ----------
    n : int
        Number of agents.
    speakers, listeners : ndarray (M,) of int
        Ends of each edge.
    weights : ndarray (M,) of float64, or None
        Weight of each edge; None if all are 1.
    directed : bool
        Whether edges are directed.
    labels : tuple (n,), or None
        Label of each agent, None for an agent without one; None instead of a tuple if labels are the agents' numbers.
    """

    n: int
    speakers: np.ndarray
    listeners: np.ndarray
    weights: np.ndarray | None = None
    directed: bool = False
    labels: tuple[Any, ...] | None = None

    def without_loops(self, file: str) -> Edges:
        """Return the edges that connect different agents, and print how many are left out."""
        kept = self.speakers != self.listeners
        if not kept.all():
            tell(f"{file}: omitted edges from an agent to itself: {np.count_nonzero(~kept):,}")
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, speakers=self.speakers[kept], listeners=self.listeners[kept], weights=weights)


def is_weight(value: Any) -> bool:
    """Return whether a value is a finite number."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and math.isfinite(value)


def agent_number(label: Any) -> int | None:
    """Return the agent's number that a label gives, or None if the label is a name."""
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return int(label)
    if isinstance(label, float) and label.is_integer():
        return int(label)
    # Tools that hold numbers as floats write 2.0 for node 2.
    whole = re.fullmatch(r"(-?[0-9]{1,18})(?:\.0+)?", label) if isinstance(label, str) else None
    return None if whole is None else int(whole[1])


def names_in(labels: Sequence[Any] | None) -> list[str]:
    """Return the labels of a network that are names, which are texts other than numbers."""
    return [label for label in labels or () if isinstance(label, str) and agent_number(label) is None]


def agents_called(labels: Sequence[Any], names: Sequence[str], n: int) -> np.ndarray:
    """Find the agent that each label of a network names.

    Parameters
    ----------
    labels : sequence
        Name of each node; None for an agent without one.
    names : sequence of str
        Names of the agents, in their order.
    n : int
        Number of agents N.

    Returns
    -------
    ndarray of int64
        One agent per label; 0 if there is no name.
    """
    place = {name: agent for agent, name in enumerate(names)}
    strangers = [label for label in labels if label is not None and label not in place]
    if strangers:
        refuse(
            f"{_listed(strangers)} {'is' if len(strangers) == 1 else 'are'} neither a number nor the name of an agent; "
            f"nodes are the numbers 0 to {n - 1}{', or names: ' + _listed(names) if names else ''}"
        )
    if len(place) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        refuse(f"two agents have the name {twice!r}, so a node with this name could be either; number the nodes")
    if len(names) != n:
        refuse(
            f"named nodes need one name per agent; there are {len(names)} names and N = {n} agents. "
            f"Number the nodes, or set N to {len(names)}"
        )
    return np.array([place.get(label, 0) for label in labels], dtype=np.int64)


def _listed(names: Sequence[Any], most: int = 10) -> str:
    """Names in quotes, the first few of many."""
    rest = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*map(repr, names[:most]), *rest])


def agent_numbers(labels: Sequence[Any]) -> tuple[list[int], int]:
    """Return the agents of distinct labels: numbers are agents, names are numbered in order of appearance.

    Parameters
    ----------
    labels : sequence
        Any hashable values.

    Returns
    -------
    numbers : list of int
        One agent in 0..n-1 for each label, all different.
    n : int
        Number of agents: the largest number plus 1, or the number of names.
    """
    given = [agent_number(label) for label in labels]
    numbers = [number for number in given if number is not None]
    if not numbers:
        numbers = list(range(len(labels)))
    elif len(numbers) < len(labels):
        name = labels[given.index(None)]
        refuse(f"node labels must be all numbers or all names; got the number {numbers[0]} and the name {name!r}")
    if len(set(numbers)) != len(numbers) or min(numbers, default=0) < 0:
        refuse(
            f"node labels must be different numbers 0, 1, ... or names; got {len(labels)} nodes, for example "
            f"{list(labels[:3])}"
        )
    return numbers, check_size(max(numbers, default=-1) + 1)


def ranks(labels: Sequence[Any]) -> list[int]:
    """Number the labels: in ascending order if all labels are numbers, otherwise in order of appearance."""
    given = [agent_number(label) for label in labels]
    numbers = {number for number in given if number is not None}
    # Two labels such as 1 and "1" name the same agent: then no label is taken for a number.
    if len(numbers) < len(labels):
        return list(range(len(labels)))
    rank = {number: place for place, number in enumerate(sorted(numbers))}
    return [rank[number] for number in given if number is not None]


def _labels(labels: Sequence[Any], numbers: Sequence[int], n: int) -> tuple[Any, ...] | None:
    """Label of each agent; None where labels are the numbers of agents."""
    if all(agent_number(label) == number for label, number in zip(labels, numbers, strict=True)):
        return None
    of_agents = [None] * n
    for label, number in zip(labels, numbers, strict=True):
        of_agents[number] = label
    return tuple(of_agents)


def from_labels(labels: list[Any], weights: Sequence[float] | None, *, directed: bool = False) -> Edges:
    """Make edges from labels, two in a row for each edge; names are numbered in order of appearance."""
    distinct = list(dict.fromkeys(labels))
    numbers, n = agent_numbers(distinct)
    number = dict(zip(distinct, numbers, strict=True))
    ends = np.fromiter((number[label] for label in labels), dtype=np.int64, count=len(labels)).reshape(-1, 2)
    stated = None if weights is None else np.asarray(weights, dtype=float)
    return Edges(n, ends[:, 0], ends[:, 1], stated, directed, _labels(distinct, numbers, n))


def is_igraph(value: Any) -> bool:
    """Return whether a value is an igraph graph, without loading igraph, which code with such a graph has loaded."""
    return isinstance(value, getattr(sys.modules.get("igraph"), "Graph", ()))


def is_graph(value: Any) -> bool:
    """Return whether a value is a networkx or igraph graph."""
    return (hasattr(value, "adj") and hasattr(value, "is_directed")) or is_igraph(value)


def labels_of(graph: Any) -> list[Any]:
    """Return labels of the nodes of a graph; in igraph, the vertex attribute ``name`` or the vertex numbers."""
    if not is_igraph(graph):
        return list(graph)
    if "name" not in graph.vs.attributes():
        return list(range(graph.vcount()))
    labels = list(graph.vs["name"])
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        refuse(f"two vertices have the name {twice!r}")
    return labels


def _weight_of(graph: nx.Graph, weight: str | None) -> str:
    """The attribute of edges that weighs them."""
    present = {name: None for *_, attributes in graph.edges(data=True) for name in attributes}
    if weight is not None and weight not in present:
        refuse(
            f"no edge has the attribute {weight!r}{meant(weight, present)}; attributes: {', '.join(present) or 'none'}"
        )
    near = [name for name in present if str(name).casefold() in ("weight", "value")]
    if weight is None and near and "weight" not in present:
        refuse(f"edges have {near[0]!r} but no 'weight'; set weight: {near[0]}, or rename the attribute")
    return weight or "weight"


def from_graph(graph: Any, numbers: Sequence[int], n: int, weight: str | None = None) -> Edges:
    """Make edges from a networkx or igraph graph; agents without a node have no neighbour.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph, or igraph.Graph
        Parallel edges become one with the sum of their weights.
    numbers : sequence of int
        Agent of each node.
    n : int
        Number of agents.
    weight : str, optional
        Attribute with the weights of networkx edges. The default is ``weight``; similar names are then refused.
    """
    labels = labels_of(graph)
    directed = bool(graph.is_directed())
    if is_igraph(graph):
        multiple = bool(graph.has_multiple())
        places = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
        stated = list(graph.es["weight"]) if "weight" in graph.es.attributes() else [None] * len(places)
    else:
        multiple = bool(graph.is_multigraph())
        place = {label: position for position, label in enumerate(labels)}
        ends_of = (place[label] for edge in graph.edges() for label in edge[:2])
        places = np.fromiter(ends_of, dtype=np.int64, count=2 * graph.number_of_edges()).reshape(-1, 2)
        stated = [each for _, _, each in graph.edges(data=_weight_of(graph, weight))]
    ends = np.asarray(numbers, dtype=np.int64)[places]
    weights: np.ndarray | None = None
    if multiple or any(weight is not None for weight in stated):
        weights = np.empty(len(stated))
        for position, weight in enumerate(stated):
            if weight is not None and not is_weight(weight):
                source, target = ends[position].tolist()
                refuse(
                    f"the weight of the edge between agents {source} and {target} must be a finite number; "
                    f"got {weight!r}"
                )
            weights[position] = 1.0 if weight is None else weight
    if multiple and weights is not None:
        ends = ends if directed else np.sort(ends, axis=1)
        ends, which = np.unique(ends, axis=0, return_inverse=True)
        weights = np.bincount(which.ravel(), weights, minlength=len(ends))
    return Edges(n, ends[:, 0], ends[:, 1], weights, directed, _labels(labels, numbers, n))


def from_matrix(matrix: Any) -> Edges:
    """Make edges from a square matrix, dense or sparse; entry [i, j] is the weight of speaker j for listener i."""
    from scipy.sparse import coo_array

    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        refuse(f"a matrix must be square; got shape {matrix.shape}")
    if matrix.dtype.kind not in "iufb":
        refuse(f"the weights of a matrix must be real numbers; got {matrix.dtype}")
    entries = coo_array(matrix, dtype=float, copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    listeners, speakers, weights = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    loops = np.flatnonzero(listeners == speakers)
    if len(loops):
        refuse(
            f"an agent cannot be connected to itself, so the diagonal must be 0; got {weights[loops[0]]:g} "
            f"for agent {listeners[loops[0]]}"
        )
    back = coo_array((weights, (speakers, listeners)), shape=entries.shape)
    # NaN differs from itself and makes edges directed here; it is refused later in any case.
    directed = (coo_array((weights, (listeners, speakers)), shape=entries.shape).tocsr() != back.tocsr()).nnz > 0
    if not directed:
        once = listeners < speakers
        listeners, speakers, weights = listeners[once], speakers[once], weights[once]
    return Edges(matrix.shape[0], speakers, listeners, weights, directed)


def from_rows(edges: Any, n: int | None, weights: Any = None, *, directed: bool = False) -> Edges:
    """Make edges from listed pairs of agents, with or without weights."""
    try:
        pairs = np.asarray(edges)
    except ValueError:  # rows of different lengths
        pairs = np.empty((0, 0))
    if pairs.size == 0 and pairs.shape in ((0,), (0, 2)):
        pairs = np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iuf":
        refuse(f"edges must be pairs of agents with shape (E, 2); got {edges!r:.80}")
    if pairs.dtype.kind == "f":
        # A row with a weight may hold its agents as floats; they must still be whole numbers.
        whole = np.isfinite(pairs) & (pairs == np.floor(pairs)) & (np.abs(pairs) < 2**53)
        if not whole.all():
            refuse(f"edges must connect agents with the numbers 0, 1, ...; got {pairs[~whole][0]:g}")
    if pairs.dtype.kind == "u" and pairs.size and int(pairs.max()) >= 2**63:
        refuse(f"edges must connect agents with the numbers 0, 1, ...; got {pairs.max()}")
    pairs = pairs.astype(np.int64)
    if n is None:
        if not pairs.size:
            refuse("there are no edges, so n must give the number of agents")
        n = int(pairs.max()) + 1
    return Edges(n, pairs[:, 0], pairs[:, 1], _numbers(weights, len(pairs)), directed)


def _numbers(weights: Any, size: int) -> np.ndarray | None:
    """Weights as an array (size,)."""
    if weights is None:
        return None
    try:
        given = np.asarray(weights)
    except ValueError:  # rows of different lengths
        given = np.empty((0, 0))
    if given.shape != (size,) or (given.dtype.kind not in "iuf" and size):
        refuse(f"weights must contain one number for each of the {size} edges; got {weights!r:.80}")
    return given.astype(float)
