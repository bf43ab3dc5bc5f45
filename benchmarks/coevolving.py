"""Speed of the models that move ties: events a second at N = 10⁴ and 4 ties an agent, in one thread.

An event is an agent, or a tie, that is drawn, whether or not anything comes of it. Seconds are those of computing by
the thread, the least of several; on a machine whose cores others share, caches are shared as well, and figures are
lower bounds. Kernels are compiled before. A missed bar makes the exit code 1.

Run: python benchmarks/coevolving.py [--sweeps SWEEPS]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

from opinionsim.classic import Batch, find_model, set_up
from opinionsim.networks import build_network
from opinionsim.opinions import draw_initial

_N, _TIES, _REPEATS = 10_000, 4, 5
_LEVELS = {"kind": "levels", "count": _N // 10}
#: Model, parameters, start, what ends a run, and the least number of events a second.
_CASES: tuple[tuple[str, dict[str, Any], Any, str | None, float], ...] = (
    ("holme-newman", {"rewire": 0.458}, _LEVELS, None, 1e7),
    ("holme-newman", {"rewire": 0.458}, _LEVELS, "frozen", 1e7),
    ("holme-newman", {"rewire": 0.3, "ties": "discordant"}, "uniform", "frozen", 1e7),
    ("kozma-barrat", {"epsilon": 0.15}, "uniform", None, 5e6),
    ("kozma-barrat", {"epsilon": 0.15, "target": "similar"}, "uniform", None, 5e6),
    ("kozma-barrat", {"epsilon": 0.15}, "uniform", "frozen", 5e6),
    ("kan-feng-porter", {}, "uniform", None, 5e6),
    ("kan-feng-porter", {}, "uniform", "frozen", 5e6),
)


def main() -> None:
    """Print every rate beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=100, help="sweeps of a measurement")
    sweeps, missed = parser.parse_args().sweeps, 0
    network = build_network({"kind": "erdos-renyi", "p": _TIES / (_N - 1)}, _N, 1)
    print(f"load {os.getloadavg()[0]:.1f}")
    for name, settings, initial, until, bar in _CASES:
        setup = set_up(find_model(name), network, settings=settings, until=until)
        discrete = setup.model.kind == "discrete"
        start = draw_initial(initial, np.random.default_rng(1).random(_N), setup.range, discrete=discrete)[None]
        Batch(setup, start, 1).advance(1)
        rates = []
        for _ in range(_REPEATS):
            batch = Batch(setup, start, 1)
            began = time.thread_time()
            ended = int(batch.advance(sweeps)[0])
            rates.append(_N * (sweeps if ended < 0 else ended) / (time.thread_time() - began))
        missed += max(rates) < bar
        said = ", ".join(f"{key} {value}" for key, value in settings.items())
        verdict = "met" if max(rates) >= bar else "MISSED"
        print(f"{name:16s} {said:36s} until {until!s:7s} {max(rates):8.3g} events/s  [bar >= {bar:.0e}: {verdict}]")
    if missed:
        raise SystemExit(f"{missed} bars missed")


if __name__ == "__main__":
    main()
