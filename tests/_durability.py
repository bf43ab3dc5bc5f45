"""A sweep that is killed over and over, and what its stores and the model's own log say about it.

Run as a program, this module supervises: it forks a process that carries the sweep out, kills it after a drawn
number of durable calls, looks at the store, and starts again until nothing is left to do. Forking saves the imports
of each start. The chat model writes to a log what it is asked and what it answers, so that nothing rests on the
word of the store.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import PrivateAttr

from opinionsim.experiments import Experiment, load_experiment, under_way
from opinionsim.llm import ScriptedChatModel
from tests._running import assert_same, carry_out, loaded

SPEC: dict[str, Any] = {
    "name": "durability",
    "seed": 3,
    "replicates": 4,
    "population": {"size": 5},
    "topic": {"name": "flat-earth"},
    "interaction": {"kind": "dyadic", "steps": 18},
    "measurement": {"texts": ["report"], "probe": {"after": 1}},
    "execution": {"max_concurrency": 6},
    "sweep": {"cognition.memory": ["cumulative", "reflective"]},
}
#: Calls the sweep makes when nobody disturbs it.
CALLS = 4 * (36 + 5) + 4 * (72 + 5)
_PER_STORE = 10
#: How long after its arrival a reply may still be lost, in seconds.
PROMISED_S = 0.2


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

    def _write(self, what: str, seed: int) -> None:
        os.write(self._log, f"{os.getpid()} {what} {seed} {time.monotonic()!r}\n".encode())


@dataclass(frozen=True)
class Kill:
    """One death of the process.

    Attributes
    ----------
    process : int
        Its number.
    at : float
        When it had died, on the monotonic clock.
    stored : frozenset of int
        Seeds of the calls in the store right after.
    """

    process: int
    at: float
    stored: frozenset[int]


@dataclass(frozen=True)
class Figures:
    """What a killed sweep has shown.

    Attributes
    ----------
    kills : int
        Deaths of the process.
    lost : int
        Replies that had arrived and were not in the store after the kill.
    in_flight : int
        Calls that were unanswered at a kill.
    oldest_lost_s : float
        Longest time between the arrival of a lost reply and the kill; 0 when none was lost.
    """

    kills: int
    lost: int
    in_flight: int
    oldest_lost_s: float


# -- the supervisor ------------------------------------------------------------------------------------------


def _carry_out(experiment: Experiment, store: str, log: Path) -> None:
    """The process that is killed."""
    model = _LoggingModel()
    model._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with under_way(experiment, store, chat_model=model) as (_, future):
        future.result()


def _stored(path: Path) -> frozenset[int]:
    """Seeds of the calls in a store, read without changing what a crash has left."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return frozenset(seed for (seed,) in connection.execute("SELECT seed FROM calls"))
    except sqlite3.OperationalError:
        # The process has not got as far as creating the tables.
        return frozenset()


def _ended(process: int) -> int | None:
    """Exit status of a child that is over; None while it runs."""
    done, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def _supervise(store: Path, kills: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    experiment = load_experiment(SPEC)
    while True:
        process = os.fork()
        if process == 0:
            _carry_out(experiment, str(store), store.with_suffix(".log"))
            os._exit(0)
        wanted = len(_stored(store)) + int(rng.integers(1, 30)) if kills else CALLS + 1
        # The count moves with each commit; the kill must meet any moment between commits, however rare they are.
        pause = float(rng.uniform(0.0, 0.3))
        while (status := _ended(process)) is None and len(_stored(store)) < wanted:
            time.sleep(0.002)
        if status is not None:
            if status:
                sys.exit(f"the sweep ended with status {status}")
            return
        time.sleep(pause)
        os.kill(process, signal.SIGKILL)
        _, raw = os.waitpid(process, 0)
        if os.waitstatus_to_exitcode(raw) == 0:
            return
        kills -= 1
        print(json.dumps([process, time.monotonic(), sorted(_stored(store))]), flush=True)


# -- what comes of it ----------------------------------------------------------------------------------------


def kill_over_and_over(store: Path, kills: int, seed: int) -> list[Kill]:
    """Carry the sweep out into a new store, killing it up to `kills` times, until it is complete."""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests._durability", str(store), str(kills), str(seed)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [Kill(process, at, frozenset(stored)) for process, at, stored in rows]


def _logged(log: Path) -> Iterator[tuple[int, str, int, float]]:
    for line in log.read_text(encoding="ascii").splitlines():
        process, what, seed, at = line.split()
        yield int(process), what, int(seed), float(at)


def check(store: Path, kills: list[Kill]) -> Figures:
    """Hold the model's log against the store after every kill.

    Raises
    ------
    AssertionError
        If a call in the store was asked again, a reply older than promised was lost, or replies were kept out of
        the order of their arrival.
    """
    asked: dict[int, list[int]] = {}
    answered: dict[int, dict[int, float]] = {}
    for process, what, seed, at in _logged(store.with_suffix(".log")):
        if what == "asked":
            asked.setdefault(process, []).append(seed)
        else:
            answered.setdefault(process, {})[seed] = at
    processes = list(asked)
    assert all(len(seeds) == len(set(seeds)) for seeds in asked.values()), "one process asked a call twice"
    assert len({seed for seeds in asked.values() for seed in seeds}) == CALLS
    lost = in_flight = 0
    oldest = 0.0
    for kill in kills:
        mine = answered.get(kill.process, {})
        later = [
            p for p in processes if kill.process in processes and processes.index(p) > processes.index(kill.process)
        ]
        again = {seed for process in later for seed in asked[process]}
        assert not kill.stored & again, "a call in the store after a kill was paid for again"
        gone = [seed for seed in mine if seed not in kill.stored]
        kept = [seed for seed in mine if seed in kill.stored]
        assert [*kept, *gone] == list(mine), "replies were kept out of the order of their arrival"
        ages = [kill.at - mine[seed] for seed in gone]
        assert all(age < PROMISED_S for age in ages), f"a reply was lost {max(ages):.3f} s after its arrival"
        oldest = max([oldest, *ages])
        lost += len(gone)
        unanswered = set(asked.get(kill.process, [])) - set(mine)
        in_flight += len(unanswered)
        for seed in set(asked.get(kill.process, [])) & again:
            assert seed in unanswered or seed in gone, "a call was asked twice for no reason"
    return Figures(len(kills), lost, in_flight, oldest)


def study(folder: Path, kills: int) -> list[Figures]:
    """Kill sweeps, ten times each at most, until there have been `kills` deaths; each must end as if undisturbed.

    Returns
    -------
    list of Figures
        One a sweep.
    """
    summary, whole = carry_out(SPEC, str(folder / "whole.sqlite"))
    assert summary.made == CALLS
    figures: list[Figures] = []
    while (left := kills - sum(each.kills for each in figures)) > 0:
        store = folder / f"killed-{len(figures)}.sqlite"
        figures.append(check(store, kill_over_and_over(store, min(_PER_STORE, left), seed=len(figures))))
        assert_same(loaded(str(store)), whole)
    return figures


if __name__ == "__main__":
    _supervise(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
