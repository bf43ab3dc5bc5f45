"""What an agent and a call cost the process: resident memory, disk, CPU, and how fast SQLite takes calls.

The model answers at once with texts of fixed length, so the figures are the package's own. docs/scaling.md
extrapolates from them. Run: python benchmarks/scaling.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import opinionsim as osim
from opinionsim.llm import Entry, EntryKey
from opinionsim.messages import ChatMessage, Prompt
from opinionsim.store import RunRow, open_store

#: Characters of a post and of a report: 60 and 250 tokens at four characters a token.
POST, REPORT = 240, 1000
#: (N, T) of the runs that are measured; the first is nearly nothing but imports.
RUNS = ((10, 1), (100, 1000), (1000, 1000), (1000, 10_000), (10_000, 10_000))
QUICK = RUNS[:3]
_BYTES_IN_MAXRSS = 1 if sys.platform == "darwin" else 1024


class Instant(BaseChatModel):
    """Answers at once, each time with another text."""

    made: int = 0

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        self.made += 1
        length = POST if "Your post:" in messages[-1].content else REPORT
        text = (f"Text {self.made}: " + "some words and more " * REPORT)[:length]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(*args, **kwargs)


def measured_run(n_agents: int, steps: int) -> dict[str, float]:
    """Carry out one run in this process and say what it took."""
    experiment = osim.load_experiment(
        {
            "name": "scaling",
            "population": {"size": n_agents},
            "topic": {"name": "global-warming"},
            "interaction": {"kind": "dyadic", "steps": steps},
            "model": {"name": "instant"},
            # No text of this kind arises: classification has costs of its own.
            "measurement": {"classifier": "lexicon", "texts": ["probe"]},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        store = Path(folder) / "bench.sqlite"
        results = osim.run(experiment, f"sqlite:///{store}", max_concurrency=256, chat_model=Instant())
        cpu_s = time.process_time() - began
        if not (results.runs["status"] == "complete").all():
            raise SystemExit(f"runs failed: {results.runs['error'].unique()}")
        stored = sum(path.stat().st_size for path in Path(folder).iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_IN_MAXRSS
    return {"agents": n_agents, "calls": 2 * steps, "cpu_s": cpu_s, "peak": peak, "stored": stored}


def append_s(calls: int, events: int = 10) -> float:
    """Seconds a call takes to become durable, its prompt and `events` remembered messages included."""
    past = [ChatMessage("user", f"{event}: " + "x" * 700) for event in range(calls + events)]
    system = ChatMessage("system", "y" * 1240)
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{Path(folder) / 'bench.sqlite'}") as store:
        store.register([RunRow("r1", 0, "block", "model", {}, _SUMMARY)])
        epoch = store.lease("r1", "benchmark")
        assert epoch is not None
        journal = store.record("r1", epoch)
        began = time.perf_counter()
        for turn in range(calls):
            task = ChatMessage("user", f"{turn % 50}: " + "z" * 1000)
            prompt = Prompt.of((system, *past[turn : turn + events], task))
            text = f"{turn} " + "w" * ((POST + REPORT) // 2)
            journal.append(Entry(EntryKey(turn, "reply", 0), turn, 0, "write", prompt.identity, text, prompt=prompt))
        journal.flush()
        return (time.perf_counter() - began) / calls


_SUMMARY = {
    "seed": 1, "topic": "t", "category": "c", "framing": "falsehood", "claim": "c", "truth": None,
    "confirmation_bias": "none", "memory": "cumulative", "world": "closed", "model": "instant",
    "interaction": "dyadic", "network": "complete", "n_agents": 1, "steps": 1,
}  # fmt: skip


def main() -> None:
    """Print what runs take, each in a process of its own, and what that comes to for an agent and a call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small runs only")
    parser.add_argument("--one", nargs=2, type=int, metavar=("N", "T"), help="one run, as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured_run(*options.one)))
        return
    found = []
    for n_agents, steps in QUICK if options.quick else RUNS:
        command = [sys.executable, __file__, "--one", str(n_agents), str(steps)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        run = found[-1]
        print(
            f"N={n_agents}, T={steps}: peak {run['peak'] / 1e6:.0f} MB, store {run['stored'] / run['calls']:.0f} "
            f"bytes/call, CPU {1e3 * run['cpu_s'] / run['calls']:.2f} ms/call"
        )
    design = np.array([[1, run["agents"], run["calls"]] for run in found], dtype=float)
    base, agent, call = np.linalg.lstsq(design, np.array([run["peak"] for run in found]), rcond=None)[0]
    print(f"resident memory: {base / 1e6:.0f} MB + {agent / 1e3:.1f} kB an agent + {call / 1e3:.1f} kB a call")
    seconds = append_s(2000 if options.quick else 20_000)
    print(f"SQLite: {1e3 * seconds:.2f} ms a call, {1 / seconds:.0f} calls/s")


if __name__ == "__main__":
    main()
