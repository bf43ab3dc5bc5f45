"""Samples of respondents: who is in them how often, and who cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SurveyError
from opinionsim.foundation.streams import stream
from opinionsim.surveys import Survey


def _survey(weights: list[float] | None, size: int = 0) -> Survey:
    n = size or len(weights or [])
    content = {
        "mapping": {
            "name": "made",
            "weight": "w",
            "columns": [{"column": "place", "clause": "You are number ${value}"}],
        },
        "rows": list(range(11, 11 + n)),
        "values": {"place": list(range(n))},
        "weights": weights,
        "opinions": [None] * n,
        "n_dropped": 0,
    }
    return Survey.from_content(content)


WEIGHTS = [0.2, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0, 0.0, 4.0, 0.8]


@given(
    weights=st.lists(st.floats(0, 1e6) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=30).filter(any),
    data=st.data(),
)
def test_a_sample_has_its_size_and_nobody_twice(weights: list[float], data: st.DataObject) -> None:
    positive = [i for i, weight in enumerate(weights) if weight]
    size = data.draw(st.integers(1, len(positive)))
    rows = _survey(weights).draw(size, np.random.default_rng(data.draw(st.integers(0, 99)))).rows.tolist()
    assert len(set(rows)) == len(rows) == size
    assert set(rows) <= set(positive)


def test_equal_streams_draw_the_same() -> None:
    survey = _survey(WEIGHTS)
    first, again, other = (survey.draw(4, stream(seed, "survey")).rows.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_weights_count_in_the_draw_or_in_the_analysis_and_never_in_both() -> None:
    survey = _survey(WEIGHTS)
    drawn, analysed = (survey.draw(4, stream(1, "test"), weighted=weighted) for weighted in (True, False))
    assert (drawn.weighting, drawn.weights) == ("draw", None)
    assert all("weight" not in persona.record for persona in drawn.personas.personas)
    assert analysed.weighting == "analysis"
    assert analysed.weights is not None
    assert analysed.weights.tolist() == [WEIGHTS[row] for row in analysed.rows]
    assert [float(persona.record["weight"]) for persona in analysed.personas.personas] == analysed.weights.tolist()


def test_a_survey_without_weights_gives_all_the_same_chance() -> None:
    sample = _survey(None, size=5).draw(5, stream(1, "test"))
    assert (sorted(sample.rows), sample.weights) == ([0, 1, 2, 3, 4], None)


def test_respondents_go_by_their_rows_and_repeated_ones_are_numbered() -> None:
    sample = _survey([1.0, 0.0]).draw(3, stream(1, "test"), replace=True)
    assert [persona.name for persona in sample.personas.personas] == [
        "Respondent 11",
        "Respondent 11 (2)",
        "Respondent 11 (3)",
    ]
    assert {persona.background for persona in sample.personas.personas} == {"You are number 0."}


def test_only_those_who_match_are_drawn() -> None:
    rows = _survey(WEIGHTS).draw(3, stream(1, "test"), "place in [2, 7, 8, 9]").rows
    assert sorted(rows) == [2, 8, 9]


@pytest.mark.parametrize(
    ("size", "options", "problem"),
    [
        (0, {}, "at least 1; got 0"),
        (-1, {}, "at least 1; got -1"),
        (True, {}, "at least 1; got True"),
        (2.0, {}, "at least 1; got 2.0"),
        (10, {}, "there are 9 respondents with a weight above 0; 10 cannot be drawn without replacement"),
        (11, {"weighted": False}, "there are 10 respondents; 11 cannot be drawn without replacement"),
        (3, {"query": "place < 2"}, "2 respondents for whom 'place < 2' is true with a weight above 0; 3 cannot"),
        (1, {"query": "place == 7", "replace": True}, "there are 0 respondents for whom 'place == 7' is true"),
        (1, {"query": "place == 70"}, "matches none of the 10"),
    ],
)
def test_who_is_not_there_cannot_be_drawn(size: int, options: dict[str, object], problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        _survey(WEIGHTS).draw(size, stream(1, "test"), **options)  # type: ignore[arg-type]
