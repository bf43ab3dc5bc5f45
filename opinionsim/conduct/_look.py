"""Determines the status and the signs of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opinionsim.conduct._signs import Sign, remains, signs_in, wordless, words_in
from opinionsim.messages import Message, Prompt, ReplyStatus, Speech


class Looked(NamedTuple):
    """The status and the signs of a reply."""

    status: ReplyStatus
    """``answered``, ``refused``, ``off_role``, ``empty`` or ``truncated``."""
    signs: tuple[Sign, ...] = ()
    """The signs of an answer, in order of their place."""


def look(
    text: str,
    status: ReplyStatus,
    *,
    speech: Speech | None = None,
    prompt: Prompt | None = None,
    received: Sequence[Message] = (),
) -> Looked:
    """Apply the rules of the package to a reply.

    Parameters
    ----------
    text : str
        The reply without reasoning.
    status : str
        The status from its provider: ``answered``, ``refused``, ``empty`` or ``truncated``.
    speech : Speech, optional
        In whose name and how the text was requested; by default, the function looks for no signs.
    prompt : Prompt, optional
        The prompt of the call.
    received : sequence of Message
        The messages that the agent was shown.

    Returns
    -------
    Looked
        Refusals from the provider and truncated texts keep their status.
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
