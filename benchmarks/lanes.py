"""What calls through batches cost this machine beside calls at once, and how many rounds a study takes.

A provider of OpenAI's dialect, in a process of its own, answers as soon as it is asked: the figures are the package's
own and say nothing about any provider's queue. (a) 2,000 runs of four agents, through batches, with all runs open at
once, and by calls at once: rounds, time, computing and memory of the client. (b) 40 runs of ten agents, without and
with refusals: rounds beside the longest chain of calls, and money beside the list price. ``--profile`` prints where the
time of (a) goes on the event loop. docs/images/half_price_frontier.py simulates how long real queues take. A missed bar
makes the exit code 1.

Run, from the top of the checkout: python -m benchmarks.lanes [--quick] [--profile]
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.foundation import background
from opinionsim.lanes import Pace
from opinionsim.running import Invocation, under_way

#: Share of the computing of a call at once that a call through a batch may take.
BAR = 1.5
#: Rounds that a study may take beyond its longest chain of calls, without and with refusals.
BEYOND, BEYOND_REFUSED = 2, 3
#: Share of replies that refuse.
REFUSED = 0.05
#: Times of batches where the provider answers as soon as it is asked.
PACE = Pace(settle_s=0.5, look_s=0.1, slowest_look_s=0.5)
#: Functions that a profile lists.
_LISTED = 40
_BYTES_IN_MAXRSS = 1 if sys.platform == "darwin" else 1024
_MODEL = "openai:gpt-4o-mini"
_PRICES = f"""
date: 2026-11-29
currency: USD
per: 1000000
lanes: {{"{_MODEL}": {{batch: {{factor: 0.5, date: 2026-11-29, source: an example}}}}}}
models: {{"{_MODEL}": {{input: 1, output: 4}}}}
"""


@contextlib.contextmanager
def provider(refuse: float = 0.0) -> Iterator[str]:
    """The address of a provider in a process of its own."""
    command = [sys.executable, "-m", "tests.support.batches", "--refuse", str(refuse)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def sold(address: str) -> dict[str, Any]:
    """What the provider has sold so far."""
    with urllib.request.urlopen(f"{address}/control/counts") as answer:  # noqa: S310 - loopback
        counts: dict[str, Any] = json.load(answer)
        return counts


def spec(address: str, lane: str, size: int, steps: int, runs: int) -> dict[str, Any]:
    """Dyads of agents whose model answers at `address`."""
    return {
        "name": f"lanes_{runs}",
        "seed": 1,
        "replicates": runs,
        "population": {"size": size},
        "topic": {"name": "global-warming"},
        "interaction": {"kind": "dyadic", "steps": steps},
        "model": {"name": _MODEL, "options": {"base_url": f"{address}/openai/v1"}},
        "measurement": {"classifier": "lexicon", "texts": ["report", "post"]},
        "execution": {"lane": lane},
    }


def sweep(given: dict[str, Any]) -> int:
    """Carry out a study, and return how many replies it took."""
    with tempfile.TemporaryDirectory() as folder:
        prices = Path(folder) / "prices.yaml"
        prices.write_text(_PRICES, encoding="utf-8")
        experiment = osim.load_experiment(given, {"execution.prices": str(prices)})
        with under_way(Invocation(experiment, f"sqlite:///{folder}/lanes.sqlite", pace=PACE)) as (_, future):
            summary = future.result()
    if summary.complete < summary.total:
        raise SystemExit(f"runs failed: {set(summary.errors.values())}")
    return summary.made


class Loop:
    """Computing on the package's event loop, which other threads take no part in."""

    def __init__(self) -> None:
        # Time in which other threads hold the interpreter is no time of the function that waits for it.
        self._profiler = cProfile.Profile(time.thread_time)

    def seconds(self) -> float:
        """Seconds of computing so far."""

        async def read() -> float:
            return time.thread_time()

        return background.run(read())

    def profile(self, on: bool) -> None:
        """Begin or end to look at every function."""

        async def switch() -> None:
            (self._profiler.enable if on else self._profiler.disable)()

        background.run(switch())

    def tell(self) -> None:
        """Write the functions that took longest, by themselves and with all that they called."""
        for order in ("tottime", "cumulative"):
            pstats.Stats(self._profiler, stream=sys.stderr).sort_stats(order).print_stats(_LISTED)


def measured(address: str, lane: str, runs: int, profile: bool) -> dict[str, float]:
    """Carry out the study of (a) through a lane in this process, and say what it took."""
    sweep(spec(address, lane, 4, 3, 20))  # what is done once in a process is done
    # Only some texts need this model, of 100 MB: it must not count, whether or not the first sweep had one of them.
    import_module("py3langid").rank("")
    loop, before, peak = Loop(), sold(address)["creates"], _peak()
    if profile:
        loop.profile(True)
    passed, computed, on_loop = time.perf_counter(), time.process_time(), loop.seconds()
    calls = sweep(spec(address, lane, 4, 3, runs))
    passed, computed, on_loop = (
        time.perf_counter() - passed,
        time.process_time() - computed,
        loop.seconds() - on_loop,
    )
    if profile:
        loop.profile(False)
        loop.tell()
    return {
        "calls": calls,
        "rounds": sold(address)["creates"] - before,
        "wall_s": passed,
        "cpu_s": computed,
        "loop_s": on_loop,
        "peak": _peak(),
        "added": _peak() - peak,
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_IN_MAXRSS


def compare(runs: int, profile: bool) -> bool:
    """Print (a) for both lanes, each in a process of its own; whether the bar is met."""
    cpu_s = {}
    for lane in ("now", "batch"):
        with provider() as address:
            command = [sys.executable, "-m", "benchmarks.lanes", "--one", address, lane, str(runs)]
            done = subprocess.run(command + ["--profile"] * profile, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        calls, cpu_s[lane] = found["calls"], found["cpu_s"] / found["calls"]
        rounds = f"{found['rounds']} rounds, " if lane == "batch" else ""
        print(
            f"{lane}, {runs:,} runs, N=4, T=3, {calls:,} calls: {rounds}{found['wall_s']:.1f} s; computing "
            f"{1e3 * cpu_s[lane]:.2f} ms a call, of these {1e3 * found['loop_s'] / calls:.2f} on the event loop; peak "
            f"{found['peak'] / 1e6:.0f} MB, {found['added'] / 1e3 / calls:.1f} kB a call"
        )
    ratio = cpu_s["batch"] / cpu_s["now"]
    print(f"computing of a call through a batch: {ratio:.2f} x that of a call at once (bar {BAR})")
    return profile or ratio <= BAR


def rounds(replicates: int, refuse: float) -> bool:
    """Print (b): rounds and money of a study; whether the bar is met."""
    beyond = BEYOND_REFUSED if refuse else BEYOND
    with provider(refuse) as address:
        given = spec(address, "batch", 10, 100, replicates) | {"sweep": {"topic.framing": ["falsehood", "truth"]}}
        depth = osim.plan(osim.load_experiment(given, {"execution.lane": "now"})).longest_path
        assert depth is not None
        began = time.perf_counter()
        sweep(given)
        seconds, found = time.perf_counter() - began, sold(address)
    in_batches, at_once = found["cost_batch"], found["cost"] - found["cost_batch"]
    listed = 2 * in_batches + at_once
    print(
        f"{2 * replicates} runs, N=10, T=100, {refuse:.0%} refused: {found['creates']} rounds, longest chain {depth} "
        f"(bar {depth} + {beyond}), {seconds:.1f} s; {found['bought']:,} calls in batches at {in_batches / listed:.3f} "
        f"of the list price of all, {found['at_once']:,} at once at {at_once / listed:.3f}, in all "
        f"{found['cost'] / listed:.3f}; {len(found['ids_twice'])} bought twice"
    )
    return int(found["creates"]) <= depth + beyond and not found["ids_twice"]


def main() -> None:
    """Print every figure beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs of (a), and four runs in (b)")
    parser.add_argument("--profile", action="store_true", help="only (a), with a profile of the event loop")
    parser.add_argument("--one", nargs=3, metavar=("ADDRESS", "LANE", "RUNS"), help="(a) through a lane, as JSON")
    options = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "sk-of-nobody"
    if options.one:
        address, lane, runs = options.one
        print(json.dumps(measured(address, lane, int(runs), options.profile)))
        return
    met = [compare(200 if options.quick else 2000, options.profile)]
    if not options.profile:
        met += [rounds(2 if options.quick else 20, refuse) for refuse in (0.0, REFUSED)]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
