"""Budgets in a shared database: what experiments have paid, and what live workers hold for calls in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from sqlalchemy import Connection, delete, func, select, tuple_

from opinionsim.llm import Call, Entry, Limits, Usage
from opinionsim.store import _schema
from opinionsim.store._counts import FILTERED
from opinionsim.store._workers import live

_TOTALS, _HELD = _schema.totals, _schema.reservations
_KEY = tuple_(*_HELD.primary_key)


def reserve(
    connection: Connection, experiment_id: str, owner: str, call: Call, worst: Usage, limits: Limits
) -> tuple[bool, Usage]:
    """Reserve the most a call may cost, if that fits within limits beside what is paid and what live workers hold.

    Until the transaction ends, nobody else reserves or pays under this name.

    Parameters
    ----------
    connection : Connection
        Open for writing.
    experiment_id : str
        Who pays.
    owner : str
        The worker that calls. A reservation that another one left under the same key becomes its own.
    call : tuple
        Run, turn, part and attempt.
    worst : Usage
        The most it may cost.
    limits : Limits
        Limits of everything paid under this name.

    Returns
    -------
    reserved : bool
        Whether it was reserved.
    paid : Usage
        What is paid.
    """
    total = select(*_TOTALS.c[1:]).where(_TOTALS.c.experiment_id == experiment_id).with_for_update()
    if (row := connection.execute(total).first()) is None:
        _schema.insert_new(connection, _TOTALS, [(experiment_id, 0, 0, 0.0)])
        row = connection.execute(total).one()
    paid = Usage(*row)
    sums = [func.coalesce(func.sum(column), 0) for column in (_HELD.c.tokens, _HELD.c.money)]
    others = select(func.count(), *sums).where(_HELD.c.experiment_id == experiment_id, _KEY.not_in([call]))
    held = Usage(*connection.execute(others.where(_HELD.c.owner.in_(live(connection)))).one())
    if limits.exceeded_by(paid + held + worst):
        return False, paid
    _schema.upsert(connection, _HELD, [(*call, experiment_id, owner, worst.tokens, worst.money)])
    return True, paid


def release(connection: Connection, call: Call) -> None:
    """End the reservation of a call that cost nothing."""
    connection.execute(delete(_HELD).where(_KEY.in_([call])))


def settle(connection: Connection, entries: Sequence[tuple[str, str, Entry]]) -> None:
    """End the reservations of calls whose replies the transaction records, and add their cost to what is paid.

    A call whose tokens its provider did not tell cost what was reserved for it.

    Parameters
    ----------
    connection : Connection
        Open for writing. Nobody else reserves under the names that pay until its transaction ends: call this last.
    entries : sequence of tuple
        Experiment that pays, run, and entry.
    """
    calls = [(run_id, *entry.key) for _, run_id, entry in entries]
    ended = delete(_HELD).where(_KEY.in_(calls)).returning(*_HELD.primary_key, _HELD.c.tokens, _HELD.c.money)
    held = {tuple(row[:4]): row[4:] for row in connection.execute(ended)}
    paid: dict[str, Usage] = {}
    for (payer, _, entry), call in zip(entries, calls, strict=True):
        cost = (0, 0.0) if entry.finish_reason == FILTERED else held.get(call, (0, 0.0))
        if entry.input_tokens is not None and entry.output_tokens is not None:
            cost = (entry.input_tokens + entry.output_tokens, entry.cost or 0.0)
        paid[payer] = paid.get(payer, Usage()) + Usage(1, *cost)
    # One order for all transactions prevents deadlocks.
    _schema.upsert(connection, _TOTALS, [(payer, *astuple(paid[payer])) for payer in sorted(paid)], adding=True)


def left_behind(connection: Connection) -> dict[str, int]:
    """Numbers of calls by experiment that were in flight when their worker ended, and have not been asked again."""
    gone = select(_HELD.c.experiment_id, func.count()).where(_HELD.c.owner.not_in(live(connection)))
    return {row[0]: row[1] for row in connection.execute(gone.group_by(_HELD.c.experiment_id))}
