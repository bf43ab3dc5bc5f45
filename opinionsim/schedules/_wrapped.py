"""Base of schedules that wrap another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opinionsim.schedules._turns import AnySchedule, Schedule, TieChange, tie_changes


class Wrapped(Schedule):
    """Base of schedules that wrap another; they share its declarations except those that they override.

    `closing` refers to turns by number, and most wrappers renumber turns, so it is not passed on. A wrapper that knows
    the new numbers defines it.
    """

    def __init__(self, schedule: AnySchedule) -> None:
        self.n_agents, self.others, self.steps = schedule.n_agents, schedule.others, schedule.steps
        self.externals, self.needs, self.acts = schedule.externals, schedule.needs, schedule.acts
        self.moderated = getattr(schedule, "moderated", Schedule.moderated)
        self.given = getattr(schedule, "given", Schedule.given)
        self._schedule: Any = schedule

    @property
    def changes(self) -> Sequence[TieChange]:  # type: ignore[override]
        """Changes of the network so far."""
        return tie_changes(self._schedule)
