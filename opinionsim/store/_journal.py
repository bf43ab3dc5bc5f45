"""The durable journal: appends return at once, one thread writes them down in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from typing import Any

from sqlalchemy import Connection, FromClause, func, select

from opinionsim.errors import StoreError
from opinionsim.llm import Entry, EntryKey
from opinionsim.messages import text_id
from opinionsim.store import _schema
from opinionsim.store._database import Database, reason

__all__ = ["HeldElsewhereError", "SQLJournal", "Writer", "current_epochs", "stored_entries"]

#: From the start of one transaction to that of the next, unless it takes longer: a quarter of the promised 0.2 s.
_PERIOD_S = 0.05
#: Entries a transaction holds at most, so that a burst becomes durable portion by portion.
_BATCH = 2000
#: Texts remembered as written; beyond it the memory starts anew and the database drops the repeats.
_KNOWN_TEXTS = 1 << 17
#: Fields of an entry that are read back from its row.
_COPIED = tuple(field.name for field in fields(Entry) if field.name not in ("key", "prompt"))


class HeldElsewhereError(StoreError):
    """A run was not held, or not any longer, by whoever wanted to change it; nothing was changed."""


class SQLJournal:
    """The journal of one run under one claim.

    Entries are visible to :meth:`lookup` as soon as they are appended and survive the death of the
    process, in the order they were appended, at most 0.2 s later. What the operating system has been
    handed survives the process; after a power cut the last transactions may be missing, never a middle one.
    Made by :meth:`opinionsim.store.Store.journal`.
    """

    def __init__(self, writer: Writer, run_id: str, epoch: int, entries: Iterable[Entry]) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self._writer = writer
        self._entries = {entry.key: entry for entry in entries}
        self._refused: HeldElsewhereError | None = None

    def lookup(self, key: EntryKey) -> Entry | None:
        """The entry under `key`, or None; its `prompt` is None once the entry is durable."""
        return self._entries.get(key)

    def append(self, record: Entry) -> None:
        """Add an entry; the first under a key stays.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else.
        StoreError
            If the store is closed, or an earlier entry could not be kept.
        """
        self._check()
        if self._entries.setdefault(record.key, record) is record:
            self._writer.put(self, record)

    def flush(self) -> None:
        """Wait until every entry is durable.

        Raises
        ------
        StoreError
            If one could not be kept.
        """
        self._writer.flush()
        self._check()

    @property
    def entries(self) -> list[Entry]:
        """All entries: those found in the store sorted by key, then the others in the order they arrived."""
        return list(self._entries.values())

    def _check(self) -> None:
        self._writer.check()
        if self._refused is not None:
            raise self._refused

    def _refuse(self) -> None:
        self._refused = HeldElsewhereError(
            f"run {self.run_id} has been claimed by somebody else since epoch {self.epoch}; "
            f"its new entries are not kept"
        )

    def _forget_prompt(self, entry: Entry) -> None:
        """Drop a durable entry's prompt: cumulative prompts of a whole sweep would not fit in memory."""
        self._entries[entry.key] = _without_prompt(entry.key, entry)


class Writer:
    """One thread that turns appended entries of all runs into transactions.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: deque[tuple[SQLJournal, Entry] | threading.Event] = deque()
        self._work = threading.Event()
        self._urgent = threading.Event()
        self._closed = False
        self._failure: str | None = None
        self._reported = False
        self._known: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="opinionsim-journal", daemon=True)
        self._thread.start()

    def put(self, journal: SQLJournal, entry: Entry) -> None:
        """Queue an entry."""
        self._queue.append((journal, entry))
        if not self._work.is_set():
            self._work.set()

    def flush(self) -> None:
        """Wait until all queued entries are durable.

        Raises
        ------
        StoreError
            If the database refused any entry since the store was opened.
        """
        self._drain_now()
        self.check()

    def check(self) -> None:
        """Raise what stopped the writer, if anything did."""
        if self._failure is not None:
            self._reported = True
            raise StoreError(self._failure)
        if self._closed:
            raise StoreError("the store is closed; open it again to go on")

    def close(self) -> None:
        """Write what is queued and end the thread.

        Raises
        ------
        StoreError
            If entries were lost and nobody has been told yet.
        """
        if self._closed:
            return
        self._drain_now()
        self._closed = True
        self._urgent.set()
        self._work.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._drain()
        if self._failure is not None and not self._reported:
            self.check()

    def _drain_now(self) -> None:
        # A garbage-collected store is closed by whichever thread collects it, and that may be the writer.
        if threading.current_thread() is self._thread:
            self._drain()
        elif self._thread.is_alive():
            done = threading.Event()
            self._queue.append(done)
            self._urgent.set()
            self._work.set()
            done.wait()

    def _loop(self) -> None:
        began = -_PERIOD_S
        while not self._closed:
            self._work.wait()
            # Entries that arrived while the last transaction was written have waited for it, and wait no longer.
            self._urgent.wait(max(0.0, began + _PERIOD_S - time.monotonic()))
            began = time.monotonic()
            # Cleared before draining: whatever is queued from here on finds the flag down and raises it again.
            self._work.clear()
            self._urgent.clear()
            self._drain()

    def _drain(self) -> None:
        while self._queue:
            batch: list[tuple[SQLJournal, Entry]] = []
            waiting: threading.Event | None = None
            while self._queue and waiting is None and len(batch) < _BATCH:
                item = self._queue.popleft()
                if isinstance(item, threading.Event):
                    waiting = item
                else:
                    batch.append(item)
            self._write(batch)
            if waiting is not None:
                waiting.set()

    def _write(self, batch: list[tuple[SQLJournal, Entry]]) -> None:
        if not batch or self._failure is not None:
            return
        try:
            written = self._database.write(partial(self._insert, batch))
        except Exception as error:
            # Whatever it was, the thread must live to answer those who wait, and they must be told.
            self._failure = f"the store could not keep {len(batch)} or more entries: {reason(error)}"
            return
        if len(self._known) > _KNOWN_TEXTS:
            self._known.clear()
        self._known.update(written)
        for journal, entry in batch:
            journal._forget_prompt(entry)

    def _insert(self, batch: list[tuple[SQLJournal, Entry]], connection: Connection) -> dict[str, str]:
        """Write entries and the texts that are not known to be there; these texts."""
        epochs = current_epochs(connection, {journal.run_id for journal, _ in batch})
        rows: list[dict[str, Any]] = []
        new_texts: dict[str, str] = {}
        for journal, entry in batch:
            if epochs.get(journal.run_id) == journal.epoch:
                rows.append(self._row(journal.run_id, entry, new_texts))
            else:
                journal._refuse()
        _schema.insert_texts(connection, new_texts)
        _schema.insert_new(connection, _schema.journal, rows)
        return new_texts

    def _row(self, run_id: str, entry: Entry, new_texts: dict[str, str]) -> dict[str, Any]:
        reply = self._identify(entry.text, new_texts)
        reasoning = self._identify(entry.reasoning, new_texts) if entry.reasoning else None
        prompt = None
        if entry.prompt is not None:
            lines = [f"{message.role}:{self._identify(message.content, new_texts)}" for message in entry.prompt]
            prompt = "\n".join(lines)
        return {
            "run_id": run_id,
            "turn": entry.key.turn,
            "part": entry.key.part,
            "attempt": entry.key.attempt,
            "source": entry.source,
            "step": entry.step,
            "agent": entry.agent,
            "act": entry.act,
            "prompt_hash": entry.prompt_hash,
            "prompt": prompt,
            "text_id": reply,
            "outcome": entry.outcome,
            "reason": entry.reason,
            "seed": entry.seed,
            "dropped": entry.dropped,
            "finish_reason": entry.finish_reason,
            "model": entry.model,
            "input_tokens": entry.input_tokens,
            "output_tokens": entry.output_tokens,
            "latency_s": entry.latency_s,
            "arrived_at": entry.arrived_at,
            "condition": entry.condition,
            "reasoning_id": reasoning,
            "cached_tokens": entry.cached_tokens,
            "reasoning_tokens": entry.reasoning_tokens,
            "cost": entry.cost,
        }

    def _identify(self, text: str, new_texts: dict[str, str]) -> str:
        key = text_id(text)
        if key not in self._known:
            new_texts[key] = text
        return key


def current_epochs(connection: Connection, run_ids: Iterable[str]) -> dict[str, int]:
    """Epochs of runs, their rows held until the transaction ends where the database locks rows."""
    epochs: dict[str, int] = {}
    run = _schema.runs.c
    for some in _schema.chunks(run_ids):
        # In one order for all transactions, so that none waits for another in a circle.
        statement = select(run.run_id, run.epoch).where(run.run_id.in_(some)).order_by(run.run_id).with_for_update()
        epochs.update((run_id, epoch) for run_id, epoch in connection.execute(statement))
    return epochs


def stored_entries(connection: Connection, table: FromClause, run_id: str) -> list[Entry]:
    """Entries of a run sorted by key, without prompts.

    Parameters
    ----------
    connection : Connection
        To the database.
    table : FromClause
        The journal, or the calls in it.
    run_id : str
        The run.
    """
    entry, texts = table.c, _schema.texts
    thoughts = texts.alias()
    statement = (
        select(table, texts.c.text, func.coalesce(thoughts.c.text, "", type_=thoughts.c.text.type).label("reasoning"))
        .join(texts, texts.c.text_id == entry.text_id)
        .outerjoin(thoughts, thoughts.c.text_id == entry.reasoning_id)
        .where(entry.run_id == run_id)
        .order_by(entry.turn)
    )
    found = [_without_prompt(EntryKey(row.turn, row.part, row.attempt), row) for row in connection.execute(statement)]
    # Databases order texts each in its own way.
    return sorted(found, key=lambda each: each.key)


def _without_prompt(key: EntryKey, origin: Any) -> Entry:
    """An entry from a table row or another entry, which name their parts alike."""
    values = {name: getattr(origin, name) for name in _COPIED}
    return Entry(key, **values)
