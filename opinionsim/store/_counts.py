"""Sealed counts of the stored rows of each run. They show missing rows and payments without reading the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Table, func, select

from opinionsim.errors import DamagedError
from opinionsim.llm import CallName, Entry
from opinionsim.store import _schema
from opinionsim.store._rows import Paid

#: The finish reason of prompts that a provider refused to answer.
FILTERED = "content_filter"
#: Numbers of rows, and sums of their check sums, by table and run id.
_Tallies = Mapping[str, Mapping[str, tuple[int, int]]]


class Counts:
    """Counts of the stored rows of a run.

    Attributes
    ----------
    rows : Counter of tuple of str
        Rows by ``(TABLE,)``; texts by ``("texts", KIND)``; pairs of a text and a message that its author saw by
        ``("pairs", KIND)``; opinions of these by ``("coded", INSTRUMENT, KIND)`` and ``("judged", INSTRUMENT, KIND)``.
    paid : dict of str to Paid
        Usage of its calls, by the experiment that paid.
    models : set of (str, str, str)
        Name of the requested model, then model and fingerprint as the provider returned them.
    """

    def __init__(
        self, rows: Mapping[tuple[str, ...], int] = {}, paid: Mapping[str, Paid] = {}, models: Iterable[Any] = ()
    ) -> None:
        self.rows = Counter(rows)
        self.paid = dict(paid)
        self.models: set[tuple[str, str, str]] = set(models)

    def copy(self) -> Counts:
        """A copy of the counts, which you can add to."""
        return Counts(self.rows, self.paid, self.models)

    def of(self, *tables: Table) -> int:
        """Total number of rows in some tables."""
        return sum(self.rows[table.name,] for table in tables)

    def uncoded(self, instrument_id: str, kinds: Iterable[str], about: str) -> bool:
        """Whether an instrument has not coded all texts of some kinds, or all their pairs."""
        what, done = ("pairs", "judged") if about else ("texts", "coded")
        return any(self.rows[what, kind] != self.rows[done, instrument_id, kind] for kind in kinds)

    def add_call(self, entry: Entry, payer: str, agent: str) -> None:
        """Add the reply of a model; `agent` is the model of the agent whose turn it is."""
        tokens = entry.input_tokens, entry.output_tokens, entry.cached_tokens
        untold = entry.finish_reason != FILTERED if tokens[0] is None else tokens[1] is None
        cost, saved = (_schema.to_nullable(amount) or 0.0 for amount in (entry.cost, entry.saved))
        read, written, cached = (int(number or 0) for number in tokens)
        used = Paid(1, read, written, cost, int(untold), cached, saved)
        self.paid[payer] = self.paid.get(payer, Paid()) + used
        if entry.model or entry.fingerprint:
            asked = CallName.of(entry.key.call).judge or agent
            self.models.add((asked, entry.model, entry.fingerprint))

    def sealed(self, run_id: str) -> tuple[Any, ...]:
        """The row of the counts of a run."""
        rows = [[*key, number] for key, number in self.rows.items()]
        return _schema.sealed_row(
            _schema.counts, run_id=run_id, rows=rows, paid=self.paid, models=[list(each) for each in self.models]
        )


def stored(connection: Connection, run_ids: Iterable[str] | None = None) -> dict[str, Counts]:
    """The counts of runs, by default of all; runs that were never leased have none."""
    table = _schema.counts
    found = {}
    for row in _schema.of_runs(connection, table, run_ids):
        read = {name: _schema.read_json(table, row, name) for name in ("rows", "paid", "models")}
        found[row.run_id] = Counts(
            {tuple(key): number for *key, number in read["rows"]},
            {payer: Paid(*used) for payer, used in read["paid"].items()},
            map(tuple, read["models"]),
        )
    return found


def missing(
    connection: Connection, run_ids: Iterable[str] | None = None, tables: Iterable[Table] = _schema.PRODUCED
) -> dict[str, str]:
    """Missing or surplus rows of runs in tables, in words, by run id; by default of all runs with faults."""
    wanted = None if run_ids is None else list(run_ids)
    return _faults(connection, wanted, _tallies(connection, wanted, tables))


def contents(connection: Connection, run_ids: Iterable[str]) -> dict[str, str]:
    """What stands for all rows that runs have produced: the number of rows and their check sums, by table.

    Two states of a run with the same content give the same frames, whichever store they are in.

    Raises
    ------
    DamagedError
        Naming the first run with a missing row.
    """
    found = _tallies(connection, wanted := list(run_ids), _schema.PRODUCED)
    for problem in _faults(connection, wanted, found).values():
        raise DamagedError(problem)
    return {run_id: str([own.get(run_id) for own in found.values()]) for run_id in wanted}


def _tallies(connection: Connection, wanted: list[str] | None, tables: Iterable[Table]) -> _Tallies:
    """The number of stored rows of runs, and the sum of their check sums, by table and run id."""
    found = {}
    for table in tables:
        counting = select(table.c.run_id, func.count(), func.sum(table.c.crc)).group_by(table.c.run_id)
        asked = _schema.portions(counting, table.c.run_id, wanted)
        # A server gives sums of a type of their own.
        found[table.name] = {own: (n, int(total)) for some in asked for own, n, total in connection.execute(some)}
    return found


def _faults(connection: Connection, wanted: list[str] | None, tallies: _Tallies) -> dict[str, str]:
    """Where the numbers of rows are not those of the sealed counts, in words, by run id."""
    known, run = stored(connection, wanted), _schema.runs.c
    leased = select(run.run_id).where(run.epoch > 0)
    found = {
        run_id: f"the counts of run {run_id} are missing"
        for some in _schema.portions(leased, run.run_id, wanted)
        for run_id in connection.scalars(some)
        if run_id not in known
    }
    for table, there in tallies.items():
        for run_id in known.keys() | there.keys():
            number, counted = there.get(run_id, (0,))[0], known[run_id].rows[table,] if run_id in known else 0
            if number != counted:
                found.setdefault(run_id, f"table {table} has {number} rows of run {run_id}, not {counted}")
    return found


def require_whole(connection: Connection, run_ids: Iterable[str], tables: Iterable[Table] = _schema.PRODUCED) -> None:
    """Check by their sealed counts that no row of runs is missing from tables.

    Raises
    ------
    DamagedError
        Naming the first run with a missing row.
    """
    for problem in missing(connection, run_ids, tables).values():
        raise DamagedError(problem)
