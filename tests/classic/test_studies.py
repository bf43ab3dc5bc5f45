"""Sweeps and agents of equations in reports, archives and lists of experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim import watching
from opinionsim.classic.sweeps import load_sweep, run_sweep
from opinionsim.report import history, study
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.archives import check_archived
from tests.support.sweeps import DIAGRAM


def test_a_classic_sweep_has_its_figure_and_its_table(tmp_path: Path) -> None:
    store = str(tmp_path / "a.sqlite")
    spec = {"name": "voters", "replicates": 2, "model": {"classic": "voter"}, "interaction": {"steps": 5}}
    measured = {"measurement": {"metrics": ["bias"]}, "sweep": {"population.size": [6, 12]}}
    run_sweep(load_sweep(spec | measured), store)
    told = study(osim.load(store))
    assert [each.name for each in told.figures] == ["phase"]
    (table,) = told.tables
    means = osim.load(store).units.groupby("n")["bias"].mean()
    assert table.frame["bias"].tolist() == pytest.approx(means.tolist())
    assert (told.shifts, told.samples, len(told.cost)) == ((), (), 0)
    assert any("voter" in each.lower() for each in told.references)


@pytest.mark.usefixtures("without_figures")
def test_equations_have_no_temperature_and_are_of_no_model_family(tmp_path: Path) -> None:
    compared = {
        "name": "both",
        "population": {"size": 4, "initial_opinions": "uniform"},
        "topic": {"name": "t-rex"},
        "interaction": {"kind": "dyadic", "steps": 4},
        "measurement": {"classifier": "lexicon"},
        "sweep": {"model": [{"name": "scripted"}, {"classic": "voter"}]},
    }
    results = osim.run(load_experiment(compared), f"sqlite:///{tmp_path / 'both.sqlite'}")
    told = study(results)
    assert told.statements
    assert told.history.reach == ()
    of_models = results.runs.index[results.runs["evidence"] == "scripted"]
    assert {each.place.partition(",")[0] for each in told.shifts} <= {f"run {row}" for row in of_models}
    assert "temperature" not in told.methods
    assert any("(scripted)" in each for each in history(results).reach)


@pytest.mark.usefixtures("without_figures")
def test_the_archive_of_a_classic_sweep_is_verified_made_again_and_cites_its_models(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'phases.sqlite'}"
    run_sweep(load_sweep({**DIAGRAM, "replicates": 2}), store=url)
    check_archived(osim.load(url), tmp_path / "archive")
    again = load_sweep(tmp_path / "archive" / "specification.yaml")
    assert [point.id for point in again.points] == [point.id for point in load_sweep(DIAGRAM).points]
    cited = (tmp_path / "archive" / "references.bib").read_text()
    assert "doi = {10.1142/S0219525900000078}" in cited
    assert r"author = {Deffuant, Guillaume and Neau, David and Amblard, Fr{\'{e}}d{\'{e}}ric and" in cited


def test_a_classic_sweep_is_listed_without_runs(tmp_path: Path) -> None:
    sweep = load_sweep(
        {
            "name": "points",
            "replicates": 3,
            "model": {"classic": "deffuant"},
            "population": {"size": 12},
            "interaction": {"steps": 10},
            "sweep": {"model.parameters.epsilon": [0.1, 0.5], "model.parameters.mu": [0.2, 0.5]},
        }
    )
    url = str(tmp_path / "points.sqlite")
    run_sweep(sweep, url)
    with open_store(url, write=False) as reader:
        (listed,) = watching.experiments(reader)["experiments"]
        told = watching.experiment(reader, "points")
    assert (listed["units"], listed["over"], listed["counts"]["complete"]) == (True, True, 12)
    assert "Equation" in listed["stamp"]
    assert (told["units"], told["runs"]) == (True, [])
    assert [(axis["name"], axis["levels"]) for axis in told["axes"]] == [
        ("epsilon", ["0.1", "0.5"]),
        ("mu", ["0.2", "0.5"]),
    ]
    assert told["counts"] == listed["counts"]
