"""Edge lists: two agents and perhaps a weight a line."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import NamedTuple

from opinionsim.networks._graph_reading import refuse

#: First rows that are taken for headers, not for edges between agents of these names.
_HEADERS = frozenset({("from", "to"), ("source", "target"), ("speaker", "listener"), ("src", "dst")})


class _Edge(NamedTuple):
    """A line of an edge list: its place, its columns, and the weight stated in braces, if any."""

    place: str
    words: list[str]
    weight: str | None


def read_edge_list(file: Path) -> tuple[list[str], list[float] | None]:
    """Labels, two in a row for each edge, and the weight of each edge; None where all are 1."""
    # Spreadsheet programs put a byte order mark before the text.
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    rows: list[_Edge] = []
    commas = False
    for number, line in enumerate(lines, 1):
        text = re.sub(r"\s\{.*\}\s*$", "", line).partition("#")[0].strip()
        if not text:
            continue
        place = f"{file}:{number}"
        commas = commas if rows else "," in text
        words = _columns(place, text, commas=commas)
        if rows and len(words) != len(rows[0].words):
            refuse(f"{place}: has {len(words)} columns, and {rows[0].place} has {len(rows[0].words)}", place)
        braces = re.search(r"""\{.*["']weight["']\s*:\s*([^,}]*)""", line)
        rows.append(_Edge(place, words, braces and braces[1].strip()))
    if not rows:
        refuse(f"{file} has no edge", file)
    if _has_header(rows):
        del rows[0]
    weights = [_weight(row) for row in rows]
    labels = [word for row in rows for word in row.words[:2]]
    return labels, weights if any(weight != 1 for weight in weights) else None


def _columns(place: str, text: str, *, commas: bool) -> list[str]:
    """Two agents and perhaps a weight."""
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True))] if commas else text.split()
    mixed = ";" in text or (not commas and "," in text)
    if mixed or not 2 <= len(words) <= 3 or not all(words):
        refuse(
            f"{place}: must hold two agents and perhaps a weight, separated by spaces or tabs, or in all lines by "
            f"commas; got {text!r:.80}",
            place,
        )
    return words


def _has_header(rows: list[_Edge]) -> bool:
    """Whether the first row names the columns of rows that hold numbers alone."""
    if len(rows) < 2 or any(number_in(word) is not None for word in rows[0].words):
        return False
    if all(number_in(word) is not None for row in rows[1:] for word in row.words):
        return True
    first = rows[0]
    title = (first.words[0].lower(), first.words[1].lower())
    again = any(word in first.words for row in rows[1:] for word in row.words[:2])
    if len(first.words) == 3 or (title in _HEADERS and not again):
        refuse(
            f"{first.place}: {' '.join(first.words)!r:.80} may be a header, which is skipped only where all other "
            "lines hold numbers; put # before it",
            first.place,
        )
    return False


def _weight(row: _Edge) -> float:
    """The weight of an edge, 1 if none is stated."""
    stated = [*row.words[2:], *([] if row.weight is None else [row.weight])]
    if len(stated) > 1:
        refuse(f"{row.place}: states a weight twice, as a column and in braces", row.place)
    weight = number_in(stated[0]) if stated else 1.0
    if weight is None or not math.isfinite(weight):
        refuse(f"{row.place}: the weight must be a finite number; got {stated[0]!r:.60}", row.place)
    return weight


def number_in(text: str) -> float | None:
    """The number that a text spells, NaN and infinity included; None for any other text."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
