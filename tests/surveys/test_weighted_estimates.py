"""Estimates of weighted respondents, against closed forms and repeated samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SurveyError
from opinionsim.foundation.streams import stream
from opinionsim.surveys import estimates

values = st.floats(-100, 100)


@given(y=st.lists(values, min_size=2, max_size=20), scale=st.floats(0.1, 10))
def test_equal_weights_give_the_textbook_mean_and_error(y: list[float], scale: float) -> None:
    (row,) = estimates(y, [scale] * len(y)).itertuples()
    assert (row.group, row.n) == ("all", len(y))
    assert row.effective_n == pytest.approx(len(y))
    assert row.mean == pytest.approx(np.mean(y))
    assert row.standard_error == pytest.approx(np.std(y, ddof=1) / np.sqrt(len(y)), abs=1e-12)


def test_two_respondents_by_hand() -> None:
    # Mean (3*1 + 1*5) / 4 = 2; z = 3 (1 - 2) / 4 and 1 (5 - 2) / 4; error sqrt(2 / 1 * (9 + 9) / 16) = 1.5.
    (row,) = estimates([1, 5], [3, 1]).itertuples()
    assert (row.mean, row.standard_error, row.effective_n) == pytest.approx((2, 1.5, 16 / 10))


def test_a_subgroup_counts_all_respondents_as_the_sample() -> None:
    # A ratio of sums over all four: n / (n - 1) = 4 / 3, and not 2 / 1.
    table = estimates([0, 2, 7, 7], groups=["a", "a", "b", "b"]).set_index("group")
    assert table.loc["a", "mean"] == 1
    assert table.loc["a", "standard_error"] == pytest.approx(np.sqrt(4 / 3 * (0.25 + 0.25)))
    assert table.loc["b", "standard_error"] == 0


def test_the_error_is_that_of_repeated_samples() -> None:
    rng = stream(1, "test")
    n, repeats = 400, 1500
    means, errors = np.empty(repeats), np.empty(repeats)
    for i in range(repeats):
        inside, w = rng.random(n) < 0.4, rng.exponential(size=n) + 0.1
        y = rng.normal(size=n) + w
        table = estimates(y, w, np.where(inside, "in", "out")).set_index("group")
        means[i], errors[i] = table.loc["in", "mean"], table.loc["in", "standard_error"]
    # The error of a standard deviation of 1500 means is 1.8 %; linearisation itself is a little low at n = 160.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(means.std(), rel=0.07)


def test_effective_n_shrinks_with_unequal_weights() -> None:
    (row,) = estimates([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 5]).itertuples()
    assert row.effective_n == pytest.approx(64 / 28)


def test_missing_values_and_groups_are_left_out() -> None:
    table = estimates([1, np.nan, 3, 5], [1, 1, 1, 1], ["a", "a", "a", None])
    assert table["group"].tolist() == ["a"]
    assert (table["n"][0], table["mean"][0]) == (2, 2)


def test_too_little_gives_no_error_and_nothing_no_mean() -> None:
    table = estimates([1, 2, 3], [1, 0, 0], ["a", "b", "b"]).set_index("group")
    assert (table.loc["a", "n"], table.loc["a", "mean"]) == (1, 1)
    assert np.isnan(table.loc["a", "standard_error"])
    assert np.isnan(table.loc["b", "mean"])
    assert np.isnan(table.loc["b", "standard_error"])
    assert table.loc["b", "effective_n"] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (([1, 2], [1]), "one entry per respondent"),
        (([1, 2], None, ["a"]), "one entry per respondent"),
        (([[1, 2]],), "one entry per respondent"),
        (([1, np.inf],), "values must be finite"),
        (([1, 2], [1, -1]), "weights must be 0 or more, and finite; got -1"),
        (([1, 2], [1, np.nan]), "weights must be 0 or more, and finite; got nan"),
        (([1, 2], [1, np.inf]), "weights must be 0 or more, and finite; got inf"),
    ],
)
def test_what_cannot_be_estimated_is_refused(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        estimates(*arguments)
