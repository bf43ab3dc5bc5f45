"""The SQL store: everything a run needs to be resumed, replayed, measured again and read."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, select

from opinionsim.errors import StoreError
from opinionsim.llm import Entry
from opinionsim.messages import ChatMessage, text_id
from opinionsim.store import _files, _measured, _postgres, _queries, _schema, _stored
from opinionsim.store._address import parse
from opinionsim.store._claims import Claims, require_epoch, set_run
from opinionsim.store._database import Database, as_store_error
from opinionsim.store._journal import SQLJournal, Writer, stored_entries
from opinionsim.store._rows import (
    CanaryRow,
    ExperimentRow,
    InstrumentRow,
    OpinionRow,
    Paid,
    RunOutcome,
    RunRow,
    RunState,
    TurnRow,
)
from opinionsim.store._workers import Heartbeat

__all__ = ["Store", "open_store"]

_T = TypeVar("_T")


def open_store(url: str, *, write: bool = True) -> Store:
    """Open a store.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH``; a bare path ending in ``.sqlite``, ``.sqlite3`` or ``.db``; or
        ``postgresql+psycopg://USER@HOST/DATABASE``, also spelled ``postgresql://``, where what is left out,
        the password above all, comes from the environment, ``~/.pgpass`` or a service file as for ``psql``.
    write : bool
        True creates what is absent, a file with its folders or the tables of a database, and brings an
        earlier schema up to date; a SQLite file is locked, a PostgreSQL database is shared with other
        writers. False opens an existing store beside whoever writes it, and can change nothing.

    Returns
    -------
    Store
        To be used as a context manager, or closed.

    Raises
    ------
    StoreError
        If the address is not valid; the database cannot be reached or written, is corrupt, or belongs to another
        program or a later version; another process is writing the file; or, for reading, there is no store. A
        failure leaves nothing behind.
    """
    place = parse(url)
    if isinstance(place, Path):
        return Store(_files.open_for_writing(place) if write else _files.open_for_reading(place))
    return Store(_postgres.open_for_writing(place) if write else _postgres.open_for_reading(place))


class Store:
    """Experiments, runs, journals, messages and opinions of any number of experiments; safe to share by threads.

    Made by :func:`open_store`. Every method raises :class:`opinionsim.errors.StoreError` when the
    database fails, and every changing one when the store was opened for reading.

    Attributes
    ----------
    url : str
        Address under which it opens again; it shows no password.
    """

    def __init__(self, database: Database) -> None:
        self.url = database.url
        self._database = database
        self._writer = Writer(database) if database.writes else None
        self._heartbeat = Heartbeat(database) if database.writes and database.shared else None
        self._claims = Claims(database.url, self._heartbeat)
        # Runs as well when the store is collected or the interpreter ends: queued entries are never dropped.
        self._finalizer = weakref.finalize(self, _release, database, self._writer, self._heartbeat)

    def __repr__(self) -> str:
        return f"Store({str(self.url)!r})"

    @property
    def shared(self) -> bool:
        """Whether other workers may write to the store at the same time."""
        return self._database.shared

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable and close the database; closing twice does nothing.

        The lock of a file is freed, and runs still claimed can be claimed by others at once.

        Raises
        ------
        StoreError
            If entries were lost and nobody has been told yet.
        """
        self._finalizer()

    def flush(self) -> None:
        """Wait until every appended entry of every run is durable.

        Raises
        ------
        StoreError
            If the database refused one.
        """
        if self._writer is not None:
            self._writer.flush()

    # Experiments and runs

    def save_experiment(self, experiment: ExperimentRow) -> None:
        """Insert an experiment, or replace all but the creation time of the one with its id."""
        row = _stored.experiment_row(experiment)

        def save(connection: Connection) -> None:
            last = max(connection.scalars(select(_schema.experiments.c.saved_at)), default=0.0)
            # A coarse or set-back clock must not hide which experiment was saved last.
            row["saved_at"] = max(time.time(), last + 1e-6)
            _schema.upsert(connection, _schema.experiments, [row], keep=("created_at",))

        self._write(save)

    def experiments(self) -> list[ExperimentRow]:
        """All experiments, the most recently saved last."""
        with self.reading() as connection:
            return _queries.experiments(connection)

    def register(self, runs: Sequence[RunRow]) -> None:
        """Insert runs as pending; those already there stay as they are."""
        # In one order for all workers, so that no transaction waits for another in a circle.
        rows = [_stored.run_row(run) for run in sorted(runs, key=lambda run: run.run_id)]
        self._write(lambda connection: _schema.insert_new(connection, _schema.runs, rows))

    def states(self, run_ids: Sequence[str] | None = None) -> dict[str, RunState]:
        """Where runs stand.

        Parameters
        ----------
        run_ids : sequence of str, optional
            Default: all runs. Runs that are not registered are absent from the answer.

        Returns
        -------
        dict of str to RunState
            By run id, sorted.
        """
        with self.reading() as connection:
            return _queries.states(connection, run_ids)

    def fields(self, run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The fields runs were registered with, by run id."""
        with self.reading() as connection:
            return _queries.fields(connection, run_ids)

    def save_fields(self, run_id: str, fields: Mapping[str, Any]) -> None:
        """Replace the fields of a run."""
        spelled = _schema.to_json(dict(fields), "a run's fields")
        self._write(lambda connection: set_run(connection, run_id, fields=spelled))

    def save_error(self, run_id: str, error: str) -> None:
        """Put on record, beside its status, what is wrong with a run; empty when nothing is."""
        self._write(lambda connection: set_run(connection, run_id, error=error))

    # Claims

    def claim(self, run_id: str, owner: str) -> int | None:
        """Take a run over to carry it out; journals of earlier claims can append no more.

        A file has one writer at a time, so that whoever claimed a run of it before is gone. A shared
        database is told every 5 s, until the store is closed, that the owner is alive; a run that is held
        is taken over when its owner has given no sign of life for 30 s, by the database's clock.

        Parameters
        ----------
        run_id : str
            A registered run.
        owner : str
            Who executes it, for messages and to tell workers apart: host, process and something unique.

        Returns
        -------
        int or None
            The new epoch, one more than the last; None if the run is complete, or held elsewhere
            (:meth:`states` says which). The run is then running, and held until :meth:`finish`.

        Raises
        ------
        StoreError
            If the run is not registered.
        """
        return self._claim(run_id, owner, complete=False)

    def claim_complete(self, run_id: str, owner: str) -> int | None:
        """Take a complete run to add opinions to it, as :meth:`claim` does one to be carried out.

        Its status and its error stay as they are.

        Returns
        -------
        int or None
            The new epoch; None if the run is not complete, or held elsewhere. The run is then held until
            :meth:`release`.

        Raises
        ------
        StoreError
            If the run is not registered.
        """
        return self._claim(run_id, owner, complete=True)

    def release(self, run_id: str, epoch: int) -> None:
        """Give a run back as it stands, after its journal is durable: others can claim it at once.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else.
        """
        self.flush()
        self._change(run_id, epoch, lambda connection: set_run(connection, run_id, held=0))

    def forget(self, run_ids: Iterable[str]) -> None:
        """Delete everything runs have produced and set them back to pending.

        Their registration and epoch stay, so that whoever still executes one of them can append no
        more. Texts stay: other runs may share them.

        Raises
        ------
        HeldElsewhereError
            If one of them is held elsewhere; nothing is deleted then.
        """
        self.flush()
        wanted = list(run_ids)
        self._write(lambda connection: self._claims.clear(connection, wanted))

    # What a run leads to

    def journal(self, run_id: str, epoch: int) -> SQLJournal:
        """The run's journal under a claim, holding every entry stored so far (without prompts).

        Raises
        ------
        HeldElsewhereError
            If `epoch` is not the run's current one.
        """
        self.flush()
        read = partial(stored_entries, table=_schema.journal, run_id=run_id)
        entries = self._change(run_id, epoch, read)
        return SQLJournal(self._required_writer(), run_id, epoch, entries)

    def entries(self, run_id: str) -> list[Entry]:
        """All entries of a run's journal sorted by key, without prompts: what a replay needs."""
        self.flush()
        with self.reading() as connection:
            return stored_entries(connection, _schema.journal, run_id)

    def calls(self, run_id: str) -> list[Entry]:
        """The entries of a run's journal that are replies of models, as :meth:`entries` gives them."""
        self.flush()
        with self.reading() as connection:
            return stored_entries(connection, _schema.calls, run_id)

    def save_outcome(self, run_id: str, epoch: int, outcome: RunOutcome) -> None:
        """Write what a run has led to so far, after its journal is durable; where the run stands does not change.

        Agents, edges and turns are replaced by key; opinions already stored stay. Long outcomes are written
        in portions, so that no run keeps the journals of others waiting; whoever resumes a run that was cut off
        in between writes the same rows again.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else; nothing more is written then.
        """
        self.flush()
        for portion in _stored.outcome_portions(run_id, outcome):
            self._change(run_id, epoch, partial(_stored.write, portion))

    def finish(self, run_id: str, epoch: int, outcome: RunOutcome) -> None:
        """Write what a run has led to as :meth:`save_outcome` does, then its status and error, and give it back.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else; nothing more is written then.
        """
        self.save_outcome(run_id, epoch, outcome)
        state = {"status": outcome.status, "error": outcome.error, "held": 0}
        self._change(run_id, epoch, lambda connection: set_run(connection, run_id, **state))

    def save_opinions(self, run_id: str, epoch: int, rows: Sequence[OpinionRow]) -> None:
        """Add opinions in one transaction, after the journal is durable; those already stored stay as they are.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else; nothing is written then.
        """
        self.flush()
        stored = [_stored.opinion_row(run_id, row) for row in rows]
        self._change(run_id, epoch, lambda connection: _schema.insert_new(connection, _schema.opinions, stored))

    def turns(self, run_id: str) -> list[TurnRow]:
        """The stored turns of a run, by index."""
        with self.reading() as connection:
            return _queries.turns(connection, run_id)

    # Instruments

    def save_instrument(self, instrument: InstrumentRow) -> None:
        """Insert an instrument, or check that the one with its id has the same options.

        Raises
        ------
        SpecError
            If it has others: other weights under one name, for instance, would be mixed in unseen.
        """
        self._write(lambda connection: _measured.save_instrument(connection, instrument))

    def instruments(self) -> list[InstrumentRow]:
        """All instruments, sorted by id."""
        with self.reading() as connection:
            return _measured.instruments(connection)

    def uncoded(
        self, run_ids: Iterable[str], instrument_id: str, kinds: Collection[str], *, about: str = ""
    ) -> dict[str, list[tuple[int, int | None]]]:
        """What an instrument has not coded yet of the stored turns of runs.

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
            By run id, sorted, the turns without an opinion, sorted: of each its index, and that of the other turn,
            None where there is none. Runs with nothing left are absent.

        Raises
        ------
        StoreError
            If `about` is neither of these.
        """
        with self.reading() as connection:
            return _measured.uncoded(connection, run_ids, instrument_id, kinds, about)

    # Models, texts and canaries

    def usage(self, run_ids: Iterable[str]) -> Paid:
        """What the stored calls of runs have used, rejected replies included.

        Returns
        -------
        Paid
            Sums over the calls whose provider said, or whose model has a price, and how many did not say.
        """
        self.flush()
        with self.reading() as connection:
            return _queries.usage(connection, run_ids)

    def models(self, run_ids: Iterable[str]) -> set[str]:
        """Identities that chat models returned with their replies to these runs."""
        with self.reading() as connection:
            return _queries.models(connection, run_ids)

    def texts(self, text_ids: Iterable[str]) -> dict[str, str]:
        """Texts by content identity; unknown identities are absent from the answer."""
        self.flush()
        with self.reading() as connection:
            return _queries.texts(connection, text_ids)

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
        self.flush()
        with self.reading() as connection:
            found = _queries.prompt(connection, run_id, turn, part, attempt)
        if found is None:
            raise StoreError(
                f"{self.url} has no prompt for run {run_id}, turn {turn}, part {part!r}, attempt {attempt}"
            )
        return found

    def save_canary(self, rows: Sequence[CanaryRow]) -> None:
        """Add what models answered to the canary questions; one already stored under its key stays."""
        stored = [_stored.canary_row(row) for row in rows]

        def save(connection: Connection) -> None:
            _schema.insert_texts(connection, {text_id(row.text): row.text for row in rows})
            _schema.insert_new(connection, _schema.canaries, stored)

        self._write(save)

    def canaries(self, experiment_id: str) -> list[CanaryRow]:
        """Every answer to a canary question of an experiment, in the order they were asked."""
        with self.reading() as connection:
            return _queries.canaries(connection, experiment_id)

    # Connections

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection inside one read transaction: a consistent view, for queries of one's own."""
        self._require_open()
        with as_store_error(f"cannot read the store {self.url}"), self._database.reading.connect() as connection:
            yield connection

    def _write(self, work: Callable[[Connection], _T]) -> _T:
        """Carry out work inside one write transaction, again if need be."""
        self._require_open()
        with as_store_error(f"cannot write the store {self.url}"):
            return self._database.write(work)

    def _change(self, run_id: str, epoch: int, work: Callable[[Connection], _T]) -> _T:
        """Carry out work inside one write transaction, in which the run is held under an epoch."""

        def checked(connection: Connection) -> _T:
            require_epoch(connection, run_id, epoch)
            return work(connection)

        return self._write(checked)

    def _claim(self, run_id: str, owner: str, *, complete: bool) -> int | None:
        take = partial(self._claims.take, run_id=run_id, owner=owner, complete=complete)
        epoch = self._write(take)
        if epoch is not None and self._heartbeat is not None:
            self._heartbeat.keep(owner)
        return epoch

    def _require_open(self) -> None:
        if not self._finalizer.alive:
            raise StoreError(f"the store {self.url} is closed; open it again to go on")

    def _required_writer(self) -> Writer:
        self._require_open()
        if self._writer is None:
            raise StoreError(f"the store {self.url} was opened for reading only; open it with write=True to change it")
        return self._writer


def _release(database: Database, writer: Writer | None, heartbeat: Heartbeat | None) -> None:
    with ExitStack() as undo:
        undo.callback(database.close)
        if heartbeat is not None:
            undo.callback(heartbeat.stop)
        if writer is not None:
            writer.close()
