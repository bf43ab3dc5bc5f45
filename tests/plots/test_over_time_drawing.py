"""What figures over time, transitions and networks draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from opinionsim import plots
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE
from opinionsim.networks import Network
from tests.plots.test_over_time_data import edges
from tests.support.frames import one_run, study
from tests.support.simulations import simulated

STUDY = study([{"framing": "falsehood"}, {"framing": "truth"}], steps=20, replicates=3)
SIMULATED = simulated(np.random.default_rng(0).random((3, 5, 20)))


def stated(drawn: Figure | Axes) -> str:
    """The title of a figure or of axes."""
    return drawn.get_suptitle() if isinstance(drawn, Figure) else drawn.get_title(loc="left")


def panels_of(figure: Figure) -> list[Axes]:
    """All axes but those of colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


@pytest.mark.parametrize("draw", [plots.ribbons, plots.density, plots.transition_matrix, plots.network_snapshots])
def test_titles_state_the_evidence_of_either_source(draw: Callable[..., Any]) -> None:
    store = plots.Frames(*STUDY, edges=edges()) if draw is plots.network_snapshots else STUDY
    assert stated(draw(store)).startswith(EVIDENCE["scripted"])
    assert stated(draw(SIMULATED)).startswith(EVIDENCE["equation"])


def test_ribbons_have_a_line_and_a_band_a_condition_and_name_them() -> None:
    ax = plots.ribbons(STUDY, "diversity")
    assert len(ax.lines) == len(ax.collections) == 2
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "framing: falsehood (3 runs)",
        "framing: truth (3 runs)",
        "single run",
    ]
    assert "Thin lines: single runs of conditions with fewer than 8 runs." in plots.caption_of(ax)
    assert [len(runs.get_segments()) for runs in ax.collections] == [3, 3]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "diversity (SD of \nopinions over agents)")
    own = Figure().add_subplot()
    assert plots.ribbons(SIMULATED, ax=own, legend=False) is own
    assert (own.get_xlabel(), own.get_legend()) == ("step", None)
    np.testing.assert_allclose(own.lines[0].get_ydata(), SIMULATED.opinions.mean(axis=(0, 2)))


def test_one_run_has_no_band() -> None:
    ax = plots.ribbons(simulated([[[0, 1], [0.5, 0.5]]]))
    assert (len(ax.lines), len(ax.collections)) == (1, 0)
    assert ax.get_legend().get_title().get_text() == ""


def test_density_has_a_map_a_condition_with_shared_colours() -> None:
    figure = plots.density(STUDY)
    panels = panels_of(figure)
    assert [ax.get_title(loc="left") for ax in panels] == ["framing: falsehood", "framing: truth"]
    maps = [ax.collections[0] for ax in panels]
    assert all(isinstance(mesh, QuadMesh) for mesh in maps)
    assert maps[0].get_clim() == maps[1].get_clim()
    assert maps[0].get_array().shape == (5, 21)
    assert panels[1].get_ylabel() == ""


def test_transitions_print_shares_and_counts() -> None:
    figure = plots.transition_matrix(simulated([[[0.1, 0.9], [0.4, 0.6], [0.5, 0.5]]]), bins=2)
    (ax,) = panels_of(figure)
    assert [text.get_text() for text in ax.texts] == [".50", ".50", "0", "1"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0 to 0.5 (2)", "0.5 to 1 (2)"]
    assert len(panels_of(plots.transition_matrix(STUDY))) == 2


def test_agents_have_the_colours_of_their_opinions_and_are_hollow_without_one() -> None:
    frames = one_run([(0, 1, 0, 2), (1, 1, 1, -2), (2, 1, 2, 0)], assigned=[0] * 4, steps=2, network="ring")
    ring = edges(*((i, (i + 1) % 4, 1.0, 0, None) for i in range(4)))
    figure = plots.network_snapshots(plots.Frames(*frames, edges=ring), steps=[0, 2], directed=False)
    panels = panels_of(figure)
    assert [ax.get_title(loc="left") for ax in panels] == ["step 0", "step 2"]
    dots = [next(c for c in ax.collections if isinstance(c, PathCollection)) for ax in panels]
    np.testing.assert_array_equal(dots[0].get_facecolors(), np.ones((4, 4)))
    expected = [to_rgba(colour) for colour in ("#0066FF", "#E60000", "#999999", "#FFFFFF")]
    np.testing.assert_allclose(dots[1].get_facecolors(), expected, atol=0.01)
    np.testing.assert_array_equal(dots[0].get_offsets(), dots[1].get_offsets())
    (lines,) = [c for c in panels[0].collections if isinstance(c, LineCollection)]
    assert len(lines.get_segments()) == 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "assigned only, in the colour of the opinion"
    ]
    # Assigned 0 at the start: rings of the colour of a neutral opinion.
    np.testing.assert_allclose(dots[0].get_edgecolors(), [to_rgba("#999999")] * 4, atol=0.01)


def test_directed_ties_are_arrows_from_who_speaks_and_negative_ones_stand_out() -> None:
    network = Network.from_edges([(0, 1), (2, 0)], weights=[1.0, -1.0], directed=True)
    figure = plots.network_snapshots(simulated([[[0, 0.5, 1]]], network=network))
    (ax,) = panels_of(figure)
    (arrows,) = [c for c in ax.collections if isinstance(c, Quiver)]
    places = next(c for c in ax.collections if isinstance(c, PathCollection)).get_offsets()
    way = places[[1, 0]] - places[[0, 2]]
    np.testing.assert_allclose(arrows.get_offsets(), places[[0, 2]])
    np.testing.assert_allclose(np.arctan2(arrows.V, arrows.U), np.arctan2(way[:, 1], way[:, 0]))
    assert [tuple(colour) for colour in arrows.get_facecolors()] == [to_rgba("#A9B3BA"), to_rgba("#D55E00")]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["tie of negative weight"]


def test_lines_of_a_simulation_start_in_the_colour_of_their_opinion() -> None:
    ax = plots.trajectories(simulated([[[0, 0.5, 1], [0.5, 0.5, 0.5]]], times=[0, 10]))
    (lines,) = ax.collections
    np.testing.assert_allclose(lines.get_segments()[0], [[0, 0], [10, 0.5]])
    expected = [to_rgba(colour)[:3] for colour in ("#E60000", "#999999", "#0066FF")]
    lines.update_scalarmappable()
    np.testing.assert_allclose(lines.get_colors()[:, :3], expected, atol=0.01)
    assert ax.get_xlabel() == "step"
    assert stated(ax).startswith(EVIDENCE["equation"])


def test_discrete_opinions_are_areas_that_fill_the_axes_and_are_named_from_the_top() -> None:
    found = simulated([[[-1, 0, 1, 1], [-1, -1, 1, 1]]], times=[0, 10], span=(-1, 1), discrete=True)
    ax = plots.trajectories(found)
    colours = [area.get_facecolor()[0][:3] for area in ax.collections]
    np.testing.assert_allclose(colours, [to_rgba(c)[:3] for c in ("#E60000", "#999999", "#0066FF")], atol=0.01)
    tops = [area.get_datalim(ax.transData).y1 for area in ax.collections]
    np.testing.assert_allclose(tops, [0.5, 0.5, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1", "0", "\N{MINUS SIGN}1"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "share of agents")
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 10), (0, 1))
    assert "Share of agents at each opinion over time." in plots.caption_of(ax)
    assert stated(ax).startswith(EVIDENCE["equation"])
    own = Figure().add_subplot()
    assert plots.trajectories(found, ax=own, legend=False) is own
    assert own.get_legend() is None


def test_many_discrete_opinions_have_colours_that_differ_and_others_are_grey() -> None:
    ax = plots.trajectories(simulated([[range(9)]], span=(0, 200), discrete=True))
    colours = [area.get_facecolor()[0] for area in ax.collections]
    assert len(colours) == 7
    assert min(np.abs(a - b).max() for place, a in enumerate(colours) for b in colours[:place]) > 0.1
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["others (3)", "5", "4", "3", "2", "1", "0"]
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize(("n", "lines", "bands"), [(40, 40, 0), (120, 12 + 1, 2)])
def test_many_agents_are_a_sample_and_the_median_on_bands(n: int, lines: int, bands: int) -> None:
    ax = plots.trajectories(study([{}], n_agents=n, steps=5))
    assert len([line for line in ax.lines if line.get_drawstyle() == "steps-post"]) == lines
    assert len(ax.collections) == bands
    legend = ax.get_legend()
    assert legend is not None
    assert ("12 of 120 agents drawn" in "".join(text.get_text() for text in legend.get_texts())) == (n == 120)


def test_turns_without_a_whole_answer_have_a_mark() -> None:
    frames = study([{}], steps=5)
    refused = frames.opinions.index == frames.opinions.index[-1]
    lost = frames.opinions.assign(status=np.where(refused, "refused", "answered"))
    row = frames.opinions.iloc[0][["run_id", "step", "agent", "kind"]]
    skipped = pd.DataFrame([{**row, "status": "skipped"}, {**row, "kind": "post", "status": "skipped"}])
    ax = plots.trajectories(plots.Frames(frames.runs, frames.agents, lost, turns=skipped))
    assert [line.get_marker() for line in ax.lines if line.get_marker() in ("x", "|", "+", ">")] == ["x", "|"]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["refused", "skipped"]


@pytest.mark.parametrize("width", [84, 174])
@pytest.mark.parametrize("name", ["trajectories", "ribbons", "density", "panels", "final_distribution"])
def test_figures_have_the_width_and_the_fonts_of_a_page_with_the_evidence_inside(name: str, width: int) -> None:
    with plots.paper(width, 7):
        drawn = getattr(plots, name)(STUDY)
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == pytest.approx(width / 25.4)
    stated = figure._suptitle if figure._suptitle is not None else figure.axes[0]._left_title
    assert stated.get_text().startswith("SCRIPTED")
    assert stated.get_fontsize() <= 7.5
    box = stated.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= figure.bbox.y1 + 1


def test_axes_of_ones_own_keep_their_figure_and_a_page_has_limits() -> None:
    figure = Figure(figsize=(3, 3), layout="constrained")
    with plots.paper(font_size=6):
        ax = plots.ribbons(STUDY, ax=figure.add_subplot(), legend=False)
    assert ax.title.get_fontsize() >= ax.xaxis.label.get_fontsize() == pytest.approx(6)
    assert tuple(figure.get_size_inches()) == (3, 3)
    for wrong in ({"width": 50}, {"font_size": 1}):
        with pytest.raises(SpecError, match="must be from"), plots.paper(**wrong):
            pass


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.density(STUDY),
        lambda: plots.transition_matrix(STUDY),
        lambda: plots.network_snapshots(SIMULATED),
        lambda: plots.ribbons(STUDY).figure,
    ],
    ids=["density", "transitions", "network", "ribbons"],
)
def test_texts_stay_within_the_figure(draw: Callable[[], Figure]) -> None:
    figure = draw()
    figure.draw_without_rendering()
    texts = [ax._left_title for ax in figure.axes] + [ax.xaxis.label for ax in figure.axes]  # type: ignore[attr-defined]
    texts += [ax.yaxis.label for ax in figure.axes] + [figure._suptitle]  # type: ignore[attr-defined]
    boxes = [text.get_window_extent() for text in texts if text is not None and text.get_text()]
    assert min(box.x0 for box in boxes) >= -1
    assert max(box.x1 for box in boxes) <= figure.bbox.width + 1
    assert min(box.y0 for box in boxes) >= -1
    assert max(box.y1 for box in boxes) <= figure.bbox.height + 1


def test_an_equation_without_a_topic_is_about_nothing() -> None:
    said = [(0, 1, 0, 1.0)]
    values = {"evidence": "equation", "confirmation_bias": None, "memory": None}
    about = plots.trajectory_data(one_run(said, [0.0], topic="t-rex", **values)).title
    assert about.startswith("t-rex, framing: falsehood\n")
    assert (
        about
        == "t-rex, framing: falsehood\n" + plots.trajectory_data(one_run(said, [0.0], topic="none", **values)).title
    )
