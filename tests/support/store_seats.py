"""Tests of what a store keeps of persons: the questions that wait for them, and who sits where."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from opinionsim.errors import StoreError
from opinionsim.foundation.forms import Form
from opinionsim.llm import Question
from opinionsim.messages import Message
from opinionsim.store import HeldElsewhereError, RunRecord, SeatRow, Store, WaitRow, open_store
from tests.support.processes import in_process
from tests.support.rows import begun, call
from tests.support.store_case import StoreCase

ASKED = Question(
    *("r1", 3, 1, 2, "rank", "reply", 0),
    text="Which is better?\x00\ud800",
    messages=(Message("Trams.", turn=1), Message("From outside.", "Ann")),
    form=Form("ranking", ("A", "B"), ("Trams.", "Buses.")),
    asked_at=100.0,
    timeout_s=60.0,
)


def waits_in(url: str) -> list[WaitRow]:
    """The open waits, as another process sees them."""
    with open_store(url, write=False) as store:
        return store.waits()


class SeatContract(StoreCase):
    """Tests of waits and seats, whatever database is behind them."""

    def test_a_wait_is_seen_by_another_process_until_its_answer_is_on_record(
        self, store: Store, record: RunRecord, tmp_path: Path
    ) -> None:
        asyncio.run(record.wait_for(ASKED))
        expected = WaitRow("r1", 3, "reply", 0, 2, ASKED.as_json(), 100.0, 160.0)
        assert in_process(waits_in, self.url(tmp_path))[0] == [expected]
        assert (store.waits("r1"), store.waits("r2")) == ([expected], [])
        record.append(call(3, "B > A", source="person", seed=None))
        store.flush()
        assert in_process(waits_in, self.url(tmp_path))[0] == []

    def test_only_the_answer_of_its_key_ends_a_wait(self, store: Store, record: RunRecord) -> None:
        asyncio.run(record.wait_for(ASKED))
        asyncio.run(record.wait_for(replace(ASKED, attempt=1, asked_at=200.0, timeout_s=None)))
        record.append(call(4, source="person", seed=None))
        record.append(call(3, source="person", seed=None))
        store.flush()
        assert [(row.attempt, row.asked_at, row.deadline) for row in store.waits()] == [(1, 200.0, None)]

    def test_a_wait_is_written_anew_when_the_run_goes_on(self, store: Store, record: RunRecord) -> None:
        asyncio.run(record.wait_for(ASKED))
        later = store.lease("r1", "host 2")
        asyncio.run(store.record("r1", later).wait_for(replace(ASKED, asked_at=900.0)))
        assert [(row.asked_at, row.deadline) for row in store.waits()] == [(900.0, 960.0)]

    def test_who_has_lost_a_run_keeps_no_wait_and_asks_nobody(self, store: Store, record: RunRecord) -> None:
        store.lease("r1", "host 2")
        with pytest.raises(HeldElsewhereError, match="leased by another worker"):
            asyncio.run(record.wait_for(ASKED))
        assert store.waits() == []

    def test_waits_count_as_no_rows_and_go_with_a_run_that_is_begun_anew(self, store: Store, record: RunRecord) -> None:
        asyncio.run(record.wait_for(ASKED))
        other = begun(store, "r2")
        asyncio.run(other.wait_for(replace(ASKED, run_id="r2")))
        assert (store.missing(), list(store.damage())) == ({}, [])
        store.forget(["r1"])
        assert [row.run_id for row in store.waits()] == ["r2"]

    def test_a_seat_comes_back_as_saved(self, store: Store, record: RunRecord) -> None:
        event = {"at": 3.5, "what": "harm", "text": "Unkind.\x00", "done": ""}
        bare, whole = SeatRow("r1", 2), SeatRow("r1", 3, "t", 1.5, "l", "c", 2.5, "w", True, True, (event,))
        store.change_seat("r1", 3, lambda seat: whole)
        store.change_seat("r1", 2, lambda seat: seat)
        assert store.seats() == store.seats("r1") == [bare, whole]
        assert store.seats("r2") == []
        assert list(store.damage()) == []

    def test_changes_of_a_seat_at_once_see_each_other(self, store: Store, record: RunRecord) -> None:
        def one_more(seat: SeatRow) -> SeatRow:
            return replace(seat, events=(*seat.events, {"at": float(len(seat.events))}))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: store.change_seat("r1", 2, one_more), range(20)))
        (seat,) = store.seats()
        assert [event["at"] for event in seat.events] == list(range(20))

        def refused(seat: SeatRow) -> SeatRow:
            raise StoreError("taken")

        for agent in (2, 3):
            with pytest.raises(StoreError, match="taken"):
                store.change_seat("r1", agent, refused)
        assert store.seats() == [seat]
