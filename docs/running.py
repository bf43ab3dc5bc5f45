"""Runs the code blocks of a page one after another, and tells what each printed and drew.

Run: python -W error docs/running.py < BLOCKS, in an empty folder. BLOCKS is a JSON list of {"language", "code"}; so is
what is printed, of {"text", "figures"}.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from pathlib import Path

from typer.testing import CliRunner

from opinionsim.cli import app


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
        sys.exit(f"{program}: a page that is run calls opinionsim, cat and cd alone")
    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        sys.exit(f"{line}\nended with {done.exit_code}:\n{done.output}")
    return done.stdout


def _figures(folder: Path) -> dict[Path, int]:
    """Pictures below a folder, in order of time, with the moment at which each was written."""
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")}
    return dict(sorted(written.items(), key=lambda each: each[1]))


def main() -> None:
    """Run all blocks; names of one are known to those after it."""
    space: dict[str, object] = {"__name__": "__main__"}
    folder = Path.cwd()
    told = []
    before: dict[Path, int] = {}
    for block in json.load(sys.stdin):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if block["language"] == "bash":
                for line in filter(str.strip, block["code"].splitlines()):
                    print(_command(line), end="")  # noqa: T201
            else:
                exec(compile(block["code"], "block", "exec"), space)  # noqa: S102
        after = _figures(folder)
        told.append({"text": printed.getvalue(), "figures": [str(p) for p in after if after[p] != before.get(p)]})
        before = after
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
