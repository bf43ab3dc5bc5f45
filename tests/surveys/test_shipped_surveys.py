"""The synthetic survey, and the mapping of the ANES 2024 pilot (B2, B9)."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

from opinionsim.foundation.data import data_folder
from opinionsim.surveys import Survey, load_mapping, load_survey

ANES = """\
weight,birthyr,educ,gender4,race4,pid3,ideo5,child18,employ,region,urbanicity2,inputstate
1,1984,4-year degree,Woman,White,Democrat,Very liberal,Yes,Full-time,West,Big city,California
,1990,No HS credential,Man,Black,Republican,Liberal,No,Retired,South,Rural area,Texas
2,1950,Post-grad,Other,Other,Other,Not sure,No Answer,Other,Midwest,No Answer,"inapplicable, legitimate skip"
1,2000,2-year degree,Man,not asked,Not sure,Conservative,No,Student,South,Small town,Texas
1,2000,Some college,No Answer,Hispanic,-48104,Moderate,No,Retired,Northeast,Suburban area,Ohio
"""


@pytest.fixture
def anes(tmp_path: Path) -> Survey:
    (tmp_path / "anes.csv").write_text(ANES, encoding="utf-8")
    return load_survey(tmp_path / "anes.csv", "anes2024")


def test_every_column_of_the_pilot_has_its_sentence_in_order(anes: Survey) -> None:
    assert anes.persona(0).background == (
        "You are 40 years old. Your highest level of education is a four-year college degree. You are a woman. "
        "Your race is White. In politics you think of yourself as a Democrat. Your ideology is very liberal. "
        "You have children under 18 in your household. Your employment status is employed full time. "
        "Your region of the United States is the West. You live in a big city. Your state is California."
    )
    assert (anes.n, anes.n_dropped) == (4, 1)


def test_defects_of_the_published_personas_are_gone(anes: Survey) -> None:
    other, unsure, coded = (anes.persona(row).background for row in (1, 2, 3))
    assert other == (
        "You are 74 years old. Your highest level of education is a postgraduate degree. "
        "You are neither a man, nor a woman, nor non-binary. Your race is neither White nor Black nor Hispanic. "
        "In politics you think of yourself as neither a Democrat, nor a Republican, nor an Independent. "
        "Your region of the United States is the Midwest."
    )
    for text in (other, unsure, coded):
        assert "ot sure" not in text
        assert ".." not in text
        assert "a(n)" not in text
        assert "48104" not in text
        assert "No Answer" not in text
    assert "race" not in unsure
    assert "In politics" not in unsure
    assert "In politics" not in coded


def test_queries_are_on_original_values_and_ideologies_on_those_within(anes: Survey) -> None:
    assert anes.matching("inputstate=='California' and age < 41").tolist() == [0]
    assert anes.matching("child18=='Yes'").tolist() == [0]
    assert anes.matching("gender4 == 'Other' and ideo5 == 'Not sure'").tolist() == [1]
    groups = {name: anes.matching(anes.group(name)).tolist() for name in ("liberal", "very liberal", "conservative")}
    assert groups == {"liberal": [0], "very liberal": [0], "conservative": [2]}
    assert set(load_mapping("anes2024").groups) == {
        "liberal",
        "conservative",
        "moderate",
        "very liberal",
        "very conservative",
    }


def test_the_script_makes_the_synthetic_survey_again() -> None:
    folder = data_folder("personas") / "surveys"
    made = runpy.run_path(str(folder / "synthetic.py"))["text"]()
    assert made == (folder / "synthetic.csv").read_text(encoding="utf-8")


def test_the_synthetic_survey_has_what_a_survey_has() -> None:
    survey = load_survey("synthetic", "synthetic")
    assert (survey.n, survey.n_dropped) == (1500, 60)
    assert survey.weights is not None
    assert survey.weights.mean() == pytest.approx(1, abs=1e-3)
    assert survey.weights.max() / survey.weights.min() > 3
    # Who answers rarely counts more: weighted and plain shares differ.
    degree = survey.values["education"] == "university"
    assert degree.mean() - np.average(degree, weights=survey.weights) > 0.05
    # Variables hang together.
    right = np.isin(survey.values["ideology"].astype(str), ["right", "far right"])
    against = np.isin(survey.values["climate"].astype(str), ["disagree", "strongly disagree"])
    assert against[right].mean() - against[~right].mean() > 0.2
    assert {column.variable for column in survey.mapping.columns if column.asked} == {
        "climate",
        "taxes",
        "border",
        "machines",
    }
    assert set(survey.opinions) == {-2, -1, 0, 1, 2, None}


def test_items_that_respondents_are_asked_again_stand_in_no_persona() -> None:
    survey = load_survey("synthetic", "synthetic")
    with (data_folder("personas") / "surveys" / "synthetic.csv").open(encoding="utf-8", newline="") as file:
        answers = [row["climate"] for row in csv.DictReader(file)]
    for row in range(20):
        answer = answers[survey.rows[row] - 1]
        assert survey.persona(row).record.get("climate", "") == answer
        assert not answer or answer not in survey.persona(row).background
    assert all(column.clause is None for column in survey.mapping.columns if column.question)


def test_every_file_is_described_with_its_licence() -> None:
    folder = data_folder("personas") / "surveys"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "without real respondents" in readme
    for file in sorted(folder.glob("*.*")):
        assert file.name == "README.md" or f"`{file.name}`" in readme
    for file in folder.glob("*.yaml"):
        mapping = load_mapping(file)
        assert mapping.name == file.stem
        assert mapping.source
        assert mapping.licence
