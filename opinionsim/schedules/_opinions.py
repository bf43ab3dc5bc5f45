"""The base of schedules in which measured opinions decide which agents meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks import AnyNetwork, Neighbours
from opinionsim.schedules._acts import REVIEW, WRITE
from opinionsim.schedules._dyadic import dyad_turns
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._posts import PostsInteraction
from opinionsim.schedules._turns import AnySchedule, Outcomes, Schedule, Turn, named


class KnownOpinions:
    """Known opinions of agents: the last measured opinion of each, the assigned one until then.

    A measurement is awaited only when it is needed, so that turns of unrelated agents run side by side.
    """

    def __init__(self, assigned: np.ndarray, outcomes: Outcomes) -> None:
        self._last = assigned.copy()
        self._outcomes = outcomes
        self._unread: dict[int, list[int]] = {}

    def expect(self, agent: int, review: int) -> None:
        """Note a turn of the agent whose text will be measured."""
        self._unread.setdefault(agent, []).append(review)

    async def _update(self, agents: Sequence[int]) -> None:
        for agent in agents:
            for review in self._unread.pop(agent, ()):
                measured = await self._outcomes.opinion(review)
                if not np.isnan(measured):
                    self._last[agent] = measured

    async def distances(self, agent: int, others: np.ndarray) -> np.ndarray:
        """Distances of `others`, shape (m,), from `agent`; an unknown one is the mean of the known ones, or 0."""
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


def _assigned(opinions: Sequence[float], n_agents: int) -> np.ndarray:
    """Assigned opinions as an array, one number for each agent."""
    found = np.asarray(opinions, dtype=float)
    if found.shape != (n_agents,):
        raise SpecError(f"opinions must give one number for each of the {n_agents} agents; got {opinions!r:.80}")
    return found


def dyads_of(pairs: Sequence[tuple[int, int]]) -> Iterator[Turn]:
    """The turns of one dyad (speaker, listener) a step."""
    for t, (speaker, listener) in enumerate(pairs):
        yield from dyad_turns(2 * t, t + 1, speaker, listener)


class OpinionSchedule(Schedule):
    """Base of schedules with a network, a length, assigned opinions and a seed."""

    acts = named(WRITE, REVIEW)
    needs: Sequence[str] = ("stance",)
    #: Whether steps may pass without a turn.
    skips: ClassVar[bool] = False

    def __init__(self, network: AnyNetwork, steps: int, opinions: Sequence[float], seed: int) -> None:
        self._neighbours = Neighbours(network)
        self.n_agents = self._neighbours.n
        self.steps = steps
        self._opinions = _assigned(opinions, self.n_agents)
        self._seed = seed


class OpinionInteraction(PostsInteraction):
    """Base of interactions in which the stance of agents decides which ones meet."""

    made: ClassVar[type[OpinionSchedule]]
    """Class of its schedule."""

    @property
    def needs(self) -> Sequence[str]:
        """Stance, which decides which agents meet."""
        return OpinionSchedule.needs

    @property
    def adaptive(self) -> bool:
        """True: opinions measured during the run decide which agents meet."""
        return True

    def arranged(self, setting: Setting) -> AnySchedule:
        """The schedule of the run; assigned opinions count until opinions are measured."""
        own = self.model_dump(exclude={"kind", "network", "steps", "exposures", "on_skip", "skips"})
        steps = self.steps_for(setting.size)
        build: Any = self.made
        made: AnySchedule = build(setting.joined, steps, opinions=setting.assigned, seed=setting.seed, **own)
        return made
