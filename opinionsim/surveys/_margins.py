"""Personas drawn from a joint distribution that is fitted to given margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opinionsim.errors import SurveyError
from opinionsim.foundation.documents import is_one_line
from opinionsim.personas import Persona, PersonaSet

#: Largest difference between a margin and its fit.
_TOLERANCE = 1e-9
#: Largest difference between sums of margins, which are often rounded.
_ROUNDING = 1e-6
_MAX_ROUNDS = 2_000
_MAX_CELLS = 100_000

Margins = Mapping[str, Mapping[str, float]]


def fit_margins(margins: Margins, seed: Sequence[Mapping[str, Any]] | None = None) -> np.ndarray:
    """Find the joint distribution with given margins that is nearest to a seed table.

    The function uses iterative proportional fitting: it scales the table to each margin in turn until all margins match
    (Deming and Stephan 1940). The result has the odds ratios of the seed.

    Parameters
    ----------
    margins : mapping of str to mapping of str to float
        The values of each attribute with their shares or numbers of people; all sums must agree within 1e-6.
    seed : sequence of mapping, optional
        Rows of a table of the joint distribution. Each gives a value of every attribute and a ``share`` (or a number of
        people); combinations without a row have the share 0. By default, attributes are independent.

    Returns
    -------
    ndarray of float
        Probabilities that sum to 1, with one axis per attribute in the order of the margins. They reproduce each margin
        to 1e-9.

    Raises
    ------
    SurveyError
        If there is no margin; a share is negative or not finite, or all shares are 0; sums differ; the seed gives
        unknown attributes or values, or a cell twice; the table has more than 100,000 cells; or no table with the zeros
        of the seed has these margins.
    """
    names = list(margins)
    targets = _targets(margins)
    shape = tuple(map(len, targets))
    if np.prod(shape, dtype=float) > _MAX_CELLS:
        raise SurveyError(f"margins give {np.prod(shape, dtype=float):.3g} cells; the maximum is {_MAX_CELLS}")
    joint = np.ones(shape) if seed is None else _table(margins, seed)
    for _ in range(_MAX_ROUNDS):
        for axis, target in enumerate(targets):
            now = _margin(joint, axis)
            factor = np.divide(target, now, out=np.zeros_like(target), where=now > 0)
            joint = joint * np.expand_dims(factor, tuple(i for i in range(joint.ndim) if i != axis))
        off = [float(np.abs(_margin(joint, axis) - target).max()) for axis, target in enumerate(targets)]
        if max(off) <= _TOLERANCE / 10:
            fitted: np.ndarray = joint / joint.sum()
            return fitted
    worst = int(np.argmax(off))
    raise SurveyError(
        f"margins: no table with the zeros of the seed has these margins; {names[worst]!r} is off by {off[worst]:.2g} "
        f"after {_MAX_ROUNDS} rounds"
    )


def _margin(joint: np.ndarray, axis: int) -> np.ndarray:
    others = tuple(i for i in range(joint.ndim) if i != axis)
    found: np.ndarray = joint.sum(axis=others)
    return found


def _targets(margins: Margins) -> list[np.ndarray]:
    """The margins as arrays that sum to 1."""
    if not margins:
        raise SurveyError("margins must name at least one attribute with its values and shares")
    sums = {}
    for name, shares in margins.items():
        if not name.strip() or not is_one_line(name):
            raise SurveyError(f"margins: the name of an attribute must be one line and not blank; got {name!r}")
        if not isinstance(shares, Mapping) or not shares:
            raise SurveyError(f"margins.{name}: must give at least one value with its share; got {shares!r}")
        for value, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < np.inf:
                raise SurveyError(f"margins.{name}.{value}: a share must be a number of at least 0; got {share!r}")
            if not is_one_line(str(value)):
                raise SurveyError(f"margins.{name}: a value must be one line; got {value!r}")
        sums[name] = float(sum(shares.values()))
        if not sums[name]:
            raise SurveyError(f"margins.{name}: all shares are 0")
    first = next(iter(sums))
    for name, total in sums.items():
        if abs(total - sums[first]) > _ROUNDING * sums[first]:
            raise SurveyError(f"margins disagree: {first!r} sums to {sums[first]:g}, and {name!r} to {total:g}")
    return [np.array([*shares.values()], dtype=float) / sums[name] for name, shares in margins.items()]


def _table(margins: Margins, seed: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """The seed table as an array."""
    places = [{str(value): i for i, value in enumerate(shares)} for shares in margins.values()]
    table = np.zeros([len(each) for each in places])
    filled: set[tuple[int, ...]] = set()
    for number, row in enumerate(seed):
        if set(row) != {*margins, "share"}:
            raise SurveyError(f"seed[{number}]: must give {', '.join(margins)} and share; got {', '.join(row)}")
        cell = []
        for name, known in zip(margins, places, strict=True):
            if str(row[name]) not in known:
                raise SurveyError(f"seed[{number}].{name}: unknown value {row[name]!r}; valid: {', '.join(known)}")
            cell.append(known[str(row[name])])
        share = row["share"]
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < np.inf:
            raise SurveyError(f"seed[{number}].share: must be a number of at least 0; got {share!r}")
        if tuple(cell) in filled:
            raise SurveyError(f"seed[{number}]: repeats the values of an earlier row")
        filled.add(tuple(cell))
        table[tuple(cell)] = share
    return table


def from_margins(
    margins: Margins,
    size: int,
    rng: np.random.Generator,
    seed: Sequence[Mapping[str, Any]] | None = None,
) -> PersonaSet:
    """Draw personas with attributes from given margins.

    Parameters
    ----------
    margins, seed
        As for :func:`fit_margins`.
    size : int
        Number of personas, >= 1.
    rng : numpy.random.Generator
        Random generator.

    Returns
    -------
    PersonaSet
        Independent draws from the joint distribution, named ``Person 1`` and so on, with the attributes of the margins
        in order.

    Raises
    ------
    SurveyError
        If the size is below 1, or as for :func:`fit_margins`.
    """
    if size < 1:
        raise SurveyError(f"size must be at least 1; got {size}")
    joint = fit_margins(margins, seed)
    cells = np.unravel_index(rng.choice(joint.size, size, p=joint.ravel()), joint.shape)
    return _personas(margins, np.transpose(cells))


def with_each_value(margins: Margins, seed: Sequence[Mapping[str, Any]] | None = None) -> PersonaSet:
    """Personas that cover each value with a share above 0; parameters and errors as for :func:`fit_margins`."""
    fit_margins(margins, seed)
    positive = [np.flatnonzero(target) for target in _targets(margins)]
    longest = max(map(len, positive))
    return _personas(margins, np.stack([np.resize(values, longest) for values in positive], axis=1))


def _personas(margins: Margins, cells: np.ndarray) -> PersonaSet:
    """The persona of each cell, numbered; cells have shape (size, number of attributes)."""
    levels = [list(map(str, shares)) for shares in margins.values()]
    found = []
    for number, cell in enumerate(cells.tolist(), start=1):
        values = (level[place] for level, place in zip(levels, cell, strict=True))
        found.append(Persona(f"Person {number}", attributes=dict(zip(margins, values, strict=True))))
    return PersonaSet("margins", tuple(found))
