"""Several instruments a cell: beside one another, coded anew, killed while they code, and what is refused."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pandas.testing import assert_frame_equal

import opinionsim as osim
from opinionsim.analysis import tables
from opinionsim.errors import SpecError
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import RunRecord, open_store
from tests.running import _coding_worker, _context_classifier
from tests.support.postgres import age
from tests.support.processes import in_process
from tests.support.running import SMALL, assert_same, carry_out, changed, content, ended, loaded, watched

pytestmark = pytest.mark.long

HASH = "tests.running._context_classifier:HashClassifier"
SEVEN = {"points": [1, 2, 3, 4, 5, 6, 7]}
CIVILITY = {"variable": "civility", "classifier": HASH, "scale": SEVEN, "texts": ["report", "post"], "context": True}
AGREEMENT = {"variable": "agreement", "classifier": HASH, "scale": SEVEN, "texts": ["report"], "about": "reads"}
ALL = changed(SMALL, replicates=2, measurement={"instruments": [CIVILITY, AGREEMENT]})
STANCE = changed(SMALL, replicates=2)


@pytest.fixture(autouse=True)
def _unseen() -> None:
    _context_classifier.seen.clear()


def test_every_instrument_codes_what_it_reads_and_nothing_else() -> None:
    summary, results = carry_out(ALL, "all.sqlite")
    assert summary.errors == {}
    counts = results.opinions.groupby(["variable", "kind"]).size().to_dict()
    assert counts == {
        ("stance", "report"): 12,
        ("stance", "post"): 12,
        ("civility", "report"): 12,
        ("civility", "post"): 12,
        ("agreement", "report"): 12,
    }
    pairs = results.opinions[results.opinions["variable"] == "agreement"]
    reads = results.turns.set_index(["run_id", "turn"])["reads"]
    keys = zip(pairs["run_id"], pairs["turn"], strict=True)
    assert [(about,) for about in pairs["about"]] == [reads[key] for key in keys]
    assert results.opinions[results.opinions["variable"] != "agreement"]["about"].isna().all()
    assert set(results.opinions["scale"]) == {"-2,-1,0,1,2", "1,2,3,4,5,6,7"}
    assert [each.difference for each in replay(results)] == ["", ""]


def test_a_scale_of_seven_beside_stance_changes_nothing_of_stance() -> None:
    """Frames, tables and figures of stance, in one store with a second and a third instrument and in one without."""
    alone, beside = carry_out(STANCE, "alone.sqlite")[1], carry_out(ALL, "beside.sqlite")[1]
    assert_frame_equal(osim.metrics.cut(beside.opinions), alone.opinions)
    for frame in ("metrics", "turns", "agents", "edges", "calls"):
        assert content(getattr(beside, frame)) == content(getattr(alone, frame)), frame
    assert_frame_equal(beside.runs, alone.runs)
    for one, other in zip(tables(alone.runs, alone.metrics), tables(beside.runs, beside.metrics), strict=True):
        assert (one.title, one.rows, one.notes) == (other.title, other.rows, other.notes)
    for name in ("trajectories", "final_opinions", "ribbons", "transitions"):
        draw = getattr(osim.plots, name, None)
        if draw is not None:
            assert _drawn(draw, alone) == _drawn(draw, beside), name


def _drawn(draw: Callable[[Any], Any], results: Any) -> bytes:
    osim.plots.save(draw(results), "figure.png")
    return Path("figure.png").read_bytes()


def test_what_is_coded_later_equals_what_is_coded_at_once() -> None:
    """Context and pairs are rebuilt from the store as they were when the run was under way."""
    ended(STANCE, "later.sqlite")
    model, watch = watched()
    later = carry_out(ALL, "later.sqlite", model)[1]
    assert watch.asked == []
    at_once = carry_out(ALL, "once.sqlite")[1]
    assert_same(later, at_once)
    contexts = {item.context for item in _context_classifier.seen if item.context is not None}
    assert any(context.received for context in contexts)
    assert all(dict(context.persona)["name"] for context in contexts)
    assert {context.assigned_opinion for context in contexts} <= {-2.0, -1.0, 0.0, 1.0, 2.0}


def test_messages_from_outside_stand_in_the_context_of_what_is_coded_later() -> None:
    outside = changed(
        SMALL, interaction={"kind": "external", "steps": 4, "messages": ["The Earth is round."]}, measurement={}
    )
    spec = changed(outside, measurement={"instruments": [CIVILITY]})
    ended(outside, "later.sqlite")
    later = carry_out(spec, "later.sqlite")[1]
    assert {item.context.received for item in _context_classifier.seen} == {("The Earth is round.",)}  # type: ignore[union-attr]
    assert_same(later, carry_out(spec, "once.sqlite")[1])


def test_measuring_anew_never_changes_a_runs_status(monkeypatch: pytest.MonkeyPatch) -> None:
    ended(STANCE, "status.sqlite")
    seen = []
    add = RunRecord.add_opinions

    def added(self: RunRecord, rows: Any) -> None:
        with open_store("status.sqlite", write=False) as store:
            seen.append(store.states([self.run_id])[self.run_id].status)
        add(self, rows)

    monkeypatch.setattr(RunRecord, "add_opinions", added)
    ended(ALL, "status.sqlite")
    assert seen
    assert set(seen) == {"complete"}


def test_a_cell_may_measure_no_stance() -> None:
    spec = changed(SMALL, measurement={"classifier": None, "instruments": [CIVILITY]})
    summary, results = carry_out(spec, "civil.sqlite")
    assert summary.complete == 1
    assert set(results.opinions["variable"]) == {"civility"}
    assert results.runs["instrument_id"].isna().all()
    assert results.metrics.empty
    assert osim.transcript(results).count("\nstep ") == 12


def test_cells_may_differ_in_instruments_and_share_their_runs() -> None:
    axis = [[], [CIVILITY], [CIVILITY, AGREEMENT]]
    spec = changed(SMALL, sweep={"measurement.instruments": axis})
    summary, results = carry_out(spec, "sweep.sqlite")
    assert (summary.total, summary.complete) == (1, 1)
    variables = results.opinions.groupby("cell")["variable"].agg(lambda names: sorted(set(names)))
    assert sorted(variables) == [["agreement", "civility", "stance"], ["civility", "stance"], ["stance"]]


# -- kills -----------------------------------------------------------------------------------------------


def _keys(store: str) -> set[tuple[Any, ...]]:
    """Keys of all stored opinions."""
    with open_store(store, write=False) as opened, opened.reading() as connection:
        rows = connection.exec_driver_sql("SELECT run_id, instrument_id, turn, about FROM opinions").all()
    return {(run, instrument, turn, None if about == -1 else about) for run, instrument, turn, about in rows}


def _killed(store: str, number: int, moment: str) -> set[tuple[Any, ...]]:
    """Keys that a worker set out to code before it was killed."""
    Path("spec.yaml").write_text(yaml.safe_dump(ALL), encoding="utf-8")
    log = Path("log.jsonl")
    log.write_text("", encoding="utf-8")
    _, code = in_process(_coding_worker.main, "spec.yaml", store, str(log), str(number), moment)
    assert code == -signal.SIGKILL
    return {tuple(json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_worker_killed_while_instruments_code_leaves_nothing_unmeasured(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """No key that is stored is coded again, and in the end every key is there, whatever the moment of the kill."""
    store = "killed.sqlite" if kind == "sqlite" else request.getfixturevalue("postgres").database(str(tmp_path))
    ended(STANCE, store)
    complete = loaded(store).opinions
    for number, moment in ((1, "before"), (1, "after"), (2, "after"), (3, "before"), (2, "before")):
        before = _keys(store)
        attempted = _killed(store, number, moment)
        assert attempted
        assert not attempted & before
        assert set(loaded(store).runs["status"]) == {"complete"}
        if kind == "postgresql":
            server = request.getfixturevalue("postgres")
            age(server.asking(server.database(str(tmp_path))), 60)
    _, finished = carry_out(ALL, store)
    expected = carry_out(ALL, "whole.sqlite")[1]
    assert_same(finished, expected)
    assert content(osim.metrics.cut(finished.opinions)) == content(complete)
    with open_store(store, write=False) as opened:
        assert {state.status for state in opened.states().values()} == {"complete"}


# -- bad input ---------------------------------------------------------------------------------------------


HEAD = "name: small\ntopic: {name: flat-earth}\n"
LISTED = HEAD + "interaction: {kind: dyadic, steps: 3}\nmeasurement:\n  instruments:\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            HEAD + "interaction: {kind: similarity, steps: 3}\nmeasurement: {classifier: null}\n",
            r"spec\.yaml:4.*measurement.*'similarity' acts on 'stance', which no instrument measures; measured are no",
        ),
        (
            LISTED + "  - {variable: stance, classifier: lexicon}\n"
            "  - {variable: stance, classifier: lexicon, texts: [probe]}\n",
            r"spec\.yaml:7: measurement\.instruments\[1\]: is the instrument of 'stance' by 'lexicon' once more",
        ),
        (
            LISTED + "  - {variable: civility, classifier: lexicon, context: true}\n",
            r"measurement\.instruments\[0\].*'lexicon' does not use the context",
        ),
        (
            LISTED + "  - {variable: Civility, classifier: lexicon}\n",
            r"spec\.yaml:6: measurement\.instruments\[0\]\.variable",
        ),
        (
            LISTED + "  - {variable: civility, classifier: nobody}\n",
            r"measurement\.instruments\[0\]\.classifier: unknown classifier 'nobody'",
        ),
    ],
    ids=["lacking", "twice", "context", "name", "unknown"],
)
def test_instruments_that_cannot_be_are_refused_before_any_call(text: str, told: str) -> None:
    Path("spec.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=told):
        osim.run(load_experiment(Path("spec.yaml")), "refused.sqlite")
    assert not Path("refused.sqlite").exists()


def test_a_forecast_counts_what_judges_of_pairs_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six reports that read one post each; posts read nothing."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = {"name": "chat", "options": {"model": "openai:gpt-4o-mini", "question": "Do the two agree?"}}
    pairs = {"variable": "agreement", "classifier": judge, "texts": ["report", "post"], "about": "reads"}
    forecast = osim.plan(load_experiment(changed(SMALL, measurement={"instruments": [pairs]})))
    assert (forecast.calls, forecast.texts) == (12 + 6, 12 + 6)
