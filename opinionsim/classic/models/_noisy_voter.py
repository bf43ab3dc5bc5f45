"""Copying with random changes: the noisy voter model of Kirman 1993 and Granovsky & Madras 1995."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from opinionsim.classic.kernels._influences import BIAS, MEDIA, MEDIA_OPINIONS, STATE_NOISE, ZEALOT
from opinionsim.classic.models import _voter as voter


class Parameters(NamedTuple):
    r"""Noisy voter model.

    With probability eta, an agent takes an end of the range at random, the upper one with probability b. Otherwise it
    takes over the opinion of the agent it meets.

    - Equation: P(x_i \to \text{upper}) = \eta b + (1 - \eta) \frac{n_i}{k_i},\quad n_i \text{ of the } k_i \text{ whom
      } i \text{ hears being at the upper end}
    - Behaviour: Consensus does not last. On the complete graph, the long-run number of agents at the upper end is
      beta-binomial with the parameters A b and A (1 - b), where A = (N - 1) eta / (1 - eta). With b = 1/2, this
      distribution is uniform at the critical noise eta = 2 / (N + 1). Below it, the population flips between the two
      near-consensuses (herding); above it, the two opinions coexist at about one half each. In continuous time, where a
      step is a unit of time, an agent changes to the upper end at the rate a + h n_i / k_i with a = eta b and h = 1 -
      eta, and to the lower one with a = eta (1 - b).
    - Source: Kirman 1993
    - Source: Granovsky & Madras 1995
    - Source: Carro et al. 2016
    """

    noise: Any = replace(STATE_NOISE, default=0.01)
    bias: Any = BIAS
    zealot: Any = ZEALOT
    media: Any = MEDIA
    media_opinions: Any = MEDIA_OPINIONS
    limits: tuple[float, float] = (0.0, 1.0)


MODEL = replace(
    voter.MODEL,
    name="noisy-voter",
    parameters=Parameters,
    at_rest=f"{voter.MODEL.at_rest} With noise, agents never come to rest.",
    keeps_consensus=False,
    states="two",
    example={"n": 100, "steps": 300, "noise": 0.005},
)
