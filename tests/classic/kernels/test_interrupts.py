"""Simulations that are ended from outside: compiled code that would run for years ends within a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opinionsim.classic import Batch, simulate, sweep
from opinionsim.classic.sweeps import load_sweep, run_sweep
from tests.support.examples import few

#: Of 20 agents, at 10**8 updates a second, two days.
STEPS = 10**12


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("opinionsim-classic")]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "begin",
    few([
        lambda: simulate("deffuant", n=20, steps=STEPS, record_every=STEPS, epsilon=0.1),
        lambda: simulate("voter", n=20, noise=0.1, steps=STEPS, record_every=STEPS, replicates=4),
        lambda: simulate("hegselmann-krause", "ring", n=20, steps=STEPS, record_every=STEPS),
        lambda: sweep("deffuant", {"epsilon": [0.1, 0.2]}, n=20, steps=STEPS),
        lambda: run_sweep(load_sweep({"name": "long", "model": {"classic": "deffuant"}, "population": {"size": 20},
                                      "interaction": {"steps": STEPS}}), "long.sqlite"),
    ], 2),
    ids=["simulate", "replicates", "arrays", "sweep", "store"],
)  # fmt: skip
def test_an_interrupt_ends_all_within_a_step(begin: Callable[[], Any]) -> None:
    def interrupt() -> None:
        # Once kernels are under way.
        while not _threads():
            pause.wait(0.01)
        pause.wait(0.2)
        signal.pthread_kill(main, signal.SIGINT)

    pause, main = threading.Event(), threading.get_ident()
    other = threading.Thread(target=interrupt, daemon=True)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        begin()
    other.join()
    assert _threads() == []


@pytest.mark.timeout(60)
def test_a_run_that_fails_ends_those_beside_it() -> None:
    def fails(opinions: np.ndarray) -> float:
        raise ValueError("no such measure")

    with pytest.raises(Exception, match="no such measure"):
        # Two agents agree at once, so many only after minutes.
        sweep("voter", {"n": [2, 200_000]}, steps=STEPS, until="consensus", metrics={"bad": fails})
    assert _threads() == []


@pytest.mark.timeout(60)
def test_replicates_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    both, advance = threading.Barrier(2, timeout=30), Batch.advance

    def together(self: Batch, *given: Any) -> Any:
        both.wait()
        return advance(self, *given)

    monkeypatch.setattr(Batch, "advance", together)
    assert simulate("voter", n=20, steps=3, replicates=2, threads=2).opinions.shape == (2, 4, 20)
