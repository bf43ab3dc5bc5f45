"""What the command line says: data to standard output, everything else to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["aligned", "clean", "complain", "note", "say", "say_json", "stderr"]

#: Characters that move a cursor or switch a terminal's state; texts of models and users may hold them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


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
    """A console on standard error; it honours NO_COLOR and takes no markup from texts."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def note(text: str = "") -> None:
    """Write a message to standard error."""
    typer.echo(clean(text), err=True)


def complain(text: str) -> None:
    """Write an error to standard error."""
    from rich.text import Text

    stderr().print(Text.assemble(("error: ", "bold red"), clean(text)))


def aligned(rows: Sequence[Sequence[str]], *, gap: int = 3) -> str:
    """Rows of texts as columns; the last column is as wide as it needs to be."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = ("".join(map(str.ljust, row, [width + gap for width in widths])) + row[-1] for row in rows)
    return "\n".join(line.rstrip() for line in lines)
