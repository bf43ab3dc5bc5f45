"""What becomes of a store that was damaged: every change is without effect, or named by whoever reads it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.errors import SpecError, StoreError
from opinionsim.running import Invocation, replay, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.conftest import (
    _interruptible as _interruptible,
    _loopback_only as _loopback_only,
    _own_folder as _own_folder,
)
from tests.support.editing import edit
from tests.support.running import SMALL, carry_out, changed, ended, watched

#: A run whose ties move, with probes and an instrument beside stance.
SPEC: dict[str, Any] = changed(
    SMALL,
    population={"size": 5},
    interaction={"kind": "rewiring", "steps": 14, "tolerance": 1.0, "network": "ring"},
    measurement={"texts": ["report"], "probe": {"before": 1, "after": 1}},
)
FLIPS = int(os.environ.get("OPINIONSIM_FLIPS", "40"))
_FRAMES = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics")


class Seen(NamedTuple):
    """What a store shows."""

    frames: dict[str, pd.DataFrame]
    prompts: list[Any]
    used: tuple[Any, ...]
    """What `status` tells: what was paid, and the models that answered."""


def _seen(path: Path) -> Seen:
    """Everything that can be read of a store, after a replay.

    Raises
    ------
    StoreError
        If something is named as damaged, by a reader or by the replay.
    """
    results = osim.load(str(path))
    frames = {name: getattr(results, name) for name in _FRAMES}
    with open_store(str(path), write=False) as store:
        keys = [(run_id, *entry.key) for run_id in results.run_ids for entry in store.calls(run_id)]
        prompts = [store.prompt(*key) for key in keys]
        used = (store.spending(), store.usage(results.run_ids), store.models(results.run_ids))
        lost = store.missing()
    if lost:
        raise StoreError(str(lost))
    found = replay(results)
    for each in found:
        if each.difference:
            raise StoreError(each.difference)
    assert len(found) == len(results.run_ids)
    return Seen(frames, prompts, used)


def _outcome(path: Path, whole: Seen) -> str:
    """``named``, ``no effect`` or ``silent``."""
    try:
        seen = _seen(path)
    except (StoreError, SpecError) as error:
        # Another error, or none of ours, is not what a user can act on.
        return "misnamed" if "wording of the prompts" in str(error) else "named"
    equal = all(seen.frames[name].equals(whole.frames[name]) for name in _FRAMES)
    return "no effect" if equal and seen[1:] == whole[1:] else "silent"


def _passes_check(path: Path) -> bool:
    """Whether `store check` finds nothing."""
    try:
        with open_store(str(path), write=False) as store:
            return not list(store.damage())
    except StoreError:
        return False


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "whole.sqlite"
    summary, results = carry_out(SPEC, str(path))
    assert summary.complete == 1
    assert results.edges["until"].notna().any()
    return path


@pytest.fixture(scope="module")
def whole(store: Path) -> Seen:
    return _seen(store)


def test_a_flipped_bit_is_without_effect_or_named(store: Path, whole: Seen, tmp_path: Path) -> None:
    content = store.read_bytes()
    rng = np.random.default_rng(20261122)
    outcomes = []
    for flip in range(FLIPS):
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path = tmp_path / f"{flip}.sqlite"
        path.write_bytes(damaged)
        outcomes.append((_outcome(path, whole), _passes_check(path), place, bit))
        path.unlink()
    assert [each for each in outcomes if each[0] in ("silent", "misnamed")] == []
    assert [each for each in outcomes if each[:2] == ("named", True)] == []
    # Most of the file says something.
    assert sum(each[0] == "named" for each in outcomes) > FLIPS // 10


def test_a_deleted_row_is_named_by_a_check_and_reaches_no_number(store: Path, whole: Seen, tmp_path: Path) -> None:
    tables = ("experiments", "designs", "runs", "counts", "agents", "edges", "ties", "texts", "prompts", "turns")
    tables += ("journal", "instruments", "opinions")
    rng = np.random.default_rng(20261124)
    path = tmp_path / "edited.sqlite"
    for table in rng.permutation(tables * (FLIPS // len(tables) + 1))[: FLIPS // 2]:
        shutil.copy(store, path)
        with closing(sqlite3.connect(path)) as connection, connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()  # noqa: S608
            chosen = rows[rng.integers(len(rows))]
            where = " AND ".join(f"{column} = ?" for column in columns)
            connection.execute(f"DELETE FROM {table} WHERE {where}", chosen)  # noqa: S608
        assert not _passes_check(path), (table, chosen)
        assert _outcome(path, whole) in ("named", "no effect"), (table, chosen)


#: What somebody may do by hand; tests/store/test_damage.py changes every value of every table.
EDITS = (
    "update opinions set value = -value",
    "delete from opinions where seq = (select max(seq) from opinions)",
    "update runs set status = 'incomplete'",
    "insert into edges values ((select run_id from runs), 0, 3, 1.0, 5)",
    "insert into ledger values ('e', 'r', 0, 1, 0, 1, 0, 1, 5.0, 0.0, 1.0, 7)",
    "update schema_version set version = 99",
    "delete from schema_version",
)


@pytest.mark.parametrize("statement", EDITS)
def test_an_edit_by_hand_is_named(store: Path, whole: Seen, tmp_path: Path, statement: str) -> None:
    path = tmp_path / "edited.sqlite"
    shutil.copy(store, path)
    assert edit(path, statement)
    assert _outcome(path, whole) == "named"


@pytest.mark.parametrize(
    "statement",
    [
        "update texts set text = 'I love pizza.' where text_id = (select text_id from journal where turn = 7)",
        "delete from texts where text_id = (select text_id from journal where turn = 7)",
        "update journal set acceptance = 'bogus' where turn = 7",
        "update journal set text_id = (select text_id from journal where turn = 6) where turn = 7",
        "delete from journal where turn = 7",
        "delete from journal where turn in (select turn from turns)",
        "update turns set status = 'refused' where turn = 7",
        "delete from turns where turn = 7",
        "update opinions set value = 2 where turn = (select min(turn) from opinions)",
        "delete from opinions where seq = (select min(seq) from opinions)",
        "delete from agents where agent = 0",
    ],
)
def test_a_damaged_run_is_not_gone_on_with(statement: str, tmp_path: Path) -> None:
    path = str(tmp_path / "cut.sqlite")
    spec = changed(SMALL, population={"size": 5}, interaction__steps=12)
    model, _ = watched(fails=lambda n: n == 18)
    ended(spec, path, model, slots=1)
    assert edit(path, statement)
    again, watch = watched()
    with under_way(Invocation(load_experiment(spec), path, chat_model=again)) as (_, future):
        summary = future.result()
    (error,) = summary.errors.values()
    assert "the store is damaged" in error
    assert "--fresh" in error
    assert "wording" not in error
    assert watch.asked == []
    summary, results = carry_out(spec, path, again, fresh=True)
    assert summary.complete == 1
    assert len(results.turns) == len(results.calls) == 24


@pytest.mark.parametrize(
    "statement",
    [
        "delete from opinions where run_id = ? and turn = (select min(turn) from opinions)",
        "delete from turns where run_id = ? and turn = 3",
        "update texts set text = 'No.' where text_id = (select text_id from turns where run_id = ? and turn = 3)",
        "update agents set name = 'Nobody' where run_id = ?",
    ],
)
def test_a_damaged_complete_run_stops_alone_and_is_begun_anew(statement: str, tmp_path: Path) -> None:
    path = str(tmp_path / "complete.sqlite")
    spec = changed(SMALL, replicates=2)
    ended(spec, path)
    damaged = osim.load(path).run_ids[0]
    assert edit(path, statement, damaged)
    more = load_experiment(changed(spec, replicates=3))
    model, watch = watched()
    with under_way(Invocation(more, path, chat_model=model)) as (_, future):
        summary = future.result()
    # Other runs are carried out; what is not counted out is found when it is read.
    assert len(watch.asked) == 12
    if "delete" in statement:
        assert list(summary.errors) == [damaged]
        assert "the store is damaged" in summary.errors[damaged]
    anew, second = watched()
    summary, results = carry_out(more, path, anew, fresh=True)
    assert (summary.complete, summary.errors, len(second.asked)) == (3, {}, 12)
    assert set(results.runs["status"]) == {"complete"}


def test_a_design_or_a_sum_that_is_gone_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.sqlite")
    ended(SMALL, path)
    ended(changed(SMALL, population={"size": 5}), path)
    with open_store(path) as store:
        store.forget([osim.load(path).run_ids[0]])
    for statement in ("delete from designs where design = 2", "delete from designs where design = 1"):
        copy = tmp_path / "copy.sqlite"
        shutil.copy(path, copy)
        assert edit(copy, statement)
        with pytest.raises(StoreError, match="a design of small is missing"):
            osim.load(str(copy))
    assert edit(path, "delete from ledger")
    with (
        open_store(path, write=False) as store,
        pytest.raises(StoreError, match=r"what was paid for run .* is missing"),
    ):
        store.spending()
