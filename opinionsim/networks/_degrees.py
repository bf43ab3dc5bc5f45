"""Random networks of exactly the given degrees."""

from __future__ import annotations

import numpy as np

from opinionsim.networks._pairs import Pairs, codes

#: All stubs are paired again only if a simple network has a probability above exp(-_RARE).
_RARE = 5
#: Rounds without a success after which a network of given degrees is built in another way.
_MOST_FAILURES = 100
#: Random edges that one pair may try to switch ends with in a round.
_MOST_TRIES = 16
#: Rounds in which half of all edges try to switch ends with the others.
_MIXING_ROUNDS = 100


def degrees_problem(degrees: np.ndarray) -> str:
    """Return why no simple network has these degrees >= 0 (Erdős and Gallai 1960); empty if one has them."""
    n = len(degrees)
    if degrees.max() >= n:
        return f"degrees must be below N = {n}; got {degrees.max()}"
    if degrees.sum() % 2:
        return f"degrees must have an even sum; got {degrees.sum()}"
    falling = np.sort(degrees)[::-1]
    sums = np.concatenate([[0], np.cumsum(falling)])
    first = np.arange(1, n + 1)
    # An agent beyond the first k has at most k of these as neighbours, and at most its degree.
    larger = np.maximum(np.searchsorted(-falling, -first, side="right"), first)
    room = first * (first - 1) + first * (larger - first) + (sums[-1] - sums[larger])
    if (sums[1:] > room).any():
        return "degrees are impossible without loops or repeated edges: the largest are too large"
    return ""


def pairs_of_degrees(degrees: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Draw a random network with exactly these degrees, for which :func:`degrees_problem` finds nothing.

    Every agent has as many stubs as its degree, and stubs are paired at random. If few tries are expected, all stubs
    are paired again until there is neither a loop nor a repeated edge. Every network with these degrees is then equally
    likely. Otherwise, each loop or repeated edge (a, b) is switched with a random edge (c, d) to the edges (a, c) and
    (b, d), until none is left. If that fails, the same switches mix a network built by Havel's and Hakimi's rule.
    Networks drawn by switches are nearly equally likely if the largest degree is small compared with the square root of
    the number of edges.
    """
    n = len(degrees)
    if 2 * degrees.sum() > n * (n - 1):
        # In a dense network it is faster to draw the pairs that are not joined.
        absent = codes(n, *pairs_of_degrees(n - 1 - degrees, rng))
        u, v = np.triu_indices(n, 1)
        joined = ~_among(absent, codes(n, u, v))
        return u[joined], v[joined]
    stubs = np.repeat(np.arange(n, dtype=np.int64), degrees)
    for _ in range(1 + _whole_tries(degrees)):
        rng.shuffle(stubs)
        pairs = codes(n, stubs[0::2], stubs[1::2])
        pairs.sort()
        good = np.concatenate([[True], pairs[1:] != pairs[:-1]])[: len(pairs)] & (pairs // n != pairs % n)
        if good.all():
            break
    edges, left, failures = pairs[good], pairs[~good], 0
    while len(left) and len(edges) and failures < _MOST_FAILURES:
        count = len(left)
        edges, left = _switched(n, edges, left, rng)
        failures = failures + 1 if len(left) == count else 0
    return np.divmod(_mixed(degrees, rng) if len(left) else edges, n)


def _whole_tries(degrees: np.ndarray) -> int:
    """Number of times to pair all stubs to find a simple network.

    The probability of a simple network is about exp(-x - x^2) with x = sum d (d - 1) / (2 sum d) (Bollobas 1980,
    doi:10.1016/S0195-6698(80)80030-8), for any number of agents.
    """
    stubs = int(degrees.sum())
    x = float((degrees * (degrees - 1)).sum()) / (2 * max(stubs, 1))
    return min(1000, 1_000_000 // max(stubs, 1)) if x + x * x < _RARE else 0


def _mixed(degrees: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Edges of a network built deterministically (Havel and Hakimi), after switching most of them many times."""
    from networkx import havel_hakimi_graph

    n, joined = len(degrees), np.flatnonzero(degrees)
    built = havel_hakimi_graph(degrees[joined].tolist()).edges
    edges = np.sort(codes(n, *joined[np.array(list(built), dtype=np.int64).T]))
    for _ in range(_MIXING_ROUNDS):
        moved = np.zeros(len(edges), dtype=bool)
        moved[rng.choice(len(edges), len(edges) // 2, replace=False)] = True
        rest, back = _switched(n, edges[~moved], edges[moved], rng, among=edges)
        edges = np.sort(np.concatenate([rest, back]))
    return edges


def _switched(
    n: int, edges: np.ndarray, left: np.ndarray, rng: np.random.Generator, among: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Switch ends between pairs and random edges where that leaves neither a loop nor a repeated edge.

    Parameters
    ----------
    n : int
        Number of agents.
    edges : ndarray of int
        Codes of edges, ascending.
    left : ndarray of int
        Codes of pairs (a, b); with an edge (c, d) such a pair becomes the edges (a, c) and (b, d).
    rng : numpy.random.Generator
        Draws the edges.
    among : ndarray of int, optional
        Codes of edges that may not be made, ascending; by default the edges.

    Returns
    -------
    edges, left : ndarray of int
        The edges, ascending, and the pairs that are left.
    """
    rng.shuffle(left)
    tries = min(max(len(edges) // (4 * len(left)), 1), _MOST_TRIES)
    a, b = np.divmod(left, n)
    chosen = rng.integers(len(edges), size=(tries, len(left)))
    c, d = np.divmod(edges[chosen], n)
    turned = rng.random(chosen.shape) < 0.5
    made = np.stack([codes(n, a, np.where(turned, d, c)), codes(n, b, np.where(turned, c, d))])
    loops = (made // n == made % n).any(axis=0)
    possible = ~loops & ~_among(edges if among is None else among, made).any(axis=0)
    first = possible.argmax(axis=0), np.arange(len(left))
    chosen, made, fits = chosen[first], made[:, *first], possible[first]
    # Two pairs may neither take the same edge nor make the same one.
    fits[fits] = _single(chosen[fits])
    fits[fits] = _single(made[:, fits]).all(axis=0)
    added = np.sort(made[:, fits].ravel())
    edges = np.delete(edges, chosen[fits])
    edges = np.insert(edges, np.searchsorted(edges, added), added)
    return edges, left[~fits]


def _single(numbers: np.ndarray) -> np.ndarray:
    """Mark the numbers that occur once."""
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.asarray(counts[which.reshape(numbers.shape)] == 1)


def _among(known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Mark the numbers that are among the known ones, which are ascending."""
    if not len(known):
        return np.zeros(asked.shape, dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, asked), len(known) - 1)] == asked)
