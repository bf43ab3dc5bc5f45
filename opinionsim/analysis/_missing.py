"""Tables of what is missing: causes and rates, what the numbers are with and without it, and who was not heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from opinionsim.analysis._tables import Table, cell_text, finished, headings, level_text, measured, usable_runs
from opinionsim.errors import SpecError
from opinionsim.metrics import SIDES, condition_axes, condition_metrics, exposure, in_order, one_wording, run_metrics

#: Rates of a condition, with their headings.
_RATES = {
    "refused_at_first": "at first",
    "refused": "refused",
    "empty": "empty",
    "truncated": "cut off",
    "off_scale": "off scale",
    "skipped": "skipped",
    "flagged": "flagged",
}


def missing_tables(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    turns: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
    ddof: int = 0,
) -> list[Table]:
    """Tables of what is missing from the tables of final opinions.

    Parameters
    ----------
    runs, opinions, agents, turns : DataFrame
        Frames of a store.
    kind, wording
        As for :func:`opinionsim.analysis.tables`.
    ddof : int
        Correction of the standard deviation.

    Returns
    -------
    list of Table
        For each kind of evidence: missing values by condition and framing; bias and diversity with and without cut-off
        texts, runs with few measured agents, and ambiguous texts, if there are any; and, if anything that was to be
        read was refused, refusals by side of their author with the mean opinions of intended and delivered speakers.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    runs, _ = one_wording(runs, wording)
    read = usable_runs(runs)
    if read.empty:
        raise SpecError("no complete run of a cell measures stance, so there is nothing to tabulate")
    made: list[Table] = []
    for evidence in dict.fromkeys(read["evidence"]):
        own = runs[runs["evidence"] == evidence]
        axes = _axes(usable_runs(own))
        metrics = run_metrics(own, opinions, agents, ddof, turns=turns)
        made.append(_missing(own, metrics, axes, kind))
        chosen = str(made[-1].frame["kind"].iloc[0])
        made += _sensitivity(own, opinions, agents, metrics, axes, chosen)
        made += _exposure(own, opinions, turns, metrics, axes, chosen)
    return made


def _axes(runs: pd.DataFrame) -> list[str]:
    """The conditions of the rows: those that vary without the topic, or the topic, with the framing in any case."""
    varying = condition_axes(runs)
    axes = [axis for axis in varying if axis != "topic"] or list(varying)
    return axes if "framing" in axes else ["framing", *axes]


def _missing(runs: pd.DataFrame, metrics: pd.DataFrame, axes: Sequence[str], kind: str | None) -> Table:
    frame, chosen = measured(runs, metrics, axes, kind)
    header = (
        *headings(axes),
        "answered",
        *_RATES.values(),
        "forgot",
        "measured",
        "age",
        "B between",
        "few",
    )
    rows = [
        (
            *(level_text(row[axis]) for axis in axes),
            _percent(1 - sum(row[f"{cause}_rate"] for cause in ("refused", "empty", "truncated", "skipped"))),
            *(_percent(row[f"{cause}_rate"]) for cause in _RATES),
            f"{row['n_failed_reflections']:.0f}",
            f"{row['n_measured']} of {row['n_agents']}",
            f"{row['mean_age']:.1f}" if pd.notna(row["mean_age"]) else "-",
            f"{cell_text(row['bias_low'])} and {cell_text(row['bias_high'])}",
            f"{row['n_sparse']} of {row['n_runs']}",
        )
        for row in frame.to_dict("records")
    ]
    notes = (
        f"Shares of the turns of kind {chosen}. At first: the first reply was a refusal. Off scale: an answer in which "
        "no opinion was found. Skipped: nothing was left to read. Flagged: an answer with a remark out of role, or a "
        "suspected refusal.",
        "Forgot: reflections, of all turns, that were refused or empty, so that the memory kept its past summary.",
        "Measured: agents with an opinion. Age: steps since it was measured, mean. B between: B if all others were at "
        "the lowest, or at the highest, point. Few: runs with an opinion of fewer than half of their agents; they "
        "count in B and D.",
    )
    return replace(finished("Missing values", frame, (header,), rows, len(axes), notes), name="missing")


def _percent(share: float) -> str:
    return "-" if pd.isna(share) else f"{share:.1%}"


def _variants(
    runs: pd.DataFrame, opinions: pd.DataFrame, agents: pd.DataFrame, metrics: pd.DataFrame, kind: str
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Metrics of runs with and without what is doubtful, each with its heading; only those that can differ."""
    ddof = int(metrics["ddof"].max()) if len(metrics) else 0
    own = opinions[opinions["run_id"].isin(set(runs["run_id"])) & (opinions["kind"] == kind)]
    if "coded" in own.columns:
        cut = (own["condition"] == "truncated") & own["coded"].notna()
        if (cut & own["value"].isna()).any():
            yield (
                "cut-off counted",
                run_metrics(runs, own.assign(value=own["value"].where(~cut, own["coded"])), agents, ddof),
            )
        if (cut & own["value"].notna()).any():
            yield "cut-off left out", run_metrics(runs, own.assign(value=own["value"].where(~cut)), agents, ddof)
    if metrics.loc[metrics["kind"] == kind, "sparse"].any():
        yield "without runs of few measured", metrics[~metrics["sparse"]]
    if "ambiguous" in own.columns and (own["ambiguous"] & own["value"].notna()).any():
        yield (
            "without ambiguous",
            run_metrics(runs, own.assign(value=own["value"].where(~own["ambiguous"])), agents, ddof),
        )


def _sensitivity(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    metrics: pd.DataFrame,
    axes: Sequence[str],
    kind: str,
) -> Iterator[Table]:
    """One table of bias and diversity as tabulated, and of each variant; none without variants."""
    variants = dict(_variants(runs, opinions, agents, metrics, kind))
    if not variants:
        return
    frame, _ = measured(runs, metrics, axes, kind)
    numbers = frame[[*axes, "kind", "evidence", "bias", "diversity", "n_runs"]]
    for name, other in variants.items():
        found = condition_metrics(usable_runs(runs), _of_cells(runs, other, kind), axes)
        columns = {column: f"{column} {name}" for column in ("bias", "diversity", "n_runs")}
        numbers = numbers.merge(found[[*axes, *columns]].rename(columns=columns), on=list(axes), how="left")
    names = ["", *(f" {name}" for name in variants)]
    header = (
        (*("",) * len(axes), *(text for name in names for text in (name.strip() or "as tabulated", ""))),
        (*headings(axes), *("B", "D") * len(names)),
    )
    rows = [
        (
            *(level_text(row[axis]) for axis in axes),
            *(cell_text(row[f"{column}{name}"]) for name in names for column in ("bias", "diversity")),
        )
        for row in numbers.to_dict("records")
    ]
    notes = (
        "Ambiguous: an opinion with a probability of at least 0.25 on each side of neutral. Few measured: runs with an "
        "opinion of fewer than half of their agents. A run without any opinion adds nothing.",
    )
    made = finished("With and without doubtful texts and runs", numbers, header, rows, len(axes), notes)
    yield replace(made, name="doubtful")


def _of_cells(runs: pd.DataFrame, metrics: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The metrics of one kind of text by the instrument that each cell names."""
    named = usable_runs(runs)[["run_id", "cell", "instrument_id"]]
    return metrics[metrics["kind"] == kind].merge(named, on=["run_id", "cell", "instrument_id"])


def _exposure(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    turns: pd.DataFrame,
    metrics: pd.DataFrame,
    axes: Sequence[str],
    kind: str,
) -> Iterator[Table]:
    """One table of refusals by side of their author; none where nothing that was to be read was refused."""
    # Looking who was to hear whom takes as long as all other tables.
    if not (turns["first_condition"] == "refused").any():
        return
    read = usable_runs(runs)
    keys = ["run_id", "cell", "instrument_id"]
    heard = read[[*keys, *axes]].drop_duplicates().merge(exposure(read, turns, opinions, kind), on=keys)
    sides = (*SIDES.values(), "unmeasured")
    if heard.empty or not heard[[f"n_{side}_at_first" for side in sides]].to_numpy().any():
        return
    counts = [column for column in heard.columns if str(column).startswith("n_")]
    grouped = heard.groupby(list(axes), dropna=False, sort=False)
    frame = grouped[counts].sum().join(grouped[["intended", "delivered"]].mean()).reset_index()
    frame = in_order(frame.assign(evidence=heard["evidence"].iloc[0], kind=kind), axes)
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
        "A shift changes B without any influence: see docs/missing.md.",
    )
    yield replace(finished("Refusals by side of their author", frame, (header,), rows, len(axes), notes), name="heard")


def _refusals(n: int, first: int, last: int) -> str:
    return f"{first / n:.0%}, {last / n:.0%} of {n}" if n else "-"
