"""Bounded confidence on networks whose ties are moved: Kozma & Barrat 2008, and Kan, Feng & Porter 2023."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ClassicModel, Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._contacts import Variant
from opinionsim.classic.kernels._frozen import require_approach, root
from opinionsim.classic.kernels._random import draw, index, uniform
from opinionsim.classic.kernels._stepping import Stop, no_room, step_kernel
from opinionsim.classic.kernels._ties import (
    Ties,
    anybody,
    far_tie,
    item_at,
    member_of_all,
    move,
    move_tie,
    note_at,
    number_of_all,
    number_of_ties,
    owner_of,
    size_of,
    target_finder,
)
from opinionsim.classic.models._deffuant import MU
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined
from opinionsim.networks import Network

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup


class Meeting(NamedTuple):
    r"""Bounded confidence on adaptive networks (Kozma-Barrat).

    An agent and one of its ties are drawn at random. With probability rewire, the event concerns the tie: if the
    opinions are farther apart than the tolerance, its other end moves to a random agent that the first agent is not
    tied to yet. Otherwise, the event concerns the opinions: if they are within the tolerance, both move closer.

    - Equation: \begin{cases} (i, j) \to (i, k) \text{ if } |x_j - x_i| > d & \text{with probability } w\\ x_i
      \leftarrow x_i + \mu (x_j - x_i),\ x_j \leftarrow x_j + \mu (x_i - x_j) \text{ if } |x_j - x_i| \le d &
      \text{otherwise} \end{cases}
    - Behaviour: A run ends in components in which all agents agree. With target 'random', the opinions of different
      components are farther apart than the tolerance, or equal by chance. Rewiring lets agents with similar opinions
      find each other, so fewer agents remain alone than on fixed ties. It also lets the network fall apart, so
      consensus needs a larger tolerance (Kozma & Barrat 2008). With rewire = 0, this is Deffuant's model on a fixed
      network, with the listener drawn first.
    - Source: Kozma & Barrat 2008
    - Source: Deffuant et al. 2000
    """

    epsilon: Any = Parameter(
        0.2, "tolerance: largest distance at which opinions meet; beyond it, ties move", "d", per_agent=False,
        scaled=True, reaches="threshold",
    )  # fmt: skip
    mu: Any = MU
    rewire: Any = Parameter(0.5, "probability that the event concerns the tie, not the opinions", "w", "[0, 1]")
    target: Any = Parameter(
        "random",
        "candidates for the new tie: all agents, or those within the tolerance",
        choices=("random", "similar"),
    )
    threshold: Any = Parameter(
        "<=", "whether opinions at exactly that distance are within the tolerance", choices=("<=", "<")
    )


class Adaptive(NamedTuple):
    r"""Adaptive bounded confidence (Kan-Feng-Porter).

    A tie is discordant if its opinions are farther apart than the tolerance. In each event, with probability rewire, a
    discordant tie is drawn, and one of its ends moves to an agent that the other end is not tied to yet, preferably one
    with a similar opinion. Then one of all ties is drawn; if its opinions are closer than the confidence, both move
    closer.

    - Equation: |x_j - x_i| > \beta:\ (i, j) \to (i, k),\ P(k) \propto 1 - \frac{|x_k - x_i|}{b - a};\quad |x_j - x_i| <
      c:\ x_i \leftarrow x_i + \mu (x_j - x_i),\ x_j \leftarrow x_j + \mu (x_i - x_j)
    - Behaviour: Consensus needs a larger confidence than on fixed ties (Kan, Feng & Porter 2023). If the tolerance is
      above the confidence, ties with opinions between the two last but have no influence, so a component can contain
      several clusters. The paper moves M discordant ties and lets K pairs meet in each step; rewire is M / K.
    - Source: Kan et al. 2023
    - Source: Deffuant et al. 2000
    """

    epsilon: Any = Parameter(
        0.2, "confidence: distance below which opinions meet", "c", per_agent=False, scaled=True, reaches="threshold"
    )
    tolerance: Any = Parameter(
        0.3, "distance above which a tie is discordant", r"\beta", per_agent=False, scaled=True, reaches="beyond"
    )
    mu: Any = MU
    rewire: Any = Parameter(
        0.2, "number of discordant ties that move for each pair that meets", "M/K", "[0, 1]", per_agent=False
    )
    target: Any = Parameter(
        "homophilic",
        "choice of the agent for the new tie: preferably a similar one, or all with equal probability",
        choices=("homophilic", "random"),
    )
    threshold: Any = Parameter(
        "<", "whether opinions at exactly the confidence meet, and, with <=, at exactly the tolerance are discordant",
        choices=("<", "<="),
    )  # fmt: skip
    limits: Any = None


@inlined
def _near(opinions, p, agent, other):
    return np.float64(abs(opinions[other] - opinions[agent]) < p.epsilon)


@inlined
def _closeness(opinions, p, agent, other):
    return 1.0 - abs(opinions[other] - opinions[agent]) / (p.limits[1] - p.limits[0])


@inlined
def _approach(opinions, p, one, other):
    gap = opinions[other] - opinions[one]
    opinions[one] += at(p.mu, one) * gap
    opinions[other] -= at(p.mu, other) * gap


def _meet_or_move(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    find = target_finder(number_of_all, member_of_all, _near if variant.option("target") == 1 else anybody, 256)

    def step(opinions, before, start, ties, timing, p, queue, state, spare, space):
        ends = ties.ends
        for _ in range(timing.events):
            # A number in [0, 1) times that of agents is an agent and, behind the point, a number in [0, 1) again.
            drawn = uniform(draw(state)) * ties.n
            agent = np.int64(drawn)
            degree = size_of(ends, agent)
            if degree == 0:
                continue
            place = np.int64((drawn - agent) * degree)
            other = note_at(ends, agent, place)
            beyond = abs(opinions[other] - opinions[agent]) >= p.epsilon
            # Where opinions are near, nothing comes of a tie in question, and the other way round.
            if beyond == (uniform(draw(state)) < at(p.rewire, agent)):
                if not beyond:
                    _approach(opinions, p, agent, other)
                else:
                    found = find(opinions, ends, ties.groups, ties.n, p, agent, state)
                    if found >= 0:
                        move_tie(ends, item_at(ends, agent, place) ^ 1, found)

    return inlined(step), no_room


def _by_discordance(network: Network, states: np.ndarray, p: Adaptive) -> Ties:
    """Ties in two groups: those within the tolerance, and those beyond it."""
    pairs = network.edges[0]
    return Ties.of(network, (np.abs(states[pairs[:, 1]] - states[pairs[:, 0]]) >= p.tolerance).astype(np.int64), 2)


@inlined
def _sort(opinions, groups, p, tie, one, other):
    """Put a tie between two agents into its group."""
    beyond = np.int64(abs(opinions[other] - opinions[one]) >= p.tolerance)
    if owner_of(groups, tie) != beyond:
        move(groups, tie, beyond)


@inlined
def _sort_all(opinions, ends, groups, p, agent):
    """Put all ties of an agent into their groups."""
    for place in range(size_of(ends, agent)):
        _sort(opinions, groups, p, item_at(ends, agent, place) >> 1, agent, note_at(ends, agent, place))


def _meet_and_move(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    find = target_finder(number_of_all, member_of_all, anybody if variant.option("target") == 1 else _closeness, 64)

    def step(opinions, before, start, ties, timing, p, queue, state, spare, space):
        ends, groups, count = ties.ends, ties.groups, number_of_ties(ties.ends)
        for _ in range(timing.events):
            discordant = size_of(groups, 1)
            if discordant > 0 and uniform(draw(state)) < p.rewire:
                # Either end of a tie is as likely to be moved.
                end = index(draw(state), 2 * discordant)
                end = 2 * item_at(groups, 1, end >> 1) + (end & 1)
                kept = owner_of(ends, end ^ 1)
                found = find(opinions, ends, groups, ties.n, p, kept, state)
                if found >= 0:
                    move_tie(ends, end, found)
                    _sort(opinions, groups, p, end >> 1, kept, found)
            tie = index(draw(state), count)
            one, other = owner_of(ends, 2 * tie), owner_of(ends, 2 * tie + 1)
            if abs(opinions[other] - opinions[one]) < p.epsilon and opinions[one] != opinions[other]:
                _approach(opinions, p, one, other)
                _sort_all(opinions, ends, groups, p, one)
                _sort_all(opinions, ends, groups, p, other)

    return inlined(step), no_room


@allocating
def _forest(opinions, ties, p):
    """The tie that was discordant last, parents of agents in a forest, and the range of opinions of each tree."""
    n = ties.n
    return np.zeros(1, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)


def _settled(tolerance_of: Callable[..., float]) -> Stop:
    """The check that no tie is discordant or can become so, and none that is too far to meet can come within reach."""

    def check(opinions, previous, ties, p, timing, memory):
        last, parents, low, high = memory
        ends, tolerance = ties.ends, tolerance_of(p)
        count = number_of_ties(ends)
        if far_tie(opinions, ends, last, tolerance):
            return False
        # Opinions stay within the range of those that are joined by ties within reach.
        for agent in range(ties.n):
            parents[agent], low[agent], high[agent] = agent, opinions[agent], opinions[agent]
        for tie in range(count):
            one, other = owner_of(ends, 2 * tie), owner_of(ends, 2 * tie + 1)
            if abs(opinions[other] - opinions[one]) < p.epsilon:
                one, other = root(parents, one), root(parents, other)
                parents[other] = one
                low[one], high[one] = min(low[one], low[other]), max(high[one], high[other])
        for tie in range(count):
            one, other = root(parents, owner_of(ends, 2 * tie)), root(parents, owner_of(ends, 2 * tie + 1))
            widest = max(high[one], high[other]) - min(low[one], low[other])
            nearest = max(low[one], low[other]) - min(high[one], high[other])
            wide = widest >= p.epsilon or widest > timing.tolerance
            if widest >= tolerance or (wide if one == other else nearest < p.epsilon):
                return False
        return True

    return Stop(inlined(check), _forest)


_BY_EPSILON = _settled(inlined(lambda p: p.epsilon))
_BY_TOLERANCE = _settled(inlined(lambda p: p.tolerance))


def _frozen_meeting(setup: Setup) -> Stop:
    rewire = np.asarray(setup.p.rewire)
    if not ((rewire > 0) & (rewire < 1)).all():
        raise SpecError(
            "until: frozen cannot be reached in kozma-barrat if rewire is 0 or 1: either ties never move, or "
            "opinions never do; for fixed ties use deffuant"
        )
    require_approach(setup)
    return _BY_EPSILON


def _frozen_adaptive(setup: Setup) -> Stop:
    if setup.p.rewire == 0:
        raise SpecError(
            "until: frozen cannot be reached in kan-feng-porter if rewire is 0; for fixed ties use deffuant"
        )
    require_approach(setup)
    return _BY_TOLERANCE


def _drawn(received: Received, p: Meeting) -> Transition:
    """Messages are the opinions of all neighbours, of whom one is drawn."""
    present, own = received.present, received.own[:, None]
    gap = received.said - own
    share = (1 - np.broadcast_to(p.rewire, received.own.shape))[:, None]
    meets = share * (present & (np.abs(gap) < p.epsilon)) / np.maximum(present.sum(axis=1, keepdims=True), 1)
    values = own + np.broadcast_to(p.mu, received.own.shape)[:, None] * gap * present
    return Transition(np.column_stack([own, values]), np.column_stack([1 - meets.sum(axis=1), meets]))


def _met(received: Received, p: Adaptive) -> np.ndarray:
    """The message is the opinion at the other end of the tie that is drawn."""
    gap = received.said[:, 0] - received.own
    return np.where(received.present[:, 0] & (np.abs(gap) < p.epsilon), received.own + p.mu * gap, received.own)


_EXAMPLE = {"n": 300, "network": {"kind": "erdos-renyi", "p": 0.033}, "steps": 150}

KOZMA_BARRAT = ClassicModel(
    name="kozma-barrat",
    family="similarity-biased",
    parameters=Meeting,
    kernel=step_kernel(_meet_or_move),
    ties=lambda network, states, p: Ties.of(network),
    transition=_drawn,
    orders=("random",),
    sides=("two",),
    conserves=frozenset({"mean"}),
    needs=frozenset(),
    frozen=_frozen_meeting,
    at_rest="no tie joins opinions farther apart than the tolerance, and no component is wider than it, so no tie "
    "can ever move again.",
    shrinks=True,
    example={**_EXAMPLE, "epsilon": 0.15},
)

KAN_FENG_PORTER = ClassicModel(
    name="kan-feng-porter",
    family="similarity-biased",
    parameters=Adaptive,
    kernel=step_kernel(_meet_and_move),
    ties=_by_discordance,
    transition=_met,
    orders=("random",),
    sides=("two",),
    conserves=frozenset({"mean"}),
    needs=frozenset(),
    frozen=_frozen_adaptive,
    at_rest="no tie is discordant, agents joined by ties within the confidence are never farther apart than the "
    "confidence and the tolerance, and no tie between two such groups can come within the confidence or beyond the "
    "tolerance, wherever their members move within their ranges.",
    shrinks=True,
    example={**_EXAMPLE, "epsilon": 0.2, "tolerance": 0.3},
)
