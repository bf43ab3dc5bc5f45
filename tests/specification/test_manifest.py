from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import opinionsim
from opinionsim.running import replay
from opinionsim.specification import load_experiment, manifest
from opinionsim.store import Results
from tests.support.editing import own_pack, reword
from tests.support.running import SMALL, assert_same, carry_out, changed

TOPICS = {
    "source": "written for this test",
    "licence": "MIT",
    "topics": [
        {
            "name": "tides",
            "title": "Tides",
            "category": "Science",
            "claims": {"falsehood": "the sea never moves", "truth": "the Moon moves the sea"},
            "accepted": "truth",
            "sensitive": False,
        }
    ],
}
PERSONAS = {
    "name": "crew",
    "source": "written for this test",
    "licence": "MIT",
    "card": "Three invented sailors.",
    "personas": [
        {
            "name": "Ada",
            "opinion": 2,
            "attributes": {"rank": "captain", "age": 50},
            "background": "At sea all her life.",
        },
        {"name": "Bo", "opinion": -1, "attributes": {"rank": "mate", "age": 30}},
        {"name": "Cy", "opinion": 0, "attributes": {"zeal": "none", "age": 20}},
    ],
}


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def _rerun(results: Results, folder: Path) -> Results:
    """Run what the manifest says, from a file in an empty folder, into a new store."""
    folder.mkdir()
    _write(folder / "manifest.json", results.manifest)
    return carry_out(folder / "manifest.json", str(folder / "again.sqlite"))[1]


def test_a_manifest_runs_to_equal_tables(tmp_path: Path) -> None:
    spec = changed(
        SMALL,
        replicates=2,
        sweep=[
            {"cognition.confirmation_bias": ["none", "strong"], "topic.framing": ["falsehood", "truth"]},
            {"interaction": [{"kind": "independent", "reports": 2, "label": "alone"}]},
        ],
        independent_over=["topic.framing"],
        scale={"points": [-1, 0, 1]},
    )
    results = carry_out(spec, "first.sqlite")[1]
    again = _rerun(results, tmp_path / "elsewhere")
    assert_same(again, results)
    assert again.runs.drop(columns="begun_at").equals(results.runs.drop(columns="begun_at"))


def test_a_manifest_holds_every_file_by_content(tmp_path: Path) -> None:
    source = tmp_path / "study"
    reword(own_pack(source / "pack") / "write.j2", "honestly believe", "sincerely hold")
    _write(source / "topics.json", TOPICS)
    _write(source / "crew.json", PERSONAS)
    (source / "net.edgelist").write_text("0 1\n1 2\n", encoding="utf-8")
    (source / "news.txt").write_text("The sea rises.\nThe sea falls.\n", encoding="utf-8")
    spec = changed(
        SMALL,
        population={"personas": "crew.json", "size": 3, "initial_opinions": "personas"},
        topic={"name": "tides", "file": "topics.json", "framing": "truth"},
        prompts="pack",
        interaction={"kind": "dyadic", "steps": 4},
        sweep={
            "interaction": [
                {"kind": "dyadic", "steps": 4, "network": {"kind": "file", "path": "net.edgelist"}},
                {"kind": "external", "steps": 4, "messages": "news.txt"},
            ]
        },
    )
    _write(source / "spec.json", spec)
    results = carry_out(source / "spec.json", "first.sqlite")[1]
    asked = results.prompt(0, 0)
    shutil.rmtree(source)
    again = _rerun(results, tmp_path / "elsewhere")
    assert_same(again, results)
    assert again.prompt(0, 0) == asked
    told = "\n".join(message.content for message in asked)
    assert "the Moon moves the sea" in told
    contents = results.manifest["contents"]
    assert contents["messages"]["news.txt"]["messages"] == ["The sea rises.", "The sea falls."]
    # The order of attributes is part of a prompt.
    assert list(contents["personas"]["crew.json"]["personas"][0]["attributes"]) == ["rank", "age"]
    # Replay reads the manifest too.
    assert [each.difference for each in replay(again)] == ["", ""]


def test_a_manifest_names_versions_and_models() -> None:
    results = carry_out(SMALL, "first.sqlite")[1]
    found = results.manifest
    assert found["opinionsim_manifest"] == 1
    environment = found["environment"]
    assert environment["opinionsim"] == opinionsim.__version__
    assert environment["models"] == ["scripted"]
    assert {"numpy", "pandas", "mesa", "langchain-core"} <= set(environment["packages"])
    assert set(environment) == {"opinionsim", "python", "packages", "git", "models", "parts"}
    assert environment["parts"] == {}
    assert manifest(load_experiment(SMALL))["environment"]["models"] == []


def test_a_manifest_of_a_manifest_is_the_same(tmp_path: Path) -> None:
    results = carry_out(changed(SMALL, sweep={"seed": [1, 2]}), "first.sqlite")[1]
    again = _rerun(results, tmp_path / "elsewhere")
    assert again.manifest == results.manifest


def test_an_override_applies_to_a_manifest(tmp_path: Path) -> None:
    results = carry_out(SMALL, "first.sqlite")[1]
    _write(tmp_path / "manifest.json", results.manifest)
    experiment = load_experiment(tmp_path / "manifest.json", ["replicates=3"])
    assert len(experiment.runs) == 3
    assert experiment.runs[0].run_id == results.runs["run_id"][0]


def test_a_grid_that_leaves_a_field_alone_keeps_the_stated_value_and_not_that_of_another_grid() -> None:
    spec = changed(
        SMALL,
        topic={"name": "flat-earth", "framing": "truth"},
        sweep=[
            {"model.options": [{"noise": 0.3}], "interaction": [{"kind": "dyadic", "steps": 2, "network": "ring"}]},
            {"topic.framing": ["falsehood"], "interaction.steps": [4]},
            {"cognition.memory": ["none"]},
        ],
    )
    experiment = load_experiment(spec)
    again = load_experiment(manifest(experiment))
    assert [cell.label for cell in again.cells] == [cell.label for cell in experiment.cells]
    assert [run.run_id for run in again.runs] == [run.run_id for run in experiment.runs]
    assert manifest(again)["spec"] == manifest(experiment)["spec"]


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "Say something.", "cast": [{"name": "Ada"}, {"persona": "a nurse", "draws": 2, "selector": "judge"}]},
        {"task": "Say something.", "cast": [{}, {}], "cognition": {"world": "closed"}},
        {"task": "Say something.", "population": {"size": 3}},
        {"topic": {"name": "flat-earth"}, "task": "Say something.", "population": {"size": 3}},
        {
            "topic": {"name": "flat-earth"},
            "task": "Say something.",
            "population": {"size": 2},
            "measurement": {"instruments": [{"variable": "stance", "classifier": "lexicon", "texts": ["report"]}]},
        },
    ],
)
def test_what_a_specification_does_not_state_its_manifest_does_not_state_either(fields: dict[str, Any]) -> None:
    """A cast beside a population, a world that was closed to it, opinions on no topic: defaults that would be news."""
    spec = {"name": "small", "interaction": {"kind": "broadcast", "steps": 2}, **fields}
    summary, expected = carry_out(spec, "first.sqlite")
    assert summary.errors == {}
    found = carry_out(load_experiment(expected.manifest), "second.sqlite")[1]
    assert_same(found, expected)
    assert found.manifest["spec"] == expected.manifest["spec"]
