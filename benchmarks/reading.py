"""What reading costs: one agent's transcript out of a large store, and readers beside a sweep.

(a) A store of 500 runs of 200 calls is written through the store's own interface. `opinionsim show --agent` of one of
these runs is timed in a process of its own, imports apart. (b) A sweep of the scripted model behind a fixed latency is
carried out alternately alone and beside ten processes that read its store, five of which follow a run each while five
load all opinions once a second. Run: python benchmarks/reading.py [--quick]
"""

from __future__ import annotations

import contextlib
import io
import time

import opinionsim as osim
from opinionsim.llm import Entry, EntryKey
from opinionsim.messages import ChatMessage, Prompt, prompt_hash
from opinionsim.store import (
    AgentRow,
    DesignRow,
    EdgeRow,
    ExperimentRun,
    InstrumentRow,
    OpinionRow,
    RunRow,
    Store,
    TurnRow,
    open_store,
)

TRANSCRIPT_BAR_S, SPEED_BAR = 0.5, 0.95
RUNS, CALLS, AGENTS = 500, 200, 10
LATENCY_S, SLOTS, READERS = 0.02, 64, 10
WORDS = "I have thought about it for a while and still hold that it is so, for what that is worth. "
INSTRUMENT = InstrumentRow("m1", "stance", "lexicon", {}, (-2, -1, 0, 1, 2), ("--", "-", "0", "+", "++"))


# -- (a) a large store ---------------------------------------------------------------------------------------


def write_store(url: str, runs: int, calls: int) -> list[str]:
    """Fill a store with finished runs of one experiment; their ids."""
    run_ids = [f"{run:04x}{'0' * 20}" for run in range(runs)]
    with open_store(url) as store:
        store.save_instrument(INSTRUMENT)
        store.register([_run(run_id, number) for number, run_id in enumerate(run_ids)])
        cells = [
            ExperimentRun(run_id, "m1", number, f"block {number}", "one cell", {}, {"m1": ("post", "report")})
            for number, run_id in enumerate(run_ids)
        ]
        store.save_design(DesignRow("e1", "large", "d1", {"name": "large"}, {}, tuple(cells)))
        for run_id in run_ids:
            _write_run(store, run_id, calls)
    return run_ids


def _run(run_id: str, replicate: int) -> RunRow:
    summary = {
        "seed": 1, "topic": "t", "category": "c", "framing": "falsehood", "claim": "it is so", "truth": None,
        "confirmation_bias": "none", "memory": "cumulative", "world": "closed", "model": "scripted",
        "interaction": "dyadic", "network": "complete", "n_agents": AGENTS, "steps": CALLS // 2,
    }  # fmt: skip
    return RunRow(run_id, replicate, f"block {replicate}", "scripted", {}, summary, CALLS)


def _write_run(store: Store, run_id: str, calls: int) -> None:
    """One run: everybody posts and reports in turn, remembering what was read."""
    epoch = store.claim(run_id, "benchmark")
    assert epoch is not None
    record = store.record(run_id, epoch, "e1")
    agents = [AgentRow(i, f"Agent {i}", "participant", "scripted", float(i % 5 - 2), {}, "s") for i in range(AGENTS)]
    record.begin(agents, [EdgeRow(i, j) for i in range(AGENTS) for j in range(AGENTS) if i != j])
    memories = [Prompt().then(ChatMessage("system", f"You are agent {i}. {WORDS * 8}")) for i in range(AGENTS)]
    for turn in range(calls):
        agent, (act, kind) = turn * 7 % AGENTS, (("write", "post"), ("review", "report"))[turn % 2]
        text = f"Text {turn} of run {run_id}. {WORDS * (4 if turn % 2 else 2)}"
        memories[agent] = memories[agent].then(ChatMessage("user", f"Turn {turn} of run {run_id}: {WORDS * 3}"))
        prompt = memories[agent].then(ChatMessage("user", f"Your {kind}:"))
        step = turn // 2 + 1
        entry = Entry(EntryKey(turn, "reply", 0), step, agent, act, prompt_hash(prompt), text, prompt=prompt)
        record.append(entry)
        record.add_turn(TurnRow(turn, step, agent, act, kind, (turn - 1,) if turn % 2 else (), text))
        record.add_opinions([OpinionRow("m1", turn, 1.0, 0.05, (0.0, 0.1, 0.1, 0.6, 0.2))])
    store.finish(run_id, epoch, "complete")


def transcript_s(url: str, run_id: str) -> tuple[float, float, int]:
    """Seconds that the command and the function take in this process, imports apart, and paragraphs printed."""
    import pandas  # noqa: F401 - loaded beforehand

    from opinionsim.cli import app
    from opinionsim.experiments import transcript

    told = io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(told):
        app(["show", url, "--run", run_id, "--agent", "3"], standalone_mode=False)
    command_s = time.perf_counter() - began
    began = time.perf_counter()
    text = transcript(osim.load(url), run_id, agent=3)
    function_s = time.perf_counter() - began
    assert told.getvalue() == text + "\n"
    return command_s, function_s, text.count("\nstep ")
