"""Tests every journal and every store passes; inherit, say how to make one, and run under pytest."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from opinionsim.errors import Cause, StoreError
from opinionsim.llm import Entry, EntryKey, Journal, Source
from opinionsim.messages import ChatMessage
from opinionsim.store import DesignRow, ExperimentRun, Paid, RunRecord, RunState, Store, open_store
from tests.support.rows import (
    CAST,
    EDGES,
    TURNS,
    begun,
    call,
    completed,
    design_row,
    instrument_row,
    leased,
    run_row,
    tables,
    text_of,
)
from tests.support.store_following import FollowingContract
from tests.support.store_leases import LeaseContract
from tests.support.store_measuring import MeasuringContract
from tests.support.store_records import RecordContract, WritingContract
from tests.support.store_seats import SeatContract


class JournalContract(ABC):
    """Tests of :class:`opinionsim.llm.Journal`."""

    @abstractmethod
    def journal(self, folder: Path) -> Journal:
        """An empty journal; `folder` is the test's own."""

    def test_an_entry_is_found_as_soon_as_it_is_appended(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        for turn in range(50):
            journal.append(call(turn, f"text {turn}"))
            assert text_of(journal, EntryKey(turn, "reply", 0)) == f"text {turn}"

    def test_what_was_never_appended_is_not_found(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        journal.append(call(1, call="reply", attempt=0))
        for key in (EntryKey(0, "reply", 0), EntryKey(1, "reflect", 0), EntryKey(1, "reply", 1)):
            assert journal.lookup(key) is None

    def test_the_first_entry_under_a_key_stays(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        journal.append(call(0, "first"))
        journal.append(call(0, "second"))
        assert text_of(journal, EntryKey(0, "reply", 0)) == "first"

    def test_parts_and_attempts_are_keys_of_their_own(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        for name in ("reply", "reply.2", "reflect"):
            for attempt in (0, 1):
                journal.append(call(3, f"{name} {attempt}", call=name, attempt=attempt))
        for name in ("reply", "reply.2", "reflect"):
            for attempt in (0, 1):
                assert text_of(journal, EntryKey(3, name, attempt)) == f"{name} {attempt}"


class StoreContract(
    LeaseContract, RecordContract, WritingContract, SeatContract, FollowingContract, MeasuringContract, JournalContract
):
    """Tests of :class:`opinionsim.store.Store`, whatever database is behind it."""

    _kept: Store | None = None

    def journal(self, folder: Path) -> Journal:
        """The record of a leased run."""
        self._kept = open_store(self.url(folder))
        return begun(self._kept)

    @pytest.fixture(autouse=True)
    def _close_kept(self) -> Iterator[None]:
        yield
        if self._kept is not None:
            self._kept.close()

    # Journals

    def test_an_entry_comes_back_whole_but_for_its_prompt(self, tmp_path: Path) -> None:
        full = call(
            4,
            "reply",
            acceptance="rejected",
            reason="too long",
            seed=2**31 - 1,
            dropped=3,
            finish_reason="stop",
            model="m-2",
            input_tokens=10,
            output_tokens=5,
            latency_s=0.25,
            arrived_at=1.7e9,
            status="truncated",
            reasoning="Let me think.",
            cached_tokens=4,
            reasoning_tokens=2,
            cost=1.25e-5,
            saved=0.5e-5,
        )
        rating = Entry(EntryKey(5, "rating.m1", 0), 2, 1, "write", "", "1.0", source="instrument")
        with open_store(self.url(tmp_path)) as store:
            record = begun(store)
            record.append(rating)
            record.append(full)
        with open_store(self.url(tmp_path)) as store:
            assert begun(store, owner="host 2").lookup(full.key) == replace(full, prompt=None)
            assert store.entries("r1") == [replace(full, prompt=None), rating]

    def test_entries_come_back_with_their_source_and_calls_are_those_of_models(self, store: Store) -> None:
        sources: tuple[Source, ...] = get_args(Source)
        entries = [call(turn, source=source) for turn, source in enumerate(sources)]
        judged = call(0, call="judge.m1", acceptance="unparsed", reason="no number")
        record, other = begun(store), begun(store, "r2")
        for entry in (*entries[::-1], judged):
            record.append(entry)
        other.append(call(9))
        found = [replace(entry, prompt=None) for entry in (judged, *entries)]
        assert store.entries("r1") == found
        assert store.calls("r1") == [entry for entry in found if entry.source == "model"] == found[:2]
        assert store.record("r1", record.epoch).entries == found
        for entry in entries:
            if entry.source in ("model", "person"):
                assert store.prompt("r1", entry.key.turn) == [ChatMessage("system", "Hello.")]

    def test_a_flushed_entry_is_read_by_others_at_once(self, store: Store, record: RunRecord, tmp_path: Path) -> None:
        record.append(call(0))
        record.flush()
        with open_store(self.url(tmp_path), write=False) as reader:
            assert [entry.key.turn for entry in reader.entries("r1")] == [0]

    def test_the_literal_prompt_of_a_call_is_kept(self, store: Store) -> None:
        system, post = "You are Ada.\nBe brief: always.", "user:A post\n\nwith lines"
        record = begun(store)
        record.append(call(0, post, (system, "Write.")))
        record.append(call(1, "Yes.", (system, post, post), call="reflect", attempt=1))
        expected = [ChatMessage("system", system), ChatMessage("user", post), ChatMessage("user", post)]
        assert store.prompt("r1", 1, "reflect", 1) == expected
        assert store.prompt("r1", 0) == [ChatMessage("system", system), ChatMessage("user", "Write.")]
        with pytest.raises(StoreError, match="no prompt for run r1, turn 9"):
            store.prompt("r1", 9)

    def test_prompts_that_begin_alike_are_stored_as_what_they_add(self, store: Store) -> None:
        events = [f"event {number}" for number in range(30)]
        for name, owner in (("reply", "host 1"), ("reflect", "host 2")):
            record = begun(store, owner=owner)
            for turn in range(30):
                record.append(call(turn, prompt=("You are Ada.", *events[: turn + 1]), call=name))
                if turn % 7 == 0:
                    record.flush()
            store.release("r1", record.epoch)
        assert len(tables(store)["prompts"]) == 31
        for turn in range(30):
            asked = call(turn, prompt=("You are Ada.", *events[: turn + 1])).prompt
            assert store.prompt("r1", turn) == store.prompt("r1", turn, "reflect") == list(asked)

    def test_a_text_is_stored_once(self, store: Store, record: RunRecord) -> None:
        for turn in range(5):
            record.append(call(turn, "It is warmer.", ("You are Ada.", "It is warmer.")))
        record.begin(CAST, EDGES)
        for row in TURNS:
            record.add_turn(row)
        stored = sorted(row[1] for row in tables(store)["texts"])
        assert stored == ["I doubt it.", "It is warmer.", "You are Ada."]

    # Runs

    def test_registering_again_changes_nothing(self, store: Store) -> None:
        completed(store)
        store.register([run_row("r1", steps=9, inputs="other"), run_row("r2", inputs="i", expected=7)])
        states = store.states()
        assert list(states) == ["r1", "r2"]
        assert states["r1"] == RunState("complete", 1, "host 1", "")
        assert states["r2"] == RunState("pending", 0, "", "", inputs="i", expected=7)
        assert store.states(["r2", "absent"]) == {"r2": states["r2"]}
        (row,) = store.registered(["r1", "absent"]).values()
        assert (row.run_id, json.loads(row.fields)) == ("r1", {"temperature": 0.7})

    def test_what_prompts_are_made_of_and_what_is_wrong_are_put_on_record(self, store: Store) -> None:
        completed(store)
        before, parts = store.registered(["r1"])["r1"].fields, {"own:Part": "sha256:1"}
        store.save_inputs("r1", "made of these", "pack@1", parts)
        store.save_error("r1", StoreError("could not be coded"))
        state = RunState(
            "complete",
            1,
            "host 1",
            "could not be coded",
            inputs="made of these",
            parts=parts,
            cause=Cause("store", "could not be coded"),
        )
        assert store.states()["r1"] == state
        with store.reading() as connection:
            assert connection.exec_driver_sql("SELECT wording FROM runs").scalar_one() == "pack@1"
        assert store.registered(["r1"])["r1"].fields == before

    def test_a_run_that_is_not_whole_to_be_told_apart_is_refused(self, store: Store) -> None:
        row = run_row()
        for summary in ({**row.summary, "colour": "red"}, {"seed": 7}):
            with pytest.raises(StoreError, match="the summary of run r1 must name exactly seed, topic"):
                store.register([replace(row, summary=summary)])
        assert store.states() == {}

    def test_many_runs_are_asked_for_at_once(self, store: Store) -> None:
        names = [f"r{number:04}" for number in range(1201)]
        store.register([run_row(name) for name in names])
        assert list(store.states(names)) == names

    # Designs

    def test_designs_come_back_as_saved_and_the_last_saved_comes_last(self, store: Store) -> None:
        first, second = design_row("e1", "one"), design_row("e2", "two", ("r1", "r2"))
        assert [store.save_design(row) for row in (first, second)] == [1, 1]
        assert _plain(store.designs()) == [replace(row, design=1) for row in (first, second)]
        edited = replace(first, spec={"name": "one", "seed": 8}, manifest={}, runs=())
        assert store.save_design(edited) == 1
        assert _plain(store.designs()) == [replace(row, design=1) for row in (second, edited)]
        moments = [row.saved_at for row in store.designs()]
        assert moments == sorted(set(moments))
        bare = ExperimentRun("r1", None, 0, "block 0", "unread")
        several = replace(bare, instrument_id="m1", instruments={"m2": ("probe",), "m1": ("post", "report")})
        store.save_design(replace(first, runs=(bare, several)))
        assert store.designs()[-1].runs == (bare, several)
        assert list(store.designs()[-1].runs[1].instruments) == ["m2", "m1"]
        before = store.designs()
        with pytest.raises(StoreError, match="spec must hold only JSON values"):
            store.save_design(replace(first, design_id="d2", spec={"x": math.nan}))
        assert store.designs() == before

    def test_a_changed_set_of_cells_is_a_design_of_its_own_and_hides_none(self, tmp_path: Path) -> None:
        first = design_row(runs=("r1", "r2"))
        second = design_row(runs=("r2", "r3"), design_id="d2")
        with open_store(self.url(tmp_path)) as store:
            assert [store.save_design(row) for row in (first, second)] == [1, 2]
            assert store.save_design(design_row("e2", "other", design_id="d2")) == 1
        with open_store(self.url(tmp_path)) as store:
            assert store.save_design(design_row(runs=(), design_id="d3")) == 3
            # Saved again, a design keeps its number and is the last again.
            assert store.save_design(first) == 1
            found = [row for row in _plain(store.designs()) if row.experiment_id == "e1"]
            assert found == [
                replace(second, design=2),
                replace(design_row(runs=(), design_id="d3"), design=3),
                replace(first, design=1),
            ]

    def test_runs_that_were_begun_stay_in_a_design_with_fewer_replicates(self, store: Store) -> None:
        whole = design_row(runs=("r1", "r2", "r3", "r4"))
        fewer = replace(whole, runs=whole.runs[:1])
        store.register([run_row(run.run_id) for run in whole.runs])
        store.save_design(whole)
        completed(store, "r2")
        leased(store, "r3")
        assert store.save_design(fewer) == 1
        assert [run.run_id for run in store.designs()[0].runs] == ["r1", "r2", "r3"]
        # A forgotten run no longer counts as begun.
        store.forget(["r3"])
        assert store.save_design(replace(whole, runs=())) == 1
        assert [run.run_id for run in store.designs()[0].runs] == ["r2"]
        assert store.save_design(whole) == 1
        assert store.designs()[0].runs == whole.runs

    # What was paid

    def test_what_was_paid_is_summed_over_the_runs_asked_for(self, store: Store) -> None:
        spent: dict[str, Any] = {
            "input_tokens": 1000,
            "output_tokens": 1000,
            "cost": 1000.0,
            "model": "not one of theirs",
        }
        assert store.usage([]) == store.usage(["absent"]) == Paid(0, 0, 0, 0.0)
        for run_id in ("r1", "r2", "r3"):
            record = begun(store, run_id)
            record.append(call(0, input_tokens=10, output_tokens=3, cost=0.5, model=f"of {run_id}", fingerprint="f"))
            record.append(call(1, acceptance="rejected", input_tokens=7, cost=0.25))
            record.append(call(2))
            for turn, source in enumerate(("person", "instrument", "import"), start=3):
                record.append(call(turn, source=source, **spent))
            record.append(call(6, status="refused", finish_reason="content_filter"))
        assert store.usage(["r1"]) == Paid(4, 17, 3, 0.75, 2)
        assert store.usage(["r1", "r3", "absent"]) == Paid(8, 34, 6, 1.5, 4)
        assert store.models(["r1", "r3", "absent"]) == {"": {("of r1", "f"), ("of r3", "f")}}

    def test_what_each_experiment_has_paid_outlasts_what_is_forgotten(self, tmp_path: Path) -> None:
        first: dict[str, Any] = {
            "input_tokens": 10,
            "output_tokens": 3,
            "cost": 0.5,
            "cached_tokens": 4,
            "saved": 0.25,
        }
        second: dict[str, Any] = {"input_tokens": 7, "cost": 0.25}
        with open_store(self.url(tmp_path)) as store:
            assert store.spending() == {}
            # Two experiments share a run: the one that carries it out pays.
            record = begun(store, payer="e1")
            for turn in range(2):
                record.append(call(turn, **first))
            record.append(call(2, source="person", cost=100.0))
            store.release("r1", record.epoch)
            record = begun(store, payer="e2")
            record.append(call(0, **second))
            record.append(call(3, **second))
            store.release("r1", record.epoch)
            begun(store, "r2", payer="e2").append(call(0, **first))
            spending = {"e1": Paid(2, 20, 6, 1.0, 0, 8, 0.5), "e2": Paid(2, 17, 3, 0.75, 1, 4, 0.25)}
            assert store.spending() == spending
            store.forget(["r1"])
            assert store.usage(["r1"]) == Paid(0, 0, 0, 0.0)
            assert store.spending() == spending
            for generation in range(1, 3):
                begun(store, payer="e1").append(call(0, **first))
                assert store.spending() == {
                    **spending,
                    "e1": spending["e1"]
                    + Paid(
                        generation,
                        10 * generation,
                        3 * generation,
                        generation / 2,
                        cached_tokens=4 * generation,
                        saved=generation / 4,
                    ),
                }
                store.forget(["r1", "r1"])
            spending["e1"] += Paid(2, 20, 6, 1.0, 0, 8, 0.5)
            # Nothing is left that could be forgotten.
            store.forget(["r1"])
            assert store.spending() == spending
        with open_store(self.url(tmp_path), write=False) as reader:
            assert reader.spending() == spending

    # Stores

    def test_a_reader_changes_nothing(self, tmp_path: Path) -> None:
        open_store(self.url(tmp_path)).close()
        with open_store(self.url(tmp_path), write=False) as store:
            changes: list[Callable[[], Any]] = [
                lambda: store.register([run_row()]),
                lambda: store.save_design(design_row()),
                lambda: store.save_inputs("r1", "", None, {}),
                lambda: store.save_error("r1", None),
                lambda: store.lease("r1", "host 1"),
                lambda: store.lease("r1", "host 1", complete=True),
                lambda: store.release("r1", 0),
                lambda: store.finish("r1", 0, "complete"),
                lambda: store.forget(["r1"]),
                lambda: store.record("r1", 0),
                lambda: store.save_instrument(instrument_row()),
            ]
            for change in changes:
                with pytest.raises(StoreError, match="opened for reading only"):
                    change()

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = open_store(self.url(tmp_path))
        record = begun(store)
        follower = store.follow("r1")
        store.close()
        store.close()
        uses: list[Callable[[], Any]] = [
            store.states,
            store.flush,
            follower.poll,
            record.check,
            lambda: store.record("r1", 1),
            lambda: store.register([]),
            lambda: record.append(call(0)),
            lambda: record.add_turn(TURNS[0]),
            lambda: record.begin(CAST, EDGES),
        ]
        for use in uses:
            with pytest.raises(StoreError, match="closed"):
                use()


def _plain(rows: list[DesignRow]) -> list[DesignRow]:
    """Designs without the moment at which they were saved."""
    return [replace(row, saved_at=0.0) for row in rows]
