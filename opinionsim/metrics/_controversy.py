"""Random-walk controversy: whether walks over ties stay on the side they started from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.metrics._arrays import Measured, Range, Rows, tally
from opinionsim.metrics._between_groups import numbered
from opinionsim.metrics._on_networks import TieArrays, Ties, sides
from opinionsim.registry import part

#: Unknowns up to which equations are solved by elimination at once: in networks without narrow places, its time grows
#: with their cube.
_ELIMINATED = 500
#: Steps of the iteration used instead of elimination. If it needs more, the network has narrow places.
_ITERATIONS = 100


@part("metric", name="random_walk_controversy")
def random_walk_controversy(
    opinions: ArrayLike, network: Ties, range: Range, groups: ArrayLike | None = None, hubs: int = 10
) -> Measured:
    r"""How rarely walks over ties change sides before they meet a hub.

    :math:`P_{XX} P_{YY} - P_{YX} P_{XY}`, where :math:`P_{AB}` is the probability that a walk started on side A, given
    that it ended on side B.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom.
    range : (float, float)
        Ends of the opinion scale. The sides are below and above its middle; agents exactly there have no side and are
        left out with their ties.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's side, instead of the side of its opinion: two names, and NaN or None for agents without a
        side.
    hubs : int
        Number k of hubs on each side: the members with the largest degrees. Members with the same degree as the k-th
        are hubs too.

    Returns
    -------
    float or ndarray (...)
        1 if no walk changes sides, about 0 if the side on which a walk ends does not depend on where it starts, and
        negative if walks tend to change sides. NaN unless walks start and end on both sides.

    Raises
    ------
    MeasurementError
        If an argument is not valid, an opinion lies outside the range, or there are more than two groups.

    Notes
    -----
    - Meaning: how rarely walks change sides
    - Formula: ``Pxx Pyy - Pyx Pxy, Pab: started on a if ended at a hub of b``
    - Values: -1 to 1
    - Source: Garimella et al. 2018
    - Pitfall: depends on the number of hubs, so report it; if all degrees are equal, every agent is a hub

    Garimella, De Francisci Morales, Gionis and Mathioudakis 2018. A walk starts on either side with probability 1/2, at
    a member drawn uniformly. It goes from an agent to one that it hears, in proportion to the weights of ties, and ends
    at the first hub of either side that it meets, after at least one step. Walks that cannot meet a hub are left out.
    The degree of an agent is the weight of the ties over which others hear it. The function computes the probabilities
    from the linear equations of the walk and does not simulate walks.
    """
    whole_number("hubs", hubs, 1, MeasurementError)
    rows = Rows.of(opinions, range)
    ties = TieArrays.of(network, rows.x.shape[1])
    labels = sides(rows) if groups is None else numbered(groups, (*rows.shape, rows.x.shape[1]))
    if labels.max(initial=0) > 1:
        raise MeasurementError(f"groups must name two sides; got {labels.max() + 1} groups")
    labels = np.where(rows.present, labels, -1)
    ended = (_ends_of_all(row) if ties.complete else _ends(row, ties, hubs) for row in labels)
    return rows.back(np.array([_controversy(each) for each in ended]))


def _controversy(ended: np.ndarray) -> float:
    """The measure, from amounts (2, 2) of walks that start on the side of the row and end on that of the column."""
    with np.errstate(invalid="ignore"):
        among = ended / ended.sum(axis=1, keepdims=True)
        started = among / among.sum(axis=0)
    return float(started[0, 0] * started[1, 1] - started[1, 0] * started[0, 1])


def _ends_of_all(side: np.ndarray) -> np.ndarray:
    """Ends of walks in a complete network, where all degrees are equal: every agent is a hub."""
    sizes = tally(side[None], 2)[0].astype(float)
    return np.asarray(sizes[:, None] * (sizes - np.eye(2)))


def _ends(side: np.ndarray, ties: TieArrays, k: int) -> np.ndarray:
    """Sums over members of each side of the probability that a walk from there ends on each side, (2, 2)."""
    from scipy.sparse import csr_array, diags_array, eye_array
    from scipy.sparse.csgraph import breadth_first_order

    kept = (side[ties.listeners] >= 0) & (side[ties.speakers] >= 0) & (ties.weights > 0)
    listeners, speakers, weights = ties.listeners[kept], ties.speakers[kept], ties.weights[kept]
    degree = np.bincount(speakers, weights, ties.n)
    hub = np.zeros(ties.n, dtype=bool)
    for members in (np.flatnonzero(side == each) for each in (0, 1)):
        ranked = np.sort(degree[members])[::-1]
        least = ranked[min(k, ranked.size) - 1] if ranked.size else 0
        hub[members] |= (degree[members] >= least) & (degree[members] > 0)
    moves = csr_array((weights, (listeners, speakers)), shape=(ties.n, ties.n))
    heard = moves.sum(axis=1)
    moves = (diags_array(1 / np.where(heard > 0, heard, 1)) @ moves).tocsr()
    # Where walks from each agent end: known at hubs, elsewhere the mean over those whom it hears.
    known = np.column_stack([hub & (side == each) for each in (0, 1)]).astype(float)
    # Those who can meet a hub are found on ties turned round, from one more node that is tied to all hubs.
    roots = np.flatnonzero(hub)
    ends = np.append(speakers, np.full(roots.size, ties.n)), np.append(listeners, roots)
    turned = csr_array((np.ones(ends[0].size), ends), shape=(ties.n + 1, ties.n + 1))
    found = np.sort(breadth_first_order(turned, ties.n, return_predecessors=False))[:-1]
    inner = found[~hub[found]]
    if inner.size:
        steps = moves[inner]
        matrix = (eye_array(inner.size) - steps[:, inner]).tocsr()
        known[inner] = np.column_stack([_solved(matrix, right) for right in (steps @ known).T])
    after_a_step = moves @ known
    return np.stack([after_a_step[side == each].sum(axis=0) for each in (0, 1)])


def _solved(matrix: Any, right: np.ndarray) -> np.ndarray:
    """The solution of linear equations."""
    from scipy.sparse.linalg import bicgstab, splu

    if right.size > _ELIMINATED:
        found, failed = bicgstab(matrix, right, rtol=1e-13, atol=0, maxiter=_ITERATIONS)
        if not failed:
            return np.asarray(found)
    return np.asarray(splu(matrix.tocsc()).solve(right))
