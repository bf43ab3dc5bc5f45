"""Memories: what each keeps, what it asks for, and what a budget leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim import messages
from opinionsim.errors import SpecError
from opinionsim.memory import Memory, NoMemory, estimated_tokens
from opinionsim.messages import EMPTY_PROMPT, ChatMessage, Message, Parse, Prompt, Reply, take_as_is
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts import Addressee, AgentPrompts, Past, PromptPack, load_pack
from opinionsim.registry import built_in, find
from opinionsim.schedules import REPORT, REVIEW, WRITE, named
from opinionsim.topics import Claim

ACTS = named(WRITE, REVIEW, REPORT)
_PACK = load_pack()


def _pack_without(names: set[str]) -> PromptPack:
    """The default pack without some of its templates."""
    contents = {file: text for file, text in _PACK.contents.items() if file.removesuffix(".j2") not in names}
    cues = contents["pack.yaml"].splitlines(keepends=True)
    kept = (line for line in cues if line.strip().partition(":")[0] not in names)
    return PromptPack.from_contents("mine", {**contents, "pack.yaml": "".join(kept)})


def _prompts(pack: PromptPack = _PACK) -> AgentPrompts:
    claim = Claim("the Earth is flat", "flat-earth", "falsehood")
    return pack.for_agent(Addressee(OpinionScale(), persona=Persona("Ann Lee"), opinion=0, claim=claim))


def _memory(kind: str) -> Any:
    """The class of a memory."""
    return find("memory", kind).target


_PROMPTS = _prompts()
_SYSTEM = ChatMessage("system", "You are Ann Lee.")
_START = Prompt.of([_SYSTEM])

#: An act with what it read and what was answered.
Event = tuple[str, tuple[Message, ...], str]

_TEXTS = st.text(max_size=60)
_EVENTS = st.lists(
    st.tuples(st.just("write"), st.just(()), _TEXTS)
    | st.tuples(st.just("report"), st.just(()), _TEXTS)
    | st.tuples(st.just("review"), st.tuples(_TEXTS.map(Message)), _TEXTS),
    max_size=8,
)


class Model:
    """Answers the n-th request with ``reflection n``, and keeps what it was asked after the system message.

    Of the requests `refusing`, counted from 1, it refuses every odd one and answers nothing to every even one.
    """

    def __init__(self, refusing: Collection[int] = ()) -> None:
        self.refusing = refusing
        self.asked: list[tuple[str, tuple[ChatMessage, ...], int]] = []
        self.parsed_by: list[Parse | None] = []

    async def __call__(
        self, call: str, messages: Iterable[ChatMessage], *, parse: Parse | None = None, dropped: int = 0
    ) -> Reply:
        system, *asked = messages
        assert system == _SYSTEM
        self.asked.append((call, tuple(asked), dropped))
        self.parsed_by.append(parse)
        if len(self.asked) in self.refusing:
            return Reply("I'm sorry, I cannot reflect.", "refused") if len(self.asked) % 2 else Reply("", "empty")
        return Reply(f"reflection {len(self.asked)}")


def _lives(
    kind: str,
    events: Sequence[Event],
    *,
    budget: int | None = None,
    leads: bool = False,
    prompts: AgentPrompts = _PROMPTS,
    refusing: Collection[int] = (),
) -> tuple[list[Memory], Model]:
    """The memory after each event, from the empty one on."""
    model = Model(refusing)

    async def live() -> list[Memory]:
        memory = _memory(kind)(prompts, budget, _START, leads=leads)
        memories = [memory]
        for act, received, text in events:
            memory = await memory.remember(ACTS[act], received, Reply(text), model)
            memories.append(memory)
        return memories

    return asyncio.run(live()), model


def _told(memory: Memory) -> tuple[ChatMessage, ...]:
    """What a memory puts behind the system message."""
    system, *told = memory.prompt()
    assert system == _SYSTEM
    return tuple(told)


_THREE: list[Event] = [
    ("write", (), "Words one."),
    ("review", (Message("Cows can swim."),), "Words two."),
    ("write", (), "Words three."),
]


@given(_EVENTS)
def test_cumulative_messages_are_a_prefix_of_all_later_ones(events: list[Event]) -> None:
    memories, model = _lives("cumulative", events)
    for number, (memory, later) in enumerate(pairwise(memories)):
        assert _told(later)[:-1] == _told(memory)
        assert len(_told(memory)) == number
        assert memory.dropped == 0
    assert model.asked == []
    assert _told(memories[0]) == ()


def test_prompts_of_a_cumulative_memory_share_what_they_begin_with() -> None:
    memories, _ = _lives("cumulative", _THREE)
    assert memories[0].prompt() is _START
    for memory, later in pairwise(memories):
        assert later.prompt().before is memory.prompt()
    task = ChatMessage("user", "Write.")
    assert memories[3].prompt().then(task).before is memories[3].prompt()


@given(_EVENTS, st.sampled_from(sorted(built_in("memory"))))
def test_prompts_of_an_agent_share_their_beginning_byte_for_byte(events: list[Event], kind: str) -> None:
    sent = [_bytes(memory.prompt()) for memory in _lives(kind, events)[0]]
    for before, after in pairwise(sent):
        assert after.startswith(before if kind == "cumulative" else _bytes(_START))


def _bytes(prompt: Prompt) -> bytes:
    return "".join(f"\0{message.role}\0{message.content}" for message in prompt).encode("utf-8", "surrogatepass")


def test_a_memory_begins_with_nothing_unless_told() -> None:
    for kind in built_in("memory"):
        assert _memory(kind)(_PROMPTS).prompt() is EMPTY_PROMPT
        assert _memory(kind)(_PROMPTS, start=_START).prompt() is _START


def _hashes_per_event(kind: str, number: int, budget: int | None, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many hashes it takes to remember one more of so many events, and to ask the next task."""
    memory = _lives(kind, [("write", (), f"{kind} words {each}.") for each in range(number)], budget=budget)[0][-1]
    hashed: list[str] = []
    digest = messages.digest
    with monkeypatch.context() as patch:
        patch.setattr(messages, "digest", lambda text: hashed.append(text) or digest(text))
        later = asyncio.run(memory.remember(ACTS["write"], (), Reply(f"{kind} {number} {budget} one more."), Model()))
        later.prompt().then(ChatMessage("user", f"{kind} {number} {budget} write!"))
    return len(hashed)


# In 520 tokens fit as many events with ordinals of two digits as of three.
@pytest.mark.parametrize(("kind", "budget"), [*((kind, None) for kind in built_in("memory")), ("cumulative", 520)])
def test_remembering_costs_the_same_however_much_is_remembered(
    kind: str, budget: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (_hashes_per_event(kind, number, budget, monkeypatch) for number in (30, 300))
    assert few == many
    assert many <= (30 if budget else 6)


def test_cumulative_messages_narrate_the_events_in_order() -> None:
    memories, _ = _lives("cumulative", _THREE)
    one, two, three = _told(memories[-1])
    assert {message.role for message in (one, two, three)} == {"user"}
    assert "1st post" in one.content
    assert "Words one." in one.content
    assert "After you wrote your 1st post" in two.content
    assert "Cows can swim." in two.content
    assert "Words two." in two.content
    assert "your 2nd post" in three.content
    assert memories[-1].past == Past("write", 0, posts_written=2, posts_seen=1)


def test_reflective_memory_holds_only_the_newest_reflection() -> None:
    memories, model = _lives("reflective", _THREE)
    assert _told(memories[0]) == ()
    for number, memory in enumerate(memories[1:], 1):
        assert _told(memory) == (_PROMPTS.recollection(Reply(f"reflection {number}")),)
    assert memories[-1].past == Past("write", 0, posts_written=2, posts_seen=1)
    assert [call for call, _, _ in model.asked] == ["reflect"] * 3
    first, second, third = (messages for _, messages, _ in model.asked)
    assert [len(messages) for messages in (first, second, third)] == [1, 1, 1]
    assert "Words one." in first[0].content
    assert "sum it up" in first[0].content
    assert "Words one." not in second[0].content
    assert "reflection 1" in second[0].content
    assert "Cows can swim." in second[0].content
    assert "up to date" in second[0].content
    assert "reflection 1" not in third[0].content
    assert "reflection 2" in third[0].content


def test_reflective_wording_of_the_first_is_each_agents_own() -> None:
    for flag in (True, False):
        _, model = _lives("reflective", _THREE[:1], leads=flag)
        assert "sum it up" in model.asked[0][1][0].content


_EVENTS_OF_THREE = (
    _PROMPTS.event(ACTS["write"], (), Reply("Words one."), Past()),
    _PROMPTS.event(ACTS["review"], _THREE[1][1], Reply("Words two."), Past("write", 0, 1)),
    _PROMPTS.event(ACTS["write"], (), Reply("Words three."), Past("review", 1, 1, 1)),
)


@pytest.mark.parametrize("refusing", [{2}, {1, 2}, {1}, {1, 2, 3}])
def test_a_failed_reflection_leaves_summary_and_event_to_the_next(refusing: set[int]) -> None:
    memories, model = _lives("reflective", _THREE, refusing=refusing)
    summary: tuple[ChatMessage, ...] = ()
    left: tuple[ChatMessage, ...] = ()
    for number, (memory, event) in enumerate(zip(memories[1:], _EVENTS_OF_THREE, strict=True), 1):
        request = _PROMPTS.reflection((*left, event), *(summary or (None,)))
        assert model.asked[number - 1][1] == (request,)
        if number in refusing:
            left = (*left, event)
        else:
            summary, left = (_PROMPTS.recollection(Reply(f"reflection {number}")),), ()
        assert _told(memory) == (*summary, *left)
        assert not any("sorry" in message.content for message in _told(memory))


@pytest.mark.parametrize("leads", [True, False])
def test_as_run_a_failed_reflection_leaves_the_event_in_its_place(leads: bool) -> None:
    memories, model = _lives("reflective-as-run", _THREE, leads=leads, refusing={1, 2})
    one, two, three = _EVENTS_OF_THREE
    assert _told(memories[3]) == (one, two, _PROMPTS.recollection(Reply("reflection 3")))
    assert model.asked[0][1] == (_PROMPTS.reflection([one], None) if leads else _PROMPTS.reflection([], one),)
    assert model.asked[2][1] == (one, two, _PROMPTS.reflection([], three))


def test_as_run_the_first_writer_of_the_run_keeps_its_raw_event_and_reflections_pile_up() -> None:
    memories, model = _lives("reflective-as-run", _THREE, leads=True)
    recollections = tuple(_PROMPTS.recollection(Reply(f"reflection {n}")) for n in (1, 2, 3))
    assert _told(memories[1]) == (_EVENTS_OF_THREE[0], recollections[0])
    assert _told(memories[3]) == (_EVENTS_OF_THREE[0], *recollections)
    assert model.asked[0][1] == (_PROMPTS.reflection(_EVENTS_OF_THREE[:1], None),)
    # From then on the newest event stands where the past reflection belongs.
    assert model.asked[1][1] == (*_told(memories[1]), _PROMPTS.reflection([], _EVENTS_OF_THREE[1]))


def test_as_run_everybody_else_starts_with_the_later_wording_and_keeps_no_event() -> None:
    memories, model = _lives("reflective-as-run", _THREE)
    assert model.asked[0][1] == (_PROMPTS.reflection([], _EVENTS_OF_THREE[0]),)
    assert "sum it up" not in model.asked[0][1][0].content
    assert _told(memories[3]) == tuple(_PROMPTS.recollection(Reply(f"reflection {n}")) for n in (1, 2, 3))


def test_the_two_reflective_memories_differ() -> None:
    (_, *published), asked = _lives("reflective", _THREE, leads=True)
    (_, *as_run), asked_as_run = _lives("reflective-as-run", _THREE, leads=True)
    assert asked.asked[0] == asked_as_run.asked[0]
    assert asked.asked[1] != asked_as_run.asked[1]
    assert [len(_told(memory)) for memory in published] == [1, 1, 1]
    assert [len(_told(memory)) for memory in as_run] == [2, 3, 4]


@pytest.mark.parametrize("kind", built_in("memory"))
def test_the_stated_number_of_calls_is_the_real_one(kind: str) -> None:
    memories, model = _lives(kind, _THREE)
    assert len(model.asked) == _memory(kind).calls_per_event * len(_THREE)
    assert memories[0].calls_per_event == _memory(kind).calls_per_event


@pytest.mark.parametrize("kind", built_in("memory"))
def test_remembering_leaves_the_old_memory_as_it_was(kind: str) -> None:
    memories, _ = _lives(kind, _THREE)
    shown = _told(memories[1])
    later = asyncio.run(memories[1].remember(ACTS["write"], (), Reply("Elsewhere."), Model()))
    assert _told(memories[1]) == shown
    one, two = (Past("write", 0, posts_written=written) for written in (1, 2))
    assert (memories[1].past, later.past) == ((Past(), Past()) if kind == "none" else (one, two))


@given(_EVENTS, st.integers(1, 400), st.sampled_from(sorted(built_in("memory"))))
def test_a_budget_keeps_the_newest_that_fit_and_counts_the_rest(events: list[Event], budget: int, kind: str) -> None:
    (*_, memory), _ = _lives(kind, events, budget=budget)
    (*_, unlimited), _ = _lives(kind, events)
    everything, kept = _told(unlimited), _told(memory)
    size = sum(estimated_tokens(message.content) for message in kept)
    assert size <= budget
    assert kept == everything[len(everything) - len(kept) :]
    assert memory.dropped == len(everything) - len(kept)
    if memory.dropped:
        assert size + estimated_tokens(everything[memory.dropped - 1].content) > budget
    assert memory.past == unlimited.past


def test_an_event_larger_than_the_budget_is_dropped_too() -> None:
    (*_, memory), _ = _lives("cumulative", [*_THREE, ("write", (), "long " * 100)], budget=100)
    assert _told(memory) == ()
    assert memory.dropped == 4
    # What follows is remembered again.
    after = asyncio.run(memory.remember(ACTS["write"], (), Reply("short"), Model()))
    assert len(_told(after)) == 1
    assert after.dropped == 4
    assert "your 4th post" in _told(after)[0].content


def test_what_a_budget_leaves_out_of_a_request_to_reflect_is_counted_with_the_call() -> None:
    _, model = _lives("reflective-as-run", _THREE, budget=1)
    assert [(len(messages), dropped) for _, messages, dropped in model.asked] == [(1, 0), (1, 1), (1, 2)]


def test_without_a_memory_nothing_is_kept_and_nobody_asked() -> None:
    memories, model = _lives("none", _THREE, budget=1)
    assert {_told(memory) for memory in memories} == {()}
    assert {memory.past for memory in memories} == {Past()}
    assert {memory.dropped for memory in memories} == {0}
    assert model.asked == []
    assert NoMemory.templates == ()


@pytest.mark.parametrize(("kind", "requests"), [("reflective", 3), ("reflective-as-run", 3), ("cumulative", 0)])
def test_reflections_are_taken_as_they_are_whatever_the_act_makes_of_its_replies(kind: str, requests: int) -> None:
    _, model = _lives(kind, _THREE)
    assert model.parsed_by == [take_as_is] * requests
    assert take_as_is("reflect", "anything", ()) is None


@pytest.mark.parametrize("kind", built_in("memory"))
def test_a_memory_is_worded_with_the_templates_it_names_and_with_no_others(kind: str) -> None:
    named_ones = set(_memory(kind).templates)
    _lives(kind, _THREE, prompts=_prompts(_pack_without({"event", "reflect", "recollection"} - named_ones)))
    for name in named_ones:
        with pytest.raises(SpecError, match=rf"has no template {name}\.j2, which the memory of this run needs"):
            _lives(kind, _THREE, prompts=_prompts(_pack_without({name})))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_the_estimate_of_tokens(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


def test_an_unknown_memory_is_refused() -> None:
    with pytest.raises(
        SpecError, match="unknown memory 'photographic'; valid: cumulative, none, reflective, reflective-as-run"
    ):
        _memory("photographic")
