"""What a first call compiles: no more functions than a model needs, and nothing twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opinionsim.classic import MODELS, simulate
from opinionsim.networks import Network
from tests.classic.test_contract import CASES

pytestmark = pytest.mark.long

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


@pytest.mark.parametrize("name", sorted(MODELS))
def test_variants_give_what_their_python_gives(name: str) -> None:
    """Values of each agent's own, agents without a partner, every order, and vectors, compiled and not."""
    model = MODELS[name]
    network = Network.from_edges([(0, 1), (0, 2), (0, 3), (3, 4), (4, 5), (3, 5)], 7)
    settings = dict(CASES[name])
    values = model.with_defaults(settings, model.range)
    own = {key: np.full(7, values[key]) for key, each in model.declared.items() if each.per_agent}
    variants: list[dict[str, Any]] = [own, *({"order": order} for order in model.schemes.get("order", ()))]
    if model.vector is not None and model.states != "traits":
        low, high = model.range
        variants.append({"initial": low + (high - low) * np.random.default_rng(2).random((7, 3))})
    isolates = "keep" if "partners" in model.needs else "error"
    for variant in variants:
        runs = [
            simulate(model, network, steps=4, seed=7, isolates=isolates, machine=machine, **{**settings, **variant})
            for machine in (False, True)
        ]
        np.testing.assert_array_equal(runs[0].opinions, runs[1].opinions, err_msg=str(variant))


@pytest.mark.parametrize("name", sorted(name for name, model in MODELS.items() if model.update is not None))
def test_given_pairs_give_what_their_python_gives(name: str) -> None:
    model = MODELS[name]
    settings = {key: value for key, value in CASES[name].items() if key not in model.schemes}
    pairs = np.random.default_rng(3).permuted(np.tile(np.arange(7), (20, 1)), axis=1)[:, :2]
    runs = [simulate(model, 7, seed=7, pairs=pairs, machine=machine, **settings) for machine in (False, True)]
    np.testing.assert_array_equal(runs[0].opinions, runs[1].opinions)


def test_a_process_that_reads_bytecode_finds_what_one_that_read_sources_kept(tmp_path: Path) -> None:
    code = "from opinionsim.classic import simulate; simulate('voter', n=8, steps=1, seed=1)"
    told = [
        subprocess.run(
            [sys.executable, "-c", f"import logging; logging.basicConfig(level=logging.INFO); {code}"],
            capture_output=True, text=True, check=True, timeout=280,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONDONTWRITEBYTECODE": "",
                 "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")},
        ).stderr
        for _ in range(2)
    ]  # fmt: skip
    assert ["compiling voter" in each for each in told] == [True, False]


#: Prints warnings, whether machine code gives what Python gives, and how many functions were compiled.
_OTHER = """
import json, warnings
import numba
from numba.core import event
numba.version_info = numba.version_info._replace(short=(0, 99), string="0.99.0")
from opinionsim.classic import simulate
models = {"deffuant": "ring", "algorithmic-bias": None, "holme-newman": "ring"}
with warnings.catch_warnings(record=True) as said, event.install_recorder("numba:compile") as recorder:
    warnings.simplefilter("always")
    runs = [[simulate(name, network, n=30, steps=3, seed=1, machine=machine).opinions.tobytes()
             for machine in (False, True)] for name, network in models.items()]
print(json.dumps([[str(each.message) for each in said], [one == other for one, other in runs], len(recorder.buffer)]))
"""


def test_another_version_of_numba_runs_models_and_is_named_once(tmp_path: Path) -> None:
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", _OTHER], capture_output=True, text=True, check=True, timeout=280,
                env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            ).stdout
        )
        for _ in range(2)
    ]  # fmt: skip
    for said, equal, _ in found:
        assert len(said) == 1
        assert said[0].startswith("numba 0.99.0 is outside the versions 0.60 to 0.68 whose internals")
        assert equal == [True] * 3
    assert found[0][2] > 0 == found[1][2]
