"""Prompts of structures that grow with what is said, and tasks that are put into texts."""

from __future__ import annotations

from pathlib import Path

import yaml

import opinionsim as osim
from opinionsim.deliberation import play
from opinionsim.llm import GivenReplies
from opinionsim.planning import preview
from opinionsim.specification import load_experiment


def _long() -> GivenReplies:
    return GivenReplies(lambda prompt: "I believe that it is so. " * 12_000)


def test_ten_replies_that_are_short_enough_make_a_prompt_that_is_not() -> None:
    chain = {"kind": "chain", "order": "cast"}
    results = play(chain, [f"Agent {n}" for n in range(10)], "s.sqlite", chat_model=_long())
    error = results.runs["error"].item()
    assert len(results.calls) == 4
    assert "turn 4, agent 4 (respond): the prompt has 1,20" in error
    assert "step" not in error
    execution = {"max_prompt_characters": 4_000_000}
    rest = play(chain, [f"Agent {n}" for n in range(10)], "s.sqlite", chat_model=_long(), execution=execution)
    assert (rest.runs["status"].item(), len(rest.calls)) == ("complete", 10)


def test_a_task_that_ends_in_a_full_stop_is_followed_by_no_other() -> None:
    for task, said in (
        ("Judge it.", "Do: Judge it. Now..."),
        ("Judge it", "Do: Judge it. Now..."),
        ("So?", "Do: So? Now..."),
    ):
        cast = [{"name": "Ada", "system": "Do: ${task}. Now..."}]
        model = GivenReplies(lambda prompt: "I believe that it is so.")
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


def test_an_open_question_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    topic = {"name": "oak", "claims": {"for": "oak is tall"}, "masked": False}
    (tmp_path / "trees.yaml").write_text(yaml.safe_dump({"topics": [topic]}))
    asked = {"population": {"size": 2}, "measurement": {"self_report": {"after": 1}}}
    oak = {"name": "oak", "file": str(tmp_path / "trees.yaml")}
    spec = {"name": "open", "interaction": {"kind": "chain"}, "topic": oak, **asked}
    prompts = preview(load_experiment(spec)).prompts.values()
    told = "\n".join(message.content for prompt in prompts for message in prompt)
    assert "(against it)" in told
    assert "(it is wrong)" not in told
