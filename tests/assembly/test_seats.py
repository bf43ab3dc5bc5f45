"""Persons at seats in the place of models: who is asked, what is on record, and seats of nobody."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.assembly import LoadedParts, assemble
from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies, Seat
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.deciding import SPEC, reply
from tests.support.examples import brought
from tests.support.people import Double, Nobody
from tests.support.running import assert_same, changed, finished

#: The jury with a person in the place of Ben.
SEATED = changed(SPEC, cast=[SPEC["cast"][0], {"name": "Ben", "seat": {}}, *SPEC["cast"][2:]])


def _says(question: Any) -> str:
    """What one juror says or marks."""
    if question.act == "judge":
        return " ".join("3" for _ in question.messages)
    return "<say>So be it.</say>"


def _loaded(spec: dict[str, Any], **people: Any) -> LoadedParts:
    return LoadedParts(load_experiment(spec), GivenReplies(reply), **people)


def test_a_person_answers_for_a_participant_and_is_on_record_as_one() -> None:
    person = Double(_says, evidence="human")
    seated = finished(SEATED, "seats.sqlite", loaded=_loaded(SEATED, people=person))
    own = seated.turns[seated.turns["agent"] == 1]
    assert sorted(person.turns) == own["turn"].tolist()
    assert set(own["evidence"]) == {"human"}
    assert set(seated.turns[seated.turns["agent"] != 1]["evidence"]) == {"scripted"}
    assert seated.agents["evidence"].tolist() == ["scripted", "human", "scripted", "scripted", "scripted"]
    assert seated.runs["evidence"].tolist() == ["mixed"]
    with open_store(seated.url, write=False) as store:
        entries = store.entries(seated.runs["run_id"][0])
        assert store.waits() == []
    assert {entry.key.turn for entry in entries if entry.source == "person"} == set(own["turn"])
    assert [each.difference for each in replay(seated)] == [""]
    # What persons have said is taken from the record: nobody is asked again.
    assert_same(finished(SEATED, "seats.sqlite", loaded=_loaded(SEATED, people=Nobody())), seated)


@brought("interaction", "chain")
def test_a_person_answers_for_a_role() -> None:
    spec = changed(
        SPEC,
        name="chain",
        interaction={"kind": "chain"},
        roles={"moderator": {"seat": {}}},
        measurement={"classifier": "lexicon"},
        cast=[{"name": name, "persona": f"You are {name}."} for name in ("Ada", "Ben")],
    )
    chair = Double(lambda question: "So be it.", evidence="human")
    loaded = LoadedParts(
        load_experiment(spec), GivenReplies(lambda prompt: "I agree."), seats={"moderator": Seat(chair)}
    )
    results = finished(spec, "chain.sqlite", loaded=loaded)
    assert results.turns[["message", "evidence"]].values.tolist() == [
        ["I agree.", "scripted"],
        ["I agree.", "scripted"],
        ["So be it.", "human"],
    ]
    assert [message.text for message in chair.asked[0].messages] == ["I agree.", "I agree."]


@pytest.mark.parametrize(
    ("people", "run", "seat"),
    [(None, "mixed", "human"), ("human", "mixed", "human"), ("scripted", "scripted", "scripted")],
)
def test_evidence_is_the_authors(people: str | None, run: str, seat: str) -> None:
    """A seat that nobody has taken yet is planned for a person."""
    experiment = load_experiment(SEATED)
    spec, parts = experiment.cells[0].spec, assemble(experiment.runs[0], experiment.resources)
    loaded = _loaded(SEATED, people=None if people is None else Double(evidence=people))
    assert loaded.evidence(spec, parts.pack) == run
    assert [member.evidence for member in loaded.cast(spec, parts)] == ["scripted", seat, *["scripted"] * 3]


def test_texts_and_seats_are_people_and_all_others_are_models() -> None:
    spec = changed(SPEC, cast=[{"seat": {}}, *SPEC["cast"][1:3], {"name": "Eve", "text": "No."}])
    spec["roles"] = {"clerk": {"seat": {}}}
    experiment = load_experiment(spec)
    loaded = _loaded(spec, people=Double(evidence="human"))
    cast = loaded.cast(experiment.cells[0].spec, assemble(experiment.runs[0], experiment.resources))
    assert [member.evidence for member in cast] == ["human", "scripted", "scripted", "human", "human"]
    assert [isinstance(member.endpoint, Seat) for member in cast] == [True, False, False, False, True]
    assert [member.model for member in cast] == ["", "given", "given", "", ""]


def test_limits_are_those_of_the_seat_that_is_given_else_those_of_the_specification() -> None:
    spec = changed(SEATED, cast=[{"seat": {"timeout_s": 60, "words": 9}}, {"seat": {"words": 5}}, {}, {}])
    experiment = load_experiment(spec)
    loaded = _loaded(spec, people=Double(), seats={1: Seat(Double(), timeout_s=3.0)})
    cast = loaded.cast(experiment.cells[0].spec, assemble(experiment.runs[0], experiment.resources))
    limits = [(each.endpoint.timeout_s, each.endpoint.words) for each in cast if isinstance(each.endpoint, Seat)]
    assert limits == [(60.0, 9), (3.0, 5)]


@pytest.mark.parametrize("member", [0, -1, "mediatr", "participant", "Ben", "clerk"])
def test_a_person_for_a_seat_that_no_run_has_is_refused(member: int | str) -> None:
    with pytest.raises(SpecError, match=rf"^seats: no run has a seat {member!r}; valid: 1; a member .* `seat: {{}}`$"):
        _loaded(SEATED, seats={member: Seat(Double())})


def test_people_who_cannot_answer_are_refused_before_anything() -> None:
    with pytest.raises(SpecError, match="a seat needs a person"):
        _loaded(SEATED, people=object())
