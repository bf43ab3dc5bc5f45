"""Turns that are skipped since all they were to read was refused, and cells that leave out what another skipped."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from langchain_core.messages import AIMessage

from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage
from opinionsim.prompts import load_pack
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import Results, open_store
from opinionsim.watching import transcript
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, finished

REFUSAL = AIMessage("", additional_kwargs={"refusal": "I won't write that."})
#: Their posts are refused where a cell has refusals; every cell is told apart by its confirmation bias.
SILENT = ("Benjamin Lee", "Ethan Wilson")
CUE = load_pack().marks.cues["write"]
REFUSING = {"cognition.confirmation_bias": ["weak"]}
SPEC = changed(
    SMALL,
    replicates=3,
    interaction__steps=20,
    model={"name": "given", "replies": {"refused": {"reask": 0}}},
    measurement={"classifier": "lexicon", "texts": ["report", "post"]},
)
LABEL = "cognition.confirmation_bias=weak"
SAME_TURNS = changed(
    SPEC,
    sweep=[
        {"cognition.confirmation_bias": ["none"], "interaction.skips": [{"cell": LABEL, "label": "the same turns"}]},
        REFUSING,
    ],
)


def _reply(prompt: list[ChatMessage]) -> str | AIMessage:
    """Refuses the posts of some agents under weak bias; otherwise agrees."""
    whole = "\n".join(message.content for message in prompt)
    person = next((name for name in SILENT if name in prompt[0].content), "")
    if person and CUE in prompt[-1].content and "more likely to believe" in whole:
        return REFUSAL
    return "I strongly believe that Theory XYZ is true."


def _carried_out(spec: dict[str, Any], store: str = "s.sqlite", **options: Any) -> Results:
    return finished(spec, store, GivenReplies(_reply), **options)


def _by_cell(results: Results) -> dict[tuple[str, int], pd.DataFrame]:
    runs = results.runs.set_index("run_id")
    found = {
        (runs.loc[run_id, "confirmation_bias"], runs.loc[run_id, "replicate"]): turns
        for run_id, turns in results.turns.groupby("run_id")
    }
    return dict(sorted(found.items()))


def test_a_cell_leaves_out_what_another_skipped_and_the_refusals_that_caused_it() -> None:
    found = _by_cell(_carried_out(SAME_TURNS))
    assert sum((turns["condition"] == "skipped").sum() for turns in found.values()) > 5
    for replicate in range(3):
        refusing, same = found["weak", replicate], found["none", replicate]
        skipped = refusing[refusing["condition"] == "skipped"]
        waited_for = {ref for reads in skipped["reads"] for ref in reads}
        left = refusing[~refusing["turn"].isin(waited_for | set(skipped["turn"]))]
        assert set(left["condition"]) == {"answered"}
        columns = ["step", "agent", "act"]
        assert same[columns].to_numpy().tolist() == left[columns].to_numpy().tolist()
        assert same["turn"].tolist() == list(range(len(left)))
        # Every review reads the post before it.
        reviews = same[same["act"] == "review"]
        assert reviews["reads"].tolist() == [(turn - 1,) for turn in reviews["turn"]]


def test_what_is_left_out_is_on_record_and_the_run_is_replayed_and_resumed_from_it() -> None:
    results = _carried_out(SAME_TURNS, slots=2)
    run_id = str(results.runs.loc[results.runs["confirmation_bias"] == "none", "run_id"].iloc[0])
    with open_store("sqlite:///s.sqlite", write=False) as store:
        (entry,) = [each for each in store.entries(run_id) if each.source == "import"]
    turns = _by_cell(results)["weak", 0]
    skipped = turns[turns["condition"] == "skipped"]
    assert json.loads(entry.text) == sorted({*skipped["turn"], *(ref for reads in skipped["reads"] for ref in reads)})
    assert "import" not in set(results.calls["call"])
    assert [(each.difference, each.turns > 0) for each in replay(results)] == [("", True)] * 6
    broken = changed(SAME_TURNS, execution={"budget": {"calls": 150}})
    stopped = ended(broken, "b.sqlite", GivenReplies(_reply))
    assert stopped.exceeded
    assert_same(_carried_out(SAME_TURNS, "b.sqlite"), results)


def test_the_runs_of_the_other_cell_are_carried_out_first_and_must_be_complete() -> None:
    """The second cell is listed first, and waits; without the first, it says for what."""
    experiment = load_experiment(SAME_TURNS)
    source = {run.run_id for run in experiment.runs if run.source is None}
    waiting = {run.run_id: run.source.run_id for run in experiment.runs if run.source is not None}
    assert set(waiting.values()) == source

    def fails(prompt: list[ChatMessage]) -> str | AIMessage:
        if "more likely to believe" in "\n".join(message.content for message in prompt):
            raise PermissionError("no such luck")
        return _reply(prompt)

    summary = ended(experiment, "s.sqlite", GivenReplies(fails))
    assert set(summary.errors) == source | set(waiting)
    for run_id, of in waiting.items():
        told = f"it takes over from run {of} of cell {LABEL!r}, and that run is not complete"
        assert summary.errors[run_id] == f"run {run_id}: {told}"


def test_the_other_cell_enters_the_identity_and_its_label_does_not() -> None:
    def ids(spec: dict[str, Any]) -> set[str]:
        return {run.run_id for run in load_experiment(spec).runs if run.source is not None}

    named = [{**grid} for grid in SAME_TURNS["sweep"]]
    named[1] = {"cognition": [{"confirmation_bias": "weak", "label": "refusing"}]}
    named[0] = {**named[0], "interaction.skips": [{"cell": "cognition=refusing"}]}
    assert ids(changed(SAME_TURNS, sweep=named)) == ids(SAME_TURNS)
    other = [SAME_TURNS["sweep"][0], {"cognition.confirmation_bias": ["weak"], "topic.name": ["t-rex"]}]
    other[0] = {**other[0], "interaction.skips": [{"cell": f"{LABEL}, topic.name=t-rex"}]}
    assert not ids(changed(SAME_TURNS, sweep=other)) & ids(SAME_TURNS)


@pytest.mark.parametrize(
    ("grids", "words"),
    [
        (
            [{"interaction.skips": [{"cell": "nobody"}]}, REFUSING],
            f"interaction.skips.cell: no cell is labelled 'nobody'; valid: '{LABEL}'",
        ),
        (
            [{"interaction.skips": [{"cell": LABEL}], "interaction.steps": [19]}, REFUSING],
            "differ in interaction, so that their turns are not the same",
        ),
        (
            [{"interaction.skips": [{"cell": LABEL}], "measurement.probe": [{"before": 1}]}, REFUSING],
            "differ in measurement.probe",
        ),
        (
            [{"interaction.skips": [{"cell": "interaction.skips=one", "label": "one"}]}],
            r"the cell 'interaction.skips=one' takes over from another itself \(interaction.skips\); name one without",
        ),
        (
            [{"interaction": [{"kind": "similarity", "steps": 20, "skips": {"cell": LABEL}}]}, REFUSING],
            "interaction.skips: needs turns that are known beforehand; 'similarity' decides them as it goes on",
        ),
        ([{"interaction.skips": [{"cell": ""}]}], r"interaction.skips.cell"),
    ],
)
def test_skips_that_cannot_be(grids: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(SpecError, match=words.replace("'", ".")):
        load_experiment(changed(SPEC, sweep=grids))


# -- reports in the place of reviews -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dyadic", "broadcast", "feed"])
def test_a_listener_with_nothing_to_read_reports_and_the_number_of_reports_stays(kind: str) -> None:
    interaction = {"kind": kind, "steps": 12, "on_skip": "report"} | ({"posts": 1} if kind == "feed" else {})
    spec = changed(SPEC, interaction=interaction, cognition={"confirmation_bias": "weak"})
    results = _carried_out(spec)
    turns, calls = results.turns, results.calls
    assert "skipped" not in set(turns["condition"])
    instead = turns[turns["act"] == "report"]
    refused = turns[(turns["condition"] == "refused")].groupby("run_id")["turn"].agg(set)
    assert len(instead)
    assert set(instead["kind"]) == {"report"}
    for row in instead.itertuples():
        assert row.reads
        assert set(row.reads) <= refused[row.run_id]
    assert set(calls.merge(instead[["run_id", "turn"]])["act"]) == {"report"}
    opinions = results.opinions[results.opinions["kind"] == "report"]
    n_reviews = (turns["kind"] == "report").sum()
    assert len(opinions) == n_reviews == opinions["value"].notna().sum()
    assert all(each.difference == "" for each in replay(results))
    skipping = _carried_out(changed(spec, interaction=interaction | {"on_skip": "skip"}), "skip.sqlite")
    columns = ["turn", "step", "agent"]
    assert [part[columns].to_numpy().tolist() for part in _by_cell(skipping).values()] == [
        part[columns].to_numpy().tolist() for part in _by_cell(results).values()
    ]


def test_an_agent_that_reported_remembers_a_report() -> None:
    spec = changed(SPEC, interaction__on_skip="report", cognition={"confirmation_bias": "weak"}, replicates=1)
    results = _carried_out(spec)
    turns = results.turns
    first = turns[turns["act"] == "report"].iloc[0]
    later = turns[(turns["agent"] == first["agent"]) & (turns["turn"] > first["turn"])].iloc[0]
    prompt = "\n".join(message.content for message in results.prompt(0, int(later["turn"])))
    assert "1st opinion" in prompt
    assert "I won't write that" not in prompt


def test_a_source_that_skips_other_turns_now_is_noticed() -> None:
    results = _carried_out(SAME_TURNS)
    runs = results.runs
    source = str(runs.loc[(runs["confirmation_bias"] == "weak") & (runs["replicate"] == 0), "run_id"].iloc[0])
    runs = load_experiment(SAME_TURNS).runs
    waiting = {run.source.run_id: run.run_id for run in runs if run.source is not None}[source]
    with open_store("sqlite:///s.sqlite") as store:
        store.forget([source])

    def otherwise(prompt: list[ChatMessage]) -> str | AIMessage:
        reply = _reply(prompt)
        return reply if isinstance(reply, str) else "I strongly reject Theory XYZ."

    summary = ended(SAME_TURNS, "s.sqlite", GivenReplies(otherwise))
    told = f"run {waiting}: what it took over from run {source} is not what that run holds now"
    assert [error.startswith(told) for error in summary.errors.values()] == [True]
    summary, again = carry_out(SAME_TURNS, "s.sqlite", GivenReplies(otherwise), fresh=True)
    assert (summary.errors, summary.complete) == ({}, 6)
    assert len(again.turns[again.turns["run_id"] == waiting]) == 40
    assert all(each.difference == "" for each in replay(again))


def test_transcripts_name_what_was_shown() -> None:
    spec = changed(SPEC, interaction__on_skip="report", cognition={"confirmation_bias": "weak"}, replicates=1)
    results = _carried_out(spec)
    said = transcript(results, run=0)
    lines = [line for line in said.splitlines() if line.startswith("step ")]
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    refused = [report for post, report in pairs if "[refused]" in post]
    assert 0 < len(refused) < len(pairs)
    assert all(("after reading" in report) != ("[refused]" in post) for post, report in pairs)
