"""Casts in a specification: bad input, told before any call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.running import refused

TWO = [{"name": "Ada"}, {"name": "Ben"}]
BASE: dict[str, Any] = {
    "name": "cast",
    "task": "Say something.",
    "cast": TWO,
    "interaction": {"kind": "broadcast", "steps": 2},
}

MEMBERS: list[tuple[dict[str, Any], str]] = [
    ({"nmae": "Ada"}, "cast[0].nmae: unknown field (did you mean name?)"),
    ({"name": " "}, "cast[0].name: must be one line that is not blank"),
    ({"name": "A\nB"}, "cast[0].name: must be one line"),
    ({"name": 3}, "cast[0].name: must be text; got 3"),
    ({"system": "a", "persona": "b"}, "cast[0].persona: cannot be combined with system"),
    ({"persona": "a", "query": "all"}, "cast[0].query: cannot be combined with persona"),
    ({"system": ""}, "cast[0].system: must not be blank"),
    ({"persona": " \n"}, "cast[0].persona: must not be blank"),
    ({"task": "\t"}, "cast[0].task: must not be blank"),
    ({"template": "default"}, "cast[0].template: has no effect without a persona"),
    ({"without": "empathy"}, "cast[0].without: must be a list"),
    ({"draws": True, "selector": "first"}, "cast[0].draws: must be a whole number; got true"),
    ({"draws": 0}, "cast[0].draws: must be at least 1; got 0"),
    ({"draws": 2.0, "selector": "first"}, "cast[0].draws: must be a whole number; got 2.0"),
    ({"draws": 101, "selector": "first"}, "cast[0].draws: must be at most 100; got 101"),
    ({"draws": 2}, "cast[0].draws: 2 replies need a selector; `first` picks the first"),
    ({"selector": "judge"}, "cast[0].selector: has no effect with one draw"),
    ({"draws": 2, "selector": "jugde"}, "unknown selector 'jugde' (did you mean judge?)"),
    ({"draws": 2, "selector": {"name": "judge", "options": {"q": 1}}}, "unknown option 'q' for selector 'judge'"),
    ({"model": "scripted"}, "cast[0].model: must be a mapping of fields"),
    ({"model": {"classic": "deffuant"}}, "cast[0].model.classic: unknown field"),
    ({"model": {"name": "gpt"}}, "unknown model 'gpt'"),
]


@pytest.mark.parametrize(("member", "told"), MEMBERS, ids=[str(member) for member, _ in MEMBERS])
def test_a_wrong_member_is_told_before_any_call(member: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, {**BASE, "cast": [member, {"name": "Ben"}]})


FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"cast": []}, "cast: must list at least one agent"),
    ({"cast": {"name": "Ada"}}, "cast: must be a list"),
    ({"cast": "Ada"}, "cast: must be a list; got 'Ada'"),
    ({"cast": ["Ada"]}, "cast[0]: must be a mapping of fields; got 'Ada'"),
    ({"cast": [*TWO, {"name": "Ada"}]}, "cast: 'Ada' is the name of two agents"),
    ({"cast": [{"name": "Agent 1"}, {}]}, "cast: 'Agent 1' is the name of two agents"),
    ({"cast": [{"name": "Moderator"}], "roles": {"moderator": {}}}, "cast: 'Moderator' is the name of two agents"),
    ({"population": {"size": 2}}, "population: cannot stand beside cast"),
    ({"task": ...}, "topic: is required but missing; give a topic, or a task"),
    ({"task": "  "}, "task: must have a character in it that is no white space"),
    ({"task": 3}, "task: must be text; got 3"),
    ({"task": ..., "cast": [{"task": "Sing."}, {}]}, "topic: is required but missing"),
    ({"measurement": {"classifier": "lexicon"}}, "measurement.classifier: classifier 'lexicon' needs a claim"),
    (
        {"measurement": {"instruments": [{"variable": "tone", "classifier": "lexicon"}]}},
        "measurement.instruments[0].classifier: classifier 'lexicon' needs a claim",
    ),
    ({"roles": {"moderator": "default"}}, "moderator: must be a mapping of fields; got 'default'"),
    ({"roles": {"moderator": True}}, "moderator: must be a mapping of fields; got true"),
    ({"roles": {"moderator": {"draws": 2}}}, "moderator.draws: unknown field"),
    ({"roles": {"moderator": {"persona": " "}}}, "moderator.persona: must not be blank"),
    (
        {"roles": {"moderator": {"persona": "default", "system": "x"}}},
        "moderator.system: cannot be combined with persona",
    ),
    (
        {"roles": {"moderator": {"automatic": True, "values": "x"}}},
        "moderator.values: cannot be combined with automatic",
    ),
    ({"roles": {"moderator": {"automatic": "perhaps"}}}, "moderator.automatic: must be true or false; got 'perhaps'"),
    ({"interaction": {"kind": "no-role-play"}}, "cannot have a cast"),
    ({"sweep": {"cast": [TWO, [*TWO, *TWO]]}}, "'Ada' names two agents"),
]


@pytest.mark.parametrize(("fields", "told"), FIELDS, ids=[str(fields)[:80] for fields, _ in FIELDS])
def test_a_wrong_field_is_told_before_any_call(fields: dict[str, Any], told: str, tmp_path: Path) -> None:
    found = refused(tmp_path, {**BASE, **fields})
    assert told in found
    assert found.startswith("spec.yaml:")
