"""Tables of an audit, printed from the frames of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from opinionsim.analysis import Table, finished, number_text
from opinionsim.audit._sample import Sample


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
    frame = pd.DataFrame(rows).assign(audit=sample.audit.audit_id)
    if "evidence" not in frame:
        kinds = set(sample.texts["evidence_of_run"])
        frame["evidence"] = kinds.pop() if len(kinds) == 1 else "mixed"
    cells = [tuple(number_text(row, column, "-") for column in shown) for row in frame.to_dict("records")]
    return finished(heading, frame, (tuple(shown.values()),), cells, labels, notes, name)
