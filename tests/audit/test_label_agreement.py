"""Coefficients of agreement against published examples, and what holds for any labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from opinionsim.audit import coefficients, cohen_kappa, confusion, krippendorff_alpha
from opinionsim.errors import MeasurementError

SCALE = [-2, -1, 0, 1, 2]
_ = np.nan
#: Krippendorff 2011, four observers, twelve units, some labels missing.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
#: Cohen 1960, table 1: two judges, 200 patients.
COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]

labels = arrays(float, (2, 30), elements=st.sampled_from([*map(float, SCALE), np.nan]))


@pytest.mark.parametrize(("distance", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example_with_missing_labels(distance: str, printed: float) -> None:
    found = krippendorff_alpha(KRIPPENDORFF, distance=distance)  # type: ignore[arg-type]
    assert found.value == pytest.approx(printed, abs=5e-4)


def test_kappa_of_the_published_example() -> None:
    assert cohen_kappa(COHEN).value == pytest.approx(0.492, abs=5e-4)


def test_quadratic_weights_in_closed_form() -> None:
    # Two of four texts differ by one point: 1 - (2/4) / (2 x variance + squared difference of means).
    matrix = confusion([0, 0, 1, 1], [0, 1, 1, 2], [0, 1, 2])
    assert cohen_kappa(matrix, cost="quadratic").value == pytest.approx(1 - 0.5 / (0.25 + 0.5 + 0.5**2))


@pytest.mark.long
def test_kappa_and_alpha_are_about_0_for_independent_labels() -> None:
    drawn = np.random.default_rng(20261125).choice(SCALE, size=(2, 50_000)).astype(float)
    assert all(abs(each.value) < 0.02 for each in coefficients(drawn, SCALE).values())


@given(labels)
def test_agreement_with_oneself_is_complete(drawn: np.ndarray) -> None:
    one = np.stack([drawn[0], drawn[0]])
    for found in (krippendorff_alpha(one, SCALE), cohen_kappa(confusion(one[0], one[1], SCALE))):
        assert found.value == pytest.approx(1) if len(set(one[~np.isnan(one)])) > 1 else math.isnan(found.value)


@given(labels, st.integers(1, 4))
def test_equal_weights_change_nothing_and_double_weights_are_two_texts(drawn: np.ndarray, place: int) -> None:
    plain = krippendorff_alpha(drawn, SCALE, "interval").value
    assert krippendorff_alpha(drawn, SCALE, "interval", np.full(30, 3.0)).value == pytest.approx(plain, nan_ok=True)
    twice = np.ones(30)
    twice[:place] = 2
    doubled = confusion(drawn[0], drawn[1], SCALE, twice)
    more = np.concatenate([drawn, drawn[:, :place]], axis=1)
    repeated = confusion(more[0], more[1], SCALE)
    assert doubled * repeated.sum() == pytest.approx(repeated * doubled.sum())


@settings(max_examples=20)
@given(labels)
def test_a_mirrored_scale_changes_nothing(drawn: np.ndarray) -> None:
    for name, found in coefficients(drawn, SCALE, seed=1).items():
        assert coefficients(-drawn, SCALE, seed=1)[name].value == pytest.approx(found.value, nan_ok=True)


def test_what_is_not_defined_has_a_reason() -> None:
    assert "all labels are equal" in krippendorff_alpha([[1, 1], [1, 1]]).reason
    assert "no text has two labels" in krippendorff_alpha([[1, np.nan], [np.nan, 2]]).reason
    assert math.isnan(cohen_kappa(np.zeros((3, 3))).value)


def test_intervals_over_texts_hold_the_value_and_shrink_with_the_number_of_texts() -> None:
    rng = np.random.default_rng(3)
    widths = []
    for n in (60, 600):
        true = rng.choice(SCALE, size=n).astype(float)
        pair = np.stack([true, np.where(rng.random(n) < 0.3, rng.choice(SCALE, size=n), true)])
        found = coefficients(pair, SCALE)["weighted_kappa"]
        assert found.low < found.value < found.high
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


def test_labels_off_the_scale_and_odd_weights_are_refused() -> None:
    with pytest.raises(MeasurementError, match="the label 3 is not one of the points"):
        confusion([3], [1], SCALE)
    with pytest.raises(MeasurementError, match="weights must be 2 finite numbers"):
        confusion([1, 1], [1, 1], SCALE, [1])
