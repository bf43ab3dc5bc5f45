"""Bounded confidence in pairs: Deffuant, Neau, Amblard & Weisbuch 2000."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ORDERS, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._frozen import BOUNDED_CONFIDENCE, bounded_confidence
from opinionsim.classic.kernels._influences import MEDIA, MEDIA_OPINIONS, NOISE, ZEALOT, disturbed
from opinionsim.classic.kernels._pairwise import pairwise_kernel, vector_kernel
from opinionsim.foundation.compilation import at, inlined

EPSILON = Parameter(
    0.2, "confidence: largest distance at which opinions meet", r"\varepsilon", scaled=True, reaches="threshold"
)
MU = Parameter(0.5, "share of the distance that an agent moves", r"\mu", "(0, 1]")
THRESHOLD = Parameter("<=", "whether opinions at exactly that distance meet", choices=("<=", "<"))


class Parameters(NamedTuple):
    r"""Deffuant-Weisbuch bounded confidence.

    Two agents meet. If their opinions are no farther apart than the confidence, both move closer.

    - Equation: |x_j - x_i| \le \varepsilon:\quad x_i \leftarrow x_i + \mu (x_j - x_i),\quad x_j \leftarrow x_j + \mu
      (x_i - x_j)
    - Behaviour: With mu up to 0.5, as published, about 1/(2 epsilon) clusters survive on the complete graph from
      uniform opinions on [0, 1]; from epsilon = 0.5 on there is consensus. With mu = 1, two agents swap opinions.
      Two-sided meetings of equal mu conserve the mean. With noise, opinions never come to rest: clusters lose and gain
      agents. They dissolve above a critical noise, which is about 1.15 epsilon / (1 + 1.15 epsilon) for two-sided
      meetings of mu = 0.5 on a range of width 1. Zealots and media draw agents within confidence towards their own
      opinions.
    - Source: Deffuant et al. 2000
    - Source: Pineda et al. 2009
    """

    epsilon: Any = EPSILON
    mu: Any = MU
    threshold: Any = THRESHOLD
    noise: Any = NOISE
    zealot: Any = ZEALOT
    media: Any = MEDIA
    media_opinions: Any = MEDIA_OPINIONS
    limits: tuple[float, float] = (0.0, 1.0)


@inlined
def _weight(i, distance, p):
    return at(p.mu, i) * np.float64(distance < at(p.epsilon, i))


@inlined
def update(i, j, own, other, start, p, word, spare):
    return own + _weight(i, abs(other - own), p) * (other - own)


def _transition(received: Received, p: Parameters) -> np.ndarray:
    gap = received.said[:, 0] - received.own
    return np.where(np.abs(gap) < p.epsilon, received.own + p.mu * gap, received.own)


MODEL = ClassicModel(
    name="deffuant",
    family="similarity-biased",
    parameters=Parameters,
    kernel=pairwise_kernel(update),
    vector=vector_kernel(_weight),
    update=update,
    transition=disturbed(_transition),
    frozen=bounded_confidence,
    at_rest=BOUNDED_CONFIDENCE,
    shrinks=True,
    orders=ORDERS,
    picks=("edge", "listener", "speaker"),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"n": 300, "steps": 40, "epsilon": 0.2},
)
