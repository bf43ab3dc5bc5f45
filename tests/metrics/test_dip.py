"""The dip statistic against the linear programme that defines it, and its p-value."""

from __future__ import annotations

import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog

from opinionsim.errors import MeasurementError
from opinionsim.metrics import dip, dip_p_value
from tests.support.examples import examples


def _dip_by_programme(sample: list[float]) -> float:
    """Least d for which a distribution within d of the sample's is convex up to a mode, and concave from it.

    One programme for each mode among the values. Unknowns: the values before the mode, the limit below it, the value
    at it, those after, and d.
    """
    x, counts = np.unique(sample, return_counts=True)
    high = np.cumsum(counts) / len(sample)
    low = high - counts / len(sample)
    return min(_programme(x, low, high, mode) for mode in range(len(x)))


def _programme(x: np.ndarray, low: np.ndarray, high: np.ndarray, mode: int) -> float:
    size = len(x) + 2
    d = size - 1
    matrix, bounds = [], []

    def at_most(terms: list[tuple[int, float]], bound: float) -> None:
        row = np.zeros(size)
        for unknown, factor in terms:
            row[unknown] += factor
        matrix.append(row)
        bounds.append(bound)

    before, after = list(range(mode + 1)), list(range(mode + 1, len(x) + 1))
    for unknown, k in [*zip(before, range(mode + 1), strict=True), *zip(after, range(mode, len(x)), strict=True)]:
        below = low[k] if unknown == mode else high[k]
        above = high[k] if unknown == mode + 1 else low[k]
        at_most([(unknown, 1), (d, -1)], above)
        at_most([(unknown, -1), (d, -1)], -below)
    for left, right in zip(range(len(x)), range(1, len(x) + 1), strict=True):
        at_most([(left, 1), (right, -1)], 0)
    for unknowns, places, sign in ((before, x[: mode + 1], 1), (after, x[mode:], -1)):
        for i in range(len(unknowns) - 2):
            first, second = np.diff(places[i : i + 3])
            a, b, c = unknowns[i : i + 3]
            at_most([(b, sign / first), (a, -sign / first), (c, -sign / second), (b, sign / second)], 0)
    done = linprog(np.eye(size)[d], A_ub=np.array(matrix), b_ub=bounds, bounds=[(0, 1)] * d + [(0, None)])
    assert done.status == 0
    return float(done.fun)


samples = st.one_of(
    st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12),
    st.lists(st.integers(0, 200).map(lambda value: value / 200), min_size=1, max_size=10),
)


@examples(60)
@given(samples)
def test_dip_is_the_distance_from_unimodality(sample: list[float]) -> None:
    assert dip(sample) == pytest.approx(_dip_by_programme(sample), abs=1e-7)


@pytest.mark.parametrize(
    ("sample", "value"),
    [
        ([3.0], 0),
        ([3.0] * 8, 0),
        ([0.0, 1.0], 1 / 4),
        ([0.0] * 5 + [1.0] * 5, 1 / 4),
        ([0.0] * 9 + [1.0], 1 / 20),
        (list(range(10)), 1 / 20),
        # 18 in the middle with one on each side: half the share of a tie that is not at the mode.
        ([-1.0, *[0.0] * 18, 1.0], 1 / 40),
        (np.repeat(np.arange(5.0), 4).tolist(), 1 / 10),
    ],
)
def test_closed_forms(sample: list[float], value: float) -> None:
    assert dip(sample) == pytest.approx(value)


def test_compiled_and_plain_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(2).normal(size=(40, 60)).round(1)
    table[::3, :7] = np.nan
    table[5] = np.nan
    found = dip(table)
    monkeypatch.setattr("opinionsim.metrics._dip.compiled", lambda kernel: kernel)
    np.testing.assert_array_equal(dip(table), found)
    assert math.isnan(found[5])


def test_samples_of_any_size_take_little_time() -> None:
    samples = np.random.default_rng(3).random((100, 1000))
    dip(samples[:1])
    start = time.thread_time()
    dip(samples)
    # As Python, these took 1.3 s; compiled, they take about 0.01 s.
    assert time.thread_time() - start < 0.2


def test_p_values_tell_two_camps_from_one() -> None:
    draw = np.random.default_rng(4)
    one = draw.normal(size=60)
    two = np.concatenate([draw.normal(-3, 1, 30), draw.normal(3, 1, 30)])
    p = dip_p_value([one, two], n_null=299)
    assert p[0] > 0.2
    assert p[1] == pytest.approx(1 / 300)
    assert dip_p_value(two, n_null=299) == p[1]


def test_p_values_of_uniform_samples_are_uniform() -> None:
    p = dip_p_value(np.random.default_rng(6).random((200, 30)), n_null=199, seed=1)
    assert abs(np.mean(p <= 0.2) - 0.2) < 4 * math.sqrt(0.2 * 0.8 / 200)
    assert abs(np.mean(p <= 0.6) - 0.6) < 4 * math.sqrt(0.6 * 0.4 / 200)


def test_samples_for_p_values_are_drawn_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = np.random.default_rng(7).normal(size=50)
    whole = dip_p_value(sample, n_null=99)
    monkeypatch.setattr("opinionsim.metrics._dip._BATCH", 700)
    assert dip_p_value(sample, n_null=99) == whole


def test_p_values_of_large_samples_need_little_memory() -> None:
    sample = np.random.default_rng(8).normal(size=20_000)
    tracemalloc.start()
    dip_p_value(sample, n_null=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All 500 samples together are 80 MB.
    assert peak < 60e6


def test_few_opinions_have_no_p_value() -> None:
    assert math.isnan(dip_p_value([0.0, 1.0, 2.0, math.nan]))
    with pytest.raises(MeasurementError, match="n_null"):
        dip_p_value([0.0, 1.0, 2.0, 3.0], n_null=0)
