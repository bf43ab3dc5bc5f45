"""The journal that lives in memory; what every journal must do is in the contract suite."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from opinionsim.llm import Entry, EntryKey, Journal, MemoryJournal
from tests.support.stores import JournalContract


def _record(turn: int, text: str, call: str = "reply", attempt: int = 0) -> Entry:
    return Entry(EntryKey(turn, call, attempt), 1, 0, "write", "hash", text)


class TestMemoryJournal(JournalContract):
    def journal(self, folder: Path) -> Journal:
        return MemoryJournal()


class TestMemoryJournalThatBeganFull(JournalContract):
    """Entries it was given change nothing about those it gets."""

    def journal(self, folder: Path) -> Journal:
        return MemoryJournal([_record(1_000, "earlier"), _record(3, "other", "rating")])


def test_entries_are_listed_in_the_order_in_which_they_arrived() -> None:
    journal = MemoryJournal([_record(5, "five")])
    for turn in (2, 9, 0):
        journal.append(_record(turn, "later"))
    assert [record.key.turn for record in journal.records] == [5, 2, 9, 0]


def test_of_the_entries_it_is_given_the_first_under_a_key_stays() -> None:
    journal = MemoryJournal([_record(0, "first"), _record(0, "second")])
    assert [record.text for record in journal.records] == ["first"]


def test_a_list_of_entries_is_a_copy() -> None:
    journal = MemoryJournal()
    journal.records.append(_record(0, "stray"))
    assert journal.records == []
    assert journal.lookup(EntryKey(0, "reply", 0)) is None


def test_an_entry_cannot_be_changed() -> None:
    record = _record(0, "said")
    with pytest.raises(FrozenInstanceError):
        record.text = "never said"  # type: ignore[misc]
