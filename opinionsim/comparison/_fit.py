"""Maximum likelihood fits of candidates to a study, starting from nested candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from opinionsim.classic import MODELS
from opinionsim.comparison._candidates import NOISE_PRIOR, Bounds, Candidate
from opinionsim.comparison._filter import draw, predict
from opinionsim.comparison._grid import Grid, misreading
from opinionsim.comparison._kept_fits import KeptFits, Optimum
from opinionsim.comparison._update_arrays import Updates
from opinionsim.errors import SpecError
from opinionsim.foundation.streams import digest

#: Starts that are looked at, and those of them that are followed.
_LOOKED_AT, _FOLLOWED = 16, 2
#: Radii of the trust region, in parts of the bounds: of a search, of a fit from the optimum of another, at the end.
_FAR, NEAR, _END = 0.15, 0.05, 1e-3
#: Nats by which a larger model may fit worse than one nested in it, whose bounds are open.
_ROUNDING = 0.05
#: A refit ends that has gained fewer nats in so many looks: of 40 none was then further than 0.09 nats from where it
#: would have ended, in the mean 0.02. A search from afar goes on, for it may stay as long on a ridge some nats below.
_GAIN, _LOOKS = 0.03, 20
#: Values of a threshold that are looked at, since the likelihood is not smooth in it.
_SCANNED = 41


@dataclass(frozen=True, eq=False)
class Problem:
    """The ratings of a study, with their error model.

    Attributes
    ----------
    study : Updates
        Turns with ratings.
    noise : ndarray (k, k) or None
        Matrix of misclassification, true by read; None to fit its two parameters.
    known : ndarray (G,) or None
        Distribution of opinions before any measurement; None to take it from the study.
    kept : KeptFits
        Cache of fits.
    """

    study: Updates
    noise: np.ndarray | None = None
    known: np.ndarray | None = None
    kept: KeptFits = field(default_factory=KeptFits)

    #: Parameters that are held in the first stages of a search, before all are free.
    ladder: ClassVar[tuple[Mapping[str, float], ...]] = (MappingProxyType({}),)

    def over(self, study: Updates, prior: np.ndarray | None = None) -> Problem:
        """Return the same problem with other turns, and with `prior` instead of their own prior if given."""
        return replace(self, study=study, known=prior)

    @cached_property
    def grid(self) -> Grid:
        """The grid over the scale."""
        return Grid(self.study.points)

    @cached_property
    def prior(self) -> np.ndarray:
        """Distribution of opinions before any measurement, (G,): shares of first ratings, smoothed by half a count."""
        if self.known is not None:
            return self.known
        study, k = self.study, len(self.study.points)
        counts = np.bincount(study.begun[study.begun >= 0], minlength=k) + 0.5
        spread = self.grid.share / self.grid.share.sum(axis=0)
        return np.asarray(spread @ (counts / counts.sum()))

    @cached_property
    def _content(self) -> str:
        """Digest of all that a fit rests on beside the candidate."""
        arrays = [getattr(self.study, each.name) for each in fields(self.study)] + [self.prior, self.noise]
        return digest(repr([type(self).__name__, *(np.asarray(each).tolist() for each in arrays)]))

    def optimum(self, candidate: Candidate, search: Callable[[], Optimum], *given: Any) -> Fit:
        """Return the cached optimum for a candidate and the arguments `given` to the search, or run the search.

        Optima of user-defined models are not cached.
        """
        model = candidate.model and candidate.model.name
        if model is not None and model not in MODELS:
            # Code of the user's own may rest on files that nobody here knows of.
            return Fit(candidate, *search())
        named = candidate.name, candidate.innate, candidate.shuffled, sorted(candidate.fixed.items()), model
        return Fit(candidate, *self.kept.optimum(digest(repr([self._content, named, given])), search))

    def bounds(self, candidate: Candidate) -> list[Bounds]:
        """Parameters of a candidate to fit."""
        return candidate.bounds(self.grid, self.noise is None)

    def misread(self, values: Mapping[str, float]) -> np.ndarray:
        """Misclassification matrix at given values."""
        if self.noise is not None:
            return self.noise
        return misreading(len(self.study.points), values["error"], values["near"])

    def by_turn(self, candidate: Candidate, values: Mapping[str, float]) -> np.ndarray:
        """Logarithm of the probability of each rating given those before it, (M,)."""
        rule = candidate.rule(values, self.grid)
        return predict(self.study, self.grid, self.prior, rule, self.misread(values))

    def objective(self, candidate: Candidate, values: Mapping[str, float]) -> float:
        """Log likelihood plus log prior of the parameters of misreading."""
        # This sum is the same in whatever order runs are.
        total = math.fsum(self.by_turn(candidate, values).tolist())
        for name, (first, second) in NOISE_PRIOR.items():
            if name in values:
                total += first * math.log(values[name]) + second * math.log1p(-values[name])
        return total

    def redrawn(
        self, candidate: Candidate, values: Mapping[str, float], rng: np.random.Generator, *, begun: bool = False
    ) -> Updates:
        """Replace the ratings by ones simulated from a candidate; with `begun`, simulate from the recorded starts."""
        rule = candidate.rule(values, self.grid)
        _, rating = draw(self.study, self.grid, self.prior, rule, self.misread(values), rng, begun=begun)
        return self.study.rated(rating)


@dataclass(frozen=True, eq=False)
class Fit:
    """A candidate at its optimum.

    Attributes
    ----------
    candidate : Candidate
        The fitted candidate.
    values : dict of str to float
        Its parameters, including those of blending and misreading.
    objective : float
        Log likelihood plus log prior of misreading.
    """

    candidate: Candidate
    values: dict[str, float]
    objective: float


class _Search:
    """The objective over the unit cube of the free parameters, with the best that was seen."""

    def __init__(self, problem: Problem, candidate: Candidate, held: Mapping[str, float]) -> None:
        self._problem, self._candidate, self._held = problem, candidate, dict(held)
        self._free = [each for each in problem.bounds(candidate) if each.name not in held]
        self.low = np.array([each.low for each in self._free])
        self.span = np.array([each.high for each in self._free]) - self.low
        self.best, self.where = -math.inf, np.full(len(self._free), 0.5)
        self._seen = list[float]()

    def values(self, place: np.ndarray) -> dict[str, float]:
        """Parameters at a place in the cube."""
        free = self.low + np.clip(place, 0.0, 1.0) * self.span
        return {**self._held, **{each.name: float(value) for each, value in zip(self._free, free, strict=True)}}

    def place(self, values: Mapping[str, float]) -> np.ndarray:
        """The place in the cube of given values; the middle for those that are not given."""
        at = [values.get(each.name, math.nan) for each in self._free]
        return np.asarray(np.nan_to_num(np.clip((np.array(at) - self.low) / self.span, 0.0, 1.0), nan=0.5))

    def __call__(self, place: np.ndarray) -> float:
        """Less the objective, for minimisers."""
        found = self._problem.objective(self._candidate, self.values(place))
        if found > self.best:
            self.best, self.where = found, np.clip(place, 0.0, 1.0)
        self._seen.append(self.best)
        return -found

    def scan(self, name: str) -> None:
        """Try values of one parameter over its bounds and closely around the best, with the others unchanged."""
        place = [each.name for each in self._free].index(name)
        for around in (1.0, 1.0 / (_SCANNED - 1)):
            best = self.where.copy()
            for value in np.linspace(best[place] - around, best[place] + around, 2 * _SCANNED - 1):
                if 0.0 <= value <= 1.0:
                    self(np.concatenate([best[:place], [value], best[place + 1 :]]))

    def follow(self, start: np.ndarray, radius: float, *, again: bool = False) -> None:
        """Climb from a place; `again` from an optimum on other data, until little is gained."""
        if len(start) == 0:
            self(start)
            return
        options = {"initial_tr_radius": radius, "final_tr_radius": _END, "maxfev": 60 * len(start)}

        def stale(_: np.ndarray) -> None:
            # At first it looks around the start, at two places for each parameter.
            past = self._seen[2 * len(start) + 1 : -_LOOKS]
            if again and past and self.best < past[-1] + _GAIN:
                raise StopIteration

        minimize(self, start, method="COBYQA", bounds=[(0.0, 1.0)] * len(start), options=options, callback=stale)


def refit(
    problem: Problem, candidate: Candidate, start: Mapping[str, float], held: Mapping[str, float] | None = None
) -> Fit:
    """Fit a candidate starting near its optimum on other data, with some parameters `held` fixed."""

    def found() -> Optimum:
        search = _Search(problem, candidate, held or {})
        search.follow(search.place(start), NEAR, again=True)
        return search.values(search.where), search.best

    return problem.optimum(candidate, found, sorted(start.items()), sorted((held or {}).items()))


def fit(problem: Problem, candidate: Candidate, nested: Sequence[Fit] = (), seed: int = 0) -> Fit:
    """Fit a candidate from several starts, including candidates nested in it.

    Parameters
    ----------
    problem : Problem
        The data to explain.
    candidate : Candidate
        The candidate explanation.
    nested : sequence of Fit
        Fits of candidates that are special cases; the search also starts from their optima.
    seed : int
        Seed of the starting points.

    Raises
    ------
    SpecError
        If the candidate fits worse than a special case of it, which means that the search failed.
    """
    made = problem.optimum(
        candidate, partial(_searched, problem, candidate, nested, seed), [each.values for each in nested], seed
    )
    for each in nested:
        if made.objective < each.objective - _ROUNDING:
            raise SpecError(
                f"the optimiser failed for {candidate.name}: it fits worse than {each.candidate.name}, "
                f"a special case of it, by {each.objective - made.objective:.2g} nats"
            )
    return made


def _searched(problem: Problem, candidate: Candidate, nested: Sequence[Fit], seed: int) -> Optimum:
    """The optimum of a candidate, from several starts."""
    special = [_special(candidate, each, problem.grid) for each in nested]
    search = _Search(problem, candidate, problem.ladder[0])
    points = qmc.Sobol(len(search.low), seed=seed).random(_LOOKED_AT)
    common = {name: value for name, value in (nested[0].values if nested else {}).items() if name != "stay"}
    # Rare large moves look like jumps to a search that does not begin with them.
    rare = {"pull": 0.0, "back": 0.0} | common | _part_of_the_way(1.0, problem.grid) | {"stay": 0.8, "jump": 0.01}
    starts = [*(search.values(point) | common for point in points), rare, *special]
    places = [search.place(each) for each in starts]
    for place in sorted(places, key=search)[:_FOLLOWED]:
        search.follow(place, _FAR)
    for held in (*problem.ladder[1:], {}):
        rough = search.values(search.where)
        search = _Search(problem, candidate, held)
        search.follow(search.place(rough), NEAR)
        for name in [each.name for each in problem.bounds(candidate) if each.threshold]:
            search.scan(name)
    for place in map(search.place, special):
        search(place)
    search.follow(search.where, NEAR)
    return search.values(search.where), search.best


def _special(candidate: Candidate, nested: Fit, grid: Grid) -> dict[str, float]:
    """Values at which a candidate is one that is nested in it."""
    values = dict(nested.values)
    if nested.candidate.model is None:
        return {**values, "stay": 1.0}
    weight = values.get("mu", 1.0 / (1.0 + values["self_weight"]) if "self_weight" in values else 1.0)
    known = _part_of_the_way(weight, grid)
    # A distance that just counts for one model counts for the other.
    known["u"] = values.get("epsilon", known["u"]) * (1.0 + 1e-9)
    return {**known, **values}


def _part_of_the_way(weight: float, grid: Grid) -> dict[str, float]:
    """Values, by the names of parameters, at which models go that part of the way to any message."""
    # Larger than any distance.
    width = 1.005 * (grid.high - grid.low)
    parts = {"mu": weight, "alpha": weight, "self_weight": 1.0 / weight - 1.0, "susceptibility": 1.0, "rho": 1.0}
    return parts | dict.fromkeys(("epsilon", "u", "t", "latitude"), width)


def special_cases(candidate: Candidate, fits: Iterable[Fit]) -> list[Fit]:
    """Return those of the given fits that are special cases of a candidate, the smallest first."""
    below = {
        "persistence": (),
        "shift": ("persistence",),
        "attractor": ("persistence",),
        "anchored": ("persistence",),
        "degroot": ("attractor", "voter"),
        "friedkin-johnsen": ("attractor", "degroot"),
        "deffuant": ("attractor", "degroot"),
        "jager-amblard": ("attractor", "deffuant"),
    }
    names = below.get(candidate.name, ("attractor",))
    return [each for each in fits if each.candidate.name in names]
