"""Commands that the studio starts: each is a process of its own, which goes on when studio and browser are closed."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import digest
from opinionsim.store import writer_of

#: Most characters of what a command has said that are shown.
_SHOWN = 6_000


@dataclass(frozen=True)
class Job:
    """A command that was started.

    Attributes
    ----------
    words : tuple of str
        The command, as typed after ``opinionsim``.
    began : float
        Unix time at which it was started.
    log : Path
        File with everything it says.
    process : Popen
        Its process.
    """

    words: tuple[str, ...]
    began: float
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def command(self) -> str:
        """The command, as a user would type it."""
        return f"opinionsim {shlex.join(self.words)}"

    @property
    def code(self) -> int | None:
        """Its exit code; None while it goes on."""
        return self.process.poll()

    def said(self) -> str:
        """The end of what it has said."""
        with suppress(OSError):
            return self.log.read_text(encoding="utf-8", errors="replace")[-_SHOWN:]
        return ""


def room_of(store: Path) -> Path:
    """The store of the rooms of a study."""
    return store.with_name(f"{store.stem}-room.sqlite")


def writer(store: Path) -> int | None:
    """Number of the process that writes the store of a study, or that of its rooms."""
    return writer_of(store) or writer_of(room_of(store))


class Jobs:
    """The last command on each store.

    Parameters
    ----------
    logs : Path
        Folder for what commands say.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._last: dict[Path, Job] = {}
        #: Processes that were told to stop; the second time, they would end at once.
        self._stopping: set[int] = set()

    def stops(self, store: Path) -> bool:
        """Whether this studio has asked the process that writes a store to stop."""
        return writer(store) in self._stopping

    def last(self, store: Path) -> Job | None:
        """The command on a store that was started last, since the studio was opened."""
        return self._last.get(store)

    def start(self, store: Path, *words: str) -> None:
        """Start a command on the store of a study, in the folder above ``results``.

        Raises
        ------
        SpecError
            If another command on it is going on.
        """
        before = self.last(store)
        if before is not None and before.code is None:
            raise SpecError(f"`opinionsim {before.words[0]}` is still going on for this study; wait for it or stop it.")
        # What a room says lets its owner in.
        for folder in (self._logs.parent, self._logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = self._logs / f"{digest(str(store))}.log"
        log.unlink(missing_ok=True)
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as said:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "opinionsim", *words],
                cwd=store.parent.parent,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
                # Ctrl-C in the terminal of the studio does not reach it.
                start_new_session=True,
            )
        self._last[store] = Job(words, time.time(), log, process)

    async def finished(self, folder: Path, *words: str) -> str:
        """Carry out a short command; return why it failed, or nothing."""
        command = [sys.executable, "-P", "-m", "opinionsim", *words]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=pipe, stderr=pipe)
        _, said = await process.communicate()
        return said.decode("utf-8", "replace").strip() if process.returncode else ""

    def stop(self, store: Path) -> None:
        """Ask the process that writes a store to end after the calls in flight.

        Raises
        ------
        SpecError
            If nothing is going on.
        """
        job, number = self.last(store), writer(store)
        if job is not None and job.code is None:
            number = job.process.pid
        if number is None or number <= 1:
            raise SpecError("Nothing is going on in this study, so there is nothing to stop.")
        if number not in self._stopping:
            self._stopping.add(number)
            os.kill(number, signal.SIGTERM)
