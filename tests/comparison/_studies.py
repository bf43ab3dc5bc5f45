"""Studies whose truth is known: who met whom, and ratings that an equation or a rule of the test's own left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from opinionsim.classic import find_model

# Tests reach into the room here alone: a comparison shows a finding, not the arithmetic that leads to it.
from opinionsim.comparison._candidates import (
    BASELINES as BASELINES,
    DEFAULT as DEFAULT,
    Candidate as Candidate,
    named as named,
)
from opinionsim.comparison._comparison import (
    MARGIN as MARGIN,
    _counted as _counted,
    _explained as _explained,
    _fits as _fits,
    _lacking as _lacking,
    _noise as _noise,
)
from opinionsim.comparison._filter import Moves as Moves, draw as draw, predict as predict
from opinionsim.comparison._findings import Comparison as Comparison, Explained as Explained
from opinionsim.comparison._fit import (
    Fit as Fit,
    Problem as Problem,
    fit as fit,
    refit as refit,
    special_cases as special_cases,
)
from opinionsim.comparison._free_runs import free_runs as free_runs
from opinionsim.comparison._grid import Grid as Grid, Steps as Steps, misreading as misreading
from opinionsim.comparison._kept_fits import KeptFits as KeptFits
from opinionsim.comparison._point_masses import ExactProblem as ExactProblem
from opinionsim.comparison._scores import (
    by_run as by_run,
    folds as folds,
    held_out as held_out,
    paired as paired,
    reachable as reachable,
    shuffled as shuffled,
)
from opinionsim.comparison._trust import (
    Trust as Trust,
    interval as interval,
    no_more_than as no_more_than,
    strength as strength,
)
from opinionsim.comparison._update_arrays import Updates as Updates
from opinionsim.comparison._updates import response_curve as response_curve, studies as studies

POINTS = np.arange(-2.0, 3.0)
#: ``rule(own, said, heard before, step, rng)``: the next opinion of a listener.
Own = Callable[[float, float, list[float], int, np.random.Generator], float]


def meetings(runs: int, agents: int, steps: int, seed: int, points: np.ndarray = POINTS) -> Updates:
    """One post, and one report of another agent that has read it, at each step. All is rated the first point."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(agents, 2, replace=False) for _ in range(runs * steps)])
    return among(pairs, np.tile(np.arange(1, steps + 1), runs), runs, agents, points)


def among(pairs: np.ndarray, step: np.ndarray, runs: int, agents: int, points: np.ndarray = POINTS) -> Updates:
    """Given pairs (K, 2) of speaker and listener, as many in each run."""
    size = 2 * len(pairs)
    return Updates(
        cell="cell",
        evidence="model",
        points=points,
        exact=False,
        run_ids=tuple(map(str, range(runs))),
        blocks=tuple(map(str, range(runs))),
        n_agents=np.full(runs, agents),
        first=np.arange(runs + 1) * (size // runs),
        turn=np.tile(np.arange(size // runs), runs),
        step=np.repeat(step, 2),
        agent=pairs.ravel(),
        first_read=np.concatenate([[0], np.cumsum(np.tile([0, 1], len(pairs)))]),
        reads=np.arange(0, size, 2),
        value=np.full(size, points[0]),
    )


def candidate(model: str | None, **fixed: float) -> Candidate:
    """A model, or nothing that is read, with the innate pull."""
    return Candidate(model or "attractor", find_model(model) if model else None, fixed)


def rated(
    study: Updates,
    model: str | Candidate | None,
    parameters: Mapping[str, float],
    error: float,
    seed: int,
    start: tuple[float, float] | None = None,
) -> Updates:
    """Ratings drawn from a candidate at given parameters; opinions begin anywhere, or between two ends."""
    grid = Grid(study.points)
    low, high = start or (grid.low, grid.high)
    prior = ((grid.nodes >= low) & (grid.nodes <= high)).astype(float)
    one = model if isinstance(model, Candidate) else candidate(model)
    rule = one.rule({"jump": 0.0, "stay": 0.0, **parameters}, grid)
    misread, rng = misreading(len(study.points), error, 0.8), np.random.default_rng(seed)
    return study.rated(draw(study, grid, prior / prior.sum(), rule, misread, rng)[1])


def ruled(study: Updates, rule: Own, error: float, seed: int, *, exact: bool = False) -> Updates:
    """Ratings, or `exact` opinions, that a rule of the test's own left."""
    rng = np.random.default_rng(seed)
    low, high, k = study.points[0], study.points[-1], len(study.points)
    misread, value = misreading(k, error, 0.8), np.empty(len(study.agent))
    for run in range(len(study)):
        holds = rng.uniform(low, high, study.n_agents[run])
        heard: list[list[float]] = [[] for _ in holds]
        for at in range(study.first[run], study.first[run + 1]):
            who = study.agent[at]
            for read in study.reads[study.first_read[at] : study.first_read[at + 1]]:
                holds[who] = np.clip(rule(holds[who], value[read], heard[who], study.step[at], rng), low, high)
                heard[who].append(value[read])
            value[at] = holds[who]
    if exact:
        return replace(study, exact=True, value=value)
    true = np.abs(value[:, None] - study.points).argmin(axis=1)
    return study.rated(np.array([rng.choice(k, p=misread[point]) for point in true]))


def unrated(study: Updates, share: float, seed: int) -> Updates:
    """The study without a share of its reports, whose authors are rated next after this message and others."""
    lost = (np.diff(study.first_read) > 0) & (np.random.default_rng(seed).random(len(study.agent)) < share)
    read: list[list[int]] = []
    waiting: dict[tuple[int, int], list[int]] = {}
    for at, who in enumerate(zip(study.run, study.agent, strict=True)):
        reached = [*waiting.pop(who, []), *study.reads[study.first_read[at] : study.first_read[at + 1]]]
        waiting |= {who: reached} if lost[at] else {}
        read.append([] if lost[at] else reached)
    first_read = np.concatenate([[0], np.cumsum(list(map(len, read)))])
    reads, value = np.array([each for one in read for each in one], dtype=np.int64), np.where(lost, np.nan, study.value)
    return replace(study, first_read=first_read, reads=reads, value=value)


def repulsion(own: float, said: float, *_: object) -> float:
    """Those who are far apart move on, away from each other."""
    return own + (0.3 if abs(said - own) < 1.5 else -0.3) * (said - own)


def majority_of_three(own: float, said: float, heard: list[float], step: int, rng: np.random.Generator) -> float:
    """The side of two of the last three messages."""
    side = np.sign(np.array([*heard[-2:], said]))
    return own if abs(side.sum()) < 2 else own + 0.5 * (2 * np.sign(side.sum()) - own)


def moving_attractor(own: float, said: float, heard: list[float], step: int, rng: np.random.Generator) -> float:
    """A point that wanders from one end to the other in a hundred steps."""
    return own + 0.3 * (-2 + 0.04 * step - own)
