"""Bounded confidence where a platform brings similar opinions together: Sirbu et al. 2019."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opinionsim.classic._declaration import ClassicModel, Parameter
from opinionsim.classic.kernels._closeness import make_candidates, meetings_by_closeness
from opinionsim.classic.kernels._contacts import Variant
from opinionsim.classic.kernels._influences import MEDIA, MEDIA_OPINIONS, NOISE, ZEALOT
from opinionsim.classic.kernels._pairwise import block_drawer, pair_buffers, pairwise_kernel
from opinionsim.classic.kernels._stepping import step_kernel
from opinionsim.classic.models import _deffuant as deffuant
from opinionsim.foundation.compilation import allocating, inlined


class Parameters(NamedTuple):
    r"""Bounded confidence with algorithmic bias.

    An agent meets one of those it hears, preferably one with a similar opinion. Both then move closer if their opinions
    are no farther apart than the confidence, as in the Deffuant-Weisbuch model.

    - Equation: P(j \mid i) \propto w_{ij} \max(|x_j - x_i|, d_{\min})^{-\gamma};\quad |x_j - x_i| \le \varepsilon:\ x_i
      \leftarrow x_i + \mu (x_j - x_i),\ x_j \leftarrow x_j + \mu (x_i - x_j)
    - Behaviour: gamma = 0 is the Deffuant-Weisbuch model with the listener drawn first. A stronger bias leaves more
      clusters, slows their formation, and splits populations that would otherwise agree. Two-sided meetings of equal mu
      conserve the mean. A medium replaces the peer in a meeting. All media are equally likely for any gamma, which is
      simpler than in Pansanella et al. 2023. Media pull open-minded agents towards their own opinions; a stronger bias
      among agents keeps some agents away from the media.
    - Source: Sîrbu et al. 2019
    - Source: Pansanella et al. 2023
    """

    gamma: Any = Parameter(1.0, "strength of the bias towards similar partners; 0 is none", r"\gamma")
    d_min: Any = Parameter(
        1e-5, "distance below which partners are equally similar", r"d_{\min}", "(0, inf)", scaled=True
    )
    epsilon: Any = deffuant.EPSILON
    mu: Any = deffuant.MU
    threshold: Any = deffuant.THRESHOLD
    noise: Any = NOISE
    zealot: Any = ZEALOT
    media: Any = MEDIA
    media_opinions: Any = MEDIA_OPINIONS
    limits: tuple[float, float] = (0.0, 1.0)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    draw_block, meet = block_drawer(variant), meetings_by_closeness(deffuant.update, variant)

    def room(opinions, contacts, p, spare):
        return pair_buffers(opinions, contacts, p, spare), make_candidates(contacts, p)

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        (words, listeners, speakers), closeness = space
        done = 0
        while done < timing.events:
            # Pairs as without bias; where there is one, the speaker is drawn once more.
            count = draw_block(contacts, timing, queue, done, state, words, listeners, speakers)
            meet(closeness, contacts, listeners[:count], speakers[:count], opinions, start, p, spare)
            done += count

    return inlined(step), allocating(room)


MODEL = ClassicModel(
    name="algorithmic-bias",
    family="similarity-biased",
    parameters=Parameters,
    kernel=step_kernel(_make, on_pairs=pairwise_kernel(deffuant.update)),
    update=deffuant.update,
    transition=deffuant.MODEL.transition,
    frozen=deffuant.MODEL.frozen,
    at_rest=deffuant.MODEL.at_rest,
    shrinks=True,
    orders=("random", "permutation", "sequential"),
    picks=("listener",),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"steps": 100, "epsilon": 0.35, "gamma": 1.2},
)
