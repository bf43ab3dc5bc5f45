"""Copying: the voter model, its reverse, and link updates."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ORDERS, PICKS, ClassicModel
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._frozen import NO_DISCORD, no_discord
from opinionsim.classic.kernels._influences import BIAS, MEDIA, MEDIA_OPINIONS, STATE_NOISE, ZEALOT, disturbed
from opinionsim.classic.kernels._pairwise import pairwise_kernel
from opinionsim.foundation.compilation import inlined


class Parameters(NamedTuple):
    r"""Voter model.

    A listener takes over the opinion of the agent it meets; zealots never change. If the listener is drawn first, this
    is the voter model; if the speaker is drawn first, the reverse voter model (invasion); if a pair is drawn, the link
    update.

    - Equation: x_i \leftarrow z_i x_i + (1 - z_i) x_j
    - Behaviour: With updates in random order, a finite connected network ends in consensus unless zealots disagree. The
      probability that an opinion wins is its initial share: the plain share if pairs are drawn, the share weighted by
      degree if listeners are drawn first, and the share weighted by 1/degree if speakers are. On the complete graph,
      all three are equal. Other orders differ: with simultaneous updates a bipartite network can alternate for ever,
      and with sequential updates the first agents lose their influence. With noise, runs never end; the noisy voter
      model on a separate page covers this case. Media act as zealots that everyone hears.
    - Source: Holley & Liggett 1975
    - Source: Castellano et al. 2009b
    """

    zealot: Any = ZEALOT
    noise: Any = STATE_NOISE
    bias: Any = BIAS
    media: Any = MEDIA
    media_opinions: Any = MEDIA_OPINIONS
    limits: tuple[float, float] = (0.0, 1.0)


@inlined
def update(i, j, own, other, start, p, word, spare):
    return other


@partial(disturbed, discrete=True)
def transition(received: Received, p: Any) -> np.ndarray:
    return received.said[:, 0]


MODEL = ClassicModel(
    name="voter",
    family="assimilative",
    parameters=Parameters,
    kernel=pairwise_kernel(update, discrete=True),
    update=update,
    transition=transition,
    frozen=no_discord,
    at_rest=NO_DISCORD,
    orders=ORDERS,
    picks=PICKS,
    states="copied",
    example={"n": 400, "network": {"kind": "watts-strogatz", "k": 6, "p": 0.1}, "steps": 200},
)
