"""Simulating, sweeping and stepping: what does not depend on which model it is."""

from __future__ import annotations

import threading

import igraph
import networkx as nx
import numpy as np
import pytest

import opinionsim as osim
from opinionsim.classic import ClassicOpinionModel, find_model, set_up, simulate, sweep, transition
from opinionsim.classic.kernels import (
    EDGE,
    LISTENER,
    SPEAKER,
    draw,
    fill,
    index,
    new_state,
    pair_drawer,
    shuffle,
    uniform,
)
from opinionsim.errors import SpecError
from opinionsim.networks import Network
from tests.support.tables import refused

RING = nx.cycle_graph(20)


# -- chance ------------------------------------------------------------------------------------------------


def test_words_are_those_of_xoshiro256plusplus() -> None:
    # The first outputs from the state 1, 2, 3, 4: 41943041, then 58720359 (reference implementation of the authors).
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    words = np.empty(2, dtype=np.uint64)
    with np.errstate(over="ignore"):
        fill(state, words)
    assert words.tolist() == [41943041, 58720359]


def test_one_by_one_and_in_blocks_are_the_same_stream() -> None:
    blocks, single = new_state(1, "x", 0), new_state(1, "x", 0)
    words = np.empty(7, dtype=np.uint64)
    with np.errstate(over="ignore"):
        fill(blocks, words)
        assert words.tolist() == [int(draw(single)) for _ in range(7)]
    assert (blocks == single).all()


def test_numbers_lie_where_they_should() -> None:
    assert uniform(np.uint64(0)) == 0.0
    assert uniform(np.uint64(2**64 - 1)) == 1 - 2.0**-53
    assert index(np.uint64(2**64 - 1), 10**6) == 10**6 - 1


def test_every_order_is_as_likely() -> None:
    state, counts, contacts = new_state(2, "orders", 0), {}, set_up(find_model("voter"), Network.of(3)).contacts
    with np.errstate(over="ignore"):
        for _ in range(3000):
            items = np.empty(3, dtype=np.int64)
            shuffle(contacts, state, items)
            counts[tuple(items.tolist())] = counts.get(tuple(items.tolist()), 0) + 1
    chi_square = sum((count - 500) ** 2 / 500 for count in counts.values())
    assert len(counts) == 6
    assert chi_square < 20.5  # 1 in 1000, 5 degrees of freedom


@pytest.mark.parametrize("pick", [LISTENER, SPEAKER, EDGE])
def test_pairs_are_drawn_as_the_scheme_says(pick: int) -> None:
    """On a weighted, directed network: listener or speaker first, uniformly, then by weight; or pairs by weight."""
    edges, weights = [(0, 1), (2, 1), (0, 2), (1, 0)], [1.0, 3.0, 2.0, 1.0]
    name = {LISTENER: "listener", SPEAKER: "speaker", EDGE: "edge"}[pick]
    network = Network.from_edges(edges, 3, weights, directed=True)
    setup = set_up(find_model("voter"), network, settings={"pick": name})
    contacts = setup.contacts
    expected = {
        LISTENER: {(0, 1): 1 / 12, (2, 1): 3 / 12, (0, 2): 1 / 3, (1, 0): 1 / 3},
        SPEAKER: {(0, 1): 1 / 9, (0, 2): 2 / 9, (2, 1): 1 / 3, (1, 0): 1 / 3},
        EDGE: {(0, 1): 1 / 7, (2, 1): 3 / 7, (0, 2): 2 / 7, (1, 0): 1 / 7},
    }[pick]
    drawn = 6000
    words = np.empty(2 * drawn, dtype=np.uint64)
    listeners, speakers = np.empty(drawn, dtype=np.uint32), np.empty(drawn, dtype=np.uint32)
    with np.errstate(over="ignore"):
        fill(new_state(3, "pairs", pick), words)
        pair_drawer(setup.variant())(contacts, contacts.firsts, 0, words, listeners, speakers)
    found = dict.fromkeys(expected, 0)
    for pair in zip(speakers.tolist(), listeners.tolist(), strict=True):
        found[pair] += 1  # another pair is a KeyError
    chi_square = sum((found[pair] - drawn * p) ** 2 / (drawn * p) for pair, p in expected.items())
    assert chi_square < 16.3  # 1 in 1000, 3 degrees of freedom


# -- orders ------------------------------------------------------------------------------------------------


def listeners_of(order: str, sweeps: int) -> np.ndarray:
    """How often each agent has listened, by sweep; a voter's listener takes over a value of its own."""
    record = []
    opinions = np.arange(20.0)
    for seed in range(sweeps):
        end = simulate("voter", RING, opinions, steps=1, seed=seed, range=(0, 19), order=order, machine=False).final[0]
        record.append(end != opinions)
    return np.array(record)


def test_a_permutation_and_a_sequence_reach_everybody() -> None:
    # In a ring whose agents all differ, whoever listens changes, unless its neighbour has taken its value before.
    assert listeners_of("synchronous", 20).all()
    # In a quarter of cases it has: it came first, and listened to this agent.
    for order in ("permutation", "sequential"):
        assert listeners_of(order, 60).mean() == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 1200))
    # Drawn with replacement, an agent is left out with probability 1/e.
    assert listeners_of("random", 60).mean() < 1 - np.exp(-1)


def test_synchronous_agents_see_the_step_before() -> None:
    options = {"steps": 1, "epsilon": 1.0, "mu": 0.25, "machine": False}
    end = simulate("deffuant", 2, [0.0, 1.0], order="synchronous", **options).final[0]
    np.testing.assert_array_equal(end, [0.25, 0.75])
    after = simulate("deffuant", 2, [0.0, 1.0], order="sequential", sides="one", **options).final[0]
    np.testing.assert_array_equal(after, [0.25, 0.8125])


# -- thresholds and ranges ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("threshold", "end"), [("<=", [0.25, 0.25]), ("<", [0.0, 0.5])])
def test_a_distance_of_exactly_epsilon(threshold: str, end: list[float]) -> None:
    found = simulate("deffuant", 2, [0.0, 0.5], steps=1, epsilon=0.5, threshold=threshold)
    np.testing.assert_array_equal(found.final[0], end)


def test_a_default_in_units_of_opinion_grows_with_the_range() -> None:
    assert simulate("deffuant", 5, steps=0, range=(-2, 2)).parameters["epsilon"] == pytest.approx(0.8)
    assert simulate("deffuant", 5, steps=0, range=(-2, 2), epsilon=0.3).parameters["epsilon"] == 0.3


def test_everything_is_recorded_with_the_run() -> None:
    found = simulate("deffuant", 5, steps=3, record_every=2, mu=0.25)
    idle = {"noise": 0.0, "zealot": 0, "media": 0.0, "media_opinions": ()}
    assert found.parameters == {"epsilon": 0.2, "mu": 0.25, "threshold": "<=", **idle}
    assert found.scheme == {"order": "random", "pick": "edge", "sides": "two"}
    assert found.times.tolist() == [0, 2, 3]
    assert (found.seed, found.range, found.model, found.evidence) == (0, (0.0, 1.0), "deffuant", "equation")


def test_frames_hold_one_row_an_opinion() -> None:
    found = simulate("deffuant", 4, steps=2, replicates=11)
    frame = found.frame()
    assert list(frame.columns) == ["run_id", "cell", "agent", "step", "value", "evidence"]
    assert len(frame) == 11 * 3 * 4
    wide = frame.pivot_table(index="run_id", columns=["step", "agent"], values="value").loc["10"].to_numpy()
    np.testing.assert_array_equal(wide, found.opinions[10].ravel())
    plane = simulate("deffuant", 4, np.random.default_rng(1).random((4, 2)), steps=1).frame()
    assert sorted(plane["dimension"].unique()) == [0, 1]


# -- initial opinions, networks, replicates ----------------------------------------------------------------


def test_each_replicate_may_start_elsewhere() -> None:
    starts = np.random.default_rng(2).random((3, 5))
    np.testing.assert_array_equal(simulate("deffuant", 5, starts, steps=0, replicates=3).opinions[:, 0], starts)


def test_normal_opinions_are_cut_off() -> None:
    drawn = simulate("deffuant", 20_000, "normal", steps=0).final[0]
    assert drawn.min() == 0.0
    assert drawn.max() == 1.0
    assert drawn.mean() == pytest.approx(0.5, abs=4 / 7 / np.sqrt(20_000))
    assert drawn.std() == pytest.approx(1 / 7, rel=0.02)


def test_labels_of_any_kind_are_accepted() -> None:
    named = nx.relabel_nodes(RING, {agent: f"person {agent}" for agent in RING})
    initial = np.linspace(0, 1, 20)
    np.testing.assert_array_equal(
        simulate("deffuant", named, initial, seed=4).final, simulate("deffuant", RING, initial, seed=4).final
    )


def test_a_network_by_name_is_drawn_once() -> None:
    found = simulate("deffuant", {"kind": "erdos-renyi", "p": 0.5}, n=30, steps=0, seed=3)
    again = simulate("deffuant", {"kind": "erdos-renyi", "p": 0.5}, n=30, steps=0, seed=3)
    np.testing.assert_array_equal(found.network.speakers, again.network.speakers)
    assert found.network.n == 30


def test_replicates_run_at_once_without_the_interpreter_lock() -> None:
    """While one thread is inside a kernel, another goes on: it counts, which it could not do under the lock."""
    simulate("deffuant", 1000, steps=1)
    counted, stop = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = counted
    simulate("deffuant", 1000, steps=20_000, record_every=20_000, threads=1)
    during = counted - before
    stop.set()
    counter.join()
    assert during > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *refused(__file__, "simulations"),
        ({"network": nx.empty_graph(3)}, "network with at least one edge"),
        ({"network": nx.empty_graph(0)}, "network|agent"),
        ({"initial": np.array([0.1, 0.2j])}, "initial must contain one number per agent"),
        ({"initial": np.ma.array([0.1, 0.2], mask=[True, False])}, "initial must contain one number per agent"),
        ({"model": "lorenz", "network": nx.cycle_graph(4), "meets_itself": True}, "on the complete graph"),
    ],
)
def test_bad_input_is_one_clear_error(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        simulate(**{"model": "deffuant", **options})  # type: ignore[arg-type]


# -- sweeps ------------------------------------------------------------------------------------------------


def test_a_sweep_is_the_simulations_it_stands_for() -> None:
    table = sweep("deffuant", {"epsilon": [0.1, 0.4], "mu": [0.2, 0.5]}, 30, steps=5, seed=3, replicates=2)
    assert list(table.columns) == ["model", "epsilon", "mu", "replicate", "bias", "diversity", "time", "stopped",
                                   "evidence"]  # fmt: skip
    assert len(table) == 8
    for _, row in table.iterrows():
        found = simulate("deffuant", 30, steps=5, seed=3, replicates=2, epsilon=row["epsilon"], mu=row["mu"])
        final = found.final[int(row["replicate"])]
        assert row["bias"] == pytest.approx(final.mean(), abs=1e-12)
        assert row["diversity"] == pytest.approx(final.std(), abs=1e-12)


def test_a_sweep_may_vary_schemes_and_measure_by_functions() -> None:
    table = sweep("deffuant", {"order": ["random", "permutation"]}, 10, steps=2, metrics={"top": np.max})
    assert table["order"].tolist() == ["random", "permutation"]
    assert table["top"].between(0, 1).all()


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({"epsilon": [0.1, -1]}, "epsilon must be"),
        ({"nonsense": [1]}, "no parameter 'nonsense'"),
        ({"epsilon": []}, "list of at least one value"),
        ({"epsilon": 0.1}, "list of at least one value"),
        ({"mu": [0.1]}, "both fixed and varied"),
    ],
)
def test_a_sweep_is_checked_before_its_first_run(over: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        sweep("deffuant", over, 10, mu=0.3)  # type: ignore[arg-type]


# -- Mesa --------------------------------------------------------------------------------------------------


def test_mesa_steps_give_the_same_opinions() -> None:
    initial = np.random.default_rng(1).random(20)
    model = ClassicOpinionModel("deffuant", RING, initial, seed=5, epsilon=0.4)
    for _ in range(6):
        model.step()
    found = simulate("deffuant", RING, initial, steps=6, seed=5, epsilon=0.4)
    np.testing.assert_array_equal(model.opinions, found.final[0])
    assert [agent.opinion for agent in model.agents] == found.final[0].tolist()
    assert model.steps == 6
    table = model.datacollector.get_model_vars_dataframe()
    np.testing.assert_allclose(table["bias"], found.opinions[0].mean(axis=1))
    by_agent = model.datacollector.get_agent_vars_dataframe()["opinion"].unstack()
    np.testing.assert_array_equal(by_agent.to_numpy(), found.opinions[0])


def test_opinions_of_a_mesa_model_cannot_be_written_to() -> None:
    model = ClassicOpinionModel("deffuant", 5)
    with pytest.raises(ValueError, match="read-only"):
        model.opinions[0] = 1.0


# -- one step ----------------------------------------------------------------------------------------------


def test_the_one_step_view_of_deffuant() -> None:
    found = transition("deffuant", [0.0, 0.0], [0.1, 0.9], epsilon=0.2, mu=[0.5, 0.5])
    assert found.values.tolist() == [[0.05], [0.0]]
    assert found.probability(np.array([0.05, 0.0])).tolist() == [1.0, 1.0]
    assert found.rest.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], [0.3]), r"before must be \(T,\)"),
        (([[0.1]], [0.3]), r"before must be \(T,\)"),
    ],
)
def test_shapes_of_the_one_step_view(arguments: tuple[object, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        transition("deffuant", *arguments)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="weights must have the same shape"):
        transition("deffuant", [0.1], [0.3], weights=[1.0, 2.0])
    with pytest.raises(SpecError, match="no parameter 'k'"):
        transition("deffuant", [0.1], [0.3], k=2)


def test_the_package_offers_it() -> None:
    assert osim.classic.simulate is simulate


def test_initial_opinions_in_the_one_step_view() -> None:
    found = transition("friedkin-johnsen", [0.5], [0.9], start=[0.1], susceptibility=0.5, self_weight=1.0)
    np.testing.assert_allclose(found.values, [[0.5 * 0.7 + 0.5 * 0.1]])
    with pytest.raises(SpecError, match="deffuant does not use initial opinions"):
        transition("deffuant", [0.5], [0.9], start=[0.1])
    with pytest.raises(SpecError, match="start must have the same shape as before"):
        transition("friedkin-johnsen", [0.5], [0.9], start=[0.1, 0.2])


def test_records_may_be_kept_in_half_the_memory() -> None:
    whole = simulate("deffuant", 50, steps=4, seed=2)
    half = simulate("deffuant", 50, steps=4, seed=2, dtype="float32")
    assert half.opinions.dtype == np.float32
    np.testing.assert_array_equal(half.opinions, whole.opinions.astype(np.float32))
    with pytest.raises(SpecError, match="float32"):
        simulate("deffuant", 50, steps=4, dtype="int8")


# -- what is easily got wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "order"), [("deffuant", "random"), ("deffuant", "permutation"), ("lorenz", None)])
def test_blocks_of_events_join_without_a_seam(name: str, order: str | None) -> None:
    """More agents than events are drawn ahead at a time: the compiled kernel still is the Python it is written in."""
    options = {} if order is None else {"order": order}
    one, other = (simulate(name, 1100, steps=2, seed=4, machine=machine, **options) for machine in (True, False))
    np.testing.assert_array_equal(one.opinions, other.opinions)


@pytest.mark.parametrize(
    ("gamma", "d_min", "span"), [(1, 1e-5, 1), (65, 1e-5, 1), (400, 1e-5, 1), (2, 1e-200, 1), (120, 1, 1000)]
)
def test_a_strong_bias_meets_the_nearest(gamma: float, d_min: float, span: float) -> None:
    """Whatever a power of a distance comes to: agent 0 has a twin, or one half as far as the others."""
    near = 0.0 if span == 1 else 500.0
    initial = np.array([0.0, near, 0.9 * span, span])
    network = Network.from_edges([(1, 0), (2, 0), (3, 0)], 4, directed=True)
    options = {"range": (0, span), "gamma": gamma, "d_min": d_min, "epsilon": span, "mu": 1.0, "isolates": "keep"}
    end = simulate("algorithmic-bias", network, initial, 1, replicates=50, **options).final[:, 0]
    assert (end == near).mean() == 1.0


@pytest.mark.parametrize("name", ["coda", "altafini", "lorenz", "biased-assimilation", "voter", "q-voter", "deffuant"])
def test_a_range_has_ends(name: str) -> None:
    with pytest.raises(SpecError, match="range must have finite ends"):
        simulate(name, 4, range=(-np.inf, np.inf))


def test_opinions_that_grow_beyond_all_numbers_are_an_error() -> None:
    with pytest.raises(SpecError, match="grown to infinity"), np.errstate(over="ignore", invalid="ignore"):
        simulate("activity-driven", 8, steps=50, K=1e308, activity=1)


def test_who_hears_nobody_is_not_moved_by_those_who_hear_it() -> None:
    edge = Network.from_edges([(0, 1)], 2, directed=True)
    found = simulate("deffuant", edge, [0.0, 1.0], 1, epsilon=1.0, isolates="keep", machine=False)
    assert found.final[0].tolist() == [0.0, 0.25]  # two pairs are drawn in a sweep of two agents
    assert found.scheme["sides"] == "one"
    with pytest.raises(SpecError, match="this network is directed"):
        simulate("deffuant", edge, [0.0, 1.0], 1, sides="two", isolates="keep")


def test_nobody_meets_itself_where_the_model_does_not_say_so() -> None:
    with pytest.raises(SpecError, match="in step 2 agent 1 meets itself"):
        simulate("coda", 3, pairs=[(0, 1), (1, 1)])
    assert simulate("lorenz", 3, pairs=[(1, 1)], machine=False).opinions.shape == (1, 2, 3)


def test_the_last_opinions_are_recorded_whatever_the_interval() -> None:
    whole = simulate("deffuant", 10, steps=7, seed=1)
    for every in (3, 7, 10):
        some = simulate("deffuant", 10, steps=7, seed=1, record_every=every)
        np.testing.assert_array_equal(some.opinions[0], whole.opinions[0, some.times])
        assert some.times[-1] == 7


def test_dimensions_of_opinions_are_measured_by_themselves() -> None:
    initial = np.random.default_rng(1).random((6, 2))
    table = sweep("deffuant", {"epsilon": [0.2]}, 6, initial, 3)
    final = simulate("deffuant", 6, initial, 3, epsilon=0.2).final[0]
    np.testing.assert_allclose(table[["bias[0]", "bias[1]"]].to_numpy()[0], final.mean(axis=0))
    model = ClassicOpinionModel("deffuant", 6, initial)
    np.testing.assert_allclose(model.datacollector.get_model_vars_dataframe()["bias"][0], initial.mean(axis=0))


def test_a_sweep_says_what_does_not_vary_and_takes_values_of_agents() -> None:
    table = sweep("deffuant", {"epsilon": [[0.1, 0.2], [0.3, 0.4]]}, 2, steps=3, seed=5, mu=0.3)
    assert table["epsilon"].tolist() == ["[0.1,0.2]", "[0.3,0.4]"]
    assert table["model"].unique().tolist() == ["deffuant"]
    assert table.attrs["parameters"] == {"mu": 0.3, "threshold": "<="}
    assert [table.attrs[name] for name in ("n", "steps", "seed", "replicates")] == [2, 3, 5, 1]


def test_pairs_need_no_network_that_joins_them() -> None:
    found = simulate("deffuant", nx.empty_graph(3), [0.0, 0.5, 1.0], pairs=[(0, 1)], machine=False)
    assert found.opinions.shape == (1, 2, 3)
    assert simulate("lorenz", nx.cycle_graph(4), steps=1).scheme["meets_itself"] is False


@pytest.mark.parametrize(("before", "messages"), [([2.0], [0.5]), ([np.nan], [0.5]), ([0.5], [np.nan]), ([0.5], [1.5])])
def test_the_one_step_view_takes_opinions_of_the_range(before: list[float], messages: object) -> None:
    with pytest.raises(SpecError, match="must be opinions from 0 to 1"):
        transition("deffuant", before, messages)  # type: ignore[arg-type]


def test_a_sweep_measures_against_the_start_and_refuses_first_what_it_cannot_measure() -> None:
    table = sweep("deffuant", {"epsilon": [0.1, 0.4]}, 10, steps=2, replicates=2, metrics=["internal_conflict"])
    for row, epsilon in enumerate((0.1, 0.1, 0.4, 0.4)):
        run = simulate("deffuant", 10, steps=2, replicates=2, epsilon=epsilon).opinions[row % 2]
        assert table["internal_conflict"][row] == pytest.approx(((run[-1] - run[0]) ** 2).sum())
    with pytest.raises(osim.MeasurementError, match="nonsense"):
        sweep("deffuant", {"epsilon": [0.1]}, 10, steps=10**12, metrics=["nonsense"])


@pytest.mark.parametrize("model", ["voter", "sznajd", "q-voter", "majority"])
def test_booleans_are_the_ends_of_the_range_in_discrete_models(model: str) -> None:
    start = np.arange(30) % 3 == 0
    for initial in (start, start.tolist()):
        found = simulate(model, "ring", initial, steps=4, seed=3, range=(-1, 2))
        same = simulate(model, "ring", np.where(start, 2.0, -1.0), steps=4, seed=3, range=(-1, 2))
        np.testing.assert_array_equal(found.opinions, same.opinions)
    with pytest.raises(SpecError, match="initial must contain one number per agent"):
        simulate("hegselmann-krause", n=30, initial=start, steps=4)
    masked = np.ma.array(start, mask=np.arange(30) == 4)
    with pytest.raises(SpecError, match="initial must contain one number per agent"):
        simulate(model, n=30, initial=masked, steps=4)


def test_classic_models_run_on_a_graph_of_igraph() -> None:
    start = np.linspace(0, 1, 12)
    found = simulate("deffuant", network=igraph.Graph.Ring(12), initial=start, steps=5, seed=2)
    np.testing.assert_array_equal(
        found.opinions, simulate("deffuant", network=nx.cycle_graph(12), initial=start, steps=5, seed=2).opinions
    )
