"""Checks of the contrasts that a specification declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opinionsim.errors import meant
from opinionsim.foundation.documents import KeyPath
from opinionsim.measurement import STANCE
from opinionsim.metrics import NOT_SET
from opinionsim.specification._analysis_fields import FRAMING, OF_FRAMINGS, AnalysisSpec, ContrastSpec

if TYPE_CHECKING:
    from opinionsim.specification._cells import Cell

#: Axes that make units and no conditions.
_UNITS = ("topic", "topic.name", "seed")


def analysis_problems(
    analysis: AnalysisSpec, cells: Sequence[Cell], metrics: Sequence[str]
) -> Iterator[tuple[KeyPath, str]]:
    """Contrasts of what is not measured, of unknown conditions, and of conditions that share no block.

    Parameters
    ----------
    analysis : AnalysisSpec
        The analysis.
    cells : sequence of Cell
        All cells of the experiment.
    metrics : sequence of str
        Names of the metrics that the specification lists.

    Yields
    ------
    (tuple, str)
        Field and problem.
    """
    valid = ["bias", "diversity", *OF_FRAMINGS, *metrics]
    axes: dict[str, dict[str, Any]] = {}
    conditions: list[dict[str, str]] = []
    swept = dict.fromkeys(path for cell in cells for path in cell.axes)
    for cell in cells:
        # A cell of another grid may not have the axis, as the source of a fork has none of its changes.
        own = {FRAMING: cell.fields.get("topic", {}).get("framing"), **dict.fromkeys(swept, NOT_SET), **cell.axes}
        conditions.append({path: str(label) for path, label in own.items()})
        for path, label in own.items():
            axes.setdefault(path, {})[str(label)] = label
    axes = {path: levels for path, levels in axes.items() if path not in _UNITS and len(levels) > 1}
    apart = {path for cell in cells for path in cell.spec.independent_over}
    for name, contrast in analysis.contrasts.items():
        place: KeyPath = ("analysis", "contrasts", name)
        if contrast.measure not in valid and not contrast.measure.startswith(tuple(f"{each}(" for each in metrics)):
            guess = meant(contrast.measure, valid)
            yield (*place, "measure"), f"{contrast.measure!r}{guess} is not measured; valid: {', '.join(valid)}"
        for path, levels in dict.fromkeys(item for _, side in contrast.terms for item in side.items()):
            if path not in axes:
                told = ", ".join(axes) or "none, for no condition is swept"
                yield place, f"{path!r}{meant(path, axes)} is no condition that varies; valid: {told}"
            elif path in apart:
                yield (
                    place,
                    f"conditions of {path} share no block, for it stands in independent_over: nothing is paired",
                )
            else:
                for level in levels:
                    if str(level) not in axes[path]:
                        yield place, f"{path} is never {level!r}; valid: {', '.join(axes[path])}"
        if differ := _differing(contrast, [{path: each[path] for path in axes} for each in conditions]):
            yield place, f"the conditions that are compared differ in {differ} too; give both the same levels"
    if analysis.choices is not None:
        stance = [each for cell in cells for each in cell.instruments if each.variable == STANCE and not each.about]
        there = {"texts": {kind for each in stance for kind in each.kinds}}
        there["classifiers"] = {each.classifier.name for each in stance}
        for field, names in there.items():
            for value in getattr(analysis.choices, field):
                if value not in names:
                    told = ", ".join(sorted(names)) or "none"
                    yield ("analysis", "choices", field), f"{value!r} is not measured; valid: {told}"


def _differing(contrast: ContrastSpec, conditions: Sequence[Mapping[str, str]]) -> str:
    """Axes that a contrast does not name and in which its sides differ; empty without any."""
    named = dict.fromkeys(path for _, side in contrast.terms for path in side)
    values: dict[tuple[str | None, ...], list[Mapping[str, str]]] = {}
    for each in conditions:
        values.setdefault(tuple(each.get(path) for path in named), []).append(each)
    others = [
        path
        for path in conditions[0]
        if path not in named and not all(len({each[path] for each in alike}) == 1 for alike in values.values())
    ]
    sides = []
    for _, side in contrast.terms:
        chosen = [each for each in conditions if all(each.get(path) in {*map(str, side[path])} for path in side)]
        sides.append({tuple(each[path] for path in others) for each in chosen})
    # A side without a condition is told of elsewhere.
    return ", ".join(others) if all(sides) and any(side != sides[0] for side in sides) else ""
