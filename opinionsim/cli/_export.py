"""Frames saved as CSV from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opinionsim.cli._console import note
from opinionsim.errors import SpecError
from opinionsim.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas as pd


def write_frame(frame: pd.DataFrame, target: Path) -> None:
    """Save a frame as CSV, and say so."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_csv(frame, target)
    except OSError as error:
        raise SpecError(f"cannot write {target}: {error.strerror}") from error
    note(f"wrote {target}")
