"""What the whole stack costs on top of the client: calls per second through a real OpenAI client over HTTP.

A stub provider in a process of its own answers after 200 ms. The same requests, in the order in which the runs of a
sweep make them, are sent (a) in principle, as many at a time as there are slots; (b) by langchain-openai over its
aiohttp transport, driven by asyncio.gather under a semaphore; (c) by the sweep that asks them, through engine,
caller, journal and measurement into a SQLite store. The figures say what the client and what opinionsim cost, and
nothing about any provider. Run, from the top of the checkout: python -m benchmarks.client [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI

import opinionsim as osim
from opinionsim.messages import ChatMessage
from tests.support.provider_replies import plain_reply

LATENCY_S = 0.2
BAR = 0.75
Request = tuple[list[BaseMessage], int]


class Recorder(BaseChatModel):
    """Answers at once what the stub will answer, and keeps what it was asked."""

    seed: int | None = None
    asked: list[Any] = []  # noqa: RUF012 - pydantic copies it for every model

    @property
    def _llm_type(self) -> str:
        return "recorder"

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        return self._generate(messages, **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        self.asked.append((messages, options["seed"]))
        roles = {"system": "system", "human": "user", "ai": "assistant"}
        prompt = [ChatMessage(roles[each.type], each.text) for each in messages]  # type: ignore[arg-type]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(plain_reply(prompt, options["seed"])))])


@contextlib.contextmanager
def stub() -> Iterator[str]:
    """The address of a stub in a process of its own."""
    command = [sys.executable, "-m", "tests.support.provider", "--latency", str(LATENCY_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def _counts(base_url: str) -> dict[str, Any]:
    with urllib.request.urlopen(base_url.replace("/v1", "/statistics")) as answer:  # noqa: S310 - loopback
        counts: dict[str, Any] = json.load(answer)
        return counts


def _spec(runs: int) -> dict[str, Any]:
    return {
        "name": "client",
        "seed": 1,
        "replicates": runs,
        "population": {"size": 10},
        "topic": {"name": "global-warming"},
        "interaction": {"kind": "dyadic", "steps": 60},
        "model": {"name": "stub"},
        "measurement": {"classifier": "lexicon", "texts": ["report"]},
    }


def _clocks() -> tuple[float, float]:
    """Seconds passed, and seconds of computing by this process."""
    return time.perf_counter(), time.process_time()


def _sweep(runs: int, slots: int, model: BaseChatModel) -> tuple[float, float]:
    """Seconds for the sweep, from the specification to the results, and seconds of computing."""
    experiment = osim.load_experiment(_spec(runs))
    with tempfile.TemporaryDirectory() as folder:
        began, idle = _clocks()
        results = osim.run(
            experiment, f"sqlite:///{Path(folder) / 'bench.sqlite'}", max_concurrency=slots, chat_model=model
        )
        ended, busy = _clocks()
        if not (results.runs["status"] == "complete").all():
            raise SystemExit(f"runs failed: {results.runs['error'].unique()}")
    return ended - began, busy - idle


def _bare(requests: list[Request], slots: int, base_url: str) -> tuple[float, float]:
    """The same for the same requests by the client alone."""

    async def main() -> tuple[float, float]:
        async with openai.DefaultAioHttpClient() as transport:
            model = ChatOpenAI(
                model="stub", base_url=base_url, api_key="none", max_retries=0, http_async_client=transport
            )
            room = asyncio.Semaphore(slots)

            async def call(messages: list[BaseMessage], seed: int) -> None:
                async with room:
                    await model.ainvoke(messages, seed=seed)

            began, idle = _clocks()
            await asyncio.gather(*(call(*request) for request in requests))
            ended, busy = _clocks()
            return ended - began, busy - idle

    return asyncio.run(main())


def main() -> None:
    """Print calls per second of the three, and the ratio beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 runs in the sweep instead of 40")
    runs = 10 if parser.parse_args().quick else 40
    recorder = Recorder()
    _sweep(runs, 64, recorder)
    requests: list[Request] = recorder.asked
    lengths = [len(messages) for messages, _ in requests]
    print(
        f"{runs} runs, N=10, T=60: {len(requests)} calls, {sum(lengths) / len(lengths):.1f} messages a prompt, "
        f"latency {LATENCY_S:g} s; client and stub share {os.cpu_count()} cores"
    )
    calls = len(requests)
    for slots in (64, 256):
        with stub() as base_url:
            bare_s, bare_cpu_s = _bare(requests, slots, base_url)
            before = _counts(base_url)
        with stub() as base_url:
            model = osim.load_chat_model("openai:stub", base_url=base_url)
            whole_s, whole_cpu_s = _sweep(runs, slots, model)
            after = _counts(base_url)
        if not before["different"] == after["different"] == after["served"] == calls:
            raise SystemExit(f"not the same requests: {before}, {after}")
        print(
            f"{slots} slots: ideal {slots / LATENCY_S:.0f} calls/s; bare client {calls / bare_s:.0f}; opinionsim "
            f"{calls / whole_s:.0f}; ratio {bare_s / whole_s:.2f} (bar {BAR}); speed-up over one at a time "
            f"{calls * LATENCY_S / whole_s:.0f}x\n    computing {1000 * bare_cpu_s / calls:.1f} and "
            f"{1000 * whole_cpu_s / calls:.1f} ms a call; in flight at most {before['peak_in_flight']} and "
            f"{after['peak_in_flight']}"
        )


if __name__ == "__main__":
    main()
