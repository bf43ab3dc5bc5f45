"""Runs in which persons take part: every way of interacting, waits, stops, and runs that wait beside others."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.consensus import Mediation
from opinionsim.errors import SpecError
from opinionsim.foundation import background
from opinionsim.llm import Question, Seat
from opinionsim.running import replay, run, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.people import NEVER_S, Double, Nobody, killed_while_asked
from tests.support.processes import in_process
from tests.support.running import assert_same, changed, finished, watched

CHAIN: dict[str, Any] = {
    "name": "seats",
    "seed": 3,
    "task": "Should the centre be closed to cars?",
    "cast": [{}, {"name": "Ben", "seat": {}}, {}],
    "interaction": {"kind": "chain", "cycles": 2},
    "measurement": {},
}
TOPIC = {"topic": {"name": "flat-earth"}, "measurement": {"self_report": {"before": 1, "after": 1}}}
#: A person in every way of interacting; as a moderator or mediator, too.
WAYS: dict[str, dict[str, Any]] = {
    "chain": changed(CHAIN, roles={"moderator": {"seat": {"words": 40}}}),
    "debate": changed(CHAIN, cast=[{}, {"seat": {}}], interaction={"kind": "debate", "cycles": 2}),
    "ensemble": changed(CHAIN, interaction={"kind": "ensemble"}, roles={"moderator": {}}),
    "graph": changed(CHAIN, interaction={"kind": "graph", "edges": [[0, 1], [1, 2]]}),
    "dyadic": changed(CHAIN, interaction={"kind": "dyadic", "steps": 6}, **TOPIC),
    "broadcast": changed(CHAIN, interaction={"kind": "broadcast", "steps": 2}, **TOPIC),
    "interview": changed(CHAIN, interaction={"kind": "interview", "questions": ["Why?"]}),
    "rankings": changed(
        CHAIN,
        interaction={"kind": "consensus", "candidates": 2, "rounds": 1, "ratings": {"passes": 1}},
        roles={"mediator": {}},
        measurement={"self_report": {"after": 1}, "probe": {"before": 1}},
        topic={"name": "flat-earth"},
    ),
    "mediated": changed(
        CHAIN,
        interaction={"kind": "consensus", "candidates": 2, "rounds": 1, "ballots": ["predicted", "stated"]},
        roles={"mediator": {"seat": {}}, "predictor": {"seat": {}}},
    ),
    "all seats": changed(CHAIN, cast=[{"seat": {}}, {"seat": {}}], roles={"moderator": {"seat": {}}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_person_takes_part_in_every_way_of_interacting(way: str) -> None:
    """Sequential, out of order and replayed alike; nobody is asked in a model's words, or told more than others say."""
    spec, person = WAYS[way], Double()
    expected = finished(spec, "one.sqlite", slots=1, people=Double())
    model, _ = watched()
    found = finished(spec, "many.sqlite", model, slots=64, people=person)
    assert_same(found, expected)
    assert [each.difference for each in replay(found)] == [""]
    assert found.runs["evidence"].tolist() == ["scripted"]
    own = {agent for agent, model_of in enumerate(found.agents["model"]) if not model_of}
    assert sorted(person.turns) == found.turns[found.turns["agent"].isin(own)]["turn"].tolist()
    for question in person.asked:
        assert "Your response:" not in question.text
        assert not {"<ranking>", "<statement>", "Quality: N"} & set(question.text.split())
    # What persons have said is on record: nobody is asked again.
    assert_same(finished(spec, "many.sqlite", people=Nobody()), expected)


def test_each_form_is_what_its_act_asks_for() -> None:
    person = Double()
    finished(WAYS["rankings"], people=person)
    forms = {question.act: question.form for question in person.asked}
    assert {act: form.kind for act, form in forms.items()} == {
        **{"probe": "text", "state": "text", "rate": "ratings", "rank": "ranking"},
        **{"criticise": "text", "self-report": "choice"},
    }
    statements = [message.text for message in person.asked[3].messages if message.act == "draft"]
    assert (forms["rank"].items, person.asked[3].act) in [(("A", "B"), "rate"), (("A", "B"), "rank")]
    assert statements
    assert forms["rate"].items == ("Agreement", "Quality")
    assert forms["self-report"].items == osim.OpinionScale().labels


def test_a_mediator_needs_no_tags_and_its_words_are_the_statement() -> None:
    person = Double(lambda question: "Let us try it.\n\nFor a year." if question.act in ("draft", "revise") else None)
    results = finished(WAYS["mediated"], people=person)
    drafts = results.turns[results.turns["act"].isin(["draft", "revise"])]
    assert set(drafts["message"]) == {"Let us try it.\n\nFor a year."}


def test_an_answer_that_cannot_be_used_comes_back_with_its_reason() -> None:
    def says(question: Question) -> str | None:
        return "I like both." if question.act == "rank" and not question.reason else None

    person = Double(says)
    finished(WAYS["rankings"], people=person)
    reasons = [question.reason for question in person.asked if question.act == "rank"]
    assert reasons[0] == ""
    assert reasons[1].startswith("the ranking names 'I like both")


@pytest.mark.parametrize("given", [{}, {"seats": {1: Seat(Double())}}])
def test_run_refuses_seats_that_nobody_takes_before_anything_is_written(given: dict[str, Any], tmp_path: Any) -> None:
    spec = changed(CHAIN, roles={"moderator": {"seat": {}}})
    with pytest.raises(SpecError, match=r"has a seat for a person .*opinionsim room SPEC"):
        run(load_experiment(spec), tmp_path / "s.sqlite", **given)
    assert list(tmp_path.iterdir()) == []
    run(load_experiment(spec), tmp_path / "s.sqlite", seats={1: Seat(Double())}, people=Double())


def test_a_person_does_not_fit_into_a_cluster() -> None:
    with pytest.raises(SpecError, match="cluster: seats are objects of this process"):
        run(load_experiment(CHAIN), people=Double(), cluster="tcp://nowhere:1")


def test_two_time_outs_running_leave_a_seat_empty_for_the_rest_of_a_run() -> None:
    spec = changed(CHAIN, cast=[{}, {"seat": {"timeout_s": 0.01}}], interaction={"kind": "chain", "cycles": 4})
    person = Double(late=lambda question: NEVER_S)
    results = finished(spec, "late.sqlite", people=person)
    assert len(person.asked) == 2
    with open_store(results.url, write=False) as store:
        entries = [each for each in store.entries(results.runs["run_id"][0]) if each.source == "person"]
        assert store.waits() == []
    assert [each.finish_reason for each in entries] == ["timeout", "timeout", "vacated", "vacated"]
    assert [each.difference for each in replay(results)] == [""]
    assert_same(finished(spec, "late.sqlite", people=Nobody()), results)


class _Asked(Double):
    """Says when it is asked something that it does not answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.waits = asyncio.Event()

    async def answer(self, question: Question) -> str:
        if self.late(question) == NEVER_S:
            self.waits.set()
        return await super().answer(question)


def test_a_run_that_is_stopped_while_it_waits_goes_on_with_the_same_question() -> None:
    expected = finished(CHAIN, "whole.sqlite", people=Double())
    first = _Asked(late=lambda question: NEVER_S if question.turn > 1 else 0.0)
    with under_way(load_experiment(CHAIN), "cut.sqlite", people=first) as (runner, future):
        background.run(first.waits.wait())
        with open_store("cut.sqlite", write=False) as reader:
            (wait,) = reader.waits()
        assert (wait.turn, wait.agent, wait.question["text"]) == (4, 1, first.asked[-1].text)
        background.call_soon(runner.stop)
        assert future.result().stopped
    with open_store("cut.sqlite", write=False) as reader:
        assert [each.turn for each in reader.waits()] == [4]
    second = Double()
    assert_same(finished(CHAIN, "cut.sqlite", people=second), expected)
    assert second.turns == [4]
    with open_store("cut.sqlite", write=False) as reader:
        assert reader.waits() == []


@pytest.mark.long
@pytest.mark.parametrize("turn", [1, 4])
def test_a_process_that_is_killed_while_a_person_is_asked_leaves_the_wait_on_record(turn: int) -> None:
    expected = finished(CHAIN, "whole.sqlite", people=Double())
    assert in_process(killed_while_asked, CHAIN, "killed.sqlite", turn)[1] == -signal.SIGKILL
    with open_store("killed.sqlite", write=False) as reader:
        assert [each.turn for each in reader.waits()] == [turn]
    person = Double()
    assert_same(finished(CHAIN, "killed.sqlite", people=person), expected)
    assert person.turns == [each for each in (1, 4) if each >= turn]


def test_runs_that_wait_for_persons_hold_up_no_other_run() -> None:
    """With one slot, and more sessions than runs are ever open at a time."""
    spec = changed(CHAIN, replicates=20, sweep={"cast.1.seat": [{}, None]})
    experiment = load_experiment(spec)
    person = Double(late=lambda question: NEVER_S)
    with under_way(experiment, "many.sqlite", people=person, max_concurrency=1) as (runner, future):

        async def others() -> None:
            while runner.progress().complete < 20 or len(person.asked) < 20:
                await asyncio.sleep(0.01)

        background.run(asyncio.wait_for(others(), 60))
        background.call_soon(runner.stop)
        summary = future.result()
    assert (summary.complete, len(summary.errors)) == (20, 20)
    assert {question.run_id for question in person.asked} == set(summary.errors)


def test_a_session_stays_pending_until_its_seats_are_taken() -> None:
    experiment = load_experiment(changed(CHAIN, replicates=3))
    there, asked_for = asyncio.Event(), list[str]()
    first = experiment.runs[0].run_id

    async def ready(run_id: str) -> None:
        asked_for.append(run_id)
        if run_id != first:
            await there.wait()

    person = Double()
    with under_way(experiment, "ready.sqlite", people=person, ready=ready) as (runner, future):

        async def one() -> None:
            while runner.progress().complete < 1:
                await asyncio.sleep(0.01)

        background.run(asyncio.wait_for(one(), 60))
        with open_store("ready.sqlite", write=False) as reader:
            states = {run_id: state.status for run_id, state in reader.states().items()}
        assert states.pop(first) == "complete"
        assert set(states.values()) == {"pending"}
        assert {question.run_id for question in person.asked} == {first}
        background.call_soon(there.set)
        assert future.result().complete == 3
    assert sorted(asked_for) == sorted(each.run_id for each in experiment.runs)


def test_a_sweep_that_is_stopped_while_seats_are_empty_leaves_its_sessions_pending() -> None:
    experiment = load_experiment(changed(CHAIN, replicates=2))
    waiting = asyncio.Event()

    async def ready(run_id: str) -> None:
        waiting.set()
        await asyncio.Event().wait()

    with under_way(experiment, "none.sqlite", people=Nobody(), ready=ready) as (runner, future):
        background.run(waiting.wait())
        background.call_soon(runner.stop)
        assert future.result().stopped
    with open_store("none.sqlite", write=False) as reader:
        assert {state.status for state in reader.states().values()} == {"pending"}


def test_a_citizen_of_a_mediation_may_be_a_person() -> None:
    person = Double(evidence="human")
    citizens = ["Yes, and soon.", Seat(person, words=30), {"persona": "A nurse."}]
    session = Mediation(citizens, "Should the centre be closed to cars?", rounds=0, candidates=2).run("m.sqlite")
    assert session.winner
    assert {question.act for question in person.asked} == {"state", "rank"}
    assert {question.form.words for question in person.asked} == {30, None}
    assert set(session.results.runs["evidence"]) == {"mixed"}


def test_a_person_in_a_model_is_asked_in_words_for_people() -> None:
    person = Double(evidence="human")
    with osim.OpinionModel(schedule=20, seats={0: Seat(person)}, classifier="lexicon") as model:
        model.run()
        assert model.evidence == "mixed"
        said = [each.message.text for each in model.history if each.turn.agent == 0]
    assert len(said) == len(person.asked) > 0
    for question in person.asked:
        assert question.text.startswith("The claim: ")
        assert "Jamal" not in question.text
