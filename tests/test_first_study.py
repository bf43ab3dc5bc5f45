"""From an empty folder to an archive that is checked, by the commands that a new study's README names."""

from __future__ import annotations

import os
import runpy
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.foundation.data import data_folder
from opinionsim.planning import preview
from opinionsim.specification import load_experiment
from tests.support.first_study import KINDS, commands

COMMANDS = ["plan", "preview", "run", "table", "plot", "report", "export", "verify"]
_CALLS = {"dyads": 1440, "structure": 432, "classic": 680, "people": 120, "quickstart": 480}


def _opinionsim(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, f"opinionsim {arguments}\n{done.output}"
    return done.output


def _made(kind: str) -> tuple[Path, list[list[str]]]:
    """A new study, in whose folder the test goes on, and the commands of its README."""
    made = _opinionsim("new", "town", "--from", kind)
    folder = Path("town").absolute()
    assert {str(path) for path in Path("town").iterdir()} <= set(made.split())
    os.chdir(folder)
    steps = commands(folder)
    assert [words[0] for words in steps if words[0] != "import"] == COMMANDS
    assert all(f"opinionsim {' '.join(words)}" in made for words in steps[:3])
    return folder, steps


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_study_can_be_looked_at_before_it_runs(kind: str) -> None:
    _, steps = _made(kind)
    before = steps[: [words[0] for words in steps].index("run")]
    output = {words[0]: _opinionsim(*words) for words in before}
    assert f"{_CALLS[kind]:,}" in output["plan"]
    assert "[user]" in output["preview"]


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["classic", "quickstart", "structure"])  # README.md is of dyads, a wheel's of people.
def test_every_command_of_a_new_study_works_as_it_stands(kind: str) -> None:
    folder, steps = _made(kind)
    output = {words[0]: _opinionsim(*words) for words in steps}
    assert f"{_CALLS[kind]:,} calls made" in output["run"]
    assert all(name in output["table"] for name in KINDS[kind])
    assert (folder / output["plot"].split()[-1]).stat().st_size > 10_000
    assert (folder / output["report"].split(":")[0]).stat().st_size > 10_000
    assert (folder / "town.zip").exists()
    assert "made again" in output["verify"]
    assert "problem" not in output["verify"]
    results = osim.load("results/town.sqlite")
    assert results.name == "town"
    assert set(results.runs["status"]) == {"complete"}
    assert results.opinions["value"].notna().all()
    # Run again, nothing is repeated.
    assert "calls made" not in _opinionsim(*steps[[words[0] for words in steps].index("run")])


def test_every_experiment_of_the_package_becomes_a_study_with_the_same_runs() -> None:
    folder = data_folder("experiments")
    for place, path in enumerate(sorted(folder.rglob("*.yaml"))):
        origin = path.relative_to(folder).with_suffix("").as_posix()
        _opinionsim("new", f"copy-{place}", "--from", origin)
        copy, original = load_experiment(f"copy-{place}/study.yaml"), load_experiment(origin)
        assert copy.spec.name == f"copy-{place}"
        assert [run.run_id for run in copy.runs] == [run.run_id for run in original.runs]
        assert f"`{origin}`" in Path(f"copy-{place}/README.md").read_text(encoding="utf-8")


def test_the_table_of_people_is_what_its_script_makes() -> None:
    shutil.copy(data_folder("studies") / "people" / "make_people.py", "make_people.py")
    runpy.run_path("make_people.py")
    assert Path("people.csv").read_bytes() == (data_folder("studies") / "people" / "people.csv").read_bytes()


@pytest.mark.parametrize("kind", ["dyads", "structure", "classic"])
def test_what_comments_say_to_change_first_can_be_changed(kind: str) -> None:
    """A topic and personas of one's own, another network and condition: the rest of the file goes on to hold."""
    _opinionsim("new", "town", "--from", kind)
    spec, topic, personas = (Path("town", name) for name in ("study.yaml", "topic.yaml", "personas.yaml"))
    name = topic.read_text(encoding="utf-8").partition("- name: ")[2].partition("\n")[0]
    topic.write_text(f"topics: [{{name: {name}, claims: {{for: dogs may bathe, against: dogs may not}}}}]\n", "utf-8")
    people = [f"{{name: P{number}, opinion: {number % 5 - 2}, attributes: {{job: {number}}}}}" for number in range(5)]
    personas.write_text(f"name: mine\npersonas: [{', '.join(people)}]\n", "utf-8")
    experiment = load_experiment(spec, {"interaction.network": "ring"} if kind != "structure" else {})
    assert experiment.spec.size == 5
    (prompt, *_) = preview(experiment).prompts.values()
    assert "dogs may bathe" in prompt[-1].content
