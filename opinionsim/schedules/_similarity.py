"""Dyads in which listeners meet those of similar opinion more often."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from opinionsim.networks import AnyNetwork
from opinionsim.registry import part
from opinionsim.schedules._dyadic import dyad_turns
from opinionsim.schedules._interaction import Conflict
from opinionsim.schedules._opinions import KnownOpinions, OpinionInteraction, OpinionSchedule, dyads_of
from opinionsim.schedules._turns import Outcomes, Turn


class SimilarityDyads(OpinionSchedule):
    """Dyads whose speaker is chosen by similarity of opinion: an adaptive schedule.

    In each step a listener i is drawn uniformly among the agents that hear somebody, and a speaker j among
    those it hears with probability proportional to exp(-strength * d_ij), or to max(d_ij, floor)^-strength with
    ``form="power"``, the algorithmic bias of Sirbu et al. 2019 (doi:10.1371/journal.pone.0213246). d_ij is
    |o_i - o_j|, where o is an agent's last measured opinion, the assigned one until then. The draw for a step
    awaits only the opinions it needs.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    strength : float
        >= 0, per scale unit, or the exponent of the power law; 0 chooses uniformly.
    opinions : sequence of float, length N
        Assigned opinions; NaN for an agent without one, which is at the mean distance of the other agents heard.
    seed : int
        Seed of the draws, which are the same at every call.
    form : {"exponential", "power"}
        How probability falls with distance.
    floor : float
        Distance below which the power law is constant, in scale units, above 0; without effect on the exponential
        form.

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
        strength: float,
        opinions: Sequence[float],
        seed: int,
        form: str = "exponential",
        floor: float = 0.5,
    ) -> None:
        SimilarityInteraction.checked(steps=steps, strength=strength, form=form, floor=floor)
        super().__init__(network, steps, opinions, seed)
        self.strength = strength
        self.form = form
        self.floor = floor

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Turns as for :class:`Dyads`, each pair drawn once the opinions it depends on are measured."""
        rng = np.random.default_rng(self._seed)
        listeners = rng.choice(self._neighbours.can_hear, self.steps).tolist()
        uniforms = rng.random(self.steps)
        opinions = KnownOpinions(self._opinions, outcomes)
        for t, listener in enumerate(listeners):
            sources = self._neighbours.sources(listener)
            far = await opinions.distances(listener, sources)
            if self.form == "power":
                far = np.log(np.maximum(far, self.floor))
            cumulative = np.cumsum(np.exp(-self.strength * (far - far.min())))
            speaker = int(sources[np.searchsorted(cumulative, uniforms[t] * cumulative[-1], side="right")])
            for turn in dyad_turns(2 * t, t + 1, speaker, listener):
                yield turn
            opinions.expect(listener, 2 * t + 1)

    def outline(self) -> Iterator[Turn]:
        """The same number of dyads, given to the agents one after another."""
        n = self.n_agents
        return dyads_of([(t % n, (t + 1) % n) for t in range(self.steps)])


@part("interaction", name="similarity")
class SimilarityInteraction(OpinionInteraction):
    """Dyads in which a listener meets speakers of similar opinion more often."""

    made = SimilarityDyads

    strength: float = Field(1.0, ge=0)
    """Fall of the log-odds of meeting per scale unit of distance, or exponent of the power law; 0 is indifferent."""
    form: Literal["exponential", "power"] = "exponential"
    """How probability falls with distance d: as exp(-strength d), or as d to the power of -strength."""
    floor: float = Field(0.5, gt=0)
    """Least distance that the power law distinguishes, in scale units; shorter distances count as this one."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, a floor without effect included."""
        if self.form != "power" and self.floor != type(self).model_fields["floor"].default:
            yield ("floor",), f"has no effect with form {self.form!r}; it belongs to form: power"
        yield from super().conflicts(size)
