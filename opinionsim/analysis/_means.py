"""Estimates of means over topics and blocks, with intervals and tests that fit the design.

A value belongs to one topic and one block. Blocks are nested in topics if every topic has separate draws, and crossed
with topics if they share draws. The last axes of all arrays are topics and blocks, (..., T, R).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics import ANY

Estimand = Literal["topics-like-these", "these-topics"]
Design = Literal["nested", "crossed"]

#: What a mean is about: topics of which those studied are a sample, or the studied topics themselves.
ESTIMANDS: tuple[Estimand, ...] = ("topics-like-these", "these-topics")
#: Fewest independent units that an interval may rest on.
LEAST_UNITS = 3


class Spread(NamedTuple):
    """Means with their standard errors by every method that applies.

    Attributes
    ----------
    mean, sd : ndarray (...)
        Mean, and the standard deviation by which an effect size divides it.
    errors, df : ndarray (..., M)
        Standard error and degrees of freedom by each method.
    methods : tuple of str, length M
        The methods in words.
    components : ndarray (..., 3) or None
        Variances of topics, blocks and residuals, if topics are crossed with blocks and both are samples.
    """

    mean: np.ndarray
    sd: np.ndarray
    errors: np.ndarray
    df: np.ndarray
    methods: tuple[str, ...]
    components: np.ndarray | None = None

    def halves(self, level: float) -> np.ndarray:
        """Half-widths of the intervals by each method, (..., M)."""
        from scipy.special import stdtrit

        widths: np.ndarray = stdtrit(self.df, (1 + level) / 2) * self.errors
        return widths

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the longest interval, (...)."""
        half = self.halves(level).max(axis=-1)
        return self.mean - half, self.mean + half

    def p_above(self, null: float) -> np.ndarray:
        """One-sided p-values (...) of a mean not above `null`, the largest over methods."""
        from scipy.special import stdtr

        p: np.ndarray = stdtr(self.df, (null - self.mean[..., None]) / self.errors).max(axis=-1)
        return p

    def p_within(self, bound: float) -> np.ndarray:
        """P-values (...) of two one-sided tests of a mean that is not between -bound and bound (Lakens 2017)."""
        return np.asarray(np.maximum(self.p_above(-bound), self._replace(mean=-self.mean).p_above(-bound)))


def _units(values: np.ndarray, method: str) -> Spread:
    """The mean of independent units (..., n) with its t interval."""
    n = values.shape[-1]
    sd = values.std(axis=-1, ddof=1) if n > 1 else np.full(values.shape[:-1], np.nan)
    errors = (sd / math.sqrt(n))[..., None]
    return Spread(values.mean(axis=-1), sd, errors, np.full_like(errors, n - 1), (method,))


def _within(grid: np.ndarray) -> Spread:
    r"""Nested blocks and the studied topics. NaN stands for a block that is lacking.

    The variance of the mean is :math:`\sum_t s_t^2/n_t / T^2`, each topic with a variance of its own, and it has
    :math:`(\sum_t s_t^2/n_t)^2 / \sum_t (s_t^2/n_t)^2/(n_t - 1)` degrees of freedom (Satterthwaite 1946; of two topics,
    Welch 1947, doi 10.2307/2332510).
    """
    counts = (~np.isnan(grid)).sum(axis=-1)
    within = np.nanvar(grid, axis=-1, ddof=1)
    parts = within / counts
    total = parts.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        df = total**2 / (parts**2 / (counts - 1)).sum(axis=-1)
    error, method = np.sqrt(total) / grid.shape[-2], "t with the variance of each topic (Satterthwaite 1946)"
    mean, sd = np.nanmean(grid, axis=-1).mean(axis=-1), np.sqrt(within.mean(axis=-1))
    return Spread(mean, sd, error[..., None], df[..., None], (method,))


def _completed(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Crossed grids (..., T, R) that lack the same values, with these put in by least squares.

    What is put in is the effect of the topic and of the block, so that the mean of the grid is that of topics and
    blocks as if each had all values, and its topic and block means are their effects.

    Returns
    -------
    values : ndarray (..., T, R)
        NaN throughout where the values do not connect all topics and blocks.
    shares : ndarray (3,)
        Variance that a rest of variance 1 gives the means of topics, those of blocks, and the mean of all, each over
        that in a complete grid.

    Notes
    -----
    Yates 1933, The analysis of replicated experiments when the field results are incomplete, for the values; unweighted
    means for the variances: Burdick & Graybill 1992, Confidence intervals on variance components, chapter 4.
    """
    known = ~np.isnan(grid.reshape(-1, *grid.shape[-2:])[0])
    if known.all():
        return grid, np.ones(3)
    (n, k), (row, column) = known.shape, np.indices(known.shape).reshape(2, -1)
    cells = np.hstack([np.eye(n)[row], np.eye(k)[column]])
    own = cells[known.ravel()]
    if np.linalg.matrix_rank(own.T @ own, hermitian=True) < n + k - 1:
        return np.full_like(grid, np.nan), np.ones(3)
    effects = np.linalg.pinv(own.T @ own, hermitian=True) @ own.T
    fitted = (grid[..., known] @ effects.T @ cells.T).reshape(grid.shape)
    between = [np.var(each, axis=0, ddof=1).sum() for each in (effects[:n], effects[n:])]
    mean = effects[:n].mean(axis=0) + effects[n:].mean(axis=0)
    return np.where(known, grid, fitted), np.array([between[0] * k, between[1] * n, (mean**2).sum() * n * k])


def _jackknife(grid: np.ndarray) -> Spread:
    """Crossed grids with gaps and the studied topics: each block adds what the mean changes by without it.

    Notes
    -----
    Tukey 1958; Miller 1974, The jackknife, doi 10.1093/biomet/61.1.1. In a complete grid the values are block means.
    """
    n = grid.shape[-1]
    means = [_completed(each)[0].mean(axis=(-2, -1)) for each in
             (grid, *(np.delete(grid, block, axis=-1) for block in range(n)))]  # fmt: skip
    values = n * means[0][..., None] - (n - 1) * np.stack(means[1:], axis=-1)
    return _units(values, "t over blocks by least squares and the jackknife (Miller 1974)")._replace(mean=means[0])


def mean_squares(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean squares (...) of rows, columns and the rest of grids (..., n, k) with one value per cell."""
    n, k = grid.shape[-2:]
    rows, columns = grid.mean(axis=-1), grid.mean(axis=-2)
    rest = grid - rows[..., None] - columns[..., None, :] + grid.mean(axis=(-2, -1), keepdims=True)
    squares = (rest**2).sum(axis=(-2, -1)) / ((n - 1) * (k - 1))
    return k * rows.var(axis=-1, ddof=1), n * columns.var(axis=-1, ddof=1), squares


def of_mean_squares(
    mean: ArrayLike,
    topics: ArrayLike,
    blocks: ArrayLike,
    rest: ArrayLike,
    shape: tuple[int, int],
    shares: ArrayLike = (1.0, 1.0, 1.0),
    lacking: int = 0,
) -> Spread:
    r"""Compute the spread of a mean over T topics crossed with R blocks from mean squares (topics, blocks, rest).

    The variance of the mean is :math:`\sigma_t^2/T + \sigma_b^2/R + \sigma_e^2/TR` with
    :math:`\sigma_t^2 = \max(0, (MS_t - MS_e)/R)`, :math:`\sigma_b^2 = \max(0, (MS_b - MS_e)/T)` and
    :math:`\sigma_e^2 = MS_e`. It is a sum of mean squares :math:`\sum c_i MS_i`, with
    :math:`(\sum c_i MS_i)^2 / \sum (c_i MS_i)^2/f_i` degrees of freedom. The other
    methods are the t intervals over topics alone, with variance :math:`MS_t/TR`, and over blocks alone, with
    :math:`MS_b/TR`. If least squares filled gaps of a grid, the mean squares and the mean contain `shares` of
    :math:`\sigma_e^2` instead of 1 each, and the rest has `lacking` fewer degrees of freedom.

    Notes
    -----
    Satterthwaite 1946, doi 10.2307/3002019; crossed designs as in Westfall, Kenny & Judd 2014, doi 10.1037/xge0000014.
    Satterthwaite's interval alone is too short if a component is near 0, so the longest interval is used.
    """
    n_topics, n_blocks = shape
    squares = np.stack(np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in (topics, blocks, rest))), -1)
    held = np.asarray(shares, dtype=float) * squares[..., 2:]
    larger = squares[..., :2] > held[..., :2]
    rests = held[..., 2:] - (held[..., :2] * larger).sum(axis=-1, keepdims=True)
    parts = np.concatenate([squares[..., :2] * larger, rests], axis=-1)
    free = np.array([n_topics - 1, n_blocks - 1, (n_topics - 1) * (n_blocks - 1) - lacking], dtype=float)
    total = parts.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        df = total**2 / (parts**2 / free).sum(axis=-1)
    alone = np.maximum(squares[..., :2] + held[..., 2:] - held[..., :2], 0)
    errors = np.sqrt(np.concatenate([total[..., None], alone], axis=-1) / (n_topics * n_blocks))
    between = np.maximum(squares[..., :2] - held[..., :2], 0) / (n_blocks, n_topics)
    components = np.concatenate([between, squares[..., 2:]], axis=-1)
    of_each = np.stack([df, *(np.full_like(df, each) for each in free[:2])], axis=-1)
    methods = ("Satterthwaite 1946, topics crossed with blocks", "t over topics alone", "t over blocks alone")
    return Spread(np.asarray(mean, float), np.sqrt(components.sum(axis=-1)), errors, of_each, methods, components)


def spread_of(grid: ArrayLike, design: Design, estimand: Estimand) -> Spread:
    """Compute means of grids of values with their standard errors.

    Parameters
    ----------
    grid : array_like (..., T, R)
        Value of each topic and block. For nested blocks, column r is the r-th block of every topic, with NaN if a topic
        has fewer blocks. For crossed blocks, each column is one block, and all grids lack the same values.
    design, estimand : str
        ``nested`` or ``crossed``; ``topics-like-these`` or ``these-topics``.

    Returns
    -------
    Spread
        Means and errors; :meth:`Spread.interval` gives the interval. Everything is NaN for a crossed grid whose values
        do not connect all topics and blocks, or that has no residual variance.
    """
    values = np.asarray(grid, dtype=float)
    if design == "nested":
        like_these = estimand == "topics-like-these"
        return _units(np.nanmean(values, axis=-1), "t over topic means") if like_these else _within(values)
    gaps = int(np.isnan(values.reshape(-1, *values.shape[-2:])[0]).sum())
    if estimand == "these-topics" and gaps:
        return _jackknife(values)
    if estimand == "these-topics":
        return _units(values.mean(axis=-2), "t over block means" if values.shape[-2] > 1 else "t over blocks")
    values, shares = _completed(values)
    topics, blocks, rest = mean_squares(values)
    all_free = math.prod(side - 1 for side in values.shape[-2:])
    # What was put in deviates from nothing.
    rest = rest * (all_free / (all_free - gaps) if gaps < all_free else math.nan)
    return of_mean_squares(values.mean(axis=(-2, -1)), topics, blocks, rest, values.shape[-2:], shares, gaps)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A mean, its interval, and the units and method behind both.

    Attributes
    ----------
    mean, low, high : float
        Mean and ends of its interval; the ends are NaN without an interval.
    level : float
        Confidence level.
    estimand : str
        ``topics-like-these`` or ``these-topics``.
    unit : str
        Independent unit: topic, block, or topic and block if both are samples.
    n : int
        Number of independent units; the smaller number if both are samples.
    units : str
        The same in words, as in "15 topics, 8 blocks".
    method : str
        Method of the interval; if several apply, the method with the longest interval.
    left_out : int
        Number of missing values.
    reason : str
        Reason why there is no interval; empty with an interval.
    sd : float
        Standard deviation by which an effect size divides the mean.
    spread : Spread or None
        Mean with its standard errors by every method; None without an interval.
    values : tuple of float, length n
        Values of the units, if units have one dimension and none is missing; otherwise empty.
    """

    mean: float
    low: float
    high: float
    level: float
    estimand: Estimand
    unit: str
    n: int
    units: str
    method: str
    left_out: int = 0
    reason: str = ""
    sd: float = math.nan
    spread: Spread | None = None
    values: tuple[float, ...] = ()

    def columns(self, name: str) -> dict[str, float]:
        """The mean and its interval as columns of a frame: NAME, NAME_ci_low and NAME_ci_high."""
        return {name: self.mean, f"{name}_ci_low": self.low, f"{name}_ci_high": self.high}

    @property
    def basis(self) -> dict[str, Any]:
        """Columns of a frame that describe the basis of the interval, or the reason for a missing one."""
        names = ("estimand", "unit", "units", "method", "level", "left_out")
        return {name: getattr(self, name) for name in names} | {"no_interval": self.reason}

    @property
    def p_value(self) -> float:
        """Two-sided p-value of a mean of 0; the largest if several methods apply."""
        if self.spread is None:
            return math.nan
        return 2 * float(self.spread._replace(mean=np.abs(self.spread.mean)).p_above(0))

    @property
    def effect(self) -> tuple[float, float, float]:
        r"""Effect size d_z, the mean over the standard deviation, with its interval.

        The ends are :math:`\delta\,s_m/s`, for which the noncentral t distribution with parameter :math:`\delta` has
        the observed t at the upper or lower tail (Steiger & Fouladi 1997). They are exact for independent units, and
        approximate if topics and blocks are both samples.
        """
        from scipy.special import nctdtrinc

        if self.spread is None:
            return math.nan, math.nan, math.nan
        place = int(self.spread.halves(self.level).argmax())
        error, df = float(self.spread.errors[place]), float(self.spread.df[place])
        low, high = (
            float(nctdtrinc(df, p, self.mean / error)) * error / self.sd
            for p in ((1 + self.level) / 2, (1 - self.level) / 2)
        )
        return self.mean / self.sd, low, high

    def finding(self, smallest: float) -> str:
        """Compare the mean with the smallest effect of interest.

        Parameters
        ----------
        smallest : float
            The smallest effect of interest, > 0, in units of the mean.

        Returns
        -------
        str
            ``larger`` if the whole interval lies beyond it on one side; ``equivalent`` if two one-sided tests, each at
            1 - level, place the mean between -smallest and smallest; otherwise ``undecided``. Empty without an
            interval.

        Notes
        -----
        Two one-sided tests: Lakens 2017, doi 10.1177/1948550617697177.
        """
        if self.spread is None:
            return ""
        if self.low > smallest or self.high < -smallest:
            return "larger"
        return "equivalent" if self.spread.p_within(smallest) < 1 - self.level else "undecided"


def no_estimate(reason: str) -> Estimate:
    """Return an estimate without a value, with the reason."""
    return Estimate(*(math.nan,) * 3, 0.95, "these-topics", "", 0, "", "", reason=reason)


def design_of(topics: ArrayLike, blocks: ArrayLike) -> Design:
    """Return ``nested`` if each block belongs to one topic only, and ``crossed`` otherwise.

    A single topic counts as crossed; its blocks are independent units in both cases.
    """
    pairs = pd.DataFrame({"topic": topics, "block": blocks}).drop_duplicates()
    alone = not pairs["block"].duplicated().any()
    return "nested" if alone and pairs["topic"].nunique() > 1 else "crossed"


def usual_estimand(topics: ArrayLike) -> Estimand:
    """Return the default estimand: topics like these for three topics or more, otherwise these topics."""
    return ESTIMANDS[pd.Series(topics).nunique() < LEAST_UNITS]


def estimate(
    topics: ArrayLike,
    blocks: ArrayLike,
    values: ArrayLike,
    estimand: Estimand | None = None,
    level: float = 0.95,
    design: Design | None = None,
    limits: tuple[float, float] = ANY,
) -> Estimate:
    r"""Estimate the mean of values of topics and blocks, with equal weight for each topic, and its confidence interval.

    Parameters
    ----------
    topics, blocks : array_like (N,)
        Topic and block of each value.
    values : array_like (N,)
        Values, with NaN if missing. Several values of one topic and block, such as those of redraws, are averaged
        first.
    estimand : str, optional
        ``topics-like-these`` treats the topics as a sample; ``these-topics`` is about the studied topics only. The
        default is ``topics-like-these`` if there are at least three topics.
    level : float
        Confidence level.
    design : str, optional
        ``nested`` or ``crossed``; by default inferred from topics and blocks (:func:`design_of`).
    limits : (float, float)
        Possible range of the mean. Intervals end at these limits, which does not reduce their coverage. Tests do not
        change.

    Returns
    -------
    Estimate
        The mean and its interval. With fewer than three independent units, or if all units are equal, the ends are NaN
        and there is a reason.

    Raises
    ------
    MeasurementError
        If an argument is not valid, or no value is left.

    Notes
    -----
    ``topics-like-these``: nested, t over topic means; crossed, the longest of the intervals of Satterthwaite, over
    topics alone and over blocks alone (:func:`of_mean_squares`). ``these-topics``: crossed, t over block means; nested,
    the sum of the variances of topic means, each from its own blocks, with degrees of freedom by Satterthwaite. A
    crossed grid with gaps keeps all its values: the mean is the least-squares mean with effects of topics and blocks,
    and the error about these topics comes from a jackknife over blocks. Agents and steps are never units, because those
    of one run influence each other.
    """
    if estimand is not None and estimand not in ESTIMANDS:
        raise MeasurementError(f"estimand must be one of {', '.join(ESTIMANDS)}; got {estimand!r}")
    if not 0 < level < 1:
        raise MeasurementError(f"level must be between 0 and 1; got {level!r}")
    given = pd.DataFrame({"topic": pd.Series(topics, dtype=object).fillna("").to_numpy(), "block": blocks,
                          "value": np.asarray(values, dtype=float)})  # fmt: skip
    if np.isinf(given["value"]).any():
        raise MeasurementError("values must be finite, or NaN if missing; got an infinite value")
    rows = given.groupby(["topic", "block"])["value"].mean()
    kept = rows.dropna()
    if kept.empty:
        raise MeasurementError("there is no value to take a mean of")
    chosen = estimand or usual_estimand(given["topic"])
    arranged = design or design_of(given["topic"], given["block"])
    if given["topic"].nunique() == 1:
        arranged = "crossed"
    table = _nested(kept) if arranged == "nested" else kept.unstack()
    made = _estimated(table, arranged, chosen, level, len(rows))
    return replace(made, low=float(np.clip(made.low, *limits)), high=float(np.clip(made.high, *limits)))


def _nested(values: pd.Series[Any]) -> pd.DataFrame:
    """Values with the blocks of each topic side by side."""
    place = values.groupby(level="topic").cumcount()
    return values.droplevel("block").to_frame("value").assign(place=place.to_numpy()).set_index(
        "place", append=True
    )["value"].unstack()  # fmt: skip


def _estimated(table: pd.DataFrame, design: Design, estimand: Estimand, level: float, n_values: int) -> Estimate:
    """The estimate of a table (T, R) of topics and blocks."""
    n_topics, n_blocks = table.shape
    known = int(table.notna().to_numpy().sum())
    counts = f"{n_topics} topic{'s' * (n_topics != 1)}", f"{n_blocks} block{'s' * (n_blocks != 1)}"
    if design == "nested":
        counts = counts[0], f"{known} blocks"
    unit, n, units = {
        ("topics-like-these", "nested"): ("topic", n_topics, counts[0]),
        ("topics-like-these", "crossed"): ("topic and block", min(n_topics, n_blocks), ", ".join(counts)),
        ("these-topics", "nested"): ("block", known, counts[1]),
        ("these-topics", "crossed"): ("block", n_blocks, counts[1]),
    }[estimand, design]
    grid = table.to_numpy(dtype=float)
    mean = float(_completed(grid)[0].mean()) if design == "crossed" else math.nan
    of_topics = float(np.nanmean(grid, axis=1).mean())
    center = of_topics if math.isnan(mean) else mean
    bare = Estimate(center, math.nan, math.nan, level, estimand, unit, n, units, "", n_values - known)
    lacking = "too many values are missing for the others to"
    if design == "crossed" and math.isnan(mean):
        return replace(bare, reason=f"{lacking} connect topics and blocks, so that the mean is that of topics")
    if n_topics == 1 and estimand == "topics-like-these":
        return replace(bare, reason="one topic does not tell how topics differ")
    within = design == "nested" and estimand == "these-topics"
    if within:
        # The variance of a topic rests on its own blocks alone.
        n = int(table.notna().sum(axis=1).min())
    if n < LEAST_UNITS:
        few = f"{n} block{'s' * (n != 1)} of a topic" if within else units
        return replace(bare, reason=f"too few independent units ({few}), at least {LEAST_UNITS} are needed")
    found = spread_of(grid, design, estimand)
    sd, mean = float(found.sd), float(found.mean)
    if math.isnan(sd):
        without = "connect topics and blocks without each single block, as a jackknife needs"
        told = without if estimand == "these-topics" else "tell a rest beside the effects of topics and blocks"
        return replace(bare, reason=f"{lacking} {told}")
    if not sd > 1e-12 * max(1.0, abs(mean)):
        return replace(bare, mean=mean, reason="all units have the same value")
    low, high = (float(end) for end in found.interval(level))
    method = found.methods[int(found.halves(level).argmax())]
    one_way = unit != "topic and block" and not within and (design == "nested" or known == table.size)
    values = tuple(np.nanmean(grid, axis=1 if unit == "topic" else 0).tolist()) if one_way else ()
    return replace(bare, mean=mean, low=low, high=high, method=method, sd=sd, spread=found, values=values)


def adjusted(p_values: ArrayLike) -> np.ndarray:
    r"""Adjust the p-values of one family (Holm 1979), which controls the chance of any false positive.

    Parameters
    ----------
    p_values : array_like (M,)
        P-values of one family. NaN stays NaN and does not count.

    Returns
    -------
    ndarray (M,)
        The largest of :math:`(m - i + 1)\,p_{(i)}` up to each one, at most 1.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    found = np.full_like(p, np.nan)
    found[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return found
