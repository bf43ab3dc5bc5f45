"""Biased assimilation: Dandekar, Goel & Lee 2013."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._groups import received
from opinionsim.classic._model import ClassicModel, Parameter, Source
from opinionsim.classic._transition import Transition, certain

__all__ = ["MODEL", "Parameters"]


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    b: Annotated[np.ndarray, Parameter(0.5, "bias: how much evidence weighs by how well it fits", "b", low=0.0)]
    self_weight: Annotated[np.ndarray, Parameter(1.0, "weight of an agent's own opinion, beside the weights of its "
                                                 "edges", "w_{ii}", low=0.0)]  # fmt: skip


def _moved(own: np.ndarray, support: Any, degree: Any, b: Any, weight: Any) -> np.ndarray:
    """Opinions in [0, 1] after one step; who is left with no evidence it believes keeps its own."""
    pro, contra = own**b * support, (1.0 - own) ** b * (degree - support)
    total = weight + pro + contra
    believed = total > 0
    return np.where(believed, (weight * own + pro) / np.where(believed, total, 1.0), own)


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    n = contacts.n
    if not contacts.complete:
        from scipy.sparse import csr_array

        weights = contacts.weights if contacts.weights.size else np.ones(contacts.others.size)
        heard = csr_array((weights, contacts.others.astype(np.int64), contacts.starts), shape=(n, n))
        degree = heard @ np.ones(n)
    for done in range(1, timing.steps + 1):
        if contacts.complete:
            support, degree = opinions.sum() - opinions, n - 1.0
        else:
            support = heard @ opinions
        # Support is a sum, and may miss its bounds by what rounding takes.
        moved = _moved(opinions, np.clip(support, 0.0, degree), degree, p.b, p.self_weight)
        opinions[:] = np.clip(moved, 0.0, 1.0)
        if done % timing.every == 0:
            record[done // timing.every - 1] = opinions


def _encode(values: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    return (values - span[0]) / (span[1] - span[0])


def _decode(values: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    return np.clip(span[0] + (span[1] - span[0]) * values, *span)


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    own = _encode(before, span)
    said, weights = received(_encode(messages, span), weights)
    pro = p.self_weight * own + own**p.b * (weights * said).sum(axis=1)
    contra = p.self_weight * (1 - own) + (1 - own) ** p.b * (weights * (1 - said)).sum(axis=1)
    total = pro + contra
    return certain(np.where(total > 0, _decode(pro / np.where(total > 0, total, 1.0), span), before))


MODEL = ClassicModel(
    name="biased-assimilation",
    title="Biased assimilation",
    kind="continuous",
    family="reinforcing",
    summary="Every agent averages what it hears and its own opinion, but what speaks for its opinion weighs more, the "
    "more extreme that is: evidence for counts by x to the power of b, evidence against by 1 - x.",
    equation=r"x_i \leftarrow \frac{w_{ii} x_i + x_i^{b_i} s_i}{w_{ii} + x_i^{b_i} s_i + (1 - x_i)^{b_i} (d_i - s_i)},"
    r"\quad s_i = \sum_j w_{ij} x_j,\ d_i = \sum_j w_{ij}",
    behaviour="With b = 0 the DeGroot model. Two islands of which an agent hears h times as much of its own as of the "
    "other, and which mirror each other at first, reach consensus for b < 2 / (h + 1), disagree between that and 1, "
    "and polarise for b >= 1. Where they do not quite mirror each other, disagreement that lasts long can end: one "
    "side wins.",
    source=(
        Source(
            "Dandekar, Goel & Lee (2013). Biased assimilation, homophily, and the dynamics of polarization. "
            "Proceedings of the National Academy of Sciences 110, 5791-5796",
            "10.1073/pnas.1217220110",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=_kernel,
    transition=_transition,
    encode=_encode,
    decode=_decode,
    orders=("synchronous",),
    keeps_consensus=False,
    compiles=False,
    example={
        "n": 200,
        "network": {"kind": "watts-strogatz", "k": 6, "p": 0.1},
        "initial": "uniform",
        "steps": 60,
        "b": 0.8,
    },
)
