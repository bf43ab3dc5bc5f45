"""Continuous opinions and discrete actions: Martins 2008."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._model import ORDERS, ClassicModel, Parameter, Source
from opinionsim.classic._pairwise import pairwise_kernel
from opinionsim.classic._transition import Transition, certain
from opinionsim.compilation import at, inlined

__all__ = ["MODEL", "Parameters"]


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them: `trust` as the log-odds that one choice is worth."""

    trust: Annotated[np.ndarray, Parameter(0.7, "probability with which others are thought to choose rightly", "a",
                                           0.5, 1.0, open_low=True, open_high=True)]  # fmt: skip


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


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    low, high = span
    share, odds = (before - low) / (high - low), p.trust / (1 - np.asarray(p.trust))
    # Bayes' rule, where the choice seen is `odds` times as likely if it is right.
    seen = np.sign(messages[:, 0] - (low + high) / 2)
    likelier = odds**seen
    posterior = share * likelier / (share * likelier + (1 - share))
    return certain(np.where(seen == 0, before, low + (high - low) * posterior))


MODEL = ClassicModel(
    name="coda",
    title="Continuous opinions and discrete actions (CODA)",
    kind="continuous",
    family="reinforcing",
    summary="Agents hold a probability that the upper of two choices is the better one, and show only which they "
    "prefer. Whoever sees a choice updates by Bayes' rule. A neutral agent shows nothing; a certain one never changes.",
    equation=r"\nu_i \leftarrow \nu_i + \operatorname{sign}(\nu_j) \ln\frac{a}{1-a},\quad "
    r"\nu = \ln\frac{x - x_{\min}}{x_{\max} - x}",
    behaviour="On the complete graph all end up on one side, ever more certain; on lattices sides coexist in domains "
    "whose insides become extreme. In units of ln(a/(1-a)) log-odds move by 1, so that, from starts so scaled, "
    "trust sets no more than the speed.",
    source=(
        Source(
            "Martins (2008). Continuous opinions and discrete actions in opinion dynamics problems. "
            "International Journal of Modern Physics C 19, 617-624",
            "10.1142/S0129183108012339",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=pairwise_kernel(_update),
    update=_update,
    transition=_transition,
    prepare=_prepare,
    encode=_log_odds,
    decode=_opinions,
    orders=ORDERS,
    picks=("listener", "speaker", "edge"),
    sides=("one", "two"),
    keeps_consensus=False,
    example={"n": 400, "network": "lattice", "initial": "uniform", "steps": 40},
)
