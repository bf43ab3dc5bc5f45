"""Influence whose weight falls linearly with distance, to repulsion: the line of Flache & Macy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ORDERS, PICKS, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._influences import MEDIA, MEDIA_OPINIONS, NOISE, ZEALOT, disturbed
from opinionsim.classic.kernels._pairwise import pairwise_kernel
from opinionsim.classic.kernels._stepping import confined
from opinionsim.foundation.compilation import at, inlined


class Parameters(NamedTuple):
    r"""Weighted linear influence.

    An agent moves towards the other by a fraction that falls linearly with their distance, and away from it if that
    fraction is negative. Opinions stop at the ends of the range.

    - Equation: x_i \leftarrow x_i + \mu (1 - h d_{ij}) (x_j - x_i),\quad d_{ij} = \frac{|x_j - x_i|}{x_{\max} -
      x_{\min}}
    - Behaviour: h = 0 is plain averaging and 0 < h <= 1 moderated averaging. Both lead to consensus on a connected
      network for mu < 1, except that at h = 1 the two ends of the range do not move each other. With h > 1, opinions
      farther apart than 1/h of the range repel, and uniform opinions split between its ends if h is large enough.
    - Source: Flache & Macy 2011
    - Source: Flache et al. 2017
    """

    mu: Any = Parameter(0.5, "share of the distance that an agent moves, in the limit of no distance", r"\mu", "(0, 1]")
    h: Any = Parameter(2.0, "loss of weight over the width of the range; influence repels beyond 1/h of it", "h")
    noise: Any = NOISE
    zealot: Any = ZEALOT
    media: Any = MEDIA
    media_opinions: Any = MEDIA_OPINIONS
    limits: tuple[float, float] = (0.0, 1.0)


@inlined
def _update(i, j, own, other, start, p, word, spare):
    distance = abs(other - own) / (p.limits[1] - p.limits[0])
    return confined(own + at(p.mu, i) * (1.0 - at(p.h, i) * distance) * (other - own), p)


def _transition(received: Received, p: Parameters) -> np.ndarray:
    (low, high), gap = received.limits, received.said[:, 0] - received.own
    moved: np.ndarray = received.own + p.mu * (1 - p.h * np.abs(gap) / (high - low)) * gap
    return moved.clip(low, high)


MODEL = ClassicModel(
    name="weighted-linear",
    family="repulsive",
    parameters=Parameters,
    kernel=pairwise_kernel(_update),
    update=_update,
    transition=disturbed(_transition),
    orders=ORDERS,
    picks=PICKS,
    sides=("one", "two"),
    example={"steps": 100, "mu": 0.2, "h": 3.0},
)
