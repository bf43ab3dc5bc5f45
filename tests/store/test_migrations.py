from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import inspect

from opinionsim.errors import StoreError
from opinionsim.llm import CallKey, CallRecord
from opinionsim.messages import ChatMessage, prompt_hash, text_id
from opinionsim.store import EdgeRow, TurnRow, _files, _migrations, _postgres, _schema, load, open_store
from opinionsim.store._address import Address, parse
from opinionsim.testing._stores import call, claimed, experiment_row, measurement_row, outcome, run_row
from tests._postgres import Server

_TEXT_ID = text_id("a\x00b")
#: What version 1 stored for a run with a reply, a rating and an odd text, as that version wrote it.
_ROWS = {
    "runs": {
        **dict.fromkeys(("topic", "category", "framing", "claim"), "x"),
        **dict.fromkeys(("confirmation_bias", "memory", "world", "model"), "x"),
        **{"run_id": "r1", "replicate": 0, "block": "block 0", "evidence": "scripted", "fields": "{}", "seed": 7},
        **{"truth": -2.0, "interaction": "dyadic", "network": None, "n_agents": 2, "steps": 2},
        **{"status": "incomplete", "epoch": 4, "owner": "host:1", "error": "stopped"},
    },
    "experiments": {
        **{"experiment_id": "e1", "name": "quick", "created_at": 12.5, "saved_at": 13.0, "spec": "{}"},
        **{
            "manifest": "{}",
            "runs": '[{"run_id":"r1","measurement_id":"m1","replicate":0,"block":"block 0","cell":"a","axes":{}}]',
        },
    },
    "agents": {
        **{"run_id": "r1", "agent": 1, "name": "Ben", "assigned_opinion": None, "persona": '{"age":41}', "model": "x"},
    },
    "edges": {"run_id": "r1", "source": 0, "target": 1, "weight": 0.5},
    "turns": {
        **{"run_id": "r1", "turn": 3, "step": 1, "agent": 1, "act": "write", "kind": "post", "reads": "[0]"},
        "text_id": _TEXT_ID,
    },
    "calls": {
        **{"run_id": "r1", "turn": 3, "part": "reply", "attempt": 0, "step": 1, "agent": 1, "act": "write"},
        **{
            "prompt_hash": prompt_hash([ChatMessage("user", "a\x00b")]),
            "prompt": f"user:{_TEXT_ID}",
        },
        **{"text_id": _TEXT_ID, "outcome": "accepted", "reason": "", "seed": 11, "dropped": 0},
        **{"finish_reason": "stop", "model": "m", "input_tokens": 5, "output_tokens": None, "latency_s": 0.25},
        "arrived_at": 1.7e9,
    },
    "texts": {"text_id": _TEXT_ID, "text": '\x1bjson:"a\\u0000b"'},
    "measurements": {
        **{"measurement_id": "m1", "classifier": "lexicon", "options": '{"strict":true}', "points": "[-2,-1,0,1,2]"},
        **{"labels": '["label -2","label -1","label 0","label 1","label 2"]', "kinds": '["post","report"]'},
    },
    "opinions": {
        **{"run_id": "r1", "measurement_id": "m1", "variable": "stance", "turn": 3, "value": 1.0, "off_scale": 0.25},
        "probabilities": "[0.0,0.0,0.25,0.5,0.25]",
    },
}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    return str(request.getfixturevalue("postgres").database(str(tmp_path)))


def _open(url: str):
    place = parse(url)
    return (_postgres if isinstance(place, Address) else _files).open_for_writing(place)


def _make_version(number: int, url: str) -> None:
    """A store of a version, with what version 1 stored in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_migrations, "MIGRATIONS", _migrations.MIGRATIONS[:number])
        database = _open(url)

        def insert(connection) -> None:
            for table, row in _ROWS.items():
                values = ", ".join(f":{name}" for name in row)
                connection.exec_driver_sql(*_driver(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})", row))  # noqa: S608

        def _driver(statement: str, row: dict):
            if url.startswith("sqlite"):
                return statement, row
            return re.sub(r":(\w+)", r"%(\1)s", statement), row

        database.write(insert)
        database.close()


@pytest.mark.parametrize("version", [1, 2])
def test_an_earlier_store_is_migrated_and_read_whole(url: str, version: int) -> None:
    _make_version(version, url)
    with pytest.raises(StoreError, match=f"older schema version {version}; open it once for writing"):
        open_store(url, write=False)
    record = CallRecord(
        CallKey(3, "reply", 0), 1, 1, "write", str(_ROWS["calls"]["prompt_hash"]), "a\x00b",
        seed=11, finish_reason="stop", model="m", input_tokens=5, latency_s=0.25, arrived_at=1.7e9,
    )  # fmt: skip
    for _ in range(2):
        with open_store(url) as store:
            assert store.records("r1") == [record]
            assert record.condition == "answered"
            assert store.prompt("r1", 3) == [ChatMessage("user", "a\x00b")]
            assert store.turns("r1") == [TurnRow(3, 1, 1, "write", "post", (0,), "a\x00b")]
            assert store.states() == {"r1": ("incomplete", 4, "host:1", "stopped")}
            assert store.measurements() == [measurement_row()]
            assert store.usage(["r1"]) == (1, 5, 0, 0.0, 1)
            assert store.canaries("e1") == []
    results = load(url)
    assert (results.name, list(results.runs["status"])) == ("quick", ["incomplete"])
    assert list(results.turns["condition"]) == ["answered"]
    assert results.calls[["condition", "reasoning"]].values.tolist() == [["answered", ""]]
    assert results.calls[["cached_tokens", "reasoning_tokens", "cost"]].isna().all(axis=None)
    assert (len(results.agents), list(results.opinions["value"])) == (1, [1.0])
    edges = results.edges.drop(columns="until").values.tolist()
    assert edges == [["r1", 0, 1, 0.5, 0, "scripted"]]
    assert results.edges["until"].isna().all()


def test_a_migrated_store_goes_on(url: str) -> None:
    _make_version(1, url)
    with open_store(url) as store:
        journal = store.journal("r1", claimed(store))
        assert journal.epoch == 5
        journal.append(call(4, condition="empty", reasoning="Hm.", cost=0.5))
        store.finish("r1", 5, outcome())
        assert [record.condition for record in store.records("r1")] == ["answered", "empty"]
        again = (EdgeRow(0, 1, 0.5, 0, 2), EdgeRow(0, 1, 0.5, 4))
        store.finish("r1", 5, outcome(edges=again))
        with store.reading() as connection:
            stored = connection.exec_driver_sql("SELECT source, target, weight, since, until FROM edges ORDER BY since")
            assert [EdgeRow(*row) for row in stored] == list(again)
        assert store.usage(["r1"]).cost == 0.5


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
    _make_version(1, url)

    def fail(connection) -> None:
        connection.exec_driver_sql("CREATE TABLE half (x TEXT)")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(_migrations, "MIGRATIONS", [*_migrations.MIGRATIONS, fail])
        with pytest.raises(StoreError, match="no space left"):
            open_store(url)
    with open_store(url) as store, store.reading() as connection:
        assert "half" not in inspect(connection).get_table_names()
        assert connection.exec_driver_sql("SELECT version FROM schema_version ORDER BY version").scalars().all() == [
            1,
            2,
            3,
        ]


def test_a_later_version_may_be_read_by_nobody_of_this_one(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database(str(tmp_path))
    with open_store(url) as store:
        store.save_experiment(experiment_row())
        store.register([run_row()])
        database = store.url.rsplit("/", 1)[1].split("?")[0]
    with postgres.connect(database) as connection:
        connection.execute("INSERT INTO schema_version VALUES (9, 0.0)")
    for write in (True, False):
        with pytest.raises(StoreError, match="schema version 9, this version of opinionsim knows up to 3"):
            open_store(url, write=write)
