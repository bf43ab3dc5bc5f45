"""Tables: printed cells with the numbers behind them, as text, CSV, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from opinionsim.analysis._means import LEAST_UNITS, spread_of
from opinionsim.errors import SpecError
from opinionsim.foundation.folding import folded, longest_word
from opinionsim.foundation.outputs import put
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.metrics import ANY, evidence_statement, spell_mean

#: Forms that a table can be written in.
Form = Literal["text", "csv", "markdown", "latex"]
#: Columns of a printed table, the share of them that labels have where a table is wider, and the most that keeps words.
_WIDTH, _LABELS, _MOST = 100, 0.54, 0.8
#: What stands where there is no number; notes say why.
NONE = "\N{EN DASH}"
#: What LaTeX reads as commands, and signs that its fonts do not have outside of formulas.
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${sign}$" for sign in "<>|"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{SQUARE ROOT}": r"$\surd$",
}


@dataclass(frozen=True, eq=False)
class Table:
    """A table ready to print or to save.

    Attributes
    ----------
    title : str
        Begins with the kind of evidence.
    header : tuple of tuple of str
        Heading lines, one text per column.
    rows : tuple of tuple of str
        Cells as printed.
    n_labels : int
        Number of columns, from the left, that name the condition.
    frame : DataFrame
        The same numbers unrounded, one row per condition (:func:`opinionsim.metrics.condition_metrics`).
    notes : tuple of str
        Notes on how to read the numbers; the first states the evidence.
    name : str
        Name of the table and part of the names of its files; empty for the tables of final opinions.
    """

    title: str
    header: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    n_labels: int
    frame: pd.DataFrame
    notes: tuple[str, ...]
    name: str = ""

    @classmethod
    def of(
        cls, heading: str, frame: pd.DataFrame, labels: Sequence[str] = (), notes: Sequence[str] = (), name: str = ""
    ) -> Table:
        """Make a table from a frame, with one row for each of its rows.

        Parameters
        ----------
        heading : str
            What the table shows. The kind of evidence comes before it.
        frame : DataFrame
            Numbers, and a column ``evidence``, which the table does not print. It prints numbers with two decimals. A
            column NAME with columns NAME_ci_low and NAME_ci_high is printed with its interval.
        labels : sequence of str
            Columns that name the condition; they come first.
        notes : sequence of str
            Notes on how to read the numbers.
        name : str
            Name of its files, and of the table among others.

        Raises
        ------
        SpecError
            If the frame has no column ``evidence``.
        """
        if "evidence" not in frame:
            raise SpecError(
                f"the frame of the table {heading!r} has no column 'evidence', which says of each row where it is from "
                f"(scripted, model, equation, human or mixed); keep that of the frame it is made of"
            )
        behind = ("evidence", *(f"{each}_ci_{end}" for each in frame.columns for end in ("low", "high")))
        further = [each for each in frame.columns if each not in (*labels, *behind)]
        rows = [
            (*(level_text(row[each]) for each in labels), *(number_text(row, each) for each in further))
            for row in frame.to_dict("records")
        ]
        header = tuple(headings([*labels, *map(str, further)]))
        return finished(heading, frame, (header,), rows, len(labels), notes, name)

    def to_text(self, width: int = _WIDTH) -> str:
        """Return the whole table as plain text, at most `width` columns wide: title, aligned columns, notes.

        If the columns do not fit next to each other, long labels are folded, and further columns follow below with
        repeated labels.
        """
        lines: list[Sequence[str]] = [*self.header, *self.rows]
        head = len(self.header)
        if sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2 > width:
            share, most = (max(int(part * width) // max(self.n_labels, 1) - 2, 6) for part in (_LABELS, _MOST))
            words = [max(map(longest_word, column)) for column in zip(*lines, strict=True)][: self.n_labels]
            parts = [self._folded(line, [max(share, min(word, most)) for word in words]) for line in lines]
            lines, head = [each for part in parts for each in part], sum(map(len, parts[:head]))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        labels = list(range(self.n_labels))
        blocks: list[list[int]] = [labels[:]]
        for column in range(self.n_labels, len(widths)):
            if sum(widths[each] + 2 for each in blocks[-1]) + widths[column] > width and blocks[-1] != labels:
                blocks.append(labels[:])
            blocks[-1].append(column)
        body = [fill(self.title, width)]
        for block in blocks:
            rule = "-" * (sum(widths[each] + 2 for each in block) - 2)
            aligned = ["  ".join(self._aligned(line, widths, each) for each in block) for line in lines]
            body += [rule, *aligned[:head], rule, *aligned[head:]]
        body += [rule, *(fill(note, width, subsequent_indent="  ") for note in self.notes)]
        return "\n".join(line.rstrip() for line in body if line.strip()) + "\n"

    def to_markdown(self) -> str:
        """Return the whole table in Markdown: title, cells with headings in one line, notes as a list."""
        heads = [" ".join(dict.fromkeys(filter(None, names))) for names in zip(*self.header, strict=True)]
        marks = ["---" if column < self.n_labels else "---:" for column in range(len(heads))]
        lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in (heads, *self.rows)]
        lines.insert(1, f"|{'|'.join(marks)}|")
        return "\n".join([f"**{self.title}**", "", *lines, "", *(f"- {note}" for note in self.notes)]) + "\n"

    def to_latex(self) -> str:
        r"""Return the whole table in LaTeX, with notes below; it needs ``\usepackage{booktabs}``."""
        columns = "l" * self.n_labels + "r" * (len(self.header[0]) - self.n_labels)
        lines = [f"\\caption{{{latex_text(self.title)}}}", f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}", "\\toprule"]
        for place, names in enumerate(self.header):
            last = place == len(self.header) - 1
            cells, rules, column = [], [], 1
            for name, group in groupby(names):
                width = len(list(group))
                if name and width > 1 and not last:
                    cells.append(f"\\multicolumn{{{width}}}{{c}}{{{latex_text(name)}}}")
                    rules.append(f"\\cmidrule(lr){{{column}-{column + width - 1}}}")
                else:
                    cells += [latex_text(name)] * width
                column += width
            lines += [" & ".join(cells) + r" \\", *([" ".join(rules)] if rules else [])]
        lines += ["\\midrule", *(" & ".join(map(latex_text, row)) + r" \\" for row in self.rows), "\\bottomrule"]
        notes = " ".join(map(latex_text, self.notes))
        lines += [
            "\\end{tabular}",
            "",
            r"\medskip",
            rf"\begin{{minipage}}{{\linewidth}}\footnotesize {notes}\end{{minipage}}",
        ]
        return "\n".join([r"\begin{table}", r"\centering", *lines, r"\end{table}"]) + "\n"

    def to_form(self, form: Form, width: int = _WIDTH) -> str:
        """Return the table as ``text`` of a width, ``csv`` (the unrounded numbers), ``markdown`` or ``latex``."""
        if form == "text":
            return self.to_text(width)
        made = {"markdown": self.to_markdown, "latex": self.to_latex}
        return made[form]() if form in made else str(write_csv(self.frame))

    def _folded(self, line: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
        """The lines that a row takes where its labels are folded to widths."""
        parts = [*map(folded, line, widths), *([cell] for cell in line[self.n_labels :])]
        return [list(each) for each in zip_longest(*parts, fillvalue="")]

    def _aligned(self, line: Sequence[str], widths: Sequence[int], column: int) -> str:
        """A cell of a line padded to its column's width: labels to the left, numbers to the right."""
        padded = str.ljust if column < self.n_labels else str.rjust
        return padded(line[column], widths[column])

    def to_csv(self, path: str | Path) -> Path:
        """Save the unrounded numbers with their ``evidence`` and ``validation`` columns.

        Parameters
        ----------
        path : str or Path
            File to write; a missing folder is created.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        SpecError
            If the file cannot be written.
        """
        put(target := Path(path), partial(write_csv, self.frame))
        return target


def finished(
    heading: str,
    frame: pd.DataFrame,
    header: tuple[tuple[str, ...], ...],
    rows: Sequence[tuple[str, ...]],
    n_labels: int,
    notes: Sequence[str],
    name: str = "",
) -> Table:
    """Make a table from cells, with its evidence stated and labels that repeat the row above left blank."""
    statement = evidence_statement(frame["evidence"])
    shown = [rows[0]] if rows else []
    for above, row in pairwise(rows):
        same = 0
        while same < n_labels - 1 and row[same] == above[same]:
            same += 1
        shown.append(("",) * same + row[same:])
    said = (f"Evidence: {statement}.", *filter(None, notes))
    return Table(f"{statement} | {heading}", header, tuple(shown), n_labels, frame, said, name)


def cell_text(mean: float, error: float = math.nan, none: str = NONE) -> str:
    """Return a mean with its standard error as printed, with two decimals if it has none; `none` without a mean."""
    return spell_mean(mean, error, ".2f") if pd.notna(mean) else none


def headings(axes: Sequence[str]) -> list[str]:
    """Return column headings of conditions: the last part of each path in words, or the whole path if that repeats."""
    short = [axis.rsplit(".", 1)[-1].replace("_", " ").removeprefix("n ") for axis in axes]
    return [
        name if short.count(name) == 1 else axis.removeprefix("sweep.").replace("_", " ")
        for axis, name in zip(axes, short, strict=True)
    ]


def level_text(value: Any) -> str:
    """Return a level as printed; a dash if the axis does not apply."""
    return "-" if pd.isna(value) else str(value)


def interval_text(mean: float, low: float, high: float, alone: str = ".2f") -> str:
    """Return a mean with its interval, as in "0.52 [0.31, 0.73]"; only the mean if the interval is missing or a point.

    Numbers have two decimals, or more if the half-width would round to 0.
    """
    if math.isnan(mean):
        return NONE
    if not high > low:
        return spell_mean(mean, alone=alone)
    half = (high - low) / 2
    places = 2 if half >= 0.005 else 1 - int(f"{half:.1e}".partition("e")[2])
    return "{} [{}, {}]".format(*(spell_mean(each, alone=f".{places}f") for each in (mean, low, high)))


def number_text(row: Mapping[Any, Any], name: str, none: str = NONE) -> str:
    """Return a cell as text: a number with its interval from NAME_ci_low and NAME_ci_high, other values unchanged."""
    value = row[name]
    if not isinstance(value, float):
        return str(value)
    ends = (row.get(f"{name}_{end}", math.nan) for end in ("ci_low", "ci_high"))
    return none if math.isnan(value) else interval_text(value, *ends)


def mean_text(values: ArrayLike, limits: tuple[float, float] = ANY) -> str:
    """Return the mean of independent units, with a t interval within limits if three units or more differ."""
    found = np.asarray(values, dtype=float)
    if len(found) < LEAST_UNITS or not np.ptp(found) > 0:
        return spell_mean(float(found.mean()))
    low, high = np.clip(spread_of(found[None], "crossed", "these-topics").interval(), *limits)
    return interval_text(float(found.mean()), float(low), float(high))


def p_text(p: float) -> str:
    """Return a p-value with three decimals, or as less than 0.001; a dash if there is none."""
    if math.isnan(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def latex_text(text: str) -> str:
    """Escape the characters of a text that LaTeX reads as commands."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def spell_all(*settings: Mapping[str, Any]) -> str:
    """Return settings as a list of assignments."""
    return ", ".join(f"{name}={spell(value)}" for each in settings for name, value in each.items())


def spell(value: Any) -> str:
    """Return a setting in a few characters."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {spell(each)}" for name, each in value.items())
    if hasattr(value, "__len__") and not isinstance(value, str):
        return f"[{len(value)} values]" if len(value) else "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
