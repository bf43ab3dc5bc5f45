"""Runs the code blocks of a page one after another, and tells what each printed and drew.

Importing this loads all that pages use, so that processes forked from one that has imported it need not.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from opinionsim import analysis, comparison, planning, plots, report, running
from opinionsim.cli import app

for _room in (analysis, comparison, planning, plots, report, running):
    for _name in dir(_room):
        getattr(_room, _name)  # Names of a room are loaded on first use.


def _command(line: str) -> str:
    """Run a line of the shell.

    Returns
    -------
    str
        What the command printed; progress, which differs from one run to the next, is left out.
    """
    program, *arguments = shlex.split(line, comments=True)
    if program == "cat":
        return "".join(Path(name).read_text(encoding="utf-8") for name in arguments)
    if program == "cd":
        os.chdir(arguments[0])
        return ""
    if program != "opinionsim":
        raise ValueError(f"{program}: a page that is run calls opinionsim, cat and cd alone")
    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        raise ValueError(f"{line}\nended with {done.exit_code}:\n{done.output}")
    return done.stdout


def _figures(folder: Path) -> dict[Path, int]:
    """Pictures below a folder, in order of time, with the moment at which each was written."""
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")}
    return dict(sorted(written.items(), key=lambda each: each[1]))


def run(blocks: Iterable[Mapping[str, str]], folder: str) -> list[dict[str, Any]]:
    """Run all blocks in an empty folder; names of one are known to those after it. Warnings are errors.

    Parameters
    ----------
    blocks : iterable of mapping
        ``language`` and ``code`` of each.
    folder : str
        The folder, which becomes that of this process.

    Returns
    -------
    list of dict
        ``text``, and paths of ``figures``, of each.
    """
    os.chdir(folder)
    warnings.simplefilter("error")
    space: dict[str, object] = {"__name__": "__main__"}
    told = []
    before: dict[Path, int] = {}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            if block["language"] == "bash":
                for line in filter(str.strip, block["code"].splitlines()):
                    print(_command(line), end="")  # noqa: T201
            else:
                exec(compile(block["code"], "block", "exec"), space)  # noqa: S102
        after = _figures(Path(folder))
        told.append({"text": printed.getvalue(), "figures": [str(p) for p in after if after[p] != before.get(p)]})
        before = after
    return told
