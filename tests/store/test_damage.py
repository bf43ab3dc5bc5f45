"""What is read of a store is what was written, or the store says what is damaged or missing."""

from __future__ import annotations

import asyncio
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Table, Text, create_engine

from opinionsim.errors import DamagedError, StoreError
from opinionsim.llm import Question
from opinionsim.store import (
    FRAMES,
    AuditRow,
    EdgeRow,
    LabelRow,
    SeatRow,
    Store,
    TieRow,
    UnitRow,
    load,
    open_store,
)
from opinionsim.watching import follow
from tests.support.editing import SEALED, seal
from tests.support.rows import (
    CAST,
    begun,
    call,
    design_row,
    instrument_row,
    lead,
    opinion_row,
    run_row,
    turn_row,
)

pytestmark = pytest.mark.long

#: By these, rows are found: one that has another is missing where it was, which is looked for elsewhere.
_FOUND_BY = {"run_id", "experiment_id", "point_id", "audit_id"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with rows in every table."""
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store:
        store.save_design(design_row())
        store.save_instrument(instrument_row())
        record = begun(store, payer="e1")
        record.append(call(0, cost=0.5, input_tokens=3))
        store.forget(["r1"])
        record = begun(store, payer="e1")
        record.append(call(0, "text 0", ("You are Ada.", "A post."), reasoning="Let me think.", cost=0.5, seed=3))
        lead(
            record,
            turns=[turn_row(0), turn_row(1, (0,)), turn_row(2, (1, "news"))],
            ties=[TieRow(1, 0, 1, 1, 0)],
            opinions=[opinion_row(0), opinion_row(2, about=1)],
        )
        asyncio.run(record.wait_for(Question("r1", 3, 1, 2, "rank", "reply", 0, "Which?", asked_at=1.0, timeout_s=2.0)))
        store.finish("r1", record.epoch, "complete")
        store.change_seat(
            "r1", 0, lambda _: SeatRow("r1", 0, "t", 1.0, "l", "c", 2.0, "w", True, False, ({"at": 3.0},))
        )
        text = {"run_id": "r1", "turn": 0, "generation": 1}
        finding = {"instrument_id": "m1", "model": "scripted", "people": True, "text": "audited"}
        audit = AuditRow("a1", "e1", {"texts": [text]}, {"ann": "human"}, (finding,), 1.0)
        store.save_audit(audit, [LabelRow("a1", "ann", "r1", 0, 1.0, "human")])
        store.save_units([UnitRow("p1", 0, {"bias": 0.5, "time": 7, "stopped": True})], {"p1": {"model": "voter"}})
    return path


def _do(path: Path, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def _read(store: Store) -> Iterator[object]:
    """Everything that is in a store, a part at a time."""
    yield store.designs()
    yield store.states()
    yield store.registered(["r1"])
    yield store.spending()
    yield store.instruments()
    yield store.seats("r1")
    yield store.waits("r1")
    yield store.audits()
    yield store.labels("a1")
    yield list(store.units(["p1"]))
    yield store.unit_keys(["p1"])
    for of_run in (store.agents, store.edges, store.ties, store.turns, store.opinions, store.entries, store.calls):
        yield of_run("r1")
    yield store.follow("r1").poll()
    for entry in store.entries("r1"):
        yield store.prompt("r1", *entry.key)


def _load(path: Path) -> None:
    results = load(str(path))
    for name in FRAMES:
        getattr(results, name)


def _resume(path: Path) -> None:
    with open_store(str(path)) as store:
        epoch = store.lease("r1", "host 2", complete=True)
        store.record("r1", epoch)


def test_an_intact_store_is_read(path: Path) -> None:
    with open_store(str(path), write=False) as store:
        assert all(bool(part) for part in _read(store))
    _load(path)
    _resume(path)


def _other(value: Any, column: Any) -> Any:
    if value is None:
        return "x" if isinstance(column.type, Text) or column.type.python_type is str else 1
    return value + "x" if isinstance(value, str) else value + 1


@pytest.mark.parametrize("table", SEALED.values(), ids=lambda table: table.name)
def test_a_value_that_was_changed_is_named(path: Path, table: Table) -> None:
    (*_, last) = _do(path, f"SELECT * FROM {table.name} ORDER BY 1, 2")  # noqa: S608
    row = dict(zip(table.columns.keys(), last, strict=True))
    where = " AND ".join(f"{column.name} = ?" for column in table.primary_key)
    for column in table.columns:
        if column.name in _FOUND_BY:
            continue
        changed = {**row, column.name: _other(row[column.name], column)}
        keys = [[values[key.name] for key in table.primary_key] for values in (row, changed)]
        statement = f"UPDATE {table.name} SET {column.name} = ? WHERE {where}"  # noqa: S608
        _do(path, statement, changed[column.name], *keys[0])
        with open_store(str(path), write=False) as store:
            with pytest.raises(DamagedError, match="the store is damaged: ") as caught:
                list(_read(store))
            assert f"in table {table.name} the row of " in str(caught.value), column.name
            assert str(caught.value).endswith("changed since it was written")
        _do(path, statement, row[column.name], *keys[1])
    with open_store(str(path), write=False) as store:
        list(_read(store))


def test_a_damaged_run_is_neither_leased_nor_begun_anew_unseen(path: Path) -> None:
    _do(path, "UPDATE runs SET steps = 3")
    with open_store(str(path)) as store:
        for change in (
            lambda: store.lease("r1", "host 2", complete=True),
            lambda: store.forget(["r1"]),
            lambda: store.save_error("r1", None),
        ):
            with pytest.raises(DamagedError, match="in table runs the row of run_id r1"):
                change()
    # Nothing of it was deleted.
    assert _do(path, "SELECT count(*) FROM turns") == [(3,)]


@pytest.mark.parametrize("text", ["text 1", "Let me think.", "You are Ada."])
@pytest.mark.parametrize(
    ("harm", "what"),
    [
        ("UPDATE texts SET text = text || '.' WHERE text = ?", "has changed since it was written"),
        ("DELETE FROM texts WHERE text = ?", "is missing"),
    ],
)
def test_a_text_that_was_changed_or_deleted_is_named(path: Path, text: str, harm: str, what: str) -> None:
    ((identity,),) = _do(path, "SELECT text_id FROM texts WHERE text = ?", text)
    _do(path, harm, text)
    with (
        open_store(str(path), write=False) as store,
        pytest.raises(DamagedError, match=f"the store is damaged: text {identity} {what}"),
    ):
        list(_read(store))


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        ("UPDATE prompts SET role = 'user' WHERE role = 'system'", "has changed since"),
        ("UPDATE prompts SET text_id = (SELECT min(text_id) FROM texts) WHERE role = 'user'", "has changed since"),
        ("UPDATE prompts SET before = '' WHERE role = 'user'", "has changed since"),
        ("DELETE FROM prompts WHERE role = 'system'", "is missing"),
        ("DELETE FROM prompts", "is missing"),
    ],
)
def test_a_prompt_that_was_changed_or_deleted_is_named(path: Path, harm: str, what: str) -> None:
    _do(path, harm)
    with (
        open_store(str(path), write=False) as store,
        pytest.raises(DamagedError, match=f"the store is damaged: prompt [0-9a-f]+ {what}"),
    ):
        store.prompt("r1", 0)


def test_prompts_of_a_run_are_those_of_its_turns(path: Path) -> None:
    with open_store(str(path), write=False) as store:
        found = store.prompts("r1")
        assert found == {turn: store.prompt("r1", turn) for turn in found}
        assert len(found) > 1
        assert store.prompts("r1", "reply.9") == {}
    for harm in ("DELETE FROM prompts WHERE role = 'system'", "UPDATE prompts SET before = 'x' WHERE role = 'user'"):
        _do(path, harm)
        with (
            open_store(str(path), write=False) as store,
            pytest.raises(DamagedError, match=r"prompt [0-9a-f]+ (is missing|has changed since it was written)"),
        ):
            store.prompts("r1")


@pytest.mark.parametrize(
    ("harm", "read", "what"),
    [
        *(
            (f"DELETE FROM {harm}", read, f"table {harm.split()[0]} has {left}")  # noqa: S608
            for read in (_load, _resume)
            for harm, left in (
                ("turns WHERE turn = 1", "2 rows of run r1, not 3"),
                ("turns WHERE turn = 2", "2 rows of run r1, not 3"),
                ("ties", "0 rows of run r1, not 1"),
                ("opinions", "0 rows of run r1, not 2"),
                ("journal WHERE turn = 0", "2 rows of run r1, not 3"),
                ("journal WHERE turn = 2", "2 rows of run r1, not 3"),
                ("agents WHERE agent = 1", "1 rows of run r1, not 2"),
                ("edges", "0 rows of run r1, not 1"),
            )
        ),
        ("DELETE FROM counts", _load, "the counts of run r1 are missing"),
        ("DELETE FROM counts", _resume, "the counts of run r1 are missing"),
        ("DELETE FROM runs", _load, "run r1 of quick is missing"),
        ("DELETE FROM instruments", _load, "instrument m1 is missing"),
        ("DELETE FROM experiments", _load, "experiment e1 is missing"),
    ],
)
def test_a_row_that_was_deleted_is_missed(path: Path, harm: str, read: Callable[[Path], None], what: str) -> None:
    _do(path, harm)
    with pytest.raises(DamagedError, match=f"the store is damaged: {what}"):
        read(path)


def test_whoever_follows_a_run_is_told_that_a_row_is_missing(path: Path) -> None:
    _do(path, "DELETE FROM turns WHERE turn = 1")
    with open_store(str(path), write=False) as store:
        with pytest.raises(DamagedError, match="the store is damaged: row 2 of run r1 is missing"):
            store.follow("r1").poll()
        with pytest.raises(DamagedError, match="the store is damaged: row 2 of run r1 is missing"):
            list(follow(str(path), "r1"))
        # Beyond the gap nothing is missing.
        assert [each.seq for each in store.follow("r1", after=2).poll()] == [3, 4, 5, 6]
        assert store.missing() == {"r1": "table turns has 2 rows of run r1, not 3"}


def test_the_last_row_is_missed_while_a_run_is_under_way(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store, open_store(str(path), write=False) as reader:
        record = begun(store)
        lead(record)
        record.flush()
        follower = reader.follow("r1")
        assert len(follower.poll()) == 3
        assert reader.missing() == {}
        record.add_turn(turn_row(2))
        record.flush()
        assert _do(path, "DELETE FROM turns WHERE turn = 2 RETURNING turn") == [(2,)]
        with pytest.raises(DamagedError, match="row 4 of run r1 is missing"):
            follower.poll()
        assert list(reader.missing()) == ["r1"]


def test_what_was_paid_does_not_shrink_with_the_journal(path: Path) -> None:
    with open_store(str(path), write=False) as store:
        before = store.spending(), store.usage(["r1"]), store.models(["r1"])
        _do(path, "DELETE FROM journal")
        assert (store.spending(), store.usage(["r1"]), store.models(["r1"])) == before


def test_a_check_names_run_table_and_row(path: Path) -> None:
    def check() -> list[str]:
        with open_store(str(path), write=False) as store:
            return list(store.damage())

    assert check() == []
    _do(path, "UPDATE opinions SET value = 2 WHERE turn = 0")
    _do(path, "UPDATE texts SET text = 'text 9' WHERE text = 'text 1'")
    _do(path, "DELETE FROM agents WHERE agent = 1")
    _do(path, "DELETE FROM prompts WHERE role = 'system'")
    _do(path, "DELETE FROM instruments")
    found = "\n".join(check())
    for what in (
        "in table opinions the row of run_id r1, instrument_id m1, turn 0, about -1 has changed since it was written",
        "text [0-9a-f]+ has changed since it was written",
        "table agents has 1 rows of run r1, not 2",
        "prompts lacks the row [0-9a-f]+ that the row of run_id r1, turn 2, call reply, attempt 0 in journal refers to",
        "instruments lacks the row m1 that the row of run_id r1, .* in opinions refers to",
    ):
        assert re.search(what, found), what
    _do(path, "DELETE FROM runs")
    assert "run r1 of design 1 of quick is missing" in check()
    assert "runs lacks the row r1 that the row of run_id r1, turn 0 in turns refers to" in check()


def test_a_check_names_triggers_and_views(each_url: str) -> None:
    open_store(each_url).close()
    engine = create_engine(each_url)
    if engine.dialect.name == "sqlite":
        trigger = "CREATE TRIGGER kind AFTER INSERT ON opinions BEGIN UPDATE opinions SET value = 2; END"
    else:
        trigger = (
            "CREATE TRIGGER kind BEFORE UPDATE ON opinions FOR EACH ROW "
            "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        )
    with engine.begin() as connection:
        connection.exec_driver_sql(trigger)
        connection.exec_driver_sql("CREATE VIEW mine AS SELECT * FROM runs")
    engine.dispose()
    with open_store(each_url, write=False) as store:
        found = list(store.damage())
    assert found == [
        f"opinionsim did not make the {what}; drop it, or restore the store from a backup"
        for what in ("trigger kind", "view mine")
    ]


# -- values that no version of ours writes, under a right check sum ------------------------------------------


@pytest.mark.parametrize(
    ("table", "column", "value", "what"),
    [
        ("runs", "status", "halted", "run r1 is 'halted'; valid: pending, running"),
        ("journal", "source", "oracle", "source 'oracle' of run r1, turn 2, call 'reply'; valid: import, instrument"),
        ("journal", "acceptance", "lost", "acceptance 'lost' of run r1"),
        ("journal", "status", "bored", "status 'bored' of run r1"),
        ("turns", "reads", "[0", "in table turns the reads of run_id r1, turn 2 cannot be read"),
        ("agents", "persona", "{", "in table agents the persona of run_id r1, agent 1 cannot be read"),
        (
            "opinions",
            "probabilities",
            "nothing",
            "in table opinions the probabilities of run_id r1, .*, turn 2, about 1 cannot be read",
        ),
        ("opinions", "probabilities", "[0.5,0.5]", "an opinion of turn 2 of run r1 has 2 probabilities"),
        ("instruments", "points", "", "in table instruments the points of instrument_id m1 cannot be read"),
        ("designs", "spec", "spec", "in table designs the spec of experiment_id e1, design 1 cannot be read"),
        ("designs", "runs", "[", "in table designs the runs of experiment_id e1, design 1 cannot be read"),
        ("runs", "fields", "'", "in table runs the fields of run_id r1 cannot be read"),
    ],
)
def test_a_value_that_means_nothing_is_named(path: Path, table: str, column: str, value: str, what: str) -> None:
    made = SEALED[table]
    (*_, last) = _do(path, f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608
    row = {**dict(zip(made.columns.keys(), last, strict=True)), column: value}
    sound = seal(made, [row[each.name] for each in made.columns][:-1])
    _do(path, f"REPLACE INTO {table} VALUES ({', '.join('?' * len(sound))})", *sound)  # noqa: S608
    with pytest.raises(StoreError, match=f"the store is damaged: {what}"):
        _load_all(path)


def _load_all(path: Path) -> None:
    with open_store(str(path), write=False) as store:
        list(_read(store))
    _load(path)


# -- values that other libraries make ------------------------------------------------------------------------


def test_values_of_other_types_come_back_intact(tmp_path: Path) -> None:
    agent = replace(CAST[0], agent=np.int64(0), name=np.str_("Ada"), assigned_opinion=np.float32(0.5))
    turn = replace(turn_row(0), turn=np.int32(0), step=np.int64(1), agent=False, kind=np.str_("post"))
    opinion = opinion_row(0, value=np.float32(0.5), off_scale=0, probabilities=(1, np.float64(0.5), 0.0, 0, 0))
    entry = call(0, cost=np.float64(0.1), latency_s=1, arrived_at=-0.0, input_tokens=np.int64(3), output_tokens=4.0)
    with open_store(str(tmp_path / "a.sqlite")) as store:
        store.register([run_row(truth=np.int64(-2), seed=np.int64(7), n_agents=np.uint8(2))])
        record = begun(store)
        record.append(entry)
        record.append(call(1, cost=math.nan, latency_s=math.nan, arrived_at=math.inf))
        record.begin([agent], [EdgeRow(np.int64(0), np.int64(1), np.float32(2))])
        record.add_turn(turn)
        record.add_tie(TieRow(*np.arange(5)))
        record.add_opinions([opinion])
        assert store.agents("r1") == [replace(CAST[0], assigned_opinion=0.5)]
        assert store.edges("r1") == [EdgeRow(0, 1, 2.0)]
        assert [event.row for event in store.follow("r1").poll()] == [turn_row(0), TieRow(0, 1, 2, 3, 4), opinion]
        assert store.entries("r1") == [
            replace(entry, prompt=None),
            replace(call(1), prompt=None, arrived_at=math.inf),
        ]
        store.release("r1", record.epoch)
        assert len(begun(store).entries) == 2
