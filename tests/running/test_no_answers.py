"""Runs with replies that are no answers: what is asked again, what is counted, and how it is tabulated."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from langchain_core.messages import AIMessage

import opinionsim as osim
from opinionsim.analysis import missing_tables, read_by, reply_table, tables
from opinionsim.classifiers import Item, load_classifier
from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage
from opinionsim.plots import final_data
from opinionsim.report import study, tables_of
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from opinionsim.watching import transcript
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults, StubRequest
from tests.support.running import SMALL, carry_out, changed, ended, finished

TRUE = "I strongly believe that Theory XYZ is true."
CUT = AIMessage("I strongly reject Theory XYZ, and", response_metadata={"finish_reason": "length"})
REFUSAL = AIMessage("", additional_kwargs={"refusal": "I won't write that."})
SPEC = changed(
    SMALL,
    interaction__steps=12,
    model={"name": "given"},
    measurement={"classifier": "lexicon", "texts": ["report", "post"]},
)
REPORT = "Now that you have read"


def _carried_out(spec: dict[str, Any], reply: Any) -> Results:
    return finished(spec, model=GivenReplies(reply))


def _cut_reports(prompt: list[ChatMessage]) -> str | AIMessage:
    return CUT if REPORT in prompt[-1].content else TRUE


def _tabulated(results: Results) -> list[Any]:
    frames = (results.runs, results.opinions, results.agents)
    return [*tables(results.runs, results.metrics), *missing_tables(*frames, results.turns, results.metrics)]


def test_what_is_cut_off_is_coded_and_counts_only_where_the_specification_says_so() -> None:
    results = _carried_out(SPEC, _cut_reports)
    reports = results.opinions[results.opinions["kind"] == "report"]
    assert set(reports["status"]) == {"truncated"}
    assert reports["value"].isna().all()
    assert set(reports["coded"]) == {-2.0}
    # Each was asked for twice, the second time with double the length.
    calls = results.calls[results.calls["act"] == "review"]
    assert calls["status"].tolist() == ["truncated"] * len(calls)
    assert len(calls) == 2 * len(reports)

    counting = changed(SPEC, model__replies={"truncated": {"then": "measure"}})
    summary, again = carry_out(counting, "s.sqlite", GivenReplies([]))
    assert (summary.made, summary.complete) == (0, 1)
    assert set(again.runs["run_id"]) == set(results.runs["run_id"])
    counted = again.opinions[again.opinions["kind"] == "report"]
    assert counted["value"].tolist() == counted["coded"].tolist() == [-2.0] * len(reports)
    pd.testing.assert_frame_equal(again.turns, results.turns)
    assert [each.difference for each in replay(again)] == [""]


def test_tables_stand_with_and_without_what_was_cut_off() -> None:
    def reply(prompt: list[ChatMessage]) -> str | AIMessage:
        cut = REPORT in prompt[-1].content and any("2nd post" in message.content for message in prompt)
        return CUT if cut else TRUE

    made = _tabulated(_carried_out(SPEC, reply))
    main, doubtful = made
    assert [each.name for each in made] == ["", "doubtful"]
    assert 0 < main.frame["truncated_rate"].iloc[0] < 1
    by_texts = doubtful.frame.set_index("texts")["bias"]
    assert [*by_texts.index] == [row[0] for row in doubtful.rows] == ["as tabulated", "cut-off texts counted"]
    assert by_texts.iloc[0] == main.frame["bias"].iloc[0] == 2.0
    assert by_texts.iloc[1] < 2.0
    counting = changed(SPEC, model__replies={"truncated": {"then": "measure"}})
    _, results = carry_out(counting, "s.sqlite", GivenReplies([]))
    main, doubtful = _tabulated(results)
    # Where they count, they are flagged texts too.
    by_texts = doubtful.frame.set_index("texts")["bias"]
    assert [*by_texts.index] == ["as tabulated", "flagged texts left out"]
    assert main.frame["bias"].iloc[0] < by_texts.iloc[1] == 2.0
    # Each number says of how many agents it is, and a note where it moves.
    assert doubtful.frame["agents"].tolist() == [4, 4]
    assert [row[doubtful.header[-1].index("measured")] for row in doubtful.rows] == ["3", "3"]
    assert "In 1 of 1 rows they move the mean opinion" in doubtful.notes[-1]


def test_where_everybody_answers_a_measured_start_has_a_change_and_nothing_is_missing() -> None:
    asked = {"classifier": "lexicon", "self_report": {"before": 1, "after": 1}}
    results = finished(changed(SMALL, measurement=asked))
    own = tables(results.runs, results.metrics, "self-report")[0]
    assert own.header[-1][-1] == "change"
    assert own.rows[0][-1] == f"{own.frame['change'].iloc[0]:.2f} (4 of 4)".replace("-", "\N{MINUS SIGN}")
    with pytest.raises(SpecError, match="small: no number uses a doubtful text, and no refusal changed who was"):
        tables_of(results, what="missing")


@pytest.mark.usefixtures("without_figures")
def test_all_models_of_a_cast_are_named() -> None:
    cast = [{"name": "Ada"}, {"name": "Ben", "model": {"name": "openai:b"}}]
    spec = changed(SPEC, model={"name": "openai:a"}, cast=cast, interaction={"kind": "broadcast", "steps": 2})
    del spec["population"]
    results = finished(spec, model=GivenReplies(lambda prompt: TRUE))
    assert set(results.runs["model"]) == {"openai:a + openai:b"}
    assert set(results.agents["model"]) == {"openai:a", "openai:b"}
    assert any("Agents played by openai:a + openai:b." in note for note in tables_of(results)[0].notes)
    assert dict(study(results).design)["Answered by"] == "openai:a + openai:b"


def test_a_run_that_fails_of_a_cut_off_reply_goes_on_when_the_rule_is_changed() -> None:
    failing = changed(SPEC, model__replies={"truncated": {"reask": 1, "then": "fail"}})
    summary, _ = carry_out(failing, "s.sqlite", GivenReplies(_cut_reports))
    assert "the reply was truncated" in next(iter(summary.errors.values()))
    summary, results = carry_out(SPEC, "s.sqlite", GivenReplies(_cut_reports))
    assert summary.complete == 1
    assert set(results.turns.loc[results.turns["kind"] == "report", "status"]) == {"truncated"}


def test_models_of_one_cell_agree_on_what_counts() -> None:
    models = [{"name": "a", "share": 1}, {"name": "b", "share": 1, "replies": {"truncated": {"then": "measure"}}}]
    with pytest.raises(SpecError, match=r"model: replies: all models must treat the same replies as missing"):
        load_experiment(changed(SPEC, model=models))


def test_a_question_refused_at_first_is_asked_again_and_counted() -> None:
    refused: set[str] = set()

    def reply(prompt: list[ChatMessage]) -> str | AIMessage:
        task, _, wrong = prompt[-1].content.partition("You were asked this before, and you declined.")
        asked = task.removesuffix("Your post:").strip()
        if wrong or asked in refused or REPORT in asked:
            assert not wrong or asked in refused
            return TRUE
        refused.add(asked)
        return REFUSAL

    results = _carried_out(SPEC, reply)
    posts = results.turns[results.turns["kind"] == "post"]
    assert set(posts["status"]) == {"answered"}
    first = (posts["first_status"] == "refused").sum()
    assert first == len(refused) == (results.calls["status"] == "refused").sum()
    (main,) = _tabulated(results)
    assert "refused at first" not in main.header[-1]
    # Posts are not tabulated, and their refusals are, by side.
    made = reply_table(results.runs, results.opinions, results.agents, results.turns)
    assert made is not None
    assert made.header[-1] == ("kind", "side", "replies", "refused at first")
    assert set(made.frame["kind"]) == {"post"}
    assert made.frame["replies"].sum() == len(posts)
    assert (made.frame["replies"] * made.frame["refused at first"]).sum() == pytest.approx(first)


def test_unequal_exposure_stands_in_the_row_of_each_condition() -> None:
    spec = changed(
        SPEC,
        replicates=2,
        model__replies={"refused": {"reask": 0}},
        sweep={"cognition.confirmation_bias": ["none", "weak"]},
    )

    def reply(prompt: list[ChatMessage]) -> str | AIMessage:
        biased = any("more likely to believe" in message.content for message in prompt)
        silent = any(name in prompt[0].content for name in ("Benjamin Lee", "Ethan Wilson", "Maya Jackson"))
        return REFUSAL if biased and silent and "Your post:" in prompt[-1].content else TRUE

    results = _carried_out(spec, reply)
    main, *_ = _tabulated(results)
    by_bias = main.frame.set_index("confirmation_bias")
    rate = by_bias.loc["weak", "unheard_rate"]
    assert 0.05 < rate == by_bias.loc["weak", "skipped_rate"]
    assert by_bias.loc["none", ["unheard_rate", "skipped_rate"]].tolist() == [0.0, 0.0]
    column = main.header[-1].index("unheard")
    assert [(row[0], row[column]) for row in main.rows] == [("none", "0.0%"), ("weak", f"{rate:.1%}")]


def test_a_failed_reflection_is_counted() -> None:
    def reply(prompt: list[ChatMessage]) -> str | AIMessage:
        return REFUSAL if "moment to reflect" in prompt[-1].content else TRUE

    results = _carried_out(changed(SPEC, cognition={"memory": "reflective"}), reply)
    # None is asked for after the last turn of an agent, since no turn would read it.
    read = results.turns.duplicated("agent", keep="last")
    assert results.turns["failed_reflections"].tolist() == read.astype(int).tolist()
    (main,) = _tabulated(results)
    assert main.frame["n_failed_reflections"].iloc[0] == read.sum() > 0
    assert main.rows[0][main.header[-1].index("forgotten")] == str(read.sum())
    assert set(results.metrics["n_failed_reflections"]) == {read.sum()}


NOTED = f"{TRUE} [a note: I strongly reject Theory XYZ.]"
OWN = "tests.running.test_no_answers:note"


@osim.part("sign")
def note(text: str, **_: Any) -> list[tuple[int, int]]:
    """The note that stands behind some texts."""
    return [(len(TRUE), len(text))] if text == NOTED else []


def _noted(prompt: list[ChatMessage]) -> str:
    return TRUE if REPORT in prompt[-1].content else NOTED


def _noting(then: Any, **more: Any) -> dict[str, Any]:
    return changed(SPEC, model__replies={"own": {OWN: then}}, **more)


def test_a_remark_of_the_model_is_taken_out_and_stays_on_record() -> None:
    results = _carried_out(_noting("strip"), _noted)
    posts = results.turns[results.turns["kind"] == "post"]
    assert (set(posts["message"]), set(posts["signs"]), set(posts["taken"])) == ({TRUE}, {OWN}, {OWN})
    asked = results.calls[results.calls["act"] == "write"]
    assert set(asked["reply"]) == {NOTED}
    assert [*map(json.loads, set(asked["signs"]))] == [[[OWN, len(TRUE), len(NOTED), True]]]
    assert set(results.turns.loc[results.turns["kind"] == "report", "signs"]) == {""}
    assert set(results.metrics["n_stripped"]) == {len(posts)}
    assert "stripped" in _tabulated(results)[0].header[-1]
    (shown,) = {each for each in transcript(results).splitlines() if "a note" in each}
    assert shown == f"(as it came: {NOTED})"


def test_whole_replies_are_coded_during_a_run_and_after_it_where_an_instrument_says_so() -> None:
    got = {"variable": "stance", "classifier": "lexicon", "texts": ["post"]}
    whole, name = {**got, "replies": "whole"}, "lexicon (whole replies)"
    carry_out(_noting("strip", measurement={"instruments": [got]}), "s.sqlite", GivenReplies(_noted))
    both = _noting("strip", measurement={"instruments": [got, whole]})
    summary, later = carry_out(both, "s.sqlite", GivenReplies([]))
    _, during = carry_out(both, "during.sqlite", GivenReplies(_noted))
    assert (summary.made, summary.errors) == (0, {})
    experiment = load_experiment(both)
    claim = experiment.resources.claim(experiment.cells[0].spec)
    (read,) = load_classifier("lexicon").classify([Item(NOTED, claim)]).value
    for results in (later, during):
        coded = {key: set(own) for key, own in results.opinions.groupby("classifier")["value"]}
        assert coded == {"lexicon": {2.0}, name: {read}} != {"lexicon": {2.0}, name: {2.0}}
        assert [each.difference for each in replay(results)] == [""]
        assert name in " ".join(_tabulated(read_by(results, name))[0].notes)
    # What readers got counts for them, and no identity changes by the new field.
    assert later.runs["classifier"].unique().tolist() == ["lexicon"]
    belief = _noting("strip", measurement={"instruments": [{**whole, "classifier": "decided"}]})
    with pytest.raises(SpecError, match="does not use whole replies"):
        carry_out(belief, "b.sqlite", GivenReplies(_noted))


@pytest.mark.parametrize("then", ["keep", {"reask": 1, "then": "strip"}, {"reask": 1, "then": "skip"}])
@pytest.mark.parametrize("memory", ["cumulative", "reflective"])
def test_what_was_done_is_read_from_the_journal_whatever_the_study_says_now(then: Any, memory: str) -> None:
    spec = _noting(then, cognition={"memory": memory})
    _, results = carry_out(spec, "s.sqlite", GivenReplies(_noted))
    assert [each.difference for each in replay(results)] == [""]
    summary, again = carry_out(spec, "s.sqlite", GivenReplies([]))
    assert (summary.made, summary.errors) == (0, {})
    pd.testing.assert_frame_equal(again.turns, results.turns)


def test_a_fork_takes_over_what_readers_got_there() -> None:
    spec = _noting("keep")
    spec["sweep"] = [
        {"interaction": [spec["interaction"]]},
        {"fork": [{"label": "f", "cell": "interaction=dyadic", "step": 6}], "model.replies.own": [{OWN: "strip"}]},
    ]
    results = _carried_out(spec, _noted)
    (fork,) = results.turns["run_id"].unique()[-1:]
    posts = results.turns[(results.turns["run_id"] == fork) & (results.turns["kind"] == "post")]
    assert [*posts["message"]] == [NOTED] * 5 + [TRUE] * (len(posts) - 5)


@pytest.mark.parametrize(("then", "read"), [("skip", False), ("missing", True)])
def test_what_a_sign_leaves_out_is_called_so_in_tables(then: str, read: bool) -> None:
    spec = _noting({"reask": 0, "then": then}, measurement={"classifier": "lexicon", "texts": ["post"]})
    results = _carried_out(spec, _noted)
    assert set(results.turns.loc[results.turns["kind"] == "post", "status"]) == {"answered" if read else "left_out"}
    assert (results.metrics["n_left_out"] == results.metrics["n_texts"]).all()
    assert set(results.metrics["n_off_scale"]) == {0}
    assert "left out by a sign" in _tabulated(results)[0].header[-1]


def test_runs_in_which_everything_was_skipped_stand_in_the_tables() -> None:
    spec = changed(SPEC, replicates=2, sweep={"topic.framing": ["falsehood", "truth"]})

    def reply(prompt: list[ChatMessage]) -> str | AIMessage:
        denied = "ellipsoid" in prompt[0].content
        return REFUSAL if denied and "Your post:" in prompt[-1].content else TRUE

    results = _carried_out(spec, reply)
    main, *_ = _tabulated(results)
    by_framing = main.frame.set_index("framing")
    assert by_framing["skipped_rate"].to_dict() == {"falsehood": 0.0, "truth": 1.0}
    assert by_framing["n_measured"].to_dict() == {"falsehood": by_framing.loc["falsehood", "n_measured"], "truth": 0}
    assert by_framing["n_withheld"].to_dict() == {"falsehood": 0, "truth": 2}
    assert by_framing.loc["truth", ["bias_low", "bias_high"]].tolist() == [-2.0, 2.0]
    assert by_framing["unheard_rate"].to_dict() == {"falsehood": 0.0, "truth": 1.0}


def test_cells_that_share_runs_agree_on_what_ends_them_and_may_count_differently() -> None:
    rules = {"model.replies.truncated.then": ["missing", "measure"]}
    summary, results = carry_out(changed(SPEC, sweep=rules), "s.sqlite", GivenReplies(_cut_reports))
    assert (summary.total, summary.complete) == (1, 1)
    counted = results.opinions[results.opinions["kind"] == "report"].groupby("cell")["value"].count()
    assert counted.to_dict()["model.replies.truncated.then=missing"] == 0
    assert counted.to_dict()["model.replies.truncated.then=measure"] == 12
    with pytest.raises(SpecError, match="which one of them ends where the other goes on"):
        load_experiment(changed(SPEC, sweep={"model.replies.truncated.then": ["missing", "fail"]}))


#: What SmolLM2-135M-Instruct said of one topic: posts, and reports with the reason for which each ended.
SMALL_POSTS = [
    "Aisha, I'm not sure I'm ready to share the truth.",
    "The Theory of Quantum Gravity, a reality, not a conspiracy, by governments worldwide and not a real phenomenon.",
    "I've shared another post about Theory XYZ, as I mentioned before, in the hopes that I could reach you.",
    "The theory that Global Warming is a conspiracy by governments worldwide and is not a real phenomenon.",
]
SMALL_REPORTS = [
    ("You are in a room, and you are not alone. You are at a desk, and you are not alone.\n\nYour access to", "length"),
    (
        "You are reflecting on your own logic, and you may not want to share your belief. You are reflecting on",
        "length",
    ),
    ("I'm having trouble with this because I'm having to do things that I'm not comfortable with. I know", "length"),
    ("You are not playing a real person. You have a strong confirmation bias: you will only believe", "length"),
]


def test_the_numbers_of_a_model_too_small_for_the_task_are_withheld() -> None:
    """One agent of six says what it believes: no mean of it stands in frames, tables or sentences."""
    told: list[str] = []

    def reply(prompt: list[ChatMessage]) -> str | AIMessage:
        if REPORT not in prompt[-1].content:
            return SMALL_POSTS[len(prompt[-1].content) % len(SMALL_POSTS)]
        told.append(prompt[0].content)
        text, reason = SMALL_REPORTS[len(told) % len(SMALL_REPORTS)]
        one = prompt[0].content == told[0]
        return TRUE if one else AIMessage(text, response_metadata={"finish_reason": reason})

    results = _carried_out(changed(SPEC, measurement={"classifier": "lexicon"}), reply)
    reports = results.metrics.set_index("kind").loc["report"]
    assert (reports["n_measured"], reports["withheld"]) == (1, True)
    assert reports["n_with_turn"] > 2
    assert pd.isna(reports[["bias", "diversity", "change", "share_2"]]).all()
    assert reports["bias_high"] == 2.0 > reports["bias_low"]
    made = tables_of(results)
    ends = [made[0].rows[0][column] for column, name in enumerate(made[0].header[-1]) if name.startswith("end")]
    assert ends == ["\N{EN DASH}"] * 2
    assert [note for note in made[0].notes if "1 of 1 runs have no mean and no diversity" in note]
    gathered = study(results)
    assert f"1 of the {reports['n_with_turn']} agents that had a turn" in gathered.usable
    assert "0 of 1 runs have a mean" in gathered.usable
    final = final_data(results, kind="report")
    assert final.moments == ("mean \N{EN DASH}", "diversity \N{EN DASH}")
    # Another share changes no run.
    summary, again = carry_out(
        changed(SPEC, measurement={"classifier": "lexicon", "least_measured": 0.1}), "s.sqlite", GivenReplies([])
    )
    assert (summary.made, summary.complete) == (0, 1)
    assert again.metrics.set_index("kind").loc["report", "bias"] == 2.0


def test_an_order_of_roles_that_a_server_refuses_stops_the_sweep_and_is_mended_by_an_option() -> None:
    """Prompts with a memory have several messages of the user in a row; the first one says so for all runs."""

    def in_a_row(request: StubRequest) -> str | None:
        roles = [message.role for message in request.messages]
        return "roles" if any(one == other for one, other in pairwise(roles)) else None

    with StubProvider(faults=Faults(plan=in_a_row)) as stub:
        model = {"name": "openai:stub", "options": {"base_url": stub.base_url}}
        spec = changed(SPEC, replicates=3, model=model, execution__max_concurrency=1)
        summary = ended(spec, "s.sqlite")
        assert len(summary.errors) == 3
        advice = "set model.options.roles: alternate to join messages of one role"
        assert all(advice in error for error in summary.errors.values())
        assert [each.fault for each in stub.log].count("roles") == 1
        assert stub.log[-1].fault == "roles"
        joined = changed(spec, model__options={**model["options"], "roles": "alternate"})
        assert ended(joined, "s.sqlite").errors == {}
    one, other = ({run.run_id for run in load_experiment(each).runs} for each in (spec, joined))
    assert not one & other
