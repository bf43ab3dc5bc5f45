from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.store import Results
from tests._running import SMALL, carry_out, changed, watched


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    spec = changed(SMALL, replicates=2, measurement={"texts": ["report"]})
    return carry_out(spec, f"sqlite:///{tmp_path_factory.mktemp('told') / 'told.sqlite'}")[1]


def test_everything_that_was_said_is_told_in_order(results: Results) -> None:
    told = osim.transcript(results, run=1)
    run = results.runs.iloc[1]
    turns = results.turns[results.turns["run_id"] == run["run_id"]]
    places = [told.index(f"turn {turn.turn}: ") for turn in turns.itertuples()]
    assert places == sorted(places)
    assert told.count("\nstep ") == len(turns) == 12
    for turn in turns.itertuples():
        assert f"\n{turn.message}" in told
    other = results.turns[results.turns["run_id"] != run["run_id"]]
    assert not any(message in told for message in other["message"] if message not in set(turns["message"]))
    assert f"run {run['run_id']} · small · replicate 1 · complete · evidence: scripted" in told
    assert f"claim: {run['claim']}" in told


def test_who_read_whom_and_how_it_was_coded(results: Results) -> None:
    run_id = results.runs["run_id"][0]
    names = results.agents[results.agents["run_id"] == run_id].set_index("agent")["name"]
    turns = results.turns[results.turns["run_id"] == run_id].set_index("turn")
    coded = results.opinions[results.opinions["run_id"] == run_id].set_index("turn")["value"]
    for turn, row in turns[turns["act"] == "review"].iterrows():
        (read,) = row["reads"]
        heading = osim.transcript(results, 0, turn=int(turn)).split("\n")[3]
        author = names[turns["agent"][read]]
        value = coded[turn]
        expected = "no answer" if value != value else "coded 0" if value == 0 else f"coded {value:+g}"
        assert heading == (
            f"step {row['step']}, turn {turn}: {names[row['agent']]} (agent {row['agent']}) review "
            f"after reading {author} (turn {read})  [{expected}]"
        )
    written = osim.transcript(results, 0, turn=0).split("\n")[3]
    assert written.endswith(" write")


def test_the_turns_of_one_agent(results: Results) -> None:
    run_id = results.runs["run_id"][0]
    turns = results.turns[(results.turns["run_id"] == run_id) & (results.turns["agent"] == 2)]
    told = osim.transcript(results, run_id[:10], agent=2)
    assert told.count("\nstep ") == len(turns) > 0


def test_messages_from_outside_and_refusals_are_named() -> None:
    interaction = {"kind": "external", "steps": 2, "messages": ["It is round."]}
    spec = changed(SMALL, interaction=interaction, model={"options": {"refusal_rate": 1.0}})
    told = osim.transcript(carry_out(spec, "outside.sqlite")[1])
    assert told.count("after reading the message external-0  [no answer]") == 2


def test_a_bare_model_has_no_name() -> None:
    spec = changed(SMALL, interaction={"kind": "no-role-play", "reports": 1})
    assert "(no role) (agent 3) report-once" in osim.transcript(carry_out(spec, "bare.sqlite")[1])


def test_what_does_not_exist(results: Results) -> None:
    with pytest.raises(SpecError, match=r"run 2 does not exist; valid: 0\.\.1"):
        osim.transcript(results, 2)
    with pytest.raises(SpecError, match=r"agent 4 does not exist; valid: 0\.\.3"):
        osim.transcript(results, 0, agent=4)
    with pytest.raises(SpecError, match=r"turn 12 does not exist; valid: 0\.\.11"):
        osim.transcript(results, 0, turn=12)
    with pytest.raises(SpecError, match="run 'xyz' names 0 runs"):
        osim.transcript(results, "xyz")


def test_a_run_that_has_not_got_anywhere() -> None:
    model, _ = watched(fails=lambda number: True)
    results = carry_out(SMALL, "nothing.sqlite", model)[1]
    told = osim.transcript(results)
    assert "incomplete" in told
    assert "step" not in told.split("claim:")[1]
    with pytest.raises(SpecError, match="turn 0 does not exist; valid: none, nothing is on record yet"):
        osim.transcript(results, turn=0)


def _meeting(**run: Any) -> Any:
    """Results of one run: two participants and a moderator, whose post each one reads and reports on."""
    row = {
        **{"run_id": "r0", "cell": "c0", "replicate": 0, "status": "complete", "evidence": "mixed", "claim": "a claim"},
        **{"instrument_id": "m0", "classifier": "lexicon", "validation": "", "n_agents": 2},
    }
    agents = pd.DataFrame(
        {
            "run_id": "r0",
            "agent": [0, 1, 2],
            "name": ["Ada", "Ben", "Kim"],
            "role": ["participant", "participant", "moderator"],
            "model": ["openai:a", "openai:a", "scripted"],
            "evidence": ["model", "human", "scripted"],
        }
    )
    turns = pd.DataFrame(
        {
            "run_id": "r0",
            "turn": [0, 1, 2],
            "step": 1,
            "agent": [2, 0, 1],
            "act": ["open", "report", "report"],
            "kind": ["post", "report", "report"],
            "reads": [(), (0,), (0, 1)],
            "message": ["Welcome.", "I agree.", ""],
            "condition": ["answered", "answered", "skipped"],
        }
    )
    read = [("a9", "civility", 0, None, 7), ("a9", "civility", 1, None, 6), ("a9", "agreement", 1, 0, 1)]
    read += [("m0", "stance", 0, None, 0), ("m0", "stance", 1, 0, -2), ("m0", "stance", 1, None, 2)]
    opinions = pd.DataFrame(read, columns=["instrument_id", "variable", "turn", "about", "value"])
    opinions = opinions.astype({"about": "Int64", "value": float}).assign(run_id="r0", cell="c0")
    return SimpleNamespace(runs=pd.DataFrame([row | run]), agents=agents, turns=turns, opinions=opinions)


def _headings(told: str) -> list[str]:
    return [line for line in told.split("\n") if line.startswith("step ")]


def test_everybody_is_shown_with_a_role_and_what_was_skipped() -> None:
    assert _headings(osim.transcript(_meeting())) == [
        "step 1, turn 0: Kim, moderator (agent 2, scripted) open  [coded 0]",
        "step 1, turn 1: Ada (agent 0, openai:a, model) report after reading Kim, moderator (turn 0)  [coded +2]",
        "step 1, turn 2: Ben (agent 1, openai:a, human) report after reading Kim, moderator (turn 0), Ada (turn 1)"
        "  [skipped]",
    ]
    assert len(_headings(osim.transcript(_meeting(), agent=2))) == 1


def test_a_role_that_is_a_name_is_said_once() -> None:
    meeting = _meeting()
    for name, shown in {"Moderator": "Moderator", "": "moderator"}.items():
        meeting.agents["name"] = ["Ada", "Ben", name]
        assert _headings(osim.transcript(meeting))[0].startswith(f"step 1, turn 0: {shown} (agent 2, ")
    del meeting.agents["role"]
    assert "after reading Ada" not in osim.transcript(meeting, turn=1)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_cell_in_which_no_stance_is_read_codes_nothing(missing: Any) -> None:
    told = osim.transcript(_meeting(instrument_id=missing, classifier=missing, validation=missing))
    assert "coded" not in told
    assert told.count("\nstep ") == 3
