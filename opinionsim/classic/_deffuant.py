"""Bounded confidence in pairs: Deffuant, Neau, Amblard & Weisbuch 2000."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._model import ORDERS, ClassicModel, Parameter, Source
from opinionsim.classic._pairwise import pairwise_kernel, vector_kernel
from opinionsim.classic._transition import Transition, certain
from opinionsim.compilation import at, inlined

__all__ = ["MODEL", "Parameters"]


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    epsilon: Annotated[np.ndarray, Parameter(0.2, "confidence: largest distance at which opinions meet",
                                             r"\varepsilon", low=0.0, scaled=True)]  # fmt: skip
    mu: Annotated[np.ndarray, Parameter(0.5, "part of the way that is gone", r"\mu", 0.0, 1.0, open_low=True)]
    threshold: Annotated[int, Parameter("<=", "whether opinions at exactly that distance meet", choices=("<=", "<"))]


@inlined
def _weight(i, distance, p):
    return at(p.mu, i) * np.float64(distance < at(p.epsilon, i))


@inlined
def _update(i, j, own, other, start, p, word, spare):
    return own + _weight(i, abs(other - own), p) * (other - own)


def _prepare(p: Parameters) -> Parameters:
    """Have the kernel compare with `<` alone: below the next larger number is at most this one."""
    return p._replace(epsilon=np.nextafter(p.epsilon, np.inf)) if p.threshold == 0 else p


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    gap = messages[:, 0] - before
    near = np.abs(gap) <= p.epsilon if p.threshold == 0 else np.abs(gap) < p.epsilon
    return certain(np.where(near, before + p.mu * gap, before))


MODEL = ClassicModel(
    name="deffuant",
    title="Deffuant-Weisbuch bounded confidence",
    kind="continuous",
    family="similarity-biased",
    summary="Two agents meet; if their opinions are no farther apart than the confidence, both move closer.",
    equation=r"|x_j - x_i| \le \varepsilon:\quad x_i \leftarrow x_i + \mu (x_j - x_i),\quad "
    r"x_j \leftarrow x_j + \mu (x_i - x_j)",
    behaviour="With mu up to 0.5, as published, about 1/(2 epsilon) clusters survive on the complete graph "
    "from uniform opinions on [0, 1]; consensus from epsilon = 0.5 on. With mu = 1 two agents swap opinions. The mean "
    "is conserved by two-sided meetings of equal mu.",
    source=(
        Source(
            "Deffuant, Neau, Amblard & Weisbuch (2000). Mixing beliefs among interacting agents. "
            "Advances in Complex Systems 3, 87-98",
            "10.1142/S0219525900000078",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=pairwise_kernel(_update),
    vector=vector_kernel(_weight),
    update=_update,
    transition=_transition,
    prepare=_prepare,
    orders=ORDERS,
    picks=("edge", "listener", "speaker"),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"n": 300, "network": "complete", "initial": "uniform", "steps": 40, "epsilon": 0.2},
)
