"""Personas and topics of the user's own: what a specification leaves open is what their files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.planning import preview
from opinionsim.specification import Experiment, load_experiment, manifest, taking_part
from opinionsim.topics import Claim, parse_topics

OPINIONS = (-2, -1, 0, 0, 1, 1, 2, 2)
SQUARE = {"name": "square", "claims": {"market": "the square should stay a market"}}


def _set(opinions: tuple[int | None, ...] = OPINIONS, name: str = "own") -> dict[str, Any]:
    return {"name": name, "personas": [{"name": f"P{i}", "opinion": each} for i, each in enumerate(opinions)]}


def _experiment(folder: Path, said: dict[str, Any] | None = None, **values: Any) -> Experiment:
    """Eight persons and an open question, each in a file."""
    (folder / "own.json").write_text(json.dumps(_set()), encoding="utf-8")
    (folder / "topics.json").write_text(json.dumps({"topics": [{**SQUARE, **(said or {})}]}), encoding="utf-8")
    spec = {
        "name": "own",
        "topic": {"file": "topics.json", "name": "square"},
        "interaction": {"kind": "dyadic", "steps": 2},
        "population": {"personas": "own.json"},
        **values,
    }
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    return load_experiment(folder / "spec.json")


def _cast(experiment: Experiment) -> dict[str, int | None]:
    population = assemble(experiment.runs[0], experiment.resources).population
    assert len({each.name for each in population.personas}) == len(population)
    return {each.name: own for each, own in zip(population.personas, population.opinions, strict=True)}


@pytest.mark.parametrize("size", [{}, {"size": 8}])
def test_everybody_in_a_file_takes_part_once_and_begins_as_the_file_says(tmp_path: Path, size: dict[str, int]) -> None:
    experiment = _experiment(tmp_path, population={"personas": "own.json", **size})
    assert _cast(experiment) == {f"P{i}": each for i, each in enumerate(OPINIONS)}
    stated = _experiment(tmp_path, population={"personas": "own.json", "size": 8, "initial_opinions": "personas"})
    assert experiment.runs[0].run_id == stated.runs[0].run_id


@pytest.mark.parametrize(
    ("population", "size", "initial"),
    [
        ({"personas": _set((None, None, None))}, 3, "uniform"),
        ({"personas": _set((1, -1)), "initial_opinions": "none"}, 2, "none"),
        ({"personas": _set((1, -1)), "size": 5}, 5, "personas"),
        ({"personas": {"margins": {"age": {"young": 0.5, "old": 0.5}}}}, 10, "uniform"),
        ({"personas": "chuang2024"}, 10, "personas"),
    ],
)
def test_what_is_left_open_is_decided_by_the_set(
    tmp_path: Path, population: dict[str, Any], size: int, initial: str
) -> None:
    found = _experiment(tmp_path, population=population).cells[0].spec
    assert (found.size, found.population.size, found.population.initial_opinions) == (size, size, initial)


def test_opinions_off_the_scale_of_a_set_of_the_package_do_not_begin_a_run(tmp_path: Path) -> None:
    found = _experiment(tmp_path, population={}, scale={"points": [0, 1]}).cells[0].spec
    assert (found.size, found.population.initial_opinions) == (10, "uniform")


def test_cells_with_different_files_and_their_manifest_have_sizes_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "three.json").write_text(json.dumps(_set((1, 0, -1))), encoding="utf-8")
    experiment = _experiment(tmp_path, sweep={"population.personas": ["own.json", "three.json"]})
    assert [cell.spec.size for cell in experiment.cells] == [8, 3]
    (tmp_path / "elsewhere").mkdir()
    kept = tmp_path / "elsewhere" / "manifest.json"
    kept.write_text(json.dumps(manifest(experiment)), encoding="utf-8")
    again = load_experiment(kept)
    assert [run.run_id for run in again.runs] == [run.run_id for run in experiment.runs]
    assert [cell.spec for cell in again.cells] == [cell.spec for cell in experiment.cells]


def test_who_takes_part_is_told_in_one_line(tmp_path: Path) -> None:
    experiment = _experiment(tmp_path)
    assert taking_part(experiment) == (
        "Taking part: the 8 personas of own.json, each once; initial opinions: as the file says"
    )
    sizes = _experiment(tmp_path, sweep={"population.size": [5, 9]}, population={"personas": _set(name="mine")})
    assert taking_part(sizes) == (
        "Taking part: 5 of the 8 personas of mine, drawn at random; initial opinions: as the file says | "
        "9 agents who play the 8 personas of mine, some more than once; initial opinions: as the file says"
    )
    for opinions, assignment, told in (
        ("personas", "random", "those of the file, dealt out at random in each replicate"),
        ("personas", "latin-square", "those of the file, rotated over replicates"),
        ("uniform", "random", "uniform"),
    ):
        population = {"personas": _set(name="mine"), "initial_opinions": opinions, "assignment": assignment}
        assert taking_part(_experiment(tmp_path, population=population)).endswith(f"; initial opinions: {told}")
    cast = _experiment(tmp_path, population={}, cast=[{"name": "A"}, {"name": "B"}])
    assert taking_part(cast) == "Taking part: a cast of 2"


def _prompts(experiment: Experiment) -> str:
    return "\n".join(message.content for asked in preview(experiment).prompts.values() for message in asked)


def test_an_open_question_is_neither_masked_nor_right_or_wrong(tmp_path: Path) -> None:
    asked = {"self_report": {"after": 1}}
    told = _prompts(_experiment(tmp_path, measurement=asked))
    assert "Theory XYZ" not in told
    assert '"strongly negative" (against it) to "strongly positive" (for it)' in told
    assert "(it is wrong)" not in told


def test_a_declared_truth_and_a_mask_are_told_and_make_other_runs(tmp_path: Path) -> None:
    topics: list[dict[str, Any]] = [{}, {"accepted": "market"}, {"masked": True}]
    open_, true, masked = (_experiment(tmp_path, topic) for topic in topics)
    assert '(it is wrong) to "strongly positive" (it is right)' in _prompts(true)
    assert "Theory XYZ" in _prompts(masked)
    assert len({each.runs[0].run_id for each in (open_, true, masked)}) == 3
    topic = {"file": "topics.json", "name": "square", "masked": False}
    assert _experiment(tmp_path, {"masked": True}, topic=topic).runs[0].run_id == open_.runs[0].run_id


def test_a_file_can_mask_all_its_topics_but_one() -> None:
    topics = parse_topics({"masked": True, "topics": [SQUARE, {**SQUARE, "name": "other", "masked": False}]})
    assert [topic.masked for topic in topics.values()] == [True, False]


@pytest.mark.parametrize(("topic", "masked"), [(Claim("tea is best", "tea", "for"), False), ("flat-earth", True)])
def test_a_model_in_mesa_masks_the_claims_of_topics_that_say_so(topic: Claim | str, masked: bool) -> None:
    with osim.OpinionModel(topic=topic, schedule=1) as model:
        assert model.cognition.masked is masked
