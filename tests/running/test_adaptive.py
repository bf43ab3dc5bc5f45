"""Adaptive ways of meeting from specification to frames: exact at any slot count, resumed, replayed, on record."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

import opinionsim as osim
from opinionsim.assembly import LoadedParts, assemble, edge_rows, tie_rows
from opinionsim.engine import Simulation
from opinionsim.llm import MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.measurement import Measuring, Queues
from opinionsim.running import replay
from opinionsim.schedules import TieChange, tie_changes
from opinionsim.specification import load_experiment
from opinionsim.store import EdgeRow, Results, TieRow, open_store
from opinionsim.testing import run_virtual
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, watched

pytestmark = pytest.mark.long

KINDS: dict[str, dict[str, Any]] = {
    "power": {"kind": "similarity", "steps": 10, "strength": 2.0, "form": "power"},
    "drawn": {"kind": "bounded-confidence", "steps": 14, "confidence": 1.0},
    "near": {"kind": "bounded-confidence", "steps": 14, "confidence": 1.0, "choose": "near", "strict": True},
    "rewiring": {"kind": "rewiring", "steps": 20, "tolerance": 0.0, "rewire": 0.6, "network": "ring"},
    "feed": {"kind": "feed", "steps": 6, "posts": 3, "strength": 2.0},
    "recent-feed": {"kind": "feed", "steps": 6, "posts": 3, "ranking": "recency"},
}
#: Ways of meeting that act on nobody's opinion.
NEEDLESS = {"recent-feed"}


def _spec(name: str) -> dict[str, Any]:
    asked = {"probe": {"before": 1, "after": 1}}
    return changed(SMALL, name=name, population={"size": 6}, interaction=KINDS[name], measurement=asked)


@pytest.mark.parametrize("name", KINDS)
def test_a_run_is_the_same_at_any_slot_count_resumed_and_replayed(name: str) -> None:
    spec = _spec(name)
    summary, sequential = carry_out(spec, "one.sqlite", watched()[0], slots=1)
    assert summary.errors == {}
    for slots in (3, 64):
        assert_same(carry_out(spec, f"{slots}.sqlite", watched()[0], slots=slots)[1], sequential)
    broken = ended(spec, "broken.sqlite", watched(fails=lambda number: number == 15)[0])
    assert broken.complete == 0
    assert_same(carry_out(spec, "broken.sqlite", watched()[0])[1], sequential)
    assert [each.difference for each in replay(sequential)] == [""]
    # Something was acted on that was measured, not assigned.
    with open_store("one.sqlite", write=False) as store:
        entries = store.entries(sequential.runs["run_id"].iloc[0])
    assert any(entry.source == "instrument" for entry in entries) == (name not in NEEDLESS)


@pytest.mark.parametrize("name", KINDS)
def test_a_run_in_one_call(name: str) -> None:
    results = osim.run(load_experiment(_spec(name)), "run.sqlite")
    assert results.runs[["status", "interaction", "steps"]].values.tolist() == [
        ["complete", KINDS[name]["kind"], KINDS[name]["steps"]]
    ]
    turns = results.turns
    shown = turns[turns["act"] == "review"]["reads"].map(len)
    assert set(shown) == ({3} if "feed" in name else {1})
    assert set(turns["act"]) == {"write", "review", "probe"}
    if "feed" in name:
        posts = turns[turns["act"] == "write"].groupby("step")["agent"].agg(list)
        assert posts[0] == list(range(6))
        assert posts.drop(0).map(len).tolist() == [1] * 6
    assert_prompts_hold_what_is_read(results)


def assert_prompts_hold_what_is_read(results: Results) -> None:
    """Every post a review reads stands in its prompt, in order."""
    texts = results.turns.set_index("turn")["message"]
    run_id = results.runs["run_id"][0]
    with open_store(results.url, write=False) as store:
        for turn in results.turns.itertuples():
            if turn.reads:
                task = store.prompt(run_id, turn.turn)[-1].content
                place = 0
                for post in turn.reads:  # two of them may say the same
                    place = task.index(texts[post], place) + len(texts[post])


# -- ties on record --------------------------------------------------------------------------------------------


def _network_after(results: Results, step: int) -> set[frozenset[int]]:
    edges = results.edges
    lasting = edges[(edges["since"] <= step) & ~(edges["until"] <= step).fillna(False)]
    return {frozenset(pair) for pair in lasting[["source", "target"]].itertuples(index=False, name=None)}


def test_ties_that_move_are_on_record_with_their_steps() -> None:
    results = carry_out(_spec("rewiring"), "moved.sqlite")[1]
    edges, turns = results.edges, results.turns
    assert (edges["since"] > 0).any()
    assert (edges["since"] == 0).sum() == 6
    assert _network_after(results, 0) == {frozenset((i, (i + 1) % 6)) for i in range(6)}
    assert all(len(_network_after(results, step)) == 6 for step in range(21))
    agent = turns.set_index("turn")["agent"]
    reviews = turns[turns["act"] == "review"]
    for turn in reviews.itertuples():
        assert frozenset((turn.agent, agent[turn.reads[0]])) in _network_after(results, turn.step - 1)
    # Every step is a meeting or one tie that moves.
    moved = set(edges["since"]) - {0}
    assert sorted(edges["until"].dropna()) == sorted(moved)
    assert moved | set(reviews["step"]) == set(range(1, 21))
    assert not moved & set(reviews["step"])


def test_a_replay_moves_the_same_ties() -> None:
    experiment = load_experiment(_spec("rewiring"))
    results = carry_out(experiment, "moved.sqlite")[1]
    planned = experiment.runs[0]
    with open_store("moved.sqlite", write=False) as store:
        journal = MemoryJournal(store.entries(planned.run_id))
    parts = assemble(planned, experiment.resources)
    calls = RunCalls(planned.run_id, journal, ReplayOnly(), SlotPool(1))
    measuring = Measuring(LoadedParts(experiment).instruments(planned.spec), Queues(), calls, parts.claim)
    run_virtual(Simulation(parts.schedule, parts.cast(), calls, measuring=measuring).run())
    with open_store("moved.sqlite", write=False) as store:
        assert store.ties(planned.run_id) == tie_rows(parts.network, tie_changes(parts.schedule)) != []
        assert store.edges(planned.run_id) == sorted(edge_rows(parts.network))
    assert len(results.edges) == len(edge_rows(parts.network)) + results.edges["until"].notna().sum()


def test_a_network_that_stays_is_there_from_the_start_and_never_ends() -> None:
    interaction = {"kind": "dyadic", "steps": 2, "network": "ring"}
    edges = carry_out(changed(SMALL, interaction=interaction), "static.sqlite")[1].edges
    assert edges["since"].tolist() == [0] * 4
    assert edges["until"].isna().all()


def test_a_tie_takes_its_weight_along_and_may_come_back() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2.5), (2, 3, 0.5)])
    changes = [TieChange(3, 0, 1, 2), TieChange(5, 0, 2, 1)]
    assert edge_rows(graph) == (EdgeRow(0, 1, 2.5), EdgeRow(2, 3, 0.5))
    assert tie_rows(graph, changes) == [TieRow(3, 0, 1, 0, 2), TieRow(5, 0, 2, 0, 1)]
    arrows = nx.DiGraph([(2, 0), (1, 2)])
    assert tie_rows(arrows, [TieChange(1, 0, 2, 1)]) == [TieRow(1, 2, 0, 1, 0)]
    assert edge_rows(None) == ()
    assert tie_rows(None, []) == []
