"""Signs of conduct in replies, where they stand, and what is left where they are taken out."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from opinionsim.conduct import SIGNS, Looked, ReplyPolicy, look, names_of, stripped
from opinionsim.llm import phrases
from opinionsim.messages import ChatMessage, Message, Prompt, Speech

SPEECH = Speech("Aisha Patel", "en", 60)
POST = "The lane takes two minutes off my ride, and it takes nothing at all off anybody else's drive."
TAKEN = ReplyPolicy().taken


def looked(text: str, read: str = "", speech: Speech = SPEECH, task: str = "Write a post.") -> Looked:
    received = (Message(read, "Jordan White"),) if read else ()
    return look(text, "answered", speech=speech, prompt=Prompt.of([ChatMessage("user", task)]), received=received)


def shown(text: str, **how: str) -> tuple[str, ...]:
    return names_of(looked(text, **how).signs)


def left(text: str) -> str:
    return stripped(text, looked(text).signs, TAKEN)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("Sure! Here's a post written from Aisha's perspective:\n\n", ""),
        ("Here is a tweet that reflects this belief:\n", ""),
        ("Of course. Here is the text you requested: ", ""),
        ("Certainly!\n\n", ""),
        ("Post: ", ""),
        ("**Post:** ", ""),
        ("As Aisha, I would write:\n\n", ""),
        ("Natürlich! Hier ist ein Beitrag aus der Sicht von Aisha:\n\n", ""),
        ("\u597d\u7684\uff0c\u4ee5\u4e0b\u662f\u5e16\u5b50\uff1a\n\n", ""),
        ("", "\n\nLet me know if you'd like me to adjust the tone!"),
        ("", "\n\n(Note: this post reflects the persona's view, not mine.)"),
        ("", "\n\nWould you like me to write another version?"),
        ("", " I hope this helps!"),
        ("", "\n\n[End of post]"),
        ("Sure thing! Here is the post:\n\n", "\n\n---\n\nFeel free to edit it as needed."),
    ],
)
def test_words_of_the_model_around_a_text_are_taken_out(before: str, behind: str) -> None:
    text = f"{before}{POST}{behind}"
    assert "preamble" in shown(text)
    assert left(text) == POST


@pytest.mark.parametrize(
    "label",
    ["Aisha Patel: ", "Aisha: ", "**Aisha:** ", "PATEL: ", '"Aisha Patel": ', "Stranger: ", "Citizen 3: "],
)
def test_a_name_or_label_in_front_is_taken_out(label: str) -> None:
    assert shown(label + POST) == ("names",)
    assert left(label + POST) == POST


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"**{POST}**", POST),
        (f'"{POST}"', POST),
        (f"*sighs* {POST}", POST),
        (f"{POST} *(19 words)*", POST),
        (f"## {POST}", POST),
        (f"<p>{POST}</p>", POST),
        (f'{{"post": "{POST}"}}', POST),
        (f"```\n{POST}\n```", POST),
        ("- It is fast.\n- It is cheap.", "It is fast.\nIt is cheap."),
    ],
)
def test_marks_are_taken_out(text: str, rest: str) -> None:
    assert shown(text) == ("markup",)
    assert left(text) == rest


@pytest.mark.parametrize(
    "text",
    [
        POST,
        "Aisha, I disagree. The lane is empty all winter.",
        "Sure, the hospitals say so. But who pays for it?",
        "Here is what I think: the lane should stay.",
        "Here's my tweet, council: fix the kerb first.",
        "Let me know if you'd like a ride to the polls.",
        "Note: the bridge is closed on Sunday, lane or no lane.",
        'My aunt said "never", and she was right about the bridge, too.',
        "Fact: the 8:30 bus is full. The lane would help.",
        "None of the above. I would keep the road as it is.",
        "Dear council, the lane works. Keep it. Keep it!",
        "My answer: fewer cars. My husband's answer: fewer wives.",
        "Enough is enough is enough. Stop the lane, save the market, save the street.",
        "#KeepTheLane 5 * 2 = 10 minutes a week, that's what it saves me.",
        "Hamish: your father deserved better than this road.",
    ],
)
def test_what_is_said_in_role_shows_nothing(text: str) -> None:
    assert shown(text) == ()
    assert left(text) == text


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Me: I like it.\nStranger: Why?\nMe: It is fast.", "lines"),
        ("Der Radweg ist eine gute Sache, und ich finde, dass er bleiben sollte.", "language"),
        ("the lane is good " + "and I like it because it saves me time every day " * 7, "length"),
        ("I am for the lane and I am for the lane and I am for the lane and I am for the lane.", "loop"),
        ("As an AI, I have never cycled, yet I believe that the lane is right for us all.", "role"),
        ("Aisha would say that the lane saves her time, and she would keep it.", "role"),
    ],
)
def test_signs_of_a_whole_text_are_found(text: str, sign: str) -> None:
    found = looked(text)
    assert sign in names_of(found.signs) or found.status == "off_role"
    assert stripped(text, found.signs, TAKEN) == text


def test_what_was_read_and_the_task_are_told_apart() -> None:
    task = "Write a post about the lane that runs along the river, and say what you honestly believe about it."
    assert shown(f"I read it. {POST}", read=POST) == ("echo",)
    assert shown(f"{task} Yes.", task=task) == ("echo_task",)
    assert shown(f"They say that it takes nothing at all off the drive of others. {task[:20]}", read=POST) == ()


@pytest.mark.parametrize("text", ["N/A", "n/a.", "None", "null", "...", "[Request blocked]", "(no reply)", "Post: N/A"])
def test_a_word_for_nothing_is_an_empty_reply(text: str) -> None:
    assert looked(text) == Looked("empty")


@pytest.mark.parametrize("text", ["No.", "None of them.", "Nothing would change my mind.", "👍"])
def test_a_short_answer_is_an_answer(text: str) -> None:
    assert looked(text) == Looked("answered")


def test_nothing_that_the_scripted_model_says_shows_a_sign() -> None:
    banks = [getattr(phrases, name) for name in vars(phrases) if name.isupper() and name[0] != "_"]
    lists = [*(bank for bank in banks if isinstance(bank, tuple)), *phrases.POSTS.values(), *phrases.REPORTS.values()]
    said = [each.replace("{x}", "Theory XYZ").replace("{me}", "I, Aisha Patel,") for bank in lists for each in bank]
    assert len(said) > 100
    assert {text for text in said if text not in phrases.REFUSALS and looked(text).signs} == set()


@given(st.text(), st.sets(st.sampled_from(SIGNS)))
def test_what_is_left_is_a_part_of_the_text_and_never_without_words(text: str, taken: set[str]) -> None:
    signs = looked(text).signs
    assert all(0 <= sign.start <= sign.end <= len(text) and sign.name in SIGNS for sign in signs)
    rest = stripped(text, signs, taken)
    letters = iter(text)
    assert all(letter in letters for letter in rest if not letter.isspace())
    assert any(map(str.isalnum, rest)) == any(map(str.isalnum, text))
