"""When opinions settle or agree, where runs end, and qualitative classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim import metrics
from opinionsim.errors import MeasurementError
from opinionsim.metrics import CLASSES

#: Two agents: apart, closing in with a quiet record in between, then at rest.
RECORDS = np.array([[0.0, 1.0], [0.2, 0.8], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize(("window", "time"), [(1, 1), (2, 4), (3, math.nan), (9, math.nan)])
def test_convergence_begins_a_quiet_stretch(window: int, time: float) -> None:
    found = metrics.convergence_time(RECORDS, window=window)
    assert found.time == pytest.approx(time, nan_ok=True)
    assert found.censored == math.isnan(time)


def test_times_are_those_of_the_records_and_runs_keep_apart() -> None:
    restless = RECORDS + np.arange(7)[:, None]
    found = metrics.convergence_time([RECORDS, restless], times=np.arange(7) * 0.5, window=2)
    np.testing.assert_array_equal(found.time, [2.0, math.nan])
    np.testing.assert_array_equal(found.censored, [False, True])


def test_an_opinion_that_appears_is_a_change_and_none_is_not() -> None:
    records = [[0.0, math.nan, math.nan], [0.0, 0.5, math.nan], [0.0, 0.5, math.nan]]
    np.testing.assert_array_equal(metrics.largest_change(records), [math.inf, 0])
    assert metrics.convergence_time(records).time == 1


def test_changes_at_the_tolerance_are_not_below_it() -> None:
    assert metrics.convergence_time([[0.0], [0.25], [0.25]], tolerance=0.25).time == 1
    assert metrics.convergence_time([[0.0], [0.25], [0.25]], tolerance=0.26).time == 0


def test_consensus_time() -> None:
    assert metrics.consensus_time(RECORDS) == (4.0, False)
    assert metrics.consensus_time(RECORDS, tolerance=0.7).time == 1
    assert metrics.consensus_time(RECORDS[:4]).censored
    found = metrics.consensus_time([RECORDS, RECORDS[::-1]], times=np.arange(7) * 10)
    np.testing.assert_array_equal(found.time, [40, 0])


def test_a_single_record_says_nothing_of_convergence() -> None:
    assert metrics.convergence_time([[0.1, 0.2]]).censored
    assert metrics.consensus_time([[0.1, 0.1]]).time == 0


def test_exit_probability_counts_the_undecided() -> None:
    final = [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [1.0, math.nan]]
    assert metrics.exit_probability(final, 1) == (3 / 5, 5, 1)
    assert metrics.exit_probability(final, 0) == (1 / 5, 5, 1)
    assert metrics.exit_probability([[0.49, 0.51]], 0.5, tolerance=0.03) == (1, 1, 0)


UNIT = (0.0, 1.0)


@pytest.mark.parametrize(
    ("values", "bins", "expected"),
    [
        ([0.3] * 9, 5, "perfect consensus"),
        ([0.3, 0.3005, 0.3009], 10, "perfect consensus"),
        (np.linspace(0.4, 0.6, 50), 10, "consensus"),
        ([0.05] * 50 + [0.95] * 50, 10, "polarization"),
        ([0.0] * 70 + [1.0] * 30, 5, "polarization"),
        ([0.05] * 50 + [0.35] * 50, 10, "clustering"),
        ([0.05] * 30 + [0.55] * 40 + [0.95] * 30, 10, "clustering"),
        (np.linspace(0, 1, 101), 10, "dissensus"),
        (np.repeat([0, 0.25, 0.5, 0.75, 1], 4), 5, "dissensus"),
        # Stragglers do not make a group.
        ([0.05] * 98 + [0.95] * 2, 10, "consensus"),
        ([math.nan] * 3, 5, ""),
    ],
)
def test_classes(values: Any, bins: int, expected: str) -> None:
    assert metrics.qualitative_class(values, UNIT, bins=bins) == expected


@given(st.lists(st.lists(st.floats(0, 1), min_size=8, max_size=8), min_size=1, max_size=5), st.integers(3, 12))
def test_every_distribution_has_one_class(rows: list[list[float]], bins: int) -> None:
    found = metrics.qualitative_class([rows], UNIT, bins=bins)
    assert found.shape == (1, len(rows))
    assert set(found.ravel()) <= set(CLASSES)


def test_transitions_count_runs() -> None:
    before = ["dissensus", "dissensus", "polarization", ""]
    after = ["consensus", "polarization", "polarization", "consensus"]
    table = metrics.class_transitions(before, after)
    cells = {(CLASSES[i], CLASSES[j]): table[i, j] for i in range(5) for j in range(5) if table[i, j]}
    assert cells == {
        ("dissensus", "consensus"): 1,
        ("dissensus", "polarization"): 1,
        ("polarization", "polarization"): 1,
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.convergence_time([0.1, 0.2]), r"shape \(\.\.\., K, N\)"),
        (lambda: metrics.convergence_time(RECORDS, tolerance=0), "tolerance"),
        (lambda: metrics.convergence_time(RECORDS, window=0), "window"),
        (lambda: metrics.convergence_time(RECORDS, times=[0, 1]), "7 finite increasing"),
        (lambda: metrics.consensus_time(RECORDS, times=[0, 1, 2, 3, 4, 5, 5]), "increasing"),
        (lambda: metrics.consensus_time(RECORDS, tolerance=-1), "tolerance"),
        (lambda: metrics.exit_probability([0.0, 1.0], 1), r"shape \(R, N\)"),
        (lambda: metrics.exit_probability(RECORDS, math.nan), "value"),
        (lambda: metrics.qualitative_class([0.1], UNIT, bins=2), "at least 3"),
        (lambda: metrics.class_transitions(["consensus"], ["harmony"]), "harmony"),
        (lambda: metrics.class_transitions(["consensus"], []), "same runs"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        call()
