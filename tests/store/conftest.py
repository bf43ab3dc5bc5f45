"""Stores of the test's own, and a way to a database past the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgres import Ask, Server


@pytest.fixture
def url(postgres: Server, tmp_path: Path) -> str:
    """Address of an empty database."""
    return postgres.database(str(tmp_path))


@pytest.fixture(params=["sqlite", "postgresql"])
def each_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a store that does not exist yet, on each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    return str(request.getfixturevalue("postgres").database(str(tmp_path)))


@pytest.fixture
def ask(postgres: Server, url: str) -> Ask:
    """Asks the test's database past the store."""
    return postgres.asking(url)
