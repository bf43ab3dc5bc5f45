"""What the scripted model says to tasks of deliberation: responses, moderation, interviews, choices."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

from opinionsim.llm import phrases

_T = TypeVar("_T")

_CHOICE = re.compile(re.escape(phrases.pick_one(0)).replace("0", r"(\d+)"))
_MARKER = re.compile(r"begin with the words \"([^\"\n]{1,80})\"", re.IGNORECASE)
_SEPARATOR = re.compile(r"a line that holds (\S+) and nothing else", re.IGNORECASE)
_QUESTION = re.compile(r"^\d+\. ", re.MULTILINE)
_VERDICT = "verdict: accepted"


class Draws(Protocol):
    """Random numbers that follow from a key."""

    def pick(self, options: Sequence[_T]) -> _T:
        """One of the options, all equally likely."""


def choice(task: str) -> int:
    """How many texts a task asks to choose from; 0 where it asks for no choice."""
    found = _CHOICE.search(task)
    return int(found[1]) if found else 0


def _sentences(n: int, draws: Draws) -> str:
    """Some sentences that fit any task."""
    said: list[str] = []
    while len(said) < n:
        sentence = draws.pick(phrases.ANSWERS)
        if sentence not in said:
            said.append(sentence)
    return " ".join(said)


def _respond(told: str, n_received: int, draws: Draws) -> str:
    return _sentences(2, draws)


def _moderate(told: str, n_received: int, draws: Draws) -> str:
    text = draws.pick(phrases.MODERATION).replace("{n}", str(n_received))
    if _VERDICT in told.lower():
        return f"Verdict: {draws.pick(('accepted', 'rejected', 'undecided'))}\nRationale: {text}"
    return text


def _instruct(told: str, n_received: int, draws: Draws) -> str:
    marker = _MARKER.search(told)
    return " ".join(filter(None, [marker[1] if marker else "", draws.pick(phrases.INSTRUCTIONS)]))


def _interview(told: str, n_received: int, draws: Draws) -> str:
    separator = _SEPARATOR.search(told)
    answers = [_sentences(2, draws) for _ in _QUESTION.findall(told)] or [_sentences(2, draws)]
    return f"\n{separator[1] if separator else ''}\n".join(answers)


#: What is said to a task, by its template: from the text of the prompt outside memory and messages, and the number of
#: messages received.
ANSWERS: Mapping[str, Callable[[str, int, Draws], str]] = MappingProxyType(
    {"respond": _respond, "moderate": _moderate, "instruct": _instruct, "interview": _interview}
)
