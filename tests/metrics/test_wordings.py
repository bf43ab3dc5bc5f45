"""Which runs count where prompts were reworded between them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import pytest

from opinionsim.errors import SpecError
from opinionsim.metrics import condition_axes, condition_metrics, one_wording, run_metrics, wording_statement
from tests.support.frames import study

NAN = math.nan
OLD, NEW = "default@00aa11bb22cc", "default@00ff11bb22cc"


def runs_of(*rows: tuple[object, ...]) -> pd.DataFrame:
    """Runs from (wording, begun_at), then a status."""
    every = [(*row, "complete")[:3] for row in rows]
    return pd.DataFrame(every, columns=["wording", "begun_at", "status"])


def taken_of(runs: pd.DataFrame, wording: str | None = None) -> list[int]:
    """Positions of the runs that are taken."""
    taken, left_out = one_wording(runs, wording)
    assert sorted([*taken.index, *left_out.index]) == list(runs.index)
    return taken.index.tolist()


@pytest.mark.parametrize(
    ("rows", "taken"),
    [
        # The run begun last decides, wherever it stands in the frame.
        ([(OLD, 1.0), (NEW, 9.0), (OLD, 2.0)], [1]),
        ([(NEW, 1.0), (OLD, 9.0), (OLD, 2.0)], [1, 2]),
        # Only complete runs decide, and only they are left out.
        ([(OLD, 1.0), (NEW, 9.0, "running"), (NEW, 8.0, "incomplete"), (NEW, NAN, "pending")], [0, 1, 2, 3]),
        ([(OLD, 1.0), (NEW, 9.0), (OLD, 10.0, "incomplete")], [1, 2]),
        # Packs are compared on purpose; each has its own last run.
        ([(OLD, 1.0), (NEW, 9.0), ("terse@77", 3.0), ("terse@88", 2.0)], [1, 2]),
        # An address in front of the last @ is the pack.
        ([("a@b@1", 1.0), ("a@c@2", 2.0), ("a@b@3", 3.0)], [1, 2]),
        # Equations use no prompts.
        ([(OLD, 1.0), (NEW, 9.0), (NAN, 5.0), (None, 5.0)], [1, 2, 3]),
        # A run of which nobody knows when it was begun was not begun last.
        ([(NEW, 1.0), (OLD, NAN)], [0]),
        ([(OLD, NAN), (NEW, NAN)], [1]),
        ([(OLD, 1.0), (OLD, 2.0)], [0, 1]),
        ([], []),
    ],
)
def test_the_wording_of_the_run_begun_last_is_taken(rows: Sequence[tuple[object, ...]], taken: list[int]) -> None:
    assert taken_of(runs_of(*rows)) == taken


def test_frames_without_the_columns_are_taken_whole() -> None:
    runs = runs_of((OLD, 1.0), (NEW, 2.0))
    for frame in (runs.drop(columns="wording"), runs.assign(wording=NAN), runs[["status"]]):
        taken, left_out = one_wording(frame)
        pd.testing.assert_frame_equal(taken, frame)
        assert left_out.empty
    assert taken_of(runs.drop(columns="begun_at")) == [1]


def test_strings_of_a_store_and_repeated_labels_of_rows_are_no_matter() -> None:
    runs = runs_of((OLD, 1.0), (NEW, 9.0), (NAN, NAN), (OLD, 2.0, "incomplete"))
    stored = runs.assign(wording=runs["wording"].astype(pd.StringDtype("python", na_value=NAN)))
    taken, left_out = one_wording(stored.set_axis([0, 0, 0, 0]))
    assert (taken["begun_at"].tolist()[::2], left_out["wording"].tolist()) == ([9.0, 2.0], [OLD])


FOUR = runs_of((OLD, 1.0), (NEW, 9.0), ("terse@77ab", 3.0), ("terse@88cd", 2.0), ("copy@77ab", 1.0), (NAN, 4.0))


@pytest.mark.parametrize(
    ("wording", "taken"),
    [
        ("00aa11bb22cc", [0, 2, 4, 5]),
        ("00a", [0, 2, 4, 5]),
        (OLD, [0, 2, 4, 5]),
        ("default@00a", [0, 2, 4, 5]),
        ("88", [1, 3, 4, 5]),
        # Two packs worded alike have one hash.
        ("77", [1, 2, 4, 5]),
    ],
)
def test_another_wording_is_chosen_by_a_start_of_its_hash(wording: str, taken: list[int]) -> None:
    assert taken_of(FOUR, wording) == taken


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ("00", "several wordings of the prompts begin with '00'"),
        ("default@0", "several wordings of the prompts begin with 'default@0'"),
        ("99", "no wording of the prompts begins with '99'"),
        ("default", "no wording of the prompts begins with 'default'"),
        ("terse@00aa", "no wording of the prompts begins with 'terse@00aa'"),
    ],
)
def test_what_names_no_wording_or_several_is_answered_with_those_there_are(wording: str, said: str) -> None:
    runs = pd.concat([FOUR, runs_of((OLD, 1.0), ("idle@55", 1.0, "incomplete"))], ignore_index=True)
    with pytest.raises(SpecError) as caught:
        one_wording(runs, wording)
    listed = f"{OLD}: 2, {NEW}: 1, terse@77ab: 1, terse@88cd: 1, copy@77ab: 1"
    assert str(caught.value) == f"{said}; complete runs have these, with counts: {listed}"


def test_runs_without_a_wording_give_no_choice() -> None:
    for runs in (runs_of((NAN, 1.0)), runs_of((OLD, 1.0, "incomplete")), runs_of((OLD, 1.0)).drop(columns="wording")):
        with pytest.raises(SpecError, match=r"no complete run has a wording .*; got '00'"):
            one_wording(runs, "00")


def test_what_is_left_out_is_counted_by_wording() -> None:
    assert wording_statement([]) == ""
    said = f"runs of an earlier wording of the prompts, left out: 2 ({OLD}: 2)"
    assert wording_statement([OLD, OLD]) == said
    several = f"runs of earlier wordings of the prompts, left out: 3 ({OLD}: 2, {NEW}: 1)"
    assert wording_statement([OLD, NEW, OLD]) == several
    assert wording_statement([NEW], "00aa") == f"runs of another wording of the prompts, left out: 1 ({NEW}: 1)"
    assert wording_statement([OLD, NEW], "77").startswith("runs of other wordings of the prompts, left out: 2 (")


def test_conditions_do_not_average_wordings_unless_these_are_the_condition() -> None:
    frames = study([{"framing": "falsehood"}], replicates=2, steps=10)
    runs = frames.runs.assign(wording=[OLD, NEW], begun_at=[1.0, 2.0])
    assert condition_axes(runs) == ()
    found = run_metrics(runs, frames.opinions, frames.agents)
    with pytest.raises(SpecError, match=rf"several wordings of the prompts \({OLD}, {NEW}\)"):
        condition_metrics(runs, found)
    assert condition_metrics(runs, found, by=["wording"])["n_runs"].tolist() == [1, 1]
    taken, _ = one_wording(runs)
    assert condition_metrics(taken, found)["bias"].tolist() == found["bias"].tolist()[1:]
    incomplete = runs.assign(status=["incomplete", "complete"])
    assert condition_metrics(incomplete, found)["n_runs"].tolist() == [1]


def test_packs_within_one_condition_are_those_that_an_axis_names() -> None:
    frames = study([{"prompts": "default"}, {"prompts": "terse"}], steps=10)
    runs = frames.runs.assign(wording=[OLD, "terse@77"], begun_at=[1.0, 2.0])
    found = run_metrics(runs, frames.opinions, frames.agents)
    assert condition_metrics(one_wording(runs)[0], found)["prompts"].tolist() == ["default", "terse"]
