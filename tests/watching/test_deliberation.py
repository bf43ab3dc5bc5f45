"""Runs that are more than turns in a row: consensus, rooms and structures, beside their frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim import consensus, watching
from opinionsim.dialogue import analyses
from opinionsim.store import open_store
from tests.support.running import SMALL, changed

SESSION: dict[str, Any] = {
    "name": "session",
    "seed": 5,
    "task": "Should the library open on Sundays?",
    "cast": [{"persona": "a teacher"}, {"persona": "a nurse"}, {"text": "Only if the staff is paid."}],
    "roles": {"mediator": {}},
    "interaction": {"kind": "consensus", "candidates": 4, "rounds": 1, "ratings": {"passes": 1}},
}


def _told(spec: dict[str, Any] | Path, folder: Path) -> tuple[osim.Results, dict[str, Any]]:
    """Results of an experiment of one run, and what the run is beyond its turns."""
    results = osim.run(osim.load_experiment(spec), str(folder / "s.sqlite"))
    with open_store(results.url, write=False) as reader:
        return results, watching.deliberation(reader, results.runs["run_id"].iloc[0])


def test_a_session_is_told_round_by_round(tmp_path: Path) -> None:
    results, told = _told(SESSION, tmp_path)
    assert (told["kind"], [each["round"] for each in told["rounds"]]) == ("consensus", [0, 1])
    chosen = consensus.selections(results)[consensus.selections(results)["elects"]].set_index("round")
    statements = consensus.statements(results).set_index("turn")
    turns = results.turns.set_index("turn")
    for found in told["rounds"]:
        election = chosen.loc[found["round"]]
        candidates = {each["turn"]: each for each in found["candidates"]}
        assert set(election["standing"]) <= set(candidates)
        assert [turn for turn, each in candidates.items() if each["winner"]] == [election["winner"]]
        places = dict(zip(election["standing"], election["ranks"], strict=True))
        assert {turn: each["place"] for turn, each in candidates.items() if turn in places} == {
            turn: rank + 1 for turn, rank in places.items()
        }
        assert all(each["text"] == statements.loc[turn, "statement"] for turn, each in candidates.items())
        step = turns[turns["step"] == found["round"] + 1]
        ranked = step[step["kind"] == "ballot"]
        assert {each["turn"]: each["order"] for each in found["ballots"]} == dict(ranked["message"])
        assert {int(turn) for each in found["ballots"] for turn in each["rating"]} <= set(candidates)
        assert any(each["rating"] for each in found["ballots"])
        critiques = step[step["kind"] == "critique"]
        assert {each["turn"]: each["text"] for each in found["critiques"]} == dict(critiques["message"])
    assert told["rounds"][0]["critiques"]


def test_a_room_is_told_by_its_analyses(checkout: Path, tmp_path: Path) -> None:
    results, told = _told(checkout / "experiments" / "room_models.yaml", tmp_path)
    said = results.turns[results.turns["kind"] == "analysis"]
    expected = analyses([*said[["turn", "message"]].itertuples(index=False, name=None)])
    assert told["kind"] == "room"
    assert [(each["turn"], each["summary"]) for each in told["analyses"]] == [
        (each.turn, each.summary) for each in expected
    ]
    claims = [claim for each in told["analyses"] for claim in each["claims"]]
    assert claims
    assert all({"id", "text", "change", "premises", "counterarguments", "turns"} <= set(claim) for claim in claims)
    assert [claim["id"] for claim in claims] == [claim.id for each in expected for claim in each.claims]


@pytest.mark.parametrize(
    ("interaction", "kind"), [({"kind": "chain"}, "structure"), ({"kind": "dyadic", "steps": 3}, None)]
)
def test_structures_are_named_and_other_runs_are_turns(
    tmp_path: Path, interaction: dict[str, Any], kind: str | None
) -> None:
    _, told = _told(changed(SMALL, interaction=interaction), tmp_path)
    assert told == ({"kind": kind, "structure": interaction["kind"]} if kind else {"kind": None})
