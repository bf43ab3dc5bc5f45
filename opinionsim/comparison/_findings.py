"""Findings for each condition, in frames and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from opinionsim.comparison._condition_figures import comparison_figure
from opinionsim.comparison._fit import Fit, Problem
from opinionsim.comparison._scores import paired, standard_error
from opinionsim.comparison._trust import CLAIMED, Trust, claimed
from opinionsim.comparison._update_arrays import Updates
from opinionsim.foundation.templates import sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Explained:
    """Findings for one condition.

    Attributes
    ----------
    study : Updates
        Its updates.
    problem : Problem
        The study, with the error model of its ratings.
    fits : tuple of Fit
        Every candidate that can have produced the updates, at its optimum.
    unfit : dict of str to str
        Reasons why other candidates cannot have produced them.
    scores : ndarray (R, C)
        Mean log score of the updates of each held-out run, by fit.
    reachable : ndarray (R,)
        The same for predictions from a table of shares.
    noise : str
        Source of the errors of ratings.
    gain : (float, float)
        Gain in the mean score of a run due to influence, and its standard error; see :func:`_gain`.
    trust : Trust
        Studies simulated from the fit behind the finding.
    intervals : dict of str to (float, float)
        95 % intervals of the parameters of the best candidate.
    withheld : tuple of str
        Reasons to withhold the finding.
    absent : bool
        Whether the data show that influence is below the margin.
    free : DataFrame
        Free runs of the best candidates with and without influence; see :func:`free_runs`.
    """

    study: Updates
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
        """Candidates within one standard error of the best, the best first."""
        found = [self.fits[self.best].candidate.name]
        for place, each in enumerate(self.fits):
            mean, error = paired(self.study, self.scores[:, self.best], self.scores[:, place])
            if place != self.best and mean <= error:
                found.append(each.candidate.name)
        return found

    @cached_property
    def alone(self) -> str:
        """Behaviour without influence: persistence, unless the best baseline beats it by two standard errors."""
        places = {each.candidate.name: place for place, each in enumerate(self.fits) if each.candidate.model is None}
        means = self.scores.mean(axis=0)
        best = max(places, key=lambda name: means[places[name]])
        mean, error = paired(self.study, self.scores[:, places[best]], self.scores[:, places["persistence"]])
        return best if mean > CLAIMED * error else "persistence"

    @property
    def finding(self) -> str:
        """The finding, as in :attr:`Comparison.findings`."""
        if self.withheld:
            return "withheld"
        if not self.trust.adequate:
            return "none adequate"
        if claimed(self.gain):
            return "influence"
        if not self.absent:
            return "undecided"
        return "persistence" if self.alone == "persistence" else "no interaction needed"

    def fit_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of :attr:`Comparison.fits`."""
        for place, one in enumerate(self.fits):
            for name, value in one.values.items():
                low, high = self.intervals.get(name, (np.nan, np.nan)) if place == self.best else (np.nan, np.nan)
                row = {"candidate": one.candidate.name, "parameter": name, "value": value, "low": low, "high": high}
                yield row | {"objective": one.objective, "reason": ""}
        for name, reason in self.unfit.items():
            yield {"candidate": name, "reason": reason}

    def score_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of :attr:`Comparison.scores`."""
        names = [one.candidate.name for one in self.fits]
        floor = self.scores[:, names.index("persistence")].mean()
        room = np.nan if self.study.exact else self.reachable.mean() - floor
        for place in np.argsort(-self.scores.mean(axis=0), kind="stable"):
            own = self.scores[:, place]
            behind, error = paired(self.study, self.scores[:, self.best], own)
            yield {
                "candidate": names[place],
                "influence": self.fits[place].candidate.influence,
                "score": own.mean(),
                "standard_error": standard_error(self.study, own),
                "behind": behind,
                "behind_error": error,
                "tie": names[place] in self.ties,
                "reached": (own.mean() - floor) / room if room > 0 else np.nan,
                "n_runs": len(own),
            }

    def trust_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of :attr:`Comparison.trust`."""
        found = self.trust
        for name, value in found.truth.values.items():
            drawn = np.array([values[name] for values in found.values])
            yield {
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
                "noise": self.noise,
            }


class Comparison:
    """How well classic models, and baselines without influence among agents, explain the runs of a store.

    Every frame has the columns ``cell`` and ``evidence``. Findings from scripted runs describe only the script.

    Attributes
    ----------
    events : DataFrame
        Updates on record; see :func:`events`.
    margin : float
        Threshold below which influence counts as absent, in scale points per point of discrepancy.
    """

    def __init__(
        self,
        explained: dict[str, Explained],
        updates: pd.DataFrame,
        margin: float,
        left_out: Mapping[Updates, str] = MappingProxyType({}),
    ) -> None:
        self.events, self.margin = updates, margin
        self._explained, self._left_out = explained, left_out

    def plot(self) -> Figure:
        """Draw a row of panels per condition with response curve, scores, and free runs compared with the record.

        Returns
        -------
        Figure
            The response curve of the record with its 95 % band by block, and the curves of studies simulated from the
            best candidates with and without influence; scores with standard errors, filled if they tie with the best;
            and recorded mean opinion and diversity over time with the 95 % bands of free runs of these candidates.
        """
        return comparison_figure(self._explained)

    @cached_property
    def fits(self) -> pd.DataFrame:
        """One row per condition, candidate and parameter.

        Columns: cell, candidate, parameter, value, low and high (95 % interval, of the parameters of the best
        candidate), objective (log likelihood and log density of the noise), reason (why a candidate cannot have
        produced such updates, in which case its other columns are missing), evidence.
        """
        return self._frame(Explained.fit_rows)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per condition and candidate, the best first.

        Columns: cell, candidate, influence (whether messages change opinions in it), score (mean log score of an update
        in a held-out run, averaged over runs), standard_error (over blocks), behind (difference from the best, paired
        by run) with behind_error (also over blocks), tie (within one standard error of the best), reached (share of the
        way from persistence to a table of shares by own rating and message; missing if opinions are exact), n_runs,
        evidence.
        """
        return self._frame(Explained.score_rows)

    @cached_property
    def findings(self) -> pd.DataFrame:
        """One row per condition.

        Columns: cell, finding (``influence``, ``persistence``, ``no interaction needed``, ``none adequate``,
        ``undecided``, ``withheld`` or ``not compared``), best (candidate), ties (those within one standard error, the
        best first), gain (of influence, in the mean log score of an update, over the closest candidate without it) with
        gain_error, why (reasons to withhold the finding or not to compare), statement (the finding in a sentence),
        n_runs, n_blocks, n_updates, evidence.
        """
        rows = []
        for cell, each in self._explained.items():
            gain, error = each.gain
            rows.append(
                {
                    "cell": cell,
                    "finding": each.finding,
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
            left_out = {"finding": "not compared", "why": why, "statement": f"Not compared: {why}."}
            rows.append(left_out | _counts(study))
        return pd.DataFrame(rows)

    @cached_property
    def free_runs(self) -> pd.DataFrame:
        """One row per condition, candidate, measure and step for the best candidates with and without influence.

        Columns: cell, candidate, measure, step, observed, low, mean, high, outside (of the band of 95 %), evidence; see
        :func:`opinionsim.comparison.free_runs`.
        """
        return self._frame(lambda each: each.free.to_dict("records"))

    @cached_property
    def trust(self) -> pd.DataFrame:
        """One row per condition and parameter of the fit from which studies were simulated.

        Columns: cell, candidate (that fit), parameter, truth, mean and sd (of its estimates in these studies), claimed
        (share of these studies in which the analysis claimed influence), recovered (share in which the claim was
        correct), gap (to the table of shares, in the mean log score of an update) and worst_gap (the largest in the
        simulated studies), drift (distance of the mean opinion from its course in the simulated studies, in scale
        points) and worst_drift, n_studies, noise (whether errors of ratings are fitted, given, or from an audit),
        evidence.
        """
        return self._frame(Explained.trust_rows)

    def _frame(self, rows: Callable[[Explained], Iterable[Mapping[Any, Any]]]) -> pd.DataFrame:
        """A frame of the rows of every condition, with its cell before them and its evidence behind."""
        return pd.DataFrame(
            {"cell": cell, **row, "evidence": each.study.evidence}
            for cell, each in self._explained.items()
            for row in rows(each)
        )


def _counts(study: Updates) -> dict[str, Any]:
    """What a finding on a condition rests on."""
    n = {"n_runs": len(study), "n_blocks": len(set(study.blocks)), "n_updates": int(study.updated.sum())}
    return {"cell": study.cell, **n, "evidence": study.evidence}


def _statement(each: Explained, margin: float) -> str:
    """The finding on a condition in a sentence."""
    reading = {one.candidate.name for one in each.fits if one.candidate.influence}
    ties = [name for name in each.ties if name in reading]
    groups = [one.candidate.name for one in each.fits if one.candidate.at_once and one.candidate.influence]
    given = {"found": each, "ties": ties, "groups": groups, "margin": margin}
    return " ".join(sentences("opinionsim.comparison", "finding.txt", **given))
