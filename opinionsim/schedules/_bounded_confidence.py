"""Dyads in which agents do not read speakers whose opinions are too far from their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.registry import part
from opinionsim.schedules._dyadic import dyad_turns, dyads_of
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._opinion_driven import KnownOpinions, OpinionInteraction
from opinionsim.schedules._turns import Outcomes, Turn


@part("interaction", name="bounded-confidence")
class BoundedConfidenceDyads(OpinionInteraction):
    """Dyads in which agents do not read speakers whose opinions are too far from their own.

    Each step draws an ordered pair (speaker, listener) as random dyads do. With ``choose: drawn`` they meet if their
    opinions are no further apart than `confidence`; otherwise the step passes without a turn. With ``choose: near`` the
    listener reads an agent drawn uniformly among those it hears within `confidence`; if there are none, the step
    passes. An agent's opinion is its last measured one or, before any measurement, its assigned one. A speaker without
    an opinion counts as being at the mean distance of the other agents that the listener hears; a listener without one
    is near every agent. The filter is that of Deffuant et al. 2000 (doi:10.1142/S0219525900000078); the listener's chat
    model determines its reaction.
    """

    confidence: float = Field(ge=0)
    """Largest difference of opinions at which agents meet, in scale units."""
    choose: Literal["drawn", "near"] = "drawn"
    """With `drawn`, the listener reads nothing if the drawn speaker is too far away. With `near`, the speaker is drawn
    from those that are near."""
    strict: bool = False
    """Whether a distance of exactly `confidence` counts as too far."""

    async def decide(self, setting: Setting, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Two turns for a pair that meets, none for one that does not."""
        rng = np.random.default_rng(setting.seed)
        pairs, uniforms = self._pairs(setting, rng), rng.random(self.steps_for(setting.size)).tolist()
        opinions = KnownOpinions(setting.assigned, outcomes)
        index = 0
        for step, ((drawn, listener), uniform) in enumerate(zip(pairs, uniforms, strict=True), 1):
            heard = setting.neighbours.sources(listener)
            speaker = await self._speaker(opinions, heard, drawn, listener, uniform)
            if speaker is not None:
                for turn in dyad_turns(index, step, speaker, listener):
                    yield turn
                opinions.expect(listener, index + 1)
                index += 2

    def _pairs(self, setting: Setting, rng: np.random.Generator) -> list[tuple[int, int]]:
        pairs: list[tuple[int, int]] = setting.neighbours.draw_pairs(self.steps_for(setting.size), rng).tolist()
        return pairs

    async def _speaker(
        self, opinions: KnownOpinions, heard: np.ndarray, drawn: int, listener: int, uniform: float
    ) -> int | None:
        """The agent that the listener reads; None if the step passes."""
        if self.choose == "drawn":
            return drawn if self._near(await opinions.distance(listener, drawn, heard)) else None
        near = heard[self._near(await opinions.distances(listener, heard))]
        return int(near[int(uniform * len(near))]) if len(near) else None

    def _near(self, distance: np.ndarray | float) -> np.ndarray:
        return np.asarray(distance < self.confidence if self.strict else distance <= self.confidence)

    def outline(self, setting: Setting) -> Iterator[Turn]:
        """The turns if all drawn pairs meet, which is the maximum."""
        return dyads_of(self._pairs(setting, np.random.default_rng(setting.seed)))
