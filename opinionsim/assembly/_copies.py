"""Check for runs that would be copies of one another."""

from __future__ import annotations

from typing import Any

from opinionsim.assembly._assemble import assemble
from opinionsim.errors import SpecError
from opinionsim.schedules import StaticSchedule
from opinionsim.specification import Cell, Experiment, PlannedRun, Resources


def check_copies(experiment: Experiment) -> None:
    """Refuse replicates and redraws that cannot differ because chat models at temperature 0 get the same prompts.

    Raises
    ------
    SpecError
        If there are any; names the cell. Cells that copy content from other cells, or whose turns depend on earlier
        messages, are not checked.
    """
    for cell in experiment.cells:
        models = cell.spec.chat_models
        if not models or cell.spec.seats or any(model.temperature != 0 for model in models):
            continue
        remedy = "Set model.temperature above 0"
        if cell.spec.redraws > 1 and not cell.sources:
            raise SpecError(
                f"redraws: those of cell {cell.label!r} cannot differ, because model.temperature is 0 and "
                f"they differ only in the draws of replies. {remedy}, or redraws: 1."
            )
        if cell.spec.replicates > 1 and not cell.sources and _alike(cell, experiment.resources):
            raise SpecError(
                f"replicates: the {cell.spec.replicates} of cell {cell.label!r} cannot differ, because "
                f"model.temperature is 0 and pairs, initial opinions and assignment agree. {remedy}, or replicates: 1."
            )


def _alike(cell: Cell, resources: Resources) -> bool:
    """Whether all replicates of a cell have the same agents, ties and turns."""
    try:
        first = _drawn(cell, 0, resources)
        return all(_drawn(cell, replicate, resources) == first for replicate in range(1, cell.spec.replicates))
    except SpecError:  # a draw that cannot be used is said by its run
        return False


def _drawn(cell: Cell, replicate: int, resources: Resources) -> Any:
    """What is drawn for a replicate of a cell; equal to nothing where turns are decided as it goes on."""
    parts = assemble(PlannedRun.of(cell, replicate), resources)
    if not isinstance(parts.schedule, StaticSchedule):
        return object()
    turns, externals = list(parts.schedule.turns()), dict(parts.schedule.externals)
    edges = None if parts.network is None else [part.tolist() for part in parts.network.edges if part is not None]
    return parts.population, parts.opinions, parts.models, edges, turns, externals
