"""What is loaded of an experiment: its designs, one state of it while it is under way, and ties that move."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from opinionsim.errors import StoreError
from opinionsim.store import FRAMES, EdgeRow, OpinionRow, Results, RunRecord, Store, TieRow, TurnRow, load, open_store
from tests.support.rows import (
    CAST,
    EDGES,
    add,
    begun,
    completed,
    design_row,
    instrument_row,
    lead,
    leased,
    opinion_row,
    run_row,
    turn_row,
)


@pytest.fixture
def store(each_url: str) -> Iterator[Store]:
    """An open one, with an instrument and a design of one registered run."""
    with open_store(each_url) as opened:
        opened.save_instrument(instrument_row())
        opened.register([run_row(wording="pack@1")])
        opened.save_design(design_row())
        yield opened


def _begun(store: Store) -> RunRecord:
    record = begun(store)
    record.begin(CAST, EDGES)
    return record


def _add(record: RunRecord, *rows: TurnRow | TieRow | OpinionRow) -> None:
    for row in rows:
        add(record, row)
    record.flush()


def _sizes(results: Results) -> dict[str, int]:
    return {name: len(getattr(results, name)) for name in FRAMES}


# -- designs -------------------------------------------------------------------------------------------------


def test_every_design_of_an_experiment_is_loaded_by_its_number(store: Store) -> None:
    store.register([run_row("r2"), run_row("r3")])
    completed(store)
    assert store.save_design(replace(design_row(runs=("r2", "r3"), design_id="d2"), spec={"seed": 8})) == 2
    assert store.save_design(design_row("e2", "other", ("r1", "r3"))) == 1
    last, first, second = load(store.url), load(store.url, "quick", design=1), load(store.url, "e1")
    assert [(each.name, each.design, each.designs) for each in (last, first, second)] == [
        *(("other", 1, (1,)), ("quick", 1, (1, 2)), ("quick", 2, (1, 2))),
    ]
    assert [each.run_ids for each in (last, first, second)] == [("r1", "r3"), ("r1",), ("r2", "r3")]
    assert second.spec == {"seed": 8}
    assert [len(each.turns) for each in (last, first, second)] == [2, 2, 0]
    assert list(second.runs["run_id"]) == ["r2", "r3"]
    for number in (0, 3, -1):
        with pytest.raises(StoreError, match=f"experiment 'quick' in .* has no design {number}; it has 1, 2"):
            load(store.url, "quick", design=number)
    # Run again, the first is the last.
    store.save_design(design_row())
    assert (load(store.url).name, load(store.url).design) == ("quick", 1)


def test_a_run_stands_in_a_design_once_for_each_cell(store: Store) -> None:
    first, second = design_row().runs[0], replace(design_row().runs[0], cell="other", instrument_id=None)
    store.save_design(replace(design_row(), runs=(first, second)))
    results = load(store.url)
    assert results.run_ids == ("r1",)
    assert list(results.runs["cell"]) == ["framing=r1", "other"]


# -- under way -----------------------------------------------------------------------------------------------


def test_the_frames_of_an_experiment_under_way_are_of_one_state(store: Store) -> None:
    record = _begun(store)
    _add(record, turn_row(0), opinion_row(0))
    results, unread = load(store.url), load(store.url)
    assert results.under_way == 1
    assert "1 of its runs in progress" in repr(results)
    assert len(results.opinions) == 1
    _add(record, turn_row(1), opinion_row(1))
    assert _sizes(results) == {"runs": 1, "agents": 2, "edges": 1, "turns": 1, "opinions": 1, "calls": 1}
    assert len(results.metrics) == 1
    # What has not been read yet is read as it is then.
    assert _sizes(unread) == {"runs": 1, "agents": 2, "edges": 1, "turns": 2, "opinions": 2, "calls": 2}
    _add(record, turn_row(2))
    assert len(unread.turns) == 2
    store.finish("r1", record.epoch, "complete")
    finished = load(store.url)
    assert finished.under_way == 0
    assert _sizes(finished)["turns"] == 3


def test_frames_that_are_read_while_a_run_is_written_fit_each_other(store: Store) -> None:
    record, ended = _begun(store), threading.Event()

    def write() -> None:
        for turn in range(2000):
            add(record, turn_row(turn, (turn - 1,) if turn else ()))
            add(record, opinion_row(turn))
            if turn % 20 == 0:
                record.flush()
            if ended.is_set():
                break

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(4):
            results = load(store.url)
            turns, opinions, calls = (set(getattr(results, name)["turn"]) for name in ("turns", "opinions", "calls"))
            assert opinions <= turns <= calls
            assert turns == set(range(len(turns)))
    finally:
        ended.set()
        thread.join()


def test_what_counts_as_under_way_are_runs_somebody_alive_holds(store: Store) -> None:
    store.register([run_row("r2"), run_row("elsewhere")])
    store.save_design(design_row(runs=("r1", "r2")))
    for run_id in ("r1", "r2", "elsewhere"):
        leased(store, run_id)
    assert load(store.url).under_way == 2
    store.release("r1", 1)
    assert load(store.url).under_way == 1
    store.close()
    assert load(store.url).under_way == 0
    assert list(load(store.url).runs["status"]) == ["running", "running"]


# -- what a run is -------------------------------------------------------------------------------------------


def test_runs_say_under_which_wording_they_were_begun_and_when(store: Store) -> None:
    store.register([run_row("r2", wording="pack@2"), run_row("r3"), run_row("r4")])
    store.save_design(design_row(runs=("r1", "r2", "r3", "r4")))
    for run_id in ("r2", "r3"):
        completed(store, run_id)
    store.save_inputs("r1", "made of these", "pack@3", {})
    runs = load(store.url).runs.set_index("run_id")
    assert runs["wording"].fillna("-").to_dict() == {"r1": "-", "r2": "pack@2", "r3": "-", "r4": "-"}
    assert runs["begun_at"].notna().to_dict() == {"r1": False, "r2": True, "r3": True, "r4": False}
    assert runs["begun_at"]["r2"] < runs["begun_at"]["r3"]
    leased(store)
    assert list(load(store.url).runs["wording"].dropna()) == ["pack@3", "pack@2"]


def test_ties_last_from_where_they_were_made_to_where_they_moved(store: Store) -> None:
    edges = (EdgeRow(0, 1, 0.5), EdgeRow(0, 2), EdgeRow(1, 2, 2.0))
    ties = (
        TieRow(1, 0, 1, 1, 3),  # moves once
        TieRow(2, 0, 2, 0, 1),  # into a place that was left
        TieRow(4, 1, 3, 2, 3),  # moves again
        TieRow(4, 0, 1, 0, 2),  # and back
    )
    agents = tuple(replace(CAST[0], agent=agent) for agent in range(4))
    completed(store, agents=agents, edges=edges, ties=ties)
    frame = load(store.url).edges
    rows = frame[["source", "target", "weight", "since", "until"]].astype(object).where(frame.notna(), None)
    assert [tuple(row) for row in rows.values.tolist()] == [
        (0, 1, 0.5, 0, 1),
        (0, 1, 1.0, 2, 4),
        (0, 2, 1.0, 0, 2),
        (0, 2, 1.0, 4, None),
        (1, 2, 2.0, 0, None),
        (1, 3, 0.5, 1, 4),
        (2, 3, 0.5, 4, None),
    ]


# -- what is missing -----------------------------------------------------------------------------------------


def test_a_design_that_names_what_is_not_there_is_named(store: Store) -> None:
    store.save_design(design_row(runs=("r1", "absent")))
    results = load(store.url)
    with pytest.raises(StoreError, match="the store is damaged: run absent of quick is missing"):
        _ = results.runs
    unknown = replace(design_row().runs[0], instrument_id="m9", instruments={"m9": ("post",)})
    store.save_design(replace(design_row(design_id="d2"), runs=(unknown,)))
    with pytest.raises(StoreError, match="the store is damaged: instrument m9 is missing"):
        _ = load(store.url).runs
    completed(store, opinions=[opinion_row(0, "m9")])
    with pytest.raises(StoreError, match="the store is damaged: instrument m9 is missing"):
        _ = load(store.url).opinions


def test_what_was_said_by_nobody_is_named(store: Store) -> None:
    completed(store, agents=CAST[:1])
    results = load(store.url)
    for name in ("turns", "calls"):
        with pytest.raises(StoreError, match="the store is damaged: agent 1 of run r1 is missing"):
            getattr(results, name)


def test_a_tie_that_moved_from_nowhere_is_named(store: Store) -> None:
    lead(begun(store), ties=[TieRow(1, 3, 4, 3, 5)])
    store.flush()
    with pytest.raises(StoreError, match=r"the store is damaged: run r1 has no tie \(3, 4\) that could have moved"):
        _ = load(store.url).edges
