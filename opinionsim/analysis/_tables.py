"""Tables of opinions at the start and the end: mean and diversity by condition, with their kind of evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from textwrap import fill, wrap
from typing import Any

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.evidence import KINDS, TO_MEASURE, evidence_statement, played_by, validation_statement
from opinionsim.metrics import (
    condition_axes,
    condition_metrics,
    in_order,
    one_wording,
    order_levels,
    spell_mean,
    wording_statement,
)
from opinionsim.spreadsheets import write_csv

_TABLE_AXES = ("framing", "confirmation_bias")
#: Units of standard errors, in words.
_UNITS = {"topic": "topics", "replicate": "replicates", "seed": "seeds", "block": "seeds and replicates"}
#: Causes of texts without an opinion in words; the others were cut off.
_CAUSES = {"n_refused": "refused", "n_empty": "empty", "n_off_scale": "off scale"}
#: What stands behind a mean, and the heads of means.
_ERROR = "\N{PLUS-MINUS SIGN} SE"
_MEASURES = ("mean opinion", "diversity")
#: Columns of a printed table, and those of them that labels have where a table is wider.
_WIDTH, _LABELS = 100, 54
#: Columns on what is missing, by the column of the frame: head, and meaning. Each is printed only where it is not 0.
_MISSING = {
    "refused_at_first_rate": ("refused at first", "the first reply was a refusal"),
    "refused_rate": ("refused", "the last reply was a refusal too"),
    "empty_rate": ("empty", "the last reply had no text"),
    "truncated_rate": ("cut off", "the last reply was cut off"),
    "off_scale_rate": ("off scale", "an answer in which no opinion was found"),
    "skipped_rate": ("skipped", "nothing was left to read"),
    "flagged_rate": ("flagged", "an answer with a remark out of role, or a suspected refusal"),
    "unheard_rate": (
        "unheard",
        "share of the messages to be read that nobody received (refused, empty or skipped); where it differs, so does "
        "who is heard, and the mean opinion with it: see docs/missing.md",
    ),
    "never_measured_rate": ("unmeasured", "share of the agents without any opinion"),
}


@dataclass(frozen=True, eq=False)
class Table:
    """A table ready to print or to save.

    Attributes
    ----------
    title : str
        Begins with the kind of evidence.
    header : tuple of tuple of str
        Heading lines, one text a column.
    rows : tuple of tuple of str
        Cells as printed.
    n_labels : int
        How many columns, from the left, name the condition.
    frame : DataFrame
        The same numbers unrounded, one row a condition (:func:`opinionsim.metrics.condition_metrics`).
    notes : tuple of str
        Notes on how to read the numbers; the first states the evidence.
    name : str
        What it adds to the tables of final opinions, which have none; part of the names of its files.
    """

    title: str
    header: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    n_labels: int
    frame: pd.DataFrame
    notes: tuple[str, ...]
    name: str = ""

    def to_text(self) -> str:
        """The whole table as plain text, at most 100 columns wide: title, aligned columns, notes.

        Where the columns do not fit beside one another, long labels are folded, and further columns follow below with
        the labels repeated.
        """
        lines: list[Sequence[str]] = [*self.header, *self.rows]
        head = len(self.header)
        if sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2 > _WIDTH:
            folded = max(_LABELS // max(self.n_labels, 1) - 2, 6)
            parts = [self._folded(line, folded) for line in lines]
            lines, head = [each for part in parts for each in part], sum(map(len, parts[:head]))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        labels = list(range(self.n_labels))
        blocks: list[list[int]] = [labels[:]]
        for column in range(self.n_labels, len(widths)):
            if sum(widths[each] + 2 for each in blocks[-1]) + widths[column] > _WIDTH and blocks[-1] != labels:
                blocks.append(labels[:])
            blocks[-1].append(column)
        body = [fill(self.title, _WIDTH)]
        for block in blocks:
            rule = "-" * (sum(widths[each] + 2 for each in block) - 2)
            aligned = ["  ".join(self._aligned(line, widths, each) for each in block) for line in lines]
            body += [rule, *aligned[:head], rule, *aligned[head:]]
        body += [rule, *(fill(note, _WIDTH, subsequent_indent="  ") for note in self.notes)]
        return "\n".join(line.rstrip() for line in body if line.strip()) + "\n"

    def _folded(self, line: Sequence[str], width: int) -> list[list[str]]:
        """The lines that a row takes where labels are folded to a width."""
        parts = [wrap(cell, width) if column < self.n_labels else [cell] for column, cell in enumerate(line)]
        return [list(each) for each in zip_longest(*parts, fillvalue="")]

    def _aligned(self, line: Sequence[str], widths: Sequence[int], column: int) -> str:
        """A cell of a line padded to its column's width: labels to the left, numbers to the right."""
        padded = str.ljust if column < self.n_labels else str.rjust
        return padded(line[column], widths[column])

    def to_csv(self, path: str | Path) -> Path:
        """Save the unrounded numbers with their ``evidence`` and ``validation`` columns.

        Parameters
        ----------
        path : str or Path
            File to write; a missing folder is created.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        SpecError
            If the file cannot be written.
        """
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_csv(self.frame, target)
        except OSError as error:
            raise SpecError(f"cannot write the table to {target}: {error.strerror}") from error
        return target


def table1(runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None) -> Table:
    """Mean opinion and diversity by framing and confirmation bias, a pair of columns for each memory.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store; only complete runs of cells in which stance is measured enter, all of one kind of evidence.
        Where several instruments of stance read the same kind of text, the one that the frame names counts.
    metrics : DataFrame
        From :func:`opinionsim.metrics.run_metrics`.
    kind : str, optional
        Kind of text the opinions are coded from; default the first present of report, response, post, probe,
        self-report, opinion.
    wording : str, optional
        Hash, or start of the hash, of the wording of prompts whose runs enter; default the wording of the run begun
        last (:func:`opinionsim.metrics.one_wording`). A note counts the runs of other wordings.

    Returns
    -------
    Table
        Cells are mean ± standard error (:func:`opinionsim.metrics.spell_mean`).

    Raises
    ------
    SpecError
        If no complete run has such texts or that wording, kinds of evidence are mixed, or runs of one cell of
        the table differ in another condition than the topic or in their scale.

    Notes
    -----
    Layout of Chuang et al. 2023, Table 1 (A14).
    """
    runs, left_out = one_wording(runs, wording)
    return _telling(left_out, wording, _crossed("Table 1", runs, metrics, _TABLE_AXES, kind))


def table2(runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None) -> Table:
    """As :func:`table1`, for each category of topics: layout of Chuang et al. 2023, Table 2 (A14)."""
    runs, left_out = one_wording(runs, wording)
    return _telling(left_out, wording, _crossed("Table 2", runs, metrics, ("category", *_TABLE_AXES), kind))


def table(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    by: Sequence[str] | None = None,
    kind: str | None = None,
    wording: str | None = None,
) -> Table:
    """Mean opinion and diversity at the start and the end by any conditions, one row each, and what is missing.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`table1`, but kinds of evidence may differ: they are then a condition. The frame
        :attr:`opinionsim.Results.ordered_runs` gives rows in the order of the specification, any other those of
        :func:`opinionsim.metrics.order_levels`.
    by : sequence of str, optional
        Columns of `runs` that make a condition; default all that vary except the topic, or the topic where nothing
        else varies.

    Returns
    -------
    Table
        One row a condition with its number of runs. Columns on what is missing are there where anything is.

    Raises
    ------
    SpecError
        As for :func:`table1`.
    """
    runs, left_out = one_wording(runs, wording)
    axes = list(by) if by is not None else default_axes(runs)
    frame, kind = measured(runs, metrics, axes, kind)
    labels = _label_columns(frame, axes)
    further = list(_missing_columns(frame))
    above = (*("" for _ in (*labels, "runs")), *_MEASURES[:1] * 2, *_MEASURES[1:] * 2, *("" for _ in further))
    names = (*headings(labels), "runs", *("start", f"end {_ERROR}") * 2, *(name for name, _, _ in further))
    columns = [
        *([level_text(value) for value in frame[label]] for label in labels),
        frame["n_runs"].astype(str),
        [cell_text(value, none="-") for value in frame["assigned_bias"]],
        [cell_text(*pair) for pair in zip(frame["bias"], frame["bias_se"], strict=True)],
        [cell_text(value, none="-") for value in frame["assigned_diversity"]],
        [cell_text(*pair) for pair in zip(frame["diversity"], frame["diversity_se"], strict=True)],
        *(cells for _, cells, _ in further),
    ]
    said = [f"{name[0].upper()}{name[1:]}: {told}." for name, _, told in further]
    if said:
        said[0] = f"Missing, in shares of the turns of kind {kind} unless said otherwise: {said[0]}"
    notes = [*_notes(runs, metrics, frame, kind), " ".join(said)]
    rows = list(zip(*columns, strict=True))
    made = finished("Opinions by condition", frame, (above, names), rows, len(labels), notes)
    return _telling(left_out, wording, made)


def _label_columns(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Columns whose levels name the rows: the conditions, and the evidence where it differs."""
    return [*axes, *(["evidence"] if frame["evidence"].nunique() > 1 and "evidence" not in axes else [])]


def _missing_columns(frame: pd.DataFrame) -> Iterator[tuple[str, list[str], str]]:
    """Head, cells and meaning of each column on what is missing of which there is any."""
    for column, (name, told) in _MISSING.items():
        if frame[column].fillna(0).any():
            yield name, [_percent(share) for share in frame[column]], told
    if frame["n_failed_reflections"].fillna(0).any():
        told = "reflections, of all turns, that were refused or empty, so that the memory kept its past summary"
        yield "forgotten", [f"{n:.0f}" for n in frame["n_failed_reflections"]], told
    if (frame["bias_low"] < frame["bias_high"]).any():
        ends = zip(frame["bias_low"], frame["bias_high"], strict=True)
        told = "the mean opinion if all that is missing were at the lowest, or at the highest, point"
        yield "mean within", [f"{cell_text(low)} to {cell_text(high)}" for low, high in ends], told
    if frame["n_sparse"].any():
        told = "runs with an opinion of fewer than half of their agents; they count"
        yield "sparse", frame["n_sparse"].astype(str).tolist(), told


def _percent(share: float) -> str:
    return "-" if pd.isna(share) else f"{share:.1%}"


def tables(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
) -> list[Table]:
    """The tables that fit an experiment.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`table`.

    Returns
    -------
    list of Table
        One general table with a row for each condition, model and equation. Where only framing, confirmation bias,
        topic and memory vary, the last one among them, and all is of one kind of evidence: tables 1 and 2 (table 2 when
        there are several categories), followed by the general one only where something is missing.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    runs, left_out = one_wording(runs, wording)
    complete = runs[runs["status"] == "complete"]
    if complete.empty:
        told = ", ".join(f"{n} {status}" for status, n in runs["status"].value_counts().items())
        raise SpecError(f"no run is complete, so there is nothing to tabulate ({told}): `opinionsim run` goes on")
    usable = usable_runs(runs)
    axes = set(condition_axes(usable))
    made = []
    crossed = "memory" in axes and axes & set(_TABLE_AXES) and axes <= {*_TABLE_AXES, "memory", "topic"}
    if crossed and usable["evidence"].nunique() == 1:
        made.append(table1(runs, metrics, kind))
        if usable["category"].nunique() > 1:
            made.append(table2(runs, metrics, kind))
    if not made or any(True for _ in _missing_columns(made[0].frame)):
        made.append(table(runs, metrics, kind=kind))
    return [_telling(left_out, wording, each) for each in made]


def default_axes(runs: pd.DataFrame) -> list[str]:
    """The conditions of the rows of a table: all that vary except the topic, or the topic where nothing else does."""
    varying = condition_axes(usable_runs(runs))
    return [axis for axis in varying if axis != "topic"] or list(varying)


def further_table(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    values: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
) -> Table:
    """Further metrics by all conditions that vary except the topic, one row a condition.

    Parameters
    ----------
    runs, metrics, kind, wording
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
    keys = ["run_id", "cell", "instrument_id", "kind"]
    names = [column for column in values.columns if column not in keys]
    both = metrics.merge(values.set_axis([*keys, *range(len(names))], axis="columns"), on=keys)
    # condition_metrics averages the columns bias and diversity, so each metric takes their place in turn.
    frames = [measured(runs, both.assign(bias=both[i], diversity=both[i]), axes, kind) for i in range(len(names))]
    frame, kind = measured(runs, metrics, axes, kind)
    columns = [[cell_text(*pair) for pair in zip(each["bias"], each["bias_se"], strict=True)] for each, _ in frames]
    labels = _label_columns(frame, axes)
    levels = [[level_text(value) for value in frame[label]] for label in labels]
    rows = list(zip(*levels, frame["n_runs"].astype(str), *columns, strict=True))
    header = (*headings(labels), "runs", *(f"{name} {_ERROR}" for name in names))
    numbers = frame[[*axes, "kind", "evidence", "n", "over", "n_runs", "validation"]].assign(
        **{name: each["bias"] for name, (each, _) in zip(names, frames, strict=True)},
        **{f"{name}_se": each["bias_se"] for name, (each, _) in zip(names, frames, strict=True)},
    )
    notes = _notes(runs, metrics, frame, kind)[1:]
    made = finished("Further metrics by condition", frame, (header,), rows, len(labels), notes)
    return _telling(left_out, wording, replace(made, frame=numbers, name="metrics"))


def _telling(left_out: pd.DataFrame, wording: str | None, made: Table) -> Table:
    """The table with a note on the runs left out because their prompts have another wording."""
    if left_out.empty:
        return made
    said = wording_statement(left_out["wording"], wording)
    return replace(made, notes=(*made.notes, f"{said[0].upper()}{said[1:]}; --wording takes them instead."))


def measured(
    runs: pd.DataFrame, metrics: pd.DataFrame, by: Sequence[str], kind: str | None, cells: Sequence[str] = ()
) -> tuple[pd.DataFrame, str]:
    """Numbers of a table, in the order of the `cells` if they are given, and the kind of text they are read from."""
    complete = usable_runs(runs)
    usable = _own(complete, metrics)
    present = [name for name in KINDS if name in set(usable["kind"])]
    if not present:
        raise SpecError(
            f"no complete run has a text with a measured stance, so there is nothing to tabulate: {TO_MEASURE}"
        )
    chosen = present[0] if kind is None else kind
    if chosen not in present:
        raise SpecError(f"no complete run has texts of kind {chosen!r}; present are {', '.join(present)}")
    frame = condition_metrics(complete, usable[usable["kind"] == chosen], by)
    return in_order(frame, by, complete), chosen


def usable_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Complete runs of cells in which stance is measured; of all cells where the frame lacks this column."""
    complete = runs[runs["status"] == "complete"]
    return complete[complete["instrument_id"].notna()] if "instrument_id" in complete.columns else complete


def _own(runs: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Metrics of the runs; of several instruments of a run, cell and kind of text, only the one that `runs` names."""
    keys = ["run_id", "cell"]
    if "instrument_id" not in runs.columns:
        return metrics.merge(runs[keys], on=keys)
    named = runs[[*keys, "instrument_id"]].rename(columns={"instrument_id": "own"})
    found = metrics.merge(named, on=keys)
    is_own = found["instrument_id"] == found["own"]
    has_own = is_own.groupby([found[key] for key in (*keys, "kind")]).transform("any")
    return found[is_own | ~has_own.astype(bool)].drop(columns="own").reset_index(drop=True)


def _crossed(name: str, runs: pd.DataFrame, metrics: pd.DataFrame, row_axes: Sequence[str], kind: str | None) -> Table:
    """A table with `row_axes` down, and mean opinion and diversity for each memory across."""
    evidence = usable_runs(runs)["evidence"].unique()
    if len(evidence) > 1:
        raise SpecError(f"{name} rests on one kind of evidence; these runs have {', '.join(sorted(evidence))}")
    frame, kind = measured(runs, metrics, [*row_axes, "memory"], kind)
    memories = order_levels(frame["memory"])
    blank = ("",) * len(row_axes)
    header = (
        (*blank, *(str(memory) for memory in memories for _ in _MEASURES)),
        (*blank, *_MEASURES * len(memories)),
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
    notes = _notes(runs, metrics, frame, kind)
    return finished(heading, frame, header, rows, len(row_axes), notes)


def finished(
    heading: str,
    frame: pd.DataFrame,
    header: tuple[tuple[str, ...], ...],
    rows: Sequence[tuple[str, ...]],
    n_labels: int,
    notes: Sequence[str],
) -> Table:
    """A table of these cells, with its evidence stated; labels that repeat the row above are left blank."""
    statement = evidence_statement(frame["evidence"])
    shown = [rows[0]] if rows else []
    for above, row in pairwise(rows):
        same = 0
        while same < n_labels - 1 and row[same] == above[same]:
            same += 1
        shown.append(("",) * same + row[same:])
    said = (f"Evidence: {statement}.", *filter(None, notes))
    return Table(f"{statement} | {heading}", header, tuple(shown), n_labels, frame, said)


def _notes(runs: pd.DataFrame, metrics: pd.DataFrame, frame: pd.DataFrame, kind: str) -> list[str]:
    """Notes on conventions, exclusions, rates and the instrument."""
    complete = runs[runs["status"] == "complete"]
    read = usable_runs(runs)
    of_kind = metrics[metrics["kind"] == kind]
    used = _own(read, of_kind)
    others = runs.loc[runs["status"] != "complete", "status"].value_counts()
    excluded = ", ".join(f"{count} {status}" for status, count in others.items()) or "none"
    units = frame["n"].agg(["min", "max"]).tolist()
    n = f"n = {units[0]}" if units[0] == units[1] else f"n = {units[0]} to {units[1]}"
    unit = str(frame["over"].iloc[0])
    repeats = "seeds and replicates" if read["seed"].nunique() > 1 else "replicates"
    averaged = f", {repeats} averaged within a topic first" if unit == "topic" else ""
    instruments = ", ".join(dict.fromkeys(str(name) for name in used["classifier"]))
    notes = [
        "Start: opinions that agents were assigned, which is no measurement. End: the last measured opinion of each "
        f"agent. Diversity: standard deviation (ddof {frame['ddof'].iloc[0]}) over agents.",
        f"{_ERROR}: standard error of the mean, population SD/\N{SQUARE ROOT}n over {_UNITS.get(unit, unit)} "
        f"({n}){averaged}; not given for n < 2.",
        f"Runs used: {len(used)} complete. Excluded as not complete: {excluded}.",
        _counts(used),
        _instrument(kind, instruments),
        *_every_report(read),
        *_events(read),
    ]
    players = played_by(read["model"].astype(str), read["evidence"])
    if players:
        notes.append(f"{players[0].upper()}{players[1:]}.")
    known = validation_statement(used["validation"])
    if known:
        notes.append(f"Validation of this instrument: {known}.")
    silent = len(complete) - len(used)
    undefined = int(used["bias"].isna().sum())
    outdated = int(used.merge(complete[complete["error"].fillna("") != ""][["run_id", "cell"]]).shape[0])
    if outdated:
        answer = "answers" if outdated == 1 else "answer"
        fault = "an earlier wording of the prompts than there is now, or could not be coded"
        notes.append(f"{outdated} of the runs used {answer} {fault}; see runs.error.")
    if silent:
        notes.append(f"Complete runs without a text of kind {kind}, not used: {silent}.")
    further = len(of_kind.merge(read[["run_id", "cell"]])) - len(used)
    if further:
        notes.append(f"Readings of these runs by further instruments of stance, not used: {further}.")
    if undefined:
        notes.append(f"Runs in which no agent was ever measured, which add nothing to the means: {undefined}.")
    return notes


def _counts(used: pd.DataFrame) -> str:
    """Agents never measured and texts without an opinion, of how many, with the causes."""
    n = used[["n_never", "n_agents", "n_missing", "n_texts", *_CAUSES]].sum()
    causes = {told: n[column] for column, told in _CAUSES.items()}
    causes["cut off"] = n["n_missing"] - sum(causes.values())
    told = ", ".join(f"{count:,} {cause}" for cause, count in causes.items() if count)
    return (
        f"Agents never measured: {n['n_never']:,} of {n['n_agents']:,}. "
        f"Texts without an opinion: {n['n_missing']:,} of {n['n_texts']:,}{told and f' ({told})'}."
    )


def _every_report(read: pd.DataFrame) -> list[str]:
    """A note where all reports of an agent count."""
    if "every_report" not in read.columns or not read["every_report"].any():
        return []
    names = ", ".join(dict.fromkeys(read.loc[read["every_report"], "interaction"].astype(str)))
    return [f"Under {names}, all reports of each agent count, because none depends on another."]


def _events(read: pd.DataFrame) -> list[str]:
    """A note where events happened, with the turns that dropped out."""
    if "event_steps" not in read.columns or not (told := read["event_steps"].dropna()).size:
        return []
    dropped = read.loc[told.index, "dropped_turns"]
    return [
        f"Events in {len(told)} of {len(read)} runs; turns that dropped out because of them: {dropped.mean():.1f} a "
        "run. Agents that left, and zealots, count with their last opinion."
    ]


def _instrument(kind: str, names: str) -> str:
    """The kind of text that opinions were read from, and the classifier."""
    if kind == "self-report":
        return "Instrument: self-reports, the position each agent chose for itself in a closed answer."
    return f"Instrument: texts of kind {kind}, coded by {names}."


def cell_text(mean: float, error: float = math.nan, none: str = "undefined") -> str:
    """A mean with its standard error as printed, with two decimals where it has none; `none` where there is no mean."""
    return spell_mean(mean, error, ".2f") if pd.notna(mean) else none


def headings(axes: Sequence[str]) -> list[str]:
    """Column headings of conditions: the last part of each path in words, or the whole path where that repeats."""
    short = [axis.rsplit(".", 1)[-1].replace("_", " ") for axis in axes]
    return [
        name if short.count(name) == 1 else axis.removeprefix("sweep.") for axis, name in zip(axes, short, strict=True)
    ]


def level_text(value: Any) -> str:
    """A level as printed; a dash where the axis does not apply."""
    return "-" if pd.isna(value) else str(value)
