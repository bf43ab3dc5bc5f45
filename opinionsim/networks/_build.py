"""Networks built from names, mappings, graphs and arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel, validate
from opinionsim.networks._graph_reading import (
    agent_numbers,
    check_size,
    from_graph,
    from_rows,
    is_graph,
    labels_of,
    named,
    refuse,
)
from opinionsim.networks._kind import NetworkField, NetworkKind
from opinionsim.networks._network import Network, check_edge

if TYPE_CHECKING:
    import igraph
    import networkx as nx


class _Given(DocumentModel):
    network: NetworkField


def build_network(
    spec: str | Mapping[str, Any] | NetworkKind | Network | nx.Graph | igraph.Graph,
    n: int | None = None,
    seed: int = 0,
    *,
    names: Sequence[str] | None = None,
    where: str = "network",
) -> Network:
    """Build the contact network of a run.

    Parameters
    ----------
    spec : str, mapping, NetworkKind, Network, or networkx or igraph graph
        Name of a kind that needs no parameters (``complete``, ``ring``, ``path``, ``star``, ``lattice``), a mapping
        with ``kind`` and that kind's parameters, ``{kind: file, path: ...}``,
        ``{edges: [[0, 1], ...], weights: [...], directed: ...}``, where `weights` and `directed` are optional, or a
        graph or Network. Numeric labels are the numbers of agents. Names are matched to `names`; without `names`, they
        are numbered in order of appearance. Agents that do not appear have no neighbour.
    n : int, optional
        Number of agents, >= 2. For edges in a file or listed edges, the default is the largest number that appears
        plus 1, or the number of names. A Network has its own number, and a graph is read as in :meth:`Network.of`.
    seed : int
        Seed of random kinds, >= 0; equal seeds give equal networks.
    names : sequence of str, optional
        Name of each agent. Named nodes are matched to these names as in :meth:`Network.of`.
    where : str
        Name of the network in error messages.

    Returns
    -------
    Network
        A network of n agents with at least one edge.

    Raises
    ------
    SpecError
        If the kind or a parameter is unknown, a file cannot be read, an agent does not exist, an agent
        is connected to itself, a weight is not a finite number, there is no edge, or n is required and missing.
    """
    with named(where):
        n = None if n is None else check_size(n, least=2)
        if isinstance(spec, (str, Mapping)) and not _is_arrays(spec):
            spec = _specified(spec, where)
        if isinstance(spec, NetworkKind):
            return spec.build(n, np.random.default_rng(seed), names=names)
        return check_edge(_built(spec, n, names))


def _built(given: Any, n: int | None, names: Sequence[str] | None) -> Network:
    """The network of a Network, a graph, or edges as arrays."""
    if isinstance(given, Mapping):
        weights, directed = given.get("weights"), given.get("directed", False)
        return Network._from(from_rows(given["edges"], n, weights, directed=directed))
    graph = is_graph(given)
    if not (graph or isinstance(given, Network)):
        refuse(f"must be a name, a mapping or a graph; got {given!r:.80}")
    if graph and n is not None:
        found = Network._from(from_graph(given, *agent_numbers(labels_of(given))))
        return (found if names is None else found._among(names, n))._on(n)
    return Network._of(given, n, names)


def _is_arrays(spec: str | Mapping[str, Any]) -> bool:
    """Whether a mapping holds edges as an array: these may be too many to be read one by one."""
    if isinstance(spec, str) or not isinstance(spec.get("edges"), np.ndarray):
        return False
    known = set(spec) <= {"kind", "edges", "weights", "directed"}
    return (
        known and spec.get("kind", "edges") in ("edges", "edge-list") and isinstance(spec.get("directed", False), bool)
    )


def _specified(spec: str | Mapping[str, Any], where: str) -> NetworkKind:
    """The kind of network that a name or a mapping describes, with its parameters."""
    plain = json.loads(json.dumps({"network": spec}, default=_plain))
    try:
        return validate(_Given, plain).network
    except SpecError as error:
        found = [(each, "".join(each.places).removeprefix("network")) for each in error.problems]
        raise SpecError.joined(SpecError(each.problem, f"{where}{inside}") for each, inside in found) from None


def _plain(value: Any) -> Any:
    """A Python value as a JSON value: numpy numbers, paths and tuples are converted."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, Iterable) else str(value)
