"""Samples of texts for coders: drawn by condition, and written without hints at where a text comes from."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from opinionsim import metrics
from opinionsim.analysis import Table, condition_column, finished, number_text
from opinionsim.errors import SpecError, StoreError, whole_number
from opinionsim.foundation.outputs import begins, require_free
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.foundation.streams import canonical_json, digest, stream
from opinionsim.foundation.templates import filled, sentences
from opinionsim.opinions import OpinionScale
from opinionsim.specification import ContrastSpec, analysis_of
from opinionsim.store import AuditRow, Results, open_store

#: Label of a text in which a coder finds no opinion.
NO_OPINION = "N"
#: Names of coders.
_NAME = re.compile(r"\w[\w-]*")
#: Columns of a coder's file.
COLUMNS = ("audit", "coder", "item", "claim", "text", "label")
#: Columns that identify a text.
KEYS = ["run_id", "turn"]


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of texts for coders, as the store keeps it.

    Attributes
    ----------
    audit : AuditRow
        Record of the audit in the store.
    texts : DataFrame
        One row per text: ``run_id, turn, code, probability`` (of inclusion), ``text``, ``value`` (the instrument's
        reading), and the columns of its opinion and its run. Texts of restarted runs are left out.
    scale : OpinionScale
        Scale of the labels.
    """

    audit: AuditRow
    texts: pd.DataFrame
    scale: OpinionScale

    def table(
        self,
        name: str,
        heading: str,
        rows: Sequence[Mapping[Any, Any]] | pd.DataFrame,
        shown: Mapping[str, str],
        labels: int,
        **told: Any,
    ) -> Table:
        """Make a table of results on the sample.

        Parameters
        ----------
        name, heading : str
            Name of its files, and its title after the statement of evidence.
        rows : sequence of mapping, or DataFrame
            Numbers by name. Without evidence, they get that of the sample.
        shown : mapping of str to str
            Names of the printed columns, with their headings.
        labels : int
            Number of columns that name the row.
        **told
            Values for its notes.
        """
        frame = pd.DataFrame(rows).assign(audit=self.audit.audit_id)
        if "evidence" not in frame:
            frame["evidence"] = metrics.evidence_of(self.texts["evidence_of_run"])
        cells = [tuple(number_text(row, column, "-") for column in shown) for row in frame.to_dict("records")]
        of = {"audit_id": self.audit.audit_id, "kind": self.audit.sample["kind"]}
        notes = sentences("opinionsim.audit", "notes.txt", table=name, **of, **told)
        return finished(heading, frame, (tuple(shown.values()),), cells, labels, notes, name)


def counted_texts(results: Results, kind: str | None = None) -> tuple[pd.DataFrame, str]:
    """Return the texts whose opinions count in tables, one row each, and their kind.

    In complete runs, these are each participant's last text with a measured opinion, or all such texts if no report
    depends on another, as read by the stance instrument that the runs name. A participant without a measured opinion
    has their last text that was not dropped as cut off. Tables do not contain it, and its value is NaN, but it may
    state an opinion that the instrument has missed.

    Parameters
    ----------
    results : Results
        The results.
    kind : str, optional
        Kind of text; by default the first measured kind in the order of the column `texts` of runs.

    Raises
    ------
    SpecError
        If there are no such texts.
    """
    runs = results.runs[results.runs["status"] == "complete"].drop_duplicates("run_id")
    if runs.empty:
        raise metrics.none_complete(results.runs, "to label")
    # A run of several cells is read by the instrument of the first.
    rows = metrics.stance_rows(runs, results.opinions).merge(
        runs, on=["run_id", "cell", "instrument_id"], suffixes=("", "_of_run")
    )
    read = rows["value"].notna()
    chosen = metrics.chosen_kind(
        kind, rows.loc[read & (rows["kind"] != metrics.SELF_REPORT), "kind"], runs, "no text to label"
    )
    words = results.turns.loc[results.turns["message"].fillna("").str.strip() != "", KEYS]
    said = pd.MultiIndex.from_frame(rows[KEYS]).isin(pd.MultiIndex.from_frame(words)) & (rows["status"] != "truncated")
    # A text with a reading comes behind those without, since it counts in their place.
    rows = rows.assign(read=read)[(read | said) & (rows["kind"] == chosen)]
    rows = rows.sort_values(["run_id", "agent", "read", "turn"], kind="stable").drop(columns="read")
    if rows["scale"].nunique() > 1:
        raise SpecError("texts are read on several scales, but labels need one; choose a design with one scale")
    if metrics.between_points(rows):
        raise SpecError("opinions are numbers between points, but labels, kappa and alpha need points of a scale")
    last = ~rows.duplicated(["run_id", "agent"], keep="last")
    return rows[last | rows["every_report"].astype(bool)].reset_index(drop=True), chosen


def draw(
    results: Results, labels: int, *, by: Sequence[str] | None = None, kind: str | None = None, seed: int = 0
) -> Sample:
    """Draw a sample of texts for coders and keep it in the store.

    Parameters
    ----------
    results : Results
        The results.
    labels : int
        Texts per condition; all texts if a condition has fewer.
    by : sequence of str, optional
        Columns of the runs frame that define the conditions, the primary contrast first. By default those that the
        primary contrast of the specification names, or otherwise the first condition that varies.
    kind : str, optional
        Kind of text, as for :func:`counted_texts`.
    seed : int
        Seed of the draw, >= 0.

    Returns
    -------
    Sample
        The sample. The same arguments return the same sample, which you can give to more coders.

    Raises
    ------
    SpecError
        If a number is out of range, a condition is unknown, or there is no text to label.

    Notes
    -----
    Within a condition, every text has the same inclusion probability. The sample is systematic over runs in random
    order, with random order within a run, which represents runs as evenly as their number allows.
    """
    whole_number("labels", labels, 1)
    whole_number("seed", seed, 0)
    rows, chosen = counted_texts(results, kind)
    varying = metrics.condition_axes(results.runs)
    analysis = analysis_of(results.spec, results.left_out)
    contrast = analysis.contrasts.get(str(analysis.decides), ContrastSpec())
    paths = dict.fromkeys(path for _, side in contrast.terms for path in side)
    primary = [condition_column(results.runs.columns, path, "the primary contrast") for path in paths]
    axes = list((primary or varying[:1]) if by is None else by)
    if unknown := [axis for axis in axes if axis not in results.runs.columns]:
        raise SpecError(f"unknown condition {unknown[0]!r}; valid: {', '.join(varying) or 'none'}")
    drawn = [
        _drawn(group, labels, stream(seed, "audit sample", 0, *map(str, level)))
        for level, group in rows.groupby([metrics.named_levels(rows[axis]) for axis in axes or ["kind"]])
    ]
    with open_store(results.url) as opened:
        states = opened.states(results.run_ids)
        how = {"by": axes, "kind": chosen, "labels": labels, "seed": seed, "design": results.design}
        texts: list[Any] = pd.concat(drawn)[[*KEYS, "probability"]].to_dict("records")
        for text in texts:
            text["generation"] = states[text["run_id"]].generation
        # A letter comes first, since spreadsheets take 12e4 for a number.
        identity = "a" + digest(canonical_json([results.name, how, texts]))[:7]
        for text in texts:
            text["code"] = "t" + digest(canonical_json([identity, text["run_id"], text["turn"]]))[:7]
        audit = next((each for each in opened.audits() if each.audit_id == identity), None)
        if audit is None:
            payer = next(each.experiment_id for each in opened.designs() if each.name == results.name)
            audit = AuditRow(identity, payer, {**how, "texts": texts}, made_at=time.time())
            opened.save_audit(audit)
    return _sample(results, audit)


def _drawn(group: pd.DataFrame, n: int, draws: np.random.Generator) -> pd.DataFrame:
    """A systematic sample of the texts of a condition, runs and the texts of each in random order."""
    mixed = group.iloc[draws.permutation(len(group))]
    runs = pd.Series(draws.permutation(mixed["run_id"].nunique()), index=sorted(set(mixed["run_id"])))
    mixed = mixed.iloc[np.argsort(runs[mixed["run_id"]].to_numpy(), kind="stable")]
    size = min(n, len(mixed))
    places = np.floor((draws.random() + np.arange(size)) * len(mixed) / size).astype(int)
    return mixed.iloc[places].assign(probability=size / len(mixed))


def sample_of(results: Results, audit: str | None = None) -> Sample:
    """Return a sample that was drawn from the texts of an experiment.

    Parameters
    ----------
    results : Results
        The results of the experiment.
    audit : str, optional
        Identity of the sample; by default the last one drawn.

    Raises
    ------
    StoreError
        If there is no such sample.
    """
    with open_store(results.url, write=False) as opened:
        known = {design.experiment_id for design in opened.designs() if design.name == results.name}
        found = {each.audit_id: each for each in opened.audits() if each.experiment_id in known}
    chosen = next(reversed(found), "") if audit is None else audit
    if chosen not in found:
        held = f"valid: {', '.join(found)}" if found else "draw one with `opinionsim audit sample`"
        raise StoreError(f"{results.name} in {results.url} has no such audit; {held}")
    return _sample(results, found[chosen])


def axes_of(sample: Sample) -> list[str]:
    """Return the conditions by which a sample was drawn."""
    return list(sample.audit.sample["by"])


def _sample(results: Results, audit: AuditRow) -> Sample:
    """A sample as it is now, with texts and readings."""
    rows, _ = counted_texts(results, audit.sample["kind"])
    texts = pd.DataFrame(audit.sample["texts"])
    with open_store(results.url, write=False) as opened:
        generation = texts["run_id"].map({key: state.generation for key, state in opened.states().items()})
        scales = {each.instrument_id: OpinionScale(each.points, each.labels) for each in opened.instruments()}
    said = results.turns[[*KEYS, "message"]].rename(columns={"message": "text"})
    found = texts[generation == texts["generation"]].merge(rows, on=KEYS).merge(said, on=KEYS)
    if found.empty:
        of = audit.sample["design"]
        what = "draw another sample" if of == results.design else f"it belongs to design {of}; pass --design {of}"
        raise StoreError(f"design {results.design} has no texts of audit {audit.audit_id}; {what}")
    return Sample(audit, found, scales[found["instrument_id"].iloc[0]])


def require_names(coders: Sequence[str]) -> None:
    """Refuse names of coders that occur twice, or that are not valid in the name of a file."""
    if not coders or len(set(coders)) < len(coders) or not all(map(_NAME.fullmatch, coders)):
        raise SpecError(f"coders must be distinct names of letters, digits and hyphens; got {', '.join(coders)!r}")


def write_files(sample: Sample, coders: Sequence[str], folder: str | Path) -> list[Path]:
    """Write one CSV file for each coder and the instructions.

    A file has the claim and the text of each item, and an empty column for the label; it does not show condition,
    author or the instrument's reading. Each coder gets the items in a different order.

    Parameters
    ----------
    sample : Sample
        From :func:`draw`.
    coders : sequence of str
        Names of the coders, which their files contain.
    folder : str or Path
        Folder for the files, created if needed. Existing files are not replaced.

    Returns
    -------
    list of Path
        The files, the instructions last.

    Raises
    ------
    SpecError
        If a name is not valid in a file name or occurs twice, or if a file exists.
    """
    require_names(coders)
    audit_id, target = sample.audit.audit_id, Path(folder)
    paths = [target / f"{audit_id}-{name}.csv" for name in coders]
    guide = target / f"{audit_id}-instructions.txt"
    told = filled("opinionsim.audit", "instructions.txt", scale=sample.scale, no_opinion=NO_OPINION)
    for path in paths:  # which may hold labels
        require_free(path, lambda _: False, force=None)
    require_free(guide, partial(begins, start=told.encode()), force=None)
    target.mkdir(parents=True, exist_ok=True)
    items = sample.texts.assign(audit=audit_id, item=sample.texts["code"], label="")
    for name, path in zip(coders, paths, strict=True):
        order = stream(sample.audit.sample["seed"], "audit order", 0, name).permutation(len(items))
        write_csv(items.assign(coder=name).iloc[order][list(COLUMNS)], path)
    guide.write_text(told, "utf-8")
    return [*paths, guide]
