"""Generated networks: simple, seeded, and those of their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.networks import Network, NetworkKind, build_network
from opinionsim.networks._pairs import triangle
from opinionsim.registry import built_in

sizes = st.integers(2, 30)
probabilities = st.floats(0, 1)


def _degrees(network: Network) -> np.ndarray:
    return np.diff(network.heard[0])


def _kind(kind: str, **parameters: Any) -> Any:
    return NetworkKind.read({"kind": kind, **parameters})


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
        assume("no network has the degrees that were drawn" not in str(error))
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


def test_places_in_the_triangle_are_read_exactly() -> None:
    u, v = triangle(np.arange(1000 * 999 // 2))
    expected = [(a, b) for b in range(1000) for a in range(b)]
    assert list(zip(u.tolist(), v.tolist(), strict=True)) == expected
    far = np.array([b * (b - 1) // 2 + off for b in (10**6, 3 * 10**9) for off in (-1, 0, b - 1)])
    u, v = triangle(far)
    assert v.tolist() == [10**6 - 1, 10**6, 10**6, 3 * 10**9 - 1, 3 * 10**9, 3 * 10**9]
    assert u.tolist() == [10**6 - 2, 0, 10**6 - 1, 3 * 10**9 - 2, 0, 3 * 10**9 - 1]


@pytest.mark.parametrize(("n", "d"), [(10, 3), (50, 4), (51, 2), (300, 10), (20, 18), (20, 19), (40, 25)])
def test_regular_degrees_are_exact(n: int, d: int) -> None:
    assert set(_degrees(build_network({"kind": "random-regular", "d": d}, n, seed=1)).tolist()) == {d}


@given(st.lists(st.integers(0, 7), min_size=2, max_size=12), st.integers(0, 99))
def test_given_degrees_are_exact_or_refused_if_nobody_can_have_them(degrees: list[int], seed: int) -> None:
    n = len(degrees)
    possible = nx.is_graphical(degrees)
    if not possible or not any(degrees):
        with pytest.raises(
            SpecError, match=r"^network: (degrees (must|are impossible)|the network of \d+ agents has no edge)"
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


def test_a_power_law_with_hubs_keeps_its_degrees() -> None:
    rng = np.random.default_rng(3)
    degrees = _kind("configuration", exponent=2.0, min_degree=2, max_degree=1500).drawn(3000, rng)
    assert degrees.max() > 300
    u, v = _kind("configuration", degrees=degrees.tolist()).pairs(3000, rng)
    assert np.bincount(np.concatenate([u, v]), minlength=3000).tolist() == degrees.tolist()


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
