"""One run, made of cast, schedule, engine and measurement."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from opinionsim.engine._cast_members import Member, check_cast
from opinionsim.engine._contracts import Rate, Witness
from opinionsim.engine._engine import Engine
from opinionsim.errors import OpinionSimError, ScheduleError
from opinionsim.llm import RunCalls, Seat
from opinionsim.measurement import Measuring, Reading, Text
from opinionsim.messages import Message
from opinionsim.schedules import ActSpec, AnySchedule, Turn, called

#: Turns a run has under way for each call slot: enough that no slot waits for a prompt, few enough for memory.
_TURNS_PER_SLOT = 4


class TurnResult(NamedTuple):
    """A turn that has published, with its message and estimate."""

    turn: Turn
    message: Message
    act: ActSpec
    """How it was carried out."""
    estimate: Reading | None
    """Estimate by the first instrument of stance; None where it has not coded the text."""


class Simulation:
    """One run on the engine, from the first turn to the last measurement.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        The turns.
    cast : sequence of Member
        Participants first, then the schedule's others.
    calls : RunCalls
        The run's journal, slots and models.
    measuring : Measuring or None
        The run's instruments; None measures nothing.
    rate : Rate or None
        Provides opinions for a schedule that uses them, instead of `measuring`; replays and forecasts use it.
    lookahead : int or None
        Number of steps to start beyond the last complete one; None sets no limit.
    witness : Witness or None
        Records each published message, and when an adaptive schedule moves on.

    Raises
    ------
    SpecError
        If the cast does not fit the schedule.
    ScheduleError
        If the schedule uses opinions that the run does not measure.

    Notes
    -----
    Use it from one event loop only. Results do not depend on timing; see `docs/architecture.md`.
    """

    def __init__(
        self,
        schedule: AnySchedule,
        cast: Sequence[Member],
        calls: RunCalls,
        *,
        measuring: Measuring | None = None,
        rate: Rate | None = None,
        lookahead: int | None = None,
        witness: Witness | None = None,
    ) -> None:
        check_cast(schedule, cast)
        if rate is None:
            for variable in schedule.needs:
                if measuring is None or all(each.variable != variable for each in measuring.instruments):
                    raise ScheduleError(
                        f"{called(schedule)} acts on {variable!r}, but no instrument of the run measures it"
                    )
        self.schedule = schedule
        self.cast = tuple(cast)
        self.measuring = measuring
        self._lookahead = lookahead
        self._next = 0
        self.engine = Engine(
            schedule,
            [member.actor for member in cast],
            calls,
            rate=rate or self._rate,
            seats=[agent for agent, member in enumerate(cast) if isinstance(member.endpoint, Seat)],
            horizon=None if lookahead is None else lookahead + 1,
            most=_TURNS_PER_SLOT * calls.limit,
            witness=witness,
        )

    async def run(self) -> None:
        """Carry out the whole schedule; raise the error that stops the run."""
        self.engine.start()
        try:
            if self._lookahead is not None:
                await self._move_on(self._lookahead)
            await self.engine.wait()
        except asyncio.CancelledError:
            await self.engine.cancel()
            raise
        except OpinionSimError as error:
            await self.end(error)
            raise
        finally:
            self.engine.let_go()

    async def end(self, error: OpinionSimError) -> None:
        """Start no further turn, and wait for calls in flight, so the journal gets the replies that are paid for."""
        self.engine.stop(error)
        # The first failure, of whatever class, is the one that the caller has in hand.
        with suppress(Exception):
            await self.engine.wait()

    async def _move_on(self, lookahead: int) -> None:
        """Keep dispatch `lookahead` steps ahead of the last complete one."""
        for step in range(self.schedule.steps + 1):
            await self.engine.wait_step(step)
            self.engine.allow(step + 1 + lookahead)

    async def commit(self, step: int) -> list[TurnResult]:
        """Wait until all turns up to `step` are done and those of participants are measured.

        Returns
        -------
        list of TurnResult
            The turns since the last commit, by index. Background turns, which no step waits for, are in the last
            step.
        """
        if self._lookahead is not None:
            self.engine.allow(step + self._lookahead)
        await self.engine.wait_step(step)
        found = [pair for pair in self.engine.graph.transcript(self._next, step) if not self._in_background(pair[0])]
        upto = found[-1][0].index + 1 if found else self._next
        if step >= self.schedule.steps:
            await self.engine.wait()
            behind = [pair for pair in self.engine.graph.transcript() if self._in_background(pair[0])]
            found = sorted([*found, *behind], key=lambda pair: pair[0].index)
        if self.measuring is not None:
            # A moderator's or an analyst's text says nothing of what participants think.
            participants = self.schedule.n_agents
            texts = [self._text(turn, message) for turn, message in found if turn.agent < participants]
            await self.measuring.code_all(texts, self.text, urgent=True)
        self._next = upto
        return [self._result(turn, message) for turn, message in found]

    def results(self) -> list[TurnResult]:
        """All published turns, by index, with their measurements so far."""
        return [self._result(turn, message) for turn, message in self.engine.graph.transcript()]

    def text(self, turn: int) -> Text:
        """The text of a published turn, as instruments see it."""
        return self._text(*self.engine.graph.published(turn))

    def texts(self) -> list[Text]:
        """All texts, by turn, as instruments see them."""
        return [self._text(turn, message) for turn, message in self.engine.graph.transcript()]

    def _text(self, turn: Turn, message: Message) -> Text:
        received = self.engine.graph.received(turn)
        passed_on = [
            ref for ref in turn.reads if isinstance(ref, int) and self.engine.graph.published(ref)[1].passed_on
        ]
        kind = self.schedule.acts[turn.act].kind
        shown = tuple(each.text for each in received)
        return Text(turn, kind, message.text, message.status, tuple(passed_on), shown)

    def _result(self, turn: Turn, message: Message) -> TurnResult:
        estimate = None if self.measuring is None else self.measuring.stance(turn.index)
        return TurnResult(turn, message, self.schedule.acts[turn.act], estimate)

    def _in_background(self, turn: Turn) -> bool:
        return self.schedule.acts[turn.act].background

    async def _rate(self, turn: Turn, message: Message, variable: str, about: int | None) -> float:
        """The opinion a schedule acts on; urgent, since all remaining turns wait for it."""
        if self.measuring is None:
            raise ScheduleError(f"the schedule acts on {variable!r}, but the run measures nothing")
        urgency = float(self.schedule.steps - turn.step + 1)
        return await self.measuring.rating(self._text(turn, message), variable, self.text, urgency, about)
