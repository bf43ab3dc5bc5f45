"""Broadcasts: one agent writes, and all agents that hear it read."""

from __future__ import annotations

from collections.abc import Iterator

from opinionsim.registry import part
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._posts import PostsInteraction
from opinionsim.schedules._turns import Turn


@part("interaction", name="broadcast")
class Broadcast(PostsInteraction):
    """In each step, a random speaker writes a post and all its neighbours review it.

    The speaker is drawn uniformly among the agents with a listener. Chuang et al. 2023 name this as future work (A1).
    """

    def turns_a_step(self, size: int) -> int:
        """The number of agents on the complete network; a post and about one review on others."""
        return size if self.network.kind == "complete" else 1

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """In each step, a ``write``, then a ``review`` by each listener in ascending order."""
        neighbours, index = setting.neighbours, 0
        speakers = setting.rng.choice(neighbours.can_speak, self.steps_for(setting.size))
        for step, speaker in enumerate(speakers.tolist(), 1):
            post, audience = index, neighbours.audience(speaker).tolist()
            yield Turn(post, step, speaker, "write")
            for offset, listener in enumerate(audience, 1):
                yield Turn(post + offset, step, listener, "review", (post,))
            index += 1 + len(audience)
