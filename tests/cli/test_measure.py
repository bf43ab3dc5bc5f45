"""The command measure, as a user types it."""

from __future__ import annotations

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
