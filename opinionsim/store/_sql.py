"""The SQL store: everything a run needs to be resumed, replayed, measured again and read."""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from sqlalchemy import Connection, Table, delete, select, update

from opinionsim.errors import StoreError
from opinionsim.llm import CallRecord
from opinionsim.messages import ChatMessage, text_id
from opinionsim.store import _schema
from opinionsim.store._files import OpenFile, as_store_error, open_for_reading, open_for_writing, store_path
from opinionsim.store._journal import SQLJournal, Writer, current_epochs, stored_records
from opinionsim.store._rows import (
    SUMMARY,
    ExperimentRow,
    ExperimentRun,
    MeasurementRow,
    OpinionRow,
    RunOutcome,
    RunRow,
    RunState,
    TurnRow,
)

__all__ = ["Store", "open_store"]

#: Rows of an outcome written in one transaction: some tens of milliseconds.
_PORTION = 4000

_Write = tuple[Callable[[Connection, Table, list[dict[str, Any]]], None], Table, list[dict[str, Any]]]


def open_store(url: str, *, write: bool = True) -> Store:
    """Open a store.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH``, or a bare path ending in ``.sqlite``, ``.sqlite3`` or ``.db``.
    write : bool
        True takes the store's lock, and creates the file and its folders where they are absent; False
        opens an existing store beside whoever writes it, and can change nothing.

    Returns
    -------
    Store
        To be used as a context manager, or closed.

    Raises
    ------
    StoreError
        If the address is not valid; the file cannot be written, is corrupt, or belongs to another program or
        a later version; another process is writing it; or, for reading, it does not exist. A failure leaves
        no file behind.
    """
    path = store_path(url)
    return Store(f"sqlite:///{path}", open_for_writing(path) if write else open_for_reading(path))


class Store:
    """Experiments, runs, calls, messages and opinions of any number of experiments; safe to share by threads.

    Made by :func:`open_store`. Every method raises :class:`opinionsim.errors.StoreError` when the
    database fails, and every changing one when the store was opened for reading.

    Attributes
    ----------
    url : str
        Address under which it opens again.
    """

    def __init__(self, url: str, file: OpenFile) -> None:
        self.url = url
        self._engine = file.engine
        self._write_engine = file.engine.execution_options(write=True)
        self._lock = threading.RLock()
        self._writer = None if file.lock is None else Writer(self._write_engine, self._lock)
        # Runs as well when the store is collected or the interpreter ends: queued calls are never dropped.
        self._finalizer = weakref.finalize(self, _release, file, self._writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable, close the file and free its lock; closing twice does nothing.

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
        with self._writing() as connection:
            last = max(connection.scalars(select(_schema.experiments.c.saved_at)), default=0.0)
            # A coarse or set-back clock must not hide which experiment was saved last.
            row["saved_at"] = max(time.time(), last + 1e-6)
            _schema.upsert(connection, _schema.experiments, [row], keep=("created_at",))

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
        rows = [_run_row(run) for run in runs]
        with self._writing() as connection:
            _schema.insert_new(connection, _schema.runs, rows)

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
        with self._writing() as connection:
            connection.execute(update(table).where(table.c.run_id == run_id).values(fields=spelled))

    def save_error(self, run_id: str, error: str) -> None:
        """Put on record, beside its status, what is wrong with a run; empty when nothing is."""
        table = _schema.runs
        with self._writing() as connection:
            connection.execute(update(table).where(table.c.run_id == run_id).values(error=error))

    def claim(self, run_id: str, owner: str) -> int:
        """Take a run over for execution; journals of earlier claims can append no more.

        Parameters
        ----------
        run_id : str
            A registered run.
        owner : str
            Who executes it: host and process, for messages.

        Returns
        -------
        int
            The new epoch, one more than the last.

        Raises
        ------
        StoreError
            If the run is not registered.
        """
        with self._writing() as connection:
            epoch = current_epochs(connection, [run_id]).get(run_id)
            if epoch is None:
                raise StoreError(f"run {run_id} is not registered in {self.url}")
            self._set_state(connection, run_id, RunState("running", epoch + 1, owner, ""))
        return epoch + 1

    def journal(self, run_id: str, epoch: int) -> SQLJournal:
        """The run's journal under a claim, holding every entry stored so far (without prompts).

        Raises
        ------
        StoreError
            If `epoch` is not the run's current one.
        """
        self.flush()
        with self._writing() as connection:
            self._require_epoch(connection, run_id, epoch)
            records = stored_records(connection, run_id)
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
        StoreError
            If the claim has passed to somebody else; nothing more is written then.
        """
        self.flush()
        state = RunState(outcome.status, epoch, "", outcome.error)
        for portion in _outcome_portions(run_id, outcome):
            with self._writing() as connection:
                self._require_epoch(connection, run_id, epoch)
                for write, table, rows in portion:
                    write(connection, table, rows)
        with self._writing() as connection:
            self._require_epoch(connection, run_id, epoch)
            self._set_state(connection, run_id, state, keep_owner=True)

    def forget(self, run_ids: Iterable[str]) -> None:
        """Delete everything runs have produced and set them back to pending.

        Their registration and epoch stay, so that whoever still executes one of them can append no
        more. Texts stay: other runs may share them.
        """
        self.flush()
        tables = (_schema.agents, _schema.edges, _schema.turns, _schema.calls, _schema.opinions)
        with self._writing() as connection:
            for some in _schema.chunks(run_ids):
                for table in tables:
                    connection.execute(delete(table).where(table.c.run_id.in_(some)))
                runs = _schema.runs
                values = {"status": "pending", "epoch": runs.c.epoch + 1, "owner": "", "error": ""}
                connection.execute(update(runs).where(runs.c.run_id.in_(some)).values(values))

    # Measurements

    def save_measurement(self, measurement: MeasurementRow) -> None:
        """Insert a measurement, or add kinds of text to the one with its id."""
        known = {row.measurement_id: row.kinds for row in self.measurements()}
        kinds = dict.fromkeys((*known.get(measurement.measurement_id, ()), *measurement.kinds))
        row = {
            "measurement_id": measurement.measurement_id,
            "classifier": measurement.classifier,
            "options": _schema.to_json(dict(measurement.options), "a classifier's options"),
            "points": _schema.to_json(measurement.points, "scale points"),
            "labels": _schema.to_json(measurement.labels, "scale labels"),
            "kinds": _schema.to_json(list(kinds), "text kinds"),
        }
        with self._writing() as connection:
            _schema.upsert(connection, _schema.measurements, [row])

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

    def measured_kinds(self, run_ids: Sequence[str]) -> dict[str, dict[str, set[str]]]:
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

    def kinds(self, run_ids: Sequence[str]) -> dict[str, set[str]]:
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
        with self._writing() as connection:
            _schema.insert_new(connection, _schema.opinions, [_opinion_row(run_id, row) for row in rows])

    # Turns, models and texts

    def turns(self, run_id: str) -> list[TurnRow]:
        """The stored turns of a run, by index."""
        table = _schema.turns
        columns = (table.c.turn, table.c.step, table.c.agent, table.c.act, table.c.kind, table.c.reads)
        statement = (
            select(*columns, _schema.texts.c.text)
            .join(_schema.texts, _schema.texts.c.text_id == table.c.text_id)
            .where(table.c.run_id == run_id)
            .order_by(table.c.turn)
        )
        with self.reading() as connection:
            rows = connection.execute(statement).all()
        return [TurnRow(*row[:5], tuple(json.loads(row.reads)), row.text) for row in rows]

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
        with as_store_error(f"cannot read the store {self.url}"), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection inside one write transaction; one at a time."""
        self._required_writer()
        with as_store_error(f"cannot write the store {self.url}"), self._lock, self._write_engine.begin() as connection:
            yield connection

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
            raise StoreError(
                f"run {run_id} is not held under epoch {epoch} (the store says {current}): "
                f"it was claimed by somebody else or never claimed"
            )

    def _set_state(self, connection: Connection, run_id: str, state: RunState, *, keep_owner: bool = False) -> None:
        values = {name: value for name, value in state._asdict().items() if name != "owner" or not keep_owner}
        connection.execute(update(_schema.runs).where(_schema.runs.c.run_id == run_id).values(values))


def _release(file: OpenFile, writer: Writer | None) -> None:
    try:
        if writer is not None:
            writer.close()
    finally:
        file.close()


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
        }
        for row in outcome.turns
    ]
    texts = {text_id(row.text): row.text for row in outcome.turns}
    writes: list[_Write] = [
        (_schema.upsert, _schema.agents, agents),
        (_schema.upsert, _schema.edges, [{"run_id": run_id, **row._asdict()} for row in outcome.edges]),
        (_schema.insert_new, _schema.texts, [{"text_id": key, "text": text} for key, text in texts.items()]),
        (_schema.upsert, _schema.turns, turns),
        (_schema.insert_new, _schema.opinions, [_opinion_row(run_id, row) for row in outcome.opinions]),
    ]
    if sum(len(rows) for _, _, rows in writes) <= _PORTION:
        yield writes
        return
    for write, table, rows in writes:
        for start in range(0, len(rows), _PORTION):
            yield [(write, table, rows[start : start + _PORTION])]
