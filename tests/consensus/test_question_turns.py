"""Questions that an agent writes after examples: what is accepted, what is made up for, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.consensus import generated_questions, read_question, same_question
from opinionsim.errors import Rejected, SpecError
from opinionsim.llm import ScriptedChatModel
from opinionsim.messages import Message
from opinionsim.schedules import AnySchedule, Interaction, Setting, Turn, outline
from opinionsim.testing import ScheduleContract
from tests.support.examples import examples
from tests.support.running import assert_same, carry_out

EXAMPLES = tuple(f"Should the town build {thing}?" for thing in "abcdefghijkl")


def _schedule(seed: int = 1, **fields: Any) -> Any:
    interaction = Interaction.read({"kind": "questions", "messages": EXAMPLES, **fields})
    return interaction.schedule(Setting.of(1, seed))


class _Told:
    """Outcomes of turns from a list of decisions."""

    def __init__(self, decisions: Sequence[str | None]) -> None:
        self.decisions, self.turns = decisions, list[Turn]()
        self.awaited = list[int]()

    async def decision(self, turn: int) -> str | None:
        assert turn < len(self.turns), "a turn was awaited before it was there"
        self.awaited.append(turn)
        return self.decisions[turn]


def _played(schedule: Any, decisions: Sequence[str | None]) -> _Told:
    told = _Told(decisions)

    async def story() -> None:
        async for turn in schedule.decide(told):
            told.turns.append(turn)

    asyncio.run(story())
    return told


class TestContract(ScheduleContract):
    def schedule(self) -> AnySchedule:
        return _schedule(count=4, most=9)


def _said(text: str, *shown: str) -> str:
    found = read_question("reply", text, tuple(map(Message, shown)))
    assert found.text == found.decision
    return found.text


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("Should bells ring at night?", "Should bells ring at night?"),
        ("Question: Should bells ring at night?", "Should bells ring at night?"),
        ("  question :\n\nWhat SHOULD bells do at night?\nMore words.", "What SHOULD bells do at night?"),
        (
            "Certainly! Here it is:\n**Question:** Should bells ring at night?\nQuestion: No?",
            "Should bells ring at night?",
        ),
        ('Question: "Should bells ring at night?"', "Should bells ring at night?"),
        ("Should a question: be asked here", "Should a question: be asked here"),
        ("Who should ring?", "Who should ring?"),
        ("Question: \u00a35 should buy what?", "\u00a35 should buy what?"),
    ],
)
def test_the_question_of_a_reply(reply: str, question: str) -> None:
    assert _said(reply) == question


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Question: Should we go?", "more than 15 characters; got 'Should we go?'"),
        ("Should we sleep?"[:15], "more than 15 characters"),
        ("Do bells ring at night in your town?", "contains the word 'should'"),
        ("Question:", "got ''"),
        ("", "got ''"),
        ("Should BELLS  ring at night?", "is one of the examples"),
        ("Here you are, a question.\nShould bells ring by day?", "contains the word"),
    ],
)
def test_what_is_no_question(reply: str, reason: str) -> None:
    with pytest.raises(Rejected, match=reason.replace("?", r"\?")):
        _said(reply, "Should bells ring at night?")


def test_each_turn_shows_ten_different_examples_in_an_order_of_its_own() -> None:
    turns = list(outline(_schedule(count=200)))
    assert len(turns) == 400
    assert all(len(set(turn.reads)) == len(turn.reads) == 10 for turn in turns)
    assert len({turn.reads for turn in turns}) == 400
    # Each example stands in each place about equally often: 400 / 12 = 33.
    first = [turn.reads[0].name for turn in turns]
    assert {10 < first.count(f"external-{i}") < 70 for i in range(12)} == {True}
    assert turns == list(outline(_schedule(count=200)))
    assert turns != list(outline(_schedule(seed=2, count=200)))


@examples(200)
@given(
    decisions=st.lists(st.sampled_from([None, "A?", "a?", "B?", "C?", "D?"]), min_size=12, max_size=12),
    count=st.integers(1, 5),
    spare=st.integers(0, 7),
)
def test_turns_that_came_to_nothing_are_made_up_for(decisions: list[str | None], count: int, spare: int) -> None:
    schedule = _schedule(count=count, most=count + spare)
    told = _played(schedule, decisions)
    n = len(told.turns)
    keys = [None if each is None else same_question(each) for each in decisions[:n]]
    known = set(keys) - {None}
    assert len(known) <= count
    if len(known) < count:
        assert n == count + spare
    # The last turn was needed: without it there would be too few questions, or it is one of the first.
    assert n == count or len(set(keys[: n - 1]) - {None}) < count
    assert told.turns == list(outline(schedule))[:n]
    assert [turn.step for turn in told.turns] == list(range(1, n + 1))
    assert told.awaited == list(range(len(told.awaited)))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"count": 0}, "count: must be at least 1"),
        ({"count": 5, "most": 4}, "most: must be at least count, here 5; got 4"),
        ({"count": 5, "messages": ["Should it be?", " "]}, r"messages\[1\]: must not be blank"),
        ({"count": 5, "messages": ["Should it be?"]}, "1 examples; shown = 10 in each turn needs as many"),
        ({"count": 5, "messages": "nowhere.txt"}, r"nowhere\.txt"),
        ({"count": 5, "population": {"size": 2}}, "needs exactly one agent"),
    ],
)
def test_bad_specifications(fields: dict[str, Any], said: str) -> None:
    population = fields.pop("population", {"size": 1})
    spec = {"name": "q", "population": population, "interaction": {"kind": "questions", "messages": EXAMPLES, **fields}}
    with pytest.raises(SpecError, match=said):
        osim.load_experiment(spec)


#: What the model below says, by its seed.
POOL = (
    "Question: Should bells ring at night?",
    "question: should bells ring at  night?",
    "Question: Should dogs be on a lead?\nIt is a good one.",
    "Should cats be on a lead at night?",
    f"Question: {EXAMPLES[11].upper()}",
    "Question: Why?",
    "I'm sorry, but I can't help with that.",
    "",
)


class _Parrot(ScriptedChatModel):
    """Says what the pool has for the seed."""

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = POOL[kwargs["seed"] % len(POOL)]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


SPEC = {
    "name": "q",
    "seed": 3,
    "replicates": 3,
    "population": {"size": 1},
    "interaction": {"kind": "questions", "messages": list(EXAMPLES), "count": 3, "most": 40},
}


def test_a_run_ends_with_the_questions_wanted_and_none_of_them_twice(tmp_path: Path) -> None:
    summary, results = carry_out(SPEC, f"sqlite:///{tmp_path}/q.sqlite", _Parrot(), slots=8)
    assert summary.complete == 3
    found = generated_questions(results)
    assert sorted(map(same_question, found["question"])) == [
        "should bells ring at night?", "should cats be on a lead at night?", "should dogs be on a lead?",
    ]  # fmt: skip
    assert list(found.columns) == ["question", "run_id", "turn", "evidence"]
    per_run = [len(generated_questions(_only(results, run))) for run in results.run_ids]
    assert per_run == [3, 3, 3]
    refused = results.turns[results.turns["status"] != "answered"]
    assert set(found["evidence"]) == {"scripted"}
    assert len(results.turns) > 9
    assert set(results.calls.loc[results.calls["acceptance"] == "rejected", "reason"]) >= {
        f"{EXAMPLES[11].upper()!r} is one of the examples"
    }
    assert not set(zip(refused["run_id"], refused["turn"], strict=True)) & set(
        zip(found["run_id"], found["turn"], strict=True)
    )


class _only:
    """Results of one run alone."""

    def __init__(self, results: Any, run: str) -> None:
        self.turns = results.turns[results.turns["run_id"] == run]
        self.calls = results.calls[results.calls["run_id"] == run]


def test_one_call_at_a_time_gives_the_same_questions(tmp_path: Path) -> None:
    _, many = carry_out(SPEC, f"sqlite:///{tmp_path}/many.sqlite", _Parrot(), slots=16)
    _, one = carry_out(SPEC, f"sqlite:///{tmp_path}/one.sqlite", _Parrot(), slots=1)
    assert_same(one, many)


class _Failing(_Parrot):
    """The same, until it has been asked so often."""

    _left: list[int] = PrivateAttr(default_factory=lambda: [11])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self._left[0] -= 1
        if self._left[0] < 0:
            raise PermissionError("the provider is gone")
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


def test_a_run_that_was_broken_off_goes_on_to_the_same_questions(tmp_path: Path) -> None:
    _, whole = carry_out(SPEC, f"sqlite:///{tmp_path}/whole.sqlite", _Parrot(), slots=4)
    broken = f"sqlite:///{tmp_path}/broken.sqlite"
    summary, _ = carry_out(SPEC, broken, _Failing(), slots=4)
    assert summary.complete < 3
    summary, resumed = carry_out(SPEC, broken, _Parrot(), slots=4)
    assert summary.complete == 3
    assert_same(resumed, whole)


def test_there_are_fewer_questions_where_turns_run_out(tmp_path: Path) -> None:
    spec = {**SPEC, "interaction": {**SPEC["interaction"], "count": 7, "most": 9}}
    summary, results = carry_out(spec, f"sqlite:///{tmp_path}/q.sqlite", _Parrot(), slots=4)
    assert summary.complete == 3
    assert (results.turns.groupby("run_id").size() == 9).all()
    assert len(generated_questions(results)) == 3


def test_the_scripted_model_writes_questions_and_an_example_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("\n".join(EXAMPLES), encoding="utf-8")
    by_file = {**SPEC, "interaction": {**SPEC["interaction"], "messages": str(tmp_path / "seeds.txt")}, "replicates": 1}
    listed = {**SPEC, "replicates": 1}
    ids = [osim.load_experiment(each).runs[0].run_id for each in (by_file, listed)]
    assert ids[0] == ids[1]
    results = osim.run(osim.load_experiment(by_file), store=f"sqlite:///{tmp_path}/q.sqlite")
    assert len(generated_questions(results)) == 3
    shown = results.prompt(0, 0)
    assert [message.role for message in shown] == ["user"]
    first = EXAMPLES[int(results.turns["reads"].iloc[0][0].removeprefix("external-"))]
    assert f"These are such questions:\n\n<response>\n{first}\n</response>\n" in shown[0].content
    assert shown[0].content.count("<response>") == 10
