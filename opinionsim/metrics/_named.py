"""Metrics that a specification names, of the final opinions of every run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError
from opinionsim.metrics._frames import final_opinions
from opinionsim.opinions import OpinionScale
from opinionsim.registry import NamedPart, blamed


def named_metrics(
    runs: pd.DataFrame, opinions: pd.DataFrame, named: Sequence[Any], scale: OpinionScale
) -> pd.DataFrame:
    """Metrics of the final opinions of every run: each participant's last measured value.

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store.
    named : sequence of str, mapping or NamedPart
        Metrics, as a specification names them: a name, an import path, or a mapping with name and options.
    scale : OpinionScale
        Its ends are the range passed to the metrics.

    Returns
    -------
    DataFrame
        One row a run, cell, instrument of stance and kind of text: ``run_id, cell, instrument_id, kind``, and a column
        a metric, called by its name; NaN where no agent was measured.

    Raises
    ------
    SpecError
        If a metric does not exist, does not take its options, or fails.
    MeasurementError
        If a metric needs a network, groups or initial opinions, or does not return a number.
    """
    heads, finals = final_opinions(runs, opinions)
    return heads.assign(**{each.name: [_value(each, values, scale) for values in finals] for each in map(_read, named)})


def _read(given: Any) -> NamedPart:
    return given if isinstance(given, NamedPart) else NamedPart.model_validate(given)


def _value(named: NamedPart, opinions: np.ndarray, scale: OpinionScale) -> float:
    """A metric of the opinions of one run."""
    part = named.found("metric")
    taken = part.arguments()
    compute = partial(part.target, **named.options)
    if "range" in taken:
        compute = partial(compute, range=(scale.lowest, scale.highest))
    lacking = [name for name in ("network", "groups", "initial") if name in taken and taken[name].default is not None]
    if lacking:
        raise MeasurementError(f"metric {named.name} needs {lacking[0]}, which a table of final opinions does not have")
    if not len(opinions):
        return np.nan
    with blamed(part):
        found = np.asarray(compute(opinions), dtype=float)
    if found.ndim:
        raise MeasurementError(f"metric {named.name} must give one number; it gave an array of shape {found.shape}")
    return float(found)
