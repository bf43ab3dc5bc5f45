"""Echo chambers on temporal networks: Baumann, Lorenz-Spreen, Sokolov & Starnini 2020."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._groups import panel, partner, reach, received
from opinionsim.classic._model import ClassicModel, Parameter, Source
from opinionsim.classic._random import draw, uniform
from opinionsim.classic._transition import Transition, certain
from opinionsim.compilation import at, inlined

__all__ = ["MODEL", "Parameters"]

_METHODS = ("euler", "heun", "rk4")


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    K: Annotated[np.ndarray, Parameter(3.0, "strength of social influence", "K", low=0.0)]
    alpha: Annotated[np.ndarray, Parameter(3.0, "controversialness: how soon influence saturates with the opinion of "
                                           "the one who speaks", r"\alpha", low=0.0)]  # fmt: skip
    beta: Annotated[np.ndarray, Parameter(3.0, "homophily: how fast the chance of contact falls with distance",
                                          r"\beta", low=0.0)]  # fmt: skip
    m: Annotated[int, Parameter(10, "different agents that an active one contacts in a step", "m", low=1,
                                per_agent=False)]  # fmt: skip
    r: Annotated[np.ndarray, Parameter(0.5, "probability that a contact influences both", "r", 0.0, 1.0)]
    contact: Annotated[int, Parameter("hears", "what an active agent does: it hears those whom it contacts, or speaks "
                                      "to them", choices=("hears", "speaks"))]  # fmt: skip
    activity: Annotated[np.ndarray, Parameter(-1.0, "probability of being active in a step; negative ones are drawn "
                                              "from the power law", "a", -1.0, 1.0)]  # fmt: skip
    gamma: Annotated[np.ndarray, Parameter(2.1, "exponent of the power law of activities", r"\gamma", low=0.0,
                                           per_agent=False)]  # fmt: skip
    epsilon: Annotated[np.ndarray, Parameter(0.01, "smallest activity of the power law", r"\varepsilon", 0.0, 1.0,
                                             open_low=True, per_agent=False)]  # fmt: skip
    dt: Annotated[np.ndarray, Parameter(0.01, "time a step takes", r"\mathrm{d}t", 0.0, 1.0, open_low=True,
                                        per_agent=False)]  # fmt: skip
    closest: Annotated[np.ndarray, Parameter(1e-5, "distance below which opinions attract as at it", "d_0", low=0.0,
                                             open_low=True, per_agent=False)]  # fmt: skip
    method: Annotated[int, Parameter("euler", "integration of a step", choices=_METHODS)]


@inlined
def _activities(p, spare, activities):
    """Everybody's activity; drawn ones come from a copy of a state that is left as it is, hence are always the same."""
    seldom = spare.copy()
    for agent in range(activities.size):
        activities[agent] = at(p.activity, agent)
        if p.gamma == 1.0:
            drawn = math.pow(p.epsilon, 1.0 - uniform(draw(seldom)))
        else:
            lowest = math.pow(p.epsilon, 1.0 - p.gamma)
            drawn = math.pow(lowest + uniform(draw(seldom)) * (1.0 - lowest), 1.0 / (1.0 - p.gamma))
        if activities[agent] < 0.0:
            activities[agent] = drawn


@inlined
def _contact(opinions, contacts, p, agent, state, chances, members):
    """Draw the different agents whom an active one contacts into `members`; returns how many."""
    beta = at(p.beta, agent)
    size = reach(contacts, agent)
    if beta == 0.0 or size <= members.size:
        return panel(contacts, agent, False, state, members)
    nearest = np.inf
    for place in range(size):
        chances[place] = max(abs(opinions[partner(contacts, agent, place)] - opinions[agent]), p.closest)
        nearest = min(nearest, chances[place])
    for place in range(size):
        # Relative to the nearest, which no power can carry beyond what a float holds.
        chances[place] = math.pow(nearest / chances[place], beta)
        if contacts.weights.size > 0:
            chances[place] *= contacts.weights[contacts.starts[agent] + place]
    for count in range(members.size):
        total = 0.0
        for place in range(size):
            total += chances[place]
        if total <= 0.0:
            return count
        target, passed, found = uniform(draw(state)) * total, 0.0, 0
        for place in range(size):
            if chances[place] > 0.0:
                found = place
                passed += chances[place]
                if passed > target:
                    break
        members[count] = partner(contacts, agent, found)
        chances[found] = 0.0
    return members.size


@inlined
def _hears(contacts, agent, other):
    """Whether an agent hears another at all; rows are in order."""
    if contacts.complete:
        return True
    low, above = contacts.starts[agent], contacts.starts[agent + 1]
    while low < above:
        middle = (low + above) >> 1
        if np.int64(contacts.others[middle]) < other:
            low = middle + 1
        else:
            above = middle
    return low < contacts.starts[agent + 1] and np.int64(contacts.others[low]) == other


@inlined
def _meetings(opinions, contacts, p, activities, state, chances, chosen, counts, listeners, speakers):
    """The network of a step: who hears whom, each pair once; returns how many pairs."""
    counts[:] = 0
    for place in range(contacts.firsts.size):
        active = np.int64(contacts.firsts[place])
        if uniform(draw(state)) < activities[active]:
            counts[active] = _contact(opinions, contacts, p, active, state, chances, chosen[active])
    size = 0
    for agent in range(contacts.n):
        for place in range(counts[agent]):
            other = chosen[agent, place]
            heard = _hears(contacts, other, agent)
            mutual = uniform(draw(state)) < at(p.r, agent)
            for its in range(counts[other]):
                mutual &= chosen[other, its] != agent
            if mutual if p.contact == 1 else True:
                listeners[size], speakers[size] = agent, other
                size += 1
            if heard and (mutual if p.contact == 0 else True):
                listeners[size], speakers[size] = other, agent
                size += 1
    return size


@inlined
def _drift(opinions, contacts, p, listeners, speakers, size, slope):
    """The time derivative of opinions."""
    for agent in range(opinions.size):
        slope[agent] = 0.0
    for place in range(size):
        agent = listeners[place]
        slope[agent] += math.tanh(at(p.alpha, agent) * opinions[speakers[place]])
    for agent in range(opinions.size):
        # Whoever can meet nobody takes no part.
        slope[agent] = at(p.K, agent) * slope[agent] - opinions[agent] if reach(contacts, agent) > 0 else 0.0


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    n = contacts.n
    most = min(p.m, n - 1)
    activities, chances = np.empty(n), np.empty(n)
    _activities(p, spare, activities)
    chosen, counts = np.empty((n, most), dtype=np.int64), np.empty(n, dtype=np.int64)
    listeners, speakers = np.empty(2 * n * most, dtype=np.int64), np.empty(2 * n * most, dtype=np.int64)
    slopes, midway = np.empty((4, n)), np.empty(n)
    for step in range(timing.steps):
        size = _meetings(opinions, contacts, p, activities, state, chances, chosen, counts, listeners, speakers)
        _drift(opinions, contacts, p, listeners, speakers, size, slopes[0])
        if p.method == 1:
            midway[:] = opinions + p.dt * slopes[0]
            _drift(midway, contacts, p, listeners, speakers, size, slopes[1])
            opinions += p.dt / 2.0 * (slopes[0] + slopes[1])
        elif p.method == 2:
            for stage in range(1, 4):
                midway[:] = opinions + (p.dt if stage == 3 else p.dt / 2.0) * slopes[stage - 1]
                _drift(midway, contacts, p, listeners, speakers, size, slopes[stage])
            opinions += p.dt / 6.0 * (slopes[0] + 2.0 * slopes[1] + 2.0 * slopes[2] + slopes[3])
        else:
            opinions += p.dt * slopes[0]
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1] = opinions


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    """Messages are the opinions that reach an agent in a step, taken to stay as they are meanwhile."""
    alpha = np.broadcast_to(np.asarray(p.alpha, dtype=float), before.shape)[:, None]
    messages, given = received(messages, weights)
    pull = p.K * (given * np.tanh(alpha * messages)).sum(axis=1)
    # Towards a constant pull, integration of order k goes by the first k terms of exp(-dt).
    order = (1, 2, 4)[p.method]
    kept = sum((-p.dt) ** k / math.factorial(k) for k in range(order + 1))
    return certain(pull + kept * (before - pull))


MODEL = ClassicModel(
    name="activity-driven",
    title="Activity-driven echo chambers",
    kind="continuous",
    family="reinforcing",
    summary="In each step agents are active with a probability of their own; an active agent contacts m others, "
    "whom it finds the likelier the closer their opinions; it hears them, and they hear it with probability r (or, "
    "with contact 'speaks', the other way round: which of the two is meant, the equation does not say). Opinions are "
    "pushed on by the sign of what is heard, and decay otherwise.",
    equation=r"\dot x_i = -x_i + K \sum_j A_{ij}(t) \tanh(\alpha x_j),\quad "
    r"p_{ij} \propto |x_i - x_j|^{-\beta},\quad F(a) \propto a^{-\gamma},\ a \in [\varepsilon, 1]",
    behaviour="Without influence opinions decay as exp(-t). Without homophily neutral consensus is unstable above "
    "K alpha m ((1 + r) <a> + sqrt((1 - r)^2 <a>^2 + 4 r <a^2>)) / 2 = 1, which for equal activities is "
    "K alpha m a (1 + r) = 1: opinions then grow radical, to one side without and to both with homophily.",
    source=(
        Source(
            "Baumann, Lorenz-Spreen, Sokolov & Starnini (2020). Modeling echo chambers and polarization dynamics "
            "in social networks. Physical Review Letters 124, 048301",
            "10.1103/PhysRevLett.124.048301",
        ),
    ),
    parameters=Parameters,
    range=(-math.inf, math.inf),
    kernel=_kernel,
    transition=_transition,
    orders=("synchronous",),
    keeps_consensus=False,
    example={"n": 200, "network": "complete", "initial": "uniform", "steps": 1000},
)
