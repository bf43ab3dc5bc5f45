"""Fitted candidates let loose: on the same turns and from the same starts, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.comparison._candidates import Candidate
from opinionsim.comparison._fit import Problem
from opinionsim.comparison._study import Study
from opinionsim.metrics import bias, diversity, fragmentation
from opinionsim.streams import stream

if TYPE_CHECKING:
    import pandas as pd

#: Shares of free runs below the two ends of a band.
_BAND = (0.025, 0.975)


def free_runs(problem: Problem, candidate: Candidate, values: Sequence[Mapping[str, float]], seed: int) -> pd.DataFrame:
    """What a candidate does by itself, step by step, beside the record.

    Parameters
    ----------
    problem : Problem
        The study.
    candidate : Candidate
        What is let loose.
    values : sequence of mapping
        Its parameters in each repetition, drawn from their uncertainty.
    seed : int
        Of what is drawn.

    Returns
    -------
    DataFrame
        One row a measure and step from 1: ``measure``, ``step``, ``observed``, ``low``, ``mean``, ``high`` (the band of
        95 % of the repetitions) and ``outside`` (whether the record lies outside). Measures are ``bias``, ``diversity``
        and ``fragmentation``, means over runs, and ``Wasserstein``: the distance of the opinions of all agents, of the
        record or of one repetition, to those of all repetitions together, in scale points.
    """
    import pandas as pd

    repetitions = [
        problem.redrawn(candidate, each, stream(seed, "free run", number, candidate.name), begun=True).paths()
        for number, each in enumerate(values)
    ]
    record, span = problem.study.paths(), (problem.grid.low, problem.grid.high)
    measures: dict[str, Callable[[np.ndarray], Any]] = {
        "bias": bias,
        "diversity": diversity,
        "fragmentation": partial(fragmentation, range=span),
    }
    frames = []
    for name, measure in measures.items():
        over_runs = [np.nanmean(measure(paths[:, 1:]), axis=0) for paths in (record, *repetitions)]
        frames.append(_band(name, over_runs))
    shares = [_shares(paths[:, 1:], problem.study) for paths in (record, *repetitions)]
    together = np.mean(shares[1:], axis=0)
    frames.append(_band("Wasserstein", [_distance(each, together, problem.study) for each in shares]))
    return pd.concat(frames, ignore_index=True)


def _band(measure: str, by_step: Sequence[np.ndarray]) -> pd.DataFrame:
    """Rows of one measure from its values (T,) in the record, and in each repetition."""
    import pandas as pd

    observed, repeated = by_step[0], np.stack(by_step[1:])
    low, high = np.quantile(repeated, _BAND, axis=0)
    return pd.DataFrame(
        {
            "measure": measure,
            "step": np.arange(1, len(observed) + 1),
            "observed": observed,
            "low": low,
            "mean": repeated.mean(axis=0),
            "high": high,
            "outside": (observed < low) | (observed > high),
        }
    )


def _shares(paths: np.ndarray, study: Study) -> np.ndarray:
    """Shares of agents of all runs at each point, (T, k)."""
    counts = (paths[..., None] == study.points).sum(axis=(0, 2)).astype(float)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _distance(first: np.ndarray, second: np.ndarray, study: Study) -> np.ndarray:
    """Wasserstein-1 distance of distributions over the points, (T,), in scale points."""
    gaps = np.diff(study.points)
    return np.asarray((np.abs(np.cumsum(first - second, axis=1))[:, :-1] * gaps).sum(axis=1))
