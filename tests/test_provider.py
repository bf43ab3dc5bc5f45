"""The stub provider: what it answers, when it fails, and what it counts."""

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
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

import opinionsim as osim
from opinionsim.foundation.background import run as run_in_background
from opinionsim.messages import ChatMessage
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults, evenly
from tests.support.provider_replies import plain_reply, request_identity, scripted_reply
from tests.support.provider_runs import WithinTheProcess

#: Faults that end a request only when the client gives up.
SILENT = ("hang", "stall")


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
async def posting(stub: StubProvider, key: str = "dummy") -> AsyncIterator[Post]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as session:

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


def real_client(stub: StubProvider, transport: openai.DefaultAioHttpClient) -> ChatOpenAI:
    """langchain-openai, as it asks the stub."""
    return ChatOpenAI(model="any", base_url=stub.base_url, api_key="dummy", max_retries=0, http_async_client=transport)


def ask_real_client(stub: StubProvider, text: str = "Hello.") -> AIMessage:
    """One call by langchain-openai."""

    async def call() -> AIMessage:
        async with openai.DefaultAioHttpClient() as transport:
            return await real_client(stub, transport).ainvoke([each._asdict() for each in prompt(text)], seed=1)

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
        reply = ask_real_client(stub, "one two three four")
    assert reply.text == "2 messages, seed 1"
    assert reply.usage_metadata is not None
    # "You are someone." and the four words: 4 and 6 tokens; four words said: 6.
    assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (10, 6)
    assert reply.usage_metadata["input_token_details"]["cache_read"] == 5
    assert reply.response_metadata["model_name"] == "stub-1"
    assert reply.response_metadata["system_fingerprint"].startswith("fp_")


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
        try:
            turns = _turns(experiment, "sqlite:///through.sqlite", real_client(stub, client))
        finally:
            run_in_background(client.aclose())
    assert stub.paid_twice == {}
    assert len(stub.served) == len(stub.log) > 0
    assert turns == _turns(experiment, "sqlite:///within.sqlite", WithinTheProcess.of(stub))


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
        assert ask_real_client(stub).text == ""


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


@pytest.mark.whole
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
