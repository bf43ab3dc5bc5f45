"""The control without interaction and without memory."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from opinionsim.registry import part
from opinionsim.schedules._dyadic_acts import REPORT_ONCE
from opinionsim.schedules._interaction import MAX_STEPS, Interaction, Setting
from opinionsim.schedules._turns import Turn, named


@part("interaction", name="independent")
class IndependentReports(Interaction):
    """Control without interaction, in which agents give every report as if it were their first.

    The no-interaction control as Chuang et al. 2023 describe it; with one bare agent, it is their no-role-play control
    (A12).
    """

    acts = named(REPORT_ONCE)
    played_by = ("chat models",)
    every_report = True
    length_field = "reports"

    reports: int = Field(10, ge=0, le=MAX_STEPS)
    """Number of reports from each agent. Use 0 if you only ask agents off the record."""

    @property
    def asks(self) -> bool:
        """Whether there are any reports."""
        return self.reports > 0

    def steps_for(self, size: int) -> int:
        """Steps T: one for each report, in which every agent reports."""
        return self.reports

    def turns_a_step(self, size: int) -> int:
        """As many as agents."""
        return size

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One ``report-once`` per agent in each step."""
        for index in range(self.reports * setting.size):
            yield Turn(index, index // setting.size + 1, index % setting.size, "report-once")
