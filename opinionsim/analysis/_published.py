"""Tests that Chuang et al. 2023 ran on their tables (A16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis._contrasts import NO_FINDING
from opinionsim.analysis._means import LEAST_UNITS
from opinionsim.analysis._printed_table import Table, cell_text, finished, level_text, p_text
from opinionsim.analysis._units import unit_frame
from opinionsim.metrics import WITHOUT_FINDING, condition_axes, in_order, one_wording, usable_runs
from opinionsim.registry import part

_FRAMINGS, _BIAS = ("truth", "falsehood"), "confirmation_bias"
#: Columns of the tests, and what one of them finds: estimate, statistic, degrees of freedom, p-value.
_COLUMNS = ["test", "condition", "evidence", "cells", "estimate", "statistic", "df", "p"]
_Found = tuple[float, float, str, float]
#: Planned contrasts of the strengths of confirmation bias: weights by level.
_PLANNED: Mapping[str, Mapping[str, float]] = {
    "none less weak and strong": {"none": 1.0, "weak": -0.5, "strong": -0.5},
    "weak less strong": {"weak": 1.0, "strong": -1.0},
}


@part("table", name="tests", fits=lambda asked: asked.stance and asked.as_published)
def published_tests(
    runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None = None, wording: str | None = None
) -> list[Table]:
    """Tabulate the tests of the published tables, with the number of values in each cell.

    Parameters
    ----------
    runs, metrics, kind, wording
        As for :func:`opinionsim.analysis.table`.

    Returns
    -------
    list of Table
        One table with one-sample t tests of B against 0 in every condition, paired t tests of B between framings, and
        one-way analyses of variance of D by confirmation bias with planned contrasts (none less weak and strong, and
        weak less strong), if the design has these conditions. The unit is the topic, and for D the topic and framing.
        Empty if no test applies.

    Notes
    -----
    A16. With one factor, all types of sums of squares are equal. Contrasts use the mean square within conditions. Tests
    are omitted if their cells have different numbers of values or fewer than three. The tests treat only topics as a
    sample; for tests of any design, use :func:`opinionsim.analysis.contrast_tables`.
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
    frame = pd.DataFrame(records, columns=_COLUMNS)
    scripted = frame["evidence"].isin(WITHOUT_FINDING)
    frame[["statistic", "p"]] = frame[["statistic", "p"]].where(~scripted)
    header = (("test", "condition", "cells", "estimate", "statistic", "df", "p"),)
    rows = [_row(record) for record in frame.to_dict("records")]
    notes = [
        "Tests as published: topics are the units, replicates are averaged first, and nothing is adjusted.",
        "Cells: number of values in each cell. A test is omitted if its cells differ in this number or have fewer than "
        f"{LEAST_UNITS}.",
        *([NO_FINDING] if scripted.any() else []),
    ]
    return [finished("Tests as published", frame, header, rows, 2, notes, "tests")]


def _row(record: Mapping[Any, Any]) -> tuple[str, ...]:
    """A test as printed."""
    told = [cell_text(record[name], none="-") for name in ("estimate", "statistic")]
    return (record["test"], record["condition"], record["cells"], *told, record["df"] or "-", p_text(record["p"]))


def _conditions(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, evidence and rows of each condition by some axes."""
    for key, group in topics.groupby([*axes, "evidence"], dropna=False, sort=False):
        yield ", ".join(map(level_text, key[:-1])) or "all", str(key[-1]), group


def _tested(what: tuple[str, str, str], cells: Sequence[Any], found: _Found) -> tuple[Any, ...]:
    """The record of a test, without its results where its cells differ in their numbers or are too small."""
    counts = [len(cell) for cell in cells]
    alike = len(set(counts)) == 1
    told = f"{counts[0]} each" if alike and len(counts) > 1 else ", ".join(map(str, counts))
    fit = alike and counts[0] >= LEAST_UNITS and math.isfinite(found[1])
    return (*what, told, *(found if fit else (found[0], math.nan, "", math.nan)))


def _t(estimate: float, error: float, df: int) -> _Found:
    """A two-sided t test of an estimate against 0."""
    from scipy.special import stdtr

    statistic = estimate / error if error > 0 else math.nan
    return estimate, statistic, str(df), float(2 * stdtr(df, -abs(statistic)))


def _mean_test(values: pd.Series[float]) -> _Found:
    """A one-sample t test."""
    return _t(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(max(len(values), 1)), len(values) - 1)


def _against_zero(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for condition, evidence, group in _conditions(topics, axes):
        values = group["bias"].dropna()
        yield _tested(("B against 0", condition, evidence), [values], _mean_test(values))


def _between_framings(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for condition, evidence, group in _conditions(topics, [axis for axis in axes if axis != "framing"]):
        pairs = group.pivot(index="topic", columns="framing", values="bias") if "framing" in axes else pd.DataFrame()
        if {*_FRAMINGS} <= {*pairs.columns}:
            cells = [pairs[framing].dropna() for framing in _FRAMINGS]
            yield _tested(
                ("B, truth less falsehood", condition, evidence), cells, _mean_test((cells[0] - cells[1]).dropna())
            )


def _by_bias(topics: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    from scipy.special import fdtrc

    others = [axis for axis in axes if axis not in ("framing", _BIAS)]
    for condition, evidence, group in _conditions(topics, others) if _BIAS in axes else ():
        by_level = group.dropna(subset="diversity").groupby(_BIAS, sort=False)["diversity"]
        cells = {str(level): own.to_numpy() for level, own in by_level}
        if len(cells) < 2:
            continue
        sizes, means = by_level.count().to_numpy(), by_level.mean().to_numpy()
        df = len(cells) - 1, int(sizes.sum()) - len(cells)
        within = float(sum(((own - own.mean()) ** 2).sum() for own in cells.values())) / max(df[1], 1)
        between = float((sizes * (means - (sizes * means).sum() / sizes.sum()) ** 2).sum()) / df[0]
        ratio = between / within if within > 0 else math.nan
        whole = math.nan, ratio, f"{df[0]}, {df[1]}", float(fdtrc(*df, ratio))
        yield _tested(("D by confirmation bias, F", condition, evidence), list(cells.values()), whole)
        for name, weights in _PLANNED.items():
            if set(weights) <= set(cells):
                own = np.array([weights.get(level, 0.0) for level in cells])
                found = _t(float(own @ means), math.sqrt(within * float((own**2 / sizes).sum())), df[1])
                yield _tested((f"D, {name}", condition, evidence), list(cells.values()), found)
