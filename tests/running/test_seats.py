"""Runs in which persons take part: every way of interacting, waits, stops, and runs that wait beside others."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.foundation import background
from opinionsim.llm import Question, Seat
from opinionsim.running import Invocation, replay, run, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.examples import few
from tests.support.people import NEVER_S, Double, Nobody, check_person_takes_part, killed_while_asked
from tests.support.processes import in_process
from tests.support.running import assert_same, changed, finished

SPEC: dict[str, Any] = {
    "name": "seats",
    "seed": 3,
    "task": "Should the centre be closed to cars?",
    "cast": [{}, {"name": "Ben", "seat": {}}, {}],
    "interaction": {"kind": "independent", "reports": 2},
    "measurement": {},
}
TOPIC = {"topic": {"name": "flat-earth"}, "measurement": {"self_report": {"before": 1, "after": 1}}}
#: A person in ways of interacting of the core.
WAYS: dict[str, dict[str, Any]] = {
    "reports": SPEC,
    "dyadic": changed(SPEC, interaction={"kind": "dyadic", "steps": 6}, **TOPIC),
    "broadcast": changed(SPEC, interaction={"kind": "broadcast", "steps": 2}, **TOPIC),
    "all seats": changed(SPEC, cast=[{"seat": {}}, {"seat": {}}]),
}


@pytest.mark.parametrize("way", few(WAYS, 3))
def test_a_person_takes_part_in_every_way_of_interacting(way: str) -> None:
    check_person_takes_part(WAYS[way], "Your post:", "Report your opinion", "and nothing else")


def test_a_person_does_not_fit_into_a_cluster() -> None:
    with pytest.raises(SpecError, match="cluster: seats are objects of this process"):
        run(load_experiment(SPEC), people=Double(), cluster="tcp://nowhere:1")


def test_two_time_outs_running_leave_a_seat_empty_for_the_rest_of_a_run() -> None:
    spec = changed(SPEC, cast=[{}, {"seat": {"timeout_s": 0.01}}], interaction={"kind": "independent", "reports": 4})
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
    expected = finished(SPEC, "whole.sqlite", people=Double())
    first = _Asked(late=lambda question: NEVER_S if question.turn > 1 else 0.0)
    with under_way(Invocation(load_experiment(SPEC), "cut.sqlite", people=first)) as (runner, future):
        background.run(first.waits.wait())
        with open_store("cut.sqlite", write=False) as reader:
            (wait,) = reader.waits()
        assert (wait.turn, wait.agent, wait.question["text"]) == (4, 1, first.asked[-1].text)
        background.call_soon(runner.stop)
        assert future.result().stopped
    with open_store("cut.sqlite", write=False) as reader:
        assert [each.turn for each in reader.waits()] == [4]
    second = Double()
    assert_same(finished(SPEC, "cut.sqlite", people=second), expected)
    assert second.turns == [4]
    with open_store("cut.sqlite", write=False) as reader:
        assert reader.waits() == []


@pytest.mark.long
@pytest.mark.parametrize("turn", [1, 4])
def test_a_process_that_is_killed_while_a_person_is_asked_leaves_the_wait_on_record(turn: int) -> None:
    expected = finished(SPEC, "whole.sqlite", people=Double())
    assert in_process(killed_while_asked, SPEC, "killed.sqlite", turn)[1] == -signal.SIGKILL
    with open_store("killed.sqlite", write=False) as reader:
        assert [each.turn for each in reader.waits()] == [turn]
    person = Double()
    assert_same(finished(SPEC, "killed.sqlite", people=person), expected)
    assert person.turns == [each for each in (1, 4) if each >= turn]


def test_runs_that_wait_for_persons_hold_up_no_other_run() -> None:
    """With one slot, and more sessions than runs are ever open at a time."""
    spec = changed(SPEC, replicates=20, sweep={"cast.1.seat": [{}, None]})
    experiment = load_experiment(spec)
    person = Double(late=lambda question: NEVER_S)
    with under_way(Invocation(experiment, "many.sqlite", people=person, max_concurrency=1)) as (runner, future):

        async def others() -> None:
            while runner.progress().complete < 20 or len(person.asked) < 20:
                await asyncio.sleep(0.01)

        background.run(asyncio.wait_for(others(), 60))
        background.call_soon(runner.stop)
        summary = future.result()
    assert (summary.complete, len(summary.errors)) == (20, 20)
    assert {question.run_id for question in person.asked} == set(summary.errors)


def test_a_session_stays_pending_until_its_seats_are_taken() -> None:
    experiment = load_experiment(changed(SPEC, replicates=3))
    there, asked_for = asyncio.Event(), list[str]()
    first = experiment.runs[0].run_id

    async def ready(run_id: str) -> None:
        asked_for.append(run_id)
        if run_id != first:
            await there.wait()

    person = Double()
    with under_way(Invocation(experiment, "ready.sqlite", people=person, ready=ready)) as (runner, future):

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
    experiment = load_experiment(changed(SPEC, replicates=2))
    waiting = asyncio.Event()

    async def ready(run_id: str) -> None:
        waiting.set()
        await asyncio.Event().wait()

    with under_way(Invocation(experiment, "none.sqlite", people=Nobody(), ready=ready)) as (runner, future):
        background.run(waiting.wait())
        background.call_soon(runner.stop)
        assert future.result().stopped
    with open_store("none.sqlite", write=False) as reader:
        assert {state.status for state in reader.states().values()} == {"pending"}


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
