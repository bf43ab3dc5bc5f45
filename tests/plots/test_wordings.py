"""Figures of several runs show one wording of the prompts; those of one run show that run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opinionsim import plots
from opinionsim.errors import SpecError
from tests.support.frames import Frames, study
from tests.support.simulations import simulated

OLD, NEW = "default@00aa11bb22cc", "default@00ff11bb22cc"
LEFT_OUT = f"runs of an earlier wording of the prompts, left out: 4 ({OLD}: 4)"


def reworded() -> Frames:
    """Two framings and two topics, replicate 0 before the prompts were reworded and replicate 1 after."""
    conditions = [{"framing": f, "topic": topic} for f in ("falsehood", "truth") for topic in ("moon", "palmistry")]
    frames = study(conditions, replicates=2, steps=10)
    frames.runs["wording"] = [OLD, NEW] * 4
    frames.runs["begun_at"] = frames.runs["replicate"] + 1.0
    return frames


REWORDED = reworded()

#: The numbers of each figure of several runs, and what is said beside them.
DATA: dict[str, Callable[..., tuple[pd.DataFrame, str]]] = {
    "ribbons": lambda f, **more: said_with(plots.ribbon_data(f, by=["framing", "topic"], **more)),
    "density": lambda f, **more: said_with(plots.density_data(f, by=["framing", "topic"], **more)),
    "transitions": lambda f, **more: said_with(plots.transition_data(f, by=["framing", "topic"], **more)),
}


def said_with(data: Any) -> tuple[pd.DataFrame, str]:
    return data.frame, "; ".join(data.notes)


def of_replicate(replicate: int) -> Frames:
    """The runs of one replicate, in a frame that knows no wordings."""
    runs = REWORDED.runs[REWORDED.runs["replicate"] == replicate].drop(columns=["wording", "begun_at"])
    return REWORDED._replace(runs=runs)


@pytest.mark.parametrize("name", DATA)
def test_runs_of_one_wording_are_averaged_and_others_counted(name: str) -> None:
    frame, said = DATA[name](REWORDED)
    pd.testing.assert_frame_equal(frame, DATA[name](of_replicate(1))[0])
    assert said.count(LEFT_OUT) == 1
    frame, said = DATA[name](REWORDED, wording="00aa")
    pd.testing.assert_frame_equal(frame, DATA[name](of_replicate(0))[0])
    assert f"runs of another wording of the prompts, left out: 4 ({NEW}: 4)" in said
    assert "wording" not in DATA[name](of_replicate(0))[1]
    with pytest.raises(SpecError, match="no wording of the prompts begins with '99'"):
        DATA[name](REWORDED, wording="99")


@pytest.mark.parametrize("name", DATA)
def test_those_left_out_are_counted_among_the_runs_asked_for(name: str) -> None:
    _, said = DATA[name](REWORDED, where={"topic": "moon"})
    assert f"left out: 2 ({OLD}: 2)" in said
    runs = REWORDED.runs.copy()
    runs.loc[runs["topic"] == "moon", "wording"] = OLD
    frames = REWORDED._replace(runs=runs)
    # Another topic decides which wording it is, so that two figures of one experiment show the same.
    with pytest.raises(SpecError, match=rf"topic = 'moon'; valid: palmistry; runs of .*, left out: 4 \({OLD}: 4\)"):
        DATA[name](frames, where={"topic": "moon"})
    assert "wording" not in DATA[name](frames, where={"topic": "moon"}, wording=OLD)[1]


def test_panels_show_the_first_replicate_of_the_wording() -> None:
    data = plots.panels_data(REWORDED)
    assert [panel.run_id for panel in data.panels] == ["r1", "r5"]
    assert "each panel shows one run: replicate 1 (of 2)" in data.note
    assert LEFT_OUT in data.note
    earlier = plots.panels_data(REWORDED, wording=OLD, where={"topic": "palmistry"})
    assert [panel.run_id for panel in earlier.panels] == ["r2", "r6"]
    assert f"left out: 2 ({NEW}: 2)" in earlier.note
    with pytest.raises(SpecError, match="no complete run of replicate 0 to draw; runs of an earlier wording"):
        plots.panels_data(REWORDED, replicate=0)
    assert "left out" not in plots.panels_data(of_replicate(0)).note


def test_panels_begin_with_the_first_replicate_that_has_what_is_asked_for() -> None:
    frames = study([{"framing": f} for f in ("falsehood", "truth")], replicates=2, steps=5)
    frames.runs.loc[2, "status"] = "incomplete"
    assert [panel.run_id for panel in plots.panels_data(frames).panels] == ["r0"]
    assert [panel.run_id for panel in plots.panels_data(frames, where={"framing": "truth"}).panels] == ["r3"]
    with pytest.raises(SpecError, match="replicate 0 has framing = 'truth'"):
        plots.panels_data(frames, where={"framing": "truth"}, replicate=0)


def test_a_figure_of_one_run_shows_that_run_whatever_its_wording() -> None:
    for run, replicate in ((None, 0), (0, 0), (1, 1)):
        data = plots.trajectory_data(REWORDED, run)
        np.testing.assert_array_equal(data.values, plots.trajectory_data(REWORDED, f"r{replicate}").values)
        assert "wording" not in data.title


DRAWN: dict[str, Callable[..., Figure | Axes]] = {
    "panels": plots.panels,
    "ribbons": plots.ribbons,
    "density": plots.density,
    "transitions": plots.transition_matrix,
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("wording", [None, OLD])
def test_captions_say_how_many_runs_are_left_out(name: str, wording: str | None) -> None:
    others = f"another wording of the prompts, left out: 4 ({NEW}: 4)" if wording else LEFT_OUT.removeprefix("runs of ")
    assert f"uns of {others}" in plots.caption_of(DRAWN[name](REWORDED, wording=wording))


def test_simulations_have_no_wording_to_choose() -> None:
    with pytest.raises(SpecError, match="wording choose runs of a store"):
        plots.ribbon_data(simulated([[[0, 1]]]), wording="00")
