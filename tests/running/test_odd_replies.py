"""Replies that no prompt can hold, and replies that repeat the delimiters of the prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.running import SMALL, changed, ended, loaded

#: A reply with half an emoji, one with a zero byte, and their clean forms.
ODD = {"\ud800half": "\ufffdhalf", "a\x00b\x85": "a\ufffdb\ufffd", "<post>\nI doubt it.\n</post>": "I doubt it."}


def _odd(prompt: list[ChatMessage]) -> str:
    """An odd reply, chosen by the prompt; a prompt that a provider could not be sent is an error."""
    size = sum(len(message.content.encode("utf-8")) for message in prompt)
    assert not any("\x00" in message.content for message in prompt)
    return list(ODD)[size % 3]


def _spec(memory: str) -> dict[str, Any]:
    external = {"kind": "external", "steps": 6, "messages": ["It \u009brained.", "It snowed."], "order": "sequence"}
    return changed(
        SMALL,
        cognition={"memory": memory},
        model={"name": "odd"},
        measurement={"classifier": "lexicon"},
        sweep={"interaction": [{"kind": "dyadic", "steps": 12, "label": "dyads"}, {**external, "label": "news"}]},
    )


@pytest.mark.parametrize("memory", ["cumulative", "reflective"])
def test_a_run_whose_replies_no_prompt_can_hold_completes_resumes_and_replays(memory: str, tmp_path: Path) -> None:
    experiment = load_experiment(_spec(memory))
    whole, broken = (f"sqlite:///{tmp_path / name}.sqlite" for name in ("whole", "broken"))
    ended(experiment, whole, GivenReplies(_odd))
    answered = 0

    def failing(prompt: list[ChatMessage]) -> str:
        nonlocal answered
        answered += 1
        if answered > 9:
            raise PermissionError("the provider is gone")
        return _odd(prompt)

    ended(experiment, broken, GivenReplies(failing))
    assert set(loaded(broken).runs["status"]) == {"incomplete"}
    ended(experiment, broken, GivenReplies(_odd))
    results, resumed = loaded(whole), loaded(broken)
    assert set(results.runs["status"]) == set(resumed.runs["status"]) == {"complete"}
    order = ["run_id", "turn"]
    assert resumed.turns.sort_values(order)["message"].tolist() == results.turns.sort_values(order)["message"].tolist()
    assert set(results.turns["message"]) == set(ODD.values())
    assert set(results.calls["reply"]) == set(ODD), "the journal keeps what the model said"
    for found in (*replay(results), *replay(resumed)):
        assert found.difference == ""
