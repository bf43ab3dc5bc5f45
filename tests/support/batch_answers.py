"""What a provider of batches answers to a request, and what that takes: the same at once and in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.messages import ChatMessage

#: What a model says that will not answer.
REFUSAL = "I can't help with that."

_OPENINGS = ("I think", "I still believe", "Frankly,", "To my mind", "Well,", "As I see it,", "Today I say", "Perhaps")
_SUBJECTS = (
    *("the plan", "this proposal", "such a rule", "the new law", "that idea", "this change", "the claim", "the offer"),
)
_VERDICTS = (
    *("helps more people than it harms", "costs more than it brings", "deserves a fair trial first"),
    *("is better than what we have", "does little for those who need it", "goes too far for a small town"),
    *("would work if everyone took part", "is right in most of its parts", "rests on weak evidence so far"),
    "asks a lot of young families",
)
_REASONS = (
    *("and my neighbours say the same", "because I have seen it work", "though I may change my mind"),
    *("since the figures point that way", "but nobody asked the young", "and time will tell"),
    *("as far as I know", "unless somebody shows me otherwise", "for the reasons given before", "and I said so"),
)


def sentence(messages: tuple[ChatMessage, ...], seed: int | None) -> str:
    """A sentence of 8 to 20 words, drawn by the messages and the seed."""
    number = int(sha256(canonical_json([[list(each) for each in messages], seed]).encode()).hexdigest(), 16)
    words = []
    for choices in (_OPENINGS, _SUBJECTS, _VERDICTS, _REASONS):
        number, index = divmod(number, len(choices))
        words.append(choices[index])
    return f"{' '.join(words)}."


@dataclass(frozen=True)
class Asked:
    """A request to a model, whatever the dialect."""

    body: Mapping[str, Any]
    """What was sent, with the model and without the id of the request."""
    model: str
    messages: tuple[ChatMessage, ...]
    seed: int | None

    @cached_property
    def digest(self) -> str:
        """Identity of what is bought."""
        return digest(canonical_json(self.body))

    @cached_property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return sum(len(each.content) for each in self.messages) // 4


@dataclass(frozen=True)
class Answer:
    """What a model says to a request."""

    text: str
    refused: bool
    asked: Asked

    @property
    def tokens(self) -> int:
        """Tokens of the text."""
        return len(self.text) // 4


def text_of(content: Any) -> str:
    """The text of a message, given as a text or as parts of which some are texts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or () if part.get("type", "text") == "text")
