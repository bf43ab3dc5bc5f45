"""Echo chambers on temporal networks: Baumann, Lorenz-Spreen, Sokolov & Starnini 2020."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import Variant, topology
from opinionsim.classic.kernels._groups import draw_places, panel_drawer
from opinionsim.classic.kernels._random import draw, uniform
from opinionsim.classic.kernels._stepping import copy, step_kernel
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined


class Parameters(NamedTuple):
    r"""Activity-driven echo chambers.

    In each step, every agent is active with its own probability. An active agent contacts m others and prefers agents
    with similar opinions. It hears them, and each of them hears it with probability r. With contact 'speaks', these
    roles are reversed; the published equation does not say which version is meant. What an agent hears pushes its
    opinion in the direction of its sign; otherwise the opinion decays. Reluctance slows an agent down. With inertia,
    the same drift, minus friction, accelerates the opinion. Bots are zealots with separate values of activity, m and
    beta.

    - Equation: \mu_i \dot x_i = -x_i + K \sum_j A_{ij}(t) \tanh(\alpha x_j)\quad\text{or}\quad \mu_i (\ddot x_i + f
      \dot x_i) = -x_i + K \sum_j A_{ij}(t) \tanh(\alpha x_j),\quad p_{ij} \propto |x_i - x_j|^{-\beta},\quad F(a)
      \propto a^{-\gamma},\ a \in [\varepsilon, 1]
    - Behaviour: Without influence, opinions decay as exp(-t / mu). With inertia they decay as oscillators of frequency
      sqrt(1 / mu - f^2 / 4), or without oscillating if that is not a real number. Without homophily, the neutral
      consensus is unstable above K alpha m ((1 + r) <a> + sqrt((1 - r)^2 <a>^2 + 4 r <a^2>)) / 2 = 1. For equal
      activities this is K alpha m a (1 + r) = 1, whatever the reluctance and the inertia. Above this point opinions
      become radical, on one side without homophily and on both sides with it.
    - Source: Baumann et al. 2020
    - Source: Seldon 2024, for reluctance, inertia and bots
    """

    K: Any = Parameter(3.0, "strength of social influence", "K")
    alpha: Any = Parameter(
        3.0, "controversialness: how quickly influence saturates with the speaker's opinion", r"\alpha"
    )
    beta: Any = Parameter(3.0, "homophily: how fast the probability of contact falls with distance", r"\beta")
    m: Any = Parameter(10, "number of different agents that an active agent contacts in a step", "m", "[1, inf)")
    r: Any = Parameter(0.5, "probability that a contact influences both", "r", "[0, 1]")
    contact: Any = Parameter(
        "hears",
        "whether an active agent hears the agents it contacts or speaks to them",
        choices=("hears", "speaks"),
    )
    activity: Any = Parameter(
        -1.0, "probability of being active in a step; negative values are drawn from the power law", "a", "[-1, 1]"
    )
    gamma: Any = Parameter(2.1, "exponent of the power law of activities", r"\gamma", per_agent=False)
    epsilon: Any = Parameter(0.01, "smallest activity of the power law", r"\varepsilon", "(0, 1]", per_agent=False)
    dt: Any = Parameter(0.01, "duration of a step", r"\mathrm{d}t", "(0, 1]", per_agent=False)
    closest: Any = Parameter(1e-5, "distance below which contact is equally likely", "d_0", "(0, inf)", per_agent=False)
    reluctance: Any = Parameter(1.0, "reluctance: divisor of the drift of an opinion", r"\mu", "(0, inf)")
    inertia: Any = Parameter(False, "whether the drift accelerates an opinion instead of moving it")
    friction: Any = Parameter(
        1.0, "with inertia, the share of its velocity that an opinion loses per unit of time", "f"
    )
    zealot: Any = Parameter(0, "1 for an agent that never changes, such as a bot, 0 for all others", "z", "[0, 1]")
    method: Any = Parameter("euler", "integration of a step", choices=("euler", "heun", "rk4"))


@allocating
def _activities(p, spare, activities):
    """Fill in the activities of all agents; drawn ones come from a copy of a state, and are the same each time."""
    seldom = np.empty(spare.size, np.uint64)
    copy(spare, seldom)
    for agent in range(activities.size):
        activities[agent] = at(p.activity, agent)
        if p.gamma == 1.0:
            drawn = math.pow(p.epsilon, 1.0 - uniform(draw(seldom)))
        else:
            lowest = math.pow(p.epsilon, 1.0 - p.gamma)
            drawn = math.pow(lowest + uniform(draw(seldom)) * (1.0 - lowest), 1.0 / (1.0 - p.gamma))
        if activities[agent] < 0.0:
            activities[agent] = drawn


def _contacting(variant: Variant) -> Callable[..., int]:
    """``contact(opinions, contacts, p, agent, state, chances, members)``: draws whom an active agent contacts.

    They are different agents, in `members`; it returns how many.
    """
    reach, partner, _ = topology(variant)
    draw_panel, weighted = panel_drawer(variant), variant.weighted

    def contact(opinions, contacts, p, agent, state, chances, members):
        beta, size = at(p.beta, agent), reach(contacts, agent)
        if beta == 0.0 or size <= members.size:
            return draw_panel(contacts, agent, state, members)
        nearest = np.inf
        for place in range(size):
            chances[place] = max(abs(opinions[partner(contacts, agent, place)] - opinions[agent]), p.closest)
            nearest = min(nearest, chances[place])
        for place in range(size):
            # Relative to the nearest, which no power can carry beyond what a float holds.
            chances[place] = math.pow(nearest / chances[place], beta)
            if weighted:
                chances[place] *= contacts.weights[contacts.starts[agent] + place]
        count = draw_places(chances[:size], state, members)
        for place in range(count):
            members[place] = partner(contacts, agent, members[place])
        return count

    return inlined(contact)


@inlined
def _hears_all(contacts, agent, other):
    return True


@inlined
def _hears(contacts, agent, other):
    """Whether an agent hears another at all; rows are in order."""
    low, above = contacts.starts[agent], contacts.starts[agent + 1]
    end = above
    while low < above:
        middle = (low + above) >> 1
        if np.int64(contacts.others[middle]) < other:
            low = middle + 1
        else:
            above = middle
    return low < end and np.int64(contacts.others[low]) == other


def _meeting(variant: Variant) -> Callable[..., int]:
    """Draws the network of a step: who hears whom, each pair once; returns how many pairs."""
    contact, hears = _contacting(variant), _hears_all if variant.complete else _hears
    speaks = variant.option("contact") == 1

    def meetings(opinions, contacts, p, activities, state, chances, chosen, counts, listeners, speakers):
        for agent in range(contacts.n):
            counts[agent] = 0
        for place in range(contacts.firsts.size):
            active = np.int64(contacts.firsts[place])
            if uniform(draw(state)) < activities[active]:
                wanted = min(at(p.m, active), chosen.shape[1])
                counts[active] = contact(opinions, contacts, p, active, state, chances, chosen[active, :wanted])
        size = 0
        for agent in range(contacts.n):
            for place in range(counts[agent]):
                other = chosen[agent, place]
                heard = hears(contacts, other, agent)
                mutual = uniform(draw(state)) < at(p.r, agent)
                for its in range(counts[other]):
                    mutual &= chosen[other, its] != agent
                if mutual or not speaks:
                    listeners[size], speakers[size] = agent, other
                    size += 1
                if heard and (mutual or speaks):
                    listeners[size], speakers[size] = other, agent
                    size += 1
        return size

    return inlined(meetings)


@allocating
def _room(opinions, contacts, p, spare):
    n, most = contacts.n, 1
    for agent in range(n):
        most = min(max(most, at(p.m, agent)), n - 1)
    activities, chances, chosen = np.empty(n), np.empty(n), np.empty((n, most), np.int64)
    _activities(p, spare, activities)
    counts, listeners = np.empty(n, np.int64), np.empty(2 * n * most, np.int64)
    speakers = np.empty(2 * n * most, np.int64)
    return activities, chances, chosen, counts, listeners, speakers, np.empty((8, n)), np.empty(n)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    meetings, reach, method = _meeting(variant), topology(variant).reach, variant.option("method")

    def drift(opinions, contacts, p, listeners, speakers, size, slope):
        """The time derivative of opinions."""
        for agent in range(opinions.size):
            slope[agent] = 0.0
        for place in range(size):
            agent = listeners[place]
            slope[agent] += math.tanh(at(p.alpha, agent) * opinions[speakers[place]])
        for agent in range(opinions.size):
            # An agent that can meet nobody takes no part.
            moves = reach(contacts, agent) > 0 and at(p.zealot, agent) == 0
            pull = (at(p.K, agent) * slope[agent] - opinions[agent]) / at(p.reluctance, agent)
            slope[agent] = pull if moves else 0.0

    drift = inlined(drift)
    if variant.option("inertia"):
        return inlined(_accelerating(meetings, drift, (1, 2, 4)[method])), _room

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        activities, chances, chosen, counts, listeners, speakers, slopes, midway = space
        size = meetings(opinions, contacts, p, activities, state, chances, chosen, counts, listeners, speakers)
        drift(opinions, contacts, p, listeners, speakers, size, slopes[0])
        if method == 1:
            for agent in range(opinions.size):
                midway[agent] = opinions[agent] + p.dt * slopes[0, agent]
            drift(midway, contacts, p, listeners, speakers, size, slopes[1])
            for agent in range(opinions.size):
                opinions[agent] += p.dt / 2.0 * (slopes[0, agent] + slopes[1, agent])
        elif method == 2:
            for stage in range(1, 4):
                ahead = p.dt if stage == 3 else p.dt / 2.0
                for agent in range(opinions.size):
                    midway[agent] = opinions[agent] + ahead * slopes[stage - 1, agent]
                drift(midway, contacts, p, listeners, speakers, size, slopes[stage])
            for agent in range(opinions.size):
                inner = slopes[1, agent] + slopes[2, agent]
                opinions[agent] += p.dt / 6.0 * (slopes[0, agent] + 2.0 * inner + slopes[3, agent])
        else:
            for agent in range(opinions.size):
                opinions[agent] += p.dt * slopes[0, agent]

    return inlined(step), _room


def _accelerating(meetings: Callable[..., int], drift: Callable[..., None], stages: int) -> Callable[..., None]:
    """One step of opinions with velocities, by the Runge-Kutta method of 1, 2 or 4 stages."""

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        activities, chances, chosen, counts, listeners, speakers, slopes, midway = space
        velocities, accelerations, speeds = start[1], slopes[:4], slopes[4:]
        size = meetings(opinions, contacts, p, activities, state, chances, chosen, counts, listeners, speakers)
        for stage in range(stages):
            ahead = 0.0 if stage == 0 else p.dt if stage == stages - 1 else p.dt / 2.0
            last = max(stage - 1, 0)
            for agent in range(opinions.size):
                gone, gained = 0.0, 0.0
                if stage > 0:
                    gone, gained = ahead * speeds[last, agent], ahead * accelerations[last, agent]
                midway[agent], speeds[stage, agent] = opinions[agent] + gone, velocities[agent] + gained
            drift(midway, contacts, p, listeners, speakers, size, accelerations[stage])
            for agent in range(opinions.size):
                accelerations[stage, agent] -= at(p.friction, agent) * speeds[stage, agent]
        for stage in range(stages):
            share = p.dt / stages
            if stages == 4:
                share = p.dt / 6.0 if stage == 0 or stage == 3 else p.dt / 3.0
            for agent in range(opinions.size):
                opinions[agent] += share * speeds[stage, agent]
                velocities[agent] += share * accelerations[stage, agent]

    return step


def _transition(received: Received, p: Parameters) -> np.ndarray:
    """Messages are the opinions that reach an agent in a step, taken to stay as they are meanwhile."""
    if p.inertia:
        raise SpecError("inertia: the next opinion depends on a velocity that is not given; set inertia to false")
    alpha = np.broadcast_to(p.alpha, received.own.shape)[:, None]
    pull = p.K * (received.weights * np.tanh(alpha * received.said)).sum(axis=1)
    # Towards a constant pull, integration of order k goes by the first k terms of exp(-dt).
    order = (1, 2, 4)[p.method]
    kept = sum((-p.dt / p.reluctance) ** k / math.factorial(k) for k in range(order + 1))
    return np.where(p.zealot == 1, received.own, pull + kept * (received.own - pull))


MODEL = ClassicModel(
    name="activity-driven",
    family="reinforcing",
    parameters=Parameters,
    range=(-math.inf, math.inf),
    kernel=step_kernel(_make),
    transition=_transition,
    orders=("synchronous",),
    keeps_consensus=False,
    at_rest="opinions decay and are pushed on for ever.",
    carried=1,
    example={"steps": 1000},
)
