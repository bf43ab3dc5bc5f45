"""Latency hiding in one run and over a sweep, through the whole stack: prompts, caller, store, measurement.

The chat model is the scripted one behind a fixed in-process latency of 200 ms, so the figures say how well
waiting is hidden and nothing about any provider. Run: python benchmarks/latency.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.llm import ScriptedChatModel

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


def _timed(spec: dict[str, Any], slots: int) -> tuple[float, Any]:
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
        "measurement": {"texts": ["report"]},
    }


def main() -> None:
    """Print the latency-hiding and sweep figures beside their bounds and bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 runs in the sweep instead of 100")
    replicates = 20 if parser.parse_args().quick else 100
    for size, steps in ((10, 100), (100, 1000)):
        seconds, forecast = _timed(_spec(size, steps), slots=10_000)
        bound = forecast.longest_path * LATENCY_S
        print(
            f"one run, N={size}, T={steps}: {seconds:.2f} s; critical path {forecast.longest_path} calls = "
            f"{bound:.2f} s; ratio {seconds / bound:.3f} (bar 1.10); sequential {forecast.calls * LATENCY_S:.0f} s"
        )
    seconds, forecast = _timed(_spec(10, 100, replicates), slots=64)
    sequential = forecast.calls * LATENCY_S
    print(
        f"sweep, {replicates} runs, N=10, T=100, 64 slots: {seconds:.1f} s; sequential {sequential:.0f} s; "
        f"speed-up {sequential / seconds:.1f}x (bar 54x; list-scheduling bound {forecast.speedup:.1f}x)"
    )


if __name__ == "__main__":
    main()
