"""What the scripted model says: a level put into sentences, and answers to tasks without a claim."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from statistics import NormalDist
from struct import Struct
from types import MappingProxyType
from typing import Protocol, TypeVar

from opinionsim.llm import phrases

_T = TypeVar("_T")

_CHOICE = re.compile(re.escape(phrases.pick_one(0)).replace("0", r"(\d+)"))
_MARKER = re.compile(r"begin with the words \"([^\"\n]{1,80})\"", re.IGNORECASE)
_SEPARATOR = re.compile(r"a line that holds (\S+) and nothing else", re.IGNORECASE)
_QUESTION = re.compile(r"^\d+\. ", re.MULTILINE)
_VERDICT = "verdict: accepted"


#: Layout of a hash as four numbers, and the standard normal distribution.
_FOUR_WORDS, _STANDARD = Struct("<4Q"), NormalDist()


def _uniforms(key: str) -> Iterator[float]:
    """Numbers uniform in the open interval (0, 1), without end."""
    for block in count():
        for word in _FOUR_WORDS.unpack(hashlib.sha256(f"{key}:{block}".encode()).digest()):
            yield ((word >> 12) + 0.5) / 2**52


class Draws:
    """Random numbers that follow from a key alone, in any process."""

    __slots__ = ("uniform",)

    uniform: Callable[[], float]
    """Uniform in the open interval (0, 1)."""

    def __init__(self, key: str) -> None:
        self.uniform = _uniforms(key).__next__

    def normal(self) -> float:
        """Standard normal."""
        return _STANDARD.inv_cdf(self.uniform())

    def pick(self, options: Sequence[_T]) -> _T:
        """One of the options, all equally likely."""
        return options[int(self.uniform() * len(options))]


class Understood(Protocol):
    """What a prompt says, as far as a reply mentions it."""

    @property
    def act(self) -> str:
        """Name of the template that states the task."""

    @property
    def name(self) -> str:
        """The agent's name; empty when the prompt gives none."""

    @property
    def received(self) -> Sequence[int | None]:
        """Levels of the posts now shown."""

    @property
    def masked(self) -> bool:
        """Whether the prompt calls the claim by its masked name."""


def say(prompt: Understood, level: int, draws: Draws) -> str:
    """The reply to a prompt that expresses a level."""
    subject = phrases.MASKED if prompt.masked else phrases.PLAIN
    again = draws.pick((subject, phrases.MASKED_AGAIN)) if prompt.masked else subject
    write = _WRITERS.get(prompt.act, _report)
    return " ".join([phrases.capitalised(sentence) for sentence in write(prompt, level, subject, again, draws)])


def _post(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """A stance, mostly with a sentence before or after it."""
    stance = draws.pick(phrases.POSTS[level]).replace("{x}", subject)
    opener = draws.pick(phrases.OPENERS).replace("{x}", subject)
    closer = draws.pick(phrases.CLOSERS)
    return draws.pick(([stance], [opener, stance], [stance, closer], [opener, stance, closer]))


def _report(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """Steps of reasoning in the first person, then the stance."""
    me = f"I, {prompt.name}," if prompt.name else "I"
    posts = "post" if len(prompt.received) == 1 else "posts"
    return [
        draws.pick(phrases.LEADS).replace("{x}", subject).replace("{me}", me),
        draws.pick(phrases.FIRST),
        draws.pick(phrases.READ if prompt.received else phrases.ALONE).replace("{posts}", posts),
        draws.pick(phrases.CONCLUSIONS),
        draws.pick(phrases.REPORTS[level]).replace("{x}", again),
    ]


def _probe(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """The stance alone."""
    return [draws.pick(phrases.REPORTS[level]).replace("{x}", subject)]


def _reflection(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """A few sentences on the experience that end in the stance."""
    return [
        draws.pick(phrases.REMEMBERED).replace("{x}", subject),
        draws.pick(phrases.REFLECTIONS),
        draws.pick(phrases.REPORTS[level]).replace("{x}", again),
    ]


_Writer = Callable[[Understood, int, str, str, Draws], list[str]]
_WRITERS: Mapping[str, _Writer] = MappingProxyType(
    {"write": _post, "respond": _post, "probe": _probe, "reflect_first": _reflection, "reflect": _reflection}
)


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
