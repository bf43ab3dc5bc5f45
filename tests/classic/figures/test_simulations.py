"""Simulations of classic models as sources of figures over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opinionsim import plots
from opinionsim.classic import Trajectories, phase_diagram, simulate
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE
from tests.classic.figures.test_phase import SWEEP
from tests.plots import test_gallery as gallery

PAIRS = [(0, 1), (1, 2), (2, 3)]
VOTERS = simulate("voter", 10, steps=4, replicates=2)


def bounded(**settings: Any) -> Trajectories:
    """A simulation of the model of Deffuant and others."""
    return simulate("deffuant", 8, steps=3, **settings)


def test_they_are_named_by_their_model_and_what_differs() -> None:
    two = [bounded(epsilon=0.2), bounded(epsilon=0.1)]
    data = plots.ribbon_data(two, "diversity")
    assert data.frame["cell"].unique().tolist() == ["deffuant, epsilon 0.2", "deffuant, epsilon 0.1"]
    np.testing.assert_allclose(data.frame["mean"], np.concatenate([each.opinions[0].std(axis=1) for each in two]))
    assert data.evidence == EVIDENCE["equation"]
    assert plots.ribbon_data([bounded(seed=1), bounded(seed=2)]).frame["cell"].unique().tolist() == [
        "deffuant, seed 1", "deffuant, seed 2",
    ]  # fmt: skip
    agents = np.linspace(0.1, 0.4, 8)
    assert (
        plots.ribbon_data([two[0], bounded(epsilon=agents)]).frame["cell"].unique()[1] == "deffuant, epsilon by agent"
    )


def test_notes_state_what_all_share_but_for_parameters_that_do_nothing() -> None:
    (note, *_) = plots.ribbon_data([bounded(epsilon=0.2), bounded(epsilon=0.1)]).notes
    assert note.startswith("deffuant, 8 agents, ")
    assert "mu 0.5" in note
    assert "epsilon" not in note
    assert "noise" not in plots.ribbon_data(VOTERS).notes[0]
    assert "noise 0.1" in plots.ribbon_data(simulate("voter", 10, steps=4, noise=0.1)).notes[0]


def test_steps_of_pairs_and_steps_of_updates_are_not_drawn_together() -> None:
    given = simulate("deffuant", 8, pairs=PAIRS)
    assert len(plots.ribbon_data(given).frame) == len(given.times)
    with pytest.raises(SpecError, match="a step is one pair in some simulations and one update per agent in others"):
        plots.ribbon_data([bounded(), given])


def test_opinions_of_several_dimensions_are_drawn_one_at_a_time() -> None:
    found = simulate("axelrod", 9, steps=2)
    with pytest.raises(SpecError, match=r"cannot be drawn on one axis; choose one, as in dataclasses\.replace"):
        plots.density_data(found)
    assert len(plots.density_data(replace(found, opinions=found.opinions[..., 0])).frame)


def test_models_with_discrete_opinions_are_drawn_as_shares_and_others_as_lines() -> None:
    data = plots.share_data(VOTERS, run=1)
    ends = data.frame.groupby("step")["share"].sum()
    np.testing.assert_allclose(ends, 1)
    assert data.notes[-1] == "replicate 1 (of 2)"
    assert plots.trajectories(VOTERS).get_ylabel() == "share of agents"
    assert plots.trajectories(bounded()).get_ylabel() == "opinion"
    with pytest.raises(SpecError, match="with discrete opinions; for others, use density_data"):
        plots.share_data(bounded())


@pytest.mark.parametrize("draw", [plots.ribbons, plots.density, plots.transition_matrix, plots.network_snapshots])
def test_every_figure_over_time_takes_them(draw: Any) -> None:
    drawn = draw(bounded(replicates=3))
    figure = getattr(drawn, "figure", drawn)
    assert EVIDENCE["equation"].split(".")[0] in figure.get_suptitle() + "".join(
        ax.get_title(loc="left") for ax in figure.axes
    )


@pytest.mark.whole
@pytest.mark.parametrize("width", [84, 174])
@pytest.mark.parametrize("name", ["trajectories", "shares", "phase"])
def test_texts_can_be_read_and_lie_apart_within_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    drawn = {
        "trajectories": lambda: plots.trajectories(bounded()),
        "shares": lambda: plots.trajectories(VOTERS),
        "phase": lambda: phase_diagram(SWEEP, "epsilon", "mu", "clusters"),
    }
    monkeypatch.setitem(gallery.DRAWN, name, drawn[name])
    gallery.test_texts_can_be_read_and_lie_apart_within_the_figure(tmp_path, name, width)
