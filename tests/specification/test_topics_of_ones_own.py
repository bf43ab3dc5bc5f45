"""Topics of the user's own, from the specification to the frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opinionsim.errors import SpecError
from opinionsim.plots import trajectory_data
from opinionsim.specification import load_experiment
from tests.support.running import SMALL, carry_out, changed

SQUARE: dict[str, Any] = {
    "name": "square",
    "title": "What the square is for",
    "claims": {"market": "the square should stay a market", "car-park": "the square should become a car park"},
}


def _spec(title: str = SQUARE["title"], **values: Any) -> dict[str, Any]:
    topic = {"definition": {**SQUARE, "title": title}, "framing": "market"}
    return changed(SMALL, topic=topic, **values)


def test_an_open_question_runs_under_the_names_of_its_sides() -> None:
    sides = ["market", "car-park"]
    results = carry_out(load_experiment(_spec(sweep={"topic.framing": sides})), "sides.sqlite")[1]
    found = results.runs.set_index("framing")
    assert set(found.index) == set(sides)
    assert [found.loc[side, "claim"] for side in sides] == list(SQUARE["claims"].values())
    assert np.isnan(found["truth"]).all()
    assert set(found["topic_title"]) == {"What the square is for"}


@pytest.mark.parametrize(
    ("framing", "message"),
    [
        (None, "topic.framing: topic 'square' needs a framing; valid: market, car-park"),
        ("falsehood", "topic.framing: topic 'square' has no framing 'falsehood'; valid: market, car-park"),
    ],
)
def test_a_side_must_be_one_of_the_topic(framing: str | None, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_experiment(changed(_spec(), topic__framing=framing))
    assert str(caught.value) == f"specification: {message}"


def test_the_side_that_is_meant_by_default_is_the_same_run() -> None:
    runs = [load_experiment(changed(SMALL, topic={"name": "flat-earth", **given})).runs[0].run_id
            for given in ({}, {"framing": "falsehood"}, {"framing": "truth"})]  # fmt: skip
    assert runs[0] == runs[1] != runs[2]


def test_a_changed_title_is_shown_without_another_run() -> None:
    first = carry_out(load_experiment(_spec()), "title.sqlite")[1]
    again = carry_out(load_experiment(_spec("Market or cars")), "title.sqlite")[1]
    assert again.runs["run_id"].tolist() == first.runs["run_id"].tolist()
    assert trajectory_data(first).title.startswith("What the square is for, market framing")
    assert trajectory_data(again).title.startswith("Market or cars, market framing")
