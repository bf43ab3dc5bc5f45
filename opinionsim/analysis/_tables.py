"""Tables of final opinions: bias and diversity by condition, with their kind of evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.evidence import KINDS, evidence_statement, played_by, validation_statement
from opinionsim.metrics import condition_axes, condition_metrics, one_wording, order_levels, wording_statement
from opinionsim.spreadsheets import write_csv

_TABLE_AXES = ("framing", "confirmation_bias")
#: Units of standard errors, in words.
_UNITS = {"topic": "topics", "replicate": "replicates", "seed": "seeds", "block": "seeds and replicates"}
#: Causes of missing texts in words; the others were cut off.
_CAUSES = {"refused": "refused", "empty": "empty", "off_scale": "without a stated opinion"}
#: Difference between conditions, in shares of the messages to be read, above which unheard messages are reported.
_UNEQUAL = 0.05
_MINUS = "\N{MINUS SIGN}"


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
        """The whole table as plain text: title, aligned columns, notes."""
        lines = [*self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header[0]))]
        spelled = ["  ".join(self._aligned(line, widths)) for line in lines]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        head = len(self.header)
        body = [self.title, rule, *spelled[:head], rule, *spelled[head:], rule, *self.notes]
        return "\n".join(line.rstrip() for line in body) + "\n"

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        """Cells of a line padded to the widths: labels to the left, numbers to the right."""
        return [
            cell.ljust(width) if column < self.n_labels else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]

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
    """Bias and diversity by framing and confirmation bias, a pair of columns for each memory.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store; only complete runs of cells in which stance is measured enter, all of one kind of evidence.
        Where several instruments of stance read the same kind of text, the one that the frame names counts.
    metrics : DataFrame
        From :func:`opinionsim.metrics.run_metrics`.
    kind : str, optional
        Kind of text the opinions are coded from; default the first present of report, response, post,
        probe, self-report.
    wording : str, optional
        Hash, or start of the hash, of the wording of prompts whose runs enter; default the wording of the run begun
        last (:func:`opinionsim.metrics.one_wording`). A note counts the runs of other wordings.

    Returns
    -------
    Table
        Cells are mean±SE.

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
    """Bias and diversity by any conditions, one row each.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`table1`.
    by : sequence of str, optional
        Columns of `runs` that make a condition; default all that vary except the topic, or the topic where nothing
        else varies.

    Returns
    -------
    Table
        One row a condition with B, D and the number of units and runs.

    Raises
    ------
    SpecError
        As for :func:`table1`.
    """
    runs, left_out = one_wording(runs, wording)
    varying = condition_axes(usable_runs(runs))
    axes = list(by) if by is not None else ([axis for axis in varying if axis != "topic"] or list(varying))
    frame, kind = measured(runs, metrics, axes, kind)
    header = (*headings(axes), "B", "D", "n", "runs")
    rows = [
        (
            *(level_text(row[axis]) for axis in axes),
            cell_text(row["bias"], row["bias_se"]),
            cell_text(row["diversity"], row["diversity_se"]),
            str(row["n"]),
            str(row["n_runs"]),
        )
        for row in frame.to_dict("records")
    ]
    made = _finish("Final opinions by condition", runs, metrics, frame, kind, (header,), rows, len(axes))
    return _telling(left_out, wording, made)


def tables(
    runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None
) -> list[Table]:
    """The tables that fit an experiment.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`table1`.

    Returns
    -------
    list of Table
        For each kind of evidence: tables 1 and 2 where only framing, confirmation bias, memory and topic
        vary (table 2 when there are several categories), else one general table.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    runs, left_out = one_wording(runs, wording)
    complete = runs[runs["status"] == "complete"]
    if complete.empty:
        raise SpecError(f"no run is complete, so there is nothing to tabulate; {len(runs)} are not")
    made = []
    read = usable_runs(runs)
    # Where no cell measures stance, the loop still runs, and the table is refused with the reason.
    for evidence in dict.fromkeys((complete if read.empty else read)["evidence"]):
        own = runs[runs["evidence"] == evidence]
        usable = usable_runs(own)
        axes = set(condition_axes(usable))
        if axes & set(_TABLE_AXES) and axes <= {*_TABLE_AXES, "memory", "topic"}:
            made.append(table1(own, metrics, kind))
            if usable["category"].nunique() > 1:
                made.append(table2(own, metrics, kind))
        else:
            made.append(table(own, metrics, kind=kind))
    return [_telling(left_out, wording, each) for each in made]


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
        As for :func:`table1`.
    values : DataFrame
        From :func:`opinionsim.metrics.named_metrics`.

    Raises
    ------
    SpecError
        As for :func:`table1`.
    """
    runs, left_out = one_wording(runs, wording)
    varying = condition_axes(usable_runs(runs))
    axes = [axis for axis in varying if axis != "topic"] or list(varying)
    keys = ["run_id", "cell", "instrument_id", "kind"]
    names = [column for column in values.columns if column not in keys]
    both = metrics.merge(values.set_axis([*keys, *range(len(names))], axis="columns"), on=keys)
    # condition_metrics averages the columns bias and diversity, so each metric takes their place in turn.
    frames = [measured(runs, both.assign(bias=both[i], diversity=both[i]), axes, kind) for i in range(len(names))]
    # n counts measured agents or runs, as beside bias; a metric may be undefined in some of them.
    frame, kind = measured(runs, metrics, axes, kind)
    columns = [[cell_text(*pair) for pair in zip(each["bias"], each["bias_se"], strict=True)] for each, _ in frames]
    labels = [[level_text(value) for value in frame[axis]] for axis in axes]
    units = [frame["n"].astype(str), frame["n_runs"].astype(str)]
    rows = list(zip(*labels, *columns, *units, strict=True))
    header = (*headings(axes), *names, "n", "runs")
    numbers = frame[[*axes, "kind", "evidence", "n", "over", "n_runs", "validation"]].assign(
        **{name: each["bias"] for name, (each, _) in zip(names, frames, strict=True)},
        **{f"{name}_se": each["bias_se"] for name, (each, _) in zip(names, frames, strict=True)},
    )
    made = _finish("Further metrics by condition", runs, metrics, frame, kind, (header,), rows, len(axes))
    return _telling(left_out, wording, replace(made, frame=numbers, name="metrics"))


def _telling(left_out: pd.DataFrame, wording: str | None, made: Table) -> Table:
    """The table with a note on the runs left out because their prompts have another wording."""
    if left_out.empty:
        return made
    said = wording_statement(left_out["wording"], wording)
    return replace(made, notes=(*made.notes, f"{said[0].upper()}{said[1:]}; --wording takes them instead."))


def measured(
    runs: pd.DataFrame, metrics: pd.DataFrame, by: Sequence[str], kind: str | None
) -> tuple[pd.DataFrame, str]:
    """Numbers of a table, and the kind of text they are read from."""
    complete = usable_runs(runs)
    usable = _own(complete, metrics)
    present = [name for name in KINDS if name in set(usable["kind"])]
    if not present:
        raise SpecError("no complete run has a text with a measured stance, so there is nothing to tabulate")
    chosen = present[0] if kind is None else kind
    if chosen not in present:
        raise SpecError(f"no complete run has texts of kind {chosen!r}; present are {', '.join(present)}")
    if complete["evidence"].nunique() > 1:
        kinds = ", ".join(sorted(complete["evidence"].unique()))
        raise SpecError(f"one table must rest on one kind of evidence; these runs have {kinds}")
    return condition_metrics(complete, usable[usable["kind"] == chosen], by), chosen


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
    """A table with `row_axes` down and a pair of columns B, D for each memory across."""
    frame, kind = measured(runs, metrics, [*row_axes, "memory"], kind)
    memories = order_levels(frame["memory"])
    blank = ("",) * len(row_axes)
    header = (
        (*blank, *(text for memory in memories for text in (str(memory), ""))),
        (*headings(row_axes), *(["B", "D"] * len(memories))),
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
    return _finish(heading, runs, metrics, frame, kind, header, rows, len(row_axes))


def _finish(
    heading: str,
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    frame: pd.DataFrame,
    kind: str,
    header: tuple[tuple[str, ...], ...],
    rows: Sequence[tuple[str, ...]],
    n_labels: int,
) -> Table:
    """The table of final opinions with its notes."""
    return finished(heading, frame, header, rows, n_labels, _notes(runs, metrics, frame, kind))


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
    return Table(f"{statement} | {heading}", header, tuple(shown), n_labels, frame, (f"Evidence: {statement}.", *notes))


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
        f"B: mean, D: standard deviation (ddof {frame['ddof'].iloc[0]}) over the last measured opinion of each agent.",
        f"SE: population SD/\N{SQUARE ROOT}n over {_UNITS.get(unit, unit)} ({n}){averaged}; not given for n < 2.",
        f"Runs used: {len(used)} complete. Excluded as not complete: {excluded}.",
        f"Agents never measured: {_rate(used['n_never'].sum(), used['n_agents'].sum())}. "
        f"Texts without an answer: {_missing(used)}.",
        _instrument(kind, instruments),
        *_every_report(read),
        *_events(read),
        *_unequal_exposure(frame),
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
        notes.append(f"Runs in which no agent was ever measured, which add nothing to B and D: {undefined}.")
    return notes


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


def _unequal_exposure(frame: pd.DataFrame) -> list[str]:
    """A note where messages were refused, empty or skipped much more often in one condition than in another."""
    rates = frame["unheard_rate"].dropna()
    if rates.empty or rates.max() - rates.min() <= _UNEQUAL:
        return []
    axes = list(frame.columns[: list(frame.columns).index("kind")])
    rows = {place: ", ".join(str(row[axis]) for axis in axes if pd.notna(row[axis])) for place, row in frame.iterrows()}
    most, least = rows[rates.idxmax()], rows[rates.idxmin()]
    return [
        f"Of the messages to be read, nobody received {rates.max():.1%} under {most}, but {rates.min():.1%} under "
        f"{least}: refused, empty or skipped. Who is heard differs between these conditions, and B with it; see "
        "docs/missing.md."
    ]


def _instrument(kind: str, names: str) -> str:
    """The kind of text that opinions were read from, and the classifier."""
    if kind == "self-report":
        return "Instrument: self-reports, the position each agent chose for itself in a closed answer."
    return f"Instrument: texts of kind {kind}, coded by {names}."


def _missing(used: pd.DataFrame) -> str:
    """The rate of texts without a value, with counts of the causes."""
    n_missing = used["n_missing"].sum()
    rate = _rate(n_missing, used["n_texts"].sum())
    if not n_missing:
        return rate
    causes = {cause: used[f"n_{name}"].sum() for name, cause in _CAUSES.items()}
    causes["cut off"] = n_missing - sum(causes.values())
    return f"{rate}: {', '.join(f'{count} {cause}' for cause, count in causes.items() if count)}"


def _rate(part: float, whole: float) -> str:
    """A share with its counts."""
    return f"{part / whole:.1%} ({part:.0f} of {whole:.0f})" if whole else "none (0 of 0)"


def cell_text(mean: float, error: float = math.nan) -> str:
    """A mean with its standard error as printed, two decimals."""
    if pd.isna(mean):
        return "undefined"
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    spelled = f"{round(mean, 2) + 0.0:.2f}".replace("-", _MINUS)
    return spelled if pd.isna(error) else f"{spelled}±{error:.2f}"


def headings(axes: Sequence[str]) -> list[str]:
    """Column headings of conditions: the last part of each path in words, or the whole path where that repeats."""
    short = [axis.rsplit(".", 1)[-1].replace("_", " ") for axis in axes]
    return [
        name if short.count(name) == 1 else axis.removeprefix("sweep.") for axis, name in zip(axes, short, strict=True)
    ]


def level_text(value: Any) -> str:
    """A level as printed; a dash where the axis does not apply."""
    return "-" if pd.isna(value) else str(value)
