"""Dyads in which no agent reads one whose opinion is too far from its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.networks import AnyNetwork
from opinionsim.registry import part
from opinionsim.schedules._dyadic import dyad_turns
from opinionsim.schedules._opinions import KnownOpinions, OpinionInteraction, OpinionSchedule, dyads_of
from opinionsim.schedules._turns import Outcomes, Turn


class BoundedConfidenceDyads(OpinionSchedule):
    """Dyads in which no agent reads one whose opinion is too far from its own: an adaptive schedule.

    Each step draws an ordered pair (speaker, listener) as :class:`Dyads` does. With ``choose="drawn"`` they meet if
    their opinions are no further apart than `confidence`; otherwise the step passes without a turn. With
    ``choose="near"`` the listener reads an agent drawn uniformly among those it hears within `confidence`; if there
    are none, the step passes. An opinion is the last measured one, the assigned one until then. The filter is that of
    Deffuant et al. 2000 (doi:10.1142/S0219525900000078); the listener's reaction is that of its chat model.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    confidence : float
        Largest distance at which agents meet, >= 0, in scale units.
    opinions : sequence of float, length N
        Assigned opinions; NaN for an agent without one. As a speaker it is at the mean distance of the other agents
        that the listener hears; as a listener it is near every agent.
    seed : int
        Seed of the draws, which are the same at every call.
    choose : {"drawn", "near"}
        Whether the step keeps the pair it drew, or draws a speaker among those near the listener.
    strict : bool
        Whether a distance of exactly `confidence` is too far.

    Raises
    ------
    SpecError
        If a parameter is out of its range or the network is not as described.
    """

    skips = True

    def __init__(
        self,
        network: AnyNetwork,
        steps: int,
        *,
        confidence: float,
        opinions: Sequence[float],
        seed: int,
        choose: str = "drawn",
        strict: bool = False,
    ) -> None:
        BoundedConfidenceInteraction.checked(steps=steps, confidence=confidence, choose=choose, strict=strict)
        super().__init__(network, steps, opinions, seed)
        self.confidence = confidence
        self.choose = choose
        self.strict = strict

    def _pairs(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        pairs: list[tuple[int, int]] = self._neighbours.draw_pairs(self.steps, rng).tolist()
        return pairs

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Two turns for a pair that meets, none for one that does not."""
        rng = np.random.default_rng(self._seed)
        pairs, uniforms = self._pairs(rng), rng.random(self.steps).tolist()
        opinions = KnownOpinions(self._opinions, outcomes)
        index = 0
        for step, ((drawn, listener), uniform) in enumerate(zip(pairs, uniforms, strict=True), 1):
            speaker = await self._speaker(opinions, drawn, listener, uniform)
            if speaker is not None:
                for turn in dyad_turns(index, step, speaker, listener):
                    yield turn
                opinions.expect(listener, index + 1)
                index += 2

    async def _speaker(self, opinions: KnownOpinions, drawn: int, listener: int, uniform: float) -> int | None:
        """The agent that the listener reads; None if the step passes."""
        heard = self._neighbours.sources(listener)
        if self.choose == "drawn":
            return drawn if self._near(await opinions.distance(listener, drawn, heard)) else None
        near = heard[self._near(await opinions.distances(listener, heard))]
        return int(near[int(uniform * len(near))]) if len(near) else None

    def _near(self, distance: np.ndarray | float) -> np.ndarray:
        return np.asarray(distance < self.confidence if self.strict else distance <= self.confidence)

    def outline(self) -> Iterator[Turn]:
        """The turns if all drawn pairs meet: as many as there can be."""
        return dyads_of(self._pairs(np.random.default_rng(self._seed)))


@part("interaction", name="bounded-confidence")
class BoundedConfidenceInteraction(OpinionInteraction):
    """Dyads in which no agent reads one whose opinion is too far from its own."""

    made = BoundedConfidenceDyads

    confidence: float = Field(ge=0)
    """Largest distance of opinions at which agents meet, in scale units."""
    choose: Literal["drawn", "near"] = "drawn"
    """If the drawn speaker is too far, nothing is read; or the speaker is drawn among those that are near."""
    strict: bool = False
    """Whether a distance of exactly confidence is too far."""
