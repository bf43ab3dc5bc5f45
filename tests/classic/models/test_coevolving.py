"""Models that move ties: against a plain Python of their own, their rest, and the rows that hold ties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim import metrics
from opinionsim.classic import MODELS, Process, set_up, simulate, transition
from opinionsim.classic.kernels import _ties as ties
from opinionsim.errors import SpecError
from opinionsim.networks import Network, build_network

pytestmark = pytest.mark.long

_N = 12
_NETWORK = build_network({"kind": "erdos-renyi", "p": 0.3}, _N, 4)
_REST = {
    "holme-newman": {"rewire": 0.4},
    "kozma-barrat": {"epsilon": 0.25},
    "kan-feng-porter": {"epsilon": 0.3, "tolerance": 0.2},
}


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


@pytest.mark.parametrize("name", _REST)
def test_a_run_at_rest_changes_no_more(name) -> None:
    initial = {"kind": "levels", "count": 8} if name == "holme-newman" else "uniform"
    options = {"n": 60, "replicates": 4, "seed": 2, **_REST[name]}
    network = {"kind": "erdos-renyi", "p": 0.08}
    ended = simulate(name, network, initial, 3000, until="frozen", **options)
    assert (ended.ended > 0).all()
    longer = simulate(name, network, initial, int(ended.ended.max()) + 200, record_every=100, **options)
    for run in range(4):
        edges = ended.networks[run].edges[0]
        gaps = np.abs(np.diff(ended.final[run][edges]))
        if name == "holme-newman":
            assert (gaps == 0).all()
            np.testing.assert_array_equal(ended.final[run], longer.final[run])
        else:
            # Who is tied to whom stays, and so does whom each can draw closer to.
            np.testing.assert_array_equal(edges, longer.networks[run].edges[0])
            near = np.abs(np.diff(longer.final[run][edges]))
            np.testing.assert_array_equal(gaps < _REST[name]["epsilon"], near < _REST[name]["epsilon"])


def test_it_ends_in_the_very_step_in_which_no_tie_is_discordant() -> None:
    model, network = MODELS["holme-newman"], build_network({"kind": "erdos-renyi", "p": 0.1}, 50, 1)
    for ties_, target in (("any", "similar"), ("discordant", "random")):
        settings = {"rewire": 0.3, "ties": ties_, "target": target}
        start = np.arange(50) % 5 / 4
        ended = int(simulate(model, network, start, 5000, 3, until="frozen", **settings).ended[0])
        process, steps = Process(set_up(model, network, settings=settings), start, 3), 0
        while metrics.active_link_density(process.opinions, process.network) > 0:
            process.advance(1)
            steps += 1
        assert 0 < steps == ended


def test_runs_start_from_the_same_network_and_go_their_own_ways() -> None:
    found = simulate("kozma-barrat", "ring", n=40, steps=30, seed=1, replicates=3, epsilon=0.2)
    assert len({each.edges[0].tobytes() for each in found.networks}) == 3
    alone = simulate("kozma-barrat", "ring", n=40, steps=30, seed=1, replicate=2, epsilon=0.2)
    np.testing.assert_array_equal(alone.networks[0].edges[0], found.networks[2].edges[0])


def test_measures_at_the_end_are_of_the_networks_at_the_end() -> None:
    found = simulate("holme-newman", "ring", {"kind": "levels", "count": 6}, 3000, n=60, replicates=3, until="frozen")
    measured = found.metrics(["active_link_density", "components", "largest_component"])
    np.testing.assert_array_equal(measured["active_link_density"], 0)
    expected = [metrics.components(x, network) for x, network in zip(found.final, found.networks, strict=True)]
    np.testing.assert_array_equal(measured["components"], expected)
    assert (measured["components"] > 1).any()
    np.testing.assert_array_equal(found.metrics(["components"], 0)["components"], 1)
    assert found.metrics(["diversity"], 1)["diversity"].shape == (3,)
    with pytest.raises(SpecError, match="components needs the network, of which holme-newman keeps"):
        found.metrics(["components"], 1)


def test_what_never_comes_to_rest_is_refused() -> None:
    for name, settings, why in (
        ("holme-newman", {"target": "random"}, "ties: discordant"),
        ("kozma-barrat", {"rewire": 0.0}, "rewire is 0 or 1"),
        ("kozma-barrat", {"rewire": 1.0}, "rewire is 0 or 1"),
        ("kan-feng-porter", {"rewire": 0.0}, "rewire is 0"),
    ):
        with pytest.raises(SpecError, match=f"until: frozen cannot come with {name} .*{why}"):
            simulate(name, "ring", n=20, until="frozen", **settings)


def test_ties_move_on_networks_that_have_room_alone() -> None:
    for network in ("complete", [(0, 1), (1, 2), (0, 2)]):
        with pytest.raises(SpecError, match="moves ties: a complete network leaves nobody else"):
            simulate("kozma-barrat", network)


def test_opinions_at_levels() -> None:
    found = simulate("holme-newman", "ring", {"kind": "levels", "count": 5}, 0, n=4000, seed=1).final[0]
    values, counts = np.unique(found, return_counts=True)
    np.testing.assert_allclose(values, [0, 0.25, 0.5, 0.75, 1])
    assert (np.abs(counts - 800) < 4.5 * np.sqrt(640)).all()
    with pytest.raises(SpecError, match="count must be a whole number of at least 2"):
        simulate("holme-newman", "ring", {"kind": "levels", "count": 1.5})
    with pytest.raises(SpecError, match="q-voter knows two opinions; got levels with count 3"):
        simulate("q-voter", "ring", {"kind": "levels", "count": 3})


def test_the_one_step_view() -> None:
    step = transition("holme-newman", [0.0], [[0.0, 1.0, 1.0, np.nan]], rewire=0.4)
    assert step.probability(np.array([0.0]))[0] == pytest.approx(0.4 + 0.6 / 3)
    assert step.probability(np.array([1.0]))[0] == pytest.approx(0.4)
    step = transition("kozma-barrat", [0.4], [[0.5, 0.9]], epsilon=0.2, rewire=0.4)
    assert step.probability(np.array([0.45]), 1e-12)[0] == pytest.approx(0.3)
    assert step.probability(np.array([0.4]), 1e-12)[0] == pytest.approx(0.7)
    assert transition("kan-feng-porter", [0.4, 0.4], [0.5, 0.6], epsilon=0.2).values[:, 0] == pytest.approx([0.45, 0.4])


@given(st.data())
def test_rows_hold_what_was_moved_into_them(data) -> None:
    number = data.draw(st.integers(1, 6))
    owners = np.array(data.draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=12)))
    rows = ties.rows_of(owners, number, np.arange(owners.size) + 100)
    move = st.tuples(st.integers(0, owners.size - 1), st.integers(0, number - 1))
    for item, owner in data.draw(st.lists(move, max_size=150)):
        if owners[item] != owner:
            ties.move(rows, item, owner)
            owners[item] = owner
        np.testing.assert_array_equal(ties.owners_of(rows), owners)
        for each in range(number):
            held = [int(ties.item_at(rows, each, place)) for place in range(ties.size_of(rows, each))]
            assert sorted(held) == np.flatnonzero(owners == each).tolist()
            noted = [int(ties.note_at(rows, each, place)) for place in range(ties.size_of(rows, each))]
            assert noted == [each + 100 for each in held]


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
