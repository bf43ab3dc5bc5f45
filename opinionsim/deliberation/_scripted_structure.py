"""Replies of the scripted model to tasks of structures and interviews."""

from __future__ import annotations

import re

from opinionsim.llm import Draws, Scene, any_sentences
from opinionsim.registry import part

_SEPARATOR = re.compile(r"a line that holds (\S+) and nothing else", re.IGNORECASE)
_QUESTION = re.compile(r"^\d+\. ", re.MULTILINE)


@part("scripted", name="respond")
def respond(scene: Scene, draws: Draws) -> str:
    """A stance if there is a claim, otherwise sentences that fit any task."""
    return scene.stance(draws, "write") if scene.claim else any_sentences(2, draws)


@part("scripted", name="interview")
def interview(scene: Scene, draws: Draws) -> str:
    """An answer to every question, separated by the requested line."""
    separator = _SEPARATOR.search(scene.told)
    answers = [any_sentences(2, draws) for _ in _QUESTION.findall(scene.told)] or [any_sentences(2, draws)]
    return f"\n{separator[1] if separator else ''}\n".join(answers)


@part("scripted", name="choose")
def choose(scene: Scene, draws: Draws) -> str:
    """One of two letters."""
    return draws.pick(("A", "B"))
