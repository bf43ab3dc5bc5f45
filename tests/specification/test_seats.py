"""Seats in specifications: what can stand beside them, and what of them identifies a run."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.planning import plan, preview
from opinionsim.prompts import pack_files
from opinionsim.specification import load_experiment, manifest
from tests.support.running import changed

SPEC: dict[str, Any] = {
    "name": "seats",
    "task": "Should the centre be closed to cars?",
    "cast": [{"name": "Ada"}, {"name": "Ben", "seat": {}}],
    "interaction": {"kind": "independent", "reports": 1},
    "measurement": {},
}


def run_id(seat: Any, **values: Any) -> str:
    """Identity of the run in which Ben has this seat, or none."""
    ben = {"name": "Ben"} if seat is None else {"name": "Ben", "seat": seat}
    return load_experiment(changed(SPEC, cast=[{"name": "Ada"}, ben], **values)).runs[0].run_id


def test_a_seat_its_invitation_and_its_words_identify_a_run_and_its_time_does_not() -> None:
    others = [None, {}, {"words": 5}, {"words": 6}, {"invitation": "Yours."}, {"invitation": "Yours.", "words": 5}]
    assert len({run_id(seat) for seat in others}) == len(others)
    assert run_id({"timeout_s": 60}) == run_id({"timeout_s": 90.5}) == run_id({})
    assert run_id({"timeout_s": 60, "words": 5}) == run_id({"words": 5})


@pytest.mark.parametrize(
    "beside",
    [
        {"model": {"name": "openai:gpt-4o-mini"}},
        {"persona": "A nurse."},
        {"system": "You are."},
        {"text": "No."},
        {"query": "all"},
        {"group": "left"},
        {"template": "anes"},
        {"without": ["reason"]},
        {"task": "Something."},
        {"instructions": "${previous_responses}"},
        {"draws": 2, "selector": "first"},
    ],
)
def test_a_seat_stands_alone(beside: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=rf"cast\[1\]\.seat: cannot be combined with {', '.join(beside)}; ") as caught:
        load_experiment(changed(SPEC, cast=[{}, {"name": "Ben", "seat": {}, **beside}]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("beside", [{"persona": "default"}, {"automatic": True}, {"values": "V."}, {"task": "Else."}])
def test_a_seat_of_a_role_stands_alone(beside: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=rf"roles\.moderator\.seat: cannot be combined with {next(iter(beside))}; "):
        load_experiment(changed(SPEC, roles={"moderator": {"seat": {}, **beside}}))


@pytest.mark.parametrize(
    ("seat", "field"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"words": 0}, "words"),
        ({"invitation": " "}, "invitation"),
        ({"time": 3}, "time"),
    ],
)
def test_a_seat_that_is_not_valid_names_its_field(seat: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError, match=rf"cast\[1\]\.seat\.{field}: "):
        load_experiment(changed(SPEC, cast=[{}, {"seat": seat}]))


def test_a_cast_of_seats_needs_no_model_and_makes_no_call() -> None:
    experiment = load_experiment(changed(SPEC, cast=[{"seat": {}}, {"seat": {}}]))
    assert experiment.spec.chat_models == ()
    assert sorted(map(str, experiment.spec.seats)) == ["0", "1"]
    assert plan(experiment).calls == 0


def test_a_seat_takes_no_call_of_a_forecast() -> None:
    twice = {"interaction": {"kind": "independent", "reports": 2}}
    models = load_experiment(changed(SPEC, cast=[{}, {}, {}], **twice))
    seated = load_experiment(changed(SPEC, cast=[{}, {"seat": {}}, {}], **twice))
    assert (plan(models).calls, plan(seated).calls) == (6, 4)
    assert plan(seated).texts == plan(models).texts


def test_texts_of_seats_are_judged_in_a_forecast() -> None:
    judge = {"name": "chat", "options": {"model": "openai:gpt-4o-mini"}}
    spec = changed(
        SPEC, cast=[{"seat": {}}, {"seat": {}}], measurement={"classifier": judge}, topic={"name": "flat-earth"}
    )
    assert plan(load_experiment(spec)).calls == 2


def test_a_preview_shows_what_a_person_is_asked_and_nothing_of_the_models_prompt() -> None:
    seat = {"invitation": "Ben, please.", "words": 20}
    prompts = preview(
        load_experiment(changed(SPEC, cast=[{"persona": "A nurse."}, {"name": "Ben", "seat": seat}]))
    ).prompts
    asked = next(found for name, found in prompts.items() if "of Ben" in name)
    assert [message.role for message in asked] == ["user", "user"]
    assert asked[0].content == "Ben, please."
    assert asked[1].content.startswith("Should the centre be closed to cars?")
    assert "nurse" not in "".join(message.content for message in asked)


def test_a_manifest_gives_the_same_runs() -> None:
    experiment = load_experiment(changed(SPEC, cast=[{}, {"seat": {"timeout_s": 5, "words": 3}}]))
    again = load_experiment(manifest(experiment))
    assert [run.run_id for run in again.runs] == [run.run_id for run in experiment.runs]
    assert again.spec.seats == experiment.spec.seats


def test_a_pack_of_ones_own_may_word_what_people_are_asked(tmp_path: Any) -> None:
    for name, text in {**pack_files("default"), "person-report.j2": "Speak on: {{ task }}"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    prompts = preview(load_experiment(changed(SPEC, prompts=str(tmp_path)))).prompts
    asked = next(found for name, found in prompts.items() if "of Ben" in name)
    assert [message.content for message in asked] == ["Speak on: Should the centre be closed to cars?"]
    (tmp_path / "person-report.j2").write_text("{{ persona }}", encoding="utf-8")
    with pytest.raises(SpecError, match=r"person-report\.j2.*undefined variable 'persona'"):
        load_experiment(changed(SPEC, prompts=str(tmp_path)))
