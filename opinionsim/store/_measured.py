"""The stored instruments, the texts that each has not coded yet, and audits."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, delete, select

from opinionsim.errors import SpecError, StoreError
from opinionsim.messages import SPOKEN, WORDLESS
from opinionsim.store import _counts, _schema
from opinionsim.store._rows import AuditRow, InstrumentRow, LabelRow

#: The texts that an opinion is about: the index of a turn, and of a second one or None.
_Key = tuple[int, int | None]


def save_instrument(connection: Connection, instrument: InstrumentRow) -> None:
    """Insert an instrument, or check that the one with its id has the same options and code.

    Raises
    ------
    SpecError
        If options or code differ. Otherwise, for example, opinions from other weights with the same name would mix
        unnoticed.
    """
    table = _schema.instruments
    row = _schema.sealed_row(table, instrument)
    _schema.insert_new(connection, table, [row])
    own = select(table).where(table.c.instrument_id == instrument.instrument_id)
    (before,) = (_instrument(each) for each in _schema.sealed(connection, table, own))
    options = json.loads(_schema.to_json(instrument.options, "a classifier's options"))
    _require_same(instrument.classifier, dict(before.options), options)
    if before.code != instrument.code:
        raise SpecError(
            f"the code of the classifier {instrument.classifier!r} differs from the code that read opinions in this "
            f"store ({before.code or 'unknown'}; now {instrument.code or 'unknown'}). Raise its version, "
            "@opinionsim.part('classifier', version=...), to make it a new instrument, or undo the change"
        )


def instruments(connection: Connection) -> list[InstrumentRow]:
    """All instruments, sorted by id."""
    table = _schema.instruments
    found = [_instrument(row) for row in _schema.sealed(connection, table, select(table))]
    return sorted(found, key=lambda instrument: instrument.instrument_id)


def _instrument(row: Any) -> InstrumentRow:
    return _schema.made(InstrumentRow, _schema.instruments, row, context=bool(row.context))


def uncoded(
    connection: Connection, run_ids: Iterable[str], instrument_id: str, kinds: Collection[str], *, about: str = ""
) -> dict[str, list[_Key]]:
    """The texts of stored turns of runs that an instrument has not coded yet.

    Parameters
    ----------
    run_ids : iterable of str
        The runs.
    instrument_id : str
        The instrument, which need not be stored.
    kinds : collection of str
        Kinds of text it reads. Turns that were skipped have no text.
    about : str
        ``reads`` if each text is judged together with each message of another turn that its author saw; empty if each
        text is judged separately.

    Returns
    -------
    dict of str to list of (int, int or None)
        For each run id, sorted, the keys without an opinion, sorted: index of the turn, and of the other turn or None.
        Fully coded runs are absent.

    Raises
    ------
    StoreError
        If `about` has another value.
    """
    if about not in ("", "reads"):
        raise StoreError(f"instrument {instrument_id!r}: about must be empty or 'reads'; got {about!r}")
    found: dict[str, list[_Key]] = {}
    counted = _counts.stored(connection, run_ids)
    left = [run_id for run_id, counts in counted.items() if counts.uncoded(instrument_id, kinds, about)]
    for some in _schema.chunks(left):
        for run_id, key in _uncoded(connection, some, instrument_id, sorted(kinds), about):
            found.setdefault(run_id, []).append(key)
    return {run_id: found[run_id] for run_id in sorted(found)}


def _uncoded(
    connection: Connection, run_ids: list[str], instrument_id: str, kinds: list[str], about: str
) -> Iterator[tuple[str, _Key]]:
    """Texts of runs, or pairs of a text and a message its author was shown, without an opinion, by turn in a run."""
    turn, opinion = _schema.turns.c, _schema.opinions.c
    read = select(opinion.run_id, opinion.turn, opinion.about).where(opinion.instrument_id == instrument_id)
    coded = set(map(tuple, connection.execute(read.where(opinion.run_id.in_(run_ids)))))
    of_run = turn.run_id.in_(run_ids)
    silent = select(turn.run_id, turn.turn).where(of_run, turn.status.not_in(sorted(SPOKEN)))
    unshown = set(map(tuple, connection.execute(silent))) if about else set()
    of_readers = (
        select(turn.run_id, turn.turn, turn.reads)
        .where(of_run, turn.kind.in_(kinds), turn.status.notin_(WORDLESS))
        .order_by(turn.run_id, turn.turn)
    )
    for run_id, rows in groupby(connection.execute(of_readers), attrgetter("run_id")):
        readers = list(rows)
        # Parsing the lists of a run as one takes a fraction of the time.
        shown = json.loads(f"[{','.join(reader.reads for reader in readers)}]") if about else [(None,)] * len(readers)
        for reader, messages in zip(readers, shown, strict=True):
            # Messages from outside the run go by names.
            for other in sorted({message for message in messages if not isinstance(message, str)}):
                if (run_id, reader.turn, _schema.to_index(other)) not in coded and (run_id, other) not in unshown:
                    yield run_id, (reader.turn, other)


def _require_same(classifier: str, before: dict[str, Any], options: dict[str, Any]) -> None:
    differing = [name for name in {**before, **options} if before.get(name) != options.get(name)]
    if differing:
        told = ", ".join(f"{name} was {before.get(name)!r} and is {options.get(name)!r}" for name in differing)
        raise SpecError(
            f"measurement.classifier: {classifier!r} coded texts in this store and has changed since: {told}. Undo the "
            "change, name the difference under measurement.classifier.options, or use another store"
        )


def save_audit(connection: Connection, audit: AuditRow, labels: Sequence[LabelRow]) -> None:
    """Insert or replace an audit; its labels replace earlier ones of the same coders."""
    table = _schema.labels
    _schema.upsert(connection, _schema.audits, [_schema.sealed_row(_schema.audits, audit)])
    for coder in sorted({label.coder for label in labels}):
        connection.execute(delete(table).where(table.c.audit_id == audit.audit_id, table.c.coder == coder))
    _schema.insert_new(connection, table, [_schema.sealed_row(table, label) for label in labels])


def audits(connection: Connection) -> list[AuditRow]:
    """All audits of instruments, the most recent last."""
    table = _schema.audits
    found = _schema.sealed(connection, table, select(table).order_by(table.c.made_at, table.c.audit_id))
    return [_schema.made(AuditRow, table, row) for row in found]


def labels(connection: Connection, audit_id: str) -> list[LabelRow]:
    """The labels of an audit, by coder and text."""
    table = _schema.labels
    asked = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    return [
        _schema.made(LabelRow, table, row, value=math.nan if row.value is None else row.value)
        for row in _schema.sealed(connection, table, asked)
    ]


def audit_findings(connection: Connection) -> dict[tuple[str, str], str]:
    """Findings of audits, by instrument and model; audits by people take precedence, then the most recent."""
    said = sorted((each for audit in audits(connection) for each in audit.findings), key=lambda each: each["people"])
    return {(each["instrument_id"], each["model"]): str(each["text"]) for each in said}


def missing_labels(connection: Connection) -> Iterator[str]:
    """Coders of audits with fewer labels than texts, in words, not counting deleted texts."""
    run = _schema.runs.c
    there = set(map(tuple, connection.execute(select(run.run_id, run.generation))))
    for audit in audits(connection):
        given = {(label.coder, label.run_id, label.turn) for label in labels(connection, audit.audit_id)}
        texts = [text for text in audit.sample["texts"] if (text["run_id"], text["generation"]) in there]
        for coder in audit.coders:
            if lost := sum((coder, text["run_id"], text["turn"]) not in given for text in texts):
                yield f"{lost} labels of the coder {coder!r} in audit {audit.audit_id} are missing"
