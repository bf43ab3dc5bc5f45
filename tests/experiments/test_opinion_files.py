"""Opinions of classic sweeps, kept as Parquet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.experiments import SweepProgress, load_sweep, run_sweep
from tests._editing import edit

SPEC: dict[str, Any] = {
    "name": "kept",
    "seed": 5,
    "replicates": 3,
    "model": {"classic": "deffuant", "parameters": {"mu": 0.4}},
    "population": {"size": 20},
    "interaction": {"steps": 60, "until": "frozen"},
    "measurement": {"metrics": ["diversity"], "at": [2, 10]},
    "sweep": {"model.parameters.epsilon": [0.2, 0.6], "interaction.network": ["complete", "ring"]},
}


#: Of another axis.
OTHER = {**SPEC, "sweep": {"model.parameters.mu": [0.1]}, "model": {"classic": "deffuant"}}


def spec(**changes: Any) -> dict[str, Any]:
    return {**SPEC, **changes}


def kept(folder: str = "opinions") -> pd.DataFrame:
    """The opinions of a folder, sorted, with lists as arrays."""
    found = pd.read_parquet(folder).sort_values(["epsilon", "network", "replicate", "ended", "step"])
    return found.assign(opinions=[np.stack(each) for each in found["opinions"]]).reset_index(drop=True)


def test_opinions_are_those_of_each_run() -> None:
    summary = run_sweep(load_sweep(SPEC), "sweep.sqlite", opinions="opinions")
    found = kept()
    assert list(found.columns) == ["model", "epsilon", "network", "point", "replicate", "step", "ended", "opinions"]
    assert len(found) == 4 * 3 * 3
    assert summary.frame["stopped"].any()
    for epsilon, network, replicate, time in summary.frame[["epsilon", "network", "replicate", "time"]].to_numpy():
        run = osim.classic.simulate(
            "deffuant", network=network, n=20, steps=60, until="frozen", seed=5, replicate=replicate,
            epsilon=epsilon, mu=0.4,
        )  # fmt: skip
        own = found.query("epsilon == @epsilon and network == @network and replicate == @replicate")
        assert own[["step", "ended"]].to_numpy().tolist() == [[2, False], [10, False], [time, True]]
        np.testing.assert_array_equal(np.stack(own["opinions"]), run.opinions[0, [2, 10, -1]])


def test_opinions_of_several_dimensions_are_lists_of_lists() -> None:
    opinions = np.random.default_rng(1).random((20, 3)).tolist()
    given = spec(population={"initial_opinions": opinions}, interaction={"steps": 5}, measurement={"metrics": ["bias"]},
                 sweep={"model.parameters.epsilon": [0.2, 2.0]})  # fmt: skip
    run_sweep(load_sweep(given), opinions="opinions")
    found = pd.read_parquet("opinions")
    assert np.stack([np.stack(each) for each in found["opinions"]]).shape == (6, 20, 3)
    run = osim.classic.simulate("deffuant", initial=opinions, steps=5, seed=5, replicates=3, epsilon=0.2, mu=0.4)
    own = found[found["epsilon"] == 0.2].sort_values("replicate")
    np.testing.assert_array_equal(np.stack([np.stack(each) for each in own["opinions"]]), run.final)


def test_what_is_missing_is_carried_out_and_nothing_twice() -> None:
    run_sweep(load_sweep(spec(replicates=2)), "sweep.sqlite")
    first = run_sweep(load_sweep(SPEC), "sweep.sqlite", opinions="opinions")
    assert (first.progress.already, first.progress.made) == (0, 12)
    whole = kept()
    again = run_sweep(load_sweep(SPEC), "sweep.sqlite", opinions="opinions")
    assert (again.progress.already, again.progress.made) == (12, 0)
    # A row that was lost, a file that was lost, and a process that ended in the middle of a file.
    edit("sweep.sqlite", "DELETE FROM points WHERE replicate = 1")
    lost, *_ = sorted(Path("opinions").glob("*.parquet"))
    lost.rename(lost.with_name(f".{lost.name}.part"))
    healed = run_sweep(load_sweep(SPEC), "sweep.sqlite", opinions="opinions")
    assert healed.progress.made == 6
    pd.testing.assert_frame_equal(kept(), whole)
    more = run_sweep(load_sweep(spec(replicates=5)), "sweep.sqlite", opinions="opinions", threads=1)
    assert more.progress.made == 8
    run_sweep(load_sweep(spec(replicates=5)), opinions="elsewhere", threads=2)
    pd.testing.assert_frame_equal(kept(), kept("elsewhere"))


@pytest.mark.parametrize("initial", [{"kind": "uniform", "dimensions": 2}, "uniform"])
def test_vectors_and_traits_are_kept_and_found_again(initial: Any) -> None:
    model = "deffuant" if isinstance(initial, dict) else "axelrod"
    given = {
        "name": "vectors",
        "replicates": 2,
        "model": {"classic": model},
        "population": {"size": 9, "initial_opinions": initial},
        "interaction": {"steps": 3},
        "measurement": {"metrics": ["regions"]},
    }
    if model == "deffuant":
        given["measurement"] = {"metrics": ["bias", "diversity"], "at": [1]}
    first = run_sweep(load_sweep(given), "v.sqlite", opinions="opinions")
    again = run_sweep(load_sweep(given), "v.sqlite", opinions="opinions")
    assert (first.progress.made, again.progress.made) == (2, 0)
    run = osim.classic.simulate(model, n=9, initial=initial, steps=3, replicates=2)
    found = pd.read_parquet("opinions").query("ended").sort_values("replicate")
    np.testing.assert_array_equal(np.stack([np.stack(each) for each in found["opinions"]]), run.final)
    mixed = {**given, "sweep": {"population.initial_opinions.dimensions": [1, 2]}}
    if model == "deffuant":
        with pytest.raises(osim.SpecError, match="one and of several dimensions"):
            run_sweep(load_sweep(mixed), opinions="others")


def test_values_between_whole_ones_are_added_and_other_settings_refused() -> None:
    whole = spec(sweep={"model.parameters.epsilon": [1, 2], "population.range": [[0, 1], [0, 2]]})
    more = spec(sweep={"model.parameters.epsilon": [0.5, 1, 2], "population.range": [[0, 1], [0, 2]]})
    run_sweep(load_sweep(whole), "sweep.sqlite", opinions="opinions")
    Path("opinions/.notes").write_text("an editor's")
    assert run_sweep(load_sweep(more), "sweep.sqlite", opinions="opinions").progress.made == 6
    assert len(pd.read_parquet("opinions")) == 6 * 3 * 3
    for change, told in (
        ({"seed": 6}, "seed was 5 and is 6"),
        ({"interaction": {"steps": 70}}, "steps was 60 and is 70"),
    ):
        with pytest.raises(osim.SpecError, match=told):
            run_sweep(load_sweep({**more, **change}), opinions="opinions")


def test_a_run_that_fails_keeps_none() -> None:
    growing = {
        "name": "growing",
        "model": {"classic": "activity-driven", "parameters": {"activity": 1}},
        "population": {"size": 8},
        "interaction": {"steps": 50},
        "sweep": {"model.parameters.K": [1, 1e308, 2]},
    }
    assert run_sweep(load_sweep(growing), opinions="opinions").progress.failed == 1
    assert sorted(pd.read_parquet("opinions")["K"]) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda folder: folder.write_text("mine"), "is a file; give a folder"),
        (lambda folder: (folder.mkdir(), (folder / "notes.txt").write_text("mine")), "holds 'notes.txt'"),
        (lambda folder: (folder.parent / "opinions").symlink_to("/proc/nowhere"), "cannot be written"),
        (lambda folder: (folder.mkdir(), (folder / "x.parquet").write_text("torn")), "x.parquet cannot be read"),
        (
            lambda folder: run_sweep(load_sweep(spec(measurement={"metrics": ["bias"], "at": [3]})), opinions=folder),
            "of another sweep: ",
        ),
        (lambda folder: run_sweep(load_sweep(OTHER), opinions=folder), "of another sweep: "),
    ],
)  # fmt: skip
def test_a_folder_of_something_else_is_refused_before_the_first_run(made: Any, error: str) -> None:
    made(Path("opinions"))
    before = set(Path().rglob("*"))
    with pytest.raises(osim.errors.OpinionSimError, match=error):
        run_sweep(load_sweep(SPEC), "sweep.sqlite", opinions="opinions")
    assert set(Path().rglob("*")) == before


def test_one_run_at_a_time_writes_into_a_folder() -> None:
    sweep = load_sweep(SPEC)

    def second(progress: SweepProgress) -> None:
        with pytest.raises(osim.errors.StoreError, match="the folder opinions is in use by another run"):
            run_sweep(sweep, "second.sqlite", opinions="opinions")
        assert not Path("second.sqlite").exists()

    run_sweep(sweep, "first.sqlite", opinions="opinions", watch=second)
    assert len(kept()) == 4 * 3 * 3
    run_sweep(sweep, "second.sqlite", opinions="opinions")
    assert len(kept()) == 4 * 3 * 3
    assert {path.suffix for path in Path("opinions").iterdir()} == {".parquet"}


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(osim.SpecError, match=r"opinionsim\[parquet\]"):
        run_sweep(load_sweep(SPEC), opinions="opinions")
