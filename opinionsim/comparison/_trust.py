"""Whether a finding can be trusted, based on the same analysis of simulated studies with a known truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from opinionsim.comparison._candidates import Bounds
from opinionsim.comparison._fit import Fit, Problem, refit
from opinionsim.comparison._grid import misreading
from opinionsim.comparison._scores import by_run, paired, reachable, side_by_side
from opinionsim.foundation.streams import stream

#: Studies that are drawn, and the share of them in which the truth must be found.
STUDIES, RECOVERED = 20, 0.8
#: Fewest blocks on which a finding may rest.
FEWEST_BLOCKS = 8
#: Standard errors from which influence is claimed.
CLAIMED = 2.0
#: A candidate is adequate if the record is within so many standard deviations of the studies drawn from it.
_ADEQUATE = 3.0
#: Twice the fall of the log likelihood at the ends of an interval of 95 %, and of a one-sided one.
_TWO_SIDED, _ONE_SIDED = 3.841, 2.706
#: Mixtures of staying and moving that are looked at where the strength of influence is held.
_MIXTURES = 5
#: First step to the end of an interval, in parts of the way to the bound, and precision, in parts of its distance.
_FIRST, _PRECISION = 1e-2, 0.1
#: Most by which a step to the end of an interval is longer or shorter than the last one.
_LONGER = 8.0


def claimed(gain: tuple[float, float]) -> bool:
    """Whether the analysis claims a gain due to influence, given its standard error."""
    return gain[0] > CLAIMED * gain[1]


@dataclass(frozen=True, eq=False)
class FittedPair:
    """The best candidates with and without influence, fitted to one study.

    Attributes
    ----------
    problem : Problem
        The study.
    influence, none : Fit
        The two fits.
    """

    problem: Problem
    influence: Fit
    none: Fit

    def on(self, problem: Problem) -> FittedPair:
        """Fit both to another study, starting from these fits."""
        first, second = (refit(problem, each.candidate, each.values) for each in (self.influence, self.none))
        return FittedPair(problem, first, second)

    def scores(self, one: Fit) -> np.ndarray:
        """Mean log score of the updates of each run, minus the expected chance gain of fitted parameters, (R,)."""
        study = self.problem.study
        chance = len(self.problem.bounds(one.candidate)) / max(int(study.updated.sum()), 1)
        return by_run(study, self.problem.by_turn(one.candidate, one.values)) - chance

    @property
    def gain(self) -> tuple[float, float]:
        """Mean gain in the scores of runs due to influence, and its standard error."""
        return paired(self.problem.study, self.scores(self.influence), self.scores(self.none))

    @property
    def claims(self) -> bool:
        """Whether influence would be claimed."""
        return claimed(self.gain)

    @property
    def gap(self) -> float:
        """Mean score of the best table of shares minus that of the better fit; NaN for exact numbers.

        Densities of recorded numbers cannot be compared with shares of points.
        """
        if self.problem.study.exact:
            return math.nan
        best = max((self.influence, self.none), key=lambda each: each.objective)
        return float((reachable(self.problem.study) - self.scores(best)).mean())


@dataclass(frozen=True, eq=False)
class Trust:
    """Results of the analysis in studies of the same size, design and noise, simulated from the fit behind the finding.

    Attributes
    ----------
    truth : Fit
        The fit from which the studies were simulated.
    pairs : tuple of FittedPair
        The two fits to each of them.
    claimed : float
        Share of studies in which the analysis claimed influence.
    recovered : float
        Share of studies in which this result was right.
    gaps : ndarray (1 + STUDIES,)
        Gap to the table of shares, first in the study, then in the simulated studies, in which the truth is adequate.
    drifts : ndarray (1 + STUDIES,)
        Distance of the mean opinion from its course in the simulated studies, the study itself first; see
        :func:`_drifts`.
    """

    truth: Fit
    pairs: tuple[FittedPair, ...]
    claimed: float
    recovered: float
    gaps: np.ndarray
    drifts: np.ndarray

    @property
    def exceeded(self) -> np.ndarray:
        """Whether the gap, and the drift, is larger than chance explains, (2,) of bool."""
        found = np.stack([self.gaps, self.drifts])
        drawn = found[:, 1:]
        return np.asarray(found[:, 0] > drawn.mean(axis=1) + _ADEQUATE * drawn.std(axis=1, ddof=1))

    @property
    def adequate(self) -> bool:
        """Whether chance explains gap and drift."""
        return not self.exceeded.any()

    @property
    def values(self) -> list[dict[str, float]]:
        """Estimates of the true parameters in each simulated study, which show their uncertainty."""
        reading = self.truth.candidate.influence
        return [(each.influence if reading else each.none).values for each in self.pairs]


def trust(pair: FittedPair, truth: Fit, seed: int, threads: int) -> Trust:
    """Simulate studies from a fit, and fit both candidates of a pair to each."""

    def one(number: int) -> FittedPair:
        rng = stream(seed, "synthetic study", number, truth.candidate.name)
        return pair.on(pair.problem.over(pair.problem.redrawn(truth.candidate, truth.values, rng)))

    pairs = tuple(side_by_side([partial(one, number) for number in range(STUDIES)], threads))
    claims = np.array([each.claims for each in pairs])
    right = claims == truth.candidate.influence
    every = (pair, *pairs)
    gaps = np.array([each.gap for each in every])
    return Trust(truth, pairs, float(claims.mean()), float(right.mean()), gaps, _drifts(every))


def _drifts(pairs: Sequence[FittedPair]) -> np.ndarray:
    """How far the mean opinion of all agents is from its course in the drawn studies, in the mean over steps.

    The first pair is the study itself. Each of the others is compared with those beside it.
    """
    courses = np.array([np.nanmean(each.problem.study.paths()[:, 1:], axis=(0, 2)) for each in pairs])
    drawn = courses[1:]
    others = (drawn.sum(axis=0) - drawn) / (len(drawn) - 1)
    return np.asarray(np.abs(courses - np.vstack([drawn.mean(axis=0), others])).mean(axis=1))


def cutoff(found: Trust, best: Fit, bounds: Bounds, threads: int) -> float:
    """Twice the drop in log likelihood that bounds a 95 % interval of a parameter of the best fit.

    The likelihood of a threshold is not smooth. As in Bartlett's correction, the usual number is therefore scaled up by
    the mean of the ratio in studies with a known threshold.
    """
    if not bounds.threshold or found.truth.candidate is not best.candidate:
        return _TWO_SIDED

    def ratio(pair: FittedPair) -> float:
        own, held = pair.influence, {bounds.name: found.truth.values[bounds.name]}
        return 2.0 * (own.objective - refit(pair.problem, own.candidate, own.values, held).objective)

    ratios = side_by_side([partial(ratio, pair) for pair in found.pairs], threads)
    return _TWO_SIDED * max(1.0, float(np.mean(ratios)))


def interval(problem: Problem, best: Fit, name: str, fall: float = _TWO_SIDED) -> tuple[float, float]:
    """Values of a parameter at which twice the log likelihood has dropped by `fall`, or its bounds if it never does."""
    bounds = next(each for each in problem.bounds(best.candidate) if each.name == name)
    return _end(problem, best, name, bounds.low, fall), _end(problem, best, name, bounds.high, fall)


def _end(problem: Problem, best: Fit, name: str, far: float, fall: float) -> float:
    """The end of an interval towards a bound, found as if the root of the fall grew with the distance, else by halves.

    Each fit starts at the last one inside. Of the two values between which the end is found, it is the one outside.
    """
    at, values = best.values[name], best.values
    inside, outside, trial = 0.0, 2.0, _FIRST
    while at != far and outside - inside > _PRECISION * outside:
        held = refit(problem, best.candidate, values, {name: at + trial * (far - at)})
        fallen = 2.0 * (best.objective - held.objective)
        if fallen > fall:
            outside = trial
        elif trial == 1.0:
            return far
        else:
            inside, values = trial, held.values
        # A little beyond the guess, so that the end lies between the two.
        beyond = 1.0 + math.copysign(0.4 * _PRECISION, fall - fallen)
        longer = np.clip(beyond * math.sqrt(fall / max(fallen, 1e-9)), 1.0 / _LONGER, _LONGER)
        guess = min(float(trial * longer), 1.0)
        trial = guess if inside < guess < outside else (inside + outside) / 2.0
    return float(at + outside * (far - at))


def no_more_than(problem: Problem, linear: Fit, margin: float) -> bool:
    """Whether agents move less than `margin` scale points per point of discrepancy, at 95 % confidence.

    Parameters
    ----------
    linear : Fit
        Fit of DeGroot's model, in which an agent moves a constant share of the way.
    """
    if strength(linear.values) >= margin:
        return False
    moved = 1.0 - linear.values["jump"]
    most = max(1.0 - margin / moved, 0.0)

    # Few large moves are as strong as many small ones, and the likelihood tells them apart.
    def at_margin(stay: float) -> float:
        held = {"stay": stay, "self_weight": max((1.0 - stay) * moved / margin - 1.0, 0.0), "jump": 1.0 - moved}
        return refit(problem, linear.candidate, linear.values, held).objective

    return 2.0 * (linear.objective - max(map(at_margin, np.linspace(0.0, most, _MIXTURES)))) > _ONE_SIDED


def strength(values: Mapping[str, float]) -> float:
    """Scale points that an agent moves per point of discrepancy, from a fit of DeGroot's model."""
    return (1.0 - values["stay"]) * (1.0 - values["jump"]) / (1.0 + values["self_weight"])


def noise_ends(pair: FittedPair, found: Trust) -> list[np.ndarray]:
    """Misclassification matrices at the ends of the interval of the error rate."""
    low, high = interval(pair.problem, found.truth, "error")
    return [misreading(len(pair.problem.study.points), rate, found.truth.values["near"]) for rate in (low, high)]


def doubts(pair: FittedPair, found: Trust, ends: Sequence[np.ndarray]) -> list[str]:
    """Reasons to withhold a finding."""
    told: list[str] = []
    blocks = len(set(pair.problem.study.blocks))
    if blocks < FEWEST_BLOCKS:
        told.append(f"there are {blocks} blocks, and a finding needs {FEWEST_BLOCKS}")
    if not found.adequate:
        return told  # what follows is about a candidate that is none
    if found.recovered < RECOVERED:
        told.append(f"in {STUDIES} studies from the best fit, the analysis found the truth in {found.recovered:.0%}")
    claims = found.truth.candidate.influence
    if any(pair.on(replace(pair.problem, noise=each)).claims != claims for each in ends):
        told.append("the finding changes at an end of the interval of the noise of ratings")
    return told


def intervals_of(problem: Problem, best: Fit, found: Trust, threads: int) -> dict[str, tuple[float, float]]:
    """95 % intervals of the parameters of the best candidate's model."""
    bounds = [each for each in problem.bounds(best.candidate) if each.name in best.candidate.declared]
    falls = [cutoff(found, best, each, threads) for each in bounds]
    ends = [partial(interval, problem, best, each.name, fall) for each, fall in zip(bounds, falls, strict=True)]
    return dict(zip([each.name for each in bounds], side_by_side(ends, threads), strict=True))
