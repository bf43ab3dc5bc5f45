"""What happens to the file of a store while it is being written."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from opinionsim.errors import StoreError
from opinionsim.store import Doing, RunRecord, Store, open_store
from opinionsim.watching import follow
from tests.support.rows import CAST, EDGES, add, begun, call, lead, leased, numbered, run_row, seqs, turn_row
from tests.support.waiting import wait_until


def _begun(store: Store) -> RunRecord:
    """A record that turns can be added to, and of which something is durable."""
    record = begun(store)
    record.begin(CAST, EDGES)
    add(record, turn_row(0))
    record.flush()
    return record


def _delete(path: Path) -> None:
    for each in path.parent.glob(path.name + "*"):
        each.unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("moved.sqlite"))


def _delete_folder(path: Path) -> None:
    _delete(path)
    path.parent.rmdir()


def _replace(path: Path) -> None:
    """As a copy from elsewhere does, or synchronisation."""
    other = path.with_name("other.sqlite")
    open_store(str(other)).close()
    os.replace(other, path)


def _replace_by_copy(path: Path) -> None:
    other = path.with_name("other.sqlite")
    other.write_bytes(path.read_bytes())
    os.replace(other, path)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _delete_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def _replace_log(path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    copy = path.with_name("copy")
    copy.write_bytes(log.read_bytes())
    os.replace(copy, log)


@pytest.mark.parametrize(
    ("harm", "what", "file"),
    [
        (_delete, "deleted or moved", "a.sqlite"),
        (Path.unlink, "deleted or moved", "a.sqlite"),
        (_move, "deleted or moved", "a.sqlite"),
        (_delete_folder, "deleted or moved", "a.sqlite"),
        (_replace, "replaced by another", "a.sqlite"),
        (_replace_by_copy, "replaced by another", "a.sqlite"),
        (_cut, r"cut from [\d,]+ to [\d,]+ bytes", "a.sqlite"),
        (_delete_log, "deleted or moved", "a.sqlite-wal"),
        (_replace_log, "replaced by another", "a.sqlite-wal"),
    ],
)
def test_a_store_whose_file_is_gone_says_so_at_the_next_write(
    tmp_path: Path, harm: Callable[[Path], None], what: str, file: str
) -> None:
    path = tmp_path / "folder" / "a.sqlite"
    store = open_store(str(path))
    record = _begun(store)
    harm(path)
    message = rf"(the|{file} of the) store .*/folder/a\.sqlite was {what} while it was being written"
    with pytest.raises(StoreError, match=message):
        store.register([run_row("r2")])
    add(record, turn_row(1))
    with pytest.raises(StoreError, match=rf"could not save \d or more entries: {message}"):
        record.flush()
    with pytest.raises(StoreError, match="could not save"):
        record.append(call(2))
    with pytest.raises(StoreError, match=message):
        store.save_error("r1", None)
    assert not record.behind
    store.close()
    if harm is _delete_folder:
        assert not path.parent.exists()


@pytest.mark.parametrize("harm", [_delete, _move, _replace, _replace_by_copy, _cut])
def test_whoever_follows_a_run_is_told_that_its_store_is_gone(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store:
        _begun(store)
        events = follow(str(path), "r1")
        assert next(events).row == turn_row(0)
        harm(path)
        with pytest.raises(StoreError, match=r"was (deleted|replaced|cut) .* while it was being read"):
            next(events)


def test_whoever_follows_a_run_is_told_that_it_has_fewer_rows_than_before(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store, open_store(str(path), write=False) as reader:
        record = _begun(store)
        with closing(sqlite3.connect(path)) as connection:
            before = connection.execute("SELECT * FROM counts").fetchone()
        add(record, turn_row(1))
        record.flush()
        follower = reader.follow("r1")
        assert len(follower.poll()) == 2
        # What an older copy that was written over the file holds.
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM turns WHERE turn = 1")
            connection.execute("REPLACE INTO counts VALUES (?, ?, ?, ?, ?)", before)
        with pytest.raises(StoreError, match="run r1 has fewer rows than before, because another store replaced"):
            follower.poll()


def test_whoever_replaced_the_file_of_a_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    store = open_store(str(path))
    _begun(store)
    _delete(path)
    with open_store(str(path)) as other:
        _begun(other)
        with pytest.raises(StoreError, match="replaced by another while it was being written"):
            store.register([run_row("r2")])
        store.close()
        with pytest.raises(StoreError, match="in use by another run"):
            open_store(str(path))
        add(other.record("r1", 1), turn_row(1))
        assert seqs(other) == [1, 2]
    with open_store(str(path), write=False) as reader:
        assert [row for _, row in numbered(reader)] == [turn_row(0), turn_row(1)]


def test_the_signs_of_life_of_a_store_whose_file_is_gone_disturb_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opinionsim.store._workers.HEARTBEAT_S", 0.01)
    path = tmp_path / "a.sqlite"
    store = open_store(str(path))
    store.tell(lambda: Doing(1, 2, 1))
    record = _begun(store)
    wait_until(lambda: store.doing() == [Doing(1, 2, 1)])
    _delete(path)
    time.sleep(0.1)
    record.append(call(1))
    with pytest.raises(StoreError, match="deleted or moved while it was being written"):
        record.flush()
    store.close()


def test_another_process_that_keeps_the_file_locked_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opinionsim.store._files._BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        record = _begun(store)
        other.execute("BEGIN IMMEDIATE")
        add(record, turn_row(1))
        wait_until(lambda: record.behind)
        add(record, turn_row(2))
        other.execute("ROLLBACK")
        record.flush()
        assert not record.behind
        assert numbered(store) == list(enumerate(map(turn_row, range(3)), 1))


def test_another_process_that_does_not_let_go_is_named_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.store._files._BUSY_TIMEOUT_S", 0.01)
    monkeypatch.setattr("opinionsim.store._database.PATIENCE_S", 0.2)
    path = tmp_path / "a.sqlite"
    store = open_store(str(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        record = _begun(store)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"cannot write the store .*a\.sqlite: database is locked"):
            store.register([run_row("r2")])
        record.append(call(1))
        with pytest.raises(StoreError, match="could not save 1 or more entries: database is locked"):
            record.flush()
        other.execute("ROLLBACK")
    store.close()
    with open_store(str(path)) as again:
        assert [entry.key.turn for entry in begun(again, owner="host 2").entries] == [0]


class _Disk:
    """A disk with room for so many pages more than the store has."""

    def __init__(self, store: Store) -> None:
        self.pages = 0
        event.listen(store._database.reading, "begin", self._limit)

    def _limit(self, connection: Connection) -> None:
        # A limit below what there is already becomes what there is.
        connection.exec_driver_sql(f"PRAGMA max_page_count = {1 if not self.pages else self.pages}")


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.sqlite")) as store:
        record = _begun(store)
        disk = _Disk(store)
        rows = [turn_row(turn, text=f"{turn} " * 2000) for turn in range(1, 40)]
        for row in rows:
            add(record, row)
        wait_until(lambda: record.behind)
        with open_store(store.url, write=False) as reader:
            assert seqs(reader) == [1]
        disk.pages = 10**6
        record.flush()
        assert not record.behind
        assert numbered(store) == list(enumerate([turn_row(0), *rows], 1))


def test_a_disk_that_stays_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.store._database.PATIENCE_S", 0.2)
    path = tmp_path / "a.sqlite"
    store = open_store(str(path))
    record = _begun(store)
    disk = _Disk(store)
    add(record, turn_row(1, text="long " * 10**5))
    with pytest.raises(StoreError, match=r"could not save \d or more entries: database or disk is full"):
        record.flush()
    disk.pages = 10**6
    store.close()
    with open_store(str(path)) as again:
        record = begun(again, owner="host 2")
        lead(record, turns=[turn_row(0), turn_row(1, text="long " * 10**5)])
        assert seqs(again) == [1, 2, 3]


def test_a_file_that_was_cut_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store:
        record = begun(store)
        lead(record, turns=map(turn_row, range(300)), opinions=())
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(StoreError, match=r"malformed|damaged"):
        _read(path)
    assert not list(tmp_path.glob("*.lock"))


def _read(path: Path) -> None:
    with open_store(str(path)) as store:
        store.record("r1", leased(store, owner="host 2"))
        store.follow("r1").poll()
