"""Mean opinions corrected by labels of people, with intervals over the audit and the runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from opinionsim.audit._sample import KEYS
from opinionsim.metrics import in_order, named_levels


class Corrected(NamedTuple):
    """Corrected mean opinions of one condition.

    Attributes
    ----------
    raw, corrected : Series
        Mean opinion of each independent unit, as the instrument reads it and as the labels correct it. Their means are
        those of the condition.
    error : float
        Mean error of the instrument: reading less label.
    labels : int
        Labelled texts.
    """

    raw: pd.Series[float]
    corrected: pd.Series[float]
    error: float
    labels: int


def correct_bias(texts: pd.DataFrame, labels: pd.DataFrame, unit: str) -> Corrected:
    r"""Correct the mean opinion of one condition.

    The difference estimator: :math:`\hat B = B + \sum_s u_i d_i / \sum_s u_i`, where the mean opinion B of all texts is
    as read, :math:`d_i` is label less reading of a text of the sample s, and :math:`u_i` its share in B over its
    inclusion probability. It is right whatever the instrument does, for errors are measured where they count and
    nothing is assumed of them.

    Parameters
    ----------
    texts : DataFrame
        All texts of the condition that count: ``run_id, turn, value`` and the unit.
    labels : DataFrame
        Labelled ones among them: ``run_id, turn, probability, label``; a NaN label has no part.
    unit : str
        Column of the independent units.

    Returns
    -------
    Corrected
        The value of unit v is :math:`B_v + m \sum_{s_v} u_i (d_i - \bar d) / \sum_s u_i + \bar d` for m units. The
        spread of these values is that of runs and audit together, so their mean has the interval of any mean.

    Notes
    -----
    Särndal, Swensson and Wretman 1992, Model assisted survey sampling, sections 5.7 and 6.3; variance with units as
    first-stage samples, section 4.6.
    """
    own = texts.merge(labels[[*KEYS, "probability", "label"]], on=KEYS, how="left")
    n_texts = own.groupby("run_id")["value"].transform("size")
    n_runs = own.groupby(unit)["run_id"].transform("nunique")
    share = 1 / (n_texts * n_runs * own[unit].nunique())
    raw = (own["value"] / (n_texts * n_runs)).groupby(own[unit]).sum()
    error = (own["label"] - own["value"]).to_numpy(float)
    known = ~np.isnan(error)
    if not known.any():
        return Corrected(raw, raw * math.nan, math.nan, 0)
    weight = (share / own["probability"]).to_numpy(float)[known]
    mean = float(weight @ error[known] / weight.sum())
    excess = pd.Series(weight * (error[known] - mean) / weight.sum()).groupby(own[unit].to_numpy()[known]).sum()
    return Corrected(raw, raw + len(raw) * excess.reindex(raw.index, fill_value=0.0) + mean, -mean, int(known.sum()))


def interval_of(units: Sequence[float] | np.ndarray | pd.Series[float], level: float = 0.95) -> tuple[float, float]:
    """Interval of a mean over independent units by Student's t; NaN for fewer than two."""
    from scipy.stats import t

    values = np.asarray(units, dtype=float)
    if len(values) < 2:
        return math.nan, math.nan
    half = float(t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half


def interval_of_difference(first: pd.Series[float], second: pd.Series[float], level: float = 0.95) -> tuple[float, ...]:
    """Difference of two means over units and its interval: paired where they share their units, else Welch's."""
    from scipy.stats import ttest_ind

    if set(first.index) == set(second.index):
        between = second - first
        return (float(between.mean()), *interval_of(between, level))
    difference = float(second.mean() - first.mean())
    if min(len(first), len(second)) < 2:
        return difference, math.nan, math.nan
    ends = ttest_ind(second, first, equal_var=False).confidence_interval(level)
    return difference, float(ends.low), float(ends.high)


def bias_frames(texts: pd.DataFrame, labels: pd.DataFrame, by: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Raw and corrected mean opinions by condition, and their contrasts between levels of the first condition.

    Parameters
    ----------
    texts, labels
        As for :func:`correct_bias`, of all conditions; `texts` has the columns of the runs.
    by : sequence of str
        The conditions.

    Returns
    -------
    conditions, contrasts : DataFrame
        One row a condition: the columns `by`, ``units, unit, labels, error, raw, raw_low, raw_high, corrected,
        corrected_low, corrected_high``; one row for each level but the first: ``contrast`` and the last six.
    """
    # Topics are drawn where several are averaged, else blocks.
    unit = "topic" if "topic" not in by and texts["topic"].nunique() > 1 else "block"
    rows, contrasts = [], []
    for levels, group in conditions(texts, by):
        found = correct_bias(group, labels, unit)
        told = {"units": len(found.raw), "unit": unit, "labels": found.labels, "error": found.error}
        rows.append({**levels, **told, **_mean("raw", found.raw), **_mean("corrected", found.corrected)})
    if by:
        own = [(levels[by[0]], correct_bias(group, labels, unit)) for levels, group in conditions(texts, by[:1])]
        (first, start), *others = own
        for level, found in others:
            row: dict[str, object] = {"contrast": f"{level} less {first}"}
            for name in ("raw", "corrected"):
                ends = interval_of_difference(getattr(start, name), getattr(found, name))
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            contrasts.append(row)
    return pd.DataFrame(rows), pd.DataFrame(contrasts)


def _mean(name: str, units: pd.Series[float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), (float(units.mean()), *interval_of(units)), strict=True))


def conditions(texts: pd.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, str], pd.DataFrame]]:
    """Conditions with their levels in words and their texts, in the order of tables."""
    if not by:
        return [({}, texts)]
    ordered = in_order(texts, by)
    levels = [named_levels(ordered[axis]) for axis in by]
    return [(dict(zip(by, map(str, key), strict=True)), group) for key, group in ordered.groupby(levels, sort=False)]
