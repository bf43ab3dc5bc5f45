"""Metrics of frames, and the page that lists the metrics."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim.errors import MeasurementError
from opinionsim.metrics import METRICS, compute_metrics, opinion_metrics, step_metrics, trajectories
from tests.support.frames import study

NAMES = ["bias", "diversity", "esteban_ray"]


def classic_frame(opinions: np.ndarray, times: np.ndarray) -> pd.DataFrame:
    """Opinions (R, K, N) as a classic model frames them."""
    run, record, agent = np.indices(opinions.shape).reshape(3, -1)
    columns = {"run_id": run.astype(str), "cell": "c", "agent": agent, "step": times[record]}
    return pd.DataFrame({**columns, "value": opinions.ravel(), "evidence": "equation"})


def test_frames_of_classic_models_are_measured_as_arrays() -> None:
    draw = np.random.default_rng(0)
    opinions, times = draw.random((3, 4, 20)), np.array([0.0, 0.5, 1.0, 4.0])
    ring = np.arange(20)
    ties = (ring, np.roll(ring, 1))
    frame = opinion_metrics(classic_frame(opinions, times).sample(frac=1, random_state=1), range=(0, 1), network=ties)
    frame = frame.sort_values(["run_id", "step"], ignore_index=True)
    expected = compute_metrics(opinions, range=(0, 1), network=ties)
    assert list(frame.columns) == ["run_id", "cell", "step", "n", "n_missing", *expected, "evidence"]
    for name, values in expected.items():
        np.testing.assert_allclose(frame[name], values.ravel(), atol=1e-12)
    np.testing.assert_array_equal(frame["step"], np.tile(times, 3))
    assert set(frame["evidence"]) == {"equation"}
    assert (frame["n"] == 20).all()


def test_measured_runs_agree_with_their_step_metrics() -> None:
    frames = study([{"confirmation_bias": "none"}, {"n_agents": 6}], replicates=2, steps=12)
    found = opinion_metrics(trajectories(*frames), NAMES, range=(-2, 2))
    expected = step_metrics(frames.runs, frames.opinions)
    keys = ["run_id", "cell", "instrument_id", "step"]
    pd.testing.assert_frame_equal(found[keys], expected[keys])
    np.testing.assert_allclose(found["bias"], expected["bias"])
    np.testing.assert_allclose(found["diversity"], expected["diversity"])
    np.testing.assert_array_equal(found["n"], expected["n_measured"])
    np.testing.assert_array_equal(found["n_missing"], expected["n_never"])
    assert set(found["evidence"]) == {"scripted"}


def test_rows_that_are_absent_are_opinions_that_are_missing() -> None:
    frame = classic_frame(np.array([[[0.1, 0.2, 0.9], [0.2, 0.2, 0.9]]]), np.arange(2))
    found = opinion_metrics(frame.drop(index=1), ["bias"])
    np.testing.assert_allclose(found["bias"], [0.5, 1.3 / 3])
    assert found["n_missing"].tolist() == [1, 0]


def test_every_run_may_have_its_own_network() -> None:
    opinions = np.tile([0.0, 0.0, 1.0, 1.0], (2, 1, 1))
    ties = {
        "0": (np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2])),
        "1": (np.array([0, 2, 1, 3]), np.array([2, 0, 3, 1])),
    }
    found = opinion_metrics(classic_frame(opinions, np.arange(1)), "assortativity", network=ties)
    np.testing.assert_allclose(found["assortativity"], [1, -1])
    with pytest.raises(MeasurementError, match="no network for run '1'"):
        opinion_metrics(classic_frame(opinions, np.arange(1)), "assortativity", network={"0": ties["0"]})


def test_a_frame_without_rows_gives_one_without_rows() -> None:
    empty = classic_frame(np.zeros((0, 1, 3)), np.arange(1))
    assert list(opinion_metrics(empty, ["bias"])["bias"]) == []


def _frame(**columns: Any) -> pd.DataFrame:
    return classic_frame(np.array([[[0.1, 0.2]]]), np.arange(1)).assign(**columns)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (_frame().drop(columns="value"), "lacks the column"),
        (_frame(agent=[0, 0]), "occurs twice"),
        (_frame(agent=[0, -1]), "from 0; got -1"),
        (_frame(evidence=["equation", "scripted"]), "evidence must be the same"),
        (_frame(value=[0.1, math.inf]), "finite"),
    ],
)
def test_bad_frames_are_named(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        opinion_metrics(frame, ["bias"])


def test_the_page_is_what_the_registry_says(checkout: Path) -> None:
    page = (checkout / "docs" / "metrics.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(checkout / "docs" / "metrics.py"))
    assert script["renewed"](page) == page, "run python docs/metrics.py"
    assert all(f"| `{name}` |" in page for name in METRICS)


def test_every_measure_states_what_and_whence() -> None:
    for name, metric in METRICS.items():
        assert all((metric.meaning, metric.formula, metric.values)), name
        assert bool(metric.source) == bool(metric.doi), name
        assert "|" not in metric.formula + metric.meaning + metric.pitfall, name
