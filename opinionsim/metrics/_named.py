"""Metrics of final opinions that a specification names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics._evidence import BELIEF
from opinionsim.metrics._opinion_rows import STANCE, by_participants
from opinionsim.metrics._run_metrics import final_opinions
from opinionsim.opinions import OpinionScale
from opinionsim.registry import NamedPart, blamed


def named_metrics(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    named: Sequence[Any],
    scale: OpinionScale,
    turns: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Compute metrics of the final opinions of every run, that is, of each participant's last measured value.

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store. A metric with an argument `truth` takes the column ``truth`` of the runs.
    named : sequence of str, mapping or NamedPart
        Metrics, as a specification names them: a name, an import path, or a mapping with name and options.
    scale : OpinionScale
        Its ends are the range passed to the metrics.
    turns : DataFrame, optional
        As for :func:`opinionsim.metrics.run_metrics`.

    Returns
    -------
    DataFrame
        One row per run, cell, instrument of stance and kind of text: ``run_id, cell, instrument_id, kind``, and a
        column per metric with its name. Values are NaN if no agent, or too few agents, were measured.

    Raises
    ------
    SpecError
        If a metric does not exist, does not take its options, or fails.
    MeasurementError
        If a metric needs a network, groups, initial opinions, or a truth that the topic lacks, or does not return a
        number.
    """
    parts = [each if isinstance(each, NamedPart) else NamedPart.model_validate(each) for each in named]
    heads, finals = final_opinions(runs, opinions, turns)
    known = dict(zip(runs["run_id"], runs["truth"], strict=True)) if "truth" in runs.columns else {}
    truths = [known.get(run, np.nan) for run in heads["run_id"]]
    return heads.assign(
        **{
            label: [_value(each, values, scale, truth) for values, truth in zip(finals, truths, strict=True)]
            for label, each in zip(_labels(parts), parts, strict=True)
        }
    )


def variable_means(runs: pd.DataFrame, opinions: pd.DataFrame) -> pd.DataFrame:
    """Mean of every variable except stance in each run; for a variable with no (0) and yes (1), the share of yes.

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store.

    Returns
    -------
    DataFrame
        One row per run and cell that has any: ``run_id, cell``, and a column ``<variable> of <kind> by <classifier>``
        for each instrument and kind of text (without the classifier if it has the variable's name). The value is the
        mean over all participants' texts that the instrument coded singly, NaN without any. Columns of expectations
        over token probabilities say so in their names; if most of the probability is off the scale, a further column
        reports how much.
    """
    kept = (opinions["variable"] != STANCE) & by_participants(opinions, runs)
    rows = opinions[kept & opinions["about"].isna()] if "about" in opinions.columns else opinions[kept]
    by = (" by " + rows["classifier"]).where(rows["classifier"] != rows["variable"], "")
    expected = rows["classifier"] == BELIEF
    said = expected.map({True: ", expectation", False: ""})
    names = rows["variable"] + " of " + rows["kind"].astype(str) + by + said
    made = rows.assign(name=names).pivot_table(index=["run_id", "cell"], columns="name", values="value")
    off = rows[expected].assign(name=names + ", off scale")
    off = off.pivot_table(index=["run_id", "cell"], columns="name", values="off_scale")
    made = made.join(off.loc[:, off.mean() > 0.5])
    return made.rename_axis(columns=None).reset_index()


def check_metrics(named: Sequence[NamedPart], scale: OpinionScale, truth: float | None = None) -> None:
    """Refuse metrics that fail on a few final opinions; `truth` is the truth of the topic.

    Raises
    ------
    SpecError, MeasurementError
        As :func:`named_metrics`, or if a metric is named twice.
    """
    _labels(named)
    for each in named:
        _value(each, np.array([scale.lowest, scale.lowest, scale.highest], dtype=float), scale, truth)


def _labels(named: Sequence[NamedPart]) -> list[str]:
    """Headings of metrics: their names, with the options where a name is there several times."""
    names = [each.name for each in named]
    options = [", ".join(f"{name}={value}" for name, value in each.options.items()) for each in named]
    found = [
        f"{name}({told})" if told and names.count(name) > 1 else name for name, told in zip(names, options, strict=True)
    ]
    for label in found:
        if found.count(label) > 1:
            raise SpecError(f"the metric {label} is named twice")
    return found


def _value(named: NamedPart, opinions: np.ndarray, scale: OpinionScale, truth: float | None) -> float:
    """A metric of the opinions of one run."""
    try:
        # What fails is told by the name that the specification gives it.
        part = replace(named.found("metric"), name=named.name)
    except SpecError as error:
        # One that is not there any more is left out of tables as one that fails is.
        raise error.at("", part=named.name) from error.__cause__
    taken = part.arguments()
    compute = partial(part.target, **named.options)
    if "range" in taken:
        compute = partial(compute, range=(scale.lowest, scale.highest))
    lacking = [name for name in ("network", "groups", "initial") if name in taken and taken[name].default is not None]
    if lacking:
        raise MeasurementError(f"metric {named.name} needs {lacking[0]}, which a table of final opinions does not have")
    if "truth" in taken and truth is not None and not np.isnan(truth):
        compute = partial(compute, truth=truth)
    elif "truth" in taken and taken["truth"].default is not None:
        raise MeasurementError(f"metric {named.name} needs a truth, but the topic accepts no side as true")
    if not len(opinions):
        return np.nan
    # Every metric gets a copy: one of the user's own may change it.
    with blamed(part):
        found = np.asarray(compute(opinions.copy()), dtype=float)
    part.expect(not found.ndim, "must give one number", found)
    return float(found)
