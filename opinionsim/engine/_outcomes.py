"""What an adaptive schedule may wait for: messages, decisions and opinions of turns that it has yielded."""

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
    """The outcomes of a run's turns, awaited by the schedule that yields them.

    Parameters
    ----------
    schedule : AdaptiveSchedule
        Declares in `needs` the instruments on whose opinions it acts.
    nodes : sequence of Node
        The turns taken in so far, by index; grows as the schedule yields.
    rate : callable or None
        ``await rate(turn, message, instrument, about)`` gives the measured opinion; None where nothing measures.
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
        """Decision read by the act's `parse` in a turn already yielded; None where there is none."""
        return (await self.reply(turn)).decision

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        """Measured opinion of a turn already yielded; NaN where its message, or that of `about`, is not passed on."""
        name = called(self._schedule)
        if instrument not in self._schedule.needs:
            declared = ", ".join(self._schedule.needs) or "none"
            raise ScheduleError(f"{name} acts on {instrument!r}, which it does not declare; its needs: {declared}")
        if self.rate is None:
            raise ScheduleError(f"{name} acts on {instrument!r}, but nothing measures it here; give the engine a rate")
        message = await self.reply(turn)
        if not message.passed_on or (about is not None and not (await self.reply(about)).passed_on):
            return math.nan
        return await self.rate(self._nodes[turn].turn, message, instrument, about)

    async def reply(self, turn: int) -> Message:
        """The message of a turn already yielded, with its status."""
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
