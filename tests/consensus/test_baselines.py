"""Baselines of predicted agreement: values against closed forms, and what depends on nothing but its pair."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionsim.classifiers import Classifier, Item, load_classifier
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.testing import ClassifierContract

METHODS = ["tfidf", "longest", "rouge1", "rouge2", "rougeL", "bleu", "random"]
TEXTS = st.text(st.sampled_from("ab \u00e9."), min_size=1, max_size=12).filter(str.strip)


class TestContract(ClassifierContract):
    second = "I doubt Theory XYZ, and I would not rule it out."
    on_points = False

    @pytest.fixture(autouse=True, params=METHODS)
    def _method(self, request: pytest.FixtureRequest) -> None:
        self.method = request.param

    def classifier(self, scale: OpinionScale) -> Classifier:
        return load_classifier("baseline", scale, method=self.method)


def score(method: str, statement: str, opinion: str, **options: int) -> float:
    classifier = load_classifier("baseline", method=method, **options)
    return float(classifier.classify([Item(statement, about=opinion)]).value[0])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # Words of both, weight 1: the, cat, sat. Words of one, weight 1 + log 1.5: today; a, mat, on.
        ("tfidf", 3 / math.sqrt((3 + (1 + math.log(1.5)) ** 2) * (3 + 3 * (1 + math.log(1.5)) ** 2))),
        ("longest", 17),
        # 3 of 4 words of the statement, of 6 of the opinion.
        ("rouge1", 2 * 3 / (4 + 6)),
        # the cat, cat sat: 2 of 3 pairs, of 5.
        ("rouge2", 2 * 2 / (3 + 5)),
        ("rougeL", 2 * 3 / (4 + 6)),
        # Precisions 3/4, 2/3, 1/2 and, smoothed, 1/2 of 1; brevity exp(1 - 6/4).
        ("bleu", (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4) * math.exp(1 - 6 / 4)),
    ],
)
def test_scores_are_their_closed_forms(method: str, expected: float) -> None:
    assert score(method, "the cat sat today ", "the cat sat on a mat") == pytest.approx(expected)


def test_subsequences_need_not_be_in_one_piece_and_case_counts_for_bleu_alone() -> None:
    assert score("rougeL", "one three", "one two three") == pytest.approx(2 * 2 / (2 + 3))
    assert score("rouge2", "one three", "one two three") == 0
    for method in ("tfidf", "rouge1", "rougeL"):
        assert score(method, "One, Three!", "one three") == pytest.approx(1)
    assert score("bleu", "One Three", "one three") < 1


def test_words_of_any_script_are_words() -> None:
    city, coffee = "\u0433\u043e\u0440\u043e\u0434", "caf\u00e9"
    for method in ("tfidf", "rouge1"):
        assert score(method, f"{city} {coffee}", f"{coffee}, {city}") == pytest.approx(1)


@settings(max_examples=25)
@given(st.sampled_from(METHODS), TEXTS, TEXTS)
def test_overlap_is_within_its_range_and_greatest_for_equal_texts(method: str, one: str, two: str) -> None:
    found = score(method, one, two)
    if method == "longest":
        assert found == len(one.strip())
        return
    assert 0 <= found <= 1
    if method != "random" and any(letter.isalpha() for letter in one):
        assert score(method, one, one) >= found - 1e-12
    if method not in ("bleu", "random"):
        assert score(method, two, one) == pytest.approx(found)


def test_random_scores_are_uniform_and_drawn_from_seed_and_texts() -> None:
    items = [Item(f"statement {one}", about=f"opinion {two}") for one in range(40) for two in range(25)]
    values = [load_classifier("baseline", method="random", seed=seed).classify(items).value for seed in (0, 0, 1)]
    np.testing.assert_array_equal(values[0], values[1])
    assert len(set(values[0])) == len(items)
    # 1000 draws: the largest difference from a uniform distribution exceeds 0.09 once in 10^7 times (DKW).
    for drawn in (values[0], values[2]):
        assert np.abs(np.sort(drawn) - np.arange(1, 1001) / 1000).max() < 0.09
    assert abs(np.corrcoef(values[0], values[2])[0, 1]) < 0.17
    assert score("random", "a", "b") != score("random", "b", "a")


def test_options_hold_what_can_change_a_score() -> None:
    assert load_classifier("baseline", method="tfidf").options == {"method": "tfidf"}
    assert load_classifier("baseline", method="random", seed=3).options == {"method": "random", "seed": 3}


def test_blank_texts_have_no_score_and_a_missing_opinion_is_an_error() -> None:
    classifier = load_classifier("baseline", method="longest")
    found = classifier.classify([Item(" ", about="b"), Item("a", about="\n"), Item("a", about="b")])
    assert found.value.tolist()[2] == 1
    assert np.isnan(found.value).tolist() == [True, True, False]
    assert found.off_scale.tolist() == [1, 1, 0]
    with pytest.raises(SpecError, match=r"'baseline' judges pairs; 'a' has no second text \(about\)"):
        classifier.classify([Item("a")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rouge"}, r"method: unknown 'rouge' \(did you mean rouge"),
        ({"method": ["bleu"]}, "method: unknown"),
        ({"method": "bleu", "seed": 1}, "seed: the method 'bleu' makes no draws"),
        ({"method": "random", "seed": -1}, "seed must be a whole number of at least 0"),
        ({}, "method"),
    ],
)
def test_bad_options_are_one_error(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_classifier("baseline", **options)


@pytest.mark.parametrize(
    ("method", "package", "module"),
    [
        ("tfidf", "scikit-learn", "sklearn.feature_extraction.text"),
        ("rougeL", "rouge-score", "rouge_score.rouge_scorer"),
        ("bleu", "sacrebleu", "sacrebleu.metrics"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, method: str, package: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MeasurementError, match=rf"extra 'consensus' \({package} is missing\)"):
        load_classifier("baseline", method=method)
    assert score("longest", "abc", "d") == 3
