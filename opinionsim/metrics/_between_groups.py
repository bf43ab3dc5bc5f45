"""Senses of polarization that compare groups: number, distinctness, divergence, consensus and equality of size."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.metrics._arrays import Measured, Range, Rows, ratio, tally
from opinionsim.metrics._kernel_density import valley_labels
from opinionsim.registry import part


def numbered(groups: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Number labels of any kind from 0 in rows (R, N); -1 stands for NaN or None."""
    labels = np.asarray(groups)
    # Labels are numbered before they are repeated for every row.
    known = np.array([label is not None and label == label for label in labels.ravel()], dtype=bool)
    numbers = np.full(labels.size, -1, dtype=np.int64)
    _, numbers[known] = np.unique(labels.ravel()[known].astype(str), return_inverse=True)
    try:
        return np.broadcast_to(numbers.reshape(labels.shape), shape).reshape(-1, shape[-1])
    except ValueError:
        raise MeasurementError(
            f"groups must name one group per agent, shape {shape[-1:]} or {shape}; got {labels.shape}"
        ) from None


class _Groups:
    """Groups of agents in each row, and their sizes; agents without an opinion are in no group."""

    def __init__(self, opinions: ArrayLike, limits: Range, groups: ArrayLike | None) -> None:
        self.rows = rows = Rows.of(opinions, limits)
        if groups is None:
            labels = valley_labels(rows.x, (rows.low, rows.high))
        else:
            labels = numbered(groups, (*rows.shape, rows.x.shape[1]))
        self.labels = np.where(rows.present, labels, -1)
        self.most = int(self.labels.max(initial=0)) + 1
        self.sizes = tally(self.labels, self.most)
        self.count = np.count_nonzero(self.sizes, axis=1)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of a value over the members of each group, (R, G); NaN for a group without members."""
        return ratio(tally(self.labels, self.most, values), self.sizes)

    def over_pairs(self, values: np.ndarray) -> Measured:
        """Mean of pair values (R, G, G) over all pairs of different groups; NaN with fewer than two groups."""
        pairs = np.where(~np.eye(self.most, dtype=bool), np.nan_to_num(values), 0.0).sum(axis=(1, 2))
        return self.rows.back(ratio(pairs, self.count * (self.count - 1)))


@part("metric", name="group_count")
def group_count(opinions: ArrayLike, range: Range, groups: ArrayLike | None = None) -> Measured:
    """Number of groups that have members with an opinion.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; NaN or None where it has none. Default the groups of :func:`valley_labels`, which
        valleys in the density of opinions separate.

    Returns
    -------
    float or ndarray (...)
        NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the range or groups are not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: groups (community fracturing)
    - Formula: ``1 + number of valleys in the density, or groups named``
    - Values: 1, 2, ...
    - Source: Bramson et al. 2016
    - Pitfall: depends on the bandwidth and on the depth at which a valley counts (`valley_labels`)

    After sense 5, community fracturing, of Bramson et al. 2016.
    """
    found = _Groups(opinions, range, groups)
    return found.rows.back(np.where(found.rows.n > 0, found.count, np.nan))


@part("metric", name="distinctness")
def distinctness(opinions: ArrayLike, range: Range, groups: ArrayLike | None = None, bins: int = 5) -> Measured:
    r"""One minus the overlap of two groups' histograms.

    :math:`1 - \sum_b \min(p_{gb}, p_{hb})`, averaged over pairs of groups.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; default as in :func:`group_count`.
    bins : int
        Equal-width bins b of the histograms.

    Returns
    -------
    float or ndarray (...)
        From 0, equal histograms, to 1, no bin shared; every pair counts the same. NaN with fewer than two groups.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: how little groups overlap
    - Formula: ``1 - sum over bins of min(p_g, p_h), mean over pairs of groups``
    - Values: 0 to 1
    - Source: Bramson et al. 2016
    - Pitfall: near 1 by construction if the groups come from the opinions; our normalisation

    After sense 6 of Bramson et al. 2016.
    """
    whole_number("bins", bins, 2, MeasurementError)
    found = _Groups(opinions, range, groups)
    joint = np.where(found.labels >= 0, found.labels * bins + found.rows.bin(bins), -1)
    shares = ratio(tally(joint, found.most * bins).reshape(-1, found.most, bins), found.sizes[:, :, None])
    overlap = np.minimum(shares[:, :, None, :], shares[:, None, :, :]).sum(axis=3)
    return found.over_pairs(1 - overlap)


@part("metric", name="group_divergence")
def group_divergence(opinions: ArrayLike, range: Range, groups: ArrayLike | None = None) -> Measured:
    r"""Distance of two groups' means over the range.

    :math:`|\bar x_g - \bar x_h| / (b - a)`, averaged over pairs of groups.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends a, b of the opinion scale.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; default as in :func:`group_count`.

    Returns
    -------
    float or ndarray (...)
        From 0 to 1; every pair counts the same. NaN with fewer than two groups.

    Raises
    ------
    MeasurementError
        If the range or groups are not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: distance of group means
    - Formula: ``abs(mean_g - mean_h) / (b - a), mean over pairs of groups``
    - Values: 0 to 1
    - Source: Bramson et al. 2016
    - Pitfall: undefined for one group; our normalisation

    After sense 7 of Bramson et al. 2016.
    """
    found = _Groups(opinions, range, groups)
    means = found.means(found.rows.x)
    return found.over_pairs(np.abs(means[:, :, None] - means[:, None, :]) / found.rows.width)


@part("metric", name="group_consensus")
def group_consensus(opinions: ArrayLike, range: Range, groups: ArrayLike | None = None) -> Measured:
    """One minus the dispersion within a group, averaged over groups.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; default as in :func:`group_count`.

    Returns
    -------
    float or ndarray (...)
        1 - 2 (mean absolute deviation from the group's mean) / range: from 0 to 1, no spread within any group. Each
        group counts the same. NaN when no agent has both an opinion and a group.

    Raises
    ------
    MeasurementError
        If the range or groups are not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: unity within groups
    - Formula: ``1 - 2 mean abs(x - mean_g) / (b - a), mean over groups``
    - Values: 0 to 1
    - Source: Bramson et al. 2016
    - Pitfall: large by construction if the groups come from the opinions; our normalisation

    After sense 8 of Bramson et al. 2016.
    """
    found = _Groups(opinions, range, groups)
    own = np.take_along_axis(found.means(found.rows.x), np.maximum(found.labels, 0), axis=1)
    within = 2 * found.means(np.abs(found.rows.x - own)) / found.rows.width
    return found.rows.back(ratio(np.where(found.sizes > 0, 1 - within, 0.0).sum(axis=1), found.count))


@part("metric", name="size_parity")
def size_parity(opinions: ArrayLike, range: Range, groups: ArrayLike | None = None) -> Measured:
    r"""Evenness of group sizes.

    :math:`-\sum_g s_g \ln s_g / \ln G`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; default as in :func:`group_count`.

    Returns
    -------
    float or ndarray (...)
        From near 0, one group with nearly all agents, to 1, groups of equal size. NaN with fewer than two groups.

    Raises
    ------
    MeasurementError
        If the range or groups are not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: evenness of group sizes
    - Formula: ``-sum s ln s / ln G, shares s of G groups``
    - Values: 0 to 1
    - Source: Bramson et al. 2016
    - Pitfall: undefined for one group; our normalisation

    After sense 9 of Bramson et al. 2016.
    """
    found = _Groups(opinions, range, groups)
    share = ratio(found.sizes, found.sizes.sum(axis=1)[:, None])
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=1)
    return found.rows.back(ratio(entropy, np.log(np.maximum(found.count, 1))))
