"""Processes that open a store beside the test and are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

#: Has begun to measure a complete run when it says under which lease.
MEASURER = """
import sys
from opinionsim.store import open_store
from tests.support.rows import completed

store = open_store(sys.argv[1])
completed(store)
print(store.lease_complete("r1", "child"), flush=True)
sys.stdin.read()
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
