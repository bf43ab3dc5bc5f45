"""Rounds on a network, in which all agents answer at once, and again after reading their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import Field

from opinionsim.deliberation._structure import Structure
from opinionsim.deliberation._structure_acts import RESPOND
from opinionsim.networks import NetworkField, NetworkKind
from opinionsim.registry import part
from opinionsim.schedules import MAX_STEPS, Ref, Setting, Turn


@part("interaction", name="rounds")
class RoundsInteraction(Structure):
    """In each round, all agents answer, and each sees its neighbours' answers from the previous round."""

    labelling = "you-other"
    smallest = 2

    network: NetworkField = Field(default_factory=lambda: NetworkKind.read("complete"))
    """Who sees whose answers: a name, or a mapping with `kind` and its parameters, or with `edges`."""
    cycles: int = Field(2, ge=1, le=MAX_STEPS)
    """Number of rounds. In the first round, agents see no answers."""
    own: bool = True
    """Whether an agent sees its own answer from the previous round."""

    @property
    def contacts(self) -> NetworkKind:
        """Who is shown whose answers."""
        return self.network

    def check(self, setting: Setting) -> None:
        """Refuse a network without ties, on which agents would see no answers."""
        _ = setting.neighbours

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One answer of each agent in each round."""
        heard = self._heard(setting)
        index, last = 0, dict[int, int]()
        for cycle, order in self.orders(setting):
            rank = {agent: place for place, agent in enumerate(order)}
            said = dict[int, int]()
            for agent in order:
                yield Turn(index, cycle, agent, RESPOND.name, self._shown(heard[agent], last, rank))
                said[agent] = index
                index += 1
            last = said

    def next_reads(self, setting: Setting, turns: Sequence[Turn]) -> dict[int, tuple[Ref, ...]]:
        """The answers of its neighbours in the last round."""
        heard = self._heard(setting)
        last = {turn.agent: turn.index for turn in turns}
        return {agent: self._shown(heard[agent], last, last) for agent in last}

    def _heard(self, setting: Setting) -> list[np.ndarray]:
        """Whose answers each agent is shown."""
        neighbours = setting.neighbours
        own = self.own and not self.remember
        return [
            np.append(neighbours.sources(agent), agent) if own else neighbours.sources(agent)
            for agent in range(setting.size)
        ]

    def _shown(self, heard: np.ndarray, last: dict[int, int], rank: dict[int, int]) -> tuple[int, ...]:
        """The last answers of those who are heard, in the order of the run."""
        return tuple(last[each] for each in sorted(heard.tolist(), key=rank.__getitem__) if each in last)
