"""The engine: critical paths, priorities, steps, adaptive schedules, and schedules that break the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import networkx as nx
import pytest
from hypothesis import given, strategies as st

from opinionsim.engine import CriticalPath, Engine, critical_path
from opinionsim.errors import OpinionSimError, ScheduleError
from opinionsim.llm import SlotPool
from opinionsim.messages import Message, Reply
from opinionsim.schedules import (
    AnySchedule,
    Broadcast,
    External,
    GivenDyads,
    IndependentReports,
    Setting,
    Turn,
    with_probes,
)
from opinionsim.testing import run_virtual
from tests.support.engines import ACTS, Clerk, Client, Decided, Listed, Run, chain
from tests.support.examples import examples


@st.composite
def schedules(draw: st.DrawFn) -> Listed:
    n_agents = draw(st.integers(1, 5))
    turns: list[Turn] = []
    step = 1
    for index in range(draw(st.integers(0, 18))):
        step += draw(st.integers(0, 1))
        earlier = st.integers(0, index - 1) if index else st.just(External("news"))
        reads = draw(st.lists(st.one_of(earlier, st.just(External("news"))), max_size=2, unique=True))
        agent, act = (
            draw(st.integers(0, n_agents - 1)),
            draw(st.sampled_from(["write", "draw", "probe", "report-once"])),
        )
        turns.append(Turn(index, step, agent, act, tuple(reads)))
    return Listed(n_agents, *turns)


def _independent(n: int, reports: int) -> AnySchedule:
    return IndependentReports(reports=reports).schedule(Setting.of(n))


# -- critical path ---------------------------------------------------------------------------------------


def _calls_graph(schedule: Listed, calls_per_event: int) -> nx.DiGraph:
    """Every call as a node and every wait of one call for another as an edge."""
    graph = nx.DiGraph()
    keeping: dict[int, list[tuple]] = {}
    replies: dict[int, list[tuple]] = {}
    for turn in schedule.turns():
        spec = ACTS[turn.act]
        replies[turn.index] = [(turn.index, "reply", draw) for draw in range(spec.draws)]
        waits_for = [call for ref in turn.reads if isinstance(ref, int) for call in replies[ref]]
        waits_for += keeping.get(turn.agent, []) if spec.memory != "none" else []
        for call in replies[turn.index]:
            graph.add_node(call)
            graph.add_edges_from((other, call) for other in waits_for)
        last = replies[turn.index]
        for event in range(calls_per_event if spec.memory == "keep" else 0):
            graph.add_edges_from((call, (turn.index, "reflect", event)) for call in last)
            last = [(turn.index, "reflect", event)]
        if spec.memory == "keep":
            keeping[turn.agent] = last
    return graph


@examples(150)
@given(schedules(), st.integers(0, 2))
def test_critical_path_and_width_equal_those_of_the_graph_of_calls(schedule: Listed, calls_per_event: int) -> None:
    graph = _calls_graph(schedule, calls_per_event)
    levels = [len(generation) for generation in nx.topological_generations(graph)]
    found = critical_path(schedule, calls_per_event=calls_per_event)
    assert found == CriticalPath(len(levels), len(graph), max(levels, default=0))
    assert len(levels) == (nx.dag_longest_path_length(graph) + 1 if graph else 0)


@examples(150)
@given(schedules(), st.integers(0, 2))
def test_the_engine_needs_the_critical_path_and_no_longer(schedule: Listed, calls_per_event: int) -> None:
    bound = critical_path(schedule, calls_per_event=calls_per_event)
    run = Run(schedule, calls_per_event=calls_per_event)
    assert run_virtual(run.whole()) == bound.length
    assert len(run.client.asked) == bound.calls
    assert run.client.peak == bound.peak_width


@examples(60)
@given(schedules(), st.integers(1, 4), st.integers(0, 1))
def test_with_few_slots_the_engine_keeps_to_grahams_bound(schedule: Listed, slots: int, calls_per_event: int) -> None:
    """List scheduling with unit jobs takes at most work / slots + (1 - 1 / slots) * path."""
    bound = critical_path(schedule, calls_per_event=calls_per_event)
    run = Run(schedule, slots=slots, calls_per_event=calls_per_event)
    took = run_virtual(run.whole())
    assert max(bound.length, bound.calls / slots) <= took + 1e-9
    assert took <= bound.calls / slots + (1 - 1 / slots) * bound.length + 1e-9
    assert run.client.peak <= slots


@pytest.mark.parametrize(
    ("schedule", "calls_per_event", "expected"),
    [
        (Listed(3), 0, CriticalPath(0, 0, 0)),
        (_independent(5, 7), 0, CriticalPath(1, 35, 35)),
        (GivenDyads(2, [(0, 1)] * 4), 0, CriticalPath(5, 8, 2)),
        (GivenDyads(2, [(0, 1), (1, 0)] * 2), 0, CriticalPath(8, 8, 1)),
        (GivenDyads(2, [(0, 1), (1, 0)] * 2), 1, CriticalPath(12, 16, 2)),
        (GivenDyads(4, [(0, 1), (2, 3)]), 0, CriticalPath(2, 4, 2)),
        (GivenDyads(4, [(0, 1), (2, 3)]), 1, CriticalPath(3, 8, 4)),
        (with_probes(GivenDyads(2, [(0, 1)]), 1, 1), 0, CriticalPath(3, 6, 3)),
    ],
)
def test_critical_path_closed_forms(schedule, calls_per_event, expected) -> None:
    found = critical_path(schedule, calls_per_event=calls_per_event)
    assert found == expected
    assert found.mean_width == (expected.calls / expected.length if expected.calls else 0)


def test_a_broadcast_is_as_wide_as_its_audience() -> None:
    found = critical_path(Broadcast(steps=1).schedule(Setting.of(9)))  # type: ignore[arg-type]
    assert found == CriticalPath(2, 9, 8)


# -- priorities and slots --------------------------------------------------------------------------------


def _order(n_agents: int, *turns: Turn, calls_per_event: int = 0) -> list[str]:
    """The calls of a schedule in the order in which they are made, once everything waits for the one slot."""

    async def story() -> list[str]:
        run = Run(Listed(n_agents, *turns), slots=1, calls_per_event=calls_per_event)
        assert run.slots.account("local").take()
        run.engine.start()
        await asyncio.sleep(1.0)
        assert run.client.order == []
        run.slots.account("local").release()
        await run.engine.wait()
        return run.client.order

    return run_virtual(story())


def test_of_the_turns_that_wait_for_a_slot_the_longest_remaining_path_goes_first() -> None:
    """One agent has 1 turn, the next 2, the third 3; of equals, who waits longer goes first."""
    turns = [
        Turn(0, 1, 0, "write"),
        Turn(1, 1, 1, "write"),
        Turn(2, 1, 1, "write"),
        Turn(3, 1, 2, "write"),
        Turn(4, 1, 2, "write"),
        Turn(5, 1, 2, "write"),
    ]
    assert _order(3, *turns) == ["3", "1", "4", "0", "2", "5"]


def test_a_row_of_readers_goes_before_a_crowd_of_readers() -> None:
    turns = [
        Turn(0, 1, 0, "report-once"),
        *(Turn(1 + i, 1, 1, "report-once", (0,)) for i in range(4)),
        Turn(5, 1, 2, "report-once"),
        Turn(6, 1, 2, "report-once", (5,)),
        Turn(7, 1, 2, "report-once", (6,)),
    ]
    assert _order(3, *turns)[0] == "5"


def test_a_reflection_counts_in_the_path_of_its_agent() -> None:
    """Two keeping turns in a row are 3 calls with the reflection between them; two plain ones are 2."""
    turns = [
        Turn(0, 1, 0, "report-once"),
        Turn(1, 1, 0, "report-once", (0,)),
        Turn(2, 1, 1, "write"),
        Turn(3, 1, 1, "write"),
    ]
    assert _order(2, *turns, calls_per_event=1)[0] == "2"
    assert _order(2, *turns)[0] == "0"


def test_runs_share_one_pool_of_slots() -> None:
    client, slots = Client(), SlotPool(3)

    async def story() -> float:
        runs = [Run(_independent(1, 6), client, slots) for _ in range(4)]
        for run in runs:
            run.engine.start()
        await asyncio.gather(*(run.engine.wait() for run in runs))
        runs[0].assert_at_rest()
        return asyncio.get_running_loop().time()

    assert run_virtual(story()) == 4 * 6 / 3
    assert client.peak == 3


def test_the_first_free_slot_goes_to_the_longest_path() -> None:
    turns = [Turn(0, 1, 0, "report-once"), *(Turn(i, 1, 1, "write") for i in (1, 2, 3))]
    run = Run(Listed(2, *turns), slots=1)
    run_virtual(run.whole())
    assert run.client.order[0] == "1"


@pytest.mark.parametrize("most", [1, 3])
def test_turns_under_way_are_bounded(most: int) -> None:
    """However many turns are ready, no more than `most` are started; results and order of paths stay."""

    class Counting(Client):
        under_way = highest = 0

        async def call(self, messages, seed):
            self.under_way += 1
            self.highest = max(self.highest, self.under_way)
            try:
                return await super().call(messages, seed)
            finally:
                self.under_way -= 1

    client = Counting(1.0)
    run = Run(Listed(1, *(Turn(i, 1, 0, "report-once") for i in range(9))), client, slots=50, most=most)
    run_virtual(run.whole())
    assert sorted(run.published) == list(range(9))
    assert client.highest == most


def test_once_published_a_turn_asks_on_behalf_of_its_own_agent_only() -> None:
    """Agent 0 reflects after a post that a long chain waits for; the reflection itself holds up nobody."""
    asked = []

    class Calls:
        async def ask(self, turn, call, messages, *, reading, priority, dropped=0):
            asked.append((turn.index, call, priority))
            return Reply("text")

        def stop(self) -> None:
            raise AssertionError("nothing stops this run")

    class Reflecting:
        calls_per_event = 1

        async def act(self, turn, received, ask, publish):
            publish(Message((await ask("reply", ())).text))
            await ask("reflect", ())

        def fork(self):
            return self

    turns = [Turn(0, 1, 0, "write"), *(Turn(i, 1, 1, "review", (i - 1,)) for i in (1, 2, 3))]
    engine = Engine(Listed(2, *turns), [Reflecting(), Reflecting()], Calls())

    async def story() -> None:
        engine.start()
        await engine.wait()

    run_virtual(story())
    priorities = {(index, call): priority for index, call, priority in asked}
    assert priorities[0, "reply"] == 7.0
    assert priorities[0, "reflect"] == 1.0
    assert priorities[1, "reflect"] == 5.0


# -- steps -----------------------------------------------------------------------------------------------


def test_turns_beyond_the_horizon_wait_until_it_moves() -> None:
    async def story() -> None:
        run = Run(chain(5), horizon=2)
        run.engine.start()
        await asyncio.sleep(100)
        assert run.published == [0, 1, 2, 3]
        assert run.engine.completed == 2
        run.assert_at_rest()
        run.engine.allow(3)
        await run.engine.wait_step(3)
        assert run.published == [0, 1, 2, 3, 4, 5]
        run.engine.allow(None)
        await run.engine.wait()
        assert run.published == list(range(10))
        assert run.engine.completed == 5

    run_virtual(story())


def test_a_step_is_done_when_its_last_turn_is_and_not_before() -> None:
    async def story() -> list[float]:
        client = Client(lambda prompt: {"1": 5.0}.get(prompt, 1.0))
        run = Run(Listed(3, *(Turn(i, i // 3 + 1, i % 3, "write") for i in range(9))), client)
        run.engine.start()
        times = []
        for step in (0, 1, 2, 3, 7):
            await run.engine.wait_step(step)
            times.append(asyncio.get_running_loop().time())
            assert run.engine.completed >= min(step, 3)
        return times

    # Agent 1 takes 5 s for its first turn; nobody else waits for it, and step 1 is done when it is.
    assert run_virtual(story()) == [0.0, 5.0, 6.0, 7.0, 7.0]


def test_waiting_includes_what_an_agent_does_after_publishing() -> None:
    async def story() -> tuple[float, float]:
        run = Run(Listed(1, Turn(0, 1, 0, "write")), calls_per_event=2)
        run.engine.start()
        await asyncio.sleep(1.5)
        assert run.published == [0]
        await run.engine.wait_step(1)
        return asyncio.get_running_loop().time(), run.engine.completed

    assert run_virtual(story()) == (3.0, 1)


def test_steps_without_turns_are_done_at_once() -> None:
    async def story() -> None:
        run = Run(Listed(1, Turn(0, 3, 0, "write"), steps=6))
        run.engine.start()
        await run.engine.wait_step(2)
        assert (run.engine.completed, run.published) == (2, [])
        await run.engine.wait_step(6)
        assert (run.engine.completed, run.published) == (6, [0])
        nothing = Run(Listed(1, steps=4))
        nothing.engine.start()
        await nothing.engine.wait_step(4)
        await nothing.engine.wait()
        assert nothing.engine.completed == 4

    run_virtual(story())


def test_a_transcript_is_by_index_from_a_turn_to_a_step() -> None:
    async def story() -> None:
        run = Run(chain(3), Client(lambda prompt: 9.0 if prompt == "0" else 1.0))
        run.engine.start()
        await asyncio.sleep(3.5)
        assert run.published == [1, 3, 5]
        await run.engine.wait()
        engine = run.engine
        assert [turn.index for turn, _ in engine.graph.transcript(1, until=2)] == [1, 2, 3]
        assert [message.text for _, message in engine.graph.transcript(4)] == ["re 4", "re 5"]

    run_virtual(story())


# -- adaptive schedules ----------------------------------------------------------------------------------


def test_an_adaptive_schedule_sees_messages_and_opinions_of_turns_it_has_yielded() -> None:
    seen: list[object] = []

    async def decide(outcomes):
        yield Turn(0, 1, 0, "write")
        yield Turn(1, 1, 1, "write", (0,))
        seen.append(await outcomes.reply(1))
        seen.append(await outcomes.opinion(0))
        seen.append(await outcomes.reply(0))
        yield Turn(2, 2, int(seen[1]), "write")

    async def rate(turn: Turn, message: Message, instrument: str, about: int | None) -> float:
        assert (message.text, instrument) == (f"re {turn.index}", "stance")
        return 1.0

    run = Run(Decided(2, 2, decide), rate=rate)
    assert run_virtual(run.whole()) == 3.0
    assert [seen[0].text, seen[1], seen[2].text] == ["re 1", 1.0, "re 0"]
    assert [turn.agent for turn, _ in run.engine.graph.transcript()] == [0, 1, 1]


def test_an_adaptive_schedule_is_asked_for_one_turn_past_the_horizon_at_most() -> None:
    decided: list[int] = []

    async def decide(outcomes):
        for index in range(10):
            decided.append(index)
            yield Turn(index, index + 1, 0, "write")

    async def story() -> None:
        run = Run(Decided(1, 10, decide), horizon=3)
        run.engine.start()
        await run.engine.wait_step(3)
        await asyncio.sleep(50)
        assert (decided, run.published, run.engine.completed) == ([0, 1, 2, 3], [0, 1, 2], 3)
        run.engine.allow(4)
        await run.engine.wait_step(4)
        assert decided == [0, 1, 2, 3, 4]
        run.engine.allow(None)
        await run.engine.wait()
        assert (run.published, run.engine.completed) == (list(range(10)), 10)

    run_virtual(story())


def _failing_decisions() -> list[tuple[Callable[..., AsyncIterator[Turn]], type[Exception], str]]:
    async def breaks(outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.reply(0)
        raise ZeroDivisionError("no partner is left")

    async def foresees(outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.reply(1)

    async def looks_back_too_far(outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.reply(-1)

    async def jumps(outcomes):
        yield Turn(0, 1, 0, "write")
        yield Turn(2, 1, 0, "write")

    async def acts_on_opinions(outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.opinion(0)

    return [
        (breaks, ZeroDivisionError, "no partner is left"),
        (foresees, ScheduleError, "waits for turn 1, which it has not yielded"),
        (looks_back_too_far, ScheduleError, "waits for turn -1"),
        (jumps, ScheduleError, "turn 2 of step 1 is out of order; expected index 1"),
        (acts_on_opinions, ScheduleError, "Decided acts on 'stance'"),
    ]


@pytest.mark.parametrize(("decide", "error", "message"), _failing_decisions())
def test_an_error_in_an_adaptive_schedule_stops_the_run(decide, error, message) -> None:
    async def story() -> None:
        run = Run(Decided(1, 2, decide))
        run.engine.start()
        with pytest.raises(error, match=message):
            await run.engine.wait_step(2)
        with pytest.raises(error, match=message):
            await run.engine.wait()
        run.assert_at_rest()
        # What had been asked has arrived and is kept.
        assert [record.text for record in run.journal.records] == [f"re {prompt}" for prompt in run.client.order]

    run_virtual(story())


def test_a_rating_that_fails_stops_the_run() -> None:
    async def decide(outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.opinion(0)
        yield Turn(1, 2, 0, "write")

    async def rate(turn, message, instrument, about):
        raise OpinionSimError("the classifier is gone")

    run = Run(Decided(1, 2, decide), rate=rate)
    with pytest.raises(OpinionSimError, match="the classifier is gone"):
        run_virtual(run.whole())
    assert run.published == [0]


# -- schedules that break the contract -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([Turn(1, 1, 0, "write")], "turn 1 of step 1 is out of order; expected index 0"),
        ([Turn(0, 1, 0, "write"), Turn(0, 1, 0, "write")], "turn 0 of step 1 is out of order; expected index 1"),
        ([Turn(0, 2, 0, "write"), Turn(1, 1, 0, "write")], "turn 1 of step 1 is out of order"),
        ([Turn(0, 1, 2, "write")], r"turn 0 names act 'write' and agent 2; valid: .*agents 0\.\.1"),
        ([Turn(0, 1, -1, "write")], "agent -1"),
        ([Turn(0, 1, 0, "sing")], "turn 0 names act 'sing' and agent 0; valid: write, .*, draw and agents"),
        ([Turn(0, 1, 0, "write", (0,))], "turn 0 reads turn 0, which is not an earlier turn"),
        ([Turn(0, 1, 0, "write", (1,)), Turn(1, 1, 1, "write")], "turn 0 reads turn 1"),
        ([Turn(0, 1, 0, "write", (-1,))], "turn 0 reads turn -1"),
        (
            [Turn(0, 1, 0, "write", (External("gossip"),))],
            "external message 'gossip', which the schedule lacks",
        ),
    ],
)
def test_a_schedule_that_breaks_its_contract_is_refused_before_any_call(turns: list[Turn], message: str) -> None:
    run = Run(Listed(2, *turns))
    with pytest.raises(ScheduleError, match=message):
        run_virtual(run.whole())
    assert run.client.asked == []


def test_a_schedule_needs_an_actor_for_every_agent() -> None:
    with pytest.raises(ScheduleError, match=r"^the schedule needs 3 participants; got 2 actors$"):
        Run(Listed(3), actors=[Clerk(), Clerk()])


@pytest.mark.parametrize("step", [4, -3])
def test_a_step_outside_the_schedule_is_refused(step: int) -> None:
    run = Run(Listed(1, Turn(0, step, 0, "write"), steps=3))
    with pytest.raises(ScheduleError, match=r"valid: 0\.\.3"):
        run_virtual(run.whole())


# -- whenever it ends --------------------------------------------------------------------------------


@examples(80)
@given(schedules(), st.integers(1, 4), st.floats(0, 12), st.integers(0, 1), st.booleans())
def test_after_stop_or_cancel_no_task_is_left_and_no_slot_is_held(schedule, slots, at, calls_per_event, hard) -> None:
    async def story() -> None:
        run = Run(schedule, Client(lambda prompt: 0.5 + len(prompt) % 3), slots, calls_per_event=calls_per_event)
        run.engine.start()
        await asyncio.sleep(at)
        in_flight = run.client.in_flight
        arrived = len(run.journal.records)
        if hard:
            await run.engine.cancel()
        else:
            run.engine.stop(OpinionSimError("enough"))
            with pytest.raises(OpinionSimError, match="enough"):
                await run.engine.wait()
            # Calls in flight have arrived, and nothing was asked afterwards.
            assert len(run.journal.records) == arrived + in_flight == len(run.client.asked)
        run.assert_at_rest()
        assert run.client.in_flight == 0
        asked = len(run.client.asked)
        await asyncio.sleep(100)
        assert len(run.client.asked) == asked

    run_virtual(story())
