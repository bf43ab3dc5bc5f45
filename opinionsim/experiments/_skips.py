"""Turns that a run leaves out because a run of another cell skipped them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.errors import DamagedError, SpecError
from opinionsim.llm import Entry, EntryKey
from opinionsim.streams import canonical_json, digest

if TYPE_CHECKING:
    from opinionsim.experiments._cells import Cell, PlannedRun
    from opinionsim.store import Store, TurnRow

#: Key of the journal entry with the turns that a run leaves out, taken from another run at its start.
SKIPS = EntryKey(0, "skips", 0)
#: Conditions of messages that nobody receives.
_UNHEARD = ("refused", "empty")


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


def skipped_entry(rows: Iterable[TurnRow]) -> Entry:
    """The journal entry with the turns that a run skipped, and the refused and empty ones they waited for."""
    by_turn = {row.turn: row for row in rows}
    skipped = {turn for turn, row in by_turn.items() if row.condition == "skipped"}
    waited_for = {
        ref
        for turn in skipped
        for ref in by_turn[turn].reads
        if isinstance(ref, int) and by_turn[ref].condition in _UNHEARD
    }
    return Entry(SKIPS, 0, 0, "", "", json.dumps(sorted(skipped | waited_for)), source="import")


def turns_left_out(entries: Iterable[Entry]) -> frozenset[int]:
    """The turns that a run leaves out by its journal.

    Raises
    ------
    DamagedError
        If they cannot be read.
    """
    text = next((entry.text for entry in entries if entry.key == SKIPS), "[]")
    try:
        return frozenset(map(int, json.loads(text)))
    except (ValueError, TypeError) as error:
        raise DamagedError(f"the turns that the run leaves out cannot be read: {error}") from None


def other_skips(store: Store, planned: PlannedRun, entry: Entry | None) -> str:
    """Why the turns that a run left out are not those that its source skipped; empty where they may be."""
    source = planned.source_id
    if source is None or entry is None or store.states([source])[source].status != "complete":
        return ""
    if skipped_entry(store.turns(source)).text == entry.text:
        return ""
    return f"run {planned.run_id}: the turns that it leaves out are not those that run {source} skipped"
