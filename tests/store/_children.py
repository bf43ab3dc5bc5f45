"""Processes that open a store beside the test and are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from opinionsim.store import open_store

#: Has begun to measure a complete run when it says under which lease.
MEASURER = """
import sys
from opinionsim.store import open_store
from tests.support.rows import completed

store = open_store(sys.argv[1])
completed(store)
print(store.lease("r1", "child", complete=True), flush=True)
sys.stdin.read()
"""

#: Adds replies, which it copies from log to file all the time, and says how many are safe. No file may become longer
#: than the given number of bytes: it dies of that, as of a kill, or the disk is full to it.
WRITER = """
import resource, signal, sys
from opinionsim.store import _log, open_store
from tests.support.rows import begun, call

_log.LIMIT, _log._AGAIN_S, _log._WAIT_MS = 40_000, 0.0, 1
path, limit, dies, owner = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
if dies == "True":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open_store(path) as store:
    record = begun(store, owner=owner)
    for turn in range(len(store.entries("r1")), 10**6):
        record.append(call(turn, f"{turn} " + "word " * (turn * 7919 % 900)))
        record.flush()
        print(turn + 1, flush=True)
"""


def started(source: str, *arguments: str) -> subprocess.Popen[str]:
    """A new Python that runs a program."""
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", source, *arguments], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def killed(source: str, url: str, *, lines: int = 1) -> list[int]:
    """The numbers on the first lines that a program says of a store; it is killed after that."""
    with started(source, url) as child:
        said = [int(child.stdout.readline()) for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    return said


def replies_of(path: Path, *, write: bool = False) -> int:
    """Replies in a store that is sound."""
    with open_store(str(path), write=write) as store:
        assert list(store.damage()) == []
        return len(store.entries("r1"))


def kill_in_copies(path: Path, draws: np.random.Generator, times: int, *, dies: bool = True) -> None:
    """Let writers of a store die, or find their disk full, at drawn writes that make the file longer: in copies of the
    log, which is shorter. Nothing that was safe may be missing, whoever opens the store next.
    """
    rows = 0
    for death in range(times):
        size = path.stat().st_size if path.exists() else 163_840
        limit = size + int(draws.integers(1, 30)) * 4096
        with started(WRITER, str(path), str(limit), str(dies), f"writer {death}") as child:
            safe = [rows, *map(int, child.stdout)]
            assert child.wait() == (-signal.SIGXFSZ if dies else 1)
        assert limit - 4096 < path.stat().st_size <= limit
        rows = replies_of(path)
        # It may have no time to say so of the last one.
        assert safe[-1] <= rows <= safe[-1] + 1
        assert replies_of(path, write=bool(draws.integers(2))) == rows


def open_beside_writer(path: Path, times: int) -> None:
    """Open a store for reading so often, beside a process that copies the log into it all the time."""
    with started(WRITER, str(path), str(2**40), "True", "writer") as child:
        child.stdout.readline()
        os.set_blocking(child.stdout.fileno(), False)
        for _ in range(times):
            with open_store(str(path), write=False) as store:
                assert len(store.states()) == 1
            with suppress(BlockingIOError):
                os.read(child.stdout.fileno(), 1 << 16)
        assert child.poll() is None
        child.kill()
    assert replies_of(path) > times // 100
