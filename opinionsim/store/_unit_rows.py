"""Units of work of studies that keep no runs: rows of values, saved in batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, func, select

from opinionsim.store import _schema
from opinionsim.store._rows import UnitRow


def save(connection: Connection, rows: Sequence[UnitRow], keys: Mapping[str, Mapping[str, Any]]) -> None:
    """Insert replicates of units, and the keys of these.

    Values are added to the stored ones of a replicate; one that failed before is replaced.
    """
    table = _schema.units
    _schema.insert_new(
        connection,
        _schema.unit_keys,
        [_schema.sealed_row(_schema.unit_keys, unit_id=name, key=keys[name]) for name in sorted(keys)],
    )
    numbers = [row.replicate for row in rows]
    among = table.c.replicate.between(min(numbers, default=0), max(numbers, default=0))
    known = {(row.unit_id, row.replicate): row for row in stored(connection, {row.unit_id for row in rows}, among)}
    new, changed = [], []
    # One order for all processes that write prevents deadlocks.
    for row in sorted(rows, key=lambda each: (each.unit_id, each.replicate)):
        before = known.get((row.unit_id, row.replicate))
        if before is None:
            new.append(_sealed(row))
        elif row.error and not before.error:
            # What is known of a unit is not lost because a further value of it failed.
            changed.append(_sealed(before._replace(error=row.error)))
        else:
            changed.append(_sealed(row._replace(values={**before.values, **row.values})))
    _schema.insert_new(connection, table, new)
    _schema.upsert(connection, table, changed)


def _sealed(row: UnitRow) -> tuple[Any, ...]:
    return _schema.sealed_row(_schema.units, row, held={name: _spelled(value) for name, value in row.values.items()})


def _spelled(value: Any) -> Any:
    """A value as JSON holds it: null for NaN, and a text for an infinite number."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def _row(row: Row[Any]) -> UnitRow:
    return UnitRow(row.unit_id, row.replicate, _schema.read_json(_schema.units, row, "held"), row.error)


def stored(connection: Connection, unit_ids: Iterable[str], *where: ColumnElement[bool]) -> Iterator[UnitRow]:
    """The stored replicates of units, sorted by identity and replicate."""
    table = _schema.units
    ordered = select(table).where(*where).order_by(*table.primary_key)
    return map(_row, _schema.of_runs(connection, table, unit_ids, ordered))


def keys(connection: Connection, unit_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Everything that determines the values of each stored unit; its identity is the hash of this."""
    table = _schema.unit_keys
    return {row.unit_id: _schema.read_json(table, row, "key") for row in _schema.of_runs(connection, table, unit_ids)}


def failed(connection: Connection, unit_ids: Iterable[str]) -> list[UnitRow]:
    """The stored replicates that failed, sorted by identity and number."""
    return list(stored(connection, unit_ids, _schema.units.c.error != ""))


def counts(connection: Connection, unit_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Numbers of finished and of failed replicates of each unit that has any."""
    table, found = _schema.units, dict[str, tuple[int, int]]()
    errors = func.coalesce(func.sum(case((table.c.error != "", 1), else_=0)), 0)
    columns = (table.c.unit_id, func.count().label("replicates"), errors.label("failed"))
    for some in _schema.portions(select(*columns).group_by(table.c.unit_id), table.c.unit_id, unit_ids):
        for row in connection.execute(some):
            found[row.unit_id] = (row.replicates - int(row.failed), int(row.failed))
    return found
