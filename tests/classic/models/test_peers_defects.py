"""What other packages get wrong, or got wrong in a release that was measured, and this one must not."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from opinionsim.classic import MODELS, simulate
from opinionsim.errors import SpecError

_GROUPS = ("q-voter", "majority", "sznajd", "hegselmann-krause", "activity-driven", "degroot", "friedkin-johnsen",
           "altafini", "biased-assimilation")  # fmt: skip


@pytest.mark.parametrize("network", [50, nx.cycle_graph(50)], ids=["complete", "ring"])
def test_every_agent_of_hegselmann_and_krause_moves_in_a_step(network) -> None:
    """NDlib 6.0.1: of N evaluations an iteration all but the last are dropped, so that one agent moves at most."""
    start = np.random.default_rng(0).random(50)
    found = simulate("hegselmann-krause", network, start, 1, epsilon=1.0).opinions[0, 1]
    assert (found != start).all()
    if isinstance(network, int):
        np.testing.assert_allclose(found, start.mean(), rtol=0, atol=1e-15)


def test_an_agent_counts_itself_in_hegselmann_and_krause() -> None:
    """NDlib 6.0.1: the mean leaves the agent itself out, and so two agents swap opinions for ever."""
    assert simulate("hegselmann-krause", 2, [0.4, 0.5], 1).opinions[0, 1].tolist() == pytest.approx([0.45, 0.45])
    swapped = simulate("hegselmann-krause", 2, [0.4, 0.5], 1, with_self=False).opinions[0, 1]
    assert swapped.tolist() == [0.5, 0.4]


def test_hegselmann_and_krause_know_no_sign() -> None:
    """NDlib 6.0.1: opinions start in [0, 1] under a rule that turns on their sign, written for [-1, 1]."""
    assert MODELS["hegselmann-krause"].range == (0.0, 1.0)
    start = np.random.default_rng(1).random(30)
    below = simulate("hegselmann-krause", 30, start - 1, 5, range=(-1, 0), epsilon=0.2).opinions
    np.testing.assert_allclose(below + 1, simulate("hegselmann-krause", 30, start, 5).opinions, rtol=0, atol=1e-14)
    both = simulate("hegselmann-krause", 30, 2 * start - 1, 5, range=(-1, 1)).opinions
    np.testing.assert_allclose((both + 1) / 2, simulate("hegselmann-krause", 30, start, 5).opinions, rtol=0, atol=1e-14)


_DIGEST = """
import hashlib, sys
from opinionsim.classic import simulate
for name in sys.argv[1:]:
    found = simulate(name, 12, steps=3, seed=5, replicates=2)
    print(hashlib.sha256(found.opinions.tobytes()).hexdigest())
"""


@pytest.mark.long
def test_a_seed_is_enough() -> None:
    """NDlib 6.0.1: several models take no seed, or take it and choose partners by another generator."""
    here = [hashlib.sha256(simulate(name, 12, steps=3, seed=5, replicates=2).opinions.tobytes()).hexdigest()
            for name in _GROUPS]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST, *_GROUPS], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == here
    other = simulate("q-voter", 12, steps=3, seed=6).opinions
    assert (other != simulate("q-voter", 12, steps=3, seed=5).opinions).any()


@pytest.mark.long
def test_nobody_elses_random_numbers_change() -> None:
    """NDlib 6.0.1: building a model seeds numpy's global generator."""
    np.random.seed(4)  # noqa: NPY002, TID251 - it is this generator that must not be touched
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(4)  # noqa: NPY002, TID251
    for name in _GROUPS:
        simulate(name, "ring", n=12, steps=2, seed=1)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002


def test_given_opinions_are_there_for_a_second_run() -> None:
    """NDlib 6.0.1: a voter model that is reset after explicit initial states keeps the states it ended in."""
    start = np.repeat([0.0, 1.0], 20)
    first = simulate("voter", 40, start, 30, seed=2)
    assert (first.final[0] != start).any()
    assert (start == np.repeat([0.0, 1.0], 20)).all()
    again = simulate("voter", 40, start, 30, seed=2)
    assert (again.opinions[0, 0] == start).all()
    np.testing.assert_array_equal(again.opinions, first.opinions)


@pytest.mark.parametrize("name", ["algorithmic-bias", "hegselmann-krause", "q-voter"])
def test_agents_may_have_names(name) -> None:
    """NDlib 6.0.1: its algorithmic bias model fails on nodes that are not the numbers 0 to N-1."""
    named = nx.relabel_nodes(nx.path_graph(5), dict(enumerate(["ann", "bo", "cy", "di", "ed"])))
    start = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(
        simulate(name, named, start, 3, seed=1).opinions, simulate(name, nx.path_graph(5), start, 3, seed=1).opinions
    )


def test_majorities_are_local() -> None:
    """NDlib 6.0.1: groups of the majority rule are drawn from everybody, whatever the graph."""
    islands = nx.disjoint_union(nx.complete_graph(10), nx.complete_graph(10))
    start = np.repeat([0.0, 1.0], 10)
    assert (simulate("majority", islands, start, 40, r=5, machine=False).opinions == start).all()
    mixed = simulate("majority", 20, start, 40, r=5, machine=False).final[0]
    assert (mixed == mixed[0]).all()


def test_panels_that_disagree_can_turn_an_agent() -> None:
    """NDlib 6.0.1: the documented probability of flipping without unanimity is not in its q-voter model."""
    start = np.array([0.0, 0.0, 1.0])
    path = [(0, 1), (1, 2)]
    # Agent 1 asks 0 and 2, who disagree.
    for epsilon, flips in ((0.0, False), (1.0, True)):
        found = simulate(
            "q-voter", path, start, 1, q=2, repetition=False, epsilon=epsilon, order="synchronous", machine=False
        )
        assert (found.opinions[0, 1, 1] == 1.0) == flips


def test_de_groot_takes_a_hundred_thousand_agents() -> None:
    """seldon 0.1: a recursive search for components runs out of stack at 100,000 agents."""
    n = 100_000
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    found = simulate("degroot", ring, np.arange(n) / n, 2, record_every=2).opinions[0, 1]
    assert found[n // 2] == pytest.approx(0.5, abs=1e-12)


def test_a_network_is_never_replaced() -> None:
    """seldon 0.1: bounded confidence runs on a square lattice of its own, whatever network is given."""
    pairs = nx.Graph([(0, 7), (1, 6), (2, 5), (3, 4)])
    pairs.add_nodes_from(range(8))
    start = np.arange(8) / 8
    for name in ("deffuant", "hegselmann-krause"):
        final = simulate(name, pairs, start, 60, epsilon=1.0).final[0]
        np.testing.assert_allclose(final, 7 / 16, rtol=0, atol=1e-12)  # every pair has this mean
        apart = simulate(name, nx.Graph([(0, 1), (2, 3), (4, 5), (6, 7)]), start, 60, epsilon=1.0).final[0]
        np.testing.assert_allclose(apart, np.repeat([1, 5, 9, 13], 2) / 16, rtol=0, atol=1e-12)


def test_unknown_settings_are_refused_and_listed() -> None:
    """NDlib 6.0.1: parameters of one model are accepted by others, and do nothing there."""
    with pytest.raises(SpecError, match="degroot has no parameter 'epsilon'; valid: self_weight, order"):
        simulate("degroot", 5, epsilon=0.2)
