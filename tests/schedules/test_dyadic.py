"""Dyads and broadcasts: who meets whom, and how often."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinionsim.errors import SpecError
from opinionsim.schedules import Broadcast, Dyads, Turn
from opinionsim.streams import stream

#: 99.9 % quantiles of chi-square, by degrees of freedom.
QUANTILE = {3: 16.27, 4: 18.47, 5: 20.52, 19: 43.82}


def _rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def _chi_square(counts: Counter, cells: int) -> float:
    assert len(counts) <= cells
    expected = counts.total() / cells
    return sum((count - expected) ** 2 for count in counts.values()) / expected + (cells - len(counts)) * expected


@pytest.mark.parametrize("network", [5, nx.complete_graph(5)])
def test_ordered_pairs_of_the_complete_graph_are_uniform(network: nx.Graph | int) -> None:
    counts = Counter(map(tuple, Dyads(network, 20_000, _rng()).pairs.tolist()))
    assert all(speaker != listener for speaker, listener in counts)
    assert _chi_square(counts, 20) < QUANTILE[19]


def test_ordered_pairs_of_a_network_are_uniform_over_its_edges_in_both_directions() -> None:
    """A path of four has six ordered pairs; its ends meet half as often as its middle."""
    counts = Counter(map(tuple, Dyads(nx.path_graph(4), 12_000, _rng()).pairs.tolist()))
    assert set(counts) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert _chi_square(counts, 6) < QUANTILE[5]


def test_parallel_edges_count_once() -> None:
    counts = Counter(map(tuple, Dyads(nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), 8_000, _rng()).pairs.tolist()))
    assert _chi_square(counts, 4) < QUANTILE[3]


def test_in_a_directed_network_the_tail_speaks_and_the_head_listens() -> None:
    network = nx.DiGraph([(0, 1), (1, 2), (3, 0), (0, 3)])
    counts = Counter(map(tuple, Dyads(network, 8_000, _rng()).pairs.tolist()))
    assert set(counts) == {(0, 1), (1, 2), (3, 0), (0, 3)}
    assert _chi_square(counts, 4) < QUANTILE[3]


def test_consecutive_pairs_are_independent() -> None:
    """Of two agents the speaker is a fair coin: the four outcomes of two tosses are equally likely."""
    speakers = Dyads(2, 16_000, _rng()).pairs[:, 0].tolist()
    assert _chi_square(Counter(zip(speakers[::2], speakers[1::2], strict=True)), 4) < QUANTILE[3]


@given(st.integers(2, 8), st.integers(0, 12), st.integers(0, 1000))
def test_each_step_writes_and_reviews(n: int, steps: int, seed: int) -> None:
    schedule = Dyads(n, steps, _rng(seed))
    turns = list(schedule.turns())
    assert (schedule.n_agents, schedule.steps, len(turns)) == (n, steps, 2 * steps)
    for t, (speaker, listener) in enumerate(schedule.pairs.tolist()):
        assert turns[2 * t] == Turn(2 * t, t + 1, speaker, "write")
        assert turns[2 * t + 1] == Turn(2 * t + 1, t + 1, listener, "review", (2 * t,))


def test_pairs_of_ones_own() -> None:
    schedule = Dyads(3, 2, pairs=[(2, 0), (0, 1)])
    assert [(turn.agent, turn.act, turn.reads) for turn in schedule.turns()] == [
        (2, "write", ()),
        (0, "review", (0,)),
        (0, "write", ()),
        (1, "review", (2,)),
    ]
    assert Dyads(3, 0, pairs=[]).pairs.shape == (0, 2)
    again = Dyads(3, 50, pairs=Dyads(3, 50, _rng()).pairs)
    assert list(again.turns()) == list(Dyads(3, 50, _rng()).turns())


def test_pairs_of_a_seed_are_pinned() -> None:
    """A change here changes every published run: it needs a new version of the specification."""
    assert Dyads(10, 4, stream(2024, "schedule")).pairs.tolist() == [[9, 4], [0, 6], [0, 1], [5, 1]]
    assert Dyads(nx.cycle_graph(10), 4, stream(2024, "schedule")).pairs.tolist() == [[9, 8], [0, 1], [0, 1], [5, 4]]
    assert Broadcast(10, 4, stream(2024, "schedule")).speakers.tolist() == [9, 0, 0, 5]


@pytest.mark.parametrize(
    ("network", "steps", "pairs", "message"),
    [
        (1, 3, None, "N >= 2 agents; got population.size = 1"),
        (3, -1, None, "interaction.steps: must be at least 0; got -1"),
        (nx.empty_graph(3), 3, None, "has no edge"),
        (3, 2, [(0, 1)], "for each of the 2 steps"),
        (3, 0, [(0, 1)], "for each of the 0 steps"),
        (3, 1, [(0, 1, 2)], "for each of the 1 steps"),
        (3, 2, [(0, 1, 1, 2)], "for each of the 2 steps"),
        (3, 2, [(0, 1), (1,)], "for each of the 2 steps"),
        (3, 1, [(0.5, 1.5)], "both integers"),
        (3, 1, [("a", "b")], "both integers"),
        (3, 2, [(0, 1), (1, 1)], "in step 2 agent 1 cannot speak to agent 1"),
        (3, 1, [(0, 3)], "in step 1 agent 0 cannot speak to agent 3"),
        (3, 1, [(-1, 0)], "in step 1 agent -1 cannot speak to agent 0"),
        (nx.path_graph(3), 2, [(0, 1), (0, 2)], "in step 2 agent 0 cannot speak to agent 2 on this network"),
        (nx.DiGraph([(0, 1)]), 1, [(1, 0)], "in step 1 agent 1 cannot speak to agent 0 on this network"),
    ],
)
def test_impossible_dyads(network: nx.Graph | int, steps: int, pairs: list | None, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Dyads(network, steps, _rng(), pairs)


def test_dyads_need_a_way_to_come_by_pairs() -> None:
    with pytest.raises(SpecError, match="needs either rng or pairs"):
        Dyads(3, 1)


def test_a_broadcast_reaches_everybody_who_hears_the_speaker() -> None:
    schedule = Broadcast(nx.star_graph(3), 30, _rng())
    turns = list(schedule.turns())
    assert [turn.index for turn in turns] == list(range(len(turns)))
    for step, speaker in enumerate(schedule.speakers.tolist(), 1):
        post, *reviews = [turn for turn in turns if turn.step == step]
        assert (post.agent, post.act, post.reads) == (speaker, "write", ())
        assert [review.agent for review in reviews] == ([1, 2, 3] if speaker == 0 else [0])
        assert {(review.act, review.reads) for review in reviews} == {("review", (post.index,))}


def test_speakers_of_a_broadcast_are_uniform_among_those_somebody_hears() -> None:
    everybody = Counter(Broadcast(5, 10_000, _rng()).speakers.tolist())
    assert _chi_square(everybody, 5) < QUANTILE[4]
    some = Counter(Broadcast(nx.DiGraph([(0, 1), (0, 2), (0, 3), (2, 3)]), 1_000, _rng()).speakers.tolist())
    assert set(some) == {0, 2}
    assert abs(some[0] - 500) < 5 * 15.8  # Binomial(1000, 1/2)


@pytest.mark.parametrize("network", [1, nx.empty_graph(3), nx.Graph([(0, 0)])])
def test_impossible_broadcasts(network: nx.Graph | int) -> None:
    with pytest.raises(SpecError):
        Broadcast(network, 3, _rng())
