"""How fast consensus is found, part by part.

``elections``: Schulze's rule on 1,000 ballots of 100 candidates, and all rules over 100,000 elections of 5 voters who
rate 16 candidates; the least time of several rounds, and the memory of the whole process, imports included.

Run: python benchmarks/consensus.py [SECTION ...]. A missed bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from opinionsim.voting import RULES, compare_rules, elect

_ROUNDS = 5
_BYTES_IN_MAXRSS = 1 if sys.platform == "darwin" else 1024
#: Options of the rules that need some.
_OPTIONS = {"approval": {"threshold": 4}, "power-mean": {"alpha": 2.0}}


def _told(name: str, value: float, unit: str, bar: str, met: bool) -> bool:
    print(f"  {name:<52} {value:>9.3g} {unit:<4} {bar:<8} {'met' if met else 'MISSED'}", flush=True)
    return met


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def elections() -> list[bool]:
    """Schulze's rule on one large election, and all rules on many small ones; whether each bar is met."""
    rng = np.random.default_rng(1)
    ballots = np.argsort(rng.random((1000, 100)), axis=1) + 1
    one = min(_seconds(lambda: elect(ballots, "schulze")) for _ in range(_ROUNDS))
    ratings = rng.integers(1, 8, (100_000, 5, 16)).astype(float)
    rules = [{"kind": name, **_OPTIONS.get(name, {})} for name in RULES]
    many = min(_seconds(lambda: compare_rules(ratings, rules, scores=True)) for _ in range(_ROUNDS))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_IN_MAXRSS / 1e6
    return [
        _told("Schulze, 1,000 ballots x 100 candidates", one, "s", "< 0.05", one < 0.05),
        _told(f"{len(rules)} rules, 100,000 elections of 5 x 16", many, "s", "< 2", many < 2),
        _told("memory, imports included", memory, "MB", "< 500", memory < 500),
    ]


#: What is measured, by name.
SECTIONS = {"elections": elections}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)}; default all")
    chosen = parser.parse_args().sections or list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"unknown section {unknown.pop()!r}; valid: {', '.join(SECTIONS)}")
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors")
    met = []
    for name in chosen:
        print(name)
        met += SECTIONS[name]()
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
