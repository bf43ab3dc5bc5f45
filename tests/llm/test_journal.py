"""The journal that lives in memory; what every journal must do is in the contract suite."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from opinionsim.llm import EntryKey, Journal, MemoryJournal
from tests.support.rows import call
from tests.support.stores import JournalContract


class TestMemoryJournal(JournalContract):
    def journal(self, folder: Path) -> Journal:
        return MemoryJournal()


class TestMemoryJournalThatBeganFull(JournalContract):
    """Entries it was given change nothing about those it gets."""

    def journal(self, folder: Path) -> Journal:
        return MemoryJournal([call(1_000, "earlier"), call(3, "other", call="rating")])


def test_entries_are_listed_in_the_order_in_which_they_arrived() -> None:
    journal = MemoryJournal([call(5, "five")])
    for turn in (2, 9, 0):
        journal.append(call(turn, "later"))
    assert [record.key.turn for record in journal.records] == [5, 2, 9, 0]


def test_of_the_entries_it_is_given_the_first_under_a_key_stays() -> None:
    journal = MemoryJournal([call(0, "first"), call(0, "second")])
    assert [record.text for record in journal.records] == ["first"]


def test_a_list_of_entries_is_a_copy() -> None:
    journal = MemoryJournal()
    journal.records.append(call(0, "stray"))
    assert journal.records == []
    assert journal.lookup(EntryKey(0, "reply", 0)) is None


def test_an_entry_cannot_be_changed() -> None:
    record = call(0, "said")
    with pytest.raises(FrozenInstanceError):
        record.text = "never said"  # type: ignore[misc]
