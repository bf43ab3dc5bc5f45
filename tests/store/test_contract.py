from __future__ import annotations

from pathlib import Path

import pytest

from opinionsim.llm import Journal, MemoryJournal
from tests.support.postgres import Server
from tests.support.stores import JournalContract, StoreContract


class TestMemoryJournal(JournalContract):
    def journal(self, folder: Path) -> Journal:
        return MemoryJournal()


class TestSQLiteStore(StoreContract):
    def url(self, folder: Path) -> str:
        return f"sqlite:///{folder / 'store.sqlite'}"


class TestPostgreSQLStore(StoreContract):
    _server: Server

    @pytest.fixture(autouse=True)
    def _served(self, postgres: Server) -> None:
        self._server = postgres

    def url(self, folder: Path) -> str:
        return self._server.database(str(folder))
