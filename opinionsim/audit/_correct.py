"""Mean opinions corrected with labels from people, with intervals over the audit and the runs."""

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
    r"""Mean of readings minus mean of labels, each over the texts that have one, and contributions of the texts.

    Parameters
    ----------
    read, label : ndarray (n,)
        Readings and labels of labelled texts; NaN for a text without a reading or without an opinion.
    of_read, of_label : ndarray (n,)
        Weights in the two means.

    Returns
    -------
    error : float
        :math:`\bar v - \bar y` with the ratios :math:`\bar v = \sum a_i v_i / \sum a_i` over readings and
        :math:`\bar y = \sum b_i y_i / \sum b_i` over labels. NaN if there is no reading or no label.
    parts : ndarray (n,)
        :math:`a_i (v_i - \bar v) / \sum a - b_i (y_i - \bar y) / \sum b`, which has the same spread as the error
        (linearised).

    Notes
    -----
    Means of domains are ratios: Cochran 1977, Sampling techniques, sections 2.11 and 2.12; Särndal, Swensson and
    Wretman 1992, Model assisted survey sampling, sections 5.6 to 5.8. If each text has a reading and an opinion, and
    the same weight in both means, this is the weighted mean of the differences.
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

    The function estimates the mean that tables would show if people had read all texts: over the texts of a run that
    state an opinion according to their labels, then over runs, blocks and topics. The estimate is the mean as read
    minus the error in labelled texts (:func:`mean_error`). Each text counts with its weight in the two means, divided
    by its inclusion probability. The method makes no assumptions about the errors of the instrument, because it
    measures them on the same texts. With every text labelled, nothing remains to be estimated.

    Parameters
    ----------
    texts : DataFrame
        All texts of the condition that count: ``run_id, turn, topic, block, value``; NaN for a text without a reading.
    labels : DataFrame
        The labelled ones among them: ``run_id, turn, probability, label``. A NaN label means that the text states no
        opinion.

    Returns
    -------
    DataFrame
        One row per topic and block: ``topic, block, raw, error, corrected``. The contribution of a labelled text to the
        error is part of the corrected value of its own unit. The spread of corrected values therefore contains both
        runs and audit, and you can use :func:`opinionsim.analysis.estimate` for the interval of their mean.

    Notes
    -----
    Variance with units as first-stage samples: Särndal, Swensson and Wretman, section 4.6. Labels show which labelled
    texts of a run state an opinion. A text without a label counts as the share of labelled texts with the same reading
    that state one, times a ratio for its run: the number of opinions that labels find in the run, divided by the number
    that these shares predict. A run in which no label finds an opinion has the shares of all runs. These numbers only
    affect the weights of runs.
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
        reason for a missing one, paired by topic and block. Topics are not compared because nothing pairs them.
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
    """Return conditions with their levels in words, their evidence, and their texts, in the order of tables."""
    ordered = in_order(texts, by) if by else texts
    keys = {axis: named_levels(ordered[axis]) for axis in (*by, "evidence")}
    grouped = ordered.groupby(list(keys.values()), sort=False)
    return [(dict(zip(keys, level, strict=True)), group) for level, group in grouped]
