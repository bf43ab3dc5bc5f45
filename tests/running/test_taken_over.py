"""Cells that take over from another: yoked runs and forks, and the controls beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from langchain_core.messages import AIMessage

import opinionsim as osim
from opinionsim.errors import SpecError, StoreError
from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import Results, open_store
from tests.support.editing import own_pack, reword
from tests.support.examples import few
from tests.support.judge import Bench, BenchClassifier
from tests.support.postgres import Server
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, finished, loaded, watched

DYADIC = "interaction=dyadic"
STORE = "sqlite:///s.sqlite"
STEPS = 6
SPEC = changed(SMALL, measurement={"probe": {"before": 1, "after": 1}})


def forked(spec: dict[str, Any], *forks: dict[str, Any], cell: str = "") -> dict[str, Any]:
    """A specification with a source cell, and a cell for each further grid, which forks from it."""
    kind = spec["interaction"]["kind"]
    name = cell or f"interaction={kind}"
    grids = [{**{"fork": [{"cell": name, "step": fork.pop("step")}]}, **fork} for fork in map(dict, forks)]
    return {**spec, "sweep": [{"interaction": [spec["interaction"]]}, *grids]}


def said(results: Results, cell: str) -> pd.DataFrame:
    """Turns of a cell with their texts, beginning with the first replicate."""
    runs = results.runs[results.runs["cell"].str.startswith(cell)]
    with open_store(results.url, write=False) as store:
        rows = [(each.replicate, row) for each in runs.itertuples() for row in store.turns(each.run_id)]
    names = ["turn", "step", "agent", "act", "kind", "reads", "text", "status"]
    values = [[replicate, *(getattr(row, name) for name in names)] for replicate, row in rows]
    return pd.DataFrame(values, columns=["replicate", *names])


def asked(results: Results, cell: str) -> pd.DataFrame:
    """Calls that were made for a cell."""
    runs = results.runs[results.runs["cell"].str.startswith(cell)]
    return results.calls[results.calls["run_id"].isin(runs["run_id"])]


KINDS: dict[str, dict[str, Any]] = {
    "dyadic": {},
    "reflective": {"cognition": {"memory": "reflective", "draws": 2}},
    "broadcast": {"interaction": {"kind": "broadcast", "steps": STEPS}},
    "similarity": {"interaction": {"kind": "similarity", "steps": STEPS}},
    "chain": {"interaction": {"kind": "chain", "cycles": 3}},
    "probes": {"measurement": {"probe": {"before": 1, "every": 2, "after": 1}, "self_report": {"every": 3}}},
}


@pytest.mark.parametrize("kind", few(KINDS, 3))
def test_a_fork_that_changes_nothing_is_its_source_and_asks_nothing_before_its_step(kind: str) -> None:
    spec = {**SPEC, **KINDS[kind]}
    last = 3 if kind == "chain" else STEPS
    results = finished(forked(spec, *({"step": step} for step in range(1, last + 1))), model=watched()[0], slots=5)
    source = said(results, "interaction=")
    for step in range(1, last + 1):
        cell = f'fork={{"cell":"interaction={spec["interaction"]["kind"]}","step":{step}}}'
        assert said(results, cell).equals(source), step
        mine, there = asked(results, cell), asked(results, "interaction=")
        assert set(mine["step"]) <= set(range(step, last + 1))
        assert mine["seed"].tolist() == there.loc[there["step"] >= step, "seed"].tolist()
    assert all(each.difference == "" for each in replay(results))


MESSAGE = [{"label": "told", "value": [{"kind": "message", "step": 4, "text": "Theory XYZ is definitely false."}]}]
CHANGES: dict[str, dict[str, Any]] = {
    "a message": {"events": MESSAGE},
    "a zealot": {"events": [{"label": "z", "value": [{"kind": "zealot", "step": 4, "agents": [1], "text": "No."}]}]},
    "a model": {"model": [{"label": "m", "name": "scripted", "options": {"noise": 3.0}}]},
    "wording": {"cognition.confirmation_bias": ["strong"]},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_fork_differs_nowhere_before_its_step_and_has_the_seeds_of_its_source_after(change: str) -> None:
    spec = forked(changed(SPEC, replicates=2), {"step": 4, **CHANGES[change]})
    results = finished(spec)
    source, fork = said(results, DYADIC), said(results, "fork=")
    assert fork[fork["step"] < 4].reset_index(drop=True).equals(source[source["step"] < 4].reset_index(drop=True))
    assert not fork.equals(source)
    seeds = [
        asked(results, cell).merge(results.runs[["run_id", "replicate"]]).query("step >= 4 and act == 'write'")
        for cell in (DYADIC, "fork=")
    ]
    columns = ["replicate", "step", "agent", "seed"]
    there, here = ({tuple(row) for row in each[columns].to_numpy().tolist()} for each in seeds)
    assert here
    assert here <= there
    blocks = results.runs.groupby("replicate")["block"].nunique()
    assert (blocks == 1).all()
    assert all(each.difference == "" for each in replay(results))


def test_ties_can_change_in_a_fork() -> None:
    network = {"kind": "edges", "edges": [[0, 1], [1, 2], [2, 3]]}
    spec = changed(SPEC, interaction={"kind": "dyadic", "steps": STEPS, "network": network})
    ties = [{"label": "cut", "value": [{"kind": "ties", "step": 4, "remove": [[0, 1]], "add": [[0, 3]]}]}]
    results = finished(forked(spec, {"step": 4, "events": ties}))
    source, fork = said(results, DYADIC), said(results, "fork=")
    assert fork[fork["step"] < 4].equals(source[source["step"] < 4])
    assert {frozenset(pair) for pair in _pairs(fork[fork["step"] >= 4])} <= {
        frozenset(pair) for pair in ((1, 2), (2, 3), (0, 3))
    }


def _pairs(turns: pd.DataFrame) -> list[tuple[int, ...]]:
    """Speaker and listener of each step."""
    return [tuple(part["agent"]) for _, part in turns[turns["act"].isin(["write", "review"])].groupby("step")]


YOKED = {"kind": "yoked", "steps": STEPS, "source": {"cell": DYADIC}}
BOTH = changed(
    SPEC, replicates=3, sweep=[{"interaction": [SPEC["interaction"], YOKED]}, {"fork": [{"cell": DYADIC, "step": 4}]}]
)


def test_yoked_agents_read_what_their_counterparts_read_in_the_next_replicate() -> None:
    results = finished(BOTH, slots=3)
    source, yoked = said(results, DYADIC), said(results, "interaction=yoked")
    reviews = yoked[yoked["act"] == "review"]
    assert set(yoked["act"]) == {"review", "probe"}
    for replicate in range(3):
        there = source[source["replicate"] == (replicate + 1) % 3]
        read = there[there["act"] == "review"]
        mine = reviews[reviews["replicate"] == replicate]
        assert mine[["step", "agent"]].to_numpy().tolist() == read[["step", "agent"]].to_numpy().tolist()
        texts = there.set_index("turn")["text"]
        run_id = str(results.runs.query("cell == 'interaction=yoked' and replicate == @replicate")["run_id"].iloc[0])
        for row, (ref,) in zip(mine.itertuples(), read["reads"], strict=True):
            assert texts[ref] in results.prompt(run_id, row.turn)[-1].content
    assert all(each.difference == "" for each in replay(results))
    calls = osim.plan(load_experiment(BOTH)).calls
    assert calls == len(results.calls)
    with open_store(STORE, write=False) as store:
        assert sum(paid.calls for paid in store.spending().values()) == calls
        kept = {each.source for run in results.runs["run_id"] for each in store.entries(run)}
    assert kept == {"model", "import"}


@pytest.mark.parametrize("kind", ["broadcast", "similarity", "chain", "external"])
def test_the_source_may_have_another_kind_of_interaction(kind: str) -> None:
    own: dict[str, Any] = {"kind": kind, "steps": 3}
    own = {"chain": {"kind": "chain", "cycles": 3}, "external": {**own, "messages": ["It rained."]}}.get(kind, own)
    yoked = {**YOKED, "steps": 3, "source": {"cell": f"interaction={kind}"}}
    results = finished(changed(SPEC, replicates=2, sweep={"interaction": [own, yoked]}))
    assert len(said(results, "interaction=yoked").query("act == 'review'"))
    assert all(each.difference == "" for each in replay(results))


@pytest.mark.parametrize("calls", [30, 115, *(pytest.param(each, marks=pytest.mark.long) for each in (0, 61, 90, 131))])
def test_yoked_runs_and_forks_go_on_where_they_were_interrupted(calls: int) -> None:
    expected = finished(BOTH, "whole.sqlite")
    stopped = ended(changed(BOTH, execution={"budget": {"calls": calls}}), "s.sqlite", slots=3)
    assert stopped.exceeded
    assert_same(finished(BOTH, slots=2), expected, but_for=("store",))


def test_controls_on_postgresql_go_on_where_they_were_interrupted_and_equal_those_in_a_file(
    postgres: Server, tmp_path: Path
) -> None:
    url = postgres.database(str(tmp_path))
    assert ended(changed(BOTH, execution={"budget": {"calls": 90}}), url, slots=3).exceeded
    assert ended(BOTH, url, slots=2).made == osim.plan(load_experiment(BOTH)).calls - 90
    assert_same(loaded(url), finished(BOTH, "whole.sqlite"), but_for=("store",))
    assert all(each.difference == "" for each in replay(loaded(url)))


def test_a_fork_that_was_interrupted_while_it_took_over_takes_over_the_rest() -> None:
    expected = finished(BOTH, "whole.sqlite")
    experiment = load_experiment(BOTH)
    fork = next(run for run in experiment.runs if run.spec.fork is not None)
    ended(experiment, "s.sqlite", only={run.run_id for run in experiment.runs if not run.sources})
    with open_store("sqlite:///whole.sqlite", write=False) as store:
        taken = [each for each in store.entries(fork.run_id) if each.source == "import" and each.key.call != "source"]
    with open_store(STORE) as store:
        epoch = store.lease(fork.run_id, "somebody")
        record = store.record(fork.run_id, epoch, "x")
        for entry in taken[:5]:
            record.append(entry)
        record.flush()
        store.finish(fork.run_id, epoch, "incomplete", StoreError("cut off"))
    assert_same(finished(BOTH), expected)


def _agreeing(prompt: list[ChatMessage]) -> str | AIMessage:
    return "I strongly believe that Theory XYZ is true."


def _doubting(prompt: list[ChatMessage]) -> str | AIMessage:
    return "I strongly reject Theory XYZ."


GIVEN = changed(BOTH, model={"name": "given"}, measurement__classifier="lexicon")


def test_a_source_that_says_something_else_now_is_said() -> None:
    finished(GIVEN, model=GivenReplies(_agreeing))
    runs = load_experiment(GIVEN).runs
    source = next(run.run_id for run in runs if not run.sources)
    with open_store(STORE) as store:
        store.forget([source])
    summary = ended(GIVEN, "s.sqlite", GivenReplies(_doubting))
    affected = {run.run_id for run in runs if source in {each.run_id for each in run.sources}}
    assert len(affected) == 2
    assert set(summary.errors) == affected
    for run_id, error in summary.errors.items():
        assert error.startswith(
            f"run {run_id}: what it took over from run {source} differs from what that run contains now"
        )
    summary = ended(GIVEN, "s.sqlite", GivenReplies(_doubting), fresh=True)
    assert (summary.errors, summary.complete) == ({}, 9)


def test_the_other_cell_enters_the_identity_and_its_label_does_not() -> None:
    def ids(dyads: dict[str, Any], **yoked: Any) -> set[str]:
        cells = [{**SPEC["interaction"], **dyads}, {"kind": "yoked", "steps": 5, **yoked}]
        found = load_experiment({**SPEC, "replicates": 2, "sweep": {"interaction": cells}}).runs
        return {run.run_id for run in found if run.sources}

    plain = ids({"label": "pairs"}, source={"cell": "interaction=pairs"})
    assert ids({"label": "dyads"}, source={"cell": "interaction=dyads"}) == plain
    assert not ids({"label": "pairs", "network": "ring"}, source={"cell": "interaction=pairs"}) & plain


def test_a_source_that_is_not_complete_is_said() -> None:
    def fails(prompt: list[ChatMessage]) -> str:
        raise PermissionError("no such luck")

    summary = ended(GIVEN, "s.sqlite", GivenReplies(fails))
    runs = {run.run_id: run for run in load_experiment(GIVEN).runs if run.sources}
    for run_id, run in runs.items():
        told = f"it takes turns from run {run.sources[0].run_id} of cell {DYADIC!r}, which is not complete"
        assert summary.errors[run_id] == f"run {run_id}: {told}; complete that run first"


def test_a_source_of_another_wording_is_said(tmp_path: Path) -> None:
    pack = own_pack(tmp_path / "mine")
    spec = changed(BOTH, prompts=str(pack))
    experiment = load_experiment(spec)
    ended(experiment, "s.sqlite", only={run.run_id for run in experiment.runs if not run.sources})
    reword(pack / "write.j2", "Your post:", "Thank you. Your post:")
    summary = ended(spec, "s.sqlite")
    runs = {run.run_id for run in load_experiment(spec).runs if run.sources}
    assert set(summary.errors) == {run.run_id for run in load_experiment(spec).runs}
    for run_id in runs:
        assert "whose prompts or code have changed since" in summary.errors[run_id]


def test_redraws_have_the_same_pairs_and_other_seeds() -> None:
    spec = changed(SPEC, replicates=2, redraws=3)
    results = finished(spec)
    runs = results.runs
    assert runs.groupby("block")["redraw"].apply(list).tolist() == [[0, 1, 2], [0, 1, 2]]
    turns = said(results, "small")
    pairs = [part[["turn", "step", "agent", "act"]].to_numpy().tolist() for _, part in turns.groupby("replicate")]
    third = len(pairs[0]) // 3
    assert all(each[:third] == each[third : 2 * third] == each[2 * third :] for each in pairs)
    assert results.calls["seed"].nunique() == len(results.calls)
    first = {run.run_id for run in load_experiment(changed(SPEC, replicates=2)).runs}
    assert first < set(runs["run_id"])
    assert_same(finished(spec, "again.sqlite", slots=1), results)


# -- agents of set latents -----------------------------------------------------------------------------------


def moved(interaction: dict[str, Any], susceptibility: float = 1.0) -> pd.DataFrame:
    """Opinions of reports beside those assigned, of agents who take over what they read, or part of it."""
    options = {"susceptibility": susceptibility, "noise": 0.0}
    spec = changed(
        SMALL,
        population={"size": 5, "initial_opinions": "uniform"},
        replicates=2,
        model={"name": "scripted", "temperature": 0, "options": options},
        measurement={"texts": ["report", "post"]},
        sweep={"interaction": [{"kind": "dyadic", "steps": 20}, *([interaction] if interaction else [])]},
    )
    results = finished(spec, f"{interaction.get('kind', 'dyadic')}{susceptibility}.sqlite")
    cell = f"interaction={interaction.get('kind', 'dyadic')}"
    runs = results.runs[results.runs["cell"] == cell][["run_id", "replicate"]]
    agents = results.agents[["run_id", "agent", "assigned_opinion"]].rename(columns={"assigned_opinion": "start"})
    return results.opinions.merge(runs).merge(agents, on=["run_id", "agent"])


def test_placebo_and_self_echo_move_nobody_and_dyads_do() -> None:
    for kind in ("placebo", "self-echo"):
        found = moved({"kind": kind, "steps": 20})
        assert (found["value"] == found["start"]).all(), kind
        assert {"report", "post"} == set(found["kind"])
    found = moved({})
    assert (found["value"] != found["start"]).any()


def test_agents_who_never_change_show_no_drift() -> None:
    for kind in ("placebo", "self-echo", "yoked"):
        source = {"source": {"cell": DYADIC}} if kind == "yoked" else {}
        found = moved({"kind": kind, "steps": 20, **source}, susceptibility=0.0)
        assert (found["value"] == found["start"]).all(), kind
        assert len(found)


def test_yoked_agents_of_full_susceptibility_hold_what_they_read_last() -> None:
    yoked = moved({"kind": "yoked", "steps": 20, "source": {"cell": DYADIC}})
    dyads = moved({})
    for replicate in range(2):
        there = dyads[dyads["replicate"] == (replicate + 1) % 2]
        posts = there[there["kind"] == "post"].set_index("step")["value"]
        mine = yoked[yoked["replicate"] == replicate]
        assert len(mine) == 20
        for row in mine.itertuples():
            assert row.value == posts[row.step]


# -- what cannot be ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"sweep": {"interaction": [SPEC["interaction"], {**YOKED, "source": {"cell": "x"}}]}},
            "no cell has the label",
        ),
        ({"replicates": 1, "sweep": {"interaction": [SPEC["interaction"], YOKED]}}, "set replicates to 2 or more"),
        ({"sweep": {"interaction": [SPEC["interaction"], {**YOKED, "steps": 9}]}}, "use at most 6"),
        (forked(SPEC, {"step": 7}), "from 1 to 6"),
        (
            {
                "sweep": [
                    {"interaction": [SPEC["interaction"]]},
                    {"fork": [{"label": "a", "cell": DYADIC, "step": 2}]},
                    {"fork": [{"cell": "fork=a", "step": 3}]},
                ]
            },
            r"the cell 'fork=a' itself uses another \(fork\)",
        ),
        ({"sweep": [{"fork": [{"label": "a", "cell": "fork=a", "step": 2}]}]}, "itself uses another"),
        (forked(SPEC, {"step": 3, "population.size": [5]}), "differ in population.size"),
        (forked(SPEC, {"step": 5, "events": MESSAGE}), "differ in events before step 5"),
        (forked(SPEC, {"step": 5, "cognition.memory": ["reflective"]}), "differ in cognition.memory"),
        (forked(SPEC, {"step": 5, "interaction": [YOKED]}), "cannot be combined with interaction.source"),
        ({"interaction": {"kind": "chain"}, "measurement": {"probe": {"every": 2}}}, "agents that remember"),
    ],
)
def test_what_cannot_take_over_is_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        load_experiment({**SPEC, "replicates": 2, **spec})


def test_replicates_that_cannot_differ_are_refused() -> None:
    fixed = changed(
        SMALL, interaction={"kind": "independent", "reports": 2}, model={"name": "scripted", "temperature": 0}
    )
    fixed = changed(fixed, population={"size": 10, "initial_opinions": "uniform"})
    osim.plan(load_experiment(fixed))
    with pytest.raises(SpecError, match="the 2 of cell 'small' cannot differ"):
        osim.plan(load_experiment({**fixed, "replicates": 2}))
    with pytest.raises(SpecError, match="cannot differ"):
        osim.run(load_experiment({**fixed, "replicates": 2}), store=STORE)
    with pytest.raises(SpecError, match=r"redraws: those of cell 'small' cannot differ"):
        osim.plan(load_experiment({**fixed, "redraws": 2}))
    for other in ({"population": {"size": 10, "assignment": "random"}}, {"model": {"name": "scripted"}}):
        osim.plan(load_experiment({**fixed, "replicates": 2, **other}))
    osim.plan(load_experiment({**fixed, "replicates": 2, "interaction": {"kind": "dyadic", "steps": 2}}))


def test_a_fork_is_priced_and_runs_in_a_pilot_with_what_it_takes_over_from() -> None:
    experiment = load_experiment(BOTH)
    pilot = experiment.pilot
    assert {run.replicate for run in experiment.runs if run.run_id in pilot} == {0, 1}
    summary, _ = carry_out(BOTH, "s.sqlite", only=pilot)
    assert (summary.errors, summary.complete) == ({}, len(pilot))
    assert osim.plan(experiment, only=pilot).calls == summary.made


def test_what_judges_said_of_a_history_is_paid_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BenchClassifier, "bench", Bench())
    classifier = "tests.support.judge:BenchClassifier"
    spec = changed(forked(SPEC, {"step": 4}), measurement={"classifier": classifier, "probe": {"after": 1}})
    results = finished(spec)
    judged = results.calls[results.calls["call"].str.startswith("judge")]
    fork = judged[judged["run_id"].isin(results.runs.query("cell != @DYADIC")["run_id"])]
    assert set(fork["step"]) == {4, 5, 6}
    assert osim.plan(load_experiment(spec)).calls == len(results.calls)
    values = [part["value"].tolist() for _, part in results.opinions.sort_values(["run_id", "turn"]).groupby("run_id")]
    assert values[0] == values[1]
    fork_id = str(results.runs.query("cell != @DYADIC")["run_id"].iloc[0])
    source_id = str(results.runs.query("cell == @DYADIC")["run_id"].iloc[0])
    assert results.prompt(fork_id, 3) == results.prompt(source_id, 3)


def test_further_replicates_put_a_new_run_in_the_place_of_the_yoked_one_whose_counterparts_changed() -> None:
    """Its counterparts were in the first replicate, after the last; redraws that are no longer named stay."""
    yoked = {"kind": "yoked", "steps": STEPS, "source": {"cell": DYADIC}}
    spec = {**SPEC, "sweep": {"interaction": [SPEC["interaction"], yoked]}}
    finished(changed(spec, replicates=2, redraws=2))
    results = finished(changed(spec, replicates=3))
    runs = results.runs.groupby("cell")["replicate"].value_counts().sort_index()
    assert runs.loc[DYADIC].to_dict() == {0: 2, 1: 2, 2: 1}
    assert runs.loc["interaction=yoked"].to_dict() == {0: 2, 1: 1, 2: 1}
    with open_store(results.url, write=False) as store:
        assert not list(store.damage())
