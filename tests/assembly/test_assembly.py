"""Populations as assembled for the replicates of an experiment."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from opinionsim.assembly import assemble
from opinionsim.registry import built_in, names, places
from opinionsim.schedules import outline
from opinionsim.specification import json_schema, load_experiment
from tests.support.deciding import SPEC


@pytest.mark.parametrize(
    ("size", "initial"), [(5, "uniform"), (7, "uniform"), (10, "skewed-positive"), (12, "personas")]
)
def test_a_latin_square_gives_every_agent_every_place_once(size: int, initial: str) -> None:
    """Also where personas are sampled or repeated, and where opinions do not divide evenly."""
    experiment = load_experiment(
        {
            "name": "square",
            "replicates": size,
            "topic": {"name": "global-warming"},
            "population": {"size": size, "initial_opinions": initial, "assignment": "latin-square"},
            "interaction": {"kind": "dyadic", "steps": 1},
        }
    )
    populations = [assemble(run, experiment.resources).population for run in experiment.runs]
    assert all(population.personas == populations[0].personas for population in populations)
    held = [Counter(population.opinions[agent] for population in populations) for agent in range(size)]
    assert all(counts == held[0] for counts in held)
    assert held[0] == Counter(populations[0].opinions)


DYADS = "interaction=dyadic"
_INTERACTIONS = [
    {"kind": "dyadic", "steps": 2},
    {"kind": "broadcast", "steps": 2},
    {"kind": "similarity", "steps": 2},
    {"kind": "bounded-confidence", "steps": 2, "confidence": 1.0},
    {"kind": "rewiring", "steps": 2, "tolerance": 1.0, "network": "ring"},
    *({"kind": "feed", "steps": 2, "ranking": ranking} for ranking in ("similarity", "recency", "random")),
    {"kind": "independent", "reports": 2},
    {"kind": "remembered", "steps": 2},
    {"kind": "no-role-play", "reports": 2},
    {"kind": "no-role-play", "reports": 2, "conversation": True},
    {"kind": "placebo", "steps": 2},
    {"kind": "self-echo", "steps": 2},
    {"kind": "yoked", "steps": 2, "source": {"cell": DYADS}},
    {"kind": "choices", "text": {"cell": DYADS}, "other": {"cell": DYADS, "agent": 1}},
    {"kind": "twins", "steps": 2, "source": {"cell": "interaction=recorded"}},
    {"kind": "external", "steps": 2, "messages": ["Hello."]},
    {"kind": "chain", "cycles": 2},
    {"kind": "ensemble", "own": True, "cycles": 2},
    {"kind": "graph", "edges": [[0, 1], [0, 2], [1, 3], [2, 3]]},
    {"kind": "rounds", "network": "ring"},
    {"kind": "debate", "cycles": 2},
    {"kind": "interview", "questions": ["Who are you?"]},
    {"kind": "instruct", "marker": "Moderator instructions:"},
    {"kind": "consensus", "candidates": 2},
    {"kind": "questions", "messages": ["Should it rain?"], "count": 2, "shown": 1},
    {"kind": "room", "steps": 2},
]
#: Those that are there: slices bring some.
INTERACTIONS = [each for each in _INTERACTIONS if each["kind"] in places("interaction")]
#: The cell that a kind takes over from, where it is no dyadic one.
RECORD = {
    "kind": "recorded",
    "content": "c",
    "units": [0, 1],
    "steps": 2,
    "rated": [0, 2],
    "ratings": {"stance": ["report"]},
}
SOURCES = {"twins": RECORD}
#: Roles that each kind needs.
ROLES = {"consensus": ("mediator",), "room": ("moderator", "analyzer")}


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda each: each["kind"] + each.get("ranking", ""))
@pytest.mark.parametrize("asked", [{}, {"probe": {"before": 1}, "self_report": {"after": 1}}], ids=["plain", "asked"])
def test_what_is_known_of_a_schedule_beforehand_is_what_it_declares(
    interaction: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Identity and the check of prompts rest on the specification, for no schedule is drawn by then."""
    source = SOURCES.get(interaction["kind"], {"kind": "dyadic", "steps": 2})
    experiment = load_experiment(
        {
            "name": "known",
            "topic": {"name": "global-warming"},
            "population": {"size": {"debate": 2, "questions": 1}.get(interaction["kind"], 4)},
            "interaction": interaction,
            "measurement": asked,
            "roles": {key: {} for key in ROLES.get(interaction["kind"], ())},
            "replicates": 2,
            "sweep": {"interaction": [source, interaction]} if {"source", "other"} & interaction.keys() else {},
        }
    )
    run = experiment.runs[-1]
    schedule = assemble(run, experiment.resources).schedule
    assert tuple(schedule.needs) == run.spec.interaction.needs
    assert {act.name for act in run.spec.acts} == set(schedule.acts)


def test_every_interaction_is_among_them() -> None:
    kinds = {each["kind"] for each in INTERACTIONS}
    unasked = {"native", "recorded"} & {*names("interaction")}
    assert kinds == set(built_in("interaction")) - unasked
    defined = json_schema()["$defs"]
    forms = [defined.get(form.get("$ref", "").rpartition("/")[2], form) for form in defined["Interaction"]["anyOf"]]
    assert {form["properties"]["kind"].get("const") for form in forms} == {*built_in("interaction"), None}


def _drawn(spec: dict[str, Any]) -> list[list[Any]]:
    """What the turns of each run read, in an order drawn from streams by round and agent."""
    experiment = load_experiment(spec)
    found = []
    for run in experiment.runs:
        schedule = assemble(run, experiment.resources).schedule
        found.append([turn.reads for turn in outline(schedule) if turn.act == "judge"])
    return found


def test_streams_are_shared_over_cells_that_differ_in_treatment_and_are_those_of_replicate_and_seed() -> None:
    sweep = {"roles.clerk.system": ["Be fair.", "Be brief."]}
    one, again, other, last = _drawn({**SPEC, "replicates": 2, "sweep": sweep})
    assert (one, again) == (other, last)
    assert one != again
    assert len(set(one)) > len(one) // 2, "rounds and agents have streams of their own"
    assert _drawn({**SPEC, "seed": 9})[0] != one
    alone = _drawn({**SPEC, "replicates": 2, "sweep": sweep, "independent_over": ["roles.clerk.system"]})
    assert alone[0] != alone[2]
    assert len({str(each) for each in alone}) == 4
