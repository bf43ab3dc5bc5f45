"""Lexical diversity, against counts made by hand and against its definition."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import MeasurementError
from opinionsim.metrics import (
    LEXICAL,
    diversity_component,
    hdd,
    lexical_diversity,
    lexical_frame,
    tokenise,
    type_token_ratio,
)
from tests.support.frames import run_row

SENTENCE = ["the", "cat", "and", "the", "dog", "and", "the", "cat"]
WORDS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12)
LENGTHS = st.integers(1, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat; THE dog!", ["the", "cat", "the", "dog"]),
        ("Don't say it\N{RIGHT SINGLE QUOTATION MARK}s 'so'.", ["don't", "say", "it's", "so"]),
        ("It rose 1,200.5 points, by 3.", ["it", "rose", "1,200.5", "points", "by", "3"]),
        ("CO2 in the 1990s: well-known, snake_case", ["co2", "in", "the", "1990s", "well", "known", "snake", "case"]),
        ("cafe\N{COMBINING ACUTE ACCENT} — élan 👍 100%", ["café", "élan", "100"]),
        ("", []),
        ("… ?!", []),
    ],
)
def test_words_are_lower_case_without_punctuation(text: str, expected: list[str]) -> None:
    assert tokenise(text) == expected


def test_ratios_count_different_n_grams() -> None:
    # 4 different words of 8; the pairs "the cat" and "and the" occur twice among 7; of 6 triples none does.
    assert [type_token_ratio(SENTENCE, n) for n in (1, 2, 3)] == [4 / 8, 5 / 7, 6 / 6]
    assert type_token_ratio(["a"] * 10) == 1 / 10
    assert math.isnan(type_token_ratio(SENTENCE, 9))
    assert math.isnan(type_token_ratio([]))


def test_hdd_of_one_repeated_word_and_of_words_that_never_recur() -> None:
    assert hdd(["a"] * 50) == pytest.approx(1 / 42, rel=1e-12)
    assert hdd([f"word{i}" for i in range(50)]) == pytest.approx(1, rel=1e-12)
    # Two words, 25 times each, in a sample of 2: both occur with probability 25/49.
    assert hdd(["a", "b"] * 25, sample=2) == pytest.approx((1 + 25 / 49) / 2, rel=1e-12)


def test_hdd_of_fewer_n_grams_than_are_drawn_is_missing() -> None:
    assert math.isnan(hdd(["a"] * 41))
    assert hdd(["a", "b"] * 21) == pytest.approx(2 / 42)
    assert math.isnan(hdd(["a"] * 42, n=2))


@given(WORDS, LENGTHS)
def test_ratios_are_shares(tokens: list[str], n: int) -> None:
    found = type_token_ratio(tokens, n)
    assert math.isnan(found) if len(tokens) < n else 0 < found <= 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.data())
def test_hdd_is_the_mean_ratio_of_all_samples(tokens: list[int], data: st.DataObject) -> None:
    sample = data.draw(st.integers(1, len(tokens)))
    ratios = [len(set(drawn)) / sample for drawn in combinations(tokens, sample)]
    assert hdd([str(token) for token in tokens], sample=sample) == pytest.approx(np.mean(ratios), rel=1e-12)


@given(st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.integers(1, 40), min_size=2, max_size=12))
def test_hdd_is_the_sum_of_hypergeometric_contributions(frequencies: dict[str, int]) -> None:
    tokens = list(Counter(frequencies).elements())
    total, sample = len(tokens), min(42, len(tokens))
    absent = [math.comb(total - count, sample) / math.comb(total, sample) for count in frequencies.values()]
    assert hdd(tokens, sample=sample) == pytest.approx(sum(1 - each for each in absent) / sample, rel=1e-11)


@given(st.permutations(SENTENCE * 6))
def test_measures_of_words_do_not_depend_on_their_order(tokens: list[str]) -> None:
    assert hdd(tokens) == hdd(SENTENCE * 6)
    assert type_token_ratio(tokens) == 4 / 48


def test_a_corpus_pools_texts_and_no_n_gram_leads_from_one_to_the_next() -> None:
    found = lexical_diversity(["One two. Two", "one TWO three"], sample=2)
    assert tuple(found) == LEXICAL
    # Pairs: one-two, two-two, one-two, two-three; triples: one-two-two, one-two-three; nothing longer.
    assert [found[f"ttr_{n}"] for n in (1, 2, 3)] == [3 / 6, 3 / 4, 2 / 2]
    assert math.isnan(found["ttr_4"])
    assert found["hdd_1"] == hdd(["one", "two", "two", "one", "two", "three"], sample=2)
    assert (found["hdd_2"], found["hdd_3"]) == (pytest.approx(11 / 12), 1)
    assert math.isnan(found["hdd_4"])
    assert all(math.isnan(value) for value in lexical_diversity([]).values())


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda: hdd("the cat"), "tokens must be a sequence of words"),
        (lambda: type_token_ratio("the cat"), "tokens must be a sequence of words"),
        (lambda: lexical_diversity("the cat"), "texts must be several texts"),
        (lambda: hdd(SENTENCE, sample=0), "sample must be a whole number of at least 1; got 0"),
        (lambda: type_token_ratio(SENTENCE, 0), "n must be a whole number of at least 1; got 0"),
        (lambda: type_token_ratio(SENTENCE, True), "got True"),
        (lambda: diversity_component(pd.DataFrame({"ttr_1": [0.5]})), "the measures frame lacks the column(s) ttr_2"),
        (lambda: diversity_component(_corpora([[0.5] * 10, [math.nan] * 10])), "1 of 2 have them"),
        (lambda: diversity_component(_corpora([[0.5] * 10] * 3)), "no measure differs between the 3 corpora"),
    ],
)
def test_what_cannot_be_measured_is_refused(function: Any, told: str) -> None:
    with pytest.raises(MeasurementError) as raised:
        function()
    assert told in str(raised.value)


def _corpora(rows: Any) -> pd.DataFrame:
    return pd.DataFrame(np.asarray(rows, dtype=float), columns=list(LEXICAL))


def test_the_component_of_measures_that_move_together_explains_everything() -> None:
    """Ten copies of one measure have equal loadings, and the scores are its standard scores times sqrt(10)."""
    measure = np.array([0.2, 0.8, 0.5, 0.9])
    found = diversity_component(_corpora(np.outer(measure, np.linspace(0.5, 1, 10))))
    standard = (measure - measure.mean()) / measure.std()
    np.testing.assert_allclose(found.loadings, 10**-0.5)
    np.testing.assert_allclose(found.scores, standard * 10**0.5)
    assert found.explained == pytest.approx(1)
    assert found.loadings.index.tolist() == list(LEXICAL)


def test_the_component_is_the_first_eigenvector_of_the_correlations() -> None:
    draw = np.random.default_rng(0)
    frame = _corpora(draw.normal(size=(30, 1)) * draw.uniform(0.2, 1, 10) + draw.normal(size=(30, 10)))
    found = diversity_component(frame)
    values, vectors = np.linalg.eigh(np.corrcoef(frame.to_numpy(), rowvar=False))
    axis = vectors[:, -1] * np.sign(vectors[:, -1].sum())
    np.testing.assert_allclose(found.loadings, axis)
    assert found.explained == pytest.approx(values[-1] / 10)
    assert found.scores.var(ddof=0) == pytest.approx(values[-1])
    # Turned round, more diverse is still higher.
    np.testing.assert_allclose(diversity_component(-frame).scores, -found.scores)
    assert diversity_component(-frame).loadings.sum() > 0


def test_corpora_without_a_measure_have_no_score_and_constant_measures_no_weight() -> None:
    rows = np.linspace(0.1, 0.9, 5)[:, None] * np.ones(10)
    rows[:, 9] = [1, 1, 1 - 1e-15, 1, 1]
    rows[1, 5] = np.nan
    frame = _corpora(rows).assign(cell=list("abcde")).set_index(pd.Index([7, 7, 8, 9, 10]))
    found = diversity_component(frame)
    assert found.scores.index.tolist() == [7, 7, 8, 9, 10]
    assert found.scores.isna().tolist() == [False, True, False, False, False]
    assert found.scores.dropna().is_monotonic_increasing
    assert found.loadings["hdd_5"] == 0
    assert (found.loadings**2).sum() == pytest.approx(1)


def _turn(run_id: str, turn: int, agent: int, message: str, status: str = "answered", **more: Any) -> dict[str, Any]:
    return {"run_id": run_id, "turn": turn, "agent": agent, "kind": "response"} | {
        "message": message,
        "status": status,
        **more,
    }


def test_a_frame_has_a_row_a_cell_and_run_over_what_its_participants_said() -> None:
    shared = {"n_agents": 2}
    runs = pd.DataFrame(
        [
            run_row("r0", cell="chain", replicate=0, **shared),
            run_row("r1", cell="chain", replicate=1, block="b1", **shared),
            # A cell that reads the same run with another instrument.
            run_row("r0", cell="chain, other instrument", replicate=0, instrument_id="m1", **shared),
            run_row("r2", cell="ensemble", replicate=0, evidence="model", **shared),
        ]
    )
    turns = pd.DataFrame(
        [
            _turn("r0", 1, 0, "yes no yes"),
            _turn("r0", 2, 1, "no no"),
            _turn("r0", 3, 1, "I cannot", status="refused"),
            _turn("r0", 4, 1, "cut", status="truncated"),
            _turn("r0", 5, 2, "moderators are left out"),
            _turn("r0", 6, 0, "so are probes", kind="probe"),
            _turn("r1", 0, 0, "alone"),
            _turn("other", 0, 0, "of no run"),
        ]
    )
    found = lexical_frame(runs, turns, sample=2)
    assert found[["run_id", "cell", "replicate", "block"]].to_numpy().tolist() == [
        ["r0", "chain", 0, "b0"],
        ["r1", "chain", 1, "b1"],
        ["r0", "chain, other instrument", 0, "b0"],
        ["r2", "ensemble", 0, "b0"],
    ]
    assert found[["n_texts", "n_missing", "n_words"]].to_numpy().tolist() == [
        [2, 2, 5],
        [1, 0, 1],
        [2, 2, 5],
        [0, 0, 0],
    ]
    np.testing.assert_allclose(found["ttr_1"], [2 / 5, 1, 2 / 5, np.nan])
    # Of the 10 pairs of yes, no, yes, no, no, 6 are different words.
    np.testing.assert_allclose(found["hdd_1"], [(1 + 6 / 10) / 2, np.nan, (1 + 6 / 10) / 2, np.nan])
    assert found["evidence"].tolist() == ["scripted", "scripted", "scripted", "model"]
    assert found.loc[0, list(LEXICAL)].to_dict() == pytest.approx(
        lexical_diversity(["yes no yes", "no no"], sample=2), nan_ok=True
    )


def test_a_frame_without_its_columns_is_refused() -> None:
    runs = pd.DataFrame([run_row("r0")])
    with pytest.raises(MeasurementError, match=r"the turns frame lacks the column\(s\) message"):
        lexical_frame(runs, pd.DataFrame([_turn("r0", 0, 0, "")]).drop(columns="message"))
