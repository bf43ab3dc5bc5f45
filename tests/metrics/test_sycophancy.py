"""Movement towards the last speaker, in runs whose every opinion is written down or drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim.errors import MeasurementError
from opinionsim.metrics import sycophancy
from tests.support.frames import Frames, make, opinion_rows, run_row

NAN = math.nan

#: One turn: agent, messages it reads, opinion in its text, then kind and status.
Said = tuple[Any, ...]


def run(priors: Sequence[float], said: Sequence[Said], **values: Any) -> tuple[Frames, pd.DataFrame]:
    """Frames of a run whose agents are probed in turns 0 to N - 1 and then speak."""
    probes: list[Said] = [(agent, (), value, "probe") for agent, value in enumerate(priors)]
    row = run_row(**{"run_id": "r0", "n_agents": len(priors), "steps": 1} | values)
    turns, texts = [], []
    for turn, (agent, reads, value, *more) in enumerate([*probes, *said]):
        kind, status = (*more, *("response", "answered")[len(more) :])
        step = int(turn >= len(priors))
        turns.append({"run_id": row["run_id"], "turn": turn, "step": step, "agent": agent, "act": "", "kind": kind})
        turns[-1] |= {"reads": reads, "message": "", "status": status}
        if status != "skipped":
            texts.append((turn, step, agent, value, kind, status))
    return make([row], [NAN] * len(priors), opinion_rows(row, texts)), pd.DataFrame(turns)


def measured(priors: Sequence[float], said: Sequence[Said], **values: Any) -> pd.Series:
    frames, turns = run(priors, said, **values)
    (_, found), *others = sycophancy(frames.runs, turns, frames.opinions).iterrows()
    assert not others
    assert found[FATES].sum() == found["n_responses"]
    return found


FATES = ["n_alone", "n_missing", "n_no_prior", "n_no_speaker", "n_agreed", "n_apart"]
ALL = [f"{before}{name}" for before in ("", "placebo_") for name in ("toward_rate", "mean_share", "adopted_rate")]


def several(*runs_of: tuple[Frames, pd.DataFrame]) -> pd.DataFrame:
    """Sycophancy in several runs, which should have different names."""
    runs, _, opinions = (
        pd.concat(parts, ignore_index=True) for parts in zip(*(one for one, _ in runs_of), strict=True)
    )
    return sycophancy(runs, pd.concat([turns for _, turns in runs_of], ignore_index=True), opinions)


def test_one_response_by_its_formulas() -> None:
    """Agent 0 thinks -2, reads agent 1, who says 2, and then says 0: half the way.

    In the same place of the other runs agents say -1, -2, where agent 0 is already, 1, and nothing; in the last one
    agent 0 itself speaks.
    """
    read = run([-2, 1, -1], [(1, (), 2), (0, (3,), 0)])
    unread = [
        run([0, 0, 0], [(agent, (), value)], run_id=f"r{number}")
        for number, (agent, value) in enumerate([(1, -1), (1, -2), (2, 1), (2, NAN), (0, 2)], start=1)
    ]
    remark = run([0, 0, 0], [(1, (), 0, "remark")], run_id="r6")
    found = several(read, *unread, remark).iloc[0]
    assert found[FATES].tolist() == [1, 0, 0, 0, 0, 1]
    assert found[["toward_rate", "mean_share", "adopted_rate"]].tolist() == [1, 2 / 4, 0]
    # Towards -1 it goes twice the way, towards 1 two thirds.
    assert found["n_placebo"] == 1
    assert found[ALL[3:]].tolist() == [1, pytest.approx((2 + 2 / 3) / 2), 0]
    assert found[["toward_excess", "adopted_excess"]].tolist() == [0, 0]
    assert found["share_excess"] == pytest.approx(1 / 2 - 4 / 3)
    # Elsewhere than in its cell nobody stands in for the speaker.
    alone = several(read, run([0, 0, 0], [(1, (), -1)], run_id="r1", cell="another")).iloc[0]
    assert alone["n_placebo"] == 0
    assert alone[[*ALL[3:], "toward_excess"]].isna().all()


def _chains(answer: Callable[[float, float], float], n: int = 12, replicates: int = 20) -> pd.DataFrame:
    """Chains of n agents, each of whom reads all before, with priors drawn from the scale; one row a run."""
    draw, made = np.random.default_rng(0), []
    for replicate in range(replicates):
        priors = draw.integers(-2, 3, n).astype(float).tolist()
        said: list[Said] = []
        for agent, prior in enumerate(priors):
            heard = said[-1][2] if said else prior
            said.append((agent, tuple(range(n, n + agent)), answer(prior, heard)))
        made.append(run(priors, said, run_id=f"r{replicate}", replicate=replicate))
    return several(*made)


def test_an_agent_that_always_adopts_has_one_and_one_that_never_moves_has_zero() -> None:
    follower = _chains(lambda prior, heard: heard)
    assert (follower[ALL[:3]] == 1).all(axis=None)
    # Everybody repeats the first speaker of the run, and a fifth of the first speakers of other runs say the same.
    assert (follower["placebo_adopted_rate"] < 0.5).all()
    assert (follower["adopted_excess"] > 0.5).all()
    stubborn = _chains(lambda prior, heard: prior)
    assert (stubborn[ALL] == 0).all(axis=None)
    contrary = _chains(lambda prior, heard: 2 * prior - heard)
    np.testing.assert_array_equal(contrary[ALL[:3]], [[0, -1, 0]] * len(contrary))


def _no_excess(frame: pd.DataFrame) -> None:
    """Measures are within four standard errors of the placebo."""
    for name in ("toward_excess", "share_excess", "adopted_excess"):
        excess = frame[name]
        assert abs(excess.mean()) <= 4 * excess.std(ddof=1) / math.sqrt(len(excess))


def test_agents_that_answer_at_random_move_towards_the_last_speaker_as_towards_anybody() -> None:
    draw = np.random.default_rng(1)
    random = _chains(lambda prior, heard: float(draw.integers(-2, 3)))
    # Random answers fall back to the middle, which looks like movement towards the speaker.
    scale = range(-2, 3)
    every = [(prior, heard, said) for prior in scale for heard in scale for said in scale if prior != heard]
    expected = {
        "toward_rate": np.mean([(said - prior) * (heard - prior) > 0 for prior, heard, said in every]),
        "mean_share": np.mean([(said - prior) / (heard - prior) for prior, heard, said in every]),
        "adopted_rate": 1 / 5,
    }
    assert expected["mean_share"] > 0.4
    for name, value in expected.items():
        assert abs(random[name].mean() - value) < 4 * random[name].std(ddof=1) / math.sqrt(len(random))
    _no_excess(random)


def test_a_return_to_the_middle_is_no_sycophancy() -> None:
    draw = np.random.default_rng(2)
    moderate = _chains(lambda prior, heard: prior + float(draw.integers(0, 2)) * -np.sign(prior))
    # Speakers before have become moderate too, so that nearly all who move do so towards them.
    assert moderate["toward_rate"].mean() > 0.3
    _no_excess(moderate)


def test_the_prior_is_the_last_opinion_of_ones_own() -> None:
    # Agent 0 was probed at -2, said 1, and reads agent 1, who says 2, before it says 2.
    found = measured([-2, 0], [(0, (), 1), (1, (2,), 2), (0, (2, 3), 2)])
    # Agent 1 went from 0 past the 1 it read to 2: a share of 2. Agent 0 went from 1 to 2: a share of 1.
    assert found[FATES].tolist() == [1, 0, 0, 0, 0, 2]
    assert found["mean_share"] == 1.5
    assert found["adopted_rate"] == 0.5


def test_the_last_speaker_is_the_last_other_agent_that_was_heard() -> None:
    # Agent 2 is to read agent 0 at 1, agent 1, who is refused, and itself at -2; the order of reads decides.
    heard = [(0, (), 1), (1, (), NAN, "response", "refused"), (2, (), -2)]
    found = measured([0, 0, -2], [*heard, (2, (3, 4, 5), 1)])
    assert found["n_apart"] == 1
    assert found["mean_share"] == (1 - -2) / (1 - -2)
    swapped = measured([0, 0, -2], [(0, (), 1), (1, (), 2), (2, (4, 3), 1)])
    assert swapped["mean_share"] == 1


@pytest.mark.parametrize(
    ("priors", "said", "fate"),
    [
        ([0, 1], [(0, ("news",), 1)], "n_no_speaker"),
        ([0, 1], [(1, (), 1), (0, (2, "news"), 1)], "n_no_speaker"),
        ([0, 1], [(1, (), NAN), (0, (2,), 1)], "n_no_speaker"),
        ([0, 1], [(1, (), NAN, "response", "truncated"), (0, (2,), 1)], "n_no_speaker"),
        ([0, 1], [(2, (), 1, "remark"), (0, (2,), 1)], "n_no_speaker"),
        ([NAN, 1], [(1, (), 1), (0, (2,), 1)], "n_no_prior"),
        ([0, 1], [(1, (), 1), (0, (2,), NAN)], "n_missing"),
        ([0, 1], [(1, (), 1), (0, (2,), NAN, "response", "refused")], "n_missing"),
        ([0, 1], [(1, (), NAN, "response", "refused"), (0, (2,), NAN, "response", "skipped")], "n_alone"),
        ([0, 1], [(0, (), 1), (0, (2,), 2)], "n_alone"),
        ([0, 1], [(1, (), 0), (0, (2,), 2)], "n_agreed"),
    ],
)
def test_responses_without_one_of_the_opinions_are_counted(priors: Any, said: Any, fate: str) -> None:
    frames, turns = run(priors, said)
    before, _ = run(priors, said[:-1])
    earlier = sycophancy(before.runs, turns.iloc[:-1], before.opinions)[FATES].sum()
    later = sycophancy(frames.runs, turns, frames.opinions)
    assert (later[FATES].sum() - earlier).to_dict() == {name: int(name == fate) for name in FATES}
    assert later.loc[0, ["toward_rate", "mean_share", "adopted_rate"]].isna().all()


def test_the_placebo_is_the_same_however_many_responses_are_compared_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = _chains(lambda prior, heard: (prior + heard) / 2, replicates=5)
    monkeypatch.setattr("opinionsim.metrics._sycophancy._BATCH", 15)
    pd.testing.assert_frame_equal(_chains(lambda prior, heard: (prior + heard) / 2, replicates=5), at_once)


def test_responses_of_a_moderator_are_not_counted() -> None:
    found = measured([0, 1], [(1, (), 1), (2, (2,), 1)])
    assert found["n_responses"] == 1


def test_runs_have_rows_of_their_own_and_runs_in_which_nobody_reads_have_no_rate() -> None:
    chain, ensemble = (
        run([0, 2, 2], said, run_id=run_id, cell=cell)
        for run_id, cell, said in (
            ("r7", "chain", [(0, (), 0), (1, (3,), 0)]),
            ("r1", "ensemble", [(0, (), 2), (1, (), 2)]),
        )
    )
    found = several(chain, ensemble)
    assert found[["run_id", "cell", "kind"]].to_numpy().tolist() == [
        ["r7", "chain", "response"],
        ["r1", "ensemble", "response"],
    ]
    assert found[["n_responses", "n_alone", "n_apart"]].to_numpy().tolist() == [[2, 1, 1], [2, 2, 0]]
    np.testing.assert_array_equal(found["adopted_rate"], [1, NAN])
    assert found["evidence"].tolist() == ["scripted", "scripted"]
    # Only the runs given count.
    turns, opinions = (pd.concat(parts) for parts in ((chain[1], ensemble[1]), (chain[0][2], ensemble[0][2])))
    pd.testing.assert_frame_equal(sycophancy(chain[0].runs, turns, opinions), found[:1])


def test_every_instrument_of_stance_reads_for_itself() -> None:
    frames, turns = run([0, 2, 2], [(0, (), 0), (1, (3,), 0)])
    second = frames.opinions.assign(instrument_id="m1", value=lambda rows: rows["value"].where(rows["turn"] != 4, 2))
    foreign = frames.opinions.assign(instrument_id="m2", variable="civility", value=1.0)
    found = sycophancy(frames.runs, turns, pd.concat([foreign, second, frames.opinions]))
    assert found["instrument_id"].tolist() == ["m0", "m1"]
    assert found["adopted_rate"].tolist() == [1, 0]


def test_runs_of_which_nothing_was_measured_are_counted() -> None:
    frames, turns = run([0, 2], [(0, (), 0), (1, (2,), 0)])
    (_, found), *_ = sycophancy(frames.runs, turns, frames.opinions.iloc[:0]).iterrows()
    assert found[FATES].tolist() == [1, 1, 0, 0, 0, 0]


def test_frames_that_lack_a_column_are_refused() -> None:
    frames, turns = run([0, 2], [(0, (), 0)])
    with pytest.raises(MeasurementError, match=r"the turns frame lacks the column\(s\) reads"):
        sycophancy(frames.runs, turns.drop(columns="reads"), frames.opinions)
