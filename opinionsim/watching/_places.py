"""Where a run stands in the experiments of a store."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from opinionsim.errors import SpecError, StoreError
from opinionsim.watching._runs import cells_of, state_of
from opinionsim.watching._values import kinds_of

if TYPE_CHECKING:
    from opinionsim.store import Columns, DesignRow, ExperimentRun, InstrumentRow, RunState, StoreReader


class AbsentError(StoreError):
    """What is asked for is not in the store."""


class Place(NamedTuple):
    """Where a run stands: in the design saved last of those that hold it."""

    design: DesignRow
    cells: list[ExperimentRun]
    """All rows of the design."""
    row: int
    """The first row of the run."""

    @property
    def cell(self) -> ExperimentRun:
        """Cell and replicate of the row."""
        return self.cells[self.row]

    @property
    def instruments(self) -> dict[str, set[str]]:
        """Every instrument of the run's cells, that of stance first, with the kinds of text that it reads there."""
        found: dict[str, set[str]] = {self.cell.instrument_id: set()} if self.cell.instrument_id else {}
        for cell in self.cells:
            for instrument_id, kinds in cell.instruments.items() if cell.run_id == self.cell.run_id else ():
                found.setdefault(instrument_id, set()).update(kinds)
        return found


def place_of(reader: StoreReader, run_id: str) -> Place:
    """Where a run stands.

    Raises
    ------
    AbsentError
        If it is in no design.
    """
    for design in reversed(reader.designs()):
        if any(cell.run_id == run_id for cell in design.runs):
            cells = cells_of(design)
            return Place(design, cells, next(row for row, cell in enumerate(cells) if cell.run_id == run_id))
    raise AbsentError(f"The store has no run {run_id[:40]!r}.")


def design_of(reader: StoreReader, experiment_id: str, number: int | None = None) -> tuple[DesignRow, list[int]]:
    """A design of an experiment, by default the one run last, and the numbers of all its designs.

    Raises
    ------
    AbsentError
        If there is no such experiment or design.
    """
    own = [row for row in reader.designs() if experiment_id in (row.experiment_id, row.name)]
    if not own:
        raise AbsentError(f"The store has no experiment {experiment_id[:40]!r}.")
    own = [row for row in own if row.experiment_id == own[-1].experiment_id]
    found = [row for row in own if number in (None, row.design)]
    if not found:
        raise AbsentError(f"The experiment {own[-1].name} has no design {number}.")
    return found[-1], sorted(row.design for row in own)


def instrument_of(reader: StoreReader, place: Place, instrument_id: str | None = None) -> InstrumentRow | None:
    """An instrument of a run, by default that of stance, or else its first one; None where nothing is measured.

    Raises
    ------
    AbsentError
        If the run has no such instrument.
    """
    own = place.instruments
    if instrument_id is not None and instrument_id not in own:
        raise AbsentError(f"The run has no instrument {instrument_id[:40]!r}.")
    wanted = next(iter(own), "") if instrument_id is None else instrument_id
    return next((row for row in reader.instruments() if row.instrument_id == wanted), None)


def kind_of(columns: Columns, place: Place, instrument_id: str, kind: str | None = None) -> str | None:
    """A kind of text that an instrument reads, by default the first it coded; None where there is none.

    Raises
    ------
    SpecError
        If it reads no such kind.
    """
    found = kinds_of(columns, instrument_id)
    valid = dict.fromkeys([*found, *sorted(place.instruments.get(instrument_id, ()))])
    if kind is not None and kind not in valid:
        raise SpecError(f"The instrument reads no text of kind {kind[:40]!r}; valid: {', '.join(valid) or 'none'}.")
    return kind or next(iter(valid), None)


def shown_state(reader: StoreReader, found: RunState, run_id: str) -> str:
    """The state of a run in a word: one of :data:`STATES`, or ``trial`` where somebody has only tried a seat."""
    state = state_of(run_id, found, reader.under_way({run_id: found}))
    tried = state == "complete" and any(row.trial for row in reader.seats(run_id))
    return "trial" if tried else state


def plain(value: float | None) -> float | None:
    """A number as JSON has it: None for what is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
