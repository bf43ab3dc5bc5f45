"""Gaussian kernel densities of opinions on a grid, their fragmentation, and their valleys."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, Range, Rows, positive, ratio, tally
from opinionsim.metrics._opinions import check_ddof
from opinionsim.registry import part

#: Error of the binned density, as a share of the peak of one agent's kernel.
_TRUNCATION = 1e-12
#: Bandwidths beyond which a kernel is below the rounding of its peak.
_REACH = 9.5


def _kernels(reach: int, ratio_: float, terms: int) -> np.ndarray:
    """Hermite functions He_k(u) phi(u) / k! at u = j * ratio_ for j = -reach..reach, (terms, 2 * reach + 1)."""
    u = np.arange(-reach, reach + 1) * ratio_
    kernels = [np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)]
    for k in range(1, terms):
        # He_k = u He_(k-1) - (k-1) He_(k-2), each divided by its factorial.
        before = kernels[k - 2] if k > 1 else np.zeros_like(u)
        kernels.append((u * kernels[k - 1] - before) / k)
    return np.array(kernels)


def _density(rows: Rows, bandwidth: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Grid and densities (R, G) of rows on their range, by Taylor moments about the nearest grid point.

    An opinion at distance d from grid point g adds sum_k (d/h)^k He_k(u) phi(u) / k! at a grid point at distance u h
    from g. So powers of d/h are summed at grid points, and one convolution for each k adds all kernels.
    """
    if step > bandwidth:
        raise MeasurementError(f"step must be at most the bandwidth, {bandwidth:g}; got {step:g}")
    size = max(round(rows.width / step), 1) + 1
    from scipy.fft import next_fast_len

    grid = np.linspace(rows.low, rows.high, size)
    spacing = grid[1] - grid[0]
    position = np.where(rows.present, (rows.x - rows.low) / spacing, 0.0)
    nearest = np.rint(position).astype(np.int64)
    offset = (position - nearest) * (spacing / bandwidth)
    nearest = np.where(rows.present, nearest, -1)
    # A term is at most (d/h)^k / sqrt(k!) with d at most half a step.
    bounds = np.cumprod(spacing / bandwidth / 2 / np.sqrt(np.arange(1, 60)))
    terms = 1 + int(np.argmax(bounds < _TRUNCATION))
    reach = min(size - 1, int(np.ceil(_REACH * bandwidth / spacing)))
    # Long enough that wrapped-around values fall outside the part that is kept.
    length = next_fast_len(size + reach, real=True)
    spectra = np.fft.rfft(_kernels(reach, spacing / bandwidth, terms), length)
    total = np.zeros((len(rows.x), spectra.shape[1]), dtype=complex)
    for k in range(terms):
        total += np.fft.rfft(tally(nearest, size, offset**k), length) * spectra[k]
    laid = np.fft.irfft(total, length)[:, reach : reach + size]
    return grid, ratio(np.maximum(laid, 0.0), rows.n[:, None] * bandwidth)


def density(
    opinions: ArrayLike, range: Range, bandwidth: float, step: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian kernel density of opinions on a grid over the range.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    bandwidth : float
        Standard deviation of the kernel, in units of opinion.
    step : float, optional
        Distance between grid points, at most the bandwidth; rounded so that both ends are grid points. Default a
        tenth of the bandwidth.

    Returns
    -------
    grid : ndarray (G,)
        Points from low to high.
    density : ndarray (..., G)
        Share of agents per unit of opinion; differs from the direct sum over agents by at most 1e-10 of a kernel's
        peak. NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    The part of a kernel beyond the ends of the range is cut off, so the density integrates to less than 1 if opinions
    lie near an end.
    """
    rows = Rows.of(opinions, range)
    positive(bandwidth, "bandwidth")
    grid, values = _density(rows, bandwidth, bandwidth / 10 if step is None else positive(step, "step"))
    return grid, values.reshape(*rows.shape, len(grid))


@part("metric", name="fragmentation")
def fragmentation(
    opinions: ArrayLike,
    range: Range,
    bandwidth: float = 0.1,
    step: float = 0.01,
    half_range: float | None = 3.5,
    ddof: int = 1,
) -> Measured:
    r"""Standard deviation times the total variation of the density.

    :math:`\frac{s}{4M} \sum_g |\hat f(g + \Delta) - \hat f(g)|`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale, mapped to -M and M.
    bandwidth, step : float
        Standard deviation of the Gaussian kernel and distance of grid points, in units of the mapped scale.
    half_range : float, optional
        M. The default is that of the article: opinions on any range are scaled to -3.5 to 3.5. With None opinions
        keep their units and M is half their range, as in the authors' program where M varies.
    ddof : int
        Correction of the standard deviation s.

    Returns
    -------
    float or ndarray (...)
        0 for consensus; about 1 for two equal poles at the ends with the default bandwidth.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: standard deviation times total variation of the density
    - Formula: ``sd / (4M) sum abs(f(g + step) - f(g)), f a Gaussian density on x scaled to M = 3.5``
    - Values: 0 to about 1
    - Source: Lorenz et al. 2021
    - Pitfall: for a group at an end of the range, half of the kernel is cut off and only one flank counts; depends on
      the bandwidth relative to the range; integer ratings always look fragmented

    Lorenz, Neumann and Schröder 2021, with the settings of their program. For a group at an end of the range, only half
    of its kernel lies in the range, and only one flank counts.
    """
    check_ddof(ddof)
    own = Rows.of(opinions, range)
    scale = 1.0 if half_range is None else positive(half_range, "half_range") / (own.width / 2)
    half = own.width / 2 * scale
    rows = Rows(np.clip((own.x - own.middle) * scale, -half, half), own.shape, -half, half)
    positive(bandwidth, "bandwidth")
    positive(step, "step")
    parts = (_density(part, bandwidth, step)[1] for part in rows.batches(round(2 * half / step)))
    variation = np.concatenate([np.abs(np.diff(values, axis=1)).sum(axis=1) for values in parts])
    return rows.back(rows.sd(ddof) / (4 * half) * variation)


def valley_labels(opinions: ArrayLike, range: Range, bandwidth: float = 0.05, depth: float = 0.05) -> np.ndarray:
    """Group of each agent: opinions on either side of a valley of the density are in different groups.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range; NaN if the agent has none.
    range : (float, float)
        Ends of the opinion scale.
    bandwidth : float
        Standard deviation of the Gaussian kernel, as a share of the range.
    depth : float
        A valley counts when the density rises on both sides of it by more than this share of its highest
        value. At 0, rounding and single agents make valleys.

    Returns
    -------
    ndarray of int64 (..., N)
        Groups 0, 1, ... from low to high opinions; -1 where there is no opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    Based on the grouping by density of Bramson et al. 2016, doi 10.1080/0022250X.2016.1147443, which counts every local
    minimum.
    """
    rows = Rows.of(opinions, range)
    if not 0 < depth < 1:
        raise MeasurementError(f"depth must be between 0 and 1; got {depth!r}")
    h = positive(bandwidth, "bandwidth") * rows.width
    labels = [_valley_labels(part, h, depth) for part in rows.batches(round(10 * rows.width / h))]
    return np.concatenate(labels).reshape(*rows.shape, -1)


def _valley_labels(rows: Rows, h: float, depth: float) -> np.ndarray:
    """Group of each agent, (R, N), by valleys of a density of bandwidth `h`."""
    grid, values = _density(rows, h, h / 10)
    step = rows.width / (len(grid) - 1)
    beyond = np.cumsum(_valleys(np.nan_to_num(values), depth), axis=1)
    index = np.where(rows.present, np.rint((rows.x - rows.low) / step), 0).astype(np.int64)
    labels = np.where(rows.present, np.take_along_axis(beyond, index, axis=1), -1)
    # No agent need lie between two valleys: kernels of both sides can make a hill. Groups with members are numbered.
    members = tally(labels, int(beyond.max()) + 1) > 0
    rank = np.cumsum(members, axis=1) - 1
    return np.where(rows.present, np.take_along_axis(rank, np.maximum(labels, 0), axis=1), -1)


def _valleys(values: np.ndarray, depth: float) -> np.ndarray:
    """Mark the floor of each valley deeper than `depth` times the highest density of its row, (R, G)."""
    floors = np.zeros(values.shape, dtype=np.int64)
    bar = depth * values.max(axis=1)
    row = np.arange(len(values))
    falling = np.zeros(len(values), dtype=bool)
    extreme = values[:, 0].copy()
    floor = np.zeros(len(values), dtype=np.int64)
    for g in range(1, values.shape[1]):
        value = values[:, g]
        lower = falling & (value < extreme)
        floor[lower] = g
        extreme = np.where(lower | (~falling & (value > extreme)), value, extreme)
        rises, falls = falling & (value > extreme + bar), ~falling & (value < extreme - bar)
        floors[row[rises], floor[rises]] = 1
        floor[falls] = g
        extreme = np.where(rises | falls, value, extreme)
        falling = (falling & ~rises) | falls
    return floors
