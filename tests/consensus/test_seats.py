"""Persons in sessions that look for a consensus, as citizens, mediators and predictors."""

from __future__ import annotations

from typing import Any

import pytest

import opinionsim as osim
from opinionsim.consensus import Mediation
from opinionsim.llm import Question, Seat
from tests.support.people import Double, check_person_takes_part
from tests.support.running import changed, finished

SESSION: dict[str, Any] = {
    "name": "seats",
    "seed": 3,
    "task": "Should the centre be closed to cars?",
    "cast": [{}, {"name": "Ben", "seat": {}}, {}],
    "measurement": {},
}
WAYS: dict[str, dict[str, Any]] = {
    "rankings": changed(
        SESSION,
        interaction={"kind": "consensus", "candidates": 2, "rounds": 1, "ratings": {"passes": 1}},
        roles={"mediator": {}},
        measurement={"self_report": {"after": 1}, "probe": {"before": 1}},
        topic={"name": "flat-earth"},
    ),
    "mediated": changed(
        SESSION,
        interaction={"kind": "consensus", "candidates": 2, "rounds": 1, "ballots": ["predicted", "stated"]},
        roles={"mediator": {"seat": {}}, "predictor": {"seat": {}}},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_person_takes_part_in_every_role(way: str) -> None:
    check_person_takes_part(WAYS[way], "<ranking>", "<statement>", "Quality: N")


def test_each_form_is_what_its_act_asks_for() -> None:
    person = Double()
    finished(WAYS["rankings"], people=person)
    forms = {question.act: question.form for question in person.asked}
    assert {act: form.kind for act, form in forms.items()} == {
        **{"probe": "text", "state": "text", "rate": "ratings", "rank": "ranking"},
        **{"criticise": "text", "self-report": "choice"},
    }
    statements = [message.text for message in person.asked[3].messages if message.act == "draft"]
    assert (forms["rank"].items, person.asked[3].act) in [(("A", "B"), "rate"), (("A", "B"), "rank")]
    assert statements
    assert forms["rate"].items == ("Agreement", "Quality")
    assert forms["self-report"].items == osim.OpinionScale().labels


def test_a_mediator_needs_no_tags_and_its_words_are_the_statement() -> None:
    person = Double(lambda question: "Let us try it.\n\nFor a year." if question.act in ("draft", "revise") else None)
    results = finished(WAYS["mediated"], people=person)
    drafts = results.turns[results.turns["act"].isin(["draft", "revise"])]
    assert set(drafts["message"]) == {"Let us try it.\n\nFor a year."}


def test_an_answer_that_cannot_be_used_comes_back_with_its_reason() -> None:
    def says(question: Question) -> str | None:
        return "I like both." if question.act == "rank" and not question.reason else None

    person = Double(says)
    finished(WAYS["rankings"], people=person)
    reasons = [question.reason for question in person.asked if question.act == "rank"]
    assert reasons[0] == ""
    assert reasons[1].startswith("the ranking names 'I like both")


def test_a_citizen_of_a_mediation_may_be_a_person() -> None:
    person = Double(evidence="human")
    citizens = ["Yes, and soon.", Seat(person, words=30), {"persona": "A nurse."}]
    session = Mediation(citizens, "Should the centre be closed to cars?", rounds=0, candidates=2).run("m.sqlite")
    assert session.winner
    assert {question.act for question in person.asked} == {"state", "rank"}
    assert {question.form.words for question in person.asked} == {30, None}
    assert set(session.results.runs["evidence"]) == {"mixed"}
