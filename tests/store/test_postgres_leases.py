from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import event

from opinionsim.errors import Cause, StoreError
from opinionsim.store import EXPIRY_S, RunState, open_store
from tests.store._children import MEASURER, killed
from tests.support.postgres import age, cut
from tests.support.rows import (
    CAST,
    EDGES,
    add,
    begun,
    call,
    completed,
    leased,
    opinion_row,
    reply,
    run_row,
    turn_row,
)
from tests.support.waiting import at_once

_WORKER = """
import sys
from opinionsim.store import open_store
from tests.support.rows import CAST, add, begun, opinion_row, turn_row

store = open_store(sys.argv[1])
record = begun(store, owner="child")
record.begin(CAST, [])
turn = 0
while True:
    add(record, turn_row(turn))
    add(record, opinion_row(turn))
    turn += 1
    if turn % 200 == 0:
        store.flush()
        print(turn, flush=True)
"""


def test_a_run_under_way_is_taken_over_once_its_owner_gives_no_sign_of_life(url: str, ask) -> None:
    with open_store(url) as one, open_store(url) as two:
        record = begun(one, owner="one")
        record.append(call(0, "kept"))
        record.flush()
        assert two.lease("r1", "two") is None
        age(ask, EXPIRY_S - 5)
        assert two.lease("r1", "two") is None
        assert two.states()["r1"] == RunState("running", 1, "one", "", held=True)
        age(ask, 10)
        assert two.lease("r1", "two") == 2
        record.append(call(1, "lost"))
        record.add_turn(turn_row(0))
        with pytest.raises(StoreError, match="run r1 has been leased by another worker"):
            record.flush()
        with pytest.raises(StoreError, match="epoch 1"):
            one.finish("r1", 1, "complete")
        with pytest.raises(StoreError, match="epoch 1"):
            one.record("r1", 1)
        two.finish("r1", 2, "complete")
        assert two.states()["r1"] == RunState("complete", 2, "two", "")
        assert two.turns("r1") == []
        assert [entry.text for entry in two.entries("r1")] == ["kept"]
        assert one.lease("r1", "one") is None


def test_every_lease_is_a_sign_of_life(url: str, ask) -> None:
    """A worker that stalled could otherwise be deprived at once of what it leases next."""
    with open_store(url) as one, open_store(url) as two:
        one.register([run_row("r1"), run_row("r2")])
        leased(one, "r1", "one")
        age(ask, EXPIRY_S + 1)
        leased(one, "r2", "one")
        assert two.lease("r2", "two") is None


def test_the_runs_of_a_closed_store_can_be_leased_at_once(url: str, ask) -> None:
    with open_store(url) as one:
        one.register([run_row()])
        leased(one, owner="one")
        assert ask("SELECT owner FROM workers") == [("one",)]
    assert ask("SELECT owner FROM workers") == []
    with open_store(url) as two:
        assert two.lease("r1", "two") == 2


def test_a_run_that_failed_can_be_leased_by_anybody(url: str) -> None:
    with open_store(url) as one, open_store(url) as two:
        completed(one, owner="one", status="incomplete", error="turn 2 failed")
        assert two.lease("r1", "two") == 2


def test_a_store_goes_on_giving_signs_of_life(url: str, ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.store._workers.HEARTBEAT_S", 0.01)
    with open_store(url) as store:
        store.register([run_row("r1"), run_row("r2")])
        leased(store, "r1", "one")
        leased(store, "r2", "other")
        ((first,),) = ask("SELECT min(heartbeat_at) FROM workers")
        while ask("SELECT min(heartbeat_at) FROM workers") <= [(first,)]:
            pass
        ask("DELETE FROM workers")
        while len(ask("SELECT owner FROM workers")) < 2:
            pass
        cut(ask)
        ask("DELETE FROM workers")
        while len(ask("SELECT owner FROM workers")) < 2:
            pass


def test_of_workers_that_lease_at_the_same_moment_one_wins(url: str) -> None:
    runs = [f"r{number}" for number in range(12)]
    with open_store(url) as one, open_store(url) as two, open_store(url) as three:
        one.register([run_row(run_id) for run_id in runs])
        stores = (one, two, three)
        won = [
            at_once(*(partial(each.lease, run_id, f"worker {i}") for i, each in enumerate(stores))) for run_id in runs
        ]
        assert [sorted(each, key=str) for each in won] == [[1, None, None]] * len(runs)
        owners = [f"worker {each.index(1)}" for each in won]
        assert [one.states()[run_id].owner for run_id in runs] == owners


def test_a_dead_worker_has_one_heir(url: str, ask) -> None:
    with open_store(url) as dead, open_store(url) as one, open_store(url) as two:
        dead.register([run_row()])
        leased(dead, owner="dead")
        age(ask, 100)
        taken = at_once(partial(one.lease, "r1", "one"), partial(two.lease, "r1", "two"))
        assert sorted(taken, key=str) == [2, None]


def test_whoever_takes_a_run_over_waits_for_what_is_being_written_of_it(url: str, ask) -> None:
    """Rows that came in between would have the numbers of the heir's."""
    arrived, let_go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        if threading.current_thread().name == "opinionsim-record":
            arrived.set()
            assert let_go.wait(20)

    with open_store(url) as one, open_store(url) as two, ThreadPoolExecutor(1) as pool:
        record = begun(one, owner="one")
        record.begin(CAST, EDGES)
        record.flush()
        age(ask, 100)
        event.listen(one._database.writing, "commit", hold)
        add(record, turn_row(0))
        assert arrived.wait(20)
        taken = pool.submit(begun, two, owner="two")
        with pytest.raises(TimeoutError):
            taken.result(0.3)
        let_go.set()
        heir = taken.result()
        assert heir.epoch == 2
        add(record, turn_row(1, text="too late"))
        with pytest.raises(StoreError, match="leased by another worker"):
            record.flush()
        for turn in range(2):
            add(heir, turn_row(turn))
        assert [(each.seq, each.row) for each in two.follow("r1").poll()] == [(1, turn_row(0)), (2, turn_row(1))]


def test_a_run_another_worker_carries_out_is_not_forgotten(url: str, ask) -> None:
    with open_store(url) as one, open_store(url) as two:
        record = begun(one, owner="one")
        record.append(call(0))
        completed(one, "r2", "one")
        with pytest.raises(StoreError, match="run r1 is being carried out by one and cannot start anew"):
            two.forget(["r2", "r1"])
        assert [state.status for state in two.states().values()] == ["running", "complete"]
        one.forget(["r2"])
        age(ask, 100)
        two.forget(["r1"])
        assert ask("SELECT status, owner, held FROM runs") == [("pending", "", 0)] * 2
        assert two.entries("r1") == []
        record.append(call(1))
        with pytest.raises(StoreError, match="leased by another worker"):
            record.flush()


def test_a_run_is_measured_anew_once_whoever_measured_it_is_dead(url: str, ask) -> None:
    with open_store(url) as one, open_store(url) as two:
        first = completed(one, owner="one", error="not coded yet", opinions=())
        assert ask("SELECT held FROM runs") == [(0,)]
        epoch = one.lease("r1", "one", complete=True)
        assert epoch == first + 1
        assert ask("SELECT held FROM runs") == [(1,)]
        record = one.record("r1", epoch)
        record.add_opinions([opinion_row(0)])
        record.flush()
        age(ask, EXPIRY_S - 5)
        assert two.lease("r1", "two", complete=True) is None
        with pytest.raises(StoreError, match="run r1 is being measured by one and cannot start anew"):
            two.forget(["r1"])
        age(ask, 10)
        assert two.lease("r1", "two", complete=True) == epoch + 1
        # It was only slow, and comes back.
        record.append(call(1, call="judge.m1"))
        record.add_opinions([opinion_row(1)])
        with pytest.raises(StoreError, match="run r1 has been leased by another worker"):
            record.flush()
        with pytest.raises(StoreError, match=f"epoch {epoch}"):
            one.release("r1", epoch)
        assert ask("SELECT held, owner FROM runs") == [(1, "two")]
        assert two.uncoded(["r1"], "m1", ["post", "report"]) == {"r1": [(1, None)]}
        two.record("r1", epoch + 1).add_opinions([opinion_row(1)])
        two.release("r1", epoch + 1)
        assert two.uncoded(["r1"], "m1", ["post", "report"]) == {}
        assert [entry.key.call for entry in two.entries("r1")] == ["reply", "reply"]
        assert two.states()["r1"] == RunState(
            "complete", epoch + 1, "two", "not coded yet", cause=Cause("store", "not coded yet")
        )
        assert [event.seq for event in two.follow("r1").poll()] == [1, 2, 3, 4]
        assert one.lease("r1", "one", complete=True) == epoch + 2


def test_a_killed_worker_that_measured_has_an_heir(url: str, ask) -> None:
    assert killed(MEASURER, url) == [2]
    with open_store(url) as store:
        assert store.lease("r1", "heir", complete=True) is None
        age(ask, 100)
        assert store.lease("r1", "heir", complete=True) == 3
        assert store.states()["r1"] == RunState("complete", 3, "heir", "", held=True)


def test_a_run_whose_measuring_store_is_closed_can_be_measured_at_once(url: str) -> None:
    with open_store(url) as one:
        completed(one, owner="one")
        assert one.lease("r1", "one", complete=True) == 2
    with open_store(url) as two:
        assert two.lease("r1", "two", complete=True) == 3


def test_of_workers_that_would_measure_at_the_same_moment_one_wins(url: str) -> None:
    runs = [f"r{number}" for number in range(8)]
    with open_store(url) as one, open_store(url) as two:
        for run_id in runs:
            completed(one, run_id, "before")
        leases = {"one": partial(one.lease, complete=True), "two": partial(two.lease, complete=True)}
        won = [at_once(*(partial(lease, run, owner) for owner, lease in leases.items())) for run in runs]
        assert [sorted(each, key=str) for each in won] == [[2, None]] * len(runs)


def test_a_killed_worker_leaves_a_prefix_to_its_heir(url: str, ask) -> None:
    durable = killed(_WORKER, url, lines=2)[-1]
    with open_store(url, write=False) as reader:
        events = reader.follow("r1").poll()
        n_turns = (len(events) + 1) // 2
        assert n_turns >= durable
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        rows = [row for turn in range(n_turns) for row in (turn_row(turn), opinion_row(turn))]
        assert [event.row for event in events] == rows[: len(events)]
    with open_store(url) as store:
        assert store.lease("r1", "heir") is None
        age(ask, 100)
        record = begun(store, owner="heir")
        assert len(record.entries) in (n_turns, n_turns + 1)
        assert record.entries == [replace(reply(turn_row(turn)), prompt=None) for turn in range(len(record.entries))]
        for row in rows[: len(events)]:
            add(record, row)
        add(record, turn_row(n_turns))
        assert store.follow("r1").poll()[-1].row == turn_row(n_turns)
