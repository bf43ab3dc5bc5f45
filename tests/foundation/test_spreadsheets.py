"""Texts that a spreadsheet would run, written as CSV and read back."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.foundation.spreadsheets import escaped, read_csv, unescaped, write_csv
from opinionsim.llm import GivenReplies

_RUN = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\n=1", " =1", "\uff1d1", "'=1", "-", "-a")


@pytest.mark.parametrize("text", _RUN)
def test_what_a_spreadsheet_would_run_is_marked_as_a_text(text: str) -> None:
    assert escaped(text) == f"'{text}"
    assert unescaped(escaped(text)) == text


@pytest.mark.parametrize("value", ["-1", "-0.5", "+3e-5", "-12.5%", "a=b", "I'm", "'tis", "", -1.5, None, True])
def test_numbers_and_other_texts_stay_as_they_are(value: object) -> None:
    assert escaped(value) is value
    assert unescaped(value) is value


@given(st.text(st.sampled_from("'=+-@1.e% \tax")) | st.text())
def test_reading_back_undoes_it(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert escaped(text) == text or escaped(text)[0] == "'"


def test_exported_and_printed_csv_holds_no_formula_and_is_read_back_whole() -> None:
    said = {"Ada": "=HYPERLINK(1)", "Ben": "-3", "Cleo": "'=1"}
    model = GivenReplies(lambda prompt: next(said[name] for name in said if f"Be {name}" in prompt[0].content))
    alone = {"name": "sheet", "task": "Say something.", "interaction": {"kind": "independent", "reports": 1}}
    spec = {**alone, "cast": [{"name": name, "persona": f"Be {name}"} for name in said], "model": {"name": "own"}}
    results = osim.run(osim.load_experiment(spec), "s.sqlite", chat_model=model)
    assert CliRunner().invoke(app, ["export", "s.sqlite", "out"]).exit_code == 0
    stored = Path("out/turns.csv").read_text(encoding="utf-8")
    assert ",'=HYPERLINK(1)," in stored
    assert ",''=1," in stored
    assert ",-3," in stored
    frame = read_csv("out/turns.csv", dtype={"message": str})
    assert frame["message"].tolist() == results.turns["message"].tolist()
    classified = ["classify", "out/turns.csv", "--text", "message", "--classifier", "lexicon", "--claim", "it is so"]
    coded = CliRunner().invoke(app, classified)
    assert coded.exit_code == 0, coded.stderr
    opinions = pd.read_csv("out/opinions.csv")
    assert all(opinions[name].dtype != object for name in opinions if name.startswith("p_"))


def test_truth_values_are_written_as_r_reads_them_and_read_back() -> None:
    frame = pd.DataFrame({"won": [True, False], "agreed": [False, None], "said": ["True", "x"]})
    written = write_csv(frame)
    assert written == "won,agreed,said\nTRUE,FALSE,True\nFALSE,,x\n"
    again = read_csv(StringIO(written))
    assert (again["won"].tolist(), again["won"].dtype) == ([True, False], bool)
