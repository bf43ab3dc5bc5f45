"""What statistics of finished runs cost.

Frames of 180 runs are made from a generator: 15 topics, two framings, three strengths of confirmation bias and two
memories, each with a bias and a diversity. Timed are the table of their conditions, that of their contrasts, and 10,000
resamples of the mean and of the median of D's contrast, strong less no confirmation bias; the bar is 5 s. Then `show`,
`table` and `plot` of a store of 1,000 calls are timed from the shell: by the processor, which other work on the machine
does not slow, and by the clock; the bar is 1.5 s each.
Run: python benchmarks/results.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

import opinionsim as osim
from opinionsim.analysis import contrast_tables, differences, estimate, unit_frame
from opinionsim.foundation.streams import stream
from opinionsim.specification import AnalysisSpec, ContrastSpec

CONDITIONS = ("framing", "confirmation_bias", "memory")
LEVELS = (("falsehood", "truth"), ("none", "weak", "strong"), ("cumulative", "reflective"))
RISES = ContrastSpec(measure="diversity", of="strong - none")
RESAMPLES, BAR_S = 10_000, 5.0
#: What is run for the store of 1,000 calls, the commands that read it, how often, and their bar.
CALLS = {"name": "calls", "interaction": {"kind": "dyadic", "network": "complete", "steps": 250}, "replicates": 1}
COMMANDS, REPEATS, SHELL_BAR_S = ("show", "table", "plot"), 5, 1.5


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and metrics of the design of the published tables."""
    draw = stream(1, "benchmark of results")
    rows = [
        {"run_id": f"r{number}", "cell": "/".join(levels), "topic": f"topic {topic}", "block": f"topic {topic}",
         "replicate": 0, "seed": 1, "status": "complete", "evidence": "model", "model": "a model", "n_agents": 10,
         "world": "closed", "interaction": "dyadic", "network": "complete", "steps": 100, "kind": "report",
         **dict(zip(CONDITIONS, levels, strict=True))}
        for number, (topic, levels) in enumerate(product(range(15), product(*LEVELS)))
    ]  # fmt: skip
    runs = pd.DataFrame(rows)
    rise = runs["confirmation_bias"].map({"none": 0.6, "weak": 0.8, "strong": 1.1})
    metrics = runs[["run_id", "cell", "kind", "evidence"]].assign(ddof=0, n_measured=10, share_0=1.0)
    found = {"bias": draw.normal(size=len(runs)), "diversity": rise + draw.normal(0, 0.3, len(runs))}
    metrics = metrics.assign(**found)
    return runs, metrics


def timed(what: str, work: Callable[[], Any]) -> Any:
    """The result of some work, whose time is printed."""
    begun = time.perf_counter()
    found = work()
    print(f"{what:48s} {time.perf_counter() - begun:7.3f} s")
    return found


def shell() -> None:
    """Time the commands that show a store."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/calls.sqlite"
        found = osim.run(osim.load_experiment("demo", CALLS), store)
        for command in COMMANDS:
            taken = []
            for _ in range(REPEATS):
                before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                subprocess.run([sys.executable, "-m", "opinionsim", command, store], check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                busy = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
                taken.append((busy, time.perf_counter() - begun))
            # The first compiles.
            busy, wall = (statistics.median(each) for each in zip(*taken[1:], strict=True))
            said = "holds" if busy < SHELL_BAR_S else "is missed"
            print(f"{command} of {len(found.calls):,} calls: {busy:.2f} s of the processor, {wall:.2f} s by the clock; "
                  f"the bar of {SHELL_BAR_S:g} s {said}")  # fmt: skip


def main() -> None:
    """Time all of it."""
    runs, metrics = frames()
    analysis = AnalysisSpec(primary="D rises", smallest=0.1, contrasts={"D rises": RISES})
    units = timed("unit frame", lambda: unit_frame(runs, metrics))
    timed("table of contrasts", lambda: contrast_tables(runs, metrics, analysis))
    begun = time.perf_counter()
    found = differences(units, CONDITIONS, RISES)
    found_effect = estimate(found["topic"], found["block"], found["value"])
    print(f"{found_effect.mean:.3f} [{found_effect.low:.3f}, {found_effect.high:.3f}], {found_effect.units}")
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        by_topic = found.groupby("topic")["value"].mean()
        timed(
            f"{RESAMPLES:,} resamples of D's contrast, {name}",
            lambda own=by_topic, used=statistic: bootstrap((own,), used, n_resamples=RESAMPLES, method="BCa"),
        )
    taken = time.perf_counter() - begun
    print(f"D's contrast in all: {taken:.2f} s; the bar of {BAR_S:g} s {'holds' if taken < BAR_S else 'is missed'}")
    shell()


if __name__ == "__main__":
    main()
