"""Contact networks: built from a specification, checked, and numbered 0..N-1."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from opinionsim.errors import SpecError

__all__ = ["NETWORKS", "Neighbours", "build_network"]

#: Generators of networkx that a specification may name, with how N enters and the parameters they take.
NETWORKS: Mapping[str, tuple[Callable[..., nx.Graph], frozenset[str]]] = {
    "complete": (nx.complete_graph, frozenset()),
    "ring": (nx.cycle_graph, frozenset()),
    "path": (nx.path_graph, frozenset()),
    "star": (lambda n: nx.star_graph(n - 1), frozenset()),
    "watts-strogatz": (nx.watts_strogatz_graph, frozenset({"k", "p"})),
    "erdos-renyi": (nx.fast_gnp_random_graph, frozenset({"p"})),
    "barabasi-albert": (nx.barabasi_albert_graph, frozenset({"m"})),
    "random-regular": (lambda n, d, seed: nx.random_regular_graph(d, n, seed=seed), frozenset({"d"})),
}
_SEEDED = frozenset({"watts-strogatz", "erdos-renyi", "barabasi-albert", "random-regular"})


def _generated(kind: str, parameters: dict[str, Any], n: int, seed: int) -> nx.Graph:
    """A graph from one of the named generators."""
    generator, valid = NETWORKS[kind]
    if set(parameters) != set(valid):
        wanted = ", ".join(sorted(valid)) or "no parameters"
        raise SpecError(f"interaction.network: {kind!r} takes {wanted}; got {', '.join(sorted(parameters)) or 'none'}")
    seeded = {"seed": seed} if kind in _SEEDED else {}
    try:
        if not 0 <= parameters.get("p", 0) <= 1:
            raise ValueError("p must be a probability, from 0 to 1")
        return generator(n, **parameters, **seeded)
    except (nx.NetworkXError, TypeError, ValueError) as error:
        raise SpecError(
            f"interaction.network: {kind!r} with {parameters} cannot be built for N = {n}: {error}"
        ) from None


def _edge_list(file: Path) -> nx.Graph:
    """A graph from a text with two agents a line; ``#`` starts a comment, attributes in braces have no effect."""
    graph = nx.Graph()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        _check_stated_weight(file, number, line)
        words = re.sub(r"\s\{.*\}\s*$", "", line).partition("#")[0].split()
        if len(words) not in (0, 2):
            raise SpecError(
                f"interaction.network.path: {file}:{number}: must hold two agents, separated by a space; got {line!r}"
            )
        if words:
            graph.add_edge(*words)
    return graph


def _check_stated_weight(file: Path, number: int, line: str) -> None:
    """Refuse a weight that is no finite number, although weights have no effect."""
    stated = re.search(r"""\{.*["']weight["']\s*:\s*([^,}]*)""", line)
    if stated and not _is_weight(_number(stated[1])):
        raise SpecError(
            f"interaction.network.path: {file}:{number}: the weight must be a finite number; got {stated[1].strip()!r}"
        )


def _number(text: str) -> float:
    """The number a text spells; NaN when it spells none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_weight(value: Any) -> bool:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _graphml(file: Path) -> nx.Graph:
    """A graph from GraphML; declarations, whose entities could expand without end, are refused."""
    # Without NUL bytes, the declarations of UTF-16 read as those of UTF-8 do.
    content = file.read_bytes().replace(b"\0", b"").upper()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise SpecError(
            f"interaction.network.path: {file} holds a document type or entity declaration; "
            "GraphML without declarations is expected"
        )
    return nx.read_graphml(file)


def _from_file(path: str | Path) -> nx.Graph:
    """A graph from GraphML or a whitespace-separated edge list."""
    file = Path(path)
    try:
        return _graphml(file) if file.suffix.lower() == ".graphml" else _edge_list(file)
    except FileNotFoundError:
        raise SpecError(f"interaction.network.path: no such file: {path}") from None
    except SpecError:
        raise
    except Exception as error:  # networkx lets parser errors of several libraries through
        raise SpecError(f"interaction.network.path: {path} is not a readable edge list or GraphML: {error}") from None


def _from_edges(edges: Any) -> nx.Graph:
    """An undirected graph from pairs of agents."""
    try:
        if any(isinstance(edge, str) for edge in edges):
            raise ValueError("a word is no pair")
        return nx.Graph([(a, b) for a, b in edges])
    except (TypeError, ValueError, nx.NetworkXError):
        raise SpecError(
            f"interaction.network.edges must be a list of pairs of agents such as [[0, 1], [1, 2]]; got {edges!r:.80}"
        ) from None


def _agent_number(label: Any) -> int | None:
    """The agent a node label numbers; None for a name."""
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return int(label)
    return int(label) if isinstance(label, str) and re.fullmatch(r"-?[0-9]{1,18}", label) else None


def _numbered(graph: nx.Graph, n: int) -> nx.Graph:
    """The graph with nodes 0..n-1: integer labels are agent numbers, other labels are numbered as they come."""
    labels = list(graph.nodes)
    given = [_agent_number(label) for label in labels]
    numbers = [number for number in given if number is not None]
    if not numbers:
        numbers = list(range(len(labels)))
    elif len(numbers) < len(labels):
        name = labels[given.index(None)]
        raise SpecError(
            f"interaction.network: node labels must be all numbers or all names; "
            f"got the number {numbers[0]} and the name {name!r}"
        )
    if len(set(numbers)) != len(numbers) or (numbers and not (min(numbers) >= 0 and max(numbers) < n)):
        raise SpecError(
            f"interaction.network: node labels must be agents 0..{n - 1} (population.size = {n}) or other names, "
            f"at most {n} of them; got {len(labels)} nodes, for instance {labels[:3]}"
        )
    numbered = nx.relabel_nodes(graph, dict(zip(labels, numbers, strict=True)), copy=True)
    numbered.add_nodes_from(range(n))
    return numbered


def _specified(spec: str | Mapping[str, Any], n: int, seed: int) -> nx.Graph:
    """The graph that a name or a mapping describes."""
    if not isinstance(spec, (str, Mapping)):
        raise SpecError(f"interaction.network must be a name, a mapping or a graph; got {spec!r}")
    parameters = {"kind": spec} if isinstance(spec, str) else dict(spec)
    kind = parameters.pop("kind", "edges" if "edges" in parameters else None)
    if isinstance(kind, str) and kind in NETWORKS:
        return _generated(kind, parameters, n, seed)
    valid = {"edges": ["edges"], "file": ["path"]}.get(str(kind))
    if valid is None:
        names = ", ".join([*NETWORKS, "file", "edges"])
        raise SpecError(f"interaction.network: unknown kind {kind!r}; valid: {names}")
    if list(parameters) != valid:
        raise SpecError(
            f"interaction.network: {kind!r} takes {valid[0]}; got {', '.join(map(str, parameters)) or 'none'}"
        )
    if kind == "edges":
        return _numbered(_from_edges(parameters["edges"]), n)
    if not isinstance(parameters["path"], (str, Path)):
        raise SpecError(f"interaction.network.path must be the name of a file; got {parameters['path']!r}")
    return _numbered(_from_file(parameters["path"]), n)


def build_network(spec: str | Mapping[str, Any] | nx.Graph, n: int, seed: int = 0) -> nx.Graph:
    """The contact network of a run.

    Parameters
    ----------
    spec : str, mapping or networkx.Graph
        Name of a kind without parameters (``complete``, ``ring``, ``path``, ``star``), a mapping with
        ``kind`` and that kind's parameters, ``{kind: file, path: ...}`` (GraphML or edge list),
        ``{edges: [[0, 1], ...]}``, or a graph. Node labels that are numbers are agents; names are numbered
        in the order in which they come.
    n : int
        Number of agents.
    seed : int
        Seed of random kinds, in [0, 2**32).

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        On nodes 0..n-1. In a directed graph, an edge u -> v lets u speak to v.

    Raises
    ------
    SpecError
        If the kind or a parameter is unknown, a file cannot be read, an agent does not exist, an agent
        is joined to itself, a weight is no finite number, or there is no edge.
    """
    graph = _numbered(spec, n) if isinstance(spec, nx.Graph) else _specified(spec, n, seed)
    _check_numbered(graph)
    for source, target, weight in graph.edges(data="weight", default=1.0):
        if not _is_weight(weight):
            raise SpecError(
                f"interaction.network: the weight of the edge between agents {source} and {target} must be a "
                f"finite number; got {weight!r}"
            )
    return graph


def _check_numbered(graph: nx.Graph) -> None:
    """Raise a SpecError unless a graph is on nodes 0..n-1, without loops and with an edge."""
    n = graph.number_of_nodes()
    if set(graph.nodes) != set(range(n)):
        raise SpecError(f"the nodes of a network must be the agents 0..{n - 1}; build_network numbers other labels")
    if nx.number_of_selfloops(graph):
        raise SpecError("interaction.network: an agent cannot be joined to itself")
    if graph.number_of_edges() == 0:
        raise SpecError(f"interaction.network: the network on {n} agents has no edge, so nobody can speak to anybody")


class Neighbours:
    """Who may speak to whom, as flat arrays; the complete graph needs none.

    Parameters
    ----------
    network : networkx.Graph, networkx.DiGraph or int
        A graph on nodes 0..n-1, undirected edges counting in both directions; or n for the complete graph.

    Raises
    ------
    SpecError
        If there are fewer than two agents, the nodes are not 0..n-1, an agent is joined to itself, or there
        is no edge.

    Attributes
    ----------
    n : int
        Number of agents.
    can_speak, can_hear : ndarray of int
        Agents that somebody hears, and agents that hear somebody, ascending.
    """

    def __init__(self, network: nx.Graph | int) -> None:
        self._complete = not isinstance(network, nx.Graph)
        self.n = network.number_of_nodes() if isinstance(network, nx.Graph) else int(network)
        if self.n < 2:
            raise SpecError(f"speaking and listening need N >= 2 agents; got population.size = {self.n}")
        if not isinstance(network, nx.Graph):
            self.can_speak = self.can_hear = np.arange(self.n)
            return
        _check_numbered(network)
        pairs = np.array(list(network.edges()), dtype=np.int64).reshape(-1, 2)
        if not network.is_directed():
            pairs = np.concatenate([pairs, pairs[:, ::-1]])
        pairs = np.unique(pairs, axis=0)
        self._speakers, self._listeners = pairs[:, 0], pairs[:, 1]
        self._starts = np.searchsorted(self._speakers, np.arange(self.n + 1))
        by_listener = np.lexsort((self._speakers, self._listeners))
        self._heard = self._speakers[by_listener]
        self._heard_starts = np.searchsorted(self._listeners[by_listener], np.arange(self.n + 1))
        self.can_speak, self.can_hear = np.unique(self._speakers), np.unique(self._listeners)

    def join(self, pairs: np.ndarray) -> np.ndarray:
        """Which of the ordered pairs (speaker, listener), shape (m, 2), may meet; shape (m,)."""
        inside = ((pairs >= 0) & (pairs < self.n)).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
        if self._complete:
            return np.asarray(inside)
        codes = self._speakers * self.n + self._listeners
        return np.asarray(inside & np.isin(pairs[:, 0] * self.n + pairs[:, 1], codes))

    def draw_pairs(self, steps: int, rng: np.random.Generator) -> np.ndarray:
        """Ordered pairs (speaker, listener), uniform among those that may meet; shape (steps, 2)."""
        if self._complete:
            speakers = rng.integers(self.n, size=steps)
            listeners = rng.integers(self.n - 1, size=steps)
            return np.stack([speakers, listeners + (listeners >= speakers)], axis=1)
        drawn = rng.integers(len(self._speakers), size=steps)
        return np.stack([self._speakers[drawn], self._listeners[drawn]], axis=1)

    def audience(self, speaker: int) -> np.ndarray:
        """Agents that hear `speaker`, ascending."""
        if self._complete:
            return np.delete(self.can_hear, speaker)
        return self._listeners[self._starts[speaker] : self._starts[speaker + 1]]

    def sources(self, listener: int) -> np.ndarray:
        """Agents that `listener` hears, ascending."""
        if self._complete:
            return np.delete(self.can_speak, listener)
        return self._heard[self._heard_starts[listener] : self._heard_starts[listener + 1]]
