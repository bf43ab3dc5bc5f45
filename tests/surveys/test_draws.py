"""Samples of respondents: who is in them how often, and who cannot be."""

from __future__ import annotations

from collections import Counter

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


def _expected(weights: np.ndarray, size: int) -> np.ndarray:
    """Probability of being drawn: size w / sum w, with 1 for those above and the rest shared by the others."""
    expected = np.zeros(len(weights))
    certain: set[int] = set()
    while True:
        others = [i for i in range(len(weights)) if i not in certain]
        total = sum(weights[i] for i in others)
        for i in range(len(weights)):
            expected[i] = 1.0 if i in certain else (size - len(certain)) * weights[i] / total
        above = {i for i in others if expected[i] >= 1}
        if not above:
            return expected
        certain |= above
        if len(certain) == size:
            return np.array([float(i in certain) for i in range(len(weights))])


def _largest_deviation(counts: np.ndarray, expected: np.ndarray, draws: int) -> float:
    """The largest deviation of counts from their expectation, in standard deviations of a binomial count."""
    open_ones = (expected > 0) & (expected < 1)
    assert (counts[expected == 0] == 0).all()
    assert (counts[expected == 1] == draws).all()
    sd = np.sqrt(draws * expected * (1 - expected))
    return float(np.abs((counts - draws * expected)[open_ones] / sd[open_ones]).max())


WEIGHTS = [0.2, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0, 0.0, 4.0, 0.8]
DRAWS = 5_000
#: A normal deviation beyond this has probability 6e-7; there are ten of them.
BOUND = 5.0


@pytest.mark.parametrize("size", [1, 3, 4, 8])
def test_a_weighted_draw_has_its_inclusion_probabilities_exactly(size: int) -> None:
    survey, rng = _survey(WEIGHTS), stream(1, "test")
    counts = np.zeros(len(WEIGHTS))
    for _ in range(DRAWS):
        counts[survey.draw(size, rng).rows] += 1
    assert _largest_deviation(counts, _expected(np.array(WEIGHTS), size), DRAWS) < BOUND


def test_the_bound_would_find_a_draw_that_takes_one_after_the_other() -> None:
    # Successive draws without replacement favour small weights: the usual mistake.
    rng, weights = stream(1, "test"), np.array(WEIGHTS)
    counts = np.zeros(len(WEIGHTS))
    for _ in range(DRAWS):
        counts[rng.choice(len(weights), 3, replace=False, p=weights / weights.sum())] += 1
    assert _largest_deviation(counts, _expected(weights, 3), DRAWS) > BOUND


def test_pairs_are_drawn_together_in_any_order() -> None:
    survey, rng = _survey([1.0] * 6), stream(2, "test")
    seen = Counter(tuple(survey.draw(2, rng).rows.tolist()) for _ in range(3000))
    # All 30 ordered pairs of six equal respondents, each 100 times but for chance.
    assert len(seen) == 30
    assert max(abs(count - 100) for count in seen.values()) < 5 * np.sqrt(100)


@pytest.mark.parametrize("weighted", [True, False])
def test_draws_with_replacement_are_independent(weighted: bool) -> None:
    survey = _survey(WEIGHTS)
    rows = survey.draw(DRAWS, stream(3, "test"), weighted=weighted, replace=True).rows
    p = np.array(WEIGHTS) / sum(WEIGHTS) if weighted else np.full(len(WEIGHTS), 1 / len(WEIGHTS))
    assert _largest_deviation(np.bincount(rows, minlength=len(WEIGHTS)), p, DRAWS) < BOUND


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


def test_weights_on_record_estimate_what_draws_by_weight_do() -> None:
    survey, rng = _survey(WEIGHTS), stream(4, "test")
    truth = np.average(np.arange(10), weights=WEIGHTS)
    by_weight = survey.draw(40_000, rng, replace=True)
    later = survey.draw(40_000, rng, weighted=False, replace=True)
    assert np.mean(by_weight.rows) == pytest.approx(truth, abs=5 * 3 / np.sqrt(40_000))
    assert np.average(later.rows, weights=later.weights) == pytest.approx(truth, abs=5 * 4 / np.sqrt(40_000))


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
        (3, {"query": "place < 2"}, "2 respondents of whom 'place < 2' is true with a weight above 0; 3 cannot"),
        (1, {"query": "place == 7", "replace": True}, "there are 0 respondents of whom 'place == 7' is true"),
        (1, {"query": "place == 70"}, "matches none of the 10"),
    ],
)
def test_who_is_not_there_cannot_be_drawn(size: int, options: dict[str, object], problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        _survey(WEIGHTS).draw(size, stream(1, "test"), **options)  # type: ignore[arg-type]
