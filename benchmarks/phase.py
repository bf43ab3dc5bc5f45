"""A phase diagram of Deffuant's model, until nothing can change any more: time, memory, threads, and a kill.

20 values of epsilon by 20 of mu, 100 replicates, 10,000 agents on the complete graph. Time is CPU time on one thread,
memory the largest of the whole process with its imports. The bare loop carries the same runs through the same sweeps
by the same kernel, without checks, measures and bookkeeping, on a part of the points; the least of several rounds that
take turns, but for the first. Two threads are compared by the
clock. The sweep that is killed runs into a store at the command line, is killed once a tenth of it is there, and is
carried on; its rows are compared with those of a sweep in memory. What it costs to look for the end of runs is that of
runs until it, over the same runs for as many steps as they took, of models and networks of several kinds. A missed bar
makes the exit code 1.

Run: python benchmarks/phase.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import opinionsim as osim
from opinionsim.classic import Batch, Setup, find_model, set_up
from opinionsim.networks import Network, build_network
from opinionsim.opinions import draw_initial

_METRICS = ("effective_clusters", "diversity")
_ROUNDS = 6
_RUNS_UNTIL = 10
#: Runs until an event: model, agents, network, event, and settings.
_UNTIL: tuple[tuple[str, int, Any, str, dict[str, Any]], ...] = (
    ("voter", 1000, None, "consensus", {}),
    ("voter", 400, {"kind": "watts-strogatz", "k": 6, "p": 0.2}, "frozen", {}),
    ("majority", 10_001, None, "frozen", {}),
    ("q-voter", 1000, None, "consensus", {"q": 3, "independence": 0.02}),
    ("deffuant", 1000, None, "frozen", {}),
    ("deffuant", 10_000, None, "frozen", {"epsilon": 0.1}),
    ("deffuant", 1000, {"kind": "watts-strogatz", "k": 10, "p": 0.1}, "frozen", {}),
    ("hegselmann-krause", 300, None, "frozen", {"order": "random"}),
    ("axelrod", 400, {"kind": "lattice"}, "frozen", {}),
    ("kozma-barrat", 500, {"kind": "erdos-renyi", "p": 0.02}, "frozen", {}),
    ("holme-newman", 500, {"kind": "erdos-renyi", "p": 0.02}, "frozen", {}),
)
#: Runs of the sweep that is killed; several seconds.
_KILLED_OF = 1800
_BYTES_IN_MAXRSS = 1 if sys.platform == "darwin" else 1024


def _grid(quick: bool) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Axes, and what does not vary."""
    number = 4 if quick else 20
    axes = {
        "epsilon": np.linspace(0.05, 0.5, number).round(6).tolist(),
        "mu": np.linspace(0.05, 0.5, number).round(6).tolist(),
    }
    common = {"n": 10_000, "steps": 20_000, "until": "frozen", "seed": 1, "metrics": _METRICS}
    return axes, {**common, "replicates": 6 if quick else 100}


def _told(name: str, value: float, unit: str, bar: str, met: bool) -> bool:
    print(f"  {name:<44} {value:>9.3g} {unit:<8} {bar:<12} {'met' if met else 'MISSED'}", flush=True)
    return met


def _bare(runs: pd.DataFrame) -> float:
    """CPU seconds of the same sweeps without anything around them."""
    spent = 0.0
    for (epsilon, mu), part in runs.groupby(["epsilon", "mu"]):
        setup = set_up(find_model("deffuant"), Network.of(10_000), settings={"epsilon": epsilon, "mu": mu})
        for replicate, steps in zip(part["replicate"], part["time"], strict=True):
            start = np.random.default_rng(int(replicate)).random((1, 10_000))
            run = Batch(setup, start, 1, [int(replicate)])
            begun = time.process_time()
            run.advance(int(steps))
            spent += time.process_time() - begun
    return spent


def _start(setup: Setup, seed: int) -> np.ndarray:
    """Opinions at the start of a run, (1, N) or (1, N, F)."""
    rng, n = np.random.default_rng(seed), setup.network.n
    if setup.model.states == "traits":
        return rng.integers(0, setup.p.traits, (1, n, setup.p.features)).astype(float)
    discrete = setup.model.kind == "discrete"
    spec = {"kind": "levels", "count": 20} if setup.model.states == "copied" and setup.model.ties else "uniform"
    return draw_initial(spec, rng.random(n), setup.range, discrete=discrete)[None]


def _cost_of_until(model: str, n: int, network: Any, event: str, settings: dict[str, Any]) -> float:
    """CPU time of runs until an event, over that of the same runs for as many steps as they took."""
    joined = build_network(network or "complete", n, 1)
    setups = [
        set_up(find_model(model), joined, settings=settings, until=until, isolates="keep") for until in (event, None)
    ]
    spent = np.zeros((2, _ROUNDS, _RUNS_UNTIL))
    for run in range(_RUNS_UNTIL):
        start = _start(setups[0], run)
        for turn in range(_ROUNDS):
            steps = 100_000
            for way, setup in enumerate(setups):
                batch = Batch(setup, start, 1, [run])
                begun = time.process_time()
                found = batch.advance(steps)
                spent[way, turn, run] = time.process_time() - begun
                steps = int(found[0])
    # What is compiled is in the first round of the first run.
    until, bare = spent.min(axis=1).sum(axis=1)
    return float(until / bare)


def _killed(folder: Path) -> bool:
    """Whether a sweep that was killed and carried on has the rows of one that was not."""
    store, axes = folder / "phase.sqlite", {"epsilon": [0.1, 0.2, 0.3], "mu": [0.1, 0.3, 0.5]}
    command = [sys.executable, "-m", "opinionsim", "abm", "deffuant", "--agents", "10000", "--steps", "20000",
               "--until", "frozen", "--seed", "1", "--replicates", str(_KILLED_OF // 9)]  # fmt: skip
    command += ["--store", str(store)]
    command += [word for name, values in axes.items() for word in ("--over", f"{name}={values}")]
    command += [word for name in _METRICS for word in ("--metric", name)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and _stored(store) < _KILLED_OF // 10:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = _stored(store)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"  killed with {before} of {_KILLED_OF} runs in the store")
    found = osim.load(f"sqlite:///{store}").units
    whole = osim.classic.sweep(
        "deffuant", axes, n=10_000, steps=20_000, until="frozen", seed=1, replicates=_KILLED_OF // 9, metrics=_METRICS
    )
    keys, columns = ["epsilon", "mu", "replicate"], [*_METRICS, "time", "stopped"]
    one, other = (each.sort_values(keys)[columns].reset_index(drop=True) for each in (found, whole))
    return 0 < before < _KILLED_OF and all((one[name].to_numpy() == other[name].to_numpy()).all() for name in columns)


def _stored(store: Path) -> int:
    """Runs in a store."""
    if not store.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
            return int(opened.execute("SELECT count(*) FROM units").fetchone()[0])
    except sqlite3.Error:  # not made yet
        return 0


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few values and replicates")
    quick = parser.parse_args().quick
    axes, common = _grid(quick)
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors; epsilon x mu x replicates: "
          f"{len(axes['epsilon'])} x {len(axes['mu'])} x {common['replicates']}")  # fmt: skip
    osim.classic.sweep("deffuant", {"epsilon": [0.5]}, **{**common, "replicates": 1})  # compiled beforehand
    begun = time.process_time()
    runs = osim.classic.sweep("deffuant", axes, threads=1, **common)
    spent = time.process_time() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_IN_MAXRSS / 1e6
    met = [
        _told("CPU time", spent, "s", "<= 300", spent <= 300),
        _told("memory", memory, "MB", "< 400", memory < 400),
        _told("runs at rest", float(runs["stopped"].mean()), "share", "= 1", bool(runs["stopped"].all())),
    ]
    part = {"epsilon": axes["epsilon"][::3], "mu": axes["mu"][::3]}
    few = {**common, "replicates": min(10, common["replicates"])}
    with_all, bare = [], []
    for _ in range(_ROUNDS):
        begun = time.process_time()
        some = osim.classic.sweep("deffuant", part, threads=1, **few)
        with_all.append(time.process_time() - begun)
        bare.append(_bare(some))
    ratio = min(bare[1:]) / min(with_all[1:])
    met.append(_told("bare loop of the same sweeps over the sweep", ratio, "", ">= 0.85", ratio >= 0.85))
    seconds = []
    for threads in (1, 2):
        begun = time.perf_counter()
        osim.classic.sweep("deffuant", part, threads=threads, **few)
        seconds.append(time.perf_counter() - begun)
    faster = seconds[0] / seconds[1]
    met.append(_told("two threads beside one", faster, "x", ">= 1.8", faster >= 1.8))
    for model, n, network, event, settings in _UNTIL:
        cost = _cost_of_until(model, n, network, event, settings)
        where = "complete" if network is None else network["kind"]
        met.append(_told(f"{model}, {n}, {where}: until {event}", cost, "x", "<= 1.1", cost <= 1.1))
    with tempfile.TemporaryDirectory() as folder:
        equal = _killed(Path(folder))
    met.append(_told("killed and carried on, equal rows", float(equal), "", "= 1", equal))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
