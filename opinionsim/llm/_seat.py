"""A seat: the place in a run's cast that a person takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from opinionsim.errors import SpecError
from opinionsim.forms import TEXT, Form
from opinionsim.llm._reply import ParsedReply
from opinionsim.messages import ChatMessage, Message

#: The finish reason on record where a person did not answer in time.
TIMED_OUT = "timeout"


@dataclass(frozen=True)
class Question:
    """What a person at a seat is asked.

    Attributes
    ----------
    run_id : str
        The run.
    turn, step, agent : int
        The turn that asks, its step, and the seat.
    act, part : str
        The act of the turn, and the name of the question inside it.
    attempt : int
        Number of earlier answers that were rejected.
    text : str
        What is asked, in words for people; not the prompt of a model.
    messages : tuple of Message
        What the turn reads, in order.
    form : Form
        How to answer.
    reason : str
        Why the last answer was rejected; empty at first.
    asked_at : float
        Unix time at which it was put on record.
    timeout_s : float or None
        Seconds for an answer from then on, announced to the person; None for no end.
    """

    run_id: str
    turn: int
    step: int
    agent: int
    act: str
    part: str
    attempt: int
    text: str
    messages: tuple[Message, ...] = ()
    form: Form = TEXT
    reason: str = ""
    asked_at: float = 0.0
    timeout_s: float | None = None


class Person(Protocol):
    """Shows questions to a person and returns the answers: a page, a terminal, or a double in a test."""

    evidence: str
    """What the answers are evidence of: ``human``, or ``scripted`` for a double."""

    async def answer(self, question: Question) -> str:
        """The person's answer, as :meth:`opinionsim.forms.Form.written` spells it.

        A question whose form is ``signal`` is answered at once, with nothing where nothing is wanted.

        Notes
        -----
        Cancelled when the run is stopped or the seat's time is over.
        """
        ...


@dataclass(frozen=True)
class Seat:
    """Answers for a member of the cast that a person plays.

    The wait holds no call slot, no budget and no call time-out. The outcome, a text or a time-out, is a journal entry
    of source ``person``; a missing answer is not asked for again.

    Attributes
    ----------
    person : Person
        Brings the answers.
    timeout_s : float or None
        Longest wait for one answer, seconds, above 0, to be announced to the person beforehand; None waits without
        end. An answer that comes later is not taken: the message stays empty.

    Raises
    ------
    SpecError
        If `person` has no method `answer`, or the time is not above 0.
    """

    person: Person
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.person, "answer", None)):
            raise SpecError(
                f"a seat needs somebody to answer: an object with `async answer(turn, part, messages)`; "
                f"got {type(self.person).__name__}"
            )
        number = isinstance(self.timeout_s, int | float) and not isinstance(self.timeout_s, bool)
        if self.timeout_s is not None and not (number and self.timeout_s > 0):
            raise SpecError(f"timeout_s of a seat must be above 0 seconds, or none; got {self.timeout_s!r}")

    async def answer(self, turn: Any, part: str, messages: Iterable[ChatMessage]) -> ParsedReply:
        """The answer as it arrives; empty, with the finish reason ``timeout``, when the time is over."""
        try:
            async with asyncio.timeout(self.timeout_s) as limit:
                text = await self.person.answer(turn, part, tuple(messages))
        except TimeoutError:
            if not limit.expired():
                raise
            return ParsedReply("", condition="empty", finish_reason=TIMED_OUT)
        if not isinstance(text, str):
            raise SpecError(f"a person answers with a text; got {type(text).__name__}")
        return ParsedReply(text, condition="answered" if text.strip() else "empty")
