"""United we stand: the model of Sznajd-Weron & Sznajd 2000 on any network."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._contacts import meet
from opinionsim.classic._model import ClassicModel, Parameter, Source
from opinionsim.classic._random import draw, index
from opinionsim.classic._transition import Transition, certain
from opinionsim.compilation import inlined

__all__ = ["MODEL", "Parameters"]

_NOTHING = 0


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    disagreeing: Annotated[int, Parameter("nothing", "what a pair that disagrees does: nothing, or each convinces "
                                          "those around the other", choices=("nothing", "cross"))]  # fmt: skip


@inlined
def _convince(opinions, contacts, speaker, opinion):
    """Everybody who hears a speaker takes an opinion."""
    for place in range(contacts.starts[speaker], contacts.starts[speaker + 1]):
        opinions[contacts.others[place]] = opinion


@inlined
def _cross(opinions, contacts, one, two):
    """Those who hear only the one take the opinion of the other, and the reverse; audiences are in order."""
    first, second = opinions[one], opinions[two]
    here, there = contacts.starts[one], contacts.starts[two]
    end, stop = contacts.starts[one + 1], contacts.starts[two + 1]
    nobody = np.int64(contacts.n)
    while here < end or there < stop:
        left = np.int64(contacts.others[here]) if here < end else nobody
        right = np.int64(contacts.others[there]) if there < stop else nobody
        if left < right and left != two:
            opinions[left] = second
        if right < left and right != one:
            opinions[right] = first
        here += np.int64(left <= right)
        there += np.int64(right <= left)


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    united = False
    for step in range(timing.steps):
        for _ in range(timing.events):
            one = np.int64(contacts.firsts[index(draw(state), contacts.firsts.size)])
            two = meet(contacts, one, draw(state))
            if contacts.complete:
                # One pair that agrees convinces everybody; of one that disagrees everybody else hears both.
                if not united and opinions[one] == opinions[two]:
                    opinions[:] = opinions[one]
                    united = True
            elif opinions[one] == opinions[two]:
                _convince(opinions, contacts, one, opinions[one])
                _convince(opinions, contacts, two, opinions[one])
            elif p.disagreeing == 1:
                _cross(opinions, contacts, one, two)
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1] = opinions


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    """Messages are the pair's, the one that is heard first; of an agent that hears the first alone."""
    heard, other = messages[:, 0], messages[:, 1]
    return certain(np.where((heard == other) | (p.disagreeing != _NOTHING), other, before))


MODEL = ClassicModel(
    name="sznajd",
    title="Sznajd",
    kind="discrete",
    family="assimilative",
    summary="A random agent and a random one of those who hear it form a pair; if they agree, everybody who hears "
    "either takes their opinion. There may be any number of opinions. A sweep is N pairs. If they disagree nothing "
    "happens, or, crossed, each convinces those who hear the other alone: the original rule on a chain; elsewhere, an "
    "extension in which whoever hears both keeps its opinion.",
    equation=r"x_i = x_j:\quad x_k \leftarrow x_i \quad \text{for all } k \in N(i) \cup N(j)",
    behaviour="Consensus is the only end on connected networks where nothing follows from disagreement. On the "
    "complete graph the first pair that agrees convinces everybody, so that a share c of one of two opinions wins with "
    "probability c^2 / (c^2 + (1 - c)^2) in the limit of many agents. Crossed disagreement on a chain is the original "
    "rule, which also allows the alternating state.",
    source=(
        Source(
            "Sznajd-Weron & Sznajd (2000). Opinion evolution in closed community. International Journal of Modern "
            "Physics C 11, 1157-1165",
            "10.1142/S0129183100000936",
        ),
        Source(
            "Stauffer, Sousa & de Oliveira (2000). Generalization to square lattice of Sznajd sociophysics model. "
            "International Journal of Modern Physics C 11, 1239-1245",
            "10.1142/S012918310000105X",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=_kernel,
    transition=_transition,
    orders=("random",),
    picks=("speaker",),
    states="copied",
    example={"n": 225, "network": {"kind": "lattice"}, "initial": "uniform", "steps": 20},
)
