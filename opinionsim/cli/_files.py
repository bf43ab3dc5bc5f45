"""Tables that commands save as CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opinionsim.cli._console import note
from opinionsim.foundation.outputs import is_stream, put, require_free
from opinionsim.foundation.spreadsheets import has_columns, has_header, write_csv

if TYPE_CHECKING:
    import pandas as pd

Force = Annotated[bool, typer.Option("--force")]

#: Frames, each with the file that it is saved in.
Files = Sequence[tuple[Path, "pd.DataFrame"]]


def beside(csv: Path, ending: str) -> Path:
    """The file whose name has this ending before its suffix; standard output or a device itself."""
    return csv if is_stream(csv) else csv.with_name(f"{csv.stem}{ending}{csv.suffix}")


def require_table(csv: Path | None, *columns: str, force: bool, read: Iterable[str | Path] = ()) -> None:
    """Refuse, before any work, to save a table where something else than one with these columns would be lost."""
    if csv is not None and not is_stream(csv):
        require_free(csv, partial(has_columns, columns=columns), force=force, read=read)


def require_tables(files: Files, *, force: bool) -> None:
    """Refuse to save frames where something else than a table with exactly their columns would be lost."""
    for csv, frame in files:
        if not is_stream(csv):
            require_free(csv, partial(has_header, frame=frame), force=force)


def write_frames(files: Files) -> None:
    """Save frames as CSV, and say so."""
    for csv, frame in files:
        write_text(csv, write_csv(frame) or "")


def write_text(path: Path, text: str) -> None:
    """Save a text whole or not at all, and say so; ``-`` is standard output."""
    write = partial(Path.write_text, data=text, encoding="utf-8", newline="")
    if str(path) == "-":
        sys.stdout.write(text)
    elif is_stream(path):
        write(path)
    else:
        put(path, write)
        note(f"wrote {path}")
