"""Bounded confidence where a platform brings similar opinions together: Sirbu et al. 2019."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic import _deffuant as deffuant
from opinionsim.classic._closeness import closeness_room, meet_in_tree, meet_on_rows, plant
from opinionsim.classic._model import ClassicModel, Parameter
from opinionsim.classic._pairwise import BLOCK, draw_block
from opinionsim.classic._stepping import finish_step, start_step


class Parameters(NamedTuple):
    """Parameters, as the kernel takes them."""

    gamma: Any = Parameter(1.0, "strength of the bias towards similar partners; 0 is none", r"\gamma")
    d_min: Any = Parameter(
        1e-5, "distance below which partners are equally similar", r"d_{\min}", "(0, inf)", scaled=True
    )
    epsilon: Any = deffuant.EPSILON
    mu: Any = deffuant.MU
    threshold: Any = deffuant.THRESHOLD
    limits: tuple[float, float] = (0.0, 1.0)


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    queue, words = contacts.firsts.copy(), np.empty(BLOCK, np.uint64)
    listeners, speakers = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    space = closeness_room(contacts, p)
    for step in range(timing.steps):
        start_step(opinions, opinions, contacts, timing, state, queue)
        given, done = pairs[step : step + 1].reshape(-1), 0
        if contacts.complete and given.size == 0:
            plant(space, opinions)
        while done < timing.events:
            # Pairs as without bias; where there is one, the speaker is drawn once more.
            count = draw_block(contacts, timing, given, queue, done, state, words, listeners, speakers)
            if given.size > 0:
                i, j = np.int64(listeners[0]), np.int64(speakers[0])
                opinions[i] = deffuant.update(i, j, opinions[i], opinions[j], start[i], p, np.uint64(0), spare)
            elif contacts.complete:
                meet_in_tree(
                    space, contacts, listeners[:count], speakers[:count], opinions, start, p, timing.two_sided, spare
                )
            else:
                meet_on_rows(
                    space, contacts, listeners[:count], speakers[:count], opinions, start, p, timing.two_sided, spare
                )
            done += count
        finish_step(opinions, step, timing, record)


MODEL = ClassicModel(
    name="algorithmic-bias",
    title="Bounded confidence with algorithmic bias",
    family="similarity-biased",
    summary="An agent meets one of those it hears, the more probably the closer their opinions are; then both move "
    "closer if they are no farther apart than the confidence, as in the Deffuant-Weisbuch model.",
    equation=r"P(j \mid i) \propto w_{ij} \max(|x_j - x_i|, d_{\min})^{-\gamma};\quad "
    r"|x_j - x_i| \le \varepsilon:\ x_i \leftarrow x_i + \mu (x_j - x_i),\ x_j \leftarrow x_j + \mu (x_i - x_j)",
    behaviour="gamma = 0 is the Deffuant-Weisbuch model with the listener drawn first. A stronger bias leaves more "
    "clusters, slows their formation, and splits populations that would agree without it. The mean is conserved by "
    "two-sided meetings of equal mu.",
    source=(
        "Sirbu, Pedreschi, Giannotti & Kertesz (2019). Algorithmic bias amplifies opinion fragmentation and "
        "polarization: a bounded confidence model. PLoS ONE 14(3), e0213246. doi:10.1371/journal.pone.0213246",
    ),
    parameters=Parameters,
    kernel=_kernel,
    update=deffuant.update,
    transition=deffuant.MODEL.transition,
    prepare=deffuant.MODEL.prepare,
    orders=("random", "permutation", "sequential"),
    picks=("listener",),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"steps": 100, "epsilon": 0.35, "gamma": 1.2},
)
