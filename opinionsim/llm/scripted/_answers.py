"""Answers of the scripted model to tasks that do not ask for a stance."""

from __future__ import annotations

import re

from opinionsim.llm import phrases
from opinionsim.llm.scripted._scene import Scene
from opinionsim.llm.scripted._words import Draws
from opinionsim.registry import part

_MARKER = re.compile(r"begin with the words \"([^\"\n]{1,80})\"", re.IGNORECASE)


def any_sentences(n: int, draws: Draws) -> str:
    """Some sentences that fit any task."""
    said: list[str] = []
    while len(said) < n:
        sentence = draws.pick(phrases.ANSWERS)
        if sentence not in said:
            said.append(sentence)
    return " ".join(said)


@part("scripted", name="moderate")
def moderate(scene: Scene, draws: Draws) -> str:
    """A word on the responses, and a verdict where one is asked for."""
    text = draws.pick(phrases.MODERATION).replace("{n}", str(len(scene.received)))
    if "verdict: accepted" in scene.told.lower():
        return f"Verdict: {draws.pick(('accepted', 'rejected', 'undecided'))}\nRationale: {text}"
    return text


@part("scripted", name="instruct")
def instruct(scene: Scene, draws: Draws) -> str:
    """Instructions, after their required beginning."""
    marker = _MARKER.search(scene.told)
    return " ".join(filter(None, [marker[1] if marker else "", draws.pick(phrases.INSTRUCTIONS)]))
