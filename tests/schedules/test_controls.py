"""Schedules without interaction, messages from outside, and probes."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.classifiers import load_classifier
from opinionsim.engine import Casting, Member, Simulation
from opinionsim.errors import SpecError
from opinionsim.llm import Endpoint, MemoryJournal, RunCalls, SlotPool
from opinionsim.measurement import Instrument, Measuring, Queues
from opinionsim.messages import ChatMessage, Message
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona, Population
from opinionsim.prompts import Conditions, load_pack
from opinionsim.registry import NamedPart
from opinionsim.schedules import (
    PROBE,
    REPORT,
    REVIEW,
    SELF_REPORT,
    WRITE,
    AdaptiveSchedule,
    AnySchedule,
    BoundedConfidenceDyads,
    Broadcast,
    Dyads,
    Exposure,
    External,
    IndependentReports,
    Interaction,
    Outcomes,
    Placebo,
    RememberedReports,
    Schedule,
    Setting,
    SimilarityDyads,
    StaticSchedule,
    Turn,
    named,
    with_probes,
)
from opinionsim.testing import run_virtual
from opinionsim.topics import Claim

NEWS = ("it rained", "it snowed", "it hailed")
OPINIONS = (-2, -1, 1, 2)


def _static(interaction: Interaction, network: nx.Graph | int, seed: int = 1) -> StaticSchedule:
    schedule = interaction.schedule(Setting.of(network, seed))
    assert isinstance(schedule, StaticSchedule)
    return schedule


def _dyads(n: int, steps: int, seed: int = 1) -> StaticSchedule:
    return _static(Dyads(steps=steps), n, seed)


def _independent(n: int, reports: int) -> StaticSchedule:
    return _static(IndependentReports(reports=reports), n)


def _remembered(n: int, steps: int, seed: int = 1) -> StaticSchedule:
    return _static(RememberedReports(steps=steps), n, seed)


def _exposed(n: int, steps: int, order: Any = "random", seed: int = 1) -> StaticSchedule:
    return _static(Exposure(steps=steps, messages=NEWS, order=order), n, seed)


@given(st.integers(1, 6), st.integers(0, 6))
def test_independent_reports_ask_everybody_once_a_step_without_memory(n: int, reports: int) -> None:
    turns = list(_independent(n, reports).turns())
    assert len(turns) == n * reports
    assert {turn.act for turn in turns} <= {"report-once"}
    assert all(turn.reads == () for turn in turns)
    assert [(turn.step, turn.agent) for turn in turns] == [(s, a) for s in range(1, reports + 1) for a in range(n)]


def test_remembered_reports_ask_one_agent_a_step_drawn_uniformly() -> None:
    schedule = _remembered(4, 8_000)
    turns = list(schedule.turns())
    assert [turn.step for turn in turns] == list(range(1, 8_001))
    assert {(turn.act, turn.reads) for turn in turns} == {("report", ())}
    counts = Counter(turn.agent for turn in turns)
    # Chi-square, 3 degrees of freedom: 99.9 % quantile 16.3.
    assert sum((counts[agent] - 2_000) ** 2 / 2_000 for agent in range(4)) < 16.3


@given(st.integers(2, 12), st.integers(0, 60), st.integers(0, 2**32))
def test_controls_ask_in_each_step_whoever_listens_in_the_random_dyads_of_the_block(n: int, t: int, seed: int) -> None:
    listeners = [turn.agent for turn in _dyads(n, t, seed).turns() if turn.act == "review"]
    assert [turn.agent for turn in _remembered(n, t, seed).turns()] == listeners
    for order in ("random", "sequence"):
        assert [turn.agent for turn in _exposed(n, t, order, seed).turns()] == listeners


def test_a_single_agent_reports_in_every_step() -> None:
    assert [turn.agent for turn in _remembered(1, 3).turns()] == [0, 0, 0]
    assert [turn.agent for turn in _exposed(1, 2, "sequence").turns()] == [0, 0]


def test_exposure_in_sequence_starts_over_at_the_end() -> None:
    turns = list(_exposed(3, 7, "sequence").turns())
    assert [turn.reads for turn in turns] == [(External(f"external-{i % 3}"),) for i in range(7)]
    assert {turn.act for turn in turns} == {"review"}
    assert [turn.step for turn in turns] == list(range(1, 8))


def test_all_agents_may_read_the_message_of_a_step() -> None:
    exposure = Exposure(messages=NEWS, steps=4, order="sequence", readers="all")
    turns = list(_static(exposure, 3).turns())
    assert [turn.index for turn in turns] == list(range(12))
    assert [(turn.step, turn.agent) for turn in turns] == [(step, agent) for step in range(1, 5) for agent in range(3)]
    assert [turn.reads for turn in turns[::3]] == [(External(f"external-{i % 3}"),) for i in range(4)]
    assert [problem for _, problem in exposure.conflicts(3_000_000)] == [
        "makes 12000000 turns for population.size = 3000000; at most 10000000 are possible"
    ]


def test_exposure_at_random_is_uniform_over_agents_and_messages() -> None:
    schedule = _exposed(4, 12_000)
    assert dict(schedule.externals) == {f"external-{i}": message for i, message in enumerate(NEWS)}
    counts = Counter((turn.agent, turn.reads[0]) for turn in schedule.turns())
    # Chi-square over 12 cells, 11 degrees of freedom: 99.9 % quantile 31.3.
    assert len(counts) == 12
    assert sum((count - 1_000) ** 2 / 1_000 for count in counts.values()) < 31.3


@pytest.mark.parametrize("messages", [None, NEWS])
def test_nobody_is_shown_an_off_topic_post_again_before_all_of_them(messages: tuple[str, ...] | None) -> None:
    schedule = _static(Placebo(steps=400, messages=messages), 4)
    posts = list(schedule.externals)
    read = {
        agent: [turn.reads[0] for turn in schedule.turns() if (turn.agent, turn.act) == (agent, "review")]
        for agent in range(4)
    }
    for shown in read.values():
        rounds = [shown[start : start + len(posts)] for start in range(0, len(shown), len(posts))]
        assert len(rounds) > 2
        assert all(len(set(each)) == len(each) for each in rounds)
        assert rounds[0] != rounds[1]
    pairs = [(turn.step, turn.agent, turn.act) for turn in _dyads(4, 400).turns()]
    assert [(turn.step, turn.agent, turn.act) for turn in schedule.turns()] == pairs


def test_who_is_exposed_does_not_depend_on_the_order_of_messages() -> None:
    orders = [[turn.agent for turn in _exposed(5, 40, order).turns()] for order in ("random", "sequence")]
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: _independent(0, 3), "got 0"),
        (lambda: _static(Exposure(steps=3, messages=()), 3), "messages: must have at least 1 entry"),
        (lambda: _static(Exposure(steps=3, messages="news.txt"), 3), "'news.txt' is a file, but nothing"),
        (lambda: with_probes(_independent(3, 3), -1, 0), "at least 0; got -1 and 0"),
        (lambda: with_probes(_independent(3, 3), 0, -2), "at least 0; got 0 and -2"),
    ],
)
def test_impossible_controls(build: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build()


def _similar() -> AnySchedule:
    return SimilarityDyads(steps=8).schedule(Setting.of(4, 3, opinions=OPINIONS))


def _bounded() -> AnySchedule:
    return BoundedConfidenceDyads(steps=12, confidence=1.0).schedule(Setting.of(4, 3, opinions=OPINIONS))


class _Chaired(Schedule):
    """Who is asked next, and whether at all, is decided by what was said, and by two instruments."""

    n_agents, steps, acts = 4, 6, named(WRITE, REPORT)
    others, needs, externals = ("chair",), ("stance", "tone"), {"news": "it rained"}

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        yield Turn(0, 1, 4, "write", (External("news"),))
        for index in range(1, self.steps):
            heard, chosen = await outcomes.reply(index - 1), await outcomes.decision(index - 1)
            mood = await outcomes.opinion(index - 1, "tone") - await outcomes.opinion(index - 1)
            told = int(heard.text.split()[1])
            yield Turn(index, index + 1, chosen % 3, "write" if told % 3 == 1 or mood < 10 else "report", (index - 1,))


BUILDERS: dict[str, Callable[[], AnySchedule]] = {
    "dyads": lambda: _dyads(4, 8),
    "no dyads": lambda: _dyads(4, 0),
    "broadcast": lambda: _static(Broadcast(steps=5), nx.path_graph(4)),
    "reports": lambda: _remembered(4, 9),
    "exposure": lambda: _exposed(4, 9),
    "similarity": _similar,
    "bounded": _bounded,
    "chaired": _Chaired,
}


class _Outcomes:
    async def reply(self, turn: int) -> Message:
        return Message(f"text {turn}")

    async def decision(self, turn: int) -> int:
        return turn

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        return (turn % 5) - 2.0 + 10 * (instrument == "tone")


class _Later:
    """Outcomes of a schedule moved `by` places, seen from outside."""

    def __init__(self, by: int) -> None:
        self.by = by

    async def reply(self, turn: int) -> Message:
        return Message(f"text {turn - self.by}")

    async def decision(self, turn: int) -> int:
        return turn - self.by

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        assert turn >= self.by
        return ((turn - self.by) % 5) - 2.0 + 10 * (instrument == "tone")


def _turns(schedule: AnySchedule, outcomes: object = None) -> list[Turn]:
    if isinstance(schedule, StaticSchedule):
        return list(schedule.turns())

    async def pull() -> list[Turn]:
        return [turn async for turn in schedule.decide(outcomes or _Outcomes())]

    return asyncio.run(pull())


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 1), (2, 3)])
def test_probes_stand_at_both_ends_and_the_turns_between_are_what_they_were(name: str, before: int, after: int) -> None:
    bare, probed = BUILDERS[name](), with_probes(BUILDERS[name](), before, after)
    by = 4 * before
    inner, outer = _turns(bare), _turns(probed, _Later(by))
    first, between, last = outer[:by], outer[by : by + len(inner)], outer[by + len(inner) :]
    assert [(turn.index, turn.step, turn.agent, turn.act, turn.reads) for turn in first] == [
        (i, 0, i % 4, "probe", ()) for i in range(by)
    ]
    assert [(turn.step, turn.agent, turn.act, turn.reads) for turn in last] == [
        (bare.steps, i % 4, "probe", ()) for i in range(4 * after)
    ]
    assert [turn.index for turn in outer] == list(range(len(outer)))
    assert len(between) == len(inner)
    for old, new in zip(inner, between, strict=True):
        assert (new.step, new.agent, new.act) == (old.step, old.agent, old.act)
        assert new.reads == tuple(ref + by if isinstance(ref, int) else ref for ref in old.reads)
    for declared in ("n_agents", "steps", "others", "externals", "needs"):
        assert getattr(probed, declared) == getattr(bare, declared)
    assert {**probed.acts} == {**bare.acts, "probe": PROBE}
    assert isinstance(probed, AdaptiveSchedule) == isinstance(bare, AdaptiveSchedule)


def test_probes_of_both_kinds_are_told_apart() -> None:
    probed = with_probes(with_probes(_dyads(4, 3), 1), 1, act="self-report")
    assert [turn.act for turn in _turns(probed)[:8]] == ["self-report"] * 4 + ["probe"] * 4
    assert {**probed.acts} == {each.name: each for each in (WRITE, REVIEW, PROBE, SELF_REPORT)}


def test_probes_ask_participants_and_nobody_else() -> None:
    assert {turn.agent for turn in _turns(with_probes(_Chaired(), 1, 1)) if turn.act == "probe"} == {0, 1, 2, 3}


def test_without_probes_a_schedule_is_itself() -> None:
    schedule = _dyads(4, 8)
    assert with_probes(schedule) is schedule


def test_probes_may_be_put_around_probes() -> None:
    twice = with_probes(with_probes(_dyads(4, 3), 1, 1), 1, 1)
    once = with_probes(_dyads(4, 3), 2, 2)
    assert _turns(twice) == _turns(once)


class _Literal:
    """A model whose reply is a function of the prompt alone, and takes its time."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
        self.calls += 1
        key = hashlib.sha256(repr([tuple(message) for message in messages]).encode()).digest()
        await asyncio.sleep(key[0] / 64)
        stance = ("I strongly believe", "I doubt", "I am unsure about", "I reject")[key[1] % 4]
        return AIMessage(f"{stance} Theory XYZ. My number is {key.hex()[:8]}.")


def _simulated(schedule: AnySchedule, memory: str) -> list[tuple[Turn, str]]:
    personas = tuple(Persona(f"P{i}", None, {"age": str(20 + i)}) for i in range(4))

    async def story() -> list[tuple[Turn, str]]:
        scale, claim = OpinionScale(), Claim("tea is best", "tea", "truth")
        population = Population(personas, (-2, -1, 1, 2))
        told = {"memory": NamedPart(name=memory), "conditions": Conditions(masked=False)}
        about = {"population": population, "claim": claim, "scale": scale}
        actors = Casting(schedule=schedule, pack=load_pack(), **about, **told).actors()
        calls = RunCalls("run", MemoryJournal(), [Endpoint(_Literal())] * 4, SlotPool(3))
        lexicon = Instrument.of(load_classifier("lexicon", scale), ["report"])
        measuring = Measuring([lexicon], Queues(), calls, claim)
        simulation = Simulation(schedule, [Member(actor) for actor in actors], calls, measuring=measuring)
        await simulation.run()
        return [(result.turn, result.message.text) for result in simulation.results()]

    return run_virtual(story())


@pytest.mark.parametrize("memory", ["cumulative", "reflective", "reflective-as-run"])
@pytest.mark.parametrize("name", ["dyads", "broadcast", "reports", "exposure", "similarity", "bounded"])
def test_probes_change_no_other_message_of_a_simulation(name: str, memory: str) -> None:
    bare = _simulated(BUILDERS[name](), memory)
    probed = _simulated(with_probes(BUILDERS[name](), 2, 1), memory)
    others = [(turn, text) for turn, text in probed if turn.act != "probe"]
    assert len(probed) == len(bare) + 12
    assert [(t.step, t.agent, t.act, text) for t, text in others] == [(t.step, t.agent, t.act, s) for t, s in bare]
    # A probe hears the whole past: before the first step that is nothing, after the last one it is not.
    before = [text for turn, text in probed if turn.step == 0]
    assert before[:4] == before[4:]
    spoke = {turn.agent for turn, _ in bare}
    after = {turn.agent: text for turn, text in probed[-4:]}
    assert {agent for agent in range(4) if after[agent] != before[agent]} == spoke


def test_independent_reports_of_an_agent_are_repetitions_and_remembered_ones_are_not() -> None:
    independent = _simulated(_independent(4, 3), "cumulative")
    assert all(len({text for turn, text in independent if turn.agent == agent}) == 1 for agent in range(4))
    remembered = _simulated(_remembered(4, 12), "cumulative")
    assert len({text for _, text in remembered}) == 12
