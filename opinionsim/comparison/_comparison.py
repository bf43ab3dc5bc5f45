"""Tests whether a classic model explains the runs of a store, and whether the explanation needs influence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.audit import misreadings
from opinionsim.comparison._candidates import BASELINES, Candidate, named
from opinionsim.comparison._findings import Comparison, Explained
from opinionsim.comparison._fit import Fit, Problem, fit, refit, special_cases
from opinionsim.comparison._free_runs import free_runs
from opinionsim.comparison._grid import misreading
from opinionsim.comparison._kept_fits import KeptFits
from opinionsim.comparison._point_masses import ExactProblem
from opinionsim.comparison._scores import held_out, paired, reachable, shuffled, side_by_side
from opinionsim.comparison._trust import (
    CLAIMED,
    FittedPair,
    Trust,
    claimed,
    doubts,
    intervals_of,
    no_more_than,
    noise_ends,
    trust,
)
from opinionsim.comparison._update_arrays import Updates
from opinionsim.comparison._updates import studies, updates_of
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.streams import stream
from opinionsim.store import Results

#: Scale points moved for each point of discrepancy below which influence counts as absent, where nothing else is said.
MARGIN = 0.05
#: The candidate whose agents read messages that they did not receive, in the place of those that they did.
_SHUFFLED = "shuffled-partners"
#: Least rate of errors of ratings, and share of errors that fall on neighbours where a rate is given.
_LEAST, _NEAR = 1e-3, 0.8
#: Share of updates that follow one message from which all candidates are scored on these.
_MOST_OF_THEM = 0.5
#: Model whose parameter is the strength of influence.
_LINEAR = "degroot"
#: Stages of the work on a condition, each with the percentage of the time that has passed when it begins.
_STAGES = {"fits": 0, "blocks held out": 45, "studies of known truth": 70, "intervals": 85}


def compare(
    results: Results,
    models: Iterable[str] | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    noise: float | tuple[float, float, float] | np.ndarray | str | None = None,
    margin: float = MARGIN,
    cells: str | Sequence[str] | None = None,
    wording: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> Comparison:
    """Test whether classic models explain runs, and whether influence is needed to explain changes of opinion.

    Parameters
    ----------
    results : Results
        Loaded results; runs that are not complete are left out.
    models : iterable of str, or mapping of str to mapping, optional
        Names of classic models, import paths of your own, or names with fixed parameters. Default: voter, degroot,
        friedkin-johnsen, deffuant, jager-amblard and lorenz.
    noise : float, (float, float, float), array_like (k, k) or (3, k, k), or "audit", optional
        Error model of the ratings: a rate of errors, four in five of which fall on a neighbouring point; a
        misclassification matrix, true by read; either of these with its values at the ends of its interval; or
        ``audit``, the errors that people's labels revealed in the last audit (:func:`opinionsim.audit.misreadings`). By
        default, the function fits the rate and the share of neighbours together with everything else, with beta prior
        densities (rate: 2 and 10, share: 4 and 2).
    margin : float
        Threshold below which influence counts as absent, in scale points moved per point of discrepancy, > 0.
    cells : str or sequence of str, optional
        Conditions to explain; by default all.
    wording : str, optional
        Prompt pack whose runs count; default that of the run that began last.
    seed : int
        Seed of all random draws; the same seed gives the same results on any number of threads.
    threads : int, optional
        Number of fits that run in parallel; by default one per processor.
    progress : callable, optional
        Called with the amount done, the total and a text, at every stage of every condition.

    Returns
    -------
    Comparison
        Frames of events, fits, scores, findings and trust. Conditions with only one block, and conditions that no model
        can have produced, appear in the findings as not compared.

    Raises
    ------
    MeasurementError
        If no condition can be compared, or evidence or scales are mixed.
    SpecError
        If a model, a parameter or a condition is unknown, or an argument is not valid.
    StoreError
        If `noise` is ``audit`` and there is no audit.
    """
    candidates = named(models)
    if not isinstance(margin, Real) or not 0 < margin < 1:
        raise SpecError(
            f"margin must be between 0 and 1 scale points for each point of discrepancy; got {margin!r:.60}"
        )
    every = studies(results, wording, [cells] if isinstance(cells, str) else cells)
    found = {cell: _counted(study, candidates) for cell, study in every.items()}
    told = progress or (lambda done, total, text: None)
    workers = threads or os.cpu_count() or 1
    noise, source = misreadings(results) if isinstance(noise, str) and noise == "audit" else (noise, "given")
    for study in found.values():
        _noise(noise, len(study.points))
    left_out = {study: reason for study in found.values() if (reason := _lacking(study, candidates))}
    chosen = {cell: study for cell, study in found.items() if study not in left_out}
    if not chosen:
        reasons = [f"{study.cell}: {reason}" for study, reason in left_out.items()]
        raise MeasurementError(f"nothing can be compared: {'; '.join(reasons)}")
    explained, kept = {}, KeptFits.beside(results.url)
    for place, (cell, study) in enumerate(chosen.items()):

        def begun(stage: str, done: int = 100 * place, cell: str = cell) -> None:
            told(done + _STAGES[stage], 100 * len(chosen), f"{cell}: {stage}")

        explained[cell] = _explained(study, candidates, noise, margin, seed, workers, begun, source, kept)
    told(100 * len(chosen), 100 * len(chosen), "")
    return Comparison(explained, pd.concat(map(updates_of, every.values()), ignore_index=True), margin, left_out)


def _counted(study: Updates, candidates: Sequence[Candidate]) -> Updates:
    """The study with those updates that every candidate can predict, on which alone all of them are scored.

    Where models that take all messages of an update at once are among others, and fewer than half of the updates follow
    one message, all updates count, and these models are not applicable. Numbers are compared by such updates alone.
    """
    single, (one, every) = replace(study, one_message=True), study.by_one
    able = [each.at_once for each in candidates if not each.unfit(single)]
    if one < every and (study.exact or (one and any(able) and (all(able) or one >= _MOST_OF_THEM * every))):
        return single
    return study


def _lacking(study: Updates, candidates: Sequence[Candidate]) -> str:
    """Why a condition cannot be compared; empty where it can be."""
    unfit = {each.name: each.unfit(study) for each in candidates}
    if all(unfit.values()):
        return f"none of the given models can produce its updates ({'; '.join(map(': '.join, unfit.items()))})"
    if not study.updated.any():
        return "numbers need updates after a single message with a recorded opinion just before; there are none"
    if len(set(study.blocks)) < 2:
        return "it has one block, but scores need held-out blocks; raise replicates"
    return ""


def _explained(
    study: Updates,
    candidates: Sequence[Candidate],
    noise: Any,
    margin: float,
    seed: int,
    threads: int,
    begun: Callable[[str], object],
    source: str = "given",
    kept: KeptFits | None = None,
) -> Explained:
    """Everything that is asked of one condition; each of its stages is told when it has `begun`.

    `source` says where the noise is taken from, if it is given. Fits that are `kept` are not made again.
    """
    matrix, ends = _noise(None if study.exact else noise, len(study.points))
    problem = (ExactProblem if study.exact else Problem)(study, matrix, None, kept or KeptFits())
    unfit = {each.name: reason for each in candidates if (reason := each.unfit(study))}
    begun("fits")
    fits = _fits(problem, [each for each in candidates if each.name not in unfit], seed, threads)
    begun("blocks held out")
    scores = held_out(problem, fits, threads)
    mixed = _shuffled(problem, fits, seed)
    if mixed is not None:
        elsewhere, swapped = mixed
        fits, scores = [*fits, swapped], np.hstack([scores, held_out(elsewhere, [swapped], threads)])
    pair, gain = _pair(problem, fits, scores), _gain(study, fits, scores)
    claims = claimed(gain)
    begun("studies of known truth")
    found = trust(pair, pair.influence if claims else pair.none, seed, threads)
    begun("intervals")
    ends = ends if ends or study.exact or not found.adequate else noise_ends(pair, found)
    best = fits[int(scores.mean(axis=0).argmax())]
    return Explained(
        study=study,
        problem=problem,
        fits=tuple(fits),
        unfit=unfit,
        scores=scores,
        reachable=reachable(study),
        noise="none: opinions are numbers" if study.exact else "fitted" if noise is None else source,
        gain=gain,
        trust=found,
        intervals={} if best.candidate.shuffled else intervals_of(problem, best, found, threads),
        withheld=tuple(doubts(pair, found, ends)),
        absent=not claims and _absent(problem, fits, margin, seed),
        free=_free(pair, found, seed),
    )


def _absent(problem: Problem, fits: Sequence[Fit], margin: float, seed: int) -> bool:
    """Whether influence is shown to be below the margin.

    Its strength is that of the linear model, which takes all messages of all updates here, one after the other: that
    an agent stays where it is can be told from updates by several messages as well.
    """
    linear, study = named(_LINEAR)[0], problem.study
    whole = problem.over(replace(study, one_message=study.exact and study.one_message))
    nested = [refit(whole, each.candidate, each.values) for each in special_cases(linear, fits)]
    return no_more_than(whole, fit(whole, linear, nested, seed), margin)


def _free(pair: FittedPair, found: Trust, seed: int) -> pd.DataFrame:
    """Free runs of both candidates of a pair; the one that studies were drawn from varies as it did in these."""
    runs = (
        free_runs(pair.problem, one.candidate, found.values if one is found.truth else [one.values], seed)
        for one in dict.fromkeys((pair.influence, pair.none))
    )
    return pd.concat(runs, ignore_index=True)


def _noise(noise: Any, k: int) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """The matrix of misclassification, None to fit it, and those at the ends of its interval, as given."""
    if noise is None:
        return None, []
    wrong = SpecError(
        f"noise must be a rate of errors from 0 to below 1, that rate with the ends of its interval, a matrix of {k} "
        f"by {k} shares, true by read, or 'audit'; got {noise!r:.60}"
    )
    try:
        given = np.asarray(noise, dtype=float)
    except (TypeError, ValueError):
        raise wrong from None
    if given.shape in ((k, k), (3, k, k)):
        if (given < 0).any() or not np.allclose(given.sum(axis=-1), 1.0):
            raise SpecError(
                "each row of a misclassification matrix (one per true point) must contain shares that sum to 1"
            )
        # What a matrix rules out would rule out a candidate for good.
        matrices = [(1.0 - _LEAST) * each + _LEAST / k for each in given.reshape(-1, k, k)]
    else:
        rates = np.atleast_1d(given)
        ordered = given.shape == () or (given.shape == (3,) and given[1] <= given[0] <= given[2])
        if not ordered or not ((rates >= 0) & (rates < 1)).all():
            raise wrong
        matrices = [misreading(k, max(float(rate), _LEAST), _NEAR) for rate in rates]
    return matrices[0], matrices[1:] or matrices


def _fits(problem: Problem, candidates: Sequence[Candidate], seed: int, threads: int) -> list[Fit]:
    """Baselines and candidates at their optima, each after what is nested in it."""
    found: list[Fit] = []
    waves: list[list[Candidate]] = [[each] for each in BASELINES]
    small = [each for each in candidates if each.name in ("voter", _LINEAR, "deffuant")]
    waves += [[each] for each in small] + [[each for each in candidates if each not in small]]
    for wave in waves:
        found += side_by_side([partial(fit, problem, one, special_cases(one, found), seed) for one in wave], threads)
    order = {each.name: place for place, each in enumerate([*BASELINES, *candidates])}
    return sorted(found, key=lambda each: order[each.candidate.name])


def _shuffled(problem: Problem, fits: Sequence[Fit], seed: int) -> tuple[Problem, Fit] | None:
    """The best candidate with influence on exchanged messages, with what they are; None where there is none."""
    reading = [each for each in fits if each.candidate.influence]
    exchanged = shuffled(problem.study, stream(seed, "shuffled partners"))
    if not reading or np.array_equal(exchanged.reads, problem.study.reads):
        return None
    best = max(reading, key=lambda each: each.objective)
    elsewhere = problem.over(exchanged)
    swapped = Candidate(_SHUFFLED, best.candidate.model, best.candidate.fixed, shuffled=True)
    return elsewhere, refit(elsewhere, swapped, best.values)


def _pair(problem: Problem, fits: Sequence[Fit], scores: np.ndarray) -> FittedPair:
    """The best candidates with and without influence."""
    means = scores.mean(axis=0)
    order = [fits[place] for place in np.argsort(-means, kind="stable") if not fits[place].candidate.shuffled]
    influence, none = (next(one for one in order if one.candidate.influence is which) for which in (True, False))
    return FittedPair(problem, influence, none)


def _gain(study: Updates, fits: Sequence[Fit], scores: np.ndarray) -> tuple[float, float]:
    """What influence adds to the mean score of a run, and its standard error.

    That is by how much the best candidate with influence beats the one without that it beats least clearly.
    """
    reading = np.array([each.candidate.influence for each in fits])
    best = scores[:, reading][:, scores[:, reading].mean(axis=0).argmax()]
    return min(
        (paired(study, best, own) for own in scores[:, ~reading].T), key=lambda gain: gain[0] - CLAIMED * gain[1]
    )
