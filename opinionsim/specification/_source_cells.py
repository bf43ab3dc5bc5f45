"""Cells that copy content from the runs of another cell, which is identified by content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.schedules import MAX_STEPS, SourceCell

if TYPE_CHECKING:
    from opinionsim.specification._cells import Cell


class ForkSpec(SourceCell):
    """A cell whose runs begin like those of another cell, and the step from which they continue separately."""

    step: int = Field(ge=1, le=MAX_STEPS)
    """First step that is simulated again, from 1. All earlier steps are copied."""


def with_sources(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells, with each cell that names another joined to it.

    The identity of its runs then names that cell by content instead of by label.

    Raises
    ------
    SpecError
        If the named cell does not exist, names another cell itself, or does not fit.
    """
    return [_with_source(cell, cells) for cell in cells]


def _named(cell: Cell) -> dict[str, SourceCell]:
    """What a cell says of other cells, by field."""
    found = {f"interaction.{name}": each for name, each in cell.spec.interaction.sources.items()}
    return found if cell.spec.fork is None else {**found, "fork": cell.spec.fork}


def _with_source(cell: Cell, cells: Sequence[Cell]) -> Cell:
    if not (named := _named(cell)):
        return cell
    if "fork" in named and len(named) > 1:
        raise SpecError(f"fork: cannot be combined with {next(iter(named))}, because a cell has one source")
    fields, sources = dict(cell.fields), []
    for place, given in named.items():
        source = next((each for each in cells if each.label == given.cell), None)
        if source is None:
            valid = ", ".join(repr(each.label) for each in cells if not _named(each))
            problem = f"no cell has the label {given.cell!r}; valid: {valid or 'none, because every cell uses another'}"
        elif further := _named(source):
            problem = f"the cell {given.cell!r} itself uses another ({', '.join(further)}); name one that does not"
        else:
            problem = given.unfit(source.spec.size) or (_fork if place == "fork" else _taken)(cell, source)
        if problem or source is None:
            raise SpecError(f"{place}.cell: {problem}")
        sources.append(source)
        content = digest(canonical_json([source.spec.seed, source.fields]))
        holder, name = ("fork", "cell") if place == "fork" else place.split(".")
        said = fields[holder][name]
        more = isinstance(said, dict) and len(said) > 1
        fields[holder] = {**fields[holder], name: {**said, "cell": content} if more else content}
    return replace(cell, fields=fields, sources=tuple(sources))


def _differ(cell: Cell, source: Cell, fields: Callable[[Cell], Mapping[str, Any]]) -> str:
    """The labels of two cells and the fields in which they differ; empty where they differ in none."""
    here, there = fields(cell), fields(source)
    names = ", ".join(name for name in here if here[name] != there[name])
    return names and f"the cells {cell.label!r} and {source.label!r} differ in {names}"


def _copied(source: Cell) -> str:
    """Why nothing that was said in the runs of a cell can be copied."""
    if source.spec.seats or source.spec.interaction.recorded:
        return f"people take part in the cell {source.label!r}, and their texts cannot be copied into other runs"
    model = source.spec.model
    return "" if model.prompted else f"the agents of {source.label!r} follow {model.label!r} and write no texts"


def _twins(cell: Cell, source: Cell) -> str:
    if not source.spec.interaction.recorded:
        return f"the cell {source.label!r} is not a record of people, so its agents have no twins"
    problem = _differ(cell, source, lambda each: {"size": each.spec.size, "scale": each.spec.scale.scale()})
    return problem and f"{problem}; twins need the same number of agents and the same scale"


def _taken(cell: Cell, source: Cell) -> str:
    if cell.spec.interaction.stands_in:
        return _twins(cell, source)
    return (cell.spec.interaction.yoked and _yoked(cell, source)) or _copied(source)


def _yoked(cell: Cell, source: Cell) -> str:
    steps, there = (each.spec.interaction.steps_for(each.spec.size) for each in (cell, source))
    if cell.spec.size != source.spec.size:
        return f"the cell {source.label!r} has {source.spec.size} agents, this one {cell.spec.size}; use equal numbers"
    if steps > there:
        return f"the cell {source.label!r} has {there} steps, but this one reads {steps}; use at most {there}"
    if cell.spec.replicates < 2:
        return "agents read what was read in the next replicate, but there is only one; set replicates to 2 or more"
    return ""


def _fork(cell: Cell, source: Cell) -> str:
    fork = cell.spec.fork
    step, last = 0 if fork is None else fork.step, source.spec.interaction.steps_for(source.spec.size)
    if step > last:
        return f"the cell {source.label!r} has {last} steps, but fork.step is {step}; set a step from 1 to {last}"
    if copied := _copied(source):
        return copied
    problem = _differ(cell, source, lambda each: _before(each, step))
    return problem and (
        f"{problem}, which the steps before {step} depend on; a fork may change model, prompts, topic, task, what "
        f"cognition sets for bias, world and words, and events from step {step} on"
    )


def _before(cell: Cell, step: int) -> dict[str, Any]:
    """The fields that a history up to a step depends on, by name: not what agents are asked in which words."""

    def plain(member: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in member.items() if name != "model"}

    fields, measured = cell.fields, cell.fields.get("measurement", {})
    remembered, told = fields.get("cognition", {}), [plain(each) for each in fields.get("cast", [])]
    # An event that goes on counts as what it is until the step; its draws depend on its place in the list.
    begun = {
        place: {**event, "until": min(event.get("until") or step, step)}
        for place, event in enumerate(fields.get("events", []))
        if event["step"] < step
    }
    return {
        "seed": cell.spec.seed,
        "population.size": cell.spec.size,
        "measurement.probe": measured.get("probe", {}),
        "measurement.self_report": measured.get("self_report", {}),
        "the values of independent_over": cell.stream_key,
        "interaction": fields["interaction"],
        f"events before step {step}": begun,
        "population": fields.get("population", {}),
        "survey": fields.get("survey", {}),
        "cast": told,
        "roles": {role: plain(each) for role, each in fields.get("roles", {}).items()},
        "scale": fields.get("scale", {}),
        "whether there is a topic": cell.spec.has_topic,
        "the instruments that the interaction needs": measured.get("needs", {}),
        **{f"cognition.{name}": remembered.get(name) for name in ("memory", "draws", "selector")},
    }
