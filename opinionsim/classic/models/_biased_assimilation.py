"""Biased assimilation: Dandekar, Goel & Lee 2013."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import SHARES, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import Contacts
from opinionsim.classic.kernels._stepping import Begin, Machine, array_kernel
from opinionsim.classic.models._linear import SELF_WEIGHT


class Parameters(NamedTuple):
    r"""Biased assimilation.

    Every agent averages its own opinion and the opinions it hears. Evidence that supports the agent's opinion weighs
    more, especially if the opinion is extreme: the weight is x^b for supporting evidence and (1 - x)^b for opposing
    evidence.

    - Equation: x_i \leftarrow \frac{w_{ii} x_i + x_i^{b_i} s_i}{w_{ii} + x_i^{b_i} s_i + (1 - x_i)^{b_i} (d_i -
      s_i)},\quad s_i = \sum_j w_{ij} x_j,\ d_i = \sum_j w_{ij}
    - Behaviour: With b = 0, this is the DeGroot model. Consider two islands that mirror each other at first, where an
      agent hears h times as much from its own island as from the other. They reach consensus for b < 2 / (h + 1),
      disagree between that and 1, and polarise for b >= 1. If they do not mirror each other exactly, even long-lasting
      disagreement can end when one side wins.
    - Source: Dandekar et al. 2013
    """

    b: Any = Parameter(0.5, "bias: how strongly the weight of evidence depends on its fit", "b")
    self_weight: Any = SELF_WEIGHT


def _make(contacts: Contacts, p: Parameters, machine: Machine) -> Begin:
    heard = None if contacts.complete else contacts.matrix()
    degree = contacts.n - 1.0 if heard is None else heard @ np.ones(contacts.n)

    def step(own: np.ndarray) -> np.ndarray:
        """One step; an agent without evidence that it weighs keeps its opinion."""
        # Support is a sum, and may miss its bounds by what rounding takes.
        support = np.clip(own.sum() - own if heard is None else heard @ own, 0.0, degree)
        pro, contra = own**p.b * support, (1.0 - own) ** p.b * (degree - support)
        total = p.self_weight + pro + contra
        believed = total > 0
        return np.where(believed, (p.self_weight * own + pro) / np.where(believed, total, 1.0), own)

    return lambda start, spare: (step, 0.0, 1.0)


def _transition(received: Received, p: Parameters) -> np.ndarray:
    own, said, weights = received.own, received.said, received.weights
    pro = p.self_weight * own + own**p.b * (weights * said).sum(axis=1)
    contra = p.self_weight * (1 - own) + (1 - own) ** p.b * (weights * (1 - said)).sum(axis=1)
    total = pro + contra
    return np.where(total > 0, pro / np.where(total > 0, total, 1.0), own)


MODEL = ClassicModel(
    name="biased-assimilation",
    family="reinforcing",
    parameters=Parameters,
    kernel=array_kernel(_make),
    transition=_transition,
    units=SHARES,
    orders=("synchronous",),
    keeps_consensus=False,
    example={"network": {"kind": "watts-strogatz", "k": 6, "p": 0.1}, "steps": 60, "b": 0.8},
)
