"""Processes of their own for tests, forked from one that has loaded the package: starting Python takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

_LOADED = (
    "opinionsim.running._carry_out",
    "opinionsim.cli._run",
    "opinionsim.cli._outputs",
    "opinionsim.plots",
    "opinionsim.store",
    "typer.testing",
    "sqlalchemy.dialects.sqlite",
)


@cache
def _context() -> ForkServerContext:
    """The server that forks, with the package loaded and nothing run."""
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
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sender.send(function(*arguments))


def said(*commands: str) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each of some commands of the command line."""
    from typer.testing import CliRunner

    from opinionsim.cli import app

    found = [CliRunner().invoke(app, command.split()) for command in commands]
    return [(each.exit_code, each.stdout, each.stderr + repr(each.exception or "")) for each in found]
