"""Runs that end at an event: criteria of rest against brute force, times, and what cannot come."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from opinionsim import metrics
from opinionsim.classic import Batch, Setup, find_model, set_up, simulate, sweep, transition
from opinionsim.networks import Network
from tests.support.examples import few

#: Opinions on a grid so coarse that distances of exactly epsilon are common.
_GRID = st.integers(0, 20).map(lambda place: place / 20)


def _rests(setup: Setup, opinions: np.ndarray) -> bool:
    """Whether a run from these opinions has ended before its first step."""
    return bool(Batch(setup, opinions[None], 0, machine=False).advance(0)[0] == 0)


@st.composite
def _networks(draw: st.DrawFn) -> Network:
    n = draw(st.integers(2, 7))
    pairs = list(combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    return Network.of(n) if draw(st.booleans()) else Network.from_edges(edges, n)


def _each(n: int, values: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return st.lists(values, min_size=n, max_size=n).map(np.array)


def _ties(network: Network) -> list[tuple[int, int]]:
    """Pairs (listener, speaker)."""
    if network.complete:
        return [(i, j) for i, j in product(range(network.n), repeat=2) if i != j]
    return list(zip(network.listeners.tolist(), network.speakers.tolist(), strict=True))


def _confined(network: Network, opinions: np.ndarray, epsilon: np.ndarray, width: int) -> bool:
    """The criterion of bounded confidence, from the definition; `width` in twentieths."""
    graph = nx.Graph()
    graph.add_nodes_from(range(network.n))
    exact = [Fraction(round(20 * value), 20) for value in opinions]
    reach = [Fraction(round(20 * value), 20) for value in epsilon]
    active = [(i, j) for i, j in _ties(network) if abs(exact[i] - exact[j]) <= reach[i]]
    graph.add_edges_from(active)
    ends = {}
    for part in nx.connected_components(graph):
        values = [exact[agent] for agent in part]
        ends |= dict.fromkeys(part, (min(values), max(values)))
    if any(ends[i][1] - ends[i][0] > min(reach[i], Fraction(width, 20)) for i, _ in active):
        return False
    apart = [(i, j) for i, j in _ties(network) if not nx.has_path(graph, i, j)]
    return not any(max(ends[i][0] - ends[j][1], ends[j][0] - ends[i][1]) <= reach[i] for i, j in apart)


@given(st.data())
def test_bounded_confidence_is_at_rest_where_its_definition_says(data: st.DataObject) -> None:
    network = data.draw(_networks())
    opinions = data.draw(_each(network.n, _GRID))
    one = data.draw(st.booleans())
    epsilon = data.draw(st.integers(1, 12)) / 20 if one else data.draw(_each(network.n, _GRID))
    width = data.draw(st.integers(1, 20))
    # A little more than the width, so that rounding has no say in what is as wide.
    until = {"frozen": width / 20 + 1e-9}
    setup = set_up(find_model("deffuant"), network, settings={"epsilon": epsilon}, until=until, isolates="keep")
    assert _rests(setup, opinions) == _confined(network, opinions, np.broadcast_to(epsilon, network.n), width)


@given(st.data())
def test_what_a_run_has_seen_does_not_move_its_end(data: st.DataObject) -> None:
    """It ends at the first step from whose opinions a run of its own, that has seen nothing, ends at once."""
    n = data.draw(st.integers(2, 9) | st.just(12))
    pairs = st.sampled_from(list(permutations(range(n), 2)))
    edges = data.draw(st.lists(pairs, min_size=1, max_size=4 * n, unique_by=lambda pair: tuple(sorted(pair))))
    weights = data.draw(st.none() | _each(len(edges), st.sampled_from([0.0, 1.0, 2.0])))
    network = Network.from_edges(edges, n, weights, directed=data.draw(st.booleans()))
    if network.weights is not None:
        assume((np.bincount(network.listeners, network.weights)[network.listeners] > 0).all())
    options: dict[str, Any] = {"epsilon": data.draw(st.sampled_from([0.2, 0.3]) | _each(n, _GRID))}
    options |= {
        "isolates": "keep",
        "initial": data.draw(_each(n, st.floats(0, 1))),
        "seed": data.draw(st.integers(0, 99)),
    }
    ending, endless = (
        simulate("deffuant", network, steps=40, mu=0.5, machine=False, until=until, **options)
        for until in ({"frozen": 0.1}, None)
    )
    settings = {"epsilon": options["epsilon"]}
    setup = set_up(find_model("deffuant"), network, settings=settings, until={"frozen": 0.1}, isolates="keep")
    ends = (step for step, opinions in enumerate(endless.opinions[0]) if _rests(setup, opinions))
    assert ending.ended[0] == next(ends, -1)


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize("width", [0.03, 1.0])
def test_blocks_of_many_agents(n: int, width: float) -> None:
    rng = np.random.default_rng(n)
    for epsilon in (0.05, 0.11, 0.4):
        setup = set_up(find_model("deffuant"), Network.of(n), settings={"epsilon": epsilon}, until={"frozen": width})
        for _ in range(20):
            middles = rng.random(3)
            # Blocks of about the width that is looked for, so that it decides.
            around = min(epsilon, width) * rng.choice([0.4, 0.6])
            opinions = np.clip(rng.choice(middles, n) + rng.uniform(-around, around, n), 0, 1)
            ranked = np.sort(opinions)
            blocks = np.split(ranked, np.flatnonzero(np.diff(ranked) > epsilon) + 1)
            expected = max(block[-1] - block[0] for block in blocks) <= min(epsilon, width)
            assert bool(Batch(setup, opinions[None], 0).advance(0)[0] == 0) == expected


_CLUSTERS = ["clusters", "effective_clusters", "largest_cluster"]


@pytest.mark.parametrize("network", ["complete", {"kind": "watts-strogatz", "k": 6, "p": 0.1}])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, pytest.param([0.4] * 30 + [1.0] * 30, marks=pytest.mark.long)])
def test_clusters_at_rest_are_those_of_longer_runs(network: Any, epsilon: Any) -> None:
    common = {"network": network, "n": 60, "seed": 2, "replicates": 4, "epsilon": epsilon, "record_every": 20_000}
    # On a network clusters that no tie joins may lie as near as a cluster may be wide, so that narrow ones are asked.
    until = "frozen" if network == "complete" else {"frozen": 1e-6}
    ended = simulate("deffuant", steps=20_000, until=until, **common)
    longer = simulate("deffuant", steps=int(ended.ended.max()) + 2000, **common)
    assert (ended.ended >= 0).all()
    # Two agents of the longer run that are still apart are so by the gap of the run that has ended.
    gap = {} if ended.delta is None else {"delta": ended.delta}
    for name, counts in ended.metrics(_CLUSTERS).items():
        np.testing.assert_array_equal(counts, metrics.compute_metrics(longer.final, [name], **gap)[name])
    assert longer.delta is None
    if (network, epsilon) == ("complete", 1.0):
        # All are one cluster at once, however far apart.
        assert (ended.ended == 0).all()
        assert ended.metrics(["clusters"])["clusters"].tolist() == [1] * 4


def test_clusters_may_be_asked_to_be_narrow() -> None:
    common = {"n": 60, "seed": 2, "replicates": 4, "epsilon": 0.1, "record_every": 20_000}
    found = simulate("deffuant", steps=20_000, until={"frozen": 0.005}, **common)
    gaps = np.diff(np.sort(found.final, axis=1), axis=1)
    assert ((gaps <= 0.005) | (gaps > 0.1)).all()
    # On a network plain `frozen` asks for it, and a width as wide as the range does not.
    ring = Network.from_edges([(0, 1), (1, 2), (2, 3)], 4)
    for until, wide in (("frozen", False), ({"frozen": 1}, True)):
        setup = set_up(find_model("deffuant"), ring, settings={"epsilon": 0.2}, until=until)
        assert _rests(setup, np.array([0.5, 0.55, 0.5, 0.52])) == wide
        assert _rests(setup, np.array([0.5, 0.505, 0.5, 0.502]))


def test_metrics_of_ones_own_keep_their_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gaps.py").write_text(
        "import opinionsim as osim\n"
        "@osim.part('metric', version=1)\n"
        "def own(opinions, delta=0.01):\n"
        "    return osim.metrics.clusters(opinions, delta)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = simulate("deffuant", 50, steps=400, seed=1, epsilon=0.3, until="frozen")
    assert found.ended[0] > 0
    alone = found.metrics(["gaps:own"])["gaps:own"]
    beside = found.metrics(["gaps:own", "clusters"])
    assert alone == beside["gaps:own"] > beside["clusters"]


def _copies_for_ever(network: Network, states: np.ndarray, q: int, ties: str) -> dict[str, bool]:
    """Whether each rule of two states may still change somebody, by going through all panels."""
    heard: list[list[int]] = [[] for _ in range(network.n)]
    for i, j in _ties(network):
        heard[i].append(j)
    voter = any(states[i] != states[j] for i, j in _ties(network))
    panels = {i: list(combinations(own, min(q, len(own)))) for i, own in enumerate(heard) if own}
    qvoter = any(all(states[j] != states[i] for j in panel) for i, drawn in panels.items() for panel in drawn)
    majority = False
    for i, own in enumerate(heard):
        for panel in combinations(own, min(q - 1, len(own))) if own else []:
            group = [states[i], *(states[j] for j in panel)]
            decided = 2 * sum(group) != len(group) or ties != "keep"
            majority |= decided and 0 < sum(group) < len(group)
    return {"voter": voter, "q-voter": qvoter, "majority": majority}


@given(st.data(), st.integers(2, 4), st.sampled_from(["keep", "random", "bias"]))
def test_rules_of_two_states_are_at_rest_where_no_panel_changes_anybody(data: st.DataObject, q: int, ties: str) -> None:
    network = data.draw(_networks())
    states = data.draw(_each(network.n, st.sampled_from([0.0, 1.0])))
    goes_on = _copies_for_ever(network, states, q, ties)
    settings: dict[str, dict[str, Any]] = {
        "voter": {},
        "q-voter": {"q": q, "repetition": False},
        "majority": {"r": q, "ties": ties},
    }
    for name, own in settings.items():
        setup = set_up(find_model(name), network, settings=own, until="frozen", isolates="keep")
        assert _rests(setup, states) != goes_on[name], name
    repeated = set_up(find_model("q-voter"), network, settings={"q": q}, until="frozen", isolates="keep")
    assert _rests(repeated, states) != goes_on["voter"]


_RING = {"kind": "watts-strogatz", "k": 4, "p": 0.2}


@pytest.mark.parametrize(
    ("model", "n", "network", "until", "settings"),
    [
        ("voter", 12, None, "consensus", {"noise": 0.05}),
        ("voter", 12, _RING, "frozen", {"order": "permutation"}),
        ("majority", 9, None, "frozen", {}),
        ("majority", 12, _RING, "frozen", {"r": 4}),
        ("q-voter", 10, None, "consensus", {"q": 3, "independence": 0.05}),
        ("deffuant", 12, None, "frozen", {"epsilon": 0.3}),
        ("deffuant", 10, _RING, "frozen", {"epsilon": 0.4}),
        ("hegselmann-krause", 10, None, "frozen", {"order": "random"}),
        ("axelrod", 9, None, "frozen", {"features": 2, "traits": 3}),
        ("axelrod", 9, {"kind": "lattice"}, "frozen", {"features": 2, "traits": 3}),
        ("kozma-barrat", 20, {"kind": "erdos-renyi", "p": 0.2}, "frozen", {"mu": 0.3, "epsilon": 0.4}),
        ("kan-feng-porter", 12, {"kind": "erdos-renyi", "p": 0.3}, "frozen", {"mu": 0.3}),
        ("holme-newman", 12, {"kind": "erdos-renyi", "p": 0.3}, "frozen", {}),
    ],
)
def test_the_end_is_the_first_step_at_which_its_condition_holds(
    model: str, n: int, network: Any, until: str, settings: dict[str, Any]
) -> None:
    common = {"n": n, "network": network, "seed": 4, "machine": False, "isolates": "keep", **settings}
    for replicate in range(2):
        found = simulate(model, steps=400, until=until, replicate=replicate, **common)
        (end,) = found.ended
        assert end > 0
        # What has been gone over again is what would have been without an end, and is recorded.
        free = simulate(model, steps=int(end), replicate=replicate, **common)
        np.testing.assert_array_equal(found.opinions[0], free.opinions[0])
        assert [each.edges[0].tolist() for each in found.networks] == [each.edges[0].tolist() for each in free.networks]
        # The last step of a run is looked at too.
        short, exact = (
            simulate(model, steps=steps, until=until, replicate=replicate, **common) for steps in (end - 1, end)
        )
        assert (short.ended[0], exact.ended[0]) == (-1, end)


def _steps_to_consensus(updates: np.ndarray, each: int, start: int) -> tuple[float, float]:
    """Mean and variance of the step at which a chain of numbers of agents is first seen at one of its ends."""
    step = np.linalg.matrix_power(updates, each)
    inner = step[1:-1, 1:-1]
    once = np.linalg.solve(np.eye(len(inner)) - inner, np.ones(len(inner)))
    squares = np.linalg.solve(np.eye(len(inner)) - inner, 2 * once - 1)
    return once[start - 1], squares[start - 1] - once[start - 1] ** 2


def _voters(n: int) -> np.ndarray:
    """The voter model on the complete graph: chances of going from so many at the upper end to so many in an update."""
    high = np.arange(n + 1)
    moves = high * (n - high) / (n * (n - 1))
    return np.diag(1 - 2 * moves) + np.diag(moves[:-1], 1) + np.diag(moves[1:], -1)


def _majorities(n: int, r: int) -> np.ndarray:
    """The same for majority rule in groups of r."""
    chain = np.zeros((n + 1, n + 1))
    for high in range(n + 1):
        for of_them in range(r + 1):
            if of_them <= high and r - of_them <= n - high:
                to = high + (r - of_them) * (2 * of_them > r) - of_them * (2 * of_them < r)
                chain[high, to] += comb(high, of_them) * comb(n - high, r - of_them) / comb(n, r)
    return chain


def _panels(n: int, q: int, independence: float) -> np.ndarray:
    """The same for the q-voter model with repetition and independence."""
    high = np.arange(n + 1)
    up = (n - high) / n * (independence / 2 + (1 - independence) * (high / (n - 1)) ** q)
    down = high / n * (independence / 2 + (1 - independence) * ((n - high) / (n - 1)) ** q)
    return np.diag(1 - up - down) + np.diag(up[:-1], 1) + np.diag(down[1:], -1)


@pytest.mark.parametrize(
    ("model", "n", "high", "settings", "chain", "each"),
    [
        ("voter", 50, 0.2, {}, _voters(50), 50),
        pytest.param("majority", 31, 0.5, {"r": 5}, _majorities(31, 5), 7, marks=pytest.mark.long),
        pytest.param(
            "q-voter", 100, 0.5, {"q": 3, "independence": 0.02}, _panels(100, 3, 0.02), 100, marks=pytest.mark.long
        ),
    ],
)
def test_times_are_those_of_the_chain(
    model: str, n: int, high: float, settings: dict[str, Any], chain: np.ndarray, each: int
) -> None:
    found = simulate(
        model, n=n, initial={"kind": "share", "high": high}, steps=5000, seed=3, replicates=2000, until="consensus",
        record_every=5000, **settings,
    )  # fmt: skip
    mean, variance = _steps_to_consensus(chain, each, int(high * n + 0.5))
    assert (found.ended > 0).all()
    assert abs(found.ended.mean() - mean) < 4 * np.sqrt(variance / 2000)


def test_a_sweep_until_frozen_may_begin_at_no_confidence() -> None:
    for model in ("deffuant", "algorithmic-bias"):
        found = simulate(model, 20, steps=50, seed=1, until="frozen", epsilon=0, machine=False)
        assert found.ended.tolist() == [0]
        assert found.metrics(["clusters"])["clusters"].tolist() == [20]


def test_clusters_of_runs_that_reach_their_limit_are_told_apart_by_the_common_gap() -> None:
    common = {"n": 40, "seed": 2, "replicates": 6, "epsilon": 0.15, "mu": 0.2, "machine": False, "steps": 24}
    found = simulate("deffuant", until="frozen", **common)
    at_rest = found.ended >= 0
    assert 0 < at_rest.sum() < 6
    clusters = found.metrics(["clusters"])["clusters"]
    for delta, runs in ((found.delta, at_rest), (0.01, ~at_rest)):
        np.testing.assert_array_equal(
            clusters[runs], metrics.compute_metrics(found.final[runs], ["clusters"], delta=delta)["clusters"]
        )
    # Before a run has come to rest, its clusters are no clusters at rest either.
    np.testing.assert_array_equal(
        found.metrics(["clusters"], 0)["clusters"],
        metrics.compute_metrics(found.opinions[:, 0], ["clusters"])["clusters"],
    )
    points = sweep("deffuant", {"epsilon": [0.15]}, at=[0], metrics=["clusters"], until="frozen",
                   **{name: common[name] for name in ("n", "seed", "replicates", "mu", "steps")})  # fmt: skip
    np.testing.assert_array_equal(points["clusters"], clusters)
    np.testing.assert_array_equal(points["clusters@0"], found.metrics(["clusters"], 0)["clusters"])
    np.testing.assert_array_equal(points["stopped"], at_rest)


def test_a_run_that_has_ended_stays_where_it_is_recorded() -> None:
    found = simulate("voter", 20, steps=500, seed=2, replicates=4, until="consensus")
    assert (found.ended >= 0).all()
    assert len(found.times) == found.ended.max() + 1
    for run, end in enumerate(found.ended):
        assert (found.opinions[run, end:] == found.opinions[run, end]).all()
        assert len(set(found.opinions[run, end])) == 1
    before = int(found.ended.min()) - 1
    late = simulate("voter", 20, steps=before, seed=2, replicates=4, until="consensus")
    assert (late.ended == -1).all()
    assert len(late.times) == before + 1


def test_small_changes_end_a_run_of_averages() -> None:
    found = simulate("degroot", {"kind": "ring"}, n=10, steps=10_000, seed=1, until={"change": 1e-6})
    steps = np.abs(np.diff(found.opinions[0], axis=0)).max(axis=1)
    assert found.ended[0] == len(steps)
    assert steps[-1] <= 1e-6 < steps[-2]
    agreed = simulate("degroot", {"kind": "ring"}, n=10, steps=10_000, seed=1, until={"consensus": 0.01})
    spread = np.ptp(agreed.opinions[0], axis=1)
    assert spread[-1] <= 0.01 < spread[-2]


@pytest.mark.parametrize("n", few([11, 51, 101, 201], 2))
@pytest.mark.parametrize("places", [(1, 10), (3, 20), (1, 5), (1, 4), (3, 10)])
@pytest.mark.parametrize("threshold", ["<=", "<"])
def test_evenly_spaced_agents_meet_as_rational_numbers_do(n: int, places: tuple[int, int], threshold: str) -> None:
    """Pairs at exactly epsilon are judged as their fractions are, by kernels and by the one-step view."""
    exact, reach = [Fraction(agent, n - 1) for agent in range(n)], Fraction(*places)
    opinions, epsilon = np.linspace(0, 1, n), places[0] / places[1]
    near = _within(reach, threshold)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    expected = np.array([near(abs(exact[i] - exact[j])) for i, j in pairs])
    own, said = opinions[[i for i, _ in pairs]], opinions[[j for _, j in pairs]]
    moved = transition("deffuant", own, said, epsilon=epsilon, threshold=threshold).values[:, 0] != own
    np.testing.assert_array_equal(moved, expected)
    step = simulate("hegselmann-krause", n, opinions, 1, epsilon=epsilon, threshold=threshold).final[0]
    means = [np.mean([float(b) for b in exact if near(abs(a - b)) or a == b]) for a in exact]
    np.testing.assert_allclose(step, means, rtol=0, atol=1e-13)
    np.testing.assert_allclose(step + step[::-1], 1.0, rtol=0, atol=1e-13)


def _within(reach: Fraction, threshold: str) -> Callable[[Fraction], bool]:
    return (lambda distance: distance <= reach) if threshold == "<=" else (lambda distance: distance < reach)
