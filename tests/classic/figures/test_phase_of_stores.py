"""Phase diagrams of the runs of a store: their numbers, and what holds for figures of stance of any kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from opinionsim import classic
from opinionsim.errors import SpecError
from opinionsim.plots import Frames
from tests.plots import test_instruments as instruments, test_wordings as wordings
from tests.support.frames import final, make, opinion_rows, run_row, study
from tests.support.instruments import beside, measured

STUDY = study([{"framing": "falsehood"}, {"framing": "truth"}], steps=20, replicates=3)


def test_a_phase_diagram_of_a_store_has_intervals_on_its_scale() -> None:
    rows = [run_row(f"r{i}", replicate=i, n_agents=1, steps=0) for i in range(8)]
    opinions = [one for i, row in enumerate(rows) for one in opinion_rows(row, [(0, 0, 0, 2 if i else -1)])]
    frame = classic.phase_data(make(rows, [0.0], opinions), "n_agents", value="bias", band="mean", level=0.999).frame
    assert frame["high"].tolist() == [2]


def test_a_phase_diagram_of_a_store_measures_final_opinions() -> None:
    rows = [
        run_row(f"r{i}", cell=f"c{i}", n_agents=2, steps=2, confirmation_bias=b) for i, b in enumerate(["none", "weak"])
    ]
    opinions = [*opinion_rows(rows[0], final([2, 1])), *opinion_rows(rows[1], [(0, 1, 0, -2), (1, 2, 0, -1)])]
    data = classic.phase_data(make(rows, [0.0, 0.0], opinions), "confirmation_bias", value="bias")
    assert data.frame["confirmation_bias"].tolist() == ["none", "weak"]
    np.testing.assert_allclose(data.frame["mean"], [1.5, -1])
    assert data.labels == {"bias": "bias: mean opinion"}


@pytest.mark.parametrize("n_blocks", [7, 8])
def test_runs_of_one_block_are_one_to_an_interval_of_the_mean(n_blocks: int) -> None:
    """Two runs of each block, on two topics."""
    draw = np.random.default_rng(1).integers(-2, 3, (n_blocks, 2))
    rows, opinions = [], []
    for block, topic in np.ndindex(draw.shape):
        named = {"topic": "t-rex" if topic else "flat-earth", "cell": f"c{topic}", "replicate": block}
        rows.append(run_row(f"r{block}{topic}", n_agents=1, steps=1, **named))
        opinions += opinion_rows(rows[-1], [(0, 0, 0, draw[block, topic]), (1, 1, 0, draw[block, topic])])
    frames = make(rows, [0.0], opinions)
    row = classic.phase_data(frames, "n_agents", value="bias", band="mean", level=0.95).frame.iloc[0]
    own = draw.mean(axis=1)
    ends = stats.t.interval(0.95, 7, own.mean(), stats.sem(own)) if n_blocks == 8 else (np.nan, np.nan)
    assert row["n_runs"] == n_blocks
    np.testing.assert_allclose([row["low"], row["high"]], ends)


def test_levels_are_named_and_topics_by_their_titles() -> None:
    words = classic.phase_diagram(STUDY, "framing", value="bias")
    assert [label.get_text() for label in words.get_xticklabels()] == ["falsehood", "truth"]
    assert words.get_ylabel() == "bias: mean opinion"
    rows = [{"topic": topic, "topic_title": title} for topic, title in (("a", "Apples"), ("b", "Bees"))]
    frames = study(rows, steps=5)
    assert classic.phase_data(frames, "topic").frame["topic"].tolist() == ["a", "b"]
    (axes,) = classic.phase_diagram(frames, "topic").figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Apples", "Bees"]


def test_runs_that_differ_in_more_than_what_was_swept_are_refused() -> None:
    with pytest.raises(SpecError, match="differ in framing"):
        classic.phase_data(STUDY, "topic")


def test_where_too_few_agents_were_measured_at_the_end_there_is_no_number() -> None:
    row = run_row("r0", n_agents=4, steps=2)
    frames = make([row], [0.0] * 4, opinion_rows(row, [(i, 1, i, math.nan if i else 2) for i in range(4)]))
    with pytest.raises(SpecError, match="no run has a number of 'bias'"):
        classic.phase_data(frames, "n_agents", value="bias")


def test_cells_without_an_instrument_of_stance_are_left_out_and_counted() -> None:
    some = instruments.unread(beside(measured()), {"c0"})
    data = classic.phase_data(some, "confirmation_bias", value="bias", where={"framing": "falsehood"})
    assert data.frame["confirmation_bias"].tolist() == ["strong"]
    assert "2 runs of cells without an instrument of stance left out" in data.notes


#: What every figure of stance is tested for: the suite, what it takes for a figure, and its cases.
SUITES: Mapping[str, Callable[..., Any]] = {
    "instruments": lambda name: instruments.test_a_second_instrument_changes_no_numbers_of_stance(name, True, True),
    "one scale": lambda name: instruments.test_a_second_instrument_changes_no_numbers_of_stance(name, False, True),
    "plain": lambda name: instruments.test_a_second_instrument_changes_no_numbers_of_stance(name, False, False),
    "variables": instruments.test_rows_are_told_apart_by_what_they_measure_where_they_share_an_instrument,
    "moderator": lambda name: instruments.test_others_than_participants_change_no_numbers(name, "report"),
    "posts": lambda name: instruments.test_others_than_participants_change_no_numbers(name, "post"),
    "nothing": instruments.test_where_no_cell_reads_stance_there_is_nothing_to_draw,
    "wordings": wordings.test_runs_of_one_wording_are_averaged_and_others_counted,
    "asked for": wordings.test_those_left_out_are_counted_among_the_runs_asked_for,
    "captions": lambda name: wordings.test_captions_say_how_many_runs_are_left_out(name, None),
    "other captions": lambda name: wordings.test_captions_say_how_many_runs_are_left_out(name, wordings.OLD),
}


def _numbers(frames: Frames) -> Any:
    return classic.phase_data(frames, "confirmation_bias", value="bias", where=instruments.TRUE)


def _drawn(frames: Frames) -> Any:
    return classic.phase_diagram(frames, "confirmation_bias", "framing", "bias")


@pytest.fixture
def among_figures(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the figure in the suites of all figures of stance."""
    name = "phase"
    monkeypatch.setitem(instruments.DATA, name, _numbers)
    monkeypatch.setitem(instruments.DRAWN, name, _drawn)
    monkeypatch.setitem(
        wordings.DATA, name, lambda f, **more: wordings.said_with(classic.phase_data(f, "framing", **more))
    )
    monkeypatch.setitem(wordings.DRAWN, name, lambda f, **more: classic.phase_diagram(f, "framing", **more))
    return name


@pytest.mark.parametrize("suite", SUITES)
def test_it_passes_what_every_figure_of_stance_is_tested_for(among_figures: str, suite: str) -> None:
    SUITES[suite](among_figures)


def test_a_second_instrument_and_a_moderator_change_no_figure(among_figures: str, tmp_path: Path) -> None:
    instruments.test_a_second_instrument_and_a_moderator_change_no_figure(among_figures, tmp_path)
