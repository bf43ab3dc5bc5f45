"""What passes between the parts: chat messages to a model, and messages agents read."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from opinionsim.streams import _ID_LENGTH, digest

__all__ = ["Ask", "ChatMessage", "Message", "Reply", "prompt_hash", "text_id"]

Role = Literal["system", "user", "assistant"]


class ChatMessage(NamedTuple):
    """One message of a prompt, as a chat model receives it."""

    role: Role
    """Who speaks: ``system``, ``user`` or ``assistant``."""
    content: str
    """The literal text."""


class Message(NamedTuple):
    """A text that agents read: the outcome of a turn, or something from outside the run."""

    text: str
    """The literal text."""
    author: str = ""
    """Name shown when an act labels what it shows by name; empty for a stranger."""
    agent: int | None = None
    """Index of the agent that wrote it, or None for a message from outside."""


class Reply(NamedTuple):
    """What came back from a model for one part of a turn."""

    text: str
    """The reply, with any reasoning text already split off."""


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
