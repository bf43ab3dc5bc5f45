"""The tables of ratings, against the functions that they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim import consensus
from opinionsim.cli import app
from opinionsim.report import study, tables_of
from tests.consensus.test_record import SESSION

SPEC: dict[str, Any] = {
    **SESSION,
    "interaction": {
        "kind": "consensus",
        "drafters": [{"count": 2, "label": "plain"}, {"count": 2, "style": "reasoned", "label": "reasoned"}],
        "rounds": 0,
        "position": "The library should open on Sundays.",
        "ratings": {"passes": 2, "position": "before", "winner": True},
        "ties": "random",
    },
    "replicates": 3,
    "sweep": {"model.temperature": [0.0, 1.0]},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    folder = tmp_path_factory.mktemp("rated")
    return osim.run(osim.load_experiment(SPEC), f"sqlite:///{folder / 's.sqlite'}")


def test_rows_are_those_of_the_functions_by_condition(results: osim.Results) -> None:
    by_policy, wins, raters, _ = tables_of(results, what="rated-statements")
    ratings = consensus.ratings(results)
    conditions = results.runs.set_index("run_id")["model.temperature"]
    for level, own in ratings.groupby(ratings["group"].map(conditions)):
        expected = consensus.policy_table(own).set_index(["policy", "measure"])
        found = by_policy.frame[by_policy.frame["model.temperature"] == level].set_index("policy")
        assert set(found.index) == {"position", "plain", "reasoned"}
        for policy, measure in expected.index:
            row = found.loc[policy, [measure, f"{measure}_ci_low", f"{measure}_ci_high", "groups"]]
            ends = expected.loc[(policy, measure), ["estimate", "low", "high"]]
            assert row.iloc[:3].tolist() == pytest.approx(ends.tolist(), nan_ok=True)
            assert row["groups"] == 3
        (pair,) = wins.frame[wins.frame["model.temperature"] == level].to_dict("records")
        (known,) = consensus.win_rates(own, aggregates=["mean"]).to_dict("records")
        assert (pair["comparisons"] + pair["ties"], pair["wins"]) == (3, pytest.approx(known["win_rate"], nan_ok=True))
        (twice,) = raters.frame[raters.frame["model.temperature"] == level].to_dict("records")
        assert twice["reliable"] == consensus.reliability(own)["reliable"].sum()
        assert twice["raters"] == twice["rated twice"] == 3 * 2, "who gave a text is asked nothing"


def test_a_rating_that_could_not_be_read_is_counted_as_missing(results: osim.Results) -> None:
    holed, rated = osim.load(results.url), consensus.ratings(results)
    row = holed.opinions.query("variable == 'agreement'").index[-5]
    holed.opinions.loc[row, "value"] = float("nan")
    notes = [table.notes for table in tables_of(holed, what="rated-statements")]
    assert f"1 of {len(rated)} ratings missing." in notes[0] + notes[-1]
    assert not [
        note for table in tables_of(results, what="rated-statements") for note in table.notes if "missing" in note
    ]


def test_table_and_report_hold_them(results: osim.Results, tmp_path: Path) -> None:
    place, page = str(results.url), tmp_path / "r.html"
    printed = CliRunner().invoke(app, ["table", place]).stdout
    assert CliRunner().invoke(app, ["report", place, "--out", str(page)]).exit_code == 0
    for heading in ("Ratings by policy", "Which policy wins", "Reliability of raters"):
        assert heading in printed
        assert heading in page.read_text(encoding="utf-8")


def test_winners_are_compared_with_the_position_statement(
    results: osim.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings = consensus.ratings

    def divided(found: osim.Results, *, winner: bool = False) -> pd.DataFrame:
        """The ratings, with those of the position statement on both sides of neutral."""
        own = ratings(found, winner=winner)
        return own.assign(agreement=own["agreement"].where(own["policy"] != "position", 1 + 6 * (own["citizen"] % 2)))

    monkeypatch.setattr(consensus, "ratings", divided)
    *_, won = tables_of(results, what="rated-statements")
    assert set(won.frame["policy"]) == {"winner"}
    assert won.frame["less_divisive"].notna().all()


def test_what_won_is_quoted_and_the_rest_counted(results: osim.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = tables_of(results, what="winners")
    listed = consensus.statements(results).query("winner")
    assert sorted(table.frame["statement"]) == sorted(listed["statement"]), "a single round has one winner"
    means = consensus.candidate_table(consensus.ratings(results)).set_index(["group", "candidate"])["mean"]
    expected = [means[group, turn] for group, turn in zip(listed["group"], listed["turn"], strict=True)]
    assert sorted(table.frame["mean"]) == pytest.approx(sorted(expected))
    text = table.to_text(10_000)
    assert all(" ".join(each.split()) in text for each in table.frame["statement"])
    tied = consensus.selections(results)["tied"].map(len).gt(0).sum()
    assert f"{tied} of 6 elections left the first place tied and w" in text
    assert not tied or "decided by chance" in text
    monkeypatch.setattr("opinionsim.consensus._table._SHOWN", 2)
    (table,) = tables_of(results, what="winners")
    assert (len(table.rows), len(table.frame), "4 further sessions" in table.to_text(200)) == (2, 6, True)


def test_shares_of_a_rule_part_ties_from_the_same_choice(results: osim.Results) -> None:
    (table,) = tables_of(results, what="elections")
    assert table.frame[["same", "tied", "other"]].sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert "would choose" in table.frame
    found = consensus.other_rules(results).query("rule == 'schulze'")
    held = consensus.selections(results)
    assert found["winner"].tolist() == held["winner"].tolist(), "the rule that elected has the winner that there was"
    own = table.frame.query("rule == 'schulze'")
    assert own["same"].sum() == pytest.approx(2 - own["tied"].sum())
    assert own["tied"].sum() * 3 == pytest.approx(held["tied"].map(len).gt(0).sum())


@pytest.mark.usefixtures("without_figures")
def test_methods_say_how_a_session_is_carried_out(results: osim.Results) -> None:
    told = study(results)
    for each in ("2 plain", "by the rule schulze", "chance decided the winner", "in 2 passes", "resample whole groups"):
        assert each in told.methods
    for each in ("cumulative", "t intervals", "never over the agents"):
        assert each not in told.methods
    assert dict(told.design)["Memory"] == "none"


def test_one_number_names_the_round_of_a_statement(results: osim.Results) -> None:
    listed = consensus.statements(results)[["group", "candidate", "round"]]
    rated = consensus.ratings(results)[["group", "candidate", "round"]]
    keys = [set(each.itertuples(index=False, name=None)) for each in (listed, rated)]
    assert keys[0] == keys[1]


def test_sessions_without_ratings_have_none(tmp_path: Path) -> None:
    plain = SPEC | {"interaction": {"kind": "consensus", "rounds": 0}, "replicates": 1, "sweep": {}}
    made = osim.run(osim.load_experiment(plain), f"sqlite:///{tmp_path / 'p.sqlite'}")
    assert not {each.name for each in tables_of(made)} & {"ratings", "ratings-wins", "ratings-reliability"}
