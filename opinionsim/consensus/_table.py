"""Tables of elections: what won the last round of each session, and what other rules would have chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from opinionsim.analysis import Table, finished, headings, level_text
from opinionsim.consensus._selections import rows_of, selections
from opinionsim.consensus.evaluation._measures import candidate_table
from opinionsim.consensus.evaluation._rating_tables import notes_on, rated_statements
from opinionsim.metrics import condition_axes, evidence_of
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.store import Results

#: Most elections whose winners are named one by one, and most sessions whose winners are shown.
_NAMED, _SHOWN = 4, 8


@part("table", name="winners")
def winner_table(results: Results) -> Table | None:
    """The table of what won the last round of each session.

    Returns
    -------
    Table or None
        Round, turn and policy of the winner, mean agreement and consent of its ratings in that round, its mean rank,
        the rule that elected it and the turns that this left tied. Notes quote the winners. Of many sessions the first
        are shown; the frame has all, with the statements. None for results without an election.
    """
    from opinionsim.consensus import statements

    held = selections(results)
    last = held[held["elects"]].groupby(["run_id", "cell"]).tail(1)
    if last.empty:
        return None
    axes = list(condition_axes(results.runs))
    told = statements(results).rename(columns={"group": "run_id"}).drop(columns=["winner", "evidence"])
    if (rated := rated_statements(results, winner=False)) is not None:
        means = candidate_table(rated).rename(columns={"group": "run_id"})
        told = told.merge(means[["run_id", "candidate", "round", "mean", "consent"]], "left")
    last = last.rename(columns={"winner": "turn"}).merge(told, "left", on=["run_id", "cell", "round", "turn"])
    found = results.ordered_runs[["run_id", "cell", *axes]].merge(last, on=["run_id", "cell"])
    found = found.assign(session=found["run_id"].str[:8], tied=[" = ".join(map(str, each)) for each in found["tied"]])
    columns = [each for each in ("mean", "consent", "rank") if each in found and found[each].notna().any()]
    columns = ["session", *axes, "round", "turn", "policy", *columns, "rule", "tied"]
    shown = found.head(_SHOWN)
    rest = {"ties": _ties(results, held), "more": len(found) - len(shown), "shown": rows_of(shown)}
    notes = notes_on("winners", **rest)
    made = Table.of("What won the last round", shown[[*columns, "evidence"]], ["session", *axes], notes, "winners")
    return replace(made, frame=found[[*columns, "statement", "evidence"]])


def _ties(results: Results, held: pd.DataFrame) -> str:
    """How many of the elections that chose a winner were tied, and by what these were decided."""
    from opinionsim.consensus import sessions

    held = held[held["elects"]]
    ways = sorted({session.interaction.untied for _, session in sessions(results)})
    return notes_on("ties", held=len(held), tied=int(held["tied"].map(len).gt(0).sum()), ways=" or ".join(ways))[0]


@part("table", name="elections")
def election_table(results: Results) -> Table | None:
    """The table of rules by condition and kind of ballots.

    Returns
    -------
    Table or None
        For each rule the number of elections, the share in which it puts first, alone, the statement that won, and the
        shares in which that stands first with others and something else does; for few elections also what it would have
        chosen. None for results without an election.
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
        kinds = {"same": each["same"] & ~each["tied"], "tied": each["same"] & each["tied"], "other": ~each["same"]}
        shares = {name: own.mean() for name, own in kinds.items()}
        records.append({**told, "elections": len(each), **shares, "would choose": named})
        rows.append((*map(level_text, key), str(len(each)), *map("{:.2f}".format, shares.values()), named))
        records[-1]["evidence"] = evidence_of(each["evidence"])
    rules, counted = ", ".join(sorted(set(own))), int(held["counted"].sum())
    missing = int(held["asked"].sum()) - counted
    notes = notes_on("elections", rules=rules, counted=counted, missing=missing, ties=_ties(results, held))
    header = ((*headings([*axes, "ballots", "rule"]), "elections", *kinds, "would choose"),)
    return finished("What each rule would have chosen", pd.DataFrame(records), header, rows, len(axes) + 1, notes)
