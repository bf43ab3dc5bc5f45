"""Kinds of networks: their fields in a specification, and the networks built from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, GetJsonSchemaHandler, SerializeAsAny, ValidationError
from pydantic_core import CoreSchema

from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.networks._graph_reading import MAX_AGENTS, Edges, check_size, from_rows, refuse
from opinionsim.networks._network import Network, check_edge
from opinionsim.registry import KindModel, blamed, built_in, find

#: Numbers of agents, neighbours or edges of an agent.
Positive = Annotated[int, Field(ge=1, le=MAX_AGENTS)]
Natural = Annotated[int, Field(ge=0, le=MAX_AGENTS)]
Probability = Annotated[float, Field(ge=0, le=1)]

#: Function that returns the network in the file of a given name, read with the options of its kind.
Reader = Callable[[str, Mapping[str, Any]], Network]


def _spelled(value: Any) -> Any:
    """The long form of a network: ``{kind: ring}`` for ``ring``, with kind ``edges`` for ``{edges: ...}``."""
    if isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping) and ("edges" in value or value.get("kind") == "edge-list"):
        kind = value.get("kind", "edges")
        return {**value, "kind": "edges" if kind == "edge-list" else kind}
    return value


class NetworkKind(KindModel):
    """Base of the kinds of networks.

    Your own kind inherits from this class. Its annotated attributes are its parameters. :meth:`pairs` returns the pairs
    it connects, and :meth:`problem` says which numbers of agents it cannot connect.
    """

    part_kind = "network"

    @classmethod
    def read(cls, value: Any) -> Any:
        """Read a specification, a mapping or a name as an object of the class that its `kind` names."""
        return super().read(_spelled(value))

    @classmethod
    def form_of(cls, value: Any) -> type[BaseModel]:
        """Return the class of a mapping's kind, or this class if the kind is unknown."""
        return super().form_of(_spelled(value))

    def problem(self, size: int) -> str:
        """Return why a network of this kind cannot connect `size` >= 2 agents; empty if it can.

        :meth:`check` checks the contents of files and listed edges.
        """
        return ""

    def check(self, size: int, read: Reader | None = None, names: Sequence[str] | None = None) -> None:
        """Raise a SpecError if the network is known in advance to be impossible for `size` agents."""
        if problem := self.problem(size):
            refuse(problem)

    def pairs(self, size: int, rng: np.random.Generator) -> Any:
        """Return who is connected to whom.

        Parameters
        ----------
        size : int
            Number of agents N, for which :meth:`problem` finds nothing.
        rng : numpy.random.Generator
            Source of all random draws.

        Returns
        -------
        (ndarray, ndarray), networkx graph or other
            Both ends of each undirected edge, or any network that :meth:`Network.of` takes, on N agents.
        """
        refuse(f"{type(self).__name__} has no pairs(size, rng)")

    def build(
        self,
        size: int | None,
        rng: np.random.Generator,
        read: Reader | None = None,
        names: Sequence[str] | None = None,
    ) -> Network:
        """Build the network.

        Parameters
        ----------
        size : int or None
            Number of agents N, >= 2. None is possible for networks from a file or listed edges.
        rng : numpy.random.Generator
            Source of all random draws; equal generators give equal networks.
        read : callable, optional
            Takes the name of a file and options, and returns its network. By default, the name is a path.
        names : sequence of str, optional
            Names of the agents, to which named nodes are matched as in :meth:`Network.of`. Without them, names are
            numbered in order of appearance.

        Returns
        -------
        Network
            A network of N agents with at least one edge.

        Raises
        ------
        SpecError
            If :meth:`check` raises it, if the network has no edges or another size, or if your own kind fails.
        """
        if size is None:
            refuse(f"{self.kind!r} needs n, the number of agents")
        self.check(check_size(size, least=2), read, names)
        part = find(self.part_kind, self.kind)
        with blamed(part):
            made = self.pairs(size, rng)
            if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], np.ndarray)):
                network = Network._of(made, size, names)
            else:
                network = Network._from(from_rows(np.stack(made, 1), size) if part.outside else Edges(size, *made))
        return check_edge(network)

    def identity(self, size: int, read: Reader | None = None, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the network's part of a run's identity, as JSON values: fields that differ from their defaults.

        Edges identify networks from a file and listed edges.
        """
        return self.stated()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = super().__get_pydantic_json_schema__(core, handler)
        if cls.kind_name():
            return schema
        plain = [name for name, each in built_in(cls.part_kind).items() if each.target.stands_alone()]
        names = [{"enum": plain, "type": "string"}, {"pattern": ":", "type": "string"}]
        return {"anyOf": [*names, *schema["anyOf"]]}

    @classmethod
    def stands_alone(cls) -> bool:
        """Whether the kind needs no parameters, so its name is enough."""
        try:
            return bool(cls())
        except ValidationError:
            return False


class GivenNetwork(NetworkKind):
    """Base of networks from a file or from listed edges, which determine the number of agents themselves."""

    def network(self, read: Reader | None = None) -> Network:
        """Return the network, with as many agents as it names."""
        raise NotImplementedError

    def build(
        self,
        size: int | None,
        rng: np.random.Generator,
        read: Reader | None = None,
        names: Sequence[str] | None = None,
    ) -> Network:
        """Build the network. Agents that it does not name have no neighbour."""
        found = self.network(read) if names is None else self.network(read)._among(names, size)
        return check_edge(found if size is None else found._on(check_size(size, least=2)))

    def check(self, size: int, read: Reader | None = None, names: Sequence[str] | None = None) -> None:
        """Raise a SpecError for a file that cannot be read, or agents that do not exist."""
        self.build(size, np.random.default_rng(0), read, names)

    def identity(self, size: int, read: Reader | None = None, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the digest of the edges, including their weights unless all are 1."""
        found = self.network(read) if names is None else self.network(read)._among(names, size)
        pairs, weights = found.edges
        stated = [] if weights is None else [weights.tolist()]
        return {"edges": digest(canonical_json([found.directed, pairs.tolist(), *stated]))}


#: The type of a field that holds a network of any kind.
NetworkField = Annotated[SerializeAsAny[NetworkKind], BeforeValidator(NetworkKind.read)]
