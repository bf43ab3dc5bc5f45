"""Figures of stance where other things were measured beside it, and where others than participants took part."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opinionsim import plots
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE
from opinionsim.plots import Frames
from tests.support.instruments import assert_same, beside, measured, moderated, plain, turns_of

pytestmark = pytest.mark.long

TRUE = {"framing": "truth"}


def probed(frames: Frames) -> Frames:
    """The same opinions as if they had been asked off the record, the early ones before and the others after."""
    opinions = frames.opinions
    steps = np.where(opinions["turn"] < 16, 0, frames.runs["steps"].iloc[0])
    return frames._replace(opinions=opinions.assign(kind="probe", step=steps), turns=turns_of(frames))


#: The numbers that each data step takes from frames.
DATA: Mapping[str, Callable[[Frames], Any]] = {
    "before_after_data": lambda f: plots.before_after_data(probed(f)),
    "density_data": plots.density_data,
    "final_data": plots.final_data,
    "panels_data": plots.panels_data,
    "ribbon_data": plots.ribbon_data,
    "snapshot_data": plots.snapshot_data,
    "trajectory_data": lambda f: [plots.trajectory_data(f, run) for run in range(len(f.runs))],
    "transition_data": plots.transition_data,
}

#: What each function draws from frames.
DRAWN: Mapping[str, Callable[[Frames], Any]] = {
    "before_after": lambda f: plots.before_after(probed(f)),
    "density": plots.density,
    "final_distribution": plots.final_distribution,
    "network_snapshots": plots.network_snapshots,
    "panels": plots.panels,
    "ribbons": plots.ribbons,
    "trajectories": plots.trajectories,
    "transition_matrix": plots.transition_matrix,
}

#: Drawn from simulations alone, which have no texts.
SIMULATED = {"line_data", "share_data"}


def test_every_function_that_takes_frames_is_checked() -> None:
    takers = set()
    for name in dir(plots):
        function = getattr(plots, name)
        if inspect.isfunction(function):
            taken = [str(each.annotation) for each in inspect.signature(function).parameters.values()]
            takers |= {name} if taken and (taken[0] == "Source" or "HasFrames" in taken[0]) else set()
    # These choose runs, and draw nothing.
    assert takers - {"of_runs", "pick_run", "runs_to_draw"} == set(DATA) | set(DRAWN) | SIMULATED


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("two_scales", [False, True], ids=["one scale", "two scales"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "plain"])
def test_a_second_instrument_changes_no_numbers_of_stance(name: str, two_scales: bool, whole: bool) -> None:
    alone = measured(two_scales=two_scales)
    both = beside(alone, pairs=whole)
    if not whole:
        alone, both = plain(alone), plain(both)
    assert_same(DATA[name](both), DATA[name](alone))


@pytest.mark.parametrize("name", DATA)
def test_rows_are_told_apart_by_what_they_measure_where_they_share_an_instrument(name: str) -> None:
    alone = measured()
    both = beside(alone)
    assert_same(DATA[name](both._replace(opinions=both.opinions.assign(instrument_id="m0"))), DATA[name](alone))


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kind", ["report", "post"])
def test_others_than_participants_change_no_numbers(name: str, kind: str) -> None:
    # A moderator's reports do not make reports the kind of text that is drawn.
    alone = measured(kind=kind)
    assert_same(DATA[name](moderated(beside(alone))), DATA[name](alone))
    assert_same(DATA[name](plain(moderated(beside(alone, pairs=False)))), DATA[name](plain(alone)))


@pytest.mark.parametrize("name", DRAWN)
def test_a_second_instrument_and_a_moderator_change_no_figure(name: str, tmp_path: Path) -> None:
    alone = measured(replicates=1)
    files = [
        plots.save(DRAWN[name](frames), tmp_path / f"{place}.png", dpi=60)
        for place, frames in enumerate((alone, moderated(beside(alone))))
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


def unread(frames: Frames, cells: set[str]) -> Frames:
    """Frames of an experiment that reads stance in some of its cells alone."""
    own = frames.runs["cell"].isin(cells)
    gone = frames.opinions["cell"].isin(cells) & (frames.opinions["variable"] == "stance")
    runs = frames.runs.astype({"instrument_id": object, "classifier": object})
    runs.loc[own, ["instrument_id", "classifier"]] = np.nan
    return frames._replace(runs=runs, opinions=frames.opinions[~gone])


def test_cells_without_an_instrument_of_stance_are_left_out_and_counted() -> None:
    alone = measured()
    some = unread(beside(alone), {"c0"})
    rest = alone._replace(runs=alone.runs[alone.runs["cell"] != "c0"])
    note = "2 runs of cells without an instrument of stance left out"
    for name in ("density_data", "ribbon_data", "transition_data"):
        found, expected = DATA[name](some), DATA[name](rest)
        assert_same(found.frame, expected.frame)
        assert note in found.notes
    assert [panel.run_id for panel in plots.panels_data(some).panels] == [
        panel.run_id for panel in plots.panels_data(rest).panels
    ]
    assert "1 run of a cell without an instrument of stance left out" in plots.panels_data(some).note
    assert "left out" not in plots.panels_data(some, where=TRUE).note
    assert_same(plots.trajectory_data(some), plots.trajectory_data(rest))
    assert_same(plots.snapshot_data(some), plots.snapshot_data(rest))


@pytest.mark.parametrize("name", DATA)
def test_where_no_cell_reads_stance_there_is_nothing_to_draw(name: str) -> None:
    none = unread(beside(measured()), {"c0", "c1", "c2", "c3"})
    with pytest.raises(SpecError, match=r"nothing to draw: set topic and measurement\.classifier in the spec"):
        DATA[name](none)


def test_a_run_that_is_named_must_have_its_stance_read() -> None:
    some = unread(beside(measured()), {"c0"})
    for draw in (plots.trajectory_data, plots.snapshot_data):
        with pytest.raises(SpecError, match="no stance was measured"):
            draw(some, run="r0")


def test_titles_say_that_authors_of_several_kinds_took_part() -> None:
    frames = measured()
    mixed = frames._replace(runs=frames.runs.assign(evidence="mixed", model="scripted + a"))
    data = plots.ribbon_data(mixed)
    assert data.evidence == EVIDENCE["mixed"]
    assert "agents played by scripted + a" in data.notes
    assert " ".join(plots.trajectories(mixed).get_title(loc="left").split()).startswith(EVIDENCE["mixed"])
