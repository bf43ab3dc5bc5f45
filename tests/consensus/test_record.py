"""A session on the page of its run: rounds with candidates, ballots and critiques, beside its frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim import consensus
from opinionsim.store import open_store
from opinionsim.watching import search, transcript_data
from tests.support.running import beyond

SESSION: dict[str, Any] = {
    "name": "session",
    "seed": 5,
    "task": "Should the library open on Sundays?",
    "cast": [{"persona": "a teacher"}, {"persona": "a nurse"}, {"text": "Only if the staff is paid."}],
    "roles": {"mediator": {}},
    "interaction": {"kind": "consensus", "candidates": 4, "rounds": 1, "ratings": {"passes": 1}},
}


def test_a_session_is_told_round_by_round(tmp_path: Path) -> None:
    results = osim.run(osim.load_experiment(SESSION), str(tmp_path / "s.sqlite"))
    rounds = beyond(results)["blocks"]
    assert [each["title"] for each in rounds] == [f"Round {number}, by the rule schulze" for number in (0, 1)]
    held = consensus.selections(results)
    chosen = held[held["elects"]].set_index("round")
    statements = consensus.statements(results).set_index("turn")
    turns = results.turns.set_index("turn")
    for number, (listed, ballots, *critiques) in enumerate(each["blocks"] for each in rounds):
        election = chosen.loc[number]
        candidates = {each["turn"]: each for each in listed["lines"]}
        assert set(election["standing"]) <= set(candidates)
        marked = [[turn for turn, each in candidates.items() if each[mark]] for mark in ("own", "marks")]
        assert marked == [[election["winner"]]] * 2
        for turn, rank in zip(election["standing"], election["ranks"], strict=True):
            assert candidates[turn]["note"].startswith(f"place {rank + 1}, agreement ")
        assert all(each["text"] == statements.loc[turn, "statement"] for turn, each in candidates.items())
        step = turns[turns["step"] == number + 1]
        ranked = step[step["kind"] == "ballot"]
        assert {by["turn"]: order for by, order, _ in ballots["rows"]} == dict(ranked["message"])
        assert {each["turn"] for *_, rated in ballots["rows"] for each in rated} <= set(candidates)
        assert all(each["note"] in "1234567" for *_, rated in ballots["rows"] for each in rated)
        written = step[step["kind"] == "critique"]
        (said,) = [block["lines"] for each in critiques for block in each["blocks"]] or [[]]
        assert {each["turn"]: each["text"] for each in said} == dict(written["message"])
    assert len(rounds[0]["blocks"]) == 3


def test_a_text_that_is_put_before_the_citizens_is_nobodys(tmp_path: Path) -> None:
    claim = "The library should open on Sundays."
    topic = {"name": "library", "title": "Sundays", "claims": {"for": claim, "against": f"It is wrong that {claim}"}}
    own = {"topic": {"definition": {**topic, "question": SESSION["task"], "category": "policy"}, "framing": "for"}}
    rated = {**SESSION, **own, "interaction": {**SESSION["interaction"], "ratings": {"position": "before"}}}
    rated = {key: value for key, value in rated.items() if key != "task"}
    results = osim.run(osim.load_experiment(rated), str(tmp_path / "s.sqlite"))
    told = transcript_data(results)
    (put,) = [each for each in told["turns"] if each["act"] == "put"]
    # What stood beforehand for a citizen is that citizen's.
    assert [each["act"] for each in told["turns"] if each["given"]] == ["put"]
    assert {each["name"]: each["given"] for each in told["read"].values() if each["agent"] == put["agent"]} == {
        "given text": True,
        "Mediator": False,
    }
    assert f"turn {put['turn']}: given text statement" in osim.transcript(results)
    assert f"after reading given text (turn {put['turn']})" in osim.transcript(results)
    with open_store(results.url, write=False) as store:
        hits = search(store, experiment="session", text="library should open")["hits"]
    assert {(each["act"], each["name"]) for each in hits if each["given"]} == {("put", "given text")}
