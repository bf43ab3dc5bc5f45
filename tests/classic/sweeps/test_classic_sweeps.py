"""Classic sweeps into a store: specifications, resuming, extending, failing, planning."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import opinionsim as osim
from opinionsim.classic.sweeps import SweepProgress, load_sweep, plan_sweep, run_sweep
from opinionsim.errors import SpecError
from opinionsim.store import UnitRow
from tests.support.running import changed
from tests.support.sweeps import DIAGRAM, rows


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sweep.sqlite'}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[UnitRow]:
    """The runs of the sweep, carried out on one thread."""
    url = str(tmp_path_factory.mktemp("whole") / "sweep.sqlite")
    assert run_sweep(load_sweep(DIAGRAM), url, threads=1).complete
    return rows(url)


# -- results -----------------------------------------------------------------------------------------------


def test_runs_are_kept_as_measures_alone(url: str) -> None:
    summary = run_sweep(load_sweep(DIAGRAM), url)
    assert summary.progress == SweepProgress(56, 0, 56, 0)
    results = osim.load(url)
    frame = results.units
    assert list(frame.columns) == [
        "model", "epsilon", "n", "replicate", "diversity", "disagreement", "diversity@4", "disagreement@4", "time",
        "stopped", "error", "evidence",
    ]  # fmt: skip
    assert frame[["epsilon", "n", "replicate"]].drop_duplicates().shape == (56, 3)
    assert all(getattr(results, name).empty for name in ("runs", "agents", "turns", "opinions", "edges", "calls"))
    (row,) = frame[(frame["epsilon"] == 0.3) & (frame["n"] == 30) & (frame["replicate"] == 0)].to_dict("records")
    network = {"kind": "watts-strogatz", "k": 4, "p": 0.1}
    run = osim.classic.simulate("deffuant", network, n=30, steps=12, seed=3, mu=0.3, epsilon=0.3)
    assert row["diversity@4"] == pytest.approx(run.opinions[0, 4].std())
    assert row["diversity"] == pytest.approx(run.final[0].std())
    # In memory the same.
    pd.testing.assert_frame_equal(run_sweep(load_sweep(DIAGRAM)).frame, frame)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_byte(url: str, whole: list[UnitRow], threads: int) -> None:
    run_sweep(load_sweep(DIAGRAM), url, threads=threads)
    assert rows(url) == whole


# -- resuming and extending --------------------------------------------------------------------------------


def test_a_sweep_that_is_there_is_not_repeated(url: str) -> None:
    run_sweep(load_sweep(DIAGRAM), url)
    assert run_sweep(load_sweep(DIAGRAM), url).progress == SweepProgress(56, 56, 0, 0)


def test_a_sweep_that_is_stopped_goes_on(url: str, whole: list[UnitRow]) -> None:
    seen: list[SweepProgress] = []
    first = run_sweep(load_sweep(DIAGRAM), url, threads=1, watch=seen.append, stopping=lambda: seen[-1].made > 0)
    assert first.stopped
    assert 0 < first.progress.made < 56
    assert len(rows(url)) == first.progress.made
    second = run_sweep(load_sweep(DIAGRAM), url, threads=2)
    assert second.complete
    assert second.progress.already == first.progress.made
    assert rows(url) == whole


def test_replicates_values_and_measures_extend_a_sweep(url: str, whole: list[UnitRow]) -> None:
    run_sweep(load_sweep(changed(DIAGRAM, replicates=2)), url)
    smaller = {**DIAGRAM["sweep"], "population.size": [20]}
    fewer = changed(DIAGRAM, measurement={"metrics": ["diversity"]}, sweep=smaller)
    more = run_sweep(load_sweep(fewer), url)
    assert more.progress == SweepProgress(28, 8, 20, 0)
    full = run_sweep(load_sweep(DIAGRAM), url)
    # The 20 runs without all measures are measured again.
    assert full.progress == SweepProgress(56, 16, 40, 0)
    assert rows(url) == whole
    results = osim.load(url)
    assert (results.design, results.designs) == (1, (1, 2))
    assert len(osim.load(url, design=2).units) == 28


def test_fewer_replicates_hide_nothing(url: str) -> None:
    run_sweep(load_sweep(DIAGRAM), url)
    summary = run_sweep(load_sweep(changed(DIAGRAM, replicates=2)), url)
    assert summary.complete
    assert len(summary.frame) == 56


# -- failures ----------------------------------------------------------------------------------------------

GROWING = {
    "name": "growing",
    "replicates": 3,
    "model": {"classic": "activity-driven", "parameters": {"activity": 1}},
    "population": {"size": 8},
    "interaction": {"steps": 50},
    "sweep": {"model.parameters.K": [1, 1e308, 2]},
}


def test_a_run_that_fails_stops_its_point_only_and_is_tried_again(url: str) -> None:
    summary = run_sweep(load_sweep(GROWING), url)
    assert not summary.complete
    assert not summary.stopped
    assert list(summary.errors) == ["K=1e+308"]
    assert "grown to infinity" in summary.errors["K=1e+308"]
    frame = summary.frame
    assert frame[frame["K"] != 1e308]["diversity"].notna().all()
    assert frame[frame["K"] != 1e308]["error"].eq("").all()
    assert frame[frame["K"] == 1e308]["diversity"].isna().all()
    again = run_sweep(load_sweep(GROWING), url)
    assert again.progress.already == 6
    assert again.progress.failed == again.progress.made > 0


# -- specifications ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replicates": 0}, "replicates: must be at least 1"),
        ({"model": {"classic": "defuant"}}, "model.classic: .*did you mean deffuant"),
        ({"model": {"classic": "voter", "parameters": {"mu": 1}}}, "model.parameters.mu: voter has no parameter 'mu'"),
        ({"population": {"size": 1}}, "population.size: must be at least 2"),
        ({"interaction": {"until": "later"}}, "interaction.until: must be the event .* valid: frozen"),
        ({"interaction": {"until": {"change": 0}}}, "interaction.until: change must be a number above 0"),
        ({"interaction": {"kind": "dyadic"}}, "interaction.kind: unknown field"),
        ({"measurement": {"metrics": ["nonsense"]}}, r"measurement.metrics\[0\]: unknown metric 'nonsense'"),
        ({"measurement": {"metrics": ["time"]}}, r"measurement.metrics\[0\]: time is a column of every sweep"),
        ({"measurement": {"at": [13], "metrics": ["bias"]}}, "measurement.at: must be whole numbers of steps"),
        ({"sweep": {"model.parameters.epsilon": "0:1:0"}}, "sweep.model.parameters.epsilon: .*does not end"),
        ({"sweep": {"model.parameters.eps": [1]}}, "sweep.model.parameters.eps: deffuant has no parameter 'eps'"),
        ({"sweep": {"topic.framing": ["truth"]}}, "sweep.topic.framing: cannot be swept; valid: model.parameters.NAME"),
        ({"sweep": {"population.size": [20, 3]}}, "sweep: at n=3: .*k"),
        ({"sweep": {"interaction.network.k": [2, 3]}}, "sweep: at network.k=3: "),
        ({"sweep": {"interaction.network": ["ring", {"kind": "ring"}]}}, "has the same runs as that at network=ring"),
    ],
)
def test_errors_name_file_line_and_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump({**DIAGRAM, "population": {"size": 20}, **change}), encoding="utf-8")
    with pytest.raises(SpecError, match=rf"sweep.yaml:\d+: .*{message}") as error:
        load_sweep(file)
    line = int(str(error.value).split(":")[1])
    field = next(iter(change))
    assert (
        file.read_text(encoding="utf-8").splitlines()[line - 1].strip(" -").startswith((field, *_keys(change[field])))
    )


def _keys(value: Any) -> list[str]:
    """Keys and texts in a value, at any depth."""
    if isinstance(value, dict):
        return [*value, *(key for child in value.values() for key in _keys(child))]
    return [str(child) for child in value] if isinstance(value, list) else []


def test_a_sweep_is_no_experiment_and_says_who_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump(DIAGRAM), encoding="utf-8")
    with pytest.raises(osim.SpecError, match=r"sweep\.yaml:1: study: this is a study of kind 'scan'"):
        osim.load_experiment(file)


def test_a_network_file_lies_beside_its_specification(tmp_path: Path) -> None:
    (tmp_path / "ties.txt").write_text("0 1\n1 2\n2 3\n", encoding="utf-8")
    network = {"kind": "file", "path": "ties.txt"}
    interaction = {"network": network, "steps": 5}
    spec = {**DIAGRAM, "interaction": interaction, "sweep": {"model.parameters.epsilon": [0.2, 0.4]}}
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    first = load_sweep(file)
    assert {point.n for point in first.points} == {4}
    # By content: another file of the name is another network.
    (tmp_path / "ties.txt").write_text("0 1\n1 2\n0 3\n", encoding="utf-8")
    assert {point.id for point in first.points}.isdisjoint(point.id for point in load_sweep(file).points)


def test_distributions_of_initial_opinions_vary_by_their_fields() -> None:
    start = {"kind": "share", "high": 0.5}
    axes = {"population.initial_opinions.high": [0.2, 0.6]}
    given = {"name": "starts", "model": {"classic": "voter"}, "population": {"size": 10, "initial_opinions": start},
             "interaction": {"steps": 0}, "measurement": {"metrics": ["bias"]}, "sweep": axes}  # fmt: skip
    found = run_sweep(load_sweep(given), "s.sqlite").frame
    assert list(zip(found["initial.high"], found["bias"].round(12), strict=True)) == [(0.2, 0.2), (0.6, 0.6)]


def test_values_are_overridden_by_path() -> None:
    found = load_sweep(DIAGRAM, ["sweep.population.size=[10]", "interaction.steps=5", "seed=4"])
    assert {(point.n, point.steps, point.seed) for point in found.points} == {(10, 5, 4)}


# -- plans -------------------------------------------------------------------------------------------------


def test_a_plan_counts_what_is_missing_and_writes_nothing(url: str, tmp_path: Path) -> None:
    plan = plan_sweep(load_sweep(DIAGRAM), url, threads=2)
    assert (plan.points, plan.runs, plan.missing) == (8, 56, 56)
    assert list(tmp_path.iterdir()) == []
    run_sweep(load_sweep(changed(DIAGRAM, replicates=3)), url)
    assert plan_sweep(load_sweep(DIAGRAM), url).missing == 32


def test_a_plan_grows_with_steps_and_agents() -> None:
    one = {"model": {"classic": "voter"}, "interaction": {"steps": 20_000}, "replicates": 50, "name": "voters"}
    small = plan_sweep(load_sweep({**one, "population": {"size": 1000}}), threads=1)
    large = plan_sweep(load_sweep({**one, "population": {"size": 4000}}), threads=1)
    began = time.process_time()
    run_sweep(load_sweep({**one, "population": {"size": 1000}, "replicates": 2}), threads=1)
    taken = (time.process_time() - began) * 25
    assert taken / 5 < small.seconds < taken * 5
    assert 2 < large.seconds / small.seconds < 8
