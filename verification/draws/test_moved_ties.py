"""Models that move ties do so as a plain loop does, and draw new ends in proportion to weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opinionsim.classic import simulate
from opinionsim.classic.kernels import _ties as ties
from opinionsim.networks import Network, build_network

_N = 12


_NETWORK = build_network({"kind": "erdos-renyi", "p": 0.3}, _N, 4)


class _Plain:
    """A network and opinions, one event after another, in as few words as possible."""

    def __init__(self, start: np.ndarray, seed: int) -> None:
        self.x = start.copy()
        self.edges = [tuple(pair) for pair in _NETWORK.edges[0].tolist()]
        self.rng = np.random.default_rng(seed)

    def ties(self, agent: int) -> list[int]:
        return [e for e, pair in enumerate(self.edges) if agent in pair]

    def other(self, edge: int, agent: int) -> int:
        one, two = self.edges[edge]
        return two if one == agent else one

    def move(self, edge: int, agent: int, weigh: Callable[[int], float]) -> bool:
        """Move the other end of an edge of an agent; False if there is nobody to move it to."""
        taken = {agent, *(self.other(each, agent) for each in self.ties(agent))}
        weights = np.array([0.0 if k in taken else weigh(k) for k in range(_N)])
        if weights.sum() == 0:
            return False
        self.edges[edge] = (agent, int(self.rng.choice(_N, p=weights / weights.sum())))
        return True

    def approach(self, i: int, j: int) -> None:
        self.x[i], self.x[j] = self.x[i] + 0.5 * (self.x[j] - self.x[i]), self.x[j] + 0.5 * (self.x[i] - self.x[j])


def _holme_newman(run: _Plain, target: str, ties: str) -> None:
    i = int(run.rng.integers(_N))
    if not run.ties(i):
        return
    edge = int(run.rng.choice(run.ties(i)))
    j = run.other(edge, i)
    if ties == "discordant" and run.x[i] == run.x[j]:
        return
    moved = run.rng.random() < 0.4 and run.move(edge, i, lambda k: float(target == "random" or run.x[k] == run.x[i]))
    if not moved:
        run.x[i] = run.x[j]


def _kozma_barrat(run: _Plain, target: str) -> None:
    i = int(run.rng.integers(_N))
    if not run.ties(i):
        return
    edge = int(run.rng.choice(run.ties(i)))
    j, beyond = run.other(edge, i), abs(run.x[run.other(edge, i)] - run.x[i]) > 0.25
    if run.rng.random() < 0.5:
        if beyond:
            run.move(edge, i, lambda k: float(target == "random" or abs(run.x[k] - run.x[i]) <= 0.25))
    elif not beyond:
        run.approach(i, j)


def _kan_feng_porter(run: _Plain, target: str) -> None:
    gaps = [abs(run.x[i] - run.x[j]) for i, j in run.edges]
    discordant = [e for e, gap in enumerate(gaps) if gap > 0.2]
    if discordant and run.rng.random() < 0.6:
        edge = int(run.rng.choice(discordant))
        i = run.edges[edge][int(run.rng.integers(2))]
        run.move(edge, i, lambda k: 1.0 if target == "random" else 1 - abs(run.x[k] - run.x[i]))
    i, j = run.edges[int(run.rng.integers(len(run.edges)))]
    if abs(run.x[i] - run.x[j]) < 0.3:
        run.approach(i, j)


def _summary(x: np.ndarray, edges: np.ndarray) -> list[float]:
    """Numbers that would differ if opinions or ties were moved by another rule."""
    degrees = np.bincount(edges.reshape(-1), minlength=_N)
    gaps = np.abs(np.diff(x[edges])).reshape(-1)
    return [len(np.unique(x)), x.std(), x[0], (gaps > 0.2).mean(), gaps.mean(), degrees.std(), degrees[0], degrees @ x]


@pytest.mark.parametrize(
    ("name", "event", "settings", "options"),
    [
        ("holme-newman", _holme_newman, {"rewire": 0.4}, {"target": "similar", "ties": "any"}),
        ("holme-newman", _holme_newman, {"rewire": 0.4}, {"target": "random", "ties": "discordant"}),
        ("kozma-barrat", _kozma_barrat, {"epsilon": 0.25}, {"target": "random"}),
        ("kozma-barrat", _kozma_barrat, {"epsilon": 0.25}, {"target": "similar"}),
        (
            "kan-feng-porter",
            _kan_feng_porter,
            {"epsilon": 0.3, "tolerance": 0.2, "rewire": 0.6},
            {"target": "homophilic"},
        ),
        ("kan-feng-porter", _kan_feng_porter, {"epsilon": 0.3, "tolerance": 0.2, "rewire": 0.6}, {"target": "random"}),
    ],
)
def test_it_does_what_a_plain_loop_does(name, event, settings, options) -> None:
    runs, steps = 1500, 3
    start = np.arange(_N) % 4 / 3 if name == "holme-newman" else np.arange(_N) * 0.618 % 1
    found = simulate(name, _NETWORK, start, steps, 5, replicates=runs, **settings, **options)
    pairs = zip(found.final, found.networks, strict=True)
    kernel = np.array([_summary(final, network.edges[0]) for final, network in pairs])
    plain = []
    for seed in range(runs):
        run = _Plain(start, seed)
        for _ in range(steps * _N):
            event(run, **options)
        plain.append(_summary(run.x, np.array(run.edges)))
    error = np.sqrt((kernel.var(axis=0) + np.var(plain, axis=0)) / runs) + 1e-12
    assert (np.abs(kernel.mean(axis=0) - np.mean(plain, axis=0)) < 4.5 * error).all()


@pytest.mark.parametrize("tries", [0, 3, 1000])
def test_targets_are_drawn_in_proportion_to_weights(tries) -> None:
    network = Network.from_edges([(0, 1), (0, 2), (3, 4)], 8)
    live, opinions = ties.Ties.of(network), np.arange(8) / 8
    find = ties.target_finder(ties.number_of_all, ties.member_of_all, lambda x, p, i, k: 1 - x[k], tries)
    state, drawn = np.arange(1, 5, dtype=np.uint64), 4000
    with np.errstate(over="ignore"):
        found = [find(opinions, live.ends, live.groups, 8, None, 0, state) for _ in range(drawn)]
    weights = np.where(np.arange(8) > 2, 1 - opinions, 0)
    expected = drawn * weights / weights.sum()
    counts = np.bincount(found, minlength=8)
    assert (counts[:3] == 0).all()
    assert ((counts - expected)[3:] ** 2 / expected[3:]).sum() < 23.5  # chi squared of 4 degrees at 0.0001
    nobody = ties.target_finder(ties.number_of_all, ties.member_of_all, lambda x, p, i, k: 0.0, min(tries, 3))
    with np.errstate(over="ignore"):
        assert nobody(opinions, live.ends, live.groups, 8, None, 0, state) == -1
