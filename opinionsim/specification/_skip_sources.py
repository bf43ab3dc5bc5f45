"""Cells that leave out the turns which runs of another cell skipped: which cell that is, by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError
from opinionsim.streams import canonical_json, digest

if TYPE_CHECKING:
    from opinionsim.specification._cells import Cell


def with_sources(cells: Sequence[Cell]) -> list[Cell]:
    """The cells; each one with ``interaction.skips`` is joined to the cell whose skipped turns it leaves out.

    The identity of its runs then names that cell by content instead of by label.

    Raises
    ------
    SpecError
        If there is no such cell, it leaves out turns itself, or its turns are others.
    """
    return [_with_source(cell, cells) for cell in cells]


def _with_source(cell: Cell, cells: Sequence[Cell]) -> Cell:
    label = _named(cell)
    if label is None:
        return cell
    found = [each for each in cells if each.label == label]
    if not found:
        valid = ", ".join(repr(each.label) for each in cells if _named(each) is None)
        raise _error(f"no cell is labelled {label!r}; valid: {valid or 'none, for every cell has skips'}")
    source = found[0]
    if _named(source) is not None:
        raise _error(f"the cell {label!r} has skips itself; name one without")
    here, there = _turns(cell), _turns(source)
    differing = [name for name in here if here[name] != there[name]]
    if differing:
        raise _error(
            f"the cells {cell.label!r} and {label!r} differ in {', '.join(differing)}, so that their turns are not the "
            "same"
        )
    interaction = {**cell.fields["interaction"], "skips": digest(canonical_json([source.spec.seed, source.fields]))}
    return replace(cell, fields={**cell.fields, "interaction": interaction}, source=source)


def _error(problem: str) -> SpecError:
    return SpecError(f"interaction.skips.cell: {problem}")


def _named(cell: Cell) -> str | None:
    """The label of the cell whose skipped turns a cell leaves out; None where it leaves out none."""
    skips = getattr(cell.spec.interaction, "skips", None)
    return None if skips is None else str(skips.cell)


def _turns(cell: Cell) -> Mapping[str, Any]:
    """The fields that decide which turns the runs of a cell have, by name."""
    interaction = {k: value for k, value in cell.fields["interaction"].items() if k not in ("skips", "on_skip")}
    measured = cell.fields.get("measurement", {})
    return {
        "seed": cell.spec.seed,
        "interaction": interaction,
        "events": cell.fields.get("events", []),
        "population.size": cell.spec.size,
        "measurement.probe": measured.get("probe", {}),
        "measurement.self_report": measured.get("self_report", {}),
        "the values of independent_over": cell.stream_key,
    }
