"""The control in which the bare chat model reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from opinionsim.registry import part
from opinionsim.schedules._dyadic_acts import REPORT, REPORT_ONCE
from opinionsim.schedules._independent import IndependentReports
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._turns import ActSpec, Turn, named


@part("interaction", name="no-role-play")
class NoRolePlayInteraction(IndependentReports):
    """Control: the bare chat model reports without playing a person.

    Chuang et al. 2024 write that reports are independent, but they ran one conversation with one report per step (A12):
    `population.size: 1`, `reports: 100` and `conversation: true`.
    """

    role_play = False

    conversation: bool = False
    """Whether the reports of an agent form one conversation, in which it remembers each report and only the last one
    counts in tables. Otherwise the reports are independent, and all of them count."""

    @property
    def every_report(self) -> bool:  # type: ignore[override]
        """Whether all reports count in tables."""
        return not self.conversation

    @property
    def acts(self) -> Mapping[str, ActSpec]:  # type: ignore[override]
        """A report, remembered or not."""
        return named(REPORT if self.conversation else REPORT_ONCE)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One report per agent in each step."""
        (act,) = self.acts
        return (replace(turn, act=act) for turn in super().turns(setting))
