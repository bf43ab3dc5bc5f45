"""How well a model's answers match those of respondents, item by item, compared with baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pandas as pd

from opinionsim.errors import SurveyError
from opinionsim.foundation.streams import stream
from opinionsim.surveys import ALL_ITEMS, Subgroups, SurveyItem, estimates

#: Fewest drawn respondents of a subgroup that is compared, or of a value that has a coefficient.
FEWEST = 10
#: Coefficients nearer to 0 than this count as 0.
_NO_EFFECT = 1e-9
#: Resamples of respondents behind an interval, and how many standard errors it has to either side.
_RESAMPLES = 400
_NORMAL = 1.959964
#: Weight of the squared coefficients of the regression, which keeps those of rare combinations finite.
_RIDGE = 0.5

#: Measures of many answers together, the headline first, and of answers one by one; with their range.
GROUP_MEASURES = {
    "variance ratio": (0.0, np.inf),
    "total variation": (0.0, 1.0),
    "Wasserstein distance": (0.0, 1.0),
    "subgroup error": (0.0, 1.0),
    "coefficient correlation": (-1.0, 1.0),
    "coefficient signs": (0.0, 1.0),
}
PAIR_MEASURES = {"accuracy": (0.0, 1.0), "correlation": (-1.0, 1.0)}
MEASURES = {**GROUP_MEASURES, **PAIR_MEASURES}

_Measured = dict[tuple[str, str], float]
_Key = TypeVar("_Key")


class ItemAgreement:
    """Agreement of a model's answers to one item with a survey.

    Parameters
    ----------
    item : SurveyItem
        The item, with the answers of respondents.
    weights : ndarray of float, shape (n,), or None
        Weights of the respondents of the survey.
    subgroups : Subgroups
        Subgroups of the respondents of the survey.
    told : Subgroups
        Subgroups that personas mention, which serve as predictors in the regression of answers.
    drawn : ndarray of int, shape (m,)
        Positions of the respondents that the model played, drawn by weight.
    answers, again : ndarray of float, shape (m,)
        Position of the model's answer among the options in the first and second asking; NaN if there is none.

    Raises
    ------
    SurveyError
        If no respondent outside the drawn ones has answered, because the regression then has no training data.

    Notes
    -----
    Answers lie on 0..1, from the first option to the last. Missing answers do not count in any measure.
    """

    def __init__(
        self,
        item: SurveyItem,
        weights: np.ndarray | None,
        subgroups: Subgroups,
        told: Subgroups,
        drawn: np.ndarray,
        answers: np.ndarray,
        again: np.ndarray,
    ) -> None:
        self.item = item
        self.answers, self.again = answers, again
        self.own = item.answers[drawn]
        self.later = None if item.again is None else item.again[drawn]
        self._subgroups, self._told, self._drawn = subgroups, told, drawn
        self._weights = np.ones(len(item.answers)) if weights is None else weights
        self._steps = len(item) - 1
        answered = ~np.isnan(item.answers) & (self._weights > 0)
        undrawn = np.ones(len(answered), dtype=bool)
        undrawn[drawn] = False
        self._train = np.flatnonzero(answered & undrawn)
        if not len(self._train):
            raise SurveyError(
                f"no respondent outside the sample has answered {item.name!r}, so the regression has no training data"
            )
        self._survey = np.where(answered, self._weights, 0.0)
        self._y = np.nan_to_num(item.answers) / self._steps
        members = subgroups.members.astype(float)
        self._shares, self._means, self._variances = _moments(members, self._y, self._survey, self._survey**2)
        self._members, self._x = members[drawn], told.members[drawn].astype(float)
        self._compared = self._members.sum(axis=0) >= FEWEST
        self._options = _shares(item.answers, self._survey, len(item))

    @property
    def trained_on(self) -> int:
        """Number of respondents in the regression's training data: those who answered and were not drawn."""
        return len(self._train)

    @cached_property
    def _columns(self) -> np.ndarray:
        """Values of variables that have a coefficient: common ones, but for the most common of each variable."""
        return _with_coefficient(self._told, self._x.sum(axis=0))

    @cached_property
    def _coefficients(self) -> np.ndarray:
        """Coefficients of the survey, weighted."""
        return linear_coefficients(self._told.members[:, self._columns], self._y, self._survey)

    @cached_property
    def _regression(self) -> np.ndarray:
        """Probability of each option for the drawn respondents, by the regression on those who were not drawn."""
        members, train = self._told.members, self._train
        columns = _with_coefficient(self._told, members[train].sum(axis=0))
        x = members[:, columns].astype(float)
        chosen = self.item.answers[train].astype(int)
        fitted = fit_multinomial(x[train], chosen, self._weights[train], len(self.item))
        return predict_multinomial(fitted, x[self._drawn])

    def measures(self, counts: np.ndarray) -> _Measured:
        """Compute all measures, by measure and by source of the answers.

        Parameters
        ----------
        counts : ndarray, shape (m,)
            Number of times that each drawn respondent counts.
        """
        found: _Measured = {}
        for whose, answers in (("model", self.answers), ("respondents", self.own)):
            for measure, value in self._together(answers, counts).items():
                found[measure, whose] = value
        both = np.where(np.isnan(self.answers) | np.isnan(self.own), 0, counts)
        predicted = self._regression
        expected = predicted @ np.arange(len(self.item))
        mode = float(_shares(self.item.answers[self._train], self._weights[self._train], len(self.item)).argmax())
        found["accuracy", "model"] = _accuracy(self.answers, self.own, both)
        found["accuracy", "regression"] = _accuracy(predicted.argmax(axis=1), self.own, both)
        found["accuracy", "modal answer"] = _accuracy(np.full(len(self.own), mode), self.own, both)
        found["correlation", "model"] = _correlation(self.answers, self.own, both)
        found["correlation", "regression"] = _correlation(expected, self.own, both)
        retests = {"model again": (self.answers, self.again)}
        if self.later is not None:
            retests["respondents again"] = (self.own, self.later)
        for whose, (first, second) in retests.items():
            asked = np.where(np.isnan(first) | np.isnan(second), 0, counts)
            found["accuracy", whose] = _accuracy(first, second, asked)
            found["correlation", whose] = _correlation(first, second, asked)
        return found

    def _together(self, answers: np.ndarray, counts: np.ndarray) -> dict[str, float]:
        """Measures of many answers together."""
        w = np.where(np.isnan(answers), 0, counts).astype(float)
        if w.sum() < 2:
            return dict.fromkeys(GROUP_MEASURES, np.nan)
        y = np.nan_to_num(answers) / self._steps
        shares = _shares(answers, w, len(self.item))
        gaps = shares - self._options
        _, means, variances = _moments(self._members, y, w, w)
        both = self._compared & ~np.isnan(means) & ~np.isnan(self._means)
        spread = self._compared & ~np.isnan(variances) & ~np.isnan(self._variances)
        within = float(self._shares[spread] @ self._variances[spread])
        theirs = linear_coefficients(self._x[:, self._columns], y, w)
        signs = np.sign(theirs) == np.sign(self._coefficients)
        return {
            "variance ratio": float(self._shares[spread] @ variances[spread]) / within if within else np.nan,
            "total variation": float(np.abs(gaps).sum() / 2),
            "Wasserstein distance": float(np.abs(np.cumsum(gaps)).sum() / self._steps),
            "subgroup error": float(np.abs(means - self._means)[both].mean()) if both.any() else np.nan,
            "coefficient correlation": _correlation(theirs, self._coefficients, np.ones(len(theirs))),
            "coefficient signs": float(signs.mean()) if len(signs) else np.nan,
        }

    def subgroups(self) -> pd.DataFrame:
        """Means of the compared subgroups.

        Returns
        -------
        DataFrame
            One row per subgroup: ``variable``, ``value``; ``n``, ``effective_n``, ``mean`` and ``standard_error`` of
            the survey; the same for the model with the prefix ``model_``; and ``difference``, model minus survey.
        """
        rows = []
        everyone = self._survey > 0
        y = np.where(everyone, self._y, np.nan)
        said = self.answers / self._steps
        for place in np.flatnonzero(self._compared):
            variable, value = self._subgroups.names[place]
            inside = self._subgroups.members[:, place]
            theirs, ours = (
                estimates(given, weights, [value if each else None for each in members]).drop(columns="group")
                for given, weights, members in ((y, self._survey, inside), (said, None, inside[self._drawn]))
            )
            both = theirs.join(ours.drop(columns="effective_n").add_prefix("model_")).to_dict("records")[0]
            both["difference"] = both["model_mean"] - both["mean"]
            rows.append({"item": self.item.name, "variable": variable, "value": value, **both})
        return pd.DataFrame(rows)


def intervals(items: list[ItemAgreement]) -> pd.DataFrame:
    """All measures of all items, and their means over items, with intervals over respondents.

    Parameters
    ----------
    items : list of ItemAgreement
        Items with the same drawn respondents, at least one.

    Returns
    -------
    DataFrame
        One row for each ``item`` (``all`` for the mean over several items), ``measure`` and ``of`` (the source of the
        answers), with ``value``, ``low`` and ``high``, which lie 1.96 bootstrap standard errors to either side, within
        the range of the measure. The bootstrap resamples respondents with all their answers.
    """
    rows = []
    for key, value, half in resampled(len(items[0].own), partial(_all, items), "survey intervals"):
        low, high = np.clip([value - half, value + half], *MEASURES[key[1]])
        rows.append((*key, value, low, high))
    return pd.DataFrame(rows, columns=["item", "measure", "of", "value", "low", "high"])


def resampled(
    n: int, measures: Callable[[np.ndarray], Mapping[_Key, float]], name: str
) -> Iterator[tuple[_Key, float, float]]:
    """Compute each measure of `n` units with the half-width of its 95 % interval, 1.96 bootstrap standard errors.

    `measures(counts)` takes the number of times that each unit counts, (n,). The half-width is NaN if a measure is
    undefined in most resamples or has the same value in all of them. `name` is the name of the draws.
    """
    draws = stream(0, name).multinomial(n, np.full(n, 1 / n), size=_RESAMPLES)
    drawn = [measures(counts) for counts in draws]
    for key, value in measures(np.ones(n)).items():
        spread = np.array([each[key] for each in drawn])
        spread = spread[~np.isnan(spread)]
        known = len(spread) > _RESAMPLES // 2 and np.ptp(spread) > _NO_EFFECT
        yield key, value, _NORMAL * spread.std(ddof=1) if known else np.nan


def _all(items: list[ItemAgreement], counts: np.ndarray) -> dict[tuple[str, str, str], float]:
    """Measures by item, measure and of whom, then their means over the items."""
    found = {(each.item.name, *key): value for each in items for key, value in each.measures(counts).items()}
    if len(items) > 1:
        for measure, whose in dict.fromkeys((measure, whose) for _, measure, whose in found):
            each = [value for key, value in found.items() if key[1:] == (measure, whose)]
            found[ALL_ITEMS, measure, whose] = float(np.mean(each)) if len(each) == len(items) else np.nan
    return found


def fit_multinomial(x: np.ndarray, y: np.ndarray, weights: np.ndarray, n_options: int) -> np.ndarray:
    """Coefficients of a multinomial logistic regression.

    Parameters
    ----------
    x : ndarray of float, shape (n, p)
        Predictors, without a constant.
    y : ndarray of int, shape (n,)
        Option that each respondent chose, from 0.
    weights : ndarray of float, shape (n,)
        Weight of each respondent, at least 0 and not all 0; only their ratios matter.
    n_options : int
        Number of options k.

    Returns
    -------
    ndarray, shape (p + 1, k)
        Coefficients of each option, the constant first; only differences between options have a meaning. They maximise
        sum w log P(y | x) minus half the sum of squared coefficients without the constants, with weights of mean 1.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    design = np.column_stack([np.ones(len(x)), x])
    w = weights / weights.mean()
    chosen = np.eye(n_options)[y]
    shape = (design.shape[1], n_options)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        b = flat.reshape(shape)
        logs = log_softmax(design @ b, axis=1)
        slope = design.T @ (w[:, None] * (np.exp(logs) - chosen))
        slope[1:] += 2 * _RIDGE * b[1:]
        return float(-(w @ (chosen * logs).sum(axis=1)) + _RIDGE * (b[1:] ** 2).sum()), slope.ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return np.asarray(found.x).reshape(shape)


def predict_multinomial(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Probability of each option, shape (n, k), for coefficients of :func:`fit_multinomial`."""
    from scipy.special import softmax

    return np.asarray(softmax(coefficients[0] + x @ coefficients[1:], axis=1))


def linear_coefficients(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients of a weighted linear regression with a constant, which is left out.

    Parameters
    ----------
    x : ndarray, shape (n, p)
        Predictors.
    y, weights : ndarray of float, shape (n,)
        Dependent variable and weights.

    Returns
    -------
    ndarray of float, shape (p,)
        Coefficients; the shortest vector if predictors are linearly dependent, and exactly 0 if there is no effect.
    """
    design = np.column_stack([np.ones(len(x)), x])
    weighted = design.T * weights
    solved = np.linalg.lstsq(weighted @ design, weighted @ y, rcond=1e-10)[0][1:]
    return np.where(np.abs(solved) < _NO_EFFECT, 0.0, solved)


def _with_coefficient(groups: Subgroups, n: np.ndarray) -> np.ndarray:
    """Positions of values with enough members, but for the one with most of each variable."""
    kept: list[int] = []
    for variable in dict.fromkeys(variable for variable, _ in groups.names):
        places = [place for place, (each, _) in enumerate(groups.names) if each == variable]
        most = max(places, key=lambda place: n[place])
        kept += [place for place in places if place != most and n[place] >= FEWEST]
    return np.array(kept, dtype=int)


def _shares(answers: np.ndarray, weights: np.ndarray, n_options: int) -> np.ndarray:
    """Weighted share of each option among those who answered, shape (k,)."""
    seen = ~np.isnan(answers)
    sums = np.bincount(answers[seen].astype(int), weights=weights[seen], minlength=n_options)
    return np.asarray(sums / sums.sum())


def _moments(
    members: np.ndarray, y: np.ndarray, weights: np.ndarray, lost: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of weights, mean and unbiased variance of each subgroup; NaN where there is none.

    `lost` is what the mean takes from the sum of weights, times that sum: the squares of weights of a survey, after
    Kish; for counts of respondents the counts, so that the variance has n - 1 below it.
    """
    total = members.T @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        means = members.T @ (weights * y) / total
        free = 1 - members.T @ lost / total**2
        variances = np.maximum(members.T @ (weights * y**2) / total - means**2, 0) / np.where(free > 0, free, np.nan)
    return total, means, variances


def _accuracy(guess: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> float:
    """Share of equal answers."""
    return float((counts * (guess == truth)).sum() / counts.sum()) if counts.sum() else np.nan


def _correlation(a: np.ndarray, b: np.ndarray, counts: np.ndarray) -> float:
    """Pearson's correlation; NaN where a side does not vary."""
    seen = counts > 0
    if seen.sum() < 2:
        return np.nan
    w, a, b = counts[seen] / counts[seen].sum(), a[seen], b[seen]
    a, b = a - w @ a, b - w @ b
    scale = np.sqrt((w @ a**2) * (w @ b**2))
    return float(np.clip(w @ (a * b) / scale, -1, 1)) if scale > _NO_EFFECT else np.nan
