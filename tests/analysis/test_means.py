"""Means over topics and blocks, against closed forms worked out by other means."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from opinionsim.analysis import Estimate, adjusted, estimate, mean_text, spread_of
from opinionsim.errors import MeasurementError

#: Values of four topics in three blocks.
GRID = np.array([[1.0, 1.4, 0.9], [0.2, 0.8, 0.1], [1.9, 2.2, 2.4], [0.7, 1.0, 0.4]])


def _of(grid: np.ndarray, estimand: str | None = None, *, nested: bool = False, **options: object) -> Estimate:
    """The estimate of a grid of topics and blocks."""
    places = list(product(range(grid.shape[0]), range(grid.shape[1])))
    topics = [f"topic {topic}" for topic, _ in places]
    blocks = [f"block {block} of {topic}" if nested else f"block {block}" for topic, block in places]
    return estimate(topics, blocks, grid.ravel(), estimand, **options)  # type: ignore[arg-type]


def _t_interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    return tuple(stats.t.interval(level, len(values) - 1, values.mean(), stats.sem(values)))


def test_nested_blocks_are_averaged_within_topics_and_topics_are_the_units() -> None:
    found = _of(GRID, nested=True)
    assert (found.low, found.high) == pytest.approx(_t_interval(GRID.mean(axis=1)))
    assert (found.estimand, found.unit, found.n, found.units) == ("topics-like-these", "topic", 4, "4 topics")
    assert found.method == "t over topic means"
    assert found.p_value == pytest.approx(stats.ttest_1samp(GRID.mean(axis=1), 0).pvalue)


def test_these_topics_with_crossed_blocks_have_block_means_for_units() -> None:
    found = _of(GRID, "these-topics")
    assert (found.low, found.high) == pytest.approx(_t_interval(GRID.mean(axis=0)))
    assert (found.unit, found.units, found.method) == ("block", "3 blocks", "t over block means")


def test_these_topics_with_nested_blocks_have_variances_of_their_own() -> None:
    """For two topics this is the interval of Welch, about half the sum instead of the difference."""
    first, second = np.array([1.0, 4.0, 9.0]), np.array([0.2, 0.3, 0.1, 0.6, 0.4, 0.2, 0.3, 0.5])
    found = estimate(["a"] * 3 + ["b"] * 8, range(11), [*first, *second])
    welch = stats.ttest_ind(first, -second, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((welch.low / 2, welch.high / 2))
    assert (found.unit, found.n, found.units) == ("block", 11, "11 blocks")
    assert found.sd == pytest.approx(math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))


def test_topics_of_unequal_size_weigh_alike() -> None:
    topics, values = ["a"] * 4 + ["b"] * 3 + ["c"] * 3, np.array([1.0, 2.0, 3.0, 2.0, 7.0, 8.0, 6.0, 4.0, 6.0, 5.0])
    found = estimate(topics, list("0123456789"), values, "these-topics")
    parts, free = np.array([values[:4].var(ddof=1) / 4, 1 / 3, 1 / 3]), np.array([3, 2, 2])
    df = parts.sum() ** 2 / (parts**2 / free).sum()
    assert found.mean == pytest.approx((2 + 7 + 5) / 3)
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, df) * math.sqrt(parts.sum()) / 3)


def test_crossed_blocks_follow_satterthwaite_or_the_longer_of_topics_and_blocks() -> None:
    topics, blocks = GRID.mean(axis=1), GRID.mean(axis=0)
    rest = GRID - topics[:, None] - blocks + GRID.mean()
    squares = 3 * topics.var(ddof=1), 4 * blocks.var(ddof=1), (rest**2).sum() / 6
    total = squares[0] + squares[1] - squares[2]
    df = total**2 / (squares[0] ** 2 / 3 + squares[1] ** 2 / 2 + squares[2] ** 2 / 6)
    halves = [
        stats.t.ppf(0.975, free) * math.sqrt(square / 12)
        for free, square in ((df, total), (3, squares[0]), (2, squares[1]))
    ]
    found = _of(GRID)
    assert found.high - found.mean == pytest.approx(max(halves))
    assert found.spread is not None
    assert found.spread.halves(0.95) == pytest.approx(halves)
    assert (found.unit, found.n, found.units) == ("topic and block", 3, "4 topics, 3 blocks")
    assert found.sd == pytest.approx(
        math.sqrt((squares[0] - squares[2]) / 3 + (squares[1] - squares[2]) / 4 + squares[2])
    )


def test_components_are_never_below_0() -> None:
    rng = np.random.default_rng(0)
    for grid in rng.normal(size=(200, 4, 3)):
        spread = spread_of(grid, "crossed", "topics-like-these")
        assert spread.components is not None
        assert (spread.components >= 0).all()
        assert spread.halves(0.95).max() >= max(spread.halves(0.95)[1:])


def test_many_grids_at_once_are_as_one_by_one() -> None:
    grids = np.random.default_rng(1).normal(size=(20, 5, 4))
    for design, estimand in product(("nested", "crossed"), ("topics-like-these", "these-topics")):
        whole = np.stack(spread_of(grids, design, estimand).interval())  # type: ignore[arg-type]
        alone = [spread_of(grid, design, estimand).interval() for grid in grids]  # type: ignore[arg-type]
        np.testing.assert_allclose(whole.T, alone)


def test_topics_like_these_are_the_usual_estimand_from_three_topics_on() -> None:
    assert _of(GRID).estimand == "topics-like-these"
    assert _of(GRID[:2]).estimand == "these-topics"
    one = _of(GRID[:1])
    assert (one.estimand, one.units, one.method) == ("these-topics", "3 blocks", "t over blocks")


def test_redraws_are_averaged_within_their_block_and_are_no_units() -> None:
    once = estimate(["a"] * 3, ["1", "2", "3"], [1.0, 2.0, 4.0])
    twice = estimate(["a"] * 4, ["1", "2", "3", "3"], [1.0, 2.0, 3.0, 5.0])
    assert (twice.n, twice.mean, twice.low) == (3, once.mean, once.low)


@pytest.mark.parametrize(
    ("grid", "estimand", "nested", "reason"),
    [
        (GRID[:2], "topics-like-these", True, "too few independent units (2 topics), at least 3 are needed"),
        (GRID[:, :2], "topics-like-these", False, "too few independent units (4 topics, 2 blocks)"),
        (GRID[:, :2], "these-topics", False, "too few independent units (2 blocks)"),
        (GRID[:, :1], "these-topics", True, "too few independent units (1 block of a topic)"),
        (GRID[:1], "topics-like-these", False, "one topic does not tell how topics differ"),
        (np.ones((4, 3)), "topics-like-these", True, "all units have the same value"),
    ],
)
def test_there_is_no_interval_without_enough_units_that_differ(
    grid: np.ndarray, estimand: str, nested: bool, reason: str
) -> None:
    found = _of(grid, estimand, nested=nested)
    assert found.mean == pytest.approx(grid.mean())
    assert found.reason.startswith(reason)
    assert all(math.isnan(each) for each in (found.low, found.high, found.p_value, *found.effect))
    assert found.finding(0.1) == ""


def test_a_grid_with_gaps_keeps_its_values() -> None:
    """What lacks is what topic and block say: a grid that is their sum has the mean and ends of the whole one."""
    sums = np.arange(5.0)[:, None] + np.array([0.0, 0.3, 0.1, 0.7, 0.5, 0.2])
    gaps = np.where(np.eye(5, 6, dtype=bool), math.nan, sums)
    for estimand in ("topics-like-these", "these-topics"):
        whole, found = _of(sums, estimand), _of(gaps, estimand)
        assert (found.mean, found.low, found.high) == pytest.approx((whole.mean, whole.low, whole.high))
        assert (found.units, found.left_out) == (whole.units, 5)
    # One value of a topic is all that is known of it, and no jackknife is without the block that has it.
    gaps[4, 1:] = math.nan
    gaps[4, 0] = 1.0
    assert not _of(gaps + np.random.default_rng(0).normal(size=gaps.shape)).reason


@pytest.mark.parametrize(
    ("gaps", "estimand", "reason"),
    [
        ([(0, 4)], "topics-like-these", "too few independent units (2 topics, 5 blocks), at least 3 are needed"),
        ([(0, 0), (1, 1), (1, 2)], "these-topics", ""),
        ([(0, 1), (0, 2), (0, 3), (0, 4)], "these-topics",
         "too many values are missing for the others to connect topics and blocks without each single block, "
         "as a jackknife needs"),
        # A chain that has no value to spare.
        ([(0, 1), (0, 2), (0, 4), (1, 0), (1, 1), (2, 0), (2, 2), (2, 3)], "topics-like-these",
         "too many values are missing for the others to tell a rest beside the effects of topics and blocks"),
    ],
)  # fmt: skip
def test_a_mean_without_an_interval_is_that_of_least_squares_too(
    gaps: list[tuple[int, int]], estimand: str, reason: str
) -> None:
    """Sums of topics and blocks have the mean of the whole grid, whatever is missing."""
    n = 2 if "too few" in reason else 3
    sums = np.arange(n)[:, None] + np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    kept = sums.copy()
    kept[tuple(np.transpose(gaps))] = math.nan
    found = _of(kept, estimand)
    assert found.mean == pytest.approx(sums.mean())
    assert (found.reason, math.isnan(found.low)) == (reason, bool(reason))


def test_values_that_do_not_connect_topics_and_blocks_have_no_interval() -> None:
    """Two halves that share nothing, of which least squares have no mean."""
    grid = np.where(np.kron(np.eye(2), np.ones((2, 3))) == 0, math.nan, np.arange(24.0).reshape(4, 6) ** 1.5)
    found = _of(grid)
    assert found.reason == (
        "too many values are missing for the others to connect topics and blocks, so that the mean is that of topics"
    )
    assert found.mean == pytest.approx(np.nanmean(grid, axis=1).mean())
    assert math.isnan(found.low)


def test_the_variance_of_a_grid_with_gaps_is_that_of_the_estimator() -> None:
    """Against the variance of least squares as a linear function of the values, with known components."""
    rng = np.random.default_rng(3)
    gaps = rng.permutation(40).reshape(5, 8) < 6
    topics, blocks, rest = (
        rng.normal(size=(4000, 5, 1)),
        0.5 * rng.normal(size=(4000, 1, 8)),
        rng.normal(size=(4000, 5, 8)),
    )
    found = spread_of(np.where(gaps, math.nan, topics + blocks + rest), "crossed", "topics-like-these")
    assert found.components is not None
    assert found.mean.std() ** 2 == pytest.approx((found.errors[:, 0] ** 2).mean(), rel=0.08)
    assert found.components.mean(axis=0) == pytest.approx([1.0, 0.25, 1.0], abs=0.1)


def test_d_z_has_the_interval_of_the_noncentral_t() -> None:
    values = np.array([0.3, 0.1, 0.5, 0.2, 0.4, 0.6])
    found = estimate(["a"] * 6, list("123456"), values)
    d, low, high = found.effect
    assert d == pytest.approx(values.mean() / values.std(ddof=1))
    observed = d * math.sqrt(6)
    assert stats.nct.cdf(observed, 5, low * math.sqrt(6)) == pytest.approx(0.975, abs=1e-6)
    assert stats.nct.cdf(observed, 5, high * math.sqrt(6)) == pytest.approx(0.025, abs=1e-6)


@pytest.mark.parametrize(
    ("shift", "finding"), [(1.0, "larger"), (-1.0, "larger"), (0.0, "equivalent"), (0.3, "undecided")]
)
def test_findings_beside_the_smallest_effect_of_interest(shift: float, finding: str) -> None:
    values = shift + np.array([-0.1, 0.05, 0.0, 0.1, -0.05])
    found = estimate(["a"] * 5, list("12345"), values)
    assert found.finding(0.3) == finding
    inside = [stats.ttest_1samp(values, bound, alternative=side).pvalue < 0.05
              for bound, side in ((-0.3, "greater"), (0.3, "less"))]  # fmt: skip
    assert (found.finding(0.3) == "equivalent") == all(inside)


def test_holm_adjusts_as_published() -> None:
    """The example of Holm 1979 in its usual form: the smallest times 4, then 3, 2 and 1, never decreasing."""
    assert adjusted([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    with_gap = adjusted([0.02, math.nan, 0.9])
    assert with_gap[[0, 2]].tolist() == pytest.approx([0.04, 0.9])
    assert math.isnan(with_gap[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": [1.0, math.inf]}, "finite"),
        ({"values": [math.nan, math.nan]}, "no value"),
        ({"values": [1.0, 2.0], "level": 1.0}, "level"),
        ({"values": [1.0, 2.0], "estimand": "all topics"}, "topics-like-these, these-topics"),
    ],
)
def test_what_has_no_mean_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        estimate(["a", "a"], ["1", "2"], **options)  # type: ignore[arg-type]


def test_means_of_replicates_as_printed() -> None:
    assert mean_text([1.0, 1.5, 1.1]) == "1.20 [0.54, 1.86]"
    assert mean_text([1.0, 2.0]) == "1.5"
    assert mean_text([2.0, 2.0, 2.0]) == "2"
    assert mean_text([1e-4, 2e-4, 3e-4]) == "0.00020 [\N{MINUS SIGN}0.00005, 0.00045]"
