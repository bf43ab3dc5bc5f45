"""The one look at a reply: its status, and its signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opinionsim.conduct._signs import Sign, remains, signs_in, wordless, words_in
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
    words = words_in(text.lower())
    known = frozenset(words)
    # Its patterns take a while to compile, and most commands read no reply.
    from opinionsim.conduct._refusals import read_answer

    answered = read_answer(text, known).status
    if answered != "answered":
        return Looked(answered)
    if speech is None or speech.looks == "none":
        return Looked(status)
    last = prompt.message.content if prompt is not None and prompt.message is not None else ""
    # The system message and the last one of a prompt count, so that a longer memory costs nothing.
    task = (speech.system, last) if speech.looks == "all" else None
    found = signs_in(text, words, known, speech, received, task)
    if found and status == "answered" and wordless(remains(text, found)):
        return Looked("empty")
    return Looked(status, tuple(found))
