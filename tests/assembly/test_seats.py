"""Persons at seats in the place of models: who is asked, what is on record, and seats of nobody."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.assembly import LoadedParts, assemble
from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies, Seat
from opinionsim.messages import ChatMessage
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.deciding import SPEC, reply
from tests.support.running import assert_same, changed, finished


class Person:
    """Answers like the model, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, str]] = []

    async def answer(self, turn: Any, part: str, messages: tuple[ChatMessage, ...]) -> str:
        self.asked.append((turn.index, turn.agent, part))
        return reply(list(messages))


def _loaded(spec: dict[str, Any], seats: dict[int | str, Seat]) -> LoadedParts:
    return LoadedParts(load_experiment(spec), GivenReplies(reply), seats=seats)


def test_a_person_answers_for_a_participant_and_is_on_record_as_one() -> None:
    person = Person()
    modelled = finished(SPEC, "models.sqlite", GivenReplies(reply))
    seated = finished(SPEC, "seats.sqlite", loaded=_loaded(SPEC, {1: Seat(person)}))
    own = seated.turns[seated.turns["agent"] == 1]
    assert sorted(person.asked) == [(turn, 1, "reply") for turn in own["turn"]]
    assert set(own["evidence"]) == {"human"}
    assert set(seated.turns[seated.turns["agent"] != 1]["evidence"]) == {"scripted"}
    assert seated.agents["evidence"].tolist() == ["scripted", "human", "scripted", "scripted", "scripted"]
    assert seated.runs["evidence"].tolist() == ["mixed"]
    with open_store(seated.url, write=False) as store:
        entries = store.entries(seated.runs["run_id"][0])
    assert {entry.key.turn for entry in entries if entry.source == "person"} == set(own["turn"])
    assert seated.turns["message"].tolist() == modelled.turns["message"].tolist()
    assert [each.difference for each in replay(seated)] == [""]
    # What persons have said is taken from the record: nobody is asked again.
    assert_same(finished(SPEC, "seats.sqlite", loaded=_loaded(SPEC, {1: Seat(Person())})), seated)


def test_a_person_answers_for_a_role() -> None:
    spec = changed(
        SPEC,
        name="chain",
        interaction={"kind": "chain"},
        roles={"moderator": {}},
        measurement={"classifier": "lexicon"},
        cast=[{"name": name, "persona": f"You are {name}."} for name in ("Ada", "Ben")],
    )

    class Chair:
        async def answer(self, turn: Any, part: str, messages: tuple[ChatMessage, ...]) -> str:
            return "So be it."

    loaded = LoadedParts(
        load_experiment(spec), GivenReplies(lambda prompt: "I agree."), seats={"moderator": Seat(Chair())}
    )
    results = finished(spec, "chain.sqlite", loaded=loaded)
    assert results.turns[["message", "evidence"]].values.tolist() == [
        ["I agree.", "scripted"],
        ["I agree.", "scripted"],
        ["So be it.", "human"],
    ]


def test_texts_and_seats_are_people_and_all_others_are_models() -> None:
    spec = changed(SPEC, cast=[*SPEC["cast"][:3], {"name": "Eve", "text": "No."}])
    experiment = load_experiment(spec)
    seat = Seat(Person())
    loaded = _loaded(spec, {0: seat, "clerk": seat})
    cast = loaded.cast(experiment.cells[0].spec, assemble(experiment.runs[0], experiment.resources))
    assert [member.evidence for member in cast] == ["human", "scripted", "scripted", "human", "human"]
    assert [member.endpoint is seat for member in cast] == [True, False, False, False, True]


@pytest.mark.parametrize("member", [4, -1, "mediatr", "participant", "Ada"])
def test_a_seat_of_nobody_is_refused(member: int | str) -> None:
    with pytest.raises(SpecError, match=rf"^seats: no run has a member {member!r}; valid: 0 to 3, clerk$"):
        _loaded(SPEC, {member: Seat(Person())})
