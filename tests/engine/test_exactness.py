"""The exactness property: out-of-order, killed and resumed, and replayed runs equal the sequential run.

Random casts of participants and others, acts that read, skip, draw, decide and reject, replies that are no answers,
and schedules that pick the next speaker from what was decided.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.engine import Engine
from opinionsim.errors import ModelCallError, Rejected, StoreError
from opinionsim.llm import Entry, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.messages import ChatMessage, Message, Parsing, as_message
from opinionsim.schedules import ActSpec, Event, External, Schedule, Turn, n_members, named, with_events
from opinionsim.testing import run_virtual
from tests.support.examples import examples


def _fussy(call: str, text: str, received: tuple[Message, ...]) -> int:
    """Refuse a quarter of all replies, as a function of their text; the others decide a number."""
    if text[0] in "0123":
        raise Rejected("starts with a low digit")
    return int(text[-1], 16) + len(received)


def _picky(call: str, text: str, received: tuple[Message, ...]) -> int:
    """Refuse two thirds of all replies, so that three in a row often are."""
    if text[0] not in "01234":
        raise Rejected("starts with a high digit")
    return int(text[-1], 16)


def _last_in_order(texts: Sequence[str]) -> int:
    return texts.index(max(texts))


ACTS = named(
    ActSpec("write", "write", "post"),
    ActSpec("review", "review", "report", unread="skip"),
    ActSpec(
        "draw", "write", "post", draws=3, selector=lambda texts: texts.index(max(texts)), parse=_fussy, attempts=60
    ),
    ActSpec("fussy", "write", "post", parse=_fussy, attempts=60),
    ActSpec("pick", "pick", "response", parse=_picky, attempts=3, after="none", memory="none"),
    ActSpec("answer", "review", "report"),
    ActSpec("probe", "probe", "probe", memory="fork", unread="skip"),
    ActSpec("once", "report", "report", memory="none"),
    ActSpec("analyse", "analyse", "response", memory="none", background=True),
)


class HashModel:
    """A chat model that is a function of messages and seed, with latencies of its own for every call."""

    def __init__(self, latencies: Sequence[float], fail: str | None = None) -> None:
        self.latencies = latencies
        self.fail = fail
        self.asked: list[int] = []

    async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
        self.asked.append(seed)
        await asyncio.sleep(self.latencies[len(self.asked) % len(self.latencies)])
        text = hashlib.sha256(repr(([tuple(m) for m in messages], seed)).encode()).hexdigest()[:12]
        if self.fail is not None and text.startswith(self.fail):
            raise PermissionError("the provider is gone")
        if text[1] == "f":
            return AIMessage("")
        return AIMessage("", additional_kwargs={"refusal": f"no, {text}"}) if text[1] in "cde" else AIMessage(text)


class Rememberer:
    """Keeps every word it hears or says; reflects after each when told to."""

    def __init__(self, reflects: bool) -> None:
        self.memory: tuple[str, ...] = ()
        self.calls_per_event = int(reflects)

    def fork(self) -> Rememberer:
        twin = Rememberer(bool(self.calls_per_event))
        twin.memory = self.memory
        return twin

    async def act(self, turn, received, ask, publish) -> None:
        spec = ACTS[turn.act]
        memory = self.memory if spec.memory != "none" else ()
        messages = [ChatMessage("user", text) for text in (*memory, *(m.text for m in received), turn.act)]
        names = ["reply", "reply.2", "reply.3"][: spec.draws]
        replies = await asyncio.gather(*(ask(name, messages) for name in names))
        texts = [reply.text for reply in replies]
        reply = replies[spec.selector(texts) if spec.selector else 0]
        publish(Message(reply.text, agent=turn.agent, status=reply.status, decision=reply.decision))
        if spec.memory == "keep":
            event = (*self.memory, *(m.text for m in received), reply.text)
            if self.calls_per_event:
                heard = [ChatMessage("user", text) for text in event]
                event = ((await ask("reflect", heard, parse=lambda call, text, received: None)).text,)
            self.memory = event


class Follows(NamedTuple):
    """What the agent of a turn depends on: whether it follows a reply or a decision, and of which turn."""

    what: str
    turn: int


class Listed(Schedule):
    """A schedule from a list of turns, each by the agent it names, or by one that an earlier outcome picks."""

    acts = ACTS

    def __init__(self, n_agents: int, others: int, turns: list[Turn], follows: dict[int, Follows]) -> None:
        self.n_agents = n_agents
        self.others = ("moderator", "analyst")[:others]
        self.steps = turns[-1].step
        self.externals = {"news": Message("something happened"), "rumour": "something else happened"}
        self.follows = follows
        self.listed = turns

    def picked(self, turn: Turn, message: Message) -> Turn:
        """The turn with the agent that an outcome picks; without a decision, the one it names."""
        told = self.follows[turn.index].what
        number = message.decision if told == "decision" else len(message.text) + len(message.status)
        return turn if number is None else replace(turn, agent=(turn.agent + number) % n_members(self))


class Static(Listed):
    def turns(self) -> Iterator[Turn]:
        return iter(self.listed)


class Eventful(Static):
    """A static schedule with events."""

    def __init__(self, schedule: Static, happening: list[Event]) -> None:
        self._eventful = with_events(schedule, happening)
        self.n_agents, self.others, self.steps = schedule.n_agents, schedule.others, schedule.steps
        self.externals, self.follows = self._eventful.externals, {}
        self.listed = list(self._eventful.turns())

    def turns(self) -> Iterator[Turn]:
        return self._eventful.turns()


class Adaptive(Listed):
    async def decide(self, outcomes) -> AsyncIterator[Turn]:
        for turn in self.listed:
            if turn.index not in self.follows:
                yield turn
                continue
            what, earlier = self.follows[turn.index]
            message = await outcomes.reply(earlier)
            if what == "decision":
                assert await outcomes.decision(earlier) == message.decision
            yield self.picked(turn, message)


@st.composite
def happening(draw: st.DrawFn, n_agents: int, last: int) -> list[Event]:
    """Events among these agents and steps."""
    agents = st.lists(st.integers(0, n_agents - 1), min_size=1, unique=True).map(tuple)
    kinds = draw(st.lists(st.sampled_from(["message", "zealot", "media", "leave", "join"]), min_size=1, max_size=4))
    return [
        Event(kind, draw(st.integers(1, last)), draw(agents), ("so", "no"), None, draw(st.floats(0, 1)))
        for kind in kinds
    ]


@st.composite
def schedules(draw: st.DrawFn) -> Listed:
    n_agents, others = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    turns: list[Turn] = []
    follows: dict[int, Follows] = {}
    step = draw(st.integers(0, 1))
    externals = st.sampled_from([External("news"), External("rumour")])
    for index in range(draw(st.integers(1, 18))):
        step += draw(st.integers(0, 2))
        refs = st.integers(0, index - 1) if index else externals
        reads = draw(st.lists(st.one_of(refs, externals), max_size=2, unique=True))
        agent, act = draw(st.integers(0, n_agents + others - 1)), draw(st.sampled_from(sorted(ACTS)))
        turns.append(Turn(index, step, agent, act, tuple(reads)))
        if index and draw(st.booleans()):
            follows[index] = Follows(draw(st.sampled_from(["reply", "decision"])), draw(st.integers(0, index - 1)))
    if draw(st.booleans()):
        static = Static(n_agents, others, turns, {})
        last = max(step, 1)
        static.steps = last
        return Eventful(static, draw(happening(n_agents, last))) if draw(st.booleans()) else static
    return Adaptive(n_agents, others, turns, follows)


def _row(turn: Turn, message: Message) -> tuple:
    return turn.index, turn.agent, turn.act, turn.reads, message.text, message.status, message.decision


def _rows(engine: Engine) -> list[tuple]:
    return [_row(turn, message) for turn, message in engine.graph.transcript()]


async def _sequential(schedule: Listed, reflects: bool) -> list[tuple]:
    """The reference: one turn after another, written without the engine."""
    calls = RunCalls("run", MemoryJournal(), HashModel([0.0]), SlotPool(1))
    actors = [Rememberer(reflects) for _ in range(n_members(schedule))]
    turns: list[Turn] = []
    messages: list[Message] = []
    for given_turn in schedule.listed:
        turn = given_turn
        if turn.index in schedule.follows:
            turn = schedule.picked(turn, messages[schedule.follows[turn.index].turn])
        spec = ACTS[turn.act]
        read = [
            messages[ref] if isinstance(ref, int) else as_message(schedule.externals[ref.name]) for ref in turn.reads
        ]
        received = [message for message in read if message.status in ("answered", "truncated")]
        turns.append(turn)
        if read and not received and spec.unread == "skip":
            messages.append(Message("", status="skipped"))
            continue

        async def ask(call, prompt, *, parse=None, dropped=0, turn=turn, spec=spec, received=received):
            reading = Parsing(parse or spec.parse, tuple(received), spec.attempts, spec.after)
            return await calls.ask(turn, call, prompt, reading=reading)

        await actors[turn.agent].act(turn, received, ask, messages.append)
    return [_row(turn, message) for turn, message in zip(turns, messages, strict=True)]


def _engine(
    schedule: Listed,
    journal: MemoryJournal,
    model: object,
    slots: int,
    reflects: bool,
    horizon: int | None,
    most: int | None = None,
):
    calls = RunCalls("run", journal, model, SlotPool(slots))
    actors = [Rememberer(reflects) for _ in range(n_members(schedule))]
    return Engine(schedule, actors, calls, horizon=horizon, most=most)


async def _run(engine: Engine, horizon: int | None) -> list[tuple]:
    engine.start()
    if horizon is not None:
        for step in range(engine.schedule.steps + 1):
            await engine.wait_step(step)
            engine.allow(step + 1 + horizon)
    await engine.wait()
    return _rows(engine)


latencies = st.lists(st.floats(0.0, 9.0, allow_nan=False), min_size=1, max_size=7)


@examples(150)
@given(
    schedules(),
    latencies,
    st.integers(1, 6),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_any_order_of_execution_equals_the_sequential_run(schedule, latency, slots, reflects, lookahead, most) -> None:
    async def both() -> tuple[list[tuple], list[tuple]]:
        horizon = None if lookahead is None else lookahead + 1
        engine = _engine(schedule, MemoryJournal(), HashModel(latency), slots, reflects, horizon, most)
        return await _sequential(schedule, reflects), await _run(engine, lookahead)

    expected, found = run_virtual(both())
    assert found == expected


@examples(150)
@given(schedules(), latencies, st.integers(1, 6), st.booleans(), st.floats(0.0, 60.0), st.data())
def test_killed_and_resumed_and_replayed_runs_equal_the_sequential_run(
    schedule, latency, slots, reflects, kill_at, data
) -> None:
    async def story() -> None:
        expected = await _sequential(schedule, reflects)
        journal = MemoryJournal()
        first_model = HashModel(latency)
        killed = _engine(schedule, journal, first_model, slots, reflects, None)
        killed.start()
        await asyncio.sleep(kill_at)
        await killed.cancel()
        # What is durable after a kill is any prefix of the order of arrival.
        arrived: list[Entry] = journal.records
        survived = MemoryJournal(arrived[: data.draw(st.integers(0, len(arrived)))])
        kept = {record.seed for record in survived.records}
        model = HashModel(latency[::-1])
        resumed = _engine(schedule, survived, model, slots, reflects, None)
        assert await _run(resumed, None) == expected
        assert not kept & set(model.asked), "a call the store held was paid for again"
        assert len(model.asked) == len(set(model.asked))
        replayed = _engine(schedule, survived, ReplayOnly(), 1, reflects, None)
        assert await _run(replayed, None) == expected

    run_virtual(story())


@examples(60)
@given(schedules(), latencies, st.integers(1, 4), st.booleans(), st.sampled_from("0123456789abcdef"))
def test_a_failed_call_stops_the_run_keeps_what_arrived_and_is_made_good_by_a_resume(
    schedule, latency, slots, reflects, fail
) -> None:
    async def story() -> None:
        expected = await _sequential(schedule, reflects)
        journal = MemoryJournal()
        flaky = HashModel(latency, fail=fail)
        engine = _engine(schedule, journal, flaky, slots, reflects, None)
        error: ModelCallError | None = None
        try:
            assert await _run(engine, None) == expected
        except ModelCallError as failure:
            error = failure
        assert error is None or re.search(r"run run, step \d+, turn \d+, agent \d", str(error))
        # Every reply that arrived is in the journal; nothing was imputed for the ones that failed.
        assert all(row in expected for row in _rows(engine))
        kept = {record.seed for record in journal.records}
        assert kept <= set(flaky.asked)
        model = HashModel(latency)
        assert await _run(_engine(schedule, journal, model, slots, reflects, None), None) == expected
        assert not kept & set(model.asked), "a reply that had arrived was paid for again"

    run_virtual(story())


def test_an_entry_for_another_question_stops_the_run_and_names_both() -> None:
    schedule = Static(1, 0, [Turn(0, 1, 0, "write")], {})
    journal = MemoryJournal()

    async def story() -> None:
        await _run(_engine(schedule, journal, HashModel([0.0]), 1, False, None), None)
        other = Static(1, 0, [Turn(0, 1, 0, "draw")], {})
        with pytest.raises(StoreError, match=r"stored act 'write'.*now asked act 'draw'.*--fresh"):
            await _run(_engine(other, journal, HashModel([0.0]), 1, False, None), None)

    run_virtual(story())
