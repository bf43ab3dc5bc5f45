"""Free runs of fitted candidates on the same turns and from the same starts, compared with measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, islice, pairwise
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.comparison._candidates import Candidate
from opinionsim.comparison._fit import Problem
from opinionsim.comparison._update_arrays import Updates
from opinionsim.foundation.streams import stream
from opinionsim.metrics import bias, diversity, fragmentation, neighbour_correlation

#: Repetitions: one more run of the same lies between the least and the largest of so many in 95 % of cases.
_REPEATED = 39


def free_runs(problem: Problem, candidate: Candidate, values: Sequence[Mapping[str, float]], seed: int) -> pd.DataFrame:
    """Simulate a candidate step by step and compare it with the record.

    Parameters
    ----------
    problem : Problem
        The study.
    candidate : Candidate
        The candidate to simulate.
    values : sequence of mapping
        Its parameters in successive repetitions, drawn from their uncertainty; the sequence repeats from the first.
    seed : int
        Seed of the draws.

    Returns
    -------
    DataFrame
        One row per measure and step from 1: ``candidate``, ``measure``, ``step``, ``observed``, ``low``, ``mean``,
        ``high`` (range of 39 repetitions, which a further repetition leaves in 5 % of cases) and ``outside`` (whether
        the record lies outside). Measures are ``bias``, ``diversity``, ``fragmentation`` and ``neighbour correlation``
        (between an agent and those whose messages it reads, weighted by their number; NaN while opinions do not vary),
        as means over runs. In addition, there are two distances from the record, or one repetition, to all repetitions
        together: ``Wasserstein`` compares the opinions of all agents, in scale points, and ``transitions`` is half the
        sum of absolute differences between the shares of updates so far by opinion before and after.
    """
    drawn = [
        problem.redrawn(candidate, each, stream(seed, "free run", number, candidate.name), begun=True)
        for number, each in enumerate(islice(cycle(values), _REPEATED))
    ]
    every = [(study, study.paths()[:, 1:]) for study in (problem.study, *drawn)]
    span = (problem.grid.low, problem.grid.high)
    measures: dict[str, Callable[[np.ndarray], Any]] = {
        "bias": bias,
        "diversity": diversity,
        "fragmentation": partial(fragmentation, range=span),
        "neighbour correlation": partial(_correlations, problem.study),
    }
    # Means of pandas, for they are silent where a measure is undefined in every run.
    by_step = {
        name: [pd.DataFrame(measure(paths)).mean().to_numpy() for _, paths in every]
        for name, measure in measures.items()
    }
    shares = _from_all([_shares(study, paths) for study, paths in every])
    below = np.cumsum(shares, axis=2)[:, :, :-1]
    by_step["Wasserstein"] = list((np.abs(below) * np.diff(problem.study.points)).sum(axis=2))
    by_step["transitions"] = list(np.abs(_from_all([_transitions(study) for study, _ in every])).sum(axis=2) / 2)
    bands = [_band(candidate.name, name, found) for name, found in by_step.items()]
    return pd.concat(bands, ignore_index=True)


def _correlations(study: Updates, paths: np.ndarray) -> np.ndarray:
    """Correlation of opinions with those of the authors that an agent reads in a run, (R, T)."""
    found = np.full(paths.shape[:2], np.nan)
    reader = np.repeat(np.arange(len(study.agent)), np.diff(study.first_read))
    ends = np.searchsorted(reader, study.first)
    for run, (start, end) in enumerate(pairwise(ends)):
        ties = study.agent[study.reads[start:end]], study.agent[reader[start:end]]
        found[run] = neighbour_correlation(paths[run], ties)
    return found


def _band(candidate: str, measure: str, by_step: Sequence[np.ndarray]) -> pd.DataFrame:
    """Rows of one measure from its values (T,) in the record, and in each repetition."""
    observed, repeated = by_step[0], np.stack(by_step[1:])
    low, high = repeated.min(axis=0), repeated.max(axis=0)
    return pd.DataFrame(
        {
            "candidate": candidate,
            "measure": measure,
            "step": np.arange(1, len(observed) + 1),
            "observed": observed,
            "low": low,
            "mean": repeated.mean(axis=0),
            "high": high,
            "outside": (observed < low) | (observed > high),
        }
    )


def _shares(study: Updates, paths: np.ndarray) -> np.ndarray:
    """Shares of agents of all runs at each point, (T, k)."""
    places = study.places(paths)
    return np.stack([(places == place).sum(axis=(0, 2)) for place in range(len(study.points))], axis=1)


def _transitions(study: Updates) -> np.ndarray:
    """Updates so far by opinion before and after, (T, k * k)."""
    k, known = len(study.points), study.updated & (study.held_at >= 0)
    counts = np.zeros((int(study.step.max()) + 1, k * k))
    pairs = study.rating[study.held_at] * k + study.rating
    np.add.at(counts, (study.step[known], pairs[known]), 1.0)
    return np.asarray(counts.cumsum(axis=0)[1:])


def _from_all(counts: Sequence[np.ndarray]) -> np.ndarray:
    """Shares of the record and of each repetition less those of all repetitions together, (1 + n, T, c)."""
    every = np.stack(counts).astype(float)
    shares = every / np.maximum(every.sum(axis=2, keepdims=True), 1.0)
    return np.asarray(shares - shares[1:].mean(axis=0))
