"""The SQL store, from which runs can be resumed, replayed, measured and read; and copies of stores."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection

from opinionsim.errors import OpinionSimError, StoreError
from opinionsim.store import (
    _files,
    _measured,
    _postgres,
    _run_record,
    _schema,
    _stored,
    _unit_rows,
    _workers,
)
from opinionsim.store._address import parse
from opinionsim.store._database import Database, as_store_error
from opinionsim.store._leases import Leases, require_epoch, set_run
from opinionsim.store._reader import StoreReader
from opinionsim.store._rows import AuditRow, DesignRow, InstrumentRow, LabelRow, RunRow, RunStatus, SeatRow, UnitRow
from opinionsim.store._run_record import RunRecord
from opinionsim.store._workers import Heartbeat
from opinionsim.store._writer import Writer

if TYPE_CHECKING:
    from opinionsim.llm import Call, Limits, Usage
    from opinionsim.store._rows import Doing, Paid
    from opinionsim.store._stored import BatchRow, OwedCall

_T = TypeVar("_T")


def open_store(url: str, *, write: bool = True) -> Store:
    """Open a store.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH``; a bare path ending in ``.sqlite``, ``.sqlite3`` or ``.db``; or
        ``postgresql+psycopg://USER@HOST/DATABASE``, also spelled ``postgresql://``. Missing parts, above all the
        password, come from the environment, ``~/.pgpass`` or a service file, as for ``psql``.
    write : bool
        True opens for writing, and creates a missing file with its folders or missing tables. It locks a SQLite file,
        but shares a PostgreSQL database with other writers. False opens an existing store for reading only, even while
        others write to it.

    Returns
    -------
    Store
        Use it as a context manager, or close it.

    Raises
    ------
    StoreError
        If the address is not valid; if the database cannot be reached or written, is corrupt, belongs to another
        program, or has another schema version; if another process is writing the file; or, for reading, if there is no
        store. A failure leaves nothing behind.
    """
    place = parse(url)
    if isinstance(place, Path):
        return Store(_files.open_for_writing(place) if write else _files.open_for_reading(place))
    return Store(_postgres.open_for_writing(place) if write else _postgres.open_for_reading(place))


def copy_store(source: str, target: str) -> None:
    """Copy a store in a file, even while a run writes it, including the log of a killed run.

    Parameters
    ----------
    source : str
        Address of a store in a file, as for :func:`open_store`.
    target : str
        Address of the copy: a new file. Missing folders are created.

    Raises
    ------
    StoreError
        If one of them is a PostgreSQL database, the source is not a store, or the target exists already or cannot be
        written. A failure leaves nothing behind.
    """
    _files.copy(_file(source), _file(target))


def _file(url: str) -> Path:
    place = parse(url)
    if not isinstance(place, Path):
        raise StoreError(f"{place} is a database, but this command copies only files; copy it with pg_dump")
    return place


class Store(StoreReader):
    """Designs, runs, journals, messages and opinions of any number of experiments; threads may share it.

    Made by :func:`open_store`. Every method raises :class:`opinionsim.errors.StoreError` if the database fails.
    Methods that change the store also raise it if the store was opened for reading.

    Attributes
    ----------
    url : str
        Address to open the store again; it hides the password.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._writer = Writer(database) if database.writing is not None else None
        self._heartbeat = Heartbeat(database) if database.writing is not None else None
        self._leases = Leases(database.url, self._heartbeat if database.shared else None)
        # Also called when the store is collected or the interpreter ends: queued entries are never dropped.
        self._finalizer = weakref.finalize(self, _release, database, self._writer, self._heartbeat)

    def __repr__(self) -> str:
        return f"Store({str(self.url)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable and close the database; closing twice does nothing.

        This releases the lock of a file, and others can lease its leased runs at once.

        Raises
        ------
        StoreError
            If entries were lost and no earlier error reported this.
        """
        self._finalizer()

    def flush(self) -> None:
        """Wait until every appended entry of every run is durable.

        Raises
        ------
        StoreError
            If the database rejected an entry.
        """
        if self._writer is not None:
            self._writer.flush()

    # Experiments and runs

    def save_design(self, design: DesignRow) -> int:
        """Save a design of an experiment, or replace the one with its id.

        Started runs that the design no longer names stay in it, so fewer replicates do not hide results.

        Returns
        -------
        int
            The number of the design.
        """
        return self._write(lambda connection: _stored.save_design(connection, design))

    def register(self, runs: Sequence[RunRow]) -> None:
        """Insert runs as pending; existing runs stay unchanged."""
        # One order for all workers prevents deadlocks.
        rows = [_stored.run_row(run) for run in sorted(runs, key=lambda run: run.run_id)]
        self._write(lambda connection: _schema.insert_new(connection, _schema.runs, rows))

    def save_inputs(self, run_id: str, inputs: str, wording: str | None, parts: Mapping[str, str]) -> None:
        """Save the digest of the sources of a run's prompts, as in :class:`opinionsim.store.RunRow`."""
        spelled = _schema.to_json(parts, "the code of a run's parts")
        self._write(lambda connection: set_run(connection, run_id, inputs=inputs, wording=wording, parts=spelled))

    def save_error(self, run_id: str, error: OpinionSimError | None) -> None:
        """Save the error of a run in addition to its status; None if there is none."""
        self._write(lambda connection: set_run(connection, run_id, error=error))

    def save_units(self, rows: Sequence[UnitRow], keys: Mapping[str, Mapping[str, Any]]) -> None:
        """Save units of work in one transaction.

        Parameters
        ----------
        rows : sequence of UnitRow
            The units. Their values are added to the stored ones; a unit that failed before is replaced.
        keys : mapping
            Everything that determines the values of each unit, as JSON values, by identity.
        """
        self._write(lambda connection: _unit_rows.save(connection, rows, keys))

    def change_seat(self, run_id: str, agent: int, change: Callable[[SeatRow], SeatRow]) -> None:
        """Change a seat of a registered run in one transaction, which excludes concurrent changes.

        Parameters
        ----------
        run_id, agent : str, int
            The seat.
        change : callable
            Takes the current seat, a bare :class:`SeatRow` at first, and returns the new one. If it raises an error,
            the seat stays unchanged.
        """
        self._write(lambda connection: _stored.change_seat(connection, run_id, agent, change))

    # Leases

    def lease(self, run_id: str, owner: str, *, complete: bool = False) -> int | None:
        """Lease a run to carry it out, or a complete run to add opinions; earlier leases can append no more.

        A file has one writer at a time, so earlier owners no longer exist. In a shared database, the owner sends a
        heartbeat every 5 s until the store is closed. Another worker can take over a leased run if its owner has sent
        no heartbeat for 30 s, by the database's clock.

        Parameters
        ----------
        run_id : str
            A registered run.
        owner : str
            Name of the worker, which identifies it in messages and leases: host, process and something unique.
        complete : bool
            True leases only complete runs, which keep their status and error; False leases only other runs.

        Returns
        -------
        int or None
            The new epoch, one more than the last, which lasts until :meth:`finish` or :meth:`release`. None if another
            worker has a lease on the run, or it is not of the right kind (see :meth:`states`).

        Raises
        ------
        StoreError
            If the run is not registered.
        """
        take = partial(self._leases.take, run_id=run_id, owner=owner, complete=complete)
        epoch = self._write(take)
        if epoch is not None and self._heartbeat is not None:
            self._heartbeat.keep(owner)
        return epoch

    def release(self, run_id: str, epoch: int) -> None:
        """End the lease of a run once its record is durable; other workers can lease it at once.

        Raises
        ------
        HeldElsewhereError
            If the lease has passed to another owner.
        """
        self._give_back(run_id, epoch)

    def finish(self, run_id: str, epoch: int, status: RunStatus, error: OpinionSimError | None = None) -> None:
        """End the lease of a run with a new status and error, once its record is durable.

        Raises
        ------
        HeldElsewhereError
            If the lease has passed to another owner.
        """
        self._give_back(run_id, epoch, status=status, error=error)

    def forget(self, run_ids: Iterable[str]) -> None:
        """Delete everything that runs have produced and set them back to pending.

        Their registration stays, under a new epoch, so a worker that still carries out one of them can append no more.
        Texts stay because other runs may share them, and payments stay in the ledger. The generation of each run
        increases by one, which tells readers that the run starts anew.

        Raises
        ------
        HeldElsewhereError
            If another worker has the lease on one of them; nothing is deleted in this case.
        """
        self.flush()
        wanted = list(run_ids)
        self._write(lambda connection: self._leases.clear(connection, wanted))

    def withdraw(self, run_id: str, agent: int) -> None:
        """Permanently delete a person's texts in a run and everything after them, except what other people wrote.

        The run becomes ``withdrawn`` and is never carried out again. In a file, no byte of the deleted content stays,
        but this method cannot reach the logs of a database server.

        Raises
        ------
        StoreError
            If a worker carries out the run; or if a reader prevents rewriting the file. In the second case the content
            is deleted, and calling the method again removes the last bytes.
        """
        self.flush()

        def gone(connection: Connection) -> None:
            # A text that is deleted must be stored anew when a run comes to it again.
            self._required_writer().forget_known()
            self._leases.withdraw(connection, run_id, agent)

        self._write(gone)
        with as_store_error(f"the texts are deleted in {self.url}, but its file could not be rewritten yet"):
            self._database.rewrite()

    def tell(self, doing: Callable[[], Doing]) -> None:
        """Set the function that reports, at every heartbeat, what this worker is doing."""
        if self._heartbeat is not None:
            self._heartbeat.tell(doing)

    # Budgets of several workers

    def reserve(self, experiment_id: str, owner: str, call: Call, worst: Usage, limits: Limits) -> tuple[bool, Usage]:
        """Reserve the maximum cost of a call, if it fits in addition to what all workers have paid and reserved.

        The reservation ends when the reply is stored, with :meth:`release_call`, or when the worker counts as dead.

        Parameters
        ----------
        experiment_id : str
            The experiment that pays.
        owner : str
            The worker with the lease on the call's run.
        call : tuple
            Run, turn, call and attempt.
        worst : Usage
            The maximum cost of the call.
        limits : Limits
            Limits of the total usage of the experiment.

        Returns
        -------
        reserved : bool
            Whether it was reserved.
        paid : Usage
            The usage that is paid.
        """
        return self._write(lambda connection: _workers.reserve(connection, experiment_id, owner, call, worst, limits))

    def release_call(self, call: Call) -> None:
        """End the reservation of a call that cost nothing."""
        self._write(lambda connection: _workers.release(connection, call))

    # Batches

    def save_batch(self, batch: BatchRow, calls: Sequence[OwedCall] = ()) -> None:
        """Save the state of a batch, and the calls that it adds."""
        self._write(lambda connection: _stored.save(connection, batch, calls))

    def free_calls(self, batch: BatchRow, custom_ids: Iterable[str], paid: Paid | None = None) -> None:
        """Note that a batch does not owe calls any more, and keep in the ledger what was paid for them."""
        self._write(lambda connection: _stored.free(connection, batch, custom_ids, paid))

    def close_batch(self, batch: BatchRow, used: Mapping[str, Paid]) -> bool:
        """Close a batch if it owes nothing more; see :func:`opinionsim.store._stored.close`."""
        self.flush()
        return self._write(lambda connection: _stored.close(connection, batch, used))

    # What a run leads to

    def record(self, run_id: str, epoch: int, payer: str = "") -> RunRecord:
        """The record of a run under a lease, with everything stored so far.

        Parameters
        ----------
        run_id : str
            The run.
        epoch : int
            Epoch of the lease.
        payer : str
            Identity of the experiment that pays for its calls from now on.

        Raises
        ------
        HeldElsewhereError
            If `epoch` is not the run's current one.
        StoreError
            If a stored row of the run is damaged or missing.
        """
        self.flush()
        found = self._change(run_id, epoch, partial(_run_record.found, run_id=run_id))
        return RunRecord(self._required_writer(), run_id, epoch, payer, found)

    # Instruments

    def save_instrument(self, instrument: InstrumentRow) -> None:
        """Insert an instrument, or check that the one with its id has the same options and code.

        Raises
        ------
        SpecError
            If they differ. Otherwise, opinions from other weights with the same name, for example, would mix unnoticed.
        """
        self._write(lambda connection: _measured.save_instrument(connection, instrument))

    def save_audit(self, audit: AuditRow, labels: Sequence[LabelRow] = ()) -> None:
        """Save an audit in one transaction; its labels replace earlier ones of the same coders."""
        self._write(lambda connection: _measured.save_audit(connection, audit, labels))

    # Connections

    def _prepare(self) -> None:
        self._require_open()
        if self._writer is not None:
            self.flush()

    def _write(self, work: Callable[[Connection], _T]) -> _T:
        """Carry out work inside one write transaction, tried again after passing errors."""
        self._require_open()
        with as_store_error(f"cannot write the store {self.url}"):
            return self._database.write(work)

    def _change(self, run_id: str, epoch: int, work: Callable[[Connection], _T]) -> _T:
        """Carry out work inside one write transaction, in which the run is held under an epoch."""

        def checked(connection: Connection) -> _T:
            require_epoch(connection, run_id, epoch)
            return work(connection)

        return self._write(checked)

    def _give_back(self, run_id: str, epoch: int, **state: Any) -> None:
        self.flush()
        self._change(run_id, epoch, lambda connection: set_run(connection, run_id, held=0, **state))

    def _require_open(self) -> None:
        if not self._finalizer.alive:
            raise StoreError(f"the store {self.url} is closed; open it again to continue")

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
