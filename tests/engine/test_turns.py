"""What turns read, skip and decide: refused and skipped messages, decisions, opinions, and the cast that acts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.engine import Engine
from opinionsim.errors import ModelCallError, Rejected, ScheduleError
from opinionsim.messages import ChatMessage, Message, take_as_is
from opinionsim.schedules import PROBE, REVIEW, WRITE, ActSpec, External, Turn, named
from opinionsim.testing import run_virtual
from tests.support.engines import ACTS, Clerk, Client, Decided, Listed, Run


def carried_out(run: Run) -> Run:
    run_virtual(run.whole())
    return run


# -- what a turn reads ---------------------------------------------------------------------------------------


def test_what_is_not_there_yet_cannot_be_read() -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,))]

    async def story() -> None:
        run = Run(Listed(2, *turns))
        run.engine.start()
        with pytest.raises(ScheduleError, match="a turn reads turn 0, which has not published yet"):
            run.engine.graph.received(turns[1])
        with pytest.raises(ScheduleError, match="turn 0 has not published"):
            run.engine.graph.published(0)
        await run.engine.wait()
        assert run.engine.graph.published(1) == (turns[1], Message("re 1", agent=1, act="review", turn=1))

    run_virtual(story())


@pytest.mark.parametrize("kind", ["refused", "empty"])
def test_a_turn_that_has_nothing_left_to_read_is_skipped_and_asks_nobody(kind: str) -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,))]
    run = carried_out(Run(Listed(2, *turns), Client(says={"0": kind})))
    assert run.told == [kind, "skipped"]
    assert run.client.order == ["0"]
    (_, message) = run.engine.graph.published(1)
    assert message == Message("", agent=1, status="skipped", role=message.role, act="review", turn=1)
    assert run.journal.lookup((1, "reply", 0)) is None  # type: ignore[arg-type]


def test_of_two_messages_the_one_that_is_left_is_read() -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "write"), Turn(2, 1, 2, "review", (0, 1))]
    run = carried_out(Run(Listed(3, *turns), Client(says={"0": "refused"})))
    assert run.told == ["refused", "re 1", "re 2"]
    assert run.client.shown["2"] == ["re 1"]
    assert [message.text for message in run.engine.graph.received(turns[2])] == ["re 1"]


def test_an_act_may_be_carried_out_without_what_it_was_to_read() -> None:
    acts = named(WRITE, replace(REVIEW, unread="ask"))
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,))]
    run = carried_out(Run(Listed(2, *turns, acts=acts), Client(says={"0": "refused"})))
    assert run.told == ["refused", "re 1"]
    assert run.client.shown["1"] == []


def test_a_turn_that_reads_nothing_is_never_skipped() -> None:
    run = carried_out(Run(Listed(1, Turn(0, 1, 0, "review"))))
    assert run.told == ["re 0"]


def test_messages_that_were_cut_short_are_read() -> None:
    class Cut(Client):
        async def call(self, messages: Sequence[ChatMessage], seed: int) -> Any:
            reply = await super().call(messages, seed)
            reply.response_metadata["finish_reason"] = "length"
            return reply

    run = carried_out(Run(Listed(2, Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,))), Cut()))
    assert run.told == ["truncated", "truncated"]
    assert run.client.shown["1"] == ["re 0"]


def test_whoever_reads_a_skipped_message_is_skipped_too() -> None:
    """A refusal goes through a chain of three, until somebody also reads something else."""
    turns = [
        Turn(0, 1, 0, "write"),
        *(Turn(index, 1, index, "review", (index - 1,)) for index in (1, 2, 3)),
        Turn(4, 1, 0, "review", (3, External("news"))),
        Turn(5, 1, 1, "review", (4,)),
    ]
    run = carried_out(Run(Listed(4, *turns), Client(says={"0": "refused"})))
    assert run.told == ["refused", "skipped", "skipped", "skipped", "re 4", "re 5"]
    assert (run.client.shown["4"], run.client.shown["5"]) == (["I will not.", "something happened"], ["re 4"])


def test_messages_from_outside_may_be_no_answers_either() -> None:
    externals = {"news": Message("It rained.", status="refused"), "radio": "It snowed."}
    turns = [
        Turn(0, 1, 0, "review", (External("news"),)),
        Turn(1, 1, 0, "review", (External("news"), External("radio"))),
    ]
    run = carried_out(Run(Listed(1, *turns, externals=externals)))
    assert run.told == ["skipped", "re 1"]
    assert run.client.shown["1"] == ["It snowed."]


@pytest.mark.parametrize(("unread", "told"), [("skip", "skipped"), ("ask", "re 1")])
@pytest.mark.parametrize("memory", ["fork", "none"])
def test_a_question_off_the_record_that_reads_a_refusal(memory: Any, unread: Any, told: str) -> None:
    acts = named(WRITE, replace(PROBE, memory=memory, unread=unread))
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "probe", (0,)), Turn(2, 1, 1, "write")]
    run = carried_out(Run(Listed(2, *turns, acts=acts), Client(says={"0": "refused"})))
    assert run.told == ["refused", told, "re 2"]
    assert run.engine.graph.received(turns[1]) == []


def test_a_skipped_turn_frees_its_agent_and_leaves_nothing_in_its_memory() -> None:
    turns = [
        Turn(0, 1, 0, "write"),
        Turn(1, 1, 1, "write"),
        Turn(2, 1, 1, "review", (0,)),
        Turn(3, 2, 1, "write"),
        Turn(4, 2, 1, "probe"),
    ]
    run = Run(Listed(2, *turns), Client(says={"0": "refused"}), calls_per_event=1)
    # Two replies and two reflections of agent 1, one after another, and the probe.
    assert run_virtual(run.whole()) == 5.0
    assert run.told == ["refused", "re 1", "skipped", "re 3", "re 4"]
    assert run.client.shown["3"] == ["re 1"]
    assert run.client.shown["4"] == ["re 1", "re 3"]
    assert "2 reflect" not in run.client.order


def test_a_fork_after_a_skipped_turn_has_the_memory_before_it() -> None:
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "write"), Turn(2, 1, 1, "review", (0,)), Turn(3, 1, 1, "probe")]
    client = Client(lambda prompt: 7.0 if prompt == "0" else 1.0, says={"0": "refused"})
    run = carried_out(Run(Listed(2, *turns), client))
    assert run.told[2:] == ["skipped", "re 3"]
    assert (client.shown["3"], dict(map(reversed, client.asked))["3"]) == (["re 1"], 7.0)


def test_steps_are_done_although_all_their_turns_are_skipped() -> None:
    turns = [Turn(0, 1, 0, "write"), *(Turn(index, index, 1, "review", (index - 1,)) for index in (1, 2, 3))]

    async def story() -> None:
        run = Run(Listed(2, *turns), Client(says={"0": "refused"}), horizon=1)
        run.engine.start()
        for step in (1, 2, 3):
            await run.engine.wait_step(step)
            assert asyncio.get_running_loop().time() == 1.0
            run.engine.allow(step + 1)
        await run.engine.wait()
        assert run.told == ["refused", "skipped", "skipped", "skipped"]
        run.assert_at_rest()

    run_virtual(story())


@st.composite
def readings(draw: st.DrawFn) -> tuple[list[Turn], dict[str, str]]:
    """Turns that read earlier ones, and which of them refuse."""
    turns = []
    for index in range(draw(st.integers(1, 14))):
        act = draw(st.sampled_from(["write", "review", "probe", "report-once"]))
        reads = draw(st.lists(st.integers(0, index - 1), max_size=3, unique=True)) if index else []
        turns.append(Turn(index, 1, draw(st.integers(0, 3)), act, tuple(reads)))
    refusing = draw(st.sets(st.integers(0, len(turns) - 1)))
    return turns, {f"{index}": draw(st.sampled_from(["refused", "empty"])) for index in refusing}


@given(readings())
def test_everybody_receives_what_was_said_and_is_skipped_where_nothing_was(story: tuple[list[Turn], Any]) -> None:
    turns, says = story
    run = carried_out(Run(Listed(4, *turns), Client(says=says)))
    spoke: dict[int, str] = {}
    for turn, told in zip(turns, run.told, strict=True):
        received = [spoke[ref] for ref in turn.reads if ref in spoke]
        assert [message.text for message in run.engine.graph.received(turn)] == received
        if turn.act == "review" and turn.reads and not received:
            assert (told, f"{turn.index}" in run.client.order) == ("skipped", False)
            continue
        assert told == says.get(f"{turn.index}", f"re {turn.index}")
        shown = run.client.shown[f"{turn.index}"]
        assert shown[len(shown) - len(received) :] == received
        if told not in ("refused", "empty"):
            spoke[turn.index] = told


# -- what is decided -----------------------------------------------------------------------------------------


def digits(call: str, text: str, received: tuple[Message, ...]) -> int:
    """The number a text ends with, and how many messages it was about."""
    if "?" in text:
        raise Rejected("it is a question")
    return 10 * len(received) + int(text[-1])


VOTE = ActSpec("vote", "report", "vote", parse=digits, attempts=2, after="none")


def test_a_schedule_follows_what_was_decided() -> None:
    seen: list[object] = []

    async def decide(outcomes: Any) -> Any:
        yield Turn(0, 1, 0, "write")
        yield Turn(1, 1, 1, "vote", (0,))
        seen.append(await outcomes.decision(0))
        chosen = await outcomes.decision(1)
        seen.append(chosen)
        assert (await outcomes.reply(1)).decision == chosen
        yield Turn(2, 2, chosen % 10, "write")

    run = carried_out(Run(Decided(3, 2, decide, acts=named(WRITE, VOTE)), Client(says={"1": "for 2"})))
    assert seen == [None, 12]
    assert [turn.agent for turn, _ in run.engine.graph.transcript()] == [0, 1, 2]


def test_what_is_rejected_to_the_end_refused_or_skipped_decides_nothing() -> None:
    acts = named(WRITE, VOTE, replace(VOTE, name="poll", unread="skip"))
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "vote"), Turn(2, 1, 2, "poll", (0,)), Turn(3, 1, 3, "vote")]
    client = Client(says={"0": "refused", "1": "Who?", "3": "empty"})
    run = carried_out(Run(Listed(4, *turns, acts=acts), client))
    assert run.told == ["refused", "Who?", "skipped", "empty"]
    assert [message.decision for _, message in run.engine.graph.transcript()] == [None] * 4
    assert client.order.count("1") == 2


def test_an_act_is_parsed_with_what_its_turn_had_received() -> None:
    """Not with what it was to read, nor with what was refused."""
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 0, "write"), Turn(2, 1, 1, "vote", (External("news"), 0, 1))]
    run = carried_out(Run(Listed(2, *turns, acts=named(WRITE, VOTE)), Client(says={"0": "refused", "2": "for 3"})))
    assert run.engine.graph.published(2)[1].decision == 23


def test_a_rejected_reply_is_asked_for_again_and_holds_up_its_readers_alone() -> None:
    class Doubting(Client):
        async def call(self, messages: Sequence[ChatMessage], seed: int) -> Any:
            reply = await super().call(messages, seed)
            return reply if self.order.count("0") > 1 else reply.model_copy(update={"content": "Who?"})

    turns = [Turn(0, 1, 0, "vote"), Turn(1, 1, 1, "write"), Turn(2, 1, 2, "write", (0,))]
    run = Run(Listed(3, *turns, acts=named(WRITE, VOTE)), Doubting())
    assert run_virtual(run.whole()) == 3.0
    assert run.told == ["re 0", "Who?", "re 2"]
    assert run.client.asked == [(0.0, "0"), (0.0, "1"), (1.0, "0"), (2.0, "2")]


def test_parts_that_are_not_the_acts_are_read_as_their_actor_says() -> None:
    told: list[str] = []

    def once(call: str, text: str, received: tuple[Message, ...]) -> str:
        told.append(call)
        return text

    class Judging(Clerk):
        async def act(self, turn: Turn, received: Any, ask: Any, publish: Any) -> None:
            prompt = [ChatMessage("user", f"{turn.index}")]
            own = await ask("reply", prompt)
            judged = await ask("judge", prompt, parse=lambda call, text, _: (call, len(text)))
            kept = await ask("reflect", prompt, parse=take_as_is)
            publish(Message(own.text, decision=(own.decision, judged.decision, kept.decision)))

    act = ActSpec("speak", "write", "post", parse=once)
    run = carried_out(Run(Listed(1, Turn(0, 1, 0, "speak"), acts=named(act)), actors=[Judging()]))
    assert told == ["reply"]
    assert run.engine.graph.published(0)[1].decision == ("re 0", ("judge", 4), None)


@pytest.mark.parametrize("parse", [None, take_as_is])
def test_parts_with_a_parse_of_their_own_are_told_what_the_turn_had_received(parse: Any) -> None:
    """And are asked for as often as the act allows."""
    told: list[tuple[str, tuple[str, ...]]] = []

    class Asking(Clerk):
        async def act(self, turn: Turn, received: Any, ask: Any, publish: Any) -> None:
            def noted(call: str, text: str, heard: tuple[Message, ...]) -> None:
                told.append((call, tuple(message.text for message in heard)))
                raise Rejected("once more")

            prompt = [ChatMessage("user", f"{turn.index}")]
            publish(Message((await ask("reply", prompt)).text))
            await ask("judge", prompt, parse=noted)

    acts = named(WRITE, ActSpec("speak", "write", "post", parse=parse, attempts=2, after="none"))
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 0, "write"), Turn(2, 1, 1, "speak", (External("news"), 0, 1))]
    carried_out(Run(Listed(2, *turns, acts=acts), Client(says={"0": "refused"}), actors=[Clerk(), Asking()]))
    assert told == [("judge", ("something happened", "re 1"))] * 2


def test_a_reply_that_cannot_be_used_stops_the_run_with_its_place_and_reason() -> None:
    acts = named(replace(VOTE, after="stop"), WRITE)
    turns = [Turn(0, 1, 0, "write"), Turn(1, 2, 1, "vote"), Turn(2, 3, 0, "write", (1,))]
    run = Run(Listed(2, *turns, acts=acts), Client(says={"1": "Who?"}))
    words = r"run run, step 2, turn 1, agent 1 \(vote\): none of 2 replies was acceptable; the last one: it is a q"
    with pytest.raises(ModelCallError, match=words):
        run_virtual(run.whole())
    assert run.published == [0]


def test_a_parse_that_breaks_stops_the_run_and_is_made_good_by_a_mended_one() -> None:
    turns = [Turn(0, 1, 0, "vote"), Turn(1, 2, 1, "write", (0,))]
    run = Run(Listed(2, *turns, acts=named(WRITE, VOTE)), Client(says={"0": "nobody"}))
    with pytest.raises(ScheduleError, match=r"run run, step 1, turn 0, agent 0 \(vote\), call 'reply': parse failed"):
        run_virtual(run.whole())
    acts = named(WRITE, replace(VOTE, parse=lambda call, text, received: len(text)))
    again = carried_out(Run(Listed(2, *turns, acts=acts), journal=run.journal))
    assert again.told == ["nobody", "re 1"]
    assert again.engine.graph.published(0)[1].decision == 6
    assert (again.calls.made, again.client.order) == (1, ["1"])


# -- opinions that a schedule acts on ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("says", "turn", "rated", "value"),
    [
        ({}, 1, [("stance", 1)], 0.5),
        ({"0": "refused"}, 0, [], math.nan),
        ({"0": "empty"}, 0, [], math.nan),
        ({"0": "refused"}, 1, [], math.nan),
    ],
    ids=["answered", "refused", "empty", "skipped"],
)
def test_the_opinion_of_what_is_no_answer_is_none_and_nobody_rates_it(
    says: dict[str, str], turn: int, rated: list[tuple[str, int]], value: float
) -> None:
    asked: list[tuple[str, int]] = []
    seen: list[float] = []

    async def rate(site: Turn, message: Message, instrument: str, about: int | None) -> float:
        asked.append((instrument, site.index))
        return 0.5

    async def decide(outcomes: Any) -> Any:
        yield Turn(0, 1, 0, "write")
        yield Turn(1, 1, 1, "review", (0,))
        seen.append(await outcomes.opinion(turn))

    carried_out(Run(Decided(2, 1, decide), Client(says=says), rate=rate))
    assert asked == rated
    assert seen == pytest.approx([value], nan_ok=True)


def test_each_instrument_is_asked_by_its_name() -> None:
    seen: list[float] = []

    async def rate(turn: Turn, message: Message, instrument: str, about: int | None) -> float:
        assert message.text == "re 0"
        return {"stance": 1.0, "tone": -2.0}[instrument]

    async def decide(outcomes: Any) -> Any:
        yield Turn(0, 1, 0, "write")
        seen.extend([await outcomes.opinion(0, "tone"), await outcomes.opinion(0)])

    carried_out(Run(Decided(1, 1, decide, needs=("tone", "stance")), rate=rate))
    assert seen == [-2.0, 1.0]


@pytest.mark.parametrize(("needs", "listed"), [((), "none"), (("tone",), "tone"), (("tone", "mood"), "tone, mood")])
def test_an_opinion_nobody_was_told_of_stops_the_run(needs: tuple[str, ...], listed: str) -> None:
    async def decide(outcomes: Any) -> Any:
        yield Turn(0, 1, 0, "write")
        await outcomes.opinion(0, "stance")

    async def rate(turn: Turn, message: Message, instrument: str, about: int | None) -> float:
        raise AssertionError("nothing is to be measured")

    run = Run(Decided(1, 1, decide, needs=needs), rate=rate)
    words = f"Decided acts on 'stance', which its needs do not declare; declared: {listed}$"
    with pytest.raises(ScheduleError, match=words):
        run_virtual(run.whole())


# -- the cast ------------------------------------------------------------------------------------------------


def test_others_act_like_participants() -> None:
    turns = [
        Turn(0, 1, 0, "write"),
        Turn(1, 1, 2, "review", (0,)),
        Turn(2, 2, 3, "write"),
        Turn(3, 2, 2, "write", (2,)),
    ]
    run = carried_out(Run(Listed(2, *turns, others=("moderator", "critic"))))
    assert run.told == ["re 0", "re 1", "re 2", "re 3"]
    assert [(message.agent, message.act) for _, message in run.engine.graph.transcript()] == [
        (0, "write"),
        (2, "review"),
        (3, "write"),
        (2, "write"),
    ]
    assert run.client.shown["3"] == ["re 1", "re 2"]


@pytest.mark.parametrize("n_actors", [0, 2, 4])
def test_a_cast_has_an_actor_for_every_member_and_no_more(n_actors: int) -> None:
    schedule = Listed(2, others=("moderator",))
    told = rf"the schedule needs 2 participants and others \(moderator\); got {n_actors} actors"
    with pytest.raises(ScheduleError, match=told):
        Engine(schedule, [Clerk() for _ in range(n_actors)], Run(schedule).calls)


def test_nobody_beyond_the_cast_acts() -> None:
    run = Run(Listed(2, Turn(0, 1, 3, "write"), others=("moderator",)))
    with pytest.raises(ScheduleError, match=r"names act 'write' and agent 3; valid: .* and agents 0\.\.2"):
        run_virtual(run.whole())


def test_messages_from_outside_may_be_plain_text() -> None:
    externals = {"news": "It rained.", "radio": Message("It snowed.", "the radio")}
    turn = Turn(0, 1, 0, "review", (External("news"), External("radio")))
    run = carried_out(Run(Listed(1, turn, externals=externals)))
    assert run.client.shown["0"] == ["It rained.", "It snowed."]
    assert run.engine.graph.received(turn) == [Message("It rained."), Message("It snowed.", "the radio")]


@pytest.mark.parametrize("name", ["acts", "others", "externals", "needs"])
def test_a_schedule_that_lacks_a_declaration_is_refused_by_name(name: str) -> None:
    declared = {"n_agents": 1, "steps": 0, "acts": ACTS, "others": (), "externals": {}, "needs": ()}
    bare = type("Bare", (), {"turns": lambda self: iter(()), **{k: v for k, v in declared.items() if k != name}})
    with pytest.raises(ScheduleError, match=f"^Bare declares no {name}; inherit from opinionsim.schedules.Schedule"):
        Engine(bare(), [Clerk()], Run(Listed(1)).calls)
