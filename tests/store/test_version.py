from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from opinionsim.errors import StoreError
from opinionsim.store import open_store
from tests.support.rows import completed


def _state_version(url: str, version: int) -> None:
    """Make a store that of another version of the schema."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = :version"), {"version": version})
    engine.dispose()


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (1, "schema version 1, but this version of opinionsim reads version 18; read it with the version"),
        (19, "schema version 19, but this version of opinionsim reads version 18; install the version"),
    ],
)
def test_a_store_of_another_version_is_neither_read_nor_written(each_url: str, version: int, advice: str) -> None:
    with open_store(each_url) as store:
        completed(store, "r1")
    _state_version(each_url, version)
    for write in (True, False):
        with pytest.raises(StoreError, match=advice):
            open_store(each_url, write=write)
    _state_version(each_url, 18)
    with open_store(each_url, write=False) as reader:
        assert reader.states(["r1"])["r1"].status == "complete"


def test_a_database_of_another_program_is_left_alone(each_url: str) -> None:
    engine = create_engine(each_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE theirs (x TEXT)"))
    engine.dispose()
    for write in (True, False):
        with pytest.raises(StoreError, match="the database of another program, not an opinionsim store"):
            open_store(each_url, write=write)
