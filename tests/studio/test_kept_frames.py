"""Frames kept in a folder are those of the store, whatever happened to either since."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pandas.testing import assert_frame_equal

import opinionsim as osim
from opinionsim.errors import DamagedError, SpecError
from opinionsim.store import DesignRow, Results, Store, load, open_store
from opinionsim.studio._filtered import filtered
from opinionsim.studio._kept_frames import kept
from tests.support.rows import (
    CAST,
    EDGES,
    TURNS,
    add,
    begun,
    completed,
    design_row,
    instrument_row,
    measured,
    opinion_row,
    run_row,
    turn_row,
)
from tests.support.running import SMALL, changed, finished

RUNS = ("r1", "r2", "r3", "r4")
#: Casts whose personas have other attributes, and attributes of other types.
CASTS = {
    "r2": (replace(CAST[0], persona={"age": 30.5, "pet": "cat"}), CAST[1]),
    "r3": (replace(CAST[0], persona={"age": "thirty"}), replace(CAST[1], persona={})),
}
#: A second instrument, of another scale, that reads the second cell of a run.
SECOND = instrument_row("m2", (0, 1, 7), classifier="other")


def _design(runs: tuple[str, ...] = RUNS) -> DesignRow:
    """Two cells a run, of which one is read by two instruments."""
    design = design_row(runs=runs)
    both = {"m1": ("post", "report"), "m2": ("post",)}
    more = [replace(run, cell=f"again {run.run_id}", instruments=both) for run in design.runs]
    return replace(design, runs=(*design.runs, *more))


@pytest.fixture(params=["sqlite", "postgresql"])
def each_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    return str(request.getfixturevalue("postgres").database(str(tmp_path)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "studio"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Address of a store with two complete runs and two that were not begun."""
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    with open_store(url) as store:
        _prepare(store)
        for run_id in RUNS[:2]:
            completed(store, run_id, agents=CASTS.get(run_id, CAST))
    return url


def _prepare(store: Store, design: DesignRow | None = None) -> None:
    store.register([run_row(run_id) for run_id in RUNS])
    for instrument in (instrument_row(), SECOND):
        store.save_instrument(instrument)
    store.save_design(design or _design())


def _check(url: str, folder: Path) -> Results:
    """Results with kept frames, which must be those that are read."""
    found = kept(load(url), folder)
    for own, read in zip(found.counted(), load(url).counted(), strict=True):
        assert_frame_equal(own, read)
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kept"))


def _past_the_store(url: str, statement: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(statement)
    connection.close()


def _spoil(url: str) -> None:
    """Change rows of turns behind their check sums, so that reading them is an error."""
    _past_the_store(url, "UPDATE turns SET step = step + 1")
    with pytest.raises(DamagedError):
        load(url).counted()


# -- what is kept --------------------------------------------------------------------------------------------


def test_complete_runs_are_not_read_again(url: str, folder: Path) -> None:
    _check(url, folder)
    before = load(url).counted()
    _spoil(url)
    for own, read in zip(kept(load(url), folder).counted(), before, strict=True):
        assert_frame_equal(own, read)


def test_new_runs_add_to_what_is_kept(each_url: str, folder: Path) -> None:
    with open_store(each_url) as store:
        _prepare(store)
    for run_id in RUNS:
        with open_store(each_url) as store:
            completed(store, run_id, agents=CASTS.get(run_id, CAST))
        _check(each_url, folder)
        _check(each_url, folder)
        assert len(_files(folder)) == 1


def test_a_run_under_way_is_read_as_it_is(url: str, folder: Path) -> None:
    with open_store(url) as store:
        record = begun(store, "r3")
        record.begin(CAST, EDGES)
        for turn in range(3):
            for row in (turn_row(turn), opinion_row(turn)):
                add(record, row)
            record.flush()
            found = _check(url, folder)
            assert found.under_way == 1
            assert (found.runs["status"] == "running").sum() == 2
    assert [len(_files(folder)), len(load(url).turns)] == [1, 7]


OPERATIONS = ["complete", "incomplete", "begin", "forget", "measure", "look", "extend"]


@given(operations=st.lists(st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(RUNS)), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=10)
def test_whatever_happens_frames_are_those_of_the_store(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, str]]
) -> None:
    place = tmp_path_factory.mktemp("any")
    url, folder = f"sqlite:///{place / 's.sqlite'}", place / "studio"
    with open_store(url) as store:
        _prepare(store, _design(RUNS[:3]))
        for what, run_id in operations:
            status = store.states([run_id])[run_id].status
            if what in ("complete", "incomplete") and status == "pending":
                completed(store, run_id, agents=CASTS.get(run_id, CAST), status=what)
            elif what == "begin" and status == "pending":
                begun(store, run_id).begin(CAST, EDGES)
            elif what == "forget":
                store.forget([run_id])
            elif what == "extend":
                store.save_design(_design())
            elif what == "measure" and status == "complete":
                measured(store, run_id, [opinion_row(0, "m2", value=7.0, probabilities=(0.0, 0.0, 1.0))])
            # What was added is written by another thread.
            store.flush()
            if what == "look":
                _check(url, folder)
        _check(url, folder)
        _check(url, folder)


SPECS = {
    "a sweep of several numbers of agents": {"sweep": {"population.size": [3, 5], "interaction.steps": [4, 6]}},
    "two instruments": {
        "measurement__instruments": [
            {"variable": "closed-world", "classifier": "closed-world", "texts": ["report"], "context": True}
        ]
    },
    "memories": {"sweep": {"cognition.memory": ["none", "reflective"]}, "replicates": 2},
}


@pytest.mark.parametrize("values", SPECS.values(), ids=SPECS)
def test_frames_of_experiments_come_back_as_they_were(values: dict[str, Any], folder: Path) -> None:
    results = finished(changed(SMALL, **values))
    for _ in range(2):
        _check(results.url, folder)
    assert len(_files(folder)) == 1


def test_people_leave_nothing_in_files(url: str, folder: Path) -> None:
    with open_store(url) as store:
        completed(store, "r3", agents=(replace(CAST[0], evidence="human"), CAST[1]))
    _check(url, folder)
    (file,) = _files(folder)
    assert b"r1" in file.read_bytes()
    assert b"r3" not in file.read_bytes()


def test_results_without_a_store_stay_as_they_are(url: str, folder: Path) -> None:
    results = load(url)
    given = Results.of_frames(results.design_row, {"runs": results.runs}, {})
    assert kept(given, folder) is given
    assert not folder.exists()


# -- what no longer counts -----------------------------------------------------------------------------------


def _done_anew(url: str) -> None:
    with open_store(url) as store:
        store.forget(["r1"])
        completed(store, "r1", turns=[replace(TURNS[0], status="refused"), TURNS[1]])


def _forgotten(url: str) -> None:
    with open_store(url) as store:
        store.forget(["r1"])


def _measured_again(url: str) -> None:
    with open_store(url) as store:
        measured(store, "r1", [opinion_row(1, "m2", probabilities=(0.0, 1.0, 0.0))])


def _changed_design(url: str) -> None:
    with open_store(url) as store:
        design = _design()
        store.save_design(replace(design, runs=tuple(replace(run, uncounted=("answered",)) for run in design.runs)))


def _another_number(url: str) -> None:
    with open_store(url) as store:
        design = _design(RUNS[1:])
        store.save_design(replace(design, design_id="d2"))


def _another_store(url: str) -> None:
    """Runs of the same ids, one of which had another course, in a store that has the place of the first."""
    path = Path(url.removeprefix("sqlite:///"))
    path.unlink()
    with open_store(url) as store:
        _prepare(store)
        completed(store, "r1")
        completed(store, "r2", opinions=[opinion_row(value=-1.0, probabilities=(0.0, 1.0, 0.0, 0.0, 0.0))])


CHANGES = [_done_anew, _forgotten, _measured_again, _changed_design, _another_number, _another_store]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_is_outdated_does_not_count(url: str, folder: Path, change: Callable[[str], None]) -> None:
    before = _check(url, folder)
    change(url)
    found = _check(url, folder)
    assert not all(one.equals(other) for one, other in zip(before.counted(), found.counted(), strict=True))
    _check(url, folder)


def test_a_copy_that_went_on_by_itself_is_told_apart(url: str, folder: Path) -> None:
    """Both stores have as many rows of the same generation, begun at the same time."""
    path, other = Path(url.removeprefix("sqlite:///")), Path("other.sqlite")
    shutil.copy(path, other)
    for each, value in ((url, 0.0), (f"sqlite:///{other}", 7.0)):
        with open_store(each) as store:
            measured(store, "r1", [opinion_row(0, "m2", value=value, probabilities=(0.5, 0.0, 0.5))])
    assert 0.0 in set(_check(url, folder).opinions["value"])
    shutil.copy(other, path)
    assert 0.0 not in set(_check(url, folder).opinions["value"])


def test_a_missing_row_is_an_error_as_ever(url: str, folder: Path) -> None:
    _check(url, folder)
    _past_the_store(url, "DELETE FROM turns WHERE turn = 1 AND run_id = 'r1'")
    with pytest.raises(DamagedError, match="table turns has 1 rows of run r1, not 2"):
        kept(load(url), folder)


# -- the files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 3, 4, 100, -1])
def test_a_file_that_is_cut_or_damaged_is_written_anew(url: str, folder: Path, part: int) -> None:
    _check(url, folder)
    (file,) = _files(folder)
    content = file.read_bytes()
    file.write_bytes(content[:part])
    _check(url, folder)
    assert len(file.read_bytes()) == len(content)
    file.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    _check(url, folder)
    assert len(_files(folder)) == 1


class _Trap:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("sprung"),)


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
@pytest.mark.parametrize("writable", ["file", "folder"])
def test_what_others_could_write_is_not_read(url: str, folder: Path, writable: str) -> None:
    _check(url, folder)
    (file,) = _files(folder)
    assert [path.stat().st_mode & 0o777 for path in (folder, file)] == [0o700, 0o600]
    trap = pickle.dumps(_Trap())
    file.write_bytes(zlib.crc32(trap).to_bytes(4) + trap)
    {"file": file, "folder": folder}[writable].chmod(0o777)
    _check(url, folder)
    assert not Path("sprung").exists()


def test_without_a_folder_everything_is_read(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        _check(url, place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    kept(load(url))
    assert len(_files(tmp_path / "mine" / "opinionsim" / "studio")) == (os.name != "nt")


def test_several_at_once_do_not_disturb_each_other(url: str, folder: Path) -> None:
    for run_id in RUNS[2:]:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: _check(url, folder), range(8)))
        with open_store(url) as store:
            completed(store, run_id)
    _check(url, folder)
    _spoil(url)
    assert len(kept(load(url), folder).read("acts")[0]) == 8


def test_the_studies_that_were_looked_at_longest_ago_go_first(
    tmp_path: Path, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check(url, folder)
    (first,) = _files(folder)
    os.utime(first, (1, 1))
    monkeypatch.setattr("opinionsim.studio._shelf._MOST_BYTES", 1.5 * first.stat().st_size)
    (folder / "mine.txt").touch()
    shutil.copy(url.removeprefix("sqlite:///"), "copy.sqlite")
    _check("sqlite:///copy.sqlite", folder)
    (second,) = _files(folder)
    assert second != first
    assert (folder / "mine.txt").exists()


# -- some of the runs ----------------------------------------------------------------------------------------


def test_filtered_results_have_the_runs_and_rows_of_a_level(folder: Path) -> None:
    axes = {"cognition.confirmation_bias": ["none", "strong"], "population.size": [3, 4]}
    results = kept(load(finished(changed(SMALL, replicates=2, sweep=axes)).url), folder)
    found = filtered(results, {"population.size": "4", "confirmation_bias": "strong"})
    whole = results.runs[(results.runs["n_agents"] == 4) & (results.runs["confirmation_bias"] == "strong")]
    assert set(found.run_ids) == set(whole["run_id"])
    assert len(found.run_ids) == 2
    for own, read in zip(found.counted(), load(results.url).counted(), strict=True):
        expected = read[read["run_id"].isin(whole["run_id"])].reset_index(drop=True)
        assert_frame_equal(own, expected)
    assert_frame_equal(found.edges, results.edges[results.edges["run_id"].isin(whole["run_id"])].reset_index(drop=True))
    assert filtered(results) is results
    for where, message in {
        ("population.size", "5"): "no run has population.size = '5'; valid: 3, 4$",
        ("colour", "red"): "runs have no column 'colour'; valid: cognition.confirmation_bias, population.size, ",
    }.items():
        with pytest.raises(SpecError, match=message):
            filtered(results, dict([where]))


def test_cells_that_share_a_run_are_told_apart(url: str, folder: Path) -> None:
    with open_store(url) as store:
        measured(store, "r1", [opinion_row(0, "m2", probabilities=(0.0, 1.0, 0.0))])
    found = filtered(_check(url, folder), {"cell": "again r1"})
    assert list(found.runs["cell"]) == ["again r1"]
    assert list(found.opinions["instrument_id"]) == ["m1", "m2"]
    assert [len(found.agents), len(found.read("acts")[0])] == [2, 2]
    assert found.design_row.runs == (next(run for run in _design().runs if run.cell == "again r1"),)
    with pytest.raises(SpecError, match="no run has all of cell = 'again r1', topic"):
        filtered(_check(url, folder), {"cell": "again r1", "topic.framing": "r2"})


def test_another_instrument_reads_the_same_frames(url: str, folder: Path) -> None:
    results = _check(url, folder)
    _spoil(url)
    found = filtered(results, {}, "other", folder)
    assert list(found.runs["classifier"].dropna().unique()) == ["other"]
    assert_frame_equal(found.opinions, results.opinions)
    with pytest.raises(SpecError, match="'third' is no instrument of stance here"):
        filtered(results, {}, "third", folder)


def test_levels_that_are_no_texts_are_spelled_as_json(url: str, folder: Path) -> None:
    design = _design()
    levels = [None, True, ["a", 1], {"kind": "star"}]
    runs = tuple(replace(run, axes={"x": level}) for run, level in zip(design.runs, levels * 2, strict=True))
    with open_store(url) as store:
        store.save_design(replace(design, runs=runs))
    for label, run_id in zip(("null", "true", '["a", 1]', '{"kind": "star"}'), RUNS, strict=True):
        assert filtered(_check(url, folder), {"x": label}).run_ids == (run_id,)


def test_tables_of_filtered_results_are_made(folder: Path) -> None:
    results = finished(changed(SMALL, replicates=2, sweep={"cognition.confirmation_bias": ["none", "strong"]}))
    found = filtered(kept(load(results.url), folder), {"confirmation_bias": "none"})
    whole = osim.load(results.url).by_condition()
    rows = whole[whole["confirmation_bias"] == "none"]
    assert list(found.by_condition()["bias"]) == pytest.approx(list(rows["bias"]), nan_ok=True)
