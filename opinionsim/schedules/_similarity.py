"""Dyads in which listeners meet those of similar opinion more often."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.registry import part
from opinionsim.schedules._dyadic import dyad_turns, dyads_of
from opinionsim.schedules._interaction import Conflict, Setting
from opinionsim.schedules._opinion_driven import KnownOpinions, OpinionInteraction
from opinionsim.schedules._turns import Outcomes, Turn


@part("interaction", name="similarity")
class SimilarityDyads(OpinionInteraction):
    """Dyads in which a listener meets speakers with similar opinions more often.

    In each step, a listener i is drawn uniformly among the agents that hear another agent, and a speaker j among those
    it hears with probability proportional to exp(-strength * d_ij), or to max(d_ij, floor)^-strength with
    ``form: power``, the algorithmic bias of Sirbu et al. 2019 (doi:10.1371/journal.pone.0213246). d_ij is |o_i - o_j|,
    where o is an agent's last measured opinion or, before any measurement, its assigned one. An agent without an
    opinion counts as being at the mean distance of the other agents heard. The draw for a step awaits only the opinions
    that it needs.
    """

    strength: float = Field(1.0, ge=0)
    """Decrease in the log-odds of meeting per scale unit of distance, or exponent of the power law. With 0, distance
    does not matter."""
    form: Literal["exponential", "power"] = "exponential"
    """How the probability decreases with distance d: as exp(-strength d), or as d to the power of -strength."""
    floor: float = Field(0.5, gt=0)
    """Smallest distance that the power law distinguishes, in scale units. Shorter distances count as this one."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, including a floor without effect."""
        if self.form != "power" and self.floor != type(self).model_fields["floor"].default:
            yield ("floor",), f"has no effect with form {self.form!r}; it belongs to form: power"
        yield from super().conflicts(size)

    async def decide(self, setting: Setting, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """A ``write`` and a ``review`` per step; each pair is drawn once the opinions it needs are measured."""
        rng, neighbours, steps = np.random.default_rng(setting.seed), setting.neighbours, self.steps_for(setting.size)
        listeners = rng.choice(neighbours.can_hear, steps).tolist()
        uniforms = rng.random(steps)
        opinions = KnownOpinions(setting.assigned, outcomes)
        for t, listener in enumerate(listeners):
            sources = neighbours.sources(listener)
            far = await opinions.distances(listener, sources)
            if self.form == "power":
                far = np.log(np.maximum(far, self.floor))
            cumulative = np.cumsum(np.exp(-self.strength * (far - far.min())))
            speaker = int(sources[np.searchsorted(cumulative, uniforms[t] * cumulative[-1], side="right")])
            for turn in dyad_turns(2 * t, t + 1, speaker, listener):
                yield turn
            opinions.expect(listener, 2 * t + 1)

    def outline(self, setting: Setting) -> Iterator[Turn]:
        """The same number of dyads, assigned to the agents one after another."""
        n = setting.size
        return dyads_of((t % n, (t + 1) % n) for t in range(self.steps_for(n)))
