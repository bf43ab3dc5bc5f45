"""Output of the command line: data to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from opinionsim.foundation.folding import folded
from opinionsim.foundation.outputs import is_stream, put, require_free
from opinionsim.foundation.spreadsheets import has_columns, has_header, write_csv
from opinionsim.messages import UNSEEN, spelled_out

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

#: Fewest characters of a column that is folded.
_NARROWEST = 10


def say(text: str = "") -> None:
    """Write text to standard output."""
    sys.stdout.write(_fitted(spelled_out(text), sys.stdout) + "\n")


def say_json(value: Any) -> None:
    """Write a value to standard output as JSON; invisible characters are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")


def say_rows(frame: pd.DataFrame) -> None:
    """Write the rows of a frame to standard output as JSON, with None instead of NaN."""
    say_json(frame.astype(object).where(frame.notna(), None).to_dict(orient="records"))


def records(frame: pd.DataFrame) -> Any:
    """Rows of a frame for JSON, with None instead of NaN."""
    return json.loads(frame.to_json(orient="records", double_precision=15))


def stderr() -> Console:
    """A console on standard error that honours NO_COLOR and ignores markup in texts."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=not sys.stderr.isatty())


def note(text: str = "") -> None:
    """Write a message to standard error."""
    typer.echo(_fitted(spelled_out(text), sys.stderr), err=True)


def columns(most: int, stream: TextIO | None = None) -> int:
    """Width of the terminal of standard output or another stream; `most` if it is wider or there is none."""
    return min(most, shutil.get_terminal_size().columns) if (stream or sys.stdout).isatty() else most


def _fitted(text: str, stream: TextIO) -> str:
    """A text whose lines are broken between words at the width of a terminal, each going on as far in as it began."""
    width = columns(len(text), stream)
    fill = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(
        fill(line, subsequent_indent=" " * (len(line) - len(line.lstrip()))) if len(line) > width else line
        for line in text.split("\n")
    )


def say_logged(name: str) -> None:
    """Write the log of a module as messages, each once: how a table was read, or which kernels were compiled."""
    said: set[str] = set()

    class Printed(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if text not in said:
                note(text)
            said.add(text)

    log = logging.getLogger(name)
    log.handlers[:] = [Printed()]
    log.setLevel(logging.INFO)


def complain(text: str) -> None:
    """Write an error to standard error."""
    from rich.text import Text

    stderr().print(Text.assemble(("error: ", "bold red"), spelled_out(text)))


def counted(n: int, one: str) -> str:
    """Spell a number of things that `one` names in the singular."""
    return f"{n:,} {one}" if n == 1 else f"{n:,} {one}s"


def aligned(rows: Sequence[Sequence[str]], *, gap: int = 3) -> str:
    """Align rows of texts as columns. On a terminal, the widest columns are folded until all fit its width."""
    columns = list(zip(*rows, strict=True))
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    room = shutil.get_terminal_size().columns - gap * (len(widths) - 1) if sys.stdout.isatty() else sum(widths)
    # Words are broken only where there is no room for whole ones.
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    for floors in (words, [_NARROWEST] * len(widths)):
        while sum(widths) > room and (wide := [i for i, floor in enumerate(floors) if widths[i] > floor]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    lines = []
    for cells in rows:
        folded = [_folded(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=""):
            lines.append((" " * gap).join(map(str.ljust, parts, widths)).rstrip())
    return "\n".join(lines)


def _folded(cell: str, width: int) -> list[str]:
    """The lines of a cell, broken between words at a width."""
    lines: list[str] = []
    for line in cell.split("\n"):
        lines += folded(line, width) if len(line) > width else [line]
    return lines


# -- files ---------------------------------------------------------------------------------------------------

Force = Annotated[bool, typer.Option("--force")]

#: Frames, each with the file that it is saved in.
Files = Sequence[tuple[Path, "pd.DataFrame"]]


def beside(csv: Path, ending: str) -> Path:
    """The file with this ending before its suffix; standard output or a device unchanged."""
    return csv if is_stream(csv) else csv.with_name(f"{csv.stem}{ending}{csv.suffix}")


def require_table(csv: Path | None, *columns: str, force: bool, read: Iterable[str | Path] = ()) -> None:
    """Refuse, before any work, to save a table over anything but a table with these columns."""
    if csv is not None and not is_stream(csv):
        require_free(csv, partial(has_columns, columns=columns), force=force, read=read)


def require_tables(files: Files, *, force: bool) -> None:
    """Refuse to save frames over anything but tables with exactly their columns."""
    for csv, frame in files:
        if not is_stream(csv):
            require_free(csv, partial(has_header, frame=frame), force=force)


def write_frames(files: Files) -> None:
    """Save frames as CSV, and print a message."""
    for csv, frame in files:
        write_text(csv, write_csv(frame) or "")


def write_text(path: Path, text: str) -> None:
    """Save a whole text or nothing, and print a message; ``-`` is standard output."""
    write = partial(Path.write_text, data=text, encoding="utf-8", newline="")
    if str(path) == "-":
        sys.stdout.write(text)
    elif is_stream(path):
        write(path)
    else:
        put(path, write)
        note(f"wrote {path}")
