"""The SQL store: everything a run needs to be resumed, replayed, measured again and read."""

from __future__ import annotations

import json
import math
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Table, delete, func, or_, select, update

from opinionsim.errors import SpecError, StoreError
from opinionsim.llm import CallRecord
from opinionsim.messages import ChatMessage, text_id
from opinionsim.store import _files, _postgres, _schema
from opinionsim.store._address import parse
from opinionsim.store._database import Database, as_store_error
from opinionsim.store._journal import HeldElsewhereError, SQLJournal, Writer, current_epochs, stored_records
from opinionsim.store._rows import (
    SUMMARY,
    CanaryRow,
    ExperimentRow,
    ExperimentRun,
    MeasurementRow,
    OpinionRow,
    Paid,
    RunOutcome,
    RunRow,
    RunState,
    TurnRow,
)
from opinionsim.store._workers import Heartbeat, lives

__all__ = ["Store", "open_store"]

#: The finish reason of prompts that a provider refused to answer.
_FILTERED = "content_filter"
#: Rows of an outcome written in one transaction: some tens of milliseconds.
_PORTION = 4000

_T = TypeVar("_T")
_Write = tuple[Callable[[Connection, Table, list[dict[str, Any]]], None], Table, list[dict[str, Any]]]


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
    """Experiments, runs, calls, messages and opinions of any number of experiments; safe to share by threads.

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
        # Runs as well when the store is collected or the interpreter ends: queued calls are never dropped.
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
        row: dict[str, Any] = {
            "experiment_id": experiment.experiment_id,
            "name": experiment.name,
            "created_at": experiment.created_at,
            "spec": _schema.to_json(dict(experiment.spec), "an experiment's spec"),
            "manifest": _schema.to_json(dict(experiment.manifest), "an experiment's manifest"),
            "runs": _schema.to_json([_cell(run) for run in experiment.runs], "an experiment's axes"),
        }

        def save(connection: Connection) -> None:
            last = max(connection.scalars(select(_schema.experiments.c.saved_at)), default=0.0)
            # A coarse or set-back clock must not hide which experiment was saved last.
            row["saved_at"] = max(time.time(), last + 1e-6)
            _schema.upsert(connection, _schema.experiments, [row], keep=("created_at",))

        self._write(save)

    def experiments(self) -> list[ExperimentRow]:
        """All experiments, the most recently saved last."""
        with self.reading() as connection:
            rows = connection.execute(select(_schema.experiments).order_by(_schema.experiments.c.saved_at)).all()
        return [
            ExperimentRow(
                row.experiment_id,
                row.name,
                row.created_at,
                json.loads(row.spec),
                json.loads(row.manifest),
                tuple(ExperimentRun(**run) for run in json.loads(row.runs)),
            )
            for row in rows
        ]

    def register(self, runs: Sequence[RunRow]) -> None:
        """Insert runs as pending; those already there stay as they are."""
        # In one order for all workers, so that no transaction waits for another in a circle.
        rows = [_run_row(run) for run in sorted(runs, key=lambda run: run.run_id)]
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
        table = _schema.runs
        statement = select(table.c.run_id, table.c.status, table.c.epoch, table.c.owner, table.c.error)
        with self.reading() as connection:
            if run_ids is None:
                rows = connection.execute(statement).all()
            else:
                portions = _schema.chunks(run_ids)
                rows = [
                    row for some in portions for row in connection.execute(statement.where(table.c.run_id.in_(some)))
                ]
        return {row.run_id: RunState(*row[1:]) for row in sorted(rows, key=lambda row: str(row.run_id))}

    def fields(self, run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The fields runs were registered with, by run id."""
        table = _schema.runs
        statement = select(table.c.run_id, table.c.fields)
        with self.reading() as connection:
            return {
                row.run_id: json.loads(row.fields)
                for some in _schema.chunks(run_ids)
                for row in connection.execute(statement.where(table.c.run_id.in_(some)))
            }

    def save_fields(self, run_id: str, fields: Mapping[str, Any]) -> None:
        """Replace the fields of a run."""
        table = _schema.runs
        spelled = _schema.to_json(dict(fields), "a run's fields")
        statement = update(table).where(table.c.run_id == run_id).values(fields=spelled)
        self._write(lambda connection: connection.execute(statement))

    def save_error(self, run_id: str, error: str) -> None:
        """Put on record, beside its status, what is wrong with a run; empty when nothing is."""
        statement = update(_schema.runs).where(_schema.runs.c.run_id == run_id).values(error=error)
        self._write(lambda connection: connection.execute(statement))

    def claim(self, run_id: str, owner: str, *, again: bool = False) -> int | None:
        """Take a run over for execution; journals of earlier claims can append no more.

        A file has one writer at a time, so that whoever claimed a run of it before is gone. A shared
        database is told every 5 s, until the store is closed, that the owner is alive; a run that is under
        way is taken over when its owner has given no sign of life for 30 s, by the database's clock.

        Parameters
        ----------
        run_id : str
            A registered run.
        owner : str
            Who executes it, for messages and to tell workers apart: host, process and something unique.
        again : bool
            Whether a complete run is taken as well, to add to what it has led to; it is under way again then.

        Returns
        -------
        int or None
            The new epoch, one more than the last; None if the run is complete and not wanted again, or under
            way elsewhere (:meth:`states` says which).

        Raises
        ------
        StoreError
            If the run is not registered.
        """

        def take(connection: Connection) -> int | None:
            run = self._locked(connection, [run_id]).get(run_id)
            if run is None:
                raise StoreError(f"run {run_id} is not registered in {self.url}")
            if (run.status == "complete" and not again) or (run.owner != owner and self._is_elsewhere(connection, run)):
                return None
            if self._heartbeat is not None:
                self._heartbeat.add(connection, owner)
            self._set_state(connection, run_id, RunState("running", run.epoch + 1, owner, ""))
            return run.epoch + 1

        epoch = self._write(take)
        if epoch is not None and self._heartbeat is not None:
            self._heartbeat.keep(owner)
        return epoch

    def journal(self, run_id: str, epoch: int) -> SQLJournal:
        """The run's journal under a claim, holding every entry stored so far (without prompts).

        Raises
        ------
        HeldElsewhereError
            If `epoch` is not the run's current one.
        """
        self.flush()

        def read(connection: Connection) -> list[CallRecord]:
            self._require_epoch(connection, run_id, epoch)
            return stored_records(connection, run_id)

        records = self._write(read)
        return SQLJournal(self._required_writer(), run_id, epoch, records)

    def records(self, run_id: str) -> list[CallRecord]:
        """The run's journal entries sorted by key, without prompts: what a replay needs."""
        self.flush()
        with self.reading() as connection:
            return stored_records(connection, run_id)

    def finish(self, run_id: str, epoch: int, outcome: RunOutcome) -> None:
        """Write what a run has led to, after its journal is durable, and its status last of all.

        Agents, edges and turns are replaced by key; opinions already stored stay. Long outcomes are written
        in portions, so that no run keeps the journals of others waiting; until the last portion is written
        the run is still running, and whoever resumes it writes the same rows again.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else; nothing more is written then.
        """
        self.flush()
        state = RunState(outcome.status, epoch, "", outcome.error)

        def store(portion: list[_Write], connection: Connection) -> None:
            self._require_epoch(connection, run_id, epoch)
            for write, table, rows in portion:
                write(connection, table, rows)

        def end(connection: Connection) -> None:
            self._require_epoch(connection, run_id, epoch)
            self._set_state(connection, run_id, state, keep_owner=True)

        for portion in _outcome_portions(run_id, outcome):
            self._write(partial(store, portion))
        self._write(end)

    def forget(self, run_ids: Iterable[str]) -> None:
        """Delete everything runs have produced and set them back to pending.

        Their registration and epoch stay, so that whoever still executes one of them can append no
        more. Texts stay: other runs may share them.

        Raises
        ------
        HeldElsewhereError
            If one of them is under way elsewhere; nothing is deleted then.
        """
        self.flush()
        wanted = list(run_ids)
        tables = (_schema.agents, _schema.edges, _schema.turns, _schema.calls, _schema.opinions)

        def clear(connection: Connection) -> None:
            for run_id, run in self._locked(connection, wanted).items():
                if self._is_elsewhere(connection, run):
                    raise HeldElsewhereError(
                        f"run {run_id} is being carried out by {run.owner} and cannot be started anew; "
                        f"wait until it has ended or stop it, then try again"
                    )
            for some in _schema.chunks(wanted):
                for table in tables:
                    connection.execute(delete(table).where(table.c.run_id.in_(some)))
                runs = _schema.runs
                values = {"status": "pending", "epoch": runs.c.epoch + 1, "owner": "", "error": ""}
                connection.execute(update(runs).where(runs.c.run_id.in_(some)).values(values))

        self._write(clear)

    def usage(self, run_ids: Iterable[str]) -> Paid:
        """What the stored calls of runs have used, rejected replies included; ratings asked no model.

        Returns
        -------
        Paid
            Sums over the calls whose provider said, or whose model has a price, and how many did not say.
        """
        self.flush()
        call = _schema.calls.c
        untold = or_(
            call.input_tokens.is_(None) & (call.finish_reason != _FILTERED),
            call.input_tokens.is_not(None) & call.output_tokens.is_(None),
        )
        sums = [func.coalesce(func.sum(column), 0) for column in (call.input_tokens, call.output_tokens, call.cost)]
        counts = (func.count(), func.count().filter(untold))
        statement = select(*counts, *sums).where(call.outcome != "rating")
        with self.reading() as connection:
            found = [
                connection.execute(statement.where(call.run_id.in_(some))).one() for some in _schema.chunks(run_ids)
            ]
        calls, uncounted, taken, given, cost = zip(*found, strict=True) if found else ((), (), (), (), ())
        return Paid(sum(calls), int(sum(taken)), int(sum(given)), math.fsum(cost), sum(uncounted))

    # Canaries

    def save_canary(self, rows: Sequence[CanaryRow]) -> None:
        """Add what models answered to the canary questions; one already stored under its key stays."""
        stored = [
            {name: value for name, value in row._asdict().items() if name != "text"} | {"text_id": text_id(row.text)}
            for row in rows
        ]

        def save(connection: Connection) -> None:
            _schema.insert_texts(connection, {text_id(row.text): row.text for row in rows})
            _schema.insert_new(connection, _schema.canaries, stored)

        self._write(save)

    def canaries(self, experiment_id: str) -> list[CanaryRow]:
        """Every answer to a canary question of an experiment, in the order they were asked."""
        table, text = _schema.canaries, _schema.texts
        columns = [text.c.text if name == "text" else table.c[name] for name in CanaryRow._fields]
        statement = (
            select(*columns).join(text, text.c.text_id == table.c.text_id).where(table.c.experiment_id == experiment_id)
        )
        with self.reading() as connection:
            rows = [CanaryRow(*row) for row in connection.execute(statement)]
        return sorted(rows, key=lambda row: (row.asked_at, row.model, row.moment, row.position))

    # Measurements

    def save_measurement(self, measurement: MeasurementRow) -> None:
        """Insert a measurement, or add kinds of text to the one with its id.

        Raises
        ------
        SpecError
            If the one with its id was made by another instrument: other weights under the same name, for one, would
            be mixed in unseen.
        """
        row = {
            "measurement_id": measurement.measurement_id,
            "classifier": measurement.classifier,
            "options": _schema.to_json(dict(measurement.options), "a classifier's options"),
            "points": _schema.to_json(measurement.points, "scale points"),
            "labels": _schema.to_json(measurement.labels, "scale labels"),
            "kinds": _schema.to_json(measurement.kinds, "text kinds"),
        }
        table = _schema.measurements
        own = table.c.measurement_id == measurement.measurement_id
        known = select(table.c.options, table.c.kinds).where(own).with_for_update()

        def save(connection: Connection) -> None:
            _schema.insert_new(connection, table, [row])
            stored = connection.execute(known).one()
            _require_same_instrument(measurement.classifier, json.loads(stored.options), json.loads(row["options"]))
            kinds = list(dict.fromkeys((*json.loads(stored.kinds), *measurement.kinds)))
            connection.execute(update(table).where(own).values(kinds=_schema.to_json(kinds, "text kinds")))

        self._write(save)

    def measurements(self) -> list[MeasurementRow]:
        """All measurements, sorted by id."""
        with self.reading() as connection:
            rows = connection.execute(select(_schema.measurements)).all()
        found = [
            MeasurementRow(
                row.measurement_id,
                row.classifier,
                json.loads(row.options),
                tuple(json.loads(row.points)),
                tuple(json.loads(row.labels)),
                tuple(json.loads(row.kinds)),
            )
            for row in rows
        ]
        return sorted(found, key=lambda measurement: measurement.measurement_id)

    def measured(self, run_id: str) -> set[str]:
        """Ids of the measurements with stored opinions for the run."""
        table = _schema.opinions
        with self.reading() as connection:
            return set(connection.scalars(select(table.c.measurement_id).where(table.c.run_id == run_id).distinct()))

    def measured_kinds(self, run_ids: Iterable[str]) -> dict[str, dict[str, set[str]]]:
        """Kinds of text that are coded, by run id and measurement id."""
        opinions, turns = _schema.opinions, _schema.turns
        joined = opinions.join(turns, (turns.c.run_id == opinions.c.run_id) & (turns.c.turn == opinions.c.turn))
        statement = select(opinions.c.run_id, opinions.c.measurement_id, turns.c.kind).select_from(joined).distinct()
        found: dict[str, dict[str, set[str]]] = {}
        with self.reading() as connection:
            for some in _schema.chunks(run_ids):
                for row in connection.execute(statement.where(opinions.c.run_id.in_(some))):
                    found.setdefault(row.run_id, {}).setdefault(row.measurement_id, set()).add(row.kind)
        return found

    def kinds(self, run_ids: Iterable[str]) -> dict[str, set[str]]:
        """Kinds of text that the stored turns of runs have, by run id."""
        table = _schema.turns
        found: dict[str, set[str]] = {}
        with self.reading() as connection:
            for some in _schema.chunks(run_ids):
                statement = select(table.c.run_id, table.c.kind).where(table.c.run_id.in_(some)).distinct()
                for row in connection.execute(statement):
                    found.setdefault(row.run_id, set()).add(row.kind)
        return found

    def save_opinions(self, run_id: str, rows: Sequence[OpinionRow]) -> None:
        """Add opinions; one already stored under its measurement, variable and turn stays."""
        stored = [_opinion_row(run_id, row) for row in rows]
        self._write(lambda connection: _schema.insert_new(connection, _schema.opinions, stored))

    # Turns, models and texts

    def turns(self, run_id: str) -> list[TurnRow]:
        """The stored turns of a run, by index."""
        table = _schema.turns
        columns = (table.c.turn, table.c.step, table.c.agent, table.c.act, table.c.kind, table.c.reads)
        statement = (
            select(*columns, _schema.texts.c.text, table.c.condition)
            .join(_schema.texts, _schema.texts.c.text_id == table.c.text_id)
            .where(table.c.run_id == run_id)
            .order_by(table.c.turn)
        )
        with self.reading() as connection:
            rows = connection.execute(statement).all()
        return [TurnRow(*row[:5], tuple(json.loads(row.reads)), row.text, row.condition) for row in rows]

    def models(self, run_ids: Iterable[str]) -> set[str]:
        """Identities that chat models returned with their replies to these runs."""
        table = _schema.calls
        statement = select(table.c.model).distinct()
        with self.reading() as connection:
            return {
                model
                for some in _schema.chunks(run_ids)
                for model in connection.scalars(statement.where(table.c.run_id.in_(some)))
                if model
            }

    def texts(self, text_ids: Iterable[str]) -> dict[str, str]:
        """Texts by content identity; unknown identities are absent from the answer."""
        self.flush()
        table = _schema.texts
        found: dict[str, str] = {}
        with self.reading() as connection:
            for some in _schema.chunks(text_ids):
                rows = connection.execute(select(table).where(table.c.text_id.in_(some)))
                found.update((row.text_id, row.text) for row in rows)
        return found

    def prompt(self, run_id: str, turn: int, part: str = "reply", attempt: int = 0) -> list[ChatMessage]:
        """The literal prompt of a call.

        Parameters
        ----------
        run_id, turn, part, attempt
            The call's key.

        Raises
        ------
        StoreError
            If there is no such call, or it asked no model.
        """
        self.flush()
        table = _schema.calls
        key = {"run_id": run_id, "turn": turn, "part": part, "attempt": attempt}
        with self.reading() as connection:
            spelled = connection.scalars(select(table.c.prompt).filter_by(**key)).all()
        if not spelled or spelled[0] is None:
            raise StoreError(
                f"{self.url} has no prompt for run {run_id}, turn {turn}, part {part!r}, attempt {attempt}"
            )
        lines = [line.split(":", 1) for line in spelled[0].splitlines()]
        texts = self.texts(key for _, key in lines)
        return [ChatMessage(role, texts[key]) for role, key in lines]

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

    def _require_open(self) -> None:
        if not self._finalizer.alive:
            raise StoreError(f"the store {self.url} is closed; open it again to go on")

    def _required_writer(self) -> Writer:
        self._require_open()
        if self._writer is None:
            raise StoreError(f"the store {self.url} was opened for reading only; open it with write=True to change it")
        return self._writer

    def _require_epoch(self, connection: Connection, run_id: str, epoch: int) -> None:
        current = current_epochs(connection, [run_id]).get(run_id)
        if current != epoch:
            raise HeldElsewhereError(
                f"run {run_id} is not held under epoch {epoch} (the store says {current}): "
                f"it was claimed by somebody else or never claimed"
            )

    def _locked(self, connection: Connection, run_ids: Iterable[str]) -> dict[str, RunState]:
        """Where registered runs stand, their rows held until the transaction ends where the database locks rows."""
        run = _schema.runs.c
        statement = select(run.run_id, run.status, run.epoch, run.owner, run.error)
        statement = statement.order_by(run.run_id).with_for_update()
        return {
            row.run_id: RunState(*row[1:])
            for some in _schema.chunks(run_ids)
            for row in connection.execute(statement.where(run.run_id.in_(some)))
        }

    def _is_elsewhere(self, connection: Connection, run: RunState) -> bool:
        """Whether another worker, and a live one, is carrying a run out."""
        if self._heartbeat is None or run.status != "running" or self._heartbeat.is_own(run.owner):
            return False
        return lives(connection, run.owner)

    def _set_state(self, connection: Connection, run_id: str, state: RunState, *, keep_owner: bool = False) -> None:
        values = {name: value for name, value in state._asdict().items() if name != "owner" or not keep_owner}
        connection.execute(update(_schema.runs).where(_schema.runs.c.run_id == run_id).values(values))


def _release(database: Database, writer: Writer | None, heartbeat: Heartbeat | None) -> None:
    with ExitStack() as undo:
        undo.callback(database.close)
        if heartbeat is not None:
            undo.callback(heartbeat.stop)
        if writer is not None:
            writer.close()


def _cell(run: ExperimentRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "measurement_id": run.measurement_id,
        "replicate": run.replicate,
        "block": run.block,
        "cell": run.cell,
        "axes": dict(run.axes),
    }


def _run_row(run: RunRow) -> dict[str, Any]:
    if set(run.summary) != set(SUMMARY):
        odd = ", ".join(sorted(set(run.summary) ^ set(SUMMARY)))
        raise StoreError(f"the summary of run {run.run_id} must name exactly {', '.join(SUMMARY)}; check {odd}")
    return {
        "run_id": run.run_id,
        "replicate": run.replicate,
        "block": run.block,
        "evidence": run.evidence,
        "fields": _schema.to_json(dict(run.fields), "a run's fields"),
        **run.summary,
        "status": "pending",
        "epoch": 0,
        "owner": "",
        "error": "",
    }


def _opinion_row(run_id: str, row: OpinionRow) -> dict[str, Any]:
    probabilities = [_schema.to_nullable(probability) for probability in row.probabilities]
    return {
        "run_id": run_id,
        "measurement_id": row.measurement_id,
        "variable": row.variable,
        "turn": row.turn,
        "value": _schema.to_nullable(row.value),
        "off_scale": _schema.to_nullable(row.off_scale),
        "probabilities": _schema.to_json(probabilities, "probabilities"),
    }


def _require_same_instrument(classifier: str, before: dict[str, Any], options: dict[str, Any]) -> None:
    differing = [name for name in {**before, **options} if before.get(name) != options.get(name)]
    if differing:
        told = ", ".join(f"{name} was {before.get(name)!r} and is {options.get(name)!r}" for name in differing)
        raise SpecError(
            f"measurement.classifier: {classifier!r} has coded texts in this store before, and is another one now: "
            f"{told}. Undo the change, name the difference under measurement.classifier.options, or use another store"
        )


def _outcome_portions(run_id: str, outcome: RunOutcome) -> Iterator[list[_Write]]:
    """Writes of a run's rows, in portions for one transaction each."""
    agents = [
        {
            "run_id": run_id,
            "agent": row.agent,
            "name": row.name,
            "assigned_opinion": _schema.to_nullable(row.assigned_opinion),
            "persona": _schema.to_json(dict(row.persona), "a persona"),
            "model": row.model,
        }
        for row in outcome.agents
    ]
    turns = [
        {
            "run_id": run_id,
            "turn": row.turn,
            "step": row.step,
            "agent": row.agent,
            "act": row.act,
            "kind": row.kind,
            "reads": _schema.to_json(row.reads, "a turn's reads"),
            "text_id": text_id(row.text),
            "condition": row.condition,
        }
        for row in outcome.turns
    ]
    texts = {text_id(row.text): row.text for row in outcome.turns}
    writes: list[_Write] = [
        (_schema.upsert, _schema.agents, agents),
        (_schema.upsert, _schema.edges, [{"run_id": run_id, **row._asdict()} for row in outcome.edges]),
        (_schema.insert_new, _schema.texts, [{"text_id": key, "text": texts[key]} for key in sorted(texts)]),
        (_schema.upsert, _schema.turns, turns),
        (_schema.insert_new, _schema.opinions, [_opinion_row(run_id, row) for row in outcome.opinions]),
    ]
    if sum(len(rows) for _, _, rows in writes) <= _PORTION:
        yield writes
        return
    for write, table, rows in writes:
        for start in range(0, len(rows), _PORTION):
            yield [(write, table, rows[start : start + _PORTION])]
