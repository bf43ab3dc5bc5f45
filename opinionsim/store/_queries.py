"""What a store is asked: queries inside a read transaction, each given the connection."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, func, or_, select

from opinionsim.messages import ChatMessage
from opinionsim.store import _schema
from opinionsim.store._rows import CanaryRow, ExperimentRow, ExperimentRun, Paid, RunState, TurnRow

__all__ = ["canaries", "experiments", "fields", "models", "prompt", "states", "texts", "turns", "usage"]

#: The finish reason of prompts that a provider refused to answer.
_FILTERED = "content_filter"


def experiments(connection: Connection) -> list[ExperimentRow]:
    """All experiments, the most recently saved last."""
    table = _schema.experiments
    return [
        ExperimentRow(
            row.experiment_id,
            row.name,
            row.created_at,
            json.loads(row.spec),
            json.loads(row.manifest),
            tuple(_experiment_run(run) for run in json.loads(row.runs)),
        )
        for row in connection.execute(select(table).order_by(table.c.saved_at))
    ]


def states(connection: Connection, run_ids: Sequence[str] | None) -> dict[str, RunState]:
    """Where runs stand, all of them for None, by run id."""
    run = _schema.runs.c
    statement = select(run.run_id, run.status, run.epoch, run.owner, run.error)
    if run_ids is None:
        rows = list(connection.execute(statement))
    else:
        portions = _schema.chunks(run_ids)
        rows = [row for some in portions for row in connection.execute(statement.where(run.run_id.in_(some)))]
    return {row.run_id: RunState(*row[1:]) for row in sorted(rows, key=lambda row: str(row.run_id))}


def fields(connection: Connection, run_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The fields runs were registered with, by run id."""
    run = _schema.runs.c
    statement = select(run.run_id, run.fields)
    return {
        row.run_id: json.loads(row.fields)
        for some in _schema.chunks(run_ids)
        for row in connection.execute(statement.where(run.run_id.in_(some)))
    }


def turns(connection: Connection, run_id: str) -> list[TurnRow]:
    """The stored turns of a run, by index."""
    table, text = _schema.turns, _schema.texts
    columns = (table.c.turn, table.c.step, table.c.agent, table.c.act, table.c.kind, table.c.reads)
    statement = (
        select(*columns, text.c.text, table.c.condition)
        .join(text, text.c.text_id == table.c.text_id)
        .where(table.c.run_id == run_id)
        .order_by(table.c.turn)
    )
    rows = connection.execute(statement)
    return [TurnRow(*row[:5], tuple(json.loads(row.reads)), row.text, row.condition) for row in rows]


def models(connection: Connection, run_ids: Iterable[str]) -> set[str]:
    """Identities that chat models returned with their replies to runs."""
    call = _schema.calls.c
    statement = select(call.model).distinct()
    portions = _schema.chunks(run_ids)
    found = {model for some in portions for model in connection.scalars(statement.where(call.run_id.in_(some)))}
    return {model for model in found if model}


def usage(connection: Connection, run_ids: Iterable[str]) -> Paid:
    """What the stored calls of runs have used."""
    call = _schema.calls.c
    untold = or_(
        call.input_tokens.is_(None) & (call.finish_reason != _FILTERED),
        call.input_tokens.is_not(None) & call.output_tokens.is_(None),
    )
    sums = [func.coalesce(func.sum(column), 0) for column in (call.input_tokens, call.output_tokens, call.cost)]
    statement = select(func.count(), func.count().filter(untold), *sums).select_from(_schema.calls)
    found = [connection.execute(statement.where(call.run_id.in_(some))).one() for some in _schema.chunks(run_ids)]
    calls, uncounted, taken, given, cost = zip(*found, strict=True) if found else ((), (), (), (), ())
    return Paid(sum(calls), int(sum(taken)), int(sum(given)), math.fsum(cost), sum(uncounted))


def texts(connection: Connection, text_ids: Iterable[str]) -> dict[str, str]:
    """Texts by content identity; unknown identities are absent from the answer."""
    table = _schema.texts
    return {
        row.text_id: row.text
        for some in _schema.chunks(text_ids)
        for row in connection.execute(select(table).where(table.c.text_id.in_(some)))
    }


def prompt(connection: Connection, run_id: str, turn: int, part: str, attempt: int) -> list[ChatMessage] | None:
    """The literal prompt of a journal entry; None where there is no such entry, or it has no prompt."""
    key = {"run_id": run_id, "turn": turn, "part": part, "attempt": attempt}
    spelled = connection.scalars(select(_schema.journal.c.prompt).filter_by(**key)).one_or_none()
    if spelled is None:
        return None
    lines = [line.split(":", 1) for line in spelled.splitlines()]
    found = texts(connection, (text_id for _, text_id in lines))
    return [ChatMessage(role, found[text_id]) for role, text_id in lines]


def canaries(connection: Connection, experiment_id: str) -> list[CanaryRow]:
    """Every answer to a canary question of an experiment, in the order they were asked."""
    table, text = _schema.canaries, _schema.texts
    columns = [text.c.text if name == "text" else table.c[name] for name in CanaryRow._fields]
    statement = (
        select(*columns).join(text, text.c.text_id == table.c.text_id).where(table.c.experiment_id == experiment_id)
    )
    rows = [CanaryRow(*row) for row in connection.execute(statement)]
    return sorted(rows, key=lambda row: (row.asked_at, row.model, row.moment, row.position))


def _experiment_run(stored: dict[str, Any]) -> ExperimentRun:
    instruments = {instrument_id: tuple(kinds) for instrument_id, kinds in stored.pop("instruments").items()}
    return ExperimentRun(**stored, instruments=instruments)
