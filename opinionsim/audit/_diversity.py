"""Diversity corrected for errors of the instrument: a sensitivity figure under two families of true opinions.

Noise in an instrument adds to the standard deviation of opinions within a run, so diversity as read is too large. How
much to take away depends on what true opinions look like. Here the opinions of a run are a multinomial sample from
shares on the scale, seen through the misclassification matrix of the labels; the shares are those of a class of runs,
and classes come from one of two families.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

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
#: Draws of the true opinions of each run, resamples for an interval, and simulated sets of runs for their truth.
_DRAWS, _RESAMPLES, _RUNS = 40, 40, 400
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
        A solution nearby, which also gives the classes to begin with.

    Notes
    -----
    Dempster, Laird and Rubin 1977; mixtures of given shares: Laird 1978, doi 10.1080/01621459.1978.10480103.
    """
    free, k = family == "free", counts.shape[1]
    if start is not None:
        return _maximised(counts, errors, start, _FEW_STEPS, free=free)
    if not free:
        shapes = _camps(k)
        found = _maximised(counts, errors, Mixture(np.full(len(shapes), 1 / len(shapes)), shapes), _STEPS, free=False)
        kept = found.weights > 1e-4 / len(shapes)
        return Mixture(found.weights[kept] / found.weights[kept].sum(), found.shares[kept])
    fits = []
    for n in range(1, min(_CLASSES, len(counts)) + 1):
        order = np.array_split(np.argsort(counts @ np.arange(k), kind="stable"), n)
        shares = np.stack([counts[part].sum(axis=0) + 0.5 for part in order])
        first = Mixture(np.full(n, 1 / n), shares / shares.sum(axis=1, keepdims=True))
        found = _maximised(counts, errors, first, _STEPS, free=True)
        likelihood = float(np.logaddexp.reduce(_logs(counts, errors, found), axis=1).sum())
        fits.append(((n * k - 1) * math.log(len(counts)) - 2 * likelihood, n, found))
    return min(fits, key=lambda each: each[:2])[2]


def correct_diversity(
    readings: ArrayLike,
    runs: ArrayLike,
    labels: ArrayLike,
    points: ArrayLike,
    family: Family,
    *,
    simulations: int = 50,
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
    seed : int
        Seed of all draws.

    Returns
    -------
    CorrectedDiversity
        The interval is the corrected value plus and minus 1.96 standard deviations of 40 resamples of labels and runs,
        given if at least 0.9 of the simulated studies cover the truth with theirs.

    Raises
    ------
    MeasurementError
        If the scale has other distances, or there is no label.
    """
    whole_number("simulations", simulations, 0, MeasurementError)
    scale, told = np.asarray(points, dtype=float), np.asarray(labels, dtype=float)
    step, known = float(scale[1] - scale[0]), ~np.isnan(told)
    if not np.allclose(np.diff(scale), step) or not known.any():
        raise MeasurementError("diversity is corrected by one label at least, on a scale of equal distances")
    read = np.rint((np.asarray(readings, dtype=float) - scale[0]) / step).astype(int)
    run, k = np.unique(np.asarray(runs), return_inverse=True)[1], len(scale)
    counts = np.bincount(run * k + read, minlength=(int(run.max()) + 1) * k).reshape(-1, k)
    study = _Study(counts, (told[known] - scale[0]) / step, read[known])
    value, half, mixture, errors = _estimated(study, family, seed, _RESAMPLES if simulations else 0)
    covered = [_covers(study, mixture, errors, family, seed, number) for number in range(simulations)]
    coverage = float(np.mean(covered)) if covered else math.nan
    half = half if coverage >= _COVERED else math.nan
    raw, low = float(_spread(counts).mean()), float(np.fmax(value - half, half * 0))
    return CorrectedDiversity(raw * step, value * step, low * step, (value + half) * step, coverage)


class _Study(NamedTuple):
    """Numbers of readings by run and point, and labels and readings of labelled texts, as places on the scale."""

    counts: np.ndarray
    labels: np.ndarray
    readings: np.ndarray


def _estimated(
    study: _Study, family: Family, seed: int, resamples: int = _RESAMPLES
) -> tuple[float, float, Mixture, np.ndarray]:
    """Corrected diversity, half-width, classes and errors."""
    counts, labels, readings = study
    places = np.arange(counts.shape[1])
    errors = misclassification(labels, readings, places)
    mixture = fit(counts, errors, family)
    draws = stream(seed, "audit diversity")
    value, again = _expected(counts, errors, mixture, draws), []
    for _ in range(resamples):
        some = draws.integers(len(labels), size=len(labels))
        own = counts[draws.integers(len(counts), size=len(counts))]
        drawn = misclassification(labels[some], readings[some], places)
        again.append(_expected(own, drawn, fit(own, drawn, family, mixture), draws))
    return value, 1.96 * float(np.std(again, ddof=1)) if again else math.nan, mixture, errors


def _expected(counts: np.ndarray, errors: np.ndarray, mixture: Mixture, draws: np.random.Generator) -> float:
    """Mean over runs of the standard deviation (ddof 0) of true opinions that readings, errors and classes lead to.

    The class of each run and the true point of each agent are drawn 40 times from their probabilities.
    """
    odds = _odds(_logs(counts, errors, mixture))
    true = np.swapaxes(mixture.shares[:, :, None] * errors, 1, 2) + _TINY
    classes = (draws.random((_DRAWS, len(counts), 1)) > np.cumsum(odds, axis=1)[None, :, :-1]).sum(axis=2)
    found = np.zeros((_DRAWS, *counts.shape))
    for reading in range(counts.shape[1]):
        own = true[:, reading] / true[:, reading].sum(axis=1, keepdims=True)
        found += draws.multinomial(counts[:, reading], own[classes])
    return float(_spread(found).mean())


def _covers(study: _Study, mixture: Mixture, errors: np.ndarray, family: Family, seed: int, number: int) -> bool:
    """Whether the interval of a simulated study covers what runs like its own have on average."""
    draws, k = stream(seed, "audit diversity simulation", number), len(errors)
    sizes = study.counts.sum(axis=1)
    shares = mixture.shares / mixture.shares.sum(axis=1, keepdims=True)
    classes = draws.choice(len(shares), p=mixture.weights, size=(_RUNS, len(sizes)))
    expected = float(_spread(draws.multinomial(sizes, shares[classes])).mean())
    run = np.repeat(np.arange(len(sizes)), sizes)
    true = (draws.random((len(run), 1)) > np.cumsum(shares, axis=1)[classes[0][run], :-1]).sum(axis=1)
    read = (draws.random((len(run), 1)) > np.cumsum(errors[true], axis=1)[:, :-1]).sum(axis=1)
    counts = np.bincount(run * k + read, minlength=len(sizes) * k).reshape(-1, k)
    some = draws.permutation(len(true))[: len(study.labels)]
    value, half, _, _ = _estimated(_Study(counts, true[some].astype(float), read[some]), family, seed + number)
    return abs(value - expected) <= half


def _spread(counts: np.ndarray) -> np.ndarray:
    """Standard deviation (ddof 0) of each row of counts of places, (..., k)."""
    places, n = np.arange(counts.shape[-1]), counts.sum(axis=-1)
    return np.asarray(np.sqrt(np.maximum(counts @ places**2 / n - (counts @ places / n) ** 2, 0)))


def _logs(counts: np.ndarray, errors: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Logarithm of weight and likelihood of each run in each class, (runs, g)."""
    return np.asarray(np.log(mixture.weights + 1e-300) + counts @ np.log(mixture.shares @ errors + _TINY).T)


def _odds(logs: np.ndarray) -> np.ndarray:
    """Probability of each class, (runs, g)."""
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _maximised(counts: np.ndarray, errors: np.ndarray, mixture: Mixture, steps: int, *, free: bool) -> Mixture:
    """Weights, and shares where they are free, after some steps of expectation and maximisation."""
    weights, shares = mixture
    likelihoods = counts @ np.log(shares @ errors + _TINY).T
    for _ in range(steps):
        odds = _odds(likelihoods + np.log(weights + 1e-300))
        before, weights = weights, odds.mean(axis=0)
        if free:
            shares = shares * ((odds.T @ counts) / (shares @ errors + _TINY) @ errors.T)
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
            likelihoods = counts @ np.log(shares @ errors + _TINY).T
        elif np.abs(weights - before).max() < 1e-6:
            break
    return Mixture(weights, shares)


def _camps(k: int) -> np.ndarray:
    """Shares with one mode, and with two at least a point apart, (shapes, k)."""
    from scipy.stats import norm

    edges = np.concatenate([[-np.inf], np.arange(k - 1) + 0.5, [np.inf]])
    middles = np.linspace(-0.5, k - 0.5, 2 * k + 1)
    found = []
    for spread in (0.2, 0.5, 0.8, 1.2):
        one = np.diff(norm.cdf((edges - middles[:, None]) / spread), axis=1)
        found += list(one)
        for i, j in zip(*np.triu_indices(len(one), 3), strict=True):
            found += [part * one[i] + (1 - part) * one[j] for part in (0.2, 0.35, 0.5, 0.65, 0.8)]
    return np.stack(found)
