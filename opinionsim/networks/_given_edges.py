"""The network given by its edges."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from opinionsim.networks._graph_reading import from_labels
from opinionsim.networks._kind import GivenNetwork, Reader
from opinionsim.networks._network import Network
from opinionsim.registry import part

_Agent = Annotated[int, Field(ge=0)] | str


@part("network", name="edges")
class EdgesNetwork(GivenNetwork):
    """Pairs that you list. You can shorten this to `{edges: [[0, 1], [1, 2]]}`."""

    edges: tuple[tuple[_Agent, _Agent], ...] = Field(min_length=1)
    """Pairs of agents, given by number from 0 or by the names of their personas."""
    weights: tuple[float, ...] | None = None
    """Weight of each edge. Null gives every edge weight 1."""
    directed: bool = False
    """Whether only the first agent of a pair can speak to the second. Otherwise each can speak to the other."""

    @model_validator(mode="after")
    def _one_weight_each(self) -> EdgesNetwork:
        if self.weights is not None and len(self.weights) != len(self.edges):
            raise ValueError(f"weights must contain one number per edge, {len(self.edges)}; got {len(self.weights)}")
        return self

    def network(self, read: Reader | None = None) -> Network:
        """Return the network, with as many agents as it names."""
        labels = [label for pair in self.edges for label in pair]
        return Network._from(from_labels(labels, self.weights, directed=self.directed))
