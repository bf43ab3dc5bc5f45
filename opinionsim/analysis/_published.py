"""The tests that the authors of Chuang et al. 2023 ran on their tables, as they ran them (A16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis._contrasts import NO_FINDING
from opinionsim.analysis._estimates import LEAST_UNITS
from opinionsim.analysis._table import Table, finished, level_text, p_text
from opinionsim.analysis._units import unit_frame, usable_runs
from opinionsim.metrics import condition_axes, in_order, one_wording

_FRAMINGS, _BIAS = ("truth", "falsehood"), "confirmation_bias"
#: Planned contrasts of the strengths of confirmation bias: weights by level.
_PLANNED: Mapping[str, Mapping[str, float]] = {
    "none less weak and strong": {"none": 1.0, "weak": -0.5, "strong": -0.5},
    "weak less strong": {"weak": 1.0, "strong": -1.0},
}


def published_tests(
    runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None
) -> list[Table]:
    """The tests of the published tables, each after a check of the numbers of values in its cells.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`opinionsim.analysis.table`.

    Returns
    -------
    list of Table
        One table: one-sample t tests of B against 0 in every condition, paired t tests of B between framings, and of D
        one-way analyses of variance by confirmation bias with planned contrasts, none less weak and strong, and weak
        less strong, as far as the design has these conditions. Their unit is the topic; of D, topic and framing. Empty
        where none applies.

    Notes
    -----
    A16. With one factor sums of squares of type III are those of any type; contrasts use the mean square within
    conditions. Tests whose cells hold different numbers of values, or fewer than three, are not carried out. The tests
    take topics for the only sample; :func:`opinionsim.analysis.contrast_table` has those for any design.
    """
    runs, _ = one_wording(runs, wording)
    usable = usable_runs(runs)
    axes = [axis for axis in condition_axes(usable) if axis != "topic"]
    units = unit_frame(runs, metrics, by=axes, kind=kind)
    keys = [*axes, "evidence", "topic"]
    topics = units.groupby(keys, dropna=False, sort=False)[["bias", "diversity"]].mean().reset_index()
    topics = in_order(topics, axes, usable)
    records = [record for found in (_against_zero, _between_framings, _by_bias) for record in found(topics, axes)]
    if not records:
        return []
    frame = pd.DataFrame(records)
    scripted = frame["evidence"].isin(("scripted", "mixed"))
    frame[["statistic", "p"]] = frame[["statistic", "p"]].where(~scripted)
    header = (("test", "condition", "cells", "estimate", "statistic", "df", "p"),)
    rows = [_row(record) for record in frame.to_dict("records")]
    notes = [
        "Tests as published: topics are the unit, replicates are averaged before, nothing is adjusted.",
        "Cells: number of values in each cell; a test of cells that differ in it, or hold fewer than "
        f"{LEAST_UNITS}, is not carried out.",
        *([NO_FINDING] if scripted.any() else []),
    ]
    made = finished("Tests as published", frame, header, rows, 2, notes)
    return [Table(made.title, made.header, made.rows, 2, frame, made.notes, "tests")]


def _row(record: Mapping[str, Any]) -> tuple[str, ...]:
    """A test as printed."""
    numbers = [f"{record[name]:.2f}".replace("-", "\N{MINUS SIGN}") for name in ("estimate", "statistic")]
    told = ["-" if number == "nan" else number for number in numbers]
    return (record["test"], record["condition"], record["cells"], *told, record["df"] or "-", p_text(record["p"]))


def _conditions(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, evidence and rows of each condition by some axes."""
    for key, group in topics.groupby([*axes, "evidence"], dropna=False, sort=False):
        yield ", ".join(map(level_text, key[:-1])) or "all", str(key[-1]), group


def _tested(
    test: str, condition: str, evidence: str, cells: Sequence[np.ndarray], found: Mapping[str, Any]
) -> dict[str, Any]:
    """The record of a test, without its results where its cells differ in their numbers or are too small."""
    counts = [len(cell) for cell in cells]
    fit = len(set(counts)) == 1 and counts[0] >= LEAST_UNITS and math.isfinite(found["statistic"])
    nothing = {"estimate": found["estimate"], "statistic": math.nan, "df": "", "p": math.nan}
    cell_text = f"{counts[0]} each" if len(set(counts)) == 1 and len(counts) > 1 else ", ".join(map(str, counts))
    return {"test": test, "condition": condition, "cells": cell_text, **(found if fit else nothing), "evidence": evidence}


def _t(estimate: float, error: float, df: int) -> dict[str, Any]:
    """A two-sided t test of an estimate against 0."""
    from scipy.special import stdtr

    statistic = estimate / error if error > 0 else math.nan
    return {"estimate": estimate, "statistic": statistic, "df": str(df), "p": float(2 * stdtr(df, -abs(statistic)))}


def _mean_test(values: np.ndarray) -> dict[str, Any]:
    """A one-sample t test."""
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return _t(float(values.mean()) if n else math.nan, error, n - 1)


def _against_zero(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[dict[str, Any]]:
    for condition, evidence, group in _conditions(topics, axes):
        values = group["bias"].dropna().to_numpy()
        yield _tested("B against 0", condition, evidence, [values], _mean_test(values))


def _between_framings(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[dict[str, Any]]:
    if "framing" not in axes:
        return
    for condition, evidence, group in _conditions(topics, [axis for axis in axes if axis != "framing"]):
        pairs = group.pivot(index="topic", columns="framing", values="bias")
        if not {*_FRAMINGS} <= {*pairs.columns}:
            continue
        cells = [pairs[framing].dropna() for framing in _FRAMINGS]
        change = (pairs[_FRAMINGS[0]] - pairs[_FRAMINGS[1]]).dropna().to_numpy()
        yield _tested(
            "B, truth less falsehood", condition, evidence, [each.to_numpy() for each in cells], _mean_test(change)
        )


def _by_bias(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[dict[str, Any]]:
    from scipy.special import fdtrc

    if _BIAS not in axes:
        return
    for condition, evidence, group in _conditions(topics, [axis for axis in axes if axis not in ("framing", _BIAS)]):
        cells = {str(level): own["diversity"].dropna().to_numpy() for level, own in group.groupby(_BIAS, sort=False)}
        sizes = np.array([len(each) for each in cells.values()])
        if len(cells) < 2 or not sizes.all():
            continue
        means = np.array([each.mean() for each in cells.values()])
        df = len(cells) - 1, int(sizes.sum() - len(cells))
        within = sum(float(((each - each.mean()) ** 2).sum()) for each in cells.values()) / max(df[1], 1)
        between = float((sizes * (means - (sizes * means).sum() / sizes.sum()) ** 2).sum()) / df[0]
        ratio = between / within if within > 0 else math.nan
        whole = {"estimate": math.nan, "statistic": ratio, "df": f"{df[0]}, {df[1]}", "p": float(fdtrc(*df, ratio))}
        yield _tested("D by confirmation bias, F", condition, evidence, list(cells.values()), whole)
        for name, weights in _PLANNED.items():
            if set(weights) <= set(cells):
                own = np.array([weights.get(level, 0.0) for level in cells])
                error = math.sqrt(within * float((own**2 / sizes).sum()))
                found = _t(float(own @ means), error, df[1])
                yield _tested(f"D, {name}", condition, evidence, list(cells.values()), found)
