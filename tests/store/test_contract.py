from __future__ import annotations

from pathlib import Path

from opinionsim.llm import Journal, MemoryJournal
from opinionsim.testing._stores import JournalContract, StoreContract


class TestMemoryJournal(JournalContract):
    def journal(self, folder: Path) -> Journal:
        return MemoryJournal()


class TestSQLiteStore(StoreContract):
    def url(self, folder: Path) -> str:
        return f"sqlite:///{folder / 'store.sqlite'}"
