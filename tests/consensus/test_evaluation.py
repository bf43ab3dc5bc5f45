from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from opinionsim.consensus import (
    advantage_statement,
    candidate_table,
    estimate,
    exclusion,
    policy_table,
    prediction,
    reliability,
    reliable,
    sensitivity,
    weighted_kappa,
    welfare_advantage,
    win_rates,
    write_ratings,
)
from opinionsim.errors import MeasurementError, SpecError

MISSING = math.nan


def rated(group: Any, statements: dict[str, list[float]], **further: Any) -> pd.DataFrame:
    """Ratings of a group: agreement of its citizens 0, 1, ... with statements, named by policy, in one pass."""
    rows = [
        {
            "group": group,
            "round": 0,
            "citizen": citizen,
            "candidate": "position" if name == "position" else f"{name} statement",
            "policy": name.split("#")[0],
            "pass": 1,
            "agreement": float(agreement),
        }
        for name, ratings in statements.items()
        for citizen, agreement in enumerate(ratings)
    ]
    return pd.DataFrame(rows).assign(**further)


def row(table: pd.DataFrame, **keys: Any) -> pd.Series:
    """The one row with these values."""
    kept = table
    for name, value in keys.items():
        kept = kept[kept[name] == value]
    assert len(kept) == 1
    return kept.iloc[0]


def many(*tables: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True)


# -- reliability -----------------------------------------------------------------------------------------------------


def two_passes(first: list[float], second: list[float], group: str = "a", citizen: Any = "x") -> pd.DataFrame:
    ratings = many(*(
        rated(group, {f"p#{number}": [value] for number, value in enumerate(values)}).assign(**{"pass": each})
        for each, values in ((1, first), (2, second))
    ))  # fmt: skip
    return ratings.assign(citizen=citizen)


def test_kappa_of_the_example() -> None:
    found = weighted_kappa([7, 6, 2, 1, 5], [7, 5, 2, 2, 5])
    assert found == pytest.approx(5 / 6)
    assert f"{found:.3f}" == "0.833"


def test_kappa_at_its_ends() -> None:
    assert weighted_kappa([1, 4, 7], [1, 4, 7]) == 1
    assert weighted_kappa([1, 7], [7, 1]) == -1
    assert math.isnan(weighted_kappa([4, 4], [4, 4]))
    assert math.isnan(weighted_kappa([], []))


@given(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=2, max_size=20))
def test_kappa_is_that_of_a_table_with_linear_weights(pairs: list[tuple[int, int]]) -> None:
    table = np.zeros((7, 7))
    for one, other in pairs:
        table[one - 1, other - 1] += 1 / len(pairs)
    weights = np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    found = weighted_kappa(*zip(*pairs, strict=True))
    if (weights * expected).sum() == 0:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(1 - (weights * table).sum() / (weights * expected).sum(), abs=1e-12)


def test_raters_are_kept_by_their_kappa() -> None:
    steady = two_passes([7, 6, 2, 1, 5], [7, 5, 2, 2, 5], citizen="steady")
    erratic = two_passes([7, 1, 2, 6, 5], [1, 5, 7, 2, 3], citizen="erratic")
    constant = two_passes([4, 4], [4, 4], citizen="constant")
    once = two_passes([7, 1], [MISSING, MISSING], citizen="once")
    ratings = many(steady, erratic, constant, once)
    found = reliability(ratings)
    assert found["citizen"].tolist() == ["steady", "erratic", "constant", "once"]
    assert found["n"].tolist() == [5, 5, 2, 0]
    assert found["reliable"].tolist() == [True, False, False, False]
    assert row(found, citizen="steady")["kappa"] == pytest.approx(5 / 6)
    assert math.isnan(row(found, citizen="once")["kappa"])
    pd.testing.assert_frame_equal(reliability(ratings.assign(**{"pass": ratings["pass"] - 1})), found)
    kept = reliable(ratings)
    assert kept["citizen"].unique().tolist() == ["steady"]
    assert len(kept) == 10


def test_raters_are_pooled_over_groups_or_told_apart() -> None:
    ratings = many(two_passes([7, 1], [7, 1], "a"), two_passes([7, 1], [1, 7], "b"))
    apart, pooled = reliability(ratings), reliability(ratings, pooled=True)
    assert apart[["group", "kappa"]].to_numpy().tolist() == [["a", 1], ["b", -1]]
    assert pooled.to_numpy().tolist() == [["x", 4, 0, False]]
    assert reliable(ratings)["group"].unique().tolist() == ["a"]
    assert not len(reliable(ratings, pooled=True))


# -- agreement within groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratings", "consent", "internal", "unanimous"),
    [
        ([7, 6, 5], 1, 1, True),
        ([1, 2, 3], 0, 1, False),  # unanimous rejection is full agreement
        ([7, 5, 1, 2], 0.5, 0, False),
        ([7, 6, 5, 1], 0.75, 0.5, False),
        ([7, 4, 4], 1, 1, False),  # neutral ones are left out, but do not consent
        ([4, 4, 4], MISSING, MISSING, False),
        ([7, MISSING, 6], 1, 1, True),
    ],
)
def test_consent_and_internal_agreement(ratings: list[float], consent: float, internal: float, unanimous: bool) -> None:
    found = candidate_table(rated("a", {"p": ratings})).iloc[0]
    np.testing.assert_equal([found["consent"], found["internal_agreement"]], [consent, internal])
    assert found["unanimous"] == unanimous
    assert found["n"] == np.count_nonzero(~np.isnan(ratings))
    assert found["missing"] == len(ratings) - found["n"]
    np.testing.assert_equal(found["divisive"], MISSING if math.isnan(internal) else float(internal < 1))


def test_internal_agreement_is_the_same_for_a_scale_turned_round() -> None:
    rng = np.random.default_rng(1)
    ratings = many(*(rated(n, {"p": list(rng.integers(1, 8, rng.integers(1, 9)))}) for n in range(60)))
    one, other = (candidate_table(each) for each in (ratings, ratings.assign(agreement=8 - ratings["agreement"])))
    np.testing.assert_allclose(one["internal_agreement"], other["internal_agreement"], atol=1e-12)
    np.testing.assert_allclose(one["consent"], 1 - other["consent"], atol=1e-12)


def test_passes_are_averaged_within_citizens() -> None:
    ratings = two_passes([7, 1], [5, 4])
    found = candidate_table(ratings)
    assert found["mean"].tolist() == [6, 2.5]
    assert found["n"].tolist() == [1, 1]


def test_statements_are_compared_with_the_position_of_divisive_questions() -> None:
    divided = rated("a", {"position": [6, 6, 2, 2, 2], "p": [6, 6, 6, 6, 2], "q": [6, 6, 2, 2, 2], "r": [4] * 5})
    rejected = rated("b", {"position": [6, 2, 2, 2], "p": [6, 6, 6, 2]})
    clear = rated("c", {"position": [6, 6], "p": [6, 6]})
    without = rated("d", {"p": [6, 6]})
    found = candidate_table(many(divided, rejected, clear, without))
    # 3 of 5 reject the first position: a statement has to convince more than that.
    assert row(found, group="a", policy="p")["less_divisive"] == 1  # 0.8 > 0.6
    assert row(found, group="a", policy="q")["less_divisive"] == 0  # 0.4, as divisive as the position
    assert math.isnan(row(found, group="a", policy="r")["less_divisive"])
    assert row(found, group="b", policy="p")["less_divisive"] == 0  # 0.75 is not above max(0.25, 0.75)
    assert found.loc[found["group"].isin(["c", "d"]) | (found["policy"] == "position"), "less_divisive"].isna().all()
    policies = policy_table(many(divided, rejected, clear, without))
    divisive = row(policies, policy="position", measure="divisive")
    assert divisive["estimate"] == pytest.approx(2 / 3)
    assert (divisive["n"], divisive["n_groups"]) == (3, 3)
    less = row(policies, policy="p", measure="less_divisive")
    assert (less["estimate"], less["n"]) == (0.5, 2)
    assert row(policies, policy="p", measure="unanimous")["estimate"] == 0.5
    assert row(policies, policy="q", measure="consent")["estimate"] == pytest.approx(0.4)


def test_a_position_counts_as_it_was_rated_first() -> None:
    before = rated("a", {"position": [6, 2], "p": [6, 6]})
    after = rated("a", {"position": [6, 6]}).assign(round=1)
    found = candidate_table(many(after, before))
    assert row(found, policy="p")["less_divisive"] == 1


# -- intervals and win rates -----------------------------------------------------------------------------------------


def test_intervals_resample_whole_groups() -> None:
    # Two groups of many equal rows: a resample holds one of them alone in half of all cases.
    table = pd.DataFrame({"group": ["a"] * 50 + ["b"] * 50, "x": [0.0] * 50 + [1.0] * 50})
    found = estimate(table, "x")
    assert (found.value, found.low, found.high, found.n, found.n_groups) == (0.5, 0, 1, 100, 2)
    assert found == estimate(table.sample(frac=1, random_state=1).sort_values("group"), "x")
    alone = estimate(table[:50], "x")
    assert (alone.value, alone.n_groups) == (0, 1)
    assert math.isnan(alone.low)
    nothing = estimate(table.assign(x=MISSING), "x")
    assert (nothing.n, nothing.n_groups) == (0, 0)
    assert math.isnan(nothing.value)
    with pytest.raises(MeasurementError, match="level"):
        estimate(table, "x", level=95)


def test_intervals_have_the_width_of_the_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=400)
    found = estimate(pd.DataFrame({"group": np.arange(400), "x": values}), "x", seed=3)
    error = values.std() / 20
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_win_rates_leave_out_ties() -> None:
    ratings = many(
        rated("a", {"p": [7, 7, 1], "q": [4, 4, 4], "position": [1, 1, 1]}),  # mean 5 v 4, median 7 v 4
        rated("b", {"p": [7, 1, 1], "q": [2, 2, 2]}),  # mean 3 v 2, median 1 v 2
        rated("c", {"p": [4, 4, 4], "q": [4, 4, 4]}),
        rated("d", {"p": [1, 1, 1], "q": [4, 4, 4]}),
        rated("e", {"p": [7, 7, 7]}),
    )
    found = win_rates(ratings)
    assert found[["policy", "other", "aggregate", "n", "n_groups", "ties"]].to_numpy().tolist() == [
        ["p", "q", "mean", 3, 3, 1],
        ["p", "q", "median", 3, 3, 1],
    ]
    assert found["win_rate"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert ((found["low"] <= found["win_rate"]) & (found["win_rate"] <= found["high"])).all()


def test_statements_of_one_policy_are_averaged() -> None:
    found = win_rates(rated("a", {"p#1": [7, 7], "p#2": [1, 1], "q": [5, 5]}))
    assert found["win_rate"].tolist() == [0, 0]


# -- exclusion -------------------------------------------------------------------------------------------------------


def test_exclusion_is_told_from_any_missing_opinion() -> None:
    by_draft = {
        "p#all": [6, 6, 6],
        "p#0": [2, 5, 5],
        "p#0b": [4, 5, 5],
        "p#1": [5, 5, 4],
        "p#2": [6, 5, 5],
        "position": [1, 1, 1],
    }
    ratings = rated("a", by_draft)
    left_out = {"p#0 statement": 0, "p#0b statement": 0, "p#1 statement": 1, "p#2 statement": 2}
    found = exclusion(ratings.assign(left_out=ratings["candidate"].map(left_out)))
    assert found["citizen"].tolist() == [0, 1, 2]
    assert found["excluded"].tolist() == [3, 5, 5]
    assert found["drafts"].tolist() == [2, 1, 1]
    assert found["other_excluded"].tolist() == [5.5, 5, 4.5]
    assert found["others"].tolist() == [2, 2, 2]
    assert found["complete"].tolist() == [6, 6, 6]
    assert found["dissent"].tolist() == [2.5, 0, -0.5]
    assert estimate(found, "dissent").value == pytest.approx(2 / 3)


def test_exclusion_of_nobody_and_of_two() -> None:
    ratings = rated("a", {"p": [6, 6]})
    assert not len(exclusion(ratings.assign(left_out=None)))
    with pytest.raises(MeasurementError, match="two citizens"):
        exclusion(ratings.assign(left_out=[0, 1]))
    with pytest.raises(MeasurementError, match="lacking: left_out"):
        exclusion(ratings)


# -- elections -------------------------------------------------------------------------------------------------------


def test_a_single_citizen_may_decide() -> None:
    ratings = rated("a", {"p": [7, 7, 1, 1, 7], "q": [1, 1, 7, 7, 1]})
    found = sensitivity(ratings)
    assert found["winners"].tolist() == [("p statement",)] * 5
    # Without one of the majority the others are even; without one of the minority it stays.
    assert found["changed"].tolist() == [True, True, False, False, True]
    assert found["winners_without"].iloc[0] == ("p statement", "q statement")
    assert not sensitivity(rated("a", {"p": [7, 7], "q": [1, 1]}), "utilitarian")["changed"].any()


def test_sensitivity_takes_ranks_and_leaves_out_incomplete_ballots() -> None:
    ratings = rated("a", {"p": [7, 7, 7, MISSING], "q": [6, 6, 6, 7]})
    ratings["rank"] = [2, 2, 1, MISSING, 1, 1, 2, 1]
    assert sensitivity(ratings)["winners"].tolist() == [("p statement",)] * 3
    found = sensitivity(ratings, value="rank")
    assert found["citizen"].tolist() == [0, 1, 2]
    assert found["winners"].tolist() == [("q statement",)] * 3
    with pytest.raises(MeasurementError, match="needs scores; the ballots are ranks"):
        sensitivity(ratings, "nash", value="rank")
    with pytest.raises(SpecError, match="did you mean"):
        sensitivity(ratings, "shulze")
    with pytest.raises(MeasurementError, match="no group has two candidates"):
        sensitivity(rated("a", {"p": [7, 7]}))


def test_ranks_are_counted_without_the_position() -> None:
    ratings = rated("a", {"p": [7, 7], "position": [6, 6], "q": [5, 5]})
    ratings["rank"] = [1.0, 1, 2, 2, 3, 3]
    assert sensitivity(ratings, "borda", value="rank")["winners"].tolist() == [("p statement",)] * 2


# -- predictions and welfare -----------------------------------------------------------------------------------------


def test_predictions_beside_what_was_stated() -> None:
    exact = rated("exact", {"p": [1, 2], "q": [3, 5], "r": [6, 7]})
    exact["predicted_agreement"] = exact["agreement"]
    reversed_ = rated("reversed", {"p": [1, 2], "q": [3, 5], "r": [6, 7]})
    reversed_["predicted_agreement"] = 8 - reversed_["agreement"]
    rewards = rated("rewards", {"p": [1, 2], "q": [3, 5], "r": [6, 7]})
    rewards["predicted_agreement"] = 10 * rewards["agreement"] - 100
    constant = rated("constant", {"p": [4, 4], "q": [4, 4], "r": [4, 4]}).assign(predicted_agreement=5.0)
    # Who likes more in general is told, what each likes better is not.
    between = rated("between", {"p": [1, 6], "q": [2, 7]}).assign(predicted_agreement=[2.0, 7.0, 1.0, 6.0])
    found = prediction(many(exact, reversed_, rewards, constant, between)).set_index("group")
    assert found["rank_correlation"].tolist() == pytest.approx([1, -1, 1, MISSING, 0.6], nan_ok=True)
    assert found["within_citizens"].tolist() == pytest.approx([1, -1, 1, MISSING, -1], nan_ok=True)
    assert found["mean_absolute_error"].tolist() == pytest.approx([0, 4, MISSING, 1, 1], nan_ok=True)
    assert found["n"].tolist() == [6, 6, 6, 6, 4]
    assert estimate(found.reset_index(), "rank_correlation").n_groups == 4


def test_exact_predictions_have_the_advantage_and_reversed_ones_the_opposite() -> None:
    groups = [rated(name, {"p": [7, 7, 1], "q": [4, 4, 4], "r": [5, 5, 3]}) for name in "abc"]
    ratings = many(*groups)
    found = welfare_advantage(ratings.assign(predicted_agreement=ratings["agreement"]))
    gain = row(found, criterion="utilitarian", other="egalitarian")
    assert (gain["advantage"], gain["low"], gain["high"], gain["n"]) == (1, 1, 1, 3)
    assert row(found, criterion="egalitarian", other="utilitarian")["advantage"] == 3
    assert row(found, criterion="nash", other="egalitarian")["advantage"] == pytest.approx(75 ** (1 / 3) - 4)
    assert "advantage: utilitarian over nash" in advantage_statement(found)


def test_useless_predictions_show_no_advantage() -> None:
    rng = np.random.default_rng(1)
    ratings = many(*(
        rated(number, {name: list(rng.integers(1, 8, 4)) for name in "pqrs"}) for number in range(40)
    ))  # fmt: skip
    ratings["predicted_agreement"] = rng.uniform(1, 7, len(ratings))
    found = welfare_advantage(ratings)
    assert (found["low"] < 0).all()
    assert "No welfare function has the predicted advantage" in advantage_statement(found)


def test_an_advantage_against_the_criterion_is_told() -> None:
    table = pd.DataFrame({
        "criterion": ["egalitarian", "utilitarian"], "other": ["utilitarian", "egalitarian"],
        "low": [-0.5, -0.1], "high": [-0.2, 0.3],
    })  # fmt: skip
    said = advantage_statement(table)
    assert "No welfare function" in said
    assert "by the other's criterion: utilitarian over egalitarian" in said


def test_rewards_below_zero_need_a_transform() -> None:
    ratings = rated("a", {"p": [7, 1], "q": [4, 4]}).assign(predicted_agreement=[-1.0, 0.5, 2.0, 1.0])
    with pytest.raises(MeasurementError, match="Set transform to"):
        welfare_advantage(ratings)
    rules = [{"kind": name, "transform": "exp"} for name in ("utilitarian", "egalitarian")]
    found = welfare_advantage(ratings, rules)
    assert found["advantage"].tolist() == [0, 0]
    with pytest.raises(MeasurementError, match="must differ from the column"):
        welfare_advantage(ratings, predicted="agreement")


# -- export and what is refused --------------------------------------------------------------------------------------


def test_ratings_are_written_for_a_mixed_model(tmp_path: Any) -> None:
    ratings = rated(7, {"=p": [7, MISSING], "q": [4, 4], "position": [1, 1]}, quality=5.0)
    text = write_ratings(ratings)
    assert text is not None
    read = pd.read_csv(io.StringIO(text))
    columns = ["participant", "question", "model", "candidate", "round", "pass", "rating", "quality"]
    assert read.columns.tolist() == columns
    assert read["model"].tolist() == ["'=p", "q", "q"]
    assert read["rating"].tolist() == [7, 4, 4]
    # What is a factor is no number, so that R reads it as one.
    assert not any(pd.api.types.is_numeric_dtype(read[name]) for name in columns[:6])
    assert read["participant"].tolist() == ["7/0", "7/0", "7/1"]
    assert write_ratings(ratings.assign(question="=1+1"), tmp_path / "ratings.csv") is None
    assert pd.read_csv(tmp_path / "ratings.csv")["question"].unique().tolist() == ["q =1+1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop(columns="policy"), "lacking: policy"),
        (lambda table: table[:0], "lacking: rows"),
        (lambda table: table.assign(agreement=[0.0, 4.0]), "from 1 to 7; got 0 of citizen 0 in group a"),
        (lambda table: table.assign(quality=[7.0, 8.0]), "quality is rated from 1 to 7; got 8"),
        (lambda table: many(table, table), "twice in pass 1 of round 0"),
        (lambda table: table.assign(policy=["p", None]), "need policy in each row; row 2 has none"),
        (lambda table: table.assign(citizen=[None, 1.0]), "need citizen in each row; row 1 has none"),
        (lambda table: table.assign(agreement=["7", "seven"]), "agreement contains a value that is not a number"),
        (lambda table: table[[*table.columns, "policy"]], "two columns policy"),
    ],
)
def test_what_is_no_table_of_ratings_is_refused(change: Any, said: str) -> None:
    table = change(rated("a", {"p": [7, 1]}))
    for function in (candidate_table, policy_table, win_rates, reliability, sensitivity, write_ratings):
        with pytest.raises(MeasurementError, match=said):
            function(table)


@pytest.mark.parametrize("function", [candidate_table, policy_table, win_rates, sensitivity])
def test_ratings_none_of_which_could_be_read_are_refused(function: Any) -> None:
    with pytest.raises(MeasurementError, match=r"no rating of agreement|no group has two candidates"):
        function(rated("a", {"p": [7, 1], "q": [1, 7]}).assign(agreement=None))


def test_statements_of_one_name_do_not_stand_for_election_together() -> None:
    table = rated("a", {"p": [7, 7], "q": [1, 1], "r": [3, 3]})
    assert sensitivity(table, "utilitarian")["winners"].tolist() == [("p statement",)] * 2
    one_name = table.assign(candidate=table["candidate"].replace("q statement", "p statement"))
    with pytest.raises(MeasurementError, match="candidate p statement of round 0 in group a is of two policies"):
        sensitivity(one_name)


def test_two_passes_rate_the_same_statements() -> None:
    with pytest.raises(MeasurementError, match="first and second must have the same shape"):
        weighted_kappa([1], [1, 2, 3])
