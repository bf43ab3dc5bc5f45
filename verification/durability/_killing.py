"""A sweep whose workers are killed over and over, and what its store and the model's own log say about it.

Run as a program, this module supervises: it forks processes that carry the sweep out, kills one after a drawn number
of durable calls or has it die at a drawn write to the files of the store, looks at the store, and goes on until nothing
is left to do. Forking saves the imports of each
start. The chat model writes to a log what it is asked and what it answers, so that nothing rests on the word of the
store.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psycopg
import pytest
from pydantic import PrivateAttr

from opinionsim.llm import ScriptedChatModel
from opinionsim.running import Invocation, under_way
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import EXPIRY_S, Results
from tests.support.reader import check_reading, reading
from tests.support.running import assert_same, carry_out, loaded

SPEC: dict[str, Any] = {
    "name": "durability",
    "seed": 3,
    "replicates": 4,
    "population": {"size": 5},
    "topic": {"name": "flat-earth"},
    "interaction": {"kind": "dyadic", "steps": 18},
    "measurement": {"texts": ["report"], "probe": {"after": 1}},
    "sweep": {"cognition.memory": ["cumulative", "reflective"]},
}
#: Calls the sweep makes when nobody disturbs it.
CALLS = 4 * (36 + 5) + 4 * (72 + 5)
#: Calls in flight at most, over all workers.
_SLOTS = 6
_PER_STORE = 10
#: How long after its arrival a reply may still be lost, in seconds during which its process was let run.
PROMISED_S = 0.2
#: Pages that a process may write beyond the longest file of a store at most before it dies, where writes are counted.
_PAGES, _PAGE_BYTES = 60, 4096
#: Steps in which a process tells that it is let run.
_TICK_S = 0.01


class _LoggingModel(ScriptedChatModel):
    """The scripted model behind a latency of some milliseconds, with a log that survives the process."""

    _log: int = PrivateAttr()

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        seed = kwargs["seed"]
        self._write("asked", seed)
        await asyncio.sleep(0.01 + seed % 11 * 5e-3)
        reply = await super()._agenerate(messages, stop, run_manager, **kwargs)
        self._write("answered", seed)
        return reply

    def tick(self) -> None:
        """Tell for ever that the process is let run: on a busy machine it may not be for longer than promised."""
        while True:
            time.sleep(_TICK_S)
            self._write("ticked", 0)

    def _write(self, what: str, seed: int) -> None:
        os.write(self._log, f"{os.getpid()} {what} {seed} {time.monotonic()!r}\n".encode())


@dataclass(frozen=True)
class Kind:
    """A way of carrying sweeps out.

    Attributes
    ----------
    name : str
        For people and for the names of files.
    workers : int
        Processes that share a sweep; one of them is killed at a time.
    address : callable
        Address of an empty store, by a name.
    """

    name: str
    workers: int
    address: Callable[[str], str]


@dataclass(frozen=True)
class Kill:
    """One death of a process.

    Attributes
    ----------
    process : int
        Its number.
    in_write : bool
        Whether it died at a drawn write to a file of the store.
    at, read_at : float
        When it was killed, and when the store had been read after that, on the monotonic clock.
    stored : frozenset of int
        Seeds of the calls that were in the store then.
    """

    process: int
    in_write: bool
    at: float
    read_at: float
    stored: frozenset[int]


@dataclass(frozen=True)
class Figures:
    """What killed sweeps have shown.

    Attributes
    ----------
    kills, in_writes : int
        Deaths of a process, and those of them at a drawn write to a file of the store.
    asked, repeated : int
        Calls the model was asked, and those of them it had been asked before.
    lost : int
        Replies that had arrived and were not in the store after the kill.
    in_flight : int
        Calls that were unanswered at a kill.
    oldest_lost_s : float
        Longest time between the arrival of a lost reply and the kill; 0 when none was lost.
    oldest_let_run_s : float
        The longest of these times without those in which the machine did not let the process run.
    read : int
        Rows that a reader beside the sweep saw, each once, in order, and as they are in the end.
    """

    kills: int = 0
    in_writes: int = 0
    asked: int = 0
    repeated: int = 0
    lost: int = 0
    in_flight: int = 0
    oldest_lost_s: float = 0.0
    oldest_let_run_s: float = 0.0
    read: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.kills + other.kills,
            self.in_writes + other.in_writes,
            self.asked + other.asked,
            self.repeated + other.repeated,
            self.lost + other.lost,
            self.in_flight + other.in_flight,
            max(self.oldest_lost_s, other.oldest_lost_s),
            max(self.oldest_let_run_s, other.oldest_let_run_s),
            self.read + other.read,
        )


# -- the supervisor ------------------------------------------------------------------------------------------


class _Witness(Protocol):
    """Looks at a store from outside, whether or not it exists yet."""

    def durable(self) -> int:
        """Calls in it."""
        ...

    def stored(self, dead: int | None = None) -> frozenset[int]:
        """Seeds of the calls in it, once nothing more can come from a process that has died."""
        ...

    def bury(self, dead: int) -> None:
        """Let so much time pass for a process that has died that its runs can be taken over."""
        ...


class _FileWitness:
    """Reads a SQLite file without changing what a crash has left."""

    def __init__(self, path: str) -> None:
        self._path = path

    def durable(self) -> int:
        return len(self.stored())

    def stored(self, dead: int | None = None) -> frozenset[int]:
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
                return frozenset(seed for (seed,) in connection.execute("SELECT seed FROM journal"))
        except sqlite3.OperationalError:
            # The process has not got as far as creating the tables.
            return frozenset()

    def bury(self, dead: int) -> None:
        """The lock of a file ends with the process."""


class _ServerWitness:
    """Asks a PostgreSQL server, to which workers are known by the name of their process."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)

    def durable(self) -> int:
        return len(self.stored())

    def stored(self, dead: int | None = None) -> frozenset[int]:
        # What the process had sent before its death, the server may still be carrying out.
        present = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
        while dead is not None and self._connection.execute(present, [_name(dead)]).fetchone():
            time.sleep(0.002)
        try:
            return frozenset(seed for (seed,) in self._connection.execute("SELECT seed FROM journal"))
        except psycopg.errors.UndefinedTable:
            return frozenset()

    def bury(self, dead: int) -> None:
        # Shorter signs of life would do as well, but not on a machine too busy to give them in time.
        aged = "UPDATE workers SET heartbeat_at = heartbeat_at - %s WHERE owner LIKE %s"
        with suppress(psycopg.errors.UndefinedTable):
            self._connection.execute(aged, [EXPIRY_S, f"%:{dead}:%"])


def _name(process: int) -> str:
    return f"worker-{process}"


def _is_file(url: str) -> bool:
    return "://" not in url


def _die_at_write(store: str, pages: int) -> None:
    """Have this process die at the write that makes a file of a store longer than all are now by so many pages."""
    sizes = [each.stat().st_size for each in Path(store).parent.glob(f"{Path(store).name}*")]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes, default=0) + pages * _PAGE_BYTES, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def _carry_out(experiment: Experiment, store: str, log: str, slots: int, pages: int) -> None:
    """The process that is killed, or dies at a write if it may write so many pages."""
    if pages:
        _die_at_write(store, pages)
    model = _LoggingModel()
    model._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    threading.Thread(target=model.tick, daemon=True).start()
    # The holder of a run is dead within moments here.
    pytest.MonkeyPatch().setattr("opinionsim.running._context._LOOK_AGAIN_S", 0.05)
    url = store if _is_file(store) else f"{store}&application_name={_name(os.getpid())}"
    with under_way(Invocation(experiment, url, max_concurrency=slots, chat_model=model)) as (_, future):
        summary = future.result()
    if summary.complete < summary.total:
        raise AssertionError(f"{summary.complete} of {summary.total} runs complete: {summary.errors}")


class _Workers:
    """Processes that carry one sweep out."""

    def __init__(self, start: Callable[[int], None]) -> None:
        self._start = start
        self.running: list[int] = []
        self.finished = False

    def fill(self, wanted: int, pages: int = 0) -> None:
        """Start workers until there are as many as wanted; they die at a write if they may write so many pages."""
        while len(self.running) < wanted:
            process = os.fork()
            if process == 0:
                # Nothing of the supervisor may happen twice.
                try:
                    self._start(pages)
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            self.running.append(process)

    def reap(self) -> None:
        """Notice those that have ended by themselves."""
        for process in list(self.running):
            self._note(process, os.WNOHANG)

    def kill(self, process: int) -> bool:
        """Kill one; whether that is what it died of."""
        os.kill(process, signal.SIGKILL)
        return self._note(process, 0) == -signal.SIGKILL

    def wait(self, process: int) -> int | None:
        """Wait for the end of one: its status, or less the signal it died of."""
        return self._note(process, 0)

    def end(self) -> None:
        """Leave none behind."""
        for process in list(self.running):
            self.kill(process)

    def _note(self, process: int, options: int) -> int | None:
        done, raw = os.waitpid(process, options)
        if not done:
            return None
        self.running.remove(process)
        status = os.waitstatus_to_exitcode(raw)
        if status > 0:
            sys.exit(f"a worker ended with status {status}")
        self.finished |= status == 0
        return status


def _wait_for(witness: _Witness, workers: _Workers, rng: np.random.Generator) -> None:
    """Wait for a drawn number of durable calls, or the end of the sweep."""
    wanted = witness.durable() + int(rng.integers(1, 30))
    # The count moves with each commit; the kill must meet any moment between commits, however rare they are.
    pause = float(rng.uniform(0.0, 0.3))
    while not workers.finished and witness.durable() < wanted:
        time.sleep(0.005)
        workers.reap()
    time.sleep(pause)
    workers.reap()


def _supervise(experiment: Experiment, store: str, log: str, n: int, kills: int, seed: int) -> Iterator[Kill]:
    rng = np.random.default_rng(seed)
    witness: _Witness = _FileWitness(store) if _is_file(store) else _ServerWitness(store)
    workers = _Workers(lambda pages: _carry_out(experiment, store, log, _SLOTS // n, pages))
    try:
        # A sweep is complete when one of its workers says so.
        while kills and not workers.finished:
            # The dead are succeeded at once, or only when nobody is left. A file has one worker.
            pages = int(rng.integers(0, 2) * rng.integers(1, _PAGES + 1)) if _is_file(store) else 0
            if not workers.running or rng.random() < 0.5:
                workers.fill(n, pages)
            process = int(rng.choice(workers.running))
            if pages:
                died = workers.wait(process) == -signal.SIGXFSZ
                at = time.monotonic()
            else:
                _wait_for(witness, workers, rng)
                # It does nothing more from here on, though the system takes its time to clear it away.
                at = time.monotonic()
                died = not workers.finished and workers.kill(process)
            if died:
                kills -= 1
                stored = witness.stored(process)
                yield Kill(process, bool(pages), at, time.monotonic(), stored)
                witness.bury(process)
        if not workers.finished:
            workers.fill(1 if workers.running else n)
        while workers.running:
            time.sleep(0.005)
            workers.reap()
    finally:
        workers.end()


def _serve() -> None:
    """Take orders, one a line, and answer each with a line a kill and an empty one."""
    experiment = load_experiment(SPEC)
    # Else the first full collection of each fork copies all the memory it shares with this process, in which time
    # nothing else runs there.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        for kill in _supervise(experiment, *json.loads(line)):
            print(json.dumps([kill.process, kill.in_write, kill.at, kill.read_at, sorted(kill.stored)]), flush=True)
        print(flush=True)


class Supervisor:
    """Kills sweeps in a process of its own, for the test process has threads and may not fork."""

    def __init__(self, process: subprocess.Popen[str], errors: Any) -> None:
        self._process = process
        self._errors = errors

    def kill_over_and_over(self, kind: Kind, store: str, log: Path, kills: int, seed: int) -> list[Kill]:
        """Carry the sweep out into an empty store, with up to `kills` deaths, until it is complete."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([store, str(log), kind.workers, kills, seed]), file=self._process.stdin, flush=True)
        found = []
        for line in iter(self._process.stdout.readline, "\n"):
            if not line:
                self._process.wait()
                self._errors.seek(0)
                raise AssertionError(self._errors.read())
            process, in_write, at, read_at, stored = json.loads(line)
            found.append(Kill(process, in_write, at, read_at, frozenset(stored)))
        return found


@contextmanager
def supervisor() -> Iterator[Supervisor]:
    """A supervisor while the block lasts."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "verification.durability._killing"],
            cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        # Leaving the block closes its input, which ends it.
        yield Supervisor(process, errors)


# -- what comes of it ----------------------------------------------------------------------------------------


def _logged(log: Path) -> Iterator[tuple[int, str, int, float]]:
    for line in log.read_text(encoding="ascii").splitlines():
        process, what, seed, at = line.split()
        yield int(process), what, int(seed), float(at)


def check(log: Path, kills: list[Kill]) -> Figures:
    """Hold the model's log against the store after every kill.

    Raises
    ------
    AssertionError
        If a call in the store was asked again, a call was asked again that a live worker had asked, a reply older
        than promised was lost, or replies were kept out of the order of their arrival.
    """
    asked: dict[int, list[tuple[float, int]]] = {}
    answered: dict[int, dict[int, float]] = {}
    ticked: dict[int, list[float]] = {}
    for process, what, seed, at in _logged(log):
        if what == "asked":
            asked.setdefault(seed, []).append((at, process))
        elif what == "answered":
            answered.setdefault(process, {})[seed] = at
        else:
            ticked.setdefault(process, []).append(at)
    deaths = {kill.process: kill for kill in kills}
    assert len(deaths) == len(kills), "two processes had one number"
    assert len(asked) == CALLS
    for seed, times in asked.items():
        for (_, process), (again_at, _) in pairwise(times):
            death = deaths.get(process)
            assert death is not None, "a call was asked again that a live worker had asked"
            assert death.at < again_at, "a call was asked again before its worker had died"
            assert seed not in death.stored, "a call in the store after a kill was paid for again"
    lost = in_flight = 0
    oldest = oldest_let_run = 0.0
    for kill in kills:
        latest = {seed: max(times)[0] for seed, times in asked.items()}
        assert all(latest[seed] < kill.read_at for seed in kill.stored), "a call in the store was paid for again"
        mine = answered.get(kill.process, {})
        gone = [seed for seed in mine if seed not in kill.stored]
        kept = [seed for seed in mine if seed in kill.stored]
        assert [*kept, *gone] == list(mine), "replies were kept out of the order of their arrival"
        if gone:
            since = mine[gone[0]]
            age = kill.at - since
            let_run = min(age, _TICK_S * (1 + sum(since < at for at in ticked.get(kill.process, []))))
            assert let_run < PROMISED_S, f"a reply was lost {let_run:.3f} s ({age:.3f} s in all) after its arrival"
            oldest, oldest_let_run = max(oldest, age), max(oldest_let_run, let_run)
            lost += len(gone)
        in_flight += sum(process == kill.process and seed not in mine for seed in asked for _, process in asked[seed])
    n_asked = sum(map(len, asked.values()))
    return Figures(
        len(kills),
        sum(kill.in_write for kill in kills),
        n_asked,
        n_asked - CALLS,
        lost,
        in_flight,
        oldest,
        oldest_let_run,
    )


def undisturbed(folder: Path) -> Results:
    """What the sweep leads to when one process carries it out over SQLite."""
    summary, whole = carry_out(SPEC, str(folder / "whole.sqlite"))
    assert summary.made == CALLS
    return whole


def study(supervisor: Supervisor, kind: Kind, folder: Path, kills: int, whole: Results) -> Figures:
    """Kill sweeps, ten times each at most, until there have been `kills` deaths; each must end as if undisturbed."""
    figures = Figures()
    sweeps = 0
    while figures.kills < kills:
        name = f"{kind.name}-{sweeps}"
        store, log = kind.address(name), folder / f"{name}.log"
        with reading(store, folder / f"{name}.notes") as reader:
            found = supervisor.kill_over_and_over(kind, store, log, min(_PER_STORE, kills - figures.kills), seed=sweeps)
            read = reader.end()
        figures += check(log, found)
        figures += Figures(read=check_reading(read, store))
        results = loaded(store)
        assert set(results.runs["status"]) == {"complete"}
        assert_same(results, whole)
        sweeps += 1
    return figures


def describe(kind: Kind, figures: Figures) -> str:
    """One line for people."""
    return (
        f"{kind.name}: {figures.kills} kills, {figures.in_writes} of them at a drawn write, {figures.asked} calls "
        f"asked, {figures.repeated} of them again, none of which was in the store; {figures.in_flight} were in flight, "
        f"{figures.lost} replies had arrived and were lost, the oldest {figures.oldest_lost_s:.3f} s old, "
        f"{figures.oldest_let_run_s:.3f} s without those in which its process was not let run (bar {PROMISED_S} s); "
        f"tables equal; a reader saw all {figures.read} rows once and in order"
    )


if __name__ == "__main__":
    _serve()
