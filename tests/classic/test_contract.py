"""Every classic model of the registry keeps to the contract; one without an entry here fails."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from opinionsim import classic
from opinionsim.classic import MODELS, ClassicModel, ClassicModelContract, simulate

#: Parameters under which each model is checked: such that everything it can do happens.
CASES: dict[str, dict[str, Any]] = {
    "activity-driven": {"m": 2},
    "algorithmic-bias": {"gamma": 1.2, "epsilon": 0.4},
    "altafini": {},
    "axelrod": {"features": 3},
    "attraction-repulsion": {"epsilon": 0.6},
    "biased-assimilation": {"b": 0.7},
    "coda": {},
    "cognitive": {"information": 0.3, "sensitivity": 1, "beta": 0.5},
    "deffuant": {"epsilon": 0.4},
    "degroot": {},
    "friedkin-johnsen": {},
    "hegselmann-krause": {"epsilon": 0.3},
    "holme-newman": {"rewire": 0.4},
    "jager-amblard": {},
    "kan-feng-porter": {"epsilon": 0.5, "tolerance": 0.3},
    "kozma-barrat": {"epsilon": 0.3},
    "lorenz": {"theta": 0.2, "rho": 0.5, "k": 3, "polarity": True},
    "majority": {},
    "noisy-voter": {"noise": 0.2, "bias": 0.6},
    "q-voter": {"q": 2},
    "sznajd": {},
    "voter": {},
    "weighted-hegselmann-krause": {"epsilon": 0.6, "trust": 0.5},
    "weighted-linear": {"h": 1.5},
}


def test_names_of_the_room_are_listed_and_all_of_them_resolve() -> None:
    assert {"simulate", "ClassicModelContract"} <= set(classic.__all__) <= set(dir(classic))
    assert all(getattr(classic, name) is not None for name in classic.__all__)


def test_every_model_is_checked() -> None:
    assert set(CASES) == set(MODELS)


_DENSE = "test_the_kernel_of_dense_networks_is_the_python_it_is_written_in"


def _suite(name: str, case: Mapping[str, Any]) -> type[ClassicModelContract]:
    """The contract of one model."""

    def model(self: ClassicModelContract) -> ClassicModel:
        return MODELS[name]

    # It compiles a second kernel, which draws partners in another way and is the same apart from that.
    @pytest.mark.whole
    def dense(self: ClassicModelContract) -> None:
        getattr(ClassicModelContract, _DENSE)(self)

    title = "Test" + name.title().replace("-", "")
    made = {"model": property(model), "settings": dict(case), _DENSE: dense}
    return type(title, (ClassicModelContract,), made)


for _name, _case in CASES.items():
    if _name in MODELS:
        _made = _suite(_name, _case)
        globals()[_made.__name__] = _made
del _made

_DIGESTS = """
import hashlib, json, sys
from opinionsim.classic import simulate
cases = json.loads(sys.argv[1])
print(json.dumps({
    name: hashlib.sha256(
        simulate(name, "ring", n=8, steps=4, seed=11, replicates=3, threads=2, **case).opinions.tobytes()
    ).hexdigest()
    for name, case in cases.items()
}))
"""


@pytest.mark.whole
def test_another_process_gives_the_same_bytes() -> None:
    here = {
        name: hashlib.sha256(
            simulate(name, "ring", n=8, steps=4, seed=11, replicates=3, threads=1, **case).opinions.tobytes()
        ).hexdigest()
        for name, case in CASES.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", _DIGESTS, json.dumps(CASES)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == here


def test_a_model_by_another_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(Exception, match="did you mean deffuant"):
        simulate("defuant")
