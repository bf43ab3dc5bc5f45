"""Generated networks are as probable as their definitions say."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from opinionsim.networks import Network, NetworkKind, build_network

#: A test fails by chance with this probability, at most, if its seed is drawn anew.
ALPHA = 1e-6


def _degrees(network: Network) -> np.ndarray:
    return np.diff(network.heard[0])


def _kind(kind: str, **parameters: Any) -> Any:
    return NetworkKind.read({"kind": kind, **parameters})


def _spread(count: float, p: float) -> float:
    """How far a binomial count may be from its mean."""
    return float(stats.norm.isf(ALPHA / 2) * math.sqrt(count * p * (1 - p))) + 1


def test_every_pair_of_a_random_graph_is_equally_likely() -> None:
    n, p, draws = 12, 0.3, 3000
    counts = np.zeros((n, n))
    kind = _kind("erdos-renyi", p=p)
    for seed in range(draws):
        u, v = kind.pairs(n, np.random.default_rng(seed))
        counts[u, v] += 1
    found = counts[np.triu_indices(n, 1)]
    assert (counts[np.tril_indices(n)] == 0).all()
    # Sum of squared standard deviates of 66 independent binomials.
    deviates = (found - draws * p) / math.sqrt(draws * p * (1 - p))
    assert stats.chi2.sf((deviates**2).sum(), len(found)) > ALPHA


@pytest.mark.parametrize(("n", "mean_degree"), [(2000, 3.0), (400, 200.0), (40_000, 0.5)])
def test_degrees_of_a_random_graph_are_binomial(n: int, mean_degree: float) -> None:
    network = build_network({"kind": "erdos-renyi", "mean_degree": mean_degree}, n, seed=4)
    p, pairs = mean_degree / (n - 1), n * (n - 1) / 2
    assert abs(len(network.edges[0]) - pairs * p) < _spread(pairs, p)
    degrees = _degrees(network)
    for degree in {int(mean_degree * factor) for factor in (0.8, 1, 1.2)}:
        share = stats.binom.pmf(degree, n - 1, p)
        # Degrees of different agents have one pair in common, which matters little beside the spread.
        assert abs((degrees == degree).sum() - n * share) < 1.2 * _spread(n, share)


@pytest.mark.parametrize("p", [0.1, 0.7, 1.0])
def test_a_small_world_rewires_its_share_and_keeps_first_ends(p: float) -> None:
    n, k = 3000, 6
    network = build_network({"kind": "watts-strogatz", "k": k, "p": p}, n, seed=2)
    edges = n * k // 2
    assert len(network.edges[0]) == edges
    ahead = np.diff(network.edges[0], axis=1).ravel() % n
    stayed = (np.minimum(ahead, n - ahead) <= k // 2).sum()
    # A rewired edge may come to stand where another was rewired: about k / n of them.
    assert abs(stayed - edges * (1 - p + p * k / n)) < _spread(edges, min(max(p, 0.05), 0.95)) + 5
    # Every agent keeps one end of k / 2 edges, and gets the other ends of some at random.
    degrees = _degrees(network)
    assert degrees.min() >= k // 2
    # Other ends: k/2 that stay with probability 1-p, and a Poisson number with the mean p k/2.
    assert degrees.mean() == k
    variance = p * (1 - p) * k / 2 + p * k / 2
    assert abs(degrees.var() - variance) < 6 * variance * math.sqrt(3 / n)


def test_triangles_of_a_small_world() -> None:
    """Of the ring's triangles (1 - p)^3 stay, and next to none is added (Barrat and Weigt 2000)."""
    n, k, p = 5000, 10, 0.2
    graph = build_network({"kind": "watts-strogatz", "k": k, "p": p}, n, seed=8).graph()
    edges, of_edge = n * k / 2, 3 * (k - 2) / 4
    expected = edges * of_edge / 3 * (1 - p) ** 3
    # An edge that is rewired takes the triangles along that its other two edges have left.
    spread = math.sqrt(edges * p * (1 - p)) * of_edge * (1 - p) ** 2
    assert abs(sum(nx.triangles(graph).values()) / 3 - expected) < 5 * spread


def test_rewiring_is_that_of_the_definition_on_five_agents() -> None:
    """All outcomes of a ring of five with one edge to rewire at a time, against their probabilities."""
    n, p, draws = 5, 0.3, 8000
    counts: dict[frozenset[tuple[int, int]], int] = {}
    kind = _kind("watts-strogatz", k=2, p=p)
    for seed in range(draws):
        u, v = kind.pairs(n, np.random.default_rng(seed))
        graph = frozenset((min(a, b), max(a, b)) for a, b in zip(u.tolist(), v.tolist(), strict=True))
        counts[graph] = counts.get(graph, 0) + 1
    expected: dict[frozenset[tuple[int, int]], float] = {}

    def spell(u: int, edges: frozenset[tuple[int, int]], probability: float) -> None:
        if u == n:
            expected[edges] = expected.get(edges, 0) + probability
            return
        joined = {a + b - u for a, b in edges if u in (a, b)}
        free = [w for w in range(n) if w != u and w not in joined]
        spell(u + 1, edges, probability * (1 - p if free else 1))
        old = (min(u, (u + 1) % n), max(u, (u + 1) % n))
        for w in free:
            spell(u + 1, edges - {old} | {(min(u, w), max(u, w))}, probability * p / len(free))

    spell(0, frozenset((min(u, (u + 1) % n), max(u, (u + 1) % n)) for u in range(n)), 1.0)
    assert set(counts) <= set(expected)
    assert sum(expected.values()) == pytest.approx(1)
    common = [graph for graph, share in expected.items() if share * draws >= 5]
    observed = [counts.get(graph, 0) for graph in common]
    shares = [expected[graph] for graph in common]
    rest = 1 - sum(shares)
    result = stats.chisquare([*observed, draws - sum(observed)], [draws * share for share in (*shares, rest)])
    assert result.pvalue > ALPHA


@pytest.mark.parametrize("m", [1, 2, 5])
def test_a_grown_network_has_its_edges_and_its_tail(m: int) -> None:
    n = 4000
    network = build_network({"kind": "barabasi-albert", "m": m}, n, seed=5)
    degrees = _degrees(network)
    assert len(network.edges[0]) == m * (n - m)
    assert degrees.min() == (m if m > 1 else 1)
    assert nx.is_connected(network.graph())
    # Share of degrees of at least k: m (m + 1) / (k (k + 1)) (Dorogovtsev et al. 2000, PhysRevLett.85.4633).
    for k in (m + 1, 2 * m, 4 * m, 10 * m):
        share = m * (m + 1) / (k * (k + 1))
        assert abs((degrees >= k).sum() - n * share) < 1.5 * _spread(n, share)


def test_a_newcomer_joins_by_degree() -> None:
    """Of a star of three, the centre holds half of all ends: agent 3 misses it with probability 1/4 * 1/3 * 2."""
    draws = 20_000
    missed = 0
    kind = _kind("barabasi-albert", m=2)
    for seed in range(draws):
        u, v = kind.pairs(4, np.random.default_rng(seed))
        missed += (3, 0) not in set(zip(u.tolist(), v.tolist(), strict=True))
    # First a leaf (1/2), then the other leaf before the centre: (1/4) / (1/4 + 1/2).
    assert abs(missed - draws / 6) < _spread(draws, 1 / 6)


def test_regular_graphs_of_six_agents_are_equally_likely() -> None:
    """There are 70 cubic graphs on six labelled agents: 10 of them are bipartite, 60 are prisms."""
    draws = 3000
    bipartite = 0
    kind = _kind("random-regular", d=3)
    for seed in range(draws):
        u, v = kind.pairs(6, np.random.default_rng(seed))
        bipartite += nx.is_bipartite(nx.Graph(zip(u.tolist(), v.tolist(), strict=True)))
    assert abs(bipartite - draws / 7) < _spread(draws, 1 / 7)


def test_degrees_from_a_power_law() -> None:
    n, exponent, low, high = 30_000, 2.5, 2, 60
    network = build_network(
        {"kind": "configuration", "exponent": exponent, "min_degree": low, "max_degree": high}, n, seed=6
    )
    degrees = _degrees(network)
    assert degrees.min() >= low
    assert degrees.max() <= high
    assert degrees.sum() % 2 == 0
    weights = np.arange(low, high + 1) ** -exponent
    observed = np.bincount(degrees, minlength=high + 1)[low:]
    expected = n * weights / weights.sum()
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > ALPHA


def test_ends_meet_in_proportion_to_degrees() -> None:
    """Edges between two groups of agents number close to their stubs' share: d_a d_b / (2 M)."""
    n, low, high = 4000, 2, 8
    degrees = [low] * (n // 2) + [high] * (n // 2)
    network = build_network({"kind": "configuration", "degrees": degrees}, n, seed=1)
    pairs = network.edges[0]
    mixed = ((pairs[:, 0] < n // 2) != (pairs[:, 1] < n // 2)).sum()
    share = 2 * low * high / (low + high) ** 2
    assert abs(mixed - len(pairs) * share) < 1.5 * _spread(len(pairs), share)


@pytest.mark.parametrize("form", ["matrix", "within and between"])
def test_densities_of_blocks(form: str) -> None:
    n, blocks = 1500, [300, 900, 300]
    inside, between = 0.05, 0.01
    chances = [[inside if a == b else between for a in range(3)] for b in range(3)]
    given = {"p": chances} if form == "matrix" else {"p_within": inside, "p_between": between}
    network = build_network({"kind": "stochastic-block-model", "sizes": blocks, **given}, n, seed=9)
    block = np.repeat([0, 1, 2], blocks)
    ends = np.sort(block[network.edges[0]], axis=1)
    for a, b in itertools.combinations_with_replacement(range(3), 2):
        pairs = blocks[a] * (blocks[a] - 1) / 2 if a == b else blocks[a] * blocks[b]
        found = ((ends == [a, b]).all(axis=1)).sum()
        assert abs(found - pairs * chances[a][b]) < _spread(pairs, chances[a][b])
