"""Labels: how coders' files are read, what a chat model is asked, and how labels are combined and kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from opinionsim.audit._sample import COLUMNS, KEYS, NO_OPINION, Sample
from opinionsim.classifiers import Classifier, Item
from opinionsim.errors import SpecError
from opinionsim.foundation.spreadsheets import unescaped
from opinionsim.store import LabelRow, Results, open_store
from opinionsim.topics import Claim


def read_files(paths: Sequence[str | Path], sample: Sample) -> dict[str, pd.Series[float]]:
    """Labels from coders' files.

    Parameters
    ----------
    paths : sequence of str or Path
        CSV files that :func:`opinionsim.audit.write_files` wrote, their last column filled in.
    sample : Sample
        The sample they are of.

    Returns
    -------
    dict of str to Series of float
        By coder, the label of each code; NaN for no opinion.

    Raises
    ------
    SpecError
        Naming file and row, if a label is missing or off the scale, an item is foreign, missing or labelled twice, or
        a coder has two files.
    """
    found: dict[str, pd.Series[float]] = {}
    for path in paths:
        coder, labels = _read(Path(path), sample)
        if coder in found:
            raise SpecError(f"{path}: the coder {coder!r} has another file too; each coder has one")
        for other in (*sample.audit.coders, *found):
            if other != coder and other.casefold() == coder.casefold():
                raise SpecError(f"{path}: the coder {coder!r} is {other!r} elsewhere; write the name in one way")
        found[coder] = labels
    return found


def _read(path: Path, sample: Sample) -> tuple[str, pd.Series[float]]:
    try:
        content = path.read_bytes().decode("utf-8-sig")
        # Spreadsheets of some countries write semicolons.
        separator = max(",;\t", key=content.partition("\n")[0].count)
        rows = list(csv.DictReader(io.StringIO(content, newline=""), delimiter=separator))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{path}: cannot be read as CSV in UTF-8 ({error})") from None
    if lacking := sorted(set(COLUMNS) - {"claim", "text"} - set(rows[0] if rows else ())):
        raise SpecError(f"{path}: has no column {', '.join(lacking)}; the files of `audit sample` have them")
    valid = {str(point): float(point) for point in sample.scale.points} | {NO_OPINION: np.nan}
    codes, audit_id = {text["code"] for text in sample.audit.sample["texts"]}, sample.audit.audit_id
    labels: dict[str, float] = {}
    coder = (rows[0]["coder"] or "").strip()
    for number, row in enumerate(rows, start=2):
        told = {name: str(unescaped(row[name] or "")).strip() for name in ("audit", "coder", "item", "label")}
        if not any(told.values()):
            continue  # Spreadsheets may save empty rows below the table.
        where, item = f"{path}, row {number}", told["item"]
        label = told["label"].upper().removeprefix("+").replace("\N{MINUS SIGN}", "-").removesuffix(".0")
        if told["audit"] != audit_id or item not in codes:
            raise SpecError(f"{where}: item {item!r} of audit {told['audit']!r} is none of audit {audit_id}")
        if item in labels:
            raise SpecError(f"{where}: item {item} is there twice; leave one row of it")
        if not label:
            raise SpecError(f"{where}: item {item} has no label; give one of {', '.join(valid)}")
        if label not in valid:
            raise SpecError(f"{where}: the label {told['label']!r} is off the scale; give one of {', '.join(valid)}")
        if told["coder"] != coder or not coder:
            raise SpecError(f"{where}: the coder is {told['coder']!r}; a file has one, who is named in every row")
        labels[item] = valid[label]
    if lost := sorted(codes - labels.keys()):
        raise SpecError(f"{path}: {len(lost)} of {len(codes)} items are missing, {lost[0]} among them; a file has all")
    return coder, pd.Series(labels, dtype=float)


def asked(sample: Sample, coder: Classifier) -> pd.Series[float]:
    """Labels that a chat model gives, by code.

    Parameters
    ----------
    sample : Sample
        The sample.
    coder : Classifier
        One that asks, such as ``load_classifier("chat", scale=sample.scale, model=...)``. It is told claim and text.
    """
    rows = sample.texts[["text", "claim", "topic", "framing"]].itertuples(index=False)
    claims = [(row.text, Claim(str(row.claim), str(row.topic), str(row.framing))) for row in rows]
    value = coder.classify([Item(str(text), claim) for text, claim in claims]).value
    return pd.Series(value, index=sample.texts["code"].to_numpy(), dtype=float)


def keep(results: Results, sample: Sample, labels: Mapping[str, pd.Series[float]], evidence: str) -> Sample:
    """Keep labels in the store, in the place of those that their coders gave before; returns the sample with them.

    Parameters
    ----------
    results : Results
        The results that the sample is of.
    sample : Sample
        The sample.
    labels : mapping of str to Series
        By coder, labels by code.
    evidence : str
        ``human`` or ``model``: who gave them.
    """
    coders = {**sample.audit.coders, **dict.fromkeys(labels, evidence)}
    audit = replace(sample.audit, coders=coders)
    texts = sample.texts[[*KEYS, "code"]].itertuples(index=False, name=None)
    rows = [
        LabelRow(audit.audit_id, coder, str(run_id), int(turn), float(own[code]), evidence)
        for run_id, turn, code in texts
        for coder, own in labels.items()
    ]
    with open_store(results.url) as opened:
        opened.save_audit(audit, rows)
    return replace(sample, audit=audit)


def labels_of(results: Results, sample: Sample) -> pd.DataFrame:
    """The labels of a sample: one row a text in its order, one column a coder; NaN for no opinion.

    Raises
    ------
    SpecError
        If nobody has labelled it.
    """
    with open_store(results.url, write=False) as opened:
        rows = opened.labels(sample.audit.audit_id)
    if not rows:
        raise SpecError(f"audit {sample.audit.audit_id} has no labels yet; `opinionsim audit score` reads them")
    table = pd.DataFrame(rows).pivot(index=KEYS, columns="coder", values="value")
    return table.reindex(pd.MultiIndex.from_frame(sample.texts[KEYS])).reset_index(drop=True)


def combined(labels: pd.DataFrame) -> np.ndarray:
    """One label of each text from those of several coders: their median.

    A text in which more coders find no opinion than find one has none (NaN). With an even number of coders the median
    can lie between two points.

    Parameters
    ----------
    labels : DataFrame (texts, coders)
        NaN for no opinion.
    """
    none = labels.isna().to_numpy()
    median = labels.median(axis=1).to_numpy(float)
    return np.where(none.sum(axis=1) > (~none).sum(axis=1), np.nan, median)
