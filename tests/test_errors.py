"""Errors as values: what acts on an error reads its code and fields, so that its wording can change."""

from __future__ import annotations

import pickle
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.errors import BudgetExceeded, DamagedError, OpinionSimError, SpecError
from opinionsim.llm import RunCalls
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from opinionsim.watching import experiment
from tests.support.running import SMALL, changed, ended, watched


def _reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have errors of calls say where they happened in words that nothing else knows, each in others."""
    usual, numbers = RunCalls._at, count()

    def at(calls: RunCalls, turn: Any, call: str = "") -> dict[str, Any]:
        return {**usual(calls, turn, call), "place": f"irgendwo, {next(numbers)}. Stelle"}

    monkeypatch.setattr(RunCalls, "_at", at)


def _reasons(store: str) -> list[dict[str, Any]]:
    with open_store(store, write=False) as reader:
        return list(experiment(reader)["reasons"])


def test_status_tells_causes_whatever_the_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    _reworded(monkeypatch)
    model, _ = watched(fails=lambda number: True)
    summary = ended(changed(SMALL, replicates=3), "broken.sqlite", model)
    assert len({*summary.errors.values()}) == 3
    (reason,) = _reasons("broken.sqlite")
    assert (reason["runs"], reason["code"], reason["alike"]) == (3, "model-call", False)
    assert "3 runs, for instance irgendwo, " in CliRunner().invoke(app, ["status", "broken.sqlite"]).stdout
    with open_store("broken.sqlite", write=False) as store:
        for run_id, state in store.states().items():
            assert state.cause == summary.causes[run_id].cause
            assert (state.cause.fields["run"], state.cause.fields["turn"] >= 0) == (run_id, True)


def test_other_prompts_are_one_cause_whatever_the_sentences(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reworded(monkeypatch)
    shutil.copytree(checkout / "opinionsim" / "prompts" / "default", tmp_path / "pack")
    spec = changed(SMALL, prompts="pack", replicates=2)
    # More than the calls of one run: both have replies on record.
    ended(spec, "old.sqlite", watched(fails=lambda number: number > 14)[0])
    situation = tmp_path / "pack" / "_situation.j2"
    situation.write_text(f"Now: {situation.read_text()}")
    ended(spec, "old.sqlite")
    (reason,) = _reasons("old.sqlite")
    assert (reason["runs"], reason["code"], reason["alike"]) == (2, "journal-prompt", False)


def test_a_budget_that_is_used_up_is_named_by_its_code() -> None:
    summary = ended(changed(SMALL, execution={"budget": {"calls": 5}}), "poor.sqlite")
    assert summary.exceeded is not None
    assert (summary.exceeded.code, summary.exceeded.fields["limits"]["calls"]) == ("budget-calls", 5)
    (reason,) = _reasons("poor.sqlite")
    assert reason["code"] == "budget-calls"


def test_problems_of_a_specification_are_errors_of_their_own() -> None:
    with pytest.raises(SpecError) as caught:
        load_experiment({**SMALL, "interactoin": {}, "seed": "five"})
    first, second = caught.value.problems
    assert {first.code, second.code} == {"spec-unknown-field", "spec-value"}
    assert str(caught.value) == f"{first}\n{second}"


def test_a_text_with_lines_is_one_problem() -> None:
    error = SpecError.joined([SpecError("one\nand its second line", "a"), SpecError("two", ("b", "c"))])
    assert [str(each) for each in error.problems] == ["a: one\nand its second line", "b: c: two"]
    assert [str(each) for each in error.at("here").problems] == ["here: a: one\nand its second line", "here: b: c: two"]
    assert SpecError.joined(error.problems[:1]) is error.problems[0]


class _Odd(SpecError):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} is not {other}", one=one, other=other)


@pytest.mark.parametrize(
    "error",
    [
        BudgetExceeded("used up", "run a", "Raise it", code="budget-money", paid=1.5),
        DamagedError("a row is gone", ("run a", "turn 1")),
        SpecError.joined([SpecError("one"), SpecError("two")]),
    ],
    ids=["budget", "damage", "several"],
)
def test_errors_reach_other_processes_whole(error: OpinionSimError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again), again.cause) == (type(error), str(error), error.cause)
    assert [str(each) for each in again.problems] == [str(each) for each in error.problems]


def test_the_parts_of_a_sentence() -> None:
    error = DamagedError("a row is gone", ("run a", "", "turn 1"), "Take a copy", run="a")
    assert str(error) == "run a: turn 1: the store is damaged: a row is gone. Take a copy"
    assert error.unplaced == "the store is damaged: a row is gone. Take a copy"
    assert error.cause == ("damaged", error.unplaced, {"run": "a"})
    assert error.at("b", "Go on", turn=1).cause.fields == {"run": "a", "turn": 1}
    assert str(_Odd(1, 2).at("here", "Count again")) == "here: 1 is not 2. Count again"
    assert _Odd(1, 2).code == "odd"
