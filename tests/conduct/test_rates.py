"""How well signs of conduct are told, on texts that are marked."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from opinionsim.conduct import stripped


@pytest.fixture(scope="module")
def benchmark() -> Any:
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    yield import_module("conduct")
    sys.path.remove(folder)


def test_clean_texts_stay_as_they_are_and_signs_are_seldom_told_where_there_are_none(benchmark: Any) -> None:
    found, left, _ = benchmark.measure(benchmark.rows())
    assert left["clean right"] > 450
    assert left["clean wrong"] == 0
    assert left["signs right"] > 2 * left["signs wrong"]
    for sign, least in {
        "preamble": 0.75,
        "names": 0.8,
        "lines": 0.85,
        "markup": 0.8,
        "language": 0.85,
        "length": 0.9,
        "echo": 0.9,
        "loop": 0.85,
        "empty": 0.95,
    }.items():
        counts = found[sign]
        assert counts["hit"] >= least * (counts["hit"] + counts["missed"]), sign
        assert counts["hit"] >= 0.9 * (counts["hit"] + counts["false"]), sign


def test_nothing_is_taken_out_of_texts_that_only_look_like_signs(benchmark: Any) -> None:
    texts = benchmark.rows(benchmark.DATA / "clean.jsonl")
    assert len(texts) > 300
    looked = [(row["text"], benchmark.looked_at(row)) for row in texts]
    assert [text for text, found in looked if found.status == "empty"] == []
    assert [text for text, found in looked if stripped(text, found.signs, ("lines", *benchmark.TAKEN)) != text] == []


def test_errors_are_counted_and_named(benchmark: Any) -> None:
    row = {"author": "Ann Lee", "others": [], "asked_language": "en", "limit": None, "read": ""}
    noisy = {"id": "a", "text": "Ann Lee: No lane.", "clean": "No lane.", "signs": {"own_name": ["Ann Lee:"]}}
    clean = {"id": "b", "text": "**Ann:** No lane.", "clean": "**Ann:** No lane.", "signs": {}}
    missed = {"id": "c", "text": "No lane, said Ann.", "clean": "No lane,", "signs": {"closing": ["said Ann."]}}
    found, left, errors = benchmark.measure([row | each for each in (noisy, clean, missed)])
    assert found["names"] == {"hit": 1, "false": 1}
    assert found["preamble"] == {"missed": 1}
    assert left == {"signs right": 1, "clean wrong": 1, "signs wrong": 1}
    assert errors == [
        *(("false", "names", "b"), ("left wrong", "clean", "b")),
        *(("missed", "preamble", "c"), ("left wrong", "signs", "c")),
    ]
