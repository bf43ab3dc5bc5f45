"""Read labels from coders' files, ask chat models for labels, and combine and store labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from opinionsim.audit._sample import COLUMNS, KEYS, NO_OPINION, Sample
from opinionsim.classifiers import Classifier, Item
from opinionsim.errors import SpecError
from opinionsim.foundation.spreadsheets import unescaped
from opinionsim.foundation.tables import number_in, read_table
from opinionsim.store import LabelRow, Results, open_store
from opinionsim.topics import Claim


def read_files(paths: Sequence[str | Path], sample: Sample) -> dict[str, pd.Series[float]]:
    """Read labels from coders' files.

    Parameters
    ----------
    paths : sequence of str or Path
        CSV files from :func:`opinionsim.audit.write_files` with the last column filled in.
    sample : Sample
        Sample to which the labels belong.

    Returns
    -------
    dict of str to Series of float
        Labels by code for each coder; NaN for no opinion.

    Raises
    ------
    SpecError
        If a file is not a valid table, a label is missing or off the scale, an item is missing, labelled twice or from
        another sample, or a coder has two files. The error names file and line.
    """
    found: dict[str, pd.Series[float]] = {}
    for path in paths:
        coder, labels = _read(Path(path), sample)
        if coder in found:
            raise SpecError(f"{path}: the coder {coder!r} has two files; give one file per coder")
        for other in (*sample.audit.coders, *found):
            if other != coder and other.casefold() == coder.casefold():
                raise SpecError(f"{path}: the coder {coder!r} is {other!r} elsewhere; use one spelling")
        found[coder] = labels
    return found


def _read(path: Path, sample: Sample) -> tuple[str, pd.Series[float]]:
    table = read_table(path, needed=[name for name in COLUMNS if name not in ("claim", "text")])
    audits, coders, items, marks = (table.texts(name) for name in ("audit", "coder", "item", "label"))
    points = ", ".join([*map(str, sample.scale.points), NO_OPINION])
    codes, audit_id = {text["code"] for text in sample.audit.sample["texts"]}, sample.audit.audit_id
    labels: dict[str, float] = {}
    coder = (coders or [None])[0]
    for row, told in enumerate(zip(audits, coders, items, marks, strict=True)):
        if not any(told):
            continue  # Spreadsheets may save empty rows among the others.
        audit, by, item, mark = (str(unescaped(cell or "")) for cell in told)
        if audit != audit_id or item not in codes:
            table.refuse(row, f"item {item!r} of audit {audit!r} does not belong to audit {audit_id}")
        if item in labels:
            table.refuse(row, f"item {item} occurs twice; keep one of its rows")
        if not mark:
            table.refuse(row, f"item {item} has no label; give one of {points}")
        label = number_in(mark, comma=table.comma)
        if mark.upper() == NO_OPINION:
            label = np.nan
        elif label is None or label not in sample.scale.points:
            table.refuse(row, f"the label {mark!r} is off the scale; give one of {points}")
        if by != coder or not coder:
            table.refuse(row, f"the coder is {by!r}; name the same coder in every row of a file")
        labels[item] = label
    if lost := sorted(codes - labels.keys()):
        raise SpecError(f"{path}: {len(lost)} of {len(codes)} items are missing, such as {lost[0]}; label all")
    table.tell()
    return str(coder), pd.Series(labels, dtype=float)


def asked(sample: Sample, coder: Classifier) -> pd.Series[float]:
    """Ask a chat model for labels, by code.

    Parameters
    ----------
    sample : Sample
        The sample.
    coder : Classifier
        Classifier that asks a model, such as ``load_classifier("chat", scale=sample.scale, model=...)``. It sees the
        claim and the text.
    """
    rows = sample.texts[["text", "claim", "topic", "framing"]].itertuples(index=False)
    claims = [(row.text, Claim(str(row.claim), str(row.topic), str(row.framing))) for row in rows]
    value = coder.classify([Item(str(text), claim) for text, claim in claims]).value
    return pd.Series(value, index=sample.texts["code"].to_numpy(), dtype=float)


def keep(results: Results, sample: Sample, labels: Mapping[str, pd.Series[float]], evidence: str) -> Sample:
    """Store labels, replacing earlier labels of the same coders, and return the sample with them.

    Parameters
    ----------
    results : Results
        Results from which the sample was drawn.
    sample : Sample
        The sample.
    labels : mapping of str to Series
        Labels by code for each coder.
    evidence : str
        Who gave the labels: ``human`` or ``model``.
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
    """Return the labels of a sample with one row per text, in its order, and one column per coder; NaN for no opinion.

    Raises
    ------
    SpecError
        If the sample has no labels.
    """
    with open_store(results.url, write=False) as opened:
        rows = opened.labels(sample.audit.audit_id)
    if not rows:
        raise SpecError(f"audit {sample.audit.audit_id} has no labels yet; add them with `opinionsim audit score`")
    table = pd.DataFrame(rows).pivot(index=KEYS, columns="coder", values="value")
    return table.reindex(pd.MultiIndex.from_frame(sample.texts[KEYS])).reset_index(drop=True)


def combined(labels: pd.DataFrame) -> np.ndarray:
    """Combine the labels of several coders for each text by their median.

    A text has no opinion (NaN) if more coders find none than find one. With an even number of coders, the median can
    lie between two points.

    Parameters
    ----------
    labels : DataFrame (texts, coders)
        NaN for no opinion.
    """
    none = labels.isna().to_numpy()
    median = labels.median(axis=1).to_numpy(float)
    return np.where(none.sum(axis=1) > (~none).sum(axis=1), np.nan, median)
