"""Scales, and what is derived from probabilities on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.opinions import OpinionEstimates, OpinionScale, ambiguous

FIVE = OpinionScale()
NAN_ROW = [np.nan] * 5

scales = st.lists(st.integers(-20, 20), min_size=2, max_size=9, unique=True).map(
    lambda points: OpinionScale(tuple(sorted(points)), tuple(f"label {point}" for point in sorted(points)))
)


def test_the_default_scale_is_that_of_the_founding_study() -> None:
    assert FIVE.points == (-2, -1, 0, 1, 2)
    assert [FIVE.label(point) for point in FIVE.points] == [
        "strongly negative",
        "slightly negative",
        "neutral",
        "slightly positive",
        "strongly positive",
    ]
    assert (FIVE.lowest, FIVE.neutral, FIVE.highest, len(FIVE)) == (-2, 0, 2, 5)
    np.testing.assert_array_equal(FIVE.values, [-2.0, -1.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("size", "points"),
    [(2, (-1, 1)), (3, (-1, 0, 1)), (4, (-2, -1, 1, 2)), (5, (-2, -1, 0, 1, 2)), (7, (-3, -2, -1, 0, 1, 2, 3))],
)
def test_scales_of_a_size_are_symmetric_and_labelled(size: int, points: tuple[int, ...]) -> None:
    scale = OpinionScale.of_size(size)
    assert scale.points == points
    assert scale.neutral == 0
    assert len(set(scale.labels)) == size


def test_equal_scales_are_equal_whatever_they_were_made_from() -> None:
    assert OpinionScale([-2, -1, 0, 1, 2]) == FIVE
    assert hash(OpinionScale(np.arange(-2, 3))) == hash(FIVE)
    assert all(type(point) is int for point in OpinionScale(np.arange(-2, 3)).points)


@pytest.mark.parametrize("points", [(), (1,), (1, 1), (2, 1), (0.5, 1.5), ("a", "b"), (float("nan"), 1)])
def test_points_must_be_increasing_integers(points: tuple) -> None:
    with pytest.raises(SpecError, match=r"scale\.points must be two or more strictly increasing integers"):
        OpinionScale(points, ("a", "b"))


@pytest.mark.parametrize(
    ("points", "labels"),
    [((1, 2), ("same", "same")), ((1, 2), ("one",)), ((1, 2, 3, 4, 5, 6), ()), ((1, 2), ("a", "b", "c"))],
)
def test_every_point_needs_a_label_of_its_own(points: tuple, labels: tuple) -> None:
    with pytest.raises(SpecError, match=rf"one distinct label for each of the {len(points)} points.*2, 3, 4, 5 and 7"):
        OpinionScale(points, labels)


@pytest.mark.parametrize("size", [-3, 0, 1, 6, 8])
def test_a_size_without_default_labels_is_refused(size: int) -> None:
    with pytest.raises(SpecError, match=r"scale\."):
        OpinionScale.of_size(size)


@pytest.mark.parametrize("value", [3, -2.5, float("nan"), float("inf")])
def test_a_value_off_the_scale_is_named_with_the_valid_ones(value: float) -> None:
    with pytest.raises(SpecError, match=r"is not on the scale; valid values are -2, -1, 0, 1, 2"):
        FIVE.index(value)
    with pytest.raises(SpecError, match="is not on the scale"):
        FIVE.label(value)


@given(scales)
def test_every_point_is_found_where_it_stands(scale: OpinionScale) -> None:
    assert [scale.index(float(point)) for point in scale.points] == list(range(len(scale)))
    assert [scale.nearest(point) for point in scale.points] == list(scale.points)


@given(scales, st.floats(-30, 30))
def test_nearest_is_no_farther_than_any_point_and_ties_go_towards_neutral(scale: OpinionScale, value: float) -> None:
    found = scale.nearest(value)
    assert found in scale.points
    closest = min(abs(point - value) for point in scale.points)
    tied = [point for point in scale.points if abs(point - value) == closest]
    assert found in tied
    assert abs(found - scale.neutral) == min(abs(point - scale.neutral) for point in tied)


@pytest.mark.parametrize(
    ("points", "value", "nearest"),
    [
        ((-2, -1, 0, 1, 2), 0.5, 0),
        ((-2, -1, 0, 1, 2), -1.5, -1),
        ((-2, -1, 0, 1, 2), 99.0, 2),
        ((-1, 1), 0.0, -1),  # equally near neutral: the lower
        ((0, 1, 2, 3, 4), 1.5, 2),  # neutral is 2
    ],
)
def test_nearest_closed_forms(points: tuple[int, ...], value: float, nearest: int) -> None:
    assert OpinionScale(points).nearest(value) == nearest


def test_nothing_is_nearest_to_nan() -> None:
    with pytest.raises(SpecError, match="NaN"):
        FIVE.nearest(float("nan"))


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ([0.2, 0.2, 0.2, 0.2, 0.2], 0),
        ([0.5, 0, 0, 0, 0.5], -2),  # equally near neutral: the lower
        ([0, 0.5, 0, 0.5, 0], -1),
        ([0.4, 0, 0, 0.4, 0.2], 1),  # 1 is nearer neutral than -2
        ([0.1, 0.1, 0.1, 0.1, 0.6], 2),
        ([0.1 + 0.2, 0, 0, 0.3, 0.4 - 1e-17], 2),
        ([0.1 + 0.2, 0.2, 0.2, 0.3, 0], 1),  # 0.1 + 0.2 exceeds 0.3 by rounding only: a tie
    ],
)
def test_the_value_is_the_most_probable_point_ties_nearer_neutral(row: list[float], value: int) -> None:
    assert OpinionEstimates.from_probabilities(FIVE, [row]).value.tolist() == [value]


def test_ties_on_a_scale_that_is_not_centred_go_towards_its_own_middle() -> None:
    scale = OpinionScale((0, 1, 2, 3, 4))
    assert OpinionEstimates.from_probabilities(scale, [[0.5, 0.5, 0, 0, 0]]).value.tolist() == [1]
    assert OpinionEstimates.from_probabilities(scale, [[0, 0, 0, 0.5, 0.5]]).value.tolist() == [3]


@given(arrays(float, st.tuples(st.integers(0, 8), st.just(5)), elements=st.integers(0, 4).map(float)))
def test_values_expectations_and_margins_follow_from_the_rows(weights: np.ndarray) -> None:
    weights = weights[weights.sum(axis=1) > 0]
    rows = weights / weights.sum(axis=1, keepdims=True)
    found = OpinionEstimates.from_probabilities(FIVE, rows)
    assert len(found) == len(rows)
    for row, value, expectation, margin in zip(rows, found.value, found.expectation, found.margin, strict=True):
        best = [point for point, p in zip(FIVE.points, row, strict=True) if p == row.max()]
        assert value == min(best, key=lambda point: (abs(point), point))
        assert expectation == pytest.approx(sum(p * point for p, point in zip(row, FIVE.points, strict=True)))
        first, second = sorted(row)[::-1][:2]
        assert margin == pytest.approx(first - second)


def test_no_answer_is_nan_throughout_and_wholly_off_the_scale() -> None:
    found = OpinionEstimates.from_probabilities(FIVE, [NAN_ROW, [0, 0, 0, 0, 1]], [0.1, 0.2])
    np.testing.assert_array_equal(found.value, [np.nan, 2])
    np.testing.assert_array_equal(found.off_scale, [1.0, 0.2])
    np.testing.assert_array_equal(np.isnan(found.expectation), [True, False])
    np.testing.assert_array_equal(np.isnan(found.margin), [True, False])


def test_only_no_answers_and_no_texts_at_all() -> None:
    assert np.isnan(OpinionEstimates.from_probabilities(FIVE, [NAN_ROW, NAN_ROW]).value).all()
    none = OpinionEstimates.from_probabilities(FIVE, [])
    assert len(none) == 0
    assert none.probabilities.shape == (0, 5)
    assert none.expectation.shape == none.margin.shape == (0,)


def test_more_off_scale_mass_than_the_threshold_leaves_no_value() -> None:
    rows = np.tile([0, 0, 0, 0, 1.0], (3, 1))
    default = OpinionEstimates.from_probabilities(FIVE, rows, [0.49, 0.5, 0.51])
    np.testing.assert_array_equal(default.value, [2, 2, np.nan])
    strict = OpinionEstimates.from_probabilities(FIVE, rows, [0.0, 0.1, 0.11], threshold=0.1)
    np.testing.assert_array_equal(strict.value, [2, 2, np.nan])
    # The distribution given an answer is kept either way.
    np.testing.assert_array_equal(default.probabilities, rows)


@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, 0.5, 0.5, 0, 0]],
        [[1.5, -0.5, 0, 0, 0]],
        [[np.nan, 0.25, 0.25, 0.25, 0.25]],
        [[np.inf, 0, 0, 0, 0]],
        [[0, 0, 0, 0, 0]],
        [[0.5, 0.5]],
        [[0.25] * 4],
        np.full((5, 2), 0.5),
        np.eye(5)[0].reshape(5, 1),
        [1.0, 0, 0, 0, 0],
    ],
)
def test_what_is_no_distribution_over_the_scale_is_refused(rows: object) -> None:
    with pytest.raises(MeasurementError, match="a classifier must return"):
        OpinionEstimates.from_probabilities(FIVE, rows)


@pytest.mark.parametrize("off", [[np.nan], [-0.1], [1.1], [0.1, 0.1], []])
def test_off_scale_mass_is_one_probability_a_text(off: list[float]) -> None:
    with pytest.raises(MeasurementError, match=r"off-scale mass"):
        OpinionEstimates.from_probabilities(FIVE, [[0.2] * 5], off)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.25, 0.0, 0.5, 0.0, 0.25], True),
        ([0.24, 0.0, 0.52, 0.0, 0.24], False),
        ([0.1, 0.2, 0.1, 0.3, 0.3], True),
        ([0.0, 0.0, 0.2, 0.4, 0.4], False),
        ([0.0, 0.0, 1.0, 0.0, 0.0], False),
        ([0.3, 0.7], True),
        ([0.4, 0.3, 0.3], True),
        ([0.1, 0.1, 0.4, 0.4], False),
        ([np.nan] * 5, False),
    ],
)
def test_texts_with_mass_on_both_sides_of_neutral_are_ambiguous(row: list[float], expected: bool) -> None:
    assert ambiguous([row]).tolist() == [expected]


def test_ambiguous_takes_a_row_a_text() -> None:
    assert ambiguous(np.empty((0, 5))).shape == (0,)
    with pytest.raises(MeasurementError, match=r"the shape \(texts, points\); got \(5,\)"):
        ambiguous([0.2] * 5)
