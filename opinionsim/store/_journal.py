"""The durable journal: appends return at once, one thread writes them down in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from typing import Any

from sqlalchemy import Connection, func, select

from opinionsim.errors import StoreError
from opinionsim.llm import CallKey, CallRecord
from opinionsim.messages import text_id
from opinionsim.store import _schema
from opinionsim.store._database import Database, reason

__all__ = ["HeldElsewhereError", "SQLJournal", "Writer", "current_epochs", "stored_records"]

#: From the start of one transaction to that of the next, unless it takes longer: a quarter of the promised 0.2 s.
_PERIOD_S = 0.05
#: Entries a transaction holds at most, so that a burst becomes durable portion by portion.
_BATCH = 2000
#: Texts remembered as written; beyond it the memory starts anew and the database drops the repeats.
_KNOWN_TEXTS = 1 << 17
#: Fields of a record that are read back from its row.
_COPIED = tuple(field.name for field in fields(CallRecord) if field.name not in ("key", "prompt"))


class HeldElsewhereError(StoreError):
    """A run was not held, or not any longer, by whoever wanted to change it; nothing was changed."""


class SQLJournal:
    """The journal of one run under one claim.

    Entries are visible to :meth:`lookup` as soon as they are appended and survive the death of the
    process, in the order they were appended, at most 0.2 s later. What the operating system has been
    handed survives the process; after a power cut the last transactions may be missing, never a middle one.
    Made by :meth:`opinionsim.store.Store.journal`.
    """

    def __init__(self, writer: Writer, run_id: str, epoch: int, records: Iterable[CallRecord]) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self._writer = writer
        self._records = {record.key: record for record in records}
        self._refused: HeldElsewhereError | None = None

    def lookup(self, key: CallKey) -> CallRecord | None:
        """The entry under `key`, or None; its `prompt` is None once the entry is durable."""
        return self._records.get(key)

    def append(self, record: CallRecord) -> None:
        """Add an entry; the first under a key stays.

        Raises
        ------
        HeldElsewhereError
            If the claim has passed to somebody else.
        StoreError
            If the store is closed, or an earlier entry could not be kept.
        """
        self._check()
        if self._records.setdefault(record.key, record) is record:
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
    def records(self) -> list[CallRecord]:
        """All entries: those found in the store sorted by key, then the others in the order they arrived."""
        return list(self._records.values())

    def _check(self) -> None:
        self._writer.check()
        if self._refused is not None:
            raise self._refused

    def _refuse(self) -> None:
        self._refused = HeldElsewhereError(
            f"run {self.run_id} has been claimed by somebody else since epoch {self.epoch}; its new calls are not kept"
        )

    def _forget_prompt(self, record: CallRecord) -> None:
        """Drop a durable entry's prompt: cumulative prompts of a whole sweep would not fit in memory."""
        self._records[record.key] = _without_prompt(record.key, record)


class Writer:
    """One thread that turns appended entries of all runs into transactions.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: deque[tuple[SQLJournal, CallRecord] | threading.Event] = deque()
        self._work = threading.Event()
        self._urgent = threading.Event()
        self._closed = False
        self._failure: str | None = None
        self._reported = False
        self._known: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="opinionsim-journal", daemon=True)
        self._thread.start()

    def put(self, journal: SQLJournal, record: CallRecord) -> None:
        """Queue an entry."""
        self._queue.append((journal, record))
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
            batch: list[tuple[SQLJournal, CallRecord]] = []
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

    def _write(self, batch: list[tuple[SQLJournal, CallRecord]]) -> None:
        if not batch or self._failure is not None:
            return
        try:
            written = self._database.write(partial(self._insert, batch))
        except Exception as error:
            # Whatever it was, the thread must live to answer those who wait, and they must be told.
            self._failure = f"the store could not keep {len(batch)} or more calls: {reason(error)}"
            return
        if len(self._known) > _KNOWN_TEXTS:
            self._known.clear()
        self._known.update(written)
        for journal, record in batch:
            journal._forget_prompt(record)

    def _insert(self, batch: list[tuple[SQLJournal, CallRecord]], connection: Connection) -> dict[str, str]:
        """Write entries and the texts that are not known to be there; these texts."""
        epochs = current_epochs(connection, {journal.run_id for journal, _ in batch})
        rows: list[dict[str, Any]] = []
        new_texts: dict[str, str] = {}
        for journal, record in batch:
            if epochs.get(journal.run_id) == journal.epoch:
                rows.append(self._row(journal.run_id, record, new_texts))
            else:
                journal._refuse()
        _schema.insert_texts(connection, new_texts)
        _schema.insert_new(connection, _schema.calls, rows)
        return new_texts

    def _row(self, run_id: str, record: CallRecord, new_texts: dict[str, str]) -> dict[str, Any]:
        reply = self._identify(record.text, new_texts)
        reasoning = self._identify(record.reasoning, new_texts) if record.reasoning else None
        prompt = None
        if record.prompt is not None:
            lines = [f"{message.role}:{self._identify(message.content, new_texts)}" for message in record.prompt]
            prompt = "\n".join(lines)
        return {
            "run_id": run_id,
            "turn": record.key.turn,
            "part": record.key.part,
            "attempt": record.key.attempt,
            "step": record.step,
            "agent": record.agent,
            "act": record.act,
            "prompt_hash": record.prompt_hash,
            "prompt": prompt,
            "text_id": reply,
            "outcome": record.outcome,
            "reason": record.reason,
            "seed": record.seed,
            "dropped": record.dropped,
            "finish_reason": record.finish_reason,
            "model": record.model,
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "latency_s": record.latency_s,
            "arrived_at": record.arrived_at,
            "condition": record.condition,
            "reasoning_id": reasoning,
            "cached_tokens": record.cached_tokens,
            "reasoning_tokens": record.reasoning_tokens,
            "cost": record.cost,
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


def stored_records(connection: Connection, run_id: str) -> list[CallRecord]:
    """Entries of a run sorted by key, without prompts."""
    calls, texts = _schema.calls, _schema.texts
    thoughts = texts.alias()
    statement = (
        select(calls, texts.c.text, func.coalesce(thoughts.c.text, "", type_=thoughts.c.text.type).label("reasoning"))
        .join(texts, texts.c.text_id == calls.c.text_id)
        .outerjoin(thoughts, thoughts.c.text_id == calls.c.reasoning_id)
        .where(calls.c.run_id == run_id)
        .order_by(calls.c.turn)
    )
    found = [_without_prompt(CallKey(row.turn, row.part, row.attempt), row) for row in connection.execute(statement)]
    # Databases order texts each in its own way.
    return sorted(found, key=lambda record: record.key)


def _without_prompt(key: CallKey, source: Any) -> CallRecord:
    """A record from a table row or another record, which name their parts alike."""
    values = {name: getattr(source, name) for name in _COPIED}
    return CallRecord(key, **values)
