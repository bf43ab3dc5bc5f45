"""The control without interaction in which agents remember their reports."""

from __future__ import annotations

from collections.abc import Iterator

from opinionsim.registry import part
from opinionsim.schedules._dyadic import drawn_listeners
from opinionsim.schedules._dyadic_acts import REPORT
from opinionsim.schedules._interaction import Setting, SteppedInteraction
from opinionsim.schedules._turns import Turn, named


@part("interaction", name="remembered")
class RememberedReports(SteppedInteraction):
    """Control without interaction: in each step, the listener of random dyads reports and remembers its report.

    The no-interaction control as Chuang et al. 2024 ran it (A12), in which an agent's reports are not independent.
    Agents are drawn uniformly, like the listeners of random dyads on the complete network. In the same block, the agent
    that reports in a step is the one that listens in random dyads.
    """

    acts = named(REPORT)
    played_by = ("chat models",)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One ``report`` a step."""
        for t, agent in enumerate(drawn_listeners(setting.size, self.steps_for(setting.size), setting.rng)):
            yield Turn(t, t + 1, agent, "report")
