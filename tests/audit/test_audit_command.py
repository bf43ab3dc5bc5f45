"""The commands of the group audit, as a user types them."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.cli import test_outputs as outputs
from tests.cli.conftest import Invoke
from tests.support.command import refused

#: How each output of a command is given; the path that it is given stands for ``{}``.
OUTPUTS = {
    ("audit score", "csv"): "audit score s.sqlite --csv {}",
    ("audit correct", "csv"): "audit correct s.sqlite --csv {}",
    ("audit instruments", "csv"): "audit instruments s.sqlite --csv {}",
    ("audit sample", "out"): "audit sample s.sqlite --labels 3 --coders A --out {}",
}


@pytest.fixture
def copied(store: Path, tmp_path: Path) -> Path:
    """A store of its own, in the current folder."""
    return Path(shutil.copy(store, tmp_path / "own.sqlite"))


def _label(path: Path, label: str) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [{**row, "label": label} for row in csv.DictReader(file)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_from_a_plan_to_corrected_numbers(copied: Path, invoke: Invoke) -> None:
    assert "98 labels per condition" in invoke("audit", "plan", "--half-width", "0.31").stdout
    drawn = invoke("audit", "sample", copied, "--labels", "3", "--coders", "ann, ben", "--out", "labels")
    assert drawn.exit_code == 0, drawn.output
    files = sorted(Path("labels").glob("*.csv"))
    assert [path.stem.partition("-")[2] for path in files] == ["ann", "ben"]
    for path in files:
        _label(path, "0")
    scored = invoke("audit", "score", copied, *files, "--csv", "scores.csv")
    assert scored.exit_code == 0, scored.output
    assert "Tables now state: audited by labels of 2 people on 6 texts of kind report" in scored.stderr
    assert "audited by labels of 2 people" in invoke("table", copied).stdout.replace("\n  ", " ")
    assert {path.name for path in Path().glob("scores*")} == {
        f"scores-{n}.csv" for n in ("agreement", "confusion", "errors")
    }
    assert set(pd.read_csv("scores-errors.csv")["evidence"]) == {"scripted"}
    corrected = json.loads(invoke("audit", "correct", copied, "--simulations", "0", "--json").stdout)
    assert [table["title"].split(" | ")[1] for table in corrected] == [
        "Mean opinion as read and corrected",
        "Contrasts as read and corrected",
        "Diversity as read and corrected",
    ]
    assert invoke("store", "check", copied).exit_code == 0


def test_bad_labels_are_one_message_and_nothing_is_kept(copied: Path, invoke: Invoke) -> None:
    invoke("audit", "sample", copied, "--labels", "3", "--coders", "ann", "--out", "labels")
    (path,) = Path("labels").glob("*.csv")
    before = copied.read_bytes()
    assert ".csv:2: item" in refused("audit", "score", copied, path)
    assert copied.read_bytes() == before
    assert invoke("audit", "correct", copied).exit_code == 2
    assert invoke("audit", "score", copied, "--coder", "scripted").exit_code == 2
    assert "add --coder" in refused("audit", "score", copied, "--set", "temperature=1")
    assert "reask" in refused("audit", "score", copied, "--coder", "openai:m", "--set", "reask=-1")


def test_every_output_is_in_the_contract() -> None:
    assert outputs.paths_of("audit") - {("audit score", "files")} == OUTPUTS.keys()


@pytest.mark.parametrize("kind", outputs.FOREIGN)
@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_what_a_command_did_not_make_stays(
    place: Path, output: tuple[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(outputs.OUTPUTS, output, OUTPUTS[output])
    outputs.test_what_a_command_did_not_make_stays(place, output, kind)


def test_a_switch_that_is_on_has_a_form_that_turns_it_off(invoke: Invoke) -> None:
    assert "--no-diversity" in invoke("audit", "correct", "--help").stdout
