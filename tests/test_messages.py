"""Identities of texts and prompts, and what becomes of texts that are no answers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinionsim.messages import ChatMessage, Condition, Message, Reply, as_message, prompt_hash, text_id
from opinionsim.streams import digest

roles = st.sampled_from(["system", "user", "assistant"])
# Texts made of what a spelled-out prompt is made of, so that careless joining would collide.
tricky = st.text(alphabet=st.sampled_from([*"\n:us \x1f", "é"]), max_size=4) | st.sampled_from(
    ["user:", "\nuser:", f"user:{digest('')}", "system:a\nuser:b", digest("a")]
)
prompts = st.lists(st.builds(ChatMessage, roles, tricky), max_size=4)


@given(st.text())
def test_the_identity_of_a_text_is_its_content(text: str) -> None:
    assert text_id(text) == digest(text)


@given(prompts, prompts)
def test_prompts_have_equal_hashes_exactly_when_they_are_equal(a: list[ChatMessage], b: list[ChatMessage]) -> None:
    assert (prompt_hash(a) == prompt_hash(b)) == (a == b)


def _pairs() -> list[tuple[list[tuple[str, str]], list[tuple[str, str]]]]:
    return [
        ([("user", "a"), ("user", "b")], [("user", "a\nuser:b")]),
        ([("user", "a"), ("user", "b")], [("user", "ab")]),
        ([("user", "a"), ("user", "b")], [("user", "b"), ("user", "a")]),
        ([("user", "a")], [("system", "a")]),
        ([("user", "a")], [("user", "a"), ("user", "")]),
        ([], [("user", "")]),
        ([("user", "ab"), ("user", "c")], [("user", "a"), ("user", "bc")]),
        ([("user", " a")], [("user", "a")]),
        ([("user", "\u00e9")], [("user", "e\u0301")]),
    ]


@pytest.mark.parametrize(("a", "b"), _pairs())
def test_boundaries_between_messages_count(a: list, b: list) -> None:
    assert prompt_hash(itertools.starmap(ChatMessage, a)) != prompt_hash(itertools.starmap(ChatMessage, b))


def test_a_prompt_may_come_as_any_iterable() -> None:
    prompt = [ChatMessage("system", "You are Ann."), ChatMessage("user", "Write.")]
    assert prompt_hash(iter(prompt)) == prompt_hash(tuple(prompt)) == prompt_hash(prompt)


def test_identities_are_pinned() -> None:
    """A change here orphans every stored call."""
    assert (
        prompt_hash([ChatMessage("system", "You are Ann."), ChatMessage("user", "Write.")])
        == "200e2d2d8494c1184e609494"
    )


@pytest.mark.parametrize(
    ("condition", "shown", "passed_on"),
    [
        ("answered", "It rained.", True),
        ("truncated", "It rained. [The text was cut off here.]", True),
        ("refused", "[The author declined to answer.] It rained.", False),
        ("empty", "[The author wrote nothing.]", False),
    ],
)
def test_a_text_that_is_no_answer_is_shown_as_what_it_is(condition: Condition, shown: str, passed_on: bool) -> None:
    """Its author remembers it so; of those, others receive only what was cut off."""
    text = "" if condition == "empty" else "It rained."
    message = Message(text, condition=condition)
    assert (message.shown, message.passed_on) == (shown, passed_on)
    assert Reply(text, condition).shown == shown


def test_nobody_receives_a_turn_that_was_skipped() -> None:
    assert not Message("", condition="skipped").passed_on


def test_a_message_from_outside_may_be_given_as_text() -> None:
    news = Message("It rained.", "the radio")
    assert as_message(news) is news
    assert as_message("It rained.") == Message("It rained.", author="", agent=None, role="", act="", decision=None)
