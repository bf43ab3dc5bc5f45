"""Seats, at which people answer instead of models within a time limit."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from opinionsim.errors import SpecError
from opinionsim.foundation.forms import TEXT, Form
from opinionsim.llm._reply import ParsedReply
from opinionsim.messages import Message, Parsing, Prompt

if TYPE_CHECKING:
    from opinionsim.llm._journal import Journal

#: The finish reasons on record of questions without an answer: the person did not answer in time; was not asked, having
#: left; or gave only answers that could not be used.
TIMED_OUT, VACATED, UNUSABLE = "timeout", "vacated", "unusable"
#: Time-outs running after which a person counts as gone.
_GONE_AFTER = 2
#: Rejected answers after which a question counts as unanswered, so that a defective double does not go on for ever.
_MOST_REJECTED = 20
#: What the texts of a person or its double can be evidence of.
_EVIDENCE = ("human", "scripted", "model")


@dataclass(frozen=True)
class Question:
    """A question to a person at a seat.

    Attributes
    ----------
    run_id : str
        The run.
    turn, step, agent : int
        The turn of the question, its step, and the seat.
    act, call : str
        The act of the turn, and the name of the question inside it.
    attempt : int
        Number of earlier answers that were rejected.
    text : str
        The question in words for people; it is not the prompt of a model.
    messages : tuple of Message
        What the turn reads, in order.
    form : Form
        How to answer.
    reason : str
        Why the last answer was rejected; empty for the first attempt.
    asked_at : float
        Unix time at which the question was recorded.
    timeout_s : float or None
        Seconds for an answer from then on, which the person sees; None for no limit.
    """

    run_id: str
    turn: int
    step: int
    agent: int
    act: str
    call: str
    attempt: int
    text: str
    messages: tuple[Message, ...] = ()
    form: Form = TEXT
    reason: str = ""
    asked_at: float = 0.0
    timeout_s: float | None = None

    @property
    def waited_for(self) -> bool:
        """Whether the run waits for the answer; it never waits for a signal."""
        return self.form.kind != "signal"

    @property
    def deadline(self) -> float | None:
        """Unix time at which the time limit ends; None for no limit."""
        return None if self.timeout_s is None else self.asked_at + self.timeout_s

    def as_json(self) -> dict[str, Any]:
        """What a page needs in addition to the stored turns, as JSON values; turns name their messages."""
        return {
            "step": self.step,
            "act": self.act,
            "text": self.text,
            "form": self.form.as_json(),
            "reason": self.reason,
            "reads": [message.turn for message in self.messages if message.turn is not None],
            "outside": [[message.author, message.text] for message in self.messages if message.turn is None],
            "timeout_s": self.timeout_s,
        }


class Left:
    """The answer of a person who has left for good."""


#: The answer of whoever has left.
LEFT = Left()


class Person(Protocol):
    """Shows questions to a person and returns the answers; for example a page, a terminal, or a test double."""

    evidence: str
    """The evidence of the answers: ``human``, or ``scripted`` for a test double."""

    async def answer(self, question: Question) -> str | Left:
        """The person's answer, as :meth:`opinionsim.foundation.forms.Form.written` spells it; `LEFT` once they left.

        For a question with the form ``signal``, the answer comes at once; it is empty if the person wants nothing.

        Notes
        -----
        The call is cancelled if the run stops or the seat's time is over.
        """
        ...


@dataclass(frozen=True)
class Seat:
    """Answers for a member of the cast that a person plays.

    Waits use no call slot, no budget and no call time-out. The outcome, a text or a time-out, is a journal entry of
    source ``person``. The engine does not ask again for a missing answer.

    Attributes
    ----------
    person : Person
        Returns the answers.
    timeout_s : float or None
        Maximum wait for one answer in seconds, above 0, which the person must know beforehand; None for no limit. A
        later answer is ignored, and the message stays empty.
    words : int or None
        Maximum number of words of a text; None for the limit of the act.
    min_words : int or None
        Minimum number of words of a required text; None for no limit.

    Raises
    ------
    SpecError
        If `person` has no method `answer` or no valid evidence, or the time is not above 0.
    """

    person: Person
    timeout_s: float | None = None
    words: int | None = None
    min_words: int | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.person, "answer", None)):
            raise SpecError(
                f"a seat needs a person, an object with `async answer(question)`; got {type(self.person).__name__}"
            )
        if self.evidence not in _EVIDENCE:
            raise SpecError(
                f"a person must state the evidence of the answers: {type(self.person).__name__}.evidence must be "
                f"one of {', '.join(_EVIDENCE)}; got {self.evidence!r}"
            )
        number = isinstance(self.timeout_s, int | float) and not isinstance(self.timeout_s, bool)
        if self.timeout_s is not None and not (number and self.timeout_s > 0):
            raise SpecError(f"timeout_s of a seat must be above 0 seconds or None; got {self.timeout_s!r}")

    @property
    def evidence(self) -> Any:
        """The evidence of the answers."""
        return getattr(self.person, "evidence", None)

    def question(
        self, run_id: str, turn: Any, call: str, attempt: int, prompt: Prompt, reading: Parsing, reason: str = ""
    ) -> Question:
        """The current question to the person."""
        form = reading.form.limited(self.words, self.min_words, turn.place)
        text = "\n\n".join(message.content for message in prompt if message.role != "system")
        timeout_s = None if form.kind == "signal" else self.timeout_s
        place = (turn.index, turn.step, turn.agent, turn.act, call, attempt)
        return Question(run_id, *place, text, reading.received, form, reason, time.time(), timeout_s)

    async def answer(self, question: Question) -> ParsedReply:
        """The answer; empty, with the finish reason ``timeout``, if the time is over."""
        try:
            async with asyncio.timeout(question.timeout_s) as limit:
                text = await self.person.answer(question)
        except TimeoutError:
            if not limit.expired():
                raise
            return _missing(TIMED_OUT)
        if isinstance(text, Left):
            return _missing(VACATED)
        if not isinstance(text, str):
            raise SpecError(f"a person must answer with a text; got {type(text).__name__}")
        return ParsedReply(text, status="answered" if text.strip() or question.form.optional else "empty")


def _missing(reason: str) -> ParsedReply:
    return ParsedReply("", status="empty", finish_reason=reason)


def _misfit(form: Form, text: str, longest: float) -> str:
    """Why an answer does not fit its form or is too long, in words; empty where it fits."""
    if len(text) > longest:
        return f"the text has {len(text):,} characters; at most {longest:,.0f} are possible"
    try:
        # Rankings and ratings are spelled by the form, and read by the `parse` of their act.
        form.written(text) if form.kind in ("text", "choice") else None
    except SpecError as error:
        return str(error)
    return ""


class People:
    """Asks the questions of a run at its seats, and vacates a seat after two consecutive time-outs.

    Parameters
    ----------
    journal : Journal
        Records the waits for answers.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        #: Time-outs running of each seat. They follow from the entries alone, which come in the order of its turns.
        self._running: Counter[int] = Counter()

    def note(self, agent: int, finish_reason: str, form: Form) -> None:
        """Note an entry of a seat. Signals do not tell whether the person is present."""
        if form.kind != "signal" and self._running[agent] < _GONE_AFTER:
            self._running[agent] = self._running[agent] + 1 if finish_reason == TIMED_OUT else 0

    async def answer(
        self,
        seat: Seat,
        question: Question,
        rejected: int,
        longest: float,
        stoppable: Callable[[asyncio.Future[Any]], Awaitable[None]],
    ) -> tuple[ParsedReply, float, str]:
        """Ask a person, without slot, budget or call time-out.

        Parameters
        ----------
        seat : Seat
            The seat of the person, unless it is vacated.
        question : Question
            The question.
        rejected : int
            Number of rejected answers to it.
        longest : float
            Maximum number of characters of an answer.
        stoppable : callable
            Awaits a future until the run stops.

        Returns
        -------
        reply : ParsedReply
            The answer; empty, with a finish reason, if there is none.
        latency_s : float
            Seconds until the answer.
        unfit : str
            Why it does not fit its form, in words; empty if it fits.
        """
        gone = self._running[question.agent] >= _GONE_AFTER
        if gone or rejected >= _MOST_REJECTED:
            return _missing(VACATED if gone else UNUSABLE), 0.0, ""
        if question.waited_for:
            await self._journal.wait_for(question)
        clock = asyncio.get_running_loop().time
        began = clock()
        answer = asyncio.ensure_future(seat.answer(question))
        try:
            await stoppable(answer)
        finally:
            answer.cancel()
        reply = answer.result()
        unfit = _misfit(question.form, reply.text, longest) if reply.status == "answered" else ""
        return reply, clock() - began, unfit
