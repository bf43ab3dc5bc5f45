"""How fast consensus is found, part by part.

``elections``: Schulze's rule on 1,000 ballots of 100 candidates, and all rules over 100,000 elections of 5 voters who
rate 16 candidates; the least time of several rounds, and the memory of the whole process, imports included.

``sessions``: five citizens and sixteen candidates through the whole stack, from the first dispatch to the last message,
behind a fixed latency of 200 ms a call: one opinion round beside its three latencies, and 100 groups over 64 slots
beside one call at a time. The scripted model answers, so that figures say how well waiting is hidden.

Run: python benchmarks/consensus.py [SECTION ...]. A missed bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from latency import LATENCY_S, timed

from opinionsim.consensus.voting import RULES, compare_rules, elect

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


def _session(replicates: int) -> dict[str, Any]:
    claims = {"for": "shops should close on Sundays"}
    return {
        "name": "consensus",
        "seed": 1,
        "replicates": replicates,
        "population": {"size": 5},
        "topic": {"definition": {"name": "shops", "title": "Shops", "category": "policy", "claims": claims}},
        "interaction": {"kind": "consensus", "candidates": 16, "rounds": 0},
        "roles": {"mediator": {}},
        "measurement": {"classifier": "lexicon", "texts": ["opinion"]},
    }


def sessions() -> list[bool]:
    """One opinion round, and 100 groups at a time; whether each bar is met."""
    timed(_session(1), 10_000)  # what is done once in a process is done
    ratio = min(timed(_session(1), 10_000)[0] for _ in range(_ROUNDS)) / (3 * LATENCY_S)
    seconds, forecast = timed(_session(100), 64)
    speedup = forecast.calls * LATENCY_S / seconds
    return [
        _told("opinion round, of three latencies", ratio, "x", "<= 1.05", ratio <= 1.05),
        _told("100 groups over 64 slots, of one by one", speedup, "x", ">= 58", speedup >= 58),
    ]


#: What is measured, by name.
SECTIONS = {"elections": elections, "sessions": sessions}


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
