"""Tables of an audit, printed from the frames of their numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from opinionsim.analysis import Table
from opinionsim.audit._sample import Sample
from opinionsim.evidence import evidence_statement


def spelled(row: Mapping[Any, Any], name: str, none: str = "undefined") -> str:
    """A cell: a number with the interval that stands beside it as NAME_low and NAME_high; texts and counts as given."""
    value = row[name]
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return none
    low, high = row.get(f"{name}_low", math.nan), row.get(f"{name}_high", math.nan)
    # A number that rounds to zero has no sign.
    value, low, high = (round(each, 2) + 0.0 for each in (value, low, high))
    return f"{value:.2f}" + ("" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]")


def table_of(
    name: str,
    heading: str,
    sample: Sample,
    rows: Sequence[Mapping[Any, Any]],
    shown: Mapping[str, str],
    labels: int,
    notes: Sequence[str],
) -> Table:
    """A table of an audit.

    Parameters
    ----------
    name, heading : str
        Name of its files, and its title behind the statement of evidence.
    sample : Sample
        The sample, whose texts have the evidence.
    rows : sequence of mapping
        Numbers by name.
    shown : mapping of str to str
        Names of the columns that are printed, with their headings.
    labels : int
        How many of them name the row.
    notes : sequence of str
        How to read it.
    """
    evidence = sample.texts["evidence_of_run"]
    statement = evidence_statement(evidence)
    frame = pd.DataFrame(rows).assign(audit=sample.audit.audit_id, evidence=" + ".join(sorted(set(evidence))))
    cells = tuple(tuple(spelled(row, column, "-") for column in shown) for row in frame.to_dict("records"))
    said = (f"Evidence: {statement}.", *notes)
    return Table(f"{statement} | {heading}", (tuple(shown.values()),), cells, labels, frame, said, name)
