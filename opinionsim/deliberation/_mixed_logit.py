"""A logit with random intercepts for people and topics."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

#: Points of a standard normal at which integrals are summed, the logs of their shares, and steps of second differences.
_POINTS, _STEP = np.linspace(-5, 5, 61), 1e-2
_SHARES = -(_POINTS**2) / 2 - np.log(np.exp(-(_POINTS**2) / 2).sum())


class MixedLogit(NamedTuple):
    """Estimates of :func:`mixed_logit`; NaN if all outcomes are equal."""

    intercept: float
    """Log odds of a 1 for a typical person and topic."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of that interval."""
    persons: float
    """Variance of the intercepts of people, on the scale of log odds."""
    topics: float
    """Variance of the intercepts of topics; NaN with a single topic."""


def mixed_logit(outcomes: ArrayLike, persons: ArrayLike, topics: ArrayLike) -> MixedLogit:
    """Fit a logit with random intercepts for people, and for topics if there are several.

    Parameters
    ----------
    outcomes : array_like (N,)
        0 or 1.
    persons, topics : array_like (N,)
        Person and topic of each outcome. A person with outcomes on two topics counts as two people.

    Notes
    -----
    The intercepts are normally distributed. The function integrates the likelihood over them numerically and maximises
    it. The standard error of the intercept comes from second differences of the likelihood, so it includes the
    uncertainty about the variances. The interval uses Student's t with one degree of freedom fewer than there are
    topics (or people, if there is one topic). A variance may be 0; if both are 0, the intercept and its error equal
    those of the plain logit. Numbers have four decimals, the precision of the maximisation.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, stdtrit

    known = pd.DataFrame({"topic": topics, "person": persons, "chosen": np.asarray(outcomes, dtype=float)})
    if known["chosen"].nunique() < 2:
        return MixedLogit(*[math.nan] * 5)
    by = known.groupby(["topic", "person"])["chosen"].agg(["sum", "size"]).reset_index()
    alike = by.groupby(["topic", "sum", "size"])["person"].count().reset_index()
    ones, n, many = (alike[name].to_numpy()[:, None, None] for name in ("sum", "size", "person"))
    own = pd.get_dummies(alike["topic"]).to_numpy(dtype=float).T
    several = len(own) > 1
    points, shares = (_POINTS, _SHARES) if several else (np.zeros(1), 0.0)

    def surprise(at: np.ndarray) -> float:
        """Minus the log of the likelihood at an intercept and the deviations of persons and of topics."""
        eta = at[0] + at[1] * _POINTS + at[-1] * points[:, None]
        by_person = many[..., 0] * logsumexp(ones * eta - n * np.logaddexp(0, eta) + _SHARES, axis=2)
        return -float(logsumexp(own @ by_person + shares, axis=1).sum())

    rate = known["chosen"].mean()
    found = minimize(surprise, [math.log(rate / (1 - rate)), 1.0, 1.0][: 2 + several]).x
    steps, signs = _STEP * np.eye(len(found)), (1, -1)

    def bend(a: np.ndarray, b: np.ndarray) -> float:
        return sum(s * t * surprise(found + s * a + t * b) for s in signs for t in signs) / (2 * _STEP) ** 2

    error = math.sqrt(np.linalg.pinv(np.array([[bend(a, b) for b in steps] for a in steps]))[0, 0])
    half = error * stdtrit((len(own) if several else len(by)) - 1, 0.975)
    numbers = (found[0], found[0] - half, found[0] + half, *found[1:] ** 2, math.nan)[:5]
    return MixedLogit(*(round(float(each), 4) for each in numbers))
