"""The fixed questions that show whether a provider changed a model during a sweep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from opinionsim.llm import ModelClient, load_chat_model
from opinionsim.llm._canary import CanaryReply, ask_canary, compare_canaries
from tests.llm._loopback import Loopback

FIRST = tuple(CanaryReply(position, f"text {position}", "m-2024", "fp-1", 7, 3) for position in range(4))


def changed(**fields: Any) -> tuple[CanaryReply, ...]:
    return tuple(reply._replace(**fields) for reply in FIRST)


def asked(server: Loopback, **options: Any) -> tuple[CanaryReply, ...]:
    model = load_chat_model("openai:m", base_url=server.base_url, **options)
    return asyncio.run(ask_canary(ModelClient(model)))


def answer(body: dict[str, Any]) -> dict[str, Any]:
    return {"text": body["messages"][-1]["content"].upper(), "model": "m-2024", "system_fingerprint": "fp-1"}


def test_fixed_questions_are_asked_coolly_and_briefly() -> None:
    with Loopback(say=answer) as server:
        first = asked(server, temperature=0.9, max_tokens=500)
        again = asked(server, temperature=0.1, max_tokens=20)
    assert first == again
    assert [reply.position for reply in first] == [0, 1, 2, 3]
    assert len({reply.text for reply in first}) == 4
    assert {reply[2:] for reply in first} == {("m-2024", "fp-1", 7, 3)}
    sent = server.bodies
    assert {body["temperature"] for body in sent} == {0}
    assert len({body["seed"] for body in sent}) == 1
    assert {(body["max_tokens"], body["max_completion_tokens"]) for body in sent} == {(48, 48), (20, 20)}
    assert all(len(body["messages"]) == 1 for body in sent)


def test_a_model_without_a_temperature_keeps_its_settings() -> None:
    """It reasons, as a rule: within a short limit it might not come to an answer."""
    with Loopback(say=answer) as server:
        asked(server, max_tokens=500)
        asked(server)
    assert all("temperature" not in body for body in server.bodies)
    assert {body.get("max_completion_tokens") for body in server.bodies} == {500, None}


def test_the_client_asked_is_left_as_it_is() -> None:
    with Loopback(say=answer) as server:
        client = ModelClient(ChatOpenAI(model="m", base_url=server.base_url, api_key="k", temperature=0.9))  # type: ignore[arg-type]
        before = client.model.model_dump()
        asyncio.run(ask_canary(client))
        assert client.model.model_dump() == before


def test_a_call_that_fails_is_told() -> None:
    with Loopback(status=401) as server, pytest.raises(Exception, match="not now"):
        asked(server)


def test_nothing_is_said_when_nothing_changed() -> None:
    assert compare_canaries(FIRST, FIRST) == ""
    assert compare_canaries(FIRST, changed(input_tokens=8)) == ""
    assert compare_canaries(FIRST, ()) == ""
    assert compare_canaries((), FIRST) == ""


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (changed(model="m-2025"), "the model returned was 'm-2024' and became 'm-2025'"),
        (changed(fingerprint="fp-2"), "the provider's fingerprint was 'fp-1' and became 'fp-2'"),
        (changed(fingerprint=""), "the provider's fingerprint was 'fp-1' and became not told"),
        (
            (FIRST[0]._replace(text="else"), *FIRST[1:]),
            "1 of 4 replies to the fixed questions differ "
            "(providers are not deterministic, so that this alone proves no change)",
        ),
        ((FIRST[0], FIRST[1]._replace(position=9, text="another question")), ""),
    ],
)
def test_a_change_is_told_in_a_sentence(after: tuple[CanaryReply, ...], said: str) -> None:
    assert compare_canaries(FIRST, after) == said


def test_several_changes_are_told_together() -> None:
    said = compare_canaries(FIRST, changed(model="m-2025", fingerprint="fp-2", text="x"))
    assert said.count(";") == 2
    assert said.endswith("proves no change)")
    assert "4 of 4 replies" in said
