"""Checked opinion arrays for metrics, in rows with one value per agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number

#: Result of a metric: a float for opinions of shape (N,), an array of shape (...) for (..., N).
Measured: TypeAlias = Any
#: Ends of the opinion scale, low before high.
Range: TypeAlias = tuple[float, float]

#: Overshoot of the range, as a share of its width, that counts as rounding of 32-bit records and is clipped.
_ROUNDING = 1e-6

#: Values held at a time by metrics that need many of them for each row.
_BATCH = 4_000_000


def opinion_array(opinions: ArrayLike, *, empty: bool = False) -> np.ndarray:
    """Opinions as floats of shape (..., N), checked.

    Raises
    ------
    MeasurementError
        If they are not numbers, contain an infinity, lack an agent axis, or contain no agent while `empty` is False.
    """
    try:
        values = np.asarray(opinions, dtype=float)
    except (TypeError, ValueError):
        raise MeasurementError("opinions must be numbers in an array (..., N), one value per agent") from None
    if values.ndim == 0:
        raise MeasurementError("opinions must be an array (..., N), one value per agent; got a single number")
    if values.shape[-1] == 0 and not empty:
        raise MeasurementError(f"opinions must have at least one agent; got shape {values.shape}")
    if np.isinf(values).any():
        raise MeasurementError("opinions must be finite, or NaN if missing; got an infinity")
    return values


def _ends(limits: Any) -> Range:
    """The range as two increasing finite numbers."""
    try:
        low, high = (float(end) for end in limits)
    except (TypeError, ValueError):
        raise MeasurementError(f"range must be two numbers, (low, high); got {limits!r}") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise MeasurementError(f"range must be finite with low < high; got ({low:g}, {high:g})")
    return low, high


def positive(value: float, name: str, *, zero: bool = False) -> float:
    """Return a finite number above 0 (or at least 0 if `zero`), or raise an error that names it."""
    if not (isinstance(value, Real) and np.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise MeasurementError(f"{name} must be finite and {'at least' if zero else 'above'} 0; got {value!r}")
    return float(value)


def ratio(numerator: np.ndarray, denominator: Any) -> np.ndarray:
    """Divide where the denominator is positive; the result is NaN elsewhere."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    quotient = np.full(numerator.shape, np.nan)
    return np.asarray(np.divide(numerator, denominator, out=quotient, where=denominator > 0))


@dataclass(frozen=True)
class Rows:
    """R rows of N opinions, with quantities that several metrics share.

    Attributes
    ----------
    x : ndarray (R, N)
        Opinions; NaN where there is none.
    shape : tuple of int
        Leading shape of the opinions that were passed, R rows in total.
    low, high : float
        Ends of the range; NaN where none was passed.
    """

    x: np.ndarray
    shape: tuple[int, ...]
    low: float = float("nan")
    high: float = float("nan")

    @classmethod
    def of(cls, opinions: ArrayLike, limits: Range | None = None) -> Rows:
        """Check opinions and, if a range is given, check that they lie within it."""
        values = opinion_array(opinions)
        rows = values.reshape(-1, values.shape[-1])
        if limits is None:
            return cls(rows, values.shape[:-1])
        low, high = _ends(limits)
        slack = _ROUNDING * (high - low)
        outside = (rows < low - slack) | (rows > high + slack)
        if outside.any():
            raise MeasurementError(
                f"opinions must lie in the range {low:g} to {high:g}; got {rows[outside][0]:g} "
                f"({np.count_nonzero(outside)} of {rows.size} values are outside)"
            )
        return cls(np.clip(rows, low, high), values.shape[:-1], low, high)

    def back(self, values: np.ndarray) -> Measured:
        """One value per row, in the leading shape; a float if a single distribution was passed."""
        return values.reshape(self.shape) if self.shape else values.reshape(-1)[0].item()

    @property
    def width(self) -> float:
        """Length of the range."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """Neutral point: the middle of the range."""
        return (self.low + self.high) / 2

    @cached_property
    def present(self) -> np.ndarray:
        """Whether each agent has an opinion, (R, N)."""
        return np.asarray(~np.isnan(self.x))

    @cached_property
    def n(self) -> np.ndarray:
        """Agents that have an opinion, (R,)."""
        return np.asarray(np.count_nonzero(self.present, axis=1))

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum over the agents that have an opinion, (R,)."""
        whole = values if self.present.all() else np.where(self.present, values, 0.0)
        return np.asarray(whole.sum(axis=1))

    def average(self, values: np.ndarray) -> np.ndarray:
        """Mean over the agents that have an opinion, (R,); NaN where none has."""
        return ratio(self.total(values), self.n)

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean opinion, (R,)."""
        return self.average(self.x)

    @cached_property
    def deviations(self) -> np.ndarray:
        """Opinions minus their mean, (R, N); exactly 0 in a row without spread, even if the mean was rounded."""
        found: np.ndarray = self.x - self.mean[:, None]
        found[self.spread == 0] *= 0
        return found

    @cached_property
    def ordered(self) -> np.ndarray:
        """Opinions in increasing order, missing ones last, (R, N)."""
        return np.sort(self.x, axis=1)

    @cached_property
    def gaps(self) -> np.ndarray:
        """Distances between neighbouring opinions in order, (R, N-1); NaN beyond the last."""
        return np.diff(self.ordered, axis=1)

    @cached_property
    def spread(self) -> np.ndarray:
        """Largest minus smallest opinion, (R,); NaN where there is none."""
        return np.asarray(np.fmax.reduce(self.x, axis=1) - np.fmin.reduce(self.x, axis=1))

    def sd(self, ddof: int) -> np.ndarray:
        """Standard deviation, (R,); NaN where no more than `ddof` agents have an opinion."""
        return np.asarray(np.sqrt(ratio(self.total(self.deviations**2), self.n - ddof)))

    def batches(self, per_row: int) -> Iterator[Rows]:
        """The rows in parts, which bounds the memory for `per_row` values per row."""
        size = max(1, _BATCH // max(1, per_row))
        for first in np.arange(0, len(self.x), size):
            yield Rows(self.x[first : first + size], (), self.low, self.high)

    def bin(self, bins: int, least: int = 2) -> np.ndarray:
        """Number of the equal-width bin of each opinion, from 0, (R, N); -1 where there is no opinion."""
        whole_number("bins", bins, least, MeasurementError)
        index = np.floor((np.where(self.present, self.x, self.low) - self.low) / self.width * bins)
        return np.where(self.present, np.clip(index, 0, bins - 1), -1).astype(np.int64)

    def counts(self, bins: int, least: int = 2) -> np.ndarray:
        """Agents in each of `bins` equal-width bins, (R, bins)."""
        return tally(self.bin(bins, least), bins)


def tally(labels: np.ndarray, size: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Count of each label from 0 in each row, or the sum of its weights, (R, size); -1 is left out."""
    cell = np.arange(len(labels))[:, None] * size + labels
    kept = labels >= 0
    chosen = None if weights is None else weights[kept]
    return np.bincount(cell[kept], weights=chosen, minlength=len(labels) * size).reshape(len(labels), size)
