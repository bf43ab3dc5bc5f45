"""Start-up of whole commands, beside their bars.

The demonstration is timed by the clock and leaves the store that the other commands read. Of these the time of the
processor counts, interpreter included and bytecode compiled beforehand: the median of processes that take turns with
the bare imports their bars name. Run: python benchmarks/startup.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 7
DEMO_BAR_S = 20.0
STORE = "results/demo/demo.sqlite"
#: Runs the packaged quickstart, and ends the process where its first call would be made.
FIRST_CALL = """
import os, sys, tempfile
from opinionsim.cli import main
from opinionsim.llm import SlotPool
SlotPool.account = lambda *_, **__: os._exit(0)
sys.argv[1:] = ["run", "quickstart", "--store", tempfile.mkdtemp() + "/first.sqlite"]
main()
"""
#: Arguments of Python, and the most seconds of the processor, or the name of the bare imports and how many times these.
COMMANDS: dict[str, tuple[list[str], float, str]] = {
    "bare pandas and SQLAlchemy": (["-c", "import pandas, sqlalchemy"], 0.0, ""),
    "bare SQLAlchemy": (["-c", "import sqlalchemy"], 0.0, ""),
    "import opinionsim": (["-c", "import opinionsim"], 0.1, ""),
    "opinionsim --help": (["-m", "opinionsim", "--help"], 0.4, ""),
    "opinionsim plan": (["-m", "opinionsim", "plan", "quickstart"], 1.2, ""),
    "opinionsim preview": (["-m", "opinionsim", "preview", "quickstart"], 1.2, ""),
    "opinionsim run, to its first call": (["-c", FIRST_CALL], 1.6, ""),
    "opinionsim status": (["-m", "opinionsim", "status", STORE], 1.3, "bare SQLAlchemy"),
    "opinionsim show": (["-m", "opinionsim", "show", STORE], 1.3, "bare pandas and SQLAlchemy"),
    "opinionsim table": (["-m", "opinionsim", "table", STORE], 1.3, "bare pandas and SQLAlchemy"),
}


def _run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of the processor and of the clock that a Python process takes."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=folder, env=environment)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall_s


def main() -> None:
    """Print what each takes; the package must be installed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        demo = ["-m", "opinionsim", "demo"]
        _run(demo, folder)
        print(f"opinionsim demo: {_run(demo, folder)[1]:.1f} s (bar {DEMO_BAR_S:.0f} s)")
        rounds = [{label: _run(command[0], folder) for label, command in COMMANDS.items()} for _ in range(REPEATS + 1)]
    # The first round compiles.
    taken = {label: statistics.median(each[label][0] for each in rounds[1:]) for label in COMMANDS}
    for label, (_, bar, base) in COMMANDS.items():
        told = f"{label}: {taken[label]:.2f} s of the processor"
        if base:
            told += f", {taken[label] / taken[base]:.2f} x {base} (bar {bar} x)"
        elif bar:
            told += f" (bar {bar} s)"
        print(told)


if __name__ == "__main__":
    main()
