"""Chat messages sent to a model, the replies, and the messages agents read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, final, get_args, overload

from opinionsim.errors import SpecError
from opinionsim.foundation.forms import TEXT, Form
from opinionsim.foundation.streams import digest

Role = Literal["system", "user", "assistant"]

#: Outcome of a question: an answer; a refusal of the model; a text that a filter of its provider withheld; a text
#: without an answer in role; no text at all; a text cut short by the limit of its length; an answer to a closed
#: question that cannot be read; an answer with a sign of conduct for which the study leaves it out; no call, since
#: nothing was left to read; or a decision without words, which is an answer too. All but the first and the last are
#: missing values.
ReplyStatus = Literal[
    "answered", "refused", "filtered", "off_role", "empty", "truncated", "unreadable", "left_out", "skipped", "silent"
]

#: Statuses of texts in which their author has said something: others receive them, and memories keep them.
SPOKEN = frozenset({"answered", "truncated", "unreadable"})
#: Statuses of messages that nobody receives.
UNHEARD = tuple(sorted(set(get_args(ReplyStatus)) - SPOKEN))
#: Statuses of turns without a text to measure that are no missing values.
WORDLESS = ("skipped", "silent")
#: Statuses of replies that are missing values, each with the head of its column in tables and its meaning there.
MISSING: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "refused": ("refused", "the last reply was also a refusal"),
        "filtered": ("filtered", "a filter of the provider withheld the last reply"),
        "off_role": ("off role", "the last reply contained no answer in role"),
        "empty": ("empty", "the last reply had no text"),
        "truncated": ("cut off", "the last reply was cut off"),
        "unreadable": ("unreadable", "the last reply to a closed question could not be read"),
        "left_out": ("left out by a sign", "the last reply showed a sign that the study excludes"),
    }
)


class ChatMessage(NamedTuple):
    """One message of a prompt, as a chat model receives it."""

    role: Role
    """Who speaks: ``system``, ``user`` or ``assistant``."""
    content: str
    """The literal text."""


#: Control characters but for newline and tab, and halves of surrogate pairs.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """The text as it can enter a prompt or a published message.

    Line ends of two characters become newlines. Any other control character except tab, and any half of a surrogate
    pair, becomes U+FFFD. The result can be encoded as UTF-8 and stored by every database.
    """
    if not _UNPRINTABLE.search(text):
        return text
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


#: Characters that move a cursor, switch a terminal's state, turn the direction of a line, or cannot be seen; texts of
#: models and users may hold them.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)


def spelled_out(text: str) -> str:
    """A text with control, bidirectional and zero-width characters spelled out; line ends and tabs stay."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def broken_up(control: Iterable[str]) -> Callable[[str], str]:
    """Break up whatever is spelled like a control token of a model, with a space after its first character."""
    # Looking ahead finds a token also where it begins inside another.
    begun = re.compile(f"(?={'|'.join(map(re.escape, control)) or '(?!)'})(.)", re.DOTALL)
    return lambda text: begun.sub(r"\1 ", text)


class Message(NamedTuple):
    """A text that agents read: the outcome of a turn, or something from outside the run."""

    text: str
    """The literal text."""
    author: str = ""
    """Name shown when an act labels what it shows by name; empty for a stranger."""
    agent: int | None = None
    """Index of the agent that wrote it, or None for a message from outside."""
    status: ReplyStatus = "answered"
    """Whether it is an answer at all; one that is not is measured as missing."""
    role: str = ""
    """Role of its author in the run: ``participant``, ``moderator``, ...; empty for a message from outside."""
    act: str = ""
    """Act that led to it; empty for a message from outside."""
    decision: Any = None
    """Decision that the act's `parse` read from it; None where there is none. Neither stored nor shown."""
    turn: int | None = None
    """Index of the turn that led to it; None for a message from outside."""
    signs: tuple[str, ...] = ()
    """Signs of conduct in the reply it was made of (:data:`opinionsim.conduct.SIGNS`)."""
    taken: str = ""
    """Those of them that were taken out of it, one blank apart."""

    @property
    def passed_on(self) -> bool:
        """Whether others receive it; they do not receive refused, empty and skipped messages."""
        return self.status in SPOKEN


def as_message(value: Message | str) -> Message:
    """Return a message from outside, which can be given as plain text.

    Raises
    ------
    SpecError
        If `value` is neither, or a message of an unknown status.
    """
    message = Message(value) if isinstance(value, str) else value
    if not isinstance(message, Message) or not isinstance(message.text, str):
        raise SpecError(f"a message from outside must be a text, or a Message with one; got {value!r:.80}")
    if message.status not in get_args(ReplyStatus):
        valid = ", ".join(get_args(ReplyStatus))
        raise SpecError(f"a message from outside has the status {message.status!r}; valid: {valid}")
    return message


class Numbers(dict[int, Mapping[str, float]]):
    """Numbers that an agent gives to messages that it read: index of the message's turn, variable, number."""


class Said(NamedTuple):
    """What a `parse` returns if an agent's words are only part of its reply.

    The text is published, read by others and coded; the journal keeps the whole reply, including, for example,
    reasoning. A blank text is a decision without words: its status is ``silent``.
    """

    text: str
    """The words."""
    decision: Any = None
    """The decision, as a `parse` returns it otherwise."""

    @classmethod
    def numbers(cls, numbers: Mapping[int, Mapping[str, float]]) -> Said:
        """:class:`Numbers` as a decision, with the text that :func:`numbers_in` reads them from.

        Raises
        ------
        SpecError
            If a turn, a variable or a number would change when it is written and read back.
        """
        told = {turn: {variable: float(number) for variable, number in each.items()} for turn, each in numbers.items()}
        lines = [
            f"{turn}: "
            + ", ".join(f"{variable} {repr(number).removesuffix('.0')}" for variable, number in each.items())
            for turn, each in told.items()
        ]
        if numbers_in(text := "\n".join(lines)) != told:
            raise SpecError(
                "numbers are finite, of variables in lower-case words, by turns from 0, and each turn has one; "
                f"got {dict(numbers)!r:.200}"
            )
        return cls(text, Numbers(numbers))


_TURN_NUMBERS = re.compile(r"(\d+): (.+)", re.ASCII)
_NUMBER = re.compile(r"([a-z][a-z0-9_-]*) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)", re.ASCII)


def numbers_in(text: str) -> dict[int, dict[str, float]]:
    """The numbers that a text gives to earlier turns, one line each, such as ``12: agreement 6, quality 5``.

    Parameters
    ----------
    text : str
        A published text. A text with a line of another form, such as a reply that could not be read, gives no numbers.

    Returns
    -------
    dict of int to dict of str to float
        As :data:`Numbers`.
    """
    found: dict[int, dict[str, float]] = {}
    for line in text.splitlines():
        told = _TURN_NUMBERS.fullmatch(line)
        pairs = [_NUMBER.fullmatch(pair) for pair in told[2].split(", ")] if told else [None]
        if told is None or None in pairs:
            return {}
        found[int(told[1])] = {pair[1]: float(pair[2]) for pair in pairs if pair}
    return found


class Reply(NamedTuple):
    """Reply of a model or a person to one call of a turn."""

    text: str
    """The reply, with any reasoning text already split off."""
    status: ReplyStatus = "answered"
    """Whether the model answered."""
    decision: Any = None
    """Decision that `parse` read from the text; None where there is no `parse`, or the reply is no answer."""
    signs: tuple[str, ...] = ()
    """Signs of conduct in it."""
    taken: str = ""
    """Those of them that were taken out of the text, one blank apart."""

    def as_said(self) -> Reply:
        """The reply with the words and the decision of a :class:`Said`."""
        if not isinstance(self.decision, Said):
            return self
        text, decision = self.decision
        return self._replace(text=text, status=self.status if text.strip() else "silent", decision=decision)


class Parse(Protocol):
    """Reads a decision from a reply; a pure function, called again whenever a run is resumed or replayed."""

    def __call__(self, call: str, text: str, received: tuple[Message, ...], /) -> Any:
        """The decision, of any type; a :class:`Said` where the words that others read are not the whole reply.

        Parameters
        ----------
        call : str
            Name of the call inside its turn: ``reply``, ``reply.2``, ``reflect``, ...
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


def take_as_is(call: str, text: str, received: tuple[Message, ...]) -> None:
    """The `parse` that accepts every reply and decides nothing."""


class Speech(NamedTuple):
    """In whose name, and how, an agent says a reply; signs of conduct depend on it."""

    author: str = ""
    """Name of the agent that speaks; empty where prompts give it none."""
    language: str = "en"
    """ISO 639-1 code of the language of the prompts; empty for any."""
    words: int | None = None
    """Most words that are asked for."""
    system: str = ""
    """The system message."""
    looks: Literal["all", "own", "none"] = "all"
    """Which signs are looked for: ``all``; those of its ``own`` words, where it may repeat what it was shown, as a
    summary does; or ``none``, where nobody is to read it."""
    again: Callable[[str, str], str] | None = None
    """``again(cause, reason)``: what is added to the task when it is asked again; `cause` is a status, a sign, or
    ``rejected``, and `reason` says why in words, such as those of a parse."""


class Parsing(NamedTuple):
    """How the replies to one call of a turn are read."""

    parse: Parse | None = None
    """Makes a decision of a reply, or rejects it; None accepts every one and decides nothing."""
    received: tuple[Message, ...] = ()
    """Messages shown in the turn, passed to `parse`."""
    attempts: int = 3
    """Number of rejected replies after which `after` applies."""
    after: Literal["stop", "none"] = "stop"
    """``stop`` stops the run; ``none`` takes the last reply without a decision."""
    formal: bool = False
    """Whether replies have a form that no refusal has: one that `parse` accepts is an answer, whatever its words."""
    closed: bool = False
    """Whether the question is closed: replies show no signs, and one that `parse` rejects is ``unreadable``."""
    form: Form = TEXT
    """How a person at a seat answers."""
    speech: Speech | None = None
    """In whose name, and how, it is to be said; None for a call in which nobody speaks, such as a judge's."""


#: Every reply is accepted and nothing decided.
AS_IS = Parsing()


class Ask(Protocol):
    """The only way from an act to a chat model or a person; it applies journal, slots, budget and `parse`."""

    def __call__(
        self,
        call: str,
        messages: Iterable[ChatMessage],
        *,
        parse: Parse | None = None,
        dropped: int = 0,
        speech: Speech | None = None,
    ) -> Awaitable[Reply]:
        """Make one call of the turn.

        Parameters
        ----------
        call : str
            Name of the call inside its turn: ``reply``, ``reply.2``, ``reflect``, ...
        messages : iterable of ChatMessage
            The prompt.
        parse : Parse, optional
            Reads the reply; default the act's own. :func:`take_as_is` for a call that decides nothing.
        dropped : int
            How many memory events a token budget left out of the prompt; recorded with the call.
        speech : Speech, optional
            In whose name, and how, the reply is to be said; default as the act's own calls.
        """
        ...


@lru_cache(maxsize=1 << 16)
def text_id(text: str) -> str:
    """Content identity of a message text; cached, because prompts of all runs repeat the same texts."""
    return digest(text)


def prompt_identity(before: str, role: str, text_id: str) -> str:
    """Identity of a prompt, from that of the prompt without its last message.

    Parameters
    ----------
    before : str
        Identity of the prompt without its last message; ``""`` where that is empty.
    role : str
        Role of the last message.
    text_id : str
        Content identity of the text of the last message.

    Returns
    -------
    str
        24 hexadecimal characters.
    """
    return digest(f"{before}\n{role}:{text_id}")


def _weight(text: str) -> int:
    """Pairs of ASCII characters, a single one counted as a pair, and bytes of all other characters."""
    if text.isascii():
        return (len(text) + 1) // 2
    n_ascii, n_bytes = len(text.encode("ascii", "ignore")), len(text.encode("utf-8", "surrogatepass"))
    return (n_ascii + 1) // 2 + n_bytes - n_ascii


@final
class Prompt(Sequence[ChatMessage]):
    """A prompt: its last message, and the prompt before that.

    The prompts of an agent begin alike, with its system message and its memory. As chains they share this beginning.
    Only added messages are hashed, converted for a model, bounded in tokens and stored. A prompt behaves as an
    immutable sequence of messages, oldest first. Prompts are equal if their identities are equal.

    Parameters
    ----------
    before : Prompt, optional
        The prompt without its last message; default none, which makes the empty prompt.
    message : ChatMessage, optional
        Its last message; given together with `before`.

    Attributes
    ----------
    before : Prompt or None
        As given.
    message : ChatMessage or None
        As given.
    text_id : str
        Content identity of the text of the last message; ``""`` for the empty prompt.
    identity : str
        Identity of the whole prompt, 24 hexadecimal characters (:func:`prompt_identity`); ``""`` for the empty prompt.
    length : int
        Number of messages.
    characters : int
        Characters of the texts of all messages.
    weight : int
        Pairs of ASCII characters and bytes of all other characters, summed over the messages: an upper bound of its
        tokens (``opinionsim.llm._budget.bound_tokens``).
    converted : object
        A list that begins with its messages in the form a chat model takes, once they are converted; None before.
    """

    __slots__ = ("before", "characters", "converted", "identity", "length", "message", "text_id", "weight")

    before: Prompt | None
    message: ChatMessage | None
    text_id: str
    identity: str
    length: int
    characters: int
    weight: int
    converted: Any

    def __init__(self, before: Prompt | None = None, message: ChatMessage | None = None) -> None:
        keep = super().__setattr__
        keep("before", before)
        keep("message", message)
        keep("converted", None)
        if before is None or message is None:
            if before is not None or message is not None:
                raise TypeError("a prompt needs both an earlier prompt and a last message, or neither")
            keep("text_id", "")
            keep("identity", "")
            keep("length", 0)
            keep("characters", 0)
            keep("weight", 0)
            return
        content = text_id(message.content)
        keep("text_id", content)
        keep("identity", prompt_identity(before.identity, message.role, content))
        keep("length", before.length + 1)
        keep("characters", before.characters + len(message.content))
        keep("weight", before.weight + _weight(message.content))

    @classmethod
    def of(cls, messages: Iterable[ChatMessage]) -> Prompt:
        """The prompt of these messages, oldest first; a prompt is returned unchanged."""
        return messages if isinstance(messages, Prompt) else EMPTY_PROMPT.then(*messages)

    def then(self, *messages: ChatMessage) -> Prompt:
        """The prompt with further messages added at its end, oldest first; it shares the beginning."""
        link = self
        for message in messages:
            link = Prompt(link, message)
        return link

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "converted":
            raise AttributeError(f"a prompt cannot change; then() returns a longer one (tried to set {name!r})")
        super().__setattr__(name, value)

    def __reversed__(self) -> Iterator[ChatMessage]:
        link = self
        while link.before is not None and link.message is not None:
            yield link.message
            link = link.before

    def __iter__(self) -> Iterator[ChatMessage]:
        return reversed(list(reversed(self)))

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, place: int) -> ChatMessage: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ChatMessage, ...]: ...
    def __getitem__(self, place: int | slice) -> ChatMessage | tuple[ChatMessage, ...]:
        if place == -1 and self.message is not None:
            return self.message
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Prompt) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"<Prompt of {self.length} messages {self.identity}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Link by link, a long chain would exceed the recursion depth of pickling and copying.
        return Prompt.of, (tuple(self),)


#: The prompt without messages.
EMPTY_PROMPT = Prompt()
