"""Draw your own curves over a figure."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import SpecError

Curve: TypeAlias = Callable[[np.ndarray], ArrayLike] | tuple[Any, Any]
#: Curves by label, or CSV files of a curve each (:func:`read_theory`).
Theory: TypeAlias = Mapping[str, Curve] | str | list[str]
#: Moments at which a function is evaluated.
_POINTS = 401


def read_theory(path: str | Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Read a curve from a CSV file of two columns of numbers, x and y.

    Parameters
    ----------
    path : str or Path
        A UTF-8 file with commas between the columns. Its first line may name them.

    Returns
    -------
    dict of str to (ndarray, ndarray)
        The curve, x and y (K,), by its label: the name of the second column, or the file name without its suffix.

    Raises
    ------
    SpecError
        If the file cannot be read, a line does not have two finite numbers, or fewer than two lines have them.
    """
    source = Path(path)
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            rows = [(at, row) for at, row in enumerate(csv.reader(file), start=1) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"cannot read the curve {source}: {error}") from error
    label = source.stem
    if rows and len(rows[0][1]) == 2 and not any(_is_number(cell) for cell in rows[0][1]):
        label = rows[0][1][1].strip() or label
        rows = rows[1:]
    for at, row in rows:
        if len(row) != 2 or not all(_is_number(cell) for cell in row):
            raise SpecError(f"{source}, line {at}: must be two numbers, x and y; got {','.join(row)!r:.60}")
    if len(rows) < 2:
        raise SpecError(f"{source}: a curve needs at least two lines of numbers, x and y; it has {len(rows)}")
    x, y = np.array([[float(cell) for cell in row] for _, row in rows]).T
    return {label: (x, y)}


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def of_files(theory: Theory | None) -> Mapping[str, Curve] | None:
    """Curves of CSV files by their labels, which must differ; what is no file unchanged."""
    files = [theory] if isinstance(theory, str) else theory
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        return theory  # type: ignore[return-value]
    found: dict[str, Curve] = {}
    for file in files:
        ((label, curve),) = read_theory(file).items()
        if label in found:
            raise SpecError(f"theory {file}: another file has the same label, {label!r}; rename one")
        found[label] = curve
    return found


def curves(
    theory: Mapping[str, Curve] | None, ends: tuple[float, float], up: tuple[float, float] | None, *, log: bool
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Points of each curve by its label; functions are evaluated between the ends of x, evenly on its axis.

    Raises
    ------
    SpecError
        If `theory` is not a mapping of labels to functions or pairs of arrays, or no point of a curve lies
        between the ends of x, and of y where `up` gives them.
    """
    if theory is None:
        return {}
    form = "theory must map labels to functions of x or pairs of arrays (x, y), as in {'1/x': lambda x: 1 / x}"
    if not isinstance(theory, Mapping):
        raise SpecError(f"{form}; got {type(theory).__name__}")
    found = {}
    for label, curve in theory.items():
        if callable(curve):
            x = np.geomspace(*ends, _POINTS) if log else np.linspace(*ends, _POINTS)
            with np.errstate(all="ignore"):
                y = curve(x)
        elif isinstance(curve, tuple | list) and len(curve) == 2:
            x, y = curve
        else:
            raise SpecError(f"{form}; {label!r} is {type(curve).__name__}")
        try:
            x = np.asarray(x, dtype=float)
            y = np.asarray(y, dtype=float)
            y = np.broadcast_to(y, x.shape) if callable(curve) else y
        except (TypeError, ValueError) as error:
            raise SpecError(f"theory {label!r} must give a number for each x: {error}") from error
        if x.ndim != 1 or x.shape != y.shape:
            raise SpecError(f"theory {label!r}: x and y must be lists of equal length; got {x.shape} and {y.shape}")
        inside = (x >= ends[0]) & (x <= ends[1]) & np.isfinite(y)
        if not (inside if up is None else inside & (y >= up[0]) & (y <= up[1])).any():
            spans = [
                f"{name} from {low:.4g} to {high:.4g}"
                for name, (low, high) in zip("xy", filter(None, (ends, up)), strict=False)
            ]
            raise SpecError(f"theory {label!r} has no point in the figure, which shows {' and '.join(spans)}")
        found[str(label)] = (x, y)
    return found
