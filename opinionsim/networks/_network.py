"""A contact network as flat arrays, made from checked pairs of agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opinionsim.networks._graph_reading import (
    Edges,
    agents_called,
    check_size,
    from_graph,
    from_matrix,
    from_rows,
    is_graph,
    labels_of,
    named,
    names_in,
    ranks,
    refuse,
)

if TYPE_CHECKING:
    import igraph
    import networkx as nx

#: Forms in which a network can be given; a number of agents stands for the complete one.
AnyNetwork: TypeAlias = "Network | nx.Graph | igraph.Graph | int"


@dataclass(frozen=True, eq=False)
class Network:
    """Who can speak to whom: with an edge u -> v, u can speak to v, and v hears u.

    Make a network with :meth:`of`, :meth:`from_edges` or :func:`build_network`. The arrays are shared, not copied, so
    do not write to them.

    Attributes
    ----------
    n : int
        Number of agents, numbered 0..n-1.
    speakers, listeners : ndarray (E,) of uint32
        Ordered pairs, ascending by (listener, speaker), without loops or repetition. An undirected edge is a pair in
        each direction.
    weights : ndarray (E,) of float64, or None
        Weight of each pair, finite, of any sign; None if all are 1.
    directed : bool
        Whether edges are directed. Otherwise, pairs and weights are symmetric.
    complete : bool
        Whether everybody hears everybody else. No pairs are stored in this case: all arrays are empty.
    labels : tuple (n,), or None
        Name of each agent in the source of the network, None for an agent without a name; None instead of a tuple if
        the source numbers its agents, or if its names were matched to those of the agents.
    """

    n: int
    speakers: np.ndarray
    listeners: np.ndarray
    weights: np.ndarray | None
    directed: bool
    complete: bool
    labels: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, network: Any, n: int | None = None, names: Sequence[str] | None = None) -> Network:
        """Convert a graph, a matrix, rows of edges or a number of agents to a Network.

        Parameters
        ----------
        network : Network, int, networkx or igraph graph, array_like or scipy.sparse matrix
            A number means the complete graph of that many agents. Nodes of a graph are numbered 0..n-1: in ascending
            order if their labels are whole numbers, otherwise in the order of its nodes. :attr:`labels` keeps the
            labels, which in igraph are the vertex attribute ``name``. A missing edge attribute ``weight`` counts as 1,
            and parallel edges become one with the sum of their weights. In a square matrix, dense or sparse, entry
            [i, j] is the weight of speaker j for listener i, or 0 if i does not hear j; the network is undirected if
            the matrix is symmetric. Rows of two or three numbers, (E, 2) or (E, 3), are undirected edges, and the third
            number is the weight; agents are 0 to the largest number in them, or to n-1.
        n : int, optional
            Required number of agents.
        names : sequence of str, optional
            Name of each agent, for example of its persona. A named node is the agent with that name, in any order of
            the nodes; agents without a node have no neighbour. Numbered nodes stay as they are.

        Returns
        -------
        Network
            It keeps agents without a neighbour and negative weights.

        Raises
        ------
        SpecError
            If `network` has another type, does not have n agents, names an agent that does not exist, connects an agent
            to itself, or has a weight that is not a finite number; or if it has named nodes and two agents have the
            same name.

        Notes
        -----
        An array of shape (2, 2) or (3, 3) is read as a matrix, but a list or tuple of that shape as edges.
        :meth:`from_edges` is unambiguous.
        """
        with named("network"):
            return cls._of(network, None if n is None else check_size(n), names)

    @classmethod
    def from_edges(cls, edges: Any, n: int | None = None, weights: Any = None, *, directed: bool = False) -> Network:
        """Make a network from listed edges.

        Parameters
        ----------
        edges : array_like (E, 2) of int
            Pairs of agents, (speaker, listener) if directed. A repeated pair counts once.
        n : int, optional
            Number of agents; by default the largest number in `edges` plus 1.
        weights : array_like (E,), optional
            Weight of each edge, finite; 1 by default.
        directed : bool
            Whether edges are directed.

        Raises
        ------
        SpecError
            If edges or weights have another form, an agent is not in 0..n-1 or is connected to itself, or an edge
            occurs twice with different weights.
        """
        with named("network"):
            return cls._from(from_rows(edges, None if n is None else check_size(n), weights, directed=directed))

    @classmethod
    def _of(cls, network: Any, n: int | None, names: Sequence[str] | None = None) -> Network:
        if isinstance(network, cls):
            found = network
        elif isinstance(network, (int, np.integer)) and not isinstance(network, bool):
            none = np.empty(0, dtype=np.uint32)
            found = cls(check_size(network), none, none, None, directed=False, complete=True)
        else:
            # A graph need not have a node for each of the agents that are named.
            partial = names is not None and is_graph(network)
            found = cls._from(_read(network, None if partial else n))
        if names is not None:
            found = found._among(names, n)
        if n is not None and found.n != n:
            refuse(f"it has {found.n} agents, but {n} are needed")
        return found

    @classmethod
    def _from(cls, edges: Edges) -> Network:
        """Check pairs, and sort them by listener and speaker."""
        check_size(edges.n)
        speakers, listeners, weights = edges.speakers, edges.listeners, edges.weights
        _check_pairs(edges)
        # One number a pair, the listener in its upper half: numbers sort fast, and are read as pairs without a copy.
        codes = _codes(speakers, listeners, edges.directed)
        if weights is None:
            codes.sort()
            again = codes[1:] == codes[:-1]
        else:
            weights = weights if edges.directed else np.concatenate([weights, weights])
            order = np.argsort(codes)
            codes, weights = codes[order], weights[order]
            again = codes[1:] == codes[:-1]
            _check_repeated(codes, weights, again)
        if again.any():
            first = np.concatenate([[True], ~again])
            codes = codes[first]
            weights = None if weights is None else weights[first]
        if weights is not None and (weights == 1).all():
            weights = None
        halves = codes.view(np.uint32).reshape(-1, 2)
        low = 0 if sys.byteorder == "little" else 1
        found_speakers, found_listeners = halves[:, low].copy(), halves[:, 1 - low].copy()
        return cls(edges.n, found_speakers, found_listeners, weights, edges.directed, False, edges.labels)

    def _among(self, names: Sequence[str], n: int | None = None) -> Network:
        """The same edges with each named node at the agent of its name; unchanged where nodes are not names."""
        found = names_in(self.labels)
        if not found or self.labels is None:
            return self
        others = [label for label in self.labels if label is not None and label not in found]
        if others:
            refuse(f"nodes must be either all numbers or all names of agents; got {others[0]!r} and {found[0]!r}")
        n = len(names) if n is None else n
        agents = agents_called(self.labels, list(names), n)
        pairs, weights = self.edges
        return Network._from(Edges(n, agents[pairs[:, 0]], agents[pairs[:, 1]], weights, self.directed))

    def _on(self, n: int) -> Network:
        """The same edges among n agents; added agents have no neighbour."""
        if n == self.n:
            return self
        if n < self.n and self.labels is None and not self.complete:
            refuse(f"agents must be 0..{n - 1} (N = {n}); got agent {self.n - 1}")
        if n < self.n or self.complete:
            refuse(f"it has {self.n} agents, but N = {n}")
        return replace(self, n=n, labels=self.labels and (*self.labels, *[None] * (n - self.n)))

    @cached_property
    def heard(self) -> tuple[np.ndarray, np.ndarray]:
        """Whom each agent hears: ``indices[indptr[i] : indptr[i + 1]]``, ascending, for listener i.

        Returns
        -------
        indptr : ndarray (n + 1,) of int64
        indices : ndarray (E,) of uint32
            Speakers, in the order of :attr:`weights`.
        """
        return self._starts(self.listeners), self.speakers

    @cached_property
    def audience(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Who hears each agent: ``indices[indptr[j] : indptr[j + 1]]``, ascending, for speaker j.

        Returns
        -------
        indptr : ndarray (n + 1,) of int64
        indices : ndarray (E,) of uint32
            Listeners.
        order : ndarray (E,) of int64
            Position of each of these pairs in :attr:`weights`.
        """
        from scipy.sparse import csr_array

        starts, speakers = self.heard
        size = len(speakers)
        # Transposing takes one pass, sorting takes many.
        by_listener = csr_array((np.arange(size), speakers.astype(np.int64), starts), shape=(self.n, self.n))
        by_speaker = by_listener.tocsc()
        return by_speaker.indptr.astype(np.int64), by_speaker.indices.astype(np.uint32), by_speaker.data

    def _starts(self, agents: np.ndarray) -> np.ndarray:
        """Where each agent's entries start in an ascending array of agents."""
        starts = np.zeros(self.n + 1, dtype=np.int64)
        np.cumsum(np.bincount(agents, minlength=self.n), out=starts[1:])
        return starts

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Each edge once.

        Returns
        -------
        pairs : ndarray (M, 2) of int64
            (speaker, listener) in a directed network, otherwise the smaller agent first; ascending. Empty for a
            complete network.
        weights : ndarray (M,) of float64, or None
            In the same order.
        """
        if self.directed:
            order = self.audience[2]
            pairs = np.stack([self.speakers[order], self.listeners[order]], axis=1)
        else:
            order = np.flatnonzero(self.listeners < self.speakers)
            pairs = np.stack([self.listeners[order], self.speakers[order]], axis=1)
        return pairs.astype(np.int64), None if self.weights is None else self.weights[order]

    def graph(self) -> nx.Graph | nx.DiGraph:
        """The network as a networkx graph on nodes 0..n-1; weights are the edge attribute ``weight``."""
        import networkx as nx

        if self.complete:
            return nx.complete_graph(self.n)
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(range(self.n))
        pairs, weights = self.edges
        if weights is None:
            graph.add_edges_from(pairs.tolist())
        else:
            rows = zip(*pairs.T.tolist(), weights.tolist(), strict=True)
            graph.add_weighted_edges_from(rows)
        return graph


def _read(network: Any, n: int | None) -> Edges:
    """Edges of a graph, a matrix, or rows."""
    if is_graph(network):
        labels = labels_of(network)
        if n is not None and len(labels) != n:
            refuse(f"it has {len(labels)} agents, but {n} are needed")
        return from_graph(network, ranks(labels), len(labels))
    if hasattr(network, "tocoo"):
        return from_matrix(network)
    try:
        array = np.asarray(network)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    rows = array.ndim == 2 and array.shape[1] in (2, 3)
    if array.dtype.kind in "iufb" and array.ndim == 2:
        square = array.shape[0] == array.shape[1]
        if square and (isinstance(network, np.ndarray) or not rows):
            return from_matrix(array)
        if rows:
            return from_rows(array[:, :2], n, array[:, 2] if array.shape[1] == 3 else None)
    return refuse(
        "must be a Network, a number of agents, a networkx or igraph graph, a square matrix or rows of two or three "
        f"numbers; got {type(network).__name__}" + (f" of shape {array.shape}" if array.shape else "")
    )


def check_edge(network: Network) -> Network:
    """Return a network that has an edge; refuse any other."""
    if not len(network.speakers) and not (network.complete and network.n > 1):
        refuse(f"the network of {network.n} agents has no edges, so no agent can speak to another")
    return network


def _check_pairs(edges: Edges) -> None:
    """Refuse loops, agents that do not exist, and weights that are not finite numbers."""
    speakers, listeners, weights = edges.speakers, edges.listeners, edges.weights
    for agents in (speakers, listeners):
        if len(agents) and not (int(agents.min()) >= 0 and int(agents.max()) < edges.n):
            stranger = agents[(agents < 0) | (agents >= edges.n)][0]
            refuse(f"edges must connect agents 0..{edges.n - 1} (N = {edges.n}); got agent {stranger}")
    loops = np.flatnonzero(speakers == listeners)
    if len(loops):
        refuse(f"an agent cannot be connected to itself; got agent {speakers[loops[0]]}")
    if weights is not None and not np.isfinite(weights).all():
        bad = int(np.argmin(np.isfinite(weights)))
        refuse(
            f"the weight of the edge between agents {speakers[bad]} and {listeners[bad]} must be a finite number; "
            f"got {weights[bad]}"
        )


def _codes(speakers: np.ndarray, listeners: np.ndarray, directed: bool) -> np.ndarray:
    """One number for each ordered pair; two for an undirected edge."""
    size = len(speakers)
    codes = np.empty(size if directed else 2 * size, dtype=np.uint64)
    half = np.uint64(32)
    np.left_shift(listeners, half, out=codes[:size], dtype=np.uint64, casting="unsafe")
    np.bitwise_or(codes[:size], speakers, out=codes[:size], dtype=np.uint64, casting="unsafe")
    if not directed:
        np.left_shift(speakers, half, out=codes[size:], dtype=np.uint64, casting="unsafe")
        np.bitwise_or(codes[size:], listeners, out=codes[size:], dtype=np.uint64, casting="unsafe")
    return codes


def _check_repeated(codes: np.ndarray, weights: np.ndarray, again: np.ndarray) -> None:
    differ = np.flatnonzero(again & (weights[1:] != weights[:-1]))
    if len(differ):
        listener, speaker = divmod(int(codes[differ[0]]), 2**32)
        refuse(
            f"the edge between agents {speaker} and {listener} occurs twice, with the weights "
            f"{weights[differ[0]]:g} and {weights[differ[0] + 1]:g}"
        )
