"""Reading an open store: states of runs, their rows, and payments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.errors import StoreError
from opinionsim.llm import Entry
from opinionsim.store import (
    _checking,
    _counts,
    _files,
    _following,
    _measured,
    _queries,
    _stored,
    _unit_rows,
    _workers,
)
from opinionsim.store._database import Database, as_store_error
from opinionsim.store._rows import AgentRow, Columns, Paid, RunState, UnitRow
from opinionsim.store._stored_journal import prompt_links, stored_entries

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _asked(question: Callable[Concatenate[Connection, _P], _T]) -> Callable[Concatenate[StoreReader, _P], _T]:
    """A method of the reader that asks a question in a read transaction of its own; its words are the question's."""

    @wraps(question)
    def method(reader: StoreReader, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        with reader.reading() as connection:
            return question(connection, *arguments, **options)

    return method


class StoreReader:
    """The read methods of a store; each reads one consistent state.

    A method made by `_asked` has the parameters and documentation of its query, without the connection.

    Parameters
    ----------
    database : Database
        An open database.

    Attributes
    ----------
    url : str
        Address to open the store again; it hides the password.
    has_log : bool
        Whether a store in a file, opened for reading, had a log.
    """

    def __init__(self, database: Database) -> None:
        self.url, self.has_log = database.url, database.has_log
        self._database = database
        #: What was last read of a run or two, for questions that follow each other.
        self._known: dict[str, Columns] = {}

    @property
    def shared(self) -> bool:
        """Whether other workers may write to the store at the same time."""
        return self._database.shared

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection inside one read transaction, for any query on a consistent state."""
        self._prepare()
        with as_store_error(f"cannot read the store {self.url}"), self._database.reading.connect() as connection:
            self._database.present()
            yield connection

    @contextmanager
    def moment(self) -> Iterator[StoreReader]:
        """A reader of this store; inside the block, all its methods read the same state."""
        with self.reading() as connection:
            yield _Moment(self._database, connection, self._known)

    def passes(self, error: StoreError) -> bool:
        """Whether an error of reading is temporary, for example while a server restarts."""
        cause = error.__cause__
        return isinstance(cause, SQLAlchemyError) and self._database.passes(cause)

    def _prepare(self) -> None:
        """Do what must precede any reading."""

    # Experiments and runs

    designs = _asked(_queries.designs)
    cells = _asked(_queries.cells)
    states = _asked(_queries.states)

    def under_way(self, states: dict[str, RunState]) -> set[str]:
        """Ids of the runs that a live worker is now carrying out or measuring.

        Parameters
        ----------
        states : dict of str to RunState
            Result of :meth:`states`.
        """
        held = {run_id: state.owner for run_id, state in states.items() if state.held}
        if not held:
            return set()
        if not self.shared:
            return set(held) if _files.is_written(Path(self.url.removeprefix("sqlite:///"))) else set()
        with self.reading() as connection:
            alive = {owner for owner in set(held.values()) if _workers.lives(connection, owner)}
        return {run_id for run_id, owner in held.items() if owner in alive}

    registered = _asked(_queries.registered)
    waits = _asked(_queries.waits)
    batches = _asked(_stored.batches)
    batched = _asked(_stored.batched)
    seats = _asked(_queries.seats)
    doing = _asked(_workers.doing)
    require_whole = _asked(_counts.require_whole)
    missing = _asked(_counts.missing)
    contents = _asked(_counts.contents)
    require_sound = _asked(_queries.require_sound)

    def damage(self) -> Iterator[str]:
        """Damaged and missing items in the store, each described by run, table and row."""
        yield from filter(None, [self._database.damage])
        for check in _checking.checks(self._database.reading.dialect.name):
            try:
                with self.reading() as connection:
                    yield from check(connection)
            except StoreError as error:
                yield error.args[0]

    # Studies that keep no runs

    def units(self, unit_ids: Iterable[str]) -> Iterator[UnitRow]:
        """The stored replicates of units of work, sorted by identity and replicate."""
        with self.reading() as connection:
            yield from _unit_rows.stored(connection, unit_ids)

    unit_counts = _asked(_unit_rows.counts)
    unit_keys = _asked(_unit_rows.keys)
    failed_units = _asked(_unit_rows.failed)

    # What a run has led to

    progress = _asked(_queries.progress)

    def columns(self, run_id: str, *, after: int = 0, generation: int | None = None) -> Columns:
        """The rows of a run after a row, without texts; parameters and errors as in :meth:`follow`."""
        with self.reading() as connection:
            found = _following.columns(connection, run_id, after, generation, self._known.get(run_id))
        if not after:
            for other in list(self._known)[:-1]:
                self._known.pop(other, None)
            self._known[run_id] = found
        return found

    def said(self, run_ids: Iterable[str]) -> Iterator[Any]:
        """Rows of the turns of runs with column `text`; unlike those of :meth:`turns`, texts are not checked."""
        with self.reading() as connection:
            yield from _queries.said(connection, run_ids)

    def follow(self, run_id: str, *, after: int = 0, generation: int | None = None) -> _following.Follower:
        """Follow the rows of a run as they become known.

        Parameters
        ----------
        run_id : str
            A registered run.
        after : int
            Number of the last row that you already know.
        generation : int, optional
            The generation of that number. If the run was restarted since, all rows are read from the start. Default:
            the current one.

        Raises
        ------
        StoreError
            If there is no such run, or not yet a row with that number.
        """
        return _following.Follower(self, run_id, after, generation)

    entries = _asked(stored_entries)

    def calls(self, run_id: str) -> list[Entry]:
        """The entries of a run's journal that are replies of models, as in :meth:`entries`."""
        return [entry for entry in self.entries(run_id) if entry.source == "model"]

    def agents(self, run_id: str) -> list[AgentRow]:
        """The agents of a run, by index."""
        return self.casts([run_id]).get(run_id, [])

    casts = _asked(_queries.casts)
    edges = _asked(_queries.edges)
    ties = _asked(_queries.ties)
    turns = _asked(_queries.turns)
    opinions = _asked(_queries.opinions)

    # Instruments

    instruments = _asked(_measured.instruments)
    uncoded = _asked(_measured.uncoded)
    audits = _asked(_measured.audits)
    labels = _asked(_measured.labels)

    # Models and texts

    def usage(self, run_ids: Iterable[str]) -> Paid:
        """Usage of the stored calls of runs, including rejected replies."""
        return sum((each.paid for each in self.progress(run_ids).values()), Paid())

    spending = _asked(_queries.spending)
    left_behind = _asked(_workers.left_behind)
    models = _asked(_queries.models)
    texts = _asked(_queries.texts)
    prompt = _asked(_queries.prompt)

    def prompt_links(self, prompt_ids: Iterable[str]) -> Iterator[Any]:
        """Messages of prompts, each once: `prompt_id`, the id of the messages `before` it, `role` and `text`."""
        with self.reading() as connection:
            yield from prompt_links(connection, prompt_ids)

    prompts = _asked(_queries.prompts)


class _Moment(StoreReader):
    """The read methods inside one transaction."""

    def __init__(self, database: Database, connection: Connection, known: dict[str, Columns]) -> None:
        super().__init__(database)
        self._connection, self._known = connection, known

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection inside the transaction."""
        with as_store_error(f"cannot read the store {self.url}"):
            yield self._connection
