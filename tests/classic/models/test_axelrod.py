"""Axelrod's culture: starts, rest, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from opinionsim.classic import ClassicOpinionModel, simulate, sweep, transition
from opinionsim.errors import SpecError
from opinionsim.networks import Network
from tests.support.examples import examples

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("order", "network"), [("random", 9), ("permutation", "lattice"), ("sequential", "weighted"), ("synchronous", 9)]
)
def test_machine_code_and_python_give_the_same_bytes(order: str, network: Any) -> None:
    if network == "weighted":
        network = Network.from_edges([(a, (a + gap) % 9) for a in range(9) for gap in (1, 2)], 9, np.arange(18.0))
    options: dict[str, Any] = {
        "n": 9,
        "steps": 60,
        "seed": 3,
        "features": 3,
        "traits": 3,
        "order": order,
        "until": "frozen",
    }
    fast = simulate("axelrod", network, replicates=2, **options)
    slow = simulate("axelrod", network, replicates=2, machine=False, **options)
    assert fast.opinions.tobytes() == slow.opinions.tobytes()
    assert fast.ended.tolist() == slow.ended.tolist()
    assert len(fast.times) > 3


def test_starts_are_drawn_evenly_and_are_those_of_the_replicate() -> None:
    options = {"n": 2000, "steps": 0, "features": 3, "traits": 7, "seed": 4}
    start = simulate("axelrod", replicates=3, **options).opinions[:, 0]
    assert start.shape == (3, 2000, 3)
    counts = np.stack([np.bincount(start[..., d].ravel().astype(int), minlength=7) for d in range(3)])
    assert ((counts - 6000 / 7) ** 2 / (6000 / 7)).sum() < 42.4, "1 in 1000, of 18 degrees of freedom"
    again = simulate("axelrod", replicate=2, **options).opinions[0, 0]
    np.testing.assert_array_equal(again, start[2])


def _at_rest(cultures: np.ndarray, network: Network) -> bool:
    """By the definition: no two that can meet share some features, but not all."""
    size = cultures.shape[1]
    if network.complete:
        pairs = [(a, b) for a in range(network.n) for b in range(a)]
    else:
        weights = np.ones(network.speakers.size) if network.weights is None else network.weights
        met = weights > 0
        pairs = list(zip(network.speakers[met].tolist(), network.listeners[met].tolist(), strict=True))
    return not any(0 < (cultures[a] == cultures[b]).sum() < size for a, b in pairs)


edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda e: e[0] < e[1]), min_size=1, unique=True)
cultures = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=6, max_size=6)


@examples(60)
@given(cultures, st.none() | edges, st.booleans())
def test_rest_is_that_of_the_definition(given_cultures: list[list[int]], ties: Any, weighted: bool) -> None:
    network = Network.of(6)
    if ties is not None:
        weights = np.arange(len(ties)) % 2 if weighted else np.ones(len(ties))
        heard = np.bincount(np.ravel(ties), np.repeat(weights, 2), 6)
        assume((heard[np.unique(ties)] > 0).all())
        network = Network.from_edges(ties, 6, weights if weighted else None)
    options = {"features": 3, "traits": 4, "until": "frozen", "isolates": "keep", "machine": False}
    found = simulate("axelrod", network, given_cultures, 0, **options)
    assert (found.ended[0] == 0) == _at_rest(np.array(given_cultures), network)


def test_runs_end_at_rest_and_not_before() -> None:
    for network in (Network.of(30), "lattice"):
        found = simulate(
            "axelrod", network, n=30, steps=5000, seed=5, replicates=8, until="frozen", features=3, traits=6
        )
        assert (found.ended > 0).all()
        for run, end in zip(found.opinions, found.ended, strict=True):
            assert _at_rest(run[-1], found.network)
            # Looking costs less than meeting, so that the end may be noticed a little after it came.
            rest = next(place for place, each in enumerate(run) if _at_rest(each, found.network))
            assert rest <= end <= 1.2 * rest + 10
            assert (run[rest:] == run[rest]).all()


def test_one_feature_is_never_shared_in_part() -> None:
    found = simulate("axelrod", "lattice", n=64, steps=50, features=1, traits=3, until="frozen")
    assert found.ended[0] == 0
    assert found.metrics(["partial_overlap"])["partial_overlap"][0] == 0
    still = simulate("axelrod", "lattice", n=64, steps=50, features=1, traits=3)
    np.testing.assert_array_equal(still.final[0], still.opinions[0, 0])


def test_measures_of_sweeps_and_of_a_mesa_model() -> None:
    options = {"n": 25, "steps": 20, "features": 3, "traits": 3, "replicates": 2}
    table = sweep("axelrod", {"noise": [0.0, 0.1]}, "lattice", metrics=["regions", "largest_region", "bias"], **options)
    assert {"regions", "largest_region", "bias[0]", "bias[2]"} <= set(table.columns)
    run = simulate("axelrod", "lattice", **options).metrics(["regions"])["regions"]
    assert table["regions"].tolist()[:2] == run.tolist()
    model = ClassicOpinionModel("axelrod", "lattice", n=25, features=3, traits=3)
    model.step()
    assert model.opinions.shape == (25, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": np.zeros(6)}, r"must contain 3 traits \(features\) for each of the 6 agents.*shape \(6,\)"),
        ({"initial": np.zeros((6, 2))}, r"must contain 3 traits \(features\) for each of the 6 agents.*shape \(6, 2\)"),
        ({"initial": np.full((6, 3), 0.5)}, r"traits must be whole numbers; agent 0 has \[0.5"),
        ({"initial": np.full((6, 3), 4)}, "from 0 to 3; agent 0 has"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        simulate("axelrod", 6, **{"features": 3, "traits": 4, **options})


def test_the_transition_takes_cultures_of_the_features_that_are_set() -> None:
    with pytest.raises(SpecError, match=r"must be \(T, features\), \(T, 3\); got shapes \(1, 2\)"):
        transition("axelrod", [[0, 1]], [[0, 1]], features=3)
    with pytest.raises(SpecError, match="messages must be opinions from 0 to 3; got 4"):
        transition("axelrod", [[0, 1]], [[0, 4]], features=2, traits=4)
