"""Tests of followers of a run: each row once, in order, at any time and from any writer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from opinionsim.errors import StoreError
from opinionsim.store import (
    EdgeRow,
    NewRow,
    OpinionRow,
    RunRecord,
    RunState,
    Store,
    TieRow,
    TurnRow,
    open_store,
)
from opinionsim.watching import follow
from tests.support.rows import (
    CAST,
    EDGES,
    add,
    add_all,
    begun,
    completed,
    lead,
    leased,
    numbered,
    opinion_row,
    run_row,
    tables,
    turn_row,
)
from tests.support.store_case import StoreCase


def _rows(n_turns: int) -> list[TurnRow | TieRow | OpinionRow]:
    """Rows of a run: turns, each with an opinion, and now and then a tie that moves."""
    rows: list[TurnRow | TieRow | OpinionRow] = []
    for turn in range(n_turns):
        rows += [turn_row(turn, (turn - 1,) if turn else ()), opinion_row(turn)]
        if turn % 3 == 1:
            ends = (0, 1) if turn % 2 else (1, 0)
            rows.append(TieRow(turn, *ends, *reversed(ends)))
    return rows


def _begun(record: RunRecord) -> RunRecord:
    record.begin(CAST, EDGES)
    return record


def _events(rows: list[TurnRow | TieRow | OpinionRow], generation: int = 0) -> list[NewRow]:
    return [NewRow(number, generation, row) for number, row in enumerate(rows, start=1)]


class FollowingContract(StoreCase):
    """Tests of :class:`opinionsim.store.Follower` and :func:`opinionsim.follow`, whatever database it is."""

    @pytest.fixture(autouse=True)
    def _look_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("opinionsim.watching._new_rows._OFTEN_S", 0.005)
        monkeypatch.setattr("opinionsim.watching._new_rows._SELDOM_S", 0.02)

    @pytest.mark.parametrize("known", [0, 4])
    def test_a_follower_sees_every_row_once_in_order_as_it_is_written(
        self, store: Store, reader: Store, known: int
    ) -> None:
        rows = _rows(9)
        record = _begun(begun(store))
        add_all(record, rows[:known])
        store.flush()
        follower = reader.follow("r1", after=known)
        assert (follower.run_id, follower.seq, follower.over) == ("r1", known, False)
        seen = follower.poll()
        for start in range(known, len(rows), 5):
            add_all(record, rows[start : start + 5])
            store.flush()
            seen += follower.poll()
            assert follower.seq == seen[-1].seq == min(start + 5, len(rows))
            assert follower.poll() == []
        assert seen == _events(rows)[known:]
        assert follower.state == RunState("running", 1, "host 1", "", held=True)
        store.finish("r1", record.epoch, "complete")
        assert not follower.over
        assert follower.poll() == []
        assert follower.over
        assert follower.state == RunState("complete", 1, "host 1", "")

    def test_followers_of_one_run_do_not_disturb_each_other(self, store: Store, reader: Store) -> None:
        rows = _rows(4)
        record = _begun(begun(store))
        followers = [reader.follow("r1"), store.follow("r1"), reader.follow("r1")]
        seen: list[list[NewRow]] = [[] for _ in followers]
        for number, row in enumerate(rows):
            add(record, row)
            store.flush()
            place = number % len(followers)
            seen[place] += followers[place].poll()
        for follower, events in zip(followers, seen, strict=True):
            assert events + follower.poll() == _events(rows)

    def test_a_follower_goes_on_under_the_next_lease(self, store: Store, reader: Store) -> None:
        rows = _rows(6)
        record = _begun(begun(store))
        follower = reader.follow("r1")
        add_all(record, rows[:7])
        store.finish("r1", record.epoch, "incomplete", StoreError("stopped"))
        seen = follower.poll()
        assert follower.over
        assert follower.state.error == "stopped"
        record = _begun(begun(store, owner="host 2"))
        add_all(record, rows)
        store.finish("r1", record.epoch, "complete")
        assert seen + follower.poll() == _events(rows)
        # Opinions that are added to a complete run come too, and meanwhile it is not over.
        epoch = store.lease("r1", "host 3", complete=True)
        assert epoch is not None
        assert follower.poll() == []
        assert not follower.over
        store.record("r1", epoch).add_opinions([opinion_row(0, "m2")])
        store.release("r1", epoch)
        assert follower.poll() == [NewRow(len(rows) + 1, 0, opinion_row(0, "m2"))]
        assert follower.over

    def test_a_follower_starts_anew_with_the_run(self, store: Store, reader: Store) -> None:
        completed(store, turns=_rows(1)[:1], opinions=())
        follower, late = reader.follow("r1"), reader.follow("r1", after=1)
        assert follower.poll() == _events([turn_row(0)])
        store.forget(["r1"])
        assert follower.poll() == late.poll() == []
        assert (follower.seq, late.seq, follower.over) == (0, 0, False)
        record = _begun(begun(store))
        for turn in (1, 0):
            add(record, turn_row(turn, text="anew"))
        store.flush()
        expected = _events([turn_row(turn, text="anew") for turn in (1, 0)], generation=1)
        assert follower.poll() == late.poll() == expected
        # Begun anew twice between two polls.
        store.forget(["r1"])
        store.forget(["r1"])
        lead(begun(store), turns=[turn_row(0)], opinions=())
        store.flush()
        assert follower.poll() == late.poll() == _events([turn_row(0)], generation=3)
        assert reader.follow("r1", after=1).poll() == []

    def test_what_cannot_be_followed_is_refused_and_nothing_written(self, tmp_path: Path) -> None:
        url = self.url(tmp_path)
        with open_store(url) as store:
            completed(store)
            store.register([run_row("empty"), run_row("r2")])
            before = tables(store)
            for run_id, after in (("r1", 4), ("r1", -1), ("r1", 10**9), ("empty", 1)):
                last = 3 if run_id == "r1" else 0
                message = f"run {run_id} has no row {after} to continue from; valid: 0 to {last}"
                with pytest.raises(StoreError, match=message):
                    store.follow(run_id, after=after)
                with pytest.raises(StoreError, match=message):
                    next(follow(url, run_id, after=after))
            with pytest.raises(StoreError, match="has no run 'absent'"):
                store.follow("absent")
            with pytest.raises(StoreError, match="has no runs whose id begins with 'absent'"):
                next(follow(url, "absent"))
            for start, count in (("r", 2), ("", "no")):
                with pytest.raises(StoreError, match=f"has {count} runs whose id begins with '{start}'"):
                    next(follow(url, start))
            assert store.follow("r1", after=3).poll() == store.follow("empty").poll() == []
            assert tables(store) == before

    def test_a_run_that_has_ended_is_told_from_the_start_or_after_a_number(self, tmp_path: Path) -> None:
        rows = _rows(5)
        with open_store(self.url(tmp_path)) as store:
            record = _begun(begun(store, "run of one"))
            add_all(record, rows)
            store.finish("run of one", record.epoch, "incomplete", StoreError("stopped"))
        assert list(follow(self.url(tmp_path), "run of one")) == _events(rows)
        assert list(follow(self.url(tmp_path), "run", after=3)) == _events(rows)[3:]
        assert list(follow(self.url(tmp_path), "run", after=len(rows))) == []

    def test_a_run_under_way_is_told_until_it_ends(self, tmp_path: Path) -> None:
        rows = _rows(60)
        with open_store(self.url(tmp_path)) as store, ThreadPoolExecutor(3) as pool:
            record = _begun(begun(store))
            add_all(record, rows[:10])
            store.flush()
            told = [pool.submit(list, follow(store.url, "r1", after=after)) for after in (0, 0, 7)]
            for number, row in enumerate(rows[10:]):
                add(record, row)
                if number % 20 == 0:
                    store.flush()
            store.finish("r1", record.epoch, "complete")
            assert [each.result() for each in told] == [_events(rows)[after:] for after in (0, 0, 7)]

    def test_a_run_that_was_cut_off_is_waited_for_as_long_as_wanted(self, store: Store) -> None:
        rows = _rows(4)
        record = _begun(begun(store))
        add_all(record, rows[:4])
        store.release("r1", record.epoch)
        assert list(follow(store.url, "r1", timeout_s=0.05)) == _events(rows[:4])
        waiting = follow(store.url, "r1")
        assert list(islice(waiting, 4)) == _events(rows[:4])
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(list, waiting)
            record = store.record("r1", leased(store, owner="host 2"))
            add_all(record, rows)
            store.finish("r1", record.epoch, "complete")
            assert rest.result() == _events(rows)[4:]

    def test_a_run_that_is_begun_anew_is_told_anew(self, store: Store) -> None:
        lead(begun(store), turns=[turn_row(0)], edges=[EdgeRow(0, 1)])
        store.flush()
        told = follow(store.url, "r1")
        assert list(islice(told, 2)) == _events([turn_row(0), opinion_row(0)])
        store.forget(["r1"])
        completed(store, turns=[turn_row(0, text="anew")], opinions=())
        assert list(told) == _events([turn_row(0, text="anew")], generation=1)

    def test_whoever_stops_listening_leaves_nothing_open(self, store: Store) -> None:
        completed(store)
        told = follow(store.url, "r1")
        assert next(told).seq == 1
        told.close()  # type: ignore[attr-defined]
        assert len(numbered(store)) == 3
