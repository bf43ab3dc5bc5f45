"""Kinds of networks: what a specification says of one, and how a network comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, GetJsonSchemaHandler, SerializeAsAny, ValidationError
from pydantic_core import CoreSchema

from opinionsim.networks._network import Network, check_edge
from opinionsim.networks._reading import MAX_AGENTS, Edges, check_size, from_rows, refuse
from opinionsim.registry import KindModel, blamed, built_in, find
from opinionsim.streams import canonical_json, digest

#: Numbers of agents, neighbours or edges of an agent.
Positive = Annotated[int, Field(ge=1, le=MAX_AGENTS)]
Natural = Annotated[int, Field(ge=0, le=MAX_AGENTS)]
Probability = Annotated[float, Field(ge=0, le=1)]

#: Gives the network in the file of a name.
Reader = Callable[[str], Network]


def _spelled(value: Any) -> Any:
    """The long form of a short one: of ``ring`` it is ``{kind: ring}``, of ``{edges: ...}`` the kind ``edges``."""
    if isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping) and ("edges" in value or value.get("kind") == "edge-list"):
        kind = value.get("kind", "edges")
        return {**value, "kind": "edges" if kind == "edge-list" else kind}
    return value


class NetworkKind(KindModel):
    """Base of the kinds of networks.

    A kind of one's own inherits it, has its parameters as annotated attributes, and says by :meth:`pairs` who is
    joined to whom, and by :meth:`problem` which numbers of agents it cannot join.
    """

    part_kind = "network"

    @classmethod
    def read(cls, value: Any) -> Any:
        """What a specification says, as an object of the class that its `kind` names; a name may stand for it."""
        return super().read(_spelled(value))

    @classmethod
    def form_of(cls, value: Any) -> type[BaseModel]:
        """The class whose fields a mapping has; this class where its kind is not known."""
        return super().form_of(_spelled(value))

    def problem(self, size: int) -> str:
        """Why a network of this kind cannot join `size` agents, at least 2; empty when it can.

        What a file or edges written out hold is for :meth:`check`.
        """
        return ""

    def check(self, size: int, read: Reader | None = None) -> None:
        """Refuse, with a SpecError, what is known beforehand not to be possible for `size` agents."""
        if problem := self.problem(size):
            refuse(problem)

    def pairs(self, size: int, rng: np.random.Generator) -> Any:
        """Who is joined to whom.

        Parameters
        ----------
        size : int
            Number of agents N, for which :meth:`problem` finds nothing.
        rng : numpy.random.Generator
            Draws what is random.

        Returns
        -------
        (ndarray, ndarray), networkx graph or other
            Both ends of each undirected edge, or whatever :meth:`Network.of` takes, on N agents.
        """
        raise NotImplementedError(f"{type(self).__name__} has no pairs(size, rng)")

    def build(self, size: int | None, rng: np.random.Generator, read: Reader | None = None) -> Network:
        """The network.

        Parameters
        ----------
        size : int or None
            Number of agents N, >= 2. None leaves it to a network that is read from a file or written out; any other
            needs it.
        rng : numpy.random.Generator
            Draws what is random; equal generators give equal networks.
        read : callable, optional
            Gives the network in the file of a name; by default the name is a path.

        Returns
        -------
        Network
            On N agents, with an edge.

        Raises
        ------
        SpecError
            In the words of :meth:`check` if that refuses; if the network has no edge or another size; or if a kind of
            the user's own fails.
        """
        if size is None:
            refuse(f"{self.kind!r} needs the number of agents n")
        self.check(check_size(size, least=2), read)
        part = find(self.part_kind, self.kind)
        with blamed(part):
            made = self.pairs(size, rng)
            if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], np.ndarray)):
                network = Network._of(made, size)
            else:
                network = Network._from(from_rows(np.stack(made, 1), size) if part.outside else Edges(size, *made))
        return check_edge(network)

    def identity(self, size: int, read: Reader | None = None) -> dict[str, Any]:
        """What enters the identity of a run, as JSON values: fields that differ from their defaults.

        Networks that are read or written out enter by their edges.
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
        """Whether the name of the kind says all that is needed."""
        try:
            return bool(cls())
        except ValidationError:
            return False


class GivenNetwork(NetworkKind):
    """Base of networks that are read or written out, which say themselves how many agents there are."""

    def network(self, read: Reader | None = None) -> Network:
        """The network on as many agents as it names."""
        raise NotImplementedError

    def build(self, size: int | None, rng: np.random.Generator, read: Reader | None = None) -> Network:
        """The network; agents that it does not name have no neighbour."""
        found = self.network(read)
        return check_edge(found if size is None else found._on(check_size(size, least=2)))

    def check(self, size: int, read: Reader | None = None) -> None:
        """Refuse, with a SpecError, a file that cannot be read, and agents that do not exist."""
        self.build(size, np.random.default_rng(0), read)

    def identity(self, size: int, read: Reader | None = None) -> dict[str, Any]:
        """The digest of the edges, and of their weights where some are not 1."""
        found = self.network(read)
        pairs, weights = found.edges
        stated = [] if weights is None else [weights.tolist()]
        return {"edges": digest(canonical_json([found.directed, pairs.tolist(), *stated]))}


#: The type of a field that holds a network of any kind.
NetworkField = Annotated[SerializeAsAny[NetworkKind], BeforeValidator(NetworkKind.read)]
