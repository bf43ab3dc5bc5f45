"""What passes between the parts: chat messages to a model, and messages agents read."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, get_args

from opinionsim.errors import SpecError
from opinionsim.streams import _ID_LENGTH, digest

__all__ = [
    "AS_IS",
    "Ask",
    "ChatMessage",
    "Condition",
    "Message",
    "Parse",
    "Reading",
    "Reply",
    "as_message",
    "flagged",
    "prompt_hash",
    "take_as_is",
    "text_id",
]

Role = Literal["system", "user", "assistant"]

#: What became of a question: an answer; a refusal, of the model or of its provider's filter; no text at all; a text
#: cut short by the limit of its length; or nobody was asked, since nothing was left to read. All but the first are
#: missing values, which keep their rates.
Condition = Literal["answered", "refused", "empty", "truncated", "skipped"]

#: Conditions of messages that others receive; the rest hold nothing an agent has said.
_PASSED_ON = frozenset({"answered", "truncated"})


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
    "skipped": "",
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
    """Whether it is an answer at all; one that is not is measured as missing."""
    role: str = ""
    """Role of its author in the run: ``participant``, ``moderator``, ...; empty for a message from outside."""
    act: str = ""
    """Act that led to it; empty for a message from outside."""
    decision: Any = None
    """What the act's `parse` made of it; None where there is none. Neither stored nor shown."""

    @property
    def shown(self) -> str:
        """The text as agents read it."""
        return flagged(self.text, self.condition)

    @property
    def passed_on(self) -> bool:
        """Whether others receive it: refused, empty and skipped messages are left out of what they read."""
        return self.condition in _PASSED_ON


def as_message(value: Message | str) -> Message:
    """A message from outside, which may be given as plain text.

    Raises
    ------
    SpecError
        If it is neither, or a message of an unknown condition.
    """
    message = Message(value) if isinstance(value, str) else value
    if not isinstance(message, Message) or not isinstance(message.text, str):
        raise SpecError(f"a message from outside must be a text, or a Message with one; got {value!r:.80}")
    if message.condition not in get_args(Condition):
        valid = ", ".join(get_args(Condition))
        raise SpecError(f"a message from outside has the condition {message.condition!r}; valid: {valid}")
    return message


class Reply(NamedTuple):
    """What came back from a model for one part of a turn."""

    text: str
    """The reply, with any reasoning text already split off."""
    condition: Condition = "answered"
    """Whether the model answered."""
    decision: Any = None
    """What `parse` made of the text; None where there is no `parse`, or the reply is no answer."""

    @property
    def shown(self) -> str:
        """The text as memory keeps it."""
        return flagged(self.text, self.condition)


class Parse(Protocol):
    """Reads a decision from a reply; a pure function, called again whenever a run is resumed or replayed."""

    def __call__(self, part: str, text: str, received: tuple[Message, ...], /) -> Any:
        """The decision, of any type.

        Parameters
        ----------
        part : str
            Which call of the turn was answered: ``reply``, ``reply.2``, ``reflect``, ...
        text : str
            The reply.
        received : tuple of Message
            What the agent was shown in the turn.

        Raises
        ------
        Rejected
            If the reply cannot be used; says why in words. Another one is asked for, as often as the act allows.
        """
        ...


def take_as_is(part: str, text: str, received: tuple[Message, ...]) -> None:
    """The `parse` that accepts every reply and decides nothing."""


class Reading(NamedTuple):
    """How the replies to one part of a turn are read."""

    parse: Parse | None = None
    """Makes a decision of a reply, or rejects it; None accepts every one and decides nothing."""
    received: tuple[Message, ...] = ()
    """What `parse` is told was shown in the turn."""
    attempts: int = 3
    """How many replies may be rejected."""
    after: Literal["stop", "none"] = "stop"
    """What happens then: the run stops, or the last reply is taken without a decision."""


#: Every reply is accepted and nothing decided.
AS_IS = Reading()


class Ask(Protocol):
    """The only way from an act to a chat model or a person; journal, slots, budget and `parse` lie behind it."""

    def __call__(
        self, part: str, messages: Iterable[ChatMessage], *, parse: Parse | None = None, dropped: int = 0
    ) -> Awaitable[Reply]:
        """Ask for one part of the turn.

        Parameters
        ----------
        part : str
            Name of the call inside its turn: ``reply``, ``reply.2``, ``reflect``, ...
        messages : iterable of ChatMessage
            The prompt.
        parse : Parse, optional
            Reads the reply; default the act's own. :func:`take_as_is` for a part that decides nothing.
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
