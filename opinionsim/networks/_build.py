"""Networks by name, as a specification spells them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks import _generators as generators
from opinionsim.networks._files import labelled, read_network
from opinionsim.networks._network import Network
from opinionsim.networks._reading import Edges, Unfit, from_graph, from_rows, is_weight, named, refuse

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["NETWORKS", "build_network"]

#: Kinds that are generated, and the function that returns their pairs of agents; the complete network has none.
#: Parameters beside n and rng are those a specification may give.
NETWORKS: Mapping[str, Callable[..., generators.Pairs] | None] = {
    "complete": None,
    "ring": generators.ring,
    "path": generators.path,
    "star": generators.star,
    "lattice": generators.lattice,
    "erdos-renyi": generators.erdos_renyi,
    "watts-strogatz": generators.watts_strogatz,
    "barabasi-albert": generators.barabasi_albert,
    "random-regular": generators.random_regular,
    "stochastic-block-model": generators.stochastic_block_model,
    "configuration": generators.configuration,
}


def _generated(kind: str, parameters: dict[str, Any], n: int, seed: int) -> Network:
    """A network of one of the generated kinds."""
    generator = NETWORKS[kind]
    taken = dict(inspect.signature(generator).parameters) if generator else {}
    drawn = taken.pop("rng", None) is not None
    taken.pop("n", None)
    needed = {name for name, parameter in taken.items() if parameter.default is parameter.empty}
    if not needed <= set(parameters) <= set(taken):
        wanted = ", ".join(taken) or "no parameters"
        raise SpecError(f"interaction.network: {kind!r} takes {wanted}; got {', '.join(sorted(parameters)) or 'none'}")
    try:
        if n < 1:
            refuse("there must be an agent")
        if generator is None:
            return Network.of(n)
        rng = {"rng": np.random.default_rng(seed)} if drawn else {}
        u, v = generator(n, **parameters, **rng)
    except (Unfit, TypeError, ValueError) as error:
        raise SpecError(
            f"interaction.network: {kind!r} with {parameters} cannot be built for N = {n}: {error}"
        ) from None
    return _numbered(Edges(n, u, v))


def _numbered(edges: Edges) -> Network:
    with named("interaction.network"):
        return Network._from(edges)


def _written_out(parameters: Mapping[str, Any], n: int) -> Edges:
    """Edges between agents or names, with weights and directions if they are given."""
    edges, weights, directed = parameters["edges"], parameters.get("weights"), parameters.get("directed", False)
    if not isinstance(directed, bool):
        refuse(f"directed must be true or false; got {directed!r}")
    if isinstance(edges, np.ndarray):
        return from_rows(edges, n, weights, directed=directed)
    try:
        if any(isinstance(edge, str) for edge in edges):
            raise ValueError("a word is no pair")
        labels = [label for a, b in edges for label in (a, b)]
        if any(label is None for label in labels):
            raise ValueError("nothing is no agent")
        hash(tuple(labels))
    except (TypeError, ValueError):
        raise SpecError(
            f"interaction.network.edges must be a list of pairs of agents such as [[0, 1], [1, 2]]; got {edges!r:.80}"
        ) from None
    if weights is not None:
        weights = list(weights) if isinstance(weights, (list, tuple, np.ndarray)) else [None]
        if 2 * len(weights) != len(labels) or not all(map(is_weight, weights)):
            raise SpecError(
                f"interaction.network.weights must give a finite number for each of the {len(labels) // 2} edges; "
                f"got {parameters['weights']!r:.80}"
            )
    return labelled(labels, weights, n, directed=directed)


def _specified(spec: str | Mapping[str, Any], n: int, seed: int) -> Network:
    """The network that a name or a mapping describes."""
    if not isinstance(spec, (str, Mapping)):
        raise SpecError(f"interaction.network must be a name, a mapping or a graph; got {spec!r}")
    parameters = {"kind": spec} if isinstance(spec, str) else dict(spec)
    kind = parameters.pop("kind", "edges" if "edges" in parameters else None)
    if isinstance(kind, str) and kind in NETWORKS:
        return _generated(kind, parameters, n, seed)
    valid = {
        "edges": ["edges", "weights", "directed"], "edge-list": ["edges", "weights", "directed"], "file": ["path"]
    }.get(str(kind))  # fmt: skip
    if valid is None:
        names = ", ".join([*NETWORKS, "file", "edges"])
        raise SpecError(f"interaction.network: unknown kind {kind!r}; valid: {names}")
    if not {valid[0]} <= set(parameters) <= set(valid):
        raise SpecError(
            f"interaction.network: {kind!r} takes {', '.join(valid)}; got {', '.join(map(str, parameters)) or 'none'}"
        )
    if kind != "file":
        with named("interaction.network"):
            return Network._from(_written_out(parameters, n))
    if not isinstance(parameters["path"], (str, Path)):
        raise SpecError(f"interaction.network.path must be the name of a file; got {parameters['path']!r}")
    return _numbered(read_network(parameters["path"], n))


def build_network(spec: str | Mapping[str, Any] | Network | nx.Graph, n: int, seed: int = 0) -> Network:
    """The contact network of a run.

    Parameters
    ----------
    spec : str, mapping, Network or networkx graph
        Name of a kind that needs no parameters (``complete``, ``ring``, ``path``, ``star``, ``lattice``), a mapping
        with ``kind`` and that kind's parameters, ``{kind: file, path: ...}`` (GraphML or edge list),
        ``{edges: [[0, 1], ...], weights: [...], directed: ...}``, of which the last two may be left out, or a graph
        or Network. Labels that are numbers are agents; names are numbered in the order in which they come. Agents
        that are not named have no neighbour.
    n : int
        Number of agents.
    seed : int
        Seed of random kinds, >= 0; equal seeds give equal networks.

    Returns
    -------
    Network
        On n agents, with an edge.

    Raises
    ------
    SpecError
        If the kind or a parameter is unknown, a file cannot be read, an agent does not exist, an agent
        is joined to itself, a weight is no finite number, or there is no edge.
    """
    if isinstance(spec, Network):
        network = spec
        if spec.n != n:
            raise SpecError(f"interaction.network: the network is on {spec.n} agents; population.size is {n}")
    elif hasattr(spec, "adj"):
        with named("interaction.network"):
            network = Network._from(from_graph(spec, n))
    else:
        network = _specified(spec, n, seed)
    if not len(network.speakers) and not (network.complete and n > 1):
        raise SpecError(f"interaction.network: the network on {n} agents has no edge, so nobody can speak to anybody")
    return network
