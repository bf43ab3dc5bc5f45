"""Predictions of the next opinion from the last one, made for units outside the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from opinionsim.foundation.streams import stream

#: Count that every answer is given beside those that were seen.
_SMOOTHED = 0.5
#: Shares nearer to 0 than this cannot be fitted.
_LEAST = 1e-9

#: Probabilities of the points of a scale for each update, (n, k).
Predicted = np.ndarray


def folds(units: np.ndarray, number: int = 10) -> np.ndarray:
    """Fold of each update, (n,), from 0; all updates of a unit are in one fold.

    Parameters
    ----------
    units : ndarray of int, shape (n,)
        The unit of each update, from 0.
    number : int
        Maximum number of folds; each has at least one unit.
    """
    n_units = int(units.max()) + 1
    return np.asarray((stream(0, "people folds").permutation(n_units) % min(number, n_units))[units])


def _cross_fitted(fold: np.ndarray, fit: Callable[[np.ndarray], Predicted]) -> Predicted:
    """What `fit(training)` predicts for all, kept for the updates that are not in training."""
    pieces = [(fold == each, fit(fold != each)) for each in range(int(fold.max()) + 1)]
    found = np.empty_like(pieces[0][1])
    for held_out, predicted in pieces:
        found[held_out] = predicted[held_out]
    return found


def shares(last: np.ndarray, given: np.ndarray, k: int, fold: np.ndarray) -> Predicted:
    """The share of each next opinion among updates with the same `given`, smoothed by half a count.

    Parameters
    ----------
    last : ndarray of int, shape (n,)
        Position of the next opinion on the scale.
    given : ndarray of int, shape (n,)
        Category of each update by the available information, from 0.
    k : int
        Points of the scale.
    fold : ndarray of int, shape (n,)
        From :func:`folds`.
    """

    def fit(training: np.ndarray) -> Predicted:
        counts = np.full((int(given.max()) + 1, k), _SMOOTHED)
        np.add.at(counts, (given[training], last[training]), 1.0)
        found: Predicted = (counts / counts.sum(axis=1, keepdims=True))[given]
        return found

    return _cross_fitted(fold, fit)


def equations(
    points: np.ndarray, first: np.ndarray, last: np.ndarray, means: np.ndarray, fold: np.ndarray
) -> Iterator[tuple[str, Predicted]]:
    """Predictions of persistence, of a linear equation and of a pull to the mean.

    Each is mixed with staying put and with a jump to any point, and rounded to the nearest point of the scale.

    Parameters
    ----------
    points : ndarray of float, shape (k,)
        The scale.
    first, last : ndarray of int, shape (n,)
        Positions of the opinions before and after.
    means : ndarray of float, shape (n,)
        Opinion towards which the pull leads.
    fold : ndarray of int, shape (n,)
        From :func:`folds`.

    Yields
    ------
    (str, Predicted)
        ``persistence`` stays put; ``linear`` moves to a + b x; ``pull to the mean`` to x + c (m - x), 0 <= c <= 1.
    """
    x, k = points[first], len(points)
    stays = (first[:, None] == np.arange(k)).astype(float)

    def blended(logits: np.ndarray, moved: np.ndarray | None, width: float) -> Predicted:
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        found = weights[0] * stays + weights[1] / k
        return np.asarray(found if moved is None else found + weights[2] * _rounded(points, moved, width))

    kinds: dict[str, tuple[list[float], Callable[[np.ndarray], Predicted]]] = {
        "persistence": ([1.0], lambda p: blended(np.array([p[0], 0.0]), None, 0.0)),
        "linear": (
            [0.0, -2.0, float(x.mean()) / 2, 0.5, 0.0],
            lambda p: blended(np.array([p[0], p[1], 0.0]), p[2] + p[3] * x, np.exp(p[4])),
        ),
        "pull to the mean": (
            [0.0, -2.0, 0.0, 0.0],
            lambda p: blended(np.array([p[0], p[1], 0.0]), x + (means - x) / (1 + np.exp(-p[2])), np.exp(p[3])),
        ),
    }
    for name, (start, predict) in kinds.items():
        whole = _fitted(predict, last, np.ones(len(x), dtype=bool), np.array(start))

        def fit(
            training: np.ndarray, predict: Callable[..., Predicted] = predict, begin: np.ndarray = whole
        ) -> Predicted:
            return predict(_fitted(predict, last, training, begin))

        yield name, _cross_fitted(fold, fit)


def _fitted(
    predict: Callable[[np.ndarray], Predicted], last: np.ndarray, training: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Parameters of the greatest likelihood, within bounds that keep shares from 0."""
    from scipy.optimize import minimize

    rows = np.flatnonzero(training)

    def loss(parameters: np.ndarray) -> float:
        return -float(np.log(predict(parameters)[rows, last[rows]] + _LEAST).mean())

    best = minimize(loss, start, method="L-BFGS-B", bounds=[(-8.0, 8.0)] * len(start))
    return np.asarray(best.x)


def _rounded(points: np.ndarray, mean: np.ndarray, width: float) -> Predicted:
    """Probabilities of the points nearest to a normal number with these means, (n, k)."""
    from scipy.special import ndtr

    edges = (points[1:] + points[:-1]) / 2
    below = ndtr((edges - mean[:, None]) / width)
    ends = np.zeros((len(mean), 1))
    return np.diff(np.hstack([ends, below, ends + 1.0]), axis=1)
