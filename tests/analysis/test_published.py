"""The tests of the published tables, against those of SciPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from opinionsim.analysis import published_tests
from tests.support.units import measured_runs

LEVELS = ("none", "weak", "strong")


def _frames(evidence: str = "model") -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(2)
    return measured_runs(
        {"topic": topic, "block": topic, "framing": framing, "confirmation_bias": level, "evidence": evidence}
        | {"bias": rng.normal(0.3, 0.5), "diversity": rng.normal(0.6 + 0.2 * LEVELS.index(level), 0.2)}
        for topic, framing, level in product("abcdefgh", ("falsehood", "truth"), LEVELS)
    )


def test_the_tests_are_those_of_scipy() -> None:
    runs, metrics = _frames()
    both = runs.merge(metrics[["run_id", "bias", "diversity"]], on="run_id")
    (made,) = published_tests(runs, metrics)
    found = made.frame.set_index(["test", "condition"])
    one = both[(both["framing"] == "truth") & (both["confirmation_bias"] == "weak")]["bias"]
    row = found.loc["B against 0", "truth, weak"]
    assert (row["statistic"], row["p"]) == pytest.approx(tuple(stats.ttest_1samp(one, 0)))
    pairs = both[both["confirmation_bias"] == "weak"].pivot(index="topic", columns="framing", values="bias")
    row = found.loc["B, truth less falsehood", "weak"]
    assert (row["statistic"], row["p"]) == pytest.approx(tuple(stats.ttest_rel(pairs["truth"], pairs["falsehood"])))
    cells = [both.loc[both["confirmation_bias"] == level, "diversity"] for level in LEVELS]
    row = found.loc["D by confirmation bias, F", "all"]
    assert (row["statistic"], row["p"]) == pytest.approx(tuple(stats.f_oneway(*cells)))
    assert (row["df"], row["cells"]) == ("2, 45", "16 each")


def test_planned_contrasts_share_the_variance_within_cells_and_make_up_the_sum_of_squares() -> None:
    """Two orthogonal contrasts of three cells of equal size: their squared t values average to F."""
    (made,) = published_tests(*_frames())
    found = made.frame.set_index("test")["statistic"]
    planned = found["D, none less weak and strong"] ** 2 + found["D, weak less strong"] ** 2
    assert planned / 2 == pytest.approx(found["D by confirmation bias, F"])


def test_cells_of_unequal_numbers_are_not_tested() -> None:
    runs, metrics = _frames()
    runs.loc[0, "status"] = "incomplete"
    (made,) = published_tests(runs, metrics)
    found = made.frame.set_index(["test", "condition"])
    row = found.loc["B, truth less falsehood", "none"]
    assert row["cells"] == "8, 7"
    assert row[["statistic", "p"]].isna().all()
    assert found.loc["B, truth less falsehood", "weak"]["p"] > 0
    assert found.loc["D by confirmation bias, F", "all"]["cells"] == "15, 16, 16"
    assert np.isnan(found.loc["D by confirmation bias, F", "all"]["p"])


def test_scripted_runs_have_no_statistic() -> None:
    (made,) = published_tests(*_frames("scripted"))
    assert made.frame[["statistic", "p"]].isna().all(axis=None)
    assert any(note.startswith("No p-value and no finding") for note in made.notes)
