"""Texts of a cast, moderators and structures in a specification: bad input, forecasts, and sweeps of structures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.deliberation import NumberedReplies
from opinionsim.specification import load_experiment
from tests.support.running import refused

TWO = [{"name": "Ada"}, {"name": "Ben"}]
CHAIN: dict[str, Any] = {"name": "chain", "task": "Say something.", "cast": TWO, "interaction": {"kind": "chain"}}


MEMBERS: list[tuple[dict[str, Any], str]] = [
    ({"persona": "a", "template": "defautl"}, "unknown name 'defautl' (did you mean default?); valid: default, anes"),
    ({"persona": "a", "template": "You are somebody."}, "a text must contain ${persona}; got"),
    ({"instructions": "chian"}, "unknown name 'chian' (did you mean chain?)"),
    ({"instructions": "Read it all."}, "a text must contain ${previous_responses}"),
    ({"persona": "a", "template": "first_wave", "without": ["empahty"]}, "the ideal 'empahty'; valid: common_good"),
    ({"persona": "a", "without": ["empathy"]}, "no text of this agent has the ideal 'empathy'; valid: none"),
]


@pytest.mark.parametrize(("member", "told"), MEMBERS, ids=[str(member) for member, _ in MEMBERS])
def test_a_wrong_member_is_told_before_any_call(member: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, {**CHAIN, "cast": [member, {"name": "Ben"}]})


FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"roles": {"moderator": {"persona": "defalt"}}}, "moderator: unknown name 'defalt' (did you mean default?)"),
    ({"roles": {"moderator": {"instructions": "jury"}}}, "roles.moderator: instructions: unknown name 'jury'"),
    (
        {"roles": {"moderator": {"instructions": "Combine them."}}},
        "roles.moderator: instructions: a text must contain ${previous_responses}",
    ),
    (
        {"roles": {"moderator": {"persona": "second_wave", "without": ["x"]}}},
        "moderator: without: no text of this agent has the",
    ),
    (
        {"task": ..., "cast": [{"task": "Sing."}, {"task": "Dance."}], "roles": {"moderator": {"persona": "default"}}},
        "moderator: task: is required",
    ),
    (
        {"task": ..., "cast": [{"task": "Sing."}, {"task": "Dance."}], "roles": {"moderator": {"automatic": True}}},
        "moderator: task: is required",
    ),
    ({"prompts": "default"}, "prompts: prompt pack default: no task template 'respond'"),
    (
        {"sweep": {"interaction.cycles": [1, True]}},
        "sweep interaction.cycles=true: interaction.cycles: must be a whole",
    ),
    ({"sweep": {"roles.moderator": [{}, {"persona": "defalt"}]}}, "unknown name 'defalt'"),
    ({"interaction": {"kind": "debate"}, "cast": [*TWO, {}]}, "interaction.kind: a debate is between exactly 2 agents"),
    (
        {"interaction": {"kind": "debate"}, "cast": [{}]},
        "cast: must be at least 2 for interaction kind 'debate'; got 1",
    ),
    (
        {"interaction": {"kind": "rounds"}, "cast": [{}]},
        "cast: must be at least 2 for interaction kind 'rounds'; got 1",
    ),
]


@pytest.mark.parametrize(("fields", "told"), FIELDS, ids=[str(fields)[:80] for fields, _ in FIELDS])
def test_a_wrong_field_is_told_before_any_call(fields: dict[str, Any], told: str, tmp_path: Path) -> None:
    found = refused(tmp_path, {**CHAIN, **fields})
    assert told in found
    assert found.startswith("spec.yaml:")


STRUCTURES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "chain", "cycles": True}, "cycles: must be a whole number; got true"),
    ({"kind": "chain", "cycles": 0}, "cycles: must be at least 1; got 0"),
    ({"kind": "chain", "cycles": 1.5}, "cycles: must be a whole number; got 1.5"),
    ({"kind": "chain", "cycles": 9_999_999}, "cycles: makes 19999998 turns"),
    ({"kind": "chain", "last_n": 0}, "last_n: must be at least 1; got 0"),
    ({"kind": "chain", "last_n": -1}, "last_n: must be at least 1; got -1"),
    ({"kind": "chain", "last_n": True}, "last_n: must be a whole number; got true"),
    ({"kind": "chain", "last_n": 2, "remember": True}, "last_n: cannot be combined with remember"),
    ({"kind": "chain", "remember": "maybe"}, "remember: must be true or false"),
    ({"kind": "chain", "order": "random"}, "order: unknown value 'random'; valid: counterbalanced, cast, shuffled"),
    ({"kind": "chain", "shuffle": True}, "shuffle: unknown field"),
    ({"kind": "chain", "steps": 3}, "steps: unknown field"),
    ({"kind": "chain", "instructions": "nope"}, "interaction.instructions: unknown name 'nope'"),
    ({"kind": "chain", "instructions": "nothing here"}, "instructions: a text must contain ${previous_responses}"),
    ({"kind": "ensemble", "last_n": 2}, "last_n: unknown field"),
    ({"kind": "ensemble", "instructions": "debate"}, "instructions: has no effect, because agents see no answers"),
    ({"kind": "ensemble", "own": True, "remember": True}, "own: cannot be combined with remember"),
    ({"kind": "rounds", "network": "rign"}, "network: unknown network 'rign' (did you mean ring?)"),
    ({"kind": "graph"}, "edges: is required but missing"),
    ({"kind": "graph", "edges": None}, "edges: must be a list; got null"),
    ({"kind": "graph", "edges": [[0, 1]], "last_n": 2}, "last_n: unknown field"),
    ({"kind": "graph", "edges": [[0, 1]], "cycles": 2}, "cycles: must be 1"),
    ({"kind": "graph", "edges": [[True, 1]]}, "edges[0][0]: must be a whole number or text; got true"),
    ({"kind": "graph", "edges": [[-1, 0]]}, "edges[0]: agent -1 does not exist; valid: 0..1, or names"),
    ({"kind": "graph", "edges": [[0, 2]]}, "edges[0]: agent 2 does not exist"),
    ({"kind": "graph", "edges": [["Ada", "Eve"]]}, "there is no agent 'Eve'; valid: Ada, Ben"),
    ({"kind": "graph", "edges": [["Ada", "Ada"]]}, "'Ada' leads to itself"),
    ({"kind": "graph", "edges": [[0, 1], [0, 1]]}, "the edge from 0 to 1 is given twice"),
    ({"kind": "graph", "edges": [["Ada", "Ben"], [0, 1]]}, "the edge from 0 to 1 is given twice"),
    ({"kind": "graph", "edges": [["Ada", "Ben"], ["Ben", "Ada"]]}, "the edges form a cycle: Ada -> Ben -> Ada"),
    ({"kind": "graph", "edges": [["Ada", "Ben", "Ada"]]}, "edges[0]: must have at most 2 entries"),
    ({"kind": "graph", "edges": [["Ada"]]}, "edges[0][1]: is required but missing"),
    ({"kind": "graph", "edges": "Ada"}, "edges: must be a list; got 'Ada'"),
    ({"kind": "graph", "edges": ["Ada"]}, "edges[0]: must be a list; got 'Ada'"),
    ({"kind": "graph", "edges": {"Ada": "Ben"}}, "edges: must be a list"),
]


@pytest.mark.parametrize(("interaction", "told"), STRUCTURES, ids=[str(each) for each, _ in STRUCTURES])
def test_a_wrong_structure_is_told_before_any_call(interaction: dict[str, Any], told: str, tmp_path: Path) -> None:
    found = refused(tmp_path, {**CHAIN, "interaction": interaction})
    assert told in found
    assert found.startswith("spec.yaml:")
    assert "interaction." in found
    assert found.count("\n") == 0, "told once"


def test_agents_that_shall_remember_need_a_memory(tmp_path: Path) -> None:
    remembering = {"interaction": {"kind": "chain", "remember": True}, "cognition": {"memory": "none"}}
    found = refused(tmp_path, {**CHAIN, **remembering})
    assert "interaction.remember: needs a memory, but cognition.memory is none" in found


def test_a_moderator_decides_which_runs_there_are() -> None:
    asked = ({}, {"roles": {}}, {"roles": {"moderator": {}}}, {"roles": {"moderator": {"task": "Sum."}}})
    found = [load_experiment({**CHAIN, **roles}).runs[0].run_id for roles in asked]
    assert found[0] == found[1]
    assert len(set(found)) == 3


# -- forecasts --------------------------------------------------------------------------------------------------

JUDGED = {"draws": 3, "selector": "judge"}
DIAMOND = [["Ada", "Ben"], ["Ada", "Cleo"], ["Ben", "Dan"], ["Cleo", "Dan"]]
#: Fields, and the longest chain of calls.
FORECASTS: list[tuple[dict[str, Any], int]] = [
    ({"interaction": {"kind": "chain", "cycles": 2}, "cast": [{"name": "Ada", **JUDGED}, {"name": "Ben"}]}, 4 + 2),
    ({"interaction": {"kind": "chain"}, "roles": {"moderator": {"automatic": True}}}, 3),
    ({"interaction": {"kind": "ensemble", "cycles": 3}, "roles": {"moderator": {"automatic": True}}}, 2),
    (
        {
            "interaction": {"kind": "ensemble"},
            "cast": [{"draws": 4, "selector": "longest"}, JUDGED],
            "roles": {"moderator": {}},
        },
        3,
    ),
    (
        {
            "interaction": {"kind": "graph", "edges": DIAMOND},
            "cast": [{"name": "Ada"}, {"name": "Ben", **JUDGED}, {"name": "Cleo"}, {"name": "Dan"}],
            "roles": {"moderator": {"values": "peace"}},
        },
        3 + 1 + 1,
    ),
    ({"interaction": {"kind": "debate", "cycles": 2}, "cognition": {"draws": 2, "selector": "judge"}}, 8),
    (
        {
            "interaction": {"kind": "chain", "cycles": 2, "remember": True},
            "cognition": {"memory": "reflective"},
            "cast": [{**JUDGED}, {}],
            "measurement": {"probe": {"before": 1, "after": 1}},
        },
        # Four answers, two of them judged; the last two reflect before they are asked.
        4 + 2 + 1 + 1,
    ),
    ({"interaction": {"kind": "rounds", "cycles": 3}, "measurement": {"probe": {"before": 1, "after": 2}}}, 4),
]


@pytest.mark.parametrize(("fields", "path"), FORECASTS)
def test_a_forecast_counts_the_calls_of_the_run(fields: dict[str, Any], path: int) -> None:
    experiment = load_experiment({**CHAIN, "replicates": 2, "model": {"name": "numbered"}, **fields})
    scripted = load_experiment({**CHAIN, "replicates": 2, **fields})
    forecast = osim.plan(scripted)
    results = osim.run(experiment, "s.sqlite", chat_model=NumberedReplies())
    assert results.runs["error"].tolist() == ["", ""]
    assert forecast.calls == len(results.calls)
    assert forecast.longest_path == path


def test_no_sentence_of_the_scripted_model_makes_a_call_more() -> None:
    spec = {**CHAIN, "replicates": 20, "interaction": {"kind": "ensemble"}, "roles": {"moderator": {"automatic": True}}}
    spec["cast"] = [{**JUDGED}, {"draws": 2, "selector": "longest"}]
    experiment = load_experiment(spec)
    assert osim.plan(experiment).calls == len(osim.run(experiment, "s.sqlite").calls) == 20 * 8


# -- structures beside each other -------------------------------------------------------------------------------


def test_structures_are_swept_beside_their_control_in_shared_blocks() -> None:
    """The same agents with the same opinions; probes before and after; as many turns of their own without others."""
    kinds = [
        {"kind": "chain", "cycles": 2, "label": "chain"},
        {"kind": "ensemble", "cycles": 2, "own": True, "label": "alone"},
        {"kind": "rounds", "network": "ring", "label": "rounds"},
    ]
    spec = {
        "name": "beside",
        "replicates": 3,
        "topic": {"name": "t-rex"},
        "population": {"size": 4, "assignment": "random"},
        "interaction": {"kind": "chain"},
        "measurement": {"probe": {"before": 1, "after": 1}},
        "sweep": {"interaction": kinds},
    }
    results = osim.run(load_experiment(spec), "s.sqlite")
    assert results.runs["error"].eq("").all()
    assert results.runs["block"].nunique() == 3
    agents = results.agents.merge(results.runs[["run_id", "block", "cell"]], on="run_id")
    for _, same in agents.groupby("block"):
        drawn = [each.set_index("agent")[["name", "assigned_opinion"]] for _, each in same.groupby("cell")]
        assert all(each.equals(drawn[0]) for each in drawn)
    turns = results.turns.merge(results.runs[["run_id", "cell", "block"]], on="run_id")
    counted = turns[turns["act"] == "respond"].groupby(["cell", "run_id", "agent"]).size()
    assert set(counted) == {2}
    before = turns[(turns["act"] == "probe") & (turns["step"] == 0)]
    assert before["reads"].map(len).eq(0).all()
    after = turns[(turns["act"] == "probe") & (turns["step"] > 0)]
    assert after["reads"].map(len).gt(0).all(), "asked with what their next turn would show"
    coded = results.opinions[results.opinions["kind"] == "response"]
    assert len(coded) == 3 * 3 * 4 * 2
