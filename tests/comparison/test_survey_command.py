"""`surveys validate`: what is printed, saved and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.support.command import invoked, refused

ASKED = ("surveys", "validate", "synthetic", "--mapping", "synthetic", "--size", "40", "--store", "s.sqlite")


@pytest.mark.long
def test_a_validation_is_printed_and_saved_and_not_asked_again() -> None:
    first = invoked(*ASKED, "--items", "climate, taxes", "--cutoff", "2020-01-01", "--csv", "out/found.csv")
    assert first.exit_code == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == (
        "SCRIPTED STAND-IN, not evidence about people or models. Survey 'synthetic', 40 of 1,500 respondents drawn by "
        "weight, 2 items"
    )
    rows = [" ".join(line.split()) for line in lines]
    assert any(row.startswith("climate 2019-05-06") and row.endswith("may be in the training data") for row in rows)
    assert any(row.startswith("taxes 2021-09-13") and row.endswith("asked after the cutoff") for row in rows)
    blocks = [line for line in lines if line in ("Mean over items", "climate", "taxes")]
    assert blocks == ["Mean over items", "climate", "taxes"]
    # The headline comes first.
    heading = lines[lines.index("Mean over items") + 1].split("  ")
    assert list(filter(None, map(str.strip, heading)))[:2] == ["model", "respondents"]
    assert lines[lines.index("Mean over items") + 2].startswith("variance ratio")
    assert "no finding is stated" in lines[-1]
    assert "160 calls made" in first.stderr
    measures = pd.read_csv("out/found.csv")
    assert set(measures["item"]) == {"climate", "taxes", "all"}
    assert set(measures["evidence"]) == {"scripted"}
    assert len(pd.read_csv("out/found-items.csv")) == 2
    assert {"n", "effective_n", "model_n", "difference"} < set(pd.read_csv("out/found-subgroups.csv").columns)
    again = invoked(*ASKED, "--items", "climate,taxes", "--cutoff", "2020-01-01")
    assert again.stdout == first.stdout
    assert "no call was made" in again.stderr


def test_json_has_all_numbers_and_null_where_there_is_none() -> None:
    result = invoked(*ASKED, "--items", "border", "--json")
    found = json.loads(result.stdout)
    assert list(found) == ["title", "findings", "notes", "measures", "items", "subgroups"]
    assert found["findings"] == []
    assert found["items"][0]["asked"] == "2023-02-20"
    assert found["items"][0]["training_data"] == "may be in the training data: no cutoff is given"
    assert {row["measure"] for row in found["measures"]} >= {"variance ratio", "accuracy", "coefficient signs"}
    assert {row["item"] for row in found["measures"]} == {"border"}


def test_a_budget_stops_it_and_nothing_is_compared() -> None:
    result = invoked(*ASKED, "--items", "border", "--set", "execution.budget.calls=10")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert "budget" in result.stderr


@pytest.mark.long
def test_items_whose_runs_are_not_complete_are_left_out() -> None:
    assert invoked(*ASKED, "--items", "climate").exit_code == 0
    result = invoked(*ASKED, "--items", "climate,taxes", "--set", "execution.budget.calls=85")
    assert result.exit_code == 3
    assert "Left out because their runs are not complete: taxes." in result.stdout
    assert "1 item\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["validate", "synthetic"], "--mapping"),
        (["check", "synthetic", "--mapping", "synthetic"], "check"),
        (["validate", "gone.csv", "--mapping", "synthetic"], "gone.csv: no such file"),
        (["validate", "synthetic", "--mapping", "anes2024"], "lacks 'birthyr'"),
        (["validate", "synthetic", "--mapping", "synthetic", "--items", "age"], "'age' cannot be asked"),
        (
            ["validate", "synthetic", "--mapping", "synthetic", "--items", ","],
            "no item is named; valid: climate, taxes",
        ),
        (["validate", "synthetic", "--mapping", "synthetic", "--size", "1"], "at least 2; got 1"),
        (["validate", "synthetic", "--mapping", "synthetic", "--size", "751"], "size 751 leaves 749 of 1500"),
        (["validate", "synthetic", "--mapping", "synthetic", "--cutoff", "May"], "May"),
        (["validate", "synthetic", "--mapping", "synthetic", "--model", "nonsense"], "nonsense"),
        (["validate", "synthetic", "--mapping", "synthetic", "--set", "seed=3"], "only model, execution, prompts"),
    ],
)
def test_what_cannot_be_validated_is_one_clear_message(arguments: list[str], problem: str) -> None:
    assert problem in refused("surveys", *arguments)
    assert not list(Path().rglob("*.sqlite"))
