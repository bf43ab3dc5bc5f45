"""Writing one run as a file: what it replaces, what it leaves alone, and which row it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from opinionsim.store import open_store
from opinionsim.watching import run_turns, whole_run
from tests.support.command import invoked, refused
from tests.support.running import SMALL, changed, finished


def _record(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="record">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "a.sqlite"
    events = [{"kind": "message", "step": 2, "text": "A new <b>study</b>."}]
    finished(changed(SMALL, name="export", measurement__texts=["report"], events=events), str(path))
    return path


def test_an_earlier_page_is_replaced_and_nothing_else_is(store: Path, tmp_path: Path) -> None:
    kept, page = store.read_bytes(), tmp_path / "new" / "run.html"
    for _ in range(2):
        assert invoked("view", store, "--run", "0", "--export", page).exit_code == 0
    assert [each.name for each in page.parent.iterdir()] == ["run.html"]
    assert "give another name" in refused("view", store, "--run", "0", "--export", store)
    assert store.read_bytes() == kept


@pytest.mark.parametrize(("target", "why"), [(".", "is a folder"), ("run.txt/run.html", "cannot write")])
def test_what_cannot_be_written_is_one_sentence(store: Path, tmp_path: Path, target: str, why: str) -> None:
    (tmp_path / "run.txt").write_text("mine", encoding="utf-8")
    assert why in refused("view", store, "--run", "0", "--export", tmp_path / target)
    assert (tmp_path / "run.txt").read_text("utf-8") == "mine"


def test_a_run_and_its_file_are_named_together(store: Path, tmp_path: Path) -> None:
    for options in (["--run", "0"], ["--export", str(tmp_path / "a.html")]):
        refused("view", store, *options)


def test_the_file_has_what_the_store_has_and_texts_of_events(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    invoked("view", store, "--run", "0", "--export", page)
    record = _record(page)
    with open_store(str(store), write=False) as opened:
        run_id = opened.designs()[-1].rows[0].run_id
        assert record["turns"] == json.loads(json.dumps(run_turns(opened, run_id, count=None)["turns"]))
        texts = {call["prompt"] for calls in record["calls"].values() for call in calls}
        assert texts <= {*record["prompts"], ""}
    assert record["read"]["event-0"]["text"] == "A new <b>study</b>."
    assert "<b>" not in page.read_text("utf-8").partition('id="record"')[2].partition("</script>")[0]


def test_a_large_run_says_what_is_left_out(store: Path) -> None:
    with open_store(str(store), write=False) as opened:
        run_id = opened.designs()[-1].rows[0].run_id
        whole, some = whole_run(opened, run_id, 10**9), whole_run(opened, run_id, 1)
    assert whole["left_out"] == []
    assert [each.split()[3] for each in some["left_out"]] == ["prompts", "calls"]
    assert some["turns"] == whole["turns"]
    assert (some["prompts"], some["calls"]) == ({}, {})


def test_cells_that_share_a_run_are_told_apart(tmp_path: Path) -> None:
    store = tmp_path / "two.sqlite"
    sweep = {"measurement.classifier": ["lexicon", "exact"]}
    finished(changed(SMALL, name="two", measurement={"classifier": "lexicon"}, sweep=sweep), str(store))
    found = {}
    for row in ("lexicon/0", "exact/0"):
        page = tmp_path / f"{row[0]}.html"
        assert invoked("view", store, "--run", row, "--export", page).exit_code == 0
        run = _record(page)["run"]
        found[run["about"]["row"]] = (run["about"]["cell"], run["instruments"][0]["classifier"])
    assert {row: classifier in cell for row, (cell, classifier) in found.items()} == {0: True, 1: True}
