"""One run at one moment: its place in the experiments of a store, and its stored data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from opinionsim.errors import SpecError
from opinionsim.metrics import kinds_in_order
from opinionsim.store import AbsentError

if TYPE_CHECKING:
    from opinionsim.store import Columns, DesignRow, ExperimentRun, InstrumentRow, StoreReader

#: Who a text is from that the specification gives, and a member other than a participant puts before the others.
GIVEN = "given text"


def is_given(act: str, role: str, declared: Mapping[str, Any]) -> bool:
    """Whether the interaction of the cell declares that a text of an act by an agent in a role is given."""
    return role != "participant" and act in declared.get("given", ())


class OneRun:
    """A run in one state of the store.

    Parameters
    ----------
    reader : StoreReader
        Reads that state.
    design : DesignRow
        A design that contains the run.
    rows : list of ExperimentRun
        All rows of the design.
    row : int
        Number of the run's row.

    Attributes
    ----------
    reader, design, rows, row
        As given.
    cell : ExperimentRun
        Cell and replicate of the row.
    run_id : str
        Identity of the run.
    """

    def __init__(self, reader: StoreReader, design: DesignRow, rows: list[ExperimentRun], row: int) -> None:
        self.reader, self.design, self.rows, self.row = reader, design, rows, row
        self.cell = rows[row]
        self.run_id = self.cell.run_id

    @classmethod
    def of(cls, reader: StoreReader, run: str, wanted: int | None = None) -> Self:
        """Find a run by its identity in the design saved last, in the given row or its first one.

        Raises
        ------
        AbsentError
            If no design contains the run.
        """
        for design in reversed(reader.designs()):
            rows = design.rows
            if own := [row for row, cell in enumerate(rows) if cell.run_id == run]:
                return cls(reader, design, rows, wanted if wanted in own else own[0])
        raise AbsentError(f"The store has no run {run[:40]!r}.")

    @cached_property
    def columns(self) -> Columns:
        """Columns of the run, without texts."""
        return self.reader.columns(self.run_id)

    @cached_property
    def registered(self) -> Any:
        """Row of the run in the store, as registered."""
        return self.reader.registered([self.run_id])[self.run_id]

    @property
    def _texts(self) -> str:
        """Its kinds of text that can be coded, in order."""
        return ",".join(self.cell.declared.get("texts", ()))

    @cached_property
    def instruments(self) -> dict[str, list[str]]:
        """Instruments of the run, the one for stance first, with the kinds of text that each reads."""
        found: dict[str, set[str]] = {self.cell.instrument_id: set()} if self.cell.instrument_id else {}
        for cell in self.rows:
            for name, kinds in cell.instruments.items() if cell.run_id == self.run_id else ():
                found.setdefault(name, set()).update(kinds)
        return {name: kinds_in_order(kinds, [self._texts]) for name, kinds in found.items()}

    def instrument(self, given: str | None = None) -> InstrumentRow | None:
        """Instrument by name; by default the one for stance, otherwise the first; None if nothing is measured.

        Raises
        ------
        AbsentError
            If the run has no such instrument.
        """
        if given not in (None, *self.instruments):
            raise AbsentError(f"The run has no instrument {str(given)[:40]!r}.")
        wanted = given or next(iter(self.instruments), None)
        return next((row for row in self.reader.instruments() if row.instrument_id == wanted), None)

    def kind(self, instrument_id: str, given: str | None = None) -> str | None:
        """Kind of text by name; by default the first that an instrument coded or reads; None without an instrument.

        Raises
        ------
        SpecError
            If the instrument reads no such kind.
        """
        kinds = (turn.kind for turn, _ in coded_turns(self.columns, instrument_id))
        coded = kinds_in_order(kinds, [self._texts])
        valid = list(dict.fromkeys([*coded, *self.instruments.get(instrument_id, ())]))
        if given not in (None, *valid):
            raise SpecError(f"The instrument reads no text of kind {str(given)[:40]!r}; valid: {', '.join(valid)}.")
        return given or next(iter(valid), None)


def coded_turns(columns: Columns, instrument_id: str, kind: str | None = None) -> list[tuple[Any, float | None]]:
    """Turns that an instrument coded one by one, in order, with the value; None for no answer."""
    turns = {turn.turn: turn for turn in columns.turns}
    own = (row for row in columns.opinions if row.instrument_id == instrument_id and row.about < 0)
    return [(turns[row.turn], row.value) for row in own if kind in (None, turns[row.turn].kind)]


def plain(value: float | None) -> float | None:
    """A number for JSON; None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def picked(row: Any, names: str) -> dict[str, Any]:
    """Some attributes of an object; `names` separates their names with spaces."""
    return {name: getattr(row, name) for name in names.split()}
