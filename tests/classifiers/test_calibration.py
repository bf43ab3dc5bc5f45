from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opinionsim.classifiers import Calibration, Item, fit_calibration, load_calibration
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.topics import Claim

ITEM = Item("text", Claim("fire is cold", "fire", "falsehood"))
SCALE = OpinionScale.of_size(3)


class Told:
    """A classifier that gives the distributions it was told."""

    name = "told"
    needs_claim = False
    reads_context = False
    reads_about = False

    def __init__(self, rows: Sequence[Sequence[float]], **options: Any) -> None:
        self.scale = SCALE
        self.options: dict[str, Any] = {"weights": "abc", "calibration": None, **options}
        self._rows = rows

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        return OpinionEstimates.from_probabilities(self.scale, self._rows)


def fitted(rows: Sequence[Sequence[float]], **options: Any) -> Calibration:
    return fit_calibration(Told(rows, **options), [ITEM] * len(rows), date="2024-05-31")


def test_the_prior_is_the_mean_with_one_text_of_equal_probabilities_more():
    calibration = fitted([[0.5, 0.25, 0.25], [0.7, 0.3, 0.0], [np.nan] * 3])
    expected = np.array([1.2 + 1 / 3, 0.55 + 1 / 3, 0.25 + 1 / 3]) / 3
    np.testing.assert_allclose(np.exp(calibration.log_prior), expected)
    assert (calibration.n_texts, calibration.points, calibration.date) == (2, (-1, 0, 1), "2024-05-31")


def test_the_prior_is_divided_out():
    calibration = fitted([[0.8, 0.1, 0.1]] * 100)
    masses = np.log([[0.4, 0.3, 0.1]])
    expected = np.array([0.4, 0.3, 0.1]) / np.exp(calibration.log_prior)
    np.testing.assert_allclose(calibration.probabilities(masses), [expected / expected.sum()])
    assert calibration.probabilities(masses).argmax() == 1


def test_a_classifier_without_bias_is_left_as_it_is():
    calibration = fitted([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    np.testing.assert_allclose(calibration.probabilities(np.log([[0.2, 0.2, 0.1]])), [[0.4, 0.4, 0.2]])


def test_it_survives_a_file(tmp_path: Path):
    calibration = fitted([[0.8, 0.1, 0.1]])
    calibration.save(tmp_path / "prior.json")
    again = load_calibration(tmp_path / "prior.json")
    assert again == calibration
    assert again.digest == calibration.digest != fitted([[0.7, 0.2, 0.1]]).digest


def test_another_instrument_is_refused_with_what_differs():
    calibration = fitted([[0.8, 0.1, 0.1]])
    calibration.require("told", SCALE, {"weights": "abc"})
    with pytest.raises(SpecError, match=r"weights 'abc' instead of 'xyz'"):
        calibration.require("told", SCALE, {"weights": "xyz"})
    with pytest.raises(SpecError, match=r"scale \[-1, 0, 1\] instead of \[-2, -1, 0, 1, 2\]"):
        calibration.require("told", OpinionScale(), {"weights": "abc"})
    turned = OpinionScale(SCALE.points, SCALE.labels[::-1])
    with pytest.raises(SpecError, match=r"labels \['negative', 'neutral', 'positive'\] instead of \['positive'"):
        calibration.require("told", turned, {"weights": "abc"})
    with pytest.raises(SpecError, match="classifier 'told' instead of 'flan-t5'"):
        calibration.require("flan-t5", SCALE, {})


def test_what_cannot_be_fitted():
    with pytest.raises(MeasurementError, match="none of the 2 pilot texts has an answer"):
        fitted([[np.nan] * 3] * 2)
    with pytest.raises(SpecError, match="classifier without one"):
        fitted([[0.8, 0.1, 0.1]], calibration="0123")
    with pytest.raises(SpecError, match=r"date must be a day such as 2024-05-31; got 'May'"):
        fit_calibration(Told([[0.8, 0.1, 0.1]]), [ITEM], date="May")


class Broken(Told):
    """A classifier that builds its estimates by hand, and badly."""

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        return OpinionEstimates(self.scale, np.array(self._rows), np.zeros(1), np.zeros(1))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_prior_that_is_not_finite_is_not_fitted(number: float):
    with pytest.raises(MeasurementError, match="not finite"):
        fit_calibration(Broken([[number, 0.5, 0.5]]), [ITEM], date="2024-05-31")


@pytest.mark.parametrize(("number", "message"), [("NaN", "NaN is not a number"), ("1e999", r"log_prior.1")])
def test_a_prior_that_is_not_finite_is_not_loaded(tmp_path: Path, number: str, message: str):
    path = tmp_path / "prior.json"
    content = fitted([[0.8, 0.1, 0.1]]).model_dump(mode="json")
    path.write_text(json.dumps({**content, "log_prior": [0.0, 2.5, 0.0]}).replace("2.5", number))
    with pytest.raises(SpecError, match=message):
        load_calibration(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ('{"version": 2}', "version"),
        ('{"version": 1, "classifier": "told", "options": {}, "points": [0, 1], "date": "2024-05-31"}', "log_prior"),
    ],
)
def test_what_is_no_calibration(tmp_path: Path, content: str, message: str):
    (tmp_path / "prior.json").write_text(content)
    with pytest.raises(SpecError, match=message):
        load_calibration(tmp_path / "prior.json")


def test_a_prior_of_the_wrong_length():
    with pytest.raises(SpecError, match="one number for each of 3 points"):
        fitted([[0.8, 0.1, 0.1]]).model_copy(update={"log_prior": (0.0,)}).require("told", SCALE, {})
