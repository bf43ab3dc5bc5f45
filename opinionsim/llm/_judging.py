"""What becomes of a reply: accepted, rejected, or asked for again, by its status, its signs and the act's `parse`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from opinionsim.conduct import CutOff, NoAnswer, ReplyPolicy, Sign, look, names_of, stripped
from opinionsim.errors import JournalMismatch, NothingSaid, Rejected
from opinionsim.llm._reply import ParsedReply
from opinionsim.messages import ChatMessage, Parsing, Prompt, Reply, ReplyStatus
from opinionsim.registry import RAISED, raised

if TYPE_CHECKING:
    from opinionsim.llm._journal import Entry


def cause_of(entry: Entry, policy: ReplyPolicy, again: Mapping[str, int]) -> str:
    """Why a reply was not taken: no answer, cut off, one of its signs, or rejected by a parse."""
    if entry.status != "answered":
        return "truncated" if entry.status == "truncated" else "no answer"
    return policy.asks_again(names_of(entry.signs), again)[0] or "rejected"


def asked_again(prompt: Prompt, reading: Parsing, status: ReplyStatus, cause: str, reason: str) -> Prompt:
    """A prompt for the next attempt: its last message also says what was wrong with the last reply."""
    if prompt.before is None or prompt.message is None:
        return prompt
    why = f"Your last answer could not be used: {reason}. Please answer again."
    if reading.speech is not None and reading.speech.again is not None:
        why = reading.speech.again(status if status != "answered" else cause, reason)
    return prompt.before.then(ChatMessage(prompt.message.role, f"{prompt.message.content}\n\n{why}"))


def taken(entry: Entry, policy: ReplyPolicy, decision: Any = None) -> Reply:
    """An entry as a reply: what readers get of its text."""
    text = stripped(entry.text, entry.signs, policy.taken) if entry.signs else entry.text
    return Reply(text, entry.status, decision, names_of(entry.signs)).as_said()


class Judgement(NamedTuple):
    """Whether a reply is accepted, and its decision."""

    acceptance: str
    """``accepted``, ``rejected`` or ``unparsed``."""
    reason: str = ""
    decision: Any = None
    ends: bool = False
    """Whether a rejected reply that is no answer ends the run."""
    status: ReplyStatus | Literal[""] = ""
    """The status that the reply has instead, since nothing of an answer is left to publish, or by its treatment."""
    failure: BaseException | None = None
    """Error of a `parse` that failed; raised after the journal has the reply, which was paid for."""


def parsed(reading: Parsing, call: str, text: str) -> Judgement:
    """Whether the act's `parse` accepts an answer."""
    if reading.parse is None:
        return Judgement("accepted")
    try:
        return Judgement("accepted", decision=reading.parse(call, text, reading.received))
    except Rejected as rejected:
        return Judgement("rejected", str(rejected), status="empty" if isinstance(rejected, NothingSaid) else "")
    except RAISED as error:  # a parse is a function of the user's
        return Judgement("unparsed", f"parse failed with {raised(error)}", failure=error)


def read_again(entry: Entry, reading: Parsing, at: Mapping[str, Any]) -> Judgement:
    """Whether a stored entry is accepted; an answer is parsed again unless it was rejected.

    Raises
    ------
    JournalMismatch
        If a reply that was accepted is now rejected; `at` says where.
    """
    if entry.acceptance == "rejected" or entry.status != "answered":
        return Judgement(entry.acceptance, entry.reason)
    judged = parsed(reading, entry.key.call, entry.text)
    if entry.acceptance == "accepted" and judged.acceptance == "rejected":
        raise JournalMismatch(
            f"a stored reply that was accepted is now rejected: {judged.reason}",
            advice=f"How act {entry.act!r} reads its replies was changed since; undo the change, or start these "
            "runs anew with --fresh",
            **at,
        )
    return judged


def looked_at(reply: ParsedReply, prompt: Prompt, reading: Parsing, call: str) -> tuple[ParsedReply, tuple[Sign, ...]]:
    """A reply with its status, and its signs; in a form that no refusal has, it is an answer whatever its words."""
    speech = None if reading.formal else reading.speech
    status, signs = look(reply.text, reply.status, speech=speech, prompt=prompt, received=reading.received)
    if reading.formal and status != reply.status and parsed(reading, call, reply.text).acceptance == "accepted":
        return reply, ()
    return reply._replace(status=status), signs


def judge(
    reply: ParsedReply,
    signs: Iterable[Sign],
    policy: ReplyPolicy | None,
    again: Mapping[str, int],
    reading: Parsing,
    call: str,
    *,
    doubles: bool = False,
) -> tuple[ParsedReply, Judgement]:
    """A reply with its last status, and whether it is accepted.

    Parameters
    ----------
    reply, signs
        The reply, and its signs of conduct.
    policy : ReplyPolicy or None
        What follows from them; None for a person, whose reply is only parsed.
    again : mapping of str to int
        How often the same was asked again, by cause.
    reading, call
        How it is read, and the name of the call.
    doubles : bool
        Whether there is a limit of length that could be doubled; else the same question would be cut off again.
    """
    found = _judged(reply, signs, policy, again, reading, call, doubles)
    if found.status:
        reply = reply._replace(status=found.status)
    return reply, _judged(reply, (), policy, again, reading, call, doubles) if found.status == "empty" else found


def _judged(
    reply: ParsedReply,
    signs: Iterable[Sign],
    policy: ReplyPolicy | None,
    again: Mapping[str, int],
    reading: Parsing,
    call: str,
    doubles: bool,
) -> Judgement:
    """Whether a reply is accepted: by its signs and the act's `parse` if it is an answer, else by the policy."""
    if policy is None:
        return parsed(reading, call, reply.text) if reply.status == "answered" else Judgement("accepted")
    if reply.status == "answered":
        sign, then = policy.asks_again(names_of(signs), again)
        if then in ("again", "fail"):
            return Judgement("rejected", f"the reply shows {sign}", ends=then == "fail")
        found = parsed(reading, call, reply.text)
        return found._replace(status="off_role") if then == "skip" and found.acceptance == "accepted" else found
    treatment: NoAnswer | CutOff = getattr(policy, reply.status)
    cut_off = reply.status == "truncated"
    asked = again.get("truncated" if cut_off else "no answer", 0)
    over = asked >= treatment.reask or (cut_off and not doubles)
    if over and treatment.then != "fail":
        return Judgement("accepted")
    return Judgement("rejected", f"the reply was {reply.status}", ends=over)
