"""Roles beside the participants, and texts in the place of participants: what is refused, and where it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from opinionsim.assembly import assemble
from opinionsim.errors import SpecError
from opinionsim.planning import plan
from opinionsim.specification import load_experiment

#: Keys in this order, so that lines can be told.
SPEC: dict[str, Any] = {
    "name": "consensus",
    "topic": {"name": "flat-earth"},
    "cast": [{"name": "Ada"}, {"name": "Ben"}],
    "interaction": {"kind": "consensus", "candidates": 2, "rounds": 0},
    "roles": {"mediator": {}},
}
PREDICTED = {**SPEC["interaction"], "ballots": ["predicted"]}
TEXTS = [{"text": "No."}, {"text": "Yes."}]
PLAYED = "the model of the experiment plays it"


def _written(path: Path, **fields: Any) -> Path:
    spec = {name: value for name, value in {**SPEC, **fields}.items() if value is not ...}
    file = path / "spec.yaml"
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return file


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"roles": ...}, 1, f"roles: has no 'mediator', which 'consensus' needs; with `mediator: {{}}` {PLAYED}"),
    ({"roles": {}}, 11, f"roles: has no 'mediator', which 'consensus' needs; with `mediator: {{}}` {PLAYED}"),
    (
        {"interaction": PREDICTED},
        13,
        f"roles: has no 'predictor', which 'consensus' needs; with `predictor: {{}}` {PLAYED}",
    ),
    ({"roles": {"mediatr": {}}}, 12, "roles.mediatr: is not a role of 'consensus'; valid: mediator"),
    ({"roles": {"mediator": {}, "predictor": {}}}, 13, "roles.predictor: is not a role of 'consensus'; valid: med"),
    (
        {"roles": {"mediator": None}},
        12,
        "roles.mediator: must be a mapping of fields; got null; valid: persona, system",
    ),
    ({"roles": {"Mediator": {}}}, 12, "roles.Mediator: must match the pattern"),
    ({"roles": ["mediator"]}, 11, 'roles: must be a mapping of fields; got ["mediator"]'),
    ({"roles": {"mediator": {}, "moderator": {}}}, 13, "roles.moderator: needs turns that are known in advance"),
    (
        {"roles": {"mediator": {"persona": "default"}}},
        13,
        "roles.mediator.persona: is only for a moderator; set system",
    ),
    ({"roles": {"mediator": {"values": "peace"}}}, 13, "roles.mediator.values: is only for a moderator; set system"),
    ({"roles": {"mediator": {"automatic": True}}}, 13, "roles.mediator.automatic: is only for a moderator; set system"),
    ({"roles": {"mediator": {"draws": 2}}}, 13, "roles.mediator.draws: unknown field"),
    ({"cast": [{"name": "Mediator"}, {}]}, 4, "cast: 'Mediator' names two agents"),
    ({"interaction": {"kind": "similarity", "steps": 2}}, 11, "roles.mediator: is not a role of 'similarity'; valid"),
    ({"interaction": {"kind": "similarity", "steps": 2}, "cast": ...}, 8, "roles.mediator: is not a role of"),
    ({"moderator": {}}, 13, "moderator: unknown field; valid: name, description"),
    ({"mediator": {}}, 13, "mediator: unknown field; valid: name, description"),
    ({"cast": TEXTS}, 7, "interaction.ballots: citizens that are texts cannot vote"),
    (
        {"cast": TEXTS, "interaction": {**PREDICTED, "rounds": 1}, "roles": {"mediator": {}, "predictor": {}}},
        10,
        "interaction.rounds: citizens that are texts cannot criticise; give rounds: 0",
    ),
    ({"cast": ..., "population": {"size": 1}}, 11, "population.size: must be at least 2 for interaction kind 'consen"),
    (
        {"topic": ..., "task": "Speak.", "interaction": {**SPEC["interaction"], "standing": ["position"]}},
        5,
        "interaction.position: is missing; give a sentence, or a topic with a claim",
    ),
    ({"cast": [{"text": "No.", "persona": "You."}, {}]}, 5, "cast[0].text: cannot be combined with persona"),
    ({"cast": [{}, {"text": " "}]}, 6, "cast[1].text: must not be blank"),
    ({"cast": [{"text": "No.", "task": "Sing."}, {}]}, 6, "cast[0].task: has no effect with text"),
    ({"cast": [{"text": "No.", "model": {"name": "scripted"}}, {}]}, 6, "cast[0].model: has no effect with text"),
    ({"cast": [{"text": "No.", "template": "default"}, {}]}, 6, "cast[0].template: has no effect without a persona"),
    (
        {"cast": [{}, {"text": "No."}], "interaction": {"kind": "broadcast", "steps": 1}, "roles": ...},
        6,
        "cast[1].text: has no effect in 'broadcast', which asks every agent",
    ),
    (
        {"sweep": {"moderator.values": ["a", "b"]}},
        14,
        "sweep.moderator.values: cannot be swept; valid: fields under seed, population, cast, roles",
    ),
]


@pytest.mark.parametrize(("fields", "line", "told"), REFUSED, ids=[told[:60] for _, _, told in REFUSED])
def test_one_error_tells_what_is_wrong_at_its_line(
    fields: dict[str, Any], line: int, told: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as raised:
        load_experiment(_written(tmp_path, **fields))
    (problem,) = str(raised.value).split("\n")
    assert problem.removeprefix(f"{tmp_path}/").startswith(f"spec.yaml:{line}: {told}")


def test_roles_have_texts_and_models_of_their_own_and_can_be_swept(tmp_path: Path) -> None:
    given = {"roles.mediator.system": ["Be fair.", "Be brief."]}
    experiment = load_experiment(_written(tmp_path, sweep=given))
    assert [cell.axes for cell in experiment.cells] == [{"roles.mediator.system": each} for each in given.popitem()[1]]
    assert len({run.run_id for run in experiment.runs}) == 2
    model = {"name": "scripted", "options": {"refusal_rate": 0.5}}
    spec = {"interaction": PREDICTED, "roles": {"predictor": {"model": model}, "mediator": {}}}
    experiment = load_experiment(_written(tmp_path, **spec))
    parts = assemble(experiment.runs[0], experiment.resources)
    assert [(each.role, each.name) for each in parts.cast()] == [
        *(("participant", "Ada"), ("participant", "Ben")),
        *(("mediator", "Mediator"), ("predictor", "Predictor")),
    ], "in the order of the interaction, not of the file"
    rates = [each.options.get("refusal_rate") for each in parts.models]
    assert rates == [None, None, None, 0.5]


def test_a_role_decides_who_runs_are(tmp_path: Path) -> None:
    def identity(**fields: Any) -> str:
        return load_experiment(_written(tmp_path, **fields)).runs[0].run_id

    texts = [identity(cast=[{}, {"text": text}]) for text in ("Yes.", "No.")]
    assert len({*texts, identity()}) == 3


def test_nobody_loads_a_model_for_those_who_are_texts(tmp_path: Path) -> None:
    own = {"model": {"name": "scripted", "temperature": 0.2}}
    spec = {
        "cast": [{"text": "Yes."}, {"text": "No."}],
        "interaction": PREDICTED,
        "roles": {"mediator": own, "predictor": own},
        "model": {"name": "openai:gpt-4o-mini"},
        "measurement": {"classifier": "lexicon"},
    }
    experiment = load_experiment(_written(tmp_path, **spec))
    assert [model.name for model in experiment.cells[0].spec.chat_models] == ["scripted"]
    assert plan(experiment).calls == 2 + 2, "two drafts, and two predicted ballots"
