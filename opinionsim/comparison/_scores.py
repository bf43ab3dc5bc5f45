"""Scores of candidates on held-out runs, and of a table of shares as the reachable score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from opinionsim.comparison._fit import Fit, Problem, refit
from opinionsim.comparison._update_arrays import Updates

#: Parts into which blocks are divided.
FOLDS = 5
#: Steps within which the messages of a run are exchanged.
_WINDOW = 10
#: Ratings that are added to the shares of a rare case, divided as those of the case it belongs to.
_ADDED = 2.0
#: Least standard error of a difference in log likelihood over all updates, nats: twice it is a likelihood ratio of 20.
RESOLVED = 1.5

_Result = TypeVar("_Result")


def side_by_side(work: Sequence[Callable[[], _Result]], threads: int) -> list[_Result]:
    """Run independent tasks on several threads and return their results in order."""
    pool = ThreadPoolExecutor(max(threads, 1))
    try:
        return [each.result() for each in [pool.submit(piece) for piece in work]]
    finally:  # where it is stopped, what has not begun never does
        pool.shutdown(cancel_futures=True)


def folds(study: Updates, count: int = FOLDS) -> list[np.ndarray]:
    """Positions of the runs of each fold; blocks are assigned in order and stay together."""
    blocks = list(dict.fromkeys(study.blocks))
    place = np.array([blocks.index(block) for block in study.blocks])
    return [np.flatnonzero(place % count == fold) for fold in range(min(count, len(blocks)))]


def _rest(study: Updates, held_out: np.ndarray) -> Updates:
    return study.of(np.setdiff1d(np.arange(len(study)), held_out).tolist())


def by_run(study: Updates, log_probabilities: np.ndarray) -> np.ndarray:
    """Mean over the updates of each run, (R,), that is, over measured turns that read something."""
    counted = np.stack([np.where(study.updated, log_probabilities, 0.0), study.updated.astype(float)])
    total, count = np.add.reduceat(counted, study.first[:-1], axis=1)
    return np.asarray(total / np.maximum(count, 1.0))


def held_out(problem: Problem, fits: Sequence[Fit], threads: int = 1) -> np.ndarray:
    """Mean log score of the updates of each run by fits to other runs, (R, C) for C fits.

    Each fold starts at the full fit.
    """
    parts = folds(problem.study)

    found = np.full((len(problem.study), len(fits)), np.nan)

    def score(column: int, part: np.ndarray) -> None:
        one = fits[column]
        training = problem.over(_rest(problem.study, part))
        again = refit(training, one.candidate, one.values)
        tested = training.over(problem.study.of(part.tolist()), prior=training.prior)
        found[part, column] = by_run(tested.study, tested.by_turn(one.candidate, again.values))

    side_by_side([partial(score, column, part) for column in range(len(fits)) for part in parts], threads)
    return found


def reachable(study: Updates) -> np.ndarray:
    """Mean log score of each run by shares of ratings given the previous rating and the message, (R,).

    Shares come from other folds. Cases with few ratings are shrunk towards the shares given only the previous rating,
    and these towards the shares of all ratings.
    """
    k = len(study.points)
    # A place of their own for opinions that were not measured.
    before, message = (np.where(places < 0, k, places) for places in map(study.places, (study.held, study.said)))
    score = np.zeros(len(study.agent))
    for part in folds(study):
        inside = np.isin(study.run, part)
        seen = study.updated & ~inside
        counts = np.zeros((k + 1, k + 1, k))
        np.add.at(counts, (before[seen], message[seen], study.rating[seen]), 1.0)
        overall = (counts.sum(axis=(0, 1)) + 1.0) / (counts.sum() + k)
        own = counts.sum(axis=1) + _ADDED * overall
        own /= own.sum(axis=1, keepdims=True)
        shares = counts + _ADDED * own[:, None]
        shares /= shares.sum(axis=2, keepdims=True)
        tested = study.updated & inside
        score[tested] = np.log(shares[before[tested], message[tested], study.rating[tested]])
    return by_run(study, score)


def shuffled(study: Updates, rng: np.random.Generator) -> Updates:
    """Replace the message of every update by another recent message of its run from neither of the two agents.

    An update keeps its message if there is no other.
    """
    reads = study.reads.copy()
    messages = np.unique(study.reads)
    for at in np.flatnonzero(np.diff(study.first_read) > 0):
        near = messages[(messages >= study.first[study.run[at]]) & (messages < at)]
        near = near[study.step[near] >= study.step[at] - _WINDOW]
        for read in range(study.first_read[at], study.first_read[at + 1]):
            authors = study.agent[near]
            others = near[(authors != study.agent[at]) & (authors != study.agent[study.reads[read]])]
            if len(others):
                reads[read] = others[rng.integers(len(others))]
    return replace(study, reads=reads)


def standard_error(study: Updates, values: np.ndarray) -> float:
    """Standard error of the mean of values of runs, (R,), where runs in one block are not independent."""
    blocks = np.unique(study.blocks, return_inverse=True)[1]
    sums = np.bincount(blocks, values - values.mean())
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values))


def paired(study: Updates, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Mean difference of the scores of the runs of a study, and its standard error over blocks.

    Two searches can differ by about one nat in total. If one model contains the other, this difference is the same in
    every run, so the error is never smaller than :data:`RESOLVED` nats over all updates.
    """
    difference = first - second
    least = RESOLVED / max(int(study.updated.sum()), 1)
    return float(difference.mean()), max(standard_error(study, difference), least)
