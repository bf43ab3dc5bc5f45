"""The exactness property: out-of-order, killed and resumed, and replayed runs equal the sequential run."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from opinionsim.engine import Engine
from opinionsim.errors import ModelCallError, StoreError
from opinionsim.llm import CallRecord, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.messages import ChatMessage, Message
from opinionsim.schedules import ActSpec, External, Turn
from opinionsim.testing import run_virtual


def _fussy(text: str) -> str | None:
    """Refuse a quarter of all replies, as a function of their text."""
    return "starts with a low digit" if text[0] in "0123" else None


ACTS = {
    "write": ActSpec("write", "write", "post"),
    "draw": ActSpec("draw", "write", "post", draws=3, selector=lambda texts: texts.index(max(texts))),
    "fussy": ActSpec("fussy", "write", "post", validator=_fussy, attempts=60),
    "probe": ActSpec("probe", "probe", "probe", memory="fork"),
    "once": ActSpec("once", "report", "report", memory="none"),
}


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
        return AIMessage(text)


class Rememberer:
    """Keeps every word it hears or says; reflects after each when told to."""

    def __init__(self, reflects: bool) -> None:
        self.memory: tuple[str, ...] = ()
        self.reflects = reflects

    def fork(self) -> Rememberer:
        twin = Rememberer(self.reflects)
        twin.memory = self.memory
        return twin

    async def act(self, turn, received, ask, publish) -> None:
        spec = ACTS[turn.act]
        memory = self.memory if spec.memory != "none" else ()
        messages = [ChatMessage("user", text) for text in (*memory, *(m.text for m in received), turn.act)]
        parts = ["reply", "reply.2", "reply.3"][: spec.draws]
        replies = [reply.text for reply in await asyncio.gather(*(ask(part, messages) for part in parts))]
        text = replies[spec.selector(replies)] if spec.selector else replies[0]
        publish(Message(text))
        if spec.memory == "keep":
            event = (*self.memory, *(m.text for m in received), text)
            if self.reflects:
                event = ((await ask("reflect", [ChatMessage("user", text) for text in event])).text,)
            self.memory = event


class Listed:
    """A static schedule from a list of turns."""

    def __init__(self, n_agents: int, turns: list[Turn]) -> None:
        self.n_agents = n_agents
        self.steps = turns[-1].step
        self.externals = {"news": Message("something happened")}
        self._turns = turns

    def turns(self):
        return iter(self._turns)


@st.composite
def schedules(draw: st.DrawFn) -> Listed:
    n_agents = draw(st.integers(1, 5))
    turns: list[Turn] = []
    step = draw(st.integers(0, 1))
    for index in range(draw(st.integers(1, 18))):
        step += draw(st.integers(0, 2))
        refs = st.integers(0, index - 1) if index else st.just(External("news"))
        reads = draw(st.lists(st.one_of(refs, st.just(External("news"))), max_size=2, unique=True))
        turns.append(
            Turn(index, step, draw(st.integers(0, n_agents - 1)), draw(st.sampled_from(sorted(ACTS))), tuple(reads))
        )
    return Listed(n_agents, turns)


def _rows(engine: Engine) -> list[tuple]:
    return [(turn.index, turn.agent, turn.act, turn.reads, message.text) for turn, message in engine.transcript()]


async def _sequential(schedule: Listed, reflects: bool) -> list[tuple]:
    """The reference: one turn after another, written without the engine."""
    model = HashModel([0.0])
    journal = MemoryJournal()
    calls = RunCalls("run", journal, model, SlotPool(1))
    actors = [Rememberer(reflects) for _ in range(schedule.n_agents)]
    messages: list[Message] = []
    for turn in schedule.turns():

        async def ask(part, prompt, *, dropped=0, turn=turn):
            return await calls.ask(turn, ACTS[turn.act], 0.0, part, prompt)

        received = [messages[ref] if isinstance(ref, int) else schedule.externals[ref.name] for ref in turn.reads]
        await actors[turn.agent].act(turn, received, ask, messages.append)
    return [(t.index, t.agent, t.act, t.reads, m.text) for t, m in zip(schedule.turns(), messages, strict=True)]


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
    actors = [Rememberer(reflects) for _ in range(schedule.n_agents)]
    return Engine(schedule, actors, calls, acts=ACTS, calls_per_event=int(reflects), horizon=horizon, most=most)


async def _run(engine: Engine, horizon: int | None) -> list[tuple]:
    engine.start()
    if horizon is not None:
        for step in range(engine.schedule.steps + 1):
            await engine.wait_step(step)
            engine.allow(step + 1 + horizon)
    await engine.wait()
    return _rows(engine)


latencies = st.lists(st.floats(0.0, 9.0, allow_nan=False), min_size=1, max_size=7)


@settings(max_examples=150)
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


@settings(max_examples=150)
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
        arrived: list[CallRecord] = journal.records
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


@settings(max_examples=60)
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
        assert error is None or re.search(r"run run, step \d+, agent \d", str(error))
        # Every reply that arrived is in the journal; nothing was imputed for the ones that failed.
        assert all(row in expected for row in _rows(engine))
        kept = {record.seed for record in journal.records}
        assert kept <= set(flaky.asked)
        model = HashModel(latency)
        assert await _run(_engine(schedule, journal, model, slots, reflects, None), None) == expected
        assert not kept & set(model.asked), "a reply that had arrived was paid for again"

    run_virtual(story())


def test_an_entry_for_another_question_stops_the_run_and_names_both() -> None:
    schedule = Listed(1, [Turn(0, 1, 0, "write")])
    journal = MemoryJournal()

    async def story() -> None:
        await _run(_engine(schedule, journal, HashModel([0.0]), 1, False, None), None)
        other = Listed(1, [Turn(0, 1, 0, "draw")])
        with pytest.raises(StoreError, match=r"stored act 'write'.*now asked act 'draw'.*--fresh"):
            await _run(_engine(other, journal, HashModel([0.0]), 1, False, None), None)

    run_virtual(story())
