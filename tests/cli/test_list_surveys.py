"""`list personas --survey`: variables, values and shares of a survey."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.support.command import refused


def test_a_table_of_variables_values_and_weighted_shares(invoke: Invoke) -> None:
    lines = invoke("list", "personas", "--survey", "synthetic", "--mapping", "synthetic").stdout.splitlines()
    assert lines[0].split() == ["variable", "label", "in", "persona", "values"]
    rows = {line.split()[0]: line for line in lines[1:]}
    assert "18 … 87 (70 values)" in rows["age"]
    assert " ".join(rows["gender"].split()) == "gender Gender yes man 47.1%, other 0.7%, woman 52.1%"
    assert "asked 2019-05-06" in rows["climate"]
    assert rows["climate"].endswith(", missing 2.7%")


def test_as_json_every_value_has_its_share(invoke: Invoke) -> None:
    found = json.loads(invoke("list", "personas", "--survey", "synthetic", "--mapping", "synthetic", "--json").stdout)
    ages = next(row for row in found if row["variable"] == "age")["values"]
    assert [each["value"] for each in ages] == list(range(18, 88))
    assert sum(each["share"] for each in ages) == pytest.approx(1)


def test_without_a_mapping_all_columns_are_there(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("born,job\n1990,baker\n1980,\n", encoding="utf-8")
    lines = invoke("list", "personas", "--survey", tmp_path / "own.csv").stdout.splitlines()
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "born born no 1980 50.0%, 1990 50.0%",
        "job job no baker 50.0%, missing 50.0%",
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["personas", "--mapping", "synthetic"], "--mapping needs --survey FILE"),
        (["topics", "--survey", "synthetic"], "--survey and --mapping go with personas, not with topics"),
        (["personas", "--survey", "gone.csv"], "gone.csv: no such file"),
        (["personas", "--survey", "synthetic", "--mapping", "gallup"], "unknown survey mapping 'gallup'"),
        (["personas", "--survey", "synthetic", "--mapping", "anes2024"], "lacks 'birthyr'"),
    ],
)
def test_what_cannot_be_listed_is_one_clear_line(arguments: list[str], problem: str) -> None:
    assert problem in refused("list", *arguments)
