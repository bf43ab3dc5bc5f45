"""CSV files that are safe in a spreadsheet: texts that it would run are escaped, and restored when read back."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Beginnings of cells that spreadsheets run or drop, behind any apostrophes; in full width for Asian ones.
_RUN = re.compile("'*(?:\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?%?")


def escaped(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run; return all other values unchanged."""
    return f"'{value}" if isinstance(value, str) and _is_run(value) else value


def unescaped(value: Any) -> Any:
    """Restore the value that :func:`escaped` was given."""
    return value[1:] if isinstance(value, str) and value[:1] == "'" and _is_run(value[1:]) else value


def _written(value: Any) -> Any:
    """A truth value as R and spreadsheets read it, every other value :func:`escaped`."""
    # Python and versions of NumPy name the type differently.
    return str(value).upper() if type(value).__name__ in ("bool", "bool_") else escaped(value)


def _is_run(text: str) -> bool:
    return bool(_RUN.match(text)) and not _NUMBER.fullmatch(text)


def header_of(path: Path) -> list[str]:
    """The columns of a CSV file; empty if it is not a CSV file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error):
        return []


def has_columns(path: Path, columns: Collection[str] = ()) -> bool:
    """Whether a file is a CSV of several columns that include these."""
    return len(header := header_of(path)) > 1 and set(columns) <= set(header)


def has_header(path: Path, frame: pd.DataFrame) -> bool:
    """Whether a file is a CSV with exactly the columns of a frame."""
    return header_of(path) == [str(escaped(name)) for name in frame.columns] != []


def write_csv(frame: pd.DataFrame, target: str | Path | None = None, **options: Any) -> str | None:
    """Write a frame as CSV: without its index, truth values as TRUE and FALSE, texts that a spreadsheet runs escaped.

    Parameters
    ----------
    frame : DataFrame
        The frame.
    target : str or Path, optional
        The file; by default the CSV is returned.
    **options
        Options of :meth:`pandas.DataFrame.to_csv`.
    """
    return texts_changed(frame, _written).to_csv(target, index=False, **options)


def read_csv(source: str | Path, **options: Any) -> pd.DataFrame:
    """Read a CSV file of this package: a frame with the texts that were written.

    Parameters
    ----------
    source : str or Path
        The file.
    **options
        Options of :func:`pandas.read_csv`.
    """
    import pandas as pd

    return texts_changed(pd.read_csv(source, **options), unescaped)


def texts_changed(frame: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """A frame with its texts, truth values and the names of its columns changed; columns of numbers are shared."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    found = frame.copy(deep=False)
    for position, dtype in enumerate(frame.dtypes):
        if is_numeric_dtype(dtype) and not is_bool_dtype(dtype):
            continue
        # A series stays what it is; an array would become one of Arrow, which cannot hold half a surrogate pair.
        kept = None if is_bool_dtype(dtype) else object
        changed = pd.Series([change(value) for value in found.iloc[:, position]], index=found.index, dtype=kept)
        found.isetitem(position, changed)  # type: ignore[arg-type]
    return found.rename(columns=change)
