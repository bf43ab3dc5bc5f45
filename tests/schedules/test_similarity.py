"""Partners chosen by similarity: who is met, and what is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from opinionsim.errors import SpecError
from opinionsim.schedules import AdaptiveSchedule, SimilarityDyads, Turn
from opinionsim.testing import run_virtual
from tests.support.adaptive import NAN, Outcomes, adaptive, pairs_met
from tests.support.examples import examples


def _schedule(network: nx.Graph | int, steps: int, strength: float, opinions: Sequence[float], seed: int = 4) -> Any:
    return adaptive(SimilarityDyads(steps=steps, strength=strength), network, opinions, seed)


def test_with_much_strength_only_the_like_minded_meet() -> None:
    pairs = set(pairs_met(_schedule(6, 400, 1000.0, [-2, -2, 0, 0, 2, 2])).values())
    assert pairs == {(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)}


def test_measured_opinions_are_acted_on() -> None:
    """0 and 1 start alike and apart from 2 and 3; whoever listens becomes like 3."""
    schedule = _schedule(4, 60, 1000.0, [-2, -2, 2, 2])
    pairs = pairs_met(schedule, lambda turn: 2.0).values()
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
    schedule = _schedule(network, 20, 500.0, opinions, seed)
    pairs = pairs_met(schedule, lambda turn: measured[turn.index % len(measured)]).values()
    for t, (speaker, listener) in enumerate(pairs):
        sources = list(graph.predecessors(listener) if graph.is_directed() else graph.neighbors(listener))
        distances = {source: abs(held[source] - held[listener]) for source in sources}
        assert distances[speaker] == min(distances.values())
        found = measured[(2 * t + 1) % len(measured)]
        held[listener] = held[listener] if np.isnan(found) else found


async def _each(schedule: AdaptiveSchedule, rate: Callable[[Turn], float]) -> list[tuple[Turn, list[int]]]:
    """Every turn with the reviews that had been waited for when it was yielded."""
    outcomes, found = Outcomes(rate), []
    async for turn in schedule.decide(outcomes):
        outcomes.turns.append(turn)
        found.append((turn, list(outcomes.awaited)))
    return found


@pytest.mark.parametrize("network", [6, nx.cycle_graph(6), nx.Graph([(0, 1), (2, 3), (4, 5)])])
def test_a_step_waits_only_for_reviews_of_its_listener_and_those_it_may_hear(network: nx.Graph | int) -> None:
    schedule = _schedule(network, 60, 1.0, [0] * 6)
    graph = nx.complete_graph(network) if isinstance(network, int) else network
    turns = asyncio.run(_each(schedule, lambda turn: 0.0))
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

        class Waiting(Outcomes):
            async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
                if yielded[turn].agent in stuck:
                    await asyncio.sleep(1e9)
                return 0.0

        async def pull() -> None:
            async for turn in schedule.decide(Waiting()):
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
    first = asyncio.run(_each(schedule, lambda turn: (turn.index % 5) - 2.0))
    assert asyncio.run(_each(schedule, lambda turn: (turn.index % 5) - 2.0)) == first
    other = _schedule(6, 40, 1.0, [-2, -1, 0, 1, 2, NAN], seed=5)
    assert asyncio.run(_each(other, lambda turn: (turn.index % 5) - 2.0)) != first


@pytest.mark.parametrize(
    ("network", "opinions", "message"),
    [
        (3, [0, 0], "one for each of the 3 agents"),
        (1, [0], "population.size is 1"),
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
