"""What the engine costs per call, with actors that answer at once.

Run: python benchmarks/engine.py
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from opinionsim.engine import Engine
from opinionsim.messages import Message, Reply
from opinionsim.schedules import Dyads, Setting


class Calls:
    """Answers every question at once."""

    async def ask(self, *_: Any, **__: Any) -> Reply:
        """The same reply to everything."""
        return Reply("text")

    def stop(self) -> None:
        """Nothing to end."""


class Actor:
    """Asks once a turn and remembers nothing."""

    async def act(self, turn: Any, received: Any, ask: Any, publish: Any) -> None:
        """One question, one message."""
        reply = await ask("reply", ())
        publish(Message(reply.text))

    def fork(self) -> Actor:
        """Itself: it has no context."""
        return self


async def _timed(n_agents: int, steps: int) -> float:
    """Seconds per call, intake of the schedule included."""
    schedule = Dyads(steps=steps).schedule(Setting.of(n_agents, 1))
    engine = Engine(schedule, [Actor()] * n_agents, Calls())
    began = time.perf_counter()
    engine.start()
    await engine.wait()
    return (time.perf_counter() - began) / (2 * steps)


def main() -> None:
    """Print the engine-overhead figure with its bar."""
    figures = sorted(asyncio.run(_timed(1000, 10_000)) * 1e6 for _ in range(7))
    print(
        f"engine overhead, N=1000, T=10,000, zero-latency actor: median {figures[3]:.1f} us/call, "
        f"worst {figures[-1]:.1f} (bar 50)"
    )


if __name__ == "__main__":
    main()
