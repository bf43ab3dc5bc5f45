"""Every built-in figure at the widths of a column and a page: what is printed can be read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from opinionsim import plots
from opinionsim.metrics import EVIDENCE
from tests.plots.test_over_time_data import edges
from tests.support.frames import study
from tests.support.simulations import simulated

FEW = study([{}], steps=20)
FACTORS = [{"framing": each, "confirmation_bias": bias} for each in ("falsehood", "truth") for bias in ("none", "weak")]
GRID = study(FACTORS, steps=20, replicates=2)
NAMED = study([{"model.name": name} for name in ("gpt-5 with a long name", "claude", "llama", "qwen")], steps=20)
SIMULATED = simulated(np.random.default_rng(0).random((3, 5, 20)))
#: Figures by the data that they are drawn from.
DRAWN: dict[str, Callable[[], Any]] = {
    "panels": lambda: plots.panels(GRID),
    "panels of named conditions": lambda: plots.panels(NAMED),
    "trajectories": lambda: plots.trajectories(FEW),
    "trajectories of a simulation": lambda: plots.trajectories(SIMULATED),
    "distribution": lambda: plots.final_distribution(FEW),
    "ribbons": lambda: plots.ribbons(NAMED, "diversity"),
    "ribbons of factors": lambda: plots.ribbons(GRID),
    "density": lambda: plots.density(GRID),
    "transitions": lambda: plots.transition_matrix(GRID),
    "network": lambda: plots.network_snapshots(plots.Frames(*FEW, edges=edges())),
}


def texts_of(figure: Figure) -> Iterator[Text]:
    """Titles, names of axes, numbers at ticks and legends, as far as they are drawn."""
    for ax in figure.axes:
        legend = ax.get_legend()
        yield from (ax.title, ax._left_title, ax._right_title, ax.xaxis.label, ax.yaxis.label)  # type: ignore[attr-defined]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            yield from (label for tick in ticks for label in (tick.label1, tick.label2))
        yield from legend.get_texts() if legend else ()
    yield from (text for legend in figure.legends for text in (legend.get_title(), *legend.get_texts()))
    if figure._suptitle is not None:  # type: ignore[attr-defined]
        yield figure._suptitle  # type: ignore[attr-defined]


def box_of(text: Text) -> Bbox:
    """Where a text is, without the empty lines at its end that keep room for another."""
    box, said = text.get_window_extent(), text.get_text()
    lines, empty = said.count("\n") + 1, len(said) - len(said.rstrip("\n"))
    return Bbox([[box.x0, box.y0 + box.height * empty / lines], [box.x1, box.y1]])


@pytest.mark.whole
@pytest.mark.parametrize("width", [84, 174])
@pytest.mark.parametrize("name", DRAWN)
def test_texts_can_be_read_and_lie_apart_within_the_figure(tmp_path: Path, name: str, width: int) -> None:
    with plots.paper(width):
        drawn = DRAWN[name]()
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    plots.save(figure, tmp_path / "a.png")
    figure.draw_without_rendering()
    assert figure.get_figwidth() == pytest.approx(width / 25.4)
    seen = [text for text in texts_of(figure) if text.get_visible() and text.get_text().strip()]
    assert min(text.get_fontsize() for text in seen) >= 6
    boxes = [(text, box) for text in seen if (box := box_of(text)).width]
    whole = figure.bbox.padded(1.5)
    inside = [
        text.get_text()
        for text, box in boxes
        if not whole.contains(box.x0, box.y0) or not whole.contains(box.x1, box.y1)
    ]
    assert not inside
    apart = [
        (one.get_text(), other.get_text())
        for (one, a), (other, b) in combinations(boxes, 2)
        if a.padded(-1).overlaps(b.padded(-1))
    ]
    assert not apart
    shown = next(iter(figure.texts)).get_text() if figure.texts else figure.axes[0].get_title(loc="left")
    assert " ".join(shown.split()) in EVIDENCE.values()


@pytest.mark.parametrize("draw", [plots.panels, plots.trajectories, plots.final_distribution])
def test_legends_name_every_line(draw: Callable[[Any], Any]) -> None:
    drawn = draw(FEW)
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    legends = [*figure.legends, *(legend for ax in figure.axes if (legend := ax.get_legend()))]
    named = {(line.get_linestyle(), line.get_color()) for each in legends for line in each.findobj(Line2D)}
    styles = {style for style, _ in named}
    for line in (line for ax in figure.axes for line in ax.lines):
        assert line.get_linestyle() in styles, line.get_label()
        assert line.get_linestyle() != "-" or ("-", line.get_color()) in named


def test_other_fonts_draw_what_the_first_lacks_and_missing_glyphs_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", list(manager.ttflist))
    runs = {"茶": SIMULATED, "شاي 🐈": SIMULATED}
    with caplog.at_level(logging.WARNING):
        plots.save(plots.ribbons(runs), tmp_path / "a.png")
    (record,) = caplog.records
    assert "no installed font can draw 茶 (U+8336) 🐈 (U+1F408)" in record.getMessage()
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0)), pen.lineTo((500, 0)), pen.lineTo((500, 700)), pen.closePath()
    made = FontBuilder(1000, isTTF=True)
    made.setupGlyphOrder([".notdef", "tea", "cat"])
    made.setupCharacterMap({0x8336: "tea", 0x1F408: "cat"})
    made.setupGlyf(dict.fromkeys([".notdef", "tea", "cat"], pen.glyph()))
    made.setupHorizontalMetrics(dict.fromkeys([".notdef", "tea", "cat"], (600, 0)))
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": "Teahouse", "styleName": "Regular"})
    made.setupOS2()
    made.setupPost()
    made.save(tmp_path / "tea.ttf")
    manager.addfont(tmp_path / "tea.ttf")
    caplog.clear()
    for suffix in (".png", ".svg", ".pdf"):
        plots.save(plots.ribbons(runs), (tmp_path / "b").with_suffix(suffix))
    assert not caplog.records
