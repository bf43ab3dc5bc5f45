"""The commands audit and measure, as a user types them."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.analysis import robustness_frame
from tests.cli.conftest import Invoke
from tests.support.command import refused


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


def test_measure_adds_an_instrument_and_simulates_nothing(copied: Path, invoke: Invoke) -> None:
    before = osim.load(str(copied))
    done = invoke("measure", copied, "--classifier", "lexicon", "--variable", "tone", "--texts", "post")
    assert done.exit_code == 0, done.output
    after = osim.load(str(copied))
    assert (before.design, after.design) == (1, 2)
    assert set(after.opinions["variable"]) == {"stance", "tone"}
    assert after.calls.equals(before.calls)
    stance = after.opinions[after.opinions["variable"] == "stance"].reset_index(drop=True)
    pd.testing.assert_frame_equal(stance, before.opinions)
    assert invoke("measure", copied, "--classifier", "lexicon", "--variable", "default").exit_code == 0
    found = osim.load(str(copied)).opinions
    assert set(found["kind"][found["variable"] == "default"]) == {"post", "report"}
    after = osim.load(str(copied))
    problem = refused("measure", copied, "--classifier", "lexicon", "--variable", "other", "--texts", "posts,quack")
    assert "unknown value 'posts' (did you mean post?); valid: post, report" in problem
    assert "unknown value 'quack'; valid: post, report" in problem
    judge = ("--classifier", "chat", "--set", "model=openai:m", "--set", "options.api_key=x")
    assert "classifier.options: api_key: a specification must not contain credentials" in refused(
        "measure", copied, *judge
    )
    twice = ("--set", "options={}", "--set", "options=1", "--set", "options.top_p=1")
    assert "--set options is given twice" in refused("measure", copied, "--classifier", "chat", *twice)
    within = ("--set", "options=1", "--set", "options.top_p=1")
    assert "--set options.top_p is given twice" in refused("measure", copied, "--classifier", "chat", *within)
    assert osim.load(str(copied)).opinions.equals(after.opinions)


def test_measure_codes_the_variants_too_so_that_they_stay_beside_the_specification(
    invoke: Invoke,
) -> None:
    Path("study.yaml").write_text(
        "name: study\nreplicates: 2\npopulation: {size: 4}\ntopic: {name: t-rex}\n"
        "interaction: {kind: dyadic, steps: 4}\nmeasurement: {classifier: lexicon, texts: [report, post]}\n"
        "sweep: {cognition.confirmation_bias: [none, strong]}\n"
        "analysis: {contrasts: {c: {of: strong - none}}}\n"
        "robustness: [{label: warmer, change: {model.temperature: 1.0}}, {label: ring, "
        "change: {interaction.network: {kind: ring, k: 2}}}]\n"
    )
    assert invoke("run", "study.yaml", "--store", "s.sqlite", "--robustness").exit_code == 0
    before = robustness_frame(osim.load("s.sqlite"))
    assert invoke("measure", "s.sqlite", "--classifier", "role-break", "--variable", "role-break").exit_code == 0
    after = osim.load("s.sqlite")
    assert set(after.opinions["variable"]) == {"stance", "role-break"}
    pd.testing.assert_frame_equal(robustness_frame(after), before)
    assert before["label"].tolist()[-2:] == ["warmer", "ring"]


def test_tables_show_the_share_of_texts_that_have_a_measured_variable(copied: Path, invoke: Invoke) -> None:
    assert invoke("measure", copied, "--classifier", "role-break", "--variable", "role-break").exit_code == 0
    tables = json.loads(invoke("table", copied, "--json").stdout)
    (made,) = (each for each in tables if "Further metrics" in each["title"])
    assert {row["role-break of report"] for row in made["rows"]} == {0.0}
