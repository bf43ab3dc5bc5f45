"""Checks of the contrasts that a specification declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opinionsim.errors import SpecError, meant
from opinionsim.foundation.documents import KeyPath
from opinionsim.measurement import STANCE
from opinionsim.metrics import NOT_SET
from opinionsim.specification._analysis_fields import FRAMING, OF_FRAMINGS, AnalysisSpec, ContrastSpec, require_axis

if TYPE_CHECKING:
    from opinionsim.specification._cells import Cell

#: Axes that make units and no conditions.
_UNITS = ("topic", "topic.name", "seed")


def checked_analysis(
    analysis: AnalysisSpec, cells: Sequence[Cell], metrics: Sequence[str]
) -> tuple[AnalysisSpec, list[tuple[KeyPath, str]]]:
    """The analysis with the axes of all conditions that its contrasts name, and the problems in it.

    Parameters
    ----------
    analysis : AnalysisSpec
        The analysis.
    cells : sequence of Cell
        All cells of the experiment.
    metrics : sequence of str
        Names of the metrics that the specification lists.

    Returns
    -------
    AnalysisSpec
        The analysis with each contrast :meth:`~ContrastSpec.among` the axes.
    list of (tuple, str)
        Field and problem: contrasts of measures that do not exist, of unknown conditions, and of conditions that share
        no block.
    """
    valid = ["bias", "diversity", *OF_FRAMINGS, *metrics]
    # A cell of another grid may not have the axis, as the source of a fork has none of its changes.
    none = dict.fromkeys((path for cell in cells for path in cell.axes), NOT_SET)
    framed = [{FRAMING: cell.fields.get("topic", {}).get("framing"), **none, **cell.axes} for cell in cells]
    axes = {path: tuple(dict.fromkeys(str(each[path]) for each in framed)) for path in framed[0]}
    axes = {path: levels for path, levels in axes.items() if path not in _UNITS and len(levels) > 1}
    conditions = [{path: str(each[path]) for path in axes} for each in framed]
    apart = {path for cell in cells for path in cell.spec.independent_over}
    found: dict[str, ContrastSpec] = {}
    problems: list[tuple[KeyPath, str]] = []
    for name, contrast in analysis.contrasts.items():
        place: KeyPath = ("analysis", "contrasts", name)
        if contrast.measure not in valid and not contrast.measure.startswith(tuple(f"{each}(" for each in metrics)):
            told = f"{meant(contrast.measure, valid)} is not measured; valid: {', '.join(valid)}"
            problems.append(((*place, "measure"), f"{contrast.measure!r}{told}"))
        try:
            found[name] = contrast.among(axes)
            _require_pairs(found[name], axes, conditions, apart)
        except SpecError as error:
            problems.append((place, error.unplaced))
    return analysis.model_copy(update={"contrasts": found}), [*problems, *_unmeasured(analysis, cells)]


def _unmeasured(analysis: AnalysisSpec, cells: Sequence[Cell]) -> Iterator[tuple[KeyPath, str]]:
    """Choices of analysis of what is not measured."""
    if analysis.choices is not None:
        stance = [each for cell in cells for each in cell.instruments if each.variable == STANCE and not each.about]
        there = {"texts": {kind for each in stance for kind in each.kinds}}
        there["classifiers"] = {each.classifier.name for each in stance}
        for field, names in there.items():
            for value in getattr(analysis.choices, field):
                if value not in names:
                    told = ", ".join(sorted(names)) or "none"
                    yield ("analysis", "choices", field), f"{value!r} is not measured; valid: {told}"


def _require_pairs(
    contrast: ContrastSpec, axes: Mapping[str, Sequence[str]], cells: Sequence[Mapping[str, str]], apart: set[str]
) -> None:
    """Refuse a contrast whose conditions no cell has, share no block, or differ in more than it names."""
    named = dict.fromkeys(path for _, side in contrast.terms for path in side)
    for path, levels in dict.fromkeys(item for _, side in contrast.terms for item in side.items()):
        require_axis(path, axes)
        if path in apart:
            raise SpecError(f"conditions of {path} share no block; to pair them, remove it from independent_over")
        if unknown := [level for level in levels if str(level) not in axes[path]]:
            raise SpecError(f"{path} is never {unknown[0]!r}; valid: {', '.join(axes[path])}")
    own = [tuple(each[path] for path in named) for each in cells]
    # Axes that the named ones do not determine.
    others = [path for path in axes if len({*zip(own, (each[path] for each in cells), strict=True)}) > len({*own})]
    compared = []
    for _, side in contrast.terms:
        chosen = [each for each in cells if all(each[path] in {*map(str, side[path])} for path in side)]
        compared.append({tuple(each[path] for path in others) for each in chosen})
        if not chosen:
            raise SpecError(f"no cell has {ContrastSpec(of=side).words}")
    if any(each != compared[0] for each in compared):
        raise SpecError(f"its conditions also differ in {', '.join(others)}; use the same levels for both")
