"""Table of verdicts: how often moderators accept, reject, or leave a claim undecided."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd

from opinionsim.analysis._printed_table import Table
from opinionsim.metrics import condition_axes, evidence_of, in_order, one_wording
from opinionsim.registry import part

#: The variable that verdicts are coded under, and its scale points in words.
VERDICT = "verdict"
_WORDS: Mapping[float, str] = MappingProxyType({1.0: "accepted", 0.0: "undecided", -1.0: "rejected"})


@part("table", name="verdicts")
def verdict_table(runs: pd.DataFrame, opinions: pd.DataFrame, wording: str | None = None) -> Table | None:
    """Tabulate verdicts of moderators by condition (Plurals; B8).

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store.
    wording : str, optional
        As for :func:`opinionsim.analysis.tables`.

    Returns
    -------
    Table or None
        Numbers of complete runs by the moderator's verdict: accepted, undecided, rejected, or no verdict in the text.
        None if no verdict was coded.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    decided = opinions[opinions["variable"] == VERDICT]
    if decided.empty:
        return None
    read, _ = one_wording(runs, wording)
    read = read[read["status"] == "complete"]
    axes = list(condition_axes(read))
    conditions = read[["run_id", "cell", "evidence", *axes]]
    found = decided[["run_id", "cell", "value"]].merge(conditions, on=["run_id", "cell"])
    found["verdict"] = found["value"].map(_WORDS).fillna("none stated")
    counts = pd.crosstab([found[axis].fillna("-") for axis in axes] or found["evidence"], found["verdict"])
    columns = [*_WORDS.values(), "none stated"]
    frame = counts.reindex(columns=columns, fill_value=0).reset_index()
    frame["runs"] = frame[columns].sum(axis=1)
    frame["evidence"] = evidence_of(found["evidence"])
    frame = in_order(frame, axes, read)
    notes = ["Numbers of runs by the verdict in their moderator's text. Missing verdicts are not imputed."]
    return Table.of("Verdicts by condition", frame, axes, notes)
