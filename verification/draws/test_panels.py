"""Panels, groups and pairs of q-voter, majority rule and Sznajd are drawn as often as their definitions say."""

from __future__ import annotations

from itertools import permutations, product

import networkx as nx
import numpy as np
import pytest

from opinionsim.classic import simulate, transition

_START = np.array([1.0, 0.0, 0.0, 1.0, 1.0])


_RUNS = 4000


def _flips(network, start, **options) -> np.ndarray:
    """Share of replicates in which each agent has changed after a step of all at once."""
    found = simulate("q-voter", network, start, 1, seed=3, replicates=_RUNS, order="synchronous", **options)
    return (found.opinions[:, 1] != start).mean(axis=0)


def _expected(rows, weights, start, q, repetition, **parameters) -> np.ndarray:
    """The same by going through all panels."""
    flips = []
    for agent, row in enumerate(rows):
        share = dict(zip(row, np.asarray(weights[agent]) / sum(weights[agent]), strict=True))
        chance, panels = [], []
        for panel in product(row, repeat=q) if repetition else permutations(row, min(q, len(row))):
            left, odds = 1.0, 1.0
            for member in panel:
                odds *= share[member] / left
                left -= 0.0 if repetition else share[member]
            chance.append(odds)
            panels.append(start[list(panel)])
        found = transition("q-voter", np.full(len(panels), start[agent]), np.array(panels), **parameters)
        flips.append(np.dot(chance, found.probability(1.0 - np.full(len(panels), start[agent]))))
    return np.array(flips)


@pytest.mark.parametrize("repetition", [True, False])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_every_panel_counts_as_often_as_it_should(q, repetition) -> None:
    parameters = {"epsilon": 0.3, "independence": 0.2, "anticonformity": 0.1}
    rows = [[j for j in range(5) if j != i] for i in range(5)]
    expected = _expected(rows, [[1.0] * 4] * 5, _START, q, repetition, **parameters)
    found = _flips(5, _START, q=q, repetition=repetition, **parameters)
    error = np.sqrt(expected * (1 - expected) / _RUNS)
    assert (np.abs(found - expected) < 4.5 * error).all()


@pytest.mark.parametrize("repetition", [True, False])
def test_panels_are_drawn_in_proportion_to_weights(repetition) -> None:
    weights = np.array(
        [[0, 1, 2, 3, 0], [1, 0, 5, 1, 1], [2, 5, 0, 0, 4], [3, 1, 0, 0, 1], [0, 1, 4, 1, 0]], dtype=float
    )
    rows = [np.flatnonzero(row).tolist() for row in weights]
    own = [row[row > 0].tolist() for row in weights]
    expected = _expected(rows, own, _START, 2, repetition, epsilon=0.4)
    found = _flips(weights, _START, q=2, repetition=repetition, epsilon=0.4)
    error = np.sqrt(expected * (1 - expected) / _RUNS) + 1e-9
    assert (np.abs(found - expected) < 4.5 * error).all()


@pytest.mark.parametrize("order", ["permutation", "sequential"])
def test_each_agent_updates_once_a_sweep(order) -> None:
    # Independent agents that flip a coin: after a sweep nobody's opinion says anything of the one before.
    start = np.zeros(5)
    found = simulate("q-voter", 5, start, 1, seed=2, replicates=_RUNS, order=order, independence=1.0).opinions[:, 1]
    assert np.abs(found.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(_RUNS)
    random = simulate("q-voter", 5, start, 1, seed=2, replicates=_RUNS, independence=1.0).opinions[:, 1]
    never = 0.8**5
    assert np.abs(random.mean(axis=0) - (1 - never) / 2).max() < 4.5 * 0.5 / np.sqrt(_RUNS)


def test_a_panel_of_one_is_the_voter_model() -> None:
    graph = nx.star_graph(4)
    one = simulate("q-voter", graph, _START, 2, seed=4, replicates=_RUNS, q=1).opinions[:, 1:]
    other = simulate("voter", graph, _START, 2, seed=5, replicates=_RUNS).opinions[:, 1:]
    assert np.abs(one.mean(axis=0) - other.mean(axis=0)).max() < 4.5 * np.sqrt(0.5 / _RUNS)
    assert np.abs(one.sum(axis=2).var(axis=0) - other.sum(axis=2).var(axis=0)).max() < 0.25
    before, said = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    for each in (0.0, 1.0):
        np.testing.assert_array_equal(
            transition("q-voter", before, said, q=1).probability(np.full(3, each)),
            transition("voter", before, said).probability(np.full(3, each)),
        )


def test_groups_are_an_agent_and_its_neighbours() -> None:
    # On a path 0-1-2 of 1, 0, 0: whoever calls, a group of 3 is {0, 1}, {0, 1, 2} or {1, 2}; ties keep.
    found = simulate("majority", [(0, 1), (1, 2)], [1.0, 0.0, 0.0], 1, seed=6, replicates=_RUNS, r=3).opinions[:, 1]
    assert (found[:, 1:] == 0).all()
    assert abs((found[:, 0] == 0).mean() - 1 / 3) < 4.5 * np.sqrt(2 / 9 / _RUNS)


def test_on_the_complete_graph_the_first_agreement_ends_it() -> None:
    found = simulate("sznajd", 6, [0, 0, 0, 0.5, 0.5, 1], 20, seed=1, replicates=4000).opinions[:, -1]
    assert (found == found[:, :1]).all()
    # Pairs of equals: 3 of 0, 1 of 0.5, none of 1.
    assert abs((found[:, 0] == 0).mean() - 0.75) < 4.5 * np.sqrt(0.1875 / 4000)
    assert (found != 1).all()
