"""Identities of texts and prompts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinionsim.messages import ChatMessage, prompt_hash, text_id
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
