"""Networks by name, as a specification spells them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opinionsim.networks import _generators as generators
from opinionsim.networks._files import read_network
from opinionsim.networks._network import Network, check_size
from opinionsim.networks._reading import (
    Edges,
    Unfit,
    agent_numbers,
    from_graph,
    from_labels,
    from_rows,
    is_weight,
    named,
    ranks,
    refuse,
)

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


#: Kinds that are read, which say themselves how many agents there are, and their parameters, the first of them needed.
_READ: Mapping[str, tuple[str, ...]] = {"file": ("path",), "edges": ("edges", "weights", "directed")}


def _generated(kind: str, parameters: dict[str, Any], n: int, seed: int) -> Network:
    """A network of one of the generated kinds."""
    generator = NETWORKS[kind]
    taken = dict(inspect.signature(generator).parameters) if generator else {}
    drawn = taken.pop("rng", None) is not None
    taken.pop("n", None)
    needed = {name for name, parameter in taken.items() if parameter.default is parameter.empty}
    if not needed <= set(parameters) <= set(taken):
        _refuse_parameters(kind, taken, parameters)
    try:
        if generator is None:
            return Network.of(n)
        rng = {"rng": np.random.default_rng(seed)} if drawn else {}
        u, v = generator(n, **parameters, **rng)
    except (Unfit, TypeError, ValueError) as error:
        refuse(f"{kind!r} with {parameters} cannot be built for N = {n}: {error}")
    return Network._from(Edges(n, u, v))


def _refuse_parameters(kind: str, taken: Iterable[str], given: Iterable[Any]) -> NoReturn:
    wanted, got = ", ".join(taken) or "no parameters", ", ".join(map(str, given)) or "none"
    refuse(f"{kind!r} takes {wanted}; got {got}")


def _written_out(parameters: Mapping[str, Any], n: int | None) -> Edges:
    """Edges between agents or names, with weights and directions if they are given."""
    edges, weights, directed = parameters["edges"], parameters.get("weights"), parameters.get("directed", False)
    if not isinstance(directed, bool):
        refuse(f"must be true or false; got {directed!r:.60}", "directed")
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
        refuse(f"must be a list of pairs of agents such as [[0, 1], [1, 2]]; got {edges!r:.80}", "edges")
    if weights is not None:
        weights = list(weights) if isinstance(weights, (list, tuple, np.ndarray)) else [None]
        if 2 * len(weights) != len(labels) or not all(map(is_weight, weights)):
            refuse(
                f"must give a finite number for each of the {len(labels) // 2} edges; "
                f"got {parameters['weights']!r:.80}",
                "weights",
            )
    return from_labels(labels, weights, n, directed=directed)


def _specified(spec: str | Mapping[str, Any], n: int | None, seed: int) -> Network:
    """The network that a name or a mapping describes."""
    if not isinstance(spec, (str, Mapping)):
        refuse(f"must be a name, a mapping or a graph; got {spec!r:.80}")
    parameters = {"kind": spec} if isinstance(spec, str) else dict(spec)
    kind = parameters.pop("kind", "edges" if "edges" in parameters else None)
    # The other name that written-out edges go by.
    kind = "edges" if kind == "edge-list" else kind
    if isinstance(kind, str) and kind in NETWORKS:
        if n is None:
            refuse(f"{kind!r} needs the number of agents n")
        return _generated(kind, parameters, n, seed)
    if not isinstance(kind, str) or kind not in _READ:
        refuse(f"unknown kind {kind!r:.60}; valid: {', '.join([*NETWORKS, *_READ])}")
    valid = _READ[kind]
    if not {valid[0]} <= set(parameters) <= set(valid):
        _refuse_parameters(kind, valid, parameters)
    if kind == "edges":
        return Network._from(_written_out(parameters, n))
    if not isinstance(parameters["path"], (str, Path)):
        refuse(f"must be the name of a file; got {parameters['path']!r:.60}", "path")
    return Network._from(read_network(parameters["path"], n))


def _built(spec: str | Mapping[str, Any] | Network | nx.Graph, n: int | None, seed: int) -> Network:
    """The network, with an edge or without."""
    if isinstance(spec, Network):
        if n is not None and spec.n != n:
            refuse(f"the network is on {spec.n} agents, and {n} are needed")
        return spec
    if hasattr(spec, "adj"):
        nodes = list(spec)
        return Network._from(from_graph(spec, *((ranks(nodes), len(nodes)) if n is None else agent_numbers(nodes, n))))
    return _specified(spec, n, seed)


def build_network(
    spec: str | Mapping[str, Any] | Network | nx.Graph, n: int | None = None, seed: int = 0, *, where: str = "network"
) -> Network:
    """The contact network of a run.

    Parameters
    ----------
    spec : str, mapping, Network or networkx graph
        Name of a kind that needs no parameters (``complete``, ``ring``, ``path``, ``star``, ``lattice``), a mapping
        with ``kind`` and that kind's parameters, ``{kind: file, path: ...}`` (GraphML or edge list),
        ``{edges: [[0, 1], ...], weights: [...], directed: ...}``, of which the last two may be left out, or a graph
        or Network. Labels that are numbers are agents; names are numbered in the order in which they come. Agents
        that are not named have no neighbour.
    n : int, optional
        Number of agents, >= 2. What is read from a file or written out may go without: then it is the largest
        number named and 1, or how many names there are; a Network keeps its own, and a networkx graph is read as
        :meth:`Network.of` does.
    seed : int
        Seed of random kinds, >= 0; equal seeds give equal networks.
    where : str
        What errors call the network.

    Returns
    -------
    Network
        On n agents, with an edge.

    Raises
    ------
    SpecError
        If the kind or a parameter is unknown, a file cannot be read, an agent does not exist, an agent
        is joined to itself, a weight is no finite number, there is no edge, or n is needed and missing.
    """
    with named(where):
        network = _built(spec, None if n is None else check_size(n, least=2), seed)
        if not len(network.speakers) and not (network.complete and network.n > 1):
            refuse(f"the network on {network.n} agents has no edge, so nobody can speak to anybody")
    return network
