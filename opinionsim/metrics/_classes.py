"""Qualitative classes of opinion distributions, and transitions of runs between them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Range, Rows

#: One of :data:`CLASSES`, or "" where no agent has an opinion.
Class: TypeAlias = str

#: The classes of Devia and Giordano 2022, from most to least agreement.
CLASSES: tuple[Class, ...] = ("perfect consensus", "consensus", "polarization", "clustering", "dissensus")

#: Largest spread of a perfect consensus, as a share of the range.
_PERFECT = 1e-3
#: Maximum share of filled bins in a single group that counts as consensus rather than dissensus.
_NARROW = 0.4


def qualitative_class(opinions: ArrayLike, range: Range, bins: int = 5) -> np.ndarray:
    """Class of each distribution by its histogram.

    A bin is filled if it contains at least a share 1/(2 bins) of the opinions, half its share under a uniform
    distribution. Adjacent filled bins form a group.

    - ``perfect consensus``: all opinions within a thousandth of the range;
    - ``consensus``: one group of at most 0.4 of the bins (but never fewer than one bin);
    - ``polarization``: two groups, one centred below and one above the middle of the range;
    - ``dissensus``: one wider group;
    - ``clustering``: anything else, that is, three or more groups, or two groups on one side.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    bins : int
        Equal-width bins, at least 3: k for a scale of k points, about 10 for continuous opinions.

    Returns
    -------
    ndarray of str (...)
        One of :data:`CLASSES`; the empty string where no agent has an opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    The classes are those of Devia and Giordano 2022, doi 10.1038/s41598-022-17348-z. The rule and its thresholds come
    from this package and may differ from theirs.
    """
    rows = Rows.of(opinions, range)
    filled = rows.counts(bins, 3) * (2 * bins) >= np.maximum(rows.n, 1)[:, None]
    begins = filled & ~np.pad(filled, ((0, 0), (1, 0)))[:, :-1]
    ends = filled & ~np.pad(filled, ((0, 0), (0, 1)))[:, 1:]
    groups = begins.sum(axis=1)
    first_begin, first_end = begins.argmax(axis=1), ends.argmax(axis=1)
    last_begin = bins - 1 - begins[:, ::-1].argmax(axis=1)
    last_end = bins - 1 - ends[:, ::-1].argmax(axis=1)
    narrow = filled.sum(axis=1) <= max(1, int(_NARROW * bins))
    opposed = (first_begin + first_end < bins - 1) & (last_begin + last_end > bins - 1)
    chosen = [
        rows.n == 0,
        rows.spread <= _PERFECT * rows.width,
        (groups == 1) & narrow,
        (groups == 2) & opposed,
        groups == 1,
    ]
    names = np.select(chosen, ["", "perfect consensus", "consensus", "polarization", "dissensus"], "clustering")
    return names.reshape(rows.shape)


def class_transitions(before: ArrayLike, after: ArrayLike) -> np.ndarray:
    """Count how many distributions moved from each class to each other class.

    Parameters
    ----------
    before, after : array_like of str (...)
        Classes (:func:`qualitative_class`) of the same runs at two times.

    Returns
    -------
    ndarray of int64 (5, 5)
        Counts in the order of :data:`CLASSES`: the row is the class before, the column the class after. Pairs in
        which a class is empty are left out.

    Raises
    ------
    MeasurementError
        If the shapes differ or a class is unknown.
    """
    first, second = np.asarray(before, dtype=str), np.asarray(after, dtype=str)
    if first.shape != second.shape:
        raise MeasurementError(f"before and after must be classes of the same runs; got {first.shape}, {second.shape}")
    unknown = sorted({*first.ravel().tolist(), *second.ravel().tolist()} - {*CLASSES, ""})
    if unknown:
        raise MeasurementError(f"classes must be of {', '.join(CLASSES)}; got {unknown[0]!r}")
    kept = (first != "") & (second != "")
    counts = np.zeros((len(CLASSES), len(CLASSES)), dtype=np.int64)
    for pair in zip(first[kept].tolist(), second[kept].tolist(), strict=True):
        counts[tuple(map(CLASSES.index, pair))] += 1
    return counts
