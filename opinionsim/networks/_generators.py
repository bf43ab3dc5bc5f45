"""Kinds of networks, drawn as arrays of pairs in time proportional to their edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from opinionsim.compilation import compiled
from opinionsim.networks._reading import refuse

__all__ = [
    "barabasi_albert",
    "configuration",
    "erdos_renyi",
    "lattice",
    "path",
    "random_regular",
    "ring",
    "star",
    "stochastic_block_model",
    "watts_strogatz",
]

#: Both ends of each edge, (M,) integers each: every edge once, without loops.
Pairs = tuple[np.ndarray, np.ndarray]

#: Edges from which compiling a kernel takes less time than running it as Python.
_COMPILED_FROM = 50_000
#: Logarithm of one over the probability from which stubs are not paired in the hope of a simple network.
_RARE = 5
#: Rounds without a success after which a network of given degrees is built in another way.
_MOST_FAILURES = 100
#: Random edges that one pair may try to switch ends with in a round.
_MOST_TRIES = 16
#: Rounds in which half of all edges try to switch ends with the others.
_MIXING_ROUNDS = 100


def _run(kernel: Callable[..., Any], size: int, *arguments: Any) -> None:
    """Run a kernel, compiled where that pays; either way it draws the same."""
    (compiled(kernel) if size >= _COMPILED_FROM else kernel)(*arguments)


def ring(n: int, k: int = 2) -> Pairs:
    """Each agent with its k nearest on a circle, k even.

    Parameters
    ----------
    n : int
        Number of agents.
    k : int
        Even, 2 <= k <= n; k = n joins everybody.
    """
    _check_even(n, k)
    agents = np.arange(n, dtype=np.int64)
    starts, ends = [], []
    for distance in range(1, k // 2 + 1):
        # Half the circle away, both ends would name the same edge.
        near = agents[: n // 2] if 2 * distance == n else agents
        starts.append(near)
        ends.append((near + distance) % n)
    return np.concatenate(starts), np.concatenate(ends)


def _check_even(n: int, k: int) -> None:
    if k < 2 or k % 2:
        refuse(f"k must be even and at least 2, half of it on either side; got {k}")
    if k > max(n, 2):
        refuse(f"k must be at most N = {n}; got {k}")


def path(n: int) -> Pairs:
    """Each agent with the next."""
    agents = np.arange(n, dtype=np.int64)
    return agents[:-1], agents[1:]


def star(n: int) -> Pairs:
    """Agent 0 with everybody else."""
    others = np.arange(1, n, dtype=np.int64)
    return np.zeros_like(others), others


def lattice(n: int, sides: Sequence[int] | None = None, periodic: bool = True, neighbours: int = 4) -> Pairs:
    """A rectangular grid, filled row by row.

    Parameters
    ----------
    n : int
        Number of agents.
    sides : (int, int), optional
        Rows and columns, whose product is n; by default as square as possible, which is a line if n is prime.
    periodic : bool
        Whether opposite borders meet. Along a side of one or two, no agent is its own neighbour or one twice.
    neighbours : int
        4 for those beside, above and below (von Neumann); 8 for the diagonal ones too (Moore).
    """
    rows, columns = _sides(n) if sides is None else _given_sides(n, sides)
    if neighbours not in (4, 8):
        refuse(f"neighbours must be 4 or 8; got {neighbours}")
    if not isinstance(periodic, bool):
        refuse(f"periodic must be true or false; got {periodic!r}")
    row, column = (axis.ravel() for axis in np.indices((rows, columns)))
    starts, ends = [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))[: neighbours // 2]:
        there = row + down, column + right
        inside = (there[0] < rows) & (there[1] < columns) & (there[1] >= 0)
        reached = there[0] % rows * columns + there[1] % columns
        kept = np.ones(n, dtype=bool) if periodic else inside
        starts.append(np.flatnonzero(kept))
        ends.append(reached[kept])
    u, v = np.concatenate(starts), np.concatenate(ends)
    if periodic and min(rows, columns) <= 2:
        u, v = _distinct(n, u, v)
    return u, v


def _sides(n: int) -> tuple[int, int]:
    rows = next(rows for rows in range(math.isqrt(n), 0, -1) if n % rows == 0)
    return rows, n // rows


def _given_sides(n: int, sides: Sequence[int]) -> tuple[int, int]:
    if len(sides) != 2:
        refuse(f"sides must be two numbers, rows and columns; got {sides!r:.80}")
    rows, columns = sides
    if min(rows, columns) < 1 or rows * columns != n:
        refuse(f"sides must be two numbers of at least 1 whose product is N = {n}; got {rows} and {columns}")
    return rows, columns


def _distinct(n: int, u: np.ndarray, v: np.ndarray) -> Pairs:
    """Each edge once, and no loops."""
    u, v = np.divmod(np.unique(_codes(n, u, v)), n)
    return u[u != v], v[u != v]


def erdos_renyi(n: int, p: float | None = None, mean_degree: float | None = None, *, rng: np.random.Generator) -> Pairs:
    """Each pair with probability p, independently: G(n, p).

    Absent pairs are skipped by geometric gaps (Batagelj and Brandes 2005, doi:10.1103/PhysRevE.71.036113).

    Parameters
    ----------
    n : int
        Number of agents.
    p : float, optional
        Probability of each edge, in [0, 1].
    mean_degree : float, optional
        Expected number of neighbours, p (n - 1), given in the place of p.
    rng : numpy.random.Generator
        Draws the edges.
    """
    if (p is None) == (mean_degree is None):
        refuse("needs exactly one of p and mean_degree")
    if mean_degree is not None:
        if not 0 <= mean_degree <= max(n - 1, 0):
            refuse(f"mean_degree must be from 0 to N - 1 = {n - 1}; got {mean_degree:g}")
        p = mean_degree / max(n - 1, 1)
    return _triangle(_bernoulli(n * (n - 1) // 2, _probability("p", p), rng))


def _probability(name: str, p: float | None) -> float:
    if p is None or not 0 <= p <= 1:
        refuse(f"{name} must be a probability, from 0 to 1; got {p}")
    return float(p)


def _bernoulli(total: int, p: float, rng: np.random.Generator) -> np.ndarray:
    """Which of `total` places have something, each with probability p: ascending, in time of their number."""
    if total == 0 or p == 0:
        return np.empty(0, dtype=np.int64)
    expected = total * p
    size = int(expected + 4 * math.sqrt(expected * (1 - p))) + 16
    found, last = [], -1
    while last < total:
        gaps = np.minimum(rng.geometric(p, size), total + 1)
        places = np.cumsum(gaps, out=gaps)
        places += last
        found.append(places)
        last = int(places[-1])
        size = size // 8 + 16
    places = found[0] if len(found) == 1 else np.concatenate(found)
    return places[: np.searchsorted(places, total)]


def _triangle(places: np.ndarray) -> Pairs:
    """Pairs u < v by their place in (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    v = ((1 + np.sqrt(1 + 8.0 * places)) / 2).astype(np.int64)
    # The square root may have been rounded over a whole number.
    v -= v * (v - 1) // 2 > places
    v += (v + 1) * v // 2 <= places
    return places - v * (v - 1) // 2, v


def watts_strogatz(n: int, k: int, p: float, *, rng: np.random.Generator) -> Pairs:
    """A ring of k nearest neighbours with rewired edges (Watts and Strogatz 1998, doi:10.1038/30918).

    Lap by lap, nearest neighbours first, each edge keeps its first end and with probability p gets another second
    end, uniform among the agents the first is not joined to. An agent joined to everybody keeps its edge.

    Parameters
    ----------
    n : int
        Number of agents.
    k : int
        Even, 2 <= k <= n.
    p : float
        Probability that an edge is rewired, in [0, 1].
    rng : numpy.random.Generator
        Draws what is rewired, and where to.
    """
    u, v = ring(n, k)
    p = _probability("p", p)
    half = k // 2
    if p > 0 and k < n - 1:
        ends = v.reshape(half, n).copy()
        _run(_rewire, len(u), n, half, p, rng, ends, np.ones((half, n), dtype=np.bool_))
        v = ends.ravel()
    return u, v


def _rewire(n: int, half: int, p: float, rng: Any, ends: Any, kept: Any) -> None:
    """Rewire the edge from u to the agent `ends[lap, u]`, lap by lap; `kept` says which are where they were."""
    degrees = np.full(n, 2 * half)
    taken = {np.int64(-1)}
    for lap in range(half):
        for u in range(n):
            if rng.random() >= p or degrees[u] >= n - 1:
                continue
            while True:
                w = int(rng.random() * n)
                ahead = (w - u) % n
                if ahead == 0 or (ahead <= half and kept[ahead - 1, u]):
                    continue
                if n - ahead <= half and kept[n - ahead - 1, w]:
                    continue
                code = np.int64(min(u, w)) * n + max(u, w)
                if code not in taken:
                    break
            taken.add(code)
            degrees[ends[lap, u]] -= 1
            degrees[w] += 1
            kept[lap, u] = False
            ends[lap, u] = w


def barabasi_albert(n: int, m: int, *, rng: np.random.Generator) -> Pairs:
    """Growth by preferential attachment (Barabási and Albert 1999, doi:10.1126/science.286.5439.509).

    It starts from a star of m + 1 agents. Each further agent brings m edges to different agents, drawn one after
    the other in proportion to their degrees and again where they repeat: m (n - m) edges in all.

    Parameters
    ----------
    n : int
        Number of agents.
    m : int
        1 <= m < n.
    rng : numpy.random.Generator
        Draws whom an agent joins.
    """
    if not 1 <= m < n:
        refuse(f"m must be at least 1 and below N = {n}; got {m}")
    ends = np.zeros(2 * m * (n - m), dtype=np.uint32)
    _run(_attach, len(ends), n, m, rng, ends, np.zeros(n, dtype=np.uint32))
    return ends[0::2], ends[1::2]


def _attach(n: int, m: int, rng: Any, ends: Any, joined: Any) -> None:
    """Write the ends of all edges, two an edge; `joined` holds who joined each agent last."""
    for leaf in range(1, m + 1):
        ends[2 * leaf - 1] = leaf
    count = 2 * m
    for agent in range(m + 1, n):
        present = count
        while count < present + 2 * m:
            # An agent stands among the ends as often as it has edges.
            other = ends[int(rng.random() * present)]
            if joined[other] != agent:
                joined[other] = agent
                ends[count] = agent
                ends[count + 1] = other
                count += 2


def random_regular(n: int, d: int, *, rng: np.random.Generator) -> Pairs:
    """Every agent with d neighbours, paired as :func:`configuration` pairs them.

    Parameters
    ----------
    n : int
        Number of agents.
    d : int
        1 <= d < n, with n times d even.
    rng : numpy.random.Generator
        Pairs the agents.
    """
    if not 1 <= d < n:
        refuse(f"d must be at least 1 and below N = {n}; got {d}")
    if n * d % 2:
        refuse(f"N times d must be even; got {n} times {d}")
    return _graph_of_degrees(np.full(n, d, dtype=np.int64), rng)


def configuration(
    n: int,
    degrees: Sequence[int] | None = None,
    exponent: float | None = None,
    min_degree: int = 1,
    max_degree: int | None = None,
    *,
    rng: np.random.Generator,
) -> Pairs:
    """Agents of given numbers of neighbours, joined by chance and without loops or repeated edges.

    Every agent has as many stubs as it is to have neighbours, and stubs are paired at random. While that takes little
    time, all are paired anew until there is neither a loop nor a repeated edge: every network of these degrees is then
    equally likely. Otherwise a pair (a, b) that is one becomes, with a random edge (c, d), the edges (a, c) and
    (b, d), until none is left; where that does not succeed, a network built by Havel's and Hakimi's rule is mixed by
    the same switches. Degrees are always exact. Drawn by switches, networks are nearly equally likely where the
    largest degree is small beside the square root of the number of edges.

    Parameters
    ----------
    n : int
        Number of agents.
    degrees : sequence of int, length n, optional
        Neighbours of each agent, in [0, n-1], of an even sum.
    exponent : float, optional
        In the place of degrees: they are drawn with probabilities proportional to degree ** -exponent, one of them
        anew until their sum is even.
    min_degree, max_degree : int
        Bounds of drawn degrees, 1 <= min_degree <= max_degree <= n-1; the default maximum is n-1.
    rng : numpy.random.Generator
        Draws degrees and pairs stubs.
    """
    if (degrees is None) == (exponent is None):
        refuse("needs exactly one of degrees and exponent")
    if degrees is None:
        return _graph_of_degrees(_power_law(n, float(exponent or 0), min_degree, max_degree, rng), rng)
    if min_degree != 1 or max_degree is not None:
        refuse("min_degree and max_degree go with exponent")
    given = np.asarray(degrees)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        refuse(f"degrees must be one whole number for each of the {n} agents; got {degrees!r:.80}")
    return _graph_of_degrees(given.astype(np.int64), rng)


def _power_law(
    n: int, exponent: float, min_degree: int, max_degree: int | None, rng: np.random.Generator
) -> np.ndarray:
    """Degrees of an even sum from a truncated power law."""
    most = n - 1 if max_degree is None else max_degree
    if not 1 <= min_degree <= most <= n - 1:
        refuse(f"1 <= min_degree <= max_degree <= N - 1 = {n - 1} must hold; got {min_degree} and {most} for them")
    if not math.isfinite(exponent):
        refuse(f"exponent must be a finite number; got {exponent}")
    values = np.arange(min_degree, most + 1)
    logs = -exponent * np.log(values)
    cumulative = np.cumsum(np.exp(logs - logs.max()))

    def draw(size: int) -> np.ndarray:
        return np.asarray(values[np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")])

    degrees = draw(n)
    if degrees.sum() % 2:
        if min_degree == most:
            refuse(f"N times the degree must be even; got {n} times {most}")
        one = int(rng.integers(n))
        while degrees.sum() % 2:
            degrees[one] = draw(1)[0]
    return degrees


def _check_graphical(degrees: np.ndarray) -> None:
    """Refuse degrees that no simple network has (Erdős and Gallai 1960)."""
    n = len(degrees)
    if degrees.min() < 0 or degrees.max() >= n:
        refuse(f"degrees must be from 0 to N - 1 = {n - 1}; got {degrees.min()} to {degrees.max()}")
    if degrees.sum() % 2:
        refuse(f"degrees must have an even sum; got {degrees.sum()}")
    falling = np.sort(degrees)[::-1]
    sums = np.concatenate([[0], np.cumsum(falling)])
    first = np.arange(1, n + 1)
    # Beyond the first k, an agent may be joined to each of these k, or to as many as it has neighbours.
    larger = np.maximum(np.searchsorted(-falling, -first, side="right"), first)
    room = first * (first - 1) + first * (larger - first) + (sums[-1] - sums[larger])
    if (sums[1:] > room).any():
        refuse("no network without loops and repeated edges has these degrees: the largest are too large")


def _graph_of_degrees(degrees: np.ndarray, rng: np.random.Generator) -> Pairs:
    """A network of exactly these degrees; see :func:`configuration`."""
    _check_graphical(degrees)
    n = len(degrees)
    if 2 * degrees.sum() > n * (n - 1):
        # Where most pairs are joined, those that are not are few.
        absent = _codes(n, *_graph_of_degrees(n - 1 - degrees, rng))
        u, v = np.triu_indices(n, 1)
        joined = ~_among(absent, _codes(n, u, v))
        return u[joined], v[joined]
    stubs = np.repeat(np.arange(n, dtype=np.int64), degrees)
    for _ in range(1 + _whole_tries(degrees)):
        rng.shuffle(stubs)
        pairs = _codes(n, stubs[0::2], stubs[1::2])
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
    """How often to pair all stubs in the hope of a simple network, which is then one of all, equally likely.

    Its probability is about exp(-x - x^2) with x = sum d (d - 1) / (2 sum d) (Bollobas 1980,
    doi:10.1016/S0195-6698(80)80030-8), whatever the number of agents.
    """
    stubs = int(degrees.sum())
    x = float((degrees * (degrees - 1)).sum()) / (2 * max(stubs, 1))
    return min(1000, 1_000_000 // max(stubs, 1)) if x + x * x < _RARE else 0


def _mixed(degrees: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Edges of a network built deterministically (Havel and Hakimi), after switching most of them many times."""
    from networkx import havel_hakimi_graph

    n, joined = len(degrees), np.flatnonzero(degrees)
    built = havel_hakimi_graph(degrees[joined].tolist()).edges
    edges = np.sort(_codes(n, *joined[np.array(list(built), dtype=np.int64).T]))
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
        Codes that may not come about, ascending; by default the edges.

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
    made = np.stack([_codes(n, a, np.where(turned, d, c)), _codes(n, b, np.where(turned, c, d))])
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
    """Which numbers occur once."""
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.asarray(counts[which.reshape(numbers.shape)] == 1)


def _codes(n: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One number for each pair, whichever end comes first."""
    return np.asarray(np.minimum(u, v) * n + np.maximum(u, v))


def _among(known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Which numbers are among the known ones, which ascend."""
    if not len(known):
        return np.zeros(asked.shape, dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, asked), len(known) - 1)] == asked)


def stochastic_block_model(
    n: int,
    sizes: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
    p_within: float | None = None,
    p_between: float | None = None,
    p: Sequence[Sequence[float]] | None = None,
    *,
    rng: np.random.Generator,
) -> Pairs:
    """Blocks of agents, each pair joined with a probability of its blocks (doi:10.1016/0378-8733(83)90021-7).

    Agents are numbered block by block.

    Parameters
    ----------
    n : int
        Number of agents.
    sizes : sequence of int, length B, optional
        Agents of each block, which sum to n.
    shares : sequence of float, length B, optional
        In the place of sizes: positive, of any sum; what rounding leaves goes to the largest remainders.
    p_within, p_between : float, optional
        Probabilities of an edge within a block and between two.
    p : (B, B) floats, optional
        In their place: probability for each two blocks, symmetric.
    rng : numpy.random.Generator
        Draws the edges.
    """
    blocks = _blocks(n, sizes, shares)
    chances = _chances(len(blocks), p_within, p_between, p)
    starts = np.concatenate([[0], np.cumsum(blocks)])
    found = []
    for a, b in combinations_with_replacement(range(len(blocks)), 2):
        size_a, size_b = int(blocks[a]), int(blocks[b])
        if a == b:
            u, v = _triangle(_bernoulli(size_a * (size_a - 1) // 2, float(chances[a, a]), rng))
        else:
            u, v = np.divmod(_bernoulli(size_a * size_b, float(chances[a, b]), rng), max(size_b, 1))
        found.append((u + starts[a], v + starts[b]))
    return np.concatenate([u for u, _ in found]), np.concatenate([v for _, v in found])


def _blocks(n: int, sizes: Sequence[int] | None, shares: Sequence[float] | None) -> np.ndarray:
    """Agents of each block."""
    if (sizes is None) == (shares is None):
        refuse("needs exactly one of sizes and shares")
    if sizes is not None:
        given = np.asarray(sizes)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given) or given.min() < 0 or given.sum() != n:
            refuse(f"sizes must be whole numbers that sum to N = {n}; got {sizes!r:.80}")
        return given
    parts = np.asarray(shares)
    if parts.ndim != 1 or parts.dtype.kind not in "iuf" or not len(parts) or not (parts > 0).all():
        refuse(f"shares must be positive numbers; got {shares!r:.80}")
    exact = n * (parts / parts.sum())
    if not np.isfinite(exact).all():
        refuse(f"shares must be finite numbers; got {shares!r:.80}")
    whole = np.floor(exact).astype(np.int64)
    largest = np.argsort(whole - exact, kind="stable")[: n - int(whole.sum())]
    whole[largest] += 1
    return np.asarray(whole)


def _chances(count: int, p_within: float | None, p_between: float | None, p: Any) -> np.ndarray:
    """Probability of an edge for each two blocks."""
    if p is None:
        chances = np.full((count, count), _probability("p_between", p_between))
        np.fill_diagonal(chances, _probability("p_within", p_within))
        return chances
    if p_within is not None or p_between is not None:
        refuse("needs either p or p_within and p_between")
    given: np.ndarray = np.empty(0)
    with suppress(TypeError, ValueError):  # rows of different lengths, or words
        given = np.asarray(p, dtype=float)
    if given.shape != (count, count) or not ((given >= 0) & (given <= 1)).all() or (given != given.T).any():
        refuse(f"p must hold a probability for each two of the {count} blocks and be symmetric; got {p!r:.80}")
    return given
