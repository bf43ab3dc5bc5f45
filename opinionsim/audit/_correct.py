"""Mean opinions corrected by labels of people, with intervals over the audit and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis import Estimand, Estimate, effect, no_estimate, with_intervals
from opinionsim.audit._sample import KEYS
from opinionsim.errors import SpecError
from opinionsim.metrics import in_order, named_levels, scale_of
from opinionsim.specification import ContrastSpec

#: What is estimated: as the instrument reads it, and as the labels correct it.
BOTH = ("raw", "corrected")


#: What identifies an independent unit.
_UNIT = ["topic", "block"]


def mean_error(read: np.ndarray, label: np.ndarray, of_read: np.ndarray, of_label: np.ndarray) -> tuple[float, Any]:
    r"""Mean of readings less mean of labels, each over the texts that have one, and what each text adds.

    Parameters
    ----------
    read, label : ndarray (n,)
        Readings and labels of labelled texts; NaN for a text without a reading, and for one without an opinion.
    of_read, of_label : ndarray (n,)
        Weights in either mean.

    Returns
    -------
    error : float
        :math:`\bar v - \bar y` with the ratios :math:`\bar v = \sum a_i v_i / \sum a_i` over readings and
        :math:`\bar y = \sum b_i y_i / \sum b_i` over labels. NaN without a reading or without a label.
    parts : ndarray (n,)
        :math:`a_i (v_i - \bar v) / \sum a - b_i (y_i - \bar y) / \sum b`, whose spread is that of the error
        (linearised).

    Notes
    -----
    Means of domains are ratios: Cochran 1977, Sampling techniques, sections 2.11 and 2.12; Särndal, Swensson and
    Wretman 1992, Model assisted survey sampling, sections 5.6 to 5.8. Where each text has a reading and an opinion, and
    equal weights in both means, this is the weighted mean of their differences.
    """
    means, parts = [], []
    for value, weight in ((read, of_read), (label, of_label)):
        own = np.where(np.isnan(value), 0.0, weight)
        if not own.any():
            return np.nan, np.full(len(value), np.nan)
        share, filled = own / own.sum(), np.nan_to_num(value)
        means.append(float(share @ filled))
        parts.append(share * (filled - means[-1]))
    return means[0] - means[1], parts[0] - parts[1]


def _weights(texts: pd.DataFrame, counted: pd.Series[float]) -> tuple[pd.Series[float], pd.Series[float]]:
    """Weight of each text in the mean of all, and of its unit, where texts count as much of a whole as `counted`.

    Texts of a run weigh alike, as do runs of a unit, units of a topic and topics. NaN where no text of the run counts.
    """
    in_run = counted.groupby(texts["run_id"]).transform("sum")
    own = texts[in_run > 0]
    n_runs = own.groupby(_UNIT, dropna=False)["run_id"].transform("nunique")
    n_blocks = own.groupby("topic", dropna=False)["block"].transform("nunique")
    unit = (1 / (n_blocks * own["topic"].nunique(dropna=False))).reindex(texts.index)
    return unit / (in_run * n_runs.reindex(texts.index)), unit


def correct_bias(texts: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    r"""Correct the mean opinion of one condition.

    What is estimated is the mean that tables would have, had people read all texts: over the texts of a run that state
    an opinion by their labels, then over runs, blocks and topics. It is the mean as read less the error in labelled
    texts (:func:`mean_error`), each weighted by its weight in either mean over its inclusion probability. Nothing is
    assumed of the errors of the instrument, for they are measured where they count; with every text labelled nothing
    is left to estimate.

    Parameters
    ----------
    texts : DataFrame
        All texts of the condition that count: ``run_id, turn, topic, block, value``; NaN for one without a reading.
    labels : DataFrame
        Labelled ones among them: ``run_id, turn, probability, label``; a NaN label is that of a text without an
        opinion.

    Returns
    -------
    DataFrame
        One row a topic and block: ``topic, block, raw, error, corrected``. Corrected values are such that their spread
        is that of runs and audit together, so that their mean has the interval of any mean
        (:func:`opinionsim.analysis.estimate`): what a labelled text adds to the error stands in its own unit.

    Notes
    -----
    Variance with units as first-stage samples: Särndal, Swensson and Wretman, section 4.6. How many texts of a run
    state an opinion is known of labelled ones. One without a label counts as the share of labelled ones of the same
    reading that do, times what the labels of its run find over what these shares expect of them: a ratio estimate in
    each run. A run in which no label finds an opinion has the shares of all. This gives runs their weights alone.
    """
    own = texts.merge(labels[[*KEYS, "probability", "label"]], on=KEYS, how="left")
    known, value = own["probability"].notna(), own["value"]
    states = own["label"].notna().astype(float).where(known)
    usual = states.groupby(value, dropna=False).transform("mean")
    usual = usual.fillna(states.groupby(value.isna()).transform("mean")).fillna(states.mean())
    # A run without a label of an opinion does not tell how its share differs.
    stated, expected = (each.groupby(own["run_id"]).transform("sum") for each in (states, usual.where(known)))
    said = states.fillna(usual * (stated / expected).where(stated > 0, 1.0))
    of_read, unit_read = _weights(own, value.notna().astype(float))
    of_label, unit = _weights(own, said)
    drawn = own.loc[known, ["value", "label"]].to_numpy(float).T
    weights = [(each / own["probability"])[known].to_numpy(float) for each in (of_read, of_label)]
    error, parts = mean_error(*drawn, *weights)
    mean = float((of_read * value).sum())
    own["moved"] = (of_read * (value - mean)).fillna(0.0)
    own.loc[known, "moved"] -= parts
    own["moved"] /= unit
    own["raw"] = of_read * value / unit_read
    found = own.groupby(_UNIT, sort=False, dropna=False)[["raw", "moved"]].sum(min_count=1).reset_index()
    found["corrected"] = mean - error + found["moved"]
    return found.assign(error=found["raw"] - found["corrected"])[[*_UNIT, "raw", "error", "corrected"]]


def bias_frames(
    texts: pd.DataFrame, labels: pd.DataFrame, by: Sequence[str], estimand: Estimand | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, list[list[Estimate]]]:
    """Compute raw and corrected mean opinions by condition, and contrasts between levels of the first condition.

    Parameters
    ----------
    texts, labels
        As for :func:`correct_bias`, for all conditions; `texts` also has the columns of the runs and ``evidence``.
    by : sequence of str
        The conditions.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`.

    Returns
    -------
    conditions : DataFrame
        One row per condition: the columns `by`, ``evidence``, ``labels``, ``without`` (labels that find no opinion),
        and ``raw``, ``corrected`` and ``error``, each with its interval and its basis, as in all tables.
    contrasts : DataFrame
        One row for each level except the first: ``contrast``, ``raw`` and ``corrected`` with their intervals, or the
        reason for a missing one, paired by topic and block. Topics are not compared, because nothing pairs them.
    estimates : list of list of Estimate
        Estimates of the conditions, by measure.
    """
    rows, parts = [], []
    for levels, group in conditions(texts, by):
        found = correct_bias(group, labels)
        given = group[KEYS].merge(labels[[*KEYS, "label"]], on=KEYS)["label"]
        rows.append(levels | {"labels": len(given), "without": int(given.isna().sum())})
        parts.append(found.assign(**levels))
    units = pd.concat(parts, ignore_index=True)
    if "scale" in texts.columns:
        scale = scale_of(texts)
        width = float(scale.highest - scale.lowest)
        units.attrs["limits"] = dict.fromkeys(BOTH, (scale.lowest, scale.highest)) | {"error": (-width, width)}
    frame, estimates = with_intervals(pd.DataFrame(rows), units, by, estimand, (*BOTH, "error"))
    contrasts = []
    axis = by[0] if by else "topic"
    first, *others = [""] if axis == "topic" else units[axis].unique()
    for level in others:
        row: dict[str, object] = {"contrast": f"{level} less {first}"}
        for name in BOTH:
            asked = ContrastSpec(measure=name, of=({axis: (level,)}, {axis: (first,)}))
            try:
                own = effect(units, by, asked, estimand=estimand).estimate
            except SpecError as error:
                own = no_estimate(error.unplaced)
            row |= own.columns(name) | {"no_interval": own.reason}
        contrasts.append(row)
    return frame, pd.DataFrame(contrasts), estimates


def conditions(texts: pd.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Conditions with their levels in words, their kind of evidence, and their texts, in the order of tables."""
    ordered = in_order(texts, by) if by else texts
    keys = {axis: named_levels(ordered[axis]) for axis in (*by, "evidence")}
    grouped = ordered.groupby(list(keys.values()), sort=False)
    return [(dict(zip(keys, level, strict=True)), group) for level, group in grouped]
