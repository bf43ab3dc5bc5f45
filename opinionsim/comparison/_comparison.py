"""Whether a classic model explains a store of runs, and whether influence is needed at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.comparison._candidates import BASELINES, Candidate, named
from opinionsim.comparison._events import studies, updates_of
from opinionsim.comparison._exact import ExactProblem
from opinionsim.comparison._fit import Fit, Problem, fit, refit, special_cases
from opinionsim.comparison._free_runs import free_runs
from opinionsim.comparison._grid import misreading
from opinionsim.comparison._scores import held_out, paired, reachable, shuffled, side_by_side
from opinionsim.comparison._study import Study
from opinionsim.comparison._trust import (
    CLAIMED,
    STUDIES,
    Pair,
    Trust,
    claimed,
    doubts,
    intervals_of,
    no_more_than,
    noise_ends,
    trust,
)
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.streams import stream

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from opinionsim.store import Results

#: Scale points moved for each point of discrepancy below which influence counts as absent, where nothing else is said.
MARGIN = 0.05
#: The candidate in which agents read others' messages than they did.
_SHUFFLED = "shuffled-partners"
#: Least rate of errors of ratings, and share of errors that fall on neighbours where a rate is given.
_LEAST, _NEAR = 1e-3, 0.8
#: Model whose parameter is the strength of influence.
_LINEAR = "degroot"
#: What is done of a condition when a stage begins, in percent of the time that all take.
_STAGES = {"fits": 0, "blocks held out": 45, "studies of known truth": 70, "intervals": 85}


@dataclass(frozen=True, eq=False)
class Explained:
    """What was found in one condition.

    Attributes
    ----------
    study : Study
        Its updates.
    problem : Problem
        The same with how ratings are read.
    fits : tuple of Fit
        Every candidate that can have produced them, at its optimum.
    unfit : dict of str to str
        Why others cannot.
    scores : ndarray (R, C)
        Mean log score of the updates of each held-out run, by fit.
    reachable : ndarray (R,)
        The same by a table of shares.
    noise : str
        Where the errors of ratings are taken from.
    gain : (float, float)
        What influence adds to the mean score of a run, and its standard error; see :func:`_gain`.
    trust : Trust
        Studies drawn from the fit of the verdict.
    intervals : dict of str to (float, float)
        95 % intervals of the parameters of the best candidate.
    withheld : tuple of str
        Reasons why no verdict is given.
    absent : bool
        Whether influence is shown to be below the margin.
    free : DataFrame
        Free runs of the best candidates with and without influence; see :func:`free_runs`, with column ``candidate``.
    """

    study: Study
    problem: Problem
    fits: tuple[Fit, ...]
    unfit: dict[str, str]
    scores: np.ndarray
    reachable: np.ndarray
    noise: str
    gain: tuple[float, float]
    trust: Trust
    intervals: dict[str, tuple[float, float]]
    withheld: tuple[str, ...]
    absent: bool
    free: pd.DataFrame

    @cached_property
    def best(self) -> int:
        """Position of the candidate with the best mean score."""
        return int(self.scores.mean(axis=0).argmax())

    @cached_property
    def ties(self) -> list[str]:
        """Candidates within one standard error of the best, which among them is the first."""
        found = [self.fits[self.best].candidate.name]
        for place, each in enumerate(self.fits):
            mean, error = paired(self.study, self.scores[:, self.best], self.scores[:, place])
            if place != self.best and mean <= error:
                found.append(each.candidate.name)
        return found

    @cached_property
    def alone(self) -> str:
        """What agents do by themselves: persistence, unless the best baseline beats it by two standard errors."""
        places = {each.candidate.name: place for place, each in enumerate(self.fits) if each.candidate.model is None}
        means = self.scores.mean(axis=0)
        best = max(places, key=lambda name: means[places[name]])
        mean, error = paired(self.study, self.scores[:, places[best]], self.scores[:, places["persistence"]])
        return best if mean > CLAIMED * error else "persistence"

    @property
    def verdict(self) -> str:
        """What can be said, as :attr:`Comparison.verdict` lists it."""
        if self.withheld:
            return "withheld"
        if not self.trust.adequate:
            return "none adequate"
        if claimed(self.gain):
            return "influence"
        if not self.absent:
            return "undecided"
        return "persistence" if self.alone == "persistence" else "no interaction needed"


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
    """Ask whether classic models explain runs, and whether agents need to read each other to move as they do.

    Parameters
    ----------
    results : Results
        Loaded results; runs that are not complete are left out.
    models : iterable of str, or mapping of str to mapping, optional
        Names of classic models, or names with parameters that are given. Default: voter, degroot, friedkin-johnsen,
        deffuant, jager-amblard and lorenz.
    noise : float, (float, float, float), array_like (k, k) or (3, k, k), or "audit", optional
        How ratings err: a rate of errors, four in five of which fall on a neighbouring point; a matrix of
        misclassification, true by read; either with those at the ends of its interval; or what people's labels in the
        audit drawn last show (:func:`opinionsim.audit.misreadings`). Default: rate and share of neighbours are fitted
        with everything else, with densities of the beta family before (rate: 2 and 10, share: 4 and 2).
    margin : float
        Scale points moved for each point of discrepancy below which influence counts as absent, > 0.
    cells : str or sequence of str, optional
        Conditions to explain; default all.
    wording : str, optional
        Prompt pack whose runs count; default that of the run begun last.
    seed : int
        Of all that is drawn: the same seed gives the same results on any number of threads.
    threads : int, optional
        Fits that are made side by side; default as many as there are processors.
    progress : callable, optional
        Called with what is done, of how much, and a text, at every stage of every condition.

    Returns
    -------
    Comparison
        Frames of events, fits, scores, verdicts and trust. Conditions of one block, and those that no model can have
        produced, stand among the verdicts as not compared.

    Raises
    ------
    MeasurementError
        If no condition can be compared, or evidence or scales are mixed.
    SpecError
        If a model, a parameter or a condition is unknown, or an argument is not valid.
    StoreError
        If the noise is to be that of an audit, and there is none.
    """
    import pandas as pd

    from opinionsim.audit import misreadings

    candidates = named(models)
    if not isinstance(margin, Real) or not 0 < margin < 1:
        raise SpecError(
            f"margin must be between 0 and 1 scale points for each point of discrepancy; got {margin!r:.60}"
        )
    found = studies(results, wording, [cells] if isinstance(cells, str) else cells)
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
    explained = {}
    for place, (cell, study) in enumerate(chosen.items()):

        def begun(stage: str, done: int = 100 * place, cell: str = cell) -> None:
            told(done + _STAGES[stage], 100 * len(chosen), f"{cell}: {stage}")

        explained[cell] = _explained(study, candidates, noise, margin, seed, workers, begun, source)
    told(100 * len(chosen), 100 * len(chosen), "")
    every = pd.concat(map(updates_of, found.values()), ignore_index=True)
    return Comparison(explained, every, margin, left_out)


def _lacking(study: Study, candidates: Sequence[Candidate]) -> str:
    """Why a condition cannot be compared; empty where it can be."""
    unfit = {each.name: each.unfit(study) for each in candidates}
    if all(unfit.values()):
        return f"no model of those named can have produced its updates ({'; '.join(map(': '.join, unfit.items()))})"
    if len(set(study.blocks)) < 2:
        return "it has one block, and scores are those of blocks that were held out; raise replicates"
    return ""


def _explained(
    study: Study,
    candidates: Sequence[Candidate],
    noise: Any,
    margin: float,
    seed: int,
    threads: int,
    begun: Callable[[str], object],
    source: str = "given",
) -> Explained:
    """Everything that is asked of one condition; each of its stages is told when it has `begun`.

    `source` says where the noise is taken from, if it is given.
    """
    matrix, ends = _noise(None if study.exact else noise, len(study.points))
    problem = ExactProblem(study) if study.exact else Problem(study, matrix)
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
        # The strength of influence is that of a model that takes one message at a time.
        absent=not claims
        and not named(_LINEAR)[0].unfit(study)
        and no_more_than(problem, _linear(problem, fits, seed), margin),
        free=_free(pair, found, seed),
    )


def _linear(problem: Problem, fits: Sequence[Fit], seed: int) -> Fit:
    """The fit of the model whose parameter is the strength of influence, whether or not it is a candidate."""
    among = [each for each in fits if each.candidate.name == _LINEAR and not each.candidate.fixed]
    linear = named(_LINEAR)[0]
    return among[0] if among else fit(problem, linear, special_cases(linear, fits), seed)


def _free(pair: Pair, found: Trust, seed: int) -> pd.DataFrame:
    """Free runs of both candidates of a pair; the one that studies were drawn from varies as it did in these."""
    import pandas as pd

    frames = []
    for one in dict.fromkeys((pair.influence, pair.none)):
        drawn = found.values if one is found.truth else [one.values] * STUDIES
        runs = free_runs(pair.problem, one.candidate, drawn, seed)
        frames.append(runs.assign(candidate=one.candidate.name))
    return pd.concat(frames, ignore_index=True)


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
                "each row of a matrix of misclassification, one a true point, must hold shares that sum to 1"
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


def _pair(problem: Problem, fits: Sequence[Fit], scores: np.ndarray) -> Pair:
    """The best candidates with and without influence."""
    means = scores.mean(axis=0)
    order = [fits[place] for place in np.argsort(-means, kind="stable") if not fits[place].candidate.shuffled]
    influence, none = (next(one for one in order if one.candidate.influence is which) for which in (True, False))
    return Pair(problem, influence, none)


def _gain(study: Study, fits: Sequence[Fit], scores: np.ndarray) -> tuple[float, float]:
    """What influence adds to the mean score of a run, and its standard error.

    That is by how much the best candidate with influence beats the one without that it beats least clearly.
    """
    reading = np.array([each.candidate.influence for each in fits])
    best = scores[:, reading][:, scores[:, reading].mean(axis=0).argmax()]
    return min(
        (paired(study, best, own) for own in scores[:, ~reading].T), key=lambda gain: gain[0] - CLAIMED * gain[1]
    )


class Comparison:
    """How well classic models, and baselines in which nobody influences anybody, explain the runs of a store.

    Every frame has ``cell`` and ``evidence``; of scripted runs, a verdict is one about the script.

    Attributes
    ----------
    events : DataFrame
        Updates on record; see :func:`events`.
    margin : float
        Strength of influence below which it counts as absent, scale points for each point of discrepancy.
    """

    def __init__(
        self,
        explained: dict[str, Explained],
        updates: pd.DataFrame,
        margin: float,
        left_out: Mapping[Study, str] = MappingProxyType({}),
    ) -> None:
        self.events, self.margin = updates, margin
        self._explained, self._left_out = explained, left_out

    def plot(self) -> Figure:
        """Draw a row a condition: response curve, scores, and free runs beside the record.

        Returns
        -------
        Figure
            The response curve of the record with its 95 % band by run, and those of studies drawn from the best
            candidates with and without influence; scores with standard errors, filled where they tie with the best;
            mean opinion and diversity over time on record, and the 95 % bands of these candidates let loose.
        """
        from opinionsim.comparison._figures import comparison_figure

        return comparison_figure(self._explained)

    @cached_property
    def fits(self) -> pd.DataFrame:
        """One row a condition, candidate and parameter.

        Columns: cell, candidate, parameter, value, low and high (95 % interval, of the parameters of the best
        candidate), objective (log likelihood and log density of the noise), reason (why a candidate cannot have
        produced such updates; its other columns are missing then), evidence.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for cell, each in self._explained.items():
            for place, one in enumerate(each.fits):
                for name, value in one.values.items():
                    low, high = each.intervals.get(name, (np.nan, np.nan)) if place == each.best else (np.nan, np.nan)
                    rows.append(
                        {"cell": cell, "candidate": one.candidate.name, "parameter": name, "value": value, "low": low}
                        | {"high": high, "objective": one.objective, "reason": "", "evidence": each.study.evidence}
                    )
            rows += [
                {"cell": cell, "candidate": name, "reason": reason, "evidence": each.study.evidence}
                for name, reason in each.unfit.items()
            ]
        return pd.DataFrame(rows)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row a condition and candidate, the best first.

        Columns: cell, candidate, influence (whether it says that agents change by what they read), score (mean log
        score of an update in a held-out run, averaged over runs), standard_error, behind (difference to the best,
        paired by run) with behind_error, tie (within one standard error of the best), reached (share of the way from
        persistence to a table of shares by own rating and message; missing where opinions are exact), n_runs, evidence.
        """
        import pandas as pd

        rows = []
        for cell, each in self._explained.items():
            names = [one.candidate.name for one in each.fits]
            floor = each.scores[:, names.index("persistence")].mean()
            room = np.nan if each.study.exact else each.reachable.mean() - floor
            for place in np.argsort(-each.scores.mean(axis=0), kind="stable"):
                own = each.scores[:, place]
                behind, error = paired(each.study, each.scores[:, each.best], own)
                rows.append(
                    {
                        "cell": cell,
                        "candidate": names[place],
                        "influence": each.fits[place].candidate.influence,
                        "score": own.mean(),
                        "standard_error": own.std(ddof=1) / np.sqrt(len(own)),
                        "behind": behind,
                        "behind_error": error,
                        "tie": names[place] in each.ties,
                        "reached": (own.mean() - floor) / room if room > 0 else np.nan,
                        "n_runs": len(own),
                        "evidence": each.study.evidence,
                    }
                )
        return pd.DataFrame(rows)

    @cached_property
    def verdict(self) -> pd.DataFrame:
        """One row a condition.

        Columns: cell, verdict (``influence``, ``persistence``, ``no interaction needed``, ``none adequate``,
        ``undecided``, ``withheld`` or ``not compared``), best (candidate), ties (those within one standard error, the
        best first), gain (of influence, in the mean log score of an update, over the candidate without it that comes
        nearest) with gain_error, why (reasons to withhold, or not to compare), statement (the verdict in a sentence),
        n_runs, n_blocks, n_updates, evidence.
        """
        import pandas as pd

        rows = []
        for cell, each in self._explained.items():
            gain, error = each.gain
            rows.append(
                {
                    "cell": cell,
                    "verdict": each.verdict,
                    "best": each.ties[0],
                    "ties": ", ".join(each.ties),
                    "gain": gain,
                    "gain_error": error,
                    "why": "; ".join(each.withheld),
                    "statement": _statement(each, self.margin),
                }
                | _counts(each.study)
            )
        for study, why in self._left_out.items():
            left_out = {"verdict": "not compared", "why": why, "statement": f"Not compared: {why}."}
            rows.append(left_out | _counts(study))
        return pd.DataFrame(rows)

    @cached_property
    def free_runs(self) -> pd.DataFrame:
        """One row a condition, candidate, measure and step: the best candidates with and without influence, let loose.

        Columns: cell, candidate, measure, step, observed, low, mean, high, outside (of the band of 95 %), evidence; see
        :func:`opinionsim.comparison.free_runs`.
        """
        import pandas as pd

        frames = [each.free.assign(cell=cell, evidence=each.study.evidence) for cell, each in self._explained.items()]
        joined = pd.concat(frames, ignore_index=True)
        return joined[["cell", "candidate", *joined.columns.drop(["cell", "candidate"])]]

    @cached_property
    def trust(self) -> pd.DataFrame:
        """One row a condition and parameter of the fit from which studies were drawn.

        Columns: cell, candidate (that fit), parameter, truth, mean and sd (of its estimates in these studies), claimed
        (share of them in which influence was claimed), recovered (share in which that was right), gap (to the table of
        shares, in the mean log score of an update) and worst_gap (the largest in the drawn studies), drift (distance of
        the mean opinion from its course in the drawn studies, scale points) and worst_drift, n_studies, noise (whether
        errors of ratings are fitted, given, or those of an audit), evidence.
        """
        import pandas as pd

        rows = []
        for cell, each in self._explained.items():
            found = each.trust
            for name, value in found.truth.values.items():
                drawn = np.array([values[name] for values in found.values])
                rows.append(
                    {
                        "cell": cell,
                        "candidate": found.truth.candidate.name,
                        "parameter": name,
                        "truth": value,
                        "mean": drawn.mean(),
                        "sd": drawn.std(ddof=1),
                        "claimed": found.claimed,
                        "recovered": found.recovered,
                        "gap": found.gaps[0],
                        "worst_gap": found.gaps[1:].max(),
                        "drift": found.drifts[0],
                        "worst_drift": found.drifts[1:].max(),
                        "n_studies": len(found.pairs),
                        "noise": each.noise,
                        "evidence": each.study.evidence,
                    }
                )
        return pd.DataFrame(rows)


def _counts(study: Study) -> dict[str, Any]:
    """What a verdict on a condition rests on."""
    n = {"n_runs": len(study), "n_blocks": len(set(study.blocks)), "n_updates": int(study.updated.sum())}
    return {"cell": study.cell, **n, "evidence": study.evidence}


#: Verdicts in words, by name: of the candidates that tie, the margin, the gain and its standard error, and reasons.
_STATEMENTS = {
    "withheld": "No verdict: {why}.",
    "none adequate": "No candidate is adequate: {lacking}, by more than chance explains.",
    "influence": "Agents change by what they read ({gain:+.3f} ± {error:.3f} in the log score of an update), and "
    "{ties} {say} how.",
    "persistence": "Agents keep their opinions; they move less than {margin:g} points for each point of discrepancy.",
    "no interaction needed": "No interaction is needed: {alone} says as much, and agents move less than {margin:g} "
    "points for each point of discrepancy.",
    "undecided": "Undecided: influence is not shown ({gain:+.3f} ± {error:.3f} in the log score of an update), nor "
    "that agents move less than {margin:g} points for each point of discrepancy.",
}
#: What is better than every candidate, or otherwise than by the best, where none is adequate.
_LACKING = ("a table of shares by own rating and message predicts updates better", "the mean opinion runs elsewhere")


def _statement(each: Explained, margin: float) -> str:
    reading = [one.candidate.name for one in each.fits if one.candidate.influence]
    ties = [name for name in each.ties if name in reading]
    gain, error = each.gain
    said = _STATEMENTS[each.verdict].format(
        why="; ".join(each.withheld),
        gain=gain,
        error=error,
        ties=" or ".join(ties),
        say="says" if len(ties) == 1 else "say",
        alone=each.alone,
        lacking=_LACKING[0 if each.trust.exceeded[0] else 1],
        margin=margin,
    )
    return f"{said} This is about the script." if each.study.evidence == "scripted" else said
