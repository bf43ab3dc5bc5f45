"""A worker that is killed while an instrument codes: at the n-th write of opinions, before or after it.

Before it codes, it writes into a log what it is about to code: one JSON list [run, instrument, turn, about] a line.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from opinionsim.llm import RunCalls
from opinionsim.measurement import Measuring
from opinionsim.store import RunRecord
from tests.support.running import ended


def main(spec: str, store: str, log: str, number: str, moment: str) -> None:
    """Carry the experiment out until the kill."""
    make, code, add = Measuring.__init__, Measuring.code, RunRecord.add_opinions
    run_ids: dict[Measuring, str] = {}
    written = iter(range(1, 1000))
    kill_at = int(number)

    def made(self: Measuring, instruments: Any, queues: Any, calls: RunCalls, *rest: Any) -> None:
        make(self, instruments, queues, calls, *rest)
        run_ids[self] = calls.run_id

    async def logged(self: Measuring, instrument: Any, keys: Any, *arguments: Any, **options: Any) -> Any:
        with open(log, "a", encoding="utf-8") as lines:
            for turn, about in keys:
                lines.write(json.dumps([run_ids[self], instrument.instrument_id, turn, about]) + "\n")
        return await code(self, instrument, keys, *arguments, **options)

    def added(self: RunRecord, rows: Any) -> None:
        reached = next(written) == kill_at
        if reached and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        add(self, rows)
        if reached:
            self.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    Measuring.portion = 3
    Measuring.__init__ = made  # type: ignore[method-assign]
    Measuring.code = logged  # type: ignore[method-assign]
    RunRecord.add_opinions = added  # type: ignore[method-assign]
    ended(Path(spec), store)
