"""Tables of what is doubtful or missing: the numbers with and without it, and who was not heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from opinionsim.analysis._printed_table import Table, cell_text, finished, headings, level_text
from opinionsim.analysis._units import counted, default_axes, measured, own_metrics
from opinionsim.errors import SpecError
from opinionsim.metrics import (
    SIDES,
    TO_MEASURE,
    condition_metrics,
    exposure,
    in_order,
    one_wording,
    run_metrics,
    usable_runs,
)
from opinionsim.registry import part


@part("table", name="missing", fits=lambda asked: asked.stance)
def missing_tables(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    turns: pd.DataFrame,
    metrics: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
) -> list[Table]:
    """Tables of what the numbers are without what is doubtful, and of who was not heard.

    Parameters
    ----------
    runs, opinions, agents, turns : DataFrame
        Frames of a store.
    metrics, kind, wording
        As for :func:`opinionsim.analysis.tables`.

    Returns
    -------
    list of Table
        Mean opinion and diversity with and without cut-off texts, runs with few measured agents, and ambiguous texts,
        where they differ; and, if anything that was to be read was refused, refusals by side of their author with the
        mean opinions of intended and delivered speakers. Empty for runs of which nothing is doubtful or refused.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    runs, _ = one_wording(runs, wording)
    if usable_runs(runs).empty:
        raise SpecError(f"no complete run of a cell measures stance, so there is nothing to tabulate: {TO_MEASURE}")
    axes = default_axes(runs)
    _, chosen = counted(runs, metrics, kind)
    return [
        *_sensitivity(runs, opinions, agents, metrics, axes, chosen),
        *_exposure(runs, opinions, turns, axes, chosen),
    ]


def _variants(
    runs: pd.DataFrame, opinions: pd.DataFrame, agents: pd.DataFrame, metrics: pd.DataFrame, kind: str
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Metrics of runs with and without what is doubtful, each with its heading; only those that can differ."""
    ddof = int(metrics["ddof"].max()) if len(metrics) else 0

    def read_as(values: pd.Series[float]) -> pd.DataFrame:
        return run_metrics(runs, own.assign(value=values), agents, ddof)

    own = opinions[opinions["run_id"].isin(set(runs["run_id"])) & (opinions["kind"] == kind)]
    if "coded" in own.columns:
        cut = (own["status"] == "truncated") & own["coded"].notna()
        if (cut & own["value"].isna()).any():
            yield "cut-off counted", read_as(own["value"].where(~cut, own["coded"]))
        if (cut & own["value"].notna()).any():
            yield "cut-off left out", read_as(own["value"].where(~cut))
    if metrics.loc[metrics["kind"] == kind, "sparse"].any():
        yield "without sparse runs", metrics[~metrics["sparse"]]
    if "ambiguous" in own.columns and (own["ambiguous"] & own["value"].notna()).any():
        yield "without ambiguous", read_as(own["value"].where(~own["ambiguous"]))


#: Variants of the numbers, by their headings: what they leave out or count.
_DOUBTS = {
    "cut-off counted": "texts that were cut off, as they were coded",
    "cut-off left out": "texts that were cut off",
    "without sparse runs": "runs with an opinion of fewer than half of their agents",
    "without ambiguous": "opinions with a probability of at least 0.25 on each side of neutral",
}


def _sensitivity(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    metrics: pd.DataFrame,
    axes: Sequence[str],
    kind: str,
) -> Iterator[Table]:
    """One table of mean opinion and diversity as tabulated, and of each variant that differs; none without these."""
    numbers = pd.DataFrame()
    variants: list[str] = []
    for name, other in _variants(runs, opinions, agents, metrics, kind):
        if numbers.empty:
            numbers = measured(runs, metrics, axes, kind)[0][[*axes, "kind", "evidence", "bias", "diversity", "n_runs"]]
        used = usable_runs(runs)
        found = condition_metrics(used, own_metrics(used, other[other["kind"] == kind]), axes)
        columns = {column: f"{column} {name}" for column in ("bias", "diversity", "n_runs")}
        renamed = found[[*axes, "evidence", *columns]].rename(columns=columns)
        both = numbers.merge(renamed, on=[*axes, "evidence"], how="left")
        pairs = [both[[column, columns[column]]].to_numpy(float).T for column in ("bias", "diversity")]
        if not all(np.allclose(old, new, rtol=0, atol=0.005, equal_nan=True) for old, new in pairs):
            numbers, variants = both, [*variants, name]
    if not variants:
        return
    names = ["", *(f" {name}" for name in variants)]
    header = (
        (*("",) * len(axes), *(name.strip() or "as tabulated" for name in names for _ in range(2))),
        (*headings(axes), *("mean opinion", "diversity") * len(names)),
    )
    rows = [
        (
            *(level_text(row[axis]) for axis in axes),
            *(cell_text(row[f"{column}{name}"]) for name in names for column in ("bias", "diversity")),
        )
        for row in numbers.to_dict("records")
    ]
    notes = [f"{name[0].upper()}{name[1:]}: {_DOUBTS[name]}." for name in variants]
    yield finished("With and without what is doubtful", numbers, header, rows, len(axes), notes, "doubtful")


def _exposure(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    turns: pd.DataFrame,
    axes: Sequence[str],
    kind: str,
) -> Iterator[Table]:
    """One table of refusals by side of their author; none where nothing that was to be read was refused."""
    # Looking who was to hear whom takes as long as all other tables.
    if not (turns["first_status"] == "refused").any():
        return
    read = usable_runs(runs)
    keys = ["run_id", "cell", "instrument_id"]
    heard = read[[*keys, *axes]].drop_duplicates().merge(exposure(read, turns, opinions, kind), on=keys)
    sides = (*SIDES.values(), "unmeasured")
    if heard.empty or not heard[[f"n_{side}_at_first" for side in sides]].to_numpy().any():
        return
    counts = [column for column in heard.columns if str(column).startswith("n_") and column not in axes]
    grouped = heard.groupby([*axes, "evidence"], dropna=False, sort=False)
    frame = grouped[counts].sum().join(grouped[["intended", "delivered"]].mean()).reset_index()
    frame = in_order(frame.assign(kind=kind), axes, read)
    header = (*headings(axes), *(f"{side}" for side in sides), "intended", "delivered", "shift")
    rows = [
        (
            *(level_text(row[axis]) for axis in axes),
            *(_refusals(row[f"n_{side}"], row[f"n_{side}_at_first"], row[f"n_{side}_refused"]) for side in sides),
            *(cell_text(row[name]) for name in ("intended", "delivered")),
            cell_text(row["delivered"] - row["intended"]),
        )
        for row in frame.to_dict("records")
    ]
    notes = (
        "Of the messages that turns were to read, the share refused at first and in the end, by side of the author's "
        "last measured opinion.",
        "Intended and delivered: mean last opinion of the authors of these messages, and of those that were received. "
        "A shift changes the mean opinion without any influence: see docs/missing.md.",
    )
    yield finished("Refusals by side of their author", frame, (header,), rows, len(axes), notes, "heard")


def _refusals(n: int, first: int, last: int) -> str:
    return f"{first / n:.0%}, {last / n:.0%} of {n}" if n else "-"
