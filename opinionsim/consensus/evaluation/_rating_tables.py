"""Tables of ratings: agreement, consent and unanimity by policy, win rates, and reliability of raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from opinionsim.analysis import Table
from opinionsim.consensus.evaluation._measures import POSITION, RELIABLE, policy_table, reliability, win_rates
from opinionsim.errors import MeasurementError
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import condition_axes, evidence_of
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.store import Results


@part("table", name="rated-statements")
def rating_tables(results: Results) -> Iterator[Table]:
    """Tabulate ratings of statements by condition (D7).

    Returns
    -------
    iterator of Table
        Means from :func:`opinionsim.consensus.policy_table`, one row per policy; if there are two policies,
        :func:`opinionsim.consensus.win_rates` by the mean of a group, one row per pair; if somebody rated twice, the
        share of these citizens who are reliable by :func:`opinionsim.consensus.reliability`; and if winners were rated
        after they were announced, the means of these ratings. Without ratings, there are no tables.
    """
    if not (results.opinions["variable"] == "agreement").any():
        return
    axes = list(condition_axes(results.ordered_runs))
    runs = results.ordered_runs.drop_duplicates("run_id")[["run_id", *axes]]

    def told(rated: pd.DataFrame, of: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Apply a function to the ratings of each condition."""
        found, by = [], runs.merge(rated, left_on="run_id", right_on="group")
        for key, own in by.groupby(axes, sort=False, dropna=False) if axes else [((), by)]:
            condition: dict[str, Any] = dict(zip(axes, key, strict=True))
            found.append(of(own).assign(**condition, evidence=evidence_of(own["evidence"])))
        return pd.concat(found, ignore_index=True)

    def wide(own: pd.DataFrame) -> pd.DataFrame:
        """One row per policy, and three columns per measure."""
        rows: dict[str, dict[str, Any]] = {}
        for each in policy_table(own).to_dict("records"):
            name = str(each["measure"])
            ends = {f"{name}_ci_{end}": each[end] for end in ("low", "high")}
            row = rows.setdefault(each["policy"], {"policy": each["policy"], "groups": 0})
            row |= {"groups": max(row["groups"], each["n_groups"]), name: each["estimate"], **ends}
        return pd.DataFrame(list(rows.values()))

    def pairs(own: pd.DataFrame) -> pd.DataFrame:
        found = win_rates(own, aggregates=["mean"]).drop(columns="aggregate")
        ends = {"win_rate": "wins", "low": "wins_ci_low", "high": "wins_ci_high", "n": "comparisons"}
        return found.rename(columns=ends).rename(columns={"other": "against", "n_groups": "groups"})

    def raters(own: pd.DataFrame) -> pd.DataFrame:
        found = reliability(own).query("n > 0")
        shares = {"rated twice": len(found), "reliable": int(found["reliable"].sum()), "kappa": found["kappa"].mean()}
        return pd.DataFrame([{"raters": int(own.groupby("group")["citizen"].nunique().sum()), **shares}])

    rated, won = (rated_statements(results, winner=each) for each in (False, True))
    if rated is not None:
        yield noted("Ratings by policy", told(rated, wide), [*axes, "policy"], "ratings", rated=rated)
    if rated is not None and len(beside := told(rated, pairs)):
        yield noted("Which policy wins", beside, [*axes, "policy", "against"], "ratings-wins")
    if rated is not None and (found := told(rated, raters))["rated twice"].any():
        yield noted("Reliability of raters", found, axes, "ratings-reliability", least=RELIABLE)
    if won is not None:
        # The position statement is what the consent of a winner is compared with.
        bar = rated[rated["policy"] == POSITION] if rated is not None else won[:0]
        found = told(pd.concat([won, bar]), wide).query("policy == 'winner'")
        yield noted("Ratings of the winner", found, [*axes, "policy"], "ratings-winner", rated=won)


def noted(heading: str, frame: pd.DataFrame, labels: list[str], name: str, **values: Any) -> Table:
    """A table with notes on how to read it."""
    return Table.of(heading, frame, labels, sentences("opinionsim.consensus", "notes.txt", table=name, **values), name)


def rated_statements(results: Results, *, winner: bool) -> pd.DataFrame | None:
    """Ratings in passes of complete sessions, or those of their winners; None where there are none."""
    from opinionsim.consensus import ratings

    try:
        found = ratings(results, winner=winner)
    except MeasurementError:
        return None
    found = found[found["group"].isin(results.runs.query("status == 'complete'")["run_id"])]
    return None if found.empty else found.assign(policy="winner") if winner else found
