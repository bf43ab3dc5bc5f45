"""All scalar metrics by name, for documentation, plots, sweeps and the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.foundation.bibliography import cited
from opinionsim.metrics._arrays import Range, opinion_array
from opinionsim.registry import Catalogue, described, find, is_path, known, name_of

#: Arguments in addition to opinions that mean the same in all metrics.
_NEEDS = ("range", "network", "groups", "initial", "truth")

#: Requested metrics; None for all that can be computed.
_Names = str | Callable[..., Any] | Iterable[str | Callable[..., Any]] | None

#: Packages of extras that a metric needs in addition to its arguments.
_PACKAGES = {"modularity": "igraph"}


@dataclass(frozen=True)
class Metric:
    """One number for a distribution of opinions.

    Attributes
    ----------
    name : str
        Its key in :data:`METRICS` and the name of its function; for a metric that you wrote, its import path.
    function : callable
        Takes opinions (..., N) and keyword arguments, and returns (...). A function with an argument `vectors` takes
        opinions (..., N, D) if that argument is true.
    meaning : str
        What it measures, in one line.
    formula : str
        Its definition. x: opinions, n: number of opinions, c and M: middle and half the width of the range a to b.
    values : str
        Values it can take.
    source, doi : str
        Source of the definition; empty if it is elementary.
    pitfall : str
        Known pitfalls; may be empty.

    Notes
    -----
    The function's docstring contains these texts as items ``- Meaning: ...``, ``- Formula: ...``, ``- Values: ...``,
    ``- Source: ...`` and ``- Pitfall: ...``. A missing item is empty; a missing meaning is the first line of the
    docstring.
    """

    name: str
    function: Callable[..., Any]
    meaning: str
    formula: str
    values: str
    source: str
    doi: str
    pitfall: str

    @classmethod
    def of(cls, name: str, function: Callable[..., Any]) -> Metric:
        """Make a metric from a function and the texts of its docstring."""
        first, _, items = described(function)
        told = {key: said[0] for key, said in items.items()}
        source, _, doi = told.get("Source", "").partition(", doi ")
        doi = doi or next((work.doi for work in cited(source)), "")
        meaning = told.get("Meaning", first)
        formula, values, pitfall = (told.get(key, "") for key in ("Formula", "Values", "Pitfall"))
        return cls(name, function, meaning, formula.strip("`"), values, source, doi, pitfall)

    @property
    def label(self) -> str:
        """Label for an axis: the metric's name and meaning, or only its meaning if that is clear enough."""
        return self.meaning if self.name == "bias" else f"{self.name.replace('_', ' ')} ({self.meaning})"

    @cached_property
    def takes(self) -> Mapping[str, Any]:
        """All arguments except opinions, each with its default or the :mod:`inspect` mark for none."""
        parameters = inspect.signature(self.function).parameters
        return {name: each.default for name, each in parameters.items() if name != "opinions"}

    @property
    def needs(self) -> frozenset[str]:
        """Required arguments among range, network, groups, initial and truth."""
        return frozenset(name for name, default in self.takes.items() if name in _NEEDS and default is inspect._empty)

    @property
    def options(self) -> dict[str, Any]:
        """Options and their defaults."""
        return {name: default for name, default in self.takes.items() if name not in _NEEDS}


#: Every scalar metric by name, in the order of tables; each is loaded when it is asked for.
METRICS: Mapping[str, Metric] = Catalogue("metric", lambda part: Metric.of(part.name, part.target))


def find_metric(named: str | Callable[..., Any]) -> Metric:
    """Find a metric by name, or your own metric by its import path or its marked function.

    Raises
    ------
    MeasurementError
        If there is none.
    """
    name: str = name_of(named)
    if name in METRICS:
        return METRICS[name]
    if not (known("metric", name) or is_path(name)):
        raise MeasurementError(f"unknown metric {name!r}; valid: {', '.join(METRICS)}")
    own = find("metric", name)
    return Metric.of(own.name, own.target)


def _chosen(names: _Names, given: Mapping[str, Any]) -> list[Metric]:
    """The metrics named, or all whose required arguments are given and whose packages are installed."""
    if names is None:
        lacking = {name for name, package in _PACKAGES.items() if find_spec(package) is None}
        return [metric for metric in METRICS.values() if metric.needs <= given.keys() and metric.name not in lacking]
    wanted = [names] if isinstance(names, str) or callable(names) else list(names)
    return [find_metric(name) for name in dict.fromkeys(wanted)]


def arguments(names: _Names, given: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Split common arguments and options into the keyword arguments of each chosen metric.

    Raises
    ------
    MeasurementError
        If a metric is unknown or lacks a required argument, or no metric takes an option.
    """
    chosen = _chosen(names, given)
    metrics = {metric.name for metric in chosen} | set(METRICS)
    own = {name: value for name, value in options.items() if name in metrics}
    shared = {name: value for name, value in options.items() if name not in metrics}
    found = {}
    for metric in chosen:
        lacking = sorted(metric.needs - given.keys() - shared.keys())
        if lacking:
            raise MeasurementError(f"{metric.name} needs {' and '.join(lacking)}")
        mine = own.pop(metric.name, {})
        if not isinstance(mine, Mapping) or not mine.keys() <= metric.options.keys():
            valid = ", ".join(metric.options) or "none"
            raise MeasurementError(f"options of {metric.name} must be a mapping of {valid}; got {mine!r}")
        every = {name: value for name, value in {**given, **shared}.items() if name in metric.takes}
        found[metric.name] = {**every, **mine}
    taken = {name for metric in chosen for name in metric.takes}
    stray = [*own, *(name for name in shared if name not in taken)]
    if stray:
        raise MeasurementError(f"option {stray[0]!r} belongs to none of the metrics {', '.join(found)}")
    return found


def takes_delta(names: Iterable[str]) -> bool:
    """Whether any of the metrics takes a gap between clusters; ``clusters@10`` means ``clusters`` after 10 steps."""
    return any("delta" in METRICS[name].takes for each in names if (name := each.partition("@")[0]) in METRICS)


def compute_metrics(
    opinions: ArrayLike,
    names: _Names = None,
    *,
    range: Range | None = None,
    network: Any = None,
    groups: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    truth: float | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """Compute several metrics of the same opinions.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none.
    names : str, callable, or iterable of them, optional
        Keys of :data:`METRICS`, or import paths or marked functions of metrics that you wrote. By default, all metrics
        whose required arguments are given, except ``modularity`` if the extra ``networks`` is not installed.
    range : (float, float), optional
        Ends of the opinion scale.
    network : Network or tuple of arrays, optional
        Who hears whom.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group, for metrics that compare groups.
    initial : array_like (N,) or (..., N), optional
        Initial opinions.
    truth : float, optional
        The opinion that agrees with the accepted truth.
    **options
        Each option goes to every metric that takes it. To pass options to a single metric, pass a mapping under its
        name, as in ``esteban_ray={"alpha": 1.0}``.

    Returns
    -------
    dict of str to ndarray (...)
        In the order of `names`. The key of your own metric is the name in its mark, or else its import path.

    Raises
    ------
    MeasurementError
        If a metric is unknown or lacks a required argument, no metric takes an option, or the opinions are not valid.
    """
    values = opinion_array(opinions)
    passed = {"range": range, "network": network, "groups": groups, "initial": initial, "truth": truth}
    given = {name: value for name, value in passed.items() if value is not None}
    return {
        name: np.asarray(find_metric(name).function(values.copy(), **keywords))
        for name, keywords in arguments(names, given, options).items()
    }
