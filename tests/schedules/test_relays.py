"""Turns that pass on a message, turns that say numbers of others, streams of a run, and closings known in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import opinionsim as osim
from opinionsim.engine import Direction, critical_path, relayed
from opinionsim.errors import ScheduleError
from opinionsim.messages import ChatMessage, Message, Numbers, Said
from opinionsim.schedules import (
    REVIEW,
    WRITE,
    ActSpec,
    Closing,
    External,
    Interaction,
    Schedule,
    Setting,
    SteppedInteraction,
    Turn,
    named,
    with_probes,
)
from opinionsim.testing import run_virtual
from tests.support.engines import Client, Decided, Listed, Run

PUT = ActSpec("put", "", "statement", memory="none", draws=0)
ACTS = named(WRITE, REVIEW, PUT)


def carried_out(run: Run) -> Run:
    run_virtual(run.whole())
    return run


def _listed(*turns: Turn, **declared: Any) -> Listed:
    return Listed(declared.pop("n_agents", 3), *turns, acts=ACTS, **declared)


# -- relays ----------------------------------------------------------------------------------------------------


def test_a_relay_publishes_what_it_reads_and_makes_no_call() -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 2, "put", (0,)), Turn(2, 1, 2, "put", (External("news"),))]
    run = carried_out(Run(_listed(*turns, Turn(3, 1, 1, "review", (1, 2)))))
    messages = [message for _, message in run.engine.graph.transcript()]
    assert [message.text for message in messages] == ["re 0", "re 0", "something happened", "re 3"]
    assert [message.agent for message in messages] == [0, 2, 2, 1]
    assert [message.act for message in messages[1:3]] == ["put", "put"]
    assert run.client.order == ["0", "3"]
    assert run.client.shown["3"] == ["re 0", "something happened"]


def test_a_relay_keeps_author_condition_and_decision_and_takes_agent_role_and_act_of_its_turn() -> None:
    source = Message("Yes.", "Ada", 0, "truncated", "participant", "vote", True, 4)
    found = relayed(Turn(7, 1, 3, "put", (4,)), [source], "clerk")
    assert found == Message("Yes.", "Ada", 3, "truncated", "clerk", "put", True, 4)


@pytest.mark.parametrize(("reads", "number"), [((), 0), ((0, 1), 2)])
def test_a_relay_of_no_message_or_of_two_stops_the_run(reads: tuple[int, ...], number: int) -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "write"), Turn(2, 1, 2, "put", reads)]
    with pytest.raises(ScheduleError, match=rf"^turn 2 \(put\) passes on one message, but received {number}$"):
        run_virtual(Run(_listed(*turns)).whole())


def test_a_relay_of_what_is_not_passed_on_is_skipped_if_its_act_says_so() -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 2, "put", (0,)), Turn(2, 1, 1, "review", (1,))]
    client = Client(says={"0": "refused"})
    schedule = Listed(3, *turns, acts={**ACTS, "put": replace(PUT, unread="skip")})
    assert carried_out(Run(schedule, client)).told == ["refused", "skipped", "skipped"]
    with pytest.raises(ScheduleError, match=r"turn 1 \(put\) passes on one message, but received 0"):
        run_virtual(Run(_listed(*turns), client).whole())


def test_a_relay_takes_no_time_on_the_longest_path() -> None:
    def path(*turns: Turn) -> tuple[int, int, int]:
        found = critical_path(_listed(*turns))
        return found.length, found.calls, found.peak_width

    write, put = Turn(0, 1, 0, "write"), Turn(1, 1, 2, "put", (0,))
    assert path(Turn(0, 1, 2, "put", (External("news"),))) == (0, 0, 0)
    assert path(write, put) == (1, 1, 1)
    assert path(write, put, Turn(2, 1, 2, "put", (1,)), Turn(3, 1, 1, "review", (2,))) == (2, 2, 1)


def test_draws_of_a_member_leave_relays_as_they_are() -> None:
    acts = Direction(draws=3, selector=max).acts(ACTS)
    assert {name: act.draws for name, act in acts.items()} == {"write": 3, "review": 3, "put": 0}


# -- turns of messages -----------------------------------------------------------------------------------------


def test_messages_carry_the_turn_that_led_to_them_and_those_from_outside_none() -> None:
    seen: dict[str, list[int | None]] = {}

    def parse(call: str, text: str, received: tuple[Message, ...]) -> None:
        seen[text] = [message.turn for message in received]

    acts = named(WRITE, replace(REVIEW, parse=parse), PUT)
    turns = [
        *(Turn(0, 1, 0, "write"), Turn(1, 1, 2, "put", (0,))),
        Turn(2, 1, 1, "review", (External("news"), 1, 0)),
    ]

    class Reader:
        """Hands the messages it received to its parse."""

        calls_per_event = 0

        async def act(self, turn: Turn, received: Any, ask: Any, publish: Any) -> None:
            reply = await ask("reply", [ChatMessage("user", str(turn.index))], parse=acts[turn.act].parse)
            publish(Message(reply.text, agent=turn.agent, turn=99))

    run = carried_out(Run(Listed(3, *turns, acts=acts), actors=[Reader()] * 3))
    assert seen["re 2"] == [None, 1, 0]
    assert [message.turn for _, message in run.engine.graph.transcript()] == [0, 1, 2], "whatever an actor says"


# -- numbers of turns, seen from a schedule between questions --------------------------------------------------


class _Told:
    """Outcomes of a run in which every decision is the one given, and opinions tell what was asked for."""

    def __init__(self, decision: Any) -> None:
        self.decided = decision

    async def reply(self, turn: int) -> Message:
        return Message(f"text {turn}", decision=self.decided, turn=turn)

    async def decision(self, turn: int) -> Any:
        return self.decided

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        return turn + (0.0 if about is None else about / 100)


@pytest.mark.parametrize(
    ("decision", "seen"),
    [
        (Numbers({6: {"rank": 1.0}, 7: {"rank": 2.0}}), {2: {"rank": 1.0}, 3: {"rank": 2.0}}),
        (Said.numbers({6: {"rank": 1}}).decision, {2: {"rank": 1}}),
        ({6: "yes", 7: "no"}, {6: "yes", 7: "no"}),  # by agents, say: what is no Numbers is left as it is
        (6, 6),
        (None, None),
    ],
)
def test_numbers_of_turns_are_counted_as_the_schedule_counts_them(decision: Any, seen: Any) -> None:
    found: list[Any] = []

    async def decide(outcomes: Any) -> AsyncIterator[Turn]:
        for index in range(4):
            yield Turn(index, 1, index, "write")
        reply = await outcomes.reply(0)
        found.extend([await outcomes.decision(0), reply.decision, reply.text, reply.turn])
        found.extend([await outcomes.opinion(3), await outcomes.opinion(3, about=1)])

    probed = with_probes(Decided(4, 1, decide, acts=ACTS), 1)

    async def pull() -> None:
        async for _ in probed.decide(_Told(decision)):  # type: ignore[union-attr]
            pass

    asyncio.run(pull())
    assert found == [seen, seen, "text 4", 0, 7.0, 7.05]


# -- closings --------------------------------------------------------------------------------------------------


class _Elected(Interaction):
    """Everybody writes, and the one whose text is longest is shown with questions after that."""

    acts = named(WRITE)
    ends: bool = True

    def steps_for(self, size: int) -> int:
        return 1

    async def decide(self, setting: Setting, outcomes: Any) -> AsyncIterator[Turn | Closing]:
        turns = list(self.outline(setting))
        for turn in turns:
            yield turn
        texts = [(await outcomes.reply(turn.index)).text for turn in turns]
        winner = max(range(len(texts)), key=lambda turn: len(texts[turn]))
        if self.ends and len(set(map(len, texts))) > 1:
            yield Closing(dict.fromkeys(range(setting.size), (winner,)))

    def outline(self, setting: Setting) -> Iterator[Turn]:
        return (Turn(agent, 1, agent, "write") for agent in range(setting.size))

    def closing(self, setting: Setting) -> Mapping[int, tuple[int, ...]]:
        return {agent: (agent,) for agent in range(setting.size)}


@pytest.mark.parametrize(("ends", "expected"), [(True, [(5,)] * 3), (False, [(3,), (4,), (5,)])])
@pytest.mark.parametrize("times", [1, 2])
def test_what_questions_show_in_the_end_follows_the_outcomes(
    ends: bool, expected: list[tuple[int, ...]], times: int
) -> None:
    schedule = _Elected(kind="elected", ends=ends).schedule(Setting.of(3))
    assert schedule.closing() == {0: (0,), 1: (1,), 2: (2,)}, "before the run: the most it may be"
    probed = with_probes(schedule, 1, times)
    assert probed.acts["probe"].labelling == "you-other"
    run = carried_out(Run(probed, Client(says={"5": "a long text"})))
    turns = [turn for turn, _ in run.engine.graph.transcript()]
    assert [turn.reads for turn in turns[:3]] == [()] * 3
    assert [turn.reads for turn in turns[6:]] == expected * times
    assert run.client.shown["6"][-1] == ("a long text" if ends else "re 3")


def test_a_schedule_that_is_carried_out_again_takes_no_closing_from_before() -> None:
    probed = with_probes(_Elected(kind="elected").schedule(Setting.of(3)), 0, 1)
    reads = []
    for says in ({"2": "a long text"}, {}):
        run = carried_out(Run(probed, Client(says=says)))
        reads.append([turn.reads for turn, _ in run.engine.graph.transcript()][3:])
    assert reads == [[(2,)] * 3, [(0,), (1,), (2,)]]


def test_nobody_asks_those_whose_texts_were_written_beforehand() -> None:
    class Given(Schedule):
        n_agents, steps, acts = 3, 1, named(WRITE, PUT)
        externals = MappingProxyType({"text-1": "I was here before."})
        given = MappingProxyType({1: "text-1"})

        def turns(self) -> Iterator[Turn]:
            yield from (Turn(0, 1, 0, "write"), Turn(1, 1, 1, "put", (External("text-1"),)), Turn(2, 1, 2, "write"))

    probed = with_probes(with_probes(Given(), 1, 2), 1, act="self-report")
    found = [(turn.act, turn.agent) for turn in probed.turns()]  # type: ignore[union-attr]
    assert found[:4] == [("self-report", 0), ("self-report", 2), ("probe", 0), ("probe", 2)]
    assert found[7:] == [("probe", 0), ("probe", 2)] * 2
    assert [turn.reads for turn in probed.turns()][5] == (External("text-1"),)  # type: ignore[union-attr]


# -- streams ---------------------------------------------------------------------------------------------------


def test_streams_are_told_apart_by_purpose_and_keys_and_begin_with_each_pass() -> None:
    setting = Setting.of(3, seed=7)
    keys: list[tuple[Any, ...]] = [("schedule",), ("drafts",), ("drafts", 1), ("drafts", 2), ("drafts", 1, 2)]
    keys += [("drafts", 2, 1), ("drafts", 12), ("ballots", 1)]
    drawn = {key: tuple(setting.stream(*key).integers(0, 2**32, 4)) for key in keys}
    assert len(set(drawn.values())) == len(keys)
    again = setting.begun()
    assert all(tuple(again.stream(*key).integers(0, 2**32, 4)) == numbers for key, numbers in drawn.items())
    assert drawn["schedule",] == tuple(setting.begun().rng.integers(0, 2**32, 4))
    assert setting.seed == setting.seed == drawn["schedule",][0]
    assert drawn["drafts",] != tuple(Setting.of(3, seed=8).stream("drafts").integers(0, 2**32, 4))


@osim.part("interaction")
class Drawing(SteppedInteraction):
    """A way of interacting that asks for the random numbers of its run anew in every step."""

    acts = named(WRITE)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        for step in range(self.steps_for(setting.size)):
            agent = int((setting.rng if step % 2 else setting.stream("schedule")).integers(setting.size))
            yield Turn(step, step + 1, agent, "write")


def test_a_stream_goes_on_however_often_it_is_asked_for() -> None:
    setting = Setting.of(5, seed=7)
    schedule: Any = Drawing(steps=40).schedule(setting)
    authors = [turn.agent for turn in schedule.turns()]
    assert authors == Setting.of(5, seed=7).rng.integers(5, size=40).tolist()
    # A pass that was begun and left takes nothing from the next one.
    assert next(schedule.turns()).agent == authors[0]
    assert [turn.agent for turn in schedule.turns()] == authors


def test_numbers_of_two_streams_do_not_follow_each_other() -> None:
    setting = Setting.of(3, seed=7)
    one, other = (np.concatenate([setting.stream(name, key).random(4) for key in range(500)]) for name in ("a", "b"))
    # 2,000 pairs: the standard error of a correlation of 0 is 0.022.
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
    assert abs(np.corrcoef(one[:-4], one[4:])[0, 1]) < 0.1
    assert abs(one.mean() - 0.5) < 0.03
