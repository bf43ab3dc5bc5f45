"""What the scripted model says to tasks of structures."""

from __future__ import annotations

import re

from opinionsim.llm import Draws, Scene, any_sentences, phrases
from opinionsim.registry import part

_MARKER = re.compile(r"begin with the words \"([^\"\n]{1,80})\"", re.IGNORECASE)
_SEPARATOR = re.compile(r"a line that holds (\S+) and nothing else", re.IGNORECASE)
_QUESTION = re.compile(r"^\d+\. ", re.MULTILINE)


@part("scripted", name="instruct")
def instruct(scene: Scene, draws: Draws) -> str:
    """Instructions, after the words with which they are to begin."""
    marker = _MARKER.search(scene.told)
    return " ".join(filter(None, [marker[1] if marker else "", draws.pick(phrases.INSTRUCTIONS)]))


@part("scripted", name="interview")
def interview(scene: Scene, draws: Draws) -> str:
    """An answer to every question, with the line between them that is asked for."""
    separator = _SEPARATOR.search(scene.told)
    answers = [any_sentences(2, draws) for _ in _QUESTION.findall(scene.told)] or [any_sentences(2, draws)]
    return f"\n{separator[1] if separator else ''}\n".join(answers)
