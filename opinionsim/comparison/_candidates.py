"""Possible explanations of opinion change: classic models, and baselines without influence among agents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic import ClassicModel, Parameter, find_model, transition
from opinionsim.comparison._filter import Moves
from opinionsim.comparison._grid import Grid, Steps
from opinionsim.comparison._update_arrays import Updates
from opinionsim.errors import SpecError

#: Models that are compared where none are named.
DEFAULT = ("voter", "degroot", "friedkin-johnsen", "deffuant", "jager-amblard", "lorenz")
#: Parameters that are not fitted: the idiosyncratic jump of every candidate does what theta does, and agents have no
#: groups.
_FIXED: Mapping[str, Mapping[str, float]] = {"lorenz": {"theta": 0.0, "credibility": 1.0}}
#: Upper bound of parameters that have none and are in no units of opinion.
_MOST = 20.0
#: Upper bound of distances, in ranges of opinions. Above 1, agents a whole range apart can be on either side.
_BEYOND = 1.01
#: Least distance from an end that is not itself valid, in parts of the interval.
_INSIDE = 1e-3
#: Prior of the rate of errors, and of the share of them that falls on neighbours, as exponents of a beta density.
NOISE_PRIOR = {"error": (1.0, 9.0), "near": (3.0, 1.0)}


class Bounds(NamedTuple):
    """A parameter to fit: its name, its bounds, and whether the model compares distances with it."""

    name: str
    low: float
    high: float
    threshold: bool = False


@dataclass(frozen=True, eq=False)
class Candidate:
    """A possible rule for opinion change when agents read.

    Attributes
    ----------
    name : str
        Its name in tables.
    model : ClassicModel or None
        The model of the effect of reading; None if reading has no effect.
    fixed : mapping
        Parameters of the model with given values, which are not fitted.
    innate : str
        How an opinion moves at every update without influence: ``pull`` towards a point, ``shift`` by a distance,
        ``anchor`` back to the initial opinion in a share of agents, or not at all.
    shuffled : bool
        Whether the candidate assumes that agents read other messages than those they read.
    """

    name: str
    model: ClassicModel | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    innate: str = "pull"
    shuffled: bool = False

    @property
    def influence(self) -> bool:
        """Whether messages change opinions in this candidate."""
        return self.model is not None and not self.shuffled

    @property
    def at_once(self) -> bool:
        """Whether all messages of an update count at once; the candidate then only predicts updates by one message."""
        return self.model is not None and self.model.update is None

    def bounds(self, grid: Grid, noise: bool) -> list[Bounds]:
        """Parameters to fit, including those of misreading if there is `noise` to fit."""
        width = grid.high - grid.low
        found = [_bounds(name, self.declared[name], width) for name in self._free(grid)]
        if self.model is not None:
            found.append(Bounds("stay", 0.0, 1.0))
        found.append(Bounds("jump", 1e-4, 0.5))
        if self.innate == "pull":
            found += [Bounds("pull", 0.0, 1.0), Bounds("towards", grid.low, grid.high)]
        elif self.innate == "shift":
            found.append(Bounds("shift", -width / 2, width / 2))
        elif self.innate == "anchor":
            found += [Bounds("back", 0.0, 1.0), Bounds("anchored", 0.0, 1.0)]
        return found + ([Bounds("error", 1e-3, 0.6), Bounds("near", 0.05, 0.95)] if noise else [])

    @property
    def declared(self) -> Mapping[str, Parameter]:
        """Parameters of its model, by name."""
        return {} if self.model is None else self.model.declared

    def _free(self, grid: Grid) -> list[str]:
        """Parameters of the model that change its step on the grid, each a number that may differ between agents."""
        numbers = [
            name
            for name, each in self.declared.items()
            if each.per_agent and type(each.default) is float and not (each.idle or each.beside)
        ]
        return [name for name in numbers if name not in self.fixed and self._matters(name, grid)]

    def _matters(self, name: str, grid: Grid) -> bool:
        bounds = _bounds(name, self.declared[name], grid.high - grid.low)
        one, other = (
            self._steps({name: bounds.low + part * (bounds.high - bounds.low)}, grid, 1) for part in (0.1, 0.6)
        )
        return one is not None and not all(map(np.array_equal, one, other or one))

    def _steps(self, parameters: Mapping[str, float], grid: Grid, bins: int | None = None) -> Steps | None:
        """The model's steps, for the first `bins` of the start."""
        if self.model is None:
            return None
        return grid.steps(self.model, {**self.fixed, **parameters}, grid.starts[:bins] if self._goes_back else None)

    @cached_property
    def _goes_back(self) -> bool:
        """Whether the next opinion depends on the first one, as the model is set."""
        if self.model is None or "start" not in self.model.needs:
            return False
        low, high = self.model.span(None, self.fixed)
        from_low, from_high = (
            transition(self.model, [low], [high], start=[start], **self.fixed).values for start in (low, high)
        )
        return not np.array_equal(from_low, from_high)

    def rule(self, values: Mapping[str, float], grid: Grid) -> Moves:
        """Effect of reading at given values of the parameters."""
        steps = self._steps({name: values[name] for name in self.declared if name in values}, grid)
        kinds, (pull, towards) = (
            np.ones((1, len(grid))),
            np.array([[values.get("pull", 0.0)], [values.get("towards", 0.0)]]),
        )
        if self._goes_back or self.innate == "anchor":
            kinds = (grid.bins == np.arange(len(grid.starts))[:, None]).astype(float)
        if self.innate == "anchor":
            kinds = np.vstack([values["anchored"] * kinds, np.full(len(grid), 1.0 - values["anchored"])])
            pull, towards = np.append(0.0 * grid.starts + values["back"], 0.0), np.append(grid.starts, 0.0)
        moved = grid.moved(pull[:, None], towards[:, None], values.get("shift", 0.0))
        below, above = (np.array(np.broadcast_to(each, kinds.shape)) for each in moved)
        # A jump comes first, so that both chances may be chosen freely.
        stay = values.get("stay", 0.0) * (1.0 - values["jump"])
        return Moves(steps, stay, values["jump"], below, above, kinds)

    def unfit(self, study: Updates) -> str:
        """Explain why the candidate cannot have produced such updates; empty if it can.

        Raises
        ------
        SpecError
            If a given parameter is not valid on this scale.
        """
        model = self.model
        if model is None:
            return ""
        if model.states == "two" and len(study.points) > 2:
            return f"it has two states, but the scale has {len(study.points)} points"
        if model.states == "traits":
            return "its opinions are traits, not points of a scale"
        if model.ties is not None:
            return "its ties change with opinions, but here the record fixes who read whom"
        if model.carried:
            return "agents carry more than an opinion from update to update"
        if not np.isfinite(model.range).all():
            return "its opinions have no bounds"
        if self.at_once and not study.one_message and np.diff(study.first_read).max(initial=0) > 1:
            return "it reads all messages of an update at once, and {} of {} updates follow one".format(*study.by_one)
        low, high = float(study.points[0]), float(study.points[-1])
        # What is given must be valid; what else is refused is a reason.
        model.arrays(model.with_defaults(self.fixed, (low, high)), 1, (low, high))
        try:
            given = {"start": [low]} if "start" in model.needs else {}
            transition(model, [low], [high], range=(low, high), **given, **self.fixed)
        except SpecError as error:
            return str(error)
        except IndexError:
            return "its agents take several messages at once"
        return ""


def _bounds(name: str, parameter: Parameter, width: float) -> Bounds:
    """Bounds of a parameter of a model, from its declaration."""
    low, high = (float(end) for end in parameter.interval[1:-1].split(","))
    closed = parameter.interval[-1] == "]" or math.isinf(high)
    if math.isinf(high):
        high = _BEYOND * width if parameter.scaled else _MOST
    inside = _INSIDE * (high - low)
    low += inside if parameter.interval[0] == "(" else 0.0
    high -= 0.0 if closed else inside
    return Bounds(name, low, high, bool(parameter.reaches))


#: Candidates in which nobody influences anybody: opinions stay, all shift alike, are drawn to one point, or some agents
#: are drawn back to where they began, each to a point of its own, and others stay.
BASELINES = (
    Candidate("persistence", innate=""),
    Candidate("shift", innate="shift"),
    Candidate("attractor"),
    Candidate("anchored", innate="anchor"),
)


def named(models: Iterable[str] | Mapping[str, Mapping[str, Any]] | None) -> list[Candidate]:
    """Candidates by the names of models.

    Parameters
    ----------
    models : iterable of str, or mapping of str to mapping, optional
        Names of classic models, or names with fixed parameters. Default: :data:`DEFAULT`.

    Raises
    ------
    SpecError
        If a name or parameter is unknown, or a name occurs twice or is not a name.
    """
    given = DEFAULT if models is None else [models] if isinstance(models, str) else models
    names = list(given)
    if unnamed := [each for each in names if not isinstance(each, str)]:
        raise SpecError(
            "models must be names, or the import path of your own model, such as own:Pull; got an object of class "
            f"{type(unnamed[0]).__name__}"
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise SpecError(f"models must be distinct; {repeated[0]!r} is given twice")
    if not names:
        raise SpecError("models must name at least one model; leave it out to use the default models")
    found = []
    for name in names:
        model = find_model(name)
        set_here = given[name] if isinstance(given, Mapping) else {}
        if not isinstance(set_here, Mapping):
            raise SpecError(f"models[{name!r}] must be a mapping of parameters, empty to fit all; got {set_here!r:.60}")
        unknown = sorted(set(set_here) - set(model.declared))
        if unknown:
            raise SpecError(f"{name} has no parameter {unknown[0]!r}; valid: {', '.join(model.declared)}")
        found.append(Candidate(name, model, {**_FIXED.get(name, {}), **set_here}))
    return found
