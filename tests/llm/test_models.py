"""Chat models by name, and how one is called."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import ModuleType
from typing import Any, ClassVar

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.base import BaseTracer
from langsmith.run_helpers import tracing_context
from langsmith.utils import get_env_var
from pydantic import Field, PrivateAttr, SecretStr

from opinionsim.errors import SpecError
from opinionsim.foundation import background
from opinionsim.llm import GivenReplies, ModelClient, ScriptedChatModel, load_chat_model, read_reply
from opinionsim.messages import ChatMessage, Prompt
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults

PROMPT = (ChatMessage("system", "You are Ann."), ChatMessage("assistant", "I wrote."), ChatMessage("user", "Write."))


class Blocking(BaseChatModel):
    """A model without asynchronous calls of its own, that says what it was called with."""

    _seen: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "blocking"

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, **options: Any) -> ChatResult:
        self._seen.append({"messages": messages, "thread": threading.current_thread().name, **options})
        reply = AIMessage(f"reply {len(self._seen)}")
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Seeded(Blocking):
    seed: int | None = None


class Asynchronous(Blocking):
    async def _agenerate(self, messages, stop=None, run_manager=None, **options: Any) -> ChatResult:
        return self._generate(messages, stop, None, **options)


def test_scripted_needs_no_key() -> None:
    model = load_chat_model("scripted", temperature=0.2, susceptibility=0.9, preset="attractor", pull=1)
    assert isinstance(model, ScriptedChatModel)
    assert (model.temperature, model.preset) == (0.2, "attractor")
    assert (model.parameters.susceptibility, model.parameters.pull) == (0.9, 1)
    assert model.cache is False


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gpt-4o-mini", {}, r"model\.name: unknown model 'gpt-4o-mini'; valid: 'scripted', 'provider:model'"),
        ("", {}, r"model\.name: unknown model ''"),
        ("scriptd", {}, r"unknown model 'scriptd'"),
        (
            "openai:gpt-4o-mini",
            {},
            r"'openai:gpt-4o-mini' cannot be loaded: .*langchain.*pip install",
        ),
        ("scripted", {"stubbornness": 1}, r"model\.options: .*unknown option 'stubbornness'; valid options are preset"),
        ("scripted", {"susceptibility": 2}, r"model\.options: .*susceptibility.*from 0 to 1.*2"),
        ("openai:", {}, r"unknown model 'openai:'"),
        (":gpt-4o-mini", {}, r"unknown model ':gpt-4o-mini'"),
        ("scripted", {"temperature": -1}, r"temperature.*-1"),
        ("scripted", {"max_tokens": 0}, r"model\.max_tokens must be a whole number from 1, or none; got 0"),
        ("scripted", {"max_tokens": 1.5}, r"model\.max_tokens must be a whole number"),
        ("scripted", {"preset": "sheep"}, r"preset must be one of .*influence.*; got 'sheep'"),
        ("scripted", {"pull": 7}, r"pull.*from -2 to 2.*7"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_named_with_what_is_valid(
    monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(SpecError, match=message) as caught:
        load_chat_model(name, **options)
    assert "\n" not in str(caught.value)


class Provided(Blocking):
    """What a provider package would give."""

    model: str
    max_retries: int = 2
    temperature: float | None = None
    max_tokens: int | None = None
    base_url: str = ""
    key: SecretStr = Field(default=SecretStr(""), alias="api_key")


class Forgetful(Provided):
    """One that drops what it is told, as the classes of some providers do with what they do not know."""

    def model_post_init(self, _: Any) -> None:
        self.temperature = self.max_tokens = None


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the langchain package, with two providers."""

    def init_chat_model(name: str, *, model_provider: str, **options: Any) -> BaseChatModel:
        if model_provider == "absent":
            raise ImportError("Unable to import langchain_absent.\nPlease install it.")
        kinds = {"mine": Provided, "forgetful": Forgetful}
        if model_provider not in kinds:
            raise ValueError(f"Unsupported provider={model_provider!r}.\nSupported: mine")
        return kinds[model_provider](model=name, **options)

    package, module = ModuleType("langchain"), ModuleType("langchain.chat_models")
    module.init_chat_model = init_chat_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "langchain", package)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)


@pytest.mark.usefixtures("provider")
def test_a_provider_s_model_has_no_retries_and_no_cache_of_its_own() -> None:
    model = load_chat_model("mine:m:1", temperature=0.3, max_tokens=50)
    assert isinstance(model, Provided)
    assert (model.model, model.max_retries, model.cache) == ("m:1", 0, False)
    assert (model.temperature, model.max_tokens) == (0.3, 50)
    assert load_chat_model("mine:m-1").temperature is None


@pytest.mark.usefixtures("provider")
def test_an_address_needs_a_key_that_is_named_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE_API_KEY", "a key")
    with pytest.raises(SpecError, match="with base_url, name the environment variable of the key in api_key_env"):
        load_chat_model("mine:m-1", base_url="http://localhost:1")
    model = load_chat_model("mine:m-1", base_url="http://localhost:1", api_key_env="MINE_API_KEY")
    assert isinstance(model, Provided)
    assert (model.base_url, model.key.get_secret_value()) == ("http://localhost:1", "a key")


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("absent:m", {}, r"model\.name: 'absent:m' cannot be loaded: Unable to import langchain_absent\. Please "),
        ("other:m", {}, r"model\.name: 'other:m' cannot be loaded: Unsupported provider='other'\. Supported: mine"),
        ("mine:m", {"thinking": "hard"}, r"model\.options: Provided has no option 'thinking'"),
        ("mine:m", {"base_url": 7, "api_key_env": "PATH"}, r"base_url must be an address"),
        ("forgetful:m", {"temperature": 0.3}, r"'forgetful:m' does not accept 0\.3: Forgetful does not send it"),
        ("forgetful:m", {"max_tokens": 9}, r"model\.max_tokens: Forgetful does not send it"),
    ],
)
def test_what_a_provider_does_not_take_is_told_in_one_line(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        load_chat_model(name, **options)
    assert "\n" not in str(caught.value)


def test_only_langchain_models_are_taken() -> None:
    with pytest.raises(SpecError, match="must be a LangChain BaseChatModel; got str"):
        ModelClient("scripted")  # type: ignore[arg-type]


def test_the_kind_of_evidence_follows_from_the_model() -> None:
    assert ModelClient(load_chat_model("scripted")).evidence == "scripted"
    assert ModelClient(GivenReplies(["Yes."])).evidence == "scripted"
    assert ModelClient(Blocking()).evidence == "model"


def test_a_model_of_the_process_is_on_no_network_and_shares_no_limit() -> None:
    for model, name in (
        (load_chat_model("scripted"), "scripted"),
        (Blocking(), "Blocking"),
        (GivenReplies([]), "GivenReplies"),
    ):
        found = ModelClient(model)
        assert (found.name, found.account, found.networked) == (name, name, False)
    named = ModelClient(Blocking(), "mine")
    assert (named.name, named.account) == ("mine", "mine")


@pytest.mark.parametrize("kind", [Blocking, Asynchronous])
def test_a_prompt_reaches_the_model_role_by_role(kind: type[Blocking]) -> None:
    model = kind()
    reply = asyncio.run(ModelClient(model).call(PROMPT, 5))
    assert reply.text == "reply 1"
    messages = model._seen[0]["messages"]
    assert [(message.type, message.content) for message in messages] == [
        ("system", "You are Ann."),
        ("ai", "I wrote."),
        ("human", "Write."),
    ]


class Careful(GivenReplies):
    """One of ours, that keeps the messages it was given."""

    _given: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    async def _agenerate(self, messages, stop=None, run_manager=None, **options: Any) -> ChatResult:
        self._given.append(messages)
        return await super()._agenerate(messages, stop, run_manager, **options)


def _prompts(length: int, calls: int) -> list[Prompt]:
    """Prompts of one agent, of which each begins with the one before and an event more."""
    remembered = Prompt.of(ChatMessage("user", f"event {number}") for number in range(length))
    found = []
    for number in range(calls):
        found.append(remembered.then(ChatMessage("user", f"task {number}")))
        remembered = remembered.then(ChatMessage("user", f"later event {number}"))
    return found


@pytest.mark.parametrize("length", [3, 300])
def test_of_a_prompt_that_begins_like_another_only_the_rest_is_converted(
    monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    made: list[str] = []

    def counted(content: str) -> BaseMessage:
        made.append(content)
        return HumanMessage(content)

    monkeypatch.setattr("opinionsim.llm._models._MESSAGE_TYPES", {"user": counted})
    model = Careful(lambda prompt: prompt[-1].content)
    calling = ModelClient(model)
    first, *others = _prompts(length, 5)
    assert asyncio.run(calling.call(first, 1)).text == "task 0"
    assert len(made) == length + 1
    made.clear()
    for number, prompt in enumerate(others, 1):
        asyncio.run(calling.call(prompt, 1))
        assert sorted(made) == [f"later event {number - 1}", f"task {number}"]
        made.clear()
    assert [list(prompt) for prompt in (first, *others)] == model.prompts


def test_the_list_of_messages_is_the_model_s_own_and_ours_share_what_is_in_it() -> None:
    model = Careful(lambda prompt: "Yes.")
    calling = ModelClient(model)
    one, two = _prompts(3, 2)
    for prompt in (one, one, two):
        asyncio.run(calling.call(prompt, 1))
        model._given[-1].append(HumanMessage("What a model adds to its list."))
    first, again, other = model._given
    assert first is not again
    assert [message is twin for message, twin in zip(first[:3], other, strict=False)] == [True] * 3
    assert [message.content for message in again[:-1]] == [message.content for message in one]


@pytest.mark.parametrize("kind", [Blocking, Asynchronous])
def test_models_that_might_change_their_messages_get_them_new_in_every_call(kind: type[Blocking]) -> None:
    class Changing(kind):  # type: ignore[misc, valid-type]
        def _generate(self, messages, stop=None, run_manager=None, **options: Any) -> ChatResult:
            result = super()._generate(list(messages), stop, run_manager, **options)
            self._seen[-1]["texts"] = [message.content for message in messages]
            for message in messages:
                message.content = "changed"
            return result

    model = Changing()
    calling = ModelClient(model)
    one, two = _prompts(3, 2)
    for prompt in (one, one, two):
        asyncio.run(calling.call(prompt, 1))
        assert model._seen[-1]["texts"] == [message.content for message in prompt]


def test_a_client_may_be_given_any_messages_and_none() -> None:
    model = Careful(lambda prompt: str(len(prompt)))
    for messages, number in ((PROMPT, "3"), (iter(PROMPT), "3"), ((), "0"), (Prompt(), "0")):
        assert asyncio.run(ModelClient(model).call(messages, 1)).text == number
    assert model.prompts[:2] == [list(PROMPT)] * 2


def test_a_seed_is_sent_only_where_the_model_takes_one() -> None:
    plain, seeded = Blocking(), Seeded()
    for model in (plain, seeded):
        asyncio.run(ModelClient(model).call(PROMPT, 77))
    assert "seed" not in plain._seen[0]
    assert seeded._seen[0]["seed"] == 77


def test_a_model_without_asynchronous_calls_runs_on_threads_of_its_own() -> None:
    """Three calls meet at a barrier: they are in flight at once, and the loop is free meanwhile."""
    barrier = threading.Barrier(3, timeout=30)

    class Meeting(Blocking):
        def _generate(self, messages, stop=None, run_manager=None, **options: Any) -> ChatResult:
            barrier.wait()
            return super()._generate(messages, stop, run_manager, **options)

    model = Meeting()
    calling = ModelClient(model)

    async def story() -> list[str]:
        return [reply.text for reply in await asyncio.gather(*(calling.call(PROMPT, i) for i in range(3)))]

    assert sorted(asyncio.run(story())) == ["reply 1", "reply 2", "reply 3"]
    assert all(seen["thread"].startswith("opinionsim-model") for seen in model._seen)


def test_a_model_with_asynchronous_calls_stays_on_the_loop() -> None:
    model = Asynchronous()
    asyncio.run(ModelClient(model).call(PROMPT, 1))
    assert model._seen[0]["thread"] == threading.current_thread().name


@pytest.mark.parametrize("kind", [Blocking, Asynchronous])
def test_an_error_of_the_model_comes_through(kind: type[Blocking]) -> None:
    class Failing(kind):  # type: ignore[misc, valid-type]
        def _generate(self, messages, stop=None, run_manager=None, **options: Any) -> ChatResult:
            raise ConnectionError("refused")

    with pytest.raises(ConnectionError, match="refused"):
        asyncio.run(ModelClient(Failing()).call(PROMPT, 1))


def test_calls_that_hang_keep_nobody_waiting() -> None:
    """Hanging calls fill no pool: later ones reach the model, and a time-out ends the wait."""
    release = threading.Event()

    class Hanging(Blocking):
        def _generate(self, messages, stop=None, run_manager=None, **options: Any) -> ChatResult:
            if options.get("hang"):
                release.wait(30)
            return super()._generate(messages, stop, run_manager, **options)

    calling = ModelClient(Hanging())
    hanging = ModelClient(Hanging())
    hanging.model = hanging.model.bind(hang=True)

    async def story() -> str:
        for _ in range(80):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await hanging.call(PROMPT, 1)
        return (await calling.call(PROMPT, 1)).text

    try:
        assert asyncio.run(story()) == "reply 1"
    finally:
        release.set()


@pytest.mark.parametrize("kind", [Blocking, Asynchronous])
def test_a_cache_that_would_make_attempts_copies_is_not_used(kind: type[Blocking]) -> None:
    set_llm_cache(InMemoryCache())
    try:
        own, everybody_s = kind(cache=InMemoryCache()), kind()
        for model in (own, everybody_s):
            calling = ModelClient(model)
            texts = [asyncio.run(calling.call(PROMPT, seed)).text for seed in range(3)]
            assert texts == ["reply 1", "reply 2", "reply 3"]
    finally:
        set_llm_cache(None)
    assert own.cache is not False, "the caller's own object is left as it was"


class Tracer(BaseTracer):
    """Stands for the one that sends prompts to a service."""

    runs: ClassVar[list[Any]] = []

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def copy_with_metadata_defaults(self, **_: Any) -> Tracer:
        return self

    def _persist_run(self, run: Any) -> None:
        self.runs.append(run)


@pytest.mark.parametrize("kind", [Blocking, Asynchronous, ScriptedChatModel])
@pytest.mark.parametrize(
    ("variables", "traced"),
    [
        ({"LANGSMITH_TRACING": "true"}, False),
        ({"LANGCHAIN_TRACING_V2": "true"}, False),
        ({"LANGSMITH_TRACING": "true", "OPINIONSIM_TRACING": "0"}, False),
        ({"LANGSMITH_TRACING": "true", "OPINIONSIM_TRACING": "1"}, True),
        ({"OPINIONSIM_TRACING": "1"}, False),
    ],
)
def test_prompts_are_traced_only_when_that_is_asked_of_this_package(
    monkeypatch: pytest.MonkeyPatch, kind: Any, variables: dict[str, str], traced: bool
) -> None:
    monkeypatch.setattr(Tracer, "runs", [])
    monkeypatch.setattr("langchain_core.tracers.langchain.LangChainTracer", Tracer)
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        get_env_var.cache_clear()
        asyncio.run(ModelClient(kind()).call(PROMPT, 1))
    get_env_var.cache_clear()
    assert bool(Tracer.runs) == traced


def test_a_traced_caller_traces_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tracer, "runs", [])
    monkeypatch.setattr("langchain_core.tracers.langchain.LangChainTracer", Tracer)
    with tracing_context(enabled=True):
        asyncio.run(ModelClient(Asynchronous()).call(PROMPT, 1))
    assert Tracer.runs == []


@pytest.mark.parametrize("variable", ["LANGCHAIN_TRACING", "LANGCHAIN_HANDLER"])
def test_a_variable_that_would_make_every_call_fail_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "true")
    with pytest.raises(SpecError, match=f"{variable} makes LangChain refuse every call; unset it"):
        ModelClient(Blocking())


# -- what a provider is told of the beginning that prompts share ------------------------------------------------

MEMORY = Prompt.of(
    [ChatMessage("system", "You are Ann."), ChatMessage("user", "You wrote."), ChatMessage("user", "You read.")]
)


def _sent(kind: type[Blocking], package: str, prompt: Prompt) -> list[Any]:
    model = type(kind.__name__, (kind,), {"__module__": f"{package}.chat_models"})()
    asyncio.run(ModelClient(model).call(prompt, 1))
    return [message.content for message in model._seen[0]["messages"]]


def _marked(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize("kind", [Blocking, Asynchronous])
def test_anthropic_is_told_where_the_shared_beginning_ends(kind: type[Blocking]) -> None:
    prompt = MEMORY.then(ChatMessage("user", "Write."))
    identity = prompt.identity
    assert _sent(kind, "langchain_anthropic", prompt) == [
        _marked("You are Ann."), "You wrote.", _marked("You read."), "Write."
    ]  # fmt: skip
    # What is journalled is the prompt, and no call leaves marks on it.
    assert prompt.identity == identity
    assert _sent(kind, "langchain_openai", prompt) == ["You are Ann.", "You wrote.", "You read.", "Write."]


def test_a_prompt_without_a_beginning_or_with_an_empty_one_has_no_mark() -> None:
    task = ChatMessage("user", "Write.")
    assert _sent(Asynchronous, "langchain_anthropic", Prompt.of([task])) == ["Write."]
    assert _sent(Asynchronous, "langchain_anthropic", Prompt.of([ChatMessage("user", ""), task])) == ["", "Write."]


def test_prompts_of_a_chain_are_sent_whole_in_whatever_order_they_are_continued() -> None:
    task = ChatMessage("user", "Write.")
    model = GivenReplies(lambda prompt: "Yes.")
    client = ModelClient(model)
    one = MEMORY.then(ChatMessage("user", "one"))
    other = MEMORY.then(ChatMessage("user", "other"), ChatMessage("user", "more"))
    asked = [MEMORY, one, other, MEMORY, one.then(ChatMessage("user", "two")), other, one, Prompt.of([])]
    for memory in asked:
        asyncio.run(client.call(memory.then(task), 1))
    assert model.prompts == [[*memory, task] for memory in asked]


# -- what a provider says beside its reply ----------------------------------------------------------------------


def test_reasoning_that_a_server_sends_beside_its_reply_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with StubProvider(faults=Faults(plan=lambda asked: "reasoning-field")) as stub:
        model = load_chat_model("openai:thinker", base_url=stub.base_url)
        assert type(model).__name__ == "ChatOpenAI"
        client = ModelClient(model, "openai:thinker")
        arrived = read_reply(background.run(client.call((ChatMessage("user", "Is it true?"),), 1)))
    assert arrived.reasoning.startswith("They ask for a few words")
    assert arrived.status == "answered"
    assert arrived.reasoning not in arrived.text
