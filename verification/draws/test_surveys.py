"""Respondents of a survey are in samples as often as their weights say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

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


def test_weights_on_record_estimate_what_draws_by_weight_do() -> None:
    survey, rng = _survey(WEIGHTS), stream(4, "test")
    truth = np.average(np.arange(10), weights=WEIGHTS)
    by_weight = survey.draw(40_000, rng, replace=True)
    later = survey.draw(40_000, rng, weighted=False, replace=True)
    assert np.mean(by_weight.rows) == pytest.approx(truth, abs=5 * 3 / np.sqrt(40_000))
    assert np.average(later.rows, weights=later.weights) == pytest.approx(truth, abs=5 * 4 / np.sqrt(40_000))
