"""Runs of classic sweeps in a store."""

from __future__ import annotations

import math

import pytest
from sqlalchemy import create_engine, text

from opinionsim.errors import DamagedError
from opinionsim.store import PointRow, open_store

KEYS = {"a": {"model": "voter"}, "b": {"model": "voter", "n": 3}}


def row(point: str, replicate: int, error: str = "", **measures: float) -> PointRow:
    return PointRow(point, replicate, measures, 5, False, error)


def test_runs_are_read_as_they_were_written(each_url: str) -> None:
    rows = [
        row("b", 1, x=math.nan, y=math.inf, z=-math.inf),
        row("a", 0, x=0.1 + 0.2),
        PointRow("a", 7, {"x": 1e-320}, 3, True),
        row("b", 0, "it \x00 failed\ud800"),
    ]
    with open_store(each_url) as store:
        store.save_points(rows, KEYS)
    with open_store(each_url, write=False) as store:
        found = list(store.points(["b", "a", "c"]))
        assert store.point_counts(["a", "b", "c"]) == {"a": (2, 0), "b": (1, 1)}
        assert store.failed_points(["a", "b"]) == [rows[3]]
        assert store.point_keys(["a", "b", "c"]) == KEYS
    assert [repr(each) for each in found] == [repr(each) for each in sorted(rows, key=lambda r: r[:2])]


def test_measures_are_added_and_failures_are_mended(each_url: str) -> None:
    with open_store(each_url) as store:
        store.save_points([row("a", 0, x=1.0), row("a", 1, "no luck"), row("a", 2, x=2.0)], KEYS)
        store.save_points([row("a", 0, y=3.0, x=1.5), row("a", 1, x=4.0), row("a", 2, "worse"), row("a", 3)], KEYS)
        assert list(store.points(["a"])) == [
            row("a", 0, x=1.5, y=3.0), row("a", 1, x=4.0), row("a", 2, "worse", x=2.0), row("a", 3),
        ]  # fmt: skip


def test_rows_of_many_points_are_found_again(each_url: str) -> None:
    rows = [row(f"p{place:04}", replicate, x=float(replicate)) for place in range(700) for replicate in range(2)]
    with open_store(each_url) as store:
        for _ in range(2):
            store.save_points(rows, {each.point_id: {} for each in rows})
        assert list(store.points({each.point_id for each in rows})) == rows


def test_a_run_that_was_changed_is_told(each_url: str) -> None:
    with open_store(each_url) as store:
        store.save_points([row("a", 0, x=1.0)], KEYS)
    engine = create_engine(each_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE points SET time = 6"))
    engine.dispose()
    with open_store(each_url, write=False) as store, pytest.raises(DamagedError, match="points the row of point_id a"):
        list(store.points(["a"]))
