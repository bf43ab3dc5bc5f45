"""Identities of texts and prompts, and what becomes of texts that are no answers."""

from __future__ import annotations

import copy
import itertools
import pickle
import unicodedata
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import digest
from opinionsim.messages import (
    EMPTY_PROMPT,
    ChatMessage,
    Message,
    Numbers,
    Prompt,
    Reply,
    ReplyStatus,
    Said,
    as_message,
    numbers_in,
    printable,
    prompt_identity,
    text_id,
)

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
    assert (Prompt.of(a).identity == Prompt.of(b).identity) == (a == b)


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
    assert (
        Prompt.of(itertools.starmap(ChatMessage, a)).identity != Prompt.of(itertools.starmap(ChatMessage, b)).identity
    )


def test_a_prompt_may_come_as_any_iterable() -> None:
    prompt = [ChatMessage("system", "You are Ann."), ChatMessage("user", "Write.")]
    assert Prompt.of(iter(prompt)).identity == Prompt.of(tuple(prompt)).identity == Prompt.of(prompt).identity


def test_identities_are_pinned() -> None:
    """A change here orphans every stored call."""
    assert Prompt.of([]).identity == ""
    assert prompt_identity("", "system", digest("You are Ann.")) == "f2af115778f69e4789a0c55b"
    assert (
        Prompt.of([ChatMessage("system", "You are Ann."), ChatMessage("user", "Write.")]).identity
        == "2761c867343e6687ee231263"
    )


# -- prompts as chains ---------------------------------------------------------------------------------------


@given(prompts, st.lists(st.integers(0, 4), max_size=4))
def test_a_prompt_is_the_same_in_whatever_pieces_it_is_built(whole: list[ChatMessage], cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    built = EMPTY_PROMPT
    for begin, end in itertools.pairwise(places):
        longer = built.then(*whole[begin:end])
        assert _links(longer)[: len(built)] == _links(built), "what it begins with is the very same"
        built = longer
    at_once = Prompt.of(whole)
    assert (built.identity, built.length, built.weight) == (at_once.identity, at_once.length, at_once.weight)
    assert built == at_once
    assert hash(built) == hash(at_once)
    assert list(built) == whole
    identity = ""
    for message in whole:
        identity = prompt_identity(identity, message.role, text_id(message.content))
    assert built.identity == Prompt.of(whole).identity == identity


def _links(prompt: Prompt) -> list[int]:
    """Which objects a prompt consists of, oldest first."""
    found = []
    link: Prompt | None = prompt
    while link is not None and link.before is not None:
        found.append(id(link))
        link = link.before
    return found[::-1]


@given(prompts)
def test_a_prompt_reads_like_a_list_of_its_messages(whole: list[ChatMessage]) -> None:
    prompt = Prompt.of(whole)
    assert Prompt.of(prompt) is prompt
    assert (len(prompt), bool(prompt)) == (len(whole), bool(whole))
    assert list(reversed(prompt)) == whole[::-1]
    for place in range(-len(whole), len(whole)):
        assert prompt[place] == whole[place]
    assert prompt[1:] == tuple(whole[1:])
    with pytest.raises(IndexError):
        prompt[len(whole)]
    for message in whole:
        assert message in prompt


def test_a_longer_prompt_consists_of_the_shorter_one_and_its_last_message() -> None:
    system, task = ChatMessage("system", "You are Ann."), ChatMessage("user", "Write.")
    shorter = Prompt.of([system])
    longer = shorter.then(task)
    assert longer.before is shorter
    assert shorter.then(ChatMessage("user", "Review.")).before is shorter
    assert shorter.then() is shorter
    assert (longer.message, longer.text_id) == (task, digest("Write."))
    assert (longer.weight, shorter.weight) == (6 + 3, 6)
    assert (EMPTY_PROMPT.before, EMPTY_PROMPT.message, EMPTY_PROMPT.text_id) == (None, None, "")
    assert repr(longer) == f"<Prompt of 2 messages {longer.identity}>"


def test_a_prompt_does_not_change() -> None:
    prompt = Prompt.of([ChatMessage("user", "Write.")])
    for name in ("message", "identity", "before", "else"):
        with pytest.raises(AttributeError, match="a prompt cannot change"):
            setattr(prompt, name, None)
    assert prompt.converted is None
    prompt.converted = "what a model takes"
    assert prompt.converted == "what a model takes"
    assert prompt != (ChatMessage("user", "Write."),)


def test_half_a_link_is_none() -> None:
    for half in ({"before": EMPTY_PROMPT}, {"message": ChatMessage("user", "Write.")}):
        with pytest.raises(TypeError, match="or neither"):
            Prompt(**half)


def test_a_long_prompt_can_be_copied_kept_elsewhere_and_forgotten() -> None:
    prompt = Prompt.of(ChatMessage("user", str(number)) for number in range(20_000))
    assert pickle.loads(pickle.dumps(prompt)) == prompt  # noqa: S301
    assert list(copy.deepcopy(prompt)) == list(prompt)
    del prompt


# -- messages ------------------------------------------------------------------------------------------------


def test_others_receive_what_was_said_even_if_it_was_cut_off_and_no_silence() -> None:
    received = [status for status in get_args(ReplyStatus) if Message("It rained.", status=status).passed_on]
    assert received == ["answered", "truncated", "unreadable"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\ud800half", "\ufffdhalf"),
        ("a\x00b\x1b[31m\x85", "a\ufffdb\ufffd[31m\ufffd"),
        ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
        ("caf\u00e9 \U0001f600 \u2028", "caf\u00e9 \U0001f600 \u2028"),
    ],
)
def test_what_no_prompt_can_hold_is_replaced(text: str, clean: str) -> None:
    assert printable(text) == clean


@given(st.text(st.characters(), max_size=40))
def test_a_printable_text_can_be_stored_and_is_as_it_was_but_for_what_was_replaced(text: str) -> None:
    clean = printable(text)
    clean.encode("utf-8")
    assert not any(unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\t" for each in clean)
    assert printable(clean) == clean
    plain = text.replace("\r\n", "\n")
    assert all(one in (other, "\ufffd") for one, other in zip(clean, plain, strict=True))


def test_a_message_from_outside_may_be_given_as_text() -> None:
    news = Message("It rained.", "the radio")
    assert as_message(news) is news
    assert as_message("It rained.") == Message("It rained.", author="", agent=None, role="", act="", decision=None)


# -- what is said in the place of a reply ----------------------------------------------------------------------

variables = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
finite = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
numbers = st.dictionaries(st.integers(0, 10**6), st.dictionaries(variables, finite, min_size=1, max_size=3), max_size=4)


@given(numbers)
def test_numbers_are_read_from_their_text_as_they_were(said: dict[int, dict[str, float]]) -> None:
    text, decision = Said.numbers(said)
    assert decision == said
    assert isinstance(decision, Numbers)
    assert numbers_in(text) == said


def test_numbers_stand_in_lines_by_turn() -> None:
    said = Said.numbers({12: {"agreement": 6, "quality": 5.0}, 3: {"rank": 1.5}})
    assert said.text == "12: agreement 6, quality 5\n3: rank 1.5"
    assert Said.numbers({}).text == ""


#: Lines that say no numbers.
FOREIGN = (
    *("", "I agree.", "x: rank 1", "-1: rank 1", "1: rank", "1: rank one", "1: Rank 1", "1: rank 1,quality 2"),
    *("1: rank 1 ", " 1: rank 1", "1:rank 1", "1: rank nan", "1: rank inf", "1: rank 1_0", "1: rank \u0661", "1: "),
)


@given(numbers.filter(bool), st.sampled_from(FOREIGN), st.data())
def test_a_text_with_one_foreign_line_says_nothing(
    said: dict[int, dict[str, float]], foreign: str, data: st.DataObject
) -> None:
    lines = Said.numbers(said).text.split("\n")
    # A line end after the last line is no line of its own.
    place = data.draw(st.integers(0, len(lines) - (not foreign)))
    assert numbers_in("\n".join([*lines[:place], foreign, *lines[place:]])) == {}


@pytest.mark.parametrize(
    "said",
    [{1: {}}, {-1: {"a": 1.0}}, {1: {"A": 1.0}}, {1: {"": 1.0}}, {1: {"a": float("nan")}}, {1: {"a": float("inf")}}],
)
def test_numbers_that_could_not_be_read_again_are_refused(said: dict[int, dict[str, float]]) -> None:
    with pytest.raises(SpecError, match=r"^numbers are finite, of variables in lower-case words"):
        Said.numbers(said)


def test_what_is_said_stands_in_the_place_of_a_reply() -> None:
    assert Reply("all of it", "answered", Said("words", 3)).as_said() == Reply("words", "answered", 3)
    assert Reply("all of it", "truncated", Said("words")).as_said() == Reply("words", "truncated", None)
    assert Reply("all of it", "answered", Said(" \n", 3)).as_said() == Reply(" \n", "silent", 3)
    assert Reply("all of it", "answered", 3).as_said() == Reply("all of it", "answered", 3)
    assert Reply("", "refused").as_said() == Reply("", "refused")
