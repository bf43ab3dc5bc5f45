from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import opinionsim as osim
from opinionsim import plots
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE, name_instrument
from opinionsim.specification import load_experiment
from tests.support.examples import brought
from tests.support.frames import one_run, study

SCRIPTED = EVIDENCE["scripted"]


def test_trajectories_draw_on_axes_of_their_own_or_given_ones() -> None:
    frames = study([{}], steps=20)
    assert SCRIPTED in plots.trajectories(frames).get_title(loc="left")
    ax = Figure().add_subplot()
    assert plots.trajectories(frames, ax=ax, legend=False) is ax
    assert ax.get_legend() is None
    assert ax.get_xlabel() == "step"
    assert ax.get_yticklabels()[0].get_text() == "strongly negative  \N{MINUS SIGN}2"


def test_final_distribution_draws_a_bar_a_point_and_a_line_at_the_bias() -> None:
    frames = study([{}], steps=40)
    data = plots.final_data(frames)
    ax = plots.final_distribution(frames)
    assert [bar.get_height() for bar in ax.patches] == data.counts.tolist()
    assert ax.lines[0].get_xdata()[0] == data.bias
    assert ax.get_ylim() == (0, 10)
    assert SCRIPTED in ax.get_title(loc="left")
    assert "(ddof 0)" in plots.caption_of(ax)


def test_panels_state_evidence_and_share_the_axis_of_opinions() -> None:
    frames = study([{"framing": "falsehood"}, {"framing": "truth"}, {"interaction": "independent"}], steps=20)
    figure = plots.panels(frames)
    figure.draw_without_rendering()
    assert SCRIPTED in figure.get_suptitle()
    assert len(figure.axes) == 5
    assert {ax.get_ylim() for ax in figure.axes} == {(-2.5, 2.5)}


@pytest.mark.whole
def test_drawing_leaves_pyplot_and_global_style_alone() -> None:
    code = (
        "import sys, matplotlib\n"
        "before = dict(matplotlib.rcParams)\n"
        "from opinionsim import plots\n"
        "from tests.support.frames import study\n"
        "from tests.support.simulations import simulated\n"
        "frames, one = study([{}], steps=5), simulated([[[0, 1, 0.5], [0.5, 0.5, 0.5]]], network=[(0, 1), (1, 2)])\n"
        "plots.trajectories(frames), plots.final_distribution(frames), plots.panels(frames)\n"
        "plots.ribbons(one), plots.density(one), plots.transition_matrix(one), plots.network_snapshots(one)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert dict(matplotlib.rcParams) == before\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_equal_figures_give_equal_files_that_state_the_evidence(tmp_path: Path, suffix: str) -> None:
    frames = study([{}], steps=5)
    paths = [plots.save(plots.final_distribution(frames), tmp_path / name / f"a{suffix}") for name in ("x", "y")]
    content = paths[0].read_bytes()
    assert content == paths[1].read_bytes()
    assert SCRIPTED.encode() in content or "SCRIPTED".encode("utf-16-be") in content


def test_files_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    figure = plots.panels(study([{}], steps=5))
    with pytest.raises(SpecError, match=r"\.png, \.svg or \.pdf; got 'a\.jpg'"):
        plots.save(figure, tmp_path / "a.jpg")
    for name in ("a.jpg", "a", ".png"):
        with pytest.raises(SpecError, match=r"\.png, \.svg or \.pdf; got"):
            plots.check_suffix(tmp_path / "folder" / name)
    plots.check_suffix(tmp_path / "folder" / "A.PDF")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match=r"cannot write .*a\.png"):
        plots.save(figure, tmp_path / "file" / "a.png")


def test_the_axis_of_time_is_named_below_the_lowest_panels() -> None:
    native = {"interaction": "native", "model": "deffuant", "evidence": "equation", "classifier": "exact"}
    assert plots.trajectories(study([native], steps=5)).get_xlabel() == "step"
    alone = plots.panels(study([native, native | {"framing": "truth"}], steps=5)).axes
    assert sorted(ax.get_xlabel() for ax in alone) == ["agents", "agents", "step", "step"]
    kinds = (native, native | {"interaction": "dyadic"})
    rows = [kind | {"framing": framing} for kind in kinds for framing in ("falsehood", "truth")]
    mixed = plots.panels(study(rows, steps=5), rows="interaction", columns="framing").axes
    assert sorted(ax.get_xlabel() for ax in mixed) == [*[""] * 4, *["agents"] * 2, *["step"] * 2]


def test_lines_of_equations_are_drawn_at_their_values() -> None:
    texts = [(0, 1, 0, 2.0), (1, 2, 1, 1.75), (2, 3, 2, -2.0)]
    equation = one_run(texts, assigned=[2, 2, -2], steps=4, classifier="exact", evidence="equation")
    drawn = plots.trajectories(equation).lines
    heights = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in drawn])
    assert set(heights[~np.isnan(heights)].tolist()) == {2.0, 1.75, -2.0}


def test_long_titles_stay_within_the_figure() -> None:
    label = ", ".join(f"option {i}" for i in range(30))
    rows = [{f"model.{name}": f"{label} {level}"} for name in "xyz" for level in range(5)]
    figure = plots.panels(study([{"error": "edited"} | row for row in rows], steps=5))
    long = study([{f"model.{name}": level} for name in "ab" for level in range(2)], steps=5)
    long.runs["a very long name of a condition that is held " * 3] = [0, 0, 1, 1]
    held = plots.panels(long, rows="model.a", columns="model.b")
    for drawn in (figure, held):
        drawn.draw_without_rendering()
        texts = [drawn._suptitle, *(ax._left_title for ax in drawn.axes)]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        assert min(box.x0 for box in boxes) >= 0
        assert max(box.x1 for box in boxes) <= drawn.bbox.width
        assert max(box.y1 for box in boxes) <= drawn.bbox.height
    titles = {" ".join(ax.get_title(loc="left").split()) for ax in figure.axes}
    assert f"x: {label} 0" in titles


def test_lines_take_the_colour_of_the_model_that_plays_the_agent() -> None:
    frames = study([{}], n_agents=4, steps=20)
    frames.agents["model"] = ["openai:a", "openai:b"] * 2
    ax = plots.trajectories(frames, color_by="model")
    solid = [line.get_color() for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert solid[0] == solid[2] != solid[1] == solid[3]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["openai:a", "openai:b", "measured", "assigned only"]
    assert ax.get_legend().get_title().get_text() == "line: model"
    figure = plots.panels(frames, color_by="model")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        *names,
        "agents at the end",
        "mean at the end",
    ]
    for draw in (plots.trajectories, plots.panels):
        with pytest.raises(SpecError, match="color_by must be 'opinion' or 'model'; got 'mood'"):
            draw(frames, color_by="mood")  # type: ignore[operator]


def test_a_formula_in_a_name_is_shown_as_it_is_written(tmp_path: Path) -> None:
    figure = Figure()
    figure.subplots().set_title(r"$\nosuchcommand{$ and $x_i$")
    assert plots.save(figure, tmp_path / "a.svg").is_file()
    assert not figure.axes[0].title.get_parse_math()


@brought("endpoint", "classic")
def test_the_name_of_an_axis_below_long_names_of_opinions_stands_within_the_figure(tmp_path: Path) -> None:
    compared = {
        "name": "both",
        "population": {"size": 6, "initial_opinions": "continuous"},
        "interaction": {"kind": "dyadic", "steps": 30},
        "sweep": {"model": [{"classic": "deffuant", "parameters": {"epsilon": each}} for each in (2.0, 3.0, 4.0)]},
    }
    figure = plots.transition_matrix(osim.run(load_experiment(compared), str(tmp_path / "a.sqlite")))
    figure.draw_without_rendering()
    for ax in figure.axes[:3]:
        assert ax.xaxis.label.get_text() == "next opinion"
        assert ax.xaxis.label.get_window_extent().y0 >= 0


def test_kinds_of_text_have_their_plurals() -> None:
    assert [name_instrument(kind, "lexicon").split()[0] for kind in ("post", "speech")] == ["posts", "speeches"]
    assert name_instrument("self-report", "lexicon") == "self-reports"
