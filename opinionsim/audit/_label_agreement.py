"""Agreement of labels: confusion matrices, Cohen's kappa, Krippendorff's alpha, and their intervals over texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.foundation.streams import stream

#: How far apart two labels are: equal or not, by their ranks, or by their difference on the scale.
Distance = Literal["nominal", "ordinal", "interval"]

_ONE_VALUE = "all labels are equal, so agreement by chance is complete"
_NO_PAIR = "no text has two labels"
#: Resamples behind an interval.
_RESAMPLES = 999


class Coefficient(NamedTuple):
    """A coefficient of agreement: 1 for complete agreement, 0 for agreement by chance.

    Attributes
    ----------
    value : float
        Value; NaN if it is not defined.
    reason : str
        Why the value is not defined; empty if it is.
    low, high : float
        Ends of the interval; NaN without one.
    """

    value: float
    reason: str = ""
    low: float = math.nan
    high: float = math.nan


def confusion(first: ArrayLike, second: ArrayLike, points: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Count texts by first and second label.

    Parameters
    ----------
    first, second : array_like (n,)
        Labels of the same texts. Texts with a NaN in either are left out.
    points : array_like (k,)
        Valid labels, lowest first.
    weights : array_like (n,), optional
        Weight of each text, such as the inverse of its inclusion probability; default 1.

    Returns
    -------
    ndarray (k, k)
        Counts with first labels in rows and second labels in columns.

    Raises
    ------
    MeasurementError
        If a label is not among the points.
    """
    counts = label_counts(np.stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)]), points)
    return np.asarray(np.tensordot(_weights(weights, _labelled(counts)), _pairs(counts[0], counts[1]), 1))


def cohen_kappa(matrix: ArrayLike, cost: Literal["nominal", "quadratic"] | ArrayLike = "nominal") -> Coefficient:
    r"""Compute Cohen's kappa of a confusion matrix.

    :math:`\kappa = 1 - \sum v_{ij} p_{ij} / \sum v_{ij} p_{i\cdot} p_{\cdot j}`.

    Parameters
    ----------
    matrix : array_like (k, k)
        From :func:`confusion`.
    cost : str or array_like (k, k)
        Cost :math:`v_{ij}` of a disagreement: ``nominal`` (1 each), ``quadratic`` (:math:`(i - j)^2`), or a matrix of
        numbers >= 0.

    Raises
    ------
    MeasurementError
        If the cost is not valid.

    Notes
    -----
    Cohen 1960, doi 10.1177/001316446002000104; weighted: Cohen 1968, doi 10.1037/h0026256.
    """
    return _coefficient(_kappas(np.asarray(matrix, dtype=float)[None], cost), np.sum(matrix))


def krippendorff_alpha(
    labels: ArrayLike, points: ArrayLike | None = None, distance: Distance = "ordinal", weights: ArrayLike | None = None
) -> Coefficient:
    r"""Compute Krippendorff's alpha of any number of coders.

    :math:`\alpha = 1 - D_o / D_e`. Each text with :math:`m \ge 2` labels adds its pairs of labels, each pair counting
    :math:`1/(m-1)`, to the matrix of coincidences :math:`o_{ck}`; with its margins :math:`n_c` and their sum n,
    :math:`D_o = \sum o_{ck} \delta_{ck}^2 / n` and
    :math:`D_e = \sum_c n_c (\sum_k n_k \delta_{ck}^2) / (n (n - 1))`.

    Parameters
    ----------
    labels : array_like (coders, texts)
        Labels, with NaN if a coder has not labelled a text.
    points : array_like (k,), optional
        Valid labels, lowest first; by default those that occur.
    distance : str
        ``nominal``, ``ordinal`` or ``interval``.
    weights : array_like (texts,), optional
        Weight of each text, such as the inverse of its inclusion probability, rescaled to a mean of 1.

    Raises
    ------
    MeasurementError
        If a label is not among the points, or an argument has the wrong shape.

    Notes
    -----
    Krippendorff 2011, Computing Krippendorff's alpha-reliability.
    """
    table = np.asarray(labels, dtype=float)
    valid = np.unique(table[~np.isnan(table)]) if points is None else np.asarray(points, dtype=float)
    counts = label_counts(table, valid)
    matrix = np.tensordot(_weights(weights, _labelled(counts)), coincidences(counts.sum(axis=0)), 1)
    return _coefficient(_alphas(matrix[None], valid, distance), matrix.sum())


def label_counts(labels: np.ndarray, points: ArrayLike) -> np.ndarray:
    """Convert labels to indicators of points, (coders, texts, k); a missing label has none.

    Raises
    ------
    MeasurementError
        If a label is not among the points.
    """
    valid = np.asarray(points, dtype=float)
    if labels.ndim != 2:
        raise MeasurementError(f"labels must have one row per coder and one column per text; got shape {labels.shape}")
    found = labels[:, :, None] == valid
    if stray := sorted(set(labels[~np.isnan(labels) & ~found.any(axis=2)])):
        raise MeasurementError(f"the label {stray[0]:g} is not one of the points {', '.join(f'{x:g}' for x in valid)}")
    return np.asarray(found, dtype=float)


def coincidences(counts: np.ndarray) -> np.ndarray:
    """Compute the coincidences that each text adds, (texts, k, k), from its counts of labels, (texts, k)."""
    n = counts.sum(axis=1)
    own = counts[:, :, None] * np.eye(counts.shape[1])
    return np.asarray((_pairs(counts, counts) - own) / np.maximum(n - 1, 1)[:, None, None])


def bootstrap(parts: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int = 0) -> tuple[float, float]:
    """Compute the 95 % percentile interval of a statistic of a sum over texts, from 999 resamples with replacement.

    Parameters
    ----------
    parts : ndarray (texts, ...)
        Contribution of each text, including its weight.
    statistic : callable
        Takes sums, (resamples, ...), and returns one value for each. Undefined values are left out.
    seed : int
        Seed of the resamples.

    Returns
    -------
    (float, float)
        Ends of the interval; NaN for fewer than two texts, or if fewer than half of the resamples have a value.
    """
    if len(parts) < 2:
        return math.nan, math.nan
    # Many texts add the same: it is drawn how often each distinct part comes.
    distinct, times = np.unique(parts.reshape(len(parts), -1), axis=0, return_counts=True)
    drawn = stream(seed, "audit bootstrap").multinomial(len(parts), times / len(parts), size=_RESAMPLES)
    found = statistic((drawn @ distinct).reshape(_RESAMPLES, *parts.shape[1:]))
    known = found[np.isfinite(found)]
    if 2 * len(known) < _RESAMPLES:
        return math.nan, math.nan
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def coefficients(
    labels: ArrayLike, points: ArrayLike, weights: ArrayLike | None = None, seed: int = 0
) -> dict[str, Coefficient]:
    """Compute kappas of two coders and alphas of any number of coders, with intervals over texts.

    Parameters
    ----------
    labels, points, weights
        As for :func:`krippendorff_alpha`. Only ``kappa`` uses texts with fewer than two labels; it treats NaN (no
        opinion) as a category.
    seed : int
        Seed of the resamples.

    Returns
    -------
    dict of str to Coefficient
        ``kappa`` and ``weighted_kappa`` of two coders; ``alpha_ordinal``, ``alpha_interval``.
    """
    valid, table = np.asarray(points, dtype=float), np.asarray(labels, dtype=float)
    counts = label_counts(table, valid)
    known = _labelled(counts)
    each = coincidences(counts.sum(axis=0))
    measures: dict[str, tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]] = {
        "alpha_ordinal": (each, known, lambda sums: _alphas(sums, valid, "ordinal")),
        "alpha_interval": (each, known, lambda sums: _alphas(sums, valid, "interval")),
    }
    if len(table) == 2:
        whole = label_counts(np.nan_to_num(table, nan=math.inf), [*valid, math.inf])
        measures["kappa"] = (_pairs(*whole), np.ones_like(known), lambda sums: _kappas(sums, "nominal"))
        measures["weighted_kappa"] = (_pairs(*counts), known, lambda sums: _kappas(sums, "quadratic"))
    found = {}
    for name, (parts, compared, measure) in measures.items():
        weighted = (parts * _weights(weights, compared)[:, None, None])[compared]
        low, high = bootstrap(weighted, measure, seed=seed)
        found[name] = _coefficient(measure(weighted.sum(axis=0)[None]), compared.sum())._replace(low=low, high=high)
    return found


def _labelled(counts: np.ndarray) -> np.ndarray:
    """Whether texts have two labels at least."""
    return np.asarray(counts.sum(axis=(0, 2)) > 1)


def _pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Products of two counts of each text, (texts, k, k)."""
    return np.asarray(first[:, :, None] * second[:, None, :])


def _weights(weights: ArrayLike | None, counted: np.ndarray) -> np.ndarray:
    """Weights of texts; those that are counted have a mean of 1, so that sums stay numbers of texts."""
    own = np.ones(len(counted)) if weights is None else np.asarray(weights, dtype=float)
    if own.shape != counted.shape or not (np.isfinite(own).all() and (own >= 0).all()):
        raise MeasurementError(f"weights must be {len(counted)} finite numbers of at least 0, one per text")
    own = own * counted
    return np.asarray(own * (counted.sum() / own.sum()) if own.any() else own)


def _kappas(matrices: np.ndarray, cost: Any) -> np.ndarray:
    """Kappa of each matrix, (n, k, k)."""
    places = np.arange(matrices.shape[-1])
    apart = (places[:, None] - places) ** 2
    costs = {"nominal": apart > 0, "quadratic": apart}
    own = np.asarray(costs.get(cost, -1) if isinstance(cost, str) else cost, dtype=float)
    if own.shape != apart.shape or not (own >= 0).all():
        raise MeasurementError(f"cost must be nominal, quadratic, or {apart.shape} numbers of at least 0; got {cost!r}")
    expected = matrices.sum(axis=2)[:, :, None] * matrices.sum(axis=1)[:, None, :]
    return _one_less((own * matrices).sum(axis=(1, 2)) * matrices.sum(axis=(1, 2)), (own * expected).sum(axis=(1, 2)))


def _alphas(matrices: np.ndarray, points: np.ndarray, distance: Distance) -> np.ndarray:
    """Alpha of each matrix of coincidences, (n, k, k)."""
    if distance not in ("nominal", "ordinal", "interval"):
        raise MeasurementError(f"distance must be nominal, ordinal or interval; got {distance!r}")
    margins = matrices.sum(axis=2)
    n = margins.sum(axis=1)
    # A point is as far from another as there are labels between them, and half of their own.
    middles = np.cumsum(margins, axis=1) - margins / 2
    places = middles if distance == "ordinal" else np.broadcast_to(points, margins.shape)
    apart = places[:, :, None] - places[:, None, :]
    squares = np.broadcast_to(points[:, None] != points, apart.shape) if distance == "nominal" else apart**2
    expected = (margins[:, :, None] * margins[:, None, :] * squares).sum(axis=(1, 2))
    return _one_less((matrices * squares).sum(axis=(1, 2)) * (n - 1), expected)


def _one_less(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """One less observed over expected disagreement; NaN where none is expected."""
    return np.asarray(1 - np.divide(observed, expected, out=np.full(len(observed), np.nan), where=expected > 0))


def _coefficient(values: np.ndarray, n: Any) -> Coefficient:
    value = float(values[0])
    return Coefficient(value, "" if not math.isnan(value) else _ONE_VALUE if n else _NO_PAIR)
