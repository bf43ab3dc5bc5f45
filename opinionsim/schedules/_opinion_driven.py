"""The base of interactions in which measured opinions decide which agents meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opinionsim.schedules._posts import PostsInteraction
from opinionsim.schedules._turns import Outcomes


class KnownOpinions:
    """Known opinions of agents: each agent's last measured opinion or, before any measurement, its assigned one.

    Measurements are awaited only when needed, so turns of unrelated agents run in parallel.
    """

    def __init__(self, assigned: np.ndarray, outcomes: Outcomes) -> None:
        self._last = assigned
        self._outcomes = outcomes
        self._unread: dict[int, list[int]] = {}

    def expect(self, agent: int, review: int) -> None:
        """Record a turn of the agent whose text will be measured."""
        self._unread.setdefault(agent, []).append(review)

    async def _update(self, agents: Sequence[int]) -> None:
        for agent in agents:
            for review in self._unread.pop(agent, ()):
                measured = await self._outcomes.opinion(review)
                if not np.isnan(measured):
                    self._last[agent] = measured

    async def distances(self, agent: int, others: np.ndarray) -> np.ndarray:
        """Distances of `others`, shape (m,), from `agent`. Unknown distances equal the mean of the known ones, or 0."""
        await self._update((agent, *others.tolist()))
        found = np.abs(self._last[others] - self._last[agent])
        known = ~np.isnan(found)
        found[~known] = found[known].mean() if known.any() else 0.0
        return np.asarray(found)

    async def distance(self, agent: int, other: int, among: np.ndarray) -> float:
        """Distance of `other`, one of `among`, from `agent`, as in :meth:`distances`; awaits a third only if needed."""
        await self._update((agent, other))
        if not np.isnan(self._last[[agent, other]]).any():
            return float(abs(self._last[other] - self._last[agent]))
        if np.isnan(self._last[agent]):
            return 0.0
        return float((await self.distances(agent, among))[among == other][0])


class OpinionInteraction(PostsInteraction):
    """Base of interactions in which the stance of agents decides which ones meet."""

    @property
    def needs(self) -> Sequence[str]:
        """Stance, which decides which agents meet."""
        return ("stance",)
