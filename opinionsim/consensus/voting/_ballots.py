"""Ballots as arrays: checks, and division into portions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError

#: Pairs of candidates, over all elections of a portion, that are held at a time: an array of them fits into a cache.
_PAIRS = 1_000_000
#: What is wrong with numbers that are no ranks.
_RANKS = (
    "ranks must begin at 1 (or 0) for the best, be equal for ties and have no gaps, such as 1, 2, 2, 3 or 1, 2, 2, 4. "
    "For ratings, where higher is better, set scores=True"
)
#: Differences that count as rounding, as shares of the largest value of an election.
_ROUNDING = 1e-9


def dense_ranks(values: np.ndarray, rounding: float = _ROUNDING) -> np.ndarray:
    """Ranks along the last axis, int32 of the same shape: 0 for the lowest value, equal for ties, without gaps.

    Neighbours in order are tied if they differ by at most `rounding`, a share of the largest absolute value.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    size = np.abs(ordered[..., [0, -1]]).max(axis=-1, keepdims=True)
    ranks, found = np.zeros(values.shape, dtype=np.int32), np.zeros(values.shape, dtype=np.int32)
    np.cumsum(np.diff(ordered, axis=-1) > rounding * size, axis=-1, out=ranks[..., 1:])
    np.put_along_axis(found, order, ranks, axis=-1)
    return found


@dataclass(frozen=True)
class Portion:
    """Some elections with the same number of candidates.

    Attributes
    ----------
    values : ndarray (voters, candidates, elections)
        Ranks or scores. Elections are the last axis, so operations on pairs of candidates use contiguous memory.
    scores : bool
        Whether the values are scores (higher is better) instead of ranks.
    present : ndarray of bool (voters, elections)
        Which ballots are not missing.
    """

    values: np.ndarray
    scores: bool
    present: np.ndarray

    @cached_property
    def n(self) -> np.ndarray:
        """Number of ballots of each election, (elections,)."""
        return np.asarray(np.count_nonzero(self.present, axis=0))

    @cached_property
    def places(self) -> np.ndarray:
        """Ballots as values (lower is better), (voters, candidates, elections); 0 in missing ballots."""
        known = np.where(self.present[:, None], self.values, 0.0)
        return -known if self.scores else known.astype(np.min_scalar_type(self.values.shape[1]))

    @cached_property
    def wins(self) -> np.ndarray:
        """Number of ballots that place the first candidate above the second, (candidates, candidates, elections)."""
        voters, candidates, elections = self.values.shape
        found = np.zeros((candidates, candidates, elections), np.min_scalar_type(voters))
        for ballot in self.places:
            found += (ballot[:, None] < ballot[None]).view(np.uint8)
        return found

    @cached_property
    def points(self) -> np.ndarray:
        """Borda points of each candidate, (candidates, elections): 1 per candidate below it, 1/2 per tied one."""
        above, below = (self.wins.sum(axis=axis, dtype=np.int64) for axis in (1, 0))
        return np.asarray((above - below + self.n * (self.values.shape[1] - 1)) / 2)

    @cached_property
    def tops(self) -> np.ndarray:
        """First places of each candidate, (candidates, elections); ties on a ballot share its first place."""
        found = np.zeros(self.values.shape[1:])
        for ballot, present in zip(self.places, self.present, strict=True):
            first = ballot == ballot.min(axis=0)
            found += np.where(present, first / first.sum(axis=0), 0.0)
        return found


def read_ballots(ballots: ArrayLike, scores: bool) -> np.ndarray:
    """Ballots as floats (elections, voters, candidates), checked.

    Raises
    ------
    MeasurementError
        As :func:`opinionsim.consensus.voting.elect` says.
    """
    try:
        values: np.ndarray = np.ma.filled(np.ma.asarray(ballots, dtype=float), np.nan)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim not in (2, 3) or values.shape[-1] < 2 or not values.size:
        raise MeasurementError(
            "ballots must be an array (voters, candidates) or (elections, voters, candidates) with at least one voter "
            f"and two candidates, and NaN for missing ballots; got the shape {np.shape(values)}"
        )
    single, values = values.ndim == 2, values.reshape(-1, *values.shape[-2:])
    for first in range(0, len(values), step := max(1, _PAIRS // values[0].size)):
        part = values[first : first + step]
        missing = np.isnan(part).all(axis=2)
        problems = {
            "the election has no ballot, but needs at least one": missing & missing.all(axis=1, keepdims=True),
            "a ballot needs a value for each candidate, or NaN for all": np.isnan(part).any(axis=2) & ~missing,
            "values must be finite": np.isinf(part).any(axis=2),
        }
        if not scores:
            problems[_RANKS] = ~missing & ~_are_ranks(part)
        for problem, bad in problems.items():
            if bad.any():
                election, voter = (int(each) for each in np.argwhere(bad)[0])
                place = f"ballot {voter}" if single else f"election {first + election}, ballot {voter}"
                raise MeasurementError(f"{place} is {np.array2string(part[election, voter], threshold=8)}: {problem}")
    return values


def _are_ranks(ballots: np.ndarray) -> np.ndarray:
    """Whether each ballot (..., candidates) holds ranks from 0 or 1, of which each is the next or its position."""
    ordered = np.sort(ballots, axis=-1)
    best, next_, before = ordered[..., 0], ordered[..., 1:], ordered[..., :-1]
    position = best[..., None] + np.arange(1, ballots.shape[-1])
    follows = (next_ == before) | (next_ == before + 1) | (next_ == position)
    return np.asarray(((best == 0) | (best == 1)) & follows.all(axis=-1))


def portions(values: np.ndarray, scores: bool) -> Iterator[Portion]:
    """Checked ballots (elections, voters, candidates) in portions, in order."""
    step = max(1, _PAIRS // values.shape[2] ** 2)
    for first in range(0, len(values), step):
        part = np.ascontiguousarray(values[first : first + step].transpose(1, 2, 0))
        yield Portion(part, scores, ~np.isnan(part[:, 0]))
