"""An engine with everything it needs: schedules from lists, clerks for actors, a model that notes what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage

from opinionsim.engine import Engine
from opinionsim.llm import Endpoint, MemoryJournal, RetryPolicy, RunCalls, Seat, SlotPool
from opinionsim.messages import ChatMessage, Message
from opinionsim.schedules import PROBE, REPORT_ONCE, REVIEW, WRITE, ActSpec, Schedule, Turn, n_members, named
from tests.support.desk import AT_ONCE

#: What anybody may read: schedules of tests read at random.
ACTS = named(
    *(replace(act, audience="readers") for act in (WRITE, REVIEW, REPORT_ONCE, PROBE)),
    ActSpec("draw", "write", "post", draws=3),
)


class Listed(Schedule):
    """A static schedule from a list of turns."""

    acts = ACTS

    def __init__(
        self, n_agents: int, *turns: Turn, steps: int | None = None, acts: Mapping[str, ActSpec] = ACTS, **declared: Any
    ) -> None:
        self.n_agents = n_agents
        self.steps = steps if steps is not None else max((turn.step for turn in turns), default=0)
        self.acts = acts
        self.externals = {"news": Message("something happened")}
        self._turns = turns
        self.__dict__.update(declared)

    def turns(self) -> Iterator[Turn]:
        return iter(self._turns)


def chain(steps: int) -> Listed:
    """Two agents, each one turn a step, that read nobody."""
    return Listed(2, *(Turn(i, i // 2 + 1, i % 2, "write") for i in range(2 * steps)))


class Decided(Schedule):
    """An adaptive schedule from a generator function."""

    def __init__(
        self,
        n_agents: int,
        steps: int,
        decide: Callable[..., AsyncIterator[Turn]],
        *,
        acts: Mapping[str, ActSpec] = ACTS,
        needs: Sequence[str] = ("stance",),
        others: Sequence[str] = (),
    ) -> None:
        self.n_agents, self.steps, self.decide = n_agents, steps, decide
        self.acts, self.needs, self.others = acts, needs, others


class Client:
    """A model that answers every prompt after its own latency, and notes when each was asked.

    To a prompt that ends with N it says ``re N``, or what `says` holds for N; ``refused`` and ``empty`` are no answers.
    """

    def __init__(self, latency: Callable[[str], float] | float = 1.0, says: Mapping[str, str] | None = None) -> None:
        self.latency = latency if callable(latency) else lambda prompt: latency
        self.says = says or {}
        self.asked: list[tuple[float, str]] = []
        self.shown: dict[str, list[str]] = {}
        self.in_flight = 0
        self.peak = 0

    async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
        *shown, last = [message.content for message in messages]
        # A question that is asked again says behind it what was wrong.
        prompt = last.partition("\n\n")[0]
        self.asked.append((asyncio.get_running_loop().time(), prompt))
        self.shown[prompt] = shown
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.latency(prompt))
        finally:
            self.in_flight -= 1
        said = self.says.get(prompt, f"re {prompt}")
        if said == "refused":
            return AIMessage("", additional_kwargs={"refusal": "I will not."})
        return AIMessage("" if said == "empty" else said)

    @property
    def order(self) -> list[str]:
        return [prompt for _, prompt in self.asked]


class Clerk:
    """Asks its draws side by side, publishes the first, and makes further calls to remember."""

    def __init__(self, calls_per_event: int = 0, heard: tuple[str, ...] = ()) -> None:
        self.calls_per_event = calls_per_event
        self.heard = heard

    def fork(self) -> Clerk:
        return Clerk(self.calls_per_event, self.heard)

    async def act(self, turn, received, ask, publish) -> None:
        calls = ["reply", "reply.2", "reply.3"][: 3 if turn.act == "draw" else 1]
        prompt = [ChatMessage("user", text) for text in (*self.heard, *(m.text for m in received), f"{turn.index}")]
        # An error in one draw must not leave the others behind.
        replies = await asyncio.gather(*(ask(call, prompt) for call in calls), return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        text, status, decision, *_ = replies[0]
        publish(Message(text, agent=turn.agent, status=status, act=turn.act, decision=decision))
        if turn.act in ("write", "draw", "review"):
            for event in range(self.calls_per_event):
                await ask(f"reflect.{event}", [ChatMessage("user", f"{turn.index} reflect")])
            self.heard = (*self.heard, text)


class Run:
    """An engine with everything it needs, from a schedule and a client."""

    def __init__(
        self,
        schedule: Schedule,
        client: Client | None = None,
        slots: SlotPool | int = 10_000,
        *,
        actors: Sequence[object] | None = None,
        calls_per_event: int = 0,
        timeout_s: float = 1e6,
        journal: MemoryJournal | None = None,
        seats: Mapping[int, Seat] | None = None,
        **options: Any,
    ) -> None:
        self.client = client or Client()
        self.journal = journal if journal is not None else MemoryJournal()
        self.slots = slots if isinstance(slots, SlotPool) else SlotPool(slots)
        members = range(n_members(schedule))
        answering = [(seats or {}).get(agent, Endpoint(self.client, replies=AT_ONCE)) for agent in members]
        never = RetryPolicy(transient=0, rate_limited=0)
        self.calls = RunCalls("run", self.journal, answering, self.slots, timeout_s=timeout_s, retry=never)
        actors = actors or [Clerk(calls_per_event) for _ in members]
        self.engine = Engine(schedule, actors, self.calls, **{"seats": tuple(seats or ()), **options})

    @property
    def published(self) -> list[int]:
        return [turn.index for turn, _ in self.engine.graph.transcript()]

    @property
    def told(self) -> list[str]:
        """What every turn said, or what it was instead, by index."""
        told = ((turn.index, message) for turn, message in self.engine.graph.transcript())
        return [message.text if message.status == "answered" else message.status for _, message in told]

    async def whole(self) -> float:
        """Carry everything out; the virtual time it took."""
        self.engine.start()
        await self.engine.wait()
        return asyncio.get_running_loop().time()

    def assert_at_rest(self) -> None:
        """No task but the test's own is left, and no slot is held."""
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert self.slots.in_flight == 0
