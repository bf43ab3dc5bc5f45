"""Tables of an audit, printed from the frames of their numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from opinionsim.analysis import Table, interval_text
from opinionsim.audit._sample import Sample
from opinionsim.evidence import evidence_statement


def spelled(row: Mapping[Any, Any], name: str, none: str = "undefined") -> str:
    """A cell: a number with the interval that stands beside it as NAME_ci_low and NAME_ci_high; texts as they are."""
    value = row[name]
    if not isinstance(value, float):
        return str(value)
    ends = (row.get(f"{name}_{end}", math.nan) for end in ("ci_low", "ci_high"))
    return none if math.isnan(value) else interval_text(value, *ends)


def table_of(
    name: str,
    heading: str,
    sample: Sample,
    rows: Sequence[Mapping[Any, Any]] | pd.DataFrame,
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
    rows : sequence of mapping, or DataFrame
        Numbers by name; their evidence is that of the sample where they name none.
    shown : mapping of str to str
        Names of the columns that are printed, with their headings.
    labels : int
        How many of them name the row.
    notes : sequence of str
        How to read it.
    """
    evidence = sample.texts["evidence_of_run"]
    statement = evidence_statement(evidence)
    frame = pd.DataFrame(rows).assign(audit=sample.audit.audit_id)
    if "evidence" not in frame:
        frame["evidence"] = " + ".join(sorted(set(evidence)))
    cells = tuple(tuple(spelled(row, column, "-") for column in shown) for row in frame.to_dict("records"))
    said = (f"Evidence: {statement}.", *notes)
    return Table(f"{statement} | {heading}", (tuple(shown.values()),), cells, labels, frame, said, name)
