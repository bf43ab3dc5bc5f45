from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import MeasurementError
from opinionsim.metrics import EVIDENCE, bias, distribution, diversity, evidence_statement
from opinionsim.opinions import OpinionScale

UNIFORM = [-2, -2, -1, -1, 0, 0, 1, 1, 2, 2]
opinions = st.lists(st.one_of(st.integers(-2, 2).map(float), st.just(math.nan)), max_size=30)


def test_uniform_start() -> None:
    assert bias(UNIFORM) == 0
    assert diversity(UNIFORM) == pytest.approx(math.sqrt(2))
    assert diversity(UNIFORM, ddof=1) == pytest.approx(1.4907, abs=5e-5)


@pytest.mark.parametrize("side", [1, -1])
def test_eight_against_two(side: int) -> None:
    skewed = [2 * side] * 8 + [-2 * side] * 2
    assert bias(skewed) == pytest.approx(1.2 * side)
    assert diversity(skewed) == pytest.approx(1.6)
    assert diversity(skewed, ddof=1) == pytest.approx(1.687, abs=5e-4)


@given(opinions, st.integers(0, 3))
def test_missing_opinions_are_left_out_and_counted(values: list[float], n_missing: int) -> None:
    padded = [*values, *[math.nan] * n_missing]
    present = [value for value in values if not math.isnan(value)]
    found = distribution(padded)
    assert (found.n, found.n_missing) == (len(present), len(padded) - len(present))
    assert found.counts.sum() == found.n
    np.testing.assert_equal(bias(padded), bias(present))
    np.testing.assert_equal(diversity(padded), diversity(present))


@given(opinions)
def test_shares_give_back_bias_and_diversity(values: list[float]) -> None:
    found = distribution(values)
    if found.n:
        mean = found.shares @ found.points
        assert bias(values) == pytest.approx(mean, abs=1e-12)
        assert diversity(values) ** 2 == pytest.approx(found.shares @ (found.points - mean) ** 2, abs=1e-12)
    else:
        assert math.isnan(bias(values))
        assert math.isnan(diversity(values))
        assert np.isnan(found.shares).all()


@given(st.lists(st.lists(st.one_of(st.floats(-2, 2), st.just(math.nan)), min_size=7, max_size=7), min_size=1))
def test_several_distributions_are_measured_as_one_by_one(rows: list[list[float]]) -> None:
    for metric in (bias, diversity):
        np.testing.assert_allclose(metric([rows]), [[metric(row) for row in rows]], atol=1e-12)


def test_diversity_needs_more_opinions_than_ddof() -> None:
    assert diversity([1.0]) == 0
    assert math.isnan(diversity([1.0], ddof=1))


def test_values_between_points_count_for_the_closest_and_ties_for_the_one_nearer_neutral() -> None:
    found = distribution([0.4, 1.5, -1.5, 3.0])
    np.testing.assert_array_equal(found.counts, [0, 1, 1, 1, 1])


def test_distribution_on_another_scale() -> None:
    found = distribution([-3, 3, 3, 0], OpinionScale.of_size(7))
    np.testing.assert_array_equal(found.counts, [1, 0, 0, 1, 0, 0, 2])
    np.testing.assert_array_equal(found.points, np.arange(-3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distribution([[1.0, 2.0]]), "one dimension"),
        (lambda: bias(1.0), "single number"),
        (lambda: bias(["much"]), "must be numbers"),
        (lambda: bias([math.inf]), "finite"),
        (lambda: diversity([1.0], ddof=-1), "ddof"),
        (
            lambda: evidence_statement(["guess"]),
            "mixed, human.model, equation.model, model, equation, human; got guess",
        ),
        (lambda: evidence_statement([]), "got nothing"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        call()  # type: ignore[operator]


def test_mixed_evidence_names_every_kind() -> None:
    statement = evidence_statement(["model", "scripted", "model"])
    assert statement == f"{EVIDENCE['scripted']} + {EVIDENCE['model']}"
