"""Replies longer than a prompt may be: kept whole, named when they arrive, and shown once the limit is raised."""

from __future__ import annotations

import pytest

import opinionsim as osim
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


@pytest.mark.parametrize(
    "reply", ["{task}", "I hold {task} to be right.", "${task}", "{{ task }}", "{% if task %}", "{ yes"]
)
def test_a_reply_that_holds_braces_is_an_answer_like_any_other(reply: str) -> None:
    results = osim.run(load_experiment(_SPEC), "s.sqlite", chat_model=GivenReplies(lambda prompt: reply))
    assert results.turns[["status", "message"]].to_numpy().tolist() == [["answered", reply]] * 4
    assert len(results.calls) == 4
