"""Dyads on a network in which agents drop ties to those they disagree with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.registry import part
from opinionsim.schedules._dyadic import dyad_turns, dyads_of
from opinionsim.schedules._interaction import Conflict, Setting
from opinionsim.schedules._opinion_driven import KnownOpinions, OpinionInteraction
from opinionsim.schedules._turns import Outcomes, TieChange, Turn


@part("interaction", name="rewiring")
class RewiringDyads(OpinionInteraction):
    """Dyads in which a listener may unfollow a speaker that it disagrees with, and follow another agent.

    Each step draws a tie uniformly, and with it a listener and a speaker it follows, as random dyads do. If their
    opinions are further apart than `tolerance`, then with probability `rewire` the listener unfollows the speaker and
    follows another agent instead, and no agent writes. Otherwise, or if there is no other agent to follow, they meet.
    An agent's opinion is its last measured one or, before any measurement, its assigned one. An agent without an
    opinion counts as being at the mean distance of the other agents considered and, as a listener, near every agent.
    Rewiring to a random agent is as in Kozma & Barrat 2008 (doi:10.1103/PhysRevE.77.016102), to a like-minded one as in
    Holme & Newman 2006 (doi:10.1103/PhysRevE.74.056108); the listener's chat model determines its reaction to a post.

    The number of ties never changes; no agent is ever tied to itself, or twice to the same agent. In a directed
    network, each agent always follows the same number of agents. In an undirected network, a tie moves in both
    directions.
    """

    tolerance: float = Field(ge=0)
    """Largest difference of opinions at which agents always meet, in scale units."""
    rewire: float = Field(1.0, ge=0, le=1)
    """Probability that a listener beyond `tolerance` unfollows the speaker. Otherwise it reads the speaker's post."""
    target: Literal["random", "similar", "friend-of-friend"] = "random"
    """Which agent to follow instead: any agent, one within `tolerance`, or one that is followed by an agent it still
    follows."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, including a complete network."""
        if self.network.kind == "complete":
            yield ("network",), "'complete' leaves nobody else to follow; give a network with fewer ties"
        yield from super().conflicts(size)

    def check(self, setting: Setting) -> None:
        """Refuse a network on which no agent can speak, and a complete one."""
        super().check(setting)
        joined, n = setting.network, setting.size
        if self.network.kind == "complete" if joined is None else len(joined.speakers) == n * (n - 1):
            raise SpecError("a complete network leaves nobody else to follow; give another one", "interaction.network")

    def _drawn(
        self, setting: Setting, rng: np.random.Generator
    ) -> tuple[list[tuple[int, int]], list[tuple[int, bool]]]:
        """(speaker, listener) of every tie before the first step, an undirected one once; and what the steps draw.

        A step draws the number of a tie, and whether its second agent speaks.
        """
        network = setting.neighbours.network
        ties: list[tuple[int, int]] = [(speaker, listener) for speaker, listener in network.edges[0].tolist()]
        ways = 1 if network.directed else 2
        numbers = rng.integers(ways * len(ties), size=self.steps_for(setting.size)).tolist()
        return ties, [(number // ways, number % ways == 1) for number in numbers]

    async def decide(self, setting: Setting, outcomes: Outcomes) -> AsyncIterator[Turn | TieChange]:
        """Two turns for a pair that meets, and a change for a tie that moves."""
        rng, neighbours, steps = np.random.default_rng(setting.seed), setting.neighbours, self.steps_for(setting.size)
        ties, drawn = self._drawn(setting, rng)
        choosy, uniforms = (rng.random(steps) < self.rewire).tolist(), rng.random(steps).tolist()
        heard = {agent: set(neighbours.sources(agent).tolist()) for agent in range(setting.size)}
        opinions = KnownOpinions(setting.assigned, outcomes)
        index = 0
        for t, (tie, turned) in enumerate(drawn):
            speaker, listener = ties[tie][::-1] if turned else ties[tie]
            other = None
            if choosy[t] and await self._too_far(opinions, listener, speaker, heard):
                other = await self._other(opinions, listener, speaker, heard, uniforms[t])
            if other is None:
                for turn in dyad_turns(index, t + 1, speaker, listener):
                    yield turn
                opinions.expect(listener, index + 1)
                index += 2
                continue
            ties[tie] = (listener, other) if turned else (other, listener)
            heard[listener].remove(speaker)
            heard[listener].add(other)
            if not neighbours.network.directed:
                heard[speaker].remove(listener)
                heard[other].add(listener)
            yield TieChange(t + 1, listener, speaker, other)

    async def _too_far(self, opinions: KnownOpinions, listener: int, speaker: int, heard: dict[int, set[int]]) -> bool:
        return await opinions.distance(listener, speaker, np.array(sorted(heard[listener]))) > self.tolerance

    async def _other(
        self, opinions: KnownOpinions, listener: int, speaker: int, heard: dict[int, set[int]], uniform: float
    ) -> int | None:
        """The agent that the listener follows instead of the speaker; None if there is none."""
        taken = heard[listener] | {listener}
        if self.target == "friend-of-friend":
            friends = heard[listener] - {speaker}
            fitting = np.array(sorted(set().union(*(heard[friend] for friend in friends)) - taken), dtype=np.int64)
        else:
            fitting = np.setdiff1d(np.arange(len(heard)), list(taken))
        if self.target == "similar" and len(fitting):
            fitting = fitting[await opinions.distances(listener, fitting) <= self.tolerance]
        return int(fitting[int(uniform * len(fitting))]) if len(fitting) else None

    def outline(self, setting: Setting) -> Iterator[Turn]:
        """The turns if no drawn tie moves, which is the maximum."""
        ties, drawn = self._drawn(setting, np.random.default_rng(setting.seed))
        return dyads_of(ties[tie][::-1] if turned else ties[tie] for tie, turned in drawn)
