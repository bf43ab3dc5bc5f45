"""Files of surveys: formats, weights, and what is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from opinionsim.errors import SurveyError
from opinionsim.surveys import SurveyColumn, SurveyMapping, load_survey, unmapped_survey
from tests.surveys.conftest import VILLAGE, Village


def _mapping(*columns: str) -> SurveyMapping:
    return SurveyMapping(name="test", columns=tuple(SurveyColumn(column=name) for name in columns))


def test_stata_categories_are_their_labels_and_codes_without_one_stay(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "party": pd.Categorical(["left", None, "right"], categories=["left", "right"]),
            "born": [1990, 1980, 1970],
            "state": [1, 2, 1],
        }
    )
    table.to_stata(tmp_path / "s.dta", write_index=False, value_labels={"state": {1: "Ohio"}})
    survey = load_survey(tmp_path / "s.dta", _mapping("party", "born", "state"))
    assert survey.values["party"].tolist() == ["left", None, "right"]
    assert survey.values["born"].tolist() == [1990, 1980, 1970]
    assert survey.values["state"].tolist() == ["Ohio", "2", "Ohio"]


def test_a_column_that_nobody_wants_cannot_spoil_a_stata_file(tmp_path: Path) -> None:
    # Labels that are not distinct: pandas refuses the column.
    table = pd.DataFrame({"born": [1990, 1980], "odd": [1, 2]})
    table.to_stata(tmp_path / "s.dta", write_index=False, value_labels={"odd": {1: "same", 2: "same"}})
    assert load_survey(tmp_path / "s.dta", _mapping("born")).n == 2
    with pytest.raises(SurveyError, match=r"s\.dta: cannot be read as \.dta: .*odd"):
        load_survey(tmp_path / "s.dta", _mapping("odd"))


@pytest.mark.parametrize(("suffix", "package"), [(".parquet", "pyarrow"), (".sav", "pyreadstat")])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str
) -> None:
    for module in (package, "fastparquet"):
        monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / f"s{suffix}"
    file.write_bytes(b"PAR1")
    with pytest.raises(SurveyError, match=rf"{suffix} files need the package {package}; .*'opinionsim\[surveys\]'"):
        load_survey(file, _mapping("born"))


def test_a_csv_file_has_empty_cells_na_and_nan_for_missing_values(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("\ufeffa,b\n1,x\n,\nNA,NA\nNaN,None\n2.5, two  words \n", encoding="utf-8")
    survey = load_survey(tmp_path / "s.csv", _mapping("a", "b"))
    np.testing.assert_array_equal(survey.values["a"], [1, np.nan, np.nan, np.nan, 2.5])
    assert survey.values["b"].tolist() == ["x", None, None, "None", "two words"]


def test_a_column_without_values_is_missing_throughout(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,b\n,1\n,2\n", encoding="utf-8")
    survey = load_survey(tmp_path / "s.csv", _mapping("a", "b"))
    assert survey.variables()["a"] == {None: 1}
    assert survey.persona(0).record == {"b": "1"}


def test_a_file_without_mapping_has_all_its_columns(village: Village) -> None:
    survey = unmapped_survey(village.data)
    assert list(survey.variables()) == ["born", "sex", "party", "job", "w"]
    assert (survey.n, survey.weights) == (6, None)


@pytest.mark.parametrize("weight", ["-1", "inf", "-inf", "1e999"])
def test_weights_are_finite_and_not_negative(village: Village, weight: str) -> None:
    with pytest.raises(SurveyError, match=r"village.csv: 'w' of row 2 is -?(1|inf); weights must be 0 or more"):
        village.load(VILLAGE.replace(",2.5\n", f",{weight}\n"))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (VILLAGE.replace(",2.5\n", ",much\n"), "village.csv: 'w' of row 2 is 'much'; weights must be numbers"),
        ("born,sex,party,job,w\n1990,F,left,baker,0\n", "all weights in 'w' are 0, so nobody can be drawn"),
        ("born,sex,party,job,w\n1990,F,left,baker,\n", "contains no respondent with a weight"),
        ("born,sex,party,job,w\n", "contains no respondent with a weight"),
        ("", "village.csv: is empty; expected a table with a header"),
        (
            VILLAGE.replace("sex,", "gender,"),
            "lacks 'sex', which the mapping names; it has born, gender, party, job, w",
        ),
        (VILLAGE.replace("party,", "sex,"), "'sex' occurs 2 times"),
        (VILLAGE.replace("1950", "in 1950"), "'born' of row 2 is 'in 1950'; what is subtracted must be numbers"),
        (VILLAGE.replace("1950", "inf"), "'born' of row 2 is infinite"),
        (VILLAGE.replace(",2.5\n", ",2.5,7\n"), "village.csv:3: must have 5 cells, as line 1 has; got 6"),
        (
            VILLAGE.replace("\n", ",7\n").replace("w,7", "w"),
            "village.csv:2: must have 5 cells, as line 1 has; got 6",
        ),
        (VILLAGE.replace("baker", "ba\x1bker"), r"'job' contains control characters: 'ba\\x1bker'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(village: Village, data: str, problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        village.load(data)


def test_what_is_no_survey_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    (tmp_path / "broken.dta").write_bytes(b"\x00" * 40)
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    (tmp_path / "folder.csv").mkdir()
    for name, problem in (
        ("binary.csv", "not a text file in UTF-8"),
        ("broken.dta", "cannot be read as .dta"),
        ("table.xlsx", "a survey must be one of .csv, .parquet, .dta, .sav; got .xlsx"),
        ("folder.csv", "is a folder"),
        ("gone.csv", "no such file"),
    ):
        with pytest.raises(SurveyError, match=f"{name}: {problem}"):
            load_survey(tmp_path / name, _mapping("a"))


def test_a_skipped_value_is_not_subtracted(village: Village) -> None:
    columns = [{"column": "born", "subtract_from": 2024, "skip": ["No Answer"], "clause": "You are ${value}"}]
    survey = village.load("born,w,party\n1990,1,left\nNo Answer,1,left\n", columns=columns, groups={})
    np.testing.assert_array_equal(survey.values["born"], [34, np.nan])


def test_values_and_mapping_that_do_not_fit_are_named_with_their_count(
    village: Village, caplog: pytest.LogCaptureFixture
) -> None:
    sex = {"column": "sex", "recode": {"F": "a woman", "m": "a man"}, "clause": "You are ${value}"}
    with caplog.at_level("INFO", "opinionsim.foundation.tables"):
        village.load(columns=[sex], opinion={"column": "party", "recode": {"left": -2, "center": 0}}, groups={})
    assert caplog.messages[0].endswith("6 rows: `sex` text, `w` number 0..4 (1 missing), `party` text (1 missing)")
    told = "`sex` is never 'm'; `sex` is also 'M' (2), 'X' (1)"
    opinion = (
        "`party` as `opinion` is never 'center'; `party` as `opinion` is also 'right' (1), 'none' (1), 'not sure' (1)"
    )
    assert caplog.messages[1].endswith(f"the mapping 'village' does not fit all values: {told}; {opinion}")


def test_whole_numbers_that_a_float_would_change_are_texts(tmp_path: Path) -> None:
    ids = [1234567890123456789, 1234567890123456788]
    pd.DataFrame({"id": ids}).to_parquet(tmp_path / "s.parquet")
    (tmp_path / "s.csv").write_text("id,zip\n1234567890123456789,01001\n1234567890123456788,99999\n")
    for name in ("s.parquet", "s.csv"):
        assert load_survey(tmp_path / name, _mapping("id")).values["id"].tolist() == list(map(str, ids))
    assert load_survey(tmp_path / "s.csv", _mapping("zip")).persona(0).record == {"zip": "01001"}


def test_a_column_of_lists_is_refused_by_name(tmp_path: Path) -> None:
    pd.DataFrame({"a": [[1, 2], [3]]}).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(SurveyError, match=r"s\.parquet: 'a' contains lists"):
        unmapped_survey(tmp_path / "s.parquet")


def test_a_mapping_says_what_is_missing(village: Village) -> None:
    found = village.load("born,sex,party,job,w\n1990,NA,left,-9,1\n-9,F,left,x,1\n", missing=["-9"], opinion=None)
    assert found.values["sex"].tolist() == ["NA", "F"]
    np.testing.assert_array_equal(found.values["age"], [34, np.nan])
    assert found.values["line of work"].tolist() == [None, "x"]
