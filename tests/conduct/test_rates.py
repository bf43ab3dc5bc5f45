"""How well signs of conduct are told, on texts that are marked."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def benchmark() -> Any:
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    yield import_module("conduct")
    sys.path.remove(folder)


def test_clean_texts_stay_as_they_are_and_signs_are_seldom_told_where_there_are_none(benchmark: Any) -> None:
    found, left, _ = benchmark.measure(benchmark.rows("development"))
    assert left["clean right"] > 200
    assert left["clean wrong"] == 0
    assert left["signs right"] > 4 * left["signs wrong"]
    for sign, least in {
        "preamble": 0.8,
        "lines": 0.75,
        "language": 0.7,
        "length": 0.85,
        "echo": 0.9,
        "loop": 0.75,
    }.items():
        counts = found[sign]
        assert counts["hit"] >= least * (counts["hit"] + counts["missed"]), sign
        assert counts["hit"] >= 0.9 * (counts["hit"] + counts["false"]), sign


def test_errors_are_counted_and_named(benchmark: Any) -> None:
    row = {"author": "Ann Lee", "others": [], "asked_language": "en", "limit": None, "read": ""}
    noisy = {"id": "a", "text": "Post: No lane.", "clean": "No lane.", "signs": {"preamble": ["Post:"]}}
    clean = {"id": "b", "text": "Tweet: No lane.", "clean": "Tweet: No lane.", "signs": {}}
    missed = {"id": "c", "text": "No lane, said Ann.", "clean": "No lane,", "signs": {"closing": ["said Ann."]}}
    found, left, errors = benchmark.measure([row | each for each in (noisy, clean, missed)])
    assert found["preamble"] == {"hit": 1, "false": 1, "missed": 1}
    assert left == {"signs right": 1, "clean wrong": 1, "signs wrong": 1}
    assert errors == [("false", "preamble", "b"), ("missed", "preamble", "c")]
