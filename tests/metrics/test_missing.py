"""What is missing in runs: counts, ages, bounds, and who was to be heard and was."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from opinionsim.errors import MeasurementError
from opinionsim.messages import MISSING
from opinionsim.metrics import (
    condition_metrics,
    exposure,
    named_metrics,
    replies,
    run_metrics,
    step_metrics,
    trajectories,
)
from opinionsim.opinions import OpinionScale
from tests.support.frames import final, make, one_run, opinion_rows, run_row

NAN = math.nan


def turns_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A turns frame of run r0: turn, agent, kind, reads and status of each row, and what else it states."""
    usual = {"run_id": "r0", "reads": (), "status": "answered", "failed_reflections": 0, "signs": "", "taken": ""}
    made = [usual | {"turn": place, "step": place + 1} | row for place, row in enumerate(rows)]
    return pd.DataFrame([{"first_status": row["status"]} | row for row in made])


#: Agents 0 and 1 post in turn; 2 and 3 review. Agent 0, first positive, refuses its second post.
TURNS = turns_frame(
    [
        {"agent": 0, "kind": "report"},
        {"agent": 1, "kind": "report"},
        {"agent": 0, "kind": "post", "first_status": "refused"},
        {"agent": 2, "kind": "report", "reads": (2,), "failed_reflections": 1},
        {"agent": 0, "kind": "post", "status": "refused"},
        {"agent": 3, "kind": "report", "reads": (4,), "status": "skipped"},
        {"agent": 1, "kind": "post", "signs": "role"},
        {"agent": 3, "kind": "report", "reads": (6, "news"), "status": "truncated"},
        {"agent": 2, "kind": "post", "status": "empty"},
        {"agent": 1, "kind": "report", "reads": (8, 6), "status": "empty"},
    ]
)
#: What was coded of the reports: (turn, step, agent, value, kind, status).
TEXTS = [
    (0, 1, 0, 2, "report"),
    (1, 1, 1, -1, "report"),
    (3, 2, 2, 1, "report"),
    (7, 4, 3, NAN, "report", "truncated"),
    (9, 5, 1, NAN, "report", "empty"),
]
FRAMES = one_run(TEXTS, [0] * 4, steps=5)


def test_every_cause_is_counted_where_it_belongs() -> None:
    (row,) = run_metrics(FRAMES.runs, FRAMES.opinions, FRAMES.agents, turns=TURNS).to_dict("records")
    counts = {name: row[name] for name in row if name.startswith("n_")}
    assert counts == {
        **{"n_agents": 4, "n_measured": 3, "n_never": 1, "n_with_turn": 4, "n_both": 3, "n_texts": 5, "n_missing": 2},
        **{f"n_{status}": int(status in ("empty", "truncated")) for status in MISSING},
        **{"n_off_scale": 0, "n_ambiguous": 0},
        **{"n_skipped": 1, "n_refused_at_first": 0, "n_flagged": 0, "n_failed_reflections": 1, "n_stripped": 0},
        # Turn 6 is read twice; the refused post and the empty one reach nobody.
        **{"n_readings": 5, "n_unheard": 2},
    }
    assert row["missing_rate"] == pytest.approx(3 / 6)
    assert row["mean_age"] == pytest.approx((4 + 4 + 3) / 3)
    assert (row["bias"], row["bias_low"], row["bias_high"]) == (pytest.approx(2 / 3), 0.0, 1.0)
    assert not row["withheld"]


def test_posts_that_were_refused_at_first_or_flagged_are_counted_among_posts() -> None:
    texts = [(2, 2, 0, 2, "post"), (4, 3, 0, NAN, "post", "refused"), (6, 4, 1, -1, "post")]
    frames = one_run([*texts, (8, 5, 2, NAN, "post", "empty")], [0] * 4, steps=5)
    (row,) = run_metrics(frames.runs, frames.opinions, frames.agents, turns=TURNS).to_dict("records")
    assert (row["n_refused_at_first"], row["n_refused"], row["n_empty"], row["n_flagged"]) == (2, 1, 1, 1)
    assert row["n_skipped"] == 0


def test_what_was_silent_or_skipped_reaches_nobody() -> None:
    silent = [{"agent": n, "kind": "post", "status": "silent"} for n in range(4)]
    skipped = [{"agent": 3 - n, "kind": "report", "reads": (n,), "status": "skipped"} for n in range(4)]
    first = [{"agent": n, "kind": "report"} for n in range(4)]
    turns = turns_frame([*first, *silent, *(row | {"reads": (4 + row["reads"][0],)} for row in skipped)])
    frames = one_run([(n, 1, n, n - 2, "report") for n in range(4)], [0] * 4, steps=2)
    (row,) = run_metrics(frames.runs, frames.opinions, frames.agents, turns=turns).to_dict("records")
    assert (row["n_readings"], row["n_unheard"]) == (4, 4)
    (heard,) = exposure(frames.runs, turns, frames.opinions, frames.agents).to_dict("records")
    assert not math.isnan(heard["intended"])
    assert math.isnan(heard["delivered"])


def test_without_turns_nothing_is_made_up() -> None:
    (row,) = run_metrics(FRAMES.runs, FRAMES.opinions, FRAMES.agents).to_dict("records")
    told_by_turns = ("n_skipped", "n_refused_at_first", "n_flagged", "n_failed_reflections", "n_readings", "n_unheard")
    assert all(math.isnan(row[name]) for name in told_by_turns)
    assert row["missing_rate"] == 2 / 5
    made = condition_metrics(FRAMES.runs, pd.DataFrame([row])).iloc[0]
    assert made[["skipped_rate", "unheard_rate"]].isna().all()
    assert made["truncated_rate"] == 1 / 5


@pytest.mark.parametrize(
    ("values", "skipped", "least", "withheld"),
    [
        ([1, NAN, NAN, NAN], [], 0.5, True),
        ([1, NAN, NAN, NAN], [], 0.25, False),
        ([1, 1, NAN, NAN], [], 0.5, False),
        # An agent without a turn of this kind does not count; one whose turn was skipped had a turn.
        ([1, NAN], [], 0.5, False),
        ([1, NAN], [2], 0.5, True),
        ([1, NAN], [2, 3], 0.25, False),
    ],
)
def test_a_run_with_too_few_measured_agents_has_no_mean(
    values: list[float], skipped: list[int], least: float, withheld: bool
) -> None:
    frames = one_run(final(values), [0] * 4)
    runs = frames.runs.assign(least_measured=least)
    turns = turns_frame([{"agent": agent, "kind": "report", "status": "skipped", "step": 1} for agent in skipped])
    turns = turns.reindex(columns=TURNS.columns)
    measured = run_metrics(runs, frames.opinions, frames.agents, turns=turns)
    (row,) = measured.to_dict("records")
    assert row["n_with_turn"] == len(values) + len(skipped)
    assert row["withheld"] == withheld
    numbers = [row["bias"], row["diversity"], row["share_1"]]
    assert all(math.isnan(each) for each in numbers) if withheld else row["bias"] == 1.0
    # The bounds are of everybody.
    n = values.count(1)
    assert (row["bias_low"], row["bias_high"]) == ((n - 2 * (4 - n)) / 4, (n + 2 * (4 - n)) / 4)
    made = condition_metrics(runs, measured).iloc[0]
    assert (made["n_withheld"], made["n_runs"], math.isnan(made["bias"])) == (int(withheld), 1, withheld)
    last = step_metrics(runs, frames.opinions, turns=turns).iloc[-1]
    assert (last["withheld"], math.isnan(last["bias"])) == (withheld, withheld)
    tracks = trajectories(runs, frames.agents, frames.opinions, turns=turns)
    assert tracks.loc[tracks["step"] == tracks["step"].max(), "withheld"].tolist() == [withheld] * 4
    named = named_metrics(runs, frames.opinions, ["median"], OpinionScale(), turns)
    assert math.isnan(named["median"].iloc[0]) == withheld


def test_opportunities_come_with_time() -> None:
    # One of four has had a turn by step 1, and is measured; all have by step 4, and one is.
    texts = [(0, 1, 0, 2), (1, 2, 1, NAN), (2, 3, 2, NAN), (3, 4, 3, NAN)]
    frames = one_run(texts, [0] * 4, steps=4)
    made = step_metrics(frames.runs, frames.opinions)
    assert made["n_with_turn"].tolist() == [0, 1, 2, 3, 4]
    assert made["withheld"].tolist() == [False, False, False, True, True]
    assert made["bias"].isna().tolist() == [True, False, False, True, True]


def test_a_change_is_among_agents_with_an_opinion_at_both_ends() -> None:
    # The agent at -2 is never measured: the others start at 0.5 in the mean, and end there.
    frames = one_run(final([NAN, 0, 0, 1, 1]), [-2, 0, 0, 1, 1])
    (row,) = run_metrics(frames.runs, frames.opinions, frames.agents).to_dict("records")
    assert (row["assigned_bias"], row["bias"]) == (0.0, 0.5)
    assert (row["change"], row["n_both"]) == (0.0, 4)
    assert (row["change_low"], row["change_high"]) == (0.0, 4 / 5)
    # What was measured before the first step is the start where anybody was asked then.
    asked = [(0, 0, 0, 1), (1, 0, 1, NAN), (2, 0, 2, 0), (3, 1, 0, 2), (4, 1, 1, 2), (5, 1, 3, 2)]
    frames = one_run(asked, [-2] * 4, steps=1)
    (row,) = run_metrics(frames.runs, frames.opinions, frames.agents).to_dict("records")
    assert (row["change"], row["n_both"]) == (1.0, 1)
    assert (row["change_low"], row["change_high"]) == ((1 + 0 - 2 + 0) / 4, (1 + 4 + 2 + 4) / 4)
    assert row["measured_start"]


def test_a_change_its_bounds_and_its_agents_are_of_the_runs_that_have_a_mean() -> None:
    rows = [run_row(f"r{run}", replicate=run, n_agents=3) for run in range(3)]
    values = [[2, 1, NAN], [-1, NAN, NAN], [0, 0, 2]]
    texts = [each for row, own in zip(rows, values, strict=True) for each in opinion_rows(row, final(own))]
    frames = make(rows, [-2, 0, 1], texts)
    made = run_metrics(frames.runs, frames.opinions, frames.agents)
    assert made["withheld"].tolist() == [False, True, False]
    told = ["change", "change_low", "change_high", "n_both", "n_not_both", "measured_start"]
    (all_three,) = condition_metrics(frames.runs, made)[told].to_dict("records")
    (kept,) = condition_metrics(frames.runs, made[~made["withheld"]])[told].to_dict("records")
    assert all_three == kept
    assert (kept["n_both"], kept["n_not_both"], kept["measured_start"]) == (5, 1, False)
    (none,) = condition_metrics(frames.runs, made[made["withheld"]])[told].to_dict("records")
    assert (none["n_both"], none["n_not_both"], math.isnan(none["change_low"])) == (0, 0, True)


def test_all_reports_count_where_none_depends_on_another() -> None:
    texts = [(0, 1, 0, 2), (1, 1, 1, -2), (2, 2, 0, 1), (3, 2, 1, NAN)]
    frames = one_run(texts, [0, 0], steps=2, interaction="independent", every_report=True)
    (row,) = run_metrics(frames.runs, frames.opinions, frames.agents).to_dict("records")
    assert row["bias"] == pytest.approx(1 / 3)
    assert (row["n_measured"], row["n_never"], row["n_texts"]) == (2, 0, 4)
    assert (row["bias_low"], row["bias_high"]) == ((1 - 2) / 4, (1 + 2) / 4)
    assert math.isnan(row["mean_age"])
    last = frames.runs.assign(every_report=False)
    assert run_metrics(last, frames.opinions, frames.agents)["bias"].tolist() == [-0.5]


def test_ages_and_causes_step_by_step() -> None:
    made = step_metrics(FRAMES.runs, FRAMES.opinions)
    assert made["n_truncated"].tolist() == [0, 0, 0, 0, 1, 1]
    assert made["n_empty"].tolist() == [0, 0, 0, 0, 0, 1]
    assert made["mean_age"].tolist()[1:] == pytest.approx([0, 2 / 3, 5 / 3, 8 / 3, 11 / 3])
    tracks = trajectories(FRAMES.runs, FRAMES.agents, FRAMES.opinions)
    assert tracks.loc[tracks["agent"] == 2, "age"].tolist()[2:] == [0, 1, 2, 3]
    assert tracks.loc[tracks["agent"] == 3, "age"].isna().all()


# -- who was to be heard, and was ----------------------------------------------------------------------------


def test_intended_and_delivered_are_of_the_authors_of_what_was_to_be_read() -> None:
    (row,) = exposure(FRAMES.runs, TURNS, FRAMES.opinions, FRAMES.agents).to_dict("records")
    # Agent 0 (+2) was to be read twice, and is refused once; agent 1 (-1) twice; agent 2 (+1) once, empty.
    assert row["intended"] == pytest.approx((2 + 2 - 1 - 1 + 1) / 5)
    assert row["delivered"] == pytest.approx((2 - 1 - 1) / 3)


def test_authors_who_refuse_before_they_are_measured_count_with_the_assigned_opinion() -> None:
    rows = [
        {"agent": 0, "kind": "post", "status": "refused"},
        {"agent": 1, "kind": "post"},
        {"agent": 2, "kind": "report", "reads": (0, 1)},
    ]
    frames = one_run([(2, 3, 2, 0, "report")], [2, -1, 0], steps=3)
    (row,) = exposure(frames.runs, turns_frame(rows), frames.opinions, frames.agents).to_dict("records")
    assert (row["intended"], row["delivered"]) == (0.5, -1.0)


def test_replies_are_counted_once_by_side_of_the_opinion_before_or_the_assigned_one() -> None:
    # Agent 0 is coded +2 in turn 0; 1 and 2 have said nothing before they write; 3 is a moderator.
    rows = [
        {"agent": 0, "kind": "report"},
        {"agent": 0, "kind": "post", "first_status": "refused", "taken": "names"},
        {"agent": 1, "kind": "post", "status": "refused"},
        {"agent": 2, "kind": "post", "status": "filtered"},
        {"agent": 3, "kind": "post", "status": "refused"},
        {"agent": 0, "kind": "report", "reads": (1, 1, 2)},
        {"agent": 1, "kind": "post", "status": "skipped"},
    ]
    turns = turns_frame(rows)
    frames = one_run([(0, 1, 0, 2, "report"), (1, 2, 0, -1, "post"), (5, 6, 0, -2, "report")], [-1, -1, None], steps=7)
    for opinions in (frames.opinions, frames.opinions[:0]):
        found = replies(frames.runs, turns, opinions, frames.agents).set_index(["kind", "side"])
        told = ["n_replies", "n_refused_at_first", "n_refused", "n_filtered", "n_stripped"]
        posts = {side: tuple(row) for side, row in found.loc["post", told].iterrows()}
        of_agents = {"negative": (1, 1, 1, 0, 0), "unknown": (1, 0, 0, 1, 0), "others": (1, 1, 1, 0, 0)}
        if len(opinions):
            assert posts == of_agents | {"positive": (1, 1, 0, 0, 1)}
            assert found.loc["report", "n_replies"].to_dict() == {"negative": 2}
        else:
            # Nobody is measured: the assigned opinions stand.
            assert posts == of_agents | {"negative": (2, 2, 1, 0, 1)}


def test_a_frame_without_the_columns_is_refused() -> None:
    with pytest.raises(MeasurementError, match=r"the turns frame lacks the column\(s\) first_status, signs"):
        run_metrics(FRAMES.runs, FRAMES.opinions, FRAMES.agents, turns=TURNS.drop(columns=["first_status", "signs"]))
