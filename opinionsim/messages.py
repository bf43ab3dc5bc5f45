"""What passes between the parts: chat messages to a model, and messages agents read."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from opinionsim.streams import _ID_LENGTH, digest

__all__ = ["Ask", "ChatMessage", "Condition", "Message", "Reply", "flagged", "prompt_hash", "text_id"]

Role = Literal["system", "user", "assistant"]

#: What became of a question: an answer; a refusal, of the model or of its provider's filter; no text at all; or a
#: text cut short by the limit of its length. All but the first are missing values, which keep their rates.
Condition = Literal["answered", "refused", "empty", "truncated"]


class ChatMessage(NamedTuple):
    """One message of a prompt, as a chat model receives it."""

    role: Role
    """Who speaks: ``system``, ``user`` or ``assistant``."""
    content: str
    """The literal text."""


#: How a text that is no answer is shown to agents, itself included; ``{}`` stands for what there is of it.
_FLAGGED: dict[str, str] = {
    "refused": "[The author declined to answer.] {}",
    "empty": "[The author wrote nothing.]",
    "truncated": "{} [The text was cut off here.]",
}


def flagged(text: str, condition: Condition) -> str:
    """A text as agents read it: as it is when it is an answer, else marked as what it is instead."""
    return text if condition == "answered" else _FLAGGED[condition].replace("{}", text).strip()


class Message(NamedTuple):
    """A text that agents read: the outcome of a turn, or something from outside the run."""

    text: str
    """The literal text."""
    author: str = ""
    """Name shown when an act labels what it shows by name; empty for a stranger."""
    agent: int | None = None
    """Index of the agent that wrote it, or None for a message from outside."""
    condition: Condition = "answered"
    """Whether it is an answer at all; one that is not is measured as missing, and flagged to its readers."""

    @property
    def shown(self) -> str:
        """The text as agents read it."""
        return flagged(self.text, self.condition)


class Reply(NamedTuple):
    """What came back from a model for one part of a turn."""

    text: str
    """The reply, with any reasoning text already split off."""
    condition: Condition = "answered"
    """Whether the model answered."""

    @property
    def shown(self) -> str:
        """The text as memory keeps it."""
        return flagged(self.text, self.condition)


class Ask(Protocol):
    """The only way from an act to a chat model; journal, slots, budget and validation lie behind it."""

    def __call__(self, part: str, messages: Iterable[ChatMessage], *, dropped: int = 0) -> Awaitable[Reply]:
        """Ask the model for one part of the turn.

        Parameters
        ----------
        part : str
            Name of the call inside its turn: ``reply``, ``reply.2``, ``reflect``, ...
        messages : iterable of ChatMessage
            The prompt.
        dropped : int
            How many memory events a token budget left out of the prompt; recorded with the call.
        """
        ...


@lru_cache(maxsize=1 << 16)
def text_id(text: str) -> str:
    """Content identity of a message text; cached, for memory repeats its texts in every prompt."""
    return digest(text)


def prompt_hash(messages: Iterable[ChatMessage]) -> str:
    """Identity of a whole prompt: a hash over the roles and text identities, in order.

    Parameters
    ----------
    messages : iterable of ChatMessage
        The prompt.

    Returns
    -------
    str
        24 hexadecimal characters.
    """
    spelled = "\n".join(f"{message.role}:{text_id(message.content)}" for message in messages)
    return hashlib.sha256(spelled.encode()).hexdigest()[:_ID_LENGTH]
