"""The specification curve, and figures in panels that follow the design."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import opinionsim as osim
from opinionsim import analysis, plots
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.analysis.test_robustness import SPEC
from tests.support.examples import few
from tests.support.frames import study

VARIANT = {"label": "second", "change": {"prompts.variant": "second"}}
GRID = study(
    [{"framing": framing, "confirmation_bias": bias} for framing in ("falsehood", "truth")
     for bias in ("none", "weak", "strong")],
    steps=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A small study with choices and a variant."""
    url = f"sqlite:///{tmp_path_factory.mktemp('curve')}/study.sqlite"
    experiment = load_experiment({**SPEC, "replicates": 1, "robustness": [VARIANT]})
    for each in experiment.variants.values():
        osim.run(each, store=url)
    return osim.run(experiment, store=url)


@pytest.mark.parametrize("width", few([84, 174], 1))
def test_a_curve_rises_and_each_combination_has_its_choices_below(results: Results, width: int) -> None:
    with plots.paper(width):
        figure = plots.specification_curve(results)
    figure.draw_without_rendering()
    curve, choices, variants = figure.axes
    heights = np.asarray(curve.lines[0].get_ydata(), dtype=float)
    frame = analysis.robustness_frame(results)
    assert heights.tolist() == sorted(frame.loc[frame["of"] == "analysis", "difference"])
    dots = np.concatenate([np.asarray(line.get_xdata()) for line in choices.lines])
    assert np.bincount(dots.astype(int)).tolist() == [3] * len(heights)
    assert [label.get_text() for label in choices.get_yticklabels()][:2] == ["text: report", "text: post"]
    assert [label.get_text() for label in variants.get_yticklabels()] == ["second (agent)"]
    assert figure.get_suptitle().startswith(EVIDENCE["scripted"][:20])
    assert "Not varied: " in plots.caption_of(figure)
    boxes = [box for ax in figure.axes if (box := ax.get_tightbbox()) is not None]
    for box in boxes:
        assert figure.bbox.x0 - 1 <= box.x0 < box.x1 <= figure.bbox.x1 + 1


def test_findings_stand_beside_variants_and_scripted_runs_have_none(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beside(found: pd.DataFrame) -> list[str]:
        monkeypatch.setattr(analysis, "robustness_frame", lambda *_: found)
        (right,) = plots.specification_curve(results).axes[-1].child_axes
        return [label.get_text() for label in right.get_yticklabels()]

    frame = analysis.robustness_frame(results)
    assert beside(frame) == [""]
    decided = frame.assign(evidence="model", finding=frame["finding"].where(frame["of"] == "analysis", "changes"))
    decided.attrs.update(frame.attrs)
    assert beside(decided) == ["changes"]


def test_a_contrast_is_needed(results: Results, tmp_path: Path) -> None:
    spec: dict[str, Any] = {**SPEC, "replicates": 1, "name": "bare"}
    del spec["analysis"], spec["robustness"]
    bare = osim.run(load_experiment(spec), store=f"sqlite:///{tmp_path}/bare.sqlite")
    with pytest.raises(SpecError, match=r"declare it as analysis\.primary"):
        plots.specification_curve(bare)


def test_two_factors_are_panels_and_lines_or_rows_and_columns() -> None:
    figure = plots.ribbons(GRID).figure
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["framing: falsehood", "framing: truth"]
    assert [len([line for line in ax.lines if np.size(line.get_xdata()) > 2]) for ax in figure.axes] == [3, 3]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    full = plots.ribbons(GRID, rows="confirmation_bias", columns="framing").figure
    assert len(full.axes) == 6
    headings = [ax.get_ylabel().split("\n")[0] for ax in full.axes]
    assert [heading for heading in headings if heading] == [
        "confirmation bias: none", "confirmation bias: weak", "confirmation bias: strong"
    ]  # fmt: skip
    with pytest.raises(SpecError, match="rows and columns must be two of framing, confirmation_bias; got memory"):
        plots.ribbons(GRID, rows="memory")


def test_panels_of_densities_and_transitions_follow_the_factors() -> None:
    for draw in (plots.density, plots.transition_matrix):
        with plots.paper(84):
            figure = draw(GRID)
        figure.draw_without_rendering()
        specs = [spec for ax in figure.axes[:6] if (spec := ax.get_subplotspec()) is not None]
        spots = [(spec.rowspan.start, spec.colspan.start) for spec in specs]
        assert sorted(spots) == [(row, column) for row in range(3) for column in range(2)]
        assert figure.get_figheight() * 25.4 < 240


def test_captions_stand_beside_the_image_or_within_it(tmp_path: Path) -> None:
    with plots.paper(84):
        beside = plots.density(GRID)
        file = plots.save(beside, tmp_path / "a.png", caption=True)
    told = (tmp_path / "a.txt").read_text(encoding="utf-8")
    with Image.open(file) as image:
        assert told == f"{image.info['Description']}\n" == f"{plots.caption_of(beside)}\n"
    assert told.endswith(f". {EVIDENCE['scripted']}.\n")
    assert " ".join(beside.get_suptitle().split()) == EVIDENCE["scripted"]
    with plots.paper(84, caption="in"):
        within = plots.density(GRID)
    plots.save(within, tmp_path / "b.png")
    sentences = told.removesuffix(f" {EVIDENCE['scripted']}.\n")
    assert " ".join(within.get_suptitle().split()) == f"{EVIDENCE['scripted']} {sentences}"
    assert not (tmp_path / "b.txt").exists()
    with pytest.raises(SpecError, match="caption must be 'in' or None; got 'out'"), plots.paper(caption="out"):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("font_size", [9, 24])
def test_a_figure_without_room_for_its_texts_is_refused_and_leaves_no_file(tmp_path: Path, font_size: int) -> None:
    with plots.paper(80, font_size):
        figure = plots.ribbons(GRID, by=["framing", "confirmation_bias"]).figure
        figure.legend(["x" * 200])
    with pytest.raises(SpecError, match=r"of 80 mm is too narrow: its .* not fit; give a larger width"):
        plots.save(figure, tmp_path / "a.png", caption=True)
    assert not list(tmp_path.iterdir())


def test_many_positions_are_taken_together(tmp_path: Path) -> None:
    spec = {
        "name": "many", "replicates": 2, "population": {"size": 50}, "topic": {"name": "flat-earth"},
        "interaction": {"kind": "tests.support.talking:Talk", "steps": 1},
        "measurement": {"classifier": "lexicon", "texts": ["response", "probe"], "probe": {"before": 1, "after": 1}},
    }  # fmt: skip
    data = plots.before_after_data(osim.run(load_experiment(spec), store=f"sqlite:///{tmp_path}/many.sqlite"))
    assert data.frame["position"].max() == 50
    assert data.by_position["position"].tolist() == [2 + 3 * group for group in range(17)]
    middle = data.frame[data.frame["position"].between(4, 6)]
    assert data.by_position["mean"].iloc[1] == pytest.approx(middle.groupby("run_id")["change"].mean().mean())
