"""Waiting in structures, through the whole stack: prompts, caller, live record.

A chat model that answers after 0.3 s in the process plays the agents, so the figures say how well waiting is hidden and
nothing about any provider. Each figure is printed beside its bar. Run: python benchmarks/structures.py [--quick]
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
from opinionsim.deliberation import NumberedReplies
from opinionsim.engine import PersonaActor

LATENCY_S = 0.3
_begun: list[float] = []
_ended: list[float] = []


class SlowReplies(NumberedReplies):
    """The numbered model, answering after a fixed latency."""

    async def _agenerate(self, *args: Any, **options: Any) -> Any:
        _begun.append(time.perf_counter())
        await asyncio.sleep(LATENCY_S)
        result = self._generate(*args, **options)
        _ended.append(time.perf_counter())
        return result


def _spec(n: int, interaction: dict[str, Any], **fields: Any) -> dict[str, Any]:
    cast = [{"name": f"Agent {number}", "persona": f"citizen number {number} of a town"} for number in range(n)]
    task = "What should the town do first?"
    return {
        "name": "structures",
        "task": task,
        "cast": cast,
        "interaction": interaction,
        "model": {"name": "slow"},
        **fields,
    }


def _timed(spec: dict[str, Any], slots: int = 1000) -> tuple[float, float]:
    """Seconds of the whole run, from opening the store to the results, and from first dispatch to last reply."""
    experiment = osim.load_experiment(spec)
    _begun.clear()
    _ended.clear()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = f"sqlite:///{Path(folder) / 'bench.sqlite'}"
        began = time.perf_counter()
        results = osim.run(experiment, store, max_concurrency=slots, chat_model=SlowReplies())
        whole = time.perf_counter() - began
        if not (results.runs["status"] == "complete").all():
            raise SystemExit(f"runs failed: {results.runs['error'].unique()}")
    return whole, max(_ended) - min(_begun)


def _diamond(arms: int) -> list[list[int]]:
    """One agent that drafts, many that read the draft, and one that reads them."""
    return [[0, arm] for arm in range(1, arms + 1)] + [[arm, arms + 1] for arm in range(1, arms + 1)]


@contextmanager
def _counted() -> Iterator[list[int]]:
    """The number of turns started and unfinished, at every start of one while the block lasts."""
    act, under_way, seen = PersonaActor.act, set[int](), list[int]()

    async def counted(self: PersonaActor, turn: Any, *given: Any) -> None:
        under_way.add(turn.index)
        seen.append(len(under_way))
        try:
            await act(self, turn, *given)
        finally:
            under_way.discard(turn.index)

    PersonaActor.act = counted  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        PersonaActor.act = act  # type: ignore[method-assign]


def main() -> None:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an ensemble of 1,000 instead of 10,000")
    large = 1_000 if parser.parse_args().quick else 10_000
    _timed(_spec(2, {"kind": "ensemble"}))  # what is done once in a process is done
    for n, bar in ((8, 0.5), (60, 0.6)):
        runs = [_timed(_spec(n, {"kind": "ensemble"})) for _ in range(3)]
        whole, calls = (min(each) for each in zip(*runs, strict=True))
        print(f"{n} independent agents: {calls:.3f} s, with store and start {whole:.3f} s (bar {bar} s)")
    auto = {"automatic": True}
    ring = {"kind": "rounds", "network": "ring", "cycles": 4}
    for name, spec in (
        ("diamond graph, 8 arms", _spec(10, {"kind": "graph", "edges": _diamond(8)})),
        ("the same, moderated", _spec(10, {"kind": "graph", "edges": _diamond(8)}, roles={"moderator": {}})),
        ("moderated ensemble of 30", _spec(30, {"kind": "ensemble"}, roles={"moderator": auto})),
        ("moderated chain of 8", _spec(8, {"kind": "chain"}, roles={"moderator": auto})),
        ("rounds of 30 on a ring, moderated", _spec(30, ring, roles={"moderator": auto})),
    ):
        path = osim.plan(osim.load_experiment({**spec, "model": {"name": "scripted"}})).longest_path or 0
        seconds = min(_timed(spec)[1] for _ in range(3))
        bound = path * LATENCY_S
        print(f"{name}: {seconds:.3f} s; critical path {path} calls; ratio {seconds / bound:.3f} (bar 1.10)")
    slots = 500
    with _counted() as under_way:
        whole, calls = _timed(_spec(large, {"kind": "ensemble"}), slots)
    bound = -(-large // slots) * LATENCY_S
    print(
        f"ensemble of {large:,}, {slots} slots: {calls:.1f} s (bound {bound:.1f} s), whole {whole:.1f} s; "
        f"most turns under way {max(under_way)} (bar {4 * slots})"
    )


if __name__ == "__main__":
    main()
