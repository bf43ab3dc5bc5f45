"""Permutation tests over runs and permutation nulls over agents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from opinionsim.errors import MeasurementError
from opinionsim.metrics import (
    neighbour_correlation,
    permutation_null,
    permutation_test,
)

RING = np.arange(40)
TIES = (np.concatenate([RING, np.roll(RING, 1)]), np.concatenate([np.roll(RING, 1), RING]))


def test_an_echo_chamber_is_far_from_its_null_and_a_shuffle_is_not() -> None:
    camps = np.repeat([0.0, 1.0], 20)
    found = permutation_null(camps, TIES, n=199, seed=1)
    assert found.observed == neighbour_correlation(camps, TIES)
    assert found.p_value == pytest.approx(2 / 200)
    assert found.interval[0] < found.null_mean < found.interval[1] < found.observed
    # A permutation of a sum of products over a ring of 40: on average minus a 39th.
    ends = permutation_null(camps, TIES, "assortativity", n=1999)
    assert ends.null_mean == pytest.approx(-1 / 39, abs=0.02)


def test_p_values_are_uniform_without_an_effect() -> None:
    draw = np.random.default_rng(8)
    p = [permutation_null(draw.normal(size=40), TIES, n=99, seed=seed).p_value for seed in range(150)]
    assert abs(np.mean(np.array(p) <= 0.2) - 0.2) < 4 * math.sqrt(0.2 * 0.8 / 150)
    assert min(p) >= 2 / 100


def test_missing_opinions_stay_where_they_are() -> None:
    camps = np.repeat([0.0, 1.0], 20)
    camps[::5] = np.nan
    seen: list[np.ndarray] = []

    def metric(opinions: np.ndarray, network: Any) -> Any:
        seen.append(np.atleast_2d(opinions))
        return neighbour_correlation(opinions, network)

    permutation_null(camps, TIES, metric, n=20)
    assert (np.isnan(seen[1]) == np.isnan(camps)).all()
    assert (np.nansum(seen[1], axis=1) == np.nansum(camps)).all()
    assert len(np.unique(np.nan_to_num(seen[1]), axis=0)) > 1


def test_options_reach_the_measure_and_consensus_has_no_null() -> None:
    same = permutation_null(np.repeat([0.0, 1.0], 20), TIES, "same_side_share", n=99, range=(0, 1))
    assert same.observed == pytest.approx(76 / 80)
    flat = permutation_null(np.full(40, 0.5), TIES, n=9)
    assert math.isnan(flat.p_value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: permutation_null(np.zeros((2, 40)), TIES), "one dimension"),
        (lambda: permutation_null(np.zeros(40), TIES, "spread"), "one of neighbour_correlation"),
        (lambda: permutation_null(np.zeros(40), TIES, level=0), "level"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        call()


def test_permutation_tests_count_all_arrangements_where_there_are_few() -> None:
    # Of the 20 ways to part six numbers, only the observed one and its mirror are as far apart.
    found = permutation_test([4, 5, 6], [1, 2, 3])
    assert (found.difference, found.p_value) == (3, 2 / 20)
    assert (found.exact, found.n) == (True, 20)
    # Of the 16 ways to swap within four pairs, two have all differences of one sign.
    paired = permutation_test([2, 3, 5, 9], [1, 1, 1, 1], paired=True)
    assert (paired.difference, paired.p_value, paired.n) == (15 / 4, 2 / 16, 16)
    assert permutation_test([0.1, 0.2, 0.3], [0.3, 0.1, 0.2]).p_value == 1


def test_permutation_tests_draw_where_there_are_many_and_are_never_zero() -> None:
    apart = np.arange(20) + 100.0
    found = permutation_test(apart, np.arange(20.0), n=499, seed=3)
    assert (found.exact, found.n, found.p_value) == (False, 500, 2 / 500)
    values = np.random.default_rng(0).normal(size=(2, 20))
    assert permutation_test(*values, n=499, seed=3) == permutation_test(*values, n=499, seed=3)
    assert permutation_test(*values, n=499, seed=3) != permutation_test(*values, n=499, seed=4)


def test_a_sample_of_arrangements_comes_close_to_all() -> None:
    one, two = np.random.default_rng(6).normal([[0.5], [0]], size=(2, 7))
    exact, drawn = (permutation_test(one, two, n=n) for n in (3432, 3431))
    assert (exact.exact, drawn.exact) == (True, False)
    p = exact.p_value
    assert abs(drawn.p_value - p) < 4 * 2 * math.sqrt(p / 2 * (1 - p / 2) / 3431)


@pytest.mark.long
def test_permutation_tests_hold_their_level() -> None:
    """Of 400 comparisons of equals, 10 % give or take four standard errors are below 0.1."""
    draw = np.random.default_rng(8)
    p = np.array([permutation_test(*draw.normal(size=(2, 6))).p_value for _ in range(400)])
    # Of 924 arrangements 92 are the most extreme tenth, rounded down.
    assert abs(np.mean(p <= 0.1) - 92 / 924) < 4 * math.sqrt(0.09 / 400)


def test_pairs_without_a_value_are_left_out_whole() -> None:
    one, two = [1.0, math.nan, 3.0, 5.0], [0.0, 1.0, math.nan, 2.0]
    found = permutation_test(one, two, paired=True)
    assert (found.difference, found.n) == ((1 + 3) / 2, 2**2)
    assert permutation_test(one, two).n == math.comb(6, 3)


@pytest.mark.parametrize(
    ("first", "second", "options", "told"),
    [
        ([1, 2], [1, 2, 3], {"paired": True}, "the same number of values; got 2 and 3"),
        ([1, 2], [math.nan, 1], {}, "at least two values; got 2 and 1"),
        ([1, math.inf], [1, 2], {}, "first must be finite"),
        ([1, 2], [[1, 2]], {}, "second must have one dimension"),
        ([1, 2], [1, 2], {"n": 0}, "n must be a whole number"),
    ],
)
def test_means_that_cannot_be_compared_are_refused(first: Any, second: Any, options: Any, told: str) -> None:
    with pytest.raises(MeasurementError, match=told):
        permutation_test(first, second, **options)
