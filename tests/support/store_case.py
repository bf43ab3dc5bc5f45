"""Base class of tests of stores, and tools that make a store fail."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.store import RunRecord, Store, open_store
from tests.support.rows import begun
from tests.support.waiting import PATIENCE_S

#: Where in a transaction it fails: before anything is done, before it is committed, or when it is committed and only
#: the answer is lost.
Moment = Literal["before", "within", "after"]


class StoreCase(ABC):
    """Tests that need a store."""

    @abstractmethod
    def url(self, folder: Path) -> str:
        """Address of a store that is the test's own; equal for equal folders."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """An open store."""
        with open_store(self.url(tmp_path)) as store:
            yield store

    @pytest.fixture
    def record(self, store: Store) -> RunRecord:
        """Record of run ``r1`` under the first lease of it."""
        return begun(store)

    @pytest.fixture
    def reader(self, store: Store, tmp_path: Path) -> Iterator[Store]:
        """The same store, opened for reading beside it."""
        with open_store(self.url(tmp_path), write=False) as reader:
            yield reader


class StoreFaults:
    """Makes transactions of an open store fail.

    Parameters
    ----------
    store : Store
        Open for writing.
    moment : Moment
        Where they fail.
    patience_s : float, optional
        How long the store goes on trying, seconds; default the store's own.

    Attributes
    ----------
    left : int
        How many attempts are still to fail; negative for all.
    held : threading.Event
        Transactions wait for it before they do anything; set at first.
    """

    def __init__(self, store: Store, moment: Moment = "before", patience_s: float | None = None) -> None:
        self.left = 0
        self.held = threading.Event()
        self.held.set()
        self._moment = moment
        self._patience = {} if patience_s is None else {"patience_s": patience_s}
        database = store._database
        self._write, passing = database.write, database.passes
        database.write = self._faulty  # type: ignore[method-assign]
        database.passes = lambda error: isinstance(error, _Fault) or passing(error)

    def _faulty(self, work: Callable[[Connection], Any], **options: Any) -> Any:
        return self._write(partial(self._carry_out, work), **self._patience | options)

    def _carry_out(self, work: Callable[[Connection], Any], connection: Connection) -> Any:
        assert self.held.wait(PATIENCE_S)
        if not self.left:
            return work(connection)
        self.left -= 1
        if self._moment != "before":
            work(connection)
        if self._moment == "after":
            connection.exec_driver_sql("COMMIT")
        raise _Fault("no room on the disk")


class _Fault(SQLAlchemyError):
    """An error that passes when the transaction is tried again."""
