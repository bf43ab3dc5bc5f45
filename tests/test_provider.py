"""The stub provider: what it answers, which faults a real client sees of it, and what it counts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import openai
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core import exceptions as lc
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.foundation.background import run as run_in_background
from opinionsim.messages import ChatMessage
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults, evenly
from tests.support.provider_replies import plain_reply, request_identity, scripted_reply

#: Faults that end a request only when the client gives up.
SILENT = ("hang", "stall")
TRANSPORTS = {"httpx": openai.DefaultAsyncHttpxClient, "aiohttp": openai.DefaultAioHttpClient}


def prompt(text: str) -> tuple[ChatMessage, ...]:
    return (ChatMessage("system", "You are someone."), ChatMessage("user", text))


class Answer(NamedTuple):
    """What a plain client sees: status 0 for a connection that broke or stayed silent."""

    status: int
    body: Any = None
    headers: Any = None

    @property
    def text(self) -> str:
        return str(self.body["choices"][0]["message"]["content"])


Post = Callable[..., Awaitable[Answer]]


@asynccontextmanager
async def posting(stub: StubProvider, timeout_s: float = 30.0, key: str = "dummy") -> AsyncIterator[Post]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(timeout_s)) as session:

        async def post(text: str, seed: int = 1, **others: Any) -> Answer:
            messages = [message._asdict() for message in prompt(text)]
            body = {"model": "any", "messages": messages, "seed": seed, **others}
            headers = {"Authorization": f"Bearer {key}"}
            try:
                async with session.post(f"{stub.base_url}/chat/completions", json=body, headers=headers) as answer:
                    raw = await answer.read()
                    try:
                        return Answer(answer.status, json.loads(raw), answer.headers)
                    except ValueError:
                        return Answer(answer.status, raw, answer.headers)
            except (aiohttp.ClientError, TimeoutError):
                return Answer(0)

        yield post


def ask_real_client(
    stub: StubProvider, transport: str, text: str = "Hello.", timeout_s: float = 30.0, **options: Any
) -> AIMessage:
    """One call by langchain-openai over one of the transports that openai offers."""

    async def call() -> AIMessage:
        async with TRANSPORTS[transport](timeout=timeout_s) as client:
            model = ChatOpenAI(
                model="any",
                base_url=stub.base_url,
                api_key="dummy",
                max_retries=0,
                timeout=timeout_s,
                http_async_client=client,
                **options,
            )
            return await model.ainvoke([each._asdict() for each in prompt(text)], seed=1)

    return asyncio.run(call())


# --- replies -------------------------------------------------------------------------------------------------


def test_the_reply_depends_on_messages_and_seed_alone() -> None:
    async def texts(stub: StubProvider, order: list[tuple[str, int]]) -> dict[tuple[str, int], str]:
        async with posting(stub) as post:
            return {(text, seed): (await post(text, seed)).text for text, seed in order}

    order = [(text, seed) for text in ("a", "b", "c") for seed in (1, 2, 3)]
    with StubProvider() as one, StubProvider(latency=lambda rng: rng.random() / 100, seed=5) as other:
        first, second = asyncio.run(texts(one, order)), asyncio.run(texts(other, order[::-1]))
    assert first == second
    assert len(set(first.values())) > 4
    assert first["a", 1] == plain_reply(prompt("a"), 1)


def test_a_real_client_reads_text_usage_and_identity_of_the_model() -> None:
    with StubProvider(lambda messages, seed: f"{len(messages)} messages, seed {seed}", cached=0.5) as stub:
        reply = ask_real_client(stub, "aiohttp", "one two three four")
    assert reply.text == "2 messages, seed 1"
    assert reply.usage_metadata is not None
    # "You are someone." and the four words: 4 and 6 tokens; four words said: 6.
    assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (10, 6)
    assert reply.usage_metadata["input_token_details"]["cache_read"] == 5
    assert reply.response_metadata["model_name"] == "stub-1"
    assert reply.response_metadata["system_fingerprint"].startswith("fp_")


class InProcess(BaseChatModel):
    """What the stub would say, without a stub."""

    seed: int | None = None
    speak: Callable[..., str] = scripted_reply(temperature=0.7)

    @property
    def _llm_type(self) -> str:
        return "in process"

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        roles = {"system": "system", "human": "user", "ai": "assistant"}
        asked = tuple(ChatMessage(roles[each.type], each.text) for each in messages)  # type: ignore[arg-type]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.speak(asked, options["seed"])))])


def _turns(experiment: Any, store: str, model: Any) -> list[tuple[Any, ...]]:
    results = osim.run(experiment, store, chat_model=model)
    assert set(results.runs["status"]) == {"complete"}
    turns = results.turns.sort_values(["run_id", "turn"])
    return [tuple(row) for row in turns.astype(str).itertuples(index=False)]


def test_a_simulation_through_the_stub_equals_the_one_in_the_process() -> None:
    spec = {
        "name": "tiny",
        "population": {"size": 3},
        "topic": {"name": "global-warming"},
        "model": {"name": "stub"},
        "interaction": {"kind": "dyadic", "steps": 4},
        "measurement": {"classifier": "lexicon", "texts": ["report"]},
    }
    experiment = osim.load_experiment(spec)
    client = openai.DefaultAioHttpClient()
    with StubProvider(scripted_reply(temperature=0.7)) as stub:
        through = ChatOpenAI(
            model="any", base_url=stub.base_url, api_key="dummy", max_retries=0, http_async_client=client
        )
        try:
            turns = _turns(experiment, "sqlite:///through.sqlite", through)
        finally:
            run_in_background(client.aclose())
    assert stub.paid_twice == {}
    assert len(stub.served) == len(stub.log) > 0
    assert turns == _turns(experiment, "sqlite:///within.sqlite", InProcess())


# --- faults as the real client sees them -----------------------------------------------------------------------

#: Kind: class raised over httpx, class raised over aiohttp, status, code.
RAISED: dict[str, tuple[type[Exception], type[Exception], int | None, str | None]] = {
    "rate-limited": (openai.RateLimitError, openai.RateLimitError, 429, "rate_limit_exceeded"),
    "quota": (openai.RateLimitError, openai.RateLimitError, 429, "insufficient_quota"),
    "http-500": (openai.InternalServerError, openai.InternalServerError, 500, None),
    "http-502": (openai.InternalServerError, openai.InternalServerError, 502, None),
    "http-503": (openai.InternalServerError, openai.InternalServerError, 503, None),
    "unauthorized": (openai.AuthenticationError, openai.AuthenticationError, 401, "invalid_api_key"),
    "unknown-model": (openai.NotFoundError, openai.NotFoundError, 404, "model_not_found"),
    "too-long": (openai.BadRequestError, openai.BadRequestError, 400, "context_length_exceeded"),
    "blocked": (openai.BadRequestError, openai.BadRequestError, 400, "content_filter"),
    # The aiohttp transport calls every connection that failed before an answer a time-out.
    "reset": (lc.ModelConnectionError, openai.APITimeoutError, None, None),
    "disconnect": (lc.ModelConnectionError, openai.APITimeoutError, None, None),
    "cut": (lc.ModelConnectionError, lc.ModelConnectionError, None, None),
    "hang": (openai.APITimeoutError, openai.APITimeoutError, None, None),
    "stall": (openai.APITimeoutError, openai.APITimeoutError, None, None),
    "malformed": (json.JSONDecodeError, json.JSONDecodeError, None, None),
    "html": (ValueError, ValueError, None, None),
    "no-choices": (TypeError, TypeError, None, None),
    "empty-choices": (IndexError, IndexError, None, None),
    "no-message": (AttributeError, AttributeError, None, None),
    "list": (ValueError, ValueError, None, None),
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", RAISED)
def test_what_a_real_client_raises(kind: str, transport: str) -> None:
    over_httpx, over_aiohttp, status, code = RAISED[kind]
    expected = over_httpx if transport == "httpx" else over_aiohttp
    timeout_s = 0.1 if kind in SILENT else 30.0
    with StubProvider(faults=Faults(plan=[kind], retry_after_s=0.25)) as stub:
        with pytest.raises(expected) as caught:
            ask_real_client(stub, transport, timeout_s=timeout_s)
        assert ask_real_client(stub, transport).text == plain_reply(prompt("Hello."), 1)
    assert getattr(caught.value, "status_code", None) == status
    assert getattr(caught.value, "code", None) == code
    if kind in ("rate-limited", "http-503"):
        headers = caught.value.response.headers  # type: ignore[attr-defined]
        assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "250.000")
    # A client that gave up may be noticed after the next was answered.
    assert sorted((str(each.fault), each.served) for each in stub.log) == sorted([(kind, False), ("None", True)])


def test_every_kind_of_error_is_in_the_table() -> None:
    assert set(RAISED) == {*Faults.TRANSPORT, *Faults.ANY_REQUEST, *Faults.THIS_REQUEST, "blocked"}


#: Kind: content, finish reason and refusal that a real client hands on; %s stands for the true reply.
REPLIED: dict[str, tuple[str, str, str | None]] = {
    "empty": ("", "stop", None),
    "truncated": ("half", "length", None),
    "refused": ("", "stop", "I would rather not write about this."),
    "declined": ("I would rather not write about this.", "stop", None),
    "filtered": ("", "content_filter", None),
    "endless-thought": ("<think>", "length", None),
    "trickle": ("%s", "stop", None),
    "reasoning-tags": ("<think>%s", "stop", None),
    "reasoning-field": ("%s", "stop", None),
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", REPLIED)
def test_what_a_real_client_replies(kind: str, transport: str) -> None:
    content, finish, refusal = REPLIED[kind]
    with StubProvider(faults=Faults(plan=[kind], trickle_s=0.02)) as stub:
        reply = ask_real_client(stub, transport)
    true = plain_reply(prompt("Hello."), 1)
    text = reply.text
    if content.startswith("<think>"):
        assert text.startswith("<think>")
        assert ("</think>" in text) is (kind == "reasoning-tags")
        text = f"<think>{text.partition('</think>')[2].strip()}"
    assert text == content.replace("%s", true).replace("half", true[: len(true) // 2])
    assert reply.response_metadata["finish_reason"] == finish
    assert reply.additional_kwargs.get("refusal") == refusal
    assert [each.served for each in stub.log] == [True]


def test_every_kind_of_reply_is_in_the_table() -> None:
    assert {*REPLIED, "blocked"} == {*Faults.CONTENT, *Faults.HARMLESS}


def test_reasoning_is_counted_where_it_is_a_field_of_its_own() -> None:
    with StubProvider(faults=Faults(requests={"reasoning-field": 1.0})) as stub:
        reply = ask_real_client(stub, "aiohttp")
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["output_tokens"] > reply.usage_metadata["output_token_details"]["reasoning"] > 0


# --- faults by law ---------------------------------------------------------------------------------------------

QUICK = tuple(kind for kind in Faults.TRANSPORT if kind not in SILENT)


def reads_truly(answer: Answer) -> bool:
    choices = answer.body.get("choices") if answer.status == 200 and isinstance(answer.body, dict) else None
    return bool(choices) and "message" in choices[0]


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), probability=st.floats(0, 1), in_a_row=st.integers(0, 3))
def test_who_asks_again_gets_the_true_reply_in_time(seed: int, probability: float, in_a_row: int) -> None:
    async def insist(post: Post, text: str) -> tuple[int, str]:
        failed = 0
        while not reads_truly(answer := await post(text)):
            failed += 1
        return failed, answer.text

    async def main(stub: StubProvider) -> list[tuple[int, str]]:
        async with posting(stub) as post:
            first = await asyncio.gather(*(insist(post, text) for text in "abc"))
            return [*first, *await asyncio.gather(*(insist(post, text) for text in "abc"))]

    faults = Faults(tries=evenly(probability, QUICK), in_a_row=in_a_row)
    with StubProvider(faults=faults, seed=seed) as stub:
        outcomes = asyncio.run(main(stub))
    assert max(failed for failed, _ in outcomes) <= in_a_row
    assert [text for _, text in outcomes] == [plain_reply(prompt(text), 1) for text in "abcabc"]
    assert stub.paid_twice == {request_identity(prompt(text), 1): 2 for text in "abc"}


def played(order: str, *, at_once: bool, seed: int = 3) -> set[tuple[str, int, str | None]]:
    """Which fault every try of some requests met, asked at once or one after the other."""

    async def main(stub: StubProvider) -> None:
        async with posting(stub) as post:
            for _ in range(4):
                if at_once:
                    await asyncio.gather(*map(post, order))
                else:
                    for text in order:
                        await post(text)

    faults = Faults(tries=evenly(0.6, ("http-500", "malformed", "empty")), requests={"refused": 0.3}, in_a_row=2)
    with StubProvider(faults=faults, latency=lambda rng: rng.random() / 200, seed=seed) as stub:
        asyncio.run(main(stub))
    return {(each.request.identity, each.request.attempt, each.fault) for each in stub.log}


def test_faults_are_drawn_by_identity_and_try_and_not_by_time() -> None:
    assert played("abcdef", at_once=True) == played("fedcba", at_once=False)
    assert played("abcdef", at_once=False) != played("abcdef", at_once=False, seed=4)


def test_faults_of_content_belong_to_the_request() -> None:
    async def main(stub: StubProvider) -> list[list[str]]:
        async with posting(stub) as post:
            return [[(await post(str(number))).text for _ in range(3)] for number in range(40)]

    with StubProvider(faults=Faults(requests={"empty": 0.5})) as stub:
        texts = asyncio.run(main(stub))
    assert all(len(set(tries)) == 1 for tries in texts)
    # 40 fair draws: less than 8 or more than 32 heads have odds below 1e-4, and the draws are fixed.
    assert 8 <= sum(tries[0] == "" for tries in texts) <= 32


def test_a_harmless_try_leaves_a_request_its_own_fault() -> None:
    with StubProvider(faults=Faults(tries={"reasoning-tags": 1.0}, requests={"empty": 1.0})) as stub:
        assert ask_real_client(stub, "aiohttp").text == ""


def test_a_plan_may_look_at_the_request() -> None:
    async def main(stub: StubProvider) -> list[int]:
        async with posting(stub) as post:
            return [(await post(text)).status for text in ("good", "bad", "bad")]

    plan = Faults(plan=lambda asked: "http-500" if asked.messages[-1].content == "bad" and not asked.attempt else None)
    with StubProvider(faults=plan) as stub:
        assert asyncio.run(main(stub)) == [200, 500, 200]


# --- counts, limits, life ----------------------------------------------------------------------------------------


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_client_that_gives_up_leaves_room_and_pays_nothing() -> None:
    async def main(stub: StubProvider) -> None:
        async with posting(stub) as post:
            hanging = [asyncio.create_task(post(text)) for text in "ab"]
            await until(lambda: stub.in_flight == 2)
            turned_away = await post("c")
            assert turned_away.status == 429
            assert turned_away.headers["retry-after-ms"] == "20.000"
            for task in hanging:
                task.cancel()
            await until(lambda: stub.in_flight == 0)
            assert (await post("c")).text == plain_reply(prompt("c"), 1)

    hang = Faults(plan=lambda asked: None if asked.messages[-1].content == "c" else "hang")
    with StubProvider(faults=hang, max_in_flight=2) as stub:
        asyncio.run(main(stub))
    assert stub.peak_in_flight == 2
    outcomes = Counter((each.fault, each.status, each.served) for each in stub.log)
    assert outcomes == {("over-limit", 429, False): 1, ("hang", None, False): 2, (None, 200, True): 1}
    assert stub.served == {request_identity(prompt("c"), 1): 1}
    # Turned away is not tried.
    assert [each.request.attempt for each in stub.log if each.request.messages[-1].content == "c"] == [0, 0]


def test_requests_beyond_the_rate_are_told_when_to_come_again() -> None:
    async def main(stub: StubProvider) -> list[Answer]:
        async with posting(stub) as post:
            return [await post(text) for text in "abc"]

    with StubProvider(rate=0.001, burst=2) as stub:
        answers = asyncio.run(main(stub))
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert 0 < float(answers[2].headers["Retry-After-Ms"]) <= 1_000_000


def test_a_provider_can_change_underneath() -> None:
    async def main(stub: StubProvider) -> list[tuple[str, str]]:
        async with posting(stub) as post:
            bodies = [(await post(text)).body for text in "abcd"]
            return [(body["model"], body["system_fingerprint"]) for body in bodies]

    with StubProvider(model=lambda sent: "before" if sent < 2 else "after") as stub:
        names = asyncio.run(main(stub))
    assert [name for name, _ in names] == ["before", "before", "after", "after"]
    assert len(set(names)) == 2
    assert len({fingerprint for _, fingerprint in names}) == 2


def test_a_wrong_key_is_quoted_and_every_key_is_noted() -> None:
    async def main(stub: StubProvider, key: str) -> Answer:
        async with posting(stub, key=key) as post:
            return await post("a")

    with StubProvider(api_key="right") as stub:
        refused, answered = asyncio.run(main(stub, "wrong-key")), asyncio.run(main(stub, "right"))
    assert refused.status == 401
    assert "wrong-key" in refused.body["error"]["message"]
    assert answered.status == 200
    assert stub.authorizations == {"Bearer wrong-key", "Bearer right"}


@pytest.mark.parametrize("others", [{"temperature": 0.5}, {"stream": True}, {"messages": "Hello."}, {"messages": None}])
def test_what_it_does_not_do_is_refused(others: dict[str, Any]) -> None:
    async def main(stub: StubProvider) -> Answer:
        async with posting(stub) as post:
            return await post("a", **others)

    with StubProvider(unsupported=["temperature"]) as stub:
        answer = asyncio.run(main(stub))
    assert answer.status == 400
    assert answer.body["error"]["code"] in ("unsupported_parameter", "invalid_body")
    assert not stub.served


def test_parts_of_a_message_are_read_as_their_text() -> None:
    async def main(stub: StubProvider) -> Answer:
        async with posting(stub) as post:
            parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]
            return await post("", messages=[prompt("")[0]._asdict(), {"role": "user", "content": parts}])

    with StubProvider() as stub:
        assert asyncio.run(main(stub)).text == plain_reply(prompt("Hello."), 1)


def test_models_are_listed() -> None:
    async def main(stub: StubProvider) -> Any:
        async with aiohttp.ClientSession() as session, session.get(f"{stub.base_url}/models") as answer:
            return await answer.json()

    with StubProvider(model="dated-2024-07-18") as stub:
        assert [each["id"] for each in asyncio.run(main(stub))["data"]] == ["dated-2024-07-18"]


def test_an_error_of_the_reply_function_reaches_who_gave_it() -> None:
    async def main(stub: StubProvider) -> Answer:
        async with posting(stub) as post:
            return await post("a")

    def broken(*_: object) -> str:
        raise KeyError("no such persona")

    stub = StubProvider(broken).start()
    assert asyncio.run(main(stub)).status == 500
    with pytest.raises(KeyError, match="no such persona"):
        stub.close()


@pytest.mark.parametrize(
    ("faults", "complaint"),
    [
        ({"tries": {"flood": 0.1}}, "unknown kind 'flood'; valid: rate-limited, "),
        ({"plan": ["reset", "flood"]}, "unknown kind 'flood'"),
        ({"requests": {"empty": 0.7, "refused": 0.7}}, "requests must be probabilities whose sum is at most 1"),
        ({"tries": {"reset": -0.1}}, "tries must be probabilities"),
        ({"tries": {"reset": float("nan")}}, "tries must be probabilities"),
        ({"in_a_row": -1}, "in_a_row must be 0 or more"),
    ],
)
def test_faults_that_make_no_sense_are_refused(faults: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        Faults(**faults)


@pytest.mark.parametrize("options", [{"rate": 0}, {"burst": 0}, {"max_in_flight": 0}, {"cached": 1.5}])
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=f"stub provider: {next(iter(options))} must be"):
        StubProvider(**options)


def test_it_runs_as_a_process_of_its_own(checkout: Path) -> None:
    command = [sys.executable, "-m", "tests.support.provider"]
    with subprocess.Popen(command, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        base_url = process.stdout.readline().strip()

        async def main() -> dict[str, Any]:
            async with aiohttp.ClientSession() as session:
                body = {"messages": [message._asdict() for message in prompt("a")], "seed": 1}
                async with session.post(f"{base_url}/chat/completions", json=body) as answer:
                    assert (await answer.json())["choices"][0]["message"]["content"] == plain_reply(prompt("a"), 1)
                async with session.get(base_url.replace("/v1", "/statistics")) as answer:
                    counts: dict[str, Any] = await answer.json()
                    return counts

        counts = asyncio.run(main())
        process.stdin.close()
        assert process.wait(30) == 0
    assert counts == {"requests": 1, "served": 1, "different": 1, "peak_in_flight": 1, "played": {}}
