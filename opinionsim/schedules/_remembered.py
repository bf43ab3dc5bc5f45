"""The control without interaction in which agents remember their reports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.registry import part
from opinionsim.schedules._acts import REPORT
from opinionsim.schedules._dyadic import drawn_listeners
from opinionsim.schedules._interaction import Setting, SteppedInteraction
from opinionsim.schedules._turns import Schedule, Turn, named


class RememberedReports(Schedule):
    """In each step one agent reports its opinion and remembers the report.

    The no-interaction control as Chuang et al. ran it (A12): reports of an agent are not independent.
    Agents are drawn uniformly, as the listeners of random dyads on the complete network: in the same block, whoever
    reports here in a step is the one who listens there.

    Parameters
    ----------
    n_agents : int
        N >= 1.
    steps : int
        T >= 0.
    rng : numpy.random.Generator
        Draws the agents.
    """

    acts = named(REPORT)

    def __init__(self, n_agents: int, steps: int, rng: np.random.Generator) -> None:
        if n_agents < 1 or steps < 0:
            raise SpecError(f"reports need at least one agent and steps >= 0; got N = {n_agents}, T = {steps}")
        self.n_agents = n_agents
        self.steps = steps
        self.agents = drawn_listeners(n_agents, steps, rng)

    def turns(self) -> Iterator[Turn]:
        """One ``report`` a step."""
        for t, agent in enumerate(self.agents.tolist()):
            yield Turn(t, t + 1, agent, "report")


@part("interaction", name="remembered")
class RememberedInteraction(SteppedInteraction):
    """Control: no interaction; in each step the listener of random dyads reports and remembers it."""

    acts = RememberedReports.acts
    played_by = ("chat models",)

    def schedule(self, setting: Setting) -> RememberedReports:
        """Reports of the listeners that random dyads on the complete network have."""
        return RememberedReports(setting.size, self.steps_for(setting.size), setting.rng)
