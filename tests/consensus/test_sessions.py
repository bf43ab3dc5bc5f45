"""Sessions on record: winners that stay, drafts that leave somebody out, and what preview and replay make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

import opinionsim as osim
from opinionsim import consensus
from opinionsim.analysis import table1
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.planning import preview
from tests.consensus.test_record import SESSION

SPEC: dict[str, Any] = {
    **SESSION,
    "interaction": {
        "kind": "consensus",
        "drafters": [{"count": 2}, {"count": 2, "style": "reasoned"}],
        "rounds": 2,
        "incumbent": True,
        "leave_one_out": 1,
        "ratings": {"passes": 2},
    },
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    folder = tmp_path_factory.mktemp("session")
    return osim.run(osim.load_experiment(SPEC), f"sqlite:///{folder / 's.sqlite'}")


def test_every_round_has_one_winner_also_where_the_last_one_stays(results: osim.Results) -> None:
    listed = consensus.statements(results)
    assert listed.groupby("round")["winner"].sum().tolist() == [1, 1, 1]
    held = consensus.selections(results).set_index("round")["standing"]
    for number, own in listed[listed["stands"]].groupby("round"):
        assert set(own["turn"]) == set(held[number])


def test_ratings_of_a_statement_that_stays_count_in_their_own_round(results: osim.Results) -> None:
    ratings = consensus.ratings(results)
    assert set(ratings["pass"]) == {1, 2}
    assert not ratings.duplicated(["round", "citizen", "candidate", "pass"]).any()
    assert consensus.session_text(results).count("WINNER") == 3


def test_a_specification_with_drafters_is_read_again_as_it_was_resolved(results: osim.Results) -> None:
    again = osim.load_experiment(results.spec)
    assert [run.run_id for run in again.runs] == list(results.run_ids)


def test_a_preview_leaves_out_turns_that_ask_nobody() -> None:
    assert {"state", "draft.zero-shot", "rank", "criticise"} <= {
        name.partition(" of ")[0].partition(",")[0] for name in preview(osim.load_experiment(SPEC)).prompts
    }


def test_drafts_that_leave_an_opinion_out_count_for_no_policy(results: osim.Results) -> None:
    ratings = consensus.ratings(results)
    planted = ratings.assign(agreement=ratings["left_out"].isna().map({True: 6.0, False: 1.0}))
    table = consensus.policy_table(planted)
    assert (table.loc[table["measure"] == "mean", "estimate"] == 6.0).all()
    # Nor do they win, however much they are liked.
    liked = planted.assign(agreement=7.0 - planted["agreement"])
    apart = set(ratings.loc[ratings["left_out"].notna(), "candidate"])
    assert apart
    assert all(apart.isdisjoint(each) for each in consensus.sensitivity(liked)["winners"])


def test_a_welfare_function_of_scores_by_an_instrument_needs_a_transform() -> None:
    longest = {"name": "baseline", "options": {"method": "longest"}}
    listed = {"variable": "predicted_agreement", "classifier": longest, "texts": ["statement"], "about": "reads"}
    fields = {"kind": "consensus", "rounds": 0, "ballots": ["predicted"], "predictor": "instrument"}
    spec = {**SPEC, "measurement": {"instruments": [listed]}}
    with pytest.raises(SpecError, match=r"'nash' needs positive scores.*transform: exp"):
        osim.load_experiment({**spec, "interaction": {**fields, "rule": "nash"}})
    assert osim.load_experiment({**spec, "interaction": {**fields, "rule": {"kind": "nash", "transform": "exp"}}})


def test_a_run_that_cells_share_is_evaluated_once(tmp_path: Path) -> None:
    interaction = {"kind": "consensus", "candidates": 3, "rounds": 0, "ratings": {"passes": 1}}
    spec = {**SPEC, "interaction": interaction, "sweep": {"interaction.rule": ["schulze", "borda"]}}
    found = osim.run(osim.load_experiment(spec), f"sqlite:///{tmp_path / 's.sqlite'}")
    assert len(found.runs) == 2
    assert found.runs["run_id"].nunique() == 1
    assert len(consensus.ratings(found)) == 2 * 3
    assert consensus.candidate_table(consensus.ratings(found))["n"].tolist() == [2, 2, 2]


def test_a_position_rated_before_opinions_and_as_a_candidate_is_not_rated_twice_in_a_round(tmp_path: Path) -> None:
    interaction = {
        "kind": "consensus",
        "candidates": 2,
        "rounds": 0,
        "standing": ["position"],
        "position": "The library should open.",
        "ratings": {"position": "before", "passes": 1},
    }
    found = osim.run(osim.load_experiment({**SPEC, "interaction": interaction}), f"sqlite:///{tmp_path / 's.sqlite'}")
    ratings = consensus.ratings(found)
    assert set(ratings["pass"]) == {1}
    assert sorted(ratings.loc[ratings["policy"] == "position", "round"]) == [-1, -1, 0, 0]
    assert set(ratings.loc[ratings["policy"] != "position", "round"]) == {0}


class Failing(FakeListChatModel):
    """A provider that is out of order."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        raise ValueError("out of order")


def test_a_session_that_has_no_statement_is_an_empty_table(tmp_path: Path) -> None:
    spec = {**SPEC, "model": {"name": "failing"}}
    store = f"sqlite:///{tmp_path / 's.sqlite'}"
    found = osim.run(osim.load_experiment(spec), store, chat_model=Failing(responses=["Yes."]))
    assert consensus.statements(found).empty
    assert "winner" in consensus.statements(found)
    assert "incomplete" in consensus.session_text(found)
    with pytest.raises(MeasurementError, match="run 5 is not a session"):
        consensus.session_text(found, 5)


def test_a_session_in_python_takes_a_chat_model_and_its_name(tmp_path: Path) -> None:
    model = FakeListChatModel(responses=["<statement>We agree.</statement>\n<ranking>A > B</ranking>"])
    session = consensus.Mediation(["Yes.", "No."], "Should it?", rounds=0, candidates=2, ballots=["predicted"])
    found = session.run(f"sqlite:///{tmp_path / 's.sqlite'}", chat_model=model)
    assert found.winner == "We agree."
    assert set(found.results.runs["model"]) == {"FakeListChatModel"}


def test_a_group_is_a_list_of_citizens() -> None:
    for citizens in ("abc", ["a", None]):
        with pytest.raises(SpecError, match="citizens: must be a list of texts"):
            consensus.Mediation(citizens, "Should it?")  # type: ignore[arg-type]


def test_tables_name_all_that_are_tied_and_read_what_was_asked_after_the_session(tmp_path: Path) -> None:
    found = osim.run(osim.load_experiment("consensus_quickstart"), f"sqlite:///{tmp_path / 's.sqlite'}")
    table = consensus.election_table(found)
    assert table is not None
    rules = consensus.other_rules(found)
    tied = rules[rules["tied"]]
    assert len(tied)
    for row in tied.itertuples():
        assert " = ".join(map(str, row.first)) in str(table)
    assert "Instrument: self-reports" in str(table1(found.runs, found.metrics))
