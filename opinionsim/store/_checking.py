"""Checking a whole store: every row, every count, and everything that rows refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sqlalchemy import Column, Connection, Table, inspect, select

from opinionsim.errors import DamagedError
from opinionsim.messages import prompt_identity
from opinionsim.store import _counts, _measured, _queries, _schema
from opinionsim.store._stored_journal import checked_text

#: Columns by which rows refer to the rows of another table.
_REFERENCES = (
    *((table.c.text_id, _schema.texts) for table in (_schema.turns, _schema.journal, _schema.prompts)),
    (_schema.journal.c.reasoning_id, _schema.texts),
    (_schema.journal.c.prompt_hash, _schema.prompts),
    (_schema.prompts.c.before, _schema.prompts),
    (_schema.opinions.c.instrument_id, _schema.instruments),
    (_schema.labels.c.audit_id, _schema.audits),
    *((table.c.run_id, _schema.runs) for table in (_schema.counts, _schema.waits, _schema.seats, *_schema.PRODUCED)),
)

#: Statements that name the triggers of a database, by dialect.
_TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace",
}


def checks(dialect: str) -> Iterator[Callable[[Connection], Iterator[str]]]:
    """Functions that return what is damaged or missing in a store, each in a separate transaction.

    Parameters
    ----------
    dialect : str
        Name of the dialect of its database.
    """
    if dialect == "sqlite":
        yield _file
    yield partial(_strangers, triggers=_TRIGGERS[dialect])
    for table in _schema.TABLES.sorted_tables:
        yield partial(_rows, table=table)
    yield lambda connection: iter(_counts.missing(connection).values())
    for column, there in _REFERENCES:
        yield partial(_references, column=column, there=there)
    yield _designs
    yield _measured.missing_labels


def _file(connection: Connection) -> Iterator[str]:
    """Faults in the structure of a SQLite file."""
    for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars():
        if line != "ok":
            yield f"the file is damaged: {line}"


def _strangers(connection: Connection, triggers: str) -> Iterator[str]:
    """Triggers and views, none of which a store has: they change what is written or read."""
    names = [f"trigger {name}" for name in connection.exec_driver_sql(triggers).scalars()]
    for name in [*names, *(f"view {name}" for name in inspect(connection).get_view_names())]:
        yield f"opinionsim did not make the {name}; drop it, or restore the store from a backup"


def _rows(connection: Connection, table: Table) -> Iterator[str]:
    """Rows that are not as they were written."""
    try:
        for row in _schema.stored_rows(connection, select(table)):
            try:
                if table is _schema.texts:
                    checked_text(row.text_id, row.text)
                elif table is _schema.prompts:
                    if row.prompt_id != prompt_identity(row.before, row.role, row.text_id):
                        yield f"prompt {row.prompt_id} has changed since it was written"
                elif "crc" in table.columns:
                    _schema.intact(table, row)
            except DamagedError as error:
                yield error.args[0]
    except DamagedError as error:
        yield f"in table {table.name} {error.args[0]}"


def _references(connection: Connection, column: Column[str], there: Table) -> Iterator[str]:
    """Rows that refer to a row that is missing."""
    own, (key,) = column.table, there.primary_key
    found = there.alias()
    named = select(own).outerjoin(found, found.c[key.name] == column).where(found.c[key.name].is_(None), column != "")
    if column is _schema.journal.c.prompt_hash:
        named = named.where(_schema.journal.c.source != "instrument")
    for row in _schema.stored_rows(connection, named):
        place = ", ".join(f"{each.name} {getattr(row, each.name)}" for each in own.primary_key)
        yield f"{there.name} lacks the row {getattr(row, column.name)} that the row of {place} in {own.name} refers to"


def _designs(connection: Connection) -> Iterator[str]:
    """Runs that designs name and the store lacks, and what was paid for forgotten ones."""
    there = set(connection.scalars(select(_schema.runs.c.run_id)))
    for design in _queries.designs(connection):
        for run_id in sorted({run.run_id for run in design.runs} - there):
            yield f"run {run_id} of design {design.design} of {design.name} is missing"
    _queries.spending(connection)
