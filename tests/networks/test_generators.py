"""Generated networks: simple, seeded, and distributed as their definitions say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy import stats

from opinionsim.errors import SpecError
from opinionsim.networks import Network, NetworkKind, build_network
from opinionsim.networks._pairs import triangle
from opinionsim.registry import built_in

#: A test fails by chance with this probability, at most, if its seed is drawn anew.
ALPHA = 1e-6

sizes = st.integers(2, 30)
probabilities = st.floats(0, 1)


def _degrees(network: Network) -> np.ndarray:
    return np.diff(network.heard[0])


def _kind(kind: str, **parameters: Any) -> Any:
    return NetworkKind.read({"kind": kind, **parameters})


def _spread(count: float, p: float) -> float:
    """How far a binomial count may be from its mean."""
    return float(stats.norm.isf(ALPHA / 2) * math.sqrt(count * p * (1 - p))) + 1


def _pairs(network: Network) -> set[tuple[int, int]]:
    return {(a, b) for a, b in network.edges[0].tolist()}


@st.composite
def specs(draw: Callable[..., Any]) -> tuple[dict[str, Any], int]:
    """Any kind with parameters, of any size."""
    n = draw(sizes)
    kind = draw(st.sampled_from(sorted(set(built_in("network")) - {"complete", "file", "edges"})))
    even = st.integers(1, max(n // 2, 1)).map(lambda half: 2 * half)
    parameters: dict[str, Any] = {
        "ring": lambda: {"k": draw(even)},
        "lattice": lambda: {"periodic": draw(st.booleans()), "neighbours": draw(st.sampled_from([4, 8]))},
        "erdos-renyi": lambda: {"p": draw(st.floats(0, 1, exclude_min=True))},
        "watts-strogatz": lambda: {"k": draw(even), "p": draw(probabilities)},
        "barabasi-albert": lambda: {"m": draw(st.integers(1, n - 1))},
        "random-regular": lambda: {"d": draw(st.integers(1, n - 1))},
        "configuration": lambda: {"exponent": draw(st.floats(0, 4)), "min_degree": draw(st.integers(1, 2))},
        "stochastic-block-model": lambda: {
            "shares": draw(st.lists(st.floats(0.1, 1), min_size=1, max_size=4)),
            "p_within": draw(probabilities),
            "p_between": draw(probabilities),
        },
    }.get(kind, dict)()
    return {"kind": kind, **parameters}, n


@given(specs(), st.integers(0, 2**32 - 1))
def test_there_is_never_a_loop_or_an_edge_twice(spec: tuple[dict[str, Any], int], seed: int) -> None:
    parameters, n = spec
    kind = NetworkKind.read(parameters)
    assume(not kind.problem(n))
    try:
        u, v = kind.pairs(n, np.random.default_rng(seed))
    except SpecError as error:
        assume("the degrees that were drawn cannot be had" not in str(error))
        raise
    assert ((u >= 0) & (u < n) & (v >= 0) & (v < n) & (u != v)).all()
    assert len({frozenset(pair) for pair in zip(u.tolist(), v.tolist(), strict=True)}) == len(u)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (7, 2), (7, 4), (7, 6), (8, 4), (8, 6), (8, 8), (30, 10)])
def test_a_ring_is_that_of_its_definition(n: int, k: int) -> None:
    distance = {(a, b): min(b - a, n - b + a) for a, b in itertools.combinations(range(n), 2)}
    expected = {pair for pair, far in distance.items() if far <= k // 2}
    assert _pairs(build_network({"kind": "ring", "k": k}, n)) == expected
    assert _pairs(build_network({"kind": "watts-strogatz", "k": k, "p": 0}, n)) == expected


@pytest.mark.parametrize("k", [4, 6, 10])
def test_clustering_of_a_ring_in_closed_form(k: int) -> None:
    """C(0) = 3 (k - 2) / (4 (k - 1)) (Barrat and Weigt 2000, doi:10.1007/s100510050067)."""
    graph = build_network({"kind": "watts-strogatz", "k": k, "p": 0}, 60).graph()
    assert nx.average_clustering(graph) == pytest.approx(3 * (k - 2) / (4 * (k - 1)))


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", [(1, 1), (1, 5), (2, 2), (2, 3), (3, 2), (3, 3), (4, 6)])
def test_a_lattice_is_that_of_its_definition(sides: tuple[int, int], periodic: bool, neighbours: int) -> None:
    rows, columns = sides
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)] + [(1, 1), (1, -1), (-1, 1), (-1, -1)] * (neighbours == 8)
    expected = set()
    for row, column in itertools.product(range(rows), range(columns)):
        for down, right in steps:
            r, c = row + down, column + right
            if periodic:
                r, c = r % rows, c % columns
            if 0 <= r < rows and 0 <= c < columns and (r, c) != (row, column):
                expected.add(tuple(sorted((row * columns + column, r * columns + c))))
    kind = _kind("lattice", sides=sides, periodic=periodic, neighbours=neighbours)
    u, v = kind.pairs(rows * columns, np.random.default_rng(0))
    assert {tuple(sorted(pair)) for pair in zip(u.tolist(), v.tolist(), strict=True)} == expected
    assert len(u) == len(expected)


@pytest.mark.parametrize(("n", "sides"), [(36, (6, 6)), (35, (5, 7)), (7, (1, 7)), (12, (3, 4))])
def test_a_lattice_is_as_square_as_can_be(n: int, sides: tuple[int, int]) -> None:
    found = build_network({"kind": "lattice"}, n)
    assert _pairs(found) == _pairs(build_network({"kind": "lattice", "sides": list(sides)}, n))


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


def test_places_in_the_triangle_are_read_exactly() -> None:
    u, v = triangle(np.arange(1000 * 999 // 2))
    expected = [(a, b) for b in range(1000) for a in range(b)]
    assert list(zip(u.tolist(), v.tolist(), strict=True)) == expected
    far = np.array([b * (b - 1) // 2 + off for b in (10**6, 3 * 10**9) for off in (-1, 0, b - 1)])
    u, v = triangle(far)
    assert v.tolist() == [10**6 - 1, 10**6, 10**6, 3 * 10**9 - 1, 3 * 10**9, 3 * 10**9]
    assert u.tolist() == [10**6 - 2, 0, 10**6 - 1, 3 * 10**9 - 2, 0, 3 * 10**9 - 1]


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


@pytest.mark.parametrize(("n", "d"), [(10, 3), (50, 4), (51, 2), (300, 10), (20, 18), (20, 19), (40, 25)])
def test_regular_degrees_are_exact(n: int, d: int) -> None:
    assert set(_degrees(build_network({"kind": "random-regular", "d": d}, n, seed=1)).tolist()) == {d}


def test_regular_graphs_of_six_agents_are_equally_likely() -> None:
    """There are 70 cubic graphs on six labelled agents: 10 of them are bipartite, 60 are prisms."""
    draws = 3000
    bipartite = 0
    kind = _kind("random-regular", d=3)
    for seed in range(draws):
        u, v = kind.pairs(6, np.random.default_rng(seed))
        bipartite += nx.is_bipartite(nx.Graph(zip(u.tolist(), v.tolist(), strict=True)))
    assert abs(bipartite - draws / 7) < _spread(draws, 1 / 7)


@given(st.lists(st.integers(0, 7), min_size=2, max_size=12), st.integers(0, 99))
def test_given_degrees_are_exact_or_refused_if_nobody_can_have_them(degrees: list[int], seed: int) -> None:
    n = len(degrees)
    possible = nx.is_graphical(degrees)
    if not possible or not any(degrees):
        with pytest.raises(
            SpecError, match=r"^network: (degrees must|no network|the network on \d+ agents has no edge)"
        ):
            build_network({"kind": "configuration", "degrees": degrees}, n, seed)
    else:
        assert _degrees(build_network({"kind": "configuration", "degrees": degrees}, n, seed)).tolist() == degrees


def test_degrees_that_leave_one_network_give_it() -> None:
    """Threshold graphs have no other of their degrees, so that pairing at random hardly finds them."""
    graph = nx.empty_graph(1)
    for agent, dominates in enumerate((1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1), 1):
        graph.add_edges_from((agent, other) for other in range(agent) if dominates)
        graph.add_node(agent)
    degrees = [degree for _, degree in sorted(graph.degree())]
    assert _pairs(build_network({"kind": "configuration", "degrees": degrees}, len(graph), 3)) == _pairs(
        Network.of(graph)
    )


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


def test_a_power_law_with_hubs_keeps_its_degrees() -> None:
    rng = np.random.default_rng(3)
    degrees = _kind("configuration", exponent=2.0, min_degree=2, max_degree=1500).drawn(3000, rng)
    assert degrees.max() > 300
    u, v = _kind("configuration", degrees=degrees.tolist()).pairs(3000, rng)
    assert np.bincount(np.concatenate([u, v]), minlength=3000).tolist() == degrees.tolist()


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


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.integers(1, 10_000))
def test_shares_become_sizes_by_the_largest_remainder(shares: list[float], n: int) -> None:
    found = _kind("stochastic-block-model", shares=shares, p_within=1, p_between=0).blocks(n)
    assert found.sum() == n
    assert (np.abs(found - n * np.array(shares) / sum(shares)) < 1 + 1e-6).all()


@pytest.mark.parametrize("empty", [0, 2])
def test_blocks_may_be_empty_and_probabilities_zero_or_one(empty: int) -> None:
    sizes_ = [2, 3, 2]
    sizes_[empty], sizes_[1] = 0, 5
    network = build_network(
        {"kind": "stochastic-block-model", "sizes": sizes_, "p_within": 1, "p_between": 0}, 7, seed=1
    )
    block = np.repeat([0, 1, 2], sizes_)
    assert _pairs(network) == {(a, b) for a, b in itertools.combinations(range(7), 2) if block[a] == block[b]}


@pytest.mark.parametrize(
    "spec",
    [{"kind": "watts-strogatz", "k": 8, "p": 0.4}, {"kind": "barabasi-albert", "m": 4}],
    ids=lambda spec: spec["kind"],
)
def test_compiled_or_not_the_draws_are_the_same(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build_network(spec, 500, seed=12)
    monkeypatch.setattr("opinionsim.networks._pairs._COMPILED_FROM", 0)
    fast = build_network(spec, 500, seed=12)
    np.testing.assert_array_equal(plain.speakers, fast.speakers)
    np.testing.assert_array_equal(plain.listeners, fast.listeners)
