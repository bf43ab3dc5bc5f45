"""The specification curve: a contrast under all choices of analysis, and under variants of the specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opinionsim.drawing import INK, heading, new_figure, page, pt, tidy
from opinionsim.metrics import evidence_statement
from opinionsim.plots._shown import Shown
from opinionsim.registry import part
from opinionsim.specification import ChoicesSpec, analysis_of
from opinionsim.store import Results

#: Choices of analysis in few words.
_WAYS: Mapping[str, str] = {"texts": "text", "classifiers": "instrument", "last": "last steps", "truncated": "cut off"}
#: Inches of the curve, of a row of the matrix or of variants, and about a panel.
_CURVE, _ROW, _ABOUT = 1.7, 0.19, 0.55
_POINT: Mapping[str, Any] = {"color": "black", "marker": "o", "markersize": 3.5, "linestyle": "none", "linewidth": 1.0}


def draw_curve(choices: pd.DataFrame, ax: Axes) -> None:
    """Draw the difference under each combination of choices, with its interval, in the order of the frame."""
    ends = np.abs(choices[["difference_ci_low", "difference_ci_high"]].sub(choices["difference"], axis=0).to_numpy().T)
    ax.errorbar(np.arange(len(choices)), choices["difference"], ends, **_POINT)
    ax.axhline(0, color=INK, linestyle="--", linewidth=0.9)
    ax.set(xlim=(-0.6, len(choices) - 0.4), xticks=[])
    ax.set_ylabel("difference", fontsize=pt(9))
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    tidy(ax)


def draw_choices(choices: pd.DataFrame, ways: Mapping[str, Sequence[Any]], ax: Axes) -> None:
    """Draw a dot for each choice in a combination, with one row per level, grouped by choice."""
    rows = [(way, level) for way, levels in ways.items() for level in levels]
    for row, (way, level) in enumerate(rows):
        if list(ways).index(way) % 2 == 0:
            ax.axhspan(row - 0.5, row + 0.5, color="#F1F3F4", linewidth=0, zorder=0)
        at = np.flatnonzero((choices[way] == level).to_numpy())
        ax.plot(at, np.full(len(at), row), **{**_POINT, "markersize": float(np.clip(120 / len(choices), 1.5, 4))})
    ax.set_yticks(range(len(rows)), [f"{_WAYS.get(way, way)}: {_worded(level)}" for way, level in rows])
    ax.set(xlim=(-0.6, len(choices) - 0.4), ylim=(len(rows) - 0.5, -0.5), xticks=[])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=pt(8))


def _worded(level: Any) -> str:
    return f"{level:g}" if isinstance(level, int | float) else str(level)


def draw_variants(variants: pd.DataFrame, names: Sequence[str], smallest: float | None, ax: Axes) -> None:
    """Draw the change that each variant makes, by name, with its interval and, at the right, its finding."""
    rows, change = np.arange(len(variants)), variants["shift"]
    ends = np.abs(variants[["shift_ci_low", "shift_ci_high"]].sub(change, axis=0).to_numpy().T)
    if smallest:
        ax.axvspan(-smallest, smallest, color="#E9ECEE", linewidth=0, zorder=0)
    ax.axvline(0, color=INK, linestyle="--", linewidth=0.9)
    ax.errorbar(change, rows, xerr=ends, **_POINT)
    ax.set_yticks(rows, names)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    tidy(ax)
    ax.tick_params(labelsize=pt(8))
    reasons = variants["shift_no_interval"].map(lambda reason: "no interval" if reason else "")
    found = variants["finding"].where(variants["finding"] != "", reasons)
    ax.secondary_yaxis("right").set_yticks(rows, found, fontsize=pt(8))
    ax.child_axes[-1].tick_params(length=0)
    ax.child_axes[-1].spines[:].set_visible(False)


def _shown(results: Results) -> Iterator[Shown]:
    analysis = analysis_of(results.spec, results.left_out)
    if analysis.decides is not None and (analysis.choices or results.spec.get("robustness")):
        what = "The contrast under choices of analysis, and what variants of the specification change."
        yield Shown("specification-curve", what)


@part("figure", name="specification-curve", shown=_shown, metrics=True)
def specification_curve(
    results: Results, kind: str | None = None, estimand: Literal["topics-like-these", "these-topics"] | None = None
) -> Figure:
    """Draw a contrast under all choices of analysis, and below it the changes that variants make.

    Parameters
    ----------
    results, kind, estimand
        As for :func:`opinionsim.analysis.robustness_frame`, which has the numbers.

    Returns
    -------
    Figure
        Differences from the smallest to the largest with their intervals; under each, a dot for every choice it has.
        Below, one row per variant: its difference minus that of the specification, the smallest effect of interest
        shaded, and the finding at the right, which scripted runs do not have. The text at the bottom says what was not
        varied. The title states the evidence.

    Raises
    ------
    SpecError
        If no contrast is primary.
    """
    from opinionsim.analysis import robustness_frame

    frame = robustness_frame(results, kind, estimand)
    is_choice, level = frame["of"] == "analysis", frame.attrs["level"]
    choices, variants = frame[is_choice].sort_values("difference", kind="stable"), frame[~is_choice]
    ways = {way: list(frame[way].dropna().unique()) for way in ChoicesSpec.model_fields if frame[way].nunique() > 1}
    smallest, lacking = analysis_of(results.spec, results.left_out).smallest, int(choices["difference"].isna().sum())
    without = f"{lacking} of {len(choices)} combinations without a difference, at the right." if lacking else ""
    inches = page(6.4)
    names = [heading([f"{row['label']} ({row['of']})"], 0.38 * inches) for _, row in variants.iterrows()]
    rows = {"choices": sum(map(len, ways.values())), "variants": sum(name.count("\n") + 1 for name in names)}
    heights = {"curve": _CURVE, **{panel: _ROW * n for panel, n in rows.items() if n}}
    high = sum(heights.values()) + _ABOUT * len(heights)
    what = "choices of analysis and variants of the specification" if names else "choices of analysis"
    notes = [f"{frame.attrs['contrast']}: {what}", without, *frame.attrs["notes"]]
    figure = new_figure([evidence_statement(frame["evidence"]), *notes], inches, high)
    panels = figure.subplot_mosaic([[panel] for panel in heights], height_ratios=list(heights.values()))
    draw_curve(choices, panels["curve"])
    if ways:
        draw_choices(choices, ways, panels["choices"])
    if names:
        draw_variants(variants, names, smallest, panels["variants"])
    combined = f"{len(choices)} combination{'s' if len(choices) > 1 else ''} of choices, by difference"
    changed = f"change under variants, {100 * level:.4g} % interval"
    changed += f"; shaded: within {smallest:g}" if smallest else ""
    for panel, said in ("choices" if ways else "curve", combined), ("variants", changed):
        if panel in panels:
            panels[panel].set_xlabel(heading([said], 0.55 * inches), fontsize=pt(9))
    return figure
