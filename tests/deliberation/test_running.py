"""Runs of faces: failures, refusals, resuming in a store, and what is left behind."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.deliberation import Agent, Chain, Ensemble, Graph, Interview, Moderator

TASK = "Where should the library stand?"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which runs in memory are kept."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Failing:
    """A model's replies, of which one call raises until it is mended."""

    def __init__(self, at: int) -> None:
        self.at: int | None = at
        self.made = 0

    def __call__(self, prompt: list[Any]) -> str:
        if self.made == self.at:
            raise ValueError("the model is broken")
        self.made += 1
        return f"reply {self.made}"


@pytest.mark.parametrize("at", range(4))
def test_a_run_in_a_store_goes_on_where_it_failed(tmp_path: Path, at: int) -> None:
    replies = Failing(at)
    model = osim.GivenReplies(replies)
    chain = Chain([Agent(model=model) for _ in range(3)], TASK, moderator=Moderator(model=model))
    where = {"store": f"sqlite:///{tmp_path}/runs.sqlite", "run": "library"}
    with pytest.raises(osim.ModelCallError, match=r"agent \d.*broken.*To continue .* this store and run='library'"):
        chain.process(**where)
    replies.at = None
    chain.process(**where)
    assert chain.responses == ["reply 1", "reply 2", "reply 3", "reply 4"]
    again = Chain([Agent(model=model) for _ in range(3)], TASK, moderator=Moderator(model=model))
    again.process(**where)
    assert again.responses == chain.responses
    assert replies.made == 4
    assert [len(agent.history or []) for agent in (*chain.agents, *again.agents)] == [1] * 6


def test_processing_a_kept_run_again_adds_nothing_to_histories(tmp_path: Path) -> None:
    agent = Agent(TASK)
    for _ in range(2):
        agent.process(store=f"sqlite:///{tmp_path}/runs.sqlite", run="one")
    assert len(agent.history or []) == 1


def test_errors_name_agents_of_a_graph_and_the_moderator() -> None:
    broken = osim.GivenReplies(Failing(0))
    with pytest.raises(osim.ModelCallError, match=r"^ben: .* agent 1 \(respond\): ValueError: the model is broken"):
        Graph({"ada": Agent(), "ben": Agent(model=broken)}, [("ada", "ben")], TASK).process()
    with pytest.raises(osim.ModelCallError, match=r"^the moderator: .* agent 1 \(moderate\)"):
        Ensemble([Agent()], TASK, moderator=Moderator(model=broken)).process()


@pytest.mark.parametrize("reply", ["", "I can't help with that."], ids=["empty", "refused"])
def test_on_request_answers_that_are_none_are_left_out(reply: str) -> None:
    silent = Agent(model=osim.GivenReplies(lambda prompt: reply))
    last = Agent(model=osim.GivenReplies(lambda prompt: f"after {prompt[-1].content.count('<response>')}"))
    chain = Chain([Agent(model=osim.GivenReplies(["Yes."])), silent, last], TASK, no_answer="skip")
    chain.process()
    assert chain.responses == ["Yes.", "after 1"]
    assert list(chain.to_dataframe()["status"]) == ["answered", "refused" if reply else "empty", "answered"]
    assert silent.history[0]["status"] == ("refused" if reply else "empty")


def test_a_budget_ends_a_run_before_the_call(tmp_path: Path) -> None:
    model = osim.GivenReplies(lambda prompt: "Yes.")
    chain = Chain([Agent(model=model)] * 3, TASK)
    with pytest.raises(osim.BudgetExceeded):
        chain.process(execution={"budget": {"calls": 2}})
    assert len(model.prompts) == 2


def test_a_store_needs_selectors_that_others_can_find(tmp_path: Path) -> None:
    agent = Agent(TASK, num_responses=2, response_selector=lambda texts: texts[0])
    with pytest.raises(osim.SpecError, match=r"response_selector of agent 0.*mark it with @opinionsim.part"):
        agent.process(store=f"sqlite:///{tmp_path}/runs.sqlite", run="one")
    assert agent.process()


def test_a_run_in_memory_leaves_nothing_behind(temporary: Path) -> None:
    chain = Chain([Agent()], TASK)
    chain.process()
    results = chain.results
    chain.process()
    assert len(results.turns) == 1
    assert len(list(temporary.iterdir())) == 2
    del chain, results
    gc.collect()
    assert list(temporary.iterdir()) == []
    with pytest.raises(osim.ModelCallError):
        Agent(TASK, model=osim.GivenReplies(Failing(0))).process()
    assert list(temporary.iterdir()) == []


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    Chain([Agent()], TASK).process()
    assert capsys.readouterr().err == ""
    Chain([Agent()], TASK, verbose=True).process()
    assert "100%" in capsys.readouterr().err


def interviewed(*answers: str) -> osim.GivenReplies:
    """A model that answers each call with one of the texts."""
    return osim.GivenReplies(list(answers))


def test_an_interview_with_another_number_of_answers_is_held_again() -> None:
    model = interviewed("Only one.", "One.\n=====\n\n=====\nTwo.", "=====\nOne.\n =====  \nTwo.\n=====")
    interview = Interview("a baker", model, ["Who are you?", "Where?"])
    assert interview.process() == ["One.", "Two."]
    assert interview.combined_response == "Q: Who are you?\nA: One.\n\nQ: Where?\nA: Two."
    accepted = interview.results.calls[["acceptance", "reason"]].to_numpy().tolist()
    assert [acceptance for acceptance, _ in accepted] == ["rejected", "rejected", "accepted"]
    assert "has 2 questions; the reply has 1 answers" in accepted[0][1]
    model = interviewed(*["One."] * 3)
    with pytest.raises(osim.ModelCallError, match="has 2 questions; the reply has 1 answers"):
        Interview("a baker", model, ["Who are you?", "Where?"]).process()
    assert len(model.prompts) == 3


def test_the_voice_holds_the_person_and_nothing_in_it_is_expanded() -> None:
    model = interviewed("Here.")
    Interview("a ${task} ${seed} baker", model, ["Where?"], voice="Speak as ${seed}.").process()
    system, user = model.prompts[0]
    assert system.content == "Speak as\n\n<persona>\na ${task} ${seed} baker\n</persona>\n\n."
    assert user.content.startswith("1. Where?\n\nAnswer all questions of the interview, in their order. Put a line")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interview(None), "seed must describe the interviewed person"),
        (lambda: Interview("a baker", questions=[]), "questions: must have at least 1 entry"),
        (lambda: Interview("a baker", questions=["Where?", " "]), r"questions\[1\]: must not be blank"),
        (lambda: Interview("a baker", questions="american_voice"), "did you mean american_voices"),
        (lambda: Interview("a baker", voice="You are a baker."), r"voice must contain \$\{seed\}"),
        (lambda: Interview("a baker", words=0), "words: must be at least 1; got 0"),
        (lambda: Interview("a baker", "gpt-4o"), "write 'openai:gpt-4o'"),
    ],
)
def test_bad_arguments_of_interviews(make: Callable[[], object], message: str) -> None:
    with pytest.raises(osim.SpecError, match=message):
        make()


def test_an_interview_is_an_interaction_of_any_experiment(tmp_path: Path) -> None:
    spec = {
        "name": "talks",
        "cast": [{"persona": "a baker"}, {"persona": "a smith"}],
        "interaction": {"kind": "interview", "questions": ["Who are you?", "Where?"], "words": 20},
    }
    results = osim.run(osim.load_experiment(spec), store=f"sqlite:///{tmp_path}/talks.sqlite")
    assert list(results.turns["act"]) == ["interview"] * 2
    assert list(results.turns["kind"]) == ["interview"] * 2
    assert all(text.count("\n=====\n") == 1 for text in results.turns["message"])
    with pytest.raises(osim.SpecError, match="must not be blank"):
        osim.load_experiment(spec, {"interaction.questions": ["Who?", " "]})


def test_messages_from_outside_reach_every_agent_of_an_ensemble(tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("It rained.\nIt snowed.\n", encoding="utf-8")
    spec = {"name": "e", "task": TASK, "cast": [{}, {}], "replicates": 1}
    listed = {**spec, "interaction": {"kind": "ensemble", "messages": ["It rained.", "It snowed."]}}
    read = {**spec, "interaction": {"kind": "ensemble", "messages": str(tmp_path / "news.txt")}}
    assert [osim.load_experiment(each).runs[0].run_id for each in (listed, read)] == [
        osim.load_experiment(listed).runs[0].run_id
    ] * 2
    results = osim.run(osim.load_experiment(listed), store=f"sqlite:///{tmp_path}/e.sqlite")
    assert list(results.turns["reads"]) == [("external-0", "external-1")] * 2
    assert "Response 1:\n<response>\nIt snowed." in results.prompt(0, 1)[-1].content
    with pytest.raises(osim.SpecError, match="must not be blank"):
        osim.load_experiment({**spec, "interaction": {"kind": "ensemble", "messages": [" "]}})
