"""Queries on respondents, against a reading of them in plain Python."""

from __future__ import annotations

import contextlib
import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SurveyError
from opinionsim.surveys import Survey
from tests.support.tables import refused

Row = dict[str, Any]
Oracle = Callable[[Row], bool]

TEXTS = ("left", "right", "it's", 'a "b"', "a & b | `c`", "")
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _survey(rows: list[Row]) -> Survey:
    """A survey of rows with the variables age (numbers), `my party` and sex (texts); None is missing."""
    columns = [{"column": "age"}, {"column": "my party"}, {"column": "sex"}]
    # Texts that do not occur here could have occurred: the mapping names them.
    for column in columns[1:]:
        column["skip"] = list(TEXTS)  # type: ignore[assignment]
    content = {
        "mapping": {"name": "made", "columns": columns},
        "rows": list(range(1, len(rows) + 1)),
        "values": {name: [row[name] for row in rows] for name in ("age", "my party", "sex")},
        "weights": None,
        "opinions": [None] * len(rows),
        "n_dropped": 0,
    }
    return Survey.from_content(content)


def _compared(value: Any, sign: str, other: Any) -> bool:
    """A missing value equals nothing, and is neither less nor greater."""
    if value is None or other is None:
        return sign == "!="
    return bool(OPERATORS[sign](value, other))


def _number(name: str, sign: str, value: float, flip: bool) -> tuple[str, Oracle]:
    spelled = f"{value!r} {FLIPPED[sign]} {name}" if flip else f"{name} {sign} {value!r}"
    return spelled, lambda row: _compared(row["age"], sign, value)


def _text(name: str, sign: str, value: str) -> tuple[str, Oracle]:
    return f"{name} {sign} {value!r}", lambda row: _compared(row[name.strip("`")], sign, value)


def _listed(name: str, negated: bool, values: list[str]) -> tuple[str, Oracle]:
    spelled = f"{name} {'not in' if negated else 'in'} {values!r}"
    return spelled, lambda row: (row[name.strip("`")] in values) != negated


def _chained(low: float, first: str, second: str, high: float) -> tuple[str, Oracle]:
    return (
        f"{low!r} {FLIPPED[first]} age {second} {high!r}",
        lambda row: _compared(row["age"], first, low) and _compared(row["age"], second, high),
    )


def _joined(left: tuple[str, Oracle], sign: str, right: tuple[str, Oracle]) -> tuple[str, Oracle]:
    if sign in ("and", "&"):
        return f"({left[0]}) {sign} ({right[0]})", lambda row: left[1](row) and right[1](row)
    return f"({left[0]}) {sign} ({right[0]})", lambda row: left[1](row) or right[1](row)


def _negated(inner: tuple[str, Oracle], sign: str) -> tuple[str, Oracle]:
    return f"{sign}({inner[0]})", lambda row: not inner[1](row)


numbers = st.integers(-3, 3) | st.sampled_from([-1.5, 0.25, 2.0])
names = st.sampled_from(["`my party`", "sex"])
texts = st.sampled_from(TEXTS)
signs = st.sampled_from(list(OPERATORS))
equal = st.sampled_from(["==", "!="])
atoms: st.SearchStrategy[tuple[str, Oracle]] = st.one_of(
    st.builds(_number, st.sampled_from(["age", "`age`"]), signs, numbers, st.booleans()),
    st.builds(_text, names, equal, texts),
    st.builds(_listed, names, st.booleans(), st.lists(texts, min_size=1, max_size=3)),
    st.builds(_chained, numbers, signs, signs, numbers),
    st.builds(
        lambda sign: (f"sex {sign} `my party`", lambda row: _compared(row["sex"], sign, row["my party"])),
        equal,
    ),
)
queries = st.recursive(
    atoms,
    lambda inner: (
        st.builds(_joined, inner, st.sampled_from(["and", "or", "&", "|"]), inner)
        | st.builds(_negated, inner, st.sampled_from(["not ", "~"]))
    ),
    max_leaves=6,
)
people = st.lists(
    st.fixed_dictionaries(
        {"age": st.none() | numbers, "my party": st.none() | texts, "sex": st.none() | texts},
    ),
    min_size=1,
    max_size=8,
).map(lambda rows: [{"age": 0, "my party": "left", "sex": "left"}, *rows])


@given(rows=people, query=queries)
def test_queries_mean_what_they_say(rows: list[Row], query: tuple[str, Oracle]) -> None:
    text, oracle = query
    expected = [i for i, row in enumerate(rows) if oracle(row)]
    survey = _survey(rows)
    if expected:
        assert survey.matching(text).tolist() == expected
    else:
        with pytest.raises(SurveyError, match="matches none of the"):
            survey.matching(text)


def test_signs_bind_as_the_words_do() -> None:
    # In Python & binds tighter than comparisons; in queries of pandas, and here, it does not.
    rows = [{"age": age, "my party": party, "sex": "left"} for age in (1, 2) for party in ("left", "right")]
    survey = _survey(rows)
    assert survey.matching("age == 2 & `my party` == 'left' | age < 2").tolist() == [0, 1, 2]
    assert survey.matching("not age == 2 and sex == 'left'").tolist() == [0, 1]


def test_no_query_takes_everybody(survey: Survey) -> None:
    assert survey.matching().tolist() == list(range(5))


@given(text=st.text(max_size=40) | st.text(alphabet="age<1'()[]&|~`. ", max_size=30))
def test_any_text_is_a_query_or_a_clear_error(text: str) -> None:
    survey = _survey([{"age": 1, "my party": "left", "sex": "left"}])
    # Any other error than this one fails.
    with contextlib.suppress(SurveyError):
        assert survey.matching(text).tolist() == [0]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        *refused(__file__, "queries"),
        ("(" * 300 + "age < 3" + ")" * 300, "cannot be read"),
        ("not " * 60 + "age < 3", "is nested more than 50 times"),
        ("age < 3 or " * 2000 + "age < 3", "has at most 10000 characters"),
        ("age < 1" + "0" * 400, "instead of a value"),
    ],
)
def test_what_is_no_query_is_refused_in_words(survey: Survey, query: str, problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        survey.matching(query)


def test_what_is_no_text_is_refused(survey: Survey) -> None:
    with pytest.raises(SurveyError, match="a query must be a text"):
        survey.matching(3)  # type: ignore[arg-type]


def test_a_value_that_the_mapping_recodes_can_be_asked_for_where_nobody_has_it(survey: Survey) -> None:
    content = json.loads(json.dumps(survey.content()))
    content["mapping"]["columns"][2]["recode"] = {"green": "the greens"}
    other = Survey.from_content(content)
    assert other.matching("party in ['left', 'green']").tolist() == [0]
    assert np.array_equal(other.matching("party != 'green'"), np.arange(5))
