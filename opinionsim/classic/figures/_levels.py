"""Levels of a swept parameter along an axis: their places, edges and names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from opinionsim import metrics
from opinionsim.drawing import pt
from opinionsim.errors import SpecError

Scale = Literal["linear", "log"]

#: Names of parameters and measures that their column does not tell.
_NAMES = {"n": "number of agents", "time": "time (steps)", "stopped": "share of runs that stopped"}
#: Characters of a level, most levels that are no numbers at an axis, and inches of a character and a line of them.
_LONGEST, _MOST_NAMED, _CHARACTER, _LINE = 24, 11, 0.068, 0.16
#: Decades beyond which a logarithmic axis is ticked at powers of ten alone.
_DECADES = 2.5


def parameter_name(column: str) -> str:
    """Name of a parameter or measure in words: its column, with its network or model."""
    name, _, step = column.partition("@")
    words = _NAMES.get(name) or (
        name.replace(".", " ").replace("_", " ") if "network" in name else metrics.axis_name(name)
    )
    return f"{words} at step {step}" if step else words


def number_text(value: float, digits: int = 4) -> str:
    """A number as an axis shows it, without formulas."""
    text = f"{value:,.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:.{digits}g}"
    mantissa, _, power = text.partition("e")
    return (f"{mantissa}e{int(power)}" if power else mantissa).replace("-", "\N{MINUS SIGN}")


def level_text(level: Any, digits: int = 4) -> str:
    """Name of a level, shortened if it is long."""
    if _is_number(level):
        return number_text(level, digits)
    text = str(level)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _is_number(level: Any) -> bool:
    return isinstance(level, int | float | np.number) and not isinstance(level, bool) and math.isfinite(level)


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of a parameter in the order to show them.

    Attributes
    ----------
    column : str
        The parameter.
    levels : list
        K distinct levels.
    numeric : bool
        Whether all are finite numbers. Numbers are placed at their values, other levels at 0 to K - 1.
    log : bool
        Whether their axis is logarithmic.
    titles : dict of str to str
        Names of levels that are not shown as they are.
    """

    column: str
    levels: list[Any]
    numeric: bool
    log: bool
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def places(self) -> np.ndarray:
        """Places of the levels, (K,)."""
        return np.array(self.levels if self.numeric else range(len(self.levels)), dtype=float)

    @property
    def edges(self) -> np.ndarray:
        """Edges of the places, (K + 1,): halfway to the next level, on a log axis in terms of ratios.

        The outer ends are half the least step away, so that no axis reaches far beyond its levels.
        """
        at = np.log(self.places) if self.log else self.places
        if len(at) == 1:
            ends = at + np.array([-0.5, 0.5]) * (abs(at[0]) if self.numeric and not self.log and at[0] else 1.0)
        else:
            between = (at[1:] + at[:-1]) / 2
            half = np.diff(at).min() / 2
            ends = np.concatenate([[at[0] - half], between, [at[-1] + half]])
        return np.exp(ends) if self.log else ends

    @property
    def texts(self) -> list[str]:
        """Names of the levels, with enough digits to distinguish them."""
        named = [self.titles.get(level, level) if isinstance(level, str) else level for level in self.levels]
        for digits in (4, 7, 17):
            texts = [level_text(level, digits) for level in named]
            if len(set(texts)) == len(texts):
                return texts
        return [f"{text} ({at})" for at, text in enumerate(texts, start=1)]

    def index(self, values: Iterable[Any]) -> list[int]:
        """Position of each value among the levels."""
        at = {level: place for place, level in enumerate(self.levels)}
        return [at[value] for value in values]


def check_scale(scale: Mapping[str, str] | None, known: Iterable[str]) -> dict[str, str]:
    """Check the scales that were requested, by column.

    Raises
    ------
    SpecError
        If a column is not in `known`, or a scale is not "linear" or "log".
    """
    names = list(known)
    if scale is not None and not isinstance(scale, Mapping):
        raise SpecError(f"scale must map columns to 'linear' or 'log', as in {{'n': 'log'}}; got {scale!r}")
    for column, each in (scale or {}).items():
        if column not in names:
            raise SpecError(f"scale: {column!r} is not in the figure; valid: {', '.join(names)}")
        if each not in ("linear", "log"):
            raise SpecError(f"scale of {column} must be 'linear' or 'log'; got {each!r}")
    return dict(scale or {})


def levels_of(
    values: Iterable[Any], column: str, scale: Mapping[str, str], titles: Mapping[str, str] | None = None
) -> Levels:
    """The levels of a column.

    Raises
    ------
    SpecError
        If a logarithmic axis is requested and a level is not a number above 0.
    """
    levels = metrics.order_levels(values)
    numeric, log = all(map(_is_number, levels)), scale.get(column) == "log"
    wrong = [level for level in levels if log and not (numeric and level > 0)]
    if wrong:
        raise SpecError(f"{column} cannot have a logarithmic axis, which takes numbers above 0; it has {wrong[0]!r}")
    return Levels(column, levels, numeric, log, titles or {})


def set_levels(axis: XAxis | YAxis, levels: Levels, ends: tuple[float, float], inches: float) -> None:
    """Scale an axis of a length in inches to the given ends and tick it: at the levels if there is room for all."""
    name, across = axis.axis_name, axis.axis_name == "x"
    axis.axes.set(**{f"{name}scale": "log" if levels.log else "linear", f"{name}lim": ends})
    axis.set_label_text(parameter_name(levels.column), fontsize=pt(9))
    texts, at = levels.texts, levels.places
    if not levels.numeric:
        apart = -(-len(at) // _MOST_NAMED)
        axis.set_ticks(at[::apart], texts[::apart])
        if across and sum(len(text) + 1 for text in texts[::apart]) * _CHARACTER > inches:
            axis.set_tick_params(rotation=35)
            for label in axis.get_ticklabels():
                label.set(ha="right", rotation_mode="anchor")
        return
    low, high = np.log(ends) if levels.log else ends
    spread = np.diff(np.log(at) if levels.log else at) / (high - low) * inches
    widths = np.array([len(text) * _CHARACTER + 0.08 if across else _LINE for text in texts])
    if (spread >= (widths[1:] + widths[:-1]) / 2).all():
        axis.set_ticks(at, texts)
        axis.set_minor_locator(NullLocator())
    elif levels.log:
        tick_log(axis, ends, max(int(inches / (0.5 if across else 0.3)), 2))
    else:
        whole = all(float(level).is_integer() for level in levels.levels)
        most = max(int(inches / (0.45 if across else 0.3)), 2)
        axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 5, 10], integer=whole))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(round(value, 12))))


def tick_log(axis: Any, ends: tuple[float, float], most: int = 9) -> None:
    """Tick a logarithmic axis in plain numbers: powers of ten, and 2 and 5 times them where there are few."""
    decades = float(np.log10(ends[1] / ends[0]))
    subs = (1.0,) if decades > min(_DECADES, most / 3) and decades > 1 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(float(f"{value:.6g}"))))
    axis.set_minor_formatter(NullFormatter())
