"""Role break and closed-world violation, by rules on texts written for it, and what a judge is asked."""

from __future__ import annotations

import pytest

from opinionsim.classifiers import CONDUCT, NO_YES, Context, Item, load_classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.specification import InstrumentSpec, load_experiment
from tests.support.tables import coded_texts


def rated(name: str, text: str, *received: str) -> float:
    (value,) = load_classifier(name, NO_YES).classify([Item(text, context=Context(received))]).value
    return float(value)


@pytest.mark.parametrize("name", ["role-break", "closed-world"])
def test_who_leaves_the_role_or_cites_another_source_and_who_does_not(name: str) -> None:
    texts = coded_texts(name)
    assert {meant for _, _, meant in texts} == {0, 1}
    assert [text for _, text, meant in texts if rated(name, text) != meant] == []


def test_a_source_that_a_received_message_names_is_no_other_source() -> None:
    report = "The author says that scientists have proven it."
    assert rated("closed-world", report) == 1
    assert rated("closed-world", report, "Look, scientists have proven it again and again.") == 0


def test_a_blank_text_has_no_value_and_the_scale_has_two_points() -> None:
    assert load_classifier("role-break", NO_YES).classify([Item(" ")]).off_scale.tolist() == [1]
    with pytest.raises(SpecError, match="its scale needs two points"):
        load_classifier("role-break", OpinionScale.of_size(5))


def listed(**instrument: object) -> InstrumentSpec:
    change = {"measurement.instruments": [{"texts": ["report"], **instrument}]}
    return load_experiment("quickstart", change).cells[0].spec.instruments[-1]


def test_a_judge_is_asked_the_question_of_the_variable_on_its_scale() -> None:
    judge = {"name": "chat", "options": {"model": "openai:gpt-4o-mini"}}
    found = listed(variable="closed-world", classifier=judge, context=True)
    assert found.opinions == NO_YES
    assert found.classifier.options["question"] == CONDUCT["closed-world"].question
    own = listed(variable="role-break", classifier={"name": "chat", "options": {"question": "Does it rhyme?"}})
    assert own.classifier.options["question"] == "Does it rhyme?"


def test_closed_world_needs_what_was_received() -> None:
    with pytest.raises(SpecError, match="needs context: true"):
        listed(variable="closed-world", classifier="closed-world")
