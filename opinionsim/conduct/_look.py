"""The one look at a reply: its status, and its signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opinionsim.conduct._signs import Occasion, Sign, signs_in, stripped, wordless
from opinionsim.messages import Message, Prompt, ReplyStatus, Speech


class Looked(NamedTuple):
    """What a reply is, and what it shows."""

    status: ReplyStatus
    """``answered``, ``refused``, ``off_role``, ``empty`` or ``truncated``."""
    signs: tuple[Sign, ...] = ()
    """The signs of an answer, by place."""


def look(
    text: str,
    status: ReplyStatus,
    *,
    speech: Speech | None = None,
    prompt: Prompt | None = None,
    received: Sequence[Message] = (),
) -> Looked:
    """Look at a reply by the rules of the package.

    Parameters
    ----------
    text : str
        The reply, reasoning split off.
    status : str
        What its provider says of it: ``answered``, ``refused``, ``empty`` or ``truncated``.
    speech : Speech, optional
        In whose name and how it was to be said; by default no signs are looked for.
    prompt : Prompt, optional
        What was asked.
    received : sequence of Message
        The messages that were shown.

    Returns
    -------
    Looked
        Refusals of the provider, and a text that was cut off, stay what they are.
    """
    if status not in ("answered", "truncated"):
        return Looked(status)
    if not text.strip() or wordless(text):
        return Looked("empty" if status == "answered" else status)
    # Its patterns take a while to compile, and most commands read no reply.
    from opinionsim.conduct._refusals import read_answer

    answered, flag = read_answer(text)
    if answered != "answered":
        return Looked(answered)
    if speech is None:
        return Looked(status)
    found = signs_in(text, _shown(speech, prompt, received))
    if flag and not any(sign.name in ("preamble", "role") for sign in found):
        found.append(Sign("role", 0, len(text)))
    if found and wordless(stripped(text, found, ("preamble", "names", "markup"))):
        return Looked("empty")
    return Looked(status, tuple(found))


def _shown(speech: Speech, prompt: Prompt | None, received: Sequence[Message]) -> Occasion:
    """For what a reply was asked. Of a prompt, the system message and the last one count: memories cost nothing."""
    last = prompt.message.content if prompt is not None and prompt.message is not None else ""
    others = tuple(dict.fromkeys(message.author for message in received if message.author not in ("", speech.author)))
    read = tuple(message.text for message in received)
    return Occasion(speech.author, others, speech.language, speech.words, read, (speech.system, last))
