"""Dyads on a network whose ties move away from disagreement."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.networks import AnyNetwork
from opinionsim.registry import part
from opinionsim.schedules._dyadic import dyad_turns
from opinionsim.schedules._interaction import Conflict
from opinionsim.schedules._opinions import KnownOpinions, OpinionInteraction, OpinionSchedule, dyads_of
from opinionsim.schedules._ties import TieChange
from opinionsim.schedules._turns import Outcomes, Turn


class RewiringDyads(OpinionSchedule):
    """Dyads on a network whose ties move away from disagreement: an adaptive schedule.

    Each step draws a tie uniformly, and with it a listener and a speaker it follows, as :class:`Dyads` does. If
    their opinions are further apart than `tolerance`, then with probability `rewire` the listener unfollows the
    speaker and follows another agent instead, and nobody writes; otherwise, and where there is no other agent to
    follow, they meet. An opinion is the last measured one, the assigned one until then. Rewiring to a random
    agent is as in Kozma & Barrat 2008 (doi:10.1103/PhysRevE.77.016102), to a like-minded one as in Holme & Newman 2006
    (doi:10.1103/PhysRevE.74.056108); the listener's reaction to a post is that of its chat model.

    Parameters
    ----------
    network : Network or networkx graph
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it. In a directed network each agent goes on
        following the same number of agents. In an undirected one a tie moves in both directions.
    steps : int
        T >= 0.
    tolerance : float
        Largest distance at which agents always meet, >= 0, in scale units.
    opinions : sequence of float, length N
        Assigned opinions; NaN for an agent without one. It is at the mean distance of the other agents considered; as
        a listener it is near every agent.
    seed : int
        Seed of the draws, which are the same at every call.
    rewire : float
        Probability in [0, 1] that a listener beyond `tolerance` unfollows.
    target : {"random", "similar", "friend-of-friend"}
        Agents among which it draws another to follow: all that it does not follow yet; those of them within
        `tolerance`; or those of them that are followed by an agent it still follows.

    Raises
    ------
    SpecError
        If a parameter is out of its range, or the network is not as described or is complete, which leaves no other
        agent to follow.

    Attributes
    ----------
    changes : list of TieChange
        Changes so far, in order of steps, in the call of :meth:`decide` begun last.

    Notes
    -----
    The number of ties never changes; no agent is ever tied to itself, or twice to the same agent.
    """

    skips = True

    def __init__(
        self,
        network: AnyNetwork,
        steps: int,
        *,
        tolerance: float,
        opinions: Sequence[float],
        seed: int,
        rewire: float = 1.0,
        target: str = "random",
    ) -> None:
        RewiringInteraction.checked(steps=steps, tolerance=tolerance, rewire=rewire, target=target)
        super().__init__(network, steps, opinions, seed)
        self.tolerance = tolerance
        self.rewire = rewire
        self.target = target
        self.changes: list[TieChange] = []
        joined = self._neighbours.network
        if joined.complete or len(joined.speakers) == self.n_agents * (self.n_agents - 1):
            raise SpecError("network: a complete network leaves nobody else to follow; give another one")

    def _ties(self) -> list[tuple[int, int]]:
        """(speaker, listener) of every tie before the first step; an undirected tie is listed once."""
        ties: list[tuple[int, int]] = [
            (speaker, listener) for speaker, listener in self._neighbours.network.edges[0].tolist()
        ]
        return ties

    def _drawn(self, rng: np.random.Generator, n_ties: int) -> list[tuple[int, bool]]:
        """The number of a tie for each step, and whether its second agent speaks."""
        ways = 1 if self._neighbours.network.directed else 2
        return [
            (number // ways, number % ways == 1) for number in rng.integers(ways * n_ties, size=self.steps).tolist()
        ]

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Two turns for a pair that meets, none for a tie that moves."""
        rng = np.random.default_rng(self._seed)
        ties = self._ties()
        drawn = self._drawn(rng, len(ties))
        choosy, uniforms = (rng.random(self.steps) < self.rewire).tolist(), rng.random(self.steps).tolist()
        directed = self._neighbours.network.directed
        heard = {agent: set(self._neighbours.sources(agent).tolist()) for agent in range(self.n_agents)}
        opinions = KnownOpinions(self._opinions, outcomes)
        changes: list[TieChange] = []
        self.changes = changes
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
            if not directed:
                heard[speaker].remove(listener)
                heard[other].add(listener)
            changes.append(TieChange(t + 1, listener, speaker, other))

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
            fitting = np.setdiff1d(np.arange(self.n_agents), list(taken))
        if self.target == "similar" and len(fitting):
            fitting = fitting[await opinions.distances(listener, fitting) <= self.tolerance]
        return int(fitting[int(uniform * len(fitting))]) if len(fitting) else None

    def outline(self) -> Iterator[Turn]:
        """The turns if no drawn tie moves: as many as there can be."""
        ties = self._ties()
        drawn = self._drawn(np.random.default_rng(self._seed), len(ties))
        return dyads_of([ties[tie][::-1] if turned else ties[tie] for tie, turned in drawn])


@part("interaction", name="rewiring")
class RewiringInteraction(OpinionInteraction):
    """Dyads in which a listener may unfollow a speaker it disagrees with, and follow another agent."""

    made = RewiringDyads

    tolerance: float = Field(ge=0)
    """Largest distance of opinions at which agents always meet, in scale units."""
    rewire: float = Field(1.0, ge=0, le=1)
    """Probability that a listener beyond tolerance unfollows; otherwise it reads the speaker's post."""
    target: Literal["random", "similar", "friend-of-friend"] = "random"
    """The agent followed instead: any, one within tolerance, or one followed by an agent it still follows."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, a complete network included."""
        if self.network.kind == "complete":
            yield ("network",), "'complete' leaves nobody else to follow; give a network with fewer ties"
        yield from super().conflicts(size)
