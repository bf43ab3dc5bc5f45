"""Runs of classic sweeps: rows of measures, saved in batches, and the frame of a design's runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, case, func, select

from opinionsim.store import _schema
from opinionsim.store._rows import DesignRow, PointRow

if TYPE_CHECKING:
    import pandas as pd


def save(connection: Connection, rows: Sequence[PointRow], keys: Mapping[str, Mapping[str, Any]]) -> None:
    """Insert runs, and the keys of their points.

    Measures are added to the stored ones of a run; a run that failed before is replaced.
    """
    table = _schema.points
    _schema.insert_new(
        connection,
        _schema.point_keys,
        [_schema.sealed_row(_schema.point_keys, point_id=name, key=keys[name]) for name in sorted(keys)],
    )
    numbers = [row.replicate for row in rows]
    among = table.c.replicate.between(min(numbers, default=0), max(numbers, default=0))
    known = {(row.point_id, row.replicate): row for row in runs(connection, {row.point_id for row in rows}, among)}
    new, changed = [], []
    # One order for all processes that write prevents deadlocks.
    for row in sorted(rows, key=lambda each: (each.point_id, each.replicate)):
        before = known.get((row.point_id, row.replicate))
        if before is None:
            new.append(_sealed(row))
        elif row.error and not before.error:
            # What is known of a run is not lost because a further measure of it failed.
            changed.append(_sealed(before._replace(error=row.error)))
        else:
            changed.append(_sealed(row._replace(measures={**before.measures, **row.measures})))
    _schema.insert_new(connection, table, new)
    _schema.upsert(connection, table, changed)


def _sealed(row: PointRow) -> tuple[Any, ...]:
    measures = {name: _spelled(value) for name, value in row.measures.items()}
    return _schema.sealed_row(_schema.points, row, measures=measures, stopped=int(row.stopped))


def _spelled(value: float) -> float | str | None:
    """A measure as JSON holds it."""
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


def _row(row: Row[Any]) -> PointRow:
    held = _schema.read_json(_schema.points, row, "measures")
    measures = {name: math.nan if value is None else float(value) for name, value in held.items()}
    return PointRow(row.point_id, row.replicate, measures, row.time, bool(row.stopped), row.error)


def runs(connection: Connection, point_ids: Iterable[str], *where: ColumnElement[bool]) -> Iterator[PointRow]:
    """The stored runs of points, sorted by identity and replicate."""
    table = _schema.points
    ordered = select(table).where(*where).order_by(*table.primary_key)
    return map(_row, _schema.of_runs(connection, table, point_ids, ordered))


def keys(connection: Connection, point_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Everything that determines the numbers of each point with runs; a point's identity is the hash of this."""
    table = _schema.point_keys
    found = _schema.of_runs(connection, table, point_ids)
    return {row.point_id: _schema.read_json(table, row, "key") for row in found}


def failed(connection: Connection, point_ids: Iterable[str]) -> list[PointRow]:
    """The stored runs of points that failed, sorted by identity and replicate."""
    return list(runs(connection, point_ids, _schema.points.c.error != ""))


def counts(connection: Connection, point_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Numbers of finished and of failed runs of each point that has any."""
    table, found = _schema.points, dict[str, tuple[int, int]]()
    errors = func.coalesce(func.sum(case((table.c.error != "", 1), else_=0)), 0)
    columns = (table.c.point_id, func.count().label("runs"), errors.label("failed"))
    for some in _schema.portions(select(*columns).group_by(table.c.point_id), table.c.point_id, point_ids):
        for row in connection.execute(some):
            found[row.point_id] = (row.runs - int(row.failed), int(row.failed))
    return found


def frame(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """The frame of the runs of a design's points; empty for a design of other experiments."""
    from opinionsim.classic.points import sweep_frame

    listed = [(name, values) for name, values in design.manifest.get("points", ())]
    attrs = design.manifest.get("shared", {"model": ""})
    # Found intact: what the points are is as it was when they were run.
    keys(connection, (name for name, _ in listed))
    return sweep_frame(listed, runs(connection, (name for name, _ in listed)), attrs)
