"""The contract of a schedule, as tests to inherit from."""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from opinionsim import schedules
from opinionsim.engine import Engine, Publish, relayed
from opinionsim.errors import Rejected
from opinionsim.llm import REPLY
from opinionsim.messages import Ask, ChatMessage, Message, Parse, Parsing, Reply, Speech, as_message
from opinionsim.testing._clock import run_virtual

#: Opinions that invented texts express; NaN for a text without an answer.
_OPINIONS = (-2.0, -1.0, 0.0, 1.0, 2.0, float("nan"))


#: Returns the reply of a turn from the messages that it received and an invented text.
Says = Callable[[schedules.Turn, Sequence[Message], str], str]


def _hashed(*words: object) -> bytes:
    return hashlib.sha256(repr(words).encode("utf-8", "surrogatepass")).digest()


def _opinion(text: str) -> float:
    """The opinion an invented text is said to express."""
    return _OPINIONS[_hashed("opinion", text)[0] % len(_OPINIONS)]


async def _rate(turn: schedules.Turn, message: Message, instrument: str, about: int | None) -> float:
    return _opinion(message.text)


class _Talker:
    """An actor whose texts depend on all it has read and written, so that a turn out of place shows."""

    def __init__(self, acts: Mapping[str, schedules.ActSpec], memory: tuple[str, ...] = ()) -> None:
        self._acts = acts
        self._memory = memory

    async def act(self, turn: schedules.Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Ask once, publish, and keep what was read and written where the act keeps memory."""
        keeps = self._acts[turn.act].memory
        heard = [message.text for message in received]
        known = [] if keeps == "none" else self._memory
        reply = await ask(REPLY, [ChatMessage("user", text) for text in (*known, *heard, turn.act)])
        text, status, decision, *_ = reply
        publish(Message(text, "", turn.agent, status, act=turn.act, decision=decision, turn=turn.index))
        if keeps == "keep":
            self._memory = (*self._memory, *heard, reply.text)

    def fork(self) -> _Talker:
        """A twin with the memory as it is."""
        return _Talker(self._acts, self._memory)


class _Answers:
    """Answers with what `says` makes of a hash of the prompt, after a wait given by `latency`."""

    def __init__(self, latency: Callable[[int], float], says: Says) -> None:
        self._latency = latency
        self._says = says

    async def ask(
        self,
        turn: schedules.Turn,
        call: str,
        messages: Iterable[ChatMessage],
        *,
        reading: Parsing,
        priority: float = 0.0,
        dropped: int = 0,
    ) -> Reply:
        """Answer one call of a turn; a text that its act rejects is an answer without a decision."""
        invented = _hashed(turn.index, call, [tuple(message) for message in messages]).hex()[:12]
        text = self._says(turn, reading.received if reading.parse else (), invented)
        await asyncio.sleep(self._latency(turn.index))
        try:
            return Reply(text, decision=reading.parse and reading.parse(call, text, reading.received)).as_said()
        except Rejected:
            return Reply(text)

    def stop(self) -> None:
        """Nothing waits here."""


class _OneByOne:
    """Carries a schedule out one turn after another, without the engine: the reference."""

    def __init__(self, schedule: schedules.AnySchedule, says: Says) -> None:
        self.turns: list[schedules.Turn] = []
        self.messages: list[Message] = []
        self._schedule = schedule
        self._actors = [_Talker(schedule.acts) for _ in range(schedules.n_members(schedule))]
        self._answers = _Answers(lambda turn: 0.0, says)

    @property
    def texts(self) -> list[str]:
        """The text of each turn."""
        return [message.text for message in self.messages]

    async def reply(self, turn: int) -> Message:
        """Message of a turn already yielded."""
        assert 0 <= turn < len(self.messages), f"waits for turn {turn}, which it has not yielded"
        return self.messages[turn]

    async def decision(self, turn: int) -> Any:
        """Decision of a turn already yielded."""
        return (await self.reply(turn)).decision

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        """Invented opinion of a turn already yielded."""
        assert instrument in self._schedule.needs, f"acts on {instrument!r}, which is not among its needs"
        return _opinion((await self.reply(turn)).text)

    async def _each(self) -> AsyncIterator[schedules.Turn]:
        if isinstance(self._schedule, schedules.AdaptiveSchedule):
            async for turn in self._schedule.decide(self):
                yield turn
        else:
            for turn in self._schedule.turns():
                yield turn

    async def run(self) -> None:
        """Carry out every turn."""
        async for turn in self._each():
            read = [
                as_message(self._schedule.externals[ref.name])
                if isinstance(ref, schedules.External)
                else self.messages[ref]
                for ref in turn.reads
            ]
            received = [message for message in read if message.passed_on]
            spec = self._schedule.acts[turn.act]
            self.turns.append(turn)
            if read and not received and spec.unread == "skip":
                self.messages.append(Message("", agent=turn.agent, status="skipped", act=turn.act))
                continue
            if not spec.draws:
                self.messages.append(relayed(turn, received, "")._replace(turn=turn.index))
                continue
            reading = Parsing(spec.parse, tuple(received), spec.attempts, spec.after, spec.formal, spec.closed)

            async def ask(
                call: str,
                messages: Iterable[ChatMessage],
                *,
                parse: Parse | None = None,
                dropped: int = 0,
                speech: Speech | None = None,
                turn: schedules.Turn = turn,
                reading: Parsing = reading,
            ) -> Reply:
                return await self._answers.ask(turn, call, messages, reading=reading)

            await self._actors[turn.agent].act(turn, received, ask, self.messages.append)


class ScheduleContract(ABC):
    """Tests that every schedule must pass. Inherit from it and build a schedule in :meth:`schedule`.

    Adaptive schedules receive opinions that are computed from the texts, some of them NaN, and decisions that their
    acts read from meaningless texts. If a schedule needs other texts, override :meth:`says`.
    """

    @abstractmethod
    def schedule(self) -> schedules.AnySchedule:
        """Build the schedule under test; each call returns the same schedule, from the same seed."""

    def says(self, turn: schedules.Turn, received: Sequence[Message], invented: str) -> str:
        """Reply of a turn; by default, twelve characters without meaning.

        `received` contains the texts that the turn received if its act has a `parse`; otherwise, it is empty.
        """
        return invented

    def _turns(self, schedule: schedules.AnySchedule) -> list[schedules.Turn]:
        """All turns, each carried out before the next is asked for."""
        reference = _OneByOne(schedule, self.says)
        run_virtual(reference.run())
        return reference.turns

    def test_it_declares_what_others_read_there(self) -> None:
        """It is static or adaptive, and its sizes, external messages, roles, acts and needs have the required form."""
        schedule = schedules.check_schedule(self.schedule())
        assert isinstance(schedule, schedules.StaticSchedule) != isinstance(schedule, schedules.AdaptiveSchedule)
        assert isinstance(schedule.n_agents, int)
        assert schedule.n_agents >= 1
        assert isinstance(schedule.steps, int)
        assert schedule.steps >= 0
        for name, message in schedule.externals.items():
            assert isinstance(name, str)
            assert isinstance(message, Message | str)
        assert all(isinstance(role, str) and role for role in schedule.others)
        assert all(isinstance(variable, str) and variable for variable in schedule.needs)
        assert schedule.acts

    def test_every_turn_can_be_carried_out(self) -> None:
        """Indices count from zero, steps do not go back, and agents, acts and the messages to read exist.

        Agents and references are plain integers: participants first, then the others. A turn reads earlier turns or
        external messages of the schedule. Every act is declared under its name.
        """
        schedule = self.schedule()
        turns = self._turns(schedule)
        assert [turn.index for turn in turns] == list(range(len(turns)))
        assert all(a.step <= b.step for a, b in pairwise(turns))
        for turn in turns:
            assert 0 <= turn.step <= schedule.steps
            assert type(turn.agent) is int
            assert 0 <= turn.agent < schedules.n_members(schedule)
            assert schedule.acts[turn.act].name == turn.act
            for ref in turn.reads:
                if isinstance(ref, schedules.External):
                    assert ref.name in schedule.externals
                else:
                    assert type(ref) is int
                    assert 0 <= ref < turn.index

    def test_the_same_turns_at_every_call(self) -> None:
        """Asking for turns twice, or again halfway, changes nothing; a schedule that is built again is the same."""
        schedule = self.schedule()
        turns = self._turns(schedule)
        if isinstance(schedule, schedules.StaticSchedule):
            begun = schedule.turns()
            assert next(begun, None) == next(iter(turns), None)
        assert self._turns(schedule) == turns
        assert self._turns(self.schedule()) == turns

    def test_out_of_order_equals_one_by_one(self) -> None:
        """The engine gives the same turns and messages whatever the latencies."""
        reference = _OneByOne(self.schedule(), self.says)
        run_virtual(reference.run())
        expected = list(zip(reference.turns, reference.texts, strict=True))
        for latency in (lambda turn: 1.0, lambda turn: 1.0 + _hashed(turn)[0] / 16):
            assert run_virtual(self._run(latency)) == expected

    async def _run(self, latency: Callable[[int], float]) -> list[tuple[schedules.Turn, str]]:
        schedule = self.schedule()
        actors = [_Talker(schedule.acts) for _ in range(schedules.n_members(schedule))]
        engine = Engine(schedule, actors, _Answers(latency, self.says), rate=_rate)
        engine.start()
        await engine.wait()
        return [(turn, message.text) for turn, message in engine.graph.transcript()]
