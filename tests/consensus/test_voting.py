from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import pmean, rankdata

from opinionsim.consensus.voting import (
    RULES,
    Rule,
    compare_rules,
    elect,
    power_mean,
    widest_paths,
)
from opinionsim.errors import MeasurementError, SpecError

#: Every kind of rule, for ballots of scores.
EVERY = [
    "schulze",
    "borda",
    "copeland",
    "plurality",
    {"kind": "approval", "threshold": 4},
    {"kind": "approval", "top": 2},
    "utilitarian",
    "nash",
    "egalitarian",
    {"kind": "power-mean", "alpha": 0.5},
    {"kind": "power-mean", "alpha": 3, "transform": "shift"},
    {"kind": "power-mean", "alpha": 2, "transform": "exp"},
]
RANKED = ["schulze", "borda", "copeland", "plurality", {"kind": "approval", "top": 2}]


def spelled(*votes: tuple[int, str]) -> np.ndarray:
    """Ballots of a textbook: how many voters, and the candidates from the best, named A, B, ..."""
    letters = "".join(sorted(votes[0][1]))
    return np.array([[ballot.index(each) + 1 for each in letters] for count, ballot in votes for _ in range(count)])


SCHULZE_2011 = spelled(
    (5, "ACBED"), (5, "ADECB"), (8, "BEDAC"), (3, "CABED"), (7, "CAEBD"), (2, "CBADE"), (7, "DCEBA"), (8, "EBADC")
)  # fmt: skip
#: Memphis A, Nashville B, Chattanooga C and Knoxville D by distance.
TENNESSEE = spelled((42, "ABCD"), (26, "BCDA"), (15, "CDBA"), (17, "DCBA"))
CYCLE = spelled((1, "ABC"), (1, "BCA"), (1, "CAB"))
HABERMAS_MACHINE = [
    *[[0, 2, 1, 3]] * 5, *[[0, 3, 1, 2]] * 2, *[[0, 3, 2, 1]] * 3, *[[1, 0, 2, 3]] * 4, *[[3, 1, 0, 2]] * 3,
    *[[3, 2, 0, 1]] * 3, *[[1, 3, 2, 0]] * 1, *[[2, 1, 3, 0]] * 5, *[[3, 2, 1, 0]] * 4,
]  # fmt: skip


@st.composite
def ratings(draw: st.DrawFn) -> np.ndarray:
    """Ballots of scores: positive numbers, many of them equal."""
    shape = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    values = st.lists(st.integers(1, 14), min_size=math.prod(shape), max_size=math.prod(shape))
    return np.array(draw(values), dtype=float).reshape(shape) / 2


# -- closed forms ----------------------------------------------------------------------------------------------------


def test_thirty_voters_of_the_habermas_machine() -> None:
    found = elect(HABERMAS_MACHINE)
    assert found.ranks.tolist() == [1, 3, 2, 0]
    assert (found.winner, found.n, found.missing) == (3, 30, 0)


def test_two_opposed_ballots_tie() -> None:
    found = elect([[0, 1], [1, 0]])
    assert found.ranks.tolist() == [0, 0]
    assert found.tied.tolist() == [True, True]
    assert found.winner is None
    assert int(found.winners) == -1


def test_three_welfare_functions_elect_three_winners() -> None:
    ballots = np.transpose([[7, 7, 1], [4, 4, 4], [5, 5, 3]])
    expected = {
        "utilitarian": [5, 4, 13 / 3],
        "nash": [49 ** (1 / 3), 4, 75 ** (1 / 3)],
        "egalitarian": [1, 4, 3],
    }
    winners = []
    for rule, welfare in expected.items():
        found = elect(ballots, rule, scores=True)
        np.testing.assert_allclose(found.scores, welfare, rtol=1e-12)
        winners.append(found.winner)
    assert winners == [0, 2, 1]


def test_schulzes_own_example() -> None:
    found = elect(SCHULZE_2011)
    assert [int(each) for each in np.argsort(found.order)] == [4, 0, 2, 1, 3]
    # Winning votes: section 3.1 of Schulze 2011.
    ballots = np.asarray(SCHULZE_2011)
    assert widest_paths((ballots[:, :, None] < ballots[:, None]).sum(axis=0)).tolist() == [
        [0, 28, 28, 30, 24],
        [25, 0, 28, 33, 24],
        [25, 29, 0, 29, 24],
        [25, 28, 28, 0, 24],
        [25, 28, 28, 31, 0],
    ]


def test_capital_of_tennessee() -> None:
    borda = elect(TENNESSEE, "borda")
    assert borda.scores.tolist() == [126, 194, 173, 107]
    assert elect(TENNESSEE, "copeland").scores.tolist() == [0, 3, 2, 1]
    assert elect(TENNESSEE, "schulze").ranks.tolist() == [3, 0, 1, 2]
    assert elect(TENNESSEE, "plurality").scores.tolist() == [42, 26, 15, 17]
    assert elect(TENNESSEE, "approval", top=2).scores.tolist() == [42, 68, 58, 32]
    found = compare_rules(TENNESSEE, RANKED)
    assert [np.flatnonzero(each[0]).tolist() for each in found.first] == [[1], [1], [1], [0], [1]]
    assert found.agreement[0].tolist() == [1, 1, 1, 0, 1]


def test_a_cycle_leaves_all_tied() -> None:
    for rule in RANKED:
        assert elect(CYCLE, rule).ranks.tolist() == [0, 0, 0]


def test_ties_on_a_ballot_share_what_it_gives() -> None:
    ballots = [[1, 1, 2], [1, 2, 2]]
    assert elect(ballots, "plurality").scores.tolist() == [1.5, 0.5, 0]
    assert elect(ballots, "borda").scores.tolist() == [3.5, 2, 0.5]
    # Those who are indifferent between two candidates take no side.
    assert elect(ballots, "copeland").scores.tolist() == [2, 1, 0]
    assert elect(ballots, "approval", top=1).scores.tolist() == [2, 1, 0]
    assert elect(ballots, "approval", top=2).scores.tolist() == [2, 2, 1]


def test_rounding_breaks_no_tie() -> None:
    ballots = np.transpose([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    assert np.unique(ballots.sum(axis=0)).size == 2
    for rule in ("utilitarian", "nash", {"kind": "power-mean", "alpha": 2}):
        assert elect(ballots, rule, scores=True).tied.all()
        assert elect(ballots * 1e-20, rule, scores=True).tied.all()
        assert compare_rules(ballots, [rule], scores=True).first.all()
    assert elect([[1, 1.0000001]], "utilitarian", scores=True).winner == 1


def test_approval_is_above_a_threshold() -> None:
    assert elect([[4, 5], [6, 7], [math.nan] * 2], "approval", scores=True, threshold=4).scores.tolist() == [1, 2]


def test_transforms_answer_on_the_scale_of_the_scores() -> None:
    rewards = np.array([[-1.0, 2.0], [3.0, 0.0]])
    shifted = elect(rewards, "nash", scores=True, transform="shift")
    np.testing.assert_allclose(shifted.scores, [math.sqrt(1 * 5) - 2, math.sqrt(4 * 2) - 2])
    exponential = elect(rewards, "nash", scores=True, transform="exp")
    np.testing.assert_allclose(exponential.scores, [1, 1])
    assert exponential.tied.all()
    mean = elect(rewards, "utilitarian", scores=True, transform="exp")
    np.testing.assert_allclose(mean.scores, np.log(np.exp(rewards).mean(axis=0)))
    huge = elect(rewards * 1e4, "power-mean", scores=True, transform="exp", alpha=2)
    assert np.isfinite(huge.scores).all()
    assert elect(rewards, "egalitarian", scores=True, transform="exp").scores.tolist() == [-1, 0]


@given(ratings(), st.floats(-50, 50))
def test_a_constant_added_to_rewards_changes_no_winner_under_exp(values: np.ndarray, added: float) -> None:
    for alpha in (0, 1, 2):
        one, other = (
            elect(values + each, "power-mean", scores=True, alpha=alpha, transform="exp") for each in (0, added)
        )
        assert one.ranks.tolist() == other.ranks.tolist()


# -- properties of all rules -----------------------------------------------------------------------------------------


@given(ratings(), st.randoms())
def test_voters_are_anonymous_and_candidates_neutral(values: np.ndarray, random: st.DataObject) -> None:
    voters, candidates = (random.sample(range(n), n) for n in values.shape)
    for rule in EVERY:
        plain = elect(values, rule, scores=True)
        assert elect(values[voters], rule, scores=True).ranks.tolist() == plain.ranks.tolist()
        assert elect(values[:, candidates], rule, scores=True).ranks.tolist() == plain.ranks[candidates].tolist()


@given(ratings())
def test_who_is_unanimously_preferred_stands_above(values: np.ndarray) -> None:
    better = (values[:, :, None] > values[:, None]).all(axis=0)
    for rule in EVERY:
        ranks = elect(values, rule, scores=True).ranks
        strict = rule not in ("plurality",) and "approval" not in str(rule)
        for one, other in np.argwhere(better):
            assert ranks[one] < ranks[other] if strict else ranks[one] <= ranks[other]


@given(ratings())
def test_who_beats_everybody_wins(values: np.ndarray) -> None:
    wins = (values[:, :, None] > values[:, None]).sum(axis=0)
    for winner in np.flatnonzero(((wins > wins.T) | np.eye(len(wins), dtype=bool)).all(axis=1)):
        for rule in ("schulze", "copeland"):
            assert elect(values, rule, scores=True).winner == winner


@given(ratings())
def test_rules_on_ranks_need_no_more_than_the_order(values: np.ndarray) -> None:
    for rule in RANKED:
        on_scores = elect(values, rule, scores=True)
        for ballots in (rankdata(-values, "dense", axis=1), rankdata(-values, "dense", axis=1) - 1):
            assert elect(ballots, rule).ranks.tolist() == on_scores.ranks.tolist()


@given(st.lists(ratings(), min_size=1, max_size=4), st.integers(0, 2))
def test_many_elections_are_decided_as_one_by_one(elections: list[np.ndarray], n_missing: int) -> None:
    candidates = elections[0].shape[1]
    same = [each for each in elections if each.shape[1] == candidates]
    most = max(len(each) for each in same) + n_missing
    batch = np.full((len(same), most, candidates), math.nan)
    for election, ballots in zip(batch, same, strict=True):
        election[: len(ballots)] = ballots
    for rule in EVERY:
        together = elect(batch, rule, scores=True)
        for number, ballots in enumerate(same):
            alone = elect(ballots, rule, scores=True)
            assert together.ranks[number].tolist() == alone.ranks.tolist()
            assert int(together.winners[number]) == int(alone.winners)
            assert (together.n[number], together.missing[number]) == (len(ballots), most - len(ballots))
            np.testing.assert_allclose(together.scores[number], alone.scores, rtol=1e-9)


def test_portions_of_many_elections_are_put_together_in_order() -> None:
    batch = np.random.default_rng(1).integers(1, 8, (300, 4, 120)).astype(float)
    found = elect(batch, "borda", scores=True)
    for number in (0, 68, 69, 70, 299):
        assert found.ranks[number].tolist() == elect(batch[number], "borda", scores=True).ranks.tolist()


# -- ties ------------------------------------------------------------------------------------------------------------


@given(ratings(), st.sampled_from(["random", "ballots"]), st.integers(0, 5))
def test_broken_ties_keep_the_social_ranking(values: np.ndarray, ties: str, seed: int) -> None:
    for rule in EVERY:
        found, again = (elect(values, rule, scores=True, ties=ties, rng=np.random.default_rng(seed)) for _ in range(2))
        assert sorted(found.order.tolist()) == list(range(values.shape[1]))
        assert (np.diff(found.ranks[np.argsort(found.order)]) >= 0).all()
        assert found.winner == found.order.tolist().index(0)
        assert again.order.tolist() == found.order.tolist()


def test_a_drawn_ballot_breaks_the_ties_of_a_cycle() -> None:
    orders = {"random": set(), "ballots": set()}
    for ties, seen in orders.items():
        for seed in range(60):
            found = elect(CYCLE, ties=ties, rng=np.random.default_rng(seed))
            seen.add(tuple(int(each) + 1 for each in found.order))
    assert orders["ballots"] == {tuple(int(each) for each in ballot) for ballot in CYCLE}
    assert len(orders["random"]) == 6


def test_missing_ballots_break_no_tie() -> None:
    ballots = np.vstack([CYCLE, np.full((5, 3), math.nan)])
    for seed in range(20):
        found = elect(ballots, ties="ballots", rng=np.random.default_rng(seed))
        assert (found.order + 1).tolist() in CYCLE.tolist()


def test_later_ballots_break_what_the_first_leaves_tied() -> None:
    ballots = [[1, 1, 2, 2], [2, 2, 1, 1], [1, 2, 1, 2], [2, 1, 2, 1]]
    seen = {
        tuple(int(each) for each in np.argsort(elect(ballots, ties="ballots", rng=np.random.default_rng(seed)).order))
        for seed in range(200)
    }
    # The first ballot tells one pair from the other, one of the other kind its members: eight orders of 24.
    pairs = [[{0, 1}, {2, 3}], [{2, 3}, {0, 1}], [{0, 2}, {1, 3}], [{1, 3}, {0, 2}]]
    assert len(seen) == 8
    assert all([set(order[:2]), set(order[2:])] in pairs for order in seen)


# -- welfare ---------------------------------------------------------------------------------------------------------


POSITIVE = st.lists(st.floats(0.01, 100), min_size=1, max_size=8)


@given(POSITIVE, st.floats(0, 20))
def test_the_power_mean_is_scipys(values: list[float], alpha: float) -> None:
    assert power_mean(values, alpha) == pytest.approx(pmean(values, 1 - alpha), rel=1e-9)


@given(POSITIVE, st.floats(0, 50) | st.just(math.inf), st.floats(1e-100, 1e100))
def test_the_power_mean_is_free_of_scale(values: list[float], alpha: float, scale: float) -> None:
    assert power_mean(np.multiply(values, scale), alpha) == pytest.approx(scale * power_mean(values, alpha), rel=1e-9)


@given(POSITIVE)
def test_the_power_mean_falls_from_the_mean_to_the_minimum(values: list[float]) -> None:
    found = [power_mean(values, alpha) for alpha in (0, 1e-9, 0.5, 1 - 1e-9, 1, 1 + 1e-9, 2, 50, 1e6, math.inf)]
    assert (np.diff(found) <= 1e-9 * max(values)).all()
    assert found[0] == pytest.approx(np.mean(values))
    assert found[1] == pytest.approx(found[0], rel=1e-6)
    assert found[4] == pytest.approx(math.exp(np.log(values).mean()))
    assert found[3] == pytest.approx(found[4], rel=1e-6)
    assert found[5] == pytest.approx(found[4], rel=1e-6)
    assert found[-2] == pytest.approx(min(values), rel=1e-5)
    assert found[-1] == min(values)


@given(ratings())
def test_named_welfare_functions_are_points_of_the_family(values: np.ndarray) -> None:
    for name, alpha in (("utilitarian", 0), ("nash", 1), ("egalitarian", math.inf)):
        found = elect(values, "power-mean", scores=True, alpha=alpha)
        assert found.ranks.tolist() == elect(values, name, scores=True).ranks.tolist()


@given(ratings(), st.floats(0, 5).filter(lambda alpha: abs(alpha - 1) > 0.01))
def test_power_means_order_as_isoelastic_welfare_does(values: np.ndarray, alpha: float) -> None:
    welfare = (values ** (1 - alpha)).sum(axis=0) / (1 - alpha)
    ranks = elect(values, "power-mean", scores=True, alpha=alpha).ranks
    for one, other in np.argwhere(welfare[:, None] > welfare[None] + 1e-6 * np.abs(welfare).max()):
        assert ranks[one] < ranks[other]


def test_power_means_leave_out_what_is_missing() -> None:
    assert power_mean([[1, 4], [math.nan, 4], [4, 4]], 1, axis=0).tolist() == pytest.approx([2, 4])
    assert math.isnan(power_mean([math.nan], 2))


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ballots", "said"),
    [
        ([[1], [1]], "two candidates"),
        (np.empty((0, 3)), "at least one voter"),
        ([1, 2], "array"),
        ([["a", "b"]], "must be an array"),
        ([[1, 2], [1]], "array"),
        (np.full((2, 2), math.nan), "the election has no ballot"),
        ([[1, 2, math.nan]], "needs a value for each candidate"),
        ([[1, math.inf]], "finite"),
        ([[1, 2], [2, 2]], "ballot 1 is"),
        ([[1, 2, 5]], "have no gaps"),
        ([[1, 2, 4]], "have no gaps"),
        ([[1, 1.5]], "have no gaps"),
        ([[-1, 0]], "have no gaps"),
        ([[[1, 2], [1, 2]], [[1, 2], [3, 7]]], "election 1, ballot 1 is"),
    ],
)
def test_what_is_no_ballot_is_refused(ballots: object, said: str) -> None:
    with pytest.raises(MeasurementError, match=said):
        elect(ballots)


def test_ranks_without_and_with_gaps_behind_ties_are_ballots() -> None:
    for ballot in ([1, 2, 2, 3], [1, 2, 2, 4], [0, 1, 1, 2], [0, 1, 1, 3]):
        assert elect([ballot]).ranks.tolist() == [0, 1, 1, 2]
    assert elect([[1, 1, 1, 1]]).ranks.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("shulze", "did you mean schulze"),
        (None, "kind"),
        ({}, "kind"),
        ({"kind": "borda", "weight": 2}, "the key kind and the options"),
        ({"kind": "borda", "alpha": 2}, "has no option alpha"),
        ("power-mean", "alpha must be a number"),
        ({"kind": "power-mean", "alpha": -1}, "at least 0"),
        ({"kind": "power-mean", "alpha": math.nan}, "at least 0"),
        ({"kind": "power-mean", "alpha": "high"}, "at least 0"),
        ({"kind": "nash", "transform": "log"}, "shift, exp"),
        ("approval", "either threshold"),
        ({"kind": "approval", "threshold": 4, "top": 1}, "either threshold"),
        ({"kind": "approval", "top": 0}, "top must be"),
        ({"kind": "approval", "threshold": "much"}, "threshold must be"),
    ],
)
def test_what_is_no_rule_is_refused(rule: object, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        Rule.of(rule)


def test_options_ties_and_generators_are_checked() -> None:
    assert Rule.of("power-mean", alpha=2).label == "power-mean alpha=2"
    assert Rule.of(Rule("approval", top=2)) == Rule("approval", top=2)
    with pytest.raises(SpecError, match=r"allowed, random, ballots"):
        elect(CYCLE, ties="coin")
    with pytest.raises(SpecError, match="needs random numbers; give rng"):
        elect(CYCLE, ties="random")
    with pytest.raises(SpecError, match="at least one rule"):
        compare_rules(CYCLE, [])


def test_rules_say_when_they_need_scores_and_positive_ones() -> None:
    needing = {name for name in RULES if RULES[name].scores}
    assert needing == {"utilitarian", "nash", "egalitarian", "power-mean"}
    assert Rule("approval", threshold=4).needs_scores
    assert not Rule("approval", top=1).needs_scores
    for rule in ("nash", {"kind": "approval", "threshold": 4}):
        with pytest.raises(MeasurementError, match="needs scores; the ballots are ranks"):
            elect(CYCLE, rule)
    for rule in ("utilitarian", "nash", "egalitarian"):
        with pytest.raises(MeasurementError, match=r"got 0\. Set transform to"):
            elect([[0, 2], [1, 3]], rule, scores=True)
    with pytest.raises(MeasurementError, match="positive"):
        power_mean([1, -1], 1)


# -- comparison ------------------------------------------------------------------------------------------------------


def test_comparison_of_rules_over_elections() -> None:
    opposed = [[7.0, 1.0, 4.0], [1.0, 7.0, 4.0]]
    clear = [[7.0, 1.0, 2.0], [6.0, 1.0, 2.0]]
    found = compare_rules([opposed, clear], ["plurality", "egalitarian", "utilitarian"], scores=True)
    assert found.first[:, 0].tolist() == [[True, True, False], [False, False, True], [True, True, True]]
    assert found.agreement.tolist() == [[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]]
    assert found.overlap.tolist() == [[1, 0.5, 1], [0.5, 1, 1], [1, 1, 1]]


def test_rules_that_are_compared_unless_named() -> None:
    assert [each.kind for each in compare_rules(CYCLE).rules] == ["schulze", "borda", "copeland", "plurality"]
    on_scores = [each.kind for each in compare_rules(CYCLE.astype(float), scores=True).rules]
    assert on_scores == ["schulze", "borda", "copeland", "plurality", "utilitarian", "nash", "egalitarian"]


@given(ratings())
def test_comparison_has_the_first_places_of_every_rule(values: np.ndarray) -> None:
    found = compare_rules(values, EVERY, scores=True)
    for rule, first in zip(EVERY, found.first[:, 0], strict=True):
        assert first.tolist() == (elect(values, rule, scores=True).ranks == 0).tolist()


def test_masked_ballots_are_missing() -> None:
    masked = np.ma.masked_array([[1, 2], [2, 1], [2, 1]], mask=[[False] * 2, [True] * 2, [True] * 2])
    found = elect(masked, "borda")
    assert (found.n, found.missing, found.winner) == (1, 2, 0)


def test_a_single_rule_is_compared_with_itself() -> None:
    assert [each.label for each in compare_rules([[1, 2], [1, 2]], "borda").rules] == ["borda"]
