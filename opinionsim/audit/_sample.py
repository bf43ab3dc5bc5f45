"""Samples of texts for coders: drawn by condition, and written so that nothing tells where a text comes from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import SpecError, StoreError, whole_number
from opinionsim.evidence import KINDS, TO_MEASURE
from opinionsim.metrics import condition_axes, named_levels, stance_rows
from opinionsim.opinions import OpinionScale
from opinionsim.spreadsheets import write_csv
from opinionsim.store import AuditRow, Results, load, open_store
from opinionsim.streams import canonical_json, digest, stream

#: Label of a text in which a coder finds no opinion.
NO_OPINION = "N"
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
        What the store keeps.
    texts : DataFrame
        One row a text: ``run_id, turn, code, probability`` (of inclusion), ``text``, ``value`` (the instrument's), and
        the columns of its opinion and of its run. Texts of runs that were begun anew are left out.
    scale : OpinionScale
        The scale to label on.
    """

    audit: AuditRow
    texts: pd.DataFrame
    scale: OpinionScale


def counted_texts(results: Results, kind: str | None = None) -> tuple[pd.DataFrame, str]:
    """The texts whose opinions count in tables, one row each, and their kind.

    They are the last text of each participant with a measured opinion, or all of them where no report depends on
    another, in complete runs, as the instrument of stance that the runs name has read them.

    Parameters
    ----------
    results : Results
        The results.
    kind : str, optional
        Kind of text; default the first present of report, response, post, ...

    Raises
    ------
    SpecError
        If there is none.
    """
    runs = results.runs[results.runs["status"] == "complete"].drop_duplicates("run_id")
    opinions = results.opinions
    # A run of several cells is read by the instrument of the first.
    rows = stance_rows(runs, opinions).merge(runs, on=["run_id", "cell", "instrument_id"], suffixes=("", "_of_run"))
    rows = rows[rows["value"].notna()]
    present = [name for name in KINDS if name in set(rows["kind"]) and name != "self-report"]
    if not present or (kind is not None and kind not in present):
        valid = f"kind must be one of {', '.join(present)}; got {kind!r}" if present else TO_MEASURE
        raise SpecError(f"no text of a complete run to label: {valid}")
    chosen = kind or present[0]
    rows = rows[rows["kind"] == chosen].sort_values(["run_id", "agent", "turn"], kind="stable")
    last = ~rows.duplicated(["run_id", "agent"], keep="last")
    return rows[last | rows["every_report"].astype(bool)].reset_index(drop=True), chosen


def draw(
    store: str,
    labels: int,
    *,
    by: Sequence[str] | None = None,
    kind: str | None = None,
    seed: int = 0,
    experiment: str | None = None,
    design: int | None = None,
) -> Sample:
    """Draw a sample of texts for coders and keep it in the store.

    Parameters
    ----------
    store : str
        Address of the store.
    labels : int
        Texts a condition; all where a condition has fewer.
    by : sequence of str, optional
        Columns of the runs frame that make the conditions, the primary contrast first; default the first condition
        that varies.
    kind : str, optional
        Kind of text, as for :func:`counted_texts`.
    seed : int
        Seed of the draw, >= 0.
    experiment, design : str, int, optional
        As for :func:`opinionsim.load`.

    Returns
    -------
    Sample
        The same arguments give the same sample, for further coders.

    Raises
    ------
    SpecError
        If a number is out of range, a condition is unknown, or there is no text to label.

    Notes
    -----
    Within a condition every text has the same inclusion probability. The sample is systematic over the runs in random
    order, with random order within a run, so that runs are represented as evenly as their number allows.
    """
    whole_number("labels", labels, 1)
    whole_number("seed", seed, 0)
    results = load(store, experiment, design=design)
    rows, chosen = counted_texts(results, kind)
    axes = list(condition_axes(results.runs)[:1]) if by is None else list(by)
    if unknown := [axis for axis in axes if axis not in results.runs.columns]:
        raise SpecError(f"no condition {unknown[0]!r}; the runs differ in {', '.join(condition_axes(results.runs))}")
    strata = _strata(rows, axes)
    drawn = []
    for name, group in rows.groupby(strata, sort=True):
        draws = stream(seed, "audit sample", 0, str(name))
        mixed = group.iloc[draws.permutation(len(group))]
        places = {run_id: place for place, run_id in enumerate(draws.permutation(sorted(set(group["run_id"]))))}
        mixed = mixed.iloc[np.argsort(mixed["run_id"].map(places).to_numpy(int), kind="stable")]
        n = min(labels, len(mixed))
        chosen_rows = mixed.iloc[np.floor((draws.random() + np.arange(n)) * len(mixed) / n).astype(int)]
        drawn.append(chosen_rows.assign(probability=n / len(mixed)))
    sample = pd.concat(drawn)
    with open_store(results.url) as opened:
        states = opened.states(sorted(set(sample["run_id"])))
        how = {"by": axes, "kind": chosen, "labels": labels, "seed": seed, "design": results.design}
        keys = sample[[*KEYS, "probability"]].to_dict("records")
        texts: list[dict[str, Any]] = [{**each, "generation": states[each["run_id"]].generation} for each in keys]
        identity = digest(canonical_json([results.name, how, texts]))[:8]
        for each in texts:
            each["code"] = digest(canonical_json([identity, each["run_id"], each["turn"]]))[:8]
        audit = next((each for each in opened.audits() if each.audit_id == identity), None)
        if audit is None:
            payer = next(each for each in opened.designs() if each.name == results.name).experiment_id
            audit = AuditRow(identity, payer, {**how, "texts": texts}, made_at=time.time())
            opened.save_audit(audit)
    return _sample(results, audit)


def sample_of(results: Results, audit: str | None = None) -> Sample:
    """A sample that was drawn from the texts of an experiment.

    Parameters
    ----------
    results : Results
        The results of the experiment.
    audit : str, optional
        Identity of the sample; default the one drawn last.

    Raises
    ------
    StoreError
        If there is no such sample.
    """
    with open_store(results.url, write=False) as opened:
        known = {design.experiment_id for design in opened.designs() if design.name == results.name}
        found = {each.audit_id: each for each in opened.audits() if each.experiment_id in known}
    if not found or (audit is not None and audit not in found):
        held = f"it has {', '.join(found)}" if found else "draw one with `opinionsim audit sample`"
        raise StoreError(f"{results.name} in {results.url} has no audit {audit or ''}; {held}".replace("  ", " "))
    return _sample(results, found[audit or list(found)[-1]])


def axes_of(sample: Sample) -> list[str]:
    """The conditions by which a sample was drawn."""
    return list(sample.audit.sample["by"])


def _strata(rows: pd.DataFrame, axes: Sequence[str]) -> pd.Series[str]:
    """The condition of each row in words."""
    levels = [axis + "=" + named_levels(rows[axis]) for axis in axes]
    return pd.Series([", ".join(each) for each in zip(*levels, strict=True)] or "all", index=rows.index, dtype=object)


def _sample(results: Results, audit: AuditRow) -> Sample:
    """A sample as it is now, with texts and readings."""
    rows, _ = counted_texts(results, audit.sample["kind"])
    with open_store(results.url, write=False) as opened:
        states = opened.states(sorted(set(rows["run_id"])))
        used = [each for each in opened.instruments() if each.instrument_id in set(rows["instrument_id"])]
    scales = {OpinionScale(each.points, each.labels) for each in used}
    if len(scales) > 1:
        raise SpecError("the texts are read on several scales; labels are on one: name a --design with one scale")
    texts = pd.DataFrame(audit.sample["texts"])
    generation = texts["run_id"].map({run_id: state.generation for run_id, state in states.items()})
    said = results.turns[[*KEYS, "message"]].rename(columns={"message": "text"})
    found = texts[generation == texts["generation"]].merge(rows, on=KEYS).merge(said, on=KEYS)
    if found.empty:
        raise StoreError(f"none of the texts of audit {audit.audit_id} is there any more; draw another sample")
    return Sample(audit, found, next(iter(scales)))


def write_files(sample: Sample, coders: Sequence[str], folder: str | Path) -> list[Path]:
    """Write one CSV file for each coder, and the instructions.

    A file has the claim and the text of each item, and an empty column for the label; nothing in it tells condition,
    author or what the instrument read. Each coder gets the items in an order of its own.

    Parameters
    ----------
    sample : Sample
        From :func:`draw`.
    coders : sequence of str
        Names of the coders, which stand in their files.
    folder : str or Path
        Where to write; made if it does not exist. No file is replaced.

    Returns
    -------
    list of Path
        The files, the instructions last.

    Raises
    ------
    SpecError
        If a name cannot be part of a file's name or comes twice, or a file exists already.
    """
    if not coders or len(set(coders)) < len(coders) or not all(_is_name(name) for name in coders):
        raise SpecError(
            f"coders must be distinct names of letters, digits and hyphens; got {', '.join(coders) or 'none'}"
        )
    audit_id, target = sample.audit.audit_id, Path(folder)
    paths = [target / f"{audit_id}-{name}.csv" for name in coders]
    if there := [path for path in paths if path.exists()]:
        raise SpecError(f"{there[0]} exists already and may hold labels; name another folder")
    target.mkdir(parents=True, exist_ok=True)
    items = sample.texts.assign(audit=audit_id, item=sample.texts["code"], label="")
    for name, path in zip(coders, paths, strict=True):
        order = stream(sample.audit.sample["seed"], "audit order", 0, name).permutation(len(items))
        write_csv(items.assign(coder=name).iloc[order][list(COLUMNS)], path)
    guide = target / f"{audit_id}-instructions.txt"
    points = "\n".join(f"  {point:>3}  {sample.scale.label(point)}" for point in sample.scale.points)
    guide.write_text(
        "Read each text by itself. In the column label, give the opinion that its author expresses of the claim:\n"
        f"{points}\n    {NO_OPINION}  the text expresses no opinion of the claim\n"
        "Label every row, change no other column, and do not talk about the texts until all coders are done.\n",
        encoding="utf-8",
    )
    return [*paths, guide]


def _is_name(name: str) -> bool:
    return bool(name) and name.replace("-", "").isalnum() and not name.startswith("-")
