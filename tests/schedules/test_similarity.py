"""Partners chosen by similarity: an adaptive schedule, through the engine and step by step."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from opinionsim.engine import Engine
from opinionsim.errors import SpecError
from opinionsim.messages import Message, Reply
from opinionsim.schedules import AdaptiveSchedule, Setting, SimilarityDyads, Turn
from opinionsim.testing import run_virtual
from tests.support.examples import examples

NAN = float("nan")


class _Echo:
    """Says who it is."""

    async def act(self, turn, received, ask, publish) -> None:
        await ask("reply", ())
        publish(Message(f"{turn.agent}"))

    def fork(self) -> _Echo:
        return self


class _Calls:
    async def ask(self, turn, call, messages, *, reading, priority, dropped=0) -> Reply:
        await asyncio.sleep(1.0)
        return Reply("")

    def stop(self) -> None: ...


class _Outcomes:
    """Answers at once, and keeps what was asked."""

    def __init__(self, rate: Callable[[int], float]) -> None:
        self.rate = rate
        self.awaited: list[int] = []

    async def reply(self, turn: int) -> Message:
        raise AssertionError("similarity acts on opinions only")

    decision = reply

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        assert instrument == "stance"
        self.awaited.append(turn)
        return self.rate(turn)


def _schedule(
    network: nx.Graph | int, steps: int, strength: float, opinions: Sequence[float], seed: int = 4
) -> AdaptiveSchedule:
    schedule = SimilarityDyads(steps=steps, strength=strength).schedule(Setting.of(network, seed, opinions=opinions))
    assert isinstance(schedule, AdaptiveSchedule)
    return schedule


def _pairs(schedule: AdaptiveSchedule, rate: Callable[[Turn], float] = lambda turn: NAN) -> list[tuple[int, int]]:
    """The (speaker, listener) of every step, as the engine came to them."""

    async def rated(turn: Turn, message: Message, instrument: str, about: int | None) -> float:
        assert (turn.act, instrument) == ("review", "stance")
        return rate(turn)

    async def story() -> list[tuple[int, int]]:
        engine = Engine(schedule, [_Echo() for _ in range(schedule.n_agents)], _Calls(), rate=rated)
        engine.start()
        await engine.wait()
        turns = [turn for turn, _ in engine.graph.transcript()]
        assert [turn.act for turn in turns] == ["write", "review"] * schedule.steps
        assert [turn.reads for turn in turns[1::2]] == [(turn.index,) for turn in turns[::2]]
        return [(write.agent, review.agent) for write, review in zip(turns[::2], turns[1::2], strict=True)]

    return run_virtual(story())


def test_without_strength_partners_are_uniform() -> None:
    pairs = Counter(_pairs(_schedule(4, 6_000, 0.0, [-2, -2, 2, 2])))
    assert len(pairs) == 12
    # Chi-square over 12 cells, 11 degrees of freedom: 99.9 % quantile 31.3.
    assert sum((count - 500) ** 2 / 500 for count in pairs.values()) < 31.3


def test_with_much_strength_only_the_like_minded_meet() -> None:
    pairs = set(_pairs(_schedule(6, 400, 1000.0, [-2, -2, 0, 0, 2, 2])))
    assert pairs == {(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)}


def test_the_odds_of_a_partner_fall_exponentially_with_distance() -> None:
    """Listener 0 at 0 hears 1 at distance 1 and 2 at distance 2, and nobody else hears anybody."""
    network = nx.DiGraph([(1, 0), (2, 0)])
    counts = Counter(speaker for speaker, _ in _pairs(_schedule(network, 4_000, 0.7, [0, 1, -2])))
    share = 1 / (1 + np.exp(-0.7))
    assert abs(counts[1] - 4_000 * share) < 5 * np.sqrt(4_000 * share * (1 - share))


def test_agents_without_an_opinion_meet_uniformly() -> None:
    counts = Counter(
        speaker for speaker, listener in _pairs(_schedule(4, 3_000, 50.0, [NAN, -2, 0, 2])) if not listener
    )
    # A third each: standard deviation of a share of about 750 is 13.
    assert all(abs(counts[agent] - counts.total() / 3) < 5 * 13 for agent in (1, 2, 3))


def test_measured_opinions_are_acted_on() -> None:
    """0 and 1 start alike and apart from 2 and 3; whoever listens becomes like 3."""
    schedule = _schedule(4, 60, 1000.0, [-2, -2, 2, 2])
    pairs = _pairs(schedule, lambda turn: 2.0)
    converted: set[int] = {2, 3}
    for speaker, listener in pairs:
        if listener in converted:
            assert speaker in converted
        else:
            assert speaker not in converted or converted >= {0, 1, 2, 3} - {listener}
        converted.add(listener)
    assert converted == {0, 1, 2, 3}


@examples(60)
@given(
    st.sampled_from([5, nx.path_graph(5), nx.star_graph(4), nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 0), (4, 3)])]),
    st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=5, max_size=5),
    st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, NAN]), min_size=1, max_size=7),
    st.integers(0, 2**32 - 1),
)
def test_with_much_strength_every_speaker_is_the_nearest_at_that_moment(network, opinions, measured, seed) -> None:
    """Opinions are carried forward: the last measured one counts, a NaN changes nothing."""
    graph = nx.complete_graph(network) if isinstance(network, int) else network
    held = list(opinions)
    for t, (speaker, listener) in enumerate(
        _pairs(_schedule(network, 20, 500.0, opinions, seed), lambda turn: measured[turn.index % len(measured)])
    ):
        sources = list(graph.predecessors(listener) if graph.is_directed() else graph.neighbors(listener))
        distances = {source: abs(held[source] - held[listener]) for source in sources}
        assert distances[speaker] == min(distances.values())
        found = measured[(2 * t + 1) % len(measured)]
        held[listener] = held[listener] if np.isnan(found) else found


async def _each(schedule: AdaptiveSchedule, outcomes: _Outcomes) -> list[tuple[Turn, list[int]]]:
    """Every turn with the reviews that had been waited for when it was yielded."""
    return [(turn, list(outcomes.awaited)) async for turn in schedule.decide(outcomes)]


@pytest.mark.parametrize("network", [6, nx.cycle_graph(6), nx.Graph([(0, 1), (2, 3), (4, 5)])])
def test_a_step_waits_only_for_reviews_of_its_listener_and_those_it_may_hear(network: nx.Graph | int) -> None:
    schedule = _schedule(network, 60, 1.0, [0] * 6)
    graph = nx.complete_graph(network) if isinstance(network, int) else network
    turns = asyncio.run(_each(schedule, _Outcomes(lambda turn: 0.0)))
    by_index = {turn.index: turn for turn, _ in turns}
    seen: list[int] = []
    for turn, awaited in turns:
        new, seen = awaited[len(seen) :], awaited
        if turn.act == "review":
            assert new == []
            continue
        listener = by_index[turn.index + 1].agent
        for review in new:
            assert review < turn.index
            assert by_index[review].agent in {listener, *graph.neighbors(listener)}
    assert len(seen) == len(set(seen))


def test_a_review_that_never_comes_holds_up_only_those_it_concerns() -> None:
    """Two couples that know nothing of each other: the one goes on while the other waits."""
    couples = nx.Graph([(0, 1), (2, 3)])
    schedule = _schedule(couples, 12, 1.0, [0] * 4)

    async def story(stuck: tuple[int, int]) -> list[Turn]:
        yielded: list[Turn] = []

        class Waiting(_Outcomes):
            async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
                if yielded[turn].agent in stuck:
                    await asyncio.sleep(1e9)
                return 0.0

        async def pull() -> None:
            async for turn in schedule.decide(Waiting(lambda turn: 0.0)):
                yielded.append(turn)

        task = asyncio.create_task(pull())
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return yielded

    everything = run_virtual(story(()))
    for stuck in ((0, 1), (2, 3)):
        listeners = [turn.agent for turn in everything[1::2]]
        second = [t for t, listener in enumerate(listeners) if listener in stuck][1]
        assert run_virtual(story(stuck)) == everything[: 2 * second]
        assert 0 < second < 12


def test_the_same_decisions_at_every_call() -> None:
    schedule = _schedule(6, 40, 1.0, [-2, -1, 0, 1, 2, NAN])
    first = asyncio.run(_each(schedule, _Outcomes(lambda turn: (turn % 5) - 2.0)))
    assert asyncio.run(_each(schedule, _Outcomes(lambda turn: (turn % 5) - 2.0))) == first
    other = _schedule(6, 40, 1.0, [-2, -1, 0, 1, 2, NAN], seed=5)
    assert asyncio.run(_each(other, _Outcomes(lambda turn: (turn % 5) - 2.0))) != first


@pytest.mark.parametrize(
    ("network", "opinions", "message"),
    [
        (3, [0, 0], "one for each of the 3 agents"),
        (1, [0], "N >= 2"),
        (nx.empty_graph(3), [0, 0, 0], "has no edge"),
    ],
)
def test_impossible_similarity(network, opinions, message) -> None:
    with pytest.raises(SpecError, match=message):
        _schedule(network, 3, 1.0, opinions)


@pytest.mark.parametrize("strength", [-0.1, NAN, float("inf")])
def test_impossible_strength(strength) -> None:
    with pytest.raises(ValidationError, match="strength"):
        SimilarityDyads(steps=3, strength=strength)
