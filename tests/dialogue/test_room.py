"""Rooms as experiments: what is refused, what the scripted model says, and what is found on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim import metrics
from opinionsim.dialogue import ENDINGS, analyses
from opinionsim.errors import SpecError
from opinionsim.specification import load_experiment

MODELS = Path(__file__).parents[2] / "experiments" / "room_models.yaml"


def changed(**fields: Any) -> dict[str, Any]:
    """The room of models with some of its sections changed; `interaction` is added to."""
    spec = yaml.safe_load(MODELS.read_text(encoding="utf-8"))
    spec["interaction"] |= fields.pop("interaction", {})
    return {**spec, **fields}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"roles": {"moderator": {}}}, "roles: has no 'analyzer', which 'room' needs"),
        ({"roles": {"analyzer": {}}}, "roles: has no 'moderator', which 'room' needs"),
        ({"interaction": {"moderator": False}}, "roles.moderator: needs turns that are known in advance"),
        ({"interaction": {"analyze_every": 0}}, "roles.analyzer: is not a role of 'room'; valid: moderator"),
        (
            {"roles": {"moderator": {"values": "Be kind."}, "analyzer": {}}},
            "roles.moderator.values: is only for a moderator; set system",
        ),
        ({"interaction": {"every": 1}}, "interaction.every: must be at least 2; got 1"),
        ({"interaction": {"unheard": 1}}, "interaction.unheard: 3 speakers cannot all be heard in 1 turns"),
        ({"interaction": {"without": ["manners"]}}, "interaction.without"),
        ({"interaction": {"questionnaire": True}}, "interaction.questionnaire: needs a person"),
        ({"interaction": {"last_n": 3}}, "interaction.last_n: has no effect on models that remember"),
        ({"cast": [{"name": "Ada"}]}, "cast: must be at least 2 for interaction kind 'room'"),
        (
            {"cast": [{"seat": {}}, {"seat": {}}, {"seat": {}}, {}]},
            "interaction.every: 3 turns are too few for 3 seats and 1 other speaker; give 4 or more",
        ),
    ],
)
def test_a_room_that_cannot_be_is_refused_before_anything_runs(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError) as error:
        load_experiment(changed(**fields))
    assert problem in str(error.value)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    """Four replicates of the room of models, with a longer course."""
    store = tmp_path_factory.mktemp("room") / "room.sqlite"
    spec = changed(replicates=4, interaction={"steps": 10, "analyze_every": 2})
    return osim.run(load_experiment(spec), store=f"sqlite:///{store}")


def test_the_scripted_model_plays_all_roles(results: osim.Results) -> None:
    turns = results.turns
    for _, own in turns.groupby("run_id"):
        assert (own["kind"] == "ending").sum() == 1
        assert own.loc[own["kind"] == "ending", "message"].iloc[0] in ENDINGS
        told = own[own["kind"] == "analysis"]
        found = analyses([*zip(told["turn"], told["message"], strict=True)])
        assert [each.turn for each in found] == told["turn"].tolist()
        said = " ".join(own.loc[own["kind"].isin(["speech", "moderation"]), "message"])
        for claim in found[-1].claims:
            assert claim.text in said
            assert not claim.uncited
    moderated = turns[turns["act"] == "moderate-room"]
    assert {"silent", "answered"} == set(moderated["status"])
    assert turns.loc[turns["kind"] == "speech", "message"].nunique() > 20


def test_a_room_is_carried_out_as_it_was_planned(results: osim.Results) -> None:
    planned = osim.plan(load_experiment(changed(replicates=4, interaction={"steps": 10, "analyze_every": 2})))
    assert len(results.calls) <= planned.calls
    shown = osim.transcript(results, run=0)
    assert "Moderator (agent 3" in shown
    assert "Ada (agent 0, scripted (pull=2)) speech" in shown


def test_agreement_with_the_last_speaker_passes_over_the_moderator(results: osim.Results) -> None:
    found = metrics.sycophancy(results.runs, results.turns, results.opinions, kind="speech")
    assert len(found) == 4
    assert (found["n_no_speaker"] == 0).all()
    assert (found["n_apart"] > 0).all()
    assert ((found["toward_rate"] + found["away_rate"]) <= 1).all()


def test_role_texts_and_guidance_are_part_of_what_a_run_is() -> None:
    spoken: dict[str, Any] = {"roles": {"moderator": {"system": "You are a stern chair."}, "analyzer": {}}}
    ids = {
        load_experiment(changed(**fields)).runs[0].run_id
        for fields in ({}, spoken, {"interaction": {"without": ["clarity"]}}, {"interaction": {"words": 60}})
    }
    assert len(ids) == 4
