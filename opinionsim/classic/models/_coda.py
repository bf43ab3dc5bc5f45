"""Continuous opinions and discrete actions: Martins 2008."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ORDERS, PICKS, ClassicModel, Parameter, Units
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._pairwise import pairwise_kernel
from opinionsim.foundation.compilation import at, inlined


class Parameters(NamedTuple):
    r"""Continuous opinions and discrete actions (CODA).

    Each agent assigns a probability to the upper of two choices being the better one, and shows only which choice it
    prefers. An agent that sees another's choice updates by Bayes' rule. A neutral agent shows nothing, and a certain
    one never changes.

    - Equation: \nu_i \leftarrow \nu_i + \operatorname{sign}(\nu_j) \ln\frac{a}{1-a},\quad \nu = \ln\frac{x -
      x_{\min}}{x_{\max} - x}
    - Behaviour: On the complete graph, all agents end up on one side and become ever more certain. On lattices, the
      sides coexist in domains whose interiors become extreme. In units of ln(a/(1-a)), log-odds move by 1, so if the
      initial opinions are scaled in the same way, trust affects only the speed.
    - Source: Martins 2008
    """

    # Kernels take it as the log-odds that one choice is worth.
    trust: Any = Parameter(0.7, "assumed probability that others choose the better option", "a", "(0.5, 1)")


@inlined
def _update(i, j, own, other, start, p, word, spare):
    return own + at(p.trust, i) * (np.float64(other > 0.0) - np.float64(other < 0.0))


def _prepare(p: Parameters) -> Parameters:
    return p._replace(trust=np.log(p.trust) - np.log1p(-np.asarray(p.trust)))


def _log_odds(opinions: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """Opinions as the log-odds of the upper end; the ends themselves are certain, and nothing moves them."""
    low, high = span
    with np.errstate(divide="ignore"):
        odds = np.log(opinions - low) - np.log(high - opinions)
    # The middle is neutral whatever the rounding of its distances.
    return np.where(opinions == (low + high) / 2, 0.0, odds)


def _opinions(log_odds: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    from scipy.special import expit

    low, high = span
    # From either end, so that opinions close to one keep their digits.
    width, upper = high - low, log_odds > 0
    return np.asarray(np.where(upper, high - width * expit(-log_odds), low + width * expit(log_odds)))


def _transition(received: Received, p: Parameters) -> np.ndarray:
    # Bayes' rule, where the choice seen is `odds` times as likely if it is right.
    odds, seen = p.trust / (1 - np.asarray(p.trust)), np.sign(received.said[:, 0])
    with np.errstate(divide="ignore"):
        return np.where(seen == 0, received.own, np.log(np.exp(received.own) * odds**seen))


MODEL = ClassicModel(
    name="coda",
    family="reinforcing",
    parameters=Parameters,
    kernel=pairwise_kernel(_update),
    update=_update,
    transition=_transition,
    prepare=_prepare,
    units=Units(_log_odds, _opinions),
    orders=ORDERS,
    picks=PICKS,
    sides=("one", "two"),
    keeps_consensus=False,
    example={"n": 400, "network": "lattice", "steps": 40},
)
