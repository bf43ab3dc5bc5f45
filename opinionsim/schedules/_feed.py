"""Feeds of posts, ranked for each reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.registry import part
from opinionsim.schedules._interaction import MAX_SIZE, Setting
from opinionsim.schedules._opinion_driven import KnownOpinions, OpinionInteraction
from opinionsim.schedules._turns import Outcomes, Turn


@part("interaction", name="feed")
class Feed(OpinionInteraction):
    """In each step, a random reader reviews several posts that are ranked for it, and then writes one.

    Before the first step (step 0) every agent writes a post. In each step, a reader i is drawn uniformly among the
    agents that hear another agent. In one ``review``, it sees the latest posts of up to `posts` of the agents it hears,
    the highest ranked first. It then writes a post, which replaces its last one. With ``ranking: similarity`` the
    authors come in the order of successive draws without replacement, each with probability proportional to
    exp(-strength * |o_i - o_j|) among the authors j that are left (Plackett-Luce; drawn as Gumbel maxima), where o is
    an agent's last opinion measured in an earlier step or, before any measurement, its assigned one. An agent without
    an opinion counts as being at the mean distance of the other authors. With ``recency``, posts of step 0 come in
    random order. A reader may see a post again if it is still its author's latest.
    """

    posts: int = Field(3, ge=1, le=MAX_SIZE)
    """Maximum number of posts shown at a time. Only the latest post of each author is used."""
    ranking: Literal["similarity", "recency", "random"] = "similarity"
    """How authors are ranked: by similar opinion, by most recent post, or at random."""
    strength: float = Field(1.0, ge=0)
    """For ranking by similarity: decrease in the log-odds of being shown next, per scale unit of distance. 0 ranks at
    random."""

    @property
    def needs(self) -> Sequence[str]:
        """Stance, if similarity ranks authors."""
        return super().needs if self.ranking == "similarity" else ()

    async def decide(self, setting: Setting, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """A post by every agent; then, per step, a ``review`` of several posts and a ``write`` by the same agent."""
        rng, n = np.random.default_rng(setting.seed), setting.size
        readers = self._readers(setting, rng)
        opinions = KnownOpinions(setting.assigned, outcomes)
        latest = np.arange(n)
        for turn in self._first_posts(n):
            yield turn
        for step, reader in enumerate(readers, 1):
            authors = setting.neighbours.sources(reader)
            noise = rng.gumbel(size=len(authors))
            if self.ranking == "similarity":
                order = np.argsort(self.strength * await opinions.distances(reader, authors) - noise, kind="stable")
            elif self.ranking == "recency":
                # Posts of step 0 are of one age.
                order = np.lexsort((-noise, -np.maximum(latest[authors], n - 1)))
            else:
                order = np.argsort(-noise, kind="stable")
            review, post = self._reading(n, step, reader, latest[authors[order[: self.posts]]])
            yield review
            yield post
            opinions.expect(reader, review.index)
            latest[reader] = post.index

    def _readers(self, setting: Setting, rng: np.random.Generator) -> list[int]:
        readers: list[int] = rng.choice(setting.neighbours.can_hear, self.steps_for(setting.size)).tolist()
        return readers

    def _first_posts(self, size: int) -> Iterator[Turn]:
        return (Turn(agent, 0, agent, "write") for agent in range(size))

    def _reading(self, size: int, step: int, reader: int, shown: np.ndarray) -> tuple[Turn, Turn]:
        """The two turns of the reader in a step."""
        index = size + 2 * (step - 1)
        reads = tuple(shown.tolist())
        return Turn(index, step, reader, "review", reads), Turn(index + 1, step, reader, "write")

    def outline(self, setting: Setting) -> Iterator[Turn]:
        """The turns of the drawn readers, each reading the posts of the first agents it hears."""
        n = setting.size
        yield from self._first_posts(n)
        latest = np.arange(n)
        for step, reader in enumerate(self._readers(setting, np.random.default_rng(setting.seed)), 1):
            review, post = self._reading(n, step, reader, latest[setting.neighbours.sources(reader)[: self.posts]])
            yield review
            yield post
            latest[reader] = post.index
