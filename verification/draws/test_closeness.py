"""Partners by closeness: as often as the definition says, whatever shortcut finds them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from opinionsim.classic import find_model, set_up, simulate
from opinionsim.classic.kernels import new_state
from opinionsim.classic.kernels._closeness import make_candidates, meetings_by_closeness
from opinionsim.foundation.compilation import compiled
from opinionsim.networks import Network

_DRAWS = 20_000


@cache
def _drawing(variant: Any) -> Callable[..., Any]:
    """Draws partners in the thick of a step."""
    meet = meetings_by_closeness(find_model("deffuant").update, variant)

    def draw(contacts, listeners, speakers, opinions, p, state):  # type: ignore[no-untyped-def]
        meet(make_candidates(contacts, p), contacts, listeners, speakers, opinions, opinions, p, state)

    return draw


def _process(network: Network, span: tuple[float, float], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    model = find_model("algorithmic-bias")
    setup = set_up(model, network, span=span, settings=options)
    return setup.contacts, model.prepared(setup.p), _drawing(setup.variant())


def _partners(
    opinions: np.ndarray, listener: int, network: Network | None = None, draws: int = _DRAWS, **options: Any
) -> np.ndarray:
    """How often each agent is drawn by one listener. Nobody moves, since nobody is close enough."""
    low, high = float(opinions.min()), float(opinions.max())
    span = (low, high) if low < high else (low, low + 1.0)
    contacts, p, draw = _process(network or Network.of(opinions.size), span, {"epsilon": 0.0, **options})
    listeners, speakers = np.full(draws, listener, np.uint32), np.zeros(draws, np.uint32)
    before = opinions.copy()
    compiled(draw)(contacts, listeners, speakers, opinions, p, new_state(4, "partners", listener))
    np.testing.assert_array_equal(opinions, before)
    return np.bincount(speakers, minlength=opinions.size)


def _shares(opinions: np.ndarray, listener: int, gamma: float, d_min: float, weights: Any = 1.0) -> np.ndarray:
    """The definition, by logarithms so that no power is beyond what a float holds."""
    distances = np.maximum(np.abs(opinions - opinions[listener]), d_min)
    logs = -gamma * np.log(distances)
    with np.errstate(divide="ignore"):
        logs = logs + np.log(np.broadcast_to(weights, opinions.shape))
    logs[listener] = -np.inf
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def _agree(counts: np.ndarray, shares: np.ndarray) -> None:
    """Chi-square over agents, and over stretches of those too seldom drawn to be counted one by one."""
    assert counts[shares == 0].sum() == 0
    expected = shares * counts.sum()
    order = np.argsort(-expected)
    # Every group is of agents that are drawn about as often, and is expected at least ten times, save the last.
    groups, filled, number = np.zeros(order.size, dtype=np.int64), 0.0, 0
    for place, agent in enumerate(order):
        if filled >= 10:
            number, filled = number + 1, 0.0
        groups[place] = number
        filled += expected[agent]
    seen, awaited = np.bincount(groups, counts[order]), np.bincount(groups, expected[order])
    if seen.size > 1 and awaited[-1] < 10:
        seen, awaited = (np.append(each[:-2], each[-2:].sum()) for each in (seen, awaited))
    if seen.size > 1:
        assert chisquare(seen, awaited * (seen.sum() / awaited.sum())).pvalue > 1e-4


def _configurations() -> dict[str, np.ndarray]:
    """Opinions of 500 agents; agent 0 stands in the thick of it, agent 1 apart where anybody does."""
    rng = np.random.default_rng(3)
    tight, loose = rng.uniform(0, 1e-6, 500), rng.uniform(0, 2e-3, 500)
    halves = np.where(np.arange(500) % 2, 0.9, 0.1)
    mixed = np.concatenate([[0.5, 0.0], 0.5 + np.logspace(-7, -0.4, 498)])
    apart = 0.4 + loose
    apart[1] = 1.0
    return {
        "uniform": rng.random(500),
        "all alike": np.full(500, 0.7),
        "tighter than the floor": 0.3 + tight,
        "one cluster": 0.5 + loose,
        "two clusters": halves + loose,
        "two points": halves,
        "one apart": apart,
        "all distances": mixed,
        "far from zero": 1e6 + 100 * rng.random(500),
        "below zero": -7.0 + 3.0 * rng.random(500),
    }


_CONFIGURATIONS = _configurations()


@pytest.mark.parametrize("name", _CONFIGURATIONS)
@pytest.mark.parametrize("gamma", [0.01, 1.0, 2.5, 30.0, 1000.0])
def test_partners_on_the_complete_graph(name: str, gamma: float) -> None:
    opinions = _CONFIGURATIONS[name]
    for listener in (0, 1):
        for d_min in (1e-5, 0.3) if gamma < 100 else (1e-5,):
            counts = _partners(opinions.copy(), listener, gamma=gamma, d_min=d_min)
            _agree(counts, _shares(opinions, listener, gamma, d_min))


@pytest.mark.parametrize("d_min", [1e-200, 1e-12, 1e9])
@pytest.mark.parametrize("name", ["uniform", "one cluster", "all distances", "two points"])
def test_least_distances_beyond_all_measure(name: str, d_min: float) -> None:
    opinions = _CONFIGURATIONS[name]
    for gamma in (1.0, 2.5):
        counts = _partners(opinions.copy(), 0, gamma=gamma, d_min=d_min, draws=10_000)
        _agree(counts, _shares(opinions, 0, gamma, d_min))


def test_each_agent_has_its_own_bias() -> None:
    opinions = _CONFIGURATIONS["uniform"]
    gammas, floors = np.linspace(0.2, 3, 500), np.linspace(1e-5, 0.01, 500)
    gammas[4] = 100.0
    ring = _rows(np.random.default_rng(4), 500, 12)
    for listener in (1, 4, 250):
        shares = _shares(opinions, listener, gammas[listener], floors[listener])
        _agree(_partners(opinions.copy(), listener, gamma=gammas, d_min=floors), shares)
        heard = np.zeros(500)
        heard[ring.speakers[ring.listeners == listener]] = ring.weights[ring.listeners == listener]
        shares = _shares(opinions, listener, gammas[listener], floors[listener], heard)
        _agree(_partners(opinions.copy(), listener, ring, gamma=gammas, d_min=floors), shares)


def _rows(rng: np.random.Generator, n: int, degree: int, scale: float = 1.0) -> Network:
    """A network on which everybody hears some others, with weights of very different sizes, and of 0."""
    pairs = [(int(j), i) for i in range(n) for j in rng.choice([a for a in range(n) if a != i], degree, replace=False)]
    weights = scale * 10.0 ** rng.uniform(-2, 2, len(pairs))
    weights[::degree] = 0.0
    return Network.from_edges(pairs, n, weights, directed=True)


@pytest.mark.parametrize("name", _CONFIGURATIONS)
@pytest.mark.parametrize("gamma", [0.01, 1.0, 2.5, 30.0, 1000.0])
@pytest.mark.parametrize("scale", [1.0, 1e-290])
def test_partners_on_a_network(name: str, gamma: float, scale: float) -> None:
    opinions = _CONFIGURATIONS[name]
    network = _rows(np.random.default_rng(6), 500, 12, scale)
    for listener in (0, 1):
        heard = np.zeros(500)
        mine = network.listeners == listener
        heard[network.speakers[mine]] = network.weights[mine]
        counts = _partners(opinions.copy(), listener, network, gamma=gamma, d_min=1e-5)
        _agree(counts, _shares(opinions, listener, gamma, 1e-5, heard))


@pytest.mark.parametrize("gamma", [0.7, 40.0])
def test_machine_code_and_python_draw_the_same(gamma: float) -> None:
    ring = Network.from_edges([(a, (a + gap) % 300) for a in range(300) for gap in (1, 2, 3)], 300)
    for network in (300, ring):
        options = {"gamma": gamma, "epsilon": 0.5, "mu": 0.4}
        fast = simulate("algorithmic-bias", network, "uniform", 2, 3, **options)
        slow = simulate("algorithmic-bias", network, "uniform", 2, 3, machine=False, **options)
        assert fast.opinions.tobytes() == slow.opinions.tobytes()
