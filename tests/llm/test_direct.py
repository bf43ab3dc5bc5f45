"""Calls without what LangChain puts around them: the replies are `ainvoke`'s, and whatever would be lost is not."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, ClassVar

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import (
    AsyncCallbackManager,
    BaseCallbackHandler,
    BaseCallbackManager,
    get_usage_metadata_callback,
)
from langchain_core.globals import set_debug, set_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs, register_configure_hook
from pydantic import PrivateAttr

from opinionsim.llm import GivenReplies, ModelClient, ScriptedChatModel, load_chat_model
from opinionsim.messages import ChatMessage
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults

PROMPT = (ChatMessage("system", "You are Ann."), ChatMessage("assistant", "I wrote."), ChatMessage("user", "Write."))
ASKED: list[BaseMessage] = [SystemMessage("You are Ann."), AIMessage("I wrote."), HumanMessage("Write.")]

USAGE = {"input_tokens": 11, "output_tokens": 2, "total_tokens": 13, "input_token_details": {"cache_read": 4}}
BLOCKS = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}]
REPLIES = (
    AIMessage("Yes."),
    AIMessage("Yes.", id="given-1", name="ann"),
    AIMessage("Yes.", usage_metadata=USAGE, response_metadata={"finish_reason": "stop", "model_name": "m-2"}),
    AIMessage(content=BLOCKS),
    AIMessage("", additional_kwargs={"refusal": "I will not."}),
    AIMessage("", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "t-1"}]),
)


class Told(BaseChatModel):
    """Answers at once, with what a reply can bring beside its message."""

    texts: tuple[str, ...] = ("Yes.",)
    about: dict[str, Any] | None = None
    output: dict[str, Any] | None = None

    @property
    def _llm_type(self) -> str:
        return "told"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        generations = [
            ChatGeneration(
                message=AIMessage(text, response_metadata={"finish_reason": "stop"}), generation_info=self.about
            )
            for text in self.texts
        ]
        return ChatResult(generations=generations, llm_output=self.output)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return self._generate(messages)


class Alone(Told):
    """One that is told of no run manager."""

    async def _agenerate(self, messages: Any, stop: Any = None, **options: Any) -> ChatResult:  # type: ignore[override]
        assert not options
        return self._generate(messages)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with every call that goes the way of `ainvoke`."""
    calls: list[str] = []
    start = AsyncCallbackManager.on_chat_model_start

    async def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("ainvoke")
        return await start(self, *args, **kwargs)

    monkeypatch.setattr(AsyncCallbackManager, "on_chat_model_start", counted)
    return calls


def told(message: AIMessage) -> tuple[type, dict[str, Any], list[Any]]:
    """All there is to a message, the random part of its id left open."""
    values = message.model_dump()
    values["id"] = re.sub(r"(?<=^lc_run--)[0-9a-f-]{36}", "RUN", values["id"] or "")
    return type(message), values, list(message.content_blocks)


# -- equal replies -------------------------------------------------------------------------------------------

MODELS: dict[str, Callable[[], BaseChatModel]] = {
    "scripted": lambda: ScriptedChatModel(temperature=1.0, noise=1.0),
    "scripted, no answer": lambda: ScriptedChatModel(refusal_rate=1.0),
    "texts": lambda: GivenReplies(["Yes."]),
    **{
        f"message {number}": lambda reply=reply: GivenReplies(lambda prompt: reply.model_copy(deep=True))
        for number, reply in enumerate(REPLIES)
    },
    "LangChain's fake": lambda: FakeListChatModel(responses=["Yes."]),
    "plain": Told,
    "about": lambda: Told(about={"finish_reason": "length", "logprobs": None, "stop_reason": "end"}),
    "output": lambda: Told(output={"model_name": "m-3", "finish_reason": "never", "token_usage": {"total": 3}}),
    "both": lambda: Told(about={"index": 0}, output={"index": 1, "system_fingerprint": "fp"}),
    "two generations": lambda: Told(texts=("Yes.", "No."), output={"model_name": "m-3"}),
    "no run manager": lambda: Alone(output={}),
    "not to be streamed": lambda: FakeListChatModel(responses=["Yes."], disable_streaming=True),
    "of an older form": lambda: Told(output_version="v0"),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_reply_is_the_one_that_ainvoke_gives(make: Callable[[], BaseChatModel], around: list[str]) -> None:
    async def story() -> tuple[AIMessage, AIMessage]:
        client, twin = ModelClient(make()), make()
        direct = await client.call(PROMPT, 7)
        assert around == []
        options = {"seed": 7} if isinstance(twin, ScriptedChatModel) else {}
        return direct, await twin.ainvoke(ASKED, **options)

    direct, reply = asyncio.run(story())
    assert around == ["ainvoke"]
    assert told(direct) == told(reply)


def test_ids_are_made_up_for_each_reply_and_kept_where_there_is_one() -> None:
    async def ids(model: BaseChatModel) -> list[Any]:
        client = ModelClient(model)
        return [(await client.call(PROMPT, seed)).id for seed in (1, 2)]

    first, second = asyncio.run(ids(ScriptedChatModel()))
    assert first != second
    assert asyncio.run(ids(GivenReplies([REPLIES[1], REPLIES[1]]))) == ["given-1", "given-1"]


def test_a_reply_of_a_provider_is_the_one_that_ainvoke_gives(around: list[str]) -> None:
    async def story(stub: StubProvider) -> tuple[AIMessage, AIMessage]:
        client = ModelClient(load_chat_model("openai:m-1", temperature=0.5, max_tokens=50, base_url=stub.base_url))
        before = [message.model_dump() for message in ASKED]
        direct = await client.call(PROMPT, 7)
        assert around == []
        reply = await client.model.ainvoke(ASKED, seed=7)
        assert [message.model_dump() for message in ASKED] == before, "its models change no message"
        return direct, reply

    for fault in (None, "truncated", "refused", "filtered", "reasoning-field"):
        with StubProvider(faults=Faults(plan=lambda asked, fault=fault: fault), cached=0.5) as stub:  # type: ignore[misc]
            direct, reply = asyncio.run(story(stub))
        for message in (direct, reply):
            # The provider's own name of the reply, another one each time.
            message.response_metadata.pop("id", None)
        assert direct.usage_metadata is not None
        assert direct.response_metadata["token_usage"]
        assert told(direct) == told(reply)
        around.clear()


@pytest.mark.parametrize("fault", ["unauthorized", "too-long", "http-500", "rate-limited", "malformed", "reset"])
def test_an_error_of_a_provider_is_the_one_that_ainvoke_raises(fault: str, around: list[str]) -> None:
    async def story(base_url: str) -> list[Exception]:
        client = ModelClient(load_chat_model("openai:m-1", base_url=base_url))
        with pytest.raises(Exception) as direct:  # noqa: PT011
            await client.call(PROMPT, 7)
        assert around == []
        with pytest.raises(Exception) as raised:  # noqa: PT011
            await client.model.ainvoke(ASKED, seed=7)
        return [direct.value, raised.value]

    with StubProvider(faults=Faults(plan=lambda asked: fault)) as stub:
        ours, theirs = asyncio.run(story(stub.base_url))
    assert type(ours) is type(theirs)
    assert str(ours) == str(theirs)
    assert getattr(ours, "status_code", None) == getattr(theirs, "status_code", None)


class Gone(ValueError):
    """The model's own error."""


@pytest.mark.parametrize("error", [Gone("gone"), TimeoutError("late")])
def test_an_error_of_a_model_is_the_one_it_raised(error: BaseException, around: list[str]) -> None:
    def fail(prompt: list[ChatMessage]) -> str:
        raise error

    async def story() -> BaseException:
        try:
            await ModelClient(GivenReplies(fail)).call(PROMPT, 1)
        except BaseException as raised:
            return raised
        raise AssertionError("nothing was raised")

    assert asyncio.run(story()) is error
    assert around == []


# -- nothing is lost -----------------------------------------------------------------------------------------


class Listener(BaseCallbackHandler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
        self.told += [str(message.content) for message in messages[0]]

    def on_llm_end(self, response: Any, **_: Any) -> None:
        self.told.append(response.generations[0][0].text)


HEARD = ["You are Ann.", "I wrote.", "Write.", "Yes."]


def call(model: BaseChatModel) -> AIMessage:
    return asyncio.run(ModelClient(model).call(PROMPT, 1))


@pytest.mark.parametrize("as_manager", [False, True])
def test_callbacks_of_the_model_are_called(as_manager: bool) -> None:
    listener = Listener()
    call(Told(callbacks=BaseCallbackManager([listener]) if as_manager else [listener]))
    assert listener.told == HEARD


def test_callbacks_that_the_model_gets_later_are_called() -> None:
    client, listener = ModelClient(Told()), Listener()
    client.model.callbacks = [listener]
    asyncio.run(client.call(PROMPT, 1))
    assert listener.told == HEARD


def test_callbacks_of_whoever_calls_us_are_called() -> None:
    """The client is part of a chain that was given them."""
    client, listener = ModelClient(Told()), Listener()

    async def step(_: str) -> str:
        return (await client.call(PROMPT, 1)).text

    asyncio.run(RunnableLambda(step).ainvoke("", config={"callbacks": [listener]}))
    assert listener.told == HEARD


def test_a_callback_that_changes_messages_changes_no_other_call() -> None:
    class Redacting(Listener):
        def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
            for message in messages[0]:
                message.content = "***"

    model = GivenReplies(lambda prompt: prompt[0].content)
    client = ModelClient(model)
    assert asyncio.run(client.call(PROMPT, 1)).text == "You are Ann."
    client.model.callbacks = [Redacting()]
    assert asyncio.run(client.call(PROMPT, 1)).text == "***"
    client.model.callbacks = None
    assert asyncio.run(client.call(PROMPT, 1)).text == "You are Ann."


def test_what_is_registered_with_langchain_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[Any] = []
    monkeypatch.setattr("langchain_core.tracers.context._configure_hooks", hooks)
    listening: ContextVar[Listener | None] = ContextVar("listening", default=None)
    register_configure_hook(listening, inheritable=True)
    call(Told())
    listener = Listener()
    listening.set(listener)
    call(Told())
    assert listener.told == HEARD


def test_usage_and_runs_are_collected_where_somebody_asks_for_them() -> None:
    reply = AIMessage("Yes.", usage_metadata=USAGE, response_metadata={"model_name": "m-2"})
    with get_usage_metadata_callback() as usage:
        call(GivenReplies([reply]))
    assert usage.usage_metadata["m-2"]["total_tokens"] == 13
    with collect_runs() as runs:
        call(Told())
    assert len(runs.traced_runs) == 1


def test_whoever_instruments_langchain_hears_of_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenTelemetry's instrumentation does it: every callback manager gets one more handler."""
    listener, build = Listener(), BaseCallbackManager.__init__

    def instrumented(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self.add_handler(listener, True)

    client = ModelClient(Told())
    monkeypatch.setattr(BaseCallbackManager, "__init__", instrumented)
    asyncio.run(client.call(PROMPT, 1))
    assert listener.told == HEARD


def test_a_method_that_is_wrapped_on_langchain_s_own_class_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    generate = BaseChatModel.agenerate

    @functools.wraps(generate)
    async def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("agenerate")
        return await generate(self, *args, **kwargs)

    monkeypatch.setattr(BaseChatModel, "agenerate", wrapped)
    call(Told())
    assert calls == ["agenerate"]


@pytest.mark.parametrize("name", ["ainvoke", "agenerate_prompt", "agenerate", "_agenerate_with_cache"])
def test_a_method_that_a_class_overrides_is_called(name: str) -> None:
    calls: list[str] = []

    async def overridden(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return await getattr(Told, name)(self, *args, **kwargs)

    kind: type[Told] = type("Overriding", (Told,), {name: overridden, "__module__": __name__})
    assert call(kind()).text == "Yes."
    assert calls == [name]


def test_messages_that_a_class_converts_itself_are_converted() -> None:
    class Converting(GivenReplies):
        def _convert_input(self, model_input: Any) -> Any:
            return super()._convert_input([HumanMessage("Something else.")])

    assert call(Converting(lambda prompt: prompt[0].content)).text == "Something else."


class Printer(Listener):
    """Stands for the handlers that print."""

    made: ClassVar[list[Printer]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)


@pytest.mark.parametrize("asked_by", ["model", "langchain"])
def test_who_is_to_print_what_happens_prints_it(monkeypatch: pytest.MonkeyPatch, asked_by: str) -> None:
    monkeypatch.setattr(Printer, "made", [])
    monkeypatch.setattr("langchain_core.callbacks.manager.StdOutCallbackHandler", Printer)
    monkeypatch.setattr("langchain_core.tracers.stdout.ConsoleCallbackHandler", Printer)
    set_debug(asked_by == "langchain")
    try:
        call(Told(verbose=asked_by == "model"))
    finally:
        set_debug(False)
    assert [printer.told for printer in Printer.made if printer.told] == [HEARD]


def test_a_rate_limiter_is_waited_for() -> None:
    class Limiter(BaseRateLimiter):
        waits = 0

        def acquire(self, *, blocking: bool = True) -> bool:
            raise AssertionError("the call is asynchronous")

        async def aacquire(self, *, blocking: bool = True) -> bool:
            self.waits += 1
            return True

    limiter = Limiter()
    assert call(Told(rate_limiter=limiter)).text == "Yes."
    assert limiter.waits == 1


class Streaming(Told):
    """One that can stream, and does where it is told to."""

    streaming: bool = False
    _streamed: list[str] = PrivateAttr(default_factory=list)

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for text in ("Y", "es."):
            self._streamed.append(text)
            yield ChatGenerationChunk(message=AIMessageChunk(text))


def test_a_model_that_is_to_stream_streams(around: list[str]) -> None:
    for model, streamed in (
        (Streaming(), []),
        (Streaming(streaming=False), []),
        (Streaming(streaming=True, disable_streaming=True), []),
        (Streaming(streaming=True), ["Y", "es."]),
    ):
        around.clear()
        assert call(model).text == "Yes."
        assert model._streamed == streamed
        assert bool(around) == bool(streamed)


def test_replies_in_langchain_s_own_blocks_come_in_blocks() -> None:
    assert call(Told(output_version="v1")).content == [{"type": "text", "text": "Yes."}]


def test_a_cache_that_langchain_gets_later_is_langchain_s_business() -> None:
    client = ModelClient(Told())
    set_llm_cache(InMemoryCache())
    try:
        asyncio.run(client.call(PROMPT, 1))
        client.model.texts = ("No.",)
        texts = [asyncio.run(client.call(PROMPT, 1)).text, asyncio.run(client.model.ainvoke(ASKED)).text]
    finally:
        set_llm_cache(None)
    assert texts == ["Yes.", "Yes."]
