"""Sweeps over everything: values, points, their identity, and runs that depend on nothing but their point."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import opinionsim as osim
from opinionsim.classic import simulate, sweep
from opinionsim.classic.points import points_of, run_point, values_of
from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.metrics import METRICS
from tests.support.tables import refused

SMALL_WORLD = {"kind": "watts-strogatz", "k": 4, "p": 0.2}


def values(over: Any, name: str = "epsilon") -> list[Any]:
    """The values that an axis takes."""
    return list(sweep("deffuant", {name: over}, n=5, steps=0)[name])


# -- values ------------------------------------------------------------------------------------------------


def test_a_range_includes_its_ends_and_holds_the_decimals_that_are_written() -> None:
    assert values("0.05:0.5:0.05") == [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    assert values("0.5:0.1:-0.2") == [0.5, 0.3, 0.1]
    assert values("0.1:0.35:0.1") == [0.1, 0.2, 0.3]
    assert values("0:1:0.33333333333333337")[-1] == 1
    assert values("10:30:10", "n") == [10, 20, 30]


@given(st.integers(-1000, 1000), st.integers(1, 400), st.integers(1, 300), st.integers(0, 3), st.sampled_from([1, -1]))
def test_every_value_of_a_range_is_its_decimal(start: int, step: int, steps: int, places: int, sign: int) -> None:
    unit = Decimal(1).scaleb(-places)
    exact = [(start + sign * step * k) * unit for k in range(steps + 1)]
    found = values_of("x", f"{exact[0]}:{exact[-1]}:{sign * step * unit}")
    assert found == [float(each) for each in exact]


def test_numbers_are_spaced_evenly_or_logarithmically() -> None:
    assert values({"from": 10, "to": 1000, "number": 5, "scale": "log"}, "n") == [10, 32, 100, 316, 1000]
    assert values({"from": 0, "to": 0.3, "number": 4}) == [0, 0.1, 0.2, 0.3]
    assert values(np.linspace(0.1, 0.2, 2)) == [0.1, 0.2]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        *refused(__file__, "sweeps"),
        ({"epsilon": list(range(3000)), "mu": list(range(4000))}, "12000000 points make 12000000 runs"),
        ({"network": [SMALL_WORLD, "circle"]}, "at network=circle: .*circle"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_run_by_the_name_of_its_point(
    over: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        sweep("deffuant", over, SMALL_WORLD, n=None if "n" in over else 20, steps=10**12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["nonsense"]}, "unknown metric 'nonsense'"),
        (
            {"metrics": ["bias"], "model": "voter", "over": {"bias": [0.1, 0.2]}},
            "bias cannot be both a measure and a varied parameter",
        ),
        ({"metrics": ["group_divergence"], "initial": "normal", "model": "activity-driven"}, "range"),
        ({"until": "later"}, "until: must be the event"),
        ({"until": {"change": 0}}, "until"),
        ({"at": [5, 200]}, "at: must be whole numbers of steps from 0 to the limit of 100; got 200"),
        ({"at": {"log": 0}}, "log must be a whole number"),
        ({"network": 10, "over": {"network.k": [2]}}, "network.k needs a network given by name"),
        ({"initial": [0.1, 0.2], "over": {"initial.high": [0.3]}}, "initial.high needs a distribution given by name"),
    ],
)
def test_measures_and_ends_that_cannot_be_are_refused_before_the_first_run(
    options: dict[str, Any], message: str
) -> None:
    given = {"model": "deffuant", "over": {"n": [10]}, "steps": 100, **options}
    with pytest.raises(OpinionSimError, match=message):
        sweep(**given)


# -- axes --------------------------------------------------------------------------------------------------


def test_numbers_of_agents_networks_starts_and_ranges_are_swept() -> None:
    table = sweep("deffuant", {"n": [10, 30], "network.k": [2, 4]}, SMALL_WORLD, steps=3, replicates=2)
    assert list(zip(table["n"], table["network.k"], table["replicate"], strict=True)) == [
        (n, k, r) for n in (10, 30) for k in (2, 4) for r in (0, 1)
    ]
    assert "n" not in table.attrs
    row = table[(table["n"] == 30) & (table["network.k"] == 4) & (table["replicate"] == 0)].iloc[0]
    found = simulate("deffuant", SMALL_WORLD, n=30, steps=3)
    assert row["diversity"] == pytest.approx(found.final.std())

    table = sweep("voter", {"network": ["complete", {"kind": "ring", "k": 2}], "initial": ["uniform"]}, n=9, steps=1)
    assert table["network"].tolist() == ["complete", '{"k":2,"kind":"ring"}']
    assert table["initial"].tolist() == ["uniform", "uniform"]
    table = sweep("voter", {"initial.high": [0.1, 0.4]}, n=10, initial="share", steps=0, metrics={"high": np.mean})
    assert table["high"].tolist() == [0.1, 0.4]
    wide = sweep("deffuant", {"range": [[0, 1], [-1, 1]]}, n=50, steps=0, metrics={"low": np.min})
    assert (wide["low"] < 0).tolist() == [False, True]


def test_replicates_differ_in_networks_that_are_drawn_and_points_share_them() -> None:
    over = {"epsilon": [0.1, 0.3]}
    ties = sweep("deffuant", over, SMALL_WORLD, n=40, steps=0, replicates=3, metrics=["disagreement"])
    by_point = ties.pivot(index="replicate", columns="epsilon", values="disagreement")
    np.testing.assert_array_equal(by_point[0.1], by_point[0.3])
    given = nx.watts_strogatz_graph(40, 4, 0.2, seed=1)
    kept = sweep(
        "deffuant", over, given, initial=np.linspace(0, 1, 40), steps=0, replicates=3, metrics=["disagreement"]
    )
    assert kept["disagreement"].nunique() == 1
    redrawn = sweep(
        "deffuant", over, SMALL_WORLD, initial=np.linspace(0, 1, 40), steps=0, replicates=3, metrics=["disagreement"]
    )
    assert redrawn["disagreement"].nunique() == 3


@pytest.mark.parametrize("network", [None, SMALL_WORLD])
def test_a_run_depends_on_its_point_and_replicate_and_on_nothing_else(network: Any) -> None:
    metrics = ["bias", "disagreement", "effective_clusters", "esteban_ray"]
    options: dict[str, Any] = {"network": network, "steps": 4, "seed": 2, "metrics": metrics, "at": [0, 2]}
    whole = sweep("deffuant", {"epsilon": "0.1:0.5:0.1", "n": [20, 35]}, replicates=7, threads=2, **options)
    part = sweep("deffuant", {"n": [35], "epsilon": [0.5, 0.2]}, replicates=3, threads=1, **options)
    columns = ["n", "epsilon", "replicate"]
    joined = part.merge(whole, on=columns, suffixes=("", "_other"), validate="one_to_one")
    assert len(joined) == 6
    for name in part.columns.difference(columns):
        np.testing.assert_array_equal(joined[name], joined[f"{name}_other"])


@pytest.mark.long
def test_measures_of_many_runs_are_to_the_bit_those_of_each() -> None:
    names = [name for name in METRICS if name != "dip"]
    for network in (None, SMALL_WORLD, {"kind": "ring", "k": 4}):
        for model in ("deffuant", "voter"):
            (point,) = points_of(model, {"n": [33]}, network=network, steps=3, metrics=names)
            together = run_point(point, range(9), names)
            apart = [run_point(point, [replicate], names)[0] for replicate in range(9)]
            assert [repr(run) for run in together] == [repr(run) for run in apart]
            assert not any(run.error for run in together)


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "network"), [("deffuant", None), ("voter", SMALL_WORLD), ("holme-newman", SMALL_WORLD)]
)
def test_any_run_is_made_again_by_its_number(model: str, network: Any) -> None:
    options: dict[str, Any] = {"steps": 40, "until": "consensus", "seed": 6, "isolates": "keep"}
    table = sweep(model, {"n": [30, 50]}, network, replicates=4, metrics={"first": np.mean, "last": np.std}, **options)
    for row in table.itertuples():
        run = simulate(model, network, n=row.n, replicate=row.replicate, **options)
        assert (row.first, row.last) == (np.mean(run.opinions[0, -1]), np.std(run.opinions[0, -1]))
        assert row.time == (run.ended[0] if run.ended[0] >= 0 else 40)


def test_measures_on_the_way_are_those_of_a_run_that_is_recorded() -> None:
    table = sweep("deffuant", {"epsilon": [0.2]}, n=30, steps=9, seed=4, replicates=2, at={"log": 3})
    run = simulate("deffuant", n=30, steps=9, seed=4, replicates=2, epsilon=0.2)
    for step in (1, 3, 9):
        np.testing.assert_allclose(table[f"diversity@{step}"], run.opinions[:, step].std(axis=1))
    np.testing.assert_array_equal(table["diversity@9"], table["diversity"])
    assert table["time"].tolist() == [9, 9]
    assert not table["stopped"].any()


# -- identity ----------------------------------------------------------------------------------------------


def test_a_point_is_known_by_what_determines_its_numbers() -> None:
    def ids(**options: Any) -> list[str]:
        return [point.id for point in points_of("deffuant", {"mu": [0.5]}, **{"n": 10, **options})]

    usual = ids()
    assert ids(settings={"epsilon": 0.2}) == usual  # the default
    assert ids(network="complete", replicates=7, metrics=["bias"], at=[3]) == usual
    ring = nx.cycle_graph(10)
    assert ids(network=ring) == ids(network=np.asarray(nx.to_numpy_array(ring)))
    others = [
        ids(n=11), ids(seed=1), ids(steps=99), ids(initial="normal"), ids(network=ring), ids(range=(0, 2)),
        ids(settings={"epsilon": 0.3}), ids(settings={"order": "permutation"}), ids(initial=np.linspace(0, 1, 10)),
        ids(initial=np.linspace(0, 0.9, 10)), ids(settings={"epsilon": [0.2] * 10}),
    ]  # fmt: skip
    assert len({each for found in [usual, *others] for each in found}) == len(others) + 1


# -- memory and failures -----------------------------------------------------------------------------------


def test_opinions_are_forgotten_with_their_run() -> None:
    def peak(points: int, replicates: int) -> int:
        over = {"epsilon": {"from": 0.1, "to": 0.4, "number": points}}
        tracemalloc.start()
        try:
            sweep("deffuant", over, n=20_000, steps=1, replicates=replicates, threads=2)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few = peak(2, 5)
    # Final opinions of 20 times as many runs would be 32 MB.
    assert peak(10, 20) < few + 4e6 + 4e6


def test_a_run_that_fails_is_named() -> None:
    def picky(opinions: np.ndarray) -> float:
        if len(opinions) == 7:
            raise ValueError("seven")
        return 0.0

    with pytest.raises(SpecError, match="n=7, replicate 0: ValueError: seven"):
        sweep("deffuant", {"n": [5, 7]}, steps=1, metrics={"picky": picky})


def test_progress_counts_the_runs() -> None:
    seen: list[tuple[int, int]] = []
    sweep("deffuant", {"n": [5, 7]}, steps=1, replicates=3, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (6, 6)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_the_axes_of_a_diagram_are_columns() -> None:
    table = sweep("deffuant", {"epsilon": "0.1:0.3:0.1", "n": [10, 20]}, steps=2, replicates=2)
    data = osim.classic.phase_data(table, "epsilon", "n", "diversity")
    assert len(data.frame) == 6
