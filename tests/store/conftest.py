"""A database of the test's own on a PostgreSQL server, and a way to it past the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests._postgres import Server
from tests.store._served import Ask, database_of


@pytest.fixture
def url(postgres: Server, tmp_path: Path) -> str:
    """Address of an empty database."""
    return postgres.database(str(tmp_path))


@pytest.fixture
def ask(postgres: Server, url: str) -> Ask:
    """Asks the test's database past the store."""

    def asked(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with postgres.connect(database_of(url)) as connection:
            found = connection.execute(statement, parameters)
            return found.fetchall() if found.description else []

    return asked
