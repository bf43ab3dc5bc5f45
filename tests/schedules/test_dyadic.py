"""Dyads and broadcasts: who meets whom, and how often."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.schedules import (
    Broadcast,
    Dyads,
    GivenDyads,
    PostsInteraction,
    Setting,
    StaticSchedule,
    Turn,
)

#: 99.9 % quantiles of chi-square, by degrees of freedom.
QUANTILE = {3: 16.27, 4: 18.47, 5: 20.52, 19: 43.82}


def _turns(interaction: type[PostsInteraction], network: nx.Graph | int, steps: int, seed: int = 1) -> list[Turn]:
    schedule = interaction(steps=steps).schedule(Setting.of(network, seed))
    assert isinstance(schedule, StaticSchedule)
    return list(schedule.turns())


def _pairs(network: nx.Graph | int, steps: int, seed: int = 1) -> list[tuple[int, int]]:
    """(speaker, listener) of every step of random dyads."""
    turns = _turns(Dyads, network, steps, seed)
    return [(write.agent, review.agent) for write, review in zip(turns[::2], turns[1::2], strict=True)]


def _speakers(network: nx.Graph | int, steps: int, seed: int = 1) -> list[int]:
    """The speaker of every step of random broadcasts."""
    return [turn.agent for turn in _turns(Broadcast, network, steps, seed) if turn.act == "write"]


def _chi_square(counts: Counter, cells: int) -> float:
    assert len(counts) <= cells
    expected = counts.total() / cells
    return sum((count - expected) ** 2 for count in counts.values()) / expected + (cells - len(counts)) * expected


@pytest.mark.parametrize("network", [5, nx.complete_graph(5)])
def test_ordered_pairs_of_the_complete_graph_are_uniform(network: nx.Graph | int) -> None:
    counts = Counter(_pairs(network, 20_000))
    assert all(speaker != listener for speaker, listener in counts)
    assert _chi_square(counts, 20) < QUANTILE[19]


def test_ordered_pairs_of_a_network_are_uniform_over_its_edges_in_both_directions() -> None:
    """A path of four has six ordered pairs; its ends meet half as often as its middle."""
    counts = Counter(_pairs(nx.path_graph(4), 12_000))
    assert set(counts) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert _chi_square(counts, 6) < QUANTILE[5]


def test_parallel_edges_count_once() -> None:
    counts = Counter(_pairs(nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), 8_000))
    assert _chi_square(counts, 4) < QUANTILE[3]


def test_in_a_directed_network_the_tail_speaks_and_the_head_listens() -> None:
    network = nx.DiGraph([(0, 1), (1, 2), (3, 0), (0, 3)])
    counts = Counter(_pairs(network, 8_000))
    assert set(counts) == {(0, 1), (1, 2), (3, 0), (0, 3)}
    assert _chi_square(counts, 4) < QUANTILE[3]


def test_consecutive_pairs_are_independent() -> None:
    """Of two agents the speaker is a fair coin: the four outcomes of two tosses are equally likely."""
    speakers = [speaker for speaker, _ in _pairs(2, 16_000)]
    assert _chi_square(Counter(zip(speakers[::2], speakers[1::2], strict=True)), 4) < QUANTILE[3]


@given(st.integers(2, 8), st.integers(0, 12), st.integers(0, 1000))
def test_each_step_writes_and_reviews(n: int, steps: int, seed: int) -> None:
    schedule = Dyads(steps=steps).schedule(Setting.of(n, seed))
    turns = _turns(Dyads, n, steps, seed)
    assert (schedule.n_agents, schedule.steps, len(turns)) == (n, steps, 2 * steps)
    for t, (speaker, listener) in enumerate(_pairs(n, steps, seed)):
        assert turns[2 * t] == Turn(2 * t, t + 1, speaker, "write")
        assert turns[2 * t + 1] == Turn(2 * t + 1, t + 1, listener, "review", (2 * t,))


def test_pairs_of_ones_own() -> None:
    schedule = GivenDyads(3, [(2, 0), (0, 1)])
    assert [(turn.agent, turn.act, turn.reads) for turn in schedule.turns()] == [
        (2, "write", ()),
        (0, "review", (0,)),
        (0, "write", ()),
        (1, "review", (2,)),
    ]
    assert (schedule.n_agents, schedule.steps) == (3, 2)
    assert list(GivenDyads(3, []).turns()) == []
    assert list(GivenDyads(3, np.array(_pairs(3, 50))).turns()) == _turns(Dyads, 3, 50)  # type: ignore[arg-type]


def test_pairs_of_a_seed_are_pinned() -> None:
    """A change here changes every published run: it needs a new version of the specification."""
    assert _pairs(10, 4, 2024) == [(9, 4), (0, 6), (0, 1), (5, 1)]
    assert _pairs(nx.cycle_graph(10), 4, 2024) == [(9, 8), (0, 1), (0, 1), (5, 4)]
    assert _speakers(10, 4, 2024) == [9, 0, 0, 5]


@pytest.mark.parametrize(
    ("network", "pairs", "message"),
    [
        (1, [], "population.size is 1; it must be at least 2"),
        (nx.empty_graph(3), [], "has no edge"),
        (3, [(0, 1, 2)], "for each step"),
        (3, [(0, 1, 1, 2)], "for each step"),
        (3, [(0, 1), (1,)], "for each step"),
        (3, [(0.5, 1.5)], "both integers"),
        (3, [("a", "b")], "both integers"),
        (3, [(0, 1), (1, 1)], "in step 2 agent 1 cannot speak to agent 1"),
        (3, [(0, 3)], "in step 1 agent 0 cannot speak to agent 3"),
        (3, [(-1, 0)], "in step 1 agent -1 cannot speak to agent 0"),
        (nx.path_graph(3), [(0, 1), (0, 2)], "in step 2 agent 0 cannot speak to agent 2 on this network"),
        (nx.DiGraph([(0, 1)]), [(1, 0)], "in step 1 agent 1 cannot speak to agent 0 on this network"),
    ],
)
def test_impossible_pairs(network: nx.Graph | int, pairs: list, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        GivenDyads(network, pairs)


@pytest.mark.parametrize("interaction", [Dyads, Broadcast])
@pytest.mark.parametrize(
    ("network", "message"),
    [
        (1, "population.size is 1; it must be at least 2"),
        (nx.empty_graph(3), "has no edge"),
        (nx.Graph([(0, 0)]), "population.size is|itself|loop"),
    ],
)
def test_impossible_networks(interaction: type[PostsInteraction], network: nx.Graph | int, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        interaction(steps=3).schedule(Setting.of(network))


def test_a_network_that_only_an_experiment_builds_is_refused() -> None:
    ring = Dyads(steps=3, network="ring")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="network: experiments build 'ring'; give the network"):
        ring.schedule(Setting.of(5))
    assert ring.schedule(Setting.of(nx.cycle_graph(5))).n_agents == 5


def test_a_broadcast_reaches_everybody_who_hears_the_speaker() -> None:
    turns = _turns(Broadcast, nx.star_graph(3), 30)
    assert [turn.index for turn in turns] == list(range(len(turns)))
    for step, speaker in enumerate(_speakers(nx.star_graph(3), 30), 1):
        post, *reviews = [turn for turn in turns if turn.step == step]
        assert (post.agent, post.act, post.reads) == (speaker, "write", ())
        assert [review.agent for review in reviews] == ([1, 2, 3] if speaker == 0 else [0])
        assert {(review.act, review.reads) for review in reviews} == {("review", (post.index,))}


def test_speakers_of_a_broadcast_are_uniform_among_those_somebody_hears() -> None:
    everybody = Counter(_speakers(5, 10_000))
    assert _chi_square(everybody, 5) < QUANTILE[4]
    some = Counter(_speakers(nx.DiGraph([(0, 1), (0, 2), (0, 3), (2, 3)]), 1_000))
    assert set(some) == {0, 2}
    assert abs(some[0] - 500) < 5 * 15.8  # Binomial(1000, 1/2)
