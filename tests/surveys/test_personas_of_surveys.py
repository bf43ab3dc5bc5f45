"""What a respondent's persona says, and what a mapping may not say."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from opinionsim.engine import Member
from opinionsim.errors import SpecError, SurveyError
from opinionsim.personas import Persona
from opinionsim.surveys import Survey, load_mapping, load_survey
from tests.surveys.conftest import MAPPING, Village


def test_a_respondent_is_a_numbered_person_of_sentences(survey: Survey) -> None:
    assert survey.persona(0) == Persona(
        "Respondent 1",
        -2,
        background="You are 34 years old. You are a woman. Your party: left. Your work is baker.",
        record={"age": "34", "sex": "F", "party": "left", "line of work": "baker"},
    )


def test_missing_and_skipped_values_make_no_sentence(survey: Survey) -> None:
    second, third, last = (survey.persona(row) for row in (1, 2, 4))
    assert second.background == "You are 74 years old. You are a man. Your party: right."
    assert third.background == "You are 24 years old. You are a woman. Your work is clerk, typist."
    assert "party" not in third.record
    assert "not sure" not in last.background
    assert last.record["party"] == "not sure"
    assert [survey.persona(row).opinion for row in range(5)] == [-2, 2, None, None, None]


def test_answers_are_never_expanded_or_taken_for_missing(survey: Survey) -> None:
    assert survey.persona(4).background == "You are 39 years old. You are a man. Your work is ${value}."
    # The answer "None" is one.
    assert survey.persona(3).background == "You are 54 years old. You are X. Your party: none. Your work is None."


def test_rows_without_weight_are_left_out_and_counted(survey: Survey) -> None:
    assert (survey.n, survey.n_dropped, survey.rows.tolist()) == (5, 1, [1, 2, 3, 5, 6])
    assert survey.weights is not None
    assert survey.weights.tolist() == [1, 2.5, 0.5, 0, 4]


def test_variables_have_weighted_shares(survey: Survey) -> None:
    found = survey.variables()
    assert list(found) == ["age", "sex", "party", "line of work"]
    assert found["age"] == {24: 0.0625, 34: 0.125, 39: 0.5, 54: 0, 74: 0.3125}
    assert found["sex"] == {"F": 0.1875, "M": 0.8125, "X": 0}
    assert found["party"] == {"left": 0.125, "none": 0, "not sure": 0.5, "right": 0.3125, None: 0.0625}
    assert list(found["party"])[-1] is None


def test_without_weights_everybody_counts_alike(village: Village) -> None:
    survey = village.load(weight=None)
    assert (survey.n, survey.n_dropped, survey.weights) == (6, 0, None)
    assert survey.variables()["sex"] == {"F": 2 / 6, "M": 3 / 6, "X": 1 / 6}


def test_groups_are_queries_by_name(survey: Survey) -> None:
    assert survey.matching(survey.group("young")).tolist() == [0, 2, 4]
    with pytest.raises(SurveyError, match="no group 'old'; valid: left, young"):
        survey.group("old")


def test_contents_make_the_same_survey(survey: Survey) -> None:
    again = Survey.from_content(json.loads(json.dumps(survey.content())))
    assert again.identity == survey.identity
    assert again.content() == survey.content()
    assert [again.persona(row) for row in range(5)] == [survey.persona(row) for row in range(5)]
    assert again.matching("age < 40").tolist() == [0, 2, 4]


def test_contents_that_do_not_fit_are_refused(survey: Survey) -> None:
    for field, value in (("rows", [1]), ("weights", [1.0]), ("opinions", []), ("values", {})):
        with pytest.raises(SpecError, match="one opinion, one weight and one value per column for each respondent"):
            Survey.from_content({**survey.content(), field: value})


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"name": "town", "source": "", "licence": ""}, False),
        ({"groups": {}}, False),
        ({"columns": [{**column, "label": "?", "question": "?"} for column in MAPPING["columns"]]}, False),
        ({"weight": None}, True),
        ({"opinion": None}, True),
        ({"columns": MAPPING["columns"][:-1]}, True),
        ({"columns": [{**MAPPING["columns"][0], "clause": "aged ${value}"}, *MAPPING["columns"][1:]]}, True),
        ({"columns": [{**MAPPING["columns"][0], "subtract_from": 2025}, *MAPPING["columns"][1:]]}, True),
        ({"columns": MAPPING["columns"][::-1]}, True),
    ],
)
def test_the_identity_is_that_of_what_prompts_and_draws_can_see(
    village: Village, changes: dict[str, Any], differs: bool
) -> None:
    before = village.load().identity
    assert (village.load(**changes).identity != before) is differs


def test_the_record_is_no_attribute_and_instruments_are_not_told_it() -> None:
    with pytest.raises(SpecError, match="'Ann' has 'age' in both record and attributes"):
        Persona("Ann", attributes={"age": "3"}, record={"age": "4"})
    member = Member(None, name="Ann", attributes={"job": "baker"}, record={"age": "4"})  # type: ignore[arg-type]
    assert member.author.persona == (("name", "Ann"), ("job", "baker"))


def _first(**changes: Any) -> dict[str, Any]:
    return {"columns": [{**MAPPING["columns"][0], **changes}, *MAPPING["columns"][1:]]}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (_first(kolumn="x"), r"village.yaml:\d+: columns\[0\].kolumn: unknown field \(did you mean column\?\)"),
        (_first(clause="You are old"), r"columns\[0\].clause: must be one line with \$\{value\} once"),
        (_first(clause="${value} and ${value}"), r"columns\[0\].clause: must be one line with \$\{value\} once"),
        (_first(clause="${value} of ${name}"), r"columns\[0\].clause: must be one line with \$\{value\} once"),
        (_first(clause="a\n${value}"), r"columns\[0\].clause: must be one line"),
        (_first(name="party"), r"columns\[2\].column: duplicate 'party'"),
        (_first(name="weight"), r"columns\[0\].name: 'weight' is a name that records use already"),
        (_first(name="background"), r"columns\[0\].name: 'background' is a name that records use already"),
        (_first(name=" "), r"columns\[0\].name: must be one line, not blank"),
        (_first(recode={"3": "three"}, skip=[3]), r"columns\[0\].skip: '3' is also recoded"),
        (_first(recode={"3": 3}), r"columns\[0\].recode.\"?3\"?: must be text; got 3"),
        (_first(asked="in May"), r"columns\[0\].asked: must be a date as YYYY-MM-DD; got 'in May'"),
        ({"columns": []}, "columns: must have at least 1 entry"),
        ({"groups": {"old": "aged > 3"}}, r"groups.old: query 'aged > 3': unknown variable 'aged'; valid: age, sex"),
        ({"groups": {"old": "age >"}}, "groups.old: query 'age >' cannot be read"),
        ({"opinion": {"column": "party", "recode": {"left": 0.5}}}, "opinion.recode.left: must be a whole number"),
    ],
)
def test_a_mapping_that_is_none_is_refused_by_field(village: Village, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        village.load(**changes)


def test_the_mapping_of_the_manual_is_one(checkout: Path, tmp_path: Path) -> None:
    text = (checkout / "docs" / "surveys.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"(?m)^    name: village\n(?:    .*\n)+", text)
    (tmp_path / "village.yaml").write_text(textwrap.dedent(block), encoding="utf-8")
    (tmp_path / "village.csv").write_text("w,born,sex,party,climate\n1,1990,F,greens,yes\n", encoding="utf-8")
    survey = load_survey(tmp_path / "village.csv", tmp_path / "village.yaml")
    persona = survey.persona(0)
    assert persona.background == "You are 34 years old. You are a woman. You vote for the greens."
    assert (persona.opinion, persona.record["climate"]) == (2, "yes")


def test_an_unknown_mapping_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="unknown survey mapping 'gallup'; valid: anes2024, synthetic, or the path"):
        load_mapping("gallup")
    with pytest.raises(SurveyError, match=r"gone.yaml: no such file"):
        load_mapping(tmp_path / "gone.yaml")
    with pytest.raises(SurveyError, match="unknown survey 'gallup'; valid: synthetic, or the path of a file"):
        load_survey("gallup", "synthetic")
