"""Individual attitude change and societal dynamics: Lorenz, Neumann & Schroeder 2021."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._contacts import draw_pairs, order_queue
from opinionsim.classic._model import ClassicModel, Parameter, Source
from opinionsim.classic._pairwise import confined
from opinionsim.classic._random import fill, normal, uniform
from opinionsim.classic._transition import Transition, certain
from opinionsim.compilation import at, inlined
from opinionsim.errors import SpecError

__all__ = ["MODEL", "Parameters"]

#: What idiosyncrasy does.
_REDRAW, _INITIAL, _WEIGHT = 0, 1, 2
#: Events drawn ahead of their updates.
_BLOCK = 512


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them: `latitude` as its inverse."""

    alpha: Annotated[np.ndarray, Parameter(0.2, "strength of change", r"\alpha", 0.0, 1.0)]
    rho: Annotated[np.ndarray, Parameter(0.0, "degree of assimilation: 0 contagion, 1 assimilation", r"\rho", 0.0, 1.0)]
    theta: Annotated[np.ndarray, Parameter(0.01, "idiosyncrasy: its probability, or the weight of the initial opinion",
                                           r"\theta", 0.0, 1.0)]  # fmt: skip
    latitude: Annotated[np.ndarray, Parameter(0.5, "latitude of acceptance: distance at which motivated cognition "
                                              "halves the change", r"\lambda", low=0.0, open_low=True,
                                              scaled=True)]  # fmt: skip
    k: Annotated[np.ndarray, Parameter(2, "sharpness of the latitude of acceptance; large: a threshold", "k",
                                       0, 10**9)]  # fmt: skip
    motivated: Annotated[bool, Parameter(True, "whether distant messages count less (motivated cognition)")]
    polarity: Annotated[bool, Parameter(False, "whether extreme opinions change less")]
    credibility: Annotated[np.ndarray, Parameter(1.0, "of messages from another group, to the receiver", "s", 0.0, 1.0)]
    group: Annotated[np.ndarray, Parameter(0, "0 or 1, of each agent", "g_i", 0, 1)]
    idiosyncrasy: Annotated[int, Parameter("redraw", "what theta does: redraw the opinion at random, return to the "
                                           "initial one, or weigh the initial one",
                                           choices=("redraw", "initial", "weight"))]  # fmt: skip
    sd: Annotated[float, Parameter(1.0, "standard deviation of redrawn opinions", r"\sigma", low=0.0, open_low=True,
                                   per_agent=False, scaled=True)]  # fmt: skip
    spread: Annotated[float, Parameter(0.0, "distance between the means of redrawn opinions of the two groups",
                                       r"\Delta", low=0.0, per_agent=False, scaled=True)]  # fmt: skip
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
def _idiosyncratic(i, start, p, spare):
    """The attitude that an agent comes to by itself."""
    if p.idiosyncrasy == _INITIAL:
        return start
    return confined((at(p.group, i) - 0.5) * p.spread + p.sd * normal(spare), p)


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
        return _idiosyncratic(i, start, p, spare)
    return _influenced(i, j, own, other, p)


@inlined
def _draw_in_turn(contacts, queue, done, words, listeners, speakers, chances):
    """Draw whom each in turn meets on the complete graph, and the chance of each event, of one random word each.

    A number in [0, 1) times the number of partners is a partner and, behind the point, a number in [0, 1) again.
    """
    apart = not contacts.with_self
    size = np.float64(contacts.n - 1 if apart else contacts.n)
    for event in range(listeners.size):
        first = np.int64(queue[done + event])
        drawn = uniform(words[event]) * size
        other = np.int64(drawn)
        listeners[event], speakers[event] = first, other + np.int64(apart & (other >= first))
        chances[event] = drawn - other


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    """The kernel of models of pairs, with :func:`_update` spelled out for a compiler that takes it for too large."""
    synchronous = timing.order == 3
    before = opinions.copy() if synchronous else opinions
    queue = contacts.firsts.copy()
    words = np.empty(2 * _BLOCK, dtype=np.uint64)
    listeners, speakers = np.empty(_BLOCK, dtype=np.uint32), np.empty(_BLOCK, dtype=np.uint32)
    chances, in_turn = np.empty(_BLOCK), contacts.complete and timing.order != 0 and pairs.shape[0] == 0
    given, weighs = pairs.shape[0] > 0, p.idiosyncrasy == _WEIGHT
    for step in range(timing.steps):
        if synchronous:
            before[:] = opinions
        order_queue(contacts, timing.order, state, queue)
        done = 0
        while done < timing.events:
            count = min(_BLOCK, timing.events - done)
            if in_turn:
                fill(state, words[:count])
                _draw_in_turn(contacts, queue, done, words, listeners[:count], speakers[:count], chances)
            else:
                fill(state, words[: 2 * count])
                for event in range(count):
                    chances[event] = uniform(words[count + event])
                if given:
                    speakers[0], listeners[0] = pairs[step, 0], pairs[step, 1]
                else:
                    draw_pairs(contacts, timing.order, queue, done, words, listeners[:count], speakers[:count])
            for event in range(count):
                i, j = np.int64(listeners[event]), np.int64(speakers[event])
                if not weighs and chances[event] < at(p.theta, i):
                    opinions[i] = _idiosyncratic(i, start[i], p, spare)
                else:
                    moved = _influenced(i, j, before[i], before[j], p)
                    if weighs:
                        theta = at(p.theta, i)
                        moved = confined((1.0 - theta) * moved + theta * start[i], p)
                    opinions[i] = moved
            done += count
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1] = opinions


def _prepare(p: Parameters) -> Parameters:
    half = (p.limits[1] - p.limits[0]) / 2
    return p._replace(latitude=1.0 / p.latitude, limits=(-half, half))


def _attitudes(opinions: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    return opinions - (span[0] + span[1]) / 2


def _opinions(attitudes: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    return np.clip(attitudes + (span[0] + span[1]) / 2, *span)


def _transition(
    before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any, start: np.ndarray | None = None
) -> Transition:
    """`credibility` is that of each message: 1 where it comes from the receiver's own group."""
    low, high = span
    middle, half = (low + high) / 2, (high - low) / 2
    if start is None:
        if p.idiosyncrasy != _REDRAW:
            raise SpecError("lorenz needs start, the initial opinions, for idiosyncrasy 'initial' and 'weight'")
        start = before
    own, message = before - middle, messages[:, 0] - middle
    polarity = np.maximum(0, (half**2 - own**2) / half**2) if p.polarity else 1.0
    with np.errstate(over="ignore"):
        motivation = 1 / (1 + (np.abs(message - own) / p.latitude) ** p.k) if p.motivated else 1.0
    moved = middle + np.clip(
        own + p.alpha * p.credibility * (message - p.rho * own) * polarity * motivation, -half, half
    )
    theta = np.broadcast_to(np.asarray(p.theta, dtype=float), before.shape)
    if p.idiosyncrasy == _WEIGHT:
        return certain((1 - theta) * moved + theta * start)
    if p.idiosyncrasy == _INITIAL:
        return Transition(np.stack([moved, start], axis=1), np.stack([1 - theta, theta], axis=1))
    from scipy.stats import norm

    redrawn = norm(middle + np.where(np.asarray(p.group) == 1, 0.5, -0.5) * p.spread, p.sd)
    below, above = redrawn.cdf(low), redrawn.sf(high)
    values = np.stack([moved, np.full_like(moved, low), np.full_like(moved, high)], axis=1)
    masses = np.stack([1 - theta, theta * below, theta * above], axis=1)
    return Transition(values, masses, lambda opinions: theta * redrawn.pdf(opinions))


MODEL = ClassicModel(
    name="lorenz",
    title="Attitude change with contagion, assimilation and motivated cognition",
    kind="continuous",
    family="reinforcing",
    summary="An agent reads the opinion of another and changes by a part of it (contagion), of its distance "
    "(assimilation), or of something between; less if motivated cognition discounts what is far, if polarity holds "
    "extremes in place, or if the other belongs to another group. Now and then it changes its mind for reasons of "
    "its own.",
    equation=r"\Delta a = \alpha\, s\, (m - \rho a)\, \frac{M^2 - a^2}{M^2}\, \frac{\lambda^k}{\lambda^k + |m - a|^k},"
    r"\quad a \leftarrow \min(\max(a + \Delta a, -M), M);\quad \text{with probability } \theta:\ "
    r"a \sim \mathcal{N}(\mp \Delta / 2, \sigma^2) \text{, cut off at } \pm M",
    behaviour="Measured with this implementation, N = 500, alpha = 0.2, theta = 0.01, M = 3.5, 400 sweeps: "
    "contagion without motivated cognition ends in consensus at an extreme (bias 0.97), assimilation in "
    "consensus at the middle (bias 0.01, diversity 0.05). With motivated cognition of latitude 0.5, "
    "contagion polarises for k = 2 (diversity 0.77) and rho = 0.9 or 1 with k = 10 leaves several "
    "clusters (diversity 0.43 and 0.26). With rho = 1, k to infinity and theta = 0 it is one-sided "
    "bounded confidence with epsilon = lambda and mu = alpha. The regimes are those that the article's "
    "abstract names.",
    source=(
        Source(
            "Lorenz, Neumann & Schroeder (2021). Individual attitude change and societal dynamics: "
            "computational experiments with psychological theories. Psychological Review 128, 623-642",
            "10.1037/rev0000291",
        ),
    ),
    parameters=Parameters,
    range=(-3.5, 3.5),
    kernel=_kernel,
    update=_update,
    transition=_transition,
    prepare=_prepare,
    encode=_attitudes,
    decode=_opinions,
    orders=("permutation", "random", "sequential", "synchronous"),
    picks=("listener",),
    meets_itself=(True, False),
    keeps_consensus=False,
    example={"n": 500, "network": "complete", "initial": "normal", "steps": 400, "rho": 0.9, "k": 10},
)
