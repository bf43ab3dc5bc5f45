"""The chat model that gives the replies it was given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from opinionsim.errors import ModelCallError, SpecError
from opinionsim.llm import GivenReplies, ModelClient
from opinionsim.messages import ChatMessage, Reply
from opinionsim.testing import run_virtual
from tests.support.desk import MISSING, PICKY, Desk, fails


def _asked(model: GivenReplies, *texts: str) -> list[str]:
    """What it says to prompts of one message each, in order."""
    return [str(model.invoke([HumanMessage(text)]).text) for text in texts]


def desk(replies: Any, **fields: Any) -> tuple[Desk, GivenReplies]:
    model = GivenReplies(replies, **fields)
    return Desk(ModelClient(model)), model


# -- a list --------------------------------------------------------------------------------------------------


def test_a_list_is_given_in_order() -> None:
    model = GivenReplies(["one", "two", AIMessage("three")])
    assert _asked(model, "a", "b", "c") == ["one", "two", "three"]
    assert model.prompts == [[ChatMessage("user", text)] for text in "abc"]


@given(st.lists(st.text(), max_size=5))
def test_as_many_replies_are_given_as_there_are_and_no_more(texts: list[str]) -> None:
    model = GivenReplies(texts)
    assert _asked(model, *texts) == texts
    words = f"the list of {len(texts)} given replies is too short; call {len(texts) + 1} has no reply"
    with pytest.raises(SpecError, match=words):
        _asked(model, "once more")


def test_two_models_of_one_list_do_not_share_it() -> None:
    texts = ["one", "two"]
    first, second = GivenReplies(texts), GivenReplies(texts)
    assert _asked(first, "a") == _asked(second, "b") == ["one"]
    texts.clear()
    assert _asked(first, "c") == ["two"]


def test_a_text_is_no_list_of_replies() -> None:
    with pytest.raises(SpecError, match="must be a list of texts, or a function of the prompt; got the text 'Yes"):
        GivenReplies("Yes.")


@pytest.mark.parametrize("replies", [[None], [7], [HumanMessage("Yes.")], lambda prompt: None])
def test_what_is_no_reply_is_refused(replies: Any) -> None:
    with pytest.raises(SpecError, match="a given reply must be a text or an AIMessage; call 1 got"):
        _asked(GivenReplies(replies), "a")


# -- a function of the prompt --------------------------------------------------------------------------------


def test_a_function_answers_every_prompt() -> None:
    model = GivenReplies(lambda prompt: f"{prompt[0].role} says {prompt[-1].content}")
    answer = model.invoke(
        [SystemMessage("You are Ann."), HumanMessage("Write."), AIMessage("No."), HumanMessage("Do.")]
    )
    assert answer.text == "system says Do."
    assert model.prompts == [
        [
            ChatMessage("system", "You are Ann."),
            ChatMessage("user", "Write."),
            ChatMessage("assistant", "No."),
            ChatMessage("user", "Do."),
        ]
    ]


def test_an_error_of_the_function_is_its_own() -> None:
    def broken(prompt: list[ChatMessage]) -> str:
        raise KeyError("no such name")

    with pytest.raises(KeyError, match="no such name"):
        _asked(GivenReplies(broken), "a")
    fails(desk(broken)[0], ModelCallError, r"step 3, turn 7, agent 2 \(write\): KeyError: 'no such name'")


# -- in a run ------------------------------------------------------------------------------------------------


def test_a_run_is_answered_from_the_list_attempt_by_attempt() -> None:
    caller, model = desk(["far too long", MISSING["refused"], "No.", "Yes."], cache=InMemoryCache())
    assert run_virtual(caller.ask(PICKY)) == Reply("No.", decision="NO.")
    assert run_virtual(caller.ask(PICKY, "reply.2")) == Reply("Yes.", decision="YES.")
    assert [(record.key.call, record.text) for record in caller.journal.records] == [
        ("reply", "far too long"),
        ("reply", "I will not."),
        ("reply", "No."),
        ("reply.2", "Yes."),
    ]
    assert [prompt[-1].content.partition("\n\n")[2] for prompt in model.prompts] == [
        "",
        "Your last answer could not be used: 12 letters are too many. Please answer again.",
        "Your last answer could not be used: the reply was refused. Please answer again.",
        "",
    ]


def test_a_run_whose_list_is_used_up_says_where() -> None:
    caller, _ = desk(["far too long"])
    words = "SpecError: the list of 1 given replies is too short; call 2 has no reply$"
    fails(caller, ModelCallError, rf"^run run-1, step 3, turn 7, agent 2 \(write\): {words}", PICKY)
    assert caller.attempts == [(0, "far too long", "rejected")]


def test_a_message_tells_its_usage_and_its_end() -> None:
    told = AIMessage(
        "Yes.",
        usage_metadata={"input_tokens": 11, "output_tokens": 2, "total_tokens": 13},
        response_metadata={"finish_reason": "stop", "model_name": "given-1"},
    )
    caller, _ = desk(lambda prompt: told)
    assert run_virtual(caller.ask()) == Reply("Yes.")
    (record,) = caller.journal.records
    assert (record.input_tokens, record.output_tokens) == (11, 2)
    assert (record.finish_reason, record.model, record.source) == ("stop", "given-1", "model")


@pytest.mark.parametrize("status", MISSING)
def test_it_may_be_told_to_give_no_answer(status: str) -> None:
    caller, _ = desk(lambda prompt: MISSING[status])
    assert run_virtual(caller.ask()).status == status
