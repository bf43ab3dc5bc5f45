"""A seat: a person in the place of a model, and the time that person has to answer."""

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
    """What a person at a seat is asked.

    Attributes
    ----------
    run_id : str
        The run.
    turn, step, agent : int
        The turn that asks, its step, and the seat.
    act, call : str
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
        """Whether the run waits for the answer; a signal is given at once, or not at all."""
        return self.form.kind != "signal"

    @property
    def deadline(self) -> float | None:
        """Unix time at which the time is over; None for no end."""
        return None if self.timeout_s is None else self.asked_at + self.timeout_s

    def as_json(self) -> dict[str, Any]:
        """What a page needs beside the turns on record, as JSON values; messages of turns are named by these."""
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
    """What a person answers that has left for good."""


#: The answer of whoever has left.
LEFT = Left()


class Person(Protocol):
    """Shows questions to a person and returns the answers: a page, a terminal, or a double in a test."""

    evidence: str
    """What the answers are evidence of: ``human``, or ``scripted`` for a double."""

    async def answer(self, question: Question) -> str | Left:
        """The person's answer, as :meth:`opinionsim.foundation.forms.Form.written` spells it; `LEFT` once it has left.

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
    words : int or None
        Most words of a text; None for no limit but that of the act.
    min_words : int or None
        Least words of a text that must be given; None for no limit.

    Raises
    ------
    SpecError
        If `person` has no method `answer` or states no evidence, or the time is not above 0.
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
                f"a person must state what the answers are evidence of: {type(self.person).__name__}.evidence must be "
                f"one of {', '.join(_EVIDENCE)}; got {self.evidence!r}"
            )
        number = isinstance(self.timeout_s, int | float) and not isinstance(self.timeout_s, bool)
        if self.timeout_s is not None and not (number and self.timeout_s > 0):
            raise SpecError(f"timeout_s of a seat must be above 0 seconds or None; got {self.timeout_s!r}")

    @property
    def evidence(self) -> Any:
        """What the answers are evidence of."""
        return getattr(self.person, "evidence", None)

    def question(
        self, run_id: str, turn: Any, call: str, attempt: int, prompt: Prompt, reading: Parsing, reason: str = ""
    ) -> Question:
        """What the person is asked now."""
        form = reading.form.limited(self.words, self.min_words, turn.place)
        text = "\n\n".join(message.content for message in prompt if message.role != "system")
        timeout_s = None if form.kind == "signal" else self.timeout_s
        place = (turn.index, turn.step, turn.agent, turn.act, call, attempt)
        return Question(run_id, *place, text, reading.received, form, reason, time.time(), timeout_s)

    async def answer(self, question: Question) -> ParsedReply:
        """The answer as it arrives; empty, with the finish reason ``timeout``, when the time is over."""
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
    """The questions of a run to its seats, each vacated after two time-outs running.

    Parameters
    ----------
    journal : Journal
        Keeps the waits for answers.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        #: Time-outs running of each seat. They follow from the entries alone, which come in the order of its turns.
        self._running: Counter[int] = Counter()

    def note(self, agent: int, finish_reason: str, form: Form) -> None:
        """Take note of an entry of a seat; signals tell nothing of whether a person is there."""
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
        """Ask a person, without slot, budget and call time-out.

        Parameters
        ----------
        seat : Seat
            Whose person is asked, unless it is vacated.
        question : Question
            What is asked.
        rejected : int
            Number of answers to it that were rejected.
        longest : float
            Most characters of an answer.
        stoppable : callable
            Awaits a future until the run is stopped.

        Returns
        -------
        reply : ParsedReply
            The answer; empty, with a finish reason, where there is none.
        latency_s : float
            Seconds that it took.
        unfit : str
            Why it does not fit its form, in words; empty where it does.
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
