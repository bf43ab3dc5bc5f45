"""Where tests of stores make one, how they look into it, and how they make it fail."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from opinionsim.store import OpinionRow, Store, TieRow, TurnRow
from opinionsim.store._reader import StoreReader

__all__ = ["Faults", "Moment", "StoreCase", "numbered", "seqs", "tables", "wait_until"]

#: Where in a transaction it fails: before anything is done, before it is committed, or when it is committed and only
#: the answer is lost.
Moment = Literal["before", "within", "after"]
#: How long something is waited for that will come, seconds: long, for it is only needed when a test fails.
_LONG_S = 60.0


class StoreCase(ABC):
    """Tests that need a store."""

    @abstractmethod
    def url(self, folder: Path) -> str:
        """Address of a store that is the test's own; equal for equal folders."""


class Faults:
    """Makes transactions of an open store fail.

    Parameters
    ----------
    store : Store
        Open for writing.
    moment : Moment
        Where they fail.
    patience_s : float, optional
        How long the store goes on trying; default as long as it does by itself.

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
        database = store._database
        self._write, passing = database.write, database.passes
        database.write = self._faulty  # type: ignore[method-assign]
        database.passes = lambda error: isinstance(error, _Fault) or passing(error)
        if patience_s is not None:
            database._patience_s = patience_s

    def _faulty(self, work: Callable[[Connection], Any], **options: Any) -> Any:
        return self._write(partial(self._carry_out, work), **options)

    def _carry_out(self, work: Callable[[Connection], Any], connection: Connection) -> Any:
        assert self.held.wait(_LONG_S)
        if not self.left:
            return work(connection)
        self.left -= 1
        if self._moment != "before":
            work(connection)
        if self._moment == "after":
            connection.exec_driver_sql("COMMIT")
        raise _Fault("no room on the disk")


class _Fault(SQLAlchemyError):
    """An error that passes when its time has come."""


def tables(
    store: StoreReader,
    names: Sequence[str] = ("runs", "agents", "edges", "ties", "turns", "journal", "prompts", "texts", "opinions"),
) -> dict[str, list[tuple[Any, ...]]]:
    """Whole tables, by default all that runs fill, sorted."""
    with store.reading() as connection:
        return {
            name: sorted((tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")), key=repr)  # noqa: S608
            for name in names
        }


def numbered(store: StoreReader, run_id: str = "r1") -> list[tuple[int, TurnRow | OpinionRow | TieRow]]:
    """What a run has led to, with its numbers."""
    return [(event.seq, event.row) for event in store.follow(run_id).poll()]


def seqs(store: StoreReader, run_id: str = "r1") -> list[int]:
    """Numbers of the rows a run has led to, as the tables have them."""
    with store.reading() as connection:
        found = [
            connection.exec_driver_sql(f"SELECT seq FROM {name} WHERE run_id = '{run_id}'").scalars().all()  # noqa: S608
            for name in ("turns", "ties", "opinions")
        ]
    return sorted(number for numbers in found for number in numbers)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something another thread does."""
    until = time.monotonic() + _LONG_S
    while not condition():
        assert time.monotonic() < until, "what the test waits for has not come"
        time.sleep(0.001)
