"""Tests of leases on runs: one writer at a time, and earlier owners excluded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opinionsim.errors import Cause, StoreError
from opinionsim.messages import ChatMessage
from opinionsim.store import Doing, HeldElsewhereError, RunRecord, RunState, Store, open_store
from tests.support.rows import begun, call, completed, lead, leased, opinion_row, run_row, tables
from tests.support.store_case import StoreCase
from tests.support.waiting import wait_until


class LeaseContract(StoreCase):
    """Tests of the leases on a store's runs, whatever database is behind it."""

    def test_leases_count_up_and_end_earlier_ones(self, store: Store) -> None:
        stale, other = begun(store), begun(store, "r2")
        stale.append(call(0, "kept"))
        store.flush()
        assert (stale.epoch, store.lease("r1", "host 2")) == (1, 2)
        assert store.states()["r1"] == RunState("running", 2, "host 2", "", held=True)
        stale.append(call(1, "lost"))
        with pytest.raises(HeldElsewhereError, match="run r1 has been leased by another worker"):
            stale.flush()
        with pytest.raises(HeldElsewhereError, match="r1"):
            stale.append(call(2))
        changes: list[Callable[[], Any]] = [
            lambda: store.finish("r1", 1, "complete"),
            lambda: store.release("r1", 1),
            lambda: store.record("r1", 1),
            lambda: store.record("r1", 3),
            lambda: store.record("absent", 1),
        ]
        for change in changes:
            with pytest.raises(HeldElsewhereError, match=r"is not leased under epoch \d"):
                change()
        other.append(call(0))
        other.flush()
        assert [entry.text for entry in store.entries("r1")] == ["kept"]
        assert len(store.entries("r2")) == 1
        assert store.states(["r1"])["r1"].status == "running"

    def test_a_run_must_be_registered_to_be_leased(self, store: Store) -> None:
        for complete in (False, True):
            with pytest.raises(StoreError, match="run nope is not registered"):
                store.lease("nope", "host 1", complete=complete)

    def test_a_complete_run_is_not_leased_and_an_incomplete_one_is(self, store: Store) -> None:
        epoch = completed(store, status="incomplete", error="stopped")
        assert store.states()["r1"] == RunState(
            "incomplete", epoch, "host 1", "stopped", cause=Cause("store", "stopped")
        )
        assert store.lease("r1", "host 2") == 2
        assert store.states()["r1"] == RunState("running", 2, "host 2", "", held=True)
        store.finish("r1", 2, "complete")
        assert store.lease("r1", "host 2") is None
        assert store.states()["r1"] == RunState("complete", 2, "host 2", "")
        store.forget(["r1"])
        assert store.lease("r1", "host 2") == 4

    def test_a_worker_may_lease_again_what_it_holds(self, store: Store) -> None:
        begun(store)
        assert store.lease("r1", "host 1") == 2
        store.finish("r1", 2, "complete")
        assert [store.lease("r1", "host 1", complete=True) for _ in range(2)] == [3, 4]

    def test_only_a_complete_run_is_leased_to_add_opinions(self, store: Store) -> None:
        store.register([run_row()])
        assert store.lease("r1", "host 1", complete=True) is None
        assert store.states()["r1"] == RunState("pending", 0, "", "")
        epoch = leased(store)
        assert store.lease("r1", "host 1", complete=True) is None
        assert store.states()["r1"] == RunState("running", epoch, "host 1", "", held=True)
        store.finish("r1", epoch, "incomplete", StoreError("stopped"))
        assert store.lease("r1", "host 1", complete=True) is None
        assert store.states()["r1"] == RunState(
            "incomplete", epoch, "host 1", "stopped", cause=Cause("store", "stopped")
        )

    def test_adding_opinions_leaves_the_status_and_the_error_alone(self, store: Store) -> None:
        first = completed(store, error="could not be coded", opinions=())
        late = store.record("r1", first)
        assert store.lease("r1", "host 2", complete=True) == first + 1
        cause = Cause("store", "could not be coded")
        state = RunState("complete", first + 1, "host 2", "could not be coded", cause=cause)
        assert store.states()["r1"] == state._replace(held=True)
        late.append(call(9, "late"))
        with pytest.raises(HeldElsewhereError, match="run r1 has been leased by another worker"):
            late.flush()
        record = store.record("r1", first + 1)
        record.append(call(0, call="judge.m1"))
        record.add_opinions([opinion_row()])
        assert store.states()["r1"] == state._replace(held=True)
        store.release("r1", first + 1)
        assert store.states()["r1"] == state
        assert [entry.key.call for entry in store.entries("r1")] == ["judge.m1", "reply", "reply"]
        assert len(tables(store)["opinions"]) == 1

    def test_whoever_adds_opinions_excludes_others_and_is_excluded(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as one:
            completed(one, "done")
            completed(one, "wanted")
            one.register([run_row("begun")])
            leased(one, "begun")
            measuring = one.lease("done", "one", complete=True)
            assert measuring is not None
            if not one.shared:
                with pytest.raises(StoreError, match="in use"):
                    open_store(self.url(tmp_path))
                return
            with open_store(self.url(tmp_path)) as two:
                assert two.lease("done", "two", complete=True) is None
                assert two.lease("done", "two") is None
                assert two.lease("begun", "two") is None
                with pytest.raises(HeldElsewhereError, match="run done is being measured by one and cannot start"):
                    two.forget(["wanted", "done"])
                wanted = two.lease("wanted", "two", complete=True)
                assert wanted is not None
                assert one.lease("wanted", "one", complete=True) is None
                two.release("wanted", wanted)
                assert one.lease("wanted", "one", complete=True) == wanted + 1
                one.release("done", measuring)
                assert two.lease("done", "two", complete=True) == measuring + 1
                assert {state.status for state in two.states(["done", "wanted"]).values()} == {"complete"}

    def test_a_run_that_was_released_goes_on_from_where_it_stood(self, store: Store, record: RunRecord) -> None:
        record.append(call(0))
        store.release("r1", record.epoch)
        assert store.states()["r1"] == RunState("running", record.epoch, "host 1", "")
        assert len(begun(store, owner="host 2").entries) == 1
        with pytest.raises(HeldElsewhereError, match=f"epoch {record.epoch}"):
            store.release("r1", record.epoch)

    def test_what_a_run_leads_to_changes_no_status(self, store: Store, record: RunRecord) -> None:
        lead(record)
        assert store.states()["r1"] == RunState("running", record.epoch, "host 1", "", held=True)
        before = tables(store)
        assert {name: len(rows) for name, rows in before.items()} == {
            **{"runs": 1, "agents": 2, "edges": 1, "ties": 0, "turns": 2, "opinions": 1},
            **{"journal": 2, "prompts": 1, "texts": 3},
        }
        store.finish("r1", record.epoch, "complete")
        assert {**tables(store), "runs": []} == {**before, "runs": []}

    def test_finishing_twice_equals_finishing_once(self, store: Store) -> None:
        epoch = completed(store, status="incomplete", error="turn 1 failed")
        cause = Cause("store", "turn 1 failed")
        assert store.states()["r1"] == RunState("incomplete", epoch, "host 1", "turn 1 failed", cause=cause)
        store.finish("r1", epoch, "complete")
        once = tables(store)
        store.finish("r1", epoch, "complete")
        assert tables(store) == once
        assert store.states()["r1"] == RunState("complete", epoch, "host 1", "")

    def test_forgetting_leaves_other_runs_and_fences_the_old_lease(self, store: Store) -> None:
        for run_id in ("r1", "r2"):
            completed(store, run_id)
        kept = store.record("r1", 1)
        store.forget(["r1"])
        assert store.entries("r1") == []
        assert store.states()["r1"] == RunState("pending", 2, "", "", generation=1)
        produced = ("agents", "edges", "turns", "opinions", "journal")
        assert [{row[0] for row in tables(store, produced)[name]} for name in produced] == [{"r2"}] * 5
        assert store.prompt("r2", 0) == [ChatMessage("system", "Hello.")]
        kept.append(call(2))
        with pytest.raises(StoreError, match="r1"):
            kept.flush()

    def test_when_a_run_was_begun_is_when_it_was_first_leased(self, tmp_path: Path) -> None:
        def begun_at(store: Store) -> float | None:
            with store.reading() as connection:
                found = connection.exec_driver_sql("SELECT begun_at FROM runs").scalar_one()
            return None if found is None else float(found)

        with open_store(self.url(tmp_path)) as store:
            store.register([run_row()])
            assert begun_at(store) is None
            leased(store)
            first = begun_at(store)
            assert first is not None
            store.finish("r1", leased(store, owner="host 2"), "complete")
            store.lease("r1", "host 3", complete=True)
            assert begun_at(store) == first
            store.forget(["r1"])
            assert begun_at(store) is None
            leased(store)
            assert (begun_at(store) or 0.0) >= first

    def test_a_run_is_under_way_while_somebody_alive_holds_it(self, store: Store, reader: Store) -> None:

        def under_way() -> set[str]:
            found = reader.under_way(reader.states())
            assert store.under_way(store.states()) == found
            return found

        store.register([run_row("r1"), run_row("r2"), run_row("r3")])
        assert under_way() == set()
        leased(store, "r1")
        leased(store, "r3")
        assert under_way() == {"r1", "r3"}
        store.finish("r1", 1, "complete")
        store.release("r3", 1)
        assert under_way() == set()
        assert store.lease("r1", "host 1", complete=True) == 2
        assert under_way() == {"r1"}
        store.close()
        # The process that held it is gone.
        assert reader.states()["r1"].held
        assert reader.under_way(reader.states()) == set()

    def test_readers_are_told_what_is_being_done(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("opinionsim.store._workers.HEARTBEAT_S", 0.01)
        doing = [Doing(1, 9, 1)]
        store.tell(lambda: doing[0])
        begun(store)
        with open_store(self.url(tmp_path), write=False) as reader:
            for doing[0] in (Doing(1, 9, 1), Doing(2, 9, 1, {"openai": 2.5}, stopping=True)):
                wait_until(lambda: reader.doing() == doing)
            store.close()
            assert reader.doing() == []
