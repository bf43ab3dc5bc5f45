"""Reading an open store: states of runs, their rows, and what was paid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.errors import StoreError
from opinionsim.llm import Entry
from opinionsim.messages import ChatMessage
from opinionsim.store import _checking, _counts, _files, _following, _measured, _points, _queries, _workers
from opinionsim.store._database import Database, as_store_error
from opinionsim.store._journal import prompt_links, stored_entries
from opinionsim.store._rows import (
    AgentRow,
    AuditRow,
    Columns,
    DesignRow,
    EdgeRow,
    InstrumentRow,
    LabelRow,
    OpinionRow,
    Paid,
    PointRow,
    Progress,
    RunState,
    SeatRow,
    TieRow,
    TurnRow,
    WaitRow,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class StoreReader:
    """The read methods of a store; each reads one consistent state.

    Parameters
    ----------
    database : Database
        An open one.

    Attributes
    ----------
    url : str
        Address under which it opens again; it shows no password.
    """

    def __init__(self, database: Database) -> None:
        self.url = database.url
        self._database = database
        #: What was last read of a run or two, for questions that follow each other.
        self._known: dict[str, Columns] = {}

    @property
    def shared(self) -> bool:
        """Whether other workers may write to the store at the same time."""
        return self._database.shared

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection inside one read transaction: a consistent view, for any query."""
        self._prepare()
        with as_store_error(f"cannot read the store {self.url}"), self._database.reading.connect() as connection:
            self._database.present()
            yield connection

    @contextmanager
    def moment(self) -> Iterator[StoreReader]:
        """A reader of this store all of whose methods read the same state, as long as the block lasts."""
        with self.reading() as connection:
            yield _Moment(self._database, connection, self._known)

    def _read(
        self, question: Callable[Concatenate[Connection, _P], _T], *arguments: _P.args, **options: _P.kwargs
    ) -> _T:
        """The result of a query inside one read transaction."""
        with self.reading() as connection:
            return question(connection, *arguments, **options)

    def passes(self, error: StoreError) -> bool:
        """Whether an error of reading will pass, as when a server restarts."""
        cause = error.__cause__
        return isinstance(cause, SQLAlchemyError) and self._database.passes(cause)

    def _prepare(self) -> None:
        """Do what must precede any reading."""

    # Experiments and runs

    def designs(self) -> list[DesignRow]:
        """Every design of every experiment, the most recently saved last."""
        return self._read(_queries.designs)

    def cells(self, design: DesignRow) -> list[dict[str, Any]]:
        """The rows of :attr:`Results.runs` as they are now, in the order of the design, without its swept axes.

        Raises
        ------
        StoreError
            If a run, or its instrument of stance, is missing or damaged.
        """
        return self._read(_queries.cells, design)

    def states(self, run_ids: Sequence[str] | None = None) -> dict[str, RunState]:
        """States of runs.

        Parameters
        ----------
        run_ids : sequence of str, optional
            Default: all runs. Runs that are not registered are absent from the answer.

        Returns
        -------
        dict of str to RunState
            By run id, sorted.
        """
        return self._read(_queries.states, run_ids)

    def under_way(self, states: dict[str, RunState]) -> set[str]:
        """Ids of the runs that a live worker is carrying out or measuring now.

        Parameters
        ----------
        states : dict of str to RunState
            As :meth:`states` gave them.
        """
        held = {run_id: state.owner for run_id, state in states.items() if state.held}
        if not held:
            return set()
        if not self.shared:
            return set(held) if _files.is_written(Path(self.url.removeprefix("sqlite:///"))) else set()
        with self.reading() as connection:
            alive = {owner for owner in set(held.values()) if _workers.lives(connection, owner)}
        return {run_id for run_id, owner in held.items() if owner in alive}

    def registered(self, run_ids: Iterable[str]) -> dict[str, Any]:
        """The rows of runs by run id, with the columns of their table; runs that are not registered are absent."""
        return self._read(_queries.registered, run_ids)

    def waits(self, run_id: str | None = None) -> list[WaitRow]:
        """Questions to persons that have no answer yet, in a run or by default in all, by key."""
        return self._read(_queries.waits, run_id)

    def seats(self, run_id: str | None = None) -> list[SeatRow]:
        """Who sits where, in a run or by default in all, by run and agent."""
        return self._read(_queries.seats, run_id)

    def doing(self) -> list[str]:
        """The last line of each live worker on what it is doing."""
        return self._read(_workers.doing)

    def require_whole(self, run_ids: Iterable[str]) -> None:
        """Make sure that no row of runs is missing, by their sealed counts.

        Raises
        ------
        StoreError
            Naming the first run with a missing row.
        """
        self._read(_counts.require_whole, run_ids)

    def missing(self, run_ids: Iterable[str] | None = None) -> dict[str, str]:
        """What is missing of runs, or of all by default, in words, by run id; whole ones are absent."""
        return self._read(_counts.missing, run_ids)

    def require_sound(self, run_id: str) -> None:
        """Make sure that all stored rows of a run are as they were written, and none is missing.

        Raises
        ------
        DamagedError
            Naming the first damaged or missing row.
        """
        self._read(_queries.require_sound, run_id)

    def damage(self) -> Iterator[str]:
        """Everything in the store that is damaged or missing, in words that name run, table and row."""
        for check in _checking.checks(self._database.reading.dialect.name):
            try:
                with self.reading() as connection:
                    yield from check(connection)
            except StoreError as error:
                yield error.args[0]

    # Classic sweeps

    def points(self, point_ids: Iterable[str]) -> Iterator[PointRow]:
        """The stored runs of points of classic sweeps, sorted by identity and replicate."""
        with self.reading() as connection:
            yield from _points.runs(connection, point_ids)

    def point_counts(self, point_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Numbers of runs that are done, and of runs that failed, of each point that has any."""
        return self._read(_points.counts, point_ids)

    def point_keys(self, point_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """All that determines the numbers of each point that has runs, of which its identity is the hash."""
        return self._read(_points.keys, point_ids)

    def failed_points(self, point_ids: Iterable[str]) -> list[PointRow]:
        """The stored runs of points that failed, sorted by identity and replicate."""
        return self._read(_points.failed, point_ids)

    # What a run has led to

    def progress(self, run_ids: Iterable[str]) -> dict[str, Progress]:
        """How far each of some runs is on record, by run id."""
        return self._read(_queries.progress, run_ids)

    def columns(self, run_id: str, *, after: int = 0, generation: int | None = None) -> Columns:
        """What is known of a run beyond a row, without its texts; parameters and errors are those of :meth:`follow`."""
        found = self._read(_following.columns, run_id, after, generation, self._known.get(run_id))
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
        """A reader of the rows of a run, as they become known.

        Parameters
        ----------
        run_id : str
            A registered run.
        after : int
            Number of the last row that is known already.
        generation : int, optional
            The generation of that number: where the run was begun anew since, all rows are read from the start.
            Default: the present one.

        Raises
        ------
        StoreError
            If there is no such run, or no row of that number yet.
        """
        return _following.Follower(self, run_id, after, generation)

    def entries(self, run_id: str, turn: int | None = None) -> list[Entry]:
        """The entries of a run's journal, or of one turn, sorted by key, without prompts: what a replay needs."""
        return self._read(stored_entries, run_id, turn)

    def calls(self, run_id: str) -> list[Entry]:
        """The entries of a run's journal that are replies of models, as :meth:`entries` gives them."""
        return [entry for entry in self.entries(run_id) if entry.source == "model"]

    def agents(self, run_id: str) -> list[AgentRow]:
        """The agents of a run, by index."""
        return self.casts([run_id]).get(run_id, [])

    def casts(self, run_ids: Iterable[str]) -> dict[str, list[AgentRow]]:
        """The agents of runs, by run id and index; runs that have none on record are absent."""
        return self._read(_queries.casts, run_ids)

    def edges(self, run_id: str) -> list[EdgeRow]:
        """The ties a run began with, sorted."""
        return self._read(_queries.edges, run_id)

    def ties(self, run_id: str) -> list[TieRow]:
        """The ties that moved in a run, in order."""
        return self._read(_queries.ties, run_id)

    def turns(self, run_id: str, agent: int | None = None, *, only: Iterable[int] | None = None) -> list[TurnRow]:
        """The stored turns of a run, of one of its agents, or `only` some by their indices, by index."""
        return self._read(_queries.turns, run_id, agent, only)

    def opinions(self, run_id: str, *, only: Iterable[int] | None = None) -> list[OpinionRow]:
        """The opinions of instruments on the turns of a run, or `only` some, in the order they became known."""
        return self._read(_queries.opinions, run_id, only)

    # Instruments

    def instruments(self) -> list[InstrumentRow]:
        """All instruments, sorted by id."""
        return self._read(_measured.instruments)

    def uncoded(
        self, run_ids: Iterable[str], instrument_id: str, kinds: Collection[str], *, about: str = ""
    ) -> dict[str, list[tuple[int, int | None]]]:
        """The texts among the stored turns of runs that an instrument has not coded yet.

        Parameters
        ----------
        run_ids : iterable of str
            The runs.
        instrument_id : str
            The instrument, which need not be on record.
        kinds : collection of str
            Kinds of text it reads. Turns that were skipped have no text.
        about : str
            ``reads`` where each text is judged together with each message of another turn that its author was
            shown; empty where it is judged by itself.

        Returns
        -------
        dict of str to list of (int, int or None)
            By run id, sorted, the keys without an opinion, sorted: index of the turn, and of the other turn or None.
            Runs with nothing left are absent.

        Raises
        ------
        StoreError
            If `about` is neither of these.
        """
        return self._read(_measured.uncoded, run_ids, instrument_id, kinds, about)

    def audits(self) -> list[AuditRow]:
        """All audits of instruments, the one made last at the end."""
        return self._read(_measured.audits)

    def labels(self, audit_id: str) -> list[LabelRow]:
        """The labels of an audit, by coder and text."""
        return self._read(_measured.labels, audit_id)

    # Models and texts

    def usage(self, run_ids: Iterable[str]) -> Paid:
        """Usage of the stored calls of runs, rejected replies included."""
        return sum((each.paid for each in self.progress(run_ids).values()), Paid())

    def spending(self) -> dict[str, Paid]:
        """What each experiment, by id, has paid for the calls of all its designs, including calls since forgotten."""
        return self._read(_queries.spending)

    def left_behind(self) -> dict[str, int]:
        """Calls in flight, by id of experiment, when a worker with a budget ended that shared the store.

        They may have been paid for, and are asked again when their runs go on, after which they do not count here.
        """
        return self._read(_workers.left_behind)

    def models(self, run_ids: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
        """The models that providers returned with replies to these runs, each with the provider's fingerprint.

        Returns
        -------
        dict of str to set of (str, str)
            By the name of the model that was asked: that of the agent, or ``judge.ID`` for a model that an instrument
            asks. What a provider did not tell is empty.
        """
        return self._read(_queries.models, run_ids)

    def texts(self, text_ids: Iterable[str]) -> dict[str, str]:
        """Texts by content identity; unknown identities are absent from the answer."""
        return self._read(_queries.texts, text_ids)

    def prompt(self, run_id: str, turn: int, part: str = "reply", attempt: int = 0) -> list[ChatMessage]:
        """The literal prompt of a journal entry.

        Parameters
        ----------
        run_id, turn, part, attempt
            The entry's key.

        Raises
        ------
        StoreError
            If there is no such entry, or it answers no prompt.
        """
        return self._read(_queries.prompt, run_id, turn, part, attempt)

    def prompt_links(self, prompt_ids: Iterable[str]) -> Iterator[Any]:
        """Messages of prompts, each once: `prompt_id`, that of the messages `before` it, `role` and `text`."""
        with self.reading() as connection:
            yield from prompt_links(connection, prompt_ids)

    def prompts(self, run_id: str, part: str = "reply") -> dict[int, list[ChatMessage]]:
        """The literal prompts of a part of each turn that has it, by turn.

        Raises
        ------
        StoreError
            If one is damaged or missing.
        """
        return self._read(_queries.prompts, run_id, part)


class _Moment(StoreReader):
    """The read methods inside one transaction."""

    def __init__(self, database: Database, connection: Connection, known: dict[str, Columns]) -> None:
        super().__init__(database)
        self._connection, self._known = connection, known

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection of the transaction."""
        with as_store_error(f"cannot read the store {self.url}"):
            yield self._connection
