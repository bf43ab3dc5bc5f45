"""Analyses of dialogues: what is read of a reply, and ids that follow from the sequence of analyses alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.dialogue import Analysis, AnalysisItem, analyses, cited, read_analysis
from opinionsim.errors import Rejected
from opinionsim.messages import Message

DIALOGUE = tuple(Message("So.", "Ada", 0, turn=turn) for turn in (3, 5, 8))


def said(**fields: Any) -> str:
    """An analysis with these fields, as JSON."""
    return json.dumps({"summary": "They talk.", **fields})


def read(text: str, most: int = 3) -> dict[str, Any]:
    """The published analysis of a reply."""
    found: dict[str, Any] = json.loads(read_analysis(most, "reply", text, DIALOGUE).text)
    return found


FULL: dict[str, Any] = {
    "summary": "Ada wants it. Ben does not.",
    "points_of_agreement": ["It costs money."],
    "open_questions": ["Who pays?"],
    "argument_map": [
        {
            "claim": "It should open.",
            "turns": [3],
            "premises": ["People are free on Sundays."],
            "counterarguments": [{"counterargument": "Staff is not.", "rebuttal": "Some like it."}],
        }
    ],
    "fallacies": [{"turn": 5, "fallacy": "straw man", "explanation": "Nobody said always."}],
}


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "Here is my analysis:\n\n{}\n\nI hope that it helps {{you}}.", "{{draft}} {}", "[1] {}"],
)
def test_an_analysis_is_found_whatever_stands_around_it(around: str) -> None:
    assert read(around.format(json.dumps(FULL, indent=2))) == FULL


def test_it_is_published_in_one_spelling() -> None:
    one, other = json.dumps(FULL), json.dumps(dict(reversed(FULL.items())), indent=4)
    assert read_analysis(3, "reply", one, DIALOGUE).text == read_analysis(3, "reply", other, DIALOGUE).text


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("They disagree.", "it holds no JSON object"),
        ('{"summary": "Cut', "it holds no JSON object"),
        ("{}", "its summary is missing"),
        (said(summary=" "), "its summary is missing, empty"),
        (said(argument_map=[{"premises": ["It is warm."]}]), "its argument_map.0.claim is missing"),
        (said(open_questions="Who pays?"), "its open_questions is missing, empty or of another form"),
        (said(fallacies=[{"fallacy": "straw man"}]), "its fallacies.0.turn is missing"),
    ],
)
def test_what_breaks_the_schema_is_rejected_with_its_place(reply: str, problem: str) -> None:
    with pytest.raises(Rejected) as error:
        read(reply)
    assert problem in error.value.args[0]


@pytest.mark.parametrize("premises", [[], None, [""]])
def test_a_claim_for_which_nobody_gave_a_reason_is_kept(premises: list[str] | None) -> None:
    told = [{"claim": "It opens.", "premises": premises}, {"claim": "It is warm.", "premises": ["Sun.", ""]}]
    claims = read(said(argument_map=told))["argument_map"]
    assert [each.get("premises", []) for each in claims] == [[], ["Sun."]]


def test_lists_are_cut_and_turns_that_nobody_read_left_out() -> None:
    many = [str(number) for number in range(9)]
    claims = [{"claim": each, "premises": many, "turns": [3, 4]} for each in many]
    notes = [{"turn": turn, "fallacy": "f"} for turn in (4, 5, 8, 8, 8)]
    found = read(
        said(
            summary="A. B! C? D. E.",
            open_questions=many,
            points_of_agreement=many,
            argument_map=claims,
            fallacies=notes,
        )
    )
    assert found["summary"] == "A. B! C?"
    assert found["open_questions"] == found["points_of_agreement"] == many[:3]
    assert [each["turns"] for each in found["argument_map"]] == [[3]] * 3
    assert {len(each["premises"]) for each in found["argument_map"]} == {3}
    assert [each["turn"] for each in found["fallacies"]] == [5, 8, 8]


def asked(*sets: list[str]) -> list[Analysis]:
    """Analyses with these open questions."""
    return analyses([(turn, said(open_questions=each)) for turn, each in enumerate(sets)])


def spelled(items: tuple[AnalysisItem, ...]) -> list[str]:
    return [f"{item.id} {item.change}" for item in items]


def test_an_item_keeps_its_id_while_it_says_much_the_same() -> None:
    first, second, third, fourth = asked(
        ["Who pays for the staff on Sundays?", "Is it safe?"],
        ["Is it safe?", "Who will pay for the staff on Sundays?", "What do neighbours say?"],
        ["who will pay for the staff, on Sundays"],
        ["Is it safe?"],
    )
    assert spelled(first.questions) == ["q1 new", "q2 new"]
    assert spelled(second.questions) == ["q2 kept", "q1 changed", "q3 new"]
    assert spelled(third.questions) == ["q1 changed", "q2 gone", "q3 gone"]
    assert spelled(fourth.questions) == ["q4 new", "q1 gone"], "an id that is gone is not given again"


def test_equal_texts_come_before_those_that_are_alike() -> None:
    _, second = asked(["Who pays for it?"], ["Who pays for it now?", "Who pays for it?"])
    assert spelled(second.questions) == ["q2 new", "q1 kept"]


def test_a_claim_changes_with_its_reasons_and_is_marked_without_a_turn() -> None:
    def claim(**fields: Any) -> str:
        return said(argument_map=[{"claim": "It opens.", "premises": ["People want it."], **fields}])

    one, two, three = analyses([(1, claim(turns=[3])), (2, claim(turns=[3, 5])), (3, claim())])
    assert [spelled(each.claims) for each in (one, two, three)] == [["c1 new"], ["c1 changed"], ["c1 changed"]]
    assert [each.claims[0].uncited for each in (one, two, three)] == [False, False, True]


def test_what_is_no_analysis_is_passed_over() -> None:
    found = analyses([(4, said()), (9, "I cannot do that."), (12, said(summary="They end."))])
    assert [(each.turn, each.summary) for each in found] == [(4, "They talk."), (12, "They end.")]


TEXTS = st.lists(st.text("ab c?", min_size=1).filter(str.strip), max_size=5)


@given(st.lists(TEXTS, max_size=6))
def test_ids_are_unique_and_follow_from_what_came_before_alone(sets: list[list[str]]) -> None:
    whole = asked(*sets)
    for end in range(len(sets)):
        assert asked(*sets[:end]) == whole[:end]
    known: set[str] = set()
    for each in whole:
        ids = [item.id for item in each.questions]
        assert len(ids) == len(set(ids))
        assert {item.id for item in each.questions if item.change == "new"}.isdisjoint(known)
        known.update(ids)


def test_open_questions_are_recognised_in_a_text() -> None:
    assert cited("[q3] Who pays? And [q12], [q3] again; not [c1], q4 or [q].") == ["q3", "q12"]
