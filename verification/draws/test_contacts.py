"""Activity-driven echo chambers: who is active, who meets whom, and what a network of contacts restricts."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom

from opinionsim.classic import simulate

_START = np.array([-0.8, -0.5, -0.1, 0.2, 0.4, 0.9])


_N = len(_START)


def _met(runs=3000, network=_N, **settings) -> np.ndarray:
    """Share of steps in which each listener (row) heard each speaker, as the first step's opinions give it away."""
    pulls = np.tanh(_START)
    heard = np.array(list(itertools.product([0, 1], repeat=_N)))
    sums = heard @ pulls
    order = np.argsort(sums)
    assert np.diff(sums[order]).min() > 1e-5, "a sum says whom it is of"
    options = {"K": 1.0, "alpha": 1.0, "dt": 0.1, "replicates": runs, "seed": 5}
    after = simulate("activity-driven", network, _START, 1, **options, **settings).final
    found = (after - 0.9 * _START) / 0.1
    place = order[np.clip(np.searchsorted(sums[order], found - 1e-9), 0, len(sums) - 1)]
    assert np.abs(sums[place] - found).max() < 1e-9, "each pair once"
    return np.asarray(heard[place].mean(axis=0))


def test_active_agents_hear_m_others_and_are_heard_with_probability_r() -> None:
    runs, a, r, m = 3000, 0.4, 0.3, 2
    found = _met(runs, activity=a, r=r, m=m, beta=0)
    once = a * m / (_N - 1)
    expected = 1 - (1 - once) * (1 - once * r)
    off = found[~np.eye(_N, dtype=bool)]
    assert np.abs(off - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / runs)
    assert (np.diag(found) == 0).all()
    one_way = _met(200, activity=np.array([1.0, 0, 0, 0, 0, 0]), r=0, m=_N)
    assert (one_way[0, 1:] == 1).all()
    assert one_way[1:].sum() == 0


def test_homophily_draws_by_a_power_of_distance() -> None:
    runs = 3000
    found = _met(runs, activity=1.0, r=0, m=1, beta=2)
    distances = np.abs(_START[:, None] - _START) + np.eye(_N)
    odds = distances**-2.0 * (1 - np.eye(_N))
    odds /= odds.sum(axis=1, keepdims=True)
    assert (np.abs(found - odds) <= 4.5 * np.sqrt(odds * (1 - odds) / runs)).all()


def test_contacts_stay_on_the_network() -> None:
    ring = nx.cycle_graph(_N)
    for beta in (0, 2):
        found = _met(300, ring, activity=1.0, r=1, m=1, beta=beta)
        assert (found[nx.to_numpy_array(ring) == 0] == 0).all()
        assert (found[nx.to_numpy_array(ring) == 1] > 0).all()
    # 1 hears 0, 0 hears 2, and 2 hears 1: nobody who is heard hears back.
    cycle = np.eye(_N)[np.roll(np.arange(_N), 1)]
    assert (_met(50, cycle, activity=1.0, r=1, m=1) == (cycle > 0)).all()


def test_weights_draw_too() -> None:
    heard = np.ones((_N, _N)) - np.eye(_N)
    heard[0] = [0, 0, 0, 5, 0, 0]
    heard[0, 1] = 1e-9
    assert _met(100, heard, activity=1.0, r=0, m=1, beta=0.5)[0, 3] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("gamma", [1.0, 2.1])
def test_activities_follow_the_power_law(gamma) -> None:
    steps, drawn = 40, np.ones(200)
    options = {"dt": 0.01, "m": 1, "r": 0, "beta": 0, "gamma": gamma, "epsilon": 0.01}
    opinions = simulate("activity-driven", 200, drawn, steps, seed=1, replicates=100, **options).opinions
    # All opinions are positive: they fall by 1 % in a step unless the agent is active, and hears somebody.
    active = (opinions[:, 1:] > 0.99 * opinions[:, :-1] + 1e-6).sum(axis=1).ravel()
    ranks = (np.arange(20_000) + 0.5) / 20_000
    lowest = 0.01 ** (1 - gamma)
    activities = 0.01 ** (1 - ranks) if gamma == 1 else (lowest + ranks * (1 - lowest)) ** (1 / (1 - gamma))
    for most in (0, 1, 4, 15):
        expected = binom.cdf(most, steps, activities).mean()
        tolerated = 4.5 * np.sqrt(expected * (1 - expected) / active.size)
        assert abs((active <= most).mean() - expected) < tolerated
