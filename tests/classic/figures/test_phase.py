"""Phase diagrams: true axes, lines of a second parameter, spread, contours, theory, and what is said of runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from opinionsim import classic, plots
from opinionsim.classic import sweep
from opinionsim.classic.figures._levels import levels_of
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE

NAN = math.nan
SWEEP = pd.DataFrame(
    [
        {"epsilon": e, "mu": mu, "replicate": r, "clusters": c, "evidence": "equation"}
        for e, mu, r, c in [(0.2, 0.5, 0, 2), (0.2, 0.5, 1, 4), (0.1, 0.5, 0, 5), (0.1, 0.5, 1, NAN), (0.2, 0.1, 0, 7)]
    ]
)


def swept(measure: Callable[..., float], replicates: int = 3, attrs: dict[str, Any] | None = None, **over: Any) -> Any:
    """A sweep: a measure of each crossing of levels and replicate."""
    grid = pd.MultiIndex.from_product([*over.values(), range(replicates)], names=[*over, "replicate"]).to_frame(False)
    grid["m"] = [float(measure(*row)) for row in grid.itertuples(index=False)]
    table = grid.assign(model="deffuant", evidence="equation")
    table.attrs.update({"model": "deffuant", "parameters": {}} | (attrs or {}))
    return table


def timed(n_censored: int = 2) -> Any:
    """A sweep over n with the time until runs stopped; the last of the greatest size had not."""
    table = swept(lambda n, r: n + r, replicates=4, attrs={"steps": 500, "until": "frozen"}, n=[10, 100])
    table = table.assign(time=table["m"].round().astype(int), stopped=True)
    table.loc[table.index[len(table) - n_censored :], ["time", "stopped"]] = [500, False]
    return table


GRID = swept(lambda e, mu, r: 10 * e + mu + r, epsilon=[0.1, 0.2, 0.5], mu=[0.1, 1.0])
SIZES = swept(lambda e, n, r: e * n + r, 8, epsilon=[0.1, 0.2, 0.5], n=[100, 1000])


def mesh_of(ax: Axes) -> QuadMesh:
    (mesh,) = [each for each in ax.collections if isinstance(each, QuadMesh)]
    return mesh


def edges_of(ax: Axes) -> tuple[list[float], list[float]]:
    corners = np.asarray(mesh_of(ax).get_coordinates())
    return corners[0, :, 0].round(9).tolist(), corners[:, 0, 1].round(9).tolist()


def maps_of(ax: Axes) -> list[Axes]:
    return [each for each in ax.figure.axes if each.get_label() != "<colorbar>"]


def bars_of(ax: Axes) -> list[Axes]:
    return [each for each in ax.figure.axes if each.get_label() == "<colorbar>"]


def entries(ax: Axes) -> list[str]:
    (legend,) = ax.figure.legends
    return [text.get_text() for text in legend.get_texts()]


def said(ax: Axes) -> str:
    return plots.caption_of(ax)


def bands_of(ax: Axes) -> list[Any]:
    return [each for each in ax.collections if isinstance(each, FillBetweenPolyCollection)]


def test_places_of_a_map_reach_halfway_to_the_next_level() -> None:
    ax = classic.phase_diagram(GRID, "epsilon", "mu", "m")
    # The last place of 0.5 ends half the least step beyond it, and not half of the step before it.
    assert edges_of(ax) == ([0.05, 0.15, 0.35, 0.55], [-0.35, 0.55, 1.45])
    assert ax.get_xlim() == pytest.approx((0.05, 0.55))
    logged = classic.phase_diagram(GRID, "epsilon", "mu", "m", scale={"mu": "log"})
    np.testing.assert_allclose(edges_of(logged)[1], [0.1**1.5, 0.1**0.5, 10**0.5])
    assert (logged.get_xscale(), logged.get_yscale()) == ("linear", "log")


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8, unique_by=lambda each: float(f"{each:.3g}")), st.booleans()
)
def test_every_level_lies_within_its_place(values: list[float], log: bool) -> None:
    levels = levels_of(values, "x", {"x": "log"} if log else {})
    assert levels.levels == sorted(values)
    assert (levels.edges[:-1] < levels.places).all()
    assert (levels.places < levels.edges[1:]).all()
    assert len(set(levels.texts)) == len(values)


def test_lines_stand_at_their_numbers_with_a_band_each_and_are_named() -> None:
    ax = classic.phase_diagram(SIZES, "epsilon", value="m", lines="n", level=0.5)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.1, 13.5], [0.2, 23.5], [0.5, 53.5]])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [103.5, 203.5, 503.5])
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.lines}) == 2
    assert entries(ax) == ["100", "1,000", "middle 50% of the runs"]
    assert ax.figure.legends[0].get_title().get_text() == "number of agents"
    box = bands_of(ax)[0].get_datalim(ax.transData)
    np.testing.assert_allclose([box.x0, box.x1, box.y0, box.y1], [0.1, 0.5, 11.75, 55.25])
    assert "Band: middle 50% of the runs" in said(ax)


def test_the_spread_is_the_standard_deviation_over_runs_and_has_no_band() -> None:
    table = swept(lambda e, r: e * r, epsilon=[1, 2])
    assert classic.phase_data(table, "epsilon", value="m").frame["spread"].tolist() == [1, 2]
    ax = classic.phase_diagram(table, "epsilon", value="m", show="spread")
    assert ax.lines[0].get_ydata().tolist() == [1, 2]
    assert not bands_of(ax)
    assert ax.get_ylim()[0] >= 0
    assert "Spread: standard deviation over runs." in said(ax)
    assert "band" not in said(ax)


def test_mean_and_spread_have_a_map_and_colours_each() -> None:
    table = swept(lambda e, mu, r: 5 + e + mu + e * r, epsilon=[1, 3], mu=[0.1, 0.2])
    first = classic.phase_diagram(table, "epsilon", "mu", "m", show="both")
    limits = [mesh_of(each).get_clim() for each in maps_of(first)]
    np.testing.assert_allclose(limits, [[7.1, 11.2], [1, 3]])
    assert [each.get_ylabel() for each in bars_of(first)] == ["m", "spread over runs of m"]


def test_every_measure_has_a_panel_and_colours_of_its_own() -> None:
    table = GRID.assign(second=GRID["m"] * 100, third=-GRID["m"])
    first = classic.phase_diagram(table, "epsilon", "mu", ["m", "second", "third"])
    limits = np.array([mesh_of(each).get_clim() for each in maps_of(first)])
    np.testing.assert_allclose(limits, [[2.1, 7], [210, 700], [-7, -2.1]])
    assert first is first.figure.axes[0]
    frame = classic.phase_data(table, "epsilon", "mu", ["third", "m"]).frame
    assert frame["measure"].tolist() == ["third"] * 6 + ["m"] * 6


def test_places_without_a_value_are_hatched_and_named_and_enter_no_colours() -> None:
    table = GRID.copy()
    table.loc[(table["epsilon"] == 0.5) & (table["mu"] == 1.0), "m"] = NAN
    table.loc[0, "m"] = math.inf
    ax = classic.phase_diagram(table, "epsilon", "mu", "m")
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh_of(ax).get_array()), [[False] * 3, [False, False, True]])
    assert ax.patch.get_hatch()
    assert entries(ax) == ["no value"]
    assert mesh_of(ax).get_clim() == pytest.approx((2.6, 6.1))
    assert "4 of 18 runs without a number of m left out" in said(ax)
    assert "Mean of 2 to 3 replicates per point." in said(ax)
    assert not re.search(r"\b(nan|inf)\b", said(ax), re.IGNORECASE)


def test_contours_are_those_of_the_mean_where_it_passes_them() -> None:
    table = swept(lambda e, mu, r: e + r - 1, epsilon=[0.0, 1.0, 2.0], mu=[0.0, 1.0])
    first = classic.phase_diagram(table, "epsilon", "mu", "m", show="both", contours=[0.5])
    for ax in maps_of(first):
        (drawn,) = [each for each in ax.collections if isinstance(each, QuadContourSet)]
        assert drawn.levels.tolist() == [0.5]
        np.testing.assert_allclose(drawn.get_paths()[0].vertices[:, 0], 0.5)
        (number,) = drawn.labelTexts
        assert 0.2 < number.get_position()[1] < 0.8
    with pytest.raises(SpecError, match=r"no mean crosses the contour 7; means: m from 0 to 2"):
        classic.phase_diagram(table, "epsilon", "mu", "m", contours=[7])


def test_theory_lies_on_top_and_widens_the_axis_no_more_than_by_half() -> None:
    table = swept(lambda e, r: e + r - 1, epsilon=[0.5, 1.0, 2.0])
    ax = classic.phase_diagram(table, "epsilon", value="m", theory={"1/x": lambda x: 1 / x})
    curve = ax.lines[-1]
    np.testing.assert_allclose(curve.get_ydata(), 1 / curve.get_xdata())
    assert curve.get_xdata()[[0, -1]].tolist() == [0.5, 2]
    assert entries(ax) == ["1/x", "single run"]
    steep = classic.phase_diagram(table, "epsilon", value="m", theory={"steep": ([0.5, 2.0], [0.0, 1e6])})
    assert steep.get_ylim()[1] < 10
    boundary = classic.phase_diagram(GRID, "epsilon", "mu", "m", theory={"boundary": ([0.1, 0.5], [0.2, 0.8])})
    np.testing.assert_allclose(boundary.lines[0].get_xydata(), [[0.1, 0.2], [0.5, 0.8]])
    assert boundary.get_xlim() == pytest.approx((0.05, 0.55))


def test_runs_that_had_not_stopped_are_counted_and_marked() -> None:
    data = classic.phase_data(timed(), "n", value="time")
    assert data.frame["n_censored"].tolist() == [0, 2]
    note = "2 of 8 runs had not stopped at the limit of steps, which counts as their time: means are too low"
    assert data.notes[:2] == ("deffuant, until frozen, at most 500 steps", note)
    ax = classic.phase_diagram(timed(), "n", value="time", scale={"n": "log", "time": "log"})
    assert ax.lines[1].get_xdata().tolist() == [100]
    assert ax.lines[1].get_markerfacecolor() == "white"
    assert entries(ax) == ["some runs had not stopped", "single run"]
    assert note in said(ax)
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_ylabel()) == ("log", "log", "time (steps)")
    unknown = timed().assign(time=lambda table: table["time"].where(table["stopped"]))
    assert "2 of 8 runs had not stopped at the limit of steps" in classic.phase_data(unknown, "n", value="time").notes
    assert classic.phase_data(unknown, "n", value="time").frame["n_runs"].tolist() == [4, 2]
    other = classic.phase_diagram(timed(), "n", value="m")
    assert "2 of 8 runs had not stopped at the limit of steps. Mean of" in said(other)
    assert len(other.lines) == 1
    assert "stopped" not in said(classic.phase_diagram(timed(0), "n", value="time"))


def test_clusters_of_runs_that_had_not_stopped_are_in_no_mean_of_others() -> None:
    attrs = {"until": "frozen", "delta": "epsilon in runs at rest, else 0.01"}
    table = swept(lambda e, r: 0, replicates=4, attrs=attrs, epsilon=[0.2, 0.3])
    table = table.assign(clusters=[2.0, 2, 9, 2, 8, 8, 8, 8], stopped=[True, True, False, True, *[False] * 4])
    data = classic.phase_data(table, "epsilon", value="clusters")
    assert data.frame["mean"].tolist() == [2, 8]
    assert data.frame["n_censored"].tolist() == [1, 4]
    note = "5 of 8 runs had not stopped at the limit of steps; where others had, means of clusters are theirs"
    assert note in data.notes
    drawn = classic.phase_diagram(table, "epsilon", value="clusters")
    assert entries(drawn) == ["some runs had not stopped", "single run"]


def test_the_share_of_runs_that_stopped_is_a_measure_and_a_failed_run_has_none() -> None:
    table = timed()
    table["stopped"] = [None, *table["stopped"].tolist()[1:]]
    data = classic.phase_data(table, "n", value="stopped")
    assert data.frame["mean"].tolist() == [1, 0.5]
    assert data.frame["n_runs"].tolist() == [3, 4]
    assert data.labels == {"stopped": "share of runs that stopped"}


def test_places_of_a_map_with_runs_that_had_not_stopped_have_a_dot() -> None:
    table = swept(lambda e, mu, r: 1 + e, epsilon=[1, 2], mu=[3, 4])
    table = table.assign(time=table["m"], stopped=~((table["epsilon"] == 2) & (table["mu"] == 3)))
    ax = classic.phase_diagram(table, "epsilon", "mu", "time")
    assert ax.lines[0].get_xydata().tolist() == [[2, 3]]
    assert entries(ax) == ["some runs had not stopped"]


@pytest.mark.parametrize(
    ("attrs", "title"),
    [
        ({"n": 50, "steps": 7, "parameters": {"mu": 0.5}}, "deffuant, 50 agents, 7 steps, mu 0.5"),
        ({"n": None, "steps": None, "parameters": {"mu": NAN, "k": None, "limit": math.inf}}, "deffuant"),
        ({"steps": 10_000, "until": {"change": 1e-4}}, "deffuant, until change 0.0001, at most 10,000 steps"),
        ({"until": "frozen", "parameters": None}, "deffuant, until frozen"),
        ({"network": {"kind": "watts-strogatz", "k": 4}}, "deffuant, network watts-strogatz k 4"),
    ],
)
def test_titles_say_what_the_attributes_say_and_no_more(attrs: dict[str, Any], title: str) -> None:
    assert (
        classic.phase_data(swept(lambda e, r: r, attrs=attrs, epsilon=[1, 2]), "epsilon", value="m").notes[0] == title
    )


def test_columns_of_networks_and_sizes_are_settings() -> None:
    table = swept(lambda k, n, r: k * n + r, **{"network.k": [2, 4], "n": [10, 20]})
    with pytest.raises(SpecError, match="so n varied too"):
        classic.phase_data(table, "network.k", value="m")
    with pytest.raises(SpecError, match="so n varied too"):
        classic.phase_data(table.drop(columns="replicate"), "network.k", value="m")
    held = classic.phase_data(table, "network.k", value="m", where={"n": 20})
    assert held.frame["mean"].tolist() == [41, 81]
    assert held.notes[:2] == ("deffuant", "number of agents: 20")
    one = classic.phase_data(table[table["n"] == 10], "network.k", value="m")
    assert one.notes[0] == "deffuant, 10 agents"
    assert classic.phase_diagram(table, "network.k", "n", "m").get_xlabel() == "network k"


def test_a_measure_with_the_name_of_a_parameter_is_no_setting() -> None:
    table = sweep("voter", {"n": [10, 20]}, steps=5, replicates=3, metrics=["bias"])
    data = classic.phase_data(table, "n", value="bias")
    assert data.frame["n_runs"].tolist() == [3, 3]


def test_levels_that_are_words_stand_side_by_side_and_are_not_joined() -> None:
    table = swept(lambda kind, e, r: e + r, **{"network.kind": ["ring", "complete"], "epsilon": [1, 2]})
    ax = classic.phase_diagram(table, "network.kind", value="m", lines="epsilon")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["ring", "complete"]
    assert {line.get_linestyle() for line in ax.lines} == {"None"}
    first, second = (line.get_xdata() for line in ax.lines)
    assert (first < second).all()
    mapped = classic.phase_diagram(table, "network.kind", "epsilon", "m")
    assert edges_of(mapped)[0] == [-0.5, 0.5, 1.5]
    by_kind = classic.phase_diagram(table, "epsilon", value="m", lines="network.kind")
    assert entries(by_kind) == ["ring", "complete", "single run"]


def test_many_lines_have_the_colours_of_a_scale_and_no_bands() -> None:
    table = swept(lambda e, n, r: e + n + r, epsilon=[1, 2], n=range(1, 15))
    ax = classic.phase_diagram(table, "epsilon", value="m", lines="n", scale={"n": "log"})
    assert len(ax.lines) == 14
    assert len({line.get_color() for line in ax.lines}) == 14
    assert not bands_of(ax)
    assert "More than 10 lines: no bands." in said(ax)
    (bar,) = bars_of(ax)
    assert (bar.get_ylabel(), bar.get_yscale()) == ("number of agents", "log")
    words = swept(lambda e, kind, r: e, **{"epsilon": [1, 2], "network.kind": [f"kind{i}" for i in range(11)]})
    with pytest.raises(SpecError, match=r"network.kind has 11 levels that are not numbers; at most 10 lines"):
        classic.phase_diagram(words, "epsilon", value="m", lines="network.kind")


def test_levels_that_look_alike_are_told_apart() -> None:
    table = swept(lambda e, n, r: e, epsilon=[1, 2], n=[0.123451, 0.123452])
    assert entries(classic.phase_diagram(table, "epsilon", value="m", lines="n"))[:2] == ["0.123451", "0.123452"]
    long = ["x" * 30 + "a", "x" * 30 + "b"]
    table = swept(lambda e, n, r: e, epsilon=[1, 2], initial=long)
    assert len(set(entries(classic.phase_diagram(table, "epsilon", value="m", lines="initial"))) - {"single run"}) == 2


@pytest.mark.parametrize("width", [84, 174])
@pytest.mark.parametrize(
    ("table", "more"),
    [
        (GRID[(GRID["epsilon"] == 0.1) & (GRID["mu"] == 1.0)], {"y": "mu"}),
        (GRID[GRID["epsilon"] == 0.1], {"lines": "mu"}),
        (GRID[GRID["epsilon"] == 0.1], {"y": "mu"}),
        (GRID[GRID["replicate"] == 0], {"lines": "mu"}),
        (GRID.assign(m=0.0), {"y": "mu", "show": "both"}),
        (GRID.assign(m=0.0), {"lines": "mu", "show": "both"}),
        (GRID.assign(m=GRID["m"] - 4), {"y": "mu", "show": "both", "contours": [0, 1]}),
        (GRID, {"lines": "mu", "scale": {"epsilon": "log", "m": "log"}, "theory": {"x" * 60: lambda x: 3 + x}}),
        (timed().assign(mu=1.0), {"x": "n", "y": "mu", "value": "time", "scale": {"time": "log"}}),
    ],
    ids=["one place", "one level", "one column", "one run", "equal", "equal lines", "signs", "log", "censored"],
)
@pytest.mark.filterwarnings("error")
def test_texts_stay_within_the_figure(table: Any, more: dict[str, Any], width: int) -> None:
    with plots.paper(width):
        ax = classic.phase_diagram(table, **{"x": "epsilon", "value": "m", **more})
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    assert figure.get_figwidth() == pytest.approx(width / 25.4)
    figure.draw_without_rendering()
    texts = [text for each in figure.axes for text in (each._left_title, each.xaxis.label, each.yaxis.label)]  # type: ignore[attr-defined]
    ticks = [tick for each in figure.axes for axis in (each.xaxis, each.yaxis) for tick in axis._update_ticks()]  # type: ignore[attr-defined]
    texts += [label for tick in ticks for label in (tick.label1, tick.label2)]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    boxes = [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]
    assert min(min(box.x0, box.y0) for box in boxes) >= -1
    assert max(box.x1 for box in boxes) <= figure.bbox.width + 1
    assert max(box.y1 for box in boxes) <= figure.bbox.height + 1
    assert min(each.get_window_extent().height for each in maps_of(ax)) > 80
    for each in maps_of(ax):
        names = [label for label in each.get_xticklabels() if label.get_text() and not label.get_rotation()]
        spans = sorted((box.x0, box.x1) for box in (label.get_window_extent() for label in names))
        assert all(left[1] <= right[0] for left, right in pairwise(spans))


def test_one_value_has_one_colour_and_one_number_at_its_bar() -> None:
    ax = classic.phase_diagram(GRID.assign(m=0.25), "epsilon", "mu", "m")
    assert mesh_of(ax).get_cmap().N == 1
    assert [label.get_text() for label in bars_of(ax)[0].get_yticklabels()] == ["0.25"]


def test_colours_are_logarithmic_where_asked() -> None:
    ax = classic.phase_diagram(GRID, "epsilon", "mu", "m", scale={"m": "log"}, show="both")
    norms = [mesh_of(each).norm for each in maps_of(ax)]
    assert [isinstance(norm, LogNorm) for norm in norms] == [True, False]
    assert (norms[0].vmin, norms[0].vmax) == pytest.approx((2.1, 7))


def test_own_axes_take_one_panel() -> None:
    own = Figure().add_subplot()
    assert classic.phase_diagram(SIZES, "epsilon", value="m", lines="n", ax=own) is own
    legend = own.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][:2] == ["100", "1,000"]
    with pytest.raises(SpecError, match="ax holds one panel, and 2 are asked for"):
        classic.phase_diagram(GRID, "epsilon", "mu", "m", show="both", ax=own)


def test_results_of_a_sweep_are_drawn_from_their_points() -> None:
    held = SimpleNamespace(run_ids=(), study=SimpleNamespace(source=lambda results: GRID))
    expected = classic.phase_data(GRID, "epsilon", "mu", "m")
    pd.testing.assert_frame_equal(classic.phase_data(held, "epsilon", "mu", "m").frame, expected.frame)  # type: ignore[arg-type]


def test_a_sweep_of_a_model_is_drawn_as_it_comes(tmp_path: Path) -> None:
    found = sweep("deffuant", {"epsilon": [0.1, 0.4], "mu": [0.2, 0.5]}, n=20, steps=5, replicates=2)
    with plots.paper(84):
        ax = classic.phase_diagram(found, "epsilon", "mu", ["bias", "diversity"], show="both")
    assert len(maps_of(ax)) == 4
    saved = plots.save(ax, tmp_path / "map.pdf").read_bytes()
    assert b"/Type3" not in saved
    assert b"/CIDFontType2" in saved


@pytest.mark.parametrize("text", ["epsilon,the name\n0.1,1\n0.2,2e0\n", "0.1,1\n\n0.2,2\n"])
def test_curves_are_read_from_two_columns(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mean field.csv"
    file.write_text(text, encoding="utf-8")
    ((label, (x, y)),) = classic.read_theory(file).items()
    assert label == ("the name" if "name" in text else "mean field")
    assert (x.tolist(), y.tolist()) == ([0.1, 0.2], [1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n3,__import__('os')\n", r"line 3: must be two numbers, x and y; got \"3,__import__"),
        ("1,2,3\n", "line 1: must be two numbers"),
        ("1,nan\n2,3\n", "line 1: must be two numbers"),
        ("x,y\n1,2\n", "at least two lines of numbers, x and y; it has 1"),
        ("", "it has 0"),
    ],
)
def test_files_that_hold_no_curve_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=message):
        classic.read_theory(tmp_path / "c.csv")
    with pytest.raises(SpecError, match="cannot read the curve"):
        classic.read_theory(tmp_path / "none.csv")


def test_a_phase_diagram_averages_the_runs_of_each_crossing() -> None:
    data = classic.phase_data(SWEEP, "epsilon", "mu", "clusters", level=0.5)
    rows = data.frame[["epsilon", "mu", "mean", "n_runs"]].to_numpy().tolist()
    assert rows == [[0.1, 0.5, 5, 1], [0.2, 0.1, 7, 1], [0.2, 0.5, 3, 2]]
    assert data.frame[["low", "high"]].isna().all(axis=None)
    assert data.runs[["epsilon", "mu", "value"]].to_numpy().tolist() == [[0.2, 0.5, 2], [0.2, 0.5, 4]]
    assert data.notes == ("1 of 5 runs without a number of clusters left out", "mean of 1 to 2 runs per point")
    np.testing.assert_allclose(data.frame["spread"], [NAN, NAN, math.sqrt(2)])
    line = classic.phase_data(SWEEP, "epsilon", value="clusters", where={"mu": 0.5})
    np.testing.assert_allclose(line.frame["mean"], [5, 3])


def test_a_sweep_names_its_model_and_what_is_constant_and_counts_neither_as_swept() -> None:
    over = {"epsilon": [0.1, 0.3], "mu": [0.5], "order": ["random"]}
    found = sweep("deffuant", over, n=6, steps=3, replicates=2, threshold="<")
    data = classic.phase_data(found, "epsilon")
    expected = ("deffuant, 6 agents, 3 steps, mu 0.5, order random, threshold <", "mean of 2 replicates per point")
    assert data.notes == expected
    assert classic.phase_data(found, "epsilon", "mu").notes[0] == expected[0].replace(", mu 0.5", "")
    held = classic.phase_data(found, "epsilon", where={"mu": 0.5})
    assert held.notes[:2] == (expected[0].replace(", mu 0.5", ""), "mu: 0.5")
    read = pd.DataFrame(found.to_dict("list"))
    assert classic.phase_data(read, "epsilon").notes == ("deffuant, mu 0.5, order random", "mean of 2 runs per point")
    several = pd.concat([read, read.assign(model="weighted-linear")], ignore_index=True)
    assert classic.phase_data(several, "epsilon", "model").notes[0] == "mu 0.5, order random"
    with pytest.raises(SpecError, match="so model varied too"):
        classic.phase_data(several, "epsilon")


def test_phase_diagrams_are_maps_of_two_parameters_and_lines_of_one() -> None:
    ax = classic.phase_diagram(SWEEP, "epsilon", "mu", "clusters")
    mesh = ax.collections[0]
    np.testing.assert_allclose(np.ma.filled(mesh.get_array(), NAN), [[NAN, 7], [5, 3]])
    assert sorted(text.get_text() for text in ax.texts) == ["3.00", "5.00", "7.00"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "0.2"]
    assert ax.figure.get_suptitle().startswith(EVIDENCE["equation"])
    line = classic.phase_diagram(SWEEP, "epsilon", value="clusters", where={"mu": 0.5})
    np.testing.assert_allclose(line.lines[0].get_xydata(), [[0.1, 5], [0.2, 3]])


def test_a_constant_measure_and_one_of_both_signs_are_coloured_as_such() -> None:
    flat = classic.phase_diagram(SWEEP.assign(clusters=1e-3), "epsilon", "mu", "clusters").collections[0]
    low, high = flat.get_clim()
    assert low < 1e-3 < high
    signs = SWEEP.assign(clusters=SWEEP["clusters"] - 4)
    assert classic.phase_diagram(signs, "epsilon", "mu", "clusters").collections[0].get_clim() == (-3, 3)


WORDS = swept(lambda kind, e, r: e, **{"network.kind": ["a", "b"], "epsilon": [1, 2]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f(SWEEP, "epsilon", value="clusters"), "so something else varied too"),
        (
            lambda f: f(SWEEP.assign(model="deffuant"), "epsilon", value="clusters"),
            "agree in epsilon, replicate, so mu varied too",
        ),
        (lambda f: f(SWEEP, "eps", value="clusters"), "no column 'eps'"),
        (lambda f: f(SWEEP, "epsilon", value="evidence"), "must contain numbers"),
        (lambda f: f(SWEEP, "mu", "mu", value="clusters"), "two different columns"),
        (lambda f: f(SWEEP.drop(columns="evidence"), "mu", value="clusters"), "no column 'evidence'"),
        (lambda f: f(SWEEP, "epsilon", value="clusters", wording="00"), "kind and wording choose runs of a store"),
        (lambda f: f(SIZES, "epsilon", "mu", "m", lines="n"), "not both; got 'mu' and 'n'"),
        (lambda f: f(SIZES, "n", value="m", lines="n"), "two different columns; got 'n' twice"),
        (lambda f: f(GRID, "epsilon", "mu", []), "value must name one measure or several"),
        (lambda f: f(GRID, "epsilon", "mu", ["m", "m"]), "value must name one measure or several"),
        (lambda f: f(GRID, "epsilon", "mu", "mu"), "a measure cannot also be a swept column; got mu"),
        (lambda f: f(GRID.assign(m=NAN), "epsilon", "mu", "m"), "no run has a number of 'm'"),
        (lambda f: f(GRID, "epsilon", "mu", "m", show="sd"), "show must be 'mean', 'spread' or 'both'; got 'sd'"),
        (lambda f: f(GRID, "epsilon", "mu", "m", scale={"n": "log"}), "'n' is not in the figure; valid: epsilon, mu"),
        (lambda f: f(GRID, "epsilon", "mu", "m", scale={"mu": "ln"}), "scale of mu must be 'linear' or 'log'"),
        (lambda f: f(GRID, "epsilon", "mu", "m", scale="log"), "scale must map columns"),
        (lambda f: f(GRID.assign(mu=GRID["mu"] - 1), "epsilon", "mu", "m", scale={"mu": "log"}), "it has -0.9"),
        (lambda f: f(WORDS, "network.kind", "epsilon", "m", scale={"network.kind": "log"}), "it has 'a'"),
        (lambda f: f(GRID.assign(m=-1.0), "epsilon", "mu", "m", scale={"m": "log"}), "its least is -1"),
        (lambda f: f(SIZES.assign(m=-1.0), "epsilon", None, "m", lines="n", scale={"m": "log"}), "its least mean is"),
        (lambda f: f(GRID[GRID["replicate"] == 0], "epsilon", "mu", "m", show="both"), "needs at least two runs"),
        (lambda f: f(SIZES, "epsilon", None, "m", lines="n", contours=[1]), "contours are drawn on a map"),
        (lambda f: f(WORDS, "network.kind", "epsilon", "m", contours=[1.5]), "two levels of each parameter"),
        (lambda f: f(GRID, "epsilon", "mu", "m", contours=["1"]), r"must be finite numbers; got \['1'\]"),
        (lambda f: f(GRID, "epsilon", "mu", "m", theory=[1]), "theory must map labels .*; got list"),
        (lambda f: f(GRID, "epsilon", "mu", "m", theory={"a": "x**2"}), "'a' is str"),
        (lambda f: f(GRID, "epsilon", "mu", "m", theory={"a": ([1, 2], [1])}), "lists of equal length"),
        (lambda f: f(GRID, "epsilon", "mu", "m", theory={"a": lambda x: "no"}), "must give a number for each x"),
        (lambda f: f(GRID, "epsilon", "mu", "m", theory={"a": ([5, 6], [1, 1])}), "no point in the figure"),
        (lambda f: f(GRID, "epsilon", "mu", "m", theory={"a": lambda x: 99}), "y from -0.35 to 1.45"),
        (lambda f: f(WORDS, "network.kind", "epsilon", "m", theory={"a": lambda x: x}), "levels of network.kind are"),
        (
            lambda f: f(SIZES.assign(k=1.0), "epsilon", None, ["m", "k"], lines="n", theory={"a": lambda x: x}),
            "theory is a curve of one measure; got m, k",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        call(classic.phase_diagram)
