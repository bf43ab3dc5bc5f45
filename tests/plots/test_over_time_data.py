"""Numbers of figures over time, transitions and networks, against values worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import stats

from opinionsim import plots
from opinionsim.errors import MeasurementError, OpinionSimError, SpecError
from opinionsim.metrics import EVIDENCE
from tests.support.frames import Frames, final, make, one_run, opinion_rows, run_row, study
from tests.support.simulations import simulated

NAN = math.nan


def replicates(values: Sequence[Sequence[tuple[Any, ...]]], n_agents: int, steps: int) -> Frames:
    """Runs of one condition that differ in what was measured."""
    rows = [run_row(f"r{i}", replicate=i, n_agents=n_agents, steps=steps) for i in range(len(values))]
    opinions = [one for row, texts in zip(rows, values, strict=True) for one in opinion_rows(row, texts)]
    return make(rows, [0.0] * n_agents, opinions)


def at(frame: pd.DataFrame, **levels: Any) -> pd.DataFrame:
    for column, level in levels.items():
        frame = frame[frame[column] == level]
    return frame


def test_ribbons_average_runs_and_leave_out_those_without_a_value() -> None:
    # Half of the agents of run 1 are measured, which sets no limit; of run 0 most are from step 2.
    frames = replicates([[(0, 1, 0, 2), (1, 2, 1, 0)], [(0, 2, 0, -1)]], n_agents=2, steps=2)
    data = plots.ribbon_data(frames, band="runs", level=0.5)
    np.testing.assert_array_equal(data.frame["step"], [0, 1, 2])
    np.testing.assert_array_equal(data.frame["n_runs"], [0, 0, 2])
    np.testing.assert_allclose(data.frame["mean"], [NAN, NAN, (1 - 1) / 2])
    assert "lines begin where most agents of each run have an opinion: step 2" in data.notes
    # Two runs have no band: they are drawn themselves.
    assert data.frame[["low", "high"]].isna().all(axis=None)
    assert data.runs.dropna()[["run_id", "step", "value"]].to_numpy().tolist() == [["r0", 2, 1], ["r1", 2, -1]]
    assert data.band == "thin lines: single runs of conditions with fewer than 8 runs"
    assert set(data.frame["evidence"]) == {"scripted"}
    assert data.evidence == EVIDENCE["scripted"]


def test_ribbons_of_simulations_name_what_differs() -> None:
    two = [simulated([[[0, 1], [0.5, 0.5]]]), simulated([[[0, 1], [0, 1]]], parameters={"pull": 0.1})]
    data = plots.ribbon_data(two, "diversity")
    assert data.frame["cell"].unique().tolist() == ["nudge, pull 0.2", "nudge, pull 0.1"]
    np.testing.assert_allclose(data.frame["mean"], [0.5, 0, 0.5, 0.5])
    assert (data.band, data.evidence) == ("", EVIDENCE["equation"])
    keyed = plots.ribbon_data({"wide": two[0], "narrow": two[1]})
    assert keyed.frame["cell"].unique().tolist() == ["wide", "narrow"]
    with pytest.raises(SpecError, match="a step is one pair in some simulations"):
        plots.ribbon_data([two[0], simulated([[[0, 1], [0.5, 0.5]]], scheme={"order": "given"})])


def test_simulations_that_differ_in_nothing_named_are_numbered() -> None:
    data = plots.ribbon_data([simulated([[[0, 1]]]), simulated([[[1, 1]]])])
    assert data.frame["cell"].tolist() == ["nudge (1)", "nudge (2)"]


def test_the_interval_of_the_mean_is_narrower_than_the_runs_and_holds_it() -> None:
    draw = np.random.default_rng(1)
    found = simulated(draw.random((40, 3, 10)))
    runs, mean = (plots.ribbon_data(found, band=band).frame for band in ("runs", "mean"))
    assert ((mean["low"] < mean["mean"]) & (mean["mean"] < mean["high"])).all()
    assert ((runs["low"] < mean["low"]) & (mean["high"] < runs["high"])).all()
    ends = stats.t.interval(0.9, 39, *(each(found.opinions.mean(axis=2), axis=0) for each in (np.mean, stats.sem)))
    np.testing.assert_allclose(mean[["low", "high"]].to_numpy().T, ends)


@pytest.mark.parametrize(("metric", "ends"), [("bias", (0, None)), ("diversity", (0, 0.5))])
def test_intervals_of_means_stay_on_the_scale(metric: str, ends: tuple[float, float | None]) -> None:
    """Seven runs of eight at an end, the last far from it: t reaches beyond what a mean can be."""
    values = np.zeros((8, 1, 4))
    values[0] = [0, 0, 1, 1]
    if metric == "diversity":
        values[1:4] = [0, 0, 1, 1]
    for opinions, span in ((values, ends), (1 - values, (None, 1) if metric == "bias" else ends)):
        row = plots.ribbon_data(simulated(opinions), metric, band="mean", level=0.999).frame.iloc[0]
        assert [row[name] for name, end in zip(("low", "high"), span, strict=True) if end is not None] == [
            end for end in span if end is not None
        ]


def test_bands_are_of_eight_runs_and_more() -> None:
    draw = np.random.default_rng(1)
    seven, eight = (plots.ribbon_data(simulated(draw.random((n, 1, 10)))) for n in (7, 8))
    assert (seven.frame["low"].isna().all(), seven.runs["run_id"].nunique()) == (True, 7)
    assert (eight.frame["low"].notna().all(), len(eight.runs)) == (True, 0)
    assert eight.band == "band: middle 90% of the runs"


@pytest.mark.parametrize("n_blocks", [7, 8])
def test_runs_of_one_block_are_one_to_an_interval_of_the_mean(n_blocks: int) -> None:
    """Two runs of each block, on two topics; and before and after, where agents state the same twice."""
    draw = np.random.default_rng(1).integers(-2, 3, (n_blocks, 2))
    rows, opinions = [], []
    for block, topic in np.ndindex(draw.shape):
        said = [(turn, turn, 0, draw[block, topic], "self-report") for turn in (0, 1)]
        named = {"topic": "t-rex" if topic else "flat-earth", "cell": f"c{topic}", "replicate": block}
        rows.append(run_row(f"r{block}{topic}", n_agents=1, steps=1, **named))
        opinions += opinion_rows(rows[-1], said)
    frames = make(rows, [0.0], opinions)
    turns = pd.DataFrame(
        [{"run_id": row["run_id"], "turn": 0, "agent": 0, "kind": "post", "reads": ()} for row in rows]
    )
    frames = SimpleNamespace(**frames._asdict(), turns=turns)
    data = plots.ribbon_data(frames, by="framing", band="mean", level=0.95)
    means = plots.before_after_data(frames, by="framing").means.iloc[0]
    own = draw.mean(axis=1)
    ends = stats.t.interval(0.95, 7, own.mean(), stats.sem(own)) if n_blocks == 8 else (NAN, NAN)
    for found, name in ((data.frame.iloc[1], ""), (means, "after_")):
        assert found["n_runs"] == n_blocks
        np.testing.assert_allclose([found[f"{name}low"], found[f"{name}high"]], ends)
    assert data.runs["run_id"].nunique() == (0 if n_blocks == 8 else 14)


def test_runs_that_are_all_equal_have_no_interval_of_the_mean() -> None:
    """Runs of which nine in ten end at the last point are all there in 0.9 ** 8 of the draws, and the mean is not."""
    found = simulated(np.ones((8, 1, 4)))
    mean, runs = (plots.ribbon_data(found, band=band).frame.iloc[0] for band in ("mean", "runs"))
    assert np.isnan([mean["low"], mean["high"]]).all()
    assert (runs["low"], runs["high"]) == (1, 1)


def test_measures_that_need_a_network_take_that_of_the_simulation() -> None:
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    data = plots.ribbon_data(simulated([[[0, 0, 1, 1], [0, 0, 0, 0]]], network=ring), "active_link_density")
    np.testing.assert_allclose(data.frame["mean"], [0.5, 0])


def test_density_is_the_mean_of_the_shares_of_runs_at_the_points_of_the_scale() -> None:
    # At step 2 run 0 has opinions 2 and 0, run 1 has -1: shares 1/4, 1/4, 1/2.
    frames = replicates([[(0, 1, 0, 2), (1, 2, 1, 0)], [(0, 2, 0, -1)]], n_agents=2, steps=2)
    data = plots.density_data(frames)
    assert at(data.frame, step=0)["share"].isna().all()
    np.testing.assert_allclose(at(data.frame, step=1)["share"], [0, 0, 0, 0, 1])
    last = at(data.frame, step=2)
    np.testing.assert_allclose(last["share"], [0, 0.5, 0.25, 0, 0.25])
    np.testing.assert_array_equal(last["opinion"], [-2, -1, 0, 1, 2])
    np.testing.assert_array_equal(last["n_runs"], 2)
    assert data.notes[-1] == "mean of 2 runs; shares leave out agents without an opinion"


def test_density_of_continuous_opinions_is_in_bins_that_hold_the_ends() -> None:
    data = plots.density_data(simulated([[[0.0, 0.24, 0.25, 1.0]]]), bins=4)
    np.testing.assert_allclose(data.frame["share"], [0.5, 0.25, 0, 0.25])
    np.testing.assert_allclose(data.frame["low"], [0, 0.25, 0.5, 0.75])
    np.testing.assert_allclose(data.frame["high"], [0.25, 0.5, 0.75, 1])


def test_density_of_a_simulation_without_a_range_goes_as_far_as_opinions() -> None:
    data = plots.density_data(simulated([[[-3.5, 1.0], [0.5, 0.5]]], span=(-math.inf, math.inf)), bins=2)
    assert (data.frame["low"].min(), data.frame["high"].max()) == (-3.5, 1.0)
    line = plots.ribbon_data(simulated([[[-3.5, 1.5]]], span=(-math.inf, math.inf)))
    assert line.frame["mean"].tolist() == [-1.0]


def test_opinions_at_few_whole_numbers_have_their_own_points() -> None:
    data = plots.density_data(simulated([[[-1, 1, 1]]], span=(-1, 1)))
    np.testing.assert_array_equal(data.frame["opinion"], [-1, 1])
    np.testing.assert_allclose(data.frame["share"], [1 / 3, 2 / 3])


def test_density_of_runs_of_several_lengths_averages_those_that_go_on() -> None:
    rows = [run_row("r0", n_agents=1, steps=1), run_row("r1", n_agents=1, steps=2, replicate=1)]
    opinions = [*opinion_rows(rows[0], [(0, 1, 0, 2)]), *opinion_rows(rows[1], [(0, 1, 0, -2)])]
    data = plots.density_data(make(rows, [0.0], opinions), by="topic", where={"n_agents": 1, "steps": 1})
    np.testing.assert_array_equal(data.frame["step"].unique(), [0, 1])
    with pytest.raises(SpecError, match="differ in steps"):
        plots.density_data(make(rows, [0.0], opinions), by="topic")


def test_transitions_lead_from_one_measured_opinion_of_an_agent_to_its_next() -> None:
    # Agent 0: 2 at step 1, 1 at step 3, 1 at step 4; agent 1: no answer at 2, then 1 at 5: leads from nowhere.
    texts = [(0, 1, 0, 2), (1, 2, 1, NAN), (2, 3, 0, 1), (3, 4, 0, 1), (4, 5, 1, 1)]
    data = plots.transition_data(replicates([texts, [(0, 1, 0, 2), (1, 2, 0, 2)]], n_agents=2, steps=5))
    counts = data.frame.pivot(index="before", columns="after", values="count")
    assert counts.to_numpy().sum() == 3
    assert (counts.loc[2, 1], counts.loc[1, 1], counts.loc[2, 2]) == (1, 1, 1)
    share = data.frame.pivot(index="before", columns="after", values="share")
    np.testing.assert_allclose(share.loc[2], [0, 0, 0, 0.5, 0.5])
    assert share.loc[0].isna().all()
    assert set(at(data.frame, before=2)["n_before"]) == {2}


def test_transitions_of_a_simulation_lead_from_record_to_record() -> None:
    data = plots.transition_data(simulated([[[0.1, 0.9], [0.4, 0.6], [0.5, 0.5]]], times=[0, 5, 10]), bins=2)
    np.testing.assert_array_equal(data.frame["count"], [1, 1, 0, 2])
    np.testing.assert_allclose(data.frame["share"], [0.5, 0.5, 0, 1])
    assert data.names["nudge"] == ["0 to 0.5", "0.5 to 1"]
    assert data.notes[-1] == "from one record to the next, 5 steps later, including agents without an update"


@pytest.mark.parametrize("bins", [2, 3, 7])
def test_rows_of_transitions_sum_to_one_where_they_have_any(bins: int) -> None:
    data = plots.transition_data(simulated(np.random.default_rng(2).random((3, 6, 20))), bins=bins)
    total = data.frame.groupby("before")["share"].sum()
    np.testing.assert_allclose(total, 1)
    assert data.frame["count"].sum() == 3 * 5 * 20


def test_snapshots_keep_the_places_and_show_the_opinions_of_their_moments() -> None:
    found = simulated([[[0, 1, 0.5], [0.2, 0.8, 0.5], [0.5, 0.5, 0.5]]], times=[0, 10, 20], network=[(0, 1), (1, 2)])
    data = plots.snapshot_data(found, steps=[20, 0])
    assert data.frame["step"].unique().tolist() == [0, 20]
    np.testing.assert_array_equal(at(data.frame, step=0)["value"], [0, 1, 0.5])
    np.testing.assert_array_equal(at(data.frame, step=20)["value"], [0.5] * 3)
    np.testing.assert_array_equal(at(data.frame, step=0)[["x", "y"]], at(data.frame, step=20)[["x", "y"]])
    assert at(data.ties, step=0)[["source", "target"]].to_numpy().tolist() == [[0, 1], [1, 2]]
    assert not data.directed
    again, other = plots.snapshot_data(found), plots.snapshot_data(found, seed=1)
    np.testing.assert_array_equal(again.frame[["x", "y"]][:3], data.frame[["x", "y"]][:3])
    assert not np.allclose(other.frame["x"][:3], data.frame["x"][:3])


def edges(*rows: tuple[Any, ...]) -> pd.DataFrame:
    columns = ["run_id", "source", "target", "weight", "since", "until", "evidence"]
    frame = pd.DataFrame([("r0", *row, "scripted") for row in rows], columns=columns)
    return frame.astype({"until": "Int64"})


def test_ties_of_a_store_are_those_there_are_after_a_step() -> None:
    one = one_run(final([1, -1, NAN]), assigned=[0, 0, 0], steps=4, network="ring")
    ties = edges((0, 1, 1.0, 0, 2), (1, 2, 1.0, 0, None), (0, 2, 1.0, 2, None))
    data = plots.snapshot_data(plots.Frames(*one, edges=ties), steps=[1, 2, 4])
    pairs = {step: part[["source", "target"]].to_numpy().tolist() for step, part in data.ties.groupby("step")}
    assert pairs == {1: [[0, 1], [1, 2]], 2: [[1, 2], [0, 2]], 4: [[1, 2], [0, 2]]}
    np.testing.assert_array_equal(at(data.frame, step=1)["value"], [1, NAN, NAN])
    early = plots.Frames(*one, edges=ties.drop(columns=["since", "until"]))
    assert len(plots.snapshot_data(early, steps=[0]).ties) == 3
    assert plots.snapshot_data(early, steps=[0], directed=True).directed
    turned = plots.Frames(*one, edges=edges((2, 0, 1.0, 0, None)))
    assert plots.snapshot_data(turned).directed


def test_a_complete_network_is_a_circle() -> None:
    data = plots.snapshot_data(simulated([[np.linspace(0, 1, 30)]]))
    np.testing.assert_allclose(np.hypot(data.frame["x"], data.frame["y"]), 1)
    assert data.ties.empty
    assert data.notes[-1] == "everybody hears everybody; ties are not drawn"
    assert len(plots.snapshot_data(simulated([[[0, 1, 1]]])).ties) == 3


def test_shares_of_discrete_opinions_count_all_agents_of_one_replicate() -> None:
    found = simulated([[[0, 0, 0]] * 2, [[0, 1, 1], [1, 1, 1]]], times=[0, 4], discrete=True)
    data = plots.share_data(found, run=1)
    assert data.frame["opinion"].tolist() == [0, 0, 1, 1]
    assert data.frame["step"].tolist() == [0, 4, 0, 4]
    np.testing.assert_allclose(data.frame["share"], [1 / 3, 0, 2 / 3, 1])
    assert set(data.frame["run_id"]) == {"1"}
    assert (data.n_others, data.evidence) == (0, EVIDENCE["equation"])
    assert data.notes[-1] == "replicate 1 (of 2)"


def test_opinions_beyond_the_commonest_are_counted_together() -> None:
    # Over both records 3 occurs four times, 1 and 2 twice each, 0 and 4 once.
    found = simulated([[[0, 1, 2, 3, 4], [1, 2, 3, 3, 3]]], span=(0, 4), discrete=True)
    data = plots.share_data(found, most=2)
    assert data.frame["opinion"].dropna().unique().tolist() == [1, 3]
    np.testing.assert_allclose(data.frame["share"], [0.2, 0.2, 0.2, 0.6, 0.6, 0.2])
    assert data.frame["opinion"].isna().tolist() == [False] * 4 + [True] * 2
    assert data.n_others == 3
    assert data.notes[-1] == "the 2 commonest of 5 opinions named, over all records"
    every = plots.share_data(found, most=5)
    assert every.n_others == 0
    assert every.frame["opinion"].notna().all()


@given(
    arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(-5, 5)), st.integers(1, 12)
)
def test_shares_are_those_of_a_count_and_sum_to_one(values: np.ndarray, most: int) -> None:
    data = plots.share_data(simulated([values], span=(-5, 5), discrete=True), most=most)
    table = data.frame.assign(opinion=data.frame["opinion"].fillna(99)).pivot(index="step", columns="opinion")["share"]
    np.testing.assert_allclose(table.sum(axis=1), 1)
    named = [opinion for opinion in table.columns if opinion != 99]
    assert len(named) == min(most, len(np.unique(values)))
    for opinion in named:
        np.testing.assert_allclose(table[opinion], (values == opinion).mean(axis=1))
    left_out = set(np.unique(values)) - set(named)
    assert data.n_others == len(left_out)
    rarest = min((values == opinion).sum() for opinion in named)
    assert all((values == opinion).sum() <= rarest for opinion in left_out)


def test_lines_of_many_agents_are_a_sample_over_initial_opinions() -> None:
    found = simulated([[np.linspace(1, 0, 101), np.full(101, 0.5)]])
    data = plots.line_data(found, most=5)
    assert data.frame["agent"].unique().tolist() == [0, 25, 50, 75, 100]
    np.testing.assert_allclose(data.frame["value"][::2], [1, 0.75, 0.5, 0.25, 0])
    assert data.notes[-1] == "5 of 101 agents drawn, evenly over initial opinions"
    assert len(plots.line_data(found, most=101).frame) == 202
    assert len(plots.line_data(found).frame) == 200


def test_conditions_are_in_the_order_of_their_levels_and_by_pools_the_rest() -> None:
    biases = ("strong", "none", "weak")
    frames = study([{"confirmation_bias": b} for b in biases], steps=5, replicates=2)
    cells = plots.ribbon_data(frames).frame["cell"].unique().tolist()
    assert cells == [f"confirmation bias: {b}" for b in ("none", "weak", "strong")]
    topics = study([{"topic": topic, "cell": topic} for topic in ("a", "b")], steps=5)
    data = plots.ribbon_data(topics, by="framing")
    assert data.frame["n_runs"].max() == 2
    assert "up to 2 topics per condition" in data.notes


def test_conditions_are_named_by_the_titles_of_topics() -> None:
    rows = [{"topic": topic, "topic_title": title} for topic, title in (("a", "Apples"), ("b", "Bees"))]
    frames = study(rows, steps=5)
    assert plots.ribbon_data(frames).frame["cell"].unique().tolist() == ["Apples", "Bees"]


FRAMES = study([{"framing": "falsehood"}, {"framing": "truth"}], steps=5)
ONE = simulated([[[0, 1], [0.5, 0.5]]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.ribbon_data([]), "got nothing"),
        (lambda: plots.ribbon_data(3), "one or several; got int"),  # type: ignore[arg-type]
        (lambda: plots.ribbon_data(ONE, kind="report"), "kind choose runs of a store"),
        (lambda: plots.ribbon_data([ONE, replace(ONE, scheme={"order": "given"})]), "draw them apart"),
        (lambda: plots.density_data(replace(ONE, opinions=np.zeros((1, 2, 2, 3)))), "opinions of 3 dimensions"),
        (lambda: plots.ribbon_data(FRAMES, where={"framing": "both"}), "framing = 'both'; valid: falsehood, truth"),
        (lambda: plots.ribbon_data(FRAMES, where={"frame": "both"}), "no column 'frame'"),
        (lambda: plots.ribbon_data(FRAMES, by="frame"), "no column 'frame'; conditions that vary: framing"),
        (lambda: plots.ribbon_data(FRAMES, by="topic"), "differ in framing"),
        (lambda: plots.ribbon_data(FRAMES, kind="probe"), "kind 'probe'; give one of report"),
        (lambda: plots.ribbon_data(FRAMES, band="sd"), "got 'sd'"),  # type: ignore[arg-type]
        (lambda: plots.ribbon_data(FRAMES, level=1), "level must be between 0 and 1; got 1"),
        (lambda: plots.ribbon_data(ONE, "bais"), "unknown metric 'bais'"),
        (lambda: plots.density_data(ONE, bins=1), "at least 2; got 1"),
        (lambda: plots.transition_data(simulated([[[0, 1]]])), "no transition"),
        (lambda: plots.snapshot_data(FRAMES), "have no edges"),
        (lambda: plots.snapshot_data(simulated(np.zeros((1, 1, 2001)))), "at most 2000 agents; got 2,001"),
        (lambda: plots.snapshot_data(ONE, steps=[3]), "known from step 0 to 1; got 3"),
        (lambda: plots.snapshot_data(ONE, steps=[]), "1 to 12 moments; got 0"),
        (lambda: plots.snapshot_data(ONE, run=1), "replicate from 0 to 0; got 1"),
        (lambda: plots.snapshot_data([ONE, ONE]), "one simulation is drawn at a time; got 2"),
        (lambda: plots.line_data(ONE, most=0), "most must be a whole number of at least 1"),
        (lambda: plots.share_data(ONE), "with discrete opinions; for others, use density_data"),
        (lambda: plots.share_data(simulated([[[0, 1]]], discrete=True), most=0), "most must be a whole number"),
        (lambda: plots.share_data(simulated([[[0, 1]]], discrete=True), run=1), "replicate from 0 to 0; got 1"),
        (lambda: plots.trajectories(ONE, color_by="model"), "kind and color_by"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((SpecError, MeasurementError), match=message) as caught:
        call()
    assert isinstance(caught.value, OpinionSimError)
