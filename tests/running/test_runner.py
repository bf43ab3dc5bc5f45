from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from sqlalchemy import Engine, event

import opinionsim as osim
from opinionsim.assembly import LoadedParts
from opinionsim.engine import Simulation
from opinionsim.errors import MeasurementError, SpecError, StoreError
from opinionsim.foundation import background
from opinionsim.llm import Entry
from opinionsim.measurement import LiveCoding
from opinionsim.running import Invocation, LocalExecutor, Runner, Shared, Summary, default_store, replay, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import Doing, Results, RunState, Store, open_store
from tests.support.editing import edit, own_pack, reword, rewrite
from tests.support.examples import few
from tests.support.running import (
    SMALL,
    BluntClassifier,
    assert_same,
    carry_out,
    changed,
    content,
    ended,
    loaded,
    watched,
)
from tests.support.waiting import wait_until

#: Both kinds of memory, every kind of turn, and a schedule that acts on opinions.
MIXED = changed(
    SMALL,
    measurement={"probe": {"before": 1, "after": 1}},
    sweep=[
        {"cognition.memory": ["cumulative", "reflective", "reflective-as-run"]},
        {"interaction": [{"kind": "broadcast", "steps": 3}, {"kind": "similarity", "steps": 6}]},
    ],
)


@pytest.fixture(scope="module")
def sequential(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What one call after another gives."""
    store = f"sqlite:///{tmp_path_factory.mktemp('sequential') / 'one.sqlite'}"
    model, _ = watched(latency=lambda seed: 0.0)
    summary, results = carry_out(MIXED, store, model, slots=1)
    assert summary.complete == summary.total == 5
    return results


def test_cycles_are_sought_seldom_while_runs_go_on_and_no_run_leaves_any(tmp_path: Path) -> None:
    usual, during = gc.get_threshold(), set()

    def noted(seed: int) -> float:
        during.add(gc.get_threshold())
        return 0.0

    def of_runs() -> list[object]:
        return [each for each in gc.get_objects() if isinstance(each, Simulation | LiveCoding)]

    gc.collect()
    # Fixtures of other tests may hold runs of their own.
    others = of_runs()
    gc.disable()
    try:
        summary, _ = carry_out(MIXED, f"sqlite:///{tmp_path / 'cycles.sqlite'}", watched(latency=noted)[0])
        left = [each for each in of_runs() if not any(each is other for other in others)]
    finally:
        gc.enable()
    assert summary.complete == summary.total
    assert left == []
    assert gc.get_threshold() == usual
    assert len(during) == 1
    assert min(during)[0] > usual[0]


@pytest.mark.parametrize(
    ("slots", "lookahead"),
    [
        (1, 2),
        (3, None),
        (64, 0),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((3, 0), (64, None), (64, 2))),
    ],
)
def test_slots_and_lookahead_change_nothing(sequential: Results, slots: int, lookahead: int | None) -> None:
    model, watch = watched()
    spec = changed(MIXED, execution__lookahead=lookahead)
    summary, results = carry_out(spec, "any.sqlite", model, slots=slots)
    assert summary.made == len(watch.asked) == len(set(watch.asked))
    assert_same(results, sequential)


@pytest.mark.parametrize("calls", few([1, 40, 90], 1))
def test_a_sweep_stopped_in_the_middle_is_finished_by_the_next_run(sequential: Results, calls: int) -> None:
    experiment = load_experiment(MIXED)
    reached = threading.Event()
    model, watch = watched(noticed=lambda number: reached.set() if number == calls else None)
    with under_way(Invocation(experiment, "stopped.sqlite", max_concurrency=5, chat_model=model)) as (runner, future):
        assert reached.wait(30)
        background.call_soon(runner.stop)
        summary = future.result()
    assert summary.stopped
    assert summary.complete < summary.total
    assert set(summary.errors.values()) == {"stopped before it was finished"}
    stopped = loaded("stopped.sqlite")
    assert set(stopped.runs["status"]) <= {"complete", "incomplete", "pending"}
    # Calls that were in flight have ended, and are on record.
    assert sorted(watch.asked) == sorted(watch.answered) == sorted(stopped.calls["seed"])
    again, second = watched()
    summary, results = carry_out(experiment, "stopped.sqlite", again)
    assert summary.complete == summary.total
    assert not set(second.asked) & set(watch.asked)
    assert len(second.asked) == len(sequential.calls) - len(watch.asked)
    assert_same(results, sequential)


def test_replay_gives_every_turn_without_a_model(sequential: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*args: Any) -> Any:
        raise AssertionError("replay asked a model")

    monkeypatch.setattr("opinionsim.llm.scripted._script.ScriptedChatModel._reply", unavailable)
    replayed = replay(sequential)
    assert {each.run_id for each in replayed} == set(sequential.runs["run_id"])
    assert sum(each.turns for each in replayed) == len(sequential.turns)
    assert [each.difference for each in replayed] == [""] * 5
    assert sum(each.opinions for each in replayed) == len(sequential.opinions)


def test_replay_tells_what_differs(tmp_path: Path) -> None:
    ended(SMALL, "one.sqlite")
    run_id = loaded("one.sqlite").runs["run_id"][0]
    rewrite("one.sqlite", "UPDATE turns SET agent = 3 - agent WHERE turn = 2")
    (found,) = replay(loaded("one.sqlite"))
    assert found == type(found)(run_id, 12, "turn 2 differs in agent")
    edit("one.sqlite", "DELETE FROM journal WHERE turn = 5")
    (found,) = replay(osim.load("one.sqlite"))
    assert found.difference == f"the store is damaged: table journal has 11 rows of run {run_id}, not 12"


def test_running_again_asks_nothing() -> None:
    first = carry_out(MIXED, "same.sqlite")[1]
    model, watch = watched()
    summary, second = carry_out(MIXED, "same.sqlite", model)
    assert (watch.asked, summary.made, summary.complete) == ([], 0, 5)
    assert_same(second, first)


def test_complete_runs_are_sorted_without_reading_their_rows() -> None:
    told: list[list[str]] = []
    for replicates in (2, 5):
        experiment = load_experiment(changed(SMALL, replicates=replicates))
        ended(experiment, f"{replicates}.sqlite")
        asked: list[str] = []

        def note(*given: Any, asked: list[str] = asked) -> None:
            asked.append(given[2].partition("WHERE")[0])

        event.listen(Engine, "before_cursor_execute", note)
        try:
            assert ended(experiment, f"{replicates}.sqlite").already == replicates
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        told.append(asked)
    # One statement for all runs, and none on turns and opinions but their numbers.
    assert told[0] == told[1]
    of_rows = [each for each in told[0] if "FROM turns" in each or "FROM opinions" in each]
    assert len(of_rows) == 2
    assert all("count(*)" in each for each in of_rows)


def test_a_store_that_is_cut_while_it_is_written_ends_the_sweep() -> None:
    path = Path("cut.sqlite")

    def cut(number: int) -> bool:
        if number == 9:
            os.truncate(path, path.stat().st_size // 2)
        return False

    with pytest.raises(StoreError, match=r"the store cut\.sqlite was cut from .* while it was being written"):
        ended(SMALL, str(path), watched(fails=cut)[0], slots=1)


# -- a call that fails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lookahead", [None, 0, 3])
@pytest.mark.parametrize(
    "number", [pytest.param(1, marks=pytest.mark.long), 7, pytest.param(30, marks=pytest.mark.long)]
)
def test_a_failed_call_stops_its_run_and_the_next_run_asks_what_is_missing(number: int, lookahead: int | None) -> None:
    spec = changed(SMALL, population={"size": 8}, interaction__steps=20, execution__lookahead=lookahead)
    model, watch = watched(fails=lambda n: n == number, latency=lambda seed: 0.001 + seed % 5 * 2e-3)
    summary, results = carry_out(spec, "failed.sqlite", model)
    (run_id, error), *_ = summary.errors.items()
    failed = watch.asked[number - 1]
    assert f"run {run_id}, step " in error
    assert "agent " in error
    assert "PermissionError: the provider is gone" in error
    assert results.runs[["status", "error"]].to_numpy().tolist() == [["incomplete", error]]
    # Everything that arrived is kept, also what arrived after the failure.
    assert sorted(results.calls["seed"]) == sorted(watch.answered) == sorted(set(watch.asked) - {failed})
    again, second = watched()
    summary, results = carry_out(spec, "failed.sqlite", again)
    assert summary.complete == 1
    assert len(second.asked) == 40 - len(watch.answered)
    assert set(second.asked) & set(watch.asked) == {failed}
    assert_same(results, carry_out(spec, "whole.sqlite")[1])
    assert results.runs["error"].tolist() == [""]


def test_a_failed_run_does_not_stop_the_others() -> None:
    spec = changed(SMALL, replicates=6)
    model, watch = watched(fails=lambda n: n in (9, 30))
    summary, results = carry_out(spec, "failed.sqlite", model, slots=3)
    assert 1 <= len(summary.errors) <= 2
    assert summary.complete == 6 - len(summary.errors)
    incomplete = results.runs[results.runs["status"] == "incomplete"]
    assert dict(zip(incomplete["run_id"], incomplete["error"], strict=True)) == summary.errors
    again, second = watched()
    ended(spec, "failed.sqlite", again)
    assert not set(second.asked) & set(watch.answered)
    assert_same(loaded("failed.sqlite"), carry_out(spec, "whole.sqlite")[1])


def test_a_reply_that_never_comes_stops_the_run() -> None:
    model, _ = watched(latency=lambda seed: 60.0)
    summary = ended(changed(SMALL, execution__timeout_s=0.05), "late.sqlite", model)
    (error,) = summary.errors.values()
    assert "no reply within 0.05 s" in error


def test_a_draw_that_cannot_be_used_stops_its_own_run() -> None:
    network = {"kind": "erdos-renyi", "p": 0.2}
    spec = changed(SMALL, population={"size": 3}, replicates=6, interaction__network=network)
    summary, results = carry_out(spec, "edgeless.sqlite")
    assert 0 < len(summary.errors) < 6
    for run_id, error in summary.errors.items():
        assert error.startswith(f"run {run_id}: interaction.network: ")
        assert "has no edge" in error
    assert summary.complete == 6 - len(summary.errors)
    assert set(results.runs["status"]) == {"complete", "incomplete"}


def test_interrupting_run_ends_calls_in_flight_and_keeps_them() -> None:
    experiment = load_experiment(changed(SMALL, replicates=4))
    main = threading.main_thread().ident
    model, watch = watched(
        latency=lambda seed: 0.01,
        noticed=lambda number: signal.pthread_kill(main, signal.SIGINT) if number == 10 else None,
    )
    with pytest.raises(KeyboardInterrupt):
        osim.run(experiment, "interrupted.sqlite", max_concurrency=4, chat_model=model)
    interrupted = loaded("interrupted.sqlite")
    assert sorted(interrupted.calls["seed"]) == sorted(watch.asked) == sorted(watch.answered)
    assert 10 <= len(watch.asked) < 48
    again, second = watched()
    results = osim.run(experiment, "interrupted.sqlite", chat_model=again)
    assert set(results.runs["status"]) == {"complete"}
    assert len(second.asked) == 48 - len(watch.asked)
    assert_same(results, carry_out(experiment, "whole.sqlite")[1])


def test_a_store_that_is_being_written_is_refused_and_nothing_is_asked() -> None:
    model, watch = watched()
    with open_store("taken.sqlite"), pytest.raises(StoreError, match="in use by another run"):
        osim.run(load_experiment(SMALL), "taken.sqlite", chat_model=model)
    assert watch.asked == []


def test_what_cannot_be_loaded_leaves_no_store(tmp_path: Path) -> None:
    for values, problem in (
        ({"model": {"name": "no-such-model"}, "measurement": {"classifier": "lexicon"}}, "no-such-model"),
        ({"model": {"name": "scripted", "options": {"preset": "x"}}}, "preset"),
        ({"measurement": {"classifier": "no-such-classifier"}}, "no-such-classifier"),
    ):
        with pytest.raises(SpecError, match=problem):
            osim.run(load_experiment(changed(SMALL, **values)), str(tmp_path / "none.sqlite"))
    with pytest.raises(SpecError, match="max_concurrency must be a whole number of at least 1"):
        osim.run(load_experiment(SMALL), str(tmp_path / "none.sqlite"), max_concurrency=0)
    assert list(tmp_path.iterdir()) == []


def test_the_default_store_is_named_after_the_experiment(tmp_path: Path) -> None:
    experiment = load_experiment(SMALL)
    assert default_store(experiment) == "sqlite:///results/small.sqlite"
    osim.run(experiment)
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["small.sqlite"]


def test_progress_counts_runs_and_calls() -> None:
    experiment = load_experiment(changed(SMALL, replicates=3))
    model, _ = watched(latency=lambda seed: 0.05)
    with under_way(Invocation(experiment, "counted.sqlite", chat_model=model, max_concurrency=3)) as (runner, future):
        wait_until(lambda: runner._context.doing().in_flight >= 3)
        summary = future.result()
        after = runner.progress()
    assert runner._context.doing() == Doing(0, 3, 0)
    assert (after.complete, after.incomplete, after.open, after.made, after.in_flight) == (3, 0, 0, 36, 0)
    assert (summary.made, summary.answered, summary.stopped, summary.errors) == (36, 0, False, {})


# -- a specification edited between runs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "added"),
    few(
        [
            ({"execution": {"max_concurrency": 2, "timeout_s": 9.0, "lookahead": 1}}, 0),
            ({"name": "renamed", "description": "another one"}, 0),
            ({"replicates": 3}, 24),
            ({"sweep": {"cognition.confirmation_bias": ["none", "weak", "strong"]}}, 24),
            ({"sweep": {"cognition.confirmation_bias": ["weak", "none"]}}, 0),
            ({"measurement": {"texts": ["post"]}}, 0),
        ],
        3,
    ),
    ids=["execution", "name", "replicates", "wider", "reordered", "texts"],
)
def test_nothing_finished_is_repeated(values: dict[str, Any], added: int) -> None:
    spec = changed(SMALL, replicates=2, sweep={"cognition.confirmation_bias": ["none", "weak"]})
    first = carry_out(spec, "edited.sqlite")[1]
    model, watch = watched()
    summary, second = carry_out(changed(spec, **values), "edited.sqlite", model)
    assert len(watch.asked) == summary.made == added
    assert summary.complete == summary.total
    kept = second.turns[second.turns["run_id"].isin(first.turns["run_id"])]
    assert content(kept) == content(first.turns)
    assert content(second.turns) == content(carry_out(changed(spec, **values), "anew.sqlite")[1].turns)


def test_cells_that_differ_in_what_is_coded_share_runs() -> None:
    spec = changed(SMALL, sweep={"measurement.texts": [["report"], ["post"]]})
    model, watch = watched()
    summary, results = carry_out(spec, "texts.sqlite", model)
    assert summary.total == 1
    assert len(watch.asked) == 12
    assert set(results.opinions["kind"]) == {"report", "post"}
    with open_store("texts.sqlite", write=False) as store:
        assert [each.variable for each in store.instruments()] == ["stance"]


# -- measuring -----------------------------------------------------------------------------------------------


BLUNT = "tests.support.running:BluntClassifier"


@pytest.fixture
def _uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second classifier count its texts from 0."""
    monkeypatch.setattr(BluntClassifier, "coded", 0)


@pytest.mark.usefixtures("_uncounted")
def test_cells_that_differ_in_classifier_share_runs() -> None:
    spec = changed(SMALL, replicates=2)
    ended(spec, "coded.sqlite")
    alone = loaded("coded.sqlite").opinions
    model, watch = watched()
    both = changed(spec, sweep={"measurement.classifier": ["lexicon", BLUNT, {"name": BLUNT, "options": {"gain": 1}}]})
    summary, results = carry_out(both, "coded.sqlite", model)
    assert watch.asked == []
    assert (summary.total, summary.complete) == (2, 2)
    assert 0 < BluntClassifier.coded <= 2 * 24
    assert len(results.runs) == 6
    assert results.runs["run_id"].nunique() == 2
    by_cell = dict(list(results.opinions.groupby("cell")))
    assert {cell: len(rows) for cell, rows in by_cell.items()} == dict.fromkeys(by_cell, 24)
    assert len(by_cell) == 3
    lexicon = by_cell["measurement.classifier=lexicon"]
    assert content(lexicon.drop(columns="cell")) == content(alone.drop(columns="cell"))
    strong = by_cell[f"measurement.classifier={BLUNT}"]
    assert set(strong["value"].dropna()) <= {-2.0, 0.0, 2.0}
    assert (strong["value"].to_numpy() == lexicon["value"].clip(-1, 1).to_numpy() * 2)[lexicon["value"].notna()].all()
    # Coded together from the start, the rows are the same, and coding again adds nothing.
    together = carry_out(both, "together.sqlite")[1]
    assert_same(results, together)
    BluntClassifier.coded = 0
    ended(both, "coded.sqlite")
    assert BluntClassifier.coded == 0


@pytest.mark.usefixtures("_uncounted")
def test_another_instrument_under_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = changed(SMALL, measurement={"classifier": BLUNT})
    before = carry_out(spec, "one.sqlite")[1]
    # As when the weights under a path were exchanged.
    monkeypatch.setattr(BluntClassifier, "options", property(lambda self: {"gain": 2, "weights": "other"}))
    with pytest.raises(SpecError, match=rf"measurement.classifier: '{BLUNT}' .*: weights was None and is 'other'"):
        ended(changed(spec, replicates=2), "one.sqlite")
    assert_same(loaded("one.sqlite"), before)
    # As does a worker of a cluster whose own files are others.
    experiment = load_experiment(spec)
    with open_store("one.sqlite") as store:
        context = Shared(Invocation(experiment), store, registers=False)
        runner = Runner(context, LocalExecutor(context))
        with pytest.raises(SpecError, match=r"weights was None and is 'other'"):
            background.run(runner.execute())
    assert_same(loaded("one.sqlite"), before)


@pytest.mark.usefixtures("_uncounted")
def test_a_text_that_cannot_be_coded_stops_no_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = changed(SMALL, replicates=3)
    ended(spec, "coded.sqlite")
    classify = BluntClassifier.classify
    asked = []

    (poisoned, *_) = loaded("coded.sqlite").turns.sort_values(["run_id", "turn"])["message"]

    def once(self: BluntClassifier, items: Any) -> Any:
        asked.append(items)
        if poisoned in [item.text for item in items]:
            raise MeasurementError("out of memory")
        return classify(self, items)

    wider = changed(spec, replicates=5, measurement={"classifier": BLUNT})
    with monkeypatch.context() as patched:
        patched.setattr(BluntClassifier, "classify", once)
        summary, results = carry_out(wider, "coded.sqlite")
    assert (summary.total, summary.complete, summary.already, summary.made) == (5, 4, 2, 24)
    ((run_id, error),) = summary.errors.items()
    assert "out of memory" in error
    runs = results.runs.set_index("run_id")
    assert (runs.loc[run_id, "status"], runs.loc[run_id, "error"]) == ("complete", error)
    assert results.opinions["run_id"].nunique() == 4
    summary, results = carry_out(wider, "coded.sqlite")
    assert (summary.complete, summary.already, summary.made, summary.errors) == (5, 5, 0, {})
    assert set(results.runs["error"]) == {""}
    assert_same(results, carry_out(wider, "whole.sqlite")[1])


@pytest.mark.usefixtures("_uncounted")
def test_a_kind_of_text_added_later_is_coded_alone() -> None:
    def spec(*kinds: str) -> dict[str, Any]:
        return changed(SMALL, measurement={"classifier": BLUNT, "texts": list(kinds)})

    first = carry_out(spec("report"), "kinds.sqlite")[1].opinions
    assert BluntClassifier.coded == 6
    model, watch = watched()
    second = carry_out(spec("report", "post"), "kinds.sqlite", model)[1].opinions
    assert watch.asked == []
    assert BluntClassifier.coded == 12
    assert content(second[second["kind"] == "report"]) == content(first)
    assert len(second) == 12


def _ratings(store: str, run_id: str) -> list[Entry]:
    """Opinions on record that a schedule acted on."""
    with open_store(store, write=False) as opened:
        return [entry for entry in opened.entries(run_id) if entry.source == "instrument"]


@pytest.mark.usefixtures("_uncounted")
def test_an_adaptive_run_journals_the_ratings_it_acts_on() -> None:
    spec = changed(
        SMALL,
        interaction={"kind": "similarity", "steps": 12, "strength": 2.0},
        measurement={"classifier": BLUNT, "texts": ["report"]},
    )
    _, results = carry_out(spec, "adaptive.sqlite")
    assert set(results.calls["call"]) == {"reply"}, "what an instrument says is no call"
    (run,) = load_experiment(spec).runs
    ratings = _ratings("adaptive.sqlite", run.run_id)
    assert ratings
    assert {entry.key.call for entry in ratings} == {f"rating.{run.cell.instrument_id[:8]}"}
    values = results.opinions.set_index("turn")["value"]
    assert [repr(float(values[entry.key.turn])) for entry in ratings] == [entry.text for entry in ratings]
    assert [each.difference for each in replay(results)] == [""]
    # Another classifier makes another run, for it chooses who meets.
    other = changed(spec, measurement__classifier="lexicon")
    assert load_experiment(other).runs[0].run_id != load_experiment(spec).runs[0].run_id
    assert content(carry_out(other, "adaptive.sqlite")[1].turns) != content(results.turns)


@pytest.mark.usefixtures("_uncounted")
def test_an_interrupted_adaptive_run_acts_on_the_ratings_on_record() -> None:
    spec = changed(
        SMALL,
        interaction={"kind": "similarity", "steps": 12, "strength": 2.0},
        measurement={"classifier": BLUNT, "texts": ["report"]},
    )
    model, _ = watched(fails=lambda n: n == 20)
    _, broken = carry_out(spec, "adaptive.sqlite", model)
    assert _ratings("adaptive.sqlite", broken.runs["run_id"].iloc[0])
    before = BluntClassifier.coded
    _, results = carry_out(spec, "adaptive.sqlite")
    whole = carry_out(spec, "whole.sqlite")[1]
    assert BluntClassifier.coded - before >= 12
    assert_same(results, whole)


# -- blocks --------------------------------------------------------------------------------------------------


def _pairs(results: Results, run_id: str) -> list[list[int]]:
    turns = results.turns[results.turns["run_id"] == run_id]
    return turns.groupby("step")["agent"].apply(list).tolist()


def _started(results: Results, run_id: str) -> list[list[Any]]:
    agents = results.agents[results.agents["run_id"] == run_id]
    return agents[["name", "assigned_opinion"]].to_numpy().tolist()


def test_runs_of_a_block_share_their_draws_and_replicates_do_not() -> None:
    spec = changed(
        SMALL,
        replicates=2,
        population={"size": 6, "assignment": "random"},
        interaction={"kind": "dyadic", "steps": 8, "network": {"kind": "watts-strogatz", "k": 2, "p": 0.6}},
        sweep={"topic.name": ["flat-earth", "t-rex"], "cognition.confirmation_bias": ["none", "strong"]},
        independent_over=["topic.name"],
    )
    results = carry_out(spec, "blocks.sqlite")[1]
    edges = {run: rows[["source", "target"]].to_numpy().tolist() for run, rows in results.edges.groupby("run_id")}
    drawn = {run: (_pairs(results, run), _started(results, run), edges[run]) for run in results.runs["run_id"]}
    by_block = [[drawn[run] for run in rows["run_id"]] for _, rows in results.runs.groupby("block")]
    assert [len(block) for block in by_block] == [2, 2, 2, 2]
    for block in by_block:
        assert block[0] == block[1]
    for first, second in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        assert by_block[first][0][0] != by_block[second][0][0]
    assert len({str(block[0][1]) for block in by_block}) > 1
    assert len({str(block[0][2]) for block in by_block}) > 1
    # What is said differs within a block: bias is in the prompt, and each run has call seeds of its own.
    messages = results.turns.groupby("run_id")["message"].apply(tuple)
    assert messages.nunique() == 8


# -- a template edited between runs --------------------------------------------------------------------------


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A prompt pack of the user's own."""
    return own_pack(tmp_path / "pack")


def _with_pack(**values: Any) -> dict[str, Any]:
    return changed(SMALL, prompts="pack", **values)


def test_a_reworded_template_stops_finished_runs_and_keeps_their_data(pack: Path) -> None:
    spec = _with_pack(sweep={"cognition.confirmation_bias": ["none", "weak"]})
    before = carry_out(spec, "edited.sqlite")[1]
    reword(pack / "_situation.j2", "you are more likely to believe", "you tend to believe")
    model, watch = watched()
    summary, after = carry_out(spec, "edited.sqlite", model)
    assert watch.asked == []
    affected = before.runs[before.runs["confirmation_bias"] == "weak"]["run_id"].item()
    assert set(summary.errors) == {affected}
    assert summary.complete == 1
    message = summary.errors[affected]
    assert affected in message
    assert "--fresh" in message
    assert_same(after, before)
    # osim.run returns no summary: the frame says so.
    stated = osim.run(load_experiment(spec), "edited.sqlite").runs.set_index("run_id")["error"]
    assert stated[affected] == message
    assert stated.drop(affected).tolist() == [""]
    # Undoing the edit settles it.
    reword(pack / "_situation.j2", "you tend to believe", "you are more likely to believe")
    summary, after = carry_out(spec, "edited.sqlite", model)
    assert (watch.asked, summary.errors, summary.complete) == ([], {}, 2)
    assert set(after.runs["error"]) == {""}


def test_fresh_redoes_the_affected_runs_alone(pack: Path) -> None:
    spec = _with_pack(sweep={"cognition.confirmation_bias": ["none", "weak"]})
    before = carry_out(spec, "edited.sqlite")[1]
    reword(pack / "_situation.j2", "you are more likely to believe", "you tend to believe")
    model, watch = watched()
    summary, after = carry_out(spec, "edited.sqlite", model, fresh=True)
    assert (len(watch.asked), summary.complete, summary.errors) == (12, 2, {})
    same = before.runs[before.runs["confirmation_bias"] == "none"]["run_id"].item()
    assert content(after.turns[after.turns["run_id"] == same]) == content(before.turns[before.turns["run_id"] == same])
    assert content(after.turns) != content(before.turns)
    assert_same(after, carry_out(spec, "anew.sqlite")[1])
    summary = ended(spec, "edited.sqlite", model, fresh=True)
    assert (len(watch.asked), summary.complete) == (12, 2)


def test_a_comment_in_a_template_is_no_change(pack: Path) -> None:
    spec = _with_pack(sweep={"cognition.memory": ["cumulative", "reflective"]})
    before = carry_out(spec, "edited.sqlite")[1]
    for template in ("system.j2", "review.j2", "_words.j2"):
        file = pack / template
        file.write_text("{# Checked twice. #}" + file.read_text(encoding="utf-8"), encoding="utf-8")
    model, watch = watched()
    summary, after = carry_out(spec, "edited.sqlite", model)
    assert (watch.asked, summary.complete, summary.errors) == ([], 2, {})
    assert_same(after, before)


@pytest.mark.parametrize("fresh", [False, True])
def test_an_unfinished_run_asks_nothing_in_a_second_wording(pack: Path, fresh: bool) -> None:
    spec = _with_pack(population={"size": 8}, interaction__steps=20)
    model, first = watched(fails=lambda n: n == 12)
    _, broken = carry_out(spec, "edited.sqlite", model, slots=2)
    whole = carry_out(spec, "whole.sqlite")[1]
    # Reviews are asked from the third call on; writers could go on before the first mismatch is met.
    reword(pack / "review.j2", "Focus on your own opinion", "Speak of your own opinion")
    again, second = watched()
    summary, stopped = carry_out(spec, "edited.sqlite", again, fresh=fresh)
    if fresh:
        assert summary.complete == 1
        assert len(second.asked) == 40
        assert content(stopped.turns) == content(carry_out(spec, "anew.sqlite")[1].turns)
        return
    assert second.asked == []
    assert content(stopped.calls) == content(broken.calls)
    (error,) = summary.errors.values()
    assert "the store has a reply to a different question" in error
    assert stopped.runs["status"].tolist() == ["incomplete"]
    assert content(stopped.turns) == content(broken.turns)
    reword(pack / "review.j2", "Speak of your own opinion", "Focus on your own opinion")
    summary, finished = carry_out(spec, "edited.sqlite", again)
    assert summary.complete == 1
    assert len(second.asked) == 40 - len(first.answered)
    assert_same(finished, whole)


def test_an_unfinished_run_goes_on_where_the_edit_touches_nothing_on_record(pack: Path) -> None:
    spec = _with_pack(interaction={"kind": "similarity", "steps": 6}, measurement={"probe": {"after": 1}})
    model, first = watched(fails=lambda n: n == 8)
    ended(spec, "edited.sqlite", model)
    reword(pack / "probe.j2", "Answer in a few sentences, in your own words", "Answer in a few sentences and briefly")
    again, second = watched()
    summary, results = carry_out(spec, "edited.sqlite", again)
    assert summary.complete == 1
    assert not set(first.answered) & set(second.asked)
    assert_same(results, carry_out(spec, "anew.sqlite")[1])


# -- weights exchanged between runs --------------------------------------------------------------------------


class _Local(BaseChatModel):
    """A model in this process: its replies carry the fingerprint of its weights."""

    model: str
    left: int = 1000

    @property
    def _llm_type(self) -> str:
        return "local"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        self.left -= 1
        if self.left < 0:
            raise PermissionError("no more")
        message = AIMessage("The Earth is round.", response_metadata={"model_name": self.model})
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_replies_of_exchanged_weights_are_not_mixed_within_a_run() -> None:
    def carried_out(fingerprint: str, left: int = 1000) -> Summary:
        model = _Local(model=f"hf:tiny@{fingerprint}", left=left, cache=False)
        return ended(experiment, "hf.sqlite", model, slots=1)

    named = {"model": {"name": "mine:tiny"}, "measurement": {"classifier": "lexicon"}}
    experiment = load_experiment(changed(SMALL, replicates=2, **named))
    first = carried_out("aaa", left=18)
    assert 1 <= first.made == 18
    done = first.complete
    assert done < 2
    other = carried_out("bbb")
    assert other.complete == 2 - len(other.errors)
    for error in other.errors.values():
        assert "its stored replies come from hf:tiny@aaa, but the loaded model hf:tiny@bbb" in error
        assert "--fresh" in error
    assert other.errors
    assert carried_out("aaa").complete == 2
    models = loaded("hf.sqlite").calls.groupby("run_id")["model"].nunique()
    assert set(models) == {1}


def test_a_fresh_start_takes_the_weights_that_are_loaded() -> None:
    named = {"model": {"name": "mine:tiny"}, "measurement": {"classifier": "lexicon"}}
    experiment = load_experiment(changed(SMALL, **named))
    for model, fresh in ((_Local(model="hf:t@a", left=5, cache=False), False), (_Local(model="hf:t@b"), True)):
        summary = ended(experiment, "hf.sqlite", model, slots=1, fresh=fresh)
    assert (summary.made, summary.complete) == (12, 1)
    assert set(loaded("hf.sqlite").calls["model"]) == {"hf:t@b"}


# -- runs that others take over ------------------------------------------------------------------------------


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once at runs that others hold."""
    monkeypatch.setattr("opinionsim.running._context._LOOK_AGAIN_S", 0.01)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    "number", [pytest.param(1, marks=pytest.mark.long), 20, pytest.param(70, marks=pytest.mark.long)]
)
def test_a_run_that_is_taken_over_stops_no_other_and_is_finished_in_the_end(number: int) -> None:
    """A run is leased by one process alone, so that another lease stands for what a shared database lets happen."""
    experiment = load_experiment(changed(SMALL, replicates=6))
    box: list[Any] = []

    def deprive(asked: int) -> None:
        if asked == number:
            (context,) = box
            box.append(held := next(iter(context.playing)))
            assert context.store.lease(held, "somebody else")

    model, _ = watched(noticed=deprive, latency=lambda seed: 0.005)
    with under_way(Invocation(experiment, "taken.sqlite", chat_model=model, max_concurrency=4)) as (runner, future):
        box.append(runner._context)
        summary = future.result()
    assert (summary.complete, summary.errors, summary.stopped) == (6, {}, False)
    with open_store("taken.sqlite", write=False) as store:
        states = store.states()
    assert [states[run_id].epoch for run_id in states if run_id == box[1]] == [3]
    assert {state.epoch for run_id, state in states.items() if run_id != box[1]} == {1}
    assert_same(loaded("taken.sqlite"), carry_out(experiment, "whole.sqlite")[1])


@pytest.mark.usefixtures("_impatient")
def test_a_run_that_is_taken_over_while_it_is_started_anew_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = watched(fails=lambda n: n == 7)
    ended(SMALL, "taken.sqlite", model, slots=1)
    rewrite("taken.sqlite", "UPDATE journal SET prompt_hash = 'another question'")
    lease = Store.lease
    leases = []

    def leased(self: Store, run_id: str, owner: str, **options: Any) -> int | None:
        leases.append(run_id)
        return None if len(leases) == 2 else lease(self, run_id, owner, **options)

    monkeypatch.setattr(Store, "lease", leased)
    again, watch = watched()
    summary, results = carry_out(SMALL, "taken.sqlite", again, fresh=True)
    assert (summary.complete, summary.errors, len(leases), len(watch.asked)) == (1, {}, 3, 12)
    assert_same(results, carry_out(SMALL, "whole.sqlite")[1])


@pytest.mark.usefixtures("_uncounted", "_impatient")
def test_a_run_that_others_finished_is_measured_as_this_experiment_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    ended(changed(SMALL, replicates=2), "others.sqlite")
    states = Store.states
    looks = []

    def earlier(self: Store, *arguments: Any) -> dict[str, RunState]:
        looks.append(arguments)
        found = states(self, *arguments)
        # At the first look, the others are not done.
        return (
            {run_id: state._replace(status="running") for run_id, state in found.items()} if len(looks) == 1 else found
        )

    monkeypatch.setattr(Store, "states", earlier)
    model, watch = watched()
    other = changed(SMALL, replicates=2, measurement={"classifier": BLUNT})
    summary, results = carry_out(other, "others.sqlite", model)
    assert (summary.complete, summary.errors, watch.asked, len(looks)) == (2, {}, [], 3)
    assert_same(results, carry_out(other, "whole.sqlite")[1])


# -- defects of others ---------------------------------------------------------------------------------------


def test_a_classifier_that_breaks_loses_no_reply_and_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(BluntClassifier):
        options: ClassVar[dict[str, Any]] = {}  # those of the lexicon, which it stands in for

        def classify(self, items):
            raise ValueError("cannot read this")

    model, watch = watched()
    with monkeypatch.context() as patched:
        patched.setattr(LoadedParts, "classifier", lambda self, wanted: Broken())
        summary, results = carry_out(changed(SMALL, replicates=3), "broken.sqlite", model)
    assert summary.complete == 0
    assert all("failed with ValueError: cannot read this" in error for error in summary.errors.values())
    # The runs are complete; what is wrong is that they could not be measured, which can be made good.
    assert set(results.runs["status"]) == {"complete"}
    assert all(results.runs["error"])
    again, second = watched()
    summary = ended(changed(SMALL, replicates=3), "broken.sqlite", again)
    assert summary.complete == 3
    assert watch.asked
    assert not second.asked


def test_a_defect_in_one_run_is_raised_when_the_others_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Simulation.run
    broken = []

    async def run(self: Simulation) -> None:
        if not broken:
            broken.append(self)
            raise KeyError("a defect")
        await played(self)

    monkeypatch.setattr(Simulation, "run", run)
    model, _ = watched()
    with pytest.raises(KeyError, match="a defect"):
        ended(changed(SMALL, replicates=3), "defect.sqlite", model)
    runs = loaded("defect.sqlite").runs
    assert sorted(runs["status"]) == ["complete", "complete", "incomplete"]
    assert "KeyError" in " ".join(runs["error"].dropna())
