"""Processes of their own for tests, forked from one that has loaded the package: starting Python takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

#: What commands load; of a module that is not there, the server of forks would say nothing.
_LOADED = (
    "opinionsim.running._carry_out",
    "opinionsim.cli._app",
    "opinionsim.cli._show_view_replay",
    "opinionsim.cli._deliberate",
    "opinionsim.cli._run",
    "opinionsim.cli._outputs",
    "opinionsim.plots",
    "opinionsim.store",
    "opinionsim.watching",
    "opinionsim.web._open_room",
    "opinionsim.web._serve",
    "opinionsim.studio._studio_routes",
    "typer.testing",
    "sqlalchemy.dialects.sqlite",
)


@cache
def _context() -> ForkServerContext:
    """The server that forks, with the package loaded and nothing run."""
    assert [name for name in _LOADED if find_spec(name) is None] == []
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(list(_LOADED))
    return found


def in_process(function: Callable[..., Any], *arguments: Any, folder: Path | None = None) -> tuple[Any, int]:
    """Call a function of a module in a new process.

    Parameters
    ----------
    function : callable
        That another process can import.
    *arguments : Any
        That can be pickled.
    folder : Path, optional
        Where it runs; default the current folder. Modules there can be imported.

    Returns
    -------
    (value, exit code)
        What it returned, None if the process ended before; and 0, or minus the signal that ended the process.
    """
    receiver, sender = _context().Pipe(duplex=False)
    where = str(folder or Path.cwd())
    process = _context().Process(target=_call, args=(sender, function, arguments, where, dict(os.environ)))
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = None
    process.join()
    assert process.exitcode is not None
    return found, process.exitcode


def _call(
    sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], folder: str, environment: Any
) -> None:
    _go_to(folder, environment)
    sender.send(function(*arguments))


def _go_to(folder: str, environment: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.dont_write_bytecode = True


class Command:
    """A command of the command line that goes on beside the test, and that a test may kill.

    Parameters
    ----------
    *arguments : object
        What stands behind `opinionsim`.
    folder : Path, optional
        Where it runs; default the current folder.

    Attributes
    ----------
    stdout, stderr : TextIO
        What it writes.
    """

    def __init__(self, *arguments: object, folder: Path | None = None) -> None:
        ours, theirs = zip(*(_context().Pipe(duplex=False) for _ in range(2)), strict=True)
        given = (theirs, ["opinionsim", *map(str, arguments)], str(folder or Path.cwd()), dict(os.environ))
        self._process = _context().Process(target=_command, args=given)
        self._process.start()
        for each in theirs:
            each.close()
        self.stdout, self.stderr = (os.fdopen(os.dup(each.fileno()), encoding="utf-8") for each in ours)
        for each in ours:
            each.close()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Number of its process."""
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = 60.0) -> int:
        """Wait for its end; returns its exit code, or minus the signal that ended it."""
        self._process.join(timeout_s)
        code = self._process.exitcode
        assert code is not None, "it does not end"
        return code

    def communicate(self) -> tuple[int, str, str]:
        """Wait for its end; returns its exit code, and what it has written since."""
        said = self.stdout.read(), self.stderr.read()
        code = self.wait()
        self.kill()
        return code, *said

    def end(self) -> None:
        """End it at once, if it has not ended; what it wrote can still be read."""
        self._process.kill()
        self.wait()

    def kill(self) -> None:
        """End it at once, and close what it wrote to."""
        self.end()
        for each in (self.stdout, self.stderr):
            each.close()


def _command(outputs: tuple[Connection, Connection], words: list[str], folder: str, environment: Any) -> None:
    _go_to(folder, environment)
    for number, output in enumerate(outputs, 1):
        os.dup2(output.fileno(), number)
        output.close()
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, encoding="utf-8") for number in (1, 2))
    sys.argv = words
    from opinionsim.cli import main

    main()


def said(*commands: str) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each of some commands of the command line."""
    from typer.testing import CliRunner

    from opinionsim.cli import app

    found = [CliRunner().invoke(app, command.split()) for command in commands]
    return [(each.exit_code, each.stdout, each.stderr + repr(each.exception or "")) for each in found]
