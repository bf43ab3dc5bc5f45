"""Changing what lies on disk past the package: a SQLite store, by hand or as other code would write it, and texts."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select
from sqlalchemy.pool import NullPool

import opinionsim.prompts
from opinionsim.store import _schema

#: Tables whose rows have a check sum, by name.
SEALED = {table.name: table for table in _schema.runs.metadata.sorted_tables if "crc" in table.columns}
seal = _schema.seal


def edit(path: object, statement: str, *values: Any) -> int:
    """Carry out a statement as somebody with a database browser would; the number of rows it changed."""
    with closing(sqlite3.connect(str(path))) as connection, connection:
        return connection.execute(statement, values).rowcount


def rewrite(path: object, statement: str, *values: Any) -> int:
    """Carry out a statement and renew the check sums, as if the rows had been written like this."""
    changed = edit(path, statement, *values)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        for table in SEALED.values():
            rows = connection.execute(select(table)).all()
            for row in rows:
                sound = seal(table, row[:-1])
                if sound != tuple(row):
                    key = [column == row._mapping[column.name] for column in table.primary_key.columns]
                    connection.execute(table.update().where(*key).values(crc=sound[-1]))
    return changed


def own_pack(folder: Path) -> Path:
    """A copy of the default prompt pack, to be changed."""
    return shutil.copytree(Path(opinionsim.prompts.__file__).parent / "default", folder)


def reword(path: Path, before: str, after: str) -> None:
    """Put other words in the place of some that stand in a file."""
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
