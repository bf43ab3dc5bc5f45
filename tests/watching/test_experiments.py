"""The state of an experiment while it runs: its calls, what processes are doing, and causes of errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import opinionsim as osim
from opinionsim import watching
from opinionsim.errors import Cause, ModelCallError
from opinionsim.llm import Entry, EntryKey
from opinionsim.store import Doing, RunRecord, Store, TurnRow, open_store
from tests.support.running import SMALL, changed
from tests.support.waiting import wait_until


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """The store of a run of twelve calls, open for writing."""
    url = "s.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres").database(request.node.name)
    osim.run(osim.load_experiment(changed(SMALL, measurement={"classifier": "lexicon"})), url)
    with open_store(url) as opened:
        yield opened


def _begun(store: Store) -> RunRecord:
    """The record of the run, begun anew by hand."""
    (design,) = store.designs()
    (run,) = design.runs
    agents = store.agents(run.run_id)
    store.forget([run.run_id])
    record = store.record(run.run_id, store.lease(run.run_id, "host 1") or 0, design.experiment_id)
    record.begin(agents, [])
    return record


def _told(store: Store) -> dict[str, Any]:
    with open_store(store.url, write=False) as reader:
        return watching.experiment(reader)


def test_calls_are_counted_while_they_come(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    monkeypatch.setattr("opinionsim.watching._experiments.time", SimpleNamespace(time=lambda: now[0]))
    record = _begun(store)

    def answered(turn: int, at: float) -> None:
        record.append(Entry(EntryKey(turn, "reply", 0), turn, 2, "write", "p", f"Text {turn}.", arrived_at=at))
        record.flush()

    told = _told(store)
    assert (told["rate"], told["calls"], told["expected"]) == (None, 0, 12)
    for turn in range(6):
        now[0] += 2.0
        answered(turn, now[0] - 0.5)
    told = _told(store)
    assert told["calls"] == 6
    # Six since the first came.
    assert told["rate"] == pytest.approx(6 / 10.5)
    assert told["left_s"] == pytest.approx(6 / told["rate"])
    now[0] += 120.0
    stalled = _told(store)
    assert (stalled["rate"], stalled["left_s"]) == (None, None)
    answered(6, now[0] - 9.0)
    answered(7, now[0] - 1.0)
    told = _told(store)
    # What was forgotten was paid, too.
    assert (told["rate"], told["paid"]["calls"]) == (pytest.approx(2 / 9), (20, None))


def test_what_a_process_is_doing_and_the_last_texts_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.store._workers.HEARTBEAT_S", 0.01)
    store.tell(lambda: Doing(12, 64, 5, {"openai@api.example.org": 33.2}, stopping=True))
    record = _begun(store)
    for turn in range(3):
        record.add_turn(TurnRow(turn, turn + 1, 0, "write", "post", (), f"Text {turn}."))
    record.flush()
    wait_until(lambda: _told(store)["doing"])
    told = _told(store)
    waits = "openai@api.example.org waits 34 s for its rate limit"
    assert told["doing"] == [f"12 calls in flight of 64, in 5 runs; {waits}; stopping"]
    assert [each["text"] for each in told["texts"]] == ["Text 1.", "Text 2."]
    store.close()
    told = _told(store)
    assert (told["doing"], told["texts"], told["counts"]["cut off"]) == ([], [], 1)


def test_reasons_are_grouped() -> None:
    alike = [ModelCallError("no such account", place=f"run {number:x}", turn=number) for number in range(3)]
    found = [(str(error), error.cause) for error in (ModelCallError("other", place="run ff"), *alike)]
    assert [str(each) for each in watching.reasons(found)] == [
        f"3 runs, for instance {alike[0]}",
        "1 run: run ff: other",
    ]
    assert str(watching.reasons([("stopped", Cause("stopped"))] * 2)[0]) == "2 runs: stopped"
