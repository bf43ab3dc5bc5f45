from __future__ import annotations

import math

import pandas as pd
import pytest

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics import condition_axes, condition_metrics, order_levels, run_metrics
from opinionsim.store import COLUMNS
from tests.support.frames import Frames, final, make, opinion_rows, run_row


def _frames(finals: dict[tuple[str, int], list[float]], **values: object) -> Frames:
    """One run a (topic, replicate), whose agents end at the given opinions."""
    rows = [run_row(f"{t}-{r}", topic=t, replicate=r, n_agents=2, **values) for t, r in finals]
    opinions = [row for run, end in zip(rows, finals.values(), strict=True) for row in opinion_rows(run, final(end))]
    return make(rows, [0, 0], opinions)


def _conditions(frames: Frames, **options: object) -> pd.DataFrame:
    metrics = run_metrics(frames.runs, frames.opinions, frames.agents)
    return condition_metrics(frames.runs, metrics, **options)  # type: ignore[arg-type]


def test_a_topic_counts_once_however_often_it_was_run() -> None:
    frames = _frames({("a", 0): [2, 2], ("a", 1): [2, 2], ("a", 2): [2, 2], ("b", 0): [-2, 0]})
    row = _conditions(frames).iloc[0]
    assert row["bias"] == pytest.approx((2 - 1) / 2)
    assert row["bias_se"] == pytest.approx(1.5 / math.sqrt(2))
    assert row["diversity"] == pytest.approx(0.5)
    assert (row["n"], row["over"], row["n_runs"], row["evidence"]) == (2, "topic", 4, "scripted")


def test_blocks_are_the_unit_when_there_is_one_topic() -> None:
    row = _conditions(_frames({("a", 0): [1, 1], ("a", 1): [0, 0]})).iloc[0]
    assert (row["bias"], row["over"], row["n"]) == (0.5, "block", 2)
    assert row["bias_se"] == pytest.approx(0.5 / math.sqrt(2))


def test_one_unit_has_no_standard_error() -> None:
    row = _conditions(_frames({("a", 0): [1, -1]})).iloc[0]
    assert (row["bias"], row["diversity"]) == (0, 1)
    assert math.isnan(row["bias_se"])
    assert math.isnan(row["diversity_se"])


def test_a_run_that_was_never_measured_adds_nothing() -> None:
    row = _conditions(_frames({("a", 0): [2, 2], ("b", 0): [math.nan, math.nan]})).iloc[0]
    assert (row["bias"], row["n"], row["n_runs"]) == (2, 1, 2)
    assert (row["never_measured_rate"], row["missing_rate"]) == (0.5, 0.5)


def test_incomplete_runs_stay_out() -> None:
    frames = _frames({("a", 0): [2, 2], ("b", 0): [-2, -2]})
    frames.runs.loc[1, "status"] = "incomplete"
    assert _conditions(frames)["bias"].tolist() == [2]


def test_conditions_that_nobody_named_are_not_averaged_over() -> None:
    frames = _frames({("a", 0): [2, 2], ("a", 1): [-2, -2]})
    frames.runs["world"] = ["closed", "open"]
    frames.runs["cell"] = frames.opinions["cell"] = "c0"
    assert _conditions(frames)["world"].tolist() == ["closed", "open"]
    with pytest.raises(SpecError, match=r"differ in world \(closed, open\)"):
        _conditions(frames, by=["framing"])


def test_a_run_coded_twice_is_refused() -> None:
    row = run_row("r0", n_agents=1)
    again = row | {"instrument_id": "m1", "classifier": "flan_t5"}
    frames = make([row], [0], opinion_rows(row, final([1])) + opinion_rows(again, final([2])))
    with pytest.raises(MeasurementError, match="'r0' counts twice"):
        _conditions(frames)


def test_mixed_ddof_is_refused() -> None:
    frames = _frames({("a", 0): [2, 2]})
    metrics = pd.concat([run_metrics(frames.runs, frames.opinions, frames.agents, ddof) for ddof in (0, 1)])
    with pytest.raises(MeasurementError, match="ddof"):
        condition_metrics(frames.runs, metrics)


def test_axes_are_the_columns_that_vary_and_say_something_new() -> None:
    runs = pd.DataFrame(
        {
            "topic": ["a", "a", "b", "b"],
            "framing": ["falsehood", "truth"] * 2,
            "memory": "cumulative",
            "replicate": range(4),
            "topic.framing": ["falsehood", "truth"] * 2,
            "topic.name": ["a", "a", "b", "b"],
            "population.initial_opinions": ["uniform", "skewed", "skewed", "uniform"],
            "model.temperature": 0.7,
        }
    )
    assert condition_axes(runs) == ("framing", "population.initial_opinions", "topic")


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        (["strong", "none", "weak", "none"], ["none", "weak", "strong"]),
        (["truth", "falsehood"], ["falsehood", "truth"]),
        ([20, 5, 10.5], [5, 10.5, 20]),
        (["zebra", None, "ant", math.nan], ["zebra", "ant"]),
    ],
)
def test_levels_come_in_their_own_order(values: list[object], ordered: list[object]) -> None:
    assert order_levels(values) == ordered


def test_a_condition_that_is_not_set_is_a_level() -> None:
    frames = _frames({("a", 0): [2, 2], ("a", 1): [-2, -2]})
    frames.runs["cognition.budget"] = [None, 100.0]
    assert _conditions(frames)["bias"].tolist() == [-2, 2]
    with pytest.raises(SpecError, match=r"differ in cognition.budget \(not set, 100.0\)"):
        _conditions(frames, by=["framing"])


def test_every_column_that_is_not_fixed_is_a_swept_axis() -> None:
    frames = _frames({("a", 0): [2, 2], ("a", 1): [-2, -2]})
    varied = frames.runs.assign(**{column: ["x", "y"] for column in COLUMNS["runs"]})
    assert set(condition_axes(varied)) == {
        *("framing", "confirmation_bias", "memory", "world", "model", "interaction", "network", "n_agents", "steps"),
        "topic",
    }
    frames.runs["prompts"] = ["default", "terse"]
    assert condition_axes(frames.runs) == ("prompts",)
    assert _conditions(frames)["bias"].tolist() == [2, -2]
    with pytest.raises(SpecError, match=r"differ in prompts \(default, terse\)"):
        _conditions(frames, by=["framing"])


@pytest.mark.parametrize(("replicates", "n"), [(1, 2), (2, 4)])
def test_seeds_repeat_a_condition_as_replicates_do(replicates: int, n: int) -> None:
    rows = [
        run_row(f"{seed}-{r}", cell=f"seed={seed}", seed=seed, replicate=r, block=f"{seed}/{r}", n_agents=2)
        | {"sweep.seed": seed}
        for seed in (1, 2)
        for r in range(replicates)
    ]
    ends = [[2, 2], [-2, -2], [0, 0], [0, 0]]
    opinions = [new for row, end in zip(rows, ends, strict=False) for new in opinion_rows(row, final(end))]
    row = _conditions(make(rows, [0, 0], opinions))
    assert len(row) == 1
    assert (row["over"].iloc[0], row["n"].iloc[0]) == ("block", n)
    assert row["bias_se"].iloc[0] > 0


def test_runs_on_different_scales_are_not_averaged() -> None:
    rows = [run_row(f"r{i}", replicate=i, n_agents=2, instrument_id=f"m{i}") for i in range(2)]
    opinions = [
        new | {f"p_{point}": 0.0 for point in range(-2 - i, 3 + i)}
        for i, row in enumerate(rows)
        for new in opinion_rows(row, final([2, 2]))
    ]
    frames = make(rows, [0, 0], opinions)
    wide = pd.DataFrame(opinions)
    metrics = run_metrics(frames.runs, wide, frames.agents)
    assert metrics["share_3"].isna().tolist() == [True, False]
    assert metrics["share_2"].tolist() == [1, 1]
    with pytest.raises(SpecError, match="different scales"):
        condition_metrics(frames.runs, metrics)
    both = condition_metrics(frames.runs.assign(scale=[5, 7]), metrics)
    assert both["scale"].tolist() == [5, 7]


def test_a_label_stands_for_the_columns_it_determines() -> None:
    runs = pd.DataFrame(
        {
            "framing": ["falsehood", "truth"] * 2,
            "interaction": ["dyadic"] * 2 + ["broadcast"] * 2,
            "network": ["ring"] * 2 + ["complete"] * 2,
            "steps": [10] * 2 + [4] * 2,
            "sweep.interaction": ["quiet"] * 2 + ["loud"] * 2,
        }
    )
    assert condition_axes(runs) == ("framing", "sweep.interaction")
    assert condition_axes(runs.assign(steps=[10, 20, 10, 20])) == ("framing", "steps", "sweep.interaction")
    assert condition_axes(runs.assign(**{"sweep.interaction": runs["interaction"]})) == ("framing", "interaction")
    bare = ['{"kind":"dyadic"}'] * 2 + ['{"kind":"broadcast"}'] * 2
    assert "sweep.interaction" not in condition_axes(runs.assign(**{"sweep.interaction": bare}))


def test_equations_which_have_no_mind_make_no_condition_of_it() -> None:
    runs = pd.DataFrame(
        {
            "run_id": ["a", "b"],
            "evidence": ["scripted", "equation"],
            "memory": ["cumulative", None],
            "world": ["closed", None],
            "confirmation_bias": ["none", None],
            "model": ["scripted", "deffuant"],
        }
    )
    assert condition_axes(runs) == ("model",)
    twice = pd.concat([runs, runs.assign(memory=["reflective", None])])
    assert condition_axes(twice) == ("memory", "model")


def test_one_world_beside_agents_that_play_nobody_is_no_condition() -> None:
    runs = pd.DataFrame({"evidence": "scripted", "world": ["closed", None], "interaction": ["dyadic", "no-role-play"]})
    assert condition_axes(runs) == ("interaction",)
    assert condition_axes(pd.concat([runs, runs.assign(world=["open", None])])) == ("world", "interaction")


def test_a_model_of_one_member_of_the_cast_is_one_condition() -> None:
    path = "roles.moderator.model.name"
    rows = [run_row(f"r{own}", model=" + ".join(dict.fromkeys(["a", own]))) | {path: own} for own in ("a", "b")]
    assert condition_axes(pd.DataFrame(rows)) == (path,)
