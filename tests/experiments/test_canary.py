"""The fixed questions that show whether a provider changed a model during a sweep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from opinionsim.experiments._canaries import Canaries
from opinionsim.llm import (
    Budget,
    CanaryReply,
    Endpoint,
    Limits,
    ModelClient,
    Price,
    RetryPolicy,
    Usage,
    ask_canary,
    canary_prompts,
    compare_canaries,
    load_chat_model,
)
from opinionsim.store import CanaryRow
from opinionsim.testing import Faults, StubProvider
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


def test_a_question_is_asked_again_as_calls_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-no-use-here")
    for plan, patience in ((["rate-limited", None], 1), (["http-500", "reset", None], 2)):
        retry = RetryPolicy(transient=patience, rate_limited=patience, first_wait_s=0.001)
        with StubProvider(faults=Faults(plan=plan, retry_after_s=0.001)) as stub:
            client = ModelClient(load_chat_model("openai:m", base_url=stub.base_url))
            assert len(asyncio.run(ask_canary(client, retry=retry))) == 4
            less = RetryPolicy(transient=patience - 1, rate_limited=patience - 1, first_wait_s=0.001)
            stub.faults = Faults(tries={plan[0]: 1.0}, in_a_row=1000, retry_after_s=0.001)
            with pytest.raises(Exception, match=r"429|500"):
                asyncio.run(ask_canary(client, retry=less))


class Moody(BaseChatModel):
    """Answers the questions at the positions given, fails at one, and says nothing to the others for ever."""

    answers: tuple[int, ...] = ()
    fails: int | None = None
    usage: bool = True
    model: str = "moody"
    _given_up: list[int] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "moody"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        position = [prompt[-1].content for prompt in canary_prompts()].index(messages[-1].text)
        if position == self.fails:
            for _ in range(1000):  # until the others have arrived
                await asyncio.sleep(0)
            raise PermissionError("not you")
        if position not in self.answers:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                self._given_up.append(position)
                raise
        usage = UsageMetadata(input_tokens=7, output_tokens=3, total_tokens=10) if self.usage else None
        message = AIMessage(f"{self.model} {position}", usage_metadata=usage, response_metadata={"model": self.model})
        return ChatResult(generations=[ChatGeneration(message=message)])


class Watching:
    """What the canary needs of an experiment's instruments."""

    def __init__(self, *models: Moody) -> None:
        self._pairs = [
            (client, Endpoint(client, price=Price(1.0, 2.0, 0.0), max_tokens=10))
            for client in (ModelClient(model, "m:one-name") for model in models)
        ]

    def networked(self) -> list[tuple[ModelClient, Endpoint]]:
        return self._pairs


def watched(*models: Moody, timeout_s: float = 60.0, stop: bool = False) -> tuple[list[CanaryRow], list[str], Usage]:
    """Rows of one round, notes, and what was paid for it."""

    async def ask() -> tuple[list[CanaryRow], list[str], Usage]:
        stopping, budget = asyncio.Event(), Budget(Limits(calls=100))
        instruments: Any = Watching(*models)
        canaries = Canaries("e", instruments, budget, retry=RetryPolicy(timeout_s), stopping=stopping)
        if stop:
            asyncio.get_running_loop().call_later(0.01, stopping.set)
        rows = await canaries.ask("start")
        assert len(asyncio.all_tasks()) == 1, "no question is left behind"
        assert budget.remaining().calls == 100 - budget.paid.calls
        await budget.reserve(Usage(100 - budget.paid.calls))  # nothing stays set aside
        return rows, canaries.notes, budget.paid

    return asyncio.run(ask())


def test_when_one_question_fails_the_others_are_given_up_and_what_arrived_stays() -> None:
    model = Moody(answers=(0, 2), fails=3, cache=False)
    arrived: list[CanaryReply] = []
    with pytest.raises(PermissionError, match="not you"):
        asyncio.run(ask_canary(ModelClient(model), arrived))
    assert sorted(reply.position for reply in arrived) == [0, 2]
    assert model._given_up == [1]


@pytest.mark.parametrize(
    ("behaviour", "options", "why"),
    [
        ({"answers": (0, 2), "fails": 3}, {}, "PermissionError"),
        ({"answers": (0, 2)}, {"timeout_s": 0.5}, "no reply within 0.5 s"),
        ({"answers": (0, 2)}, {"stop": True}, "the sweep was stopped"),
    ],
    ids=["fails", "late", "stopped"],
)
def test_what_arrives_is_recorded_and_paid_for_whatever_becomes_of_the_rest(
    behaviour: dict[str, Any], options: dict[str, Any], why: str
) -> None:
    rows, notes, paid = watched(Moody(cache=False, **behaviour), **options)
    assert [(row.position, row.input_tokens, row.output_tokens, row.cost) for row in rows] == [
        (0, 7, 3, 13.0),
        (2, 7, 3, 13.0),
    ]
    assert notes == [f"m:one-name: the canary questions at the start were not answered ({why})"]
    assert paid == Usage(2, 20, 26.0)


def test_where_a_provider_counts_no_tokens_the_most_is_counted() -> None:
    model = Moody(answers=(0, 1, 2, 3), usage=False, cache=False)
    rows, notes, paid = watched(model)
    assert {(row.input_tokens, row.output_tokens, row.cost) for row in rows} == {(None, None, None)}
    assert notes == []
    worst = sum((Watching(model).networked()[0][1].worst(prompt) for prompt in canary_prompts()), Usage())
    assert paid == worst


def test_questions_that_do_not_fit_are_not_asked() -> None:
    limits = Limits(calls=100, tokens=10)
    model = Moody(answers=(0, 1, 2, 3), cache=False)

    async def ask() -> tuple[list[CanaryRow], list[str]]:
        instruments: Any = Watching(model)
        canaries = Canaries("e", instruments, Budget(limits), retry=RetryPolicy(), stopping=asyncio.Event())
        return await canaries.ask("start"), canaries.notes

    rows, (note,) = asyncio.run(ask())
    assert rows == []
    assert note.endswith("were left out to keep the budget")


def test_two_models_of_one_name_are_told_apart() -> None:
    everything = (0, 1, 2, 3)
    rows, notes, _ = watched(
        Moody(answers=everything, model="a", cache=False), Moody(answers=everything, model="b", cache=False)
    )
    assert notes == []
    assert {(row.model, row.returned_model) for row in rows} == {("m:one-name", "a"), ("m:one-name (2)", "b")}


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
