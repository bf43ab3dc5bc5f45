from __future__ import annotations

import gc
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from sqlalchemy import event

from opinionsim.errors import StoreError
from opinionsim.llm import EntryKey
from opinionsim.messages import ChatMessage, Prompt, prompt_identity, text_id
from opinionsim.store import RunState, open_store
from tests.store._children import MEASURER, killed, started
from tests.support.rows import (
    CAST,
    EDGES,
    add,
    begun,
    call,
    completed,
    design_row,
    opinion_row,
    run_row,
    turn_row,
)

_APPENDER = """
import sys
from opinionsim.store import open_store
from tests.support.rows import CAST, EDGES, add, begun, call, opinion_row, turn_row

store = open_store(sys.argv[1])
records = [begun(store, run, "child") for run in ("r1", "r2")]
for record in records:
    record.begin(CAST, EDGES)
turn = 0
while True:
    for record in records:
        record.append(call(turn, f"text {turn}", ("You are Ada.", f"post {turn}")))
        add(record, turn_row(turn))
        if turn % 3:
            add(record, opinion_row(turn))
    turn += 1
    if turn % 100 == 0:
        store.flush()
        print(turn, flush=True)
"""

_HOLDER = """
import sys
from opinionsim.store import open_store

with open_store(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("reports", [1, 3])
def test_a_killed_process_leaves_a_prefix_of_every_record(tmp_path: Path, reports: int) -> None:
    url = f"sqlite:///{tmp_path / 'killed.sqlite'}"
    durable = killed(_APPENDER, url, lines=reports)[-1]
    with open_store(url, write=False) as reader:
        assert reader.under_way(reader.states()) == set()
        for run_id in ("r1", "r2"):
            entries = reader.entries(run_id)
            assert len(entries) >= durable
            assert [entry.key.turn for entry in entries] == list(range(len(entries)))
            assert [entry.text for entry in entries] == [f"text {turn}" for turn in range(len(entries))]
            last = entries[-1].key.turn
            assert reader.prompt(run_id, last)[1] == ChatMessage("user", f"post {last}")
            # What it has led to is a prefix as well, and rests on nothing that is missing.
            events = reader.follow(run_id).poll()
            rows = [
                row for turn in range(len(entries)) for row in (turn_row(turn), *[opinion_row(turn)] * (turn % 3 > 0))
            ]
            assert [(event.seq, event.row) for event in events] == list(enumerate(rows[: len(events)], 1))
            assert len(rows) - len(events) <= 2
            assert reader.agents(run_id) == list(CAST)
            assert reader.edges(run_id) == list(EDGES)
            reader.require_whole([run_id])
    with open_store(url) as store:
        record = begun(store, owner="parent")
        assert record.epoch == 2
        for turn in range(len(store.turns("r1"))):
            record.add_turn(turn_row(turn))
        add(record, turn_row(len(record.entries)))
        assert store.follow("r1").poll()[-1].row == turn_row(len(record.entries) - 1)


def test_a_second_process_finds_the_store_taken_until_the_first_ends(tmp_path: Path) -> None:
    url = str(tmp_path / "shared.sqlite")
    child = started(_HOLDER, url)
    with child:
        assert child.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match=rf"in use by another run \(process {child.pid}\); wait for it"):
            open_store(url)
        open_store(url, write=False).close()
        child.kill()
    open_store(url).close()


def test_one_process_cannot_write_a_store_twice(tmp_path: Path) -> None:
    url = str(tmp_path / "twice.sqlite")
    with open_store(url), pytest.raises(StoreError, match=rf"in use by another run \(process {os.getpid()}\)"):
        open_store(url)
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "twice.sqlite")
    with open_store(url), pytest.raises(StoreError, match="in use"):
        open_store(str(tmp_path / "link.sqlite"))


def test_appended_entries_become_durable_without_being_asked(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.sqlite")) as store:
        record = begun(store)
        for turn in range(10):
            record.append(call(turn))
        with open_store(store.url, write=False) as reader:
            while len(reader.entries("r1")) < 10:
                pass


def test_a_durable_entry_no_longer_holds_its_prompt(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.sqlite")) as store:
        record = begun(store)
        record.append(call(0))
        record.flush()
        assert [entry.prompt for entry in record.entries] == [None]


def test_a_store_that_is_dropped_keeps_what_was_appended(tmp_path: Path) -> None:
    url = str(tmp_path / "dropped.sqlite")
    record = begun(open_store(url))
    gc.collect()
    with pytest.raises(StoreError, match="closed"):
        record.append(call(0))
    store = open_store(url)
    record = begun(store)
    record.append(call(0))
    del store
    gc.collect()
    with open_store(url, write=False) as reader:
        assert len(reader.entries("r1")) == 1


def test_a_failing_write_is_told_to_every_later_append(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a.sqlite"))
    record = begun(store)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other:
        other.execute("DROP TABLE texts")
    record.append(call(0))
    with pytest.raises(StoreError, match="could not save 1 or more entries: no such table: texts"):
        record.flush()
    with pytest.raises(StoreError, match="could not save"):
        record.append(call(1))
    with pytest.raises(StoreError, match="could not save"):
        store.flush()
    store.close()


def test_closing_tells_of_a_failure_nobody_has_heard_of(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a.sqlite"))
    record = begun(store)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other:
        other.execute("DROP TABLE journal")
    record.append(call(0))
    with pytest.raises(StoreError, match="no such table: journal"):
        store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sqlite"]


def test_a_closed_store_leaves_one_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.sqlite"
    with open_store(str(path)) as store:
        begun(store).append(call(0))
    with open_store(store.url, write=False) as reader:
        assert len(reader.entries("r1")) == 1
    assert [each.name for each in path.parent.iterdir()] == ["a.sqlite"]


@pytest.mark.parametrize("name", ["with space.sqlite", "per%20cent#.db", "ünïcode.sqlite"])
def test_a_path_is_taken_literally(tmp_path: Path, name: str) -> None:
    for url in (str(tmp_path / name), f"sqlite:///{tmp_path / name}"):
        with open_store(url) as store:
            store.register([run_row()])
        with open_store(store.url, write=False) as reader:
            assert list(reader.states()) == ["r1"]
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+asyncpg://user:secret@host/db", "'postgresql\\+asyncpg' are not supported; give"),
        ("mysql://user:secret@host/db", "'mysql' are not supported"),
        ("sqlite://results/a.sqlite", "three slashes"),
        ("sqlite://", "three slashes"),
        ("sqlite:///", "does not name a file"),
        ("sqlite:///:memory:", "does not name a file"),
        ("sqlite:///a.sqlite?mode=ro", "has a '\\?'"),
        ("a\x00.sqlite", "has a '\\?' or NUL"),
        ("results.csv", "not a store address; give sqlite:///PATH"),
        ("", "does not name a file"),
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_an_address_that_is_none_is_refused(url: str, message: str, write: bool) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        open_store(url, write=write)
    assert "secret" not in str(caught.value)


def _garbage(path: Path) -> None:
    path.write_bytes(b"This is a text file, whatever its name says. " * 100)


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE schema_version (version TEXT)")
        other.execute("CREATE TABLE songs (title TEXT)")


def _newer(path: Path) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("INSERT INTO schema_version VALUES (19, 0.0)")


def _truncated(path: Path) -> None:
    open_store(str(path)).close()
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_garbage, "not a database"),
        (_foreign, "database of another program"),
        (_newer, "schema version 19, but this version of opinionsim reads version 18"),
        (_truncated, "malformed"),
        (Path.mkdir, "is a folder|there is no store at"),
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, make, message: str, write: bool) -> None:
    path = tmp_path / "a.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=message) as caught:
        open_store(str(path), write=write)
    assert len(str(caught.value).splitlines()) == 1
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not list(tmp_path.glob("*.lock"))


def test_a_store_that_cannot_be_created_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write the store .*: .*file is not a folder"):
        open_store(str(tmp_path / "file" / "a.sqlite"))

    def fail(connection: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("opinionsim.store._files.create", fail)
    with pytest.raises(StoreError, match="no space left"):
        open_store(str(tmp_path / "new" / "folder" / "a.sqlite"))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_an_empty_file_becomes_a_store_but_is_none_for_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.touch()
    with pytest.raises(StoreError, match="is empty, not yet an opinionsim store"):
        open_store(str(path), write=False)
    assert path.read_bytes() == b""
    with open_store(str(path)) as store:
        assert store.states() == {}


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store at"):
        open_store(str(tmp_path / "folder" / "a.sqlite"), write=False)
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(str(tmp_path / "a.sqlite")) as store:
        store.register([run_row()])
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with open_store(store.url, write=False) as reader:
        assert list(reader.states()) == ["r1"]
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_worker_that_dies_while_it_adds_opinions_leaves_the_run_to_the_next(tmp_path: Path) -> None:
    url = str(tmp_path / "a.sqlite")
    assert killed(MEASURER, url) == [2]
    with open_store(url) as store:
        assert store.states()["r1"] == RunState("complete", 2, "child", "", held=True)
        assert store.uncoded(["r1"], "m1", ["post", "report"]) == {"r1": [(1, None)]}
        assert store.lease("r1", "heir", complete=True) == 3
        store.forget(["r1"])
        assert store.lease("r1", "heir") == 5


def test_a_portion_of_runs_is_looked_through_with_few_statements(tmp_path: Path) -> None:
    names = [f"r{number:03}" for number in range(400)]
    asked: list[str] = []
    with open_store(str(tmp_path / "a.sqlite")) as store:
        store.register([run_row(name) for name in names])
        for name in names[::100]:
            completed(store, name, opinions=())
        event.listen(
            store._database.reading, "before_cursor_execute", lambda *told: asked.append(told[2].split(maxsplit=1)[0])
        )
        assert len(store.uncoded(names, "m1", ["post", "report"])) == 4
        assert asked == ["BEGIN", *["SELECT"] * 3]
        assert len(store.uncoded(names, "m1", ["report"], about="reads")) == 4
        assert asked[4:] == ["BEGIN", *["SELECT"] * 4]


def test_prompts_are_kept_as_what_their_hash_is_of(tmp_path: Path) -> None:
    entry = call(0, prompt=("You are Ada.", "A post.", "Another."))
    with open_store(str(tmp_path / "a.sqlite")) as store:
        record = begun(store)
        record.append(entry)
        record.flush()
        with store.reading() as connection:
            stored = connection.exec_driver_sql("SELECT prompt_id, before, role, text_id FROM prompts").all()
        rows = {row.prompt_id: row for row in stored}
        assert len(rows) == 3
        last, roles = rows[record.entries[0].prompt_hash], []
        while last is not None:
            assert last.prompt_id == prompt_identity(last.before, last.role, last.text_id)
            roles.append(last.role)
            last = rows.get(last.before)
        assert roles == ["user", "user", "system"]
        assert Prompt.of(store.prompt("r1", 0)).identity == entry.prompt_hash


_ODD = st.text(st.characters() | st.characters(categories=["Cs", "Cc"])) | st.just("\x1bjson:[1]") | st.just("a\x00b")


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(_ODD, min_size=1, max_size=20), odd=_ODD)
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str], odd: str) -> None:
    with open_store(str(tmp_path_factory.mktemp("odd") / "a.sqlite")) as store:
        record = begun(store)
        for turn, text in enumerate(texts):
            record.append(call(turn, text, (odd, text), call=f"reply{odd}", reason=odd))
        assert [entry.text for entry in store.entries("r1")] == texts
        assert {entry.reason for entry in store.entries("r1")} == {odd}
        for turn, text in enumerate(texts):
            expected = [ChatMessage("system", odd), ChatMessage("user", text)]
            assert store.prompt("r1", turn, f"reply{odd}") == expected
        assert store.texts(map(text_id, texts)) == {text_id(text): text for text in texts}
        reopened = store.record("r1", 1)
        assert reopened.lookup(EntryKey(0, f"reply{odd}", 0)) is not None


def test_odd_texts_survive_beside_messages(tmp_path: Path) -> None:
    odd = "lone \ud800, NUL \x00, é"
    agent = replace(CAST[0], name=odd, persona={odd: odd})
    turn = turn_row(0, (odd,), text=odd, kind=odd, act=odd)
    with open_store(str(tmp_path / "a.sqlite")) as store:
        store.save_design(replace(design_row(), spec={odd: [odd]}))
        completed(store, status="incomplete", error=odd, agents=[agent], turns=[turn], opinions=[opinion_row(0, odd)])
        assert store.states()["r1"].error == odd
        assert store.designs()[0].spec == {odd: [odd]}
        assert store.agents("r1") == [agent]
        assert [event.row for event in store.follow("r1").poll()] == [turn, opinion_row(0, odd)]
