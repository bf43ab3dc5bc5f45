"""Tests of the record of a run: numbers without a gap, one writer at a time, and no row lost to passing errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from opinionsim.errors import StoreError
from opinionsim.messages import text_id
from opinionsim.store import (
    EdgeRow,
    HeldElsewhereError,
    OpinionRow,
    RunRecord,
    RunState,
    Store,
    TieRow,
    TurnRow,
    open_store,
)
from tests.support.rows import (
    CAST,
    EDGES,
    TURNS,
    add,
    add_all,
    begun,
    call,
    completed,
    lead,
    leased,
    numbered,
    opinion_row,
    reply,
    run_row,
    seqs,
    tables,
    text_of,
    turn_row,
)
from tests.support.store_case import Moment, StoreCase, StoreFaults
from tests.support.waiting import wait_until

#: Rows of a run, of all kinds in no order.
_ROWS: tuple[TurnRow | TieRow | OpinionRow, ...] = (
    turn_row(0),
    TieRow(1, 0, 1, 1, 0),
    opinion_row(0),
    turn_row(2, (0, "news")),
    turn_row(1, text="", status="skipped"),
    opinion_row(0, "m2"),
    opinion_row(2, about=0),
    TieRow(2, 1, 0, 0, 1),
    turn_row(3, (2,), text="", status="refused"),
    opinion_row(3, value=math.nan, off_scale=1.0, probabilities=(math.nan,) * 5),
)


def _counted(rows: Sequence[Any], start: int = 1) -> str:
    """Rows with their numbers, spelled: a missing value does not equal itself."""
    return repr(list(enumerate(rows, start)))


class RecordContract(StoreCase):
    """Tests of the rows of a :class:`opinionsim.store.RunRecord`, whatever database is behind it."""

    # What is written is read

    def test_what_a_run_leads_to_comes_back_as_it_was_added(self, tmp_path: Path) -> None:
        edges = (EdgeRow(1, 0), EdgeRow(0, 1, 0.5))
        with open_store(self.url(tmp_path)) as store:
            record = begun(store)
            record.begin(reversed(CAST), edges)
            add_all(record, _ROWS)
            store.finish("r1", record.epoch, "complete")
        with open_store(self.url(tmp_path), write=False) as store:
            assert store.agents("r1") == list(CAST)
            assert store.edges("r1") == sorted(edges)
            assert store.ties("r1") == [row for row in _ROWS if isinstance(row, TieRow)]
            turns = sorted((row for row in _ROWS if isinstance(row, TurnRow)), key=lambda row: row.turn)
            assert store.turns("r1") == turns
            assert store.turns("r1", 0) == [row for row in turns if row.agent == 0]
            assert repr(store.opinions("r1")) == repr([row for row in _ROWS if isinstance(row, OpinionRow)])
            assert not any(read("absent") for read in (store.agents, store.edges, store.turns, store.opinions))

    def test_whoever_reads_a_store_that_is_being_written_sees_all_that_was_added(self, tmp_path: Path) -> None:
        reads: list[Callable[[Store], Any]] = [
            lambda store: store.entries("r1"),
            lambda store: store.calls("r1"),
            lambda store: store.turns("r1"),
            numbered,
            seqs,
            lambda store: store.usage(["r1"]),
            lambda store: store.spending(),
            lambda store: store.uncoded(["r1"], "m1", ["post"]),
            lambda store: store.texts(text_id(f"text {number}") for number in range(20)),
            tables,
        ]
        with open_store(self.url(tmp_path)) as store:
            record = begun(store, payer="payer")
            record.begin(CAST, EDGES)
            for number, read in enumerate(reads):
                before = read(store)
                add(record, turn_row(number))
                assert read(store) != before

    def test_what_is_added_becomes_durable_without_being_asked(
        self, store: Store, record: RunRecord, reader: Store
    ) -> None:
        record.begin(CAST, EDGES)
        add_all(record, _ROWS)
        wait_until(lambda: len(seqs(reader)) == len(_ROWS))
        assert repr(numbered(reader)) == _counted(_ROWS)

    def test_what_is_stored_rests_on_nothing_that_is_not(
        self, store: Store, reader: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("opinionsim.store._writer._BATCH", 3)
        record = begun(store)
        record.begin(CAST, EDGES)
        for turn in range(40):
            add(record, turn_row(turn))
            record.add_opinions([opinion_row(turn)])
        durable = 0
        while durable < 80:
            with reader.reading() as connection:
                found = {
                    name: set(connection.exec_driver_sql(f"SELECT turn FROM {name}").scalars())  # noqa: S608
                    for name in ("opinions", "turns", "journal")
                }
            assert found["opinions"] <= found["turns"] <= found["journal"]
            durable = len(found["opinions"]) + len(found["turns"])

    # Numbers

    def test_turns_ties_and_opinions_are_numbered_together_and_on_after_reopening(self, tmp_path: Path) -> None:
        first, then, last = _ROWS[:4], _ROWS[4:7], _ROWS[7:]
        with open_store(self.url(tmp_path)) as store:
            record = begun(store)
            record.begin(CAST, EDGES)
            add_all(record, first)
            assert repr(numbered(store)) == _counted(first)
        with open_store(self.url(tmp_path)) as store:
            record = begun(store, owner="host 2")
            assert [entry.key.turn for entry in record.entries] == [0, 2]
            # The resumed run adds its stored rows again, and then new ones.
            record.begin(CAST, EDGES)
            add_all(record, (*first, *then))
            store.finish("r1", record.epoch, "incomplete", StoreError("stopped"))
            record = begun(store, owner="host 3")
            add_all(record, (*first, *then))
            record.require_all_met()
            add_all(record, last)
            store.finish("r1", record.epoch, "complete")
            assert repr(numbered(store)) == _counted(_ROWS)
            assert seqs(store) == list(range(1, len(_ROWS) + 1))
            epoch = store.lease("r1", "host 4", complete=True)
            assert epoch is not None
            store.record("r1", epoch).add_opinions([opinion_row(1, "m3"), opinion_row(0)])
            store.release("r1", epoch)
            assert repr(numbered(store)) == _counted((*_ROWS, opinion_row(1, "m3")))
            store.require_whole(["r1", "absent"])

    def test_runs_are_numbered_each_by_itself(self, store: Store) -> None:
        names = ("r1", "r2", "r3")
        records = [begun(store, name) for name in names]
        for record in records:
            record.begin(CAST, EDGES)
        for row in _ROWS:
            for record in records:
                add(record, row)
        for name in names:
            assert repr(numbered(store, name)) == _counted(_ROWS)

    def test_entries_are_numbered_in_the_order_they_arrived_and_on_after_reopening(self, store: Store) -> None:
        arrived = "SELECT turn FROM journal ORDER BY entry"
        for turns in ((4, 1), (1, 0, 4, 3), (3, 2)):
            record = begun(store)
            for turn in turns:
                record.append(call(turn))
            record.flush()
        with store.reading() as connection:
            assert list(connection.exec_driver_sql(arrived).scalars()) == [4, 1, 0, 3, 2]
            numbers = connection.exec_driver_sql("SELECT entry FROM journal").scalars()
            assert sorted(numbers) == [1, 2, 3, 4, 5]

    # Rows that are there already

    def test_the_first_entry_under_a_key_stays_when_it_is_durable(self, store: Store, record: RunRecord) -> None:
        for text in ("first", "second"):
            record.append(call(0, text))
            record.flush()
            assert text_of(record, call(0).key) == "first"
        assert [entry.text for entry in record.entries] == ["first"]
        assert store.entries("r1") == record.entries == store.record("r1", record.epoch).entries

    def test_adding_equal_rows_again_changes_nothing(self, store: Store) -> None:
        turns, ties = [turn_row(0), turn_row(1, (0,))], [TieRow(1, 0, 1, 1, 0)]
        completed(store, status="incomplete", turns=turns, ties=ties)
        before = tables(store)
        for _ in range(2):
            record = begun(store)
            lead(record, turns=turns, ties=ties)
            # Within one lease, too.
            for turn in turns:
                record.add_turn(turn)
            record.add_opinions([opinion_row(0)])
            record.begin(CAST, EDGES)
            record.require_all_met()
            store.finish("r1", record.epoch, "incomplete")
            after = tables(store)
            assert {**after, "runs": []} == {**before, "runs": []}
        add(begun(store), turn_row(2))
        assert seqs(store) == [1, 2, 3, 4, 5]

    def test_a_turn_added_twice_under_one_lease_is_one(self, store: Store, record: RunRecord) -> None:
        record.begin(CAST, EDGES)
        for turn in (0, 0, 1, 0, 1):
            add(record, turn_row(turn))
        assert numbered(store) == [(1, turn_row(0)), (2, turn_row(1))]
        with pytest.raises(StoreError, match="turn 1 differs from what the journal leads to"):
            record.add_turn(turn_row(1, ("news",)))

    def test_another_turn_in_the_place_of_one_is_refused(self, store: Store) -> None:
        changes: list[dict[str, Any]] = [
            {"text": "another"},
            {"step": 9},
            {"agent": 1},
            {"act": "review"},
            {"kind": "report"},
            {"reads": ("news",)},
            {"status": "truncated"},
        ]
        completed(store, status="incomplete", turns=[turn_row(0), turn_row(1)])
        before = tables(store)
        record = begun(store)
        record.add_turn(turn_row(1))
        for change in changes:
            with pytest.raises(
                StoreError, match=r"turn 0 differs from what the journal leads to; start .* with --fresh"
            ):
                record.add_turn(replace(turn_row(0), **change))
        record.add_turn(turn_row(0))
        assert {**tables(store), "runs": []} == {**before, "runs": []}

    def test_another_tie_in_the_place_of_one_is_refused(self, store: Store) -> None:
        ties = [TieRow(1, 0, 1, 1, 0), TieRow(2, 1, 0, 0, 1)]
        completed(store, status="incomplete", ties=ties)
        before = tables(store)
        record = begun(store)
        record.add_tie(ties[0])
        with pytest.raises(StoreError, match="the change 1 of its ties differs from what the journal leads to"):
            record.add_tie(TieRow(3, 1, 0, 0, 1))
        assert {**tables(store), "runs": []} == {**before, "runs": []}

    def test_a_run_at_its_end_has_led_to_all_that_is_stored_of_it(self, store: Store) -> None:
        ties = [TieRow(1, 0, 1, 1, 0)]
        completed(store, status="incomplete", ties=ties)
        record = begun(store)
        add(record, TURNS[0])
        with pytest.raises(StoreError, match="turn 1 differs from what the journal leads to"):
            record.require_all_met()
        add(record, TURNS[1])
        with pytest.raises(StoreError, match="the change 0 of its ties differs from what the journal leads to"):
            record.require_all_met()
        add(record, ties[0])
        record.require_all_met()
        # What was never stored need not be met again.
        add(record, turn_row(2))
        record.require_all_met()

    def test_a_stored_opinion_is_never_replaced(self, store: Store) -> None:
        nan = math.nan
        unread = opinion_row(1, "m2", value=nan, off_scale=1.0, probabilities=(nan,) * 5)
        completed(store, status="incomplete")
        before = tables(store)["opinions"]
        assert len(before) == 1
        record = begun(store)
        for value in (-2.0, 2.0):
            record.add_opinions([opinion_row(value=value)])
        record.add_opinions([opinion_row(value=2.0), unread, opinion_row(1, about=0), opinion_row(value=0.0)])
        after = tables(store)["opinions"]
        assert [row for row in after if row in before] == before
        assert len(after) == 3
        assert seqs(store) == [1, 2, 3, 4, 5]
        assert [record.has_opinion(*key) for key in (("m1", 0), ("m2", 1), ("m1", 1, 0))] == [True] * 3
        assert [record.has_opinion(*key) for key in (("m1", 1), ("m2", 0), ("m1", 0, 1))] == [False] * 3

    def test_what_is_there_is_known_when_a_record_is_opened(self, store: Store) -> None:
        completed(store, status="incomplete")
        record = begun(store)
        assert [entry.text for entry in record.entries] == ["It is warmer.", "I doubt it."]
        assert record.has_opinion("m1", 0)
        assert not record.has_opinion("m1", 1)


class WritingContract(StoreCase):
    """Tests of how rows become durable: under ended leases, through faults, and while much waits to be written."""

    # Leases that have ended

    def test_under_an_ended_lease_nothing_is_added(self, store: Store) -> None:
        stale = begun(store)
        lead(stale, turns=TURNS[:1])
        store.flush()
        late = begun(store, owner="host 2")
        before = tables(store)
        additions: list[Callable[[], None]] = [
            lambda: stale.add_turn(turn_row(2)),
            lambda: stale.add_tie(TieRow(1, 0, 1, 1, 0)),
            lambda: stale.add_opinions([opinion_row(0, "m2")]),
            lambda: stale.begin([replace(CAST[0], agent=2)], [EdgeRow(1, 2)]),
            lambda: stale.append(call(1)),
        ]
        stale.add_turn(turn_row(1))
        with pytest.raises(HeldElsewhereError, match="run r1 has been leased by another worker since epoch 1"):
            stale.flush()
        for addition in additions:
            with pytest.raises(HeldElsewhereError, match="r1"):
                addition()
        # Other writers to the store see no error.
        store.flush()
        assert tables(store) == before
        add(late, turn_row(1))
        add(late, opinion_row(1))
        assert numbered(store)[1:] == [(2, opinion_row(0)), (3, turn_row(1)), (4, opinion_row(1))]

    def test_what_was_queued_when_a_lease_ended_is_dropped_whole(self, store: Store) -> None:
        faults = StoreFaults(store)
        stale = begun(store)
        stale.begin(CAST, EDGES)
        store.flush()
        faults.held.clear()
        # One transaction is under way, and the rest waits behind it.
        add(stale, turn_row(0))
        wait_until(lambda: store._writer is not None and store._writer._writing_since is not None)
        add_all(stale, [turn_row(1), opinion_row(0)])
        store._database.write = faults._write  # type: ignore[method-assign]
        if not store.shared:
            faults.held.set()
        epoch = leased(store, owner="host 2")
        faults.held.set()
        late = store.record("r1", epoch)
        found = numbered(store)
        assert found == [(number, row) for number, (_, row) in enumerate(found, 1)]
        add_all(late, [turn_row(0), turn_row(1), opinion_row(0)])
        assert numbered(store) == list(enumerate([turn_row(0), turn_row(1), opinion_row(0)], 1))

    def test_forgetting_begins_anew_under_the_next_generation(self, store: Store) -> None:
        for generation in range(3):
            assert store.states().get("r1", RunState("pending", 0, "", "")).generation == generation
            stale = begun(store)
            lead(stale, turns=[*TURNS, turn_row(2 + generation)])
            store.forget(["r1"])
            assert store.states()["r1"] == RunState("pending", 2 * generation + 2, "", "", generation=generation + 1)
            assert seqs(store) == []
            stale.add_turn(turn_row(9))
            with pytest.raises(HeldElsewhereError):
                stale.flush()
        lead(begun(store))
        assert seqs(store) == [1, 2, 3]

    def test_a_run_that_is_not_registered_any_more_is_named(self, store: Store, record: RunRecord) -> None:
        store._database.write(lambda connection: connection.exec_driver_sql("DELETE FROM runs"))
        record.append(call(0))
        with pytest.raises(StoreError, match="run r1 is no longer registered, because the store was emptied"):
            record.flush()

    # A database that fails

    @pytest.mark.parametrize("moment", get_args(Moment))
    def test_what_passes_loses_nothing_and_numbers_stay(
        self, store: Store, reader: Store, moment: Moment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # It is behind because an attempt has failed, not because it takes long.
        monkeypatch.setattr("opinionsim.store._writer._LATE_S", math.inf)
        records = [begun(store, name) for name in ("r1", "r2")]
        assert not records[0].behind
        faults = StoreFaults(store, moment)
        faults.left = -1
        for record in records:
            record.begin(CAST, EDGES)
            add_all(record, _ROWS[:5])
        wait_until(lambda: records[0].behind and records[1].behind)
        for record in records:
            add_all(record, _ROWS[5:])
            assert record.lookup(reply(turn_row(0)).key) is not None
        if moment != "after":
            assert seqs(reader) == []
        faults.left = 0
        for record in records:
            record.flush()
        assert not any(record.behind for record in records)
        for name in ("r1", "r2"):
            assert repr(numbered(reader, name)) == _counted(_ROWS)
        assert len(tables(reader)["journal"]) == 2 * 3
        assert begun(store, "r1").entries == begun(store, "r2").entries

    def test_changes_of_other_kinds_are_tried_again_as_well(self, store: Store) -> None:
        faults = StoreFaults(store, "within")
        for change in (
            lambda: store.register([run_row()]),
            lambda: leased(store),
            lambda: lead(store.record("r1", 1)),
            lambda: store.finish("r1", 1, "complete"),
            lambda: store.forget(["r1"]),
        ):
            faults.left = 1
            change()
            store.flush()
            assert faults.left == 0
        assert store.states()["r1"] == RunState("pending", 2, "", "", generation=1)

    def test_what_lasts_is_told_to_all(self, tmp_path: Path) -> None:
        store = open_store(self.url(tmp_path))
        records = [begun(store, name) for name in ("r1", "r2")]
        faults = StoreFaults(store, patience_s=0.0)
        faults.left = -1
        lead(records[0])
        with pytest.raises(StoreError, match=r"the store could not save \d or more entries: no room on the disk"):
            records[0].flush()
        assert not records[0].behind
        assert not records[0].full
        for tell in (
            records[0].check,
            records[1].check,
            store.flush,
            store.states,
            lambda: records[1].append(call(0)),
            lambda: records[1].add_turn(turn_row(0)),
            lambda: records[1].add_tie(TieRow(1, 0, 1, 1, 0)),
            lambda: records[1].add_opinions([opinion_row(0)]),
            lambda: records[1].begin(CAST, EDGES),
            lambda: store.finish("r1", records[0].epoch, "complete"),
            lambda: store.record("r1", records[0].epoch),
        ):
            with pytest.raises(StoreError, match="could not save"):
                tell()
        # No later row may be kept in the place of a lost one.
        faults.left = 0
        store.close()
        with open_store(self.url(tmp_path), write=False) as reader:
            assert seqs(reader) == []
            assert reader.entries("r1") == []
            assert reader.states()["r1"].status == "running"

    def test_a_record_is_behind_while_a_transaction_takes_long(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("opinionsim.store._writer._LATE_S", 0.01)
        record = begun(store)
        faults = StoreFaults(store)
        faults.held.clear()
        record.append(call(0))
        wait_until(lambda: record.behind)
        faults.held.set()
        record.flush()
        assert not record.behind

    def test_a_record_is_full_while_much_waits_to_be_written(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("opinionsim.store._writer._FULL", 20)
        record = begun(store)
        faults = StoreFaults(store)
        faults.held.clear()
        for turn in range(40):
            assert not record.full or turn > 10
            add(record, turn_row(turn))
        assert record.full
        faults.held.set()
        record.begin(CAST, EDGES)
        record.flush()
        assert not record.full
        assert seqs(store) == list(range(1, 41))
