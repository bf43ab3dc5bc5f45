"""Broadcasts: one agent writes, and all agents that hear it read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opinionsim.networks import AnyNetwork, Neighbours
from opinionsim.registry import part
from opinionsim.schedules._acts import REVIEW, WRITE
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._posts import PostsInteraction
from opinionsim.schedules._turns import Schedule, Turn, named


class Broadcast(Schedule):
    """In each step one agent writes a post and all agents that hear it review it.

    The speaker is drawn uniformly among the agents with a listener. Chuang et al. 2023 name this as
    future work (A1).

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    rng : numpy.random.Generator
        Draws the speakers.
    """

    acts = named(WRITE, REVIEW)

    def __init__(self, network: AnyNetwork, steps: int, rng: np.random.Generator) -> None:
        BroadcastInteraction.checked(steps=steps)
        self._neighbours = Neighbours(network)
        self.n_agents = self._neighbours.n
        self.steps = steps
        self.speakers = rng.choice(self._neighbours.can_speak, steps)

    def turns(self) -> Iterator[Turn]:
        """All turns: in each step a ``write``, then one ``review`` of each listener in ascending order."""
        index = 0
        for step, speaker in enumerate(self.speakers.tolist(), 1):
            post, audience = index, self._neighbours.audience(speaker).tolist()
            yield Turn(post, step, speaker, "write")
            for offset, listener in enumerate(audience, 1):
                yield Turn(post + offset, step, listener, "review", (post,))
            index += 1 + len(audience)


@part("interaction", name="broadcast")
class BroadcastInteraction(PostsInteraction):
    """In each step a random speaker writes a post and all its neighbours review it."""

    def turns_a_step(self, size: int) -> int:
        """As many as agents on the complete network; a post and about one review on others."""
        return size if self.network.kind == "complete" else 1

    def arranged(self, setting: Setting) -> Broadcast:
        """Random broadcasts on the run's network."""
        return Broadcast(setting.joined, self.steps_for(setting.size), setting.rng)
