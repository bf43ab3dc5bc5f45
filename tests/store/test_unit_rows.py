"""Units of work of studies without runs in a store."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine, text

from opinionsim.errors import DamagedError
from opinionsim.store import UnitRow, open_store

KEYS = {"a": {"model": "voter"}, "b": {"model": "voter", "n": 3}}


def row(unit: str, replicate: int, error: str = "", **values: Any) -> UnitRow:
    return UnitRow(unit, replicate, values, error)


def test_runs_are_read_as_they_were_written(each_url: str) -> None:
    rows = [
        row("b", 1, x=None, y="inf", z=[1, 2]),
        row("a", 0, x=0.1 + 0.2),
        UnitRow("a", 7, {"x": 1e-320, "time": 3, "stopped": True, "said": ["a", {"b": None}]}),
        row("b", 0, "it \x00 failed\ud800"),
    ]
    with open_store(each_url) as store:
        store.save_units(rows, KEYS)
    with open_store(each_url, write=False) as store:
        found = list(store.units(["b", "a", "c"]))
        assert store.unit_counts(["a", "b", "c"]) == {"a": (2, 0), "b": (1, 1)}
        assert store.failed_units(["a", "b"]) == [rows[3]]
        assert store.unit_keys(["a", "b", "c"]) == KEYS
    assert [repr(each) for each in found] == [repr(each) for each in sorted(rows, key=lambda r: r[:2])]


def test_measures_are_added_and_failures_are_mended(each_url: str) -> None:
    with open_store(each_url) as store:
        store.save_units([row("a", 0, x=1.0), row("a", 1, "no luck"), row("a", 2, x=2.0)], KEYS)
        store.save_units([row("a", 0, y=3.0, x=1.5), row("a", 1, x=4.0), row("a", 2, "worse"), row("a", 3)], KEYS)
        assert list(store.units(["a"])) == [
            row("a", 0, x=1.5, y=3.0), row("a", 1, x=4.0), row("a", 2, "worse", x=2.0), row("a", 3),
        ]  # fmt: skip


def test_rows_of_many_points_are_found_again(each_url: str) -> None:
    rows = [row(f"p{place:04}", replicate, x=float(replicate)) for place in range(700) for replicate in range(2)]
    with open_store(each_url) as store:
        for _ in range(2):
            store.save_units(rows, {each.unit_id: {} for each in rows})
        assert list(store.units({each.unit_id for each in rows})) == rows


def test_a_run_that_was_changed_is_told(each_url: str) -> None:
    with open_store(each_url) as store:
        store.save_units([row("a", 0, x=1.0)], KEYS)
    engine = create_engine(each_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE units SET held = '{}'"))
    engine.dispose()
    with open_store(each_url, write=False) as store, pytest.raises(DamagedError, match="units the row of unit_id a"):
        list(store.units(["a"]))
