"""The command check-model: a check is a run like any other, and its card is kept beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opinionsim import audit
from tests.support.command import invoked, refused


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def _checked(*options: str) -> tuple[dict[str, Any], str]:
    result = invoked("check-model", "scripted", "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def test_the_stand_in_is_checked_and_nothing_is_asked_twice() -> None:
    card, _ = _checked()
    follows = card["lines"]["follows"]
    assert card["calls"] <= 100
    assert follows["value"] > 0.9
    again, said = _checked()
    assert "no call was made" in said
    assert again == card == json.loads(Path("results/check-scripted.json").read_text())
    assert "Card of scripted, 100 calls of" in invoked("plan", "quickstart").stdout
    table = invoked("check-model", "scripted").stdout
    assert "SCRIPTED STAND-IN" in table
    assert "a rule of the package" in " ".join(table.split())


def test_the_card_that_comes_with_the_package_is_that_of_today() -> None:
    kept = json.loads((Path(audit.__file__).parent / "cards" / "scripted.json").read_text())["lines"]
    made = _checked()[0]["lines"]
    vary = {"latency", "price"}
    assert {name: made[name] for name in made.keys() - vary} == {name: kept[name] for name in kept.keys() - vary}


def test_a_check_that_was_cut_short_goes_on() -> None:
    short = invoked("check-model", "scripted", "--set", "execution.budget.calls=30", "--max-concurrency", "1")
    assert short.exit_code == 3
    assert not Path("results/check-scripted.json").exists()
    assert "100 calls made" not in _checked()[1]
    assert json.loads(Path("results/check-scripted.json").read_text())["calls"] == 100


def test_a_model_without_a_card_is_named_by_plan() -> None:
    said = " ".join(invoked("plan", "real_model").stdout.split())
    assert "To make one from 100 calls, run opinionsim check-model openai:gpt-4o-mini-2024-07-18." in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch:model"], "'nosuch:model' cannot be loaded"),
        (["openai:gpt-4o-mini"], "needs a key: set the environment variable OPENAI_API_KEY"),
        (["scripted", "--study", "nosuch"], "nosuch: no such file"),
        ([""], "must not be empty"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_is(arguments: list[str], message: str) -> None:
    assert message in refused("check-model", *arguments)
    assert not Path("results").exists()


def test_a_store_holds_the_check_of_one_model() -> None:
    _checked("--store", "mine.sqlite")
    assert Path("check-scripted.json").exists()
    assert "holds check-scripted, the check of another model" in refused(
        "check-model", "gguf:other.gguf", "--store", "mine.sqlite"
    )
