"""Feeds of posts, ranked for each reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.networks import AnyNetwork
from opinionsim.registry import part
from opinionsim.schedules._interaction import MAX_SIZE
from opinionsim.schedules._opinions import KnownOpinions, OpinionInteraction, OpinionSchedule
from opinionsim.schedules._turns import Outcomes, Turn


class Feed(OpinionSchedule):
    """A feed of posts, ranked for its reader: an adaptive schedule.

    Before the first step (step 0) every agent writes a post. In each step a reader i is drawn uniformly among the
    agents that hear somebody. It is shown the latest post of up to `posts` of the agents it hears, the highest ranked
    first, in one ``review``, and then writes a post of its own, which takes the place of its last one. With
    ``ranking="similarity"`` the authors come in the order of successive draws without replacement, each with
    probability proportional to exp(-strength * |o_i - o_j|) among the authors j that are left (Plackett-Luce; drawn
    as Gumbel maxima), where o is an agent's last measured opinion from a step before, the assigned one until then.
    A post that is still its author's latest may be shown to a reader again.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    posts : int
        Posts shown at a time at most, >= 1.
    opinions : sequence of float, length N
        Assigned opinions; NaN for an agent without one, which is at the mean distance of the other authors.
    seed : int
        Seed of the draws, which are the same at every call.
    ranking : {"similarity", "recency", "random"}
        Whether authors with near opinions come first; those with late posts, posts of step 0 in random order; or any
        at random. The last two await no opinion.
    strength : float
        How strongly similarity ranks, >= 0, per scale unit; 0 ranks at random.

    Raises
    ------
    SpecError
        If a parameter is out of its range or the network is not as described.
    """

    def __init__(
        self,
        network: AnyNetwork,
        steps: int,
        *,
        posts: int,
        opinions: Sequence[float],
        seed: int,
        ranking: str = "similarity",
        strength: float = 1.0,
    ) -> None:
        FeedInteraction.checked(steps=steps, posts=posts, ranking=ranking, strength=strength)
        super().__init__(network, steps, opinions, seed)
        self.posts = posts
        self.ranking = ranking
        self.strength = strength
        if ranking != "similarity":
            self.needs = ()

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """A post of every agent; then a ``review`` of several posts and a ``write`` of the same agent a step."""
        rng = np.random.default_rng(self._seed)
        readers = self._readers(rng)
        opinions = KnownOpinions(self._opinions, outcomes)
        latest = np.arange(self.n_agents)
        for turn in self._first_posts():
            yield turn
        for step, reader in enumerate(readers, 1):
            authors = self._neighbours.sources(reader)
            noise = rng.gumbel(size=len(authors))
            if self.ranking == "similarity":
                order = np.argsort(self.strength * await opinions.distances(reader, authors) - noise, kind="stable")
            elif self.ranking == "recency":
                # Posts of step 0 are of one age.
                order = np.lexsort((-noise, -np.maximum(latest[authors], self.n_agents - 1)))
            else:
                order = np.argsort(-noise, kind="stable")
            review, post = self._reading(step, reader, latest[authors[order[: self.posts]]])
            yield review
            yield post
            opinions.expect(reader, review.index)
            latest[reader] = post.index

    def _readers(self, rng: np.random.Generator) -> list[int]:
        readers: list[int] = rng.choice(self._neighbours.can_hear, self.steps).tolist()
        return readers

    def _first_posts(self) -> Iterator[Turn]:
        return (Turn(agent, 0, agent, "write") for agent in range(self.n_agents))

    def _reading(self, step: int, reader: int, shown: np.ndarray) -> tuple[Turn, Turn]:
        """The two turns of the reader in a step."""
        index = self.n_agents + 2 * (step - 1)
        reads = tuple(shown.tolist())
        return Turn(index, step, reader, "review", reads), Turn(index + 1, step, reader, "write")

    def outline(self) -> Iterator[Turn]:
        """The turns of the drawn readers, each shown the posts of the first agents it hears."""
        yield from self._first_posts()
        latest = np.arange(self.n_agents)
        for step, reader in enumerate(self._readers(np.random.default_rng(self._seed)), 1):
            review, post = self._reading(step, reader, latest[self._neighbours.sources(reader)[: self.posts]])
            yield review
            yield post
            latest[reader] = post.index


@part("interaction", name="feed")
class FeedInteraction(OpinionInteraction):
    """In each step a random reader reviews several posts, ranked for it, and then writes one."""

    made = Feed

    posts: int = Field(3, ge=1, le=MAX_SIZE)
    """Posts shown at a time, at most: the latest one of each author."""
    ranking: Literal["similarity", "recency", "random"] = "similarity"
    """Order of authors: by similar opinion, by recent post, or at random."""
    strength: float = Field(1.0, ge=0)
    """With ranking by similarity, fall of the log-odds of being shown next per scale unit; 0 ranks at random."""

    @property
    def needs(self) -> Sequence[str]:
        """Stance, if similarity ranks authors."""
        return super().needs if self.ranking == "similarity" else ()
