"""The codebook of exported frames, and names of their columns that R takes unquoted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pandas as pd

from opinionsim.store import documented_columns

#: Words that are no names in R.
_RESERVED = frozenset("""if else repeat while function for in next break TRUE FALSE NULL Inf NaN NA""".split())  # noqa: SIM905


def plain_names(columns: Iterable[str]) -> dict[str, str]:
    """Names for columns that R and formulas take without quotes.

    Parameters
    ----------
    columns : iterable of str
        Columns of one frame.

    Returns
    -------
    dict of str to str
        The plain name of each column, distinct from all others. Letters, digits, dots and underscores stay, so swept
        paths keep their names from the specification. A hyphen before a digit becomes ``minus``, as in ``p_minus2``;
        any other sign becomes an underscore. A name that begins with neither a letter nor a dot gets the prefix ``X``.
        A name that is a reserved word of R or already taken gets a dot at the end. The codebook of an export contains
        both names.
    """
    found: dict[str, str] = {}
    for column in columns:
        name = re.sub(r"[^A-Za-z0-9._]", "_", re.sub(r"-(?=\d)", "minus", column))
        name = name if re.match(r"[A-Za-z]|\.(?!\d)", name) else f"X{name}"
        while name in _RESERVED or name in found.values():
            name += "."
        found[column] = name
    return found


def codebook(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The codebook of exported frames.

    Parameters
    ----------
    frames : mapping of str to DataFrame
        Frames of results by name.

    Returns
    -------
    DataFrame
        One row per column of each frame: ``frame``, ``column`` (its name in exported files), ``name`` (its name in the
        package), ``type``, ``unit`` (empty where there is none) and ``meaning``.
    """
    told = documented_columns()
    rows = []
    for frame, data in frames.items():
        for name, column in plain_names(map(str, data.columns)).items():
            own = told.get(frame, told["units"])
            pattern = re.sub(r"_-?\d+$", "_<point>", name)
            entry = own.get(name) or own.get(pattern) or next(own[each] for each in own if each.startswith("<"))
            dtype = str(data[name].dtype)
            kind = "string" if dtype in ("str", "object") else dtype
            meaning = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", entry["meaning"])
            rows.append((frame, column, name, kind, entry.get("unit", ""), meaning))
    return pd.DataFrame(rows, columns=["frame", "column", "name", "type", "unit", "meaning"])
