"""Tables of opinions at the start and the end: mean and diversity by condition, with their kind of evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from opinionsim.analysis._means import Estimand, no_estimate
from opinionsim.analysis._printed_table import (
    NONE,
    Table,
    cell_text,
    finished,
    headings,
    level_text,
    number_text,
)
from opinionsim.analysis._units import (
    MEASURES,
    METRIC_KEYS,
    by_condition,
    default_axes,
    interval_notes,
    measured,
)
from opinionsim.errors import SpecError
from opinionsim.foundation.templates import sentences
from opinionsim.messages import MISSING
from opinionsim.metrics import (
    BELIEF,
    LEAST_MEASURED,
    condition_axes,
    none_complete,
    one_wording,
    order_levels,
    played_by,
    usable_runs,
    validation_statement,
    wording_statement,
)
from opinionsim.registry import part, serving

_TABLE_AXES = ("framing", "confirmation_bias")
#: Causes of texts without an opinion, in words.
_CAUSES = {**{f"n_{status}": head for status, (head, _) in MISSING.items()}, "n_off_scale": "off scale"}
#: What stands behind a mean, as published and else, and the heads of means.
_ERROR, _INTERVAL = "\N{PLUS-MINUS SIGN} SE", "[95 % CI]"
_HEADS = ("mean opinion", "diversity")
#: Of what these are where token probabilities were read.
_OF = "of expectations"
#: Columns on what is missing, by the column of the frame: head, and meaning. Each is printed only where it is not 0.
_MISSING = {
    "refused_at_first_rate": ("refused at first", "the first reply was a refusal"),
    **{f"{status}_rate": told for status, told in MISSING.items()},
    "off_scale_rate": ("off scale", "an answer in which no opinion was found"),
    "skipped_rate": ("skipped", "nothing was left to read"),
    "flagged_rate": ("flagged", "an answer with a sign of conduct, such as words out of role, stripped or not"),
    "unheard_rate": (
        "unheard",
        "share of the messages that agents should have read but never received (unanswered, left out because of "
        "a sign, skipped or silent); if it differs by side, it shifts the mean opinion: see docs/missing.md",
    ),
    "never_measured_rate": ("unmeasured", "share of the agents without a measured opinion"),
}
#: The same in numbers, of turns of all kinds.
_OF_RUNS = {
    "n_failed_reflections": (
        "forgotten",
        "reflections in all turns that were refused or empty; the memory kept its previous summary",
    ),
    "n_stripped": ("stripped", "replies in all turns that readers received without some part: see docs/conduct.md"),
}


def table1(runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None) -> Table:
    """Tabulate mean opinion and diversity by framing and confirmation bias, with a pair of columns for each memory.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store. The table uses only complete runs of cells with a measured stance, all of one kind of
        evidence. If several instruments of stance read the same kind of text, the one that the frame names counts.
    metrics : DataFrame
        From :func:`opinionsim.metrics.run_metrics`.
    kind : str, optional
        Kind of text from which opinions are coded; by default the first measured kind, in the order of the column
        `texts` of runs.
    wording : str, optional
        Hash, or start of the hash, of the wording of prompts whose runs to use; by default the wording of the run that
        began last (:func:`opinionsim.metrics.one_wording`). A note counts the runs of other wordings.

    Returns
    -------
    Table
        Cells are mean ± standard error (:func:`opinionsim.metrics.spell_mean`).

    Raises
    ------
    SpecError
        If no complete run has such texts or that wording, if kinds of evidence are mixed, or if runs in one cell of the
        table differ in their scale or in a condition other than the topic.

    Notes
    -----
    Layout of Chuang et al. 2023, Table 1 (A14).
    """
    runs, left_out = one_wording(runs, wording)
    return _telling(left_out, wording, _crossed("Table 1", runs, metrics, _TABLE_AXES, kind))


def table2(runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None) -> Table:
    """Make :func:`table1` for each category of topics, in the layout of Chuang et al. 2023, Table 2 (A14)."""
    runs, left_out = one_wording(runs, wording)
    return _telling(left_out, wording, _crossed("Table 2", runs, metrics, ("category", *_TABLE_AXES), kind))


def table(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    by: Sequence[str] | None = None,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
    *,
    as_published: bool = False,
) -> Table:
    """Tabulate mean opinion and diversity at the start and the end by condition, with missing values.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`table1`, but kinds of evidence may differ and then become a condition. With the frame
        :attr:`opinionsim.Results.ordered_runs`, rows have the order of the specification; with other frames, the order
        of :func:`opinionsim.metrics.order_levels`.
    by : sequence of str, optional
        Columns of `runs` that define a condition; by default all that vary except the topic, or the topic if nothing
        else varies.
    estimand : str, optional
        What means are about, as for :func:`opinionsim.analysis.estimate`.
    as_published : bool
        Whether to print the standard errors of the published tables instead of intervals.

    Returns
    -------
    Table
        One row per condition with its number of runs and the intervals of :func:`opinionsim.analysis.estimate`. Columns
        for missing values appear only if values are missing.

    Raises
    ------
    SpecError
        As for :func:`table1`.
    """
    runs, left_out = one_wording(runs, wording)
    axes = list(by) if by is not None else default_axes(runs)
    behind, number = (_ERROR, _with_error) if as_published else (_INTERVAL, number_text)
    if as_published:
        frame, counted, kind = measured(runs, metrics, axes, kind)
        about = [_published(frame)]
    else:
        made = by_condition(runs, metrics, axes, kind, estimand)
        frame, counted, kind, about = made.frame, made.rows, made.kind, interval_notes(*made.estimates)
    ends = [[number(row, each) for row in frame.to_dict("records")] for each in MEASURES]
    labels = _label_columns(frame, axes)
    further = list(_missing_columns(frame))
    end = f"end, {_OF}" if _expected(counted) else "end"
    frame = frame.assign(classifier=BELIEF) if _expected(counted) else frame
    above = (*("" for _ in (*labels, "runs")), *_HEADS[:1] * 2, *_HEADS[1:] * 2, *("" for _ in further))
    names = (*headings(labels), "runs", *("start", f"{end} {behind}") * 2, *(name for name, _, _ in further))
    columns = [
        *([level_text(value) for value in frame[label]] for label in labels),
        frame["n_runs"].astype(str),
        [cell_text(value, none="-") for value in frame["assigned_bias"]],
        ends[0],
        [cell_text(value, none="-") for value in frame["assigned_diversity"]],
        ends[1],
        *(cells for _, cells, _ in further),
    ]
    said = [f"{name[0].upper()}{name[1:]}: {told}." for name, _, told in further]
    if said:
        said[0] = f"Missing, as shares of the turns of kind {kind} unless noted otherwise: {said[0]}"
    notes = [*opinion_notes(runs, metrics, counted, kind, about), " ".join(said)]
    rows = list(zip(*columns, strict=True))
    printed = finished("Opinions by condition", frame, (above, names), rows, len(labels), notes)
    return _telling(left_out, wording, printed)


def _label_columns(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Columns whose levels name the rows: the conditions, and the evidence where it differs."""
    return [*axes, *(["evidence"] if frame["evidence"].nunique() > 1 and "evidence" not in axes else [])]


def _missing_columns(frame: pd.DataFrame) -> Iterator[tuple[str, list[str], str]]:
    """Head, cells and meaning of each column on what is missing of which there is any."""
    for column, (name, told) in {**_MISSING, **_OF_RUNS}.items():
        if frame[column].fillna(0).any():
            spelled = "{:.0f}".format if column in _OF_RUNS else _percent
            yield name, list(map(spelled, frame[column])), told
    if (frame["bias_low"] < frame["bias_high"]).any():
        ends = zip(frame["bias_low"], frame["bias_high"], strict=True)
        told = "the mean opinion if all missing opinions were at the lowest point, or at the highest"
        yield "mean within", [f"{cell_text(low)} to {cell_text(high)}" for low, high in ends], told
    if (frame["off_scale_mass"] > 0.5).any():
        told = "mean probability of tokens that are not answers; the numbers use answers only"
        yield "off scale", [f"{mass:.2f}" for mass in frame["off_scale_mass"]], told
    if ((frame["n_both"] > 0) & ((frame["n_not_both"] > 0) | frame["measured_start"])).any():
        told = (
            "end minus start among agents with both, their number among agents of runs with a mean, and the possible "
            "range for all these agents, which the observed change may exceed; the start is measured before the first "
            "step, or else assigned"
        )
        yield "change", [_change(row) for row in frame.to_dict("records")], told
    if frame["n_withheld"].any():
        told = "runs without a mean and a diversity, because too few of their agents were measured"
        yield "withheld", frame["n_withheld"].astype(str).tolist(), told


def _expected(metrics: pd.DataFrame) -> bool:
    """Whether the opinions are expectations over token probabilities."""
    return bool((metrics["classifier"] == BELIEF).any())


def _change(row: Mapping[Any, Any]) -> str:
    both, lacking = row["n_both"], row["n_not_both"]
    within = f"; all: {cell_text(row['change_low'])} to {cell_text(row['change_high'])}" if lacking else ""
    return f"{cell_text(row['change'])} ({both} of {both + lacking}{within})" if both else NONE


def _percent(share: float) -> str:
    return "-" if pd.isna(share) else f"{share:.1%}"


@part("table", name="opinions", fits=lambda asked: asked.stance)
def tables(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
    *,
    as_published: bool = False,
) -> list[Table]:
    """Tabulate opinions at the start and the end by condition, with missing values.

    Parameters
    ----------
    runs, metrics, kind, wording, estimand, as_published
        As for :func:`table`.

    Returns
    -------
    list of Table
        One general table with one row per condition, model and equation. With `as_published`, if only memory and
        possibly framing, confirmation bias and topic vary, and there is one kind of evidence: tables 1 and 2 (table 2
        if there are several categories), followed by the general table only if values are missing.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    runs, left_out = one_wording(runs, wording)
    complete = runs[runs["status"] == "complete"]
    if complete.empty:
        raise none_complete(runs, "to tabulate")
    usable = usable_runs(runs)
    axes = set(condition_axes(usable)) if as_published else set()
    made = []
    crossed = "memory" in axes and axes & set(_TABLE_AXES) and axes <= {*_TABLE_AXES, "memory", "topic"}
    if as_published and crossed and usable["evidence"].nunique() == 1:
        made.append(table1(runs, metrics, kind))
        if usable["category"].nunique() > 1:
            made.append(table2(runs, metrics, kind))
    if not made or any(True for _ in _missing_columns(made[0].frame)):
        made.append(table(runs, metrics, kind=kind, estimand=estimand, as_published=as_published))
    return [_telling(left_out, wording, each) for each in made]


@part("table", name="metrics", fits=lambda asked: asked.values is not None, metrics=True)
def further_table(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    values: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
) -> Table:
    """Tabulate further metrics by all conditions that vary except the topic, with one row per condition.

    Parameters
    ----------
    runs, metrics, kind, wording, estimand
        As for :func:`table`.
    values : DataFrame
        From :func:`opinionsim.metrics.named_metrics`.

    Raises
    ------
    SpecError
        As for :func:`table1`.
    """
    runs, left_out = one_wording(runs, wording)
    axes = default_axes(runs)
    names = [column for column in values.columns if column not in METRIC_KEYS]
    made = by_condition(runs, metrics.merge(values, on=METRIC_KEYS), axes, kind, estimand, names)
    ends = [f"{name}{end}" for name in names for end in ("", "_ci_low", "_ci_high")]
    own = [*axes, "kind", "evidence", "n_runs", "validation", *ends, *no_estimate("").basis]
    frame = made.frame[[*dict.fromkeys(own)]]
    labels = _label_columns(frame, axes)
    header = (*headings(labels), "runs", *(f"{name} {_INTERVAL}" for name in names))
    notes = opinion_notes(runs, metrics, made.rows, made.kind, interval_notes(*made.estimates), ends=False)
    shown = frame[[*dict.fromkeys([*labels, "n_runs", *ends, "evidence"])]]
    printed = Table.of("Further metrics by condition", shown, labels, notes, "metrics")
    return _telling(left_out, wording, replace(printed, header=(header,), frame=frame))


def _with_error(row: Mapping[Any, Any], measure: str) -> str:
    """A mean with its standard error, as printed."""
    return cell_text(row[measure], row[f"{measure}_se"])


def _telling(left_out: pd.DataFrame, wording: str | None, made: Table) -> Table:
    """The table with a note on the runs left out because their prompts have another wording."""
    if left_out.empty:
        return made
    said = wording_statement(left_out["wording"], wording)
    return replace(made, notes=(*made.notes, f"{said[0].upper()}{said[1:]}; --wording takes them instead."))


def _crossed(name: str, runs: pd.DataFrame, metrics: pd.DataFrame, row_axes: Sequence[str], kind: str | None) -> Table:
    """A table with `row_axes` down, and mean opinion and diversity for each memory across."""
    evidence = usable_runs(runs)["evidence"].unique()
    if len(evidence) > 1:
        raise SpecError(f"{name} rests on one kind of evidence; these runs have {', '.join(sorted(evidence))}")
    frame, counted, kind = measured(runs, metrics, [*row_axes, "memory"], kind)
    memories = order_levels(frame["memory"])
    blank = ("",) * len(row_axes)
    heads = tuple(f"{head} {_OF}" for head in _HEADS) if _expected(counted) else _HEADS
    header = (
        (*blank, *(str(memory) for memory in memories for _ in heads)),
        (*blank, *heads * len(memories)),
        (*headings(row_axes), *[_ERROR] * 2 * len(memories)),
    )
    rows = []
    for labels, block in frame.groupby(list(row_axes), sort=False, dropna=False):
        by_memory = {row["memory"]: row for row in block.to_dict("records")}
        cells = [level_text(label) for label in labels]
        for memory in memories:
            row = by_memory.get(memory)
            cells += (
                ["", ""]
                if row is None
                else [cell_text(row["bias"], row["bias_se"]), cell_text(row["diversity"], row["diversity_se"])]
            )
        rows.append(tuple(cells))
    heading = f"{name}: final opinions by {', '.join(headings(row_axes))} and memory"
    notes = opinion_notes(runs, metrics, counted, kind, [_published(frame)])
    return finished(heading, frame, header, rows, len(row_axes), notes)


def _published(frame: pd.DataFrame) -> str:
    """What the standard errors of the published tables are."""
    units = frame["n"].agg(["min", "max"]).tolist()
    n = f"n = {units[0]}" if units[0] == units[1] else f"n = {units[0]} to {units[1]}"
    unit = str(frame["over"].iloc[0])
    averaged = ", blocks averaged within a topic first" if unit == "topic" else ""
    return (
        f"{_ERROR}: as published, population SD/\N{SQUARE ROOT}n over {unit}s ({n}){averaged}; omitted for n < 2, "
        "and not the basis of an interval."
    )


def opinion_notes(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    used: pd.DataFrame,
    kind: str,
    about: Sequence[str],
    *,
    ends: bool = True,
) -> list[str]:
    """Notes on conventions, exclusions, rates and the instrument.

    `used` are the metrics that the numbers are of, `about` says what stands behind the means, and `ends` whether they
    are of opinions at the start and the end.
    """
    complete = runs[runs["status"] == "complete"]
    read = usable_runs(runs)
    of_kind = metrics[metrics["kind"] == kind]
    n = used[["n_never", "n_agents", "n_missing", "n_texts", "n_skipped", *_CAUSES]].sum().astype(int)
    every = read[read["every_report"].astype(bool)] if "every_report" in read.columns else read[:0]
    eventful = read.dropna(subset="event_steps") if "event_steps" in read.columns else read[:0]
    return sentences(
        "opinionsim.analysis",
        "opinions.txt",
        serving=serving,
        ddof=used["ddof"].iloc[0] if ends else None,
        assigned=bool(used["assigned_bias"].notna().any()),
        about=about,
        kind=kind,
        used=len(used),
        excluded=runs.loc[runs["status"] != "complete", "status"].value_counts().to_dict(),
        n=n,
        causes={told: n[column] for column, told in _CAUSES.items()},
        instruments=used["classifier"].astype(str).unique(),
        every_report=every["interaction"].astype(str).unique().tolist(),
        events=len(eventful),
        read=len(read),
        dropped=eventful["dropped_turns"].mean() if len(eventful) else 0,
        players=played_by(read["model"].astype(str), read["evidence"]),
        validation=validation_statement(used["validation"]),
        outdated=len(used.merge(complete[complete["error"].fillna("") != ""][["run_id", "cell"]])),
        silent=len(complete) - len(used),
        further=len(of_kind.merge(read[["run_id", "cell"]])) - len(used),
        withheld=int(used["withheld"].sum()),
        least=sorted({f"{100 * share:g} %" for share in read.get("least_measured", pd.Series([LEAST_MEASURED]))}),
    )
