"""Role break and closed-world violation, by rules on texts written for it, and what a judge is asked."""

from __future__ import annotations

import pytest

from opinionsim.classifiers import CONDUCT, NO_YES, Context, Item, load_classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.specification import InstrumentSpec, load_experiment

LEAVES = [
    "As an AI language model, I hold no beliefs about Theory XYZ.",
    "Here is a tweet from Ann's point of view: I doubt it.",
    "Sure! Here's the post you asked for: XYZ is nonsense.",
    "I think the persona you described would say that it is true.",
    "I am sorry, but I am not comfortable with this role play.",
    "XYZ is false. Let me know if you'd like another version!",
    "My instructions say that I should hold on to my belief.",
]
STAYS = [
    "I am a nurse from Ohio, and I do not buy Theory XYZ.",
    "Here is my view: it is false, and I will say so to anybody.",
    "I, James, see no reason to change my mind after this post.",
    "As a farmer I have to say that the claim sounds wrong to me.",
]
CITES = [
    "I read an article about it last week, and it changed my mind.",
    "Studies have consistently shown that the claim holds.",
    "According to NASA, it is round.",
    "My neighbour Bob told me that it is a hoax.",
    "I was talking about this with some friends yesterday, and they laughed.",
    "See https://example.org/proof for yourselves.",
    "I looked it up online and could not find anything.",
    "I\u2019ve seen it with my own eyes.",
    "Most experts agree that it is false.",
]
KEEPS_TO_IT = [
    "I still believe that Theory XYZ is false, as I did at first.",
    "According to the post I read, the claim is false.",
    "After reading the tweet, I believe it a little less.",
    "No study shows that, and I have not read any book on it.",
    "If experts agreed, I would believe it.",
    "The author makes a good point, and common sense tells me the same.",
    "What I have read from others here has not changed my view.",
]


def rated(name: str, text: str, *received: str) -> float:
    (value,) = load_classifier(name, NO_YES).classify([Item(text, context=Context(received))]).value
    return float(value)


@pytest.mark.parametrize(("texts", "value"), [(LEAVES, 1), (STAYS, 0)])
def test_who_speaks_as_a_model_or_of_the_role_leaves_it(texts: list[str], value: int) -> None:
    assert {text: rated("role-break", text) for text in texts} == dict.fromkeys(texts, value)


@pytest.mark.parametrize(("texts", "value"), [(CITES, 1), (KEEPS_TO_IT, 0)])
def test_who_cites_another_source_leaves_the_closed_world(texts: list[str], value: int) -> None:
    assert {text: rated("closed-world", text) for text in texts} == dict.fromkeys(texts, value)


def test_a_source_that_a_received_message_names_is_no_other_source() -> None:
    report = "The author says that scientists have proven it."
    assert rated("closed-world", report) == 1
    assert rated("closed-world", report, "Look, scientists have proven it again and again.") == 0


def test_a_blank_text_has_no_value_and_the_scale_has_two_points() -> None:
    assert load_classifier("role-break", NO_YES).classify([Item(" ")]).off_scale.tolist() == [1]
    with pytest.raises(SpecError, match="needs a scale of two points"):
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
    with pytest.raises(SpecError, match="give context: true"):
        listed(variable="closed-world", classifier="closed-world")
