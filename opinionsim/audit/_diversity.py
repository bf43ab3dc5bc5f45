"""Diversity corrected for errors of the instrument: a sensitivity figure under two families of true opinions.

Noise in an instrument adds to the standard deviation of opinions within a run, so diversity as read is too large. How
much to take away depends on what true opinions look like. Here the opinions of a run are a multinomial sample from
shares on the scale, seen through the misclassification matrix of the labels; the shares are those of a class of runs,
and classes come from one of two families.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.streams import stream

#: What true opinions of a run may look like: any shares, or one or two camps with a mode each.
Family = Literal["free", "camps"]
FAMILIES: tuple[Family, ...] = ("free", "camps")

#: Most classes of the free family.
_CLASSES = 4
#: Labels that stand for what is known of a true point beforehand: the errors at all points.
_PRIOR = 2.0
#: Steps of the maximisation, from scratch and from a solution nearby.
_STEPS, _FEW_STEPS = 200, 40
#: Draws of the true opinions of each run.
_DRAWS = 40
#: Least share of simulated studies whose interval covers the truth for an interval to be given.
_COVERED = 0.9
_TINY = 1e-12


class Mixture(NamedTuple):
    """Classes of runs."""

    weights: np.ndarray
    """Share of each class, (g,)."""
    shares: np.ndarray
    """Shares of true opinions in each class, (g, k)."""


class CorrectedDiversity(NamedTuple):
    """Diversity of a condition, as read and as corrected under one family."""

    family: str
    """``free`` or ``camps``."""
    raw: float
    """Mean over runs of the standard deviation of opinions as read."""
    corrected: float
    """The same of true opinions, under the family."""
    low: float
    """Lower end of the interval; NaN where simulated intervals cover too rarely."""
    high: float
    """Upper end of the interval; likewise."""
    coverage: float
    """Share of simulated studies of this size whose interval covered the truth."""


def misclassification(labels: ArrayLike, readings: ArrayLike, points: ArrayLike) -> np.ndarray:
    """Probability of each reading given the true point, (k, k), from labelled texts alone.

    Parameters
    ----------
    labels, readings : array_like (n,)
        Label and reading of each text, as places on the scale from 0; a half goes to both neighbours.
    points : array_like (k,)
        The scale.

    Returns
    -------
    ndarray (k, k)
        Rows are true points. A row is drawn towards the errors of all rows by distance, with the weight of two labels,
        since some points may have few.
    """
    k = len(np.asarray(points))
    true, read = np.asarray(labels, dtype=float), np.asarray(readings, dtype=int)
    counts = np.zeros((k, k))
    for place in (np.floor(true).astype(int), np.ceil(true).astype(int)):
        np.add.at(counts, (place, read), 0.5)
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    seen = np.bincount(apart.ravel(), weights=counts.ravel(), minlength=k) + 0.5 / k
    # How many texts could have erred by a distance: an end of the scale has one side.
    rate = seen / (np.bincount(apart.ravel(), weights=np.repeat(counts.sum(axis=1), k), minlength=k) + 0.5)
    before = rate[apart]
    counts += _PRIOR * before / before.sum(axis=1, keepdims=True)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def fit(counts: np.ndarray, errors: np.ndarray, family: Family, start: Mixture | None = None) -> Mixture:
    """Classes of runs of most likelihood, by expectation and maximisation.

    Parameters
    ----------
    counts : ndarray (runs, k)
        Readings at each point.
    errors : ndarray (k, k)
        From :func:`misclassification`.
    family : str
        ``free``: one to four classes with any shares, their number by the criterion of Schwarz 1978. ``camps``: any
        mixture of shares that are rounded normal distributions, or two of them at least a point apart.
    start : Mixture, optional
        A solution nearby, which also gives the number of classes.

    Notes
    -----
    Dempster, Laird and Rubin 1977; mixtures of given shares: Laird 1978, doi 10.1080/01621459.1978.10480103.
    """
    if family == "camps":
        shapes = _camps(counts.shape[1]) if start is None else start.shares
        weights = np.full(len(shapes), 1 / len(shapes)) if start is None else start.weights
        found = _maximised(
            counts, errors, Mixture(weights, shapes), _STEPS if start is None else _FEW_STEPS, free=False
        )
        kept = found.weights > 1e-4 / len(shapes) if start is None else np.ones(len(shapes), dtype=bool)
        return Mixture(found.weights[kept] / found.weights[kept].sum(), found.shares[kept])
    if start is not None:
        return _maximised(counts, errors, start, _FEW_STEPS, free=True)
    best, least = None, math.inf
    for n in range(1, min(_CLASSES, len(counts)) + 1):
        order = np.array_split(np.argsort(counts @ np.arange(counts.shape[1]), kind="stable"), n)
        shares = np.stack([counts[part].sum(axis=0) + 0.5 for part in order])
        first = Mixture(np.full(n, 1 / n), shares / shares.sum(axis=1, keepdims=True))
        found = _maximised(counts, errors, first, _STEPS, free=True)
        likelihood = float(np.log(np.exp(_logs(counts, errors, found)).sum(axis=1) + 1e-300).sum())
        criterion = -2 * likelihood + (n * counts.shape[1] - 1) * math.log(len(counts))
        if criterion < least - 1e-9:
            best, least = found, criterion
    assert best is not None
    return best


def diversity_of(counts: np.ndarray, errors: np.ndarray, mixture: Mixture, seed: int = 0) -> float:
    """Mean over runs of the expected standard deviation (ddof 0) of true opinions, in steps of the scale.

    Given class and reading, the true point of each agent is drawn 40 times from its probability.
    """
    draws = stream(seed, "audit diversity")
    logs = _logs(counts, errors, mixture)
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    seen = mixture.shares @ errors
    true = np.swapaxes(mixture.shares[:, :, None] * errors, 1, 2) / np.maximum(seen[:, :, None], _TINY)
    places, n = np.arange(counts.shape[1]), counts.sum(axis=1)
    total = np.zeros((2, _DRAWS, len(counts)))
    classes = (draws.random((_DRAWS, len(counts), 1)) > np.cumsum(odds, axis=1)[None, :, :-1]).sum(axis=2)
    for reading in places:
        own = true[:, reading]
        found = draws.multinomial(
            counts[:, reading].astype(int), own[classes] / own[classes].sum(axis=2, keepdims=True)
        )
        total += np.stack([found @ places, found @ places**2])
    mean, square = total / np.maximum(n, 1)
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return float(spread[:, n > 0].mean())


def correct_diversity(
    readings: ArrayLike,
    runs: ArrayLike,
    labels: ArrayLike,
    points: ArrayLike,
    family: Family,
    *,
    simulations: int = 100,
    resamples: int = 40,
    seed: int = 0,
) -> CorrectedDiversity:
    """Correct the diversity of one condition under a family of true opinions.

    Parameters
    ----------
    readings, runs, labels : array_like (n,)
        Reading, run and label of every text that counts; NaN labels for texts without one.
    points : array_like (k,)
        The scale, points at equal distances.
    family : str
        As for :func:`fit`.
    simulations : int
        Studies of the same size, drawn from what was fitted, on which the interval is tried; 0 gives no interval.
    resamples : int
        Resamples of labels and runs for each interval.
    seed : int
        Seed of all draws.

    Returns
    -------
    CorrectedDiversity
        The interval is the corrected value plus and minus 1.96 standard deviations of its resamples, given if at least
        0.9 of the simulated studies cover the truth with theirs.

    Raises
    ------
    MeasurementError
        If the scale has other distances, or there is no label.
    """
    whole_number("simulations", simulations, 0, MeasurementError)
    scale = np.asarray(points, dtype=float)
    steps = np.diff(scale)
    if not np.allclose(steps, steps[0]):
        raise MeasurementError(
            f"diversity is corrected on a scale with equal distances; got {', '.join(map(str, scale))}"
        )
    step = float(steps[0])
    read = np.rint((np.asarray(readings, dtype=float) - scale[0]) / step).astype(int)
    told = (np.asarray(labels, dtype=float) - scale[0]) / step
    known = ~np.isnan(told)
    if not known.any():
        raise MeasurementError("no text has a label, so nothing is known of the errors of the instrument")
    _, run = np.unique(np.asarray(runs), return_inverse=True)
    study = _Study(read, run, told[known], read[known], len(scale))
    value, half, mixture, errors = _estimate(study, family, resamples, seed)
    n = study.counts.sum(axis=1)
    places = np.arange(len(scale))
    raw = np.sqrt(np.maximum(study.counts @ places**2 / n - (study.counts @ places / n) ** 2, 0)).mean()
    covered = [_covers(study, mixture, errors, family, resamples, seed, number) for number in range(simulations)]
    coverage = float(np.mean(covered)) if covered else math.nan
    half = half if coverage >= _COVERED else math.nan
    ends = (max(value - half, 0.0), value + half) if half == half else (math.nan, math.nan)
    return CorrectedDiversity(family, float(raw) * step, value * step, ends[0] * step, ends[1] * step, coverage)


class _Study:
    """Readings by run, and labelled texts, as places on the scale."""

    def __init__(self, read: np.ndarray, run: np.ndarray, labels: np.ndarray, labelled: np.ndarray, k: int) -> None:
        self.counts = np.bincount(run * k + read, minlength=(int(run.max()) + 1) * k).reshape(-1, k)
        self.labels, self.labelled, self.k = labels, labelled, k

    def errors(self, places: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The misclassification matrix of labelled texts."""
        return misclassification(self.labels[places], self.labelled[places], np.arange(self.k))


def _estimate(study: _Study, family: Family, resamples: int, seed: int) -> tuple[float, float, Mixture, np.ndarray]:
    """Corrected diversity, half-width, classes and errors."""
    errors = study.errors()
    mixture = fit(study.counts, errors, family)
    value = diversity_of(study.counts, errors, mixture, seed)
    draws = stream(seed, "audit diversity resamples")
    again = []
    for number in range(resamples):
        counts = study.counts[draws.integers(len(study.counts), size=len(study.counts))]
        drawn = study.errors(draws.integers(len(study.labels), size=len(study.labels)))
        again.append(diversity_of(counts, drawn, fit(counts, drawn, family, mixture), seed + number))
    return value, 1.96 * float(np.std(again, ddof=1)) if resamples > 1 else math.nan, mixture, errors


def _covers(
    study: _Study, mixture: Mixture, errors: np.ndarray, family: Family, resamples: int, seed: int, number: int
) -> bool:
    """Whether the interval of a simulated study covers what its runs have on average."""
    draws = stream(seed, "audit diversity simulation", number)
    truths, reads, runs = [], [], []
    for run, n in enumerate(study.counts.sum(axis=1)):
        shares = mixture.shares[draws.choice(len(mixture.weights), p=mixture.weights)]
        true = draws.choice(study.k, size=n, p=shares / shares.sum())
        truths.append(true)
        reads.append((draws.random((n, 1)) > np.cumsum(errors[true], axis=1)[:, :-1]).sum(axis=1))
        runs.append(np.full(n, run))
    truth, read = np.concatenate(truths), np.concatenate(reads)
    chosen = draws.permutation(len(truth))[: len(study.labels)]
    again = _Study(read, np.concatenate(runs), truth[chosen].astype(float), read[chosen], study.k)
    value, half, _, _ = _estimate(again, family, resamples, seed + number)
    return abs(value - _expected(mixture, study.counts.sum(axis=1), seed)) <= half


def _expected(mixture: Mixture, sizes: np.ndarray, seed: int) -> float:
    """Expected standard deviation of true opinions in a run of these sizes."""
    draws, places = stream(seed, "audit diversity expected"), np.arange(mixture.shares.shape[1])
    classes = draws.choice(len(mixture.weights), p=mixture.weights, size=(400, len(sizes)))
    shares = mixture.shares / mixture.shares.sum(axis=1, keepdims=True)
    found = draws.multinomial(np.broadcast_to(sizes, classes.shape), shares[classes])
    n = np.maximum(sizes, 1)
    return float(np.sqrt(np.maximum(found @ places**2 / n - (found @ places / n) ** 2, 0)).mean())


def _logs(counts: np.ndarray, errors: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Logarithm of weight and likelihood of each run in each class, (runs, g)."""
    return np.asarray(np.log(mixture.weights + 1e-300) + counts @ np.log(np.maximum(mixture.shares @ errors, _TINY)).T)


def _maximised(counts: np.ndarray, errors: np.ndarray, mixture: Mixture, steps: int, *, free: bool) -> Mixture:
    """Weights, and shares where they are free, after some steps of expectation and maximisation."""
    weights, shares = mixture
    likelihoods = counts @ np.log(np.maximum(shares @ errors, _TINY)).T
    for _ in range(steps):
        logs = likelihoods + np.log(weights + 1e-300)
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        before, weights = weights, odds.mean(axis=0)
        if free:
            shares = shares * ((odds.T @ counts) / np.maximum(shares @ errors, _TINY) @ errors.T)
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
            likelihoods = counts @ np.log(np.maximum(shares @ errors, _TINY)).T
        elif np.abs(weights - before).max() < 1e-6:
            break
    return Mixture(weights, shares)


def _camps(k: int) -> np.ndarray:
    """Shares with one mode, and with two at least a point apart, (shapes, k)."""
    from scipy.stats import norm

    def rounded(middle: Any, spread: Any) -> np.ndarray:
        inner = norm.cdf((np.arange(k - 1) + 0.5 - middle) / spread)
        return np.diff(np.concatenate([[0.0], inner, [1.0]]))

    one: list[np.ndarray] = []
    two: list[np.ndarray] = []
    for spread in (0.2, 0.5, 0.8, 1.2):
        middles = np.linspace(-0.5, k - 0.5, 2 * k + 1)
        single = [rounded(middle, spread) for middle in middles]
        one += single
        if spread < 1:
            pairs = [(i, j) for i in range(len(middles)) for j in range(i + 4, len(middles))]
            two += [part * single[i] + (1 - part) * single[j] for i, j in pairs for part in (0.2, 0.35, 0.5, 0.65, 0.8)]
    return np.stack(one + two)
