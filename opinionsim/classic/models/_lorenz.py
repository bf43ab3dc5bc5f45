"""Individual attitude change and societal dynamics: Lorenz, Neumann & Schroeder 2021."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import CENTRED, ClassicModel, Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._contacts import RANDOM, Variant
from opinionsim.classic.kernels._pairwise import BLOCK, block_drawer, draw_in_turn, pairwise_kernel
from opinionsim.classic.kernels._random import fill, normal, uniform
from opinionsim.classic.kernels._stepping import confined, step_kernel
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined

#: What idiosyncrasy does.
_REDRAW, _INITIAL, _WEIGHT = 0, 1, 2


class Parameters(NamedTuple):
    r"""Attitude change with contagion, assimilation and motivated cognition.

    An agent reads another agent's opinion and moves by a fraction of that opinion (contagion), of its distance
    (assimilation), or of something in between. The move is smaller if motivated cognition discounts distant opinions,
    if polarity makes extreme opinions more stable, or if the other belongs to another group. Occasionally, an agent
    changes its opinion for idiosyncratic reasons.

    - Equation: \Delta a = \alpha\, s\, (m - \rho a)\, \frac{M^2 - a^2}{M^2}\, \frac{\lambda^k}{\lambda^k + |m -
      a|^k},\quad a \leftarrow \min(\max(a + \Delta a, -M), M);\quad \text{with probability } \theta:\ a \sim
      \mathcal{N}(\mp \Delta / 2, \sigma^2) \text{, cut off at } \pm M
    - Behaviour: The following results were measured with this implementation, N = 500, alpha = 0.2, theta = 0.01, M =
      3.5, 400 steps. Without motivated cognition, contagion ends in consensus at an extreme (bias 0.97), and
      assimilation in consensus at the middle (bias 0.01, diversity 0.05). With motivated cognition of latitude 0.5,
      contagion polarises for k = 2 (diversity 0.77), and rho = 0.9 or 1 with k = 10 leaves several clusters (diversity
      0.43 and 0.26). With rho = 1, k to infinity and theta = 0, the model is one-sided bounded confidence with epsilon
      = lambda and mu = alpha. The abstract of the article names the same regimes.
    - Source: Lorenz et al. 2021
    """

    alpha: Any = Parameter(0.2, "strength of change", r"\alpha", "[0, 1]")
    rho: Any = Parameter(0.0, "degree of assimilation: 0 contagion, 1 assimilation", r"\rho", "[0, 1]")
    theta: Any = Parameter(
        0.01, "idiosyncrasy: its probability, or the weight of the initial opinion", r"\theta", "[0, 1]"
    )
    # Kernels take its inverse.
    latitude: Any = Parameter(
        0.5,
        "latitude of acceptance: distance at which motivated cognition halves the change",
        r"\lambda",
        "(0, inf)",
        scaled=True,
    )
    k: Any = Parameter(2, "sharpness of the latitude of acceptance; a large value gives a threshold", "k", "[0, 1e9]")
    motivated: Any = Parameter(True, "whether distant messages count less (motivated cognition)")
    polarity: Any = Parameter(False, "whether extreme opinions change less")
    credibility: Any = Parameter(1.0, "credibility of messages from the other group, for the receiver", "s", "[0, 1]")
    group: Any = Parameter(0, "group of each agent, 0 or 1", "g_i", "[0, 1]")
    idiosyncrasy: Any = Parameter(
        "redraw",
        "effect of theta: redraw the opinion at random, return to the initial one, or give the initial one weight",
        choices=("redraw", "initial", "weight"),
    )
    sd: Any = Parameter(
        1.0, "standard deviation of redrawn opinions", r"\sigma", "(0, inf)", per_agent=False, scaled=True
    )
    spread: Any = Parameter(
        0.0, "distance between the means of redrawn opinions of the two groups", r"\Delta", per_agent=False, scaled=True
    )
    limits: tuple[float, float] = (-3.5, 3.5)


@inlined
def _power(base, exponent):
    """A whole power, by squaring."""
    result = np.float64(1.0)
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@inlined
def _redrawn(i, start, p, spare):
    """The attitude that an agent comes to by itself."""
    return confined((at(p.group, i) - 0.5) * p.spread + p.sd * normal(spare), p)


@inlined
def _returned(i, start, p, spare):
    return start


@inlined
def _influenced(i, j, own, other, p):
    """The attitude, which is 0 in the middle of the range, of agent i after that of agent j."""
    trusted = 1.0 if at(p.group, i) == at(p.group, j) else at(p.credibility, i)
    change = at(p.alpha, i) * trusted * (other - at(p.rho, i) * own)
    if p.polarity:
        share = own / p.limits[1]
        change *= max(1.0 - share * share, 0.0)
    if p.motivated:
        change /= 1.0 + _power(abs(other - own) * at(p.latitude, i), at(p.k, i))
    return confined(own + change, p)


@inlined
def _update(i, j, own, other, start, p, word, spare):
    theta = at(p.theta, i)
    if p.idiosyncrasy == _WEIGHT:
        return confined((1.0 - theta) * _influenced(i, j, own, other, p) + theta * start, p)
    if uniform(word) < theta:
        return start if p.idiosyncrasy == _INITIAL else _redrawn(i, start, p, spare)
    return _influenced(i, j, own, other, p)


@allocating
def _buffers(opinions, contacts, p, spare):
    words = np.empty(BLOCK, np.uint64)
    return words, np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32), np.empty(BLOCK)


def _drawer(variant: Variant) -> Callable[..., int]:
    """Draws the next pairs of a step, and the chance of each."""
    draw_block, in_turn = block_drawer(variant), variant.complete and variant.order != RANDOM

    def draw(contacts, timing, queue, done, state, words, listeners, speakers, chances):
        if in_turn:
            count = min(BLOCK, timing.events - done)
            fill(state, words[:count])
            draw_in_turn(contacts, queue, done, words, listeners[:count], speakers[:count], chances)
        else:
            count = draw_block(contacts, timing, queue, done, state, words, listeners, speakers)
            fill(state, words[:count])
            for event in range(count):
                chances[event] = uniform(words[event])
        return count

    return inlined(draw)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    """The step, with :func:`_update` spelled out for a compiler that takes it for too large."""
    draw, weighs = _drawer(variant), variant.option("idiosyncrasy") == _WEIGHT
    by_oneself = _returned if variant.option("idiosyncrasy") == _INITIAL else _redrawn
    polar, motivated = variant.option("polarity"), variant.option("motivated")

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        words, listeners, speakers, chances = space
        done = 0
        while done < timing.events:
            count = draw(contacts, timing, queue, done, state, words, listeners, speakers, chances)
            for event in range(count):
                i, j = np.int64(listeners[event]), np.int64(speakers[event])
                own, other, theta = before[i], before[j], at(p.theta, i)
                if not weighs and chances[event] < theta:
                    opinions[i] = by_oneself(i, start[i], p, spare)
                    continue
                change = at(p.alpha, i) * (other - at(p.rho, i) * own)
                if at(p.group, i) != at(p.group, j):
                    change *= at(p.credibility, i)
                if polar:
                    share = own / p.limits[1]
                    change *= max(1.0 - share * share, 0.0)
                if motivated:
                    change /= 1.0 + _power(abs(other - own) * at(p.latitude, i), at(p.k, i))
                moved = confined(own + change, p)
                opinions[i] = confined((1.0 - theta) * moved + theta * start[i], p) if weighs else moved
            done += count

    return inlined(step), _buffers


def _prepare(p: Parameters) -> Parameters:
    half = (p.limits[1] - p.limits[0]) / 2
    return p._replace(latitude=1.0 / p.latitude, limits=(-half, half))


def _transition(received: Received, p: Parameters) -> Transition | np.ndarray:
    """`credibility` is that of each message: 1 where it comes from the receiver's own group."""
    if received.start is None and p.idiosyncrasy != _REDRAW:
        raise SpecError("lorenz needs start, the initial opinions, for idiosyncrasy 'initial' and 'weight'")
    own, message, half = received.own, received.said[:, 0], (received.limits[1] - received.limits[0]) / 2
    polarity = np.maximum(0, (half**2 - own**2) / half**2) if p.polarity else 1.0
    with np.errstate(over="ignore"):
        motivation = 1 / (1 + (np.abs(message - own) / p.latitude) ** p.k) if p.motivated else 1.0
    moved = np.clip(own + p.alpha * p.credibility * (message - p.rho * own) * polarity * motivation, -half, half)
    theta, start = np.broadcast_to(p.theta, own.shape), received.start
    if p.idiosyncrasy == _WEIGHT:
        return np.asarray((1 - theta) * moved + theta * start)
    if p.idiosyncrasy == _INITIAL:
        return Transition(np.stack([moved, start], axis=1), np.stack([1 - theta, theta], axis=1))  # type: ignore[list-item]
    from scipy.stats import norm

    redrawn = norm(np.where(np.asarray(p.group) == 1, 0.5, -0.5) * p.spread, p.sd)
    values = np.stack([moved, np.full_like(moved, -half), np.full_like(moved, half)], axis=1)
    masses = np.stack([1 - theta, theta * redrawn.cdf(-half), theta * redrawn.sf(half)], axis=1)
    return Transition(values, masses, lambda opinions: theta * redrawn.pdf(opinions))


MODEL = ClassicModel(
    name="lorenz",
    family="reinforcing",
    parameters=Parameters,
    range=(-3.5, 3.5),
    kernel=step_kernel(_make, on_pairs=pairwise_kernel(_update, draws=True)),
    update=_update,
    transition=_transition,
    prepare=_prepare,
    units=CENTRED,
    needs=frozenset({"partners", "start"}),
    orders=("permutation", "random", "sequential", "synchronous"),
    picks=("listener",),
    meets_itself=(True, False),
    keeps_consensus=False,
    example={"n": 500, "initial": "normal", "steps": 400, "rho": 0.9, "k": 10},
)
