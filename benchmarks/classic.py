"""Speed of the classic models beside their bars and the machine's own ceilings; peers.py has that of other packages.

Times are wall times, the best of several; where two are compared, they take turns, so that other work on the machine
meets both. Its load is printed first: on a machine that is not idle, figures are lower bounds, and of ratios the
median over the turns is printed too; --cpu-time leaves out the time that a thread waits for a core. Ceilings are
measured in the same run: random words and pairs drawn a second, reads of memory of the sizes that opinions and networks
take, memory that is written for the first time, and SciPy's matrix product. A missed bar makes the exit code 1.

What counts as one update: of Deffuant's model a pair that meets, whether or not it moves, of the voter model a listener
that copies, of the others an agent that takes its next opinion. A sweep is N of them.

Recording is measured three ways: into memory that is written for the first time, in double and in single precision,
and into memory that has been written before. Its price is that of moving 8 or 4 bytes an update to memory, which the
ceilings show; the bar is that of single precision (`dtype="float32"`).

The first use of a kernel compiles it; that of a few models is timed in processes of their own, by the processor.

Run: python benchmarks/classic.py [--quick] [--only SECTION] [--full] [--cpu-time] [--json FILE]
"""

# Kernels are untyped.
# mypy: disable-error-code="misc, no-any-return, no-untyped-call, no-untyped-def"

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import opinionsim as osim
from opinionsim.classic import Batch, Process, Setup, find_model, influence_matrix, set_up
from opinionsim.classic.kernels import fill, new_state, pair_drawer
from opinionsim.foundation.compilation import compiled
from opinionsim.networks import Network, build_network

SMALL, LARGE = 10_000, 1_000_000
#: A sparse network of mean degree 10.
SPARSE = {"kind": "watts-strogatz", "k": 10, "p": 0.1}
_BLOCK = 512
_BYTES_IN_MAXRSS = 1 if sys.platform == "darwin" else 1024


@dataclass
class Report:
    """Figures as they are printed, and as they are written to a file."""

    quick: bool
    full: bool
    clock: str = "perf_counter"
    rows: list[dict[str, Any]] = field(default_factory=list)
    section: str = ""

    def begin(self, section: str, title: str) -> None:
        """Head a section."""
        self.section = section
        print(f"\n{title}")

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        least: float | None = None,
        most: float | None = None,
        note: str = "",
    ) -> float:
        """Print one figure, beside its bar if it has one."""
        met = None
        bar = ""
        if least is not None:
            met, bar = value >= least, f"bar >= {least:.3g}"
        if most is not None:
            met, bar = value <= most, f"bar <= {most:.3g}"
        verdict = "" if met is None else f"  [{bar}: {'met' if met else 'MISSED'}]"
        print(f"  {name:58s} {value:10.3g} {unit}{verdict}" + (f"  {note}" if note else ""), flush=True)
        self.rows.append(
            {"section": self.section, "name": name, "value": value, "unit": unit, "at_least": least, "at_most": most,
             "met": met, "note": note}
        )  # fmt: skip
        return value

    def repeats(self, usual: int) -> int:
        """How often to measure."""
        return max(3, usual // 3) if self.quick else usual

    def best(self, work: Callable[[], object], repeats: int) -> float:
        """Seconds, the least of several."""
        return min(self.turns([work], repeats)[0])

    def turns(self, works: list[Callable[[], object]], repeats: int, clock: str | None = None) -> list[list[float]]:
        """Seconds of several pieces of work that take turns."""
        now = getattr(time, clock or self.clock)
        found: list[list[float]] = [[] for _ in works]
        for _ in range(repeats):
            for times, work in zip(found, works, strict=True):
                began = now()
                work()
                times.append(now() - began)
        return found


def _ratio(over: list[float], under: list[float]) -> tuple[float, str]:
    """Ratio of the best times, and in words the median of the ratios of turns."""
    turns = statistics.median(a / b for a, b in zip(over, under, strict=True))
    return min(over) / min(under), f"(median of turns {turns:.2f})"


def _process(model: str, network: Network, **settings: Any) -> Batch:
    """One run from uniform opinions, its kernel compiled."""
    found = find_model(model)
    setup = set_up(found, network, settings=settings)
    rng = np.random.default_rng(1)
    opinions = np.round(rng.random(network.n)) if found.kind == "discrete" else rng.uniform(*setup.range, network.n)
    process = Batch(setup, opinions[None], 1)
    process.advance(1)
    return process


def _rate(report: Report, process: Batch, seconds: float, repeats: int) -> float:
    """Updates a second, of sweeps without records between them that take about so many seconds."""
    once = report.best(lambda: process.advance(1), 2)
    sweeps = max(1, int(seconds / once))
    return sweeps * process.setup.events / report.best(lambda: process.advance(sweeps), repeats)


# -- what the machine can do ------------------------------------------------------------------------------


def _fill_words(state, words, blocks):
    for _ in range(blocks):
        fill(state, words)


def _drawing(setup: Setup) -> Callable[..., Any]:
    draw_pairs = pair_drawer(setup.variant())

    def draw(contacts, state, words, listeners, speakers, blocks):
        for _ in range(blocks):
            fill(state, words)
            draw_pairs(contacts, contacts.firsts, 0, words, listeners, speakers)

    return draw


def _chase(following, hops):
    place = np.uint32(0)
    for _ in range(hops):
        place = following[place]
    return place


def _gather(values, places):
    total = 0.0
    for place in places:
        total += values[place]
    return total


def _machine(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Machine code that is not kept on disk, so that it is that of the functions as they are."""
    from numba import njit

    compiled(lambda: None)  # makes the package's own functions known to the compiler
    return njit(nogil=True)(kernel)


def ceilings(report: Report) -> None:
    """Generator, memory, and the first touch of memory."""
    report.begin("ceilings", "What the machine can do, one thread")
    repeats = report.repeats(15)
    words, blocks = np.empty(_BLOCK, dtype=np.uint64), 4000
    listeners, speakers = np.empty(_BLOCK, dtype=np.uint32), np.empty(_BLOCK, dtype=np.uint32)
    state = new_state(1, "benchmark", 0)
    fill_words = _machine(_fill_words)
    fill_words(state, words, 1)
    seconds = report.best(lambda: fill_words(state, words, blocks), repeats)
    report.add("random words", blocks * _BLOCK / seconds, "words/s", note="xoshiro256++, in blocks of 512")
    networks = {"complete": Network.of(SMALL), "sparse": build_network(SPARSE, SMALL, 1)}
    for name, pick in (("complete", "listener"), ("sparse", "edge"), ("sparse", "listener")):
        setup = set_up(find_model("deffuant"), networks[name], settings={"pick": pick})
        contacts, draw = setup.contacts, _machine(_drawing(setup))
        draw(contacts, state, words, listeners, speakers, 1)
        seconds = report.best(lambda: draw(contacts, state, words, listeners, speakers, blocks), repeats)  # noqa: B023
        label = name if name == "complete" else f"{name}, {pick} first"
        report.add(f"pairs drawn, {label}, N=1e4", blocks * _BLOCK / seconds, "pairs/s", note="words included")
    rng, chase, gather = np.random.default_rng(1), _machine(_chase), _machine(_gather)
    sizes = {"opinions, N=1e4": 8 * SMALL, "opinions, N=1e6": 8 * LARGE, "partners, N=1e6, k=10": 40 * LARGE}
    for name, size in sizes.items():
        following = np.empty(size // 4, dtype=np.uint32)
        tour = rng.permutation(following.size)
        following[tour] = np.roll(tour, -1)
        chase(following, 1)
        seconds = report.best(lambda: chase(following, 200_000), repeats)  # noqa: B023
        report.add(f"one read after another, {name}", 1e9 * seconds / 200_000, "ns", note=f"{size / 1e6:g} MB")
        values, places = np.ones(size // 8), rng.integers(size // 8, size=1 << 18, dtype=np.uint32)
        gather(values, places)
        seconds = report.best(lambda: gather(values, places), repeats)  # noqa: B023
        report.add(f"reads side by side, {name}", places.size / seconds, "reads/s", note=f"{size / 1e6:g} MB")
    source, size = np.ones(SMALL), 2**24
    target = np.zeros((64, SMALL))
    seconds = report.best(lambda: np.copyto(target, source), repeats)
    report.add("copy to memory written before", 1e9 * seconds / target.size, "ns/float64")
    for dtype in ("float64", "float32"):
        seconds = report.best(lambda: np.empty(size, dtype).fill(1.0), report.repeats(6))  # noqa: B023
        report.add(f"first touch, {dtype}", 1e9 * seconds / size, f"ns/{dtype}")


# -- bars -------------------------------------------------------------------------------------------------


def pairwise(report: Report) -> None:
    """Pairs a second of Deffuant's model."""
    report.begin("pairwise", "Deffuant, two-sided, epsilon 0.2, one thread")
    span, repeats = (0.05, 5) if report.quick else (0.3, 9)
    network = Network.of(SMALL)
    report.add("complete, N=1e4", _rate(report, _process("deffuant", network), span, repeats), "pairs/s", least=1e8)
    network = build_network(SPARSE, SMALL, 1)
    for pick in ("edge", "listener"):
        rate = _rate(report, _process("deffuant", network, pick=pick), span, repeats)
        report.add(f"sparse (k=10), {pick} first, N=1e4", rate, "pairs/s", least=1e8)
    network = build_network(SPARSE, LARGE, 1)
    for pick in ("edge", "listener"):
        rate = _rate(report, _process("deffuant", network, pick=pick), span, repeats)
        report.add(f"sparse (k=10), {pick} first, N=1e6", rate, "pairs/s", least=2e7)


def recording(report: Report) -> None:
    """What it costs to record every sweep."""
    report.begin("recording", "Recording every sweep of Deffuant's model, complete, beside recording the last alone")
    for n, label in ((1000, "1e3"), (SMALL, "1e4")):
        process = _process("deffuant", Network.of(n))
        sweeps = (2_000_000 if report.quick else 8_000_000) // n
        written, every = np.ones((1, sweeps, n)), range(1, sweeps + 1)
        process.advance(1, [1], np.empty((1, 1, n), dtype=np.float32))

        def last(process: Batch = process, sweeps: int = sweeps) -> None:
            process.advance(sweeps)

        ways: dict[str, Callable[[], object]] = {
            dtype: lambda dtype=dtype, process=process, sweeps=sweeps, every=every, n=n: process.advance(
                sweeps, every, np.empty((1, sweeps, n), dtype=dtype)
            )
            for dtype in ("float64", "float32")
        }
        ways["float64, memory written before"] = lambda: process.advance(sweeps, every, written)  # noqa: B023
        base, *others = report.turns([last, *ways.values()], report.repeats(15))
        for name, times in zip(ways, others, strict=True):
            ratio, note = _ratio(times, base)
            most = 20.0 if name == "float32" else None
            report.add(f"{name}, N={label}", 100 * (ratio - 1), "% slower", most=most, note=note)


def hegselmann_krause(report: Report) -> None:
    """Agent updates a second, exact, while opinions move."""
    report.begin("hegselmann-krause", "Hegselmann-Krause, synchronous, complete, exact, one thread")
    for n, epsilon, bar in ((SMALL, 0.05, 1.5e8), (SMALL, 0.2, 1.5e8), (LARGE, 0.1, 4e7)):
        setup = set_up(find_model("hegselmann-krause"), Network.of(n), settings={"epsilon": epsilon})
        opinions = np.random.default_rng(1).random(n)
        moved = np.abs(np.diff(Process(setup, opinions, 1).advance(101 if n == SMALL else 5), axis=0)).max(axis=1) > 0
        # Steps after rest cost nothing, and are not counted.
        steps = len(moved) if moved.all() else int(np.argmin(moved)) + 1

        def run(steps: int, setup: Setup = setup, opinions: np.ndarray = opinions) -> None:
            Batch(setup, opinions[None], 1).advance(steps)

        first, whole = report.turns([lambda: run(1), lambda: run(steps)], report.repeats(60 if n == SMALL else 5))  # noqa: B023
        rate = (steps - 1) * n / (min(whole) - min(first))
        report.add(f"N={n:.0e}, epsilon {epsilon}, a step after the first", rate, "updates/s", least=bar)
        note = "the sort before the first step included"
        report.add(f"N={n:.0e}, epsilon {epsilon}, {steps} steps", steps * n / min(whole), "updates/s", note=note)


def algorithmic_bias(report: Report) -> None:
    """Meetings a second, while opinions are spread and once they lie in clusters."""
    report.begin("algorithmic-bias", "Algorithmic bias, epsilon 0.3, N=1e4, one thread")
    for name, network, steps, bar in (
        ("sparse (k=10)", build_network(SPARSE, SMALL, 1), 200, 2e7),
        ("complete", Network.of(SMALL), 2, 1e5),
    ):
        for gamma in (1.0, 1.5, 2.0):
            for after in (0, 10 * steps):
                process = _process("algorithmic-bias", network, gamma=gamma, epsilon=0.3)
                process.advance(after)
                rate = SMALL * steps / report.best(lambda: process.advance(steps), report.repeats(5))  # noqa: B023
                when = f", after {after} sweeps" if after else ""
                report.add(f"{name}, gamma {gamma}{when}", rate, "meetings/s", least=bar)


def degroot(report: Report) -> None:
    """Time of DeGroot's model over that of SciPy's matrix product."""
    report.begin("degroot", "DeGroot, sparse (k=10), beside as many bare products of SciPy's CSR matrix, one thread")
    for n, steps in ((1000, 2000), (SMALL, 500), (100_000, 50), (LARGE, 10)):
        network = build_network(SPARSE, n, 1)
        matrix = influence_matrix(network)
        process = _process("degroot", network)
        start = process.opinions[0]

        def bare(matrix: Any = matrix, start: np.ndarray = start, steps: int = steps) -> None:
            opinions = start
            for _ in range(steps):
                opinions = matrix @ opinions

        def building(process: Batch = process) -> None:
            process.advance(0)

        whole, products, setting_up = report.turns([lambda: process.advance(steps), bare, building],  # noqa: B023
                                             report.repeats(9))  # fmt: skip
        report.add(f"bare product, N={n:g}", n * steps / min(products), "updates/s")
        per_step = (min(whole) - min(setting_up)) / min(products)
        report.add(f"opinionsim over bare, N={n:g}", per_step, "x", most=1.5,
                   note=f"(with the matrix built anew, {1e3 * min(setting_up):.3g} ms: "
                   f"{min(whole) / min(products):.2f} over {steps} steps)")  # fmt: skip


def lorenz(report: Report) -> None:
    """Minutes for 1e5 runs, from a sample."""
    report.begin("lorenz", "Lorenz et al. 2021, N=500, 400 sweeps, whole `osim.classic.sweep`, one thread")
    wanted = 100_000
    over = {"rho": np.linspace(0, 1, 5).tolist(), "k": [2, 5, 10, 35]}
    combinations = 20

    def runs(replicates: int, steps: int = 400) -> None:
        osim.classic.sweep("lorenz", over, initial="normal", n=500, steps=steps, replicates=replicates, threads=1)

    runs(1, 1)
    if report.full:
        count, how = wanted, "all of them"
        seconds = report.best(lambda: runs(wanted // combinations), 1)
    else:
        # Short parts, of which the median counts: what takes minutes has no best part.
        parts, replicates = 5 if report.quick else 15, 20
        count = replicates * combinations
        seconds, how = statistics.median(report.turns([lambda: runs(replicates)], parts)[0]), f"{parts} x {count} runs"
    report.add("one run", 1e3 * seconds / count, "ms", note=f"{count * 500 * 400 / seconds:.3g} updates/s")
    report.add("1e5 runs", wanted * seconds / count / 60, "min", most=5, note=f"from {how}")


def threads(report: Report) -> None:
    """What a second thread gains."""
    report.begin("threads", "Two threads beside one, without the interpreter lock")
    state, words = [new_state(1, "benchmark", each) for each in range(2)], np.empty((2, _BLOCK), dtype=np.uint64)
    fill_words, blocks = _machine(_fill_words), 100_000 if report.quick else 400_000
    fill_words(state[0], words[0], 1)

    def generators(most: int) -> None:
        with ThreadPoolExecutor(most) as pool:
            for each in [pool.submit(fill_words, state[part], words[part], blocks) for part in range(2)]:
                each.result()

    replicates, steps = 9, 50 if report.quick else 300

    def runs(most: int) -> None:
        osim.classic.simulate("deffuant", SMALL, steps=steps, record_every=steps, replicates=replicates, threads=most)

    runs(1)
    repeats = report.repeats(7)
    for name, work, note in (
        ("random words", generators, "the machine's own gain"),
        ("9 replicates of Deffuant, N=1e4", runs, "5 and 4 replicates, so 1.8 at most"),
    ):
        one, two = report.turns([lambda: work(1), lambda: work(2)], repeats, "perf_counter")  # noqa: B023
        gain, median = _ratio(one, two)
        report.add(name, gain, "x", note=f"{median} {note}")


def scale(report: Report) -> None:
    """A million agents, in a process of its own."""
    sweeps = 10 if report.quick else 100
    report.begin("scale", f"A million agents, sparse (k=10), {sweeps} sweeps of Deffuant, a process of its own")
    # Compiles, so that the process finds machine code on disk, as all but the first on a machine do.
    osim.classic.simulate("deffuant", build_network(SPARSE, 100, 1), steps=1)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--million", str(sweeps)], check=True, capture_output=True, text=True
    )
    whole = time.perf_counter() - began
    found = json.loads(done.stdout.splitlines()[-1])
    report.add("network building", found["building_s"], "s")
    report.add("sweeps", found["sweeps_s"], "s", note=f"{sweeps * LARGE / found['sweeps_s']:.3g} pairs/s")
    report.add("the whole process, imports included", whole, "s", most=60)
    report.add("peak resident memory", found["peak"] / 1e6, "MB", note=f"{found['peak'] / LARGE:.0f} bytes an agent")


def _million(sweeps: int) -> None:
    """Print what a million agents took, as JSON."""
    began = time.perf_counter()
    network = build_network(SPARSE, LARGE, 1)
    built = time.perf_counter()
    osim.classic.simulate("deffuant", network, steps=sweeps, record_every=sweeps, seed=1)
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_IN_MAXRSS
    print(json.dumps({"building_s": built - began, "sweeps_s": ended - built, "peak": peak}))


# -- first use --------------------------------------------------------------------------------------------


def first_use(report: Report) -> None:
    """Seconds of the processor that the first use of a kernel takes, and the use of one that is kept."""
    report.begin("first-use", "Kernels compiled by a process of their own, and found on disk by another")
    imports = "import numba, numba.extending, opinionsim.classic as c"
    sparse = f"n=100, network={SPARSE!r}"
    uses = {
        "deffuant": "n=100",
        "algorithmic-bias": "n=100",
        "activity-driven": "n=100",
        "kan-feng-porter": sparse,
    }
    for name, settings in uses.items():
        use = f"{imports}; c.simulate({name!r}, {settings}, steps=1, threads=1)"
        with tempfile.TemporaryDirectory() as folder:
            spent = [_processor_s(code, folder) for code in (imports, "import numba", imports, use, use)]
        report.add(f"{name}, compiled, beyond imports", spent[3] - spent[2], "s", most=4)
        report.add(f"{name}, found on disk, beyond import numba", spent[4] - spent[1], "s", most=0.6)


def _processor_s(code: str, folder: str) -> float:
    """Seconds of the processor that a process takes whose machine code is kept in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": folder})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


# -- command line -----------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[Report], None]] = {
    "ceilings": ceilings,
    "pairwise": pairwise,
    "recording": recording,
    "hegselmann-krause": hegselmann_krause,
    "algorithmic-bias": algorithmic_bias,
    "degroot": degroot,
    "lorenz": lorenz,
    "threads": threads,
    "scale": scale,
    "first-use": first_use,
}


def _about() -> dict[str, Any]:
    """The machine and its load."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {"cpu": name, "cores": os.cpu_count(), "load": load, "python": platform.python_version()}


def main() -> None:
    """Print every section, and write the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter measurements and fewer of them")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of computing, on machines that are not idle")
    parser.add_argument("--full", action="store_true", help="all 1e5 runs of the model of Lorenz et al.")
    parser.add_argument("--only", choices=[*SECTIONS], help="one section")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--million", type=int, metavar="SWEEPS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.million is not None:
        _million(options.million)
        return
    clock = "thread_time" if options.cpu_time else "perf_counter"
    about, report = _about(), Report(options.quick, options.full, clock)
    print(f"{about['cpu']}, {about['cores']} cores, Python {about['python']}, load {about['load']:.1f}")
    if about["load"] > 0.5:
        print("Other work shares the cores: figures are lower bounds.")
    if options.cpu_time:
        print("Seconds of computing by the one thread, not of time passed, but for two threads and the whole process.")
    for name, section in SECTIONS.items():
        if options.only in (None, name):
            section(report)
    about["load at the end"] = _about()["load"]
    if options.json:
        options.json.write_text(
            json.dumps({"machine": about, "clock": clock, "rows": report.rows}, indent=1), encoding="utf-8"
        )
    missed = [f"{row['section']}: {row['name']}" for row in report.rows if row["met"] is False]
    bars = sum(row["met"] is not None for row in report.rows)
    print(f"\n{bars - len(missed)} of {bars} bars met; load at the end {about['load at the end']:.1f}")
    if missed:
        raise SystemExit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
