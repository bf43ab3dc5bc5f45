"""What reading costs: one agent's transcript out of a large store, and readers beside a sweep.

(a) A store of 500 runs of 200 calls is written through the store's own interface. What `opinionsim show --agent` prints
of one of these runs is timed in processes of its own: imports apart, and as a whole command. (b) A sweep of the
scripted model behind a latency of 20 ms is carried out by turns alone and beside ten processes that read its store:
each follows one run after another, or loads all opinions once a second, for which ten processes want more than a
machine of few cores has: at low priority they leave the sweep what it needs. (c) Stores of complete runs of 2 and 100
steps: what `run` takes to find that nothing is missing, beyond its start, and the commands `status` and `table`; by
turns with another checkout, whose stores it makes itself, if one is given.
Run: python benchmarks/reading.py [--quick] [--complete] [--beside CHECKOUT]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import opinionsim as osim
from opinionsim.errors import StoreError
from opinionsim.llm import Entry, EntryKey, ScriptedChatModel
from opinionsim.messages import ChatMessage, Prompt
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

TRANSCRIPT_BAR_S, WHOLE_BAR_S, SPEED_BAR = 0.5, 1.5, 0.95
RUNS, CALLS, AGENTS = 500, 200, 10
NOTHING_BAR_MS, STATUS_BAR_S, TABLE_BAR, PAIRS = 1.0, 0.6, 0.5, 7
LATENCY_S, SLOTS, READERS, WINDOW_S = 0.02, 64, 10, 3.0
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
        "seed": 1, "topic": "t", "category": "c", "framing": "falsehood", "claim": "it is so", "task": "",
        "truth": None, "confirmation_bias": "none", "memory": "cumulative", "world": "closed", "model": "scripted",
        "interaction": "dyadic", "network": "complete", "n_agents": AGENTS, "steps": CALLS // 2,
        "event_steps": None, "dropped_turns": 0,
    }  # fmt: skip
    return RunRow(run_id, replicate, f"block {replicate}", "scripted", {}, summary, CALLS)


def _write_run(store: Store, run_id: str, calls: int) -> None:
    """One run, in which everybody posts and reports in turn."""
    epoch = store.lease(run_id, "benchmark")
    assert epoch is not None
    record = store.record(run_id, epoch, "e1")
    agents = [AgentRow(i, f"Agent {i}", "participant", "scripted", float(i % 5 - 2), {}, "s") for i in range(AGENTS)]
    record.begin(agents, [EdgeRow(i, j) for i in range(AGENTS) for j in range(AGENTS) if i != j])
    minds = [Prompt().then(ChatMessage("system", f"You are agent {i}. {WORDS * 8}")) for i in range(AGENTS)]
    for turn in range(calls):
        agent, (act, kind) = turn * 7 % AGENTS, (("write", "post"), ("review", "report"))[turn % 2]
        text = f"Text {turn} of run {run_id}. {WORDS * (4 if turn % 2 else 2)}"
        prompt = minds[agent].then(ChatMessage("user", f"Turn {turn} of run {run_id}. {WORDS * 6}"))
        step = turn // 2 + 1
        entry = Entry(EntryKey(turn, "reply", 0), step, agent, act, Prompt.of(prompt).identity, text, prompt=prompt)
        record.append(entry)
        record.add_turn(TurnRow(turn, step, agent, act, kind, (turn - 1,) if turn % 2 else (), text))
        record.add_opinions([OpinionRow("m1", turn, 1.0, 0.05, (0.0, 0.1, 0.1, 0.6, 0.2))])
    store.finish(run_id, epoch, "complete")


def transcript_s(url: str, run_id: str) -> dict[str, float]:
    """Seconds that the command and the function take in this process, imports apart, and paragraphs printed."""
    from opinionsim.cli import app
    from opinionsim.watching import transcript

    told = io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(told):
        app(["show", url, "--run", run_id, "--agent", "3"], standalone_mode=False)
    command_s = time.perf_counter() - began
    began = time.perf_counter()
    text = transcript(osim.load(url), run_id, agent=3)
    function_s = time.perf_counter() - began
    assert told.getvalue() == text + "\n"
    return {"command_s": command_s, "function_s": function_s, "turns": text.count("\nstep ")}


def measure_transcript(runs: int, calls: int) -> None:
    """Print what one agent's transcript takes."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'large.sqlite'}"
        began = time.perf_counter()
        run_ids = write_store(url, runs, calls)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"store of {runs * calls:,} calls: {size / 1e6:.0f} MB, written in {time.perf_counter() - began:.0f} s")
        chosen = [run_ids[place] for place in (0, runs // 2, runs - 1)]
        found = [_own_process("--transcript", url, run_id) for run_id in chosen]
        whole = statistics.median(_whole_command_s(url, run_id) for run_id in chosen)
    command = statistics.median(each["command_s"] for each in found)
    function = statistics.median(each["function_s"] for each in found)
    print(
        f"transcript of one agent of one run ({found[0]['turns']:.0f} turns), imports apart: command {command:.2f} s, "
        f"function {function:.2f} s (bar {TRANSCRIPT_BAR_S} s); whole command {whole:.2f} s (bar {WHOLE_BAR_S} s)"
    )


def _whole_command_s(url: str, run_id: str) -> float:
    """Seconds from the start of the command to its end."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "opinionsim", "show", url, "--run", run_id, "--agent", "3"]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def _own_process(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- (b) readers beside a sweep ------------------------------------------------------------------------------


class SlowScripted(ScriptedChatModel):
    """The scripted model, answering after a fixed latency; notes when."""

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(LATENCY_S)
        reply = await super()._agenerate(*arguments, **options)
        _replied.append(time.time())
        return reply


#: Moments of the replies.
_replied: list[float] = []


def _spec(replicates: int) -> dict[str, Any]:
    return {
        "name": "reading",
        "seed": 1,
        "replicates": replicates,
        "population": {"size": AGENTS},
        "topic": {"name": "global-warming"},
        "interaction": {"kind": "dyadic", "steps": CALLS // 2},
        "measurement": {"texts": ["report", "post"]},
    }


def sweep(url: str, replicates: int) -> dict[str, list[float]]:
    """Carry out a sweep in this process; when each reply came."""
    results = osim.run(osim.load_experiment(_spec(replicates)), url, max_concurrency=SLOTS, chat_model=SlowScripted())
    if not (results.runs["status"] == "complete").all():
        raise SystemExit(f"runs failed: {results.runs['error'].unique()}")
    return {"replied": _replied}


def read(url: str, kind: str, number: int) -> dict[str, float]:
    """Read the store of a sweep until it is over, once it is there; rows or loads, and seconds of the processor."""
    import pandas  # noqa: F401 - loaded beforehand

    from opinionsim.store import FRAMES  # noqa: F401 - loaded beforehand

    if kind == "load humbly":
        os.nice(19)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    while True:
        try:
            run_ids = osim.load(url).run_ids
            break
        except StoreError:
            time.sleep(0.1)
    if kind == "follow":
        n = sum(1 for run_id in run_ids[number::READERS] for _ in osim.follow(url, run_id))
    else:
        n = 0
        while not all(state.status == "complete" for state in _states(url).values()):
            looked = time.monotonic()
            osim.load(url).opinions  # noqa: B018 - it is read when it is first asked for
            n += 1
            time.sleep(max(0.0, looked + 1.0 - time.monotonic()))
    return {"n": n, "cpu_s": time.process_time() - began}


def _states(url: str) -> Any:
    with open_store(url, write=False) as store:
        return store.states()


@contextlib.contextmanager
def _readers(url: str, kinds: Sequence[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that have loaded what they need and wait for the store."""
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--read", url, kind, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, kind in enumerate(kinds)
    ]
    try:
        for process in processes:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _windows(sweeping: subprocess.Popen[str], readers: Sequence[subprocess.Popen[str]]) -> list[float]:
    """Stop the readers and let them go on by turns while a sweep lasts; when, the first time stopping them."""
    turns: list[float] = []
    while sweeping.poll() is None:
        for reader in readers:
            reader.send_signal(signal.SIGCONT if len(turns) % 2 else signal.SIGSTOP)
        turns.append(time.time())
        with contextlib.suppress(subprocess.TimeoutExpired):
            sweeping.wait(WINDOW_S)
    for reader in readers:
        reader.send_signal(signal.SIGCONT)
    return turns


def measure_readers(kind: str, replicates: int) -> None:
    """Print what ten readers of one kind take of a sweep's speed."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
        url = f"sqlite:///{Path(folder) / 'swept.sqlite'}"
        with _readers(url, [kind] * READERS) as readers:
            command = [sys.executable, __file__, "--sweep", url, str(replicates)]
            with subprocess.Popen(command, stdout=output, text=True) as sweeping:
                turns = _windows(sweeping, readers)
            told = [json.loads(reader.communicate(timeout=120)[0].splitlines()[-1]) for reader in readers]
        output.seek(0)
        replied = np.array(json.loads(output.read().splitlines()[-1])["replied"])
    # Neither the start of the sweep nor its end, at which fewer and fewer runs are left.
    first, last = replied[0] + WINDOW_S, np.quantile(replied, 0.95)
    counted, edges = np.histogram(replied, turns)
    alone, beside = [], []
    for number, count in enumerate(counted):
        if first <= edges[number] and edges[number + 1] <= last:
            (beside if number % 2 else alone).append(count / (edges[number + 1] - edges[number]))
    ratio = statistics.fmean(beside) / statistics.fmean(alone)
    n, cpu_s = (statistics.fmean(each[name] for each in told) for name in ("n", "cpu_s"))
    did = f"{n:,.0f} rows followed" if kind == "follow" else f"all opinions loaded {n:.0f} times"
    did += ", at low priority," if kind == "load humbly" else ""
    print(
        f"{len(replied):,} calls in {replied[-1] - replied[0]:.0f} s, {SLOTS} slots, {os.cpu_count()} cores: "
        f"{statistics.fmean(alone):,.0f} calls/s alone, {statistics.fmean(beside):,.0f} beside {READERS} readers "
        f"({len(alone)} and {len(beside)} times {WINDOW_S:.0f} s by turns), each {did} in {cpu_s:.1f} s of the "
        f"processor; ratio {ratio:.3f} (bar {SPEED_BAR})"
    )


# -- (c) complete runs ---------------------------------------------------------------------------------------


def fill(url: str, replicates: int, steps: int) -> dict[str, float]:
    """Make a store of complete runs: one is carried out, and the others get a copy of its record."""
    experiment = osim.load_experiment(_of_steps(replicates, steps))
    first, *rest = dict.fromkeys(run.run_id for run in experiment.runs)
    osim.run(experiment, url, only=[first])
    with open_store(url) as store:
        agents, edges, entries = store.agents(first), store.edges(first), store.entries(first)
        turns, opinions = store.turns(first), store.opinions(first)
        for run_id in rest:
            epoch = store.lease(run_id, "benchmark")
            assert epoch is not None
            record = store.record(run_id, epoch, store.designs()[0].experiment_id)
            record.begin(agents, edges)
            for entry in entries:
                record.append(entry)
            for turn in turns:
                record.add_turn(turn)
            record.add_opinions(opinions)
            store.finish(run_id, epoch, "complete")
    return {"runs": 1 + len(rest)}


def _of_steps(replicates: int, steps: int) -> dict[str, Any]:
    spec = _spec(replicates)
    return spec | {"interaction": spec["interaction"] | {"steps": steps}}


def nothing_ms(url: str, replicates: int, steps: int) -> dict[str, float]:
    """Milliseconds of the processor for each run when nothing is missing, beyond those for a store of two runs."""
    two = f"{url}.two.sqlite"
    fill(two, 2, steps)
    took = []
    for place, number in ((two, 2), (url, replicates)):
        experiment = osim.load_experiment(_of_steps(number, steps))
        for _ in range(2):
            began = time.process_time()
            osim.run(experiment, place)
            last = time.process_time() - began
        took.append(last)
    Path(two).unlink()
    return {"ms": 1e3 * (took[1] - took[0]) / (replicates - 2)}


def _run_by(checkout: str, *arguments: str) -> str:
    """What a Python process prints that has a checkout's package, and keeps its bytecode."""
    # The folder in which a process begins comes before PYTHONPATH, and may hold a package of this name.
    environment = os.environ | {"PYTHONPATH": checkout, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=checkout)
    return done.stdout


def _by(checkout: str, *arguments: str) -> dict[str, float]:
    """What this file prints when another checkout's package carries it out."""
    printed = _run_by(checkout, str(Path(__file__).resolve()), *arguments)
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


def _command_s(checkout: str, command: str, path: Path) -> float:
    """Seconds of the processor that a command takes from start to end."""
    before = os.times()
    _run_by(checkout, "-m", "opinionsim", command, str(path))
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure_complete(replicates: int, few: int, beside: str | None) -> None:
    """Print what is done with stores of complete runs, by turns with another checkout if one is given."""
    checkouts = {"this": str(Path(__file__).resolve().parents[1])} | ({"other": beside} if beside else {})
    with tempfile.TemporaryDirectory() as folder:
        told: dict[str, list[float]] = {}
        for steps in (2, CALLS // 2):
            for name, checkout in checkouts.items():
                path = f"{folder}/{name}-{steps}.sqlite"
                _by(checkout, "--fill", path, str(replicates), str(steps))
                ms = [_by(checkout, "--nothing", path, str(replicates), str(steps))["ms"] for _ in range(3)]
                bar = f" (bar {NOTHING_BAR_MS} ms)" if name == "this" else ""
                print(f"run, nothing missing, {replicates} runs x {steps} steps, {name}: {min(ms):.2f} ms a run{bar}")
        for name, checkout in checkouts.items():
            _by(checkout, "--fill", f"{folder}/{name}.sqlite", str(few), str(CALLS // 2))
        for command in ("status", "table"):
            for _ in range(PAIRS):
                for name, checkout in checkouts.items():
                    took = _command_s(checkout, command, Path(folder) / f"{name}.sqlite")
                    told.setdefault(f"{command} {name}", []).append(took)
            own = told[f"{command} this"]
            told_s = f"{command}, {few} runs x {CALLS // 2} steps: {statistics.median(own):.2f} s of the processor"
            if beside:
                ratio = statistics.median(a / b for a, b in zip(own, told[f"{command} other"], strict=True))
                told_s += f", {ratio:.2f} of the other"
            print(told_s, f"(bar {STATUS_BAR_S} s)" if command == "status" else f"(bar {TABLE_BAR} of ac52888)")


def main() -> None:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the store, a quarter of the sweep")
    parser.add_argument("--transcript", nargs=2, metavar=("URL", "RUN"), help=argparse.SUPPRESS)
    parser.add_argument("--sweep", nargs=2, metavar=("URL", "REPLICATES"), help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=3, metavar=("URL", "KIND", "NUMBER"), help=argparse.SUPPRESS)
    parser.add_argument("--complete", action="store_true", help="only (c), stores of complete runs")
    parser.add_argument(
        "--beside", metavar="CHECKOUT", type=os.path.abspath, help="another checkout to compare (c) with"
    )
    parser.add_argument("--fill", nargs=3, metavar=("URL", "REPLICATES", "STEPS"), help=argparse.SUPPRESS)
    parser.add_argument("--nothing", nargs=3, metavar=("URL", "REPLICATES", "STEPS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.transcript:
        print(json.dumps(transcript_s(*given.transcript)))
    elif given.sweep:
        print(json.dumps(sweep(given.sweep[0], int(given.sweep[1]))))
    elif given.read:
        print(json.dumps(read(given.read[0], given.read[1], int(given.read[2]))))
    elif given.fill:
        print(json.dumps(fill(given.fill[0], int(given.fill[1]), int(given.fill[2]))))
    elif given.nothing:
        print(json.dumps(nothing_ms(given.nothing[0], int(given.nothing[1]), int(given.nothing[2]))))
    else:
        measure_complete(100 if given.quick else 1000, 20 if given.quick else 180, given.beside)
        if given.complete:
            return
        measure_transcript(RUNS // 10 if given.quick else RUNS, CALLS)
        for kind in ("follow", "load", "load humbly"):
            measure_readers(kind, 30 if given.quick else 120)


if __name__ == "__main__":
    main()
