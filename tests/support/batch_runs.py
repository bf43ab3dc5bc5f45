"""Studies that buy their replies in batches from the server of batches, and what server, journal and ledger say."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import SecretStr

from opinionsim.lanes import Pace
from opinionsim.running import Summary
from opinionsim.store import BatchRow, Paid, Results, open_store
from tests.support.batch_queue import Queue
from tests.support.batches import BatchProvider
from tests.support.running import ended, loaded

#: The package's name for the provider of each dialect, which is also that of its lane.
PROVIDERS = {
    **{"openai": "openai", "groq": "groq", "mistral": "mistralai", "together": "together"},
    **{"anthropic": "anthropic", "openrouter": "openrouter", "gemini": "google_genai"},
}
#: Dialects with an input file that can be deleted, and with a way to end a batch early.
WITH_FILES = ("openai", "groq", "mistral", "together")
CANCELLING = (*WITH_FILES, "anthropic", "gemini")
#: Times of batches in tests; providers take their own time beside them.
QUICK = Pace(settle_s=0.05, longest_s=5.0, look_s=0.02, slowest_look_s=0.05, crowded_s=0.1, lost_s=0.3, begins_s=0.6)
#: The variable that holds the key, and the permission to send it to this machine.
KEY, ALLOWED = "FAKE_KEY", "FAKE_KEY=127.0.0.1"
#: Columns of calls that tell how a reply was bought.
BOUGHT = ("lane", "cost", "saved")


class ChatGoogleGenerativeAI(BaseChatModel):
    """Stands in for LangChain's class of this name: the same attributes, and calls at once by plain HTTP."""

    model: str = "m"
    google_api_key: SecretStr = SecretStr("key")
    base_url: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    seed: int | None = None
    safety_settings: dict[str, str] | None = None

    @property
    def _llm_type(self) -> str:
        return "chat-google-generative-ai"

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        raise AssertionError("only asked asynchronously")

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        roles = {"human": "user", "ai": "model"}
        contents = [{"role": roles[e.type], "parts": [{"text": e.text}]} for e in messages if e.type != "system"]
        config = {"temperature": self.temperature, "maxOutputTokens": self.max_output_tokens, "seed": options["seed"]}
        body: dict[str, Any] = {
            "contents": contents,
            "generationConfig": {name: value for name, value in config.items() if value is not None},
        }
        if messages[0].type == "system":
            body["systemInstruction"] = {"parts": [{"text": messages[0].text}]}
        headers = {"x-goog-api-key": self.google_api_key.get_secret_value()}
        path = f"{self.base_url}/v1beta/models/{self.model}:generateContent"
        async with aiohttp.ClientSession(headers=headers) as session, session.post(path, json=body) as answer:
            found = await answer.json()
        candidate, counts = found["candidates"][0], found["usageMetadata"]
        given, said = counts["promptTokenCount"], counts["candidatesTokenCount"]
        message = AIMessage(
            candidate["content"]["parts"][0]["text"],
            response_metadata={"finish_reason": candidate["finishReason"], "model_name": found["modelVersion"]},
            usage_metadata={
                **{"input_tokens": given, "output_tokens": said, "total_tokens": given + said},
                "input_token_details": {"cache_read": counts.get("cachedContentTokenCount", 0)},
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


ChatGoogleGenerativeAI.__module__ = "langchain_google_genai.chat_models"


@contextmanager
def key(value: str = "sk-of-a-test") -> Iterator[None]:
    """Have a key that may be sent to the server on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, value)
        patch.setenv("OPINIONSIM_KEYS", ALLOWED)
        yield


def prices(*names: str, lanes: Mapping[str, Any] | None = None, **batch: Any) -> str:
    """Path of a price table with what the server charges for models; `batch` is added to each provider's lane."""
    listed = {name.partition(":")[0] for name in names} - {"scripted"}
    lane = {"factor": 0.5, "date": "2026-11-29", "source": "the test's own server", **batch}
    table = {
        **{"date": "2026-11-01", "currency": "USD", "per": 1_000_000},
        "lanes": {each: {"batch": lane} for each in sorted(listed)} if lanes is None else dict(lanes),
        "models": {each: {"input": 1, "output": 4} for each in names},
    }
    Path("prices.yaml").write_text(yaml.safe_dump(table), encoding="utf-8")
    return str(Path("prices.yaml").resolve())


def model(provider: BatchProvider, dialect: str = "openai", called: str = "m") -> dict[str, Any]:
    """A model of a specification that a dialect of the server answers for."""
    url = provider.url(dialect).removesuffix("/openai/v1" if dialect == "groq" else "")
    options = {} if dialect == "gemini" else {"base_url": url, "api_key_env": KEY}
    return {"name": f"{PROVIDERS[dialect]}:{called}", "temperature": None, "max_tokens": 100, "options": options}


def study(provider: BatchProvider, dialect: str = "openai", **execution: Any) -> dict[str, Any]:
    """A small study of two runs, bought in batches; `execution` replaces settings of this name."""
    asked = model(provider, dialect)
    return {
        **{"name": "half", "seed": 3, "replicates": 2, "population": {"size": 4}, "topic": {"name": "flat-earth"}},
        **{"interaction": {"kind": "dyadic", "steps": 4}, "measurement": {"classifier": "lexicon"}, "model": asked},
        "execution": {
            **{"lane": "batch", "prices": execution.get("prices") or prices(asked["name"])},
            "retry": {"transient": 2, "first_wait_s": 0.001, "longest_wait_s": 0.01},
            **execution,
        },
    }


def played(provider: BatchProvider, spec: Mapping[str, Any]) -> BaseChatModel | None:
    """The object that answers for a model, where LangChain's class cannot be loaded by name."""
    asked = spec["model"] if isinstance(spec["model"], dict) else spec["model"][0]
    if not asked["name"].startswith("google_genai:"):
        return None
    return ChatGoogleGenerativeAI(
        base_url=provider.url("gemini"), google_api_key=SecretStr(os.environ[KEY]), max_output_tokens=100
    )


def bought(
    provider: BatchProvider, spec: Mapping[str, Any], store: str = "s.sqlite", *, pace: Pace = QUICK, **options: Any
) -> Summary:
    """Carry out a study with the models of the server; how it ended."""
    return ended(dict(spec), store, played(provider, spec), pace=pace, **options)


def complete(
    provider: BatchProvider, spec: Mapping[str, Any], store: str = "s.sqlite", *, pace: Pace = QUICK, **options: Any
) -> Results:
    """The results of a study, all of whose runs must become complete."""
    summary = bought(provider, spec, store, pace=pace, **options)
    assert (summary.errors, summary.complete) == ({}, summary.total), summary
    return loaded(store, spec["name"])


def at_once(spec: Mapping[str, Any], **execution: Any) -> dict[str, Any]:
    """A study whose replies are bought now."""
    return {**spec, "execution": {**spec["execution"], "lane": "now", **execution}}


def rows(store: str, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """What a statement finds in a store."""
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute(query, parameters).fetchall()


def batches(store: str = "s.sqlite") -> list[BatchRow]:
    """The batches on record, oldest first."""
    with open_store(store, write=False) as opened:
        return opened.batches()


def paid(store: str = "s.sqlite") -> Paid:
    """What journal and ledger say of all that was paid."""
    with open_store(store, write=False) as opened:
        (experiment,) = {each.experiment_id for each in opened.designs()}
        return opened.spending().get(experiment, Paid())


def deepest(results: Results) -> int:
    """Turns of the longest chain of a run: a turn follows what it reads, and all that its agent did before."""
    longest = 0
    for _, turns in results.turns.groupby("run_id"):
        depth: dict[int, int] = {}
        latest: dict[int, int] = {}
        for turn in turns.sort_values("turn").itertuples():
            before = [depth[each] for each in turn.reads] + [latest.get(turn.agent, 0)]
            depth[turn.turn] = latest[turn.agent] = 1 + max(before)
        longest = max(longest, *depth.values())
    return longest


def assert_settled(provider: Queue, store: str = "s.sqlite") -> None:
    """Nothing is owed, nothing was bought twice, and what the store says was paid is what the server charged."""
    said, sold = paid(store), provider.bought.total() + provider.at_once.total()
    left, open_ = (
        rows(store, "SELECT custom_id FROM batched"),
        [each for each in batches(store) if each.state == "open"],
    )
    twice = [custom_id for custom_id, count in provider.ids.items() if count > 1]
    assert (twice, left, open_) == ([], [], []), (twice, left, open_)
    assert abs(said.cost - provider.cost()) <= 1e-9, (said, provider.cost())
    assert said.calls == sold, (said, sold)
