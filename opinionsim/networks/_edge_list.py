"""Edge lists: two agents per line, with an optional weight."""

from __future__ import annotations

import re
from pathlib import Path

from opinionsim.errors import meant
from opinionsim.foundation import tables
from opinionsim.networks._graph_reading import refuse

#: Headings of both ends of an edge, the speaker first.
_ENDS = (("from", "to"), ("source", "target"), ("speaker", "listener"), ("src", "dst"))
_PLAIN = ("source", "target", "weight")

_Rows = list[tuple[int, list[str]]]


def read_edge_list(file: Path, weight: str | None = None) -> tuple[list[str], list[float] | None]:
    """Return labels, two in a row for each edge, and the weight of each edge, or None if all weights are 1.

    Parameters
    ----------
    file : Path
        The file.
    weight : str, optional
        Heading of the column of weights, or their name in braces. The default is ``weight`` or a third column without
        a heading.
    """
    text, remark = tables.table_text(file)
    braces = rf"""\{{.*["']{re.escape(weight or "weight")}["']\s*:\s*([^,}}]*)"""
    stated = {
        at: found[1].strip() for at, line in enumerate(text.splitlines(), 1) if (found := re.search(braces, line))
    }
    rows, delimiter = _rows(file, text)
    headed = _has_header(file, rows)
    tables.check_rows(str(file), rows, headed=headed)
    place, first = f"{file}:{rows[0][0]}", rows[0][1]
    columns = [cell.casefold() for cell in first] if headed else list(_PLAIN[: len(first)])
    rows = rows[headed:]
    ends = next((pair for pair in _ENDS if {*pair} <= {*columns}), (columns[0], columns[1]))
    wanted = (weight or "weight").casefold()
    if stated:
        columns.append(wanted)
        rows = [(line, [*row, stated.get(line, "1")]) for line, row in rows]
    elif wanted not in columns and weight is not None:
        refuse(f"{place}: has no column {weight!r}{meant(weight, columns)}; it has {', '.join(columns)}", file)
    elif wanted not in columns and len(columns) == 3:
        problem = f"the third column is {first[2]!r}{meant(first[2], _PLAIN[2:])}"
        refuse(f"{place}: {problem}; set weight: {first[2]}, or remove the column", file)
    for name in (*ends, wanted):
        if columns.count(name) > 1:
            refuse(f"{place}: the column {name!r} occurs {columns.count(name)} times; keep one of them", file)
    lines, cells = zip(*rows, strict=True)
    table = tables.TableFile(
        str(file), tuple(columns), cells, lines, tables.has_decimal_commas(delimiter, rows), remarks=(remark,)
    )
    weights = table.numbers(wanted) if wanted in columns else [1.0] * len(rows)
    pairs = list(zip(*map(table.texts, ends), strict=True))
    for row, values in enumerate(zip(weights, *zip(*pairs, strict=True), strict=True)):
        if None in values:
            table.refuse(
                row, "an agent or a weight is missing; give both agents of every edge, and either all weights or none"
            )
    labels = [str(label) for pair in pairs for label in pair]
    numbers = [weight for weight in weights if weight is not None]
    table.tell((*ends, wanted) if wanted in columns else ends)
    return labels, numbers if any(each != 1 for each in numbers) else None


def _rows(file: Path, text: str) -> tuple[_Rows, str]:
    """Rows without comments and attributes in braces, and their delimiter: a blank for any white space."""
    lines = [re.sub(r"\s\{.*\}\s*$", "", line).partition("#")[0].strip() for line in text.splitlines()]
    first = next(filter(None, lines), "")
    if {*",;"} & {*first}:
        rows, delimiter = tables.split_rows(str(file), "\n".join(lines), ",;")
    else:
        rows, delimiter = [(at, line.split()) for at, line in enumerate(lines, 1) if line], " "
    for at, row in rows:
        if len(row) < 2 or not all(row[:2]) or (delimiter == " " and {*",;"} & {*"".join(row)}):
            refuse(
                f"{file}:{at}: must contain two agents and optionally a weight, separated by spaces or tabs, or in all "
                f"lines by commas or semicolons; got {lines[at - 1]!r:.80}",
                file,
            )
    if not rows:
        refuse(f"{file} contains no edges", file)
    return rows, delimiter


def _has_header(file: Path, rows: _Rows) -> bool:
    """Whether the first row names the columns."""
    (line, first), *others = rows
    named = not others or any(tables.number_in(word) is not None for word in first)
    folded = [word.casefold() for word in first]
    known = any({*pair} <= {*folded} for pair in _ENDS)
    again = any(word in first for _, row in others if row != first for word in row[:2])
    numbers = all(tables.number_in(word) is not None for _, row in others if row != first for word in row[:2])
    if not named and (numbers or (known and (not again or len(first) > 2))):
        return True
    if len(first) > 3 or (not named and len(first) == 3):
        refuse(
            f"{file}:{line}: {' '.join(first)!r:.80} may be a header or an edge; put # before it, or use the headings "
            f"{' or '.join(', '.join(pair) for pair in _ENDS)}",
            file,
        )
    return False
