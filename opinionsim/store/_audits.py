"""Audits: samples of texts, the labels that coders gave them, and what was found for each instrument and model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, delete, select

from opinionsim.store import _schema
from opinionsim.store._rows import AuditRow, LabelRow


def save(connection: Connection, audit: AuditRow, labels: Sequence[LabelRow]) -> None:
    """Insert or replace an audit, with labels in the place of those that their coders gave before."""
    table = _schema.labels
    _schema.upsert(connection, _schema.audits, [_schema.sealed_row(_schema.audits, audit)])
    for coder in sorted({label.coder for label in labels}):
        connection.execute(delete(table).where(table.c.audit_id == audit.audit_id, table.c.coder == coder))
    _schema.insert_new(connection, table, [_schema.sealed_row(table, label) for label in labels])


def audits(connection: Connection) -> list[AuditRow]:
    """All audits, the one made last at the end."""
    table = _schema.audits
    found = _schema.sealed(connection, table, select(table).order_by(table.c.made_at, table.c.audit_id))
    return [_schema.made(AuditRow, table, row) for row in found]


def labels(connection: Connection, audit_id: str) -> list[LabelRow]:
    """The labels of an audit, by coder and text."""
    table = _schema.labels
    asked = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    return [_schema.made(LabelRow, table, row) for row in _schema.sealed(connection, table, asked)]


def found(connection: Connection) -> dict[tuple[str, str], str]:
    """What audits found, by instrument and model; one by people goes before any other, then the last made."""
    said = sorted((each for audit in audits(connection) for each in audit.findings), key=lambda each: each["people"])
    return {(each["instrument_id"], each["model"]): str(each["text"]) for each in said}


def missing(connection: Connection) -> Iterator[str]:
    """Coders of audits with fewer labels than texts, in words; texts that were forgotten have none."""
    run = _schema.runs.c
    there = set(map(tuple, connection.execute(select(run.run_id, run.generation))))
    for audit in audits(connection):
        given = {(label.coder, label.run_id, label.turn) for label in labels(connection, audit.audit_id)}
        texts = [text for text in audit.sample["texts"] if (text["run_id"], text["generation"]) in there]
        for coder in audit.coders:
            if lost := sum((coder, text["run_id"], text["turn"]) not in given for text in texts):
                yield f"{lost} labels of the coder {coder!r} in audit {audit.audit_id} are missing"
