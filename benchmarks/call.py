"""What a call costs: computing and bytes, beside LangChain alone, and whether they grow with the length of memory.

(a) A model that answers at once with varied texts, asked by LangChain alone (`ainvoke`, with the prompts that the sweep
sends), and by a sweep through engine, caller, journal, live record and lexicon into a SQLite store, both timed in this
process. The bar of the whole is a share of what an older checkout takes: run this file of both in turns. (b) Runs side
by side under the same model: what a call takes beyond `ainvoke`, where agents remember one or two messages, and where
they remember about a hundred; bytes of the store a call in short and in long runs. (c) The scripted sweep of the
package's tables, in a process of its own. Run: python benchmarks/call.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.llm import GivenReplies, ModelClient

#: Share of what a call took at ac52888, paired.
BAR = 0.75
GROWTH_BAR = 1.05
SWEEP_BAR_S = 60.0
#: Estimated tokens that the last message or two of a memory have.
_LAST_TOKENS = 115
#: Seconds in which the runs of (b) are opened.
_OPENING_S = 5.0
_SLOTS = 64
_STANCES = ("strongly believe", "tend to believe", "neither believe nor reject", "tend to reject", "strongly reject")


class Instant(GivenReplies):
    """A model that answers at once, without a look at its prompt, with a text that differs from call to call."""

    _numbers: Iterator[int] = PrivateAttr(default_factory=count)
    _latency_s: float = PrivateAttr(default=0.0)
    #: The first calls, which wait until all runs are open.
    _held: Iterator[int] = PrivateAttr(default=iter(()))
    _heed: Callable[[int], None] | None = PrivateAttr(default=None)

    async def _agenerate(self, *_arguments: Any, **_options: Any) -> ChatResult:
        if self._latency_s:
            await asyncio.sleep(self._latency_s if next(self._held, None) is None else _OPENING_S)
        number = next(self._numbers)
        if self._heed is not None:
            self._heed(number + 1)
        text = (
            f"Thought {number} of the day, after reading what others write about it for a while. I "
            f"{_STANCES[number % 5]} Theory XYZ, and reason {number * 7919 % 1000} is mine."
        )
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def replies() -> GivenReplies:
    """The model, which nobody has asked yet."""
    return Instant([])


def spec(steps: int, runs: int, token_budget: int | None = None) -> dict[str, Any]:
    """Dyads of ten agents."""
    return {
        "name": "call",
        "seed": 1,
        "replicates": runs,
        "population": {"size": 10},
        "topic": {"name": "global-warming"},
        "cognition": {"token_budget": token_budget},
        "interaction": {"kind": "dyadic", "steps": steps},
        "model": {"name": "given"},
        "measurement": {"classifier": "lexicon", "texts": ["report", "post"]},
    }


def sweep_s(steps: int, runs: int, folder: Path, slots: int = _SLOTS) -> tuple[float, int, str]:
    """Seconds of computing a sweep takes, its calls, and the store."""
    experiment = osim.load_experiment(spec(steps, runs))
    store = f"sqlite:///{folder / f'call-{runs}.sqlite'}"
    began = time.process_time()
    results = osim.run(experiment, store, max_concurrency=slots, chat_model=replies())
    seconds = time.process_time() - began
    if not (results.runs["status"] == "complete").all():
        raise SystemExit(f"runs failed: {results.runs['error'].unique()}")
    return seconds, len(results.calls), store


def prompts(store: str, wanted: int, turns: tuple[int, int] = (0, 1_000_000)) -> list[list[BaseMessage]]:
    """Prompts of some turns of a sweep as LangChain takes them."""
    kinds = {"system": SystemMessage, "user": HumanMessage}
    results = osim.load(store)
    calls = results.calls[results.calls["turn"].between(*turns)]
    chosen = calls.iloc[:: max(1, len(calls) // wanted)]
    return [
        [kinds[message.role](message.content) for message in results.prompt(row.run_id, row.turn, row.call)]
        for row in chosen.itertuples()
    ]


def bare_s(asked: list[list[BaseMessage]], rounds: int) -> float:
    """Seconds of computing a call through LangChain alone takes."""
    model = ModelClient(replies()).model

    async def main() -> None:
        for _ in range(rounds):
            for messages in asked:
                await model.ainvoke(messages)

    began = time.process_time()
    asyncio.run(main())
    return (time.process_time() - began) / (rounds * len(asked))


def compare(runs: int, rounds: int) -> None:
    """Print what a call costs beside LangChain alone, both alternated."""
    ratios, whole, bare = [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            # What a sweep takes before its first call and after its last is no cost of a call.
            least, few, _ = sweep_s(100, 1, Path(folder))
            seconds, calls, store = sweep_s(100, runs, Path(folder))
            alone = bare_s(prompts(store, 200), 20)
        whole.append((seconds - least) / (calls - few))
        bare.append(alone)
        ratios.append(whole[-1] / alone)
    print(
        f"a call through the whole stack: {_middle(whole) * 1e3:.2f} ms of computing, bare ainvoke "
        f"{_middle(bare) * 1e3:.3f} ms; ratio {_middle(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f} in "
        f"{rounds}; bar of the whole: {BAR} x ac52888)"
    )


class Clock:
    """Reads the time of computing at calls of a sweep, from outside its prompts."""

    def __init__(self, at: tuple[int, ...]) -> None:
        self._at = at
        self.marks: list[float] = []

    def model(self) -> GivenReplies:
        """The model, which tells its calls."""
        model = Instant([])
        model._heed = self._note
        # Time in which what has arrived is written and coded: otherwise the end pays for the beginning.
        model._latency_s = 0.02
        model._held = iter(range(_SLOTS))
        return model

    def _note(self, number: int) -> None:
        if number in self._at:
            self.marks.append(time.process_time())


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def growth(runs: int, rounds: int) -> None:
    """Print what a call takes beyond `ainvoke` where agents remember one message or two, and where a hundred."""
    stored_bytes(50)  # what is done once in a process is done
    # The same turns of the same runs, once with memories that take in the last message or two. In these turns every run
    # is under way: opening and concluding it is no cost of a call. Stores are as large, and as much waits to be written
    # and coded: turns at a run's beginning have less of both, and so look cheap.
    turns, budgets = (910, 1010), [_LAST_TOKENS, None]
    wholes: dict[int | None, list[float]] = {budget: [] for budget in budgets}
    beyond: dict[int | None, list[float]] = {budget: [] for budget in budgets}
    for _ in range(rounds):
        for budget in budgets:
            with tempfile.TemporaryDirectory() as name:
                clock = Clock(tuple(runs * turn for turn in turns))
                experiment, store = osim.load_experiment(spec(600, runs, budget)), f"sqlite:///{name}/long.sqlite"
                osim.run(experiment, store, max_concurrency=_SLOTS, chat_model=clock.model())
                wholes[budget].append((clock.marks[1] - clock.marks[0]) / (runs * (turns[1] - turns[0])))
                beyond[budget].append(wholes[budget][-1] - bare_s(prompts(store, 60, turns), 10))
        budgets.reverse()
    few, many = beyond[_LAST_TOKENS], beyond[None]
    ratios = [much / little for little, much in zip(few, many, strict=True)]
    # `ainvoke` goes over all messages, which a direct call does not: the whole is the stricter measure.
    whole = _middle([much / little for little, much in zip(wholes[_LAST_TOKENS], wholes[None], strict=True)])
    print(
        f"a call beyond bare ainvoke: {_middle(few) * 1e3:.3f} ms of computing where agents remember one or two "
        f"messages, {_middle(many) * 1e3:.3f} where they remember a hundred; ratio {_middle(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}; bar {GROWTH_BAR}), of the whole {whole:.2f}"
    )


def stored_bytes(steps: int) -> float:
    """Bytes of the store a call takes in one run."""
    with tempfile.TemporaryDirectory() as name:
        _, calls, store = sweep_s(steps, 1, Path(name))
        return Path(store.removeprefix("sqlite:///")).stat().st_size / calls


def tables_s() -> float:
    """Seconds that the scripted sweep of the tables takes, as a command."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "opinionsim", "run", "chuang2024/tables", "--store", f"{folder}/tables.sqlite"]
        began = time.perf_counter()
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return time.perf_counter() - began


def main() -> None:
    """Print every figure beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs and rounds, and no sweep of the tables")
    quick = parser.parse_args().quick
    compare(11 if quick else 31, 3 if quick else 5)
    growth(6 if quick else 24, 2 if quick else 5)
    short, long = stored_bytes(100), stored_bytes(500 if quick else 1500)
    print(f"bytes of the store a call: {short:.0f} in 100 steps, {long:.0f} in {500 if quick else 1500}")
    if not quick:
        seconds = tables_s()
        cores = os.cpu_count()
        print(f"chuang2024/tables, 54,000 scripted calls: {seconds:.1f} s on {cores} cores (bar {SWEEP_BAR_S:.0f})")


if __name__ == "__main__":
    main()
