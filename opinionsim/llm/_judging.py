"""Decides whether a reply is accepted, by its status, its signs and the act's `parse`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from opinionsim.conduct import Sign, names_of, stripped
from opinionsim.errors import JournalMismatch, NothingSaid, Rejected, SpecError
from opinionsim.llm._reply import ParsedReply
from opinionsim.messages import SPOKEN, ChatMessage, Parsing, Prompt, Reply, ReplyStatus, Said
from opinionsim.registry import RAISED, raised

if TYPE_CHECKING:
    from opinionsim.llm._endpoint import Endpoint
    from opinionsim.llm._journal import Entry


def asked_again(prompt: Prompt, reading: Parsing, judged: Judgement) -> Prompt:
    """A prompt for the next attempt, in which the last message also states what was wrong with the last reply.

    This sentence comes at the end, or before a last line such as "Your post:".
    """
    if prompt.before is None or prompt.message is None:
        return prompt
    why = f"Your last answer could not be used: {judged.reason}. Please answer again."
    if reading.speech is not None and reading.speech.again is not None:
        why = reading.speech.again(judged.cause, judged.reason)
    task, _, cue = prompt.message.content.rpartition("\n")
    parts = (task.rstrip(), why, cue) if task and cue.endswith(":") else (prompt.message.content, why)
    return prompt.before.then(ChatMessage(prompt.message.role, "\n\n".join(parts)))


def reply_of(entry: Entry, decision: Any = None, parse: Reads | None = None) -> Reply:
    """An entry as a reply; `parse` is that of :func:`judge`, which made its decision."""
    if entry.taken and isinstance(decision, Said):
        # Words that stand apart in the reply have no places of their own in it: they are read from what is left.
        apart = parse(entry.left).decision if parse and decision.text not in entry.text else None
        decision = decision._replace(text=apart.text if isinstance(apart, Said) else entry.left_of(decision.text))
    names = names_of(entry.signs) if entry.signs else ()
    return Reply(entry.left, entry.status, decision, names, entry.taken).as_said()


class Judgement(NamedTuple):
    """Whether a reply is accepted, and its decision."""

    acceptance: str = "accepted"
    """``accepted``, ``rejected`` or ``unparsed``."""
    cause: str = ""
    """Why it was rejected: its status, a sign, or ``rejected`` for the act's `parse`."""
    reason: str = ""
    """The same in words."""
    decision: Any = None
    ends: bool = False
    """Whether a rejected reply ends the run, even if the act allows others."""
    status: ReplyStatus | Literal[""] = ""
    """The new status that `parse` or the treatment gives the reply."""
    failure: BaseException | None = None
    """Error of a `parse` or of a user's sign; raised once the journal contains the reply, which was paid for."""


Follows = Callable[[ReplyStatus, Sequence[str]], tuple[str, str]]
Reads = Callable[[str], Judgement]


def parsed(reading: Parsing, call: str, text: str) -> Judgement:
    """Whether the act's `parse` accepts an answer."""
    if reading.parse is None:
        return Judgement()
    try:
        return Judgement(decision=reading.parse(call, text, reading.received))
    except NothingSaid as rejected:
        return Judgement("rejected", "empty", str(rejected), status="empty")
    except Rejected as rejected:
        status: Literal["unreadable", ""] = "unreadable" if reading.closed else ""
        return Judgement("rejected", status or "rejected", str(rejected), status=status)
    except RAISED as error:  # a parse is a function of the user's
        return Judgement("unparsed", reason=f"parse failed with {raised(error)}", failure=error)


def read_again(entry: Entry, reading: Parsing, at: Mapping[str, Any]) -> Judgement:
    """The judgement of a journal entry. An answer that was not rejected is parsed again to get its decision.

    A reply that was not checked, because a judge or a sign failed, is rejected without a cause.

    Raises
    ------
    JournalMismatch
        If an accepted reply is now rejected; `at` names the place.
    """
    unseen = entry.acceptance == "unparsed" and entry.source == "model" and not entry.rules
    if unseen or entry.acceptance == "rejected":
        return Judgement("rejected", entry.cause, entry.reason)
    if entry.status != "answered":
        return Judgement()
    judged = parsed(reading, entry.key.call, entry.text)
    if entry.acceptance == "accepted" and judged.acceptance == "rejected":
        raise JournalMismatch(
            f"a stored reply that was accepted is now rejected: {judged.reason}",
            advice=f"Act {entry.act!r} reads replies differently now; undo this, or start these runs anew with --fresh",
            **at,
        )
    return judged


async def treated(
    reply: ParsedReply, prompt: Prompt, endpoint: Endpoint, again: Mapping[str, int], reading: Parsing, parse: Reads
) -> tuple[Judgement, dict[str, Any]]:
    """Whether a model's reply is accepted, and its entry with signs, removed signs and rules.

    A reply in a form that no refusal has is an answer, regardless of its words. `again` counts earlier repetitions of
    the question by cause; `parse` is that of :func:`judge`.
    """
    policy, speech = endpoint.replies, reading.speech
    if speech is not None and (reading.closed or speech.looks == "none"):
        speech = None
    own = speech is not None and speech.looks == "own"
    shown = {"prompt": None if own else prompt, "received": () if own else reading.received}
    try:
        status, signs = await policy.look(reply.text, reply.status, speech=speech, **shown)
    except RAISED as error:  # a judge and a sign may be the user's own
        told = str(error) if isinstance(error, SpecError) else raised(error)
        return Judgement("unparsed", reason=told, failure=error), {}
    # A reply that declines a closed question may still name one of its answers.
    has_form = reading.formal or (reading.closed and status != "refused")
    if has_form and status not in (reply.status, "empty") and parse(reply.text).acceptance == "accepted":
        status = reply.status
    signs = tuple(_unless_asked_for(sign, reply.text, prompt, reading) for sign in signs) if signs else ()
    names = names_of(signs) if signs else ()
    follows = partial(policy.follows, asked=again, doubles=endpoint.max_tokens is not None)
    sure = policy.taken.intersection(sign.name for sign in signs if sign.sure) if signs else ()
    taken = " ".join(name for name in names if name in sure)
    if taken and reading.parse is None and not stripped(reply.text, signs, taken.split()).strip():
        status = "empty"
    judged = judge(reply.text, status, names, follows, parse)
    return judged, {"signs": signs, "taken": taken, "rules": policy.rules}


def _unless_asked_for(sign: Sign, text: str, prompt: Prompt, reading: Parsing) -> Sign:
    """A sign; one whose words the task asks for, such as "Final answer:", may not be taken out: instruments read it."""
    words = text[sign.start : sign.end].strip().casefold() if sign.sure and sign.name == "preamble" else ""
    asked = words and prompt.message is not None and words in prompt.message.content.casefold()
    # What others wrote stands in the task too, and asks for nothing.
    read = asked and any(words in message.text.casefold() for message in reading.received)
    return sign._replace(sure=False) if asked and not read else sign


def judge(
    text: str, status: ReplyStatus, signs: Sequence[str], follows: Follows | None, parse: Reads, reason: str = ""
) -> Judgement:
    """Judge a reply by its status and signs and, if it is an answer, by the act's `parse`.

    Parameters
    ----------
    text, status, signs
        The reply, its status, and the names of its signs of conduct.
    follows : callable or None
        The consequence of status and signs (:meth:`opinionsim.conduct.ReplyPolicy.follows`); None for a person, whose
        reply is only parsed.
    parse : callable
        Tells whether the act accepts an answer; for example :func:`parsed` with the way to read it.
    reason : str
        Why a `parse` gave it this status.
    """
    if follows is not None:
        cause, then = follows(status, signs)
        if then in ("again", "fail"):
            told = reason or (f"the reply shows {cause}" if cause != status else f"the reply was {status}")
            return Judgement("rejected", cause, told, ends=then == "fail", status=status)
        if then == "skip" and status in SPOKEN:
            return Judgement(status="left_out")
    if status != "answered":
        return Judgement(reason=reason, status=status)
    found = parse(text)
    if not found.status or (follows is None and found.status != "empty"):
        return found._replace(status=status)
    return judge(text, found.status, (), follows, parse, found.reason)
