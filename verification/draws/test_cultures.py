"""Axelrod's culture: meetings as often as the transition says, and starts by their distributions."""

from __future__ import annotations

import numpy as np
import pytest

from opinionsim.classic import simulate, transition
from opinionsim.networks import Network


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_meeting_is_that_of_the_transition(noise: float) -> None:
    """On a network of one tie, in a step of one update: only agent 1 hears somebody."""
    one_way = Network.from_edges([(0, 1)], 2, directed=True)
    start = np.array([[0, 1, 2, 0], [0, 1, 0, 1]])
    runs, options = 4000, {"features": 4, "traits": 3, "noise": noise}
    final = simulate("axelrod", one_way, start, 1, 1, replicates=runs, isolates="keep", **options).final
    assert (final[:, 0] == start[0]).all()
    law = transition("axelrod", np.tile(start[1], (runs, 1)), np.tile(start[0], (runs, 1)), **options)
    assert np.allclose(law.probabilities.sum(axis=1), 1)
    ends, counts = np.unique(final[:, 1], axis=0, return_counts=True)
    expected = np.array([runs * law.probability(np.tile(end, (runs, 1)))[0] for end in ends])
    assert expected.sum() == pytest.approx(runs), "all that can happen happens"
    # By hand: two of four features are shared, so that in half of meetings one of the other two is taken over.
    assert law.probability(np.tile([0, 1, 2, 1], (runs, 1)))[0] == pytest.approx((1 - noise) / 4 + noise / 12)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < {0.0: 13.8, 0.3: 27.9}[noise], "1 in 1000, of 2 and 9 degrees of freedom"
    assert len(ends) == {0.0: 3, 0.3: 9}[noise]


def test_the_likeness_of_two_agents_follows_its_chain() -> None:
    """Closed form: the number of shared features of two agents is a chain; noise moves it both ways."""
    features, traits, noise, steps, runs = 4, 3, 0.2, 3, 3000
    chain = np.zeros((features + 1, features + 1))
    for k in range(features + 1):
        up = (1 - noise) * (k / features if k < features else 0) + noise * (1 - k / features) / traits
        down = noise * k / features * (1 - 1 / traits)
        chain[k, k] = 1 - up - down
        if up:
            chain[k, k + 1] = up
        if down:
            chain[k, k - 1] = down
    start = np.array([[0, 0, 0, 0], [0, 1, 1, 1]])
    options = {"features": features, "traits": traits, "noise": noise, "record_every": steps}
    final = simulate("axelrod", 2, start, steps, 2, replicates=runs, **options).final
    shared = (final[:, 0] == final[:, 1]).sum(axis=1)
    expected = runs * np.linalg.matrix_power(chain, 2 * steps)[1]
    chi_square = ((np.bincount(shared, minlength=features + 1) - expected) ** 2 / expected).sum()
    assert chi_square < 18.5, "1 in 1000, of 4 degrees of freedom"


def test_poisson_starts() -> None:
    options = {"n": 4000, "steps": 0, "features": 2, "seed": 4}
    start = simulate("axelrod", None, {"kind": "poisson", "mean": 3.1}, traits=50, **options).opinions[0, 0]
    assert start.mean() == pytest.approx(3.1, abs=5 * np.sqrt(3.1 / 8000))
    assert start.var() == pytest.approx(3.1, rel=0.1)
    cut = simulate("axelrod", None, {"kind": "poisson", "mean": 3.1}, traits=3, **options).opinions[0, 0]
    np.testing.assert_array_equal(cut, np.minimum(start, 2))
