"""What tests of stores on a PostgreSQL server do behind the store's back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Asks the test's database past the store: a statement and its parameters, answered with rows.
Ask = Callable[..., list[tuple[Any, ...]]]


def database_of(url: str) -> str:
    """Name of the database in an address."""
    return url.split("?")[0].rsplit("/", 1)[1]


def cut(ask: Ask) -> None:
    """End every connection of a store to the test's database."""
    ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def age(ask: Ask, seconds: float) -> None:
    """Let time pass since the last signs of life."""
    ask("UPDATE workers SET heartbeat_at = heartbeat_at - %s", seconds)
