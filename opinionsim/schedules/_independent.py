"""The control without interaction and without memory."""

from __future__ import annotations

from collections.abc import Iterator

from opinionsim.registry import part
from opinionsim.schedules._dyadic_acts import REPORT_ONCE
from opinionsim.schedules._interaction import ReportsInteraction, Setting
from opinionsim.schedules._turns import Turn, named


@part("interaction", name="independent")
class IndependentReports(ReportsInteraction):
    """Control without interaction, in which agents give every report as if it were their first.

    The no-interaction control as Chuang et al. 2023 describe it; with one bare agent, it is their no-role-play control
    (A12).
    """

    acts = named(REPORT_ONCE)
    played_by = ("chat models",)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One ``report-once`` per agent in each step."""
        for index in range(self.reports * setting.size):
            yield Turn(index, index // setting.size + 1, index % setting.size, "report-once")
