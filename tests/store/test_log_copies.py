"""A store at every moment of a copy of its log into the file, and beside a log that is damaged or torn."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.errors import StoreError
from opinionsim.foundation.streams import stream
from opinionsim.store import copy_store, open_store
from tests.store._children import kill_in_copies, open_beside_writer, replies_of
from tests.support.examples import few
from tests.support.rows import begun, call, run_row

#: Bytes of a page of the file, of a frame of the log, and of its head.
_PAGE, _FRAME, _HEAD = 4096, 4120, 32


class Killed(NamedTuple):
    """A store whose process was killed: its file, its log, and the bytes of the log after each transaction."""

    path: Path
    file: bytes
    log: bytes
    ends: tuple[int, ...]
    rows: tuple[int, ...]
    """Replies in the store after each of them."""

    def put(self, folder: Path, file: bytes | None = None, log: bytes | None = None) -> Path:
        """The store in a folder of its own, with another file or log."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path = folder / "a.sqlite"
        path.write_bytes(self.file if file is None else file)
        log_of(path).write_bytes(self.log if log is None else log)
        return path


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    path = tmp_path_factory.mktemp("killed") / "a.sqlite"
    with open_store(str(path)) as store:
        record = begun(store)
        for turn in range(3):
            record.append(call(turn, f"{turn} " + "word " * 2000))
        record.flush()
        store.close()
    with open_store(str(path)) as store:
        ends, rows = [], []
        record = begun(store, owner="second")
        for turn in range(3, 15):
            record.append(call(turn, f"{turn} " + "word " * (turn * 300)))
            record.flush()
            ends.append(log_of(path).stat().st_size)
            rows.append(turn + 1)
        return Killed(path, path.read_bytes(), log_of(path).read_bytes(), tuple(ends), tuple(rows))


def _frames(log: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(_HEAD, len(log) - _FRAME + 1, _FRAME):
        yield int.from_bytes(log[at : at + 4]), log[at + _FRAME - _PAGE : at + _FRAME]


def _half_copied(killed: Killed, up_to: int) -> Iterator[bytes]:
    """The file at every moment of a copy of its log, which goes up to a byte where a reader needs what is before.

    SQLite copies the last frame of each page, if it is not after that byte, in the order of the pages.
    """
    last = {number: (place, page) for place, (number, page) in enumerate(_frames(killed.log))}
    file = bytearray(killed.file)
    for number, (place, page) in sorted(last.items()):
        if _HEAD + place * _FRAME < up_to:
            file.extend(bytes(max(0, (number - 1) * _PAGE - len(file))))
            file[(number - 1) * _PAGE : number * _PAGE] = page
            yield bytes(file)


def test_a_store_opens_at_every_moment_of_a_copy_of_its_log(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    states = [file for up_to in killed.ends[::-5] for file in _half_copied(killed, up_to)]
    # In most of them the first page counts pages that the file has not.
    assert sum(int.from_bytes(file[28:32]) * _PAGE > len(file) for file in states) > 10
    for number, file in enumerate(states):
        path = killed.put(tmp_path / "put", file)
        assert replies_of(path) == killed.rows[-1]
        assert log_of(path).read_bytes() == killed.log
        if number % 10 == 0:
            copy_store(str(path), str(tmp_path / "put" / "copy.sqlite"))
            assert replies_of(tmp_path / "put" / "copy.sqlite") == killed.rows[-1]
            for command in (("status",), ("store", "check")):
                assert CliRunner().invoke(app, [*command, str(path)]).exit_code == 0
        if number % 5 == 0:
            assert replies_of(path, write=True) == killed.rows[-1]
            assert not log_of(path).exists()
    assert caplog.messages == []


def test_a_check_says_what_it_cannot_tell_of_a_log(killed: Killed, tmp_path: Path) -> None:
    path = killed.put(tmp_path / "put", log=killed.log[: killed.ends[-3]])
    found = CliRunner().invoke(app, ["store", "check", str(path)])
    assert found.exit_code == 0
    assert found.stdout.startswith("The store is sound.\nIts last rows are in a log file")
    assert replies_of(path, write=True) == killed.rows[-3]


def test_a_file_that_was_cut_beside_its_log_is_refused(killed: Killed, tmp_path: Path) -> None:
    logged = {number for number, _ in _frames(killed.log)}
    lacking = max(set(range(1, len(killed.file) // _PAGE + 1)) - logged)
    path = killed.put(tmp_path / "put", killed.file[: (lacking - 1) * _PAGE])
    for write in (True, False):
        with pytest.raises(StoreError, match=r"was truncated: it and a\.sqlite-wal lack pages; restore it"):
            open_store(str(path), write=write)
        assert log_of(path).read_bytes() == killed.log


# -- damage of the log -----------------------------------------------------------------------------------------


def _flips(killed: Killed) -> Iterator[int]:
    """Bytes of the log: of its head, of the head of each frame but the unused, and of the page in it."""
    draws = stream(1, "flips")
    yield from range(_HEAD)
    for place in range(len(list(_frames(killed.log)))):
        for at in draws.permutation((0, 5, *range(8, 24), *draws.integers(24, _FRAME, 8)))[:3]:
            yield _HEAD + place * _FRAME + int(at)


@pytest.mark.parametrize("part", few(range(9), 1))
def test_damage_in_a_log_is_told_and_the_log_is_kept(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture, part: int
) -> None:
    told = 0
    for number, byte in list(enumerate(_flips(killed)))[part::9]:
        damaged = bytearray(killed.log)
        damaged[byte] ^= 1 << number % 8
        path = killed.put(tmp_path / f"{number}", log=bytes(damaged))
        caplog.clear()
        with open_store(str(path), write=False) as store:
            found = list(store.damage())
            read = len(store.entries("r1")) if store.states() else 0
        if _HEAD + (byte - _HEAD) // _FRAME * _FRAME == len(damaged) - _FRAME and (byte - _HEAD) % _FRAME in range(
            4, 16
        ):
            # Without its salt, or what says that it ends a transaction, the last frame is that of one never ended.
            assert read == killed.rows[-2]
            continue
        assert "a.sqlite-wal of the store" in found[0]
        assert "and unreadable after it" in found[0]
        assert found[0] in caplog.messages[0]
        assert log_of(path).read_bytes() == damaged
        assert CliRunner().invoke(app, ["store", "check", str(path)]).exit_code == 1
        caplog.clear()
        assert replies_of(path, write=True) == read in (0, 3, *killed.rows)
        (kept,) = path.parent.glob("*.damaged-*")
        assert kept.read_bytes() == damaged
        assert not log_of(path).exists()
        assert replies_of(path) == read
        told += 1
    assert told > 30


def test_a_torn_end_of_a_log_is_no_damage(killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    draws = stream(2, "ends")
    cuts = {0, 10, _HEAD, _HEAD + 24, *killed.ends, *(end - 1 for end in killed.ends)}
    for cut in sorted({*cuts, *draws.integers(len(killed.log), size=40).tolist()}):
        path = killed.put(tmp_path / "put", log=killed.log[:cut])
        expected = max((rows for end, rows in zip(killed.ends, killed.rows, strict=True) if end <= cut), default=3)
        assert replies_of(path) == expected if cut else True
        # A transaction of which a part was written, and a shorter one over it.
        with open_store(str(path)) as store:
            store.register([run_row(f"r{cut}")])
            if cut:
                shutil.copy(path, tmp_path / "over.sqlite")
                log = log_of(path).read_bytes()
                log_of(tmp_path / "over.sqlite").write_bytes(log + killed.log[len(log) : cut])
                with open_store(str(tmp_path / "over.sqlite"), write=False) as over:
                    assert f"r{cut}" in over.states()
    assert [each for each in caplog.messages if "damaged" in each] == []


def test_a_part_of_a_damaged_log_in_the_file_is_not_built_upon(killed: Killed, tmp_path: Path) -> None:
    damaged = bytearray(killed.log)
    damaged[_HEAD + 30] ^= 1
    for file in list(_half_copied(killed, len(killed.log)))[2:-2:3]:
        path = killed.put(tmp_path / "put", file, bytes(damaged))
        for write in (True, False):
            with pytest.raises(StoreError, match=r"malformed|damaged without its log|was cut"):
                open_store(str(path), write=write).damage().__next__()
        assert log_of(path).read_bytes() == damaged


# -- real processes --------------------------------------------------------------------------------------------


def test_a_writer_that_dies_while_it_copies_its_log_loses_nothing(tmp_path: Path) -> None:
    kill_in_copies(tmp_path / "a.sqlite", stream(3, "kills"), 5)


def test_a_full_disk_while_the_log_is_copied_loses_nothing(tmp_path: Path) -> None:
    kill_in_copies(tmp_path / "a.sqlite", stream(4, "disks"), 3, dies=False)


def test_a_reader_beside_a_writer_raises_no_alarm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_beside_writer(tmp_path / "a.sqlite", 300)
    assert caplog.messages == []
