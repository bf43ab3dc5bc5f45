"""Faults a careful reader met in casts, instruments and schedules of one's own, each told or mended where it arises."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

import pytest
from langchain_core.messages import AIMessage

import opinionsim as osim
from opinionsim.errors import ModelCallError, OpinionSimError, ScheduleError, SpecError
from opinionsim.llm import Question, Seat
from opinionsim.schedules import REVIEW, WRITE, ActSpec, External, Schedule, Turn, named
from tests.support.engines import Listed

SAY = ActSpec("say", "say", "response", text="Plan step {{ posts_seen }}.", variables=("posts_seen",))


def _listed(*turns: tuple[int, str, tuple[Any, ...]], n_agents: int = 2, **declared: Any) -> Listed:
    """The schedule of these turns, of one step each."""
    return Listed(n_agents, *(Turn(index, index + 1, *turn) for index, turn in enumerate(turns)), **declared)


def _model(schedule: Schedule, replies: Any, **options: Any) -> osim.OpinionModel:
    population = osim.Population.bare(schedule.n_agents)
    model = osim.GivenReplies(replies)
    return osim.OpinionModel(population, options.pop("topic", "flat-earth"), schedule, model, **options)


def test_a_kind_of_text_of_ones_own_is_coded_and_moves_its_author() -> None:
    schedule = _listed((0, "say", ()), acts=named(SAY))
    with _model(schedule, lambda prompt: "I am sure that Theory XYZ is true.") as model:
        model.run()
        opinions = [agent.opinion for agent in model.agents]
    assert opinions[0] > 0
    assert opinions[1] != opinions[1]


def test_what_a_moderator_says_is_no_opinion_and_is_not_coded() -> None:
    schedule = _listed((2, "say", ()), (0, "say", ()), acts=named(SAY), others=("moderator",))
    with _model(schedule, lambda prompt: "I am sure that Theory XYZ is true.") as model:
        model.run()
        coded = [(each.turn.agent, each.estimate is not None) for each in model.history]
    assert coded == [(2, False), (0, True)]


def test_a_skipped_turn_is_no_report() -> None:
    schedule = _listed((0, "write", ()), (1, "review", (0,)), acts=named(WRITE, REVIEW))
    refusal = AIMessage("", additional_kwargs={"refusal": "No."})
    with _model(schedule, lambda prompt: refusal) as model:
        model.run()
        agents = [(agent.posts, agent.reports) for agent in model.agents]
    assert agents == [(1, 0), (0, 0)]


def test_memory_tells_an_act_of_ones_own_as_what_it_was() -> None:
    schedule = _listed((0, "say", ()), (0, "say", ()), (0, "write", ()), acts=named(SAY, WRITE))
    chat = osim.GivenReplies(lambda prompt: "Buy milk.")
    with osim.OpinionModel(osim.Population.bare(2), "flat-earth", schedule, chat) as model:
        model.run()
    *_, last = chat.prompts
    remembered = [message.content for message in last if message.content.startswith("<memory>")]
    assert remembered == [
        "<memory>\nYou answered:\nBuy milk.\n</memory>",
        "<memory>\nAfter you gave your last answer, you answered:\nBuy milk.\n</memory>",
    ]


@pytest.mark.parametrize("chosen", [None, "1", 0.5, 7])
def test_a_selector_that_chooses_nothing_is_told(chosen: Any) -> None:
    draw = ActSpec("say", "say", "post", text="Say.", draws=2, selector=lambda texts: chosen)
    with (
        _model(_listed((0, "say", ()), acts=named(draw)), lambda prompt: "Yes.") as model,
        pytest.raises(ScheduleError, match="the selector of act 'say'"),
    ):
        model.run()


def test_a_draw_that_is_no_answer_is_not_chosen_while_another_is() -> None:
    # The first draw is asked for again in vain.
    replies = chain(["", "", "", "Yes."], repeat(""))
    draw = ActSpec("say", "say", "post", text="Say.", draws=2)
    with _model(_listed((0, "say", ()), acts=named(draw)), lambda prompt: next(replies), max_concurrency=1) as model:
        model.run()
        assert model.history[0].message.text == "Yes."


def test_a_parse_that_wants_to_end_the_process_ends_its_run_only() -> None:
    def leave(call: str, text: str, received: Any) -> None:
        raise SystemExit(3)

    act = ActSpec("say", "say", "post", text="Say.", parse=leave)
    with (
        _model(_listed((0, "say", ()), acts=named(act)), lambda prompt: "Yes.") as model,
        pytest.raises(ScheduleError, match=r"turn 0, agent \d \(\w+\), call 'reply': parse failed with SystemExit: 3"),
    ):
        model.run()


class _Answers:
    evidence = "scripted"

    def __init__(self, text: Any) -> None:
        self.text = text

    async def answer(self, question: Question) -> Any:
        return self.text


@pytest.mark.parametrize("text", [b"bytes", None, 3])
def test_a_person_answers_with_a_text(text: Any) -> None:
    schedule = _listed((1, "say", ()), acts=named(SAY), n_agents=1, others=("seat",))
    others = {"seat": Seat(_Answers(text))}
    with (
        _model(schedule, lambda prompt: "Yes.", others=others, classifier="lexicon") as model,
        pytest.raises(OpinionSimError, match=f"a person must answer with a text; got {type(text).__name__}"),
    ):
        model.run()


@pytest.mark.parametrize("message", [3, None, {"text": "a mapping"}])
def test_a_message_from_outside_is_a_text(message: Any) -> None:
    schedule = _listed((0, "review", (External("x"),)), acts=named(REVIEW), externals={"x": message})
    with pytest.raises(SpecError, match="a message from outside must be a text"):
        _model(schedule, lambda prompt: "Yes.")


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"acts": [WRITE]}, "acts must be a mapping by name"),
        ({"acts": None}, "acts must be a mapping by name"),
        ({"others": None}, "others must be a sequence of names"),
        ({"others": (3,)}, "others must be a sequence of names"),
        ({"others": ("participant",)}, "participants are counted by n_agents"),
        ({"needs": "stance"}, "needs must be a sequence of names"),
        ({"externals": None}, "externals must be a mapping by name"),
        ({"steps": -1}, "steps must be a whole number of at least 0"),
        ({"steps": None}, "steps must be a whole number"),
        ({"n_agents": "2"}, "n_agents must be a whole number of at least 1"),
    ],
)
def test_what_a_schedule_declares_is_checked(declared: dict[str, Any], told: str) -> None:
    schedule = _listed((0, "write", ()), acts=named(WRITE))
    vars(schedule).update(declared)
    with pytest.raises(ScheduleError, match=told):
        osim.OpinionModel(osim.Population.bare(2), "flat-earth", schedule, osim.GivenReplies([]))


@pytest.mark.parametrize("wrong", [{"draws": 1.5}, {"attempts": True}, {"parse": "no function"}, {"selector": 3}])
def test_what_an_act_says_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ScheduleError, match="act 'say': " + next(iter(wrong))):
        ActSpec("say", "say", "post", **wrong)


def test_an_asynchronous_parse_is_refused() -> None:
    async def later(call: str, text: str, received: Any) -> int:
        return 1

    with pytest.raises(ScheduleError, match="act 'say': parse must be a plain function"):
        ActSpec("say", "say", "post", parse=later)


def test_a_run_without_a_claim_states_its_task() -> None:
    schedule = _listed((0, "write", ()), acts=named(WRITE), n_agents=1)
    chat = osim.GivenReplies(["Bread, then milk."])
    options: dict[str, Any] = {"classifier": None, "task": "Write a shopping list."}
    with osim.OpinionModel(osim.Population.bare(1), None, schedule, chat, **options) as model:
        model.run()
    ((*_, task),) = chat.prompts
    assert task.content.startswith("Write a shopping list.")
    assert "theory" not in " ".join(message.content.lower() for message in chat.prompts[0])
    with pytest.raises(SpecError, match="classifier 'lexicon' needs a claim"):
        osim.OpinionModel(osim.Population.bare(1), None, schedule, osim.GivenReplies([]))


def test_the_list_of_given_replies_may_end() -> None:
    schedule = _listed((0, "write", ()), (1, "write", ()), acts=named(WRITE))
    with (
        _model(schedule, ["Once."], max_concurrency=1) as model,
        pytest.raises(ModelCallError, match="the list of 1 given replies is too short"),
    ):
        model.run()
