"""Models that move ties: their rest, what is refused, and the rows that hold ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim import metrics
from opinionsim.classic import MODELS, Process, set_up, simulate, transition
from opinionsim.classic.kernels import _ties as ties
from opinionsim.errors import SpecError
from opinionsim.networks import build_network

pytestmark = pytest.mark.long

_REST = {
    "holme-newman": {"rewire": 0.4},
    "kozma-barrat": {"epsilon": 0.25},
    "kan-feng-porter": {"epsilon": 0.3, "tolerance": 0.2},
}


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
        with pytest.raises(SpecError, match=f"until: frozen cannot be reached .*{name} .*{why}"):
            simulate(name, "ring", n=20, until="frozen", **settings)


def test_ties_move_on_networks_that_have_room_alone() -> None:
    for network in ("complete", [(0, 1), (1, 2), (0, 2)]):
        with pytest.raises(SpecError, match="moves ties: in a complete network, all agents are"):
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
