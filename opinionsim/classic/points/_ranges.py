"""Values of an axis of a sweep: lists, arrays, ranges as text, and evenly or logarithmically spaced numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import canonical_json

#: Most values of one axis.
_MOST_VALUES = 1_000_000
#: Part of a step by which a range may miss its end and still include it.
_NEAR = Decimal("1e-9")
_WHOLE = re.compile(r"[-+]?\d+")
_FORMS = (
    "a list of at least one value, a range START:STOP:STEP that includes its ends, as in 0.05:0.5:0.05, or "
    "{from: 10, to: 10000, number: 7, scale: log}"
)


def values_of(name: str, given: Any, *, whole: bool = False) -> list[Any]:
    """Read the values of an axis.

    Parameters
    ----------
    name : str
        Name of the axis, for errors.
    given : list, tuple, ndarray, str or mapping
        Values; or a range as text, ``START:STOP:STEP``, with exact decimal numbers (0.15, not 0.15000000000000002),
        which includes STOP if a step reaches it; or a mapping with ``from``, ``to``, ``number`` and ``scale``,
        ``linear`` (default) or ``log``.
    whole : bool
        Whether the axis takes whole numbers. If so, spaced numbers are rounded and duplicates dropped.

    Returns
    -------
    list
        At least one value, all distinct, in the given order; numpy numbers become Python numbers.

    Raises
    ------
    SpecError
        If there is no value, a value repeats, or a range does not end or has more than 1,000,000 values.
    """
    if isinstance(given, str):
        return _range(name, given)
    if isinstance(given, Mapping):
        return _spaced(name, given, whole)
    if not isinstance(given, (list, tuple, np.ndarray)) or not len(given):
        raise SpecError(f"{name} must be {_FORMS}; got {given!r:.60}")
    if len(given) > _MOST_VALUES:
        raise SpecError(f"{name} has {len(given)} values; at most {_MOST_VALUES} are possible")
    values = [value.item() if isinstance(value, np.generic) else value for value in given]
    seen: set[str] = set()
    for value in values:
        try:
            spelled = canonical_json(value.tolist() if isinstance(value, np.ndarray) else value)
        except (TypeError, ValueError):
            # An object, such as a network, is like none but itself.
            spelled = f"object {id(value)}"
        if spelled in seen:
            raise SpecError(f"{name} repeats a value; for repeated runs, set replicates; got {given!r:.60}")
        seen.add(spelled)
    return values


def _range(name: str, text: str) -> list[Any]:
    parts = [part.strip() for part in text.split(":")]
    try:
        start, stop, step = (Decimal(part) for part in parts)
    except (ValueError, InvalidOperation):
        raise SpecError(f"{name} must be {_FORMS}; got {text!r:.60}") from None
    if not all(np.isfinite(float(each)) for each in (start, stop, step)):
        raise SpecError(f"the range {text} does not end; start, stop and step must be finite numbers", name)
    if step == 0 or (stop - start) * step < 0:
        way = "be 0" if step == 0 else "lead away from the end"
        raise SpecError(f"the range {text} does not end; its step must not {way}", name)
    with localcontext() as context:
        context.prec = 60
        steps = (stop - start) / step + _NEAR
        if steps >= _MOST_VALUES:
            raise SpecError(f"the range {text} has more than {_MOST_VALUES} values", name)
        values = [start + place * step for place in range(int(steps) + 1)]
    if abs(values[-1] - stop) <= _NEAR * abs(step):
        values[-1] = stop
    return [int(value) if all(map(_WHOLE.fullmatch, parts)) else float(value) for value in values]


def _spaced(name: str, given: Mapping[str, Any], whole: bool) -> list[Any]:
    unknown = [str(key) for key in given if key not in ("from", "to", "number", "scale")]
    missing = [key for key in ("from", "to", "number") if key not in given]
    if unknown or missing:
        wrong = f"unknown {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        raise SpecError(f"{name} must be {_FORMS}; {wrong}")
    low, high, number, scale = given["from"], given["to"], given["number"], given.get("scale", "linear")
    if any(isinstance(end, bool) or not isinstance(end, (int, float)) or not np.isfinite(end) for end in (low, high)):
        raise SpecError(f"from and to must be finite numbers; got {low!r:.30} and {high!r:.30}", name)
    if isinstance(number, bool) or not isinstance(number, int) or not 2 <= number <= _MOST_VALUES:
        raise SpecError(f"number must be a whole number from 2 to {_MOST_VALUES}; got {number!r:.30}", name)
    if scale not in ("linear", "log"):
        raise SpecError(f"scale must be 'linear' or 'log'; got {scale!r:.30}", name)
    if low == high or (scale == "log" and min(low, high) <= 0):
        what = "be above 0 on a logarithmic scale" if low != high else "differ"
        raise SpecError(f"from and to must {what}; got {low} and {high}", name)
    found = np.geomspace(low, high, number) if scale == "log" else np.linspace(low, high, number)
    if whole:
        return list(dict.fromkeys(round(value) for value in found.tolist()))
    # Decimal numbers that read well, far finer than the spacing.
    return list(dict.fromkeys(float(f"{value:.12g}") for value in found.tolist()))


def moments_of(given: Any, steps: int) -> tuple[int, ...]:
    """Read the steps after which measures are computed in addition to the end, ascending.

    Parameters
    ----------
    given : sequence of int, range as text, or mapping
        As for :func:`values_of`; or ``{log: K}`` for at most K steps, logarithmically spaced from 1 to the limit.
    steps : int
        The limit.

    Raises
    ------
    SpecError
        If a step is not a whole number from 0 to the limit.
    """
    if isinstance(given, Mapping) and set(given) == {"log"}:
        number = given["log"]
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _MOST_VALUES:
            raise SpecError(f"log must be a whole number from 1 to {_MOST_VALUES}; got {number!r:.30}", "at")
        if not steps:
            return ()
        found = [steps] if number == 1 else np.rint(np.geomspace(1, steps, number)).astype(int).tolist()
    elif isinstance(given, (list, tuple, np.ndarray)) and not len(given):
        return ()
    else:
        found = values_of("at", given, whole=True)
    wrong = [each for each in found if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each <= steps]
    if wrong:
        raise SpecError(f"must be whole numbers of steps from 0 to the limit of {steps}; got {wrong[0]!r:.30}", "at")
    return tuple(sorted(set(found)))
