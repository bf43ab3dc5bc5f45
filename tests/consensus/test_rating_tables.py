"""The tables of ratings, against the functions that they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim import consensus
from opinionsim.cli import app
from opinionsim.report import tables_of
from tests.consensus.test_record import SESSION

SPEC: dict[str, Any] = {
    **SESSION,
    "interaction": {
        "kind": "consensus",
        "drafters": [{"count": 2, "label": "plain"}, {"count": 2, "style": "reasoned", "label": "reasoned"}],
        "rounds": 0,
        "position": "The library should open on Sundays.",
        "ratings": {"passes": 2, "position": "before"},
    },
    "replicates": 3,
    "sweep": {"model.temperature": [0.0, 1.0]},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    folder = tmp_path_factory.mktemp("rated")
    return osim.run(osim.load_experiment(SPEC), f"sqlite:///{folder / 's.sqlite'}")


def test_rows_are_those_of_the_functions_by_condition(results: osim.Results) -> None:
    by_policy, wins, raters = tables_of(results, what="rated-statements")
    ratings = consensus.ratings(results)
    conditions = results.runs.set_index("run_id")["model.temperature"]
    for level, own in ratings.groupby(ratings["group"].map(conditions)):
        expected = consensus.policy_table(own).set_index(["policy", "measure"])
        found = by_policy.frame[by_policy.frame["model.temperature"] == level].set_index("policy")
        assert set(found.index) == {"position", "plain", "reasoned"}
        for policy, measure in expected.index:
            name = measure.replace("_", " ")
            row = found.loc[policy, [name, f"{name}_ci_low", f"{name}_ci_high", "groups"]]
            ends = expected.loc[(policy, measure), ["estimate", "low", "high"]]
            assert row.iloc[:3].tolist() == pytest.approx(ends.tolist(), nan_ok=True)
            assert row["groups"] == 3
        (pair,) = wins.frame[wins.frame["model.temperature"] == level].to_dict("records")
        (known,) = consensus.win_rates(own, aggregates=["mean"]).to_dict("records")
        assert (pair["comparisons"] + pair["ties"], pair["wins"]) == (3, pytest.approx(known["win_rate"], nan_ok=True))
        (twice,) = raters.frame[raters.frame["model.temperature"] == level].to_dict("records")
        assert twice["reliable"] == consensus.reliability(own)["reliable"].sum()
        assert twice["raters"] == twice["rated twice"] == 3 * 2, "who gave a text is asked nothing"


def test_table_and_report_hold_them(results: osim.Results, tmp_path: Path) -> None:
    place, page = str(results.url), tmp_path / "r.html"
    printed = CliRunner().invoke(app, ["table", place]).stdout
    assert CliRunner().invoke(app, ["report", place, "--out", str(page)]).exit_code == 0
    for heading in ("Ratings by policy", "Which policy wins", "Reliability of raters"):
        assert heading in printed
        assert heading in page.read_text(encoding="utf-8")


def test_sessions_without_ratings_have_none(tmp_path: Path) -> None:
    plain = SPEC | {"interaction": {"kind": "consensus", "rounds": 0}, "replicates": 1, "sweep": {}}
    made = osim.run(osim.load_experiment(plain), f"sqlite:///{tmp_path / 'p.sqlite'}")
    assert not {each.name for each in tables_of(made)} & {"ratings", "ratings-wins", "ratings-reliability"}
