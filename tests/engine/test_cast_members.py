"""Actors that answer prompts: draws and decisions, roles, and who may stand in a cast."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from opinionsim.engine import (
    Casting,
    Engine,
    Member,
    PersonaActor,
    calls_per_event,
    check_cast,
)
from opinionsim.errors import ModelCallError, Rejected, ScheduleError, SpecError
from opinionsim.llm import Endpoint, EntryKey, MemoryJournal, RunCalls, SlotPool
from opinionsim.messages import ChatMessage, Message, Said
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona, Population
from opinionsim.prompts import load_pack
from opinionsim.registry import NamedPart
from opinionsim.schedules import PROBE, REVIEW, WRITE, ActSpec, Schedule, Turn, n_members, named, unremembered
from opinionsim.testing import run_virtual
from opinionsim.topics import Claim
from tests.support.desk import AT_ONCE


def _longest(texts: Sequence[str]) -> int:
    return max(range(len(texts)), key=lambda place: len(texts[place]))


# -- personas in a run ---------------------------------------------------------------------------------------


class Listed(Schedule):
    """Two personas and a moderator, and whatever they do."""

    n_agents, others, externals = 2, ("moderator",), {"news": "It rained."}

    def __init__(self, acts: Any, *turns: Turn) -> None:
        self.acts, self.listed, self.steps = acts, turns, max((turn.step for turn in turns), default=0)

    def turns(self):
        return iter(self.listed)


class Script:
    """A chat model that gives its replies in turn, and keeps the prompts."""

    def __init__(self, *replies: str | AIMessage) -> None:
        self.replies = replies
        self.prompts: list[str] = []

    async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
        self.prompts.append("\n".join(message.content for message in messages))
        reply = self.replies[len(self.prompts) - 1]
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)


NEUTRAL = OpinionScale()
TEA = Claim("tea is best", "tea", "truth")


def cast_of(schedule: Schedule, memory: str = "cumulative") -> list[PersonaActor]:
    population = Population((Persona("Ann Lee"), Persona("Bo Ek")), (1, -1))
    about = {"population": population, "claim": TEA, "scale": NEUTRAL, "memory": NamedPart(name=memory)}
    return Casting(schedule=schedule, pack=load_pack(), **about).actors()


def carried_out(schedule: Schedule, model: Script, slots: int = 1, **kept: str) -> tuple[list[Message], MemoryJournal]:
    """The messages of a schedule carried out, by default one call at a time, and its journal."""
    journal = MemoryJournal()
    engine = Engine(
        schedule,
        cast_of(schedule, **kept),
        RunCalls("run", journal, [Endpoint(model, replies=AT_ONCE)] * n_members(schedule), SlotPool(slots)),
    )

    async def story() -> list[Message]:
        engine.start()
        await engine.wait()
        return [message for _, message in engine.graph.transcript()]

    return run_virtual(story()), journal


# -- draws ---------------------------------------------------------------------------------------------------


def drawn(model: Script, selector: Any = None, slots: int = 3) -> list[Message]:
    """The message of one turn with three draws."""
    draw = ActSpec("draw", "write", "post", draws=3, selector=selector, parse=lambda call, text, _: f"{call}: {text}")
    return carried_out(Listed(named(draw), Turn(0, 1, 0, "draw")), model, slots=slots)[0]


def test_the_selector_picks_among_all_draws_a_reply_with_its_decision() -> None:
    (message,) = drawn(Script("b", "c", "a"), lambda texts: texts.index(max(texts)))
    assert (message.text, message.decision) == ("c", "reply.2: c")


def test_a_failing_draw_waits_for_the_others() -> None:
    arrived = []

    class Failing(Script):
        async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
            reply = await super().call(messages, seed)
            if len(self.prompts) == 1:
                raise ValueError("the first one failed")
            await asyncio.sleep(5)
            arrived.append(reply.text)
            return reply

    with pytest.raises(ModelCallError, match="the first one failed"):
        drawn(Failing("a", "b", "c"))
    assert arrived == ["b", "c"]


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (lambda texts: 3, r"the selector of act 'draw': it chose 3; valid: 0\.\.2"),
        (lambda texts: -1, r"the selector of act 'draw': it chose -1; valid: 0\.\.2"),
        (lambda texts: "z", r"the selector of act 'draw': it returned a text that is none of the 3 replies: 'z'"),
        (lambda texts: None, r"it must return a position from 0, or one of the texts; got None"),
        (lambda texts: True, r"it must return a position from 0, or one of the texts; got True"),
        (lambda texts: {}["z"], "the selector of act 'draw' failed with KeyError"),
    ],
)
def test_a_selector_that_breaks_says_so(selector: Any, words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        drawn(Script("b", "c", "a"), selector)


def test_what_a_persona_says_carries_its_role_its_act_and_its_decision() -> None:
    vote = ActSpec("vote", "report", "vote", parse=lambda call, text, received: text.startswith("Yes"))
    turns = [Turn(0, 1, 0, "vote"), Turn(1, 1, 1, "vote"), Turn(2, 1, 2, "write", (0, 1))]
    messages, _ = carried_out(Listed(named(vote, WRITE), *turns), Script("Yes.", "No.", "So it is."))
    assert messages == [
        Message("Yes.", "Ann Lee", 0, "answered", "participant", "vote", True, 0),
        Message("No.", "Bo Ek", 1, "answered", "participant", "vote", False, 1),
        Message("So it is.", "", 2, "answered", "moderator", "write", None, 2),
    ]


def test_the_decision_of_a_draw_is_that_of_the_draw_that_is_picked() -> None:
    told: list[tuple[str, str, tuple[str, ...]]] = []

    def counted(call: str, text: str, received: tuple[Message, ...]) -> int:
        told.append((call, text, tuple(message.text for message in received)))
        return len(text)

    draw = ActSpec("draw", "review", "post", draws=3, selector=_longest, parse=counted)
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "draw", (0,))]
    messages, journal = carried_out(Listed(named(draw, WRITE), *turns), Script("Rain.", "No.", "Never.", "Yes."))
    assert (messages[1].text, messages[1].decision) == ("Never.", 6)
    assert told == [("reply", "No.", ("Rain.",)), ("reply.2", "Never.", ("Rain.",)), ("reply.3", "Yes.", ("Rain.",))]
    assert [record.key[1:] for record in journal.records[1:]] == [("reply", 0), ("reply.2", 0), ("reply.3", 0)]


def test_a_draw_that_is_rejected_is_drawn_again_and_the_others_are_not() -> None:
    def brief(call: str, text: str, received: tuple[Message, ...]) -> str:
        if len(text) > 7:
            raise Rejected(f"{len(text)} letters")
        return text[0]

    draw = ActSpec("draw", "write", "post", draws=2, selector=_longest, parse=brief)
    messages, journal = carried_out(
        Listed(named(draw), Turn(0, 1, 0, "draw")), Script("Far too long.", "No.", "Maybe.")
    )
    assert (messages[0].text, messages[0].decision) == ("Maybe.", "M")
    assert {(record.key[1:], record.text, record.acceptance) for record in journal.records} == {
        (("reply", 0), "Far too long.", "rejected"),
        (("reply", 1), "Maybe.", "accepted"),
        (("reply.2", 0), "No.", "accepted"),
    }


@pytest.mark.parametrize("memory", ["reflective", "reflective-as-run"])
def test_reflections_are_not_what_the_act_parses(memory: str) -> None:
    told: list[str] = []

    def brief(call: str, text: str, received: tuple[Message, ...]) -> str:
        told.append(call)
        if len(text) > 7:
            raise Rejected("too long")
        return text

    acts = named(ActSpec("speak", "write", "post", parse=brief))
    turns = [Turn(0, 1, 0, "speak"), Turn(1, 2, 0, "speak")]
    model = Script("Rain.", "I said that it rained, at length.", "Snow.")
    messages, journal = carried_out(Listed(acts, *turns), model, memory=memory)
    assert [message.decision for message in messages] == ["Rain.", "Snow."]
    assert told == ["reply", "reply"]
    assert [record.key for record in journal.records] == [
        (0, "reply", 0),
        (0, "reflect", 0),
        (1, "reply", 0),
    ]
    assert {record.acceptance for record in journal.records} == {"accepted"}
    assert "at length" in model.prompts[2]


@pytest.mark.parametrize("memory", ["none", "cumulative", "reflective", "reflective-as-run"])
def test_everything_an_agent_is_asked_begins_with_its_system_message(memory: str) -> None:
    schedule = Listed(named(WRITE), *(Turn(index, 1 + index, 0, "write") for index in range(3)))
    ann, *_ = cast_of(schedule, memory)
    system = ann.prompts.system()
    assert system is not None
    assert ann.preview("write")[0] == system
    _, journal = carried_out(schedule, Script(*["Rain."] * 5), memory=memory)
    prompts = [record.prompt for record in journal.records]
    assert len(prompts) == (5 if "reflective" in memory else 3)
    for prompt in prompts:
        assert [message.role for message in prompt] == ["system", *["user"] * (len(prompt) - 1)]
        assert prompt[0] == system


def test_what_an_agent_is_asked_shares_what_it_remembers() -> None:
    schedule = Listed(named(WRITE), *(Turn(index, 1 + index, 0, "write") for index in range(4)))
    _, journal = carried_out(schedule, Script(*"abcd"))
    prompts = [record.prompt for record in journal.records]
    assert [len(prompt) for prompt in prompts] == [2, 3, 4, 5]
    for prompt, later in pairwise(prompts):
        # Before its task stands what stood before the last one's, and an event more.
        assert later.before.before is prompt.before


def test_a_refusal_is_remembered_by_whoever_refused_and_received_by_nobody() -> None:
    refusal = AIMessage("", additional_kwargs={"refusal": "I will not."})
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,)), Turn(2, 2, 0, "write")]
    model = Script(refusal, "Snow.")
    messages, _ = carried_out(Listed(named(WRITE, REVIEW), *turns), model)
    assert [(message.text, message.status) for message in messages] == [
        ("I will not.", "refused"),
        ("", "skipped"),
        ("Snow.", "answered"),
    ]
    assert "You were asked to write a post about Theory XYZ, but you did not post anything." in model.prompts[1]
    assert not any("I will not." in prompt for prompt in model.prompts)


#: Bo writes, Ann reviews and writes, Bo reviews that and writes again.
_TALK = (
    *(Turn(0, 1, 1, "write"), Turn(1, 1, 0, "review", (0,)), Turn(2, 2, 0, "write")),
    *(Turn(3, 2, 1, "review", (2,)), Turn(4, 3, 1, "write"), Turn(5, 3, 0, "review", (4,))),
)
_WORDS = ("I like tea.", "So do I.", "Tea it is.", "Well said.", "Tea for two.", "Indeed.")
_REFUSED, _EMPTY = AIMessage("", additional_kwargs={"refusal": "I am a model."}), AIMessage("")
_CUT = AIMessage("I like", response_metadata={"finish_reason": "length"})


def _memories(model: Script) -> list[str]:
    """What stands between the delimiters of memory in the last prompt of each agent, a line each."""
    texts = ("\n".join(prompt.split("</memory>")[:-1]) for prompt in model.prompts[-2:])
    return [
        " ".join(text.replace("</memory>", "").replace("<post>", "").replace("</post>", "").split())
        for prompt in texts
        for text in prompt.split("<memory>")[1:]
    ]


@pytest.mark.parametrize(
    ("at", "reply", "remembered"),
    [
        (
            None,
            AIMessage("I like tea."),
            [
                "You wrote your 1st post about Theory XYZ: I like tea.",
                "After you wrote your 1st post, you saw a post by a stranger on social media: Tea it is. "
                "What you thought and honestly believed about Theory XYZ after seeing it: Well said.",
                "The first post you saw by a stranger on social media was this: I like tea. "
                "What you thought and honestly believed about Theory XYZ after seeing it: So do I.",
                "After you saw the previous post, you wrote your 1st post about Theory XYZ: Tea it is.",
            ],
        ),
        (
            1,
            _REFUSED,
            [
                "You wrote your 1st post about Theory XYZ: I like tea.",
                "After you wrote your 1st post, you saw a post by a stranger on social media: Tea it is. "
                "What you thought and honestly believed about Theory XYZ after seeing it: Well said.",
                "The first post you saw by a stranger on social media was this: I like tea. "
                "You did not say what you believed about Theory XYZ after seeing it.",
                "After you saw the previous post, you wrote your 1st post about Theory XYZ: Tea it is.",
            ],
        ),
        (
            2,
            _EMPTY,
            [
                "You wrote your 1st post about Theory XYZ: I like tea.",
                "The first post you saw by a stranger on social media was this: I like tea. "
                "What you thought and honestly believed about Theory XYZ after seeing it: So do I.",
                "After you saw the previous post, you were asked to write a post about Theory XYZ, "
                "but you did not post anything.",
            ],
        ),
        (
            0,
            _CUT,
            [
                "You wrote your 1st post about Theory XYZ: I like",
                "After you wrote your 1st post, you saw a post by a stranger on social media: Tea it is. "
                "What you thought and honestly believed about Theory XYZ after seeing it: Well said.",
                "The first post you saw by a stranger on social media was this: I like "
                "What you thought and honestly believed about Theory XYZ after seeing it: So do I.",
                "After you saw the previous post, you wrote your 1st post about Theory XYZ: Tea it is.",
            ],
        ),
    ],
    ids=["all answered", "a refused review", "an empty post", "a post cut off"],
)
def test_what_later_prompts_hold_of_each_kind_of_reply(at: int | None, reply: AIMessage, remembered: list[str]) -> None:
    replies: list[str | AIMessage] = list(_WORDS)
    if at is not None:
        replies[at] = reply
    if at == 2:
        del replies[3]  # nobody reviews the post that was not written
    model = Script(*replies)
    carried_out(Listed(named(WRITE, REVIEW), *_TALK), model)
    assert _memories(model) == remembered
    assert not any("I am a model." in prompt for prompt in model.prompts)


def test_a_refused_reflection_leaves_what_the_agent_has_been_through() -> None:
    turns = (Turn(index, 1 + index, 0, "write") for index in range(4))
    model = Script("Rain.", "It rained.", "Snow.", _REFUSED, "Hail.", "It hailed.", "Sun.")
    carried_out(Listed(named(WRITE), *turns), model, memory="reflective")
    _, _, second, failed, third, later, fourth = model.prompts
    assert "It rained." in second
    for prompt in (failed, third, later):
        assert "It rained." in prompt
        assert "Snow." in prompt
    assert "It hailed." in fourth
    assert "Snow." not in fourth
    assert not any("I am a model." in prompt for prompt in model.prompts)


@pytest.mark.parametrize("memory", ["reflective", "reflective-as-run"])
@pytest.mark.parametrize("asked_after", [True, False])
def test_a_reflection_that_no_later_turn_reads_is_not_asked_for(memory: str, asked_after: bool) -> None:
    turns = [Turn(index, 1, agent, "write") for index, agent in enumerate((0, 1, 0))]
    turns += [Turn(3, 1, 0, "probe")] * asked_after
    schedule = Listed(named(WRITE, PROBE), *turns)
    _, journal = carried_out(schedule, Script(*["Rain."] * 6), memory=memory)
    reflected = [record.key.turn for record in journal.records if record.key.call == "reflect"]
    assert reflected == ([0, 2] if asked_after else [0])
    assert unremembered(schedule) == {1, *([] if asked_after else [2])}


def test_a_member_beside_the_participants_has_a_role_and_no_persona() -> None:
    schedule = Listed(named(WRITE), Turn(0, 1, 2, "write"))
    moderator = cast_of(schedule)[2]
    assert (moderator.agent, moderator.role, moderator.prompts.name) == (2, "moderator", "")
    fork = moderator.fork()
    assert (fork.agent, fork.role, fork.calls_per_event) == (2, "moderator", 0)
    messages, _ = carried_out(schedule, Script("Order!"))
    assert messages == [Message("Order!", "", 2, "answered", "moderator", "write", turn=0)]


@pytest.mark.parametrize(("memory", "calls"), [("none", 0), ("cumulative", 0), ("reflective", 1)])
def test_members_say_what_it_costs_them_to_remember(memory: str, calls: int) -> None:
    schedule = Listed(named(WRITE), Turn(0, 1, 2, "write"))
    ann, _, moderator = cast_of(schedule, memory=memory)
    assert (calls_per_event(ann), calls_per_event(ann.fork()), calls_per_event(moderator)) == (calls, calls, 0)
    assert calls_per_event(object()) == 0  # type: ignore[arg-type]


def test_of_a_run_the_agent_of_its_first_lasting_turn_leads() -> None:
    """Bo is probed and writes before Ann: Bo's first reflection alone has the wording of a first one."""
    schedule = Listed(
        named(WRITE, PROBE),
        Turn(0, 0, 0, "probe"),
        *(Turn(index, index, agent, "write") for index, agent in enumerate((1, 0, 1, 0), 1)),
    )
    ann, bo, _ = cast_of(schedule, "reflective-as-run")
    assert (ann.memory.leads, bo.memory.leads) == (False, True)
    model = Script("No.", "Rain.", "It rained.", "Snow.", "It snowed.", "Hail.", "Sun.")
    carried_out(schedule, model, memory="reflective-as-run")
    first, later = (prompt for prompt in model.prompts if "a moment to reflect" in prompt)
    assert "sum it up" in first
    assert "sum it up" not in later


# -- casts ---------------------------------------------------------------------------------------------------


class Somebody:
    """An actor of one's own."""

    async def act(self, turn: Turn, received: Sequence[Message], ask: Any, publish: Any) -> None:
        publish(Message("Here."))

    def fork(self) -> Somebody:
        return self


def _cast(*roles: str, names: Sequence[str] = ("Ann", "Bo", "Cy", "Di")) -> list[Member]:
    return [Member(Somebody(), role, name=name) for role, name in zip(roles, names, strict=False)]


SCHEDULE = Listed(named(WRITE))


def test_a_cast_that_fits() -> None:
    check_cast(SCHEDULE, _cast("participant", "participant", "moderator"))


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (["participant"] * 2, r"needs 2 participants and others \(moderator\); the cast has 2 and no others$"),
        (["participant", "moderator"], r"2 participants and others \(moderator\); the cast has 1 and others \(moder"),
        (["participant"] * 2 + ["moderator"] * 2, r"the cast has 2 and others \(moderator, moderator\)$"),
        (["participant"] * 3, "member 2 must have the role moderator; got participant"),
        (["participant"] * 2 + ["critic"], "member 2 must have the role moderator; got critic"),
        (["participant", "moderator", "participant"], "member 1 must have the role participant; got moderator"),
    ],
)
def test_a_cast_that_does_not_fit_its_schedule(roles: list[str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        check_cast(SCHEDULE, _cast(*roles))


def test_nobody_has_two_roles() -> None:
    twins = _cast("participant", "participant", "moderator", names=["Ann", "Bo", "Bo"])
    with pytest.raises(
        SpecError, match=r"member 2 \(moderator\) is also the participant 1, Bo; a member can have only one role"
    ):
        check_cast(SCHEDULE, twins)
    ann, bo, _ = _cast("participant", "participant", "moderator")
    with pytest.raises(SpecError, match=r"member 2 \(moderator\) is also the participant 0, Ann; a member can"):
        check_cast(SCHEDULE, [ann, bo, Member(ann.actor, "moderator", name="Di")])
    nameless = _cast("participant", "participant", "moderator", names=["", "", ""])
    check_cast(SCHEDULE, nameless)


def test_a_cast_is_that_of_a_schedule_that_declares_what_it_has_to() -> None:
    with pytest.raises(ScheduleError, match="object declares no n_agents"):
        check_cast(object(), [])  # type: ignore[arg-type]


def test_instruments_are_told_name_attributes_and_assigned_opinion() -> None:
    member = Member(Somebody(), name="Ann", opinion=1.0, attributes={"age": "29"})
    assert member.author.persona == (("name", "Ann"), ("age", "29"))
    assert member.author.assigned_opinion == 1.0
    assert Member(Somebody()).author == Member(Somebody(), "critic").author


# -- words that are not the whole reply -----------------------------------------------------------------------


def _aside(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """What stands before a bar is for others."""
    return Said(text.partition("|")[0], len(text))


def test_others_and_the_memory_have_the_words_and_not_the_rest_of_a_reply() -> None:
    acts = named(replace(WRITE, parse=_aside), REVIEW)
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,)), Turn(2, 2, 0, "write")]
    model = Script("It rains.|I made that up.", "So it does.", "Still.|Ha!")
    messages, journal = carried_out(Listed(acts, *turns), model)
    assert [(message.text, message.decision) for message in messages[::2]] == [("It rains.", 25), ("Still.", 10)]
    assert journal.lookup(EntryKey(0, "reply", 0)).text == "It rains.|I made that up."
    assert all("It rains." in prompt and "made that up" not in prompt for prompt in model.prompts[1:])


def test_who_decides_without_words_remembers_that_nothing_was_said_and_nobody_hears_it() -> None:
    acts = named(replace(WRITE, parse=_aside), REVIEW)
    turns = [Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,)), Turn(2, 2, 0, "write")]
    model = Script("|I hold my tongue.", "Now.|")
    messages, _ = carried_out(Listed(acts, *turns), model)
    assert [(message.text, message.status, message.decision) for message in messages[::2]] == [
        ("", "silent", 18),
        ("Now.", "answered", 5),
    ]
    assert messages[1].status == "skipped", "there was nothing to review"
    assert "you did not post anything" in model.prompts[-1]
    assert not any("hold my tongue" in prompt for prompt in model.prompts)


def test_of_several_draws_one_with_words_is_picked_before_silence() -> None:
    acts = named(replace(WRITE, parse=_aside, draws=3))
    messages, _ = carried_out(Listed(acts, Turn(0, 1, 0, "write")), Script("|No.", "Yes.|", "|Perhaps."))
    assert (messages[0].text, messages[0].status) == ("Yes.", "answered")
    silent, _ = carried_out(Listed(acts, Turn(0, 1, 0, "write")), Script("|No.", "|Yes.", "|Perhaps."))
    assert (silent[0].text, silent[0].status, silent[0].decision) == ("", "silent", 4)
