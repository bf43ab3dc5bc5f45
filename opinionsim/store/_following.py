"""Following a run while this or another process writes it."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, select

from opinionsim.errors import DamagedError, StoreError
from opinionsim.store import _queries, _schema
from opinionsim.store._rows import AbsentError, Columns, OpinionRow, RunState, TieRow, TurnRow

if TYPE_CHECKING:
    from opinionsim.store._reader import StoreReader


class NewRow(NamedTuple):
    """A new row of a run."""

    seq: int
    """Its number in the run, from 1 without gaps."""
    generation: int
    """Number of restarts of the run so far; after each restart, numbers begin again at 1."""
    row: TurnRow | OpinionRow | TieRow
    """A turn with its message, an opinion that an instrument read from a turn's text, or a moved tie."""


class Follower:
    """Reads each row of a run once, in the order in which they became known. Made by :meth:`Store.follow`.

    Parameters
    ----------
    store : StoreReader
        An open store.
    run_id : str
        A registered run.
    after : int
        Number of the last row that you already know.
    generation : int, optional
        The generation of that number; default the current one.

    Attributes
    ----------
    seq : int
        Number of the last row that was read.
    state : RunState
        State of the run at the last poll.

    Raises
    ------
    StoreError
        If there is no such run, or not yet a row with that number.
    """

    def __init__(self, store: StoreReader, run_id: str, after: int = 0, generation: int | None = None) -> None:
        self._store = store
        self.run_id = run_id
        with store.reading() as connection:
            self.state, last = look(connection, self.run_id)
        if after > 0 and generation is not None and generation != self.state.generation:
            # The run was begun anew since: the known rows are of another generation.
            after = 0
        self.seq = after
        if after < 0 or after > last:
            raise StoreError(f"run {run_id} has no row {after} to continue from; valid: 0 to {last}")
        self._generation = self.state.generation

    @property
    def over(self) -> bool:
        """Whether, at the last poll, the run had ended and no more rows were being added."""
        return self.state.status in ("complete", "incomplete", "withdrawn") and not self.state.held

    def poll(self) -> list[NewRow]:
        """New rows since the last poll, in order; all rows if the run was restarted.

        Raises
        ------
        StoreError
            If the store cannot be read, or a row is damaged or missing.
        """
        with self._store.reading() as connection:
            found = columns(connection, self.run_id, self.seq, self._generation)
            told = _queries.texts(connection, {row.text_id for row in found.turns})
        self.state, self.seq, self._generation = found.state, found.seq, found.state.generation
        rows: list[tuple[int, TurnRow | OpinionRow | TieRow]] = [
            *((row.seq, _queries.turn_of(row, told.get(row.text_id))) for row in found.turns),
            *((row.seq, _schema.made(TieRow, _schema.ties, row)) for row in found.ties),
            *((row.seq, _queries.opinion_of(row)) for row in found.opinions),
        ]
        return [NewRow(seq, self._generation, row) for seq, row in sorted(rows, key=itemgetter(0))]


def columns(
    connection: Connection, run_id: str, after: int, generation: int | None, known: Columns | None = None
) -> Columns:
    """The rows of a run after a number, without texts; see :meth:`StoreReader.columns`.

    `known` is an earlier result for the whole run, which remains valid if no rows were added since.
    """
    state, last = look(connection, run_id)
    if not after and known is not None and (known.state.generation, known.seq) == (state.generation, last):
        return known._replace(state=state)
    after = after if generation in (None, state.generation) else 0
    if after > last:
        raise DamagedError(f"run {run_id} has fewer rows than before, because another store replaced its store")
    found = {}
    for table, order in ((_schema.turns, "turn"), (_schema.ties, "change"), (_schema.opinions, "turn")):
        new = select(table).where(table.c.run_id == run_id, table.c.seq > after)
        found[table] = sorted(_schema.sealed(connection, table, new), key=attrgetter(order, "seq"))
    numbers = {row.seq for rows in found.values() for row in rows}
    if lost := next((number for number in range(after + 1, last + 1) if number not in numbers), None):
        raise DamagedError(f"row {lost} of run {run_id} is missing")
    return Columns(state, last, found[_schema.turns], found[_schema.ties], found[_schema.opinions])


def look(connection: Connection, run_id: str) -> tuple[RunState, int]:
    """State of a run, and the number of its last row.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    states = _queries.states(connection, [run_id])
    if run_id not in states:
        raise AbsentError(f"the store has no run {run_id[:40]!r}")
    return states[run_id], _queries.progress(connection, [run_id])[run_id].seq
