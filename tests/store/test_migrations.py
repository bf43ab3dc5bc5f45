from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect

from opinionsim.errors import StoreError
from opinionsim.store import Store, TieRow, _files, _migrations, _postgres, _schema, load, open_store
from opinionsim.store._address import Address, parse
from opinionsim.testing._store_rows import (
    begun,
    call,
    completed,
    design_row,
    instrument_row,
    lead,
    measured,
    opinion_row,
)
from tests._postgres import Server

#: A second version of the schema, for there is only one yet: two more columns, and a table that is made anew.
_SECOND = _migrations._statements("""
ALTER TABLE runs ADD COLUMN note TEXT;
ALTER TABLE journal ADD COLUMN weight FLOAT NOT NULL DEFAULT 0.5;
CREATE TABLE edges_2 (
    run_id TEXT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    weight FLOAT NOT NULL,
    crc BIGINT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'strangers',
    PRIMARY KEY (run_id, source, target)
) WITHOUT ROWID;
INSERT INTO edges_2 SELECT run_id, source, target, weight, crc, 'friends' FROM edges;
DROP TABLE edges;
ALTER TABLE edges_2 RENAME TO edges;
""")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    return str(request.getfixturevalue("postgres").database(str(tmp_path)))


def _open(url: str):
    place = parse(url)
    return (_postgres if isinstance(place, Address) else _files).open_for_writing(place)


def _versions(connection: Connection) -> list[int]:
    return list(connection.exec_driver_sql("SELECT version FROM schema_version ORDER BY version").scalars())


def _content(store: Store) -> tuple[Any, ...]:
    run = (store.entries("r1"), store.agents("r1"), store.edges("r1"), store.follow("r1").poll())
    return (*run, store.states(), store.instruments(), store.designs(), store.spending(), store.prompt("r1", 0))


def _fill(url: str) -> None:
    """A store with a row in every table that an experiment fills."""
    with open_store(url) as store:
        store.save_design(design_row())
        store.save_instrument(instrument_row())
        record = begun(store, payer="e1")
        record.append(call(0, "a\x00b", ("You are Ada.", "a\x00b"), cost=0.25))
        lead(record, ties=[TieRow(1, 0, 1, 1, 0)])
        store.finish("r1", record.epoch, "complete")


def test_an_earlier_store_is_brought_up_to_date_when_opened_for_writing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(url)
    with open_store(url) as store:
        before = _content(store)
        assert store.usage(["r1"]).cost == 0.25
    monkeypatch.setattr(_migrations, "MIGRATIONS", [*_migrations.MIGRATIONS, _SECOND])
    with pytest.raises(StoreError, match="older schema version 1; open it once for writing to bring it to version 2"):
        open_store(url, write=False)
    for _ in range(2):
        with open_store(url) as store:
            assert _content(store) == before
            with store.reading() as connection:
                assert connection.exec_driver_sql("SELECT run_id, note FROM runs").all() == [("r1", None)]
                assert connection.exec_driver_sql("SELECT weight FROM journal").all() == [(0.5,)] * 2
                assert connection.exec_driver_sql("SELECT kind FROM edges").all() == [("friends",)]
                assert _versions(connection) == [1, 2]
    results = load(url)
    assert list(results.runs["status"]) == ["complete"]
    assert list(results.edges["since"]) == [0, 1]
    assert (len(results.agents), list(results.calls["reply"]), list(results.opinions["value"])) == (
        2,
        ["a\x00b", "I doubt it."],
        [1.0],
    )


def test_a_migrated_store_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(url)
    monkeypatch.setattr(_migrations, "MIGRATIONS", [*_migrations.MIGRATIONS, _SECOND])
    with open_store(url) as store:
        epoch = store.claim_complete("r1", "host 2")
        assert epoch == 2
        store.record("r1", epoch).append(call(1, part="judge.m2"))
        store.release("r1", epoch)
        measured(store, "r1", [opinion_row(1)])
        assert [entry.key.part for entry in store.entries("r1")] == ["reply", "judge.m2", "reply"]
        assert store.uncoded(["r1"], "m1", ["post", "report"]) == {}
        completed(store, "r2")
        assert store.states(["r2"])["r2"].status == "complete"


def test_migrations_make_the_tables_that_are_used(url: str) -> None:
    database = _open(url)
    try:
        with database.reading.connect() as connection:
            inspector = inspect(connection)
            assert set(inspector.get_table_names()) == set(_schema.runs.metadata.tables)
            for name, table in _schema.runs.metadata.tables.items():
                made = {column["name"]: column for column in inspector.get_columns(name)}
                assert list(made) == [column.name for column in table.columns]
                for column in table.columns:
                    assert made[column.name]["nullable"] == column.nullable
                    assert made[column.name]["type"]._type_affinity is column.type._type_affinity
                    assert getattr(made[column.name]["type"], "precision", None) in (None, 53)
                keys = inspector.get_pk_constraint(name)["constrained_columns"]
                assert keys == [column.name for column in table.primary_key]
    finally:
        database.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(url)

    def fail(connection: Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE half (x TEXT)")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(_migrations, "MIGRATIONS", [*_migrations.MIGRATIONS, _SECOND, fail])
        with pytest.raises(StoreError, match="no space left"):
            open_store(url)
    with open_store(url) as store, store.reading() as connection:
        assert "half" not in inspect(connection).get_table_names()
        assert "note" not in [column["name"] for column in inspect(connection).get_columns("runs")]
        assert _versions(connection) == [1]


def test_a_later_version_may_be_read_by_nobody_of_this_one(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database(str(tmp_path))
    _fill(url)
    database = url.split("?")[0].rsplit("/", 1)[1]
    with postgres.connect(database) as connection:
        connection.execute("INSERT INTO schema_version VALUES (9, 0.0)")
    for write in (True, False):
        with pytest.raises(StoreError, match="schema version 9, this version of opinionsim knows up to 1"):
            open_store(url, write=write)
