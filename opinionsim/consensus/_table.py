"""The table of elections: what other rules would have chosen, and how often they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from opinionsim.analysis import Table, finished, headings, level_text
from opinionsim.consensus._selections import selections
from opinionsim.metrics import condition_axes, evidence_of
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.store import Results

#: Most elections whose winners are named one by one.
_NAMED = 4


@part("table", name="elections")
def election_table(results: Results) -> Table | None:
    """The table of rules by condition and kind of ballots.

    Returns
    -------
    Table or None
        For each rule the number of elections, the share in which it would have chosen the statement that won, and the
        share in which it leaves the first place tied; for few elections also what it would have chosen. None for
        results without an election.
    """
    from opinionsim.consensus import other_rules

    held = selections(results)
    if held.empty:
        return None
    axes = list(condition_axes(results.runs))
    cells = results.ordered_runs[["cell", *axes]].drop_duplicates("cell")
    found = cells.merge(other_rules(results), on="cell")
    own = held.groupby("cell")["rule"].first()
    rows, records = [], []
    for key, each in found.groupby([*axes, "ballots", "rule"], sort=False, dropna=False):
        tied = (" = ".join(map(str, first)) for first in each["first"])
        named = ", ".join(f"turn {turns}" for turns in tied) if len(each) <= _NAMED else ""
        told = dict(zip([*axes, "ballots", "rule"], key, strict=True))
        records.append({**told, "elections": len(each), "same": each["same"].mean(), "tied": each["tied"].mean()})
        shares = (f"{records[-1]['same']:.2f}", f"{records[-1]['tied']:.2f}")
        rows.append((*map(level_text, key), str(len(each)), *shares, named))
        records[-1]["evidence"] = evidence_of(each["evidence"])
    missing = int((held["asked"] - held["counted"]).sum())
    rules = ", ".join(sorted(set(own)))
    notes = [
        f"Same: share of elections in which the rule puts first what won under {rules}. Tied: share in which it leaves "
        "the first place tied.",
        f"Ballots: {held['counted'].sum()} counted, {missing} missing or incomplete.",
    ]
    header = ((*headings([*axes, "ballots", "rule"]), "elections", "same", "tied", "would choose"),)
    return finished("What each rule would have chosen", pd.DataFrame(records), header, rows, len(axes) + 1, notes)
