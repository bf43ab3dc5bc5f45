"""A process that reads a store while others write it, are killed, and start anew; and what is made of its notes.

Run: python -m tests.support.reader STORE NOTES. It follows every run from the start, writes each event as a line of
JSON, and ends after one more look when its input is closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from opinionsim.errors import DamagedError, StoreError
from opinionsim.store import Follower, NewRow, StoreReader, open_store

#: Between two looks at all runs, seconds.
_PAUSE_S = 0.05


def noted(run_id: str, event: NewRow) -> str:
    """An event as a line of notes."""
    kind = type(event.row).__name__
    return json.dumps([run_id, event.generation, event.seq, kind, repr(event.row)])


def _read(store: str, notes: Path) -> None:
    closed = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), closed.set()), daemon=True).start()
    opened: StoreReader | None = None
    followers: dict[str, Follower] = {}
    with notes.open("w", encoding="utf-8") as lines:
        while True:
            last = closed.is_set()
            try:
                opened = opened or open_store(store, write=False)
                for run_id in opened.states():
                    if run_id not in followers:
                        followers[run_id] = opened.follow(run_id)
                for run_id, follower in followers.items():
                    for event in follower.poll():
                        lines.write(noted(run_id, event) + "\n")
                if last:
                    return
            except DamagedError:
                raise
            except StoreError:
                # There is no store yet, or its server is down.
                if last:
                    raise
            lines.flush()
            time.sleep(_PAUSE_S)


class Reading:
    """What a reader has noted."""

    def __init__(self, notes: Path, process: subprocess.Popen[str]) -> None:
        self._notes = notes
        self._process = process

    def end(self) -> dict[str, list[Any]]:
        """The reader's events by run, in the order it read them, after it has seen everything."""
        _, said = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, said
        found: dict[str, list[Any]] = {}
        for line in self._notes.read_text(encoding="utf-8").splitlines():
            run_id, *event = json.loads(line)
            found.setdefault(run_id, []).append(event)
        return found


@contextmanager
def reading(store: str, notes: Path) -> Iterator[Reading]:
    """A reader of a store in a process of its own, while the block lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.reader", store, str(notes)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Reading(notes, process)
    finally:
        if process.poll() is None:
            process.kill()
            with suppress(ValueError):
                process.communicate()


def stored(store: str) -> dict[str, list[Any]]:
    """The events of every run as the store has them in the end."""
    with open_store(store, write=False) as opened:
        return {
            run_id: [json.loads(noted(run_id, event))[1:] for event in opened.follow(run_id).poll()]
            for run_id in opened.states()
        }


def check_reading(read: dict[str, list[Any]], store: str) -> int:
    """Make sure that a reader saw every row once, in order, without a gap, as the store has it in the end; how many."""
    final = stored(store)
    assert set(read) == set(final)
    for run_id, events in read.items():
        assert [seq for _, seq, _, _ in events] == list(range(1, len(events) + 1))
        assert events == final[run_id]
    return sum(map(len, read.values()))


if __name__ == "__main__":
    _read(sys.argv[1], Path(sys.argv[2]))
