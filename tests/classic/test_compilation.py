"""What a first call compiles: no more functions than a model needs, and nothing twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opinionsim.classic import MODELS

#: Functions, numpy's and Python's own included, that the first call of a model may compile. Most of a second each is
#: taken by some; an error text, an assignment of a slice or a sort in a kernel brings in dozens.
_MOST = 25

_COUNT = """
import json, sys
from numba.core import event
from opinionsim.classic import MODELS, simulate
counts = {}
for name in sys.argv[1:]:
    network = None if MODELS[name].ties is None else "ring"
    with event.install_recorder("numba:compile") as recorder:
        simulate(name, network, n=30, steps=2, seed=1)
    first = sum(happened.is_start for _, happened in recorder.buffer)
    with event.install_recorder("numba:compile") as recorder:
        simulate(name, network, n=40, steps=3, seed=2, replicates=2)
    counts[name] = [first, sum(happened.is_start for _, happened in recorder.buffer)]
print(json.dumps(counts))
"""


@pytest.mark.timeout(600)
def test_first_calls_compile_little_and_later_ones_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, *MODELS], capture_output=True, text=True, check=False, timeout=590,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    counts = json.loads(done.stdout)
    assert {name: first for name, (first, _) in counts.items() if first > _MOST} == {}
    assert {name: later for name, (_, later) in counts.items() if later} == {}
