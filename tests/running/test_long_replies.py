"""Replies longer than a prompt may be: kept whole, named when they arrive, and shown once the limit is raised."""

from __future__ import annotations

import pytest

import opinionsim as osim
from opinionsim.deliberation import play
from opinionsim.llm import GivenReplies
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.running import SMALL, changed

_SPEC = changed(
    SMALL,
    replicates=1,
    interaction={"kind": "dyadic", "steps": 2},
    model={"name": "mine:own"},
    measurement={"classifier": "lexicon"},
)


def _says(length: int) -> GivenReplies:
    return GivenReplies(lambda prompt: ("I believe that it is so. " * (length // 25 + 1))[:length])


def test_a_reply_of_any_length_is_kept_and_a_resume_goes_on_after_the_field_is_raised() -> None:
    first = osim.run(load_experiment(_SPEC), "s.sqlite", chat_model=_says(1_500_000))
    error = first.runs["error"].item()
    assert "turn 0, agent" in error
    assert "has 1,500,000 characters, and execution.max_prompt_characters is 1,000,000; raise it" in error
    assert first.calls["reply"].str.len().unique().tolist() == [1_500_000]
    again = osim.run(load_experiment(_SPEC), "s.sqlite", chat_model=_says(1_500_000))
    assert again.runs["error"].item() == error
    assert len(again.calls) == len(first.calls), "nothing is paid for what the limit forbids"
    raised = load_experiment(_SPEC, {"execution.max_prompt_characters": 20_000_000})
    rest = osim.run(raised, "s.sqlite", chat_model=_says(1_500_000))
    assert rest.runs["error"].item() == ""
    assert rest.runs["run_id"].tolist() == first.runs["run_id"].tolist()
    assert set(rest.turns["message"].str.len()) == {1_500_000}
    assert [each.difference for each in replay(rest)] == [""]


def test_ten_replies_that_are_short_enough_make_a_prompt_that_is_not() -> None:
    chain = {"kind": "chain", "order": "cast"}
    results = play(chain, [f"Agent {n}" for n in range(10)], "s.sqlite", chat_model=_says(300_000))
    error = results.runs["error"].item()
    assert len(results.calls) == 4
    assert "turn 4, agent 4 (respond): the prompt has 1,20" in error
    assert "step" not in error
    execution = {"max_prompt_characters": 4_000_000}
    rest = play(chain, [f"Agent {n}" for n in range(10)], "s.sqlite", chat_model=_says(300_000), execution=execution)
    assert (rest.runs["status"].item(), len(rest.calls)) == ("complete", 10)


@pytest.mark.parametrize(
    "reply", ["{task}", "I hold {task} to be right.", "${task}", "{{ task }}", "{% if task %}", "{"]
)
def test_a_reply_that_holds_braces_is_an_answer_like_any_other(reply: str) -> None:
    results = play({"kind": "chain"}, ("Ada", "Ben"), "s.sqlite", chat_model=GivenReplies(lambda prompt: reply))
    assert results.turns[["condition", "message"]].to_numpy().tolist() == [["answered", reply]] * 2
    assert len(results.calls) == 2


def test_a_task_that_ends_in_a_full_stop_is_followed_by_no_other() -> None:
    for task, said in (
        ("Judge it.", "Do: Judge it. Now..."),
        ("Judge it", "Do: Judge it. Now..."),
        ("So?", "Do: So? Now..."),
    ):
        cast = [{"name": "Ada", "system": "Do: ${task}. Now..."}]
        model = _says(20)
        osim.run(
            load_experiment(
                {
                    "name": "stop",
                    "task": task,
                    "model": {"name": "own"},
                    "cast": cast,
                    "interaction": {"kind": "ensemble"},
                }
            ),
            f"{len(task)}{task[-1] == '.'}.sqlite",
            chat_model=model,
        )
        assert model.prompts[0][0].content == said
