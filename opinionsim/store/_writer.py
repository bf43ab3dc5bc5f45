"""The queue of rows of an open store, which one thread writes in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Table, delete, tuple_

from opinionsim.errors import StoreError
from opinionsim.messages import text_id
from opinionsim.store import _schema, _stored, _workers
from opinionsim.store._database import Database, reason
from opinionsim.store._leases import current_epochs

if TYPE_CHECKING:
    from opinionsim.llm import Entry
    from opinionsim.messages import Prompt
    from opinionsim.store._counts import Counts
    from opinionsim.store._run_record import RunRecord

#: Seconds between the starts of two transactions, unless one takes longer: a quarter of the promised 0.2 s.
_PERIOD_S = 0.05
#: Items a transaction holds at most, so that a burst becomes durable portion by portion.
_BATCH = 2000
#: Items in the queue above which callers that can wait should.
_FULL = 5 * _BATCH
#: Seconds an item may wait before no further call should be made: longer than any transaction should take.
_LATE_S = 1.0
#: Texts and prompts remembered as stored; beyond it they are all forgotten, and the database drops the repeats.
_KNOWN = 1 << 17


class _Item(NamedTuple):
    """A row to be made durable."""

    at: float
    """Monotonic time at which it was queued."""
    record: RunRecord
    table: Table
    number: int
    """Its number in the record of its run: `seq`, or `entry` for a journal entry."""
    content: Any


class NewTexts:
    """Texts and prompts that rows of one transaction refer to and that are not known to be stored.

    Parameters
    ----------
    known : set of str
        Identities of the texts and prompts that are known to be stored.

    Attributes
    ----------
    texts : dict of str to str
        By content identity.
    prompts : dict of str to tuple
        Rows of the table, by identity.
    counts : dict of RunRecord to Counts
        Counts of the runs after the transaction.
    """

    def __init__(self, known: set[str]) -> None:
        self._known = known
        self.texts: dict[str, str] = {}
        self.prompts: dict[str, tuple[str, str, str, str]] = {}
        self.counts: dict[RunRecord, Counts] = {}

    def text(self, text: str) -> str:
        """Add a text; returns its identity."""
        key = text_id(text)
        if key not in self._known:
            self.texts[key] = text
        return key

    def prompt(self, prompt: Prompt) -> None:
        """Add the part of a prompt that is not known to be stored."""
        link = prompt
        while link.before is not None and link.message is not None:
            if link.identity in self._known or link.identity in self.prompts:
                return
            if link.text_id not in self._known:
                self.texts[link.text_id] = link.message.content
            self.prompts[link.identity] = (link.identity, link.before.identity, link.message.role, link.text_id)
            link = link.before


class Writer:
    """One thread that writes queued rows in transactions, in the order of the queue.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: deque[_Item | threading.Event] = deque()
        self._work = threading.Event()
        self._urgent = threading.Event()
        self._closed = False
        self._failure: str | None = None
        self._reported = False
        self._known: set[str] = set()
        #: Since when the oldest item of the transaction under way has waited.
        self._writing_since: float | None = None
        #: Whether the transaction under way has failed and is tried again.
        self._stalled = False
        self._thread = threading.Thread(target=self._loop, name="opinionsim-record", daemon=True)
        self._thread.start()

    @property
    def behind(self) -> bool:
        """Whether rows cannot be made durable now. If so, make no further call."""
        since = self._writing_since
        return self._failure is None and (self._stalled or (since is not None and time.monotonic() - since > _LATE_S))

    @property
    def full(self) -> bool:
        """Whether so many rows are queued that callers should wait if they can."""
        return len(self._queue) > _FULL and self._failure is None

    def forget_known(self) -> None:
        """Forget which texts are known to be stored."""
        self._known.clear()

    def put(self, record: RunRecord, table: Table, number: int, content: Any) -> None:
        """Queue a row of a run."""
        self._queue.append(_Item(time.monotonic(), record, table, number, content))
        if not self._work.is_set():
            self._work.set()

    def flush(self) -> None:
        """Wait until all queued rows are durable.

        Raises
        ------
        StoreError
            If the database has rejected a row since the store was opened.
        """
        self._drain_now()
        self.check()

    def check(self) -> None:
        """Raise the error that stopped the writer, if there is one."""
        if self._failure is not None:
            self._reported = True
            raise StoreError(self._failure)
        if self._closed:
            raise StoreError("the store is closed; open it again to continue")

    def close(self) -> None:
        """Write all queued rows and end the thread.

        Raises
        ------
        StoreError
            If rows were lost and no earlier error reported this.
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
        # A garbage-collected store is closed by the thread that collects it, which may be the writer.
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
            # Items that waited for a long transaction do not wait for the period as well.
            self._urgent.wait(max(0.0, began + _PERIOD_S - time.monotonic()))
            began = time.monotonic()
            # Cleared before draining: an item queued from here on sets the flag again.
            self._work.clear()
            self._urgent.clear()
            self._drain()

    def _drain(self) -> None:
        # What arrives meanwhile waits for the next period: a transaction costs as much as a hundred rows.
        left = len(self._queue)
        while left:
            batch: list[_Item] = []
            waiting: threading.Event | None = None
            while left and waiting is None and len(batch) < _BATCH:
                left -= 1
                item = self._queue.popleft()
                if isinstance(item, threading.Event):
                    waiting = item
                else:
                    batch.append(item)
            self._write(batch)
            if waiting is not None:
                waiting.set()

    def _write(self, batch: list[_Item]) -> None:
        if not batch or self._failure is not None:
            return
        self._writing_since = batch[0].at
        try:
            written = self._database.write(partial(self._insert, batch), failed=self._note_failure)
        except Exception as error:
            # The thread must survive any error, to release waiting callers and to tell them.
            self._failure = f"the store could not save {len(batch)} or more entries: {reason(error)}"
            return
        finally:
            self._writing_since, self._stalled = None, False
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known.update(written.texts)
        self._known.update(written.prompts)
        for record, counts in written.counts.items():
            record.counts = counts
        for item in batch:
            item.record.kept(item.content)

    def _note_failure(self) -> None:
        self._stalled = True

    def _insert(self, batch: list[_Item], connection: Connection) -> NewTexts:
        """Write items and the texts that are not known to be stored; returns these texts."""
        epochs = current_epochs(connection, {item.record.run_id for item in batch})
        rows: dict[Table, list[tuple[Any, ...]]] = {}
        texts = NewTexts(self._known)
        paid: list[tuple[str, str, Entry]] = []
        answered: list[tuple[str, int, str, int]] = []
        for item in batch:
            run = item.record
            if epochs.get(run.run_id) != run.epoch:
                run.refuse(registered=run.run_id in epochs)
            elif not run.refused:
                try:
                    made = _stored.row_of(item.table, run.run_id, run.payer, item.number, item.content, texts)
                except StoreError as error:
                    # An item that cannot be made a row stops only its own run.
                    run.refuse(error)
                else:
                    rows.setdefault(item.table, []).append(made)
                    if item.table is _schema.journal and item.content.source == "model":
                        paid.append((run.payer, run.run_id, item.content))
                    elif item.table is _schema.journal and item.content.source == "person":
                        answered.append((run.run_id, *item.content.key))
                    elif item.table is _schema.waits:
                        continue
                    if run not in texts.counts:
                        texts.counts[run] = run.counts.copy()
                    run.count(texts.counts[run], item.table, item.content)
        # Workers share texts and prompts: one order for all prevents deadlocks.
        _schema.insert_new(connection, _schema.texts, sorted(texts.texts.items()))
        _schema.insert_new(connection, _schema.prompts, [texts.prompts[key] for key in sorted(texts.prompts)])
        _schema.upsert(connection, _schema.waits, rows.pop(_schema.waits, []))
        if answered:
            connection.execute(delete(_schema.waits).where(tuple_(*_schema.waits.primary_key).in_(answered)))
        for table, own in rows.items():
            _schema.insert_new(connection, table, own)
        counted = [counts.sealed(run.run_id) for run, counts in texts.counts.items()]
        _schema.upsert(connection, _schema.counts, counted)
        if self._database.shared and paid:
            _workers.settle(connection, paid)
        return texts
