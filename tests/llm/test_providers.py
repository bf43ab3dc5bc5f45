"""Providers' models by name: addresses, keys, temperatures, requests as sent, retries and the transport."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import traceback
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from opinionsim.errors import SpecError
from opinionsim.foundation import background
from opinionsim.llm import ModelClient, allow_keys, load_chat_model, planning, warnings_for
from opinionsim.llm._providers import endpoint_of, request_of, seeding
from opinionsim.llm._transport import ReplyTooLong
from opinionsim.messages import ChatMessage, Prompt
from tests.support.loopback import Loopback
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults

KEY = "sk-thekeyofopenai0123456789"
OTHER = "sk-anotherkey9876543210"
PROMPT = (ChatMessage("user", "hello"),)
SERVER = {"base_url": "http://localhost:8000/v1"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of OpenAI, and nothing else of any provider."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ANTHROPIC_", "AZURE_", "OLLAMA_", "GROQ_", "OPINIONSIM_KEYS")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPINIONSIM_KEYS", "")


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A server that remembers its requests."""
    with Loopback() as running:
        yield running


def sent(model: Any) -> dict[str, Any]:
    """The parameters a model would send."""
    return {name: value for name, value in (request_of(model) or {}).items() if name not in ("messages", "stream")}


# --- keys and addresses ---


def test_openai_s_own_address_gets_openai_s_key() -> None:
    model = load_chat_model("openai:gpt-4o-mini", temperature=0.7, max_tokens=60)
    assert isinstance(model, ChatOpenAI)
    assert sent(model) == {"model": "gpt-4o-mini", "temperature": 0.7, "max_completion_tokens": 60}
    assert model.openai_api_key.get_secret_value() == KEY  # type: ignore[union-attr]
    assert (model.openai_api_base, model.max_retries, model.cache) == ("https://api.openai.com/v1", 0, False)
    assert model.request_timeout is None


@pytest.mark.parametrize("name", ["openai:gpt-4o-mini", "anthropic:claude-3-5-haiku-20241022"])
def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    variable = name.partition(":")[0].upper() + "_API_KEY"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(
        SpecError, match=rf"^model\.name: '{name}' needs a key: set the environment variable {variable}$"
    ):
        load_chat_model(name)


def test_a_foreign_address_gets_no_key_and_no_account(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-mine")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-0123456789")
    client = ModelClient(load_chat_model("openai:m", base_url=server.base_url, temperature=0.2, max_tokens=9))
    reply = asyncio.run(client.call(PROMPT, 5))
    assert reply.text == "reply to hello"
    (headers,) = server.headers
    assert headers["authorization"] == "Bearer not-needed"
    shown = repr(headers)
    assert not [secret for secret in (KEY, "of-mine", "sk-admin") if secret in shown]
    (body,) = server.bodies
    assert (body["temperature"], body["seed"]) == (0.2, 5)
    assert client.account == f"openai@{server.base_url.split('/')[2]}"
    assert (client.networked, client.name, client.evidence) == (True, "openai:m", "model")


def test_a_foreign_address_gets_the_key_that_is_named_for_it(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_API_KEY", OTHER)
    model = load_chat_model("openai:m", base_url=server.base_url, api_key_env="MY_SERVER_API_KEY")
    asyncio.run(ModelClient(model).call(PROMPT, 1))
    assert server.headers[0]["authorization"] == f"Bearer {OTHER}"


def test_an_address_of_the_environment_gets_the_key_of_the_environment(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sets the one sets the other; a specification comes from anywhere."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    client = ModelClient(load_chat_model("openai:m"))
    asyncio.run(client.call(PROMPT, 1))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    monkeypatch.delenv("OPENAI_API_KEY")
    asyncio.run(ModelClient(load_chat_model("openai:m")).call(PROMPT, 1))
    assert server.headers[1]["authorization"] == "Bearer not-needed"


@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com.example.org/v1",
        "https://notopenai.com/v1",
        "http://api.openai.com/v1",
        "https://example.org/api.openai.com",
    ],
)
def test_what_only_looks_like_openai_gets_no_key(address: str) -> None:
    model = load_chat_model("openai:gpt-4o-mini", base_url=address)
    assert model.openai_api_key.get_secret_value() == "not-needed"  # type: ignore[attr-defined]


ELSEWHERE = {"base_url": "https://llm.example.org/v1"}


@pytest.mark.parametrize(
    ("name", "options", "variable", "host"),
    [
        ("openai:m", ELSEWHERE, "OPENAI_API_KEY", "llm.example.org"),
        ("openai:m", ELSEWHERE, "HOME", "llm.example.org"),
        ("openai:m", ELSEWHERE, "MY_API_KEY", "llm.example.org"),
        ("openai:m", {}, "HOME", "api.openai.com"),
        ("openai:m", {"base_url": "http://openrouter.ai/api/v1"}, "OPENROUTER_API_KEY", "openrouter.ai"),
        # A server on this machine may be anybody's: it gets no provider's key, and no variable that is no key.
        ("openai:m", SERVER, "OPENAI_API_KEY", "localhost"),
        ("openai:m", SERVER, "GITHUB_TOKEN", "localhost"),
        ("openai:m", {"base_url": "http://169.254.169.254/v1"}, "MY_API_KEY", "169.254.169.254"),
        ("anthropic:m", ELSEWHERE, "OPENAI_API_KEY", "llm.example.org"),
        ("groq:m", {}, "OPENAI_API_KEY", "groq"),
        ("groq:m", {"groq_api_base": "https://llm.example.org"}, "GROQ_API_KEY", "llm.example.org"),
        (
            "google_genai:m",
            {"client_options": {"api_endpoint": "llm.example.org"}},
            "GOOGLE_API_KEY",
            "llm.example.org",
        ),
        ("ollama:m", ELSEWHERE, "OLLAMA_API_KEY", "llm.example.org"),
    ],
)
def test_a_specification_sends_no_key_where_nobody_allowed_it(
    name: str, options: dict[str, Any], variable: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, OTHER)
    pair = f"{variable}={host}"
    for loading in (nullcontext, planning):
        with loading(), pytest.raises(SpecError, match=rf"{variable} would be sent to {host}, .*--allow-key {pair}"):
            load_chat_model(name, **options, api_key_env=variable)
    monkeypatch.setenv("OPINIONSIM_KEYS", f"OTHER_API_KEY=example.org, {pair}")
    if name.startswith("openai:"):
        model = load_chat_model(name, **options, api_key_env=variable)
        assert model.openai_api_key.get_secret_value() == OTHER  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("address", "variable"),
    [
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        ("https://eu.api.openai.com/v1", "OPENAI_API_KEY"),
        ("http://localhost:8000/v1", "MY_SERVER_API_KEY"),
        ("http://[::1]:8000/v1", "MY_SERVER_API_KEY"),
        ("http://10.0.3.7/v1", "MY_SERVER_API_KEY"),
    ],
)
def test_a_key_goes_to_its_provider_and_to_servers_nearby(
    address: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, OTHER)
    model = load_chat_model("openai:m", base_url=address, api_key_env=variable)
    assert model.openai_api_key.get_secret_value() == OTHER  # type: ignore[attr-defined]


def test_pairs_of_another_form_are_refused() -> None:
    with pytest.raises(
        SpecError, match=r"OPINIONSIM_KEYS: 'MY_KEY' must give the variable of a key and its allowed host"
    ):
        allow_keys(["MY_KEY"])


def test_a_gateway_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_GATEWAY", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_0123456789")
    assert endpoint_of(load_chat_model("openai:gpt-4o-mini")) == "api.openai.com"
    with pytest.raises(SpecError, match="LANGSMITH_GATEWAY is set"):
        load_chat_model("groq:llama-3.1-8b-instant")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("openai:m", {"api_key": KEY}, r"api_key: a specification must not contain credentials"),
        ("openai:m", {"openai_api_key": KEY}, r"openai_api_key: a specification must not"),
        ("openai:m", {"default_headers": {"Authorization": f"Bearer {KEY}"}}, r"Authorization: a specification"),
        ("anthropic:c", {"mcp_servers": [{"authorization_token": KEY}]}, r"authorization_token: a specification"),
        ("openai:m", {"base_url": f"http://me:{KEY}@localhost/v1"}, r"base_url: an address must not contain a user"),
        ("openai:m", {"openai_proxy": f"http://me:{KEY}@proxy"}, r"openai_proxy: an address must not contain a user"),
        ("openai:m", {"base_url": f"http://localhost/v1?key={KEY}"}, r"base_url must be an address such as"),
        ("openai:m", {"base_url": "localhost:8000"}, r"base_url must be an address such as http://localhost"),
        ("openai:m", {"base_url": 8000}, r"base_url must be an address"),
        ("openai:m", {"openai_api_base": "http://localhost/v1"}, r"openai_api_base: write it as base_url"),
        ("openai:m", {"api_key_env": KEY}, r"api_key_env must be the name of an environment variable"),
        ("openai:m", {**SERVER, "api_key_env": "UNSET_API_KEY"}, r"set the environment variable UNSET_API_KEY"),
        ("openai:m", {"base_url": "https://example.org\\.openai.com"}, r"base_url must be an address such as"),
        ("openai:m", {"max_retries": 3}, r"max_retries: retries belong to execution\.retry"),
        ("openai:m", {"timeout": 3}, r"timeout: time-outs are execution\.timeout_s"),
        ("openai:m", {"cache": True}, r"cache: replies kept by prompt"),
        ("openai:m", {"seed": 3}, r"seed: every call has its own seed"),
        ("openai:m", {**SERVER, "extra_body": {"seed": 3}}, r"seed: every call has its own seed"),
        ("openai:m", {**SERVER, "extra_body": {"temperature": 1}}, r"temperature: write it as model\.temperature"),
        ("openai:m", {"n": 2}, r"n: each call asks for one reply"),
        ("openai:m", {"top_k": 5}, r"ChatOpenAI has no option 'top_k'.*extra_body"),
        ("openai:m", {"reasoning_efort": "low"}, r"has no option 'reasoning_efort' .did you mean reasoning_effort"),
        ("openai:m", {"top_p": "many"}, r"cannot be loaded: top_p: Input should be a valid number"),
        ("groq:m", {"base_url": "http://localhost/v1"}, r"with base_url, name the environment variable of the key"),
    ],
)  # fmt: skip
def test_options_that_have_no_place_are_refused_without_showing_them(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        load_chat_model(name, **options)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error)
        error = error.__cause__


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(SpecError, match=r"'cohere:command-r' cannot be loaded: .*pip install langchain-cohere"):
        load_chat_model("cohere:command-r")
    with pytest.raises(SpecError, match=r"'nobody:m' cannot be loaded: .*nobody"):
        load_chat_model("nobody:m")


def test_options_of_the_server_itself_pass_through(server: Loopback) -> None:
    body = {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}}
    model = load_chat_model("openai:m", base_url=server.base_url, max_tokens=9, top_p=0.9, extra_body=body)
    asyncio.run(ModelClient(model).call(PROMPT, 1))
    found = server.bodies[0]
    assert (found["top_k"], found["top_p"], found["max_tokens"]) == (5, 0.9, 9)
    assert found["chat_template_kwargs"] == {"enable_thinking": False}
    assert body == {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("max_tokens", "options", "sent", "longer"),
    [
        (9, {}, {"max_tokens": 9}, {"max_tokens": 18}),
        (9, {"max_completion_tokens": 9}, {"max_completion_tokens": 9}, {"max_completion_tokens": 18}),
        (9, {"extra_body": {"max_completion_tokens": 9}}, {"max_completion_tokens": 9}, {"max_completion_tokens": 18}),
        (9, {"extra_body": {"max_tokens": 9}}, {"max_tokens": 9}, {"max_tokens": 18}),
        (None, {}, {}, {}),
        (None, {"max_completion_tokens": 5}, {"max_completion_tokens": 5}, {"max_completion_tokens": 18}),
        (None, {"extra_body": {"max_tokens": 5}}, {"max_tokens": 5}, {"max_tokens": 18}),
    ],
)
def test_a_foreign_address_gets_the_longest_reply_under_one_name(
    server: Loopback, max_tokens: int | None, options: dict[str, Any], sent: dict[str, int], longer: dict[str, int]
) -> None:
    """Relays refuse the pair of names, and some servers know only the older one."""
    client = ModelClient(load_chat_model("openai:m", base_url=server.base_url, max_tokens=max_tokens, **options))
    for longest in (None, 18):
        asyncio.run(client.call(PROMPT, 1, longest))
    limits = [{name: value for name, value in body.items() if name.startswith("max")} for body in server.bodies]
    assert limits == [sent, longer]


@pytest.mark.parametrize("options", [{"max_completion_tokens": 5}, {"extra_body": {"max_tokens": 5}}])
def test_two_lengths_of_a_reply_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"max_\w+ is 5 and model\.max_tokens 9; write one number in both, .*null"):
        load_chat_model("openai:m", max_tokens=9, **SERVER, **options)


def test_a_limit_of_a_provider_s_own_name_counts_where_max_tokens_is_null() -> None:
    assert sent(load_chat_model("openai:gpt-4o", max_completion_tokens=7))["max_completion_tokens"] == 7
    model = load_chat_model("openai:gpt-5", use_responses_api=True, max_tokens=60, **SERVER)
    assert {name for name in sent(model) if name.startswith("max")} == {"max_output_tokens"}


# --- the order of roles ---


def test_messages_of_one_role_in_a_row_are_joined_where_the_options_say_so(server: Loopback) -> None:
    prompt = [ChatMessage(role, text) for role, text in zip(("system", "user", "user", "user"), "abcd", strict=True)]
    for options in ({}, {"roles": "alternate"}):
        model = load_chat_model("openai:m", base_url=server.base_url, **options)
        asyncio.run(ModelClient(model).call(Prompt.of(prompt), 1))
    asked = [[(each["role"], each["content"]) for each in body["messages"]] for body in server.bodies]
    assert asked == [[tuple(each) for each in prompt], [("user", "a\n\nb\n\nc\n\nd")]]
    assert "metadata" not in server.bodies[1]
    with pytest.raises(SpecError, match=r"model\.options: roles must be 'alternate', or left out; got 'merge'"):
        load_chat_model("openai:m", **SERVER, roles="merge")


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("openai:mistralai/Mistral-7B-Instruct-v0.3", True),
        ("openai:mistralai/Mixtral-8x7B-Instruct-v0.1", True),
        ("openai:google/gemma-2-9b-it", True),
        ("hf:meta-llama/Llama-2-7b-chat-hf", True),
        ("openai:meta-llama/Llama-3.1-8B-Instruct", False),
        ("openai:Qwen/Qwen3-8B", False),
        ("openai:gpt-4o-mini", False),
    ],
)
def test_a_template_that_is_known_to_need_it_is_warned_of(name: str, needed: bool) -> None:
    found = warnings_for(name, SERVER)
    assert ["set model.options.roles: alternate" in each for each in found] == [True] * needed
    assert warnings_for(name, {**SERVER, "roles": "alternate"}) == []


def test_null_options_are_none_at_all() -> None:
    model = load_chat_model("openai:gpt-4o-mini", base_url=None, api_key_env=None)
    assert endpoint_of(model) == "api.openai.com"


# --- the length of replies ---


async def _packed(body: bytes, encoding: str, most: int, **options: Any) -> None:
    """Ask a server once that answers with this body, whatever it was asked for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: {encoding}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = load_chat_model("openai:m", base_url=url, **options)
        assert (await ModelClient(model, max_reply_bytes=most).call(PROMPT, 1)).text == "hello"


#: Releases of openai differ in which errors of a transport they wrap.
ENDED = (openai.APIConnectionError, ReplyTooLong)
REPLY = b'{"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "message":' \
    b' {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}'  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"streaming": True}], ids=["whole", "streamed"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_reply_is_read_up_to_its_bound_alone(encoding: str, options: dict[str, Any]) -> None:
    body = b" " * 60_000_000
    packed = gzip.compress(body) if encoding == "gzip" else body
    del body
    tracemalloc.start()
    with pytest.raises(ENDED) as caught:
        asyncio.run(_packed(packed, encoding, 1_000_000, **options))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    told = "".join(traceback.format_exception(caught.value))
    assert "longer than 1,000,000 bytes, unpacked, and was cut off; raise model.max_reply_bytes" in told
    assert encoding == "identity" or most < 20_000_000  # the server in this process holds the other whole


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_reply_within_its_bound_is_read(encoding: str) -> None:
    packed = gzip.compress(REPLY) if encoding == "gzip" else zlib.compress(REPLY)
    asyncio.run(_packed(packed, encoding, len(REPLY)))
    with pytest.raises(ENDED):
        asyncio.run(_packed(packed, encoding, len(REPLY) - 1))


def test_a_reply_packed_in_a_way_without_a_bound_is_not_unpacked() -> None:
    with pytest.raises(Exception, match=r"packed as|Connection error") as caught:
        asyncio.run(_packed(gzip.compress(gzip.compress(REPLY)), "gzip, gzip", 1_000_000))
    assert "has the encoding 'gzip, gzip'" in "".join(traceback.format_exception(caught.value))


def test_no_model_gives_a_longer_reply_than_its_bound() -> None:
    client = ModelClient(FakeListChatModel(responses=["x" * 2_000]), max_reply_bytes=1_000)
    with pytest.raises(ReplyTooLong, match=r"longer than 1,000 bytes"):
        asyncio.run(client.call(PROMPT, 1))


# --- temperatures, reasoning, the Responses API ---


@pytest.mark.parametrize("temperature", [2.5, -0.1, True, float("nan"), "hot"])
def test_a_temperature_out_of_range_is_an_error(temperature: Any) -> None:
    with pytest.raises(SpecError, match=r"model\.temperature must be a number from 0 to 2, or none; got"):
        load_chat_model("openai:m", temperature=temperature)


@pytest.mark.parametrize(
    ("name", "temperature", "options"),
    [
        ("openai:o3-mini", None, {"reasoning_effort": "low"}),
        # Whether the model takes it, its provider says at the first call.
        ("openai:o3-mini", 0.7, {}),
        ("openai:gpt-5-chat-latest", 0.7, {}),
        ("openai:gpt-5.1", 0.7, {"reasoning_effort": "none"}),
        ("openai:gpt-4o", 2.0, {}),
        ("openai:m", 0.7, SERVER),
    ],
)
def test_a_temperature_is_sent_as_asked_for(name: str, temperature: float | None, options: dict[str, Any]) -> None:
    request = sent(load_chat_model(name, temperature=temperature, **options))
    assert request.get("temperature") == temperature
    assert request.get("reasoning_effort") == options.get("reasoning_effort")


@pytest.mark.parametrize(("name", "options"), [("openai:gpt-5", {}), ("openai:gpt-5-local", SERVER)])
def test_a_temperature_that_langchain_leaves_out_is_an_error(name: str, options: dict[str, Any]) -> None:
    """No list of names is needed: the request is looked at."""
    said = rf"'{name}' does not accept 0\.7: ChatOpenAI does not send it; set model\.temperature: null"
    with pytest.raises(SpecError, match=said):
        load_chat_model(name, temperature=0.7, **options)


def test_the_responses_api_is_used_only_when_asked_for() -> None:
    for name, options in (("openai:gpt-5-pro", {}), ("openai:gpt-5", {"reasoning": {"effort": "low"}})):
        with pytest.raises(SpecError, match="set use_responses_api: true"):
            load_chat_model(name, **options)
        model = load_chat_model(name, use_responses_api=True, max_tokens=60, **options)
        request = sent(model)
        assert (request["max_output_tokens"], request["store"]) == (60, False)
        assert seeding(model) == "none"
    assert "input" not in sent(load_chat_model("openai:gpt-5"))


@pytest.mark.parametrize(
    ("name", "options", "how"),
    [
        ("openai:gpt-4o", {}, "call"),
        ("openai:m", SERVER, "call"),
        ("openai:o3-mini", {}, "call"),
        ("openai:gpt-5", {"use_responses_api": True}, "none"),
    ],
)
def test_seeds_go_where_they_are_taken(name: str, options: dict[str, Any], how: str) -> None:
    assert seeding(load_chat_model(name, **options)) == how


@pytest.mark.parametrize("name", ["openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5", "ollama:m", "hf:m", "scripted"])
def test_a_model_at_its_own_address_is_not_warned_of(name: str) -> None:
    assert warnings_for(name) == warnings_for(name, SERVER) == []


def test_an_address_that_only_the_environment_knows_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://me:{KEY}@example.org/v1")
    (found,) = warnings_for("openai:gpt-4o-mini-2024-07-18")
    assert "sends calls to example.org, because OPENAI_BASE_URL is set" in found
    assert KEY not in found
    assert warnings_for("openai:m", SERVER) == []


# --- retries and the transport ---


@pytest.mark.parametrize("retries", [None, 0, 2])
def test_a_model_given_as_an_object_does_not_retry_behind_our_back(retries: int | None) -> None:
    with Loopback(status=500) as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key=OTHER, max_retries=retries)  # type: ignore[arg-type]
        client = ModelClient(model)
        with pytest.raises(openai.InternalServerError):
            asyncio.run(client.call(PROMPT, 1))
        assert len(server.bodies) == 1
        assert server.headers[0]["authorization"] == f"Bearer {OTHER}"
    assert model.max_retries == retries, "the caller's own object is left as it was"


def test_a_model_of_azure_keeps_its_address_and_does_not_retry() -> None:
    model = AzureChatOpenAI(
        azure_endpoint="https://mine.openai.azure.com", api_key=OTHER, api_version="2024-10-21", azure_deployment="d"
    )  # type: ignore[call-arg]
    client = ModelClient(model)
    assert client.account == "openai@mine.openai.azure.com"
    assert client.model.root_async_client.max_retries == 0  # type: ignore[attr-defined]
    assert client.model.root_client.max_retries == 0  # type: ignore[attr-defined]


class Retrying(FakeListChatModel):
    """A model that would try again by itself."""

    max_retries: int | None = 2


@pytest.mark.parametrize(("retries", "refused"), [(2, True), (None, True), (0, False)])
def test_a_model_that_cannot_be_kept_from_retrying_is_refused(retries: int | None, refused: bool) -> None:
    model = Retrying(responses=["yes"], max_retries=retries)
    if not refused:
        assert ModelClient(model).model.max_retries == 0  # type: ignore[attr-defined]
        return
    with pytest.raises(SpecError, match=r"this Retrying retries by itself.*construct it with max_retries=0"):
        ModelClient(model)


def test_no_pool_limits_the_calls_in_flight() -> None:
    """All requests are held until the last has come: fewer connections than calls would wait for ever."""
    many = 130
    with Loopback(together=many) as server:
        client = ModelClient(load_chat_model("openai:m", base_url=server.base_url))

        async def story() -> int:
            async with asyncio.timeout(60):
                return len({(await reply).text for reply in [asyncio.create_task(one(i)) for i in range(many)]})

        async def one(number: int) -> Any:
            return await client.call((ChatMessage("user", f"number {number}"),), number)

        assert asyncio.run(story()) == many
        assert {body["seed"] for body in server.bodies} == set(range(many))


@pytest.mark.parametrize("fault", ["reset", "disconnect"])
def test_a_lost_connection_is_not_told_as_a_time_out(fault: str) -> None:
    with StubProvider(faults=Faults(plan=[fault])) as stub:
        client = ModelClient(load_chat_model("openai:m", base_url=stub.base_url))
        with pytest.raises(openai.APIConnectionError) as caught:
            asyncio.run(client.call(PROMPT, 1))
    assert not isinstance(caught.value, openai.APITimeoutError)


def test_a_model_may_be_used_on_one_loop_after_another(server: Loopback) -> None:
    client = ModelClient(load_chat_model("openai:m", base_url=server.base_url))
    for run in (asyncio.run, background.run, asyncio.run, background.run):
        assert run(client.call(PROMPT, 1)).text == "reply to hello"


def test_a_transport_of_the_user_s_own_stays(server: Loopback) -> None:
    own = openai.DefaultAsyncHttpxClient()
    client = ModelClient(ChatOpenAI(model="m", base_url=server.base_url, api_key=OTHER, http_async_client=own))  # type: ignore[arg-type]
    assert client.model.root_async_client._client is own  # type: ignore[attr-defined]

    async def story() -> str:
        async with own:
            return (await client.call(PROMPT, 1)).text

    assert asyncio.run(story()) == "reply to hello"


def test_without_aiohttp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from opinionsim.llm import _transport

    monkeypatch.delattr(openai, "DefaultAioHttpClient")
    _transport.fast_client.cache_clear()
    try:
        with pytest.raises(SpecError, match=r"aiohttp, which is not installed.*opinionsim\[llm\]"):
            ModelClient(load_chat_model("openai:gpt-4o-mini"))
    finally:
        _transport.fast_client.cache_clear()


@pytest.mark.whole
@pytest.mark.long
def test_connections_are_closed_with_their_loop_and_with_the_process(server: Loopback, checkout: Path) -> None:
    """The first loop ends in order, the package's own never does."""
    script = f"""
import asyncio, gc
from opinionsim.foundation import background
from opinionsim.llm import ModelClient, _transport, load_chat_model
from opinionsim.messages import ChatMessage

client = ModelClient(load_chat_model("openai:m", base_url={server.base_url!r}))
print(asyncio.run(client.call([ChatMessage("user", "a")], 1)).text, len(_transport._open))
print(background.run(client.call([ChatMessage("user", "b")], 1)).text, len(_transport._open))
_transport._close_all()  # what runs at the end of a process
print("at the end", len(_transport._open))
gc.collect()
"""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, env=environment, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:3] == ["reply to a 0", "reply to b 1", "at the end 0"]
