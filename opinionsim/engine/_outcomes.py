"""Messages, decisions and opinions of yielded turns, which an adaptive schedule can wait for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from opinionsim.engine._contracts import Rate
from opinionsim.engine._turn_graph import Node
from opinionsim.errors import ScheduleError
from opinionsim.messages import Message
from opinionsim.schedules import AnySchedule, called


class TurnOutcomes:
    """Outcomes of a run's turns, for the schedule that yields them.

    Parameters
    ----------
    schedule : AdaptiveSchedule
        Its attribute `needs` declares the instruments that it uses.
    nodes : sequence of Node
        The turns so far, by index; grows as the schedule yields.
    rate : callable or None
        ``await rate(turn, message, instrument, about)`` returns the measured opinion; None without measurement.
    """

    def __init__(self, schedule: AnySchedule, nodes: Sequence[Node], rate: Rate | None) -> None:
        self._schedule = schedule
        self._nodes = nodes
        self.rate = rate
        self._stopped = False

    def stop(self) -> None:
        """End every wait, and refuse further ones."""
        self._stopped = True
        for node in self._nodes:
            if node.published is not None and not node.published.done():
                node.published.cancel()

    async def decision(self, turn: int) -> Any:
        """Decision that the act's `parse` read in a yielded turn; None without one."""
        return (await self.reply(turn)).decision

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        """Measured opinion of a yielded turn; NaN if its message or that of `about` is not passed on."""
        name = called(self._schedule)
        if instrument not in self._schedule.needs:
            declared = ", ".join(self._schedule.needs) or "none"
            raise ScheduleError(f"{name} acts on {instrument!r}, which its needs do not declare; declared: {declared}")
        if self.rate is None:
            raise ScheduleError(f"{name} acts on {instrument!r}, but nothing measures it; pass rate to the engine")
        message = await self.reply(turn)
        if not message.passed_on or (about is not None and not (await self.reply(about)).passed_on):
            return math.nan
        return await self.rate(self._nodes[turn].turn, message, instrument, about)

    async def reply(self, turn: int) -> Message:
        """The message of a yielded turn, with its status."""
        if not 0 <= turn < len(self._nodes):
            raise ScheduleError(f"the schedule waits for turn {turn}, which it has not yielded")
        node = self._nodes[turn]
        if node.message is None:
            if self._stopped:
                raise asyncio.CancelledError
            if node.published is None:
                node.published = asyncio.get_running_loop().create_future()
            # Several callers may wait for one message: cancelling one wait must not cancel the others.
            return await asyncio.shield(node.published)
        return node.message
