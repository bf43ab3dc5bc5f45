"""Every scalar metric against closed forms, slow oracles and properties."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import opinionsim as osim
from opinionsim import metrics
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics import METRICS, compute_metrics
from tests.support.examples import examples

UNIT = (0.0, 1.0)
RING = (np.arange(12), np.roll(np.arange(12), 1))
TIES = (np.concatenate(RING), np.concatenate(RING[::-1]))
#: What metrics may need, for twelve agents.
GIVEN: dict[str, Any] = {"range": UNIT, "network": TIES, "initial": np.linspace(0, 1, 12)}

unit_opinions = st.lists(st.floats(0, 1), min_size=12, max_size=12).map(np.array)
rating = st.lists(st.integers(0, 4).map(lambda point: point / 4), min_size=12, max_size=12).map(np.array)
opinions = st.one_of(unit_opinions, rating)
#: A property is checked for each metric, so that examples add up.
few = settings(max_examples=4)
every = pytest.mark.parametrize("name", METRICS)

#: Metrics that change with the unit of opinion, and by which power of it.
POWERS = {
    **dict.fromkeys(("bias", "diversity", "median", "spread", "mean_distance"), 1),
    **dict.fromkeys(("disagreement", "polarization", "internal_conflict"), 2),
}
#: Metrics that follow a shift of all opinions and of the range.
SHIFTED = ("bias", "median")
#: Metrics that turn with the scale upside down.
ODD = ("bias", "median", "skewness")
#: Bounds of the values, on 0 to 1.
BOUNDS = {
    **dict.fromkeys(("relative_bias", "extremeness", "extreme_share", "spread", "dispersion", "coverage"), (0, 1)),
    **dict.fromkeys(("esteban_ray", "largest_cluster", "distinctness", "group_divergence", "size_parity"), (0, 1)),
    **dict.fromkeys(
        ("group_consensus", "same_side_share", "active_link_density", "largest_component", "bias", "median"), (0, 1)
    ),
    **dict.fromkeys(("agreement", "neighbour_correlation", "assortativity", "ei_index"), (-1, 1)),
    "random_walk_controversy": (-1, 1),
    "modularity": (-0.5, 1),
    "entropy": (0, math.log(5)),
    **dict.fromkeys(("clusters", "effective_clusters", "group_count", "regions", "components"), (1, 12)),
    **dict.fromkeys(("largest_region", "partial_overlap"), (0, 1)),
    **{"diversity": (0, 0.5), "dip": (0, 0.25), "opinion_polarization_index": (0, 100), "regionalization": (0, 11)},
}


def measured(name: str, values: Any, limits: tuple[float, float] = UNIT, **options: Any) -> Any:
    """A metric with whatever it needs."""
    metric = METRICS[name]
    needed = {key: GIVEN[key] for key in metric.needs} | ({"range": limits} if "range" in metric.needs else {})
    return metric.function(values, **{**needed, **options})


# Closed forms --------------------------------------------------------------------------------------------------

POLES = np.repeat([0.0, 1.0], 6)
CONSENSUS = np.full(12, 0.3)
NAN = math.nan


@pytest.mark.parametrize(
    ("name", "poles", "consensus"),
    [
        ("bias", 0.5, 0.3),
        ("diversity", 0.5, 0),
        ("median", 0.5, 0.3),
        ("skewness", 0, NAN),
        ("relative_bias", 0, 0.4),
        ("relative_diversity", math.sqrt(12 / 11), 0),
        ("extremeness", 1, 0.4),
        ("extreme_share", 1, 0),
        ("spread", 1, 0),
        ("dispersion", 1, 0),
        ("coverage", 1 / 12, 1 / 12),
        ("regionalization", 1, 0),
        ("mean_distance", 36 / 66, 0),
        ("entropy", math.log(2), 0),
        ("esteban_ray", 1, 0),
        ("dip", 0.25, 0),
        ("agreement", -1, 1),
        ("opinion_polarization_index", 100, 0),
        ("clusters", 2, 1),
        ("effective_clusters", 2, 1),
        ("largest_cluster", 0.5, 1),
        ("group_count", 2, 1),
        ("distinctness", 1, NAN),
        ("group_divergence", 1, NAN),
        ("group_consensus", 1, 1),
        ("size_parity", 1, NAN),
        # On the ring each of four agents at a border hears both sides; opinions deviate by half.
        ("neighbour_correlation", 8 / math.sqrt(12 * 8), NAN),
        ("assortativity", 1 - 2 * 4 / 24, NAN),
        ("same_side_share", 20 / 24, 1),
        ("ei_index", -16 / 24, -1),
        # All agents of a ring are hubs: a walk is one step, and two of six members of a side leave with chance 1/2.
        ("random_walk_controversy", (5 / 6) ** 2 - (1 / 6) ** 2, NAN),
        # Three communities of four, or four of three.
        ("modularity", 5 / 12, 5 / 12),
        ("active_link_density", 4 / 24, 0),
        ("components", 1, 1),
        ("largest_component", 1, 1),
        ("disagreement", 2, 0),
        ("polarization", 3, 0),
        ("regions", 2, 1),
        ("largest_region", 0.5, 1),
        ("partial_overlap", 0, 0),
    ],
)
def test_two_poles_and_consensus(name: str, poles: float, consensus: float) -> None:
    assert measured(name, POLES) == pytest.approx(poles, abs=1e-12, nan_ok=True)
    assert measured(name, CONSENSUS) == pytest.approx(consensus, abs=1e-12, nan_ok=True)


#: The middles of 1000 equal parts of 0 to 1.
UNIFORM = (np.arange(1000) + 0.5) / 1000


@pytest.mark.parametrize(
    ("name", "value", "within"),
    [
        ("bias", 1 / 2, 1e-12),
        ("diversity", math.sqrt(1 / 12), 1e-6),
        ("skewness", 0, 1e-12),
        ("extremeness", 1 / 2, 1e-12),
        ("extreme_share", 1 / 10, 1e-12),
        ("dispersion", 1 / 2, 1e-12),
        ("coverage", 1, 1e-12),
        ("regionalization", 0, 0),
        ("mean_distance", 1 / 3, 1e-3),
        ("entropy", math.log(5), 1e-12),
        ("bimodality", 5 / 9, 5e-3),
        ("dip", 1 / 2000, 1e-12),
        ("agreement", 0, 1e-12),
        ("esteban_ray", 2**2.6 * 0.2**2.6 * 2, 1e-9),
        ("opinion_polarization_index", (2.14 + 5.40 + 3.96) / 25 / 0.0099, 1e-9),
        ("group_count", 1, 0),
        ("group_consensus", 1 / 2, 1e-12),
        ("clusters", 1, 0),
    ],
)
def test_uniform_opinions(name: str, value: float, within: float) -> None:
    assert measured(name, UNIFORM) == pytest.approx(value, abs=within)


def test_coverage_counts_the_halo_of_the_lowest_agent_as_of_any_other() -> None:
    assert metrics.coverage([0.2, 0.9, 0.9, 0.9], UNIT) == pytest.approx(0.475)
    assert metrics.coverage([0.9, 0.9, 0.2, 0.9], UNIT) == pytest.approx(0.475)


def test_published_example_of_agreement() -> None:
    """Van der Eijk 2001, p. 331: 1000 respondents on seven points, A = 0.61."""
    ratings = np.repeat(np.arange(1, 8), [30, 40, 210, 130, 530, 50, 10])
    assert metrics.agreement(ratings, (1, 7), bins=7) == pytest.approx(0.6113333, abs=1e-7)


def test_agreement_of_single_layers() -> None:
    """One layer: a quarter less for each filled bin beyond the first, where they touch."""
    for filled, value in [((0, 1), 0.75), ((1, 2, 3), 0.5), ((0, 1, 2, 3), 0.25), ((0, 4), -1), ((0, 1, 2, 3, 4), 0)]:
        assert metrics.agreement(np.array(filled) - 2.0, (-2, 2)) == pytest.approx(value)


def test_bimodality_is_that_of_corrected_sample_moments() -> None:
    values = np.random.default_rng(3).gamma(2, size=40)
    skew, excess = stats.skew(values, bias=False), stats.kurtosis(values, bias=False)
    expected = (skew**2 + 1) / (excess + 3 * 39**2 / (38 * 37))
    assert metrics.bimodality(values) == pytest.approx(expected)
    assert metrics.skewness(values) == pytest.approx(stats.skew(values))


def test_two_poles_are_close_to_one_bimodal() -> None:
    assert metrics.bimodality(np.repeat([0.0, 1.0], 10_000)) == pytest.approx(1, abs=1e-3)


def test_esteban_ray_of_ratings_on_five_points() -> None:
    shares = np.array([0.3, 0.1, 0.2, 0.15, 0.25])
    ratings = np.repeat([-2, -1, 0, 1, 2], (shares * 20).round().astype(int))
    expected = sum(shares[i] ** 2 * shares[j] * abs(i - j) / 4 for i in range(5) for j in range(5)) * 4
    assert metrics.esteban_ray(ratings, (-2, 2), alpha=1.0) == pytest.approx(expected)


def test_entropy_is_that_of_the_shares_of_bins() -> None:
    ratings = np.repeat([-2, -1, 0, 1, 2], [6, 2, 4, 3, 5])
    expected = stats.entropy([6, 2, 4, 3, 5])
    assert metrics.entropy(ratings, (-2, 2)) == pytest.approx(expected)
    assert metrics.entropy(ratings, (-2, 2), normalised=True) == pytest.approx(expected / math.log(5))
    # Bins of 1 wide, the last with its upper end: those of -1 and 0 are apart, those of 1 and 2 are one.
    assert metrics.entropy(ratings, (-2, 2), bins=4) == pytest.approx(stats.entropy([6, 2, 4, 8]))
    with pytest.raises(MeasurementError, match="bins must be a whole number of at least 2; got 1"):
        metrics.entropy(ratings, (-2, 2), bins=1)


# Fragmentation -------------------------------------------------------------------------------------------------


def _density_directly(values: np.ndarray, grid: np.ndarray, bandwidth: float) -> np.ndarray:
    return stats.norm.pdf(grid[:, None], values, bandwidth).mean(axis=1)


@given(unit_opinions, st.sampled_from([0.02, 0.05, 0.3]), st.sampled_from([0.01, 0.02]))
def test_binned_density_equals_the_direct_sum(values: np.ndarray, bandwidth: float, step: float) -> None:
    grid, found = metrics.density(values, UNIT, bandwidth, step)
    np.testing.assert_allclose(found, _density_directly(values, grid, bandwidth), atol=1e-10 * 0.4 / bandwidth)


def test_fragmentation_is_that_of_the_article_in_its_own_units() -> None:
    values = np.clip(np.random.default_rng(1).normal(0, 1.5, 500), -3.5, 3.5)
    grid = np.linspace(-3.5, 3.5, 701)
    variation = np.abs(np.diff(_density_directly(values, grid, 0.1))).sum()
    expected = values.std(ddof=1) / (4 * 3.5) * variation
    assert metrics.fragmentation(values, (-3.5, 3.5)) == pytest.approx(expected, rel=1e-9)
    assert metrics.fragmentation(values, (-3.5, 3.5), half_range=None) == pytest.approx(expected, rel=1e-9)


def test_fragmentation_of_two_poles_keeps_half_of_each_kernel() -> None:
    """Peaks at the ends fall to nothing in the middle: variation 2 * (1/2) * phi(0) / h, h = 0.1."""
    expected = math.sqrt(12 / 11) / 4 * 10 / math.sqrt(2 * math.pi)
    assert metrics.fragmentation(POLES, UNIT) == pytest.approx(expected, rel=1e-9)
    inner = np.repeat([0.25, 0.75], 6)
    both_flanks = math.sqrt(12 / 11) / 8 * 20 / math.sqrt(2 * math.pi)
    assert metrics.fragmentation(inner, UNIT) == pytest.approx(both_flanks, rel=1e-3)


# Properties ----------------------------------------------------------------------------------------------------


@every
@few
@given(opinions)
def test_values_keep_to_their_bounds(name: str, values: np.ndarray) -> None:
    low, high = BOUNDS.get(name, (-math.inf, math.inf))
    if name in ("relative_diversity", "fragmentation", "duclos_esteban_ray", *POWERS) and name not in BOUNDS:
        low = 0
    found = measured(name, values)
    assert math.isnan(found) or low - 1e-9 <= found <= high + 1e-9


@every
@few
@given(rating, st.sampled_from([0.5, 2.0, 8.0]), st.sampled_from([-4.0, 1.0, 16.0]))
def test_the_unit_and_origin_of_opinion_do_not_matter(
    name: str, values: np.ndarray, unit: float, origin: float
) -> None:
    options = {"delta": 0.1 * unit} if "delta" in METRICS[name].options else {}
    if name == "internal_conflict":
        options = {"initial": GIVEN["initial"] * unit + origin}
    limits = (origin, origin + unit)
    moved = measured(name, values * unit + origin, limits, **options)
    still = measured(name, values, **({"delta": 0.1} if "delta" in options else {}))
    expected = still * unit ** POWERS.get(name, 0) + (origin if name in SHIFTED else 0)
    assert moved == pytest.approx(expected, rel=1e-6, abs=1e-8, nan_ok=True)


@every
@few
@given(rating)
def test_upside_down(name: str, values: np.ndarray) -> None:
    options = {"initial": 1 - GIVEN["initial"]} if name == "internal_conflict" else {}
    turned, still = measured(name, 1 - values, **options), measured(name, values)
    if name == "skewness":
        still = -still
    elif name in ODD:
        still = 1 - still
    assert turned == pytest.approx(still, rel=1e-6, abs=1e-8, nan_ok=True)


@every
@few
@given(opinions, st.permutations(range(12)))
def test_who_holds_which_opinion_matters_to_networks_alone(name: str, values: np.ndarray, order: list[int]) -> None:
    metric = METRICS[name]
    options: dict[str, Any] = {}
    if "network" in metric.needs:
        rank = np.argsort(order)
        options = {"network": tuple(rank[ends] for ends in TIES)}
    if "initial" in metric.needs:
        options = {"initial": GIVEN["initial"][order]}
    shuffled = measured(name, values[order], **options)
    assert shuffled == pytest.approx(measured(name, values), rel=1e-6, abs=1e-9, nan_ok=True)


@every
@few
@given(st.lists(opinions, min_size=1, max_size=4), st.data())
def test_rows_are_measured_as_one_by_one(name: str, rows: list[np.ndarray], data: st.DataObject) -> None:
    table = np.array(rows)
    gone = data.draw(st.lists(st.integers(0, table.size - 1), max_size=20))
    table.ravel()[gone] = np.nan
    together = measured(name, table[:, None])
    assert together.shape == (len(rows), 1)
    one_by_one = [measured(name, row) for row in table]
    np.testing.assert_allclose(together[:, 0], one_by_one, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.needs <= {"range"}])
@few
@given(opinions, st.integers(0, 5))
def test_missing_opinions_are_left_out(name: str, values: np.ndarray, more: int) -> None:
    padded = np.insert(values, np.linspace(0, 12, more).astype(int), np.nan)
    assert measured(name, padded) == pytest.approx(measured(name, values), rel=1e-6, abs=1e-9, nan_ok=True)


@every
def test_nobody_has_an_opinion(name: str) -> None:
    assert math.isnan(measured(name, np.full(12, np.nan)))


@every
def test_one_agent_alone_has_one(name: str) -> None:
    values = np.full(12, np.nan)
    values[4] = 0.75
    assert np.isscalar(measured(name, values))


@every
def test_records_of_32_bits_may_overshoot_by_their_rounding(name: str) -> None:
    values = np.float32([0.1] * 6 + [0.9] * 6)
    values[0], values[-1] = np.float32(-3e-8), np.nextafter(np.float32(1), np.float32(2))
    assert not math.isinf(measured(name, values))


# Slow oracles --------------------------------------------------------------------------------------------------


@given(opinions)
def test_mean_distance_is_that_of_all_pairs(values: np.ndarray) -> None:
    expected = np.mean([abs(a - b) for a, b in combinations(values, 2)])
    assert metrics.mean_distance(values) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_coverage_is_the_length_of_a_union(values: list[float]) -> None:
    """Walked over the stretches between all ends of intervals."""
    half = 0.5 / len(values)
    ends = np.unique(np.clip([value + side * half for value in values for side in (-1, 1)], 0, 1))
    middles = (ends[1:] + ends[:-1]) / 2
    inside = [any(abs(middle - value) < half for value in values) for middle in middles]
    assert metrics.coverage(values, UNIT) == pytest.approx(np.diff(ends)[inside].sum(), abs=1e-9)


@given(opinions, st.sampled_from([0.0, 0.05, 0.25]))
def test_clusters_are_components_of_agents_that_are_close(values: np.ndarray, delta: float) -> None:
    label = list(range(12))
    for _ in label:
        for i, j in combinations(range(12), 2):
            # A pair is tied if nothing but gaps up to delta lies between, which neighbours in order decide.
            if abs(values[i] - values[j]) <= delta:
                label[i] = label[j] = min(label[i], label[j])
    sizes = np.array([label.count(one) for one in set(label)])
    assert metrics.clusters(values, delta) == len(sizes)
    assert metrics.effective_clusters(values, delta) == pytest.approx(144 / (sizes**2).sum())
    assert metrics.largest_cluster(values, delta) == sizes.max() / 12


@given(
    st.integers(0, 2**32), st.sampled_from([0.0, 1e-9, 1e-4, 0.005, 0.01, 0.25, 3.0]), st.sampled_from([0, 3, 9, None])
)
@examples(60)
def test_clusters_of_many_agents_are_those_between_wide_gaps(seed: int, delta: float, decimals: int | None) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(rng.integers(0, 4, (3, 1500)) * 0.3, rng.choice([0.0, 1e-3, 0.1]))
    values = values if decimals is None else values.round(decimals)
    values[0, :700] = np.nan
    values[2] = np.nan
    sizes = []
    for row in values[:2]:
        ordered = np.sort(row[~np.isnan(row)])
        sizes.append(np.array([part.size for part in np.split(ordered, np.flatnonzero(np.diff(ordered) > delta) + 1)]))
    assert metrics.clusters(values, delta).tolist()[:2] == [each.size for each in sizes]
    assert metrics.largest_cluster(values, delta).tolist()[:2] == [each.max() / each.sum() for each in sizes]
    expected = [each.sum() ** 2 / (each**2).sum() for each in sizes]
    assert metrics.effective_clusters(values, delta)[:2] == pytest.approx(expected, rel=1e-12)
    assert np.isnan([metrics.clusters(values, delta)[2], metrics.largest_cluster(values, delta)[2]]).all()


@given(opinions)
def test_duclos_esteban_ray_is_that_of_all_pairs(values: np.ndarray) -> None:
    density = _density_directly(values, values, 0.05)
    expected = np.mean([density[i] ** 0.5 * np.abs(values[i] - values).mean() for i in range(12)])
    assert metrics.duclos_esteban_ray(values, UNIT, alpha=0.5) == pytest.approx(expected, rel=5e-3, abs=1e-9)


@given(opinions)
def test_agreement_layer_by_layer(values: np.ndarray) -> None:
    counts = np.bincount(np.minimum((values * 5).astype(int), 4), minlength=5)
    total = 0.0
    for level in range(1, counts.max() + 1):
        layer = (counts >= level).astype(int).tolist()
        triples = list(combinations(layer, 3))
        up, down = triples.count((1, 1, 0)) + triples.count((0, 1, 1)), triples.count((1, 0, 1))
        unimodality = 1.0 if up + down == 0 else (3 * up - 4 * down) / (3 * (up + down))
        total += sum(layer) / 12 * unimodality * (1 - (sum(layer) - 1) / 4)
    assert metrics.agreement(values, UNIT) == pytest.approx(total, abs=1e-12)


# Groups --------------------------------------------------------------------------------------------------------

CAMPS = np.array([0.0, 0.1, 0.2, 0.3, 0.7, 0.9])
NAMES = ["left", "left", "left", "left", "right", "right"]


def test_groups_that_are_named() -> None:
    assert metrics.group_count(CAMPS, UNIT, NAMES) == 2
    assert metrics.group_divergence(CAMPS, UNIT, NAMES) == pytest.approx(0.65)
    assert metrics.group_consensus(CAMPS, UNIT, NAMES) == pytest.approx(1 - (2 * 0.1 + 2 * 0.1) / 2)
    assert metrics.size_parity(CAMPS, UNIT, NAMES) == pytest.approx(stats.entropy([4, 2], base=2))
    assert metrics.distinctness(CAMPS, UNIT, NAMES) == 1


def test_alike_groups_are_not_distinct() -> None:
    values = np.repeat([0.1, 0.5, 0.9], 2)
    assert metrics.distinctness(values, UNIT, ["a", "b"] * 3) == pytest.approx(0)
    assert metrics.distinctness([0.1, 0.1, 0.1, 0.9], UNIT, ["a", "a", "b", "b"]) == pytest.approx(0.5)


def test_pairs_of_three_groups_count_the_same() -> None:
    values = [0.0] * 8 + [0.5, 1.0]
    names = [0] * 8 + [1, 2]
    assert metrics.group_divergence(values, UNIT, names) == pytest.approx((0.5 + 1 + 0.5) / 3)


def test_an_agent_without_group_or_opinion_is_in_none() -> None:
    assert metrics.group_count([0.1, 0.2, 0.9, math.nan], UNIT, ["a", None, "b", "c"]) == 2
    assert metrics.group_count([0.1, 0.2, 0.9, math.nan], UNIT, [1, math.nan, 2, 3]) == 2


@pytest.mark.parametrize("centres", [[0.5], [0.2, 0.8], [0.1, 0.5, 0.9], [0.05, 0.35, 0.65, 0.95]])
def test_valleys_part_what_lies_apart(centres: list[float]) -> None:
    draw = np.random.default_rng(5)
    values = np.clip(np.concatenate([draw.normal(centre, 0.02, 50) for centre in centres]), 0, 1)
    expected = np.repeat(np.arange(len(centres)), 50)
    np.testing.assert_array_equal(metrics.valley_labels(values, UNIT), expected)


def test_rounding_makes_no_valleys() -> None:
    assert set(metrics.valley_labels(UNIFORM, UNIT)) == {0}


# Several at once, and bad input --------------------------------------------------------------------------------


def test_names_are_public_and_those_of_functions() -> None:
    for name, metric in METRICS.items():
        assert getattr(metrics, name) is metric.function


def test_all_that_suffices_is_measured() -> None:
    few = compute_metrics(POLES)
    more = compute_metrics(POLES, range=UNIT)
    every_one = compute_metrics(POLES, range=UNIT, network=TIES, initial=CONSENSUS)
    assert set(few) < set(more) < set(every_one) == set(METRICS)


def test_options_go_to_all_that_take_them_or_to_one() -> None:
    found = compute_metrics(
        POLES, ["diversity", "relative_diversity", "esteban_ray"], range=UNIT, ddof=0, esteban_ray={"alpha": 1.0}
    )
    assert list(found) == ["diversity", "relative_diversity", "esteban_ray"]
    assert [float(value) for value in found.values()] == pytest.approx([0.5, 1, 1])
    own = compute_metrics(POLES, ["diversity", "relative_diversity"], range=UNIT, diversity={"ddof": 1})
    assert own["diversity"] == pytest.approx(own["relative_diversity"] / 2)


@every
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((3, 0), 0.5), "at least one agent"),
        ([0.5, math.inf], "finite"),
        (0.5, "single number"),
        (["a", "b"], "numbers"),
    ],
)
def test_opinions_that_are_none(name: str, values: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        compute_metrics(values, name, **GIVEN)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if "range" in metric.needs])
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((1, 0), "low < high"),
        ((0, 0), "low < high"),
        ((0, math.inf), "finite"),
        ((0, math.nan), "finite"),
        ((0, 1, 2), "two numbers"),
        ("ab", "two numbers"),
        ((0.0, 0.5), r"0 to 0.5; got 1 \(6 of 12"),
    ],
)
def test_ranges_that_are_none(name: str, limits: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        measured(name, POLES, limits)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compute_metrics(POLES, "charm"), "unknown metric 'charm'; valid: bias"),
        (lambda: compute_metrics(POLES, "coverage"), "coverage needs range"),
        (lambda: compute_metrics(POLES, "ei_index"), "needs network and range"),
        (lambda: compute_metrics(POLES, "spread", alpha=1), "'alpha' belongs to none"),
        (lambda: compute_metrics(POLES, "spread", dip={}), "'dip' belongs to none"),
        (lambda: compute_metrics(POLES, "diversity", diversity={"alpha": 1}), "a mapping of ddof"),
        (lambda: metrics.diversity(POLES, ddof=0.5), "ddof"),
        (lambda: metrics.relative_diversity(POLES, UNIT, ddof=-1), "ddof"),
        (lambda: metrics.extreme_share(POLES, UNIT, threshold=1), "threshold"),
        (lambda: metrics.regionalization(POLES, UNIT, gap=0), "gap"),
        (lambda: metrics.esteban_ray(POLES, UNIT, alpha=1.7), "alpha"),
        (lambda: metrics.esteban_ray(POLES, UNIT, bins=2.5), "bins"),
        (lambda: metrics.agreement(POLES, UNIT, bins=2), "at least 3"),
        (lambda: metrics.duclos_esteban_ray(POLES, UNIT, alpha=0.2), "alpha"),
        (lambda: metrics.fragmentation(POLES, UNIT, bandwidth=0), "bandwidth"),
        (lambda: metrics.fragmentation(POLES, UNIT, step=0.2), "step"),
        (lambda: metrics.fragmentation(POLES, UNIT, half_range=-1), "half_range"),
        (lambda: metrics.clusters(POLES, delta=-0.1), "delta"),
        (lambda: metrics.valley_labels(POLES, UNIT, depth=1), "depth"),
        (lambda: metrics.group_count(POLES, UNIT, ["a", "b"]), "one group per agent"),
        (lambda: metrics.internal_conflict(POLES, [0.0, 1.0]), "initial must have shape"),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        call()


def test_a_metric_of_ones_own_is_computed_by_its_name_and_as_the_object() -> None:
    @osim.part("metric", name="twice-the-mean", version=1)
    def doubled(opinions: Any) -> float:
        return 2 * float(np.mean(opinions))

    for names in ("twice-the-mean", ["twice-the-mean"], doubled, [doubled]):
        assert compute_metrics([1.0, 2.0], names) == {"twice-the-mean": 3.0}
    assert list(compute_metrics([1.0, 2.0], ["bias", doubled])) == ["bias", "twice-the-mean"]
    with pytest.raises(SpecError, match="is not marked as a part; mark it with"):
        compute_metrics(POLES, lambda opinions: 1.0)


def test_a_metric_is_what_the_docstring_of_its_function_says() -> None:
    def width(opinions: Any, range: Any, least: float = 0.5) -> Any:
        """Width of what is held.

        Notes
        -----
        - Formula: ``max x - min x``
        - Values: from 0, where all
          agree
        - Source: Somebody 1999, doi 10.1000/1
        """

    told = metrics.Metric.of("own:width", width)
    assert (told.meaning, told.formula, told.values) == (
        "Width of what is held.",
        "max x - min x",
        "from 0, where all agree",
    )
    assert (told.source, told.doi, told.pitfall) == ("Somebody 1999", "10.1000/1", "")
    assert (told.needs, told.options, set(told.takes)) == ({"range"}, {"least": 0.5}, {"range", "least"})
