"""Mean opinions corrected by labels of people, with intervals over the audit and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis import Estimand, Estimate, effect, no_estimate, with_intervals
from opinionsim.audit._sample import KEYS
from opinionsim.errors import SpecError
from opinionsim.metrics import in_order, named_levels
from opinionsim.specification import ContrastSpec

#: What is estimated: as the instrument reads it, and as the labels correct it.
BOTH = ("raw", "corrected")


def mean_error(error: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
    r"""Weighted mean of errors, and what each one adds to it beyond its expected part.

    Parameters
    ----------
    error, weight : ndarray (n,)
        Errors of labelled texts, and their weights; n at least 1.

    Returns
    -------
    mean : float
        :math:`\bar e = \sum w_i e_i / \sum w_i`.
    parts : ndarray (n,)
        :math:`w_i (e_i - \bar e) / \sum w_i`, whose spread is that of the mean.

    Notes
    -----
    Särndal, Swensson and Wretman 1992, Model assisted survey sampling, sections 5.7 and 6.3.
    """
    share = weight / weight.sum()
    mean = float(share @ error)
    return mean, share * (error - mean)


def correct_bias(texts: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    r"""Correct the mean opinion of one condition.

    The difference estimator: :math:`\hat B = B - \sum_s u_i e_i / \sum_s u_i`, where the mean opinion B of all texts
    is as read, :math:`e_i` is reading less label of a text of the sample s, and :math:`u_i` its share in B over its
    inclusion probability. It is right whatever the instrument does, for errors are measured where they count and
    nothing is assumed of them.

    Parameters
    ----------
    texts : DataFrame
        All texts of the condition that count: ``run_id, turn, topic, block, value``.
    labels : DataFrame
        Labelled ones among them: ``run_id, turn, probability, label``; a NaN label has no part.

    Returns
    -------
    DataFrame
        One row a topic and block: ``topic, block, raw, error, corrected``. The error of unit v with share
        :math:`s_v` in B is :math:`\bar e + \sum_{s_v} u_i (e_i - \bar e) / s_v \sum_s u_i`, so that the spread of
        corrected values is that of runs and audit together, and their mean has the interval of any mean
        (:func:`opinionsim.analysis.estimate`).

    Notes
    -----
    Variance with units as first-stage samples: as for :func:`mean_error`, section 4.6.
    """
    unit = ["topic", "block"]
    own = texts.merge(labels[[*KEYS, "probability", "label"]], on=KEYS, how="left")
    n_texts = own.groupby("run_id")["value"].transform("size")
    part = 1 / (n_texts * own.groupby(unit, dropna=False)["run_id"].transform("nunique"))
    n_blocks = own.groupby("topic", dropna=False)["block"].transform("nunique")
    share = 1 / (n_blocks * own["topic"].nunique(dropna=False))
    own["raw"], own["error"] = part * own["value"], 0.0
    known, mean = own["label"].notna(), np.nan
    if known.any():
        weight = (part * share / own["probability"])[known].to_numpy(float)
        mean, parts = mean_error((own["value"] - own["label"])[known].to_numpy(float), weight)
        own.loc[known, "error"] = parts / share[known]
    found = own.groupby(unit, sort=False, dropna=False)[["raw", "error"]].sum().reset_index()
    found["error"] += mean
    return found.assign(corrected=found["raw"] - found["error"])


def bias_frames(
    texts: pd.DataFrame, labels: pd.DataFrame, by: Sequence[str], estimand: Estimand | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, list[list[Estimate]]]:
    """Raw and corrected mean opinions by condition, and their contrasts between levels of the first condition.

    Parameters
    ----------
    texts, labels
        As for :func:`correct_bias`, of all conditions; `texts` has the columns of the runs, and ``evidence``.
    by : sequence of str
        The conditions.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`.

    Returns
    -------
    conditions : DataFrame
        One row a condition: the columns `by`, ``evidence, labels``, and each of ``raw, corrected, error`` with its
        interval and what that rests on, as in all tables.
    contrasts : DataFrame
        One row for each level but the first: ``contrast``, ``raw`` and ``corrected`` with their intervals, and why
        there is none; paired by topic and block. Topics themselves are not compared, since nothing pairs them.
    estimates : list of list of Estimate
        Those of the conditions, by measure.
    """
    rows, parts = [], []
    for levels, group in conditions(texts, by):
        found = correct_bias(group, labels)
        rows.append(levels | {"labels": len(group.merge(labels[labels["label"].notna()][KEYS], on=KEYS))})
        parts.append(found.assign(**levels))
    units = pd.concat(parts, ignore_index=True)
    frame, estimates = with_intervals(pd.DataFrame(rows), units, by, estimand, (*BOTH, "error"))
    contrasts = []
    axis = by[0] if by else "topic"
    first, *others = [""] if axis == "topic" else units[axis].unique()
    for level in others:
        row: dict[str, object] = {"contrast": f"{level} less {first}"}
        for name in BOTH:
            asked = ContrastSpec(measure=name, of={axis: level}, less={axis: first})
            try:
                own = effect(units, by, asked, estimand=estimand).estimate
            except SpecError as error:
                own = no_estimate(str(error))
            row |= own.columns(name) | {"no_interval": own.reason}
        contrasts.append(row)
    return frame, pd.DataFrame(contrasts), estimates


def conditions(texts: pd.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Conditions with their levels in words, their kind of evidence, and their texts, in the order of tables."""
    ordered = in_order(texts, by) if by else texts
    keys = {axis: named_levels(ordered[axis]) for axis in (*by, "evidence")}
    grouped = ordered.groupby(list(keys.values()), sort=False)
    return [(dict(zip(keys, level, strict=True)), group) for level, group in grouped]
