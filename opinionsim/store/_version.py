"""Creating the tables of a store, and refusing stores with another version of the schema."""

from __future__ import annotations

import time

from sqlalchemy import Connection, inspect, select

from opinionsim.errors import StoreError
from opinionsim.store._schema import TABLES, schema_version

#: Raised whenever a table changes.
VERSION = 6


def create(connection: Connection) -> None:
    """Create all tables in an empty database, inside the caller's transaction."""
    TABLES.create_all(connection)
    connection.execute(schema_version.insert(), {"version": VERSION, "applied_at": time.time()})


def holds_store(connection: Connection, where: str) -> bool:
    """Whether a database holds a store of this version; False for an empty one.

    Parameters
    ----------
    connection : Connection
        To the database.
    where : str
        Name of the database in errors.

    Raises
    ------
    StoreError
        If the database belongs to another program, or to another version of this one.
    """
    names = set(inspect(connection).get_table_names())
    if not names:
        return False
    if not names >= {"schema_version", "experiments", "runs", "journal"}:
        raise StoreError(f"{where} is a database of another program, not an opinionsim store; give another one")
    version = max(connection.scalars(select(schema_version.c.version)), default=0)
    if version != VERSION:
        advice = (
            "install the version of opinionsim that wrote it, or a later one"
            if version > VERSION
            else "read it with the version of opinionsim that wrote it, or give a new store"
        )
        raise StoreError(
            f"{where} has schema version {version}, this version of opinionsim knows version {VERSION}; {advice}"
        )
    return True


def require_store(connection: Connection, where: str) -> None:
    """Refuse to read a database that holds no store.

    Raises
    ------
    StoreError
        If it is empty, or as for :func:`holds_store`.
    """
    if not holds_store(connection, where):
        raise StoreError(f"{where} is empty, not yet an opinionsim store; run an experiment into it first")
