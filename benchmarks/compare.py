"""What a comparison costs: passes over the turns of runs, and one condition with its trust report.

The condition has ten runs of ten scripted agents over 60 meetings, and the usual candidates. A pass is the best of
ten; CPU seconds halved are the time of the condition on two idle cores. Friedkin-Johnsen, whose agents remember where
they began, is timed by itself with eight runs of 50 meetings.
Run: python benchmarks/compare.py
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import opinionsim as osim
from opinionsim.comparison import compare
from opinionsim.comparison._candidates import Candidate, named
from opinionsim.comparison._filter import draw, predict
from opinionsim.comparison._grid import Grid, misreading
from opinionsim.comparison._update_arrays import Updates

PASS_EVENTS, FIXED_EVENTS, CONDITION_S, CONDITION_GB, START_CPU_S = 2e5, 2e6, 240.0, 1.0, 60.0
RUNS, AGENTS, STEPS = 20, 10, 100
EXPERIMENT = {
    "name": "compare-benchmark",
    "seed": 2025,
    "replicates": 10,
    "population": {"personas": "chuang2024", "size": 10, "initial_opinions": "uniform"},
    "topic": {"name": "flat-earth", "framing": "falsehood"},
    "interaction": {"kind": "dyadic", "steps": 60},
    "measurement": {"texts": ["post", "report"]},
    "model": {"name": "scripted"},
}

FEW = {"replicates": 8, "interaction": {"kind": "dyadic", "steps": 50}}


def _meetings() -> Updates:
    rng = np.random.default_rng(20261125)
    pairs = np.array([rng.choice(AGENTS, 2, replace=False) for _ in range(RUNS * STEPS)])
    size = 2 * len(pairs)
    return Updates(
        cell="cell",
        evidence="model",
        points=np.arange(-2.0, 3.0),
        exact=False,
        run_ids=tuple(map(str, range(RUNS))),
        blocks=tuple(map(str, range(RUNS))),
        n_agents=np.full(RUNS, AGENTS),
        first=np.arange(RUNS + 1) * 2 * STEPS,
        turn=np.tile(np.arange(2 * STEPS), RUNS),
        step=np.tile(np.repeat(np.arange(1, STEPS + 1), 2), RUNS),
        agent=pairs.ravel(),
        first_read=np.concatenate([[0], np.cumsum(np.tile([0, 1], len(pairs)))]),
        reads=np.arange(0, size, 2),
        value=np.zeros(size),
    )


def _events_per_second(candidate: Candidate, values: dict[str, float]) -> float:
    """Updates a second of one likelihood pass, ratings a tenth of which are wrong."""
    study, grid, misread = _meetings(), Grid(np.arange(-2.0, 3.0)), misreading(5, 0.1, 0.8)
    rule, prior = candidate.rule({"jump": 0.01, "stay": 0.05, **values}, grid), np.full(len(grid), 1 / len(grid))
    study = study.rated(draw(study, grid, prior, rule, misread, np.random.default_rng(1))[1])
    seconds = []
    for _ in range(10):
        begun = time.process_time()
        for _ in range(5):
            predict(study, grid, prior, rule, misread)
        seconds.append((time.process_time() - begun) / 5)
    return RUNS * STEPS / min(seconds)


def main() -> int:
    """Print the figures; 1 if one of them misses its bar."""
    missed = 0
    deffuant = _events_per_second(named("deffuant")[0], {"epsilon": 1.2, "mu": 0.3})
    linear = _events_per_second(named("degroot")[0], {"self_weight": 3.0})
    start = _events_per_second(named("friedkin-johnsen")[0], {"self_weight": 1.0, "susceptibility": 0.6})
    fixed = _events_per_second(Candidate("attractor"), {"pull": 0.1, "towards": 1.0})
    print(f"one pass, Deffuant: {deffuant:.3g} updates/s (bar {PASS_EVENTS:.0e})")
    print(f"one pass, DeGroot: {linear:.3g} updates/s; Friedkin-Johnsen, with the start: {start:.3g} updates/s")
    print(f"one pass in which nothing that is read matters: {fixed:.3g} updates/s (bar {FIXED_EVENTS:.0e})")
    missed += deffuant < PASS_EVENTS or fixed < FIXED_EVENTS
    with tempfile.TemporaryDirectory() as folder:
        few = osim.run(osim.load_experiment({**EXPERIMENT, "name": "few", **FEW}), Path(folder) / "few.sqlite")
        begun = time.process_time()
        compare(few, "friedkin-johnsen", threads=2)
        going_back = time.process_time() - begun
        results = osim.run(osim.load_experiment(EXPERIMENT), Path(folder) / "store.sqlite")
        begun, wall = time.process_time(), time.perf_counter()
        found = compare(results, threads=2)
        seconds, wall = time.process_time() - begun, time.perf_counter() - wall
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(found.findings["statement"].iloc[0])
    print(
        f"one condition: {seconds:.0f} CPU s, {seconds / 2:.0f} s on two cores (bar {CONDITION_S:g}; {wall:.0f} s here)"
    )
    print(f"Friedkin-Johnsen alone, 400 updates: {going_back:.0f} CPU s (bar {START_CPU_S:g})")
    missed += going_back > START_CPU_S
    print(f"peak memory: {gigabytes:.2f} GB (bar {CONDITION_GB:g})")
    missed += seconds / 2 > CONDITION_S or gigabytes > CONDITION_GB
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
