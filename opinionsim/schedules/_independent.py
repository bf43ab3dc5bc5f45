"""The control without interaction and without memory."""

from __future__ import annotations

from collections.abc import Iterator

from opinionsim.errors import SpecError
from opinionsim.registry import part
from opinionsim.schedules._acts import REPORT_ONCE
from opinionsim.schedules._interaction import ReportsInteraction, Setting
from opinionsim.schedules._turns import Schedule, Turn, named


class IndependentReports(Schedule):
    """Every agent reports its opinion a number of times, each time as if for the first time.

    The no-interaction control as Chuang et al. 2023 write it; with one bare agent, their no-role-play
    control (A12).

    Parameters
    ----------
    n_agents : int
        N >= 1.
    reports : int
        Reports an agent gives, >= 0; one a step.
    """

    acts = named(REPORT_ONCE)

    def __init__(self, n_agents: int, reports: int) -> None:
        if n_agents < 1 or reports < 0:
            raise SpecError(f"reports need at least one agent and a number >= 0; got N = {n_agents}, {reports} reports")
        self.n_agents = n_agents
        self.steps = reports

    def turns(self) -> Iterator[Turn]:
        """One ``report-once`` an agent in each step."""
        for index in range(self.steps * self.n_agents):
            yield Turn(index, index // self.n_agents + 1, index % self.n_agents, "report-once")


@part("interaction", name="independent")
class IndependentInteraction(ReportsInteraction):
    """Control: no interaction; every report as if it were the first."""

    acts = IndependentReports.acts
    played_by = ("chat models",)

    def schedule(self, setting: Setting) -> IndependentReports:
        """Independent reports of all agents."""
        return IndependentReports(setting.size, self.reports)
