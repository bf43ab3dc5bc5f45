"""The outcome figure: what it draws equals the tables, and everything in it can be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import opinionsim as osim
from opinionsim import plots
from opinionsim.analysis import Outcome, outcome_data
from opinionsim.report import study, tables_of
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.analysis.test_outcome import SPEC
from tests.support.examples import few

BOTH = ["bias", "diversity"]
#: Numbers of conditions, with what they are called.
SIZES = [(60, "some condition"), (24, "c"), (1, "all"), (4, "a condition with a name of many words in a row")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return osim.run(load_experiment(SPEC), store=f"sqlite:///{tmp_path_factory.mktemp('outcome')}/study.sqlite")


def _said(ax: Axes) -> list[str]:
    beside = [label for each in ax.child_axes for label in each.get_yticklabels()]
    return [label.get_text() for label in beside]


def _means(ax: Axes) -> np.ndarray:
    """Places of the points with intervals, or else of the points, across."""
    bars = [each.lines[0] for each in ax.containers if hasattr(each, "has_xerr")]
    return np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in bars or ax.lines[-1:]])


def _readable(figure: Figure) -> None:
    """All texts lie on the page, none below six points, none on another."""
    figure.draw_without_rendering()
    texts: list[Text] = []
    with pytest.MonkeyPatch.context() as patch:
        # Ticks beyond the axes have texts that are never drawn.
        patch.setattr(Text, "draw", lambda self, renderer: texts.append(self))
        figure.draw_without_rendering()
    inside = figure.bbox.expanded(1.01, 1.01)
    boxes = {}
    for each in texts:
        box = each.get_window_extent()
        if each.get_visible() and each.get_text().strip():
            assert inside.x0 <= box.x0 <= box.x1 <= inside.x1, each.get_text()
            assert each.get_fontsize() >= 6 - 1e-9, each.get_text()
            boxes[each.get_text(), box.x0, box.y0] = box.expanded(0.9, 0.75)
    for (one, *_), box in (listed := list(boxes.items())):
        hit = [other for (other, *_), there in listed if there is not box and there.overlaps(box)]
        assert not hit, (one, hit)


def test_the_figure_shows_the_numbers_of_tables_and_report(results: Results) -> None:
    figure = plots.outcome(results)
    conditions, change, contrasts, others = figure.axes
    assert "diversity" in conditions.get_xlabel()
    opinions, effects = (each.frame for each in tables_of(results)[:2])
    np.testing.assert_allclose(_means(conditions), opinions["diversity"])
    np.testing.assert_allclose(_means(change), opinions["change"])
    (ends,) = [each.lines[2][0].get_segments() for each in conditions.containers]
    np.testing.assert_allclose(np.array(ends)[:, :, 0], opinions[["diversity_ci_low", "diversity_ci_high"]])
    np.testing.assert_allclose([*_means(contrasts), *_means(others)], effects["difference"])
    assert _said(change) == [f"{n} of {n + m}" for n, m in zip(opinions["n_both"], opinions["n_not_both"], strict=True)]
    dots = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in conditions.lines[:1]])
    np.testing.assert_allclose(np.sort(dots), np.sort(outcome_data(results).units["diversity"]))
    told = study(results)
    assert told.figures[0].name == "outcome"
    np.testing.assert_allclose(_means(told.figures[0].figure.axes[0]), told.tables[0].frame["diversity"])


def test_scripted_runs_have_a_stamp_and_no_finding_and_others_the_reverse(results: Results) -> None:
    data = outcome_data(results)
    stamped = {ax: [each.get_text() for each in ax.texts] for ax in _draw(data).axes}
    assert all("SCRIPTED STAND-IN" in each for each in stamped.values())
    assert not any(word in str(_said(ax)) for ax in stamped for word in ("larger", "undecided", "equivalent", "p "))
    for kinds, said in ((["scripted", "human"], "PARTLY SCRIPTED"), (["mixed"] * 2, "MAYBE SCRIPTED")):
        drawn = _draw(replace(data, conditions=data.conditions.assign(evidence=kinds * 2)))
        assert said in [each.get_text() for each in drawn.axes[0].texts]
    found = replace(
        data,
        conditions=data.conditions.assign(evidence="model"),
        units=data.units.assign(evidence="model"),
        contrasts=data.contrasts.assign(evidence="model", finding=["larger", ""], p_reported=[0.001, 0.2]),
    )
    figure = _draw(found)
    assert [_said(ax) for ax in figure.axes[2:]] == [["larger"], ["p = 0.200"]]
    assert not any("STAND-IN" in each.get_text() for ax in figure.axes for each in ax.texts)


def _draw(data: Outcome) -> Figure:
    """The draw step alone, without what becomes a caption."""
    (draw,) = [each.cell_contents for each in plots.outcome.__closure__ or () if "Draw" in each.cell_contents.__doc__]  # type: ignore[attr-defined]
    figure: Figure = draw(replace(data, notes=()))
    return figure


def _grown(data: Outcome, n: int, name: str) -> Outcome:
    """The same numbers for n conditions of one factor with long names."""
    rows = data.conditions.iloc[np.arange(n) % len(data.conditions)].reset_index(drop=True)
    named = rows.assign(setting=[f"{name} {place}" for place in range(n)]).drop(columns=list(data.axes))
    return replace(data, conditions=named, axes=("setting",), units=named[["setting", "evidence"]].assign(
        topic="t", block="b", **{data.measure: named[data.measure]}))  # fmt: skip


@pytest.mark.parametrize(
    ("n", "name", "width"),
    few([(*each, width) for each in SIZES for width in (84, 174)], 3),
)
def test_it_can_be_read_at_any_size(results: Results, width: int, n: int, name: str) -> None:
    data = outcome_data(results)
    for each in (_grown(data, n, name), replace(_grown(data, n, name), contrasts=pd.DataFrame(), effects=())):
        with plots.paper(width, 9):
            _readable(figure := _draw(each))
        assert figure.get_figheight() < (6 + 0.17 * n) * (1 if width > 100 else 1.6)


@pytest.mark.parametrize("width", [84, 174])
def test_factors_are_headings_and_withheld_conditions_are_said(results: Results, width: int) -> None:
    data = outcome_data(results)
    lost = data.conditions.assign(n_withheld=[4, 1, 0, 0])
    gone = ["diversity", "diversity_ci_low", "diversity_ci_high", "change", "change_low", "change_high"]
    lost.loc[0, gone] = np.nan
    lost.loc[0, ["n_both", "n_not_both"]] = 0
    with plots.paper(width):
        figure = _draw(replace(data, conditions=lost))
        _readable(figure)
    conditions, change = (ax for ax in figure.axes if ax.get_xlabel().startswith(("diversity", "change")))
    assert {"confirmation bias: strong", "confirmation bias: none"} <= {each.get_text() for each in conditions.texts}
    assert [each.get_text() for each in conditions.get_yticklabels()] == ["ring", "complete"] * 2
    assert _said(conditions) == ["0 of 4 runs", "3 of 4 runs", "4 of 4 runs", "4 of 4 runs"]
    assert "withheld" in [each.get_text() for each in conditions.texts]
    assert _said(change)[0] == "none"


def test_the_numbers_can_be_saved(results: Results, tmp_path: Path) -> None:
    frame = outcome_data(results).frame
    frame.to_csv(file := tmp_path / "outcome.csv", index=False)
    read: Any = pd.read_csv(file)
    opinions, contrasts = (each.frame for each in tables_of(results)[:2])
    np.testing.assert_allclose(read.loc[read["of"] == "condition", BOTH], opinions[BOTH])
    np.testing.assert_allclose(read.loc[read["of"] == "contrast", "difference"], contrasts["difference"])
