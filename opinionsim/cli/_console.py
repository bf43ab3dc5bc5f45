"""Output of the command line: data to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

#: Characters that move a cursor or switch a terminal's state; texts of models and users may hold them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: Fewest columns of a folded text.
_NARROWEST = 20


def clean(text: str) -> str:
    """A text with control characters spelled out; line ends and tabs stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def say(text: str = "") -> None:
    """Write text to standard output."""
    sys.stdout.write(clean(text) + "\n")


def say_json(value: Any) -> None:
    """Write a value to standard output as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def stderr() -> Console:
    """A console on standard error that honours NO_COLOR and reads no markup in texts."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def note(text: str = "") -> None:
    """Write a message to standard error."""
    typer.echo(clean(text), err=True)


def say_compilations() -> None:
    """Write a message for every kernel that is compiled, which takes seconds."""

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note(record.getMessage())

    log = logging.getLogger("opinionsim.compilation")
    log.handlers[:] = [Said()]
    log.setLevel(logging.INFO)


def complain(text: str) -> None:
    """Write an error to standard error."""
    from rich.text import Text

    stderr().print(Text.assemble(("error: ", "bold red"), clean(text)))


def counted(n: int, one: str) -> str:
    """A number of things that `one` names in the singular."""
    return f"{n:,} {one}" if n == 1 else f"{n:,} {one}s"


def aligned(rows: Sequence[Sequence[str]], *, gap: int = 3) -> str:
    """Rows of texts as columns; on a terminal the last column is folded to the terminal's width."""
    if not rows:
        return ""
    widths = [max(map(len, column)) + gap for column in list(zip(*rows, strict=True))[:-1]]
    indent = " " * sum(widths)
    lines = []
    for *cells, last in rows:
        line = "".join(map(str.ljust, cells, widths)) + last
        if sys.stdout.isatty():
            line = _folded(line, indent)
        lines.append(line.rstrip())
    return "\n".join(lines)


def _folded(line: str, indent: str) -> str:
    """A line broken at the width of the terminal, its continuation below the last column."""
    width = shutil.get_terminal_size().columns
    if len(line) <= width or width < len(indent) + _NARROWEST:
        return line
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=indent, drop_whitespace=True))
