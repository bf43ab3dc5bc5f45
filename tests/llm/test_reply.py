"""What a model's message is taken apart into."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.llm import ParsedReply, read_reply

TEXTS = st.text(st.characters(exclude_characters="<"), min_size=1).filter(str.strip)


def _with(text: str = "Yes.", reason: str = "stop", **extra: object) -> AIMessage:
    return AIMessage(text, response_metadata={"finish_reason": reason}, **extra)


@given(TEXTS, TEXTS)
def test_tagged_reasoning_is_split_off(thought: str, answer: str) -> None:
    for tag in ("think", "thinking", "reasoning"):
        arrived = read_reply(AIMessage(f"<{tag}>{thought}</{tag}>\n\n{answer}"))
        assert arrived.text == answer.lstrip()
        assert arrived.reasoning == thought.strip()


@given(TEXTS)
def test_a_text_without_tags_stays_as_it_is(text: str) -> None:
    arrived = read_reply(AIMessage(text))
    assert (arrived.text, arrived.reasoning) == (text, "")


_TAGS = "He wrote <b>no</b>, and <think> is a word."
_BLOCKS = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}]


@pytest.mark.parametrize(
    ("message", "text", "reasoning", "status"),
    [
        # A template wrote the opening tag itself; reasoning that never ended, or has nothing behind it.
        (AIMessage("They say it is warm.\n</think>\nI agree."), "I agree.", "They say it is warm.", "answered"),
        (_with("<think>First, I", "length"), "", "First, I", "truncated"),
        (AIMessage("<think>First, I</think>  "), "", "First, I", "empty"),
        # Tags inside an answer belong to it.
        (AIMessage(_TAGS), _TAGS, "", "answered"),
        # What providers set apart themselves.
        (AIMessage(content=_BLOCKS), "Yes.", "Hm.", "answered"),
        (AIMessage("Yes.", additional_kwargs={"reasoning_content": "Hm."}), "Yes.", "Hm.", "answered"),
        (_with("", additional_kwargs={"refusal": "I will not."}), "I will not.", "", "refused"),
    ],
)
def test_a_message_is_taken_apart(message: AIMessage, text: str, reasoning: str, status: str) -> None:
    arrived = read_reply(message)
    assert (arrived.text, arrived.reasoning, arrived.status) == (text, reasoning, status)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (_with(), "answered"),
        (_with(""), "empty"),
        (_with(" \n"), "empty"),
        (_with(reason="length"), "truncated"),
        (_with(reason="MAX_TOKENS"), "truncated"),
        (AIMessage("Yes.", response_metadata={"stop_reason": "max_tokens"}), "truncated"),
        (AIMessage("Yes.", response_metadata={"done_reason": "length"}), "truncated"),
        (AIMessage("Yes", response_metadata={"incomplete_details": {"reason": "max_output_tokens"}}), "truncated"),
        (_with("", "content_filter"), "filtered"),
        (_with("", "SAFETY"), "filtered"),
        (AIMessage("", response_metadata={"stop_reason": "refusal"}), "refused"),
        (AIMessage(content=[{"type": "refusal", "refusal": "I will not."}]), "refused"),
    ],
)
def test_what_became_of_the_question(message: AIMessage, status: str) -> None:
    assert read_reply(message).status == status


def test_usage_is_read_whole() -> None:
    usage = {
        "input_tokens": 11,
        "output_tokens": 7,
        "total_tokens": 18,
        "input_token_details": {"cache_read": 8},
        "output_token_details": {"reasoning": 5},
    }
    about = {"finish_reason": "stop", "model_name": "m-2", "system_fingerprint": "fp_1"}
    message = AIMessage("Yes.", usage_metadata=usage, response_metadata=about)
    assert read_reply(message) == ParsedReply("Yes.", "", "answered", "stop", "m-2", "fp_1", 11, 7, 8, 5, "now")
    untold = AIMessage("Yes.", response_metadata={"stop_reason": "end_turn", "model": "m-3"})
    assert read_reply(untold) == ParsedReply("Yes.", "", "answered", "end_turn", "m-3", lane="now")


@pytest.mark.parametrize("absurd", [-50_000, -1, True, 3.5, math.nan, "7", 10**9])
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_an_absurd_count_of_tokens_is_none(field: str, absurd: Any) -> None:
    message = AIMessage("Yes.")
    message.usage_metadata = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18, field: absurd}  # type: ignore[misc]
    reply = read_reply(message)
    assert (reply.input_tokens, reply.output_tokens) == ((None, 7) if field == "input_tokens" else (11, None))


@pytest.mark.parametrize(("cached", "read"), [(0, 0), (11, 11), (12, None), (-1, None), (None, None)])
def test_no_more_tokens_come_from_a_cache_than_were_sent(cached: Any, read: int | None) -> None:
    usage: Any = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "input_token_details": {}}
    usage["input_token_details"]["cache_read"] = cached
    message = AIMessage("Yes.")
    message.usage_metadata = usage
    assert read_reply(message).cached_tokens == read


def test_what_a_provider_says_of_a_reply_holds_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "Zx81nQ0aBcDeFgHiJkLmNoPq"
    monkeypatch.setenv("MY_SERVER_KEY", key)
    about = {"finish_reason": f"no {key}", "model_name": f"m {key}", "system_fingerprint": {"key": key}}
    reply = read_reply(AIMessage("Yes.", response_metadata=about))
    assert key not in repr(reply)
    assert (reply.finish_reason, reply.model) == ("no ***", "m ***")
