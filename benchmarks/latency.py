"""Latency hiding in one run and over a sweep, through the whole stack: prompts, caller, live record, measurement.

The chat model is the scripted one, whose texts vary, behind a fixed in-process latency of 200 ms, so the figures say
how well waiting is hidden and nothing about any provider. The sweep is carried out with the live record, and without
it (journal only: turns and estimates are dropped), in turn. Run: python benchmarks/latency.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.llm import ScriptedChatModel
from opinionsim.store import RunRecord

LATENCY_S = 0.2
_first_dispatch: list[float] = []
_last_message: list[float] = []


class SlowScripted(ScriptedChatModel):
    """The scripted model, answering after a fixed latency."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        if not _first_dispatch:
            _first_dispatch.append(time.perf_counter())
        await asyncio.sleep(LATENCY_S)
        result = await super()._agenerate(*args, **kwargs)
        _last_message[:] = [time.perf_counter()]
        return result


def timed(spec: dict[str, Any], slots: int) -> tuple[float, Any]:
    """Seconds from first dispatch to last message, and the forecast."""
    experiment = osim.load_experiment(spec)
    forecast = osim.plan(experiment, max_concurrency=slots)
    _first_dispatch.clear()
    with tempfile.TemporaryDirectory() as folder:
        results = osim.run(
            experiment, f"sqlite:///{Path(folder) / 'bench.sqlite'}", max_concurrency=slots, chat_model=SlowScripted()
        )
        if not (results.runs["status"] == "complete").all():
            raise SystemExit(f"runs failed: {results.runs['error'].unique()}")
    return _last_message[0] - _first_dispatch[0], forecast


def _spec(size: int, steps: int, replicates: int = 1) -> dict[str, Any]:
    return {
        "name": "latency",
        "seed": 1,
        "replicates": replicates,
        "population": {"size": size},
        "topic": {"name": "global-warming"},
        "interaction": {"kind": "dyadic", "steps": steps},
        "measurement": {"classifier": "lexicon", "texts": ["report", "post"]},
    }


@contextmanager
def _journal_only() -> Iterator[None]:
    """Runs keep no record beside their journal while the block lasts."""
    kept = RunRecord.add_turn, RunRecord.add_opinions
    RunRecord.add_turn = RunRecord.add_opinions = lambda self, rows: None  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        RunRecord.add_turn, RunRecord.add_opinions = kept  # type: ignore[method-assign]


def main() -> None:
    """Print the latency-hiding and sweep figures beside their bounds and bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 runs in the sweep instead of 100")
    replicates = 20 if parser.parse_args().quick else 100
    for size, steps in ((10, 100), (100, 1000)):
        seconds, forecast = timed(_spec(size, steps), slots=10_000)
        bound = forecast.longest_path * LATENCY_S
        print(
            f"one run, N={size}, T={steps}: {seconds:.2f} s; critical path {forecast.longest_path} calls = "
            f"{bound:.2f} s; ratio {seconds / bound:.3f} (bar 1.08); sequential {forecast.calls * LATENCY_S:.0f} s"
        )
    timed(_spec(10, 100), slots=64)  # what is done once in a process is done
    recorded, dropped = [], []
    for _ in range(1 if replicates < 100 else 2):
        seconds, forecast = timed(_spec(10, 100, replicates), slots=64)
        recorded.append(seconds)
        with _journal_only():
            dropped.append(timed(_spec(10, 100, replicates), slots=64)[0])
    sequential = forecast.calls * LATENCY_S
    speedups = [sequential / each for each in recorded]
    print(
        f"sweep, {replicates} runs, N=10, T=100, 64 slots, live record: {min(recorded):.1f} s; sequential "
        f"{sequential:.0f} s; speed-up {', '.join(f'{each:.1f}x' for each in speedups)} (bar 56x; bound "
        f"{forecast.speedup:.1f}x); of the speed without the record "
        f"{', '.join(f'{off / on:.3f}' for on, off in zip(recorded, dropped, strict=True))} (bar 0.97)"
    )


if __name__ == "__main__":
    main()
