"""Tables of elections: winners of the last round of each session, and the choices of other rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from opinionsim.analysis import Table
from opinionsim.consensus._selections import rows_of, selections
from opinionsim.consensus.evaluation._measures import candidate_table
from opinionsim.consensus.evaluation._rating_tables import noted, rated_statements
from opinionsim.metrics import condition_axes, evidence_of
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.store import Results

#: Most elections whose winners are named one by one, and most sessions whose winners are shown.
_NAMED, _SHOWN = 4, 8


@part("table", name="winners")
def winner_table(results: Results) -> Table | None:
    """Tabulate the winner of the last round of each session.

    Returns
    -------
    Table or None
        Round, turn and policy of the winner, mean agreement and consent of its ratings in that round, its mean rank,
        the rule that elected it and the turns that the rule left tied. Notes quote the winners. The table shows the
        first of many sessions; the frame has all, with the statements. None for results without an election.
    """
    from opinionsim.consensus import sessions, statements

    axes, keys = list(condition_axes(results.runs)), ["run_id", "cell"]
    held = selections(results).query("elects")
    found = statements(results).query("winner").rename(columns={"group": "run_id"})
    found = results.ordered_runs[[*keys, *axes]].merge(found).merge(held[[*keys, "round", "rule", "tied"]])
    if found.empty:
        return None
    if (rated := rated_statements(results, winner=False)) is not None:
        means = candidate_table(rated).rename(columns={"group": "run_id"})
        found = found.merge(means[["run_id", "candidate", "round", "mean", "consent"]], "left")
    found = found.groupby(keys, sort=False, observed=True).tail(1)
    found = found.assign(session=found["run_id"].str[:8], tied=found["tied"].map(_equal))
    columns = ["session", *axes, "round", "turn", "policy", "mean", "consent", "rank", "rule", "tied", "statement"]
    found = found.reindex(columns=[*columns, "evidence"]).dropna(axis=1, how="all")
    shown = found.head(_SHOWN)
    told: dict[str, Any] = {"more": len(found) - _SHOWN, "shown": rows_of(shown)}
    told |= {"held": held, "sessions": list(sessions(results))}
    made = noted("Winners of the last round", shown.drop(columns="statement"), ["session", *axes], "winners", **told)
    return replace(made, frame=found)


def _equal(turns: tuple[int, ...]) -> str:
    """Turns that share a place; a dash for none."""
    return " = ".join(map(str, turns)) or "-"


@part("table", name="elections")
def election_table(results: Results) -> Table | None:
    """Tabulate election rules by condition and kind of ballots.

    Returns
    -------
    Table or None
        For each rule, the number of elections and the shares in which it puts the winning statement first alone, first
        with others, or not first; for few elections, also its choices. None for results without an election.
    """
    from opinionsim.consensus import other_rules, sessions

    held = selections(results)
    if held.empty:
        return None
    axes = list(condition_axes(results.runs))
    cells = results.ordered_runs[["cell", *axes]].drop_duplicates("cell")
    found = cells.merge(other_rules(results), on="cell")
    labels, records = [*axes, "ballots", "rule"], []
    for key, each in found.groupby(labels, sort=False, dropna=False):
        named = ", ".join(f"turn {_equal(first)}" for first in each["first"]) if len(each) <= _NAMED else ""
        kinds = {"same": each["same"] & ~each["tied"], "tied": each["same"] & each["tied"], "other": ~each["same"]}
        shares = {name: own.mean() for name, own in kinds.items()}
        told = {**dict(zip(labels, key, strict=True)), "elections": len(each), **shares, "would choose": named}
        records.append({**told, "evidence": evidence_of(each["evidence"])})
    made, heading = pd.DataFrame(records), "Winners by rule"
    return noted(heading, made, labels, "elections", held=held, sessions=list(sessions(results)))
