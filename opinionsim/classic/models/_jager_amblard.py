"""Attraction and repulsion by thresholds: Jager & Amblard 2005."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ORDERS, PICKS, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._influences import MEDIA, MEDIA_OPINIONS, NOISE, ZEALOT, disturbed
from opinionsim.classic.kernels._pairwise import pairwise_kernel, vector_kernel
from opinionsim.classic.kernels._stepping import confined
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import at, inlined


class Parameters(NamedTuple):
    r"""Jager-Amblard social judgement.

    Opinions closer than u attract, opinions farther apart than t repel, and opinions in between have no effect on each
    other.

    - Equation: |x_j - x_i| < u:\ x_i \leftarrow x_i + \mu (x_j - x_i);\quad |x_j - x_i| > t:\ x_i \leftarrow x_i - \mu
      (x_j - x_i)
    - Behaviour: Wide latitudes of acceptance u lead to consensus. With narrow ones, a low threshold of rejection t
      splits the population between the two ends of the range, while with a high threshold several clusters last. If t
      is the width of the range, no opinions repel, and the model is one-sided bounded confidence of width u.
    - Source: Jager & Amblard 2005
    """

    u: Any = Parameter(0.4, "distance below which opinions attract", "u", scaled=True, reaches="threshold")
    t: Any = Parameter(1.2, "distance above which opinions repel; at least u", "t", scaled=True, reaches="beyond")
    mu: Any = Parameter(0.1, "share of the distance that an agent moves", r"\mu", "(0, 1]")
    threshold: Any = Parameter("<", "whether opinions at exactly these distances move", choices=("<=", "<"))
    noise: Any = NOISE
    zealot: Any = ZEALOT
    media: Any = MEDIA
    media_opinions: Any = MEDIA_OPINIONS
    limits: tuple[float, float] = (-1.0, 1.0)


@inlined
def _weight(i, distance, p):
    near = distance < at(p.u, i)
    far = (distance >= at(p.t, i)) & (not near)
    return at(p.mu, i) * (np.float64(near) - np.float64(far))


@inlined
def _update(i, j, own, other, start, p, word, spare):
    return confined(own + _weight(i, abs(other - own), p) * (other - own), p)


def _prepare(p: Parameters) -> Parameters:
    """Refuse thresholds in the wrong order; equal ones may lie apart by what rounding takes."""
    wrong = np.asarray(p.u - np.asarray(p.t) > 2.0**-48 * max(map(abs, p.limits)))
    if wrong.any():
        u, t = (np.broadcast_to(each, wrong.shape)[wrong][0] for each in (p.u, p.t))
        raise SpecError(f"t of jager-amblard must be at least u; got u = {u:g} and t = {t:g}")
    return p


def _transition(received: Received, p: Parameters) -> np.ndarray:
    gap = received.said[:, 0] - received.own
    distance = np.abs(gap)
    moved: np.ndarray = received.own + p.mu * gap * np.select([distance < p.u, distance >= p.t], [1, -1])
    return moved.clip(*received.limits)


MODEL = ClassicModel(
    name="jager-amblard",
    family="repulsive",
    parameters=Parameters,
    range=(-1.0, 1.0),
    kernel=pairwise_kernel(_update),
    vector=vector_kernel(_weight, settle=confined),
    update=_update,
    transition=disturbed(_transition),
    prepare=_prepare,
    orders=ORDERS,
    picks=PICKS,
    sides=("one", "two"),
    example={"steps": 150, "u": 0.3, "t": 0.9},
)
