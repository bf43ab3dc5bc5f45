from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from opinionsim.errors import StoreError
from opinionsim.messages import ChatMessage
from opinionsim.metrics import NOT_VALIDATED
from opinionsim.store import COLUMNS, FRAMES, AgentRow, DesignRow, ExperimentRun, OpinionRow, Results, load, open_store
from tests.support.rows import (
    CAST,
    EDGES,
    TURNS,
    begun,
    call,
    completed,
    design_row,
    instrument_row,
    lead,
    measured,
    opinion_row,
    run_row,
    turn_row,
)


def _url(folder: Path) -> str:
    return f"sqlite:///{folder / 'store.sqlite'}"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Two runs; the first is read with two instruments, the second is incomplete and has no truth."""
    axes = {"seed": 1, "model": {"name": "x"}}
    five, three = {"m1": ("post", "report")}, {"m3": ("post", "report")}
    cells = (
        ExperimentRun("rB", "m1", 0, "block 0", "weak", {**axes, "cognition.bias": "weak"}, five),
        ExperimentRun("rA", "m1", 1, "block 1", "none", axes, five),
        ExperimentRun("rA", "m3", 1, "block 1", "other", axes, three),
    )
    with open_store(_url(tmp_path)) as store:
        store.save_design(DesignRow("e1", "quick", "d1", {"seed": 7}, {"v": 1}, cells))
        store.register([run_row("rA"), run_row("rB", truth=None, category=None), run_row("elsewhere")])
        for row in (instrument_row("m1"), instrument_row("m3", (-1, 0, 1)), instrument_row("unused", (8, 9))):
            store.save_instrument(row)
        for run_id in ("rB", "rA", "elsewhere"):
            record = begun(store, run_id)
            record.append(call(1, "I doubt it.", seed=5, input_tokens=9, latency_s=0.5))
            record.append(call(0, "It is warmer."))
            lead(record)
            error = StoreError("turn 2 failed") if run_id == "rB" else None
            store.finish(run_id, record.epoch, "incomplete" if error else "complete", error)
        refused = OpinionRow("m3", 1, math.nan, 1.0, (math.nan,) * 3)
        coded = OpinionRow("m3", 0, -1.0, 0.0, (0.75, 0.25, 0.0))
        measured(store, "rA", [refused, coded, OpinionRow("unused", 0, 8.0, 0.0, (1.0, 0.0))])
    return load(_url(tmp_path))


def test_every_frame_has_its_columns_types_and_order(results: Results) -> None:
    keys = {
        "runs": ["cell", "replicate", "run_id", "instrument_id"],
        "agents": ["run_id", "agent"],
        "edges": ["run_id", "source", "target", "since"],
        "turns": ["run_id", "turn"],
        "opinions": ["cell", "run_id", "instrument_id", "turn", "about"],
        "calls": ["run_id", "turn", "call", "attempt"],
    }
    for name, fixed in COLUMNS.items():
        frame = getattr(results, name)
        assert list(frame.columns)[: len(fixed)] == list(fixed)
        assert {column: frame[column].dtype for column in fixed} == {
            column: pd.api.types.pandas_dtype(kind) for column, kind in fixed.items()
        }
        assert len(frame) > 0
        rows = list(frame[keys[name]].fillna({"about": -1}).itertuples(index=False, name=None))
        assert rows == sorted(set(rows))
        assert list(frame.index) == list(range(len(frame)))
        assert set(frame["evidence"]) == {"scripted"}
        assert "elsewhere" not in set(frame["run_id"])


def test_an_experiment_without_rows_has_the_same_columns_and_types(tmp_path: Path, results: Results) -> None:
    with open_store(_url(tmp_path)) as store:
        store.save_design(design_row("e2", "empty", ()))
    empty = load(_url(tmp_path))
    assert empty.name == "empty"
    for name, fixed in COLUMNS.items():
        frame = getattr(empty, name)
        assert len(frame) == 0
        assert list(frame.columns) == list(fixed)
        assert list(frame.dtypes) == list(getattr(results, name)[list(fixed)].dtypes)


def test_runs_list_every_registered_cell_with_its_axes(results: Results) -> None:
    runs = results.runs
    assert list(runs["cell"]) == ["none", "other", "weak"]
    assert list(runs["run_id"]) == ["rA", "rA", "rB"]
    assert list(runs["instrument_id"]) == ["m1", "m3", "m1"]
    assert list(runs["status"]) == ["complete", "complete", "incomplete"]
    assert list(runs["error"]) == ["", "", "turn 2 failed"]
    assert list(runs.columns)[len(COLUMNS["runs"]) :] == ["sweep.seed", "sweep.model", "cognition.bias"]
    assert list(runs["cognition.bias"].fillna("-")) == ["-", "-", "weak"]
    assert list(runs["sweep.seed"]) == [1, 1, 1]
    assert runs["seed"].iloc[0] == 7
    assert list(runs["truth"].fillna(0.0)) == [-2.0, -2.0, 0.0]
    assert list(runs["category"].isna()) == [False, False, True]


def test_opinions_are_those_of_the_cells_own_instrument(results: Results) -> None:
    opinions = results.opinions
    assert [column for column in opinions if column.startswith("p_")] == ["p_-2", "p_-1", "p_0", "p_1", "p_2"]
    five = opinions[opinions["cell"] == "none"].iloc[0]
    assert (five["value"], five["expectation"], five["margin"], five["off_scale"]) == (1.0, 1.0, 0.25, 0.1)
    assert list(five[["p_-2", "p_-1", "p_0", "p_1", "p_2"]]) == [0.0, 0.0, 0.25, 0.5, 0.25]
    assert (five["kind"], five["step"], five["agent"], five["assigned_opinion"]) == ("post", 1, 0, -2.0)
    assert (five["variable"], five["classifier"]) == ("stance", "lexicon")
    three = opinions[opinions["cell"] == "other"]
    assert list(three["turn"]) == [0, 1]
    np.testing.assert_array_equal(three["expectation"], [-0.75, math.nan])
    np.testing.assert_array_equal(three["margin"], [0.5, math.nan])
    np.testing.assert_array_equal(three["value"], [-1.0, math.nan])
    np.testing.assert_array_equal(three["assigned_opinion"], [-2.0, math.nan])
    assert three[["p_-2", "p_2"]].isna().all(axis=None)
    assert list(opinions.groupby("cell").size()) == [1, 2, 1]
    assert list(opinions.groupby("cell")["scale"].unique().map(list)) == [
        ["-2,-1,0,1,2"],
        ["-1,0,1"],
        ["-2,-1,0,1,2"],
    ]
    assert opinions["about"].isna().all()


def test_frames_join_by_their_ids(results: Results) -> None:
    joined = results.turns.merge(
        results.agents, on=["run_id", "agent"], validate="many_to_one", suffixes=("", "_agent")
    )
    assert len(joined) == len(results.turns) == 4
    assert list(joined["city"]) == ["Utrecht", "Porto"] * 2
    assert list(joined["role"]) == ["participant", "moderator"] * 2
    keys = ["run_id", "cell", "instrument_id"]
    assert len(results.opinions.merge(results.runs, on=keys, validate="many_to_one")) == len(results.opinions)
    assert list(results.turns["message"]) == ["It is warmer.", "I doubt it."] * 2
    assert list(results.turns["reads"]) == [(), (0, "news")] * 2
    assert list(results.calls["reply"]) == list(results.turns["message"])


def test_calls_know_missing_from_zero(results: Results) -> None:
    first, second = results.calls.iloc[0], results.calls.iloc[1]
    assert (second["seed"], second["input_tokens"], second["latency_s"]) == (5, 9, 0.5)
    assert first[["seed", "input_tokens", "output_tokens", "latency_s", "arrived_at"]].isna().all()
    assert (second["prompt_hash"], second["finish_reason"]) == (call(1).prompt_hash, "")


def test_persona_attributes_become_columns_without_hiding_fixed_ones(tmp_path: Path) -> None:
    agents = (
        AgentRow(
            *(0, "Ada", "participant", "scripted", 1.0),
            {"name": "Ada L.", "age": 30, "income": 1.5, "traits": ["a"], "role": "nurse"},
            "scripted",
        ),
        AgentRow(1, "Ben", "moderator", "scripted", 1.0, {"age": 41, "vegan": True}, "scripted"),
    )
    with open_store(_url(tmp_path)) as store:
        store.save_design(design_row())
        completed(store, agents=agents)
    frame = load(_url(tmp_path)).agents
    assert list(frame.columns)[len(COLUMNS["agents"]) :] == [
        *("persona.name", "age", "income", "traits", "persona.role", "vegan")
    ]
    assert [str(frame[name].dtype) for name in ("age", "income", "traits", "vegan")] == [
        "int64",
        "float64",
        "object",
        "object",
    ]
    assert frame["persona.name"].iloc[0] == "Ada L."
    assert list(frame["role"]) == ["participant", "moderator"]
    assert frame["persona.role"].iloc[0] == "nurse"


def test_frames_hold_characters_that_are_no_text_elsewhere(tmp_path: Path) -> None:
    odd = "NUL \x00 and \udc80"
    with open_store(_url(tmp_path)) as store:
        store.save_design(design_row())
        completed(store, turns=tuple(replace(turn, text=odd) for turn in TURNS))
    results = load(_url(tmp_path))
    assert list(results.turns["message"]) == [odd, odd]
    assert list(results.calls["reply"]) == [odd, odd]


def test_order_of_arrival_does_not_show(tmp_path: Path) -> None:
    frames = []
    for name, order in (("a", (0, 1, 2)), ("b", (2, 0, 1))):
        url = str(tmp_path / f"{name}.sqlite")
        with open_store(url) as store:
            store.save_design(design_row())
            store.save_instrument(instrument_row())
            record = begun(store)
            for turn in order:
                record.append(call(turn, f"text {turn}", latency_s=float(order.index(turn))))
            backwards = -1 if name == "b" else 1
            opinions = (opinion_row(0), opinion_row(1))
            lead(record, turns=TURNS[::backwards], agents=CAST[::backwards], opinions=opinions[::backwards])
            store.finish("r1", record.epoch, "complete")
        frames.append(load(url))
    for name in FRAMES:
        first, second = (
            frame.drop(columns=[column for column in frame if column.endswith(("_s", "_at"))])
            for frame in (getattr(results, name) for results in frames)
        )
        pd.testing.assert_frame_equal(first[sorted(first)], second[sorted(second)])


def test_the_last_saved_experiment_is_loaded_and_others_by_name_or_id(tmp_path: Path) -> None:
    with open_store(_url(tmp_path)) as store:
        with pytest.raises(StoreError, match="holds no experiment yet"):
            load(store.url)
        for row in (design_row("e1", "one"), design_row("e2", "two"), design_row("e3", "one", ())):
            store.save_design(row)
    assert load(_url(tmp_path)).spec == {"name": "one", "seed": 7}
    assert load(_url(tmp_path), "two").name == "two"
    assert load(_url(tmp_path), "one").run_ids == ()
    assert load(_url(tmp_path), "e1").run_ids == ("r1",)
    with pytest.raises(StoreError, match="no experiment 'three'; it contains one, two"):
        load(_url(tmp_path), "three")


def test_results_know_the_experiment_and_the_prompts(tmp_path: Path, results: Results) -> None:
    assert (results.name, results.spec, results.manifest, results.url) == (
        "quick",
        {"seed": 7},
        {"v": 1},
        _url(tmp_path),
    )
    assert results.prompt("rA", 0) == results.prompt(0, 0) == [ChatMessage("system", "Hello.")]
    with pytest.raises(StoreError, match="run 3 is not a row of runs; valid: 0 to 2"):
        results.prompt(3, 0)
    with pytest.raises(StoreError, match="no prompt for run rA, turn 0, call 'reflect'"):
        results.prompt("rA", 0, "reflect")


def test_metrics_are_those_of_the_metrics_package(results: Results) -> None:
    from opinionsim.metrics import run_metrics

    expected = run_metrics(results.runs, results.opinions, results.agents, ddof=0, turns=results.turns)
    pd.testing.assert_frame_equal(results.metrics, expected)


def test_of_the_journal_the_calls_are_what_models_said(tmp_path: Path) -> None:
    with open_store(_url(tmp_path)) as store:
        store.save_design(design_row())
        record = begun(store)
        record.begin(CAST, EDGES)
        record.append(call(0, "A model's.", acceptance="unparsed"))
        for turn, source in enumerate(("person", "instrument", "import"), start=1):
            record.append(call(turn, "Not a model's.", source=source))
        record.append(replace(call(4, call="rating.m1", source="instrument"), prompt=None, prompt_hash=""))
    results = load(_url(tmp_path))
    assert list(results.calls["reply"]) == ["A model's."]
    assert list(results.calls["acceptance"]) == ["unparsed"]
    assert results.prompt("r1", 1) == [ChatMessage("system", "Hello.")]
    with pytest.raises(StoreError, match=r"call 'rating\.m1'"):
        results.prompt("r1", 4, "rating.m1")


# -- evidence ------------------------------------------------------------------------------------------------


def test_evidence_is_that_of_the_author_in_a_mixed_run(tmp_path: Path) -> None:
    kinds = ("model", "human", "scripted")
    agents = tuple(
        AgentRow(agent, f"agent {agent}", "participant", evidence, 0.0, {}, "x") for agent, evidence in enumerate(kinds)
    )
    turns = tuple(turn_row(turn, agent=agent) for turn, agent in enumerate((2, 0, 1)))
    with open_store(_url(tmp_path)) as store:
        store.save_design(design_row())
        store.register([run_row(evidence="mixed", n_agents=3)])
        store.save_instrument(instrument_row())
        record = begun(store)
        for turn in turns:
            for name in ("reply", "judge.m1", "judge"):
                record.append(replace(call(turn.turn, call=name), agent=turn.agent))
        lead(record, agents=agents, turns=turns, opinions=[opinion_row(turn.turn) for turn in turns])
        store.finish("r1", record.epoch, "complete")
    results = load(_url(tmp_path))
    assert list(results.runs["evidence"]) == list(results.edges["evidence"]) == ["mixed"]
    assert list(results.agents["evidence"]) == list(kinds)
    authors = ["scripted", "model", "human"]
    assert list(results.turns["evidence"]) == list(results.opinions["evidence"]) == authors
    by_call = results.calls.groupby("call")["evidence"].agg(list).to_dict()
    assert by_call == {"reply": authors, "judge.m1": ["model"] * 3, "judge": ["model"] * 3}
    assert list(results.runs["validation"]) == [NOT_VALIDATED]


# -- instruments ---------------------------------------------------------------------------------------------


def test_a_cell_with_instruments_on_two_scales_has_the_rows_of_both(tmp_path: Path) -> None:
    likert = tuple(range(1, 8))
    cell = ExperimentRun("r1", "m1", 0, "block 0", "all", {}, {"m1": ("post", "report"), "m7": ("post",)})
    sevenths = (0.0, 0.0, 0.0, 0.0, 0.25, 0.0, 0.75)
    with open_store(_url(tmp_path)) as store:
        store.save_design(replace(design_row(), runs=(cell,)))
        store.save_instrument(instrument_row())
        store.save_instrument(instrument_row("m7", likert, variable="anger", classifier="chat"))
        store.save_instrument(instrument_row("m9", (8, 9)))
        nines = opinion_row(0, "m9", value=8.0, probabilities=(1.0, 0.0))
        completed(store, opinions=(opinion_row(1), opinion_row(0), OpinionRow("m7", 0, 7.0, 0.0, sevenths), nines))
    results = load(_url(tmp_path))
    opinions = results.opinions
    assert [column for column in opinions if column.startswith("p_")] == [f"p_{point}" for point in range(-2, 8)]
    assert list(opinions["instrument_id"]) == ["m1", "m1", "m7"]
    assert list(opinions["turn"]) == [0, 1, 0]
    assert list(opinions["variable"]) == ["stance", "stance", "anger"]
    assert list(opinions["classifier"]) == ["lexicon", "lexicon", "chat"]
    assert list(opinions["scale"]) == ["-2,-1,0,1,2", "-2,-1,0,1,2", "1,2,3,4,5,6,7"]
    np.testing.assert_allclose(opinions["expectation"], [1.0, 1.0, 6.5])
    np.testing.assert_allclose(opinions["margin"], [0.25, 0.25, 0.5])
    stance, anger = opinions.iloc[0], opinions.iloc[2]
    assert list(stance[["p_-2", "p_-1", "p_0", "p_1", "p_2"]]) == [0.0, 0.0, 0.25, 0.5, 0.25]
    assert stance[[f"p_{point}" for point in range(3, 8)]].isna().all()
    assert tuple(anger[[f"p_{point}" for point in likert]]) == sevenths
    assert anger[["p_-2", "p_-1", "p_0"]].isna().all()
    assert list(results.runs["instrument_id"]) == ["m1"]
    assert list(results.runs["classifier"]) == ["lexicon"]


def test_what_is_judged_beside_another_text_follows_what_is_judged_by_itself(tmp_path: Path) -> None:
    with open_store(_url(tmp_path)) as store:
        store.save_design(design_row())
        store.save_instrument(instrument_row(about="reads"))
        turns = (turn_row(0), turn_row(1, (0,)), turn_row(2, (0, 1)))
        rows = (
            *(opinion_row(2, about=1, value=2.0), opinion_row(2, about=0, value=1.0), opinion_row(2, value=0.0)),
            *(opinion_row(1, about=0, value=-1.0), opinion_row(0)),
        )
        completed(store, turns=turns, opinions=rows)
    opinions = load(_url(tmp_path)).opinions
    assert list(opinions["turn"]) == [0, 1, 2, 2, 2]
    assert opinions["about"].astype(object).where(opinions["about"].notna(), None).tolist() == [None, 0, None, 0, 1]
    assert list(opinions["value"]) == [1.0, -1.0, 0.0, 1.0, 2.0]
    # Agent, step and condition are those of the text that was coded.
    assert list(opinions["agent"]) == [0, 1, 0, 0, 0]


def test_a_cell_without_an_instrument_of_stance_has_no_classifier(tmp_path: Path) -> None:
    cells = (
        ExperimentRun("r1", None, 0, "block 0", "anger only", {}, {"m7": ("post",)}),
        ExperimentRun("r1", None, 1, "block 1", "nothing", {}, {}),
        ExperimentRun("r1", "m1", 2, "block 2", "self-report", {}, {"m1": ("self-report",), "m7": ("post",)}),
        ExperimentRun("r1", "m1", 3, "block 3", "stance", {}, {"m7": ("self-report",), "m1": ("self-report", "post")}),
    )
    with open_store(_url(tmp_path)) as store:
        store.save_design(replace(design_row(), runs=cells))
        store.register([run_row(evidence="model")])
        store.save_instrument(instrument_row())
        store.save_instrument(instrument_row("m7", variable="anger"))
        rows = (opinion_row(0), opinion_row(0, "m7"), opinion_row(1, "m7"))
        completed(store, opinions=rows)
    results = load(_url(tmp_path))
    runs = results.runs.set_index("cell")
    assert runs.loc[["anger only", "nothing"], ["instrument_id", "classifier"]].isna().all(axis=None)
    assert list(runs.loc[["self-report", "stance"], "instrument_id"]) == ["m1", "m1"]
    assert runs["validation"].to_dict() == {
        **{"anger only": "", "nothing": "", "self-report": ""},
        "stance": NOT_VALIDATED,
    }
    found = results.opinions.groupby("cell")["instrument_id"].agg(list).to_dict()
    both = ["m1", "m7", "m7"]
    assert found == {"anger only": ["m7", "m7"], "self-report": both, "stance": both}
