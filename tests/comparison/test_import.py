"""A table of people's opinions, taken in from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.specification import load_experiment
from tests.support.command import invoked, refused

TABLE = "who,before,after,post\nA,-2,-1,Cheap.\nB,1,1,Who pays?\nC,0,1,Cheap.\n"
MAPPING = """\
name: buses
person: who
rating: [before, after]
read: [post]
claims: {buses: {for: buses should be free of charge}}
"""


@pytest.fixture(autouse=True)
def _files() -> None:
    Path("table.csv").write_text(TABLE, encoding="utf-8")
    Path("mapping.yaml").write_text(MAPPING, encoding="utf-8")
    Path("agents.yaml").write_text("name: mine\nmodel: {name: scripted}\n", encoding="utf-8")


def test_a_record_of_people_gets_into_a_store() -> None:
    done = invoked("import", "table.csv", "mapping.yaml")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("3 persons in 3 runs of buses: sqlite:///results/buses.sqlite\n")
    assert "opinionsim table results/buses.sqlite --experiment buses" in done.stdout
    results = osim.load("results/buses.sqlite")
    assert sorted(results.opinions["value"]) == [-2, -1, 0, 1, 1, 1]
    assert set(results.runs["evidence"]) == {"human"}


def test_twins_get_a_specification_of_their_own() -> None:
    done = invoked(
        "import", "table.csv", "mapping.yaml", "--name", "fares", "--twins", "agents.yaml", "--store", "s.sqlite"
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-2:] == [
        "  opinionsim plan mine.yaml",
        "  opinionsim run mine.yaml --store s.sqlite",
    ]
    made = Path("mine.yaml").read_text(encoding="utf-8")
    assert made.startswith(
        "# Made by opinionsim import of table.csv, mapping.yaml and agents.yaml: to change it, edit these"
    )
    experiment = load_experiment("mine.yaml")
    assert experiment.spec.name == "mine"
    assert [cell.spec.interaction.kind for cell in experiment.cells] == ["recorded", "twins"]
    # The first run that somebody is asked in is shown, and who takes part is told as it is.
    shown = invoked("preview", "mine.yaml").stdout
    assert re.match(r"mine: run topic=buses, interaction=twins/0 \(\w{8}\), one of 6\n", shown)
    told = "Taking part: people on record | agents who play recorded people, 1 per run; initial opinions: those of"
    assert told in invoked("plan", "mine.yaml").stdout
    assert invoked("run", "mine.yaml", "--store", "s.sqlite").exit_code == 0
    # People have no memory and no model, which therefore are no conditions.
    table = invoked("table", "s.sqlite", "--kind", "self-report").stdout
    assert "\ninteraction  evidence  runs " in table
    results = osim.load("s.sqlite")
    assert sorted(results.runs["evidence"]) == ["human"] * 3 + ["scripted"] * 3


def test_only_a_specification_that_it_made_is_replaced() -> None:
    arguments = ("import", "table.csv", "mapping.yaml", "--twins", "agents.yaml", "--store", "s.sqlite")
    Path("mine.yaml").write_text("name: mine\n", encoding="utf-8")
    done = invoked(*arguments)
    assert done.exit_code == 2
    assert "error: mine.yaml already exists and was not made by this command; give another name" in done.stderr
    assert Path("mine.yaml").read_text(encoding="utf-8") == "name: mine\n"
    Path("mine.yaml").unlink()
    assert invoked(*arguments).exit_code == 0
    first = Path("mine.yaml").read_text(encoding="utf-8")
    Path("table.csv").write_text(TABLE + "D,2,2,Cheap.\n", encoding="utf-8")
    assert invoked(*arguments).exit_code == 0
    assert Path("mine.yaml").read_text(encoding="utf-8") != first


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("table.csv", TABLE.replace("after", "later"), "after"),
        ("table.csv", TABLE.replace("-1", "7"), "7"),
        ("mapping.yaml", MAPPING.replace("person: who", "persons: who"), "persons"),
        ("table.csv", None, "table.csv"),
        ("mapping.yaml", None, "unknown panel mapping 'mapping.yaml'"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_written(file: str, text: str | None, problem: str) -> None:
    if text is None:
        Path(file).unlink()
    else:
        Path(file).write_text(text, encoding="utf-8")
    assert problem in refused("import", "table.csv", "mapping.yaml")
    assert not Path("results").exists()


def test_other_fields_of_twins_are_refused() -> None:
    Path("agents.yaml").write_text("name: mine\nsweep: {}\n", encoding="utf-8")
    done = invoked("import", "table.csv", "mapping.yaml", "--twins", "agents.yaml")
    assert done.exit_code == 2
    assert "'sweep' of twins comes from the record of people" in done.stderr
    assert not Path("mine.yaml").exists()
