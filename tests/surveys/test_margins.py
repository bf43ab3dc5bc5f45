"""Personas drawn from margins."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SurveyError
from opinionsim.foundation.streams import stream
from opinionsim.surveys import fit_margins, from_margins, with_each_value
from tests.support.tables import refused

SEX_AGE = {"sex": {"woman": 0.6, "man": 0.4}, "age": {"young": 0.3, "old": 0.7}}
shares = st.lists(st.floats(0.01, 100), min_size=1, max_size=4)


def _margin(joint: np.ndarray, axis: int) -> np.ndarray:
    found: np.ndarray = joint.sum(axis=tuple(i for i in range(joint.ndim) if i != axis))
    return found


@given(lists=st.lists(shares, min_size=1, max_size=4), data=st.data())
def test_the_joint_has_all_margins(lists: list[list[float]], data: st.DataObject) -> None:
    margins = {
        f"v{i}": {f"x{j}": each / sum(values) for j, each in enumerate(values)} for i, values in enumerate(lists)
    }
    cells = list(itertools.product(*(list(values) for values in margins.values())))
    counts = data.draw(st.lists(st.floats(0.1, 10), min_size=len(cells), max_size=len(cells)))
    seed = [
        {**dict(zip(margins, cell, strict=True)), "share": count} for cell, count in zip(cells, counts, strict=True)
    ]
    joint = fit_margins(margins, seed)
    assert joint.shape == tuple(map(len, lists))
    for axis, values in enumerate(margins.values()):
        np.testing.assert_allclose(_margin(joint, axis), list(values.values()), rtol=0, atol=1e-9)


def test_without_a_seed_attributes_are_independent() -> None:
    np.testing.assert_allclose(fit_margins(SEX_AGE), np.outer([0.6, 0.4], [0.3, 0.7]), rtol=0, atol=1e-12)


def test_the_fit_keeps_the_odds_ratio_of_the_seed() -> None:
    table = np.array([[40.0, 10.0], [20.0, 30.0]])
    seed = [
        {"sex": sex, "age": age, "share": table[i, j]}
        for i, sex in enumerate(SEX_AGE["sex"])
        for j, age in enumerate(SEX_AGE["age"])
    ]
    joint = fit_margins(SEX_AGE, seed)
    odds = joint[0, 0] * joint[1, 1] / (joint[0, 1] * joint[1, 0])
    assert odds == pytest.approx(40 * 30 / (10 * 20), rel=1e-7)
    np.testing.assert_allclose(_margin(joint, 0), [0.6, 0.4], rtol=0, atol=1e-9)


def test_numbers_of_persons_are_shares_too() -> None:
    counted = {"sex": {"woman": 600, "man": 400}, "age": {"young": 300, "old": 700}}
    np.testing.assert_allclose(fit_margins(counted), fit_margins(SEX_AGE), rtol=0, atol=1e-12)


def test_personas_are_drawn_from_the_joint() -> None:
    seed = [
        {"sex": "woman", "age": "old", "share": 1},
        {"sex": "man", "age": "old", "share": 1},
        {"sex": "woman", "age": "young", "share": 1},
    ]
    drawn = from_margins(SEX_AGE, 20_000, stream(1, "test"), seed).personas
    assert (drawn[0].name, drawn[-1].name, list(drawn[0].attributes)) == ("Person 1", "Person 20000", ["sex", "age"])
    pairs = [tuple(persona.attributes.values()) for persona in drawn]
    # The seed has no young men, so that all the young are women.
    expected = {("woman", "young"): 0.3, ("woman", "old"): 0.3, ("man", "old"): 0.4}
    assert set(pairs) == set(expected)
    for pair, p in expected.items():
        assert abs(pairs.count(pair) - 20_000 * p) < 5 * np.sqrt(20_000 * p * (1 - p))


def test_each_value_that_can_be_drawn_is_shown_to_checks() -> None:
    found = with_each_value({"sex": {"woman": 1, "man": 0, "other": 1}, "age": {"young": 1, "mid": 0.5, "old": 0.5}})
    assert {persona.attributes["sex"] for persona in found.personas} == {"woman", "other"}
    assert {persona.attributes["age"] for persona in found.personas} == {"young", "mid", "old"}


@pytest.mark.parametrize(
    ("margins", "seed", "problem"),
    [
        *refused(__file__, "margins"),
        ({f"v{i}": dict.fromkeys("abcdefghij", 0.1) for i in range(6)}, None, "1e.06 cells; the maximum is 100000"),
        (SEX_AGE, [{"sex": "woman", "share": 1}], r"seed\[0\]: must give sex, age and share; got sex, share"),
        (SEX_AGE, [{"sex": "x", "age": "old", "share": 1}], r"seed\[0\].sex: unknown value 'x'; valid: woman, man"),
        (SEX_AGE, [{"sex": "man", "age": "old", "share": -1}], r"seed\[0\].share: must be a number of at least 0"),
        (SEX_AGE, [{"sex": "man", "age": "old", "share": 1}] * 2, r"seed\[1\]: repeats the values of an earlier row"),
        (
            SEX_AGE,
            [{"sex": "woman", "age": "old", "share": 1}, {"sex": "man", "age": "young", "share": 1}],
            "no table with the zeros of the seed has these margins",
        ),
    ],
)
def test_margins_that_cannot_be_met_are_refused(margins: Any, seed: Any, problem: str) -> None:
    with pytest.raises(SurveyError, match=problem):
        fit_margins(margins, seed)


def test_nobody_cannot_be_drawn() -> None:
    with pytest.raises(SurveyError, match="size must be at least 1; got 0"):
        from_margins(SEX_AGE, 0, stream(1, "test"))
