"""Selectors, which pick one of several replies drawn for a turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from opinionsim.errors import Rejected
from opinionsim.llm import phrases
from opinionsim.messages import ChatMessage, Message
from opinionsim.registry import NamedPart, part

#: Picks one of several texts: returns its position, or the text itself.
Selector = Callable[[Sequence[str]], int | str]


@runtime_checkable
class AskingSelector(Protocol):
    """A selector that asks the agent's model in a separate call, ``select``."""

    def messages(self, texts: Sequence[str]) -> list[ChatMessage]:
        """The question, with all texts."""

    def parse(self, call: str, text: str, received: tuple[Message, ...]) -> int:
        """The position that the reply names, from 0; raises `Rejected` if it names none."""


def selector_of(named: NamedPart) -> Selector | AskingSelector:
    """The selector that a specification names, with its options."""
    target: Any = named.found("selector").target
    if isinstance(target, type):
        return target(**named.options)  # type: ignore[no-any-return]

    def select(texts: Sequence[str]) -> int | str:
        chosen: int | str = target(texts, **named.options)
        return chosen

    return select


def position(chosen: object, texts: Sequence[str]) -> int:
    """Return the position of a selector's choice, which is an index or one of the texts.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(chosen, str):
        if chosen not in texts:
            raise ValueError(f"it returned a text that is none of the {len(texts)} replies: {chosen!r:.80}")
        return texts.index(chosen)
    if isinstance(chosen, bool) or not hasattr(chosen, "__index__"):
        raise ValueError(f"it must return a position from 0, or one of the texts; got {chosen!r:.80}")
    place: int = chosen.__index__()
    if not 0 <= place < len(texts):
        raise ValueError(f"it chose {place}; valid: 0..{len(texts) - 1}")
    return place


@part("selector", name="judge")
class Judge:
    """Asks the agent's model in a separate call which reply is best.

    Parameters
    ----------
    question : str
        Criterion for the best reply.
    """

    def __init__(self, question: str = "Which of these replies is the best?") -> None:
        self.question = question

    def messages(self, texts: Sequence[str]) -> list[ChatMessage]:
        """The question, and the replies by number from 1."""
        shown = "\n\n".join(f"Reply {number}:\n{text}" for number, text in enumerate(texts, 1))
        return [ChatMessage("user", f"{self.question}\n\n{shown}\n\n{phrases.pick_one(len(texts))}")]

    def parse(self, call: str, text: str, received: tuple[Message, ...]) -> int:
        """The position given by the single number in the reply."""
        numbers = set(re.findall(r"\d+", text))
        if len(numbers) != 1:
            raise Rejected("the reply must name one number, and no other")
        return int(numbers.pop()) - 1


@part("selector", name="first")
def first(texts: Sequence[str]) -> int:
    """The first reply."""
    return 0


@part("selector", name="shortest")
def shortest(texts: Sequence[str]) -> int:
    """Return the position of the reply with the fewest characters, the first of several."""
    return min(range(len(texts)), key=lambda position: len(texts[position]))


@part("selector", name="longest")
def longest(texts: Sequence[str]) -> int:
    """Return the position of the reply with the most characters, the first of several."""
    return max(range(len(texts)), key=lambda position: len(texts[position]))
