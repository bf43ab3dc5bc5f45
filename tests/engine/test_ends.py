"""How a run on the engine ends: actors and calls that fail, stop and cancel."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage

from opinionsim.errors import ModelCallError, OpinionSimError, ScheduleError
from opinionsim.messages import ChatMessage, Message
from opinionsim.schedules import IndependentReports, Setting, Turn
from opinionsim.testing import run_virtual
from tests.support.engines import Clerk, Client, Decided, Listed, Run, chain

# -- actors ----------------------------------------------------------------------------------------------


class Silent(Clerk):
    async def act(self, turn, received, ask, publish) -> None:
        await ask("reply", [ChatMessage("user", f"{turn.index}")])


class Stutterer(Clerk):
    async def act(self, turn, received, ask, publish) -> None:
        await super().act(turn, received, ask, publish)
        publish(Message("and another thing"))


class Broken(Clerk):
    async def act(self, turn, received, ask, publish) -> None:
        await super().act(turn, received, ask, publish)
        raise ZeroDivisionError("lost the thread")


@pytest.mark.parametrize(
    ("actor", "error", "message"),
    [
        (Silent(), ScheduleError, r"turn 1 \(write\) ended without publishing a message"),
        (Stutterer(), ScheduleError, r"turn 1 \(write\) published twice"),
        (Broken(), ZeroDivisionError, "lost the thread"),
    ],
)
def test_an_actor_that_breaks_stops_the_run_and_the_others_come_to_their_end(actor, error, message) -> None:
    """Agent 1 breaks at 1 s; agent 0 is in the middle of a call of 3 s and then has a second turn."""
    turns = [
        Turn(0, 1, 0, "write"),
        Turn(1, 1, 1, "write"),
        Turn(2, 2, 0, "write"),
        Turn(3, 2, 1, "write"),
        Turn(4, 3, 2, "write", (1, 0)),
    ]

    async def story() -> None:
        client = Client(lambda prompt: 3.0 if prompt == "0" else 1.0)
        run = Run(Listed(3, *turns), client, actors=[Clerk(), actor, Clerk()])
        run.engine.start()
        with pytest.raises(error, match=message):
            await run.engine.wait()
        assert asyncio.get_running_loop().time() == 3.0
        assert sorted(client.order) == ["0", "1"]
        assert sorted(record.text for record in run.journal.records) == ["re 0", "re 1"]
        assert type(run.engine.error) is error
        run.assert_at_rest()

    run_virtual(story())


def test_a_step_that_was_done_before_the_error_is_still_done() -> None:
    async def story() -> None:
        run = Run(chain(3), actors=[Clerk(), Clerk()])
        run.engine.start()
        await run.engine.wait_step(1)
        run.engine.stop(OpinionSimError("enough"))
        await run.engine.wait_step(1)
        with pytest.raises(OpinionSimError, match="enough"):
            await run.engine.wait_step(2)

    run_virtual(story())


def test_a_fork_has_the_memory_of_its_place_and_holds_nobody_up() -> None:
    """Agent 0's probe (turn 2) reads agent 1's slow post; agent 0 writes on meanwhile."""
    turns = [
        Turn(0, 1, 0, "write"),
        Turn(1, 1, 1, "write"),
        Turn(2, 1, 0, "probe", (1,)),
        Turn(3, 2, 0, "write"),
        Turn(4, 3, 0, "write"),
    ]
    heard: dict[int, tuple[str, ...]] = {}

    class Noting(Clerk):
        def fork(self) -> Clerk:
            return Noting(0, self.heard)

        async def act(self, turn, received, ask, publish) -> None:
            heard[turn.index] = self.heard
            await super().act(turn, received, ask, publish)

    client = Client(lambda prompt: 9.0 if prompt == "1" else 1.0)
    run = Run(Listed(2, *turns), client, actors=[Noting(), Noting()])
    assert run_virtual(run.whole()) == 10.0
    assert {prompt: time for time, prompt in client.asked} == {"0": 0, "1": 0, "3": 1, "4": 2, "2": 9}
    assert heard[2] == ("re 0",)
    assert heard[4] == ("re 0", "re 3")


# -- the end of a run ------------------------------------------------------------------------------------


def test_a_failed_call_stops_the_run_naming_step_and_agent_and_keeps_the_rest() -> None:
    class Gone(Client):
        async def call(self, messages, seed) -> AIMessage:
            reply = await super().call(messages, seed)
            if messages[-1].content == "3":
                raise PermissionError("the provider is gone")
            return reply

    async def story() -> None:
        run = Run(chain(4), Gone(lambda prompt: 2.5 if prompt == "2" else 1.0))
        run.engine.start()
        with pytest.raises(ModelCallError, match=r"run run, step 2, turn \d+, agent 1 \(write\): PermissionError: "):
            await run.engine.wait()
        assert sorted(record.key.turn for record in run.journal.records) == [0, 1, 2]
        run.assert_at_rest()

    run_virtual(story())


def test_stop_lets_calls_in_flight_arrive_and_cancels_those_that_wait_for_a_slot() -> None:
    async def story() -> None:
        run = Run(IndependentReports(reports=6).schedule(Setting.of(1)), Client(4.0), slots=2)
        run.engine.start()
        await asyncio.sleep(1.0)
        assert run.client.in_flight == 2
        run.engine.stop(OpinionSimError("enough"))
        run.engine.stop(OpinionSimError("too late to matter"))
        with pytest.raises(OpinionSimError, match="enough"):
            await run.engine.wait()
        assert asyncio.get_running_loop().time() == 4.0
        assert len(run.client.asked) == 2
        assert len(run.journal.records) == 2
        assert run.published == [0, 1]
        run.assert_at_rest()

    run_virtual(story())


def test_stop_before_a_reflection_keeps_the_reply_and_asks_no_more() -> None:
    async def story() -> None:
        run = Run(Listed(1, Turn(0, 1, 0, "write"), Turn(1, 2, 0, "write")), calls_per_event=1)
        run.engine.start()
        await asyncio.sleep(0.5)
        run.engine.stop(OpinionSimError("enough"))
        with pytest.raises(OpinionSimError, match="enough"):
            await run.engine.wait()
        assert [record.key.call for record in run.journal.records] == ["reply"]
        run.assert_at_rest()

    run_virtual(story())


def test_stop_wakes_whoever_waits_for_a_step() -> None:
    async def story() -> float:
        run = Run(chain(3), Client(50.0))
        run.engine.start()
        waiting = asyncio.create_task(run.engine.wait_step(3))
        await asyncio.sleep(1.0)
        run.engine.stop(OpinionSimError("enough"))
        with pytest.raises(OpinionSimError, match="enough"):
            await waiting
        return asyncio.get_running_loop().time()

    assert run_virtual(story()) == 1.0


@pytest.mark.parametrize("horizon", [None, 2])
@pytest.mark.parametrize("at", [0.0, 0.5, 2.0, 2.5, 50.0])
def test_cancel_ends_an_adaptive_schedule_wherever_it_is(horizon: int | None, at: float) -> None:
    async def decide(outcomes):
        for index in range(6):
            yield Turn(index, index + 1, 0, "write")
            if index % 2:
                await outcomes.reply(index)

    async def story() -> None:
        run = Run(Decided(1, 6, decide), Client(2.0), horizon=horizon)
        run.engine.start()
        await asyncio.sleep(at)
        begun = len(run.client.asked)
        await run.engine.cancel()
        run.assert_at_rest()
        await asyncio.sleep(100)
        assert len(run.client.asked) == begun

    run_virtual(story())


def test_cancel_before_anything_has_begun() -> None:
    async def story() -> None:
        run = Run(chain(3))
        await run.engine.cancel()
        run.assert_at_rest()

    run_virtual(story())


def test_cancel_loses_the_calls_in_flight_and_keeps_those_that_arrived() -> None:
    async def story() -> None:
        run = Run(chain(3), Client(lambda prompt: 1.0 if prompt == "0" else 5.0))
        run.engine.start()
        await asyncio.sleep(2.0)
        await run.engine.cancel()
        assert asyncio.get_running_loop().time() == 2.0
        assert [record.text for record in run.journal.records] == ["re 0"]
        with pytest.raises(asyncio.CancelledError):
            await run.engine.wait()

    run_virtual(story())


# -- starting, waiting, ending -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cancel", "stop"])
def test_an_adaptive_schedule_is_closed_with_its_run(how: str) -> None:
    ended = []

    async def decide(outcomes):
        try:
            for index in range(6):
                yield Turn(index, index + 1, 0, "write")
        finally:
            ended.append(True)

    async def story() -> None:
        run = Run(Decided(1, 6, decide), Client(2.0), horizon=2)
        run.engine.start()
        await asyncio.sleep(1.0)
        if how == "cancel":
            await run.engine.cancel()
        else:
            run.engine.stop(RuntimeError("enough"))
            with pytest.raises(RuntimeError, match="enough"):
                await run.engine.wait()
        assert ended == [True]

    run_virtual(story())


def test_waiting_after_a_failed_start_raises_what_failed() -> None:
    async def story() -> None:
        run = Run(Listed(1, Turn(1, 1, 0, "write")))
        with pytest.raises(ScheduleError):
            run.engine.start()
        with pytest.raises(ScheduleError):
            await run.engine.wait()
        with pytest.raises(ScheduleError):
            await run.engine.wait_step(1)

    run_virtual(story())


def test_one_of_two_who_wait_for_a_message_may_give_up() -> None:
    async def decide(outcomes):
        yield Turn(0, 1, 0, "write")
        first, second = (asyncio.create_task(outcomes.reply(0)) for _ in "ab")
        await asyncio.sleep(0.1)
        first.cancel()
        assert (await second).text == "re 0"
        yield Turn(1, 2, 0, "write")

    run = Run(Decided(1, 2, decide))
    run_virtual(run.whole())
    assert run.published == [0, 1]


def test_a_stopped_adaptive_run_ends_although_its_schedule_would_wait_for_more() -> None:
    """The opinion it waits for comes after the stop; the next turn is then never started."""

    async def decide(outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.opinion(0)
        yield Turn(1, 2, 0, "write")
        await outcomes.reply(1)

    async def rate(turn, message, instrument, about):
        await asyncio.sleep(5)
        return 0.0

    async def story() -> None:
        run = Run(Decided(1, 2, decide), rate=rate)
        run.engine.start()
        await asyncio.sleep(2)
        run.engine.stop(RuntimeError("enough"))
        with pytest.raises(RuntimeError, match="enough"):
            await run.engine.wait()

    run_virtual(story())
