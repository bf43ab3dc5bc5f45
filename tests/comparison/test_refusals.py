"""What a comparison, and a table of people, refuse in one sentence, and what they do not lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.classic import MODELS
from opinionsim.cli import app
from opinionsim.comparison import PanelMapping, import_panel, people_table, updates
from opinionsim.errors import MeasurementError, SpecError, StoreError
from opinionsim.specification import load_experiment
from tests.comparison._studies import Trust, _noise

TABLE = pd.DataFrame({"who": list("ABCD"), "x": [-2, 1, 0, 2], "y": [-1, 1, 1, 1]})
MAPPING: dict[str, Any] = {"name": "plain", "person": "who", "rating": ("x", "y")}


@pytest.mark.parametrize(
    "more",
    [{"answers": {"stance": "q"}}, {"answers": {"last": "q"}}, {"conditions": ("group",)}, {"conditions": ("a.b",)}],
)
def test_a_condition_or_answer_stands_in_for_no_other_column(more: dict[str, Any]) -> None:
    table = TABLE.assign(q=2, group="a", **{"a.b": "c"})
    with pytest.raises(SpecError, match="cannot name a condition or an answer"):
        import_panel(table, PanelMapping(**MAPPING, **more), store="people.sqlite")
    assert not Path("people.sqlite").exists()


def test_topics_that_are_spelled_alike_stay_apart() -> None:
    table = TABLE.assign(about=["ö", "é", "ö", "é"])
    people = import_panel(table, PanelMapping(**MAPPING, topic="about"), store="people.sqlite")
    assert updates(people)["topic"].nunique() == 2


def _dyads(**more: Any) -> osim.Results:
    spec = {
        "name": "dyads",
        "replicates": 2,
        "population": {"size": 3, "initial_opinions": "uniform"},
        "topic": {"name": "global-warming", "framing": "falsehood"},
        "model": {"name": "scripted"},
        "measurement": {"classifier": "lexicon", "texts": ["post", "report"]},
        "interaction": {"kind": "dyadic", "steps": 6},
    }
    return osim.run(load_experiment({**spec, **more}), "dyads.sqlite")


def test_a_table_of_people_takes_a_record_of_people() -> None:
    with pytest.raises(MeasurementError, match="not a record of people"):
        people_table(_dyads())


def test_models_that_can_have_produced_nothing_are_refused_before_anything_is_fitted() -> None:
    with pytest.raises(
        MeasurementError, match=r"dyads: none of the given models can produce .* \(axelrod: its opinions"
    ):
        osim.compare(_dyads(), "axelrod")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": {"voter": None}}, r"models\['voter'\] must be a mapping of parameters"),
        ({"models": [MODELS["voter"]]}, "models must be names, .* got an object of class ClassicModel"),
        ({"noise": "abc"}, "or 'audit'; got 'abc'"),
        ({"margin": "abc"}, "margin must be between 0 and 1"),
        ({"cells": "elsewhere"}, "there is no condition 'elsewhere'"),
    ],
)
def test_an_argument_that_is_none_is_told_in_a_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        osim.compare(_dyads(), **options)


def test_errors_of_no_audit_are_refused() -> None:
    with pytest.raises(StoreError, match="no such audit; draw one"):
        osim.compare(_dyads(), noise="audit")


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"collected": "May"}, "collected: must be a day, as in 2026-05-31; got 'May'"), ({"who": "x"}, "unknown field")],
)
def test_a_mapping_is_checked_as_a_file_of_it_is(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        PanelMapping(**MAPPING, **fields)


def test_a_condition_of_one_block_stands_beside_those_that_are_compared() -> None:
    results = _dyads(population={"size": 2, "initial_opinions": "uniform"}, sweep={"interaction.steps": [5, 6]})
    many, few = "interaction.steps=5", "interaction.steps=6"
    alone = (results.runs["cell"] == few) & results.runs.duplicated("cell")
    results.runs.loc[alone, "status"] = "incomplete"
    found = osim.compare(results, "voter", noise=0.1).findings.set_index("cell")
    assert found["finding"].to_dict() == {many: "withheld", few: "not compared"}
    assert found.loc[few, "statement"].startswith("Not compared: it has one block")
    assert found["n_blocks"].to_dict() == {many: 2, few: 1}
    assert found["evidence"].notna().all()
    with pytest.raises(MeasurementError, match=f"nothing can be compared: {few}: it has one block"):
        osim.compare(results, "voter", cells=few)


def test_a_condition_that_is_not_asked_for_is_not_looked_at() -> None:
    results = _dyads(sweep={"interaction.steps": [5, 6]})
    mixed = results.runs["cell"] == "interaction.steps=5"
    results.runs.loc[mixed, "evidence"] = "mixed"
    with pytest.raises(MeasurementError, match="none of the given models"):
        osim.compare(results, "axelrod", cells=["interaction.steps=6"])
    with pytest.raises(MeasurementError, match="mixes evidence"):
        osim.compare(results, "axelrod")


def test_a_rate_of_errors_lies_in_its_interval() -> None:
    with pytest.raises(SpecError, match="that rate with the ends of its interval"):
        _noise((0.1, 0.5, 0.2), 5)


def test_what_is_not_adequate_is_told_by_what_exceeds_chance() -> None:
    quiet = np.array([0.0, *np.linspace(-1, 1, 20)])
    found = Trust(None, (), 1.0, 1.0, quiet, np.array([9.0, *quiet[1:]]))  # type: ignore[arg-type]
    assert found.exceeded.tolist() == [False, True]
    assert not found.adequate


@pytest.mark.whole
def test_a_comparison_without_reports_is_printed() -> None:
    _dyads(
        name="debate",
        population={"size": 2, "initial_opinions": "uniform"},
        measurement={"classifier": "lexicon", "texts": ["response"]},
        interaction={"kind": "debate", "cycles": 3},
    )
    done = CliRunner().invoke(app, ["compare", "dyads.sqlite", "--models", "voter", "--noise", "0.1"])
    assert done.exit_code == 0, done.output
    assert "Findings" in done.stdout
    assert "opinions are not decomposed: no text of kind 'report' was measured" in done.stderr
