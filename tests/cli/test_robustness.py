"""Variants from the command line: their price, their runs, and their table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.test_robustness import SPEC
from tests.cli.conftest import Invoke

VARIANTS = [
    {"label": "hot", "change": {"model.temperature": 1.2}},
    {"label": "old", "change": {"prompts.variant": "fifth"}},
]


@pytest.mark.long
def test_variants_are_priced_carried_out_and_compared(invoke: Invoke, tmp_path: Path) -> None:
    file, store = tmp_path / "study.json", tmp_path / "s.sqlite"
    file.write_text(json.dumps({**SPEC, "replicates": 1, "robustness": VARIANTS}), encoding="utf-8")
    assert "Variant hot: 6 runs, 72 calls" in invoke("plan", file).stdout
    assert list(json.loads(invoke("plan", file, "--json").stdout)["variants"]) == ["hot", "old"]
    invoke("run", file, "--store", store, "--robustness")
    printed = invoke("table", store)
    assert "design 1 of 3" in printed.stderr
    assert "hot" in printed.stdout
    assert "| Robustness" in printed.stdout
    drawn = invoke("plot", "specification-curve", store, "--set", "estimand=these-topics", "--width", 84)
    assert Path(drawn.stdout.strip()).name == "study-specification-curve-estimand-these-topics.png", drawn.stderr
    again = invoke("run", file, "--store", store, "--robustness")
    assert again.stderr.count("were complete already; no call was made") == 3


@pytest.mark.long
def test_a_budget_holds_over_all_variants(invoke: Invoke, tmp_path: Path) -> None:
    file, store = tmp_path / "study.json", tmp_path / "s.sqlite"
    file.write_text(json.dumps({**SPEC, "replicates": 1, "robustness": VARIANTS}), encoding="utf-8")
    options = ("--set", "execution.budget.calls=100", "--store", store)
    assert invoke("run", file, *options, "--robustness").exit_code == 3
    assert "design 1 of 2" in invoke("table", store).stderr


def test_a_specification_without_variants_is_told_so(invoke: Invoke, spec: Path) -> None:
    assert "lists no variant under robustness" in invoke("run", spec, "--robustness").stderr
