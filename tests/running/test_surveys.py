"""Runs whose agents are respondents of a survey, rows of a table, or persons drawn from margins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.foundation.data import data_folder
from opinionsim.running import replay
from opinionsim.specification import Experiment, load_experiment
from opinionsim.surveys import load_survey
from tests.support.running import SMALL, assert_same, carry_out, changed

SURVEYED = changed(
    SMALL,
    replicates=3,
    population={"personas": "survey", "size": 4, "query": "ideology in ['left', 'far left']"},
    survey={"file": "synthetic", "mapping": "synthetic"},
)


def _own(folder: Path, old: str = "", new: str = "", name: str = "own.csv") -> str:
    """A copy of the synthetic survey, with a change."""
    source = data_folder("personas") / "surveys" / "synthetic.csv"
    (folder / name).write_text(source.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    return str(folder / name)


def _run_ids(experiment: Experiment) -> list[str]:
    return [run.run_id for run in experiment.runs]


def test_every_run_draws_respondents_of_its_own(tmp_path: Path) -> None:
    results = carry_out(SURVEYED, "s.sqlite")[1]
    agents = results.agents
    people = agents.groupby("run_id")["name"].apply(tuple)
    assert people.nunique() == 3
    assert all(name.startswith("Respondent ") for name in agents["name"])
    assert set(agents["ideology"]) <= {"left", "far left"}
    # Each row says what the file says of the respondent.
    survey = load_survey("synthetic", "synthetic")
    known = {f"Respondent {number}": survey.persona(row).record for row, number in enumerate(survey.rows)}
    for agent in agents.to_dict("records"):
        assert known[agent["name"]]["age"] == agent["age"]
    assert "weight" not in agents


def test_prompts_hold_the_sentences_and_not_the_record(tmp_path: Path) -> None:
    results = carry_out(changed(SURVEYED, replicates=1), "s.sqlite")[1]
    agent = results.agents.iloc[results.turns.iloc[0]["agent"]]
    asked = "\n".join(message.content for message in results.prompt(0, 0))
    assert f"Background: {agent['background']}" in asked
    assert "Your place in politics is the " in asked
    for item in ("climate", "taxes", "border", "machines"):
        assert item not in asked


def test_cells_of_a_block_share_their_respondents(tmp_path: Path) -> None:
    spec = changed(SURVEYED, sweep={"cognition.confirmation_bias": ["none", "strong"]})
    results = carry_out(spec, "s.sqlite")[1]
    people = results.agents.merge(results.runs[["run_id", "block"]]).groupby(["block", "run_id"])["name"].apply(tuple)
    assert people.groupby("block").nunique().tolist() == [1, 1, 1]
    assert people.nunique() == 3


def test_a_latin_square_keeps_its_respondents_over_replicates(tmp_path: Path) -> None:
    results = carry_out(changed(SURVEYED, population__assignment="latin-square"), "s.sqlite")[1]
    assert results.agents.groupby("run_id")["name"].apply(tuple).nunique() == 1


def test_weights_are_on_record_only_where_the_draw_ignores_them(tmp_path: Path) -> None:
    results = carry_out(changed(SURVEYED, survey__weighting="analysis"), "s.sqlite")[1]
    survey = load_survey("synthetic", "synthetic")
    weights = {f"Respondent {number}": weight for number, weight in zip(survey.rows, survey.weights, strict=True)}
    for agent in results.agents.to_dict("records"):
        assert float(agent["weight"]) == weights[agent["name"]]


def test_respondents_can_be_drawn_again(tmp_path: Path) -> None:
    few = "age == 18 and ideology == 'centre' and gender == 'woman' and residence == 'city'"
    spec = changed(SURVEYED, population__query=few)
    with pytest.raises(SpecError, match=r"population.size: there are \d respondents for whom .* 40 cannot be drawn"):
        load_experiment(changed(spec, population__size=40))
    results = carry_out(changed(spec, population__size=40, survey__replace=True, replicates=1), "s.sqlite")[1]
    names = results.agents["name"]
    assert names.is_unique
    assert names.str.contains(r" \(2\)$").any()


def test_agents_start_with_the_opinions_of_the_mapping(tmp_path: Path) -> None:
    answers = "climate in ['strongly agree', 'disagree', 'neither', 'agree', 'strongly disagree']"
    population = {"personas": "survey", "size": 4, "query": answers, "initial_opinions": "personas"}
    agents = carry_out(changed(SURVEYED, population=population), "s.sqlite")[1].agents
    points = {"strongly disagree": -2, "disagree": -1, "neither": 0, "agree": 1, "strongly agree": 2}
    assert agents["assigned_opinion"].tolist() == [points[answer] for answer in agents["climate"]]


def test_agents_can_start_without_an_opinion_whatever_the_scale(tmp_path: Path) -> None:
    model = osim.GivenReplies(lambda prompt: "1")
    spec = changed(
        SURVEYED,
        population={"personas": "survey", "size": 4, "initial_opinions": "none"},
        scale={"points": [0, 1], "labels": ["no", "yes"]},
        interaction={"kind": "independent", "reports": 0},
        measurement={"classifier": "lexicon", "self_report": {"before": 1}},
        model={"name": "given"},
    )
    results = carry_out(spec, "s.sqlite", model)[1]
    assert results.agents["assigned_opinion"].isna().all()
    # Nobody reports: each of four agents in three runs is asked off the record alone.
    assert set(results.turns["act"]) == {"self-report"}
    assert len(model.prompts) == 12
    assert not any("belief:" in message.content for prompt in model.prompts for message in prompt)
    assert results.opinions["value"].tolist() == [1.0] * 12
    assert not any(each.difference for each in replay(results))


@pytest.mark.parametrize("kind", ["independent", "no-role-play"])
def test_who_neither_reports_nor_is_asked_has_nothing_to_do(kind: str) -> None:
    spec = changed(SMALL, interaction={"kind": kind, "reports": 0})
    with pytest.raises(SpecError, match=r"interaction.reports: 0 leaves nothing to ask; set a number, or measurement"):
        load_experiment(spec)
    asked = load_experiment(changed(spec, measurement={"self_report": {"after": 2}}))
    assert osim.plan(asked).calls == 8


def test_a_model_can_be_given_by_what_is_on_record(tmp_path: Path) -> None:
    models = {"by": "gender", "models": {"woman": {"temperature": 0.1}}, "otherwise": {"temperature": 0.9}}
    agents = carry_out(changed(SURVEYED, model=models), "s.sqlite")[1].agents
    assert agents.groupby("gender")["model"].nunique().max() == 1
    with pytest.raises(SpecError, match="no persona has gender = 'queen'"):
        load_experiment(changed(SURVEYED, model={**models, "models": {"queen": {}}}))


def test_a_survey_enters_identities_by_content(tmp_path: Path) -> None:
    before = _run_ids(load_experiment(SURVEYED))

    def ids(old: str = "", new: str = "", **changes: Any) -> list[str]:
        return _run_ids(load_experiment(changed(SURVEYED, survey__file=_own(tmp_path, old, new), **changes)))

    assert ids() == before
    # A column that the mapping does not name reaches nothing.
    assert ids("\n", ",note\n") == before
    assert ids("1.3193\n", "1.3194\n") != before
    assert ids("1973,man", "1973,woman") != before
    assert ids(population__query="ideology in ['left', 'far left'] ") != before
    assert ids(survey__weighting="analysis") != before
    assert ids(survey__replace=True) != before


def test_a_survey_that_nobody_is_drawn_from_changes_nothing() -> None:
    survey = {"file": "synthetic", "mapping": "synthetic"}
    assert _run_ids(load_experiment(changed(SMALL, survey=survey))) == _run_ids(load_experiment(SMALL))


def test_a_manifest_holds_the_respondents_and_runs_without_the_file(tmp_path: Path) -> None:
    source = tmp_path / "study"
    source.mkdir()
    _own(source)
    shutil.copy(data_folder("personas") / "surveys" / "synthetic.yaml", source / "own.yaml")
    spec = changed(
        SURVEYED, survey={"file": "own.csv", "mapping": "own.yaml"}, sweep={"survey.weighting": ["draw", "analysis"]}
    )
    (source / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    results = carry_out(source / "spec.json", "first.sqlite")[1]
    shutil.rmtree(source)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "manifest.json").write_text(json.dumps(results.manifest), encoding="utf-8")
    again = carry_out(tmp_path / "elsewhere" / "manifest.json", "again.sqlite")[1]
    assert_same(again, results)
    assert {each.difference for each in replay(again)} == {""}


def test_paths_of_overrides_start_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, here = tmp_path / "study", tmp_path / "here"
    study.mkdir()
    here.mkdir()
    _own(here, "1973,man", "1973,woman")
    shutil.copy(data_folder("personas") / "surveys" / "synthetic.yaml", here / "own.yaml")
    (study / "spec.json").write_text(json.dumps(SURVEYED), encoding="utf-8")
    monkeypatch.chdir(here)
    for overrides in (
        ["survey.file=own.csv", "survey.mapping=own.yaml"],
        ["survey={file: own.csv, mapping: own.yaml}"],
        ["sweep={survey.file: [own.csv]}", "survey.mapping=own.yaml"],
    ):
        assert _run_ids(load_experiment(study / "spec.json", overrides)) != _run_ids(load_experiment(SURVEYED))
    # Names of the package stay names.
    named = load_experiment(study / "spec.json", ["survey.file=synthetic", "survey.mapping=synthetic"])
    assert _run_ids(named) == _run_ids(load_experiment(SURVEYED))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"survey": None}, "survey: is required but missing: population.personas: survey draws from it"),
        ({"survey__mapping": "gallup"}, "survey: unknown survey mapping 'gallup'"),
        ({"survey__file": "gallup"}, "survey: unknown survey 'gallup'"),
        ({"survey__file": "gone.csv"}, r"survey: gone.csv: no such file"),
        ({"survey__mapping": "anes2024"}, "survey: .*lacks 'birthyr'"),
        ({"survey__weighting": "both"}, "survey.weighting: unknown value 'both'; valid: draw, analysis"),
        ({"survey__rows": 3}, "survey.rows: unknown field"),
        ({"population__query": ""}, "population.query: must not be empty"),
        ({"population__query": "age <"}, "population.query: query 'age <' cannot be read"),
        ({"population__query": "age > 200"}, "population.query: query 'age > 200' matches none of the 1500"),
        ({"population__query": "ideology == 'lefty'"}, "population.query: .*'ideology' is never 'lefty'"),
        ({"population__personas": "chuang2024"}, "population.query: needs population.personas: survey"),
        ({"population__size": 1501, "population__query": None}, "population.size: there are 1500 respondents"),
        (
            {"population__initial_opinions": "personas"},
            "initial_opinions: 'personas' needs an opinion for each persona",
        ),
        (
            {"interaction__network": {"edges": [["Respondent 1", "Respondent 5"]]}},
            "interaction.network: 'Respondent 1', 'Respondent 5' are neither .*; nodes are the numbers 0 to 3$",
        ),
        ({"population__shown": "demographics"}, "population.shown: 'demographics' needs attributes"),
        (
            {"scale__points": [0, 1], "scale__labels": ["no", "yes"]},
            "population.personas: the opinion -?2 of persona 'Respondent",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_any_call(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        load_experiment(changed(SURVEYED, **changes))


def test_personas_from_a_table(tmp_path: Path) -> None:
    file = tmp_path / "crew.csv"
    file.write_text("name,rank,opinion\nAda,captain,2\nBo,mate,-1\n", encoding="utf-8")
    population = {"personas": str(file), "size": 2, "initial_opinions": "personas"}
    agents = carry_out(changed(SMALL, population=population), "s.sqlite")[1].agents
    assert agents[["name", "rank", "assigned_opinion"]].values.tolist() == [["Ada", "captain", 2], ["Bo", "mate", -1]]


def test_personas_from_margins(tmp_path: Path) -> None:
    margins = {"sex": {"woman": 0.5, "man": 0.5}, "place": {"town": 0.9, "village": 0.1}}
    spec = changed(SMALL, replicates=2, population={"personas": {"margins": margins}, "size": 30})
    results = carry_out(spec, "s.sqlite")[1]
    agents = results.agents
    assert set(agents["sex"]) == {"woman", "man"}
    assert agents.groupby("run_id")["sex"].apply(tuple).nunique() == 2
    assert "Sex: " in "\n".join(message.content for message in results.prompt(0, 0))
    again = carry_out(spec, "again.sqlite")[1]
    assert_same(again, results)


@pytest.mark.parametrize(
    ("personas", "problem"),
    [
        ({"margins": {}}, "population.personas: margins: must have at least 1 entry"),
        ({"margins": {"sex": {"woman": "half"}}}, "population.personas: margins.sex.woman: must be a number"),
        ({"margins": {"sex": {"woman": -1}}}, "population.personas: margins.sex.woman: a share must be"),
        ({"margins": {"sex": {"woman": 1}}, "size": 3}, "population.personas: size: unknown field"),
        (
            {"margins": {"sex": {"woman": 1}}, "seed": [{"sex": "man", "share": 1}]},
            r"population.personas: seed\[0\].sex: unknown value 'man'; valid: woman",
        ),
        (3, "population.personas: must be text or a mapping; got 3"),
    ],
)
def test_margins_that_are_none_are_refused(personas: Any, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        load_experiment(changed(SMALL, population={"personas": personas, "size": 4}))
