"""The record of one run under one lease: its journal, agents, turns, ties and opinions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table

from opinionsim.errors import DamagedError, StoreError
from opinionsim.llm import Entry, EntryKey, Question
from opinionsim.messages import SPOKEN, WORDLESS, text_id
from opinionsim.store import _counts, _queries, _schema
from opinionsim.store._counts import Counts
from opinionsim.store._leases import HeldElsewhereError
from opinionsim.store._rows import AgentRow, EdgeRow, OpinionRow, TieRow, TurnRow
from opinionsim.store._stored_journal import stored_entries
from opinionsim.store._writer import Writer


class Found(NamedTuple):
    """The stored rows of a run when its record is opened."""

    entries: list[Entry]
    """Its journal, by key, without prompts."""
    turns: dict[int, TurnRow]
    """Its turns, each with the identity of its text in the place of the text."""
    ties: list[TieRow]
    """Its ties that moved, in order."""
    opinions: set[tuple[str, int, int | None]]
    """Instrument, turn and second turn of its opinions."""
    counts: Counts
    """Counts of its rows."""


class RunRecord:
    """The record of a run under one lease: its journal, agents, turns, ties and opinions.

    Rows are stored in the order in which they were added, at most 0.2 s later, so no stored row depends on a missing
    one. Stored rows survive the death of the process. After a power cut, only the last transactions may be missing.
    Stored rows never change, and adding an equal row again does nothing. :meth:`opinionsim.store.Store.record` makes
    the record; use it from one thread.

    Attributes
    ----------
    run_id : str
        The run.
    epoch : int
        Epoch of the lease.
    payer : str
        Identity of the experiment that pays for calls.
    counts : Counts
        Counts of the rows that are durable; replaced by the writer.
    """

    def __init__(self, writer: Writer, run_id: str, epoch: int, payer: str, found: Found) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self.payer = payer
        self._writer = writer
        self._entries = {entry.key: entry for entry in found.entries}
        self._turns = dict(found.turns)
        self._unmet = set(found.turns)
        self._ties = found.ties
        self._n_ties = 0
        self._opinions = found.opinions
        self._last = found.counts.of(*_schema.NUMBERED)
        #: Agents and ties at the start that were put on record.
        self._begun = [found.counts.of(table) for table in (_schema.agents, _schema.edges)]
        self._models: dict[int, str] = {}
        self.counts = found.counts
        self._refused: StoreError | None = None

    # The journal

    def lookup(self, key: EntryKey) -> Entry | None:
        """The entry under `key`, or None; its `prompt` is None once the entry is durable."""
        return self._entries.get(key)

    def append(self, record: Entry) -> None:
        """Add an entry unless its key already has one.

        Raises
        ------
        HeldElsewhereError
            If the lease has passed to another owner.
        StoreError
            If the store is closed, or an earlier row could not be stored.
        """
        self.check()
        if self._entries.setdefault(record.key, record) is record:
            self._writer.put(self, _schema.journal, len(self._entries), record)

    async def wait_for(self, question: Question) -> None:
        """Record that a person is about to be asked; returns when the record is durable.

        Raises
        ------
        StoreError
            As for :meth:`append`.
        """
        self.check()
        self._writer.put(self, _schema.waits, 0, question)
        await asyncio.to_thread(self.flush)

    @property
    def entries(self) -> list[Entry]:
        """All entries: first those from the store, sorted by key, then the others in order of arrival."""
        return list(self._entries.values())

    @property
    def behind(self) -> bool:
        """Whether rows cannot be made durable now. If so, make no further call."""
        return self._writer.behind

    @property
    def full(self) -> bool:
        """Whether so many rows wait to be written that callers should wait if they can."""
        return self._writer.full

    # What the run leads to

    def begin(self, agents: Iterable[AgentRow], edges: Iterable[EdgeRow]) -> None:
        """Add the agents and initial ties of the run, in the same order each time."""
        self.check()
        for place, (table, rows) in enumerate(((_schema.agents, agents), (_schema.edges, edges))):
            for number, row in enumerate(rows):
                if isinstance(row, AgentRow):
                    self._models[row.agent] = row.model
                if number >= self._begun[place]:
                    self._begun[place] += 1
                    self._writer.put(self, table, 0, row)

    def add_turn(self, row: TurnRow) -> None:
        """Add a published turn.

        Raises
        ------
        StoreError
            If another turn is stored in its place, or as for :meth:`append`.
        """
        self._unmet.discard(row.turn)
        told = replace(row, text=text_id(row.text))
        before = self._turns.setdefault(row.turn, told)
        if before is told:
            self._put(_schema.turns, row)
        elif before != told:
            raise self._differs(f"turn {row.turn}")

    def add_tie(self, row: TieRow) -> None:
        """Add a moved tie; call this in the order of the moves.

        Raises
        ------
        StoreError
            If another tie is stored in its place, or as for :meth:`append`.
        """
        number = self._n_ties
        self._n_ties += 1
        if number >= len(self._ties):
            self._put(_schema.ties, (number, row))
        elif self._ties[number] != row:
            raise self._differs(f"the change {number} of its ties")

    def add_opinions(self, rows: Iterable[OpinionRow]) -> None:
        """Add opinions of instruments; a text that is already coded keeps its opinion."""
        for row in rows:
            if not self.has_opinion(row.instrument_id, row.turn, row.about):
                self._opinions.add((row.instrument_id, row.turn, row.about))
                self._put(_schema.opinions, row)

    def has_opinion(self, instrument_id: str, turn: int, about: int | None = None) -> bool:
        """Whether an instrument has coded a turn, or a turn together with another."""
        return (instrument_id, turn, about) in self._opinions

    def require_all_met(self) -> None:
        """Check at the end of a run that every stored turn and tie was added again.

        Raises
        ------
        StoreError
            If one was not.
        """
        if self._unmet:
            raise self._differs(f"turn {min(self._unmet)}")
        if self._n_ties < len(self._ties):
            raise self._differs(f"the change {self._n_ties} of its ties")

    # Durability

    def flush(self) -> None:
        """Wait until everything is durable.

        Raises
        ------
        StoreError
            If a row could not be stored.
        """
        self._writer.flush()
        self.check()

    def check(self) -> None:
        """Raise the error that prevents the record from being written, if there is one."""
        self._writer.check()
        if self._refused is not None:
            raise self._refused

    def count(self, counts: Counts, table: Table, content: Any) -> None:
        """Add a row to counts; called by the writer's thread."""
        rows = counts.rows
        rows[table.name,] += 1
        if isinstance(content, Entry):
            if content.source == "model":
                counts.add_call(content, self.payer, self._models.get(content.agent, ""))
        elif isinstance(content, TurnRow):
            if content.status not in WORDLESS:
                read = {each for each in content.reads if not isinstance(each, str)}
                rows["texts", content.kind] += 1
                rows["pairs", content.kind] += sum(self._told(turn)[1] in SPOKEN for turn in read)
        elif isinstance(content, OpinionRow):
            done = "coded" if content.about is None else "judged"
            rows[done, content.instrument_id, self._told(content.turn)[0]] += 1

    def _told(self, turn: int) -> tuple[str, str]:
        """Kind and status of a turn that was added."""
        row = self._turns.get(turn)
        return ("", "answered") if row is None else (row.kind, row.status)

    def kept(self, content: Any) -> None:
        """Note that a row is durable; called by the writer's thread."""
        if isinstance(content, Entry):
            # The prompts of a sweep would not fit in memory, and copying an entry takes longer than writing it.
            object.__setattr__(content, "prompt", None)

    @property
    def refused(self) -> bool:
        """Whether no more rows of the run are stored."""
        return self._refused is not None

    def refuse(self, error: StoreError | None = None, *, registered: bool = True) -> None:
        """Store no more rows, because of an error or because the lease ended; called by the writer."""
        if error is not None:
            self._refused = StoreError(f"run {self.run_id} cannot be stored: {error}")
        elif registered:
            self._refused = HeldElsewhereError(
                f"run {self.run_id} has been leased by another worker since epoch {self.epoch}, so its new entries are "
                "not stored"
            )
        else:
            self._refused = StoreError(
                f"run {self.run_id} is no longer registered, because the store was emptied or replaced during the run"
            )

    def _put(self, table: Any, content: Any) -> None:
        self.check()
        self._last += 1
        self._writer.put(self, table, self._last, content)

    def _differs(self, what: str) -> DamagedError:
        return DamagedError(
            f"run {self.run_id}: {what} differs from what the journal leads to; start the run anew with --fresh, or "
            "restore the store from a backup"
        )


def found(connection: Connection, run_id: str) -> Found:
    """The stored rows of a run.

    Raises
    ------
    StoreError
        If a row is damaged or missing.
    """
    turns, opinions = (_schema.of_runs(connection, each, [run_id]) for each in (_schema.turns, _schema.opinions))
    _counts.require_whole(connection, [run_id])
    return Found(
        stored_entries(connection, run_id),
        {row.turn: _schema.made(TurnRow, _schema.turns, row, text=row.text_id) for row in turns},
        _queries.ties(connection, run_id),
        {(row.instrument_id, row.turn, _schema.from_index(row.about)) for row in opinions},
        _counts.stored(connection, [run_id])[run_id],
    )
