"""A finished experiment with two conditions, and coders who follow a rule."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.audit import Sample
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.cli.conftest import invoke as invoke, spec as spec, store as store
from tests.cli.test_outputs import place as place
from tests.support.running import SMALL, changed

SPEC = changed(
    SMALL,
    name="audited",
    replicates=3,
    population={"size": 10},
    interaction={"kind": "dyadic", "steps": 50},
    measurement={"classifier": "lexicon", "texts": ["report", "post"]},
    sweep={"topic.framing": ["falsehood", "truth"]},
)

#: Labels of a coder, from the reading of the instrument.
Rule = Callable[[float], str]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audited") / "audited.sqlite"
    osim.run(load_experiment(SPEC), str(path))
    return path


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Results:
    """Results of a store of its own."""
    path = tmp_path / "audited.sqlite"
    shutil.copy(finished, path)
    return osim.load(str(path))


def fill(path: Path, sample: Sample, rule: Rule) -> None:
    """Fill in a coder's file by a rule."""
    read = dict(zip(sample.texts["code"], sample.texts["value"], strict=True))
    rows = rows_of(path)
    save(path, [{**row, "label": rule(read[row["item"]])} for row in rows])


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def save(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows as a spreadsheet program would."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
