"""The table of outcomes: runs whose bias and diversity are given, by the shape they must have."""

from __future__ import annotations

import pandas as pd
import pytest

from opinionsim.analysis import outcome_table
from tests.support.units import measured_runs

#: Bias and diversity on -2..2, the outcome, and whether bounds a fifth narrower or wider give another.
SHAPES = [
    (0.0, 0.0, "central consensus", False),
    (-0.39, 0.39, "central consensus", False),
    (0.5, 0.5, "central consensus", True),
    (0.0, 0.5, "central consensus", True),
    (-0.51, 0.2, "consensus off the centre", True),
    (2.0, 0.0, "consensus off the centre", False),
    (0.0, 0.61, "diversified", False),
    (0.0, 1.19, "diversified", False),
    (0.3, 1.41, "diversified", True),
    (-1.0, 1.0, "diversified off the centre", False),
    (0.0, 2.0, "polarized", False),
    (0.7, 1.87, "polarized off the centre", False),
]


@pytest.mark.parametrize("points", ["-2,-1,0,1,2", "1,2,3,4,5", "-4,-2,0,2,4"])
def test_outcomes_follow_bias_and_diversity_in_halves_of_the_scale(points: str) -> None:
    scale = [int(point) for point in points.split(",")]
    middle, half = scale[2], (scale[-1] - scale[0]) / 4
    opinions = pd.DataFrame({"variable": ["stance", "other"], "scale": [points, "0,100"]})
    for bias, diversity, outcome, unsettled in SHAPES:
        fields = {"topic": "a", "block": "a", "world": "open", "evidence": "model"}
        run = fields | {"bias": middle + bias * half, "diversity": diversity * half}
        runs, metrics = measured_runs([run, run | {"world": "closed", "bias": float("nan")}])
        (row,) = outcome_table(runs, opinions, metrics).frame.to_dict("records")
        assert (row[outcome], row["unsettled"], row["runs"]) == (1, int(unsettled), 1), (bias, diversity)
        assert row["world"] == "open"


def test_conditions_have_a_row_each_and_outcomes_that_occur_a_column() -> None:
    given = [(0.0, 0.1, "open"), (1.9, 0.0, "open"), (0.1, 1.0, "closed")]
    runs, metrics = measured_runs(
        {"topic": "a", "block": str(n), "world": world, "evidence": "model", "bias": bias, "diversity": diversity}
        for n, (bias, diversity, world) in enumerate(given)
    )
    made = outcome_table(runs, pd.DataFrame({"variable": ["stance"], "scale": ["-2,-1,0,1,2"]}), metrics)
    found = made.frame.set_index("world")
    assert list(found.columns[1:]) == [
        "central consensus",
        "diversified",
        "consensus off the centre",
        "unsettled",
        "runs",
    ]
    assert found.loc["open", ["central consensus", "diversified", "consensus off the centre", "runs"]].to_list() == [
        1,
        0,
        1,
        2,
    ]
    assert found.loc["closed", ["central consensus", "diversified", "runs"]].to_list() == [0, 1, 1]
    assert "the mean is central within 0.5 of neutral; diversity is low up to 0.5, medium up to 1.5" in made.to_text(
        200
    )
