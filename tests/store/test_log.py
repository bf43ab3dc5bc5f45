"""A store in a file knows its own log: whatever is copied, moved, put back or killed, nothing foreign is ever read."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.errors import StoreError
from opinionsim.foundation.streams import stream
from opinionsim.store import Store, copy_store, open_store
from tests.store._children import killed, started
from tests.support.examples import few
from tests.support.rows import begun, call, run_row

_APPENDER = """
import sys
from opinionsim.store import open_store
from tests.support.rows import begun, call

store = open_store(sys.argv[1])
record = begun(store, owner="child")
for turn in range(200):
    record.append(call(turn, f"text {turn}"))
    if turn == 100:
        store.flush()
store.flush()
print(200, flush=True)
sys.stdin.read()
"""


class State(NamedTuple):
    """A store as it would be if its writer had been killed at a moment."""

    file: bytes
    log: bytes | None
    held: dict[str, str]
    session: str
    closed: bool = False


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _state(path: Path, held: dict[str, str], session: str) -> State:
    log = _log(path)
    return State(path.read_bytes(), log.read_bytes() if log.exists() else None, dict(held), session)


def _put(path: Path, file: bytes, log: bytes | None) -> None:
    path.parent.mkdir()
    path.write_bytes(file)
    if log is not None:
        _log(path).write_bytes(log)


def _held(path: Path, *, write: bool = False) -> dict[str, str]:
    """What a store holds: the errors of its runs, by id. Its pages are looked through as well."""
    with open_store(str(path), write=write) as store, store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        return {run_id: state.error for run_id, state in store.states().items()}


@contextmanager
def _reader(path: Path) -> Iterator[None]:
    """A reader in the midst of a long transaction."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchone()
        yield


def _session(path: Path, draws: np.random.Generator, held: dict[str, str], name: str) -> list[State]:
    """Write a store for a while, beside readers; its states at drawn moments, the last one closed."""
    found = []
    with open_store(str(path)) as store:
        reading = ExitStack()
        for number in range(draws.integers(4, 11)):
            if draws.random() < 0.3:
                reading.close()
            if draws.random() < 0.3:
                reading.enter_context(_reader(path))
            if not held or draws.random() < 0.6:
                run_id = f"{name}{number}"
                store.register([run_row(run_id, claim="x" * int(draws.choice((10, 5000))))])
                held[run_id] = ""
            else:
                run_id = str(draws.choice(sorted(held)))
                held[run_id] = f"{name} {number} " + "y" * int(draws.choice((10, 1500)))
                store.save_error(run_id, StoreError(held[run_id]))
            if draws.random() < 0.4:
                found.append(_state(path, held, name))
        reading.close()
    return [*found, _state(path, held, name)._replace(closed=True)]


@pytest.mark.parametrize("seed", few(range(10), 4))
def test_a_file_is_read_with_its_own_log_and_with_no_other(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opinionsim.store._log.LIMIT", 30_000)
    monkeypatch.setattr("opinionsim.store._log._AGAIN_S", 0.0)
    monkeypatch.setattr("opinionsim.store._log._WAIT_MS", 1)
    draws = stream(seed, "logs")
    path, held = tmp_path / "a.sqlite", dict[str, str]()
    states = [state for name in "ab" for state in _session(path, draws, held, name)]
    # The store goes on in two copies of a state, as after a copy was put back and forgotten.
    start = states[draws.integers(len(states))]
    for name in "cd":
        _put(tmp_path / name / "a.sqlite", start.file, start.log)
        states += _session(tmp_path / name / "a.sqlite", draws, dict(start.held), name)
    for number, state in enumerate(states):
        # Killed, or both copied, and resumed.
        _put(tmp_path / f"whole{number}" / "a.sqlite", state.file, state.log)
        assert _held(tmp_path / f"whole{number}" / "a.sqlite", write=bool(number % 2)) == state.held
        # Moved alone: what is missing is never missing in silence.
        caplog.clear()
        place = tmp_path / f"alone{number}" / "a.sqlite"
        _put(place, state.file, None)
        with suppress(StoreError):
            open_store(str(place), write=False).close()
            assert [record.levelno for record in caplog.records] == [logging.WARNING] * (not state.closed)
        with suppress(StoreError):
            found = _held(place, write=True)
            assert found == state.held or not state.closed
    for number in range(25):
        # The file of one state beside the log of another.
        first, second = draws.permutation(len(states))[:2]
        file, log = states[first], states[second]
        place = tmp_path / f"put{number}" / "a.sqlite"
        _put(place, file.file, log.log)
        if not log.log or (file.session == log.session and first > second):
            # A log copied before its file is the one state that is not told in every case.
            continue
        try:
            found, said = _held(place, write=bool(number % 2)), ""
        except StoreError as error:
            found, said = {}, str(error)
        if said:
            assert "would damage it; if" in said
            assert (place.read_bytes(), _log(place).read_bytes()) == (file.file, log.log)
        assert said or found == log.held


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    """The store of a killed process: 200 replies, some of them in its log alone; beside it `old.sqlite`, a copy."""
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store:
        store.register([run_row()])
    shutil.copy(path, tmp_path / "old.sqlite")
    assert killed(_APPENDER, str(path)) == [200]
    assert _log(path).stat().st_size > 0
    return path


def _replies(path: Path, *, write: bool = False) -> int:
    with open_store(str(path), write=write) as store:
        return len(store.entries("r1"))


def _bytes(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.suffix != ".lock"}


def test_a_copy_that_is_put_back_after_a_kill_is_refused_and_left_alone(dead: Path) -> None:
    shutil.copy(dead, dead.with_name("theirs.sqlite"))
    shutil.copy(dead.with_name("old.sqlite"), dead)
    before = _bytes(dead.parent)
    message = "a.sqlite-wal beside .* belongs to another state of this store or to another store"
    for command in ("status", "table", "replay"):
        result = CliRunner().invoke(app, [command, str(dead)])
        assert result.exit_code == 2
        assert "move a.sqlite-wal away and keep it" in result.stderr
    for write in (True, False):
        with pytest.raises(StoreError, match=message):
            open_store(str(dead), write=write)
    after = _bytes(dead.parent)
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: content for name, content in before.items() if not name.endswith("-shm")
    }
    # As the message says: its own file, or the copy alone.
    shutil.copy(dead.with_name("theirs.sqlite"), dead)
    assert _replies(dead) == 200
    shutil.copy(dead.with_name("old.sqlite"), dead)
    _log(dead).rename(dead.with_name("kept"))
    assert _replies(dead, write=True) == 0


def test_readers_of_a_killed_store_leave_file_and_log_as_they_are(dead: Path) -> None:
    before = dead.read_bytes(), _log(dead).read_bytes()
    assert CliRunner().invoke(app, ["status", str(dead)]).exit_code == 0
    assert _replies(dead) == 200
    assert (dead.read_bytes(), _log(dead).read_bytes()) == before
    assert _replies(dead, write=True) == 200
    assert sorted(each.name for each in dead.parent.iterdir()) == ["a.sqlite", "old.sqlite"]


def test_a_log_without_its_file_is_kept(dead: Path) -> None:
    moved = dead.with_name("moved.sqlite")
    dead.rename(moved)
    log = _log(dead).read_bytes()
    for _ in range(2):
        for write in (True, False):
            with pytest.raises(StoreError, match=r"is missing, but its log a\.sqlite-wal exists and has"):
                open_store(str(dead), write=write)
        assert _log(dead).read_bytes() == log
        # SQLite takes an empty file for none.
        dead.touch()
    moved.replace(dead)
    assert _replies(dead, write=True) == 200


def test_a_file_moved_without_its_log_says_so_until_it_is_closed(dead: Path, caplog: pytest.LogCaptureFixture) -> None:
    moved = dead.with_name("moved.sqlite")
    dead.rename(moved)
    for _ in range(2):
        assert _replies(moved) < 200
    assert [record.getMessage() for record in caplog.records] == [
        f"the store {moved} was not closed and has no log; if you copied or moved it without moved.sqlite-wal, "
        "the last replies are missing; copy the log too, or continue without them"
    ]
    _log(dead).rename(_log(moved))
    assert _replies(moved) == 200
    open_store(str(moved)).close()
    shutil.copy(moved, moved.with_name("again.sqlite"))
    assert _replies(moved.with_name("again.sqlite")) == 200
    assert len(caplog.records) == 1


def test_a_copy_made_at_any_time_is_whole_and_one_file(dead: Path, tmp_path: Path) -> None:
    copy_store(str(dead), str(tmp_path / "new" / "killed.sqlite"))
    with open_store(str(dead)) as store, store.reading():
        store.register([run_row("r2")])
        copy_store(store.url, str(tmp_path / "new" / "live.sqlite"))
    found = CliRunner().invoke(app, ["store", "copy", str(dead), f"sqlite:///{tmp_path}/new/closed.sqlite"])
    assert (found.exit_code, found.stdout) == (0, f"sqlite:///{tmp_path}/new/closed.sqlite\n")
    copies = sorted((tmp_path / "new").iterdir())
    assert [copy.name for copy in copies] == ["closed.sqlite", "killed.sqlite", "live.sqlite"]
    assert [_replies(copy) for copy in copies] == [200] * 3
    assert [len(_held(copy)) for copy in copies] == [2, 1, 2]
    # A copy does not pass for the file it was made of.
    with open_store(str(dead)) as store:
        store.register([run_row("r3")])
        log = _log(dead).read_bytes()
    for copy in copies:
        _log(copy).write_bytes(log)
        with pytest.raises(StoreError, match="belongs to another state"):
            open_store(str(copy), write=False)


def test_copies_that_cannot_be_made_leave_nothing_behind(dead: Path, tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("no store " * 1000)
    before = sorted(_bytes(tmp_path))
    for source, target, message in (
        (dead, dead, "a.sqlite already exists; choose another name for the copy"),
        (tmp_path / "text.sqlite", tmp_path / "b.sqlite", "not a database"),
        (tmp_path / "none.sqlite", tmp_path / "b.sqlite", "there is no store at"),
        (dead, tmp_path / "text.sqlite" / "b.sqlite", "text.sqlite is not a folder"),
        (dead, "postgresql://u:secret@h/d", "postgresql://u@h/d is a database, but this command copies only files"),
    ):
        with pytest.raises(StoreError, match=message):
            copy_store(str(source), str(target))
    assert sorted(_bytes(tmp_path)) == before


def _size(store: Store) -> int:
    return _log(Path(store.url.removeprefix("sqlite:///"))).stat().st_size


def test_the_log_is_brought_in_when_it_is_long_and_readers_let_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opinionsim.store._log.LIMIT", 100_000)
    monkeypatch.setattr("opinionsim.store._log._AGAIN_S", 0.0)
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store, open_store(str(path), write=False) as follower:
        record = begun(store)
        sizes = []
        for turn in range(300):
            record.append(call(turn, f"{turn} " + "word " * 200))
            record.flush()
            sizes.append(_size(store))
            assert len(follower.states()) == 1
        # Beside short looks it stays short.
        assert max(sizes) < 200_000
        with _reader(path):
            for turn in range(300, 500):
                record.append(call(turn, f"{turn} " + "word " * 200))
            record.flush()
            held = _size(store)
            record.append(call(500))
            record.flush()
        assert held > 200_000
        record.append(call(501))
        record.flush()
        assert _size(store) == 0
        with _reader(path):
            record.append(call(502))
            record.flush()
    # The reader had left when the store was closed: it is one file.
    assert _replies(path) == 503
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_store_closed_beside_a_long_reader_keeps_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.store._log._LAST_WAIT_MS", 1)
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store:
        record = begun(store)
        with _reader(path):
            for turn in range(10):
                record.append(call(turn))
            store.close()
    assert _log(path).stat().st_size > 0
    assert _replies(path) == 10
    assert _replies(path, write=True) == 10
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


#: Appends one reply to a store, whose run it begins where there is none; or only reads it.
_VISITOR = """
import sys
from opinionsim.store import open_store
from tests.support.rows import begun, call

path, turn = sys.argv[1], int(sys.argv[2])
with open_store(path, write=turn >= 0) as store:
    if turn >= 0:
        record = begun(store, owner=f"visitor {turn}")
        record.append(call(turn))
        record.flush()
    store.states()
"""


def _visit(path: Path, turn: int = -1) -> None:
    with started(_VISITOR, str(path), str(turn)) as child:
        assert child.wait(60) == 0


def test_a_reader_sees_what_every_later_writer_of_another_process_adds(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    _visit(path, 0)
    with open_store(str(path), write=False) as reader:
        found = []
        for turn in (1, 2, 3):
            _visit(path, turn)
            found.append(sum(len(reader.entries(run_id)) for run_id in reader.states()))
    assert found == [2, 3, 4]


def test_a_reader_of_another_process_leaves_the_log_to_a_writer_that_was_read_here_too(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(str(path)) as store:
        record = begun(store)
        record.append(call(0))
        record.flush()
        with _reader(path):
            pass
        _visit(path)
        record.append(call(1))
        record.flush()
    assert _replies(path) == 2


def test_a_killed_store_in_a_folder_that_cannot_be_written(dead: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert _replies(dead) == 200
    dead.with_name("a.sqlite-shm").unlink()
    with pytest.raises(StoreError, match=r"only be read with its log a\.sqlite-wal, in a writable folder"):
        open_store(str(dead), write=False)
