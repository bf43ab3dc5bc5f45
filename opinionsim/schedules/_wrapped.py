"""The base of schedules around another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opinionsim.schedules._turns import AnySchedule, Schedule, TieChange, tie_changes


class Wrapped(Schedule):
    """Base of schedules around another: they declare what it declares, but for what they say themselves.

    `closing` names turns by number, and most wrappers number turns anew, so that it is not passed on; a wrapper that
    can say the new numbers defines it.
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
