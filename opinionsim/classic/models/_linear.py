"""Weighted averages: DeGroot 1974, Friedkin & Johnsen 1990, and Altafini 2013 with friends and foes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._declaration import CENTRED, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import Contacts
from opinionsim.classic.kernels._stepping import Begin, Machine, array_kernel
from opinionsim.errors import SpecError
from opinionsim.networks import Network

SELF_WEIGHT = Parameter(1.0, "weight of an agent's own opinion, in addition to the weights of its edges", "w_{ii}")


class DeGroot(NamedTuple):
    r"""DeGroot.

    Every agent takes the weighted average of its own opinion and the opinions it hears.

    - Equation: x(t + 1) = W x(t),\quad W_{ij} = \frac{w_{ij}}{\sum_k w_{ik}}
    - Behaviour: On a strongly connected network with a self weight above 0, there is consensus at the average of
      initial opinions, weighted by the left eigenvector of W to eigenvalue 1. On an undirected network, these weights
      are the sums of each agent's weights. Without self weight, an even cycle alternates for ever.
    - Source: DeGroot 1974
    """

    self_weight: Any = SELF_WEIGHT


class Altafini(NamedTuple):
    r"""Altafini.

    Every agent takes the average of its own opinion, those of its friends, and the opposite of those of its foes, whose
    edges have negative weights.

    - Equation: x(t + 1) = W x(t),\quad W_{ij} = \frac{w_{ij}}{\sum_k |w_{ik}|}
    - Behaviour: On a strongly connected network with a self weight above 0, there are two outcomes. If the network is
      structurally balanced, its two sides end at opposite opinions of equal size; otherwise all opinions converge to
      the middle of the range.
    - Source: Altafini 2013
    """

    self_weight: Any = SELF_WEIGHT


class FriedkinJohnsen(NamedTuple):
    r"""Friedkin-Johnsen.

    Every agent takes the weighted average of its own opinion and the opinions it hears, and mixes in its initial
    opinion.

    - Equation: x(t + 1) = A W x(t) + (I - A) x(0),\quad A = \operatorname{diag}(a_1, \dots, a_N)
    - Behaviour: Opinions converge to (I - A W)^-1 (I - A) x(0), which is disagreement in general, if every agent hears,
      directly or indirectly, an agent with susceptibility below 1. With susceptibility 1, this is the DeGroot model;
      with 0, no agent moves.
    - Source: Friedkin & Johnsen 1990
    """

    susceptibility: Any = Parameter(
        0.5, "share of others' influence; the rest goes to the initial opinion", "a_i", "[0, 1]"
    )
    self_weight: Any = SELF_WEIGHT


def influence_matrix(network: Any, self_weight: ArrayLike = 1.0) -> Any:
    """Compute the row-normalised matrix W of linear models: the influence of each agent on each other.

    Parameters
    ----------
    network : Network, or any form that simulate takes
        Who hears whom, and with what weight; weights may be negative.
    self_weight : float or array_like (N,)
        Weight of an agent's own opinion, >= 0.

    Returns
    -------
    scipy.sparse.csr_array (N, N)
        Entry [i, j] is the share of j in the next opinion of i: the weight of j divided by the sum of the absolute
        weights of all agents that i hears and of i's own. Agents that hear nobody keep their opinion. A complete
        network needs N^2 entries.

    Raises
    ------
    SpecError
        If the network or the weight is not valid.

    Examples
    --------
    >>> influence_matrix([(0, 1), (1, 2)]).toarray()
    array([[0.5       , 0.5       , 0.        ],
           [0.33333333, 0.33333333, 0.33333333],
           [0.        , 0.5       , 0.5       ]])
    """
    from scipy.sparse import csr_array, diags_array

    joined = Network.of(network)
    own = SELF_WEIGHT.array("self_weight", self_weight, joined.n)
    if joined.complete:
        weights = np.ones((joined.n, joined.n))
        np.fill_diagonal(weights, own)
        return csr_array(weights / weights.sum(axis=1, keepdims=True))
    others, mine = _shares(Contacts.of(joined), own)
    shares = csr_array(others + diags_array(mine))
    shares.eliminate_zeros()
    return shares


def _shares(contacts: Contacts, own: Any) -> tuple[Any, np.ndarray]:
    """The shares of others, a sparse matrix (N, N), and one's own (N,), on a network that is not complete."""
    heard, mine = contacts.matrix(), np.broadcast_to(np.asarray(own, dtype=float), contacts.n)
    total = abs(heard) @ np.ones(contacts.n) + mine
    # An agent that hears no agent, itself included, keeps its opinion.
    deaf = total == 0
    scale = 1.0 / np.where(deaf, 1.0, total)
    heard.data *= np.repeat(scale, np.diff(contacts.starts))
    return heard, np.where(deaf, 1.0, mine * scale)


def _averaging(contacts: Contacts, own: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A function from opinions (N,) or (N, D) to the averages that agents hear, their own opinions included."""
    if contacts.complete:
        mine = np.asarray(own, dtype=float)
        factor, total = mine - 1.0, contacts.n - 1.0 + mine
        return lambda opinions: (opinions.sum(axis=0) + _like(factor, opinions) * opinions) / _like(total, opinions)
    others, kept = _shares(contacts, own)

    def average(opinions: np.ndarray) -> np.ndarray:
        heard = others @ opinions
        heard += _like(kept, opinions) * opinions
        return np.asarray(heard)

    return average


def _like(values: np.ndarray, opinions: np.ndarray) -> np.ndarray:
    """Numbers, or one an agent, in a shape that multiplies opinions (N,) or (N, D)."""
    return values[:, None] if values.ndim == 1 and opinions.ndim == 2 else values


def _degroot(contacts: Contacts, p: Any, machine: Machine) -> Begin:
    average = _averaging(contacts, p.self_weight)
    return lambda start, spare: (average, start.min(axis=0), start.max(axis=0))


def _friedkin_johnsen(contacts: Contacts, p: Any, machine: Machine) -> Begin:
    average, open_to = _averaging(contacts, p.self_weight), np.asarray(p.susceptibility, dtype=float)

    def begin(start: np.ndarray, spare: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], Any, Any]:
        share = _like(open_to, start)
        anchor = (1.0 - share) * start
        return lambda opinions: share * average(opinions) + anchor, start.min(axis=0), start.max(axis=0)

    return begin


def _altafini(contacts: Contacts, p: Any, machine: Machine) -> Begin:
    average = _averaging(contacts, p.self_weight)
    return lambda start, spare: (average, -np.abs(start).max(), np.abs(start).max())


def _heard(received: Received, p: Any) -> np.ndarray:
    """The average of messages and an agent's own opinion."""
    total = np.abs(received.weights).sum(axis=1) + p.self_weight
    found = (received.weights * received.said).sum(axis=1) + p.self_weight * received.own
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), received.own)


def _anchored(received: Received, p: FriedkinJohnsen) -> np.ndarray:
    """The average of messages and the initial opinion, which is the opinion before where none is given."""
    anchor = received.own if received.start is None else received.start
    return np.asarray(p.susceptibility * _heard(received, p) + (1.0 - p.susceptibility) * anchor)


def friedkin_johnsen_equilibrium(
    network: Any, initial: ArrayLike, susceptibility: ArrayLike = 0.5, self_weight: ArrayLike = 1.0
) -> np.ndarray:
    """Compute the equilibrium of the Friedkin-Johnsen model: (I - A W)^-1 (I - A) x(0).

    Parameters
    ----------
    network : Network, or any form that simulate takes
        Who hears whom, and with what weight >= 0.
    initial : array_like (N,) or (N, D)
        Initial opinions. The identity matrix gives the total influence of every agent on every other.
    susceptibility : float or array_like (N,)
        A's diagonal, in [0, 1].
    self_weight : float or array_like (N,)
        Weight of an agent's own opinion, >= 0.

    Returns
    -------
    ndarray (N,) or (N, D)
        Opinions in the limit.

    Raises
    ------
    SpecError
        If an argument is not valid, or if no initial opinion reaches an agent, directly or indirectly. If all agents
        have susceptibility 1, the model is DeGroot's, and the equations have no unique solution.

    Examples
    --------
    >>> friedkin_johnsen_equilibrium([(0, 1)], [0.0, 1.0], 0.5, self_weight=0)
    array([0.33333333, 0.66666667])
    """
    from scipy.sparse import diags_array, eye_array
    from scipy.sparse.linalg import spsolve

    joined = Network.of(network)
    if joined.weights is not None and (joined.weights < 0).any():
        raise SpecError("friedkin_johnsen_equilibrium takes no negative weights")
    n = joined.n
    open_to = FRIEDKIN_JOHNSEN.declared["susceptibility"].array("susceptibility", susceptibility, n)
    open_to = np.broadcast_to(np.asarray(open_to, dtype=float), n)
    values = np.asarray(initial, dtype=float)
    if values.ndim not in (1, 2) or values.shape[0] != n:
        raise SpecError(
            f"initial must contain one opinion for each of the {n} agents; got an array of shape {values.shape}"
        )
    shares = influence_matrix(joined, self_weight)
    _check_anchored(shares, open_to)
    mixed = (eye_array(n) - diags_array(open_to) @ shares).tocsc()
    anchor = (1.0 - open_to).reshape(n, *[1] * (values.ndim - 1)) * values
    return np.asarray(spsolve(mixed, anchor)).reshape(values.shape)


def _check_anchored(shares: Any, open_to: np.ndarray) -> None:
    """Refuse agents that no initial opinion reaches: the equations have no single solution then."""
    from scipy.sparse.csgraph import connected_components

    count, part = connected_components(shares, directed=True, connection="strong")
    rows, columns = shares.nonzero()
    closed = np.ones(count, dtype=bool)
    closed[part[rows[part[rows] != part[columns]]]] = False
    anchored = np.zeros(count, dtype=bool)
    anchored[part[open_to < 1.0]] = True
    lost = np.flatnonzero((closed & ~anchored)[part])
    if lost.size:
        raise SpecError(
            f"agent {lost[0]} depends on no initial opinion because it and all agents that it hears, directly or not, "
            "have susceptibility 1"
        )


DEGROOT = ClassicModel(
    name="degroot",
    family="assimilative",
    parameters=DeGroot,
    kernel=array_kernel(_degroot),
    vector=array_kernel(_degroot),
    transition=_heard,
    orders=("synchronous",),
    example={"network": {"kind": "watts-strogatz", "k": 6, "p": 0.1}, "steps": 60},
)

FRIEDKIN_JOHNSEN = ClassicModel(
    name="friedkin-johnsen",
    family="assimilative",
    parameters=FriedkinJohnsen,
    kernel=array_kernel(_friedkin_johnsen),
    vector=array_kernel(_friedkin_johnsen),
    transition=_anchored,
    needs=frozenset({"partners", "start"}),
    orders=("synchronous",),
    example={"network": {"kind": "watts-strogatz", "k": 6, "p": 0.1}, "steps": 30, "susceptibility": 0.9},
)

ALTAFINI = ClassicModel(
    name="altafini",
    family="repulsive",
    parameters=Altafini,
    range=(-1.0, 1.0),
    kernel=array_kernel(_altafini),
    vector=array_kernel(_altafini),
    transition=_heard,
    units=CENTRED,
    orders=("synchronous",),
    keeps_consensus=False,
    needs=frozenset({"partners", "signs"}),
    example={
        "n": 6,
        "network": {
            "edges": [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3), (0, 5)],
            "weights": [1, 1, 1, 1, 1, 1, -1, -1],
        },
        "initial": [0.9, 0.2, -0.3, 0.6, -0.5, -0.8],
        "steps": 30,
    },
)
