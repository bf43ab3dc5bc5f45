"""What does not hold up a run: acts in the background, and persons who think; and what remembering costs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest

from opinionsim.engine import CriticalPath, Engine, critical_path
from opinionsim.errors import ModelCallError, OpinionSimError
from opinionsim.llm import Question, Seat
from opinionsim.messages import ChatMessage, Message
from opinionsim.schedules import REPORT_ONCE, REVIEW, WRITE, ActSpec, Turn, named
from opinionsim.testing import run_virtual
from tests.support.engines import Clerk, Client, Decided, Listed, Run

# -- acts in the background ----------------------------------------------------------------------------------

NOTE = ActSpec("note", "report", "note", memory="none", background=True)
BACKGROUND = named(WRITE, REVIEW, NOTE)


def _noted(steps: int) -> Listed:
    """In each step agent 0 writes a post, and agent 1 takes its time to note something about it."""
    posts = [Turn(2 * t, t + 1, 0, "write") for t in range(steps)]
    notes = [Turn(2 * t + 1, t + 1, 1, "note", (2 * t,)) for t in range(steps)]
    return Listed(2, *sorted([*posts, *notes], key=lambda turn: turn.index), acts=BACKGROUND)


def _slow_notes(prompt: str) -> float:
    return 50.0 if int(prompt) % 2 else 1.0


@pytest.mark.parametrize("horizon", [None, 1, 2])
def test_a_step_does_not_wait_for_what_goes_on_in_the_background_and_the_run_does(horizon: int | None) -> None:
    async def story() -> None:
        run = Run(_noted(4), Client(_slow_notes), horizon=horizon)
        run.engine.start()
        for step in (1, 2, 3, 4):
            await run.engine.wait_step(step)
            assert asyncio.get_running_loop().time() == float(step)
            if horizon is not None:
                run.engine.allow(step + horizon)
        assert run.engine.completed == 4
        assert run.published == [0, 2, 4, 6]
        await run.engine.wait()
        assert asyncio.get_running_loop().time() == 54.0
        assert run.published == list(range(8))
        run.assert_at_rest()

    run_virtual(story())


def test_a_step_of_nothing_but_background_is_done_at_once() -> None:
    async def story() -> None:
        run = Run(Listed(1, Turn(0, 1, 0, "note"), Turn(1, 2, 0, "write"), acts=BACKGROUND), Client(_slow_notes))
        run.engine.start()
        await run.engine.wait_step(1)
        assert (asyncio.get_running_loop().time(), run.published) == (0.0, [])
        await run.engine.wait()
        assert run.told == ["re 0", "re 1"]

    run_virtual(story())


def test_who_reads_a_background_turn_waits_for_it_and_so_does_its_step() -> None:
    turns = [Turn(0, 1, 0, "note"), Turn(1, 2, 1, "review", (0,))]

    async def story() -> None:
        client = Client(lambda prompt: 50.0 if prompt == "0" else 1.0)
        run = Run(Listed(2, *turns, acts=BACKGROUND), client)
        run.engine.start()
        await run.engine.wait_step(1)
        assert asyncio.get_running_loop().time() == 0.0
        await run.engine.wait_step(2)
        assert asyncio.get_running_loop().time() == 51.0

    run_virtual(story())


def test_an_adaptive_schedule_may_follow_what_goes_on_in_the_background() -> None:
    async def decide(outcomes: Any) -> Any:
        yield Turn(0, 1, 0, "write")
        yield Turn(1, 1, 1, "note", (0,))
        if "9" in (await outcomes.reply(1)).text:
            yield Turn(2, 2, 0, "write")

    async def story() -> None:
        run = Run(Decided(2, 2, decide, acts=BACKGROUND), Client(_slow_notes, says={"1": "9"}), horizon=1)
        run.engine.start()
        await run.engine.wait_step(1)
        run.engine.allow(2)
        await run.engine.wait()
        assert run.told == ["re 0", "9", "re 2"]
        assert asyncio.get_running_loop().time() == 52.0

    run_virtual(story())


@pytest.mark.parametrize("horizon", [None, 1])
def test_what_fails_in_the_background_stops_the_run(horizon: int | None) -> None:
    class Gone(Client):
        async def call(self, messages: Sequence[ChatMessage], seed: int) -> Any:
            reply = await super().call(messages, seed)
            if messages[-1].content == "1":
                raise PermissionError("the provider is gone")
            return reply

    async def story() -> None:
        run = Run(_noted(9), Gone(lambda prompt: 3.5 if prompt == "1" else 1.0), horizon=horizon)
        run.engine.start()
        await run.engine.wait_step(1)
        words = r"run run, step 1, turn \d+, agent 1 \(note\): PermissionError: the provider is gone"

        async def move_on() -> None:
            for step in range(2, 10):
                run.engine.allow(step)
                await run.engine.wait_step(step)

        with pytest.raises(ModelCallError, match=words):
            await move_on()
        assert asyncio.get_running_loop().time() == 4.5
        with pytest.raises(ModelCallError, match=words):
            await run.engine.wait()
        run.assert_at_rest()

    run_virtual(story())


def test_a_background_failure_after_the_last_step_still_stops_the_run() -> None:
    class Gone(Client):
        async def call(self, messages: Sequence[ChatMessage], seed: int) -> Any:
            reply = await super().call(messages, seed)
            if messages[-1].content == "1":
                raise PermissionError("the provider is gone")
            return reply

    async def story() -> None:
        run = Run(_noted(1), Gone(_slow_notes))
        run.engine.start()
        await run.engine.wait_step(1)
        with pytest.raises(ModelCallError, match="the provider is gone"):
            await run.engine.wait()

    run_virtual(story())


# -- seats ---------------------------------------------------------------------------------------------------


class Person:
    """Answers every question after a while."""

    evidence = "scripted"

    def __init__(self, seconds: float, text: str = "as I said") -> None:
        self.seconds, self.text = seconds, text
        self.asked: list[int] = []

    async def answer(self, question: Question) -> str:
        self.asked.append(question.turn)
        await asyncio.sleep(self.seconds)
        return self.text


def _table(*, n_questions: int, n_calls: int) -> Listed:
    """Agent 0 sits at the table and is asked first; agent 1 reports on its own."""
    questions = [Turn(index, 1, 0, "report-once") for index in range(n_questions)]
    calls = [Turn(n_questions + index, 1, 1, "report-once") for index in range(n_calls)]
    return Listed(2, *questions, *calls)


def test_persons_who_think_hold_up_no_other_turn() -> None:
    """With one turn under way at a time, a question is open while the others are carried out; two follow it."""
    person = Person(1000.0)

    async def story() -> None:
        run = Run(_table(n_questions=3, n_calls=4), slots=1, most=1, seats={0: Seat(person)})
        run.engine.start()
        await asyncio.sleep(10.0)
        assert person.asked == [0]
        assert run.published == [3, 4, 5, 6]
        assert [time for time, _ in run.client.asked] == [0.0, 1.0, 2.0, 3.0]
        await run.engine.wait()
        assert run.told == ["as I said"] * 3 + ["re 3", "re 4", "re 5", "re 6"]
        assert person.asked == [0, 1, 2]
        assert asyncio.get_running_loop().time() == 3000.0
        run.assert_at_rest()

    run_virtual(story())


def test_without_a_seat_the_same_turns_would() -> None:
    """What the test above rests on: a slow model in the same place does hold the others up."""

    async def story() -> None:
        client = Client(lambda prompt: 1000.0 if int(prompt) < 3 else 1.0)
        run = Run(_table(n_questions=3, n_calls=4), client, slots=9, most=1)
        run.engine.start()
        await asyncio.sleep(10.0)
        assert (run.published, run.client.order) == ([], ["0"])
        await run.engine.cancel()

    run_virtual(story())


def test_calls_under_way_stay_bounded_beside_persons() -> None:
    run = Run(_table(n_questions=4, n_calls=9), slots=9, most=2, seats={0: Seat(Person(2.5))})
    assert run_virtual(run.whole()) == 10.0
    assert run.client.peak == 2


def test_a_run_that_is_stopped_leaves_its_persons_at_once() -> None:
    person = Person(math.inf)

    async def story() -> None:
        run = Run(_table(n_questions=2, n_calls=2), Client(5.0), seats={0: Seat(person)})
        run.engine.start()
        await asyncio.sleep(1.0)
        run.engine.stop(OpinionSimError("enough"))
        with pytest.raises(OpinionSimError, match="enough"):
            await run.engine.wait()
        # Calls in flight have come back; persons are not waited for.
        assert asyncio.get_running_loop().time() == 5.0
        assert [record.key.turn for record in run.journal.records] == [2, 3]
        run.assert_at_rest()

    run_virtual(story())


def test_a_person_who_does_not_answer_in_time_is_read_by_nobody() -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,)), Turn(2, 2, 0, "write")]
    person = Person(90.0)

    async def story() -> None:
        run = Run(Listed(2, *turns), seats={0: Seat(person, 60.0)})
        run.engine.start()
        await run.engine.wait_step(1)
        assert asyncio.get_running_loop().time() == 60.0
        await run.engine.wait()
        assert run.told == ["empty", "skipped", "empty"]
        again = Run(Listed(2, *turns), seats={0: Seat(person)}, journal=run.journal)
        await again.whole()
        assert again.told == ["empty", "skipped", "empty"]
        assert person.asked == [0, 2]

    run_virtual(story())


# -- what it costs to remember -------------------------------------------------------------------------------


def test_members_may_remember_each_at_its_own_cost() -> None:
    """Agent 0 reflects once after each turn, agent 1 twice, and the moderator not at all."""
    turns = [Turn(3 * t + agent, t + 1, agent, "write") for t in range(2) for agent in range(3)]
    schedule = Listed(2, *turns, others=("moderator",))
    found = critical_path(schedule, calls_per_event=[1, 2, 0])
    assert found == CriticalPath(6, 12, 3)
    run = Run(schedule, actors=[Clerk(1), Clerk(2), Clerk()])
    assert run_virtual(run.whole()) == found.length
    assert len(run.client.asked) == found.calls
    assert critical_path(schedule, calls_per_event=1) == critical_path(schedule, calls_per_event=[1, 1, 1])
    assert critical_path(schedule) == CriticalPath(2, 6, 3)


@pytest.mark.parametrize("reflects", [0, 1])
def test_who_has_more_to_remember_goes_first(reflects: int) -> None:
    """Both have two turns; of one member, four calls depend on each other."""
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "write"), Turn(2, 2, 0, "write"), Turn(3, 2, 1, "write")]
    actors = [Clerk(2 * (agent == reflects)) for agent in (0, 1)]
    run = Run(Listed(2, *turns), slots=1, actors=actors)
    run_virtual(run.whole())
    assert run.client.order[0] == f"{reflects}"


def test_acts_that_keep_nothing_cost_nothing_to_remember() -> None:
    schedule = Listed(1, *(Turn(index, 1, 0, REPORT_ONCE.name) for index in range(3)))
    assert critical_path(schedule, calls_per_event=2) == CriticalPath(1, 3, 3)


def test_a_person_is_asked_at_once_however_many_turns_are_under_way() -> None:
    """One turn may be under way, a slow one; the seat's question does not wait for it."""
    asked: dict[int, float] = {}

    class Actor:
        def __init__(self, wait: float) -> None:
            self.wait = wait

        async def act(self, turn, received, ask, publish) -> None:
            asked[turn.agent] = asyncio.get_running_loop().time()
            await asyncio.sleep(self.wait)
            publish(Message("done"))

        def fork(self):
            return self

    class Nobody:
        def ask(self, *_, **__):
            raise AssertionError("nobody is asked")

        def stop(self) -> None: ...

    async def story() -> None:
        schedule = Listed(2, Turn(0, 1, 1, "report-once"), Turn(1, 1, 0, "report-once"))
        engine = Engine(schedule, [Actor(1.0), Actor(100.0)], Nobody(), seats=[0], most=1)
        engine.start()
        await engine.wait()

    run_virtual(story())
    assert asked == {0: 0.0, 1: 0.0}
