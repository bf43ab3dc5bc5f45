from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opinionsim.errors import StoreError
from opinionsim.store import open_store
from tests.conftest import (
    _interruptible as _interruptible,
    _loopback_only as _loopback_only,
    _own_folder as _own_folder,
)
from tests.support.postgres import Server, server
from tests.support.reader import check_reading, reading
from tests.support.running import SMALL as _SMALL, assert_same, carry_out, changed, ended, watched

#: Calls in flight at most.
SLOTS = 6
#: A sweep of some seconds.
SPEC: dict[str, Any] = changed(_SMALL, replicates=6, interaction__steps=30, measurement__texts=["report", "post"])


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server that may be ended."""
    with server() as running:
        yield running


def _restarts(own: Server, times: int, down_s: float, down: list[tuple[float, float]], over: threading.Event) -> None:
    """End the server and start it anew, a few times in the course of a sweep."""
    for _ in range(times):
        if over.wait(0.7):
            return
        own.stop()
        began = time.monotonic()
        over.wait(down_s)
        down.append((began, time.monotonic()))
        own.start()


def test_a_server_that_goes_away_costs_no_call_and_hides_nothing(own: Server, tmp_path: Path) -> None:
    store = own.database("restarts")
    model, watch = watched(latency=lambda seed: 0.03 + seed % 7 * 0.01)
    down: list[tuple[float, float]] = []
    over = threading.Event()
    disturbing = threading.Thread(target=_restarts, args=(own, 3, 1.5, down, over))
    with reading(store, tmp_path / "notes") as reader:
        disturbing.start()
        try:
            summary, results = carry_out(SPEC, store, model, slots=SLOTS)
        finally:
            over.set()
            disturbing.join()
        read = reader.end()
    assert len(down) == 3
    assert (summary.complete, summary.errors) == (6, {})
    # Nothing was asked twice: the replies that could not be kept at once waited.
    assert len(watch.asked) == len(set(watch.asked)) == len(results.calls)
    assert check_reading(read, store) == len(results.turns) + len(results.opinions)
    assert_same(results, carry_out(SPEC, str(tmp_path / "whole.sqlite"))[1])


def test_nothing_is_asked_while_nothing_can_be_kept(own: Server, tmp_path: Path) -> None:
    store = own.database("pausing")
    model, watch = watched(latency=lambda seed: 0.02)
    asked_by_then: list[int] = []
    over = threading.Event()

    def disturb() -> None:
        while len(watch.asked) < 60 and not over.wait(0.005):
            pass
        own.stop()
        # The transaction under way has to fail first, and calls in flight come back.
        time.sleep(0.5)
        asked_by_then.append(len(watch.asked))
        time.sleep(1.5)
        asked_by_then.append(len(watch.asked))
        own.start()

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        summary, results = carry_out(SPEC, store, model, slots=SLOTS)
    finally:
        over.set()
        disturbing.join()
    before, after = asked_by_then
    assert after == before
    assert summary.complete == 6
    assert len(watch.asked) == len(set(watch.asked)) == len(results.calls)
    with open_store(store, write=False) as opened:
        opened.require_whole(opened.states())


def test_a_server_that_stays_away_ends_the_sweep(own: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("opinionsim.store._database.PATIENCE_S", 1.0)
    store = own.database("gone")
    latency_s = 0.02
    model, watch = watched(latency=lambda seed: latency_s)

    def disturb() -> None:
        while len(watch.asked) < 60:
            time.sleep(0.005)
        own.stop()

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        with pytest.raises(StoreError, match="could not keep"):
            ended(SPEC, store, model, slots=SLOTS)
    finally:
        disturbing.join()
        own.start()
    lost = set(watch.answered)
    again, second = watched()
    summary, results = carry_out(SPEC, store, again, slots=SLOTS)
    assert summary.complete == 6
    # What was in flight, or had arrived less than 0.2 s before the end, is all that is asked again.
    assert len(lost & set(second.asked)) <= SLOTS + SLOTS * 0.2 / latency_s
    assert_same(results, carry_out(SPEC, str(tmp_path / "whole.sqlite"))[1])
