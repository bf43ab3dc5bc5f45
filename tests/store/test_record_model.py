"""The record of a run against a plain list, whatever is added in whatever order, cut off and resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from opinionsim.errors import StoreError
from opinionsim.llm import Entry, EntryKey
from opinionsim.store import HeldElsewhereError, OpinionRow, RunRecord, TieRow, TurnRow, open_store
from tests.support.rows import CAST, EDGES, begun, call, numbered, opinion_row, reply, seqs, turn_row
from tests.support.store_case import Moment, StoreFaults

_Row = TurnRow | TieRow | OpinionRow


def _turn(index: int) -> TurnRow:
    """The turn of that index, which nobody else is: some are skipped, and rest on no entry."""
    row = turn_row(index, range(index))
    return replace(row, text="", status="skipped") if index % 4 == 3 else row


def _tie(change: int) -> TieRow:
    ends = (0, 1) if change % 2 else (1, 0)
    return TieRow(change, *ends, *reversed(ends))


class _Run:
    """A run in a store, and what should be on record of it: all that was added, in order.

    Each method is something that may happen to it, and takes a small number that says which.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = open_store(url)
        self.log: list[Entry | _Row] = []
        #: How much of it is durable for certain.
        self.durable = 0
        self.generation = 0
        self.leases = 0
        self.stale: list[RunRecord] = []
        self._open()

    # What happens while a run is carried out

    def turn(self, number: int) -> None:
        row = _turn(number)
        if row.status != "skipped":
            self.record.append(reply(row))
            self._log_entry(reply(row))
        self.record.add_turn(row)
        self._log(row)

    def tie(self, number: int) -> None:
        row = _tie(self.n_ties)
        self.n_ties += 1
        self.record.add_tie(row)
        self._log(row)

    def opinions(self, number: int) -> None:
        # Each reads a text once, whatever it would say the second time.
        rows = [opinion_row(turn, f"m{number % 2}", about=None if number % 3 else 0) for turn in range(number)]
        self.record.add_opinions([*rows, *(replace(row, value=-2.0) for row in rows[:2])])
        for row in rows:
            assert self.record.has_opinion(row.instrument_id, row.turn, row.about)
            self._log(row)

    def entry(self, number: int) -> None:
        entry = call(number, call="reflect", attempt=number % 2, prompt=("You are Ada.", *["more"] * number))
        self.record.append(entry)
        self._log_entry(entry)
        found = self.record.lookup(entry.key)
        assert found.text == entry.text

    def flush(self, number: int) -> None:
        self.record.flush()
        self.durable = len(self.log)
        self.check()

    # What goes wrong

    def another_turn(self, number: int) -> None:
        if any(isinstance(row, TurnRow) and row.turn == number for row in self.log):
            with pytest.raises(StoreError, match=f"turn {number} differs from what the journal leads to"):
                self.record.add_turn(replace(_turn(number), text="another"))

    def fault(self, number: int) -> None:
        self.store.flush()
        self.durable = len(self.log)
        StoreFaults(self.store, get_args(Moment)[number % 3]).left = 1

    def after_its_lease(self, number: int) -> None:
        if self.stale:
            stale = self.stale[number % len(self.stale)]
            additions: list[Callable[[], None]] = [
                lambda: stale.add_turn(turn_row(100 + self.leases)),
                lambda: stale.append(call(100 + self.leases)),
                lambda: stale.add_opinions([opinion_row(100 + self.leases)]),
            ]
            with pytest.raises(HeldElsewhereError):
                _add_and_flush(stale, additions[number % 3])

    # Leases

    def resume(self, number: int) -> None:
        self.flush(number)
        self._open()

    def cut_off(self, number: int) -> None:
        """Somebody else leases the run while something may still be queued."""
        self._open()

    def reopen(self, number: int) -> None:
        self.store.close()
        self.durable = len(self.log)
        self.store = open_store(self.url)
        self._open()
        # Records of a closed store are of no use to anybody.
        self.stale.clear()

    def forget(self, number: int) -> None:
        self.store.forget(["r1"])
        self.log.clear()
        self.durable = 0
        # Forgetting that is carried out again, as its first success was not heard of, begins anew twice.
        before, self.generation = self.generation, self.store.states()["r1"].generation
        assert self.generation in (before + 1, before + 2)
        self._open()

    # What is on record

    def check(self) -> None:
        rows = [each for each in self.log if not isinstance(each, Entry)]
        assert numbered(self.store) == list(enumerate(rows, 1))
        assert seqs(self.store) == list(range(1, len(rows) + 1))
        entries = [each for each in self.log if isinstance(each, Entry)]
        assert self.store.entries("r1") == sorted(entries, key=lambda entry: entry.key)
        with self.store.reading() as connection:
            found = connection.exec_driver_sql("SELECT turn, call, attempt FROM journal ORDER BY entry")
            assert [EntryKey(*row) for row in found] == [entry.key for entry in entries]
        state = self.store.states()["r1"]
        assert (state.status, state.held, state.generation) == ("running", True, self.generation)

    def _open(self) -> None:
        if self.leases:
            self.stale.append(self.record)
        self.leases += 1
        self.record = begun(self.store, owner=f"host {self.leases}")
        self._take_what_is_left()
        self.record.begin(CAST, EDGES)
        self.n_ties = 0
        self.check()

    def _take_what_is_left(self) -> None:
        """Of what was added, a beginning is on record, and all that was durable is in it."""
        stored = len(seqs(self.store)) + len(self.store.entries("r1"))
        assert self.durable <= stored <= len(self.log)
        del self.log[stored:]
        self.durable = stored

    def _log(self, row: _Row) -> None:
        if not any(_same(row, each) for each in self.log):
            self.log.append(row)

    def _log_entry(self, entry: Entry) -> None:
        if not any(isinstance(each, Entry) and each.key == entry.key for each in self.log):
            self.log.append(replace(entry, prompt=None))


def _same(row: _Row, other: Entry | _Row) -> bool:
    """Whether something is on record in the place of a row."""
    if isinstance(row, OpinionRow):
        key = (row.instrument_id, row.turn, row.about)
        return isinstance(other, OpinionRow) and (other.instrument_id, other.turn, other.about) == key
    return row == other


def _add_and_flush(record: RunRecord, addition: Callable[[], None]) -> None:
    addition()
    record.flush()


_ADDITIONS = ("turn", "tie", "opinions", "entry")
_TROUBLE = ("flush", "another_turn", "fault", "after_its_lease", "resume", "cut_off", "reopen", "forget")
_STEPS = st.lists(st.tuples(st.sampled_from(_ADDITIONS * 3 + _TROUBLE), st.integers(0, 7)), max_size=30)


@settings(max_examples=25)
@given(steps=_STEPS)
def test_a_record_is_the_list_of_what_was_added(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("record")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opinionsim.store._database._FIRST_WAIT_S", 0.001)
        run = _Run(str(folder / "a.sqlite"))
        try:
            for name, number in steps:
                getattr(run, name)(number)
            run.flush(0)
            if run.leases == 1:
                run.record.require_all_met()
        finally:
            run.store.close()
        with open_store(run.url, write=False) as run.store:
            run.check()
