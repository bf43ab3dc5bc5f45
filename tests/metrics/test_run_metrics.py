from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import MeasurementError
from opinionsim.metrics import bias, diversity, run_metrics, scale_of, step_metrics, trajectories
from tests.support.frames import Frames, final, make, one_run, opinion_rows, run_row, study

UNIFORM = [-2, -2, -1, -1, 0, 0, 1, 1, 2, 2]
STEPS = 6

run_texts = st.lists(
    st.tuples(st.integers(0, STEPS), st.integers(0, 3), st.sampled_from([-2, -1, 0, 1, 2, math.nan])), max_size=25
)


def _naive(texts: list[tuple[int, int, int, float]], agent: int, steps: int) -> list[float]:
    """The value an agent stands at after each step, the obvious way."""
    value, values = math.nan, []
    for step in range(steps + 1):
        for _, at, who, opinion in texts:
            if at == step and who == agent and not math.isnan(opinion):
                value = opinion
        values.append(value)
    return values


def _in_turn_order(drawn: list[tuple[int, int, float]]) -> list[tuple[int, int, int, float]]:
    return [(turn, *text) for turn, text in enumerate(sorted(drawn, key=lambda text: text[0]))]


@given(st.lists(run_texts, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_carry_forward_equals_a_naive_loop(drawn: list[list[tuple[int, int, float]]], shuffle: Any) -> None:
    texts = [_in_turn_order(run) for run in drawn]
    rows = [run_row(f"r{i}", cell=f"c{i}", n_agents=4, steps=STEPS) for i in range(len(texts))]
    opinions = [row for run, own in zip(rows, texts, strict=True) for row in opinion_rows(run, own)]
    shuffle.shuffle(opinions)
    runs, agents, opinions_frame = make(rows, [-2, 0, 1, 2], opinions)

    frame = trajectories(runs, agents, opinions_frame)
    assert len(frame) == len(rows) * 4 * (STEPS + 1)
    by_step = step_metrics(runs, opinions_frame).set_index(["run_id", "step"])
    at_end = run_metrics(runs, opinions_frame, agents).set_index("run_id")
    for row, own in zip(rows, texts, strict=True):
        expected = np.array([_naive(own, agent, STEPS) for agent in range(4)])
        mine = frame[frame["run_id"] == row["run_id"]]
        np.testing.assert_array_equal(mine["value"].to_numpy().reshape(4, -1), expected)
        for step in range(STEPS + 1):
            found = by_step.loc[(row["run_id"], step)]
            held = expected[:, step]
            due = {agent for _, at, agent, _ in own if at <= step}
            # Where opinions of less than half of those with a turn are known, there is no number of them.
            withheld = 2 * np.count_nonzero(~np.isnan(held)) < len(due)
            assert (found["withheld"], found["n_with_turn"]) == (withheld, len(due))
            assert found["n_never"] == np.isnan(held).sum()
            held = np.where(withheld, math.nan, held)
            np.testing.assert_allclose(found["bias"], bias(held))
            np.testing.assert_allclose(found["diversity"], diversity(held), atol=1e-12)
            assert found["n_missing"] == sum(math.isnan(text[3]) for text in own if text[1] <= step)
        if own:
            np.testing.assert_allclose(at_end.loc[row["run_id"], "bias"], bias(held))
            np.testing.assert_allclose(at_end.loc[row["run_id"], "diversity"], diversity(held), atol=1e-12)
        else:
            assert row["run_id"] not in at_end.index


def test_an_assigned_opinion_is_never_a_measured_one() -> None:
    frames = one_run([(0, 2, 0, -1), (1, 3, 1, math.nan)], assigned=[2, 2, 2], steps=4)
    frame = trajectories(*frames)
    assert (frame["assigned_opinion"] == 2).all()
    np.testing.assert_array_equal(frame.loc[frame["agent"] == 0, "value"], [math.nan, math.nan, -1, -1, -1])
    np.testing.assert_array_equal(frame.loc[frame["agent"] == 0, "measured"], [False, False, True, False, False])
    assert frame.loc[frame["agent"] > 0, "value"].isna().all()
    metrics = run_metrics(frames.runs, frames.opinions, frames.agents).iloc[0]
    assert (metrics["bias"], metrics["n_measured"], metrics["n_never"]) == (-1, 1, 2)
    assert metrics["never_measured_rate"] == pytest.approx(2 / 3)
    assert (metrics["n_missing"], metrics["missing_rate"]) == (1, 0.5)
    assert (metrics["assigned_bias"], metrics["assigned_diversity"]) == (2, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from([-1, 0, math.nan]), st.sampled_from(["answered", "refused", "empty", "truncated"])),
        min_size=1,
        max_size=12,
    )
)
def test_every_missing_value_has_one_cause(drawn: list[tuple[float, str]]) -> None:
    told = [(value if status == "answered" else math.nan, status) for value, status in drawn]
    frames = one_run([(i, 1, 0, value, "report", why) for i, (value, why) in enumerate(told)], assigned=[0])
    found = run_metrics(frames.runs, frames.opinions, frames.agents).iloc[0]
    for cause in ("refused", "empty", "truncated"):
        assert found[f"n_{cause}"] == sum(status == cause for _, status in told)
    unstated = sum(status == "answered" and math.isnan(value) for value, status in told)
    assert found["n_missing"] == unstated + found[["n_refused", "n_empty", "n_truncated"]].sum()
    assert found["n_texts"] == len(told)


def test_run_metrics_closed_forms() -> None:
    frames = one_run(final([2] * 8 + [-2] * 2), assigned=UNIFORM)
    population, sample = (run_metrics(frames.runs, frames.opinions, frames.agents, ddof).iloc[0] for ddof in (0, 1))
    assert population["bias"] == pytest.approx(1.2)
    assert population["diversity"] == pytest.approx(1.6)
    assert sample["diversity"] == pytest.approx(1.687, abs=5e-4)
    assert population["assigned_diversity"] == pytest.approx(1.4142, abs=5e-5)
    assert sample["assigned_diversity"] == pytest.approx(1.4907, abs=5e-5)
    assert (population["ddof"], sample["ddof"]) == (0, 1)
    assert [population[f"share_{point}"] for point in (-2, -1, 0, 1, 2)] == [0.2, 0, 0, 0, 0.8]
    assert population["evidence"] == "scripted"


def test_kinds_measurements_and_cells_stay_apart() -> None:
    row = run_row("r0", n_agents=2, steps=3)
    other = row | {"cell": "c1", "instrument_id": "m1", "classifier": "flan_t5"}
    texts = [(0, 1, 0, 2, "post"), (1, 1, 1, 1), (2, 2, 1, 0)]
    opinions = opinion_rows(row, texts) + opinion_rows(other, [(0, 1, 0, -2, "post"), (1, 1, 1, -1)])
    opinions.append(opinions[0] | {"variable": "refusal", "value": 1.0})
    frames = make([row, other], [0, 0], opinions)
    metrics = run_metrics(frames.runs, frames.opinions, frames.agents).set_index(["classifier", "kind"])
    assert metrics["bias"].to_dict() == {
        ("lexicon", "post"): 2,
        ("lexicon", "report"): 0,
        ("flan_t5", "post"): -2,
        ("flan_t5", "report"): -1,
    }
    assert metrics.loc[("lexicon", "report"), "n_texts"] == 2


def test_only_the_runs_passed_are_used() -> None:
    frames = study([{}, {"framing": "truth"}], replicates=2, steps=20)
    some = frames.runs.iloc[1:3]
    assert list(run_metrics(some, frames.opinions, frames.agents)["run_id"]) == ["r1", "r2"]
    assert set(trajectories(some, frames.agents, frames.opinions)["run_id"]) == {"r1", "r2"}


def test_no_opinions_at_all() -> None:
    frames = one_run([], assigned=[1, -1], steps=2)
    assert run_metrics(frames.runs, frames.opinions, frames.agents).empty
    assert trajectories(*frames)["value"].isna().tolist() == [True] * 6
    steps = step_metrics(frames.runs, frames.opinions)
    assert steps["n_never"].tolist() == [2, 2, 2]
    assert steps["bias"].isna().all()


def test_a_probe_before_the_first_step_is_measured_at_step_0() -> None:
    frames = one_run([(0, 0, 0, 1, "probe"), (1, 3, 1, -1, "probe")], assigned=[2, 2], steps=2)
    frame = trajectories(*frames, kind="probe")
    np.testing.assert_array_equal(frame.loc[frame["agent"] == 0, "value"], [1, 1, 1, 1])
    np.testing.assert_array_equal(frame.loc[frame["agent"] == 1, "value"], [math.nan, math.nan, math.nan, -1])


def test_scale_is_read_from_the_columns() -> None:
    seven = pd.DataFrame(columns=[f"p_{point}" for point in range(3, -4, -1)])
    assert scale_of(seven).labels[0] == "strongly negative"
    odd = scale_of(pd.DataFrame(columns=["p_0", "p_10", "p_20"]))
    assert (odd.points, odd.labels) == ((0, 10, 20), ("0", "+10", "+20"))


def _stray(frames: Frames) -> Frames:
    return frames._replace(opinions=frames.opinions.assign(agent=-1))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (_stray, "opinion of agent -1; agents are numbered from 0"),
        (
            lambda f: f._replace(opinions=f.opinions.drop(columns=["value", "turn"])),
            r"opinions frame lacks .* turn, value",
        ),
        (lambda f: f._replace(runs=f.runs.drop(columns="steps")), "runs frame lacks the column"),
        (lambda f: f._replace(agents=f.agents.drop(columns="agent")), "agents frame lacks the column"),
        (lambda f: f._replace(opinions=f.opinions.filter(regex="^(?!p_)")), "p_<point> for each scale point"),
        (lambda f: f._replace(opinions=f.opinions.assign(p_high=0.0)), "must name integers"),
    ],
)
def test_bad_frames_are_named(broken: Any, message: str) -> None:
    frames = broken(one_run([(0, 1, 0, 1)], assigned=[0, 0], steps=1))
    with pytest.raises(MeasurementError, match=message):
        run_metrics(frames.runs, frames.opinions, frames.agents)
