"""Makes calls to models: attempts, time limits, the journal, and the acceptance of replies."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

from opinionsim.errors import (
    JournalMismatch,
    ModelCallError,
    OpinionSimError,
    ScheduleError,
)
from opinionsim.foundation.streams import call_seed
from opinionsim.llm._attempts import FILTERED, Attempts
from opinionsim.llm._budget import Budget, Usage
from opinionsim.llm._call_name import REPLY
from opinionsim.llm._endpoint import BatchQueues, Client, Endpoint, NewCall
from opinionsim.llm._journal import Entry, EntryKey, Journal
from opinionsim.llm._judging import Judgement, asked_again, judge, parsed, read_again, reply_of, treated
from opinionsim.llm._policy import RetryPolicy
from opinionsim.llm._reply import ParsedReply
from opinionsim.llm._seat import People, Seat
from opinionsim.llm._slots import SlotPool
from opinionsim.messages import AS_IS, ChatMessage, Parsing, Prompt, Reply
from opinionsim.registry import RAISED, raised


class CallSite(Protocol):
    """The turn that a call belongs to."""

    @property
    def index(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def agent(self) -> int: ...
    @property
    def act(self) -> str: ...


class RunCalls:
    """Answers the questions of one run. The order is journal, budget, slot, model, policy, `parse`, journal.

    Parameters
    ----------
    run_id : str
        Identity of the run; part of every call's key.
    journal : Journal
        Returns stored replies and keeps new ones.
    answering : Client, or sequence of Endpoint or Seat
        One client for the whole cast, or one endpoint or seat for each member.
    slots : SlotPool
        Shared with all other runs.
    retry : RetryPolicy, optional
        How to repeat attempts after temporary failures.
    timeout_s : float
        Maximum wait for one attempt, in seconds.
    budget : Budget, optional
        Shared with all other runs; default none.
    batches : BatchQueues, optional
        Shared with all other runs; default none.

    Attributes
    ----------
    answering, prompts : object
        Who answers, and the prompt of each turn's reply so far; with None, prompts are not kept.
    longest_prompt : float
        Maximum number of characters of a prompt, and of a reply that prompts may show; unlimited until set.
    names_steps : bool
        Whether errors name the step of a turn in addition to its number.
    seed_of : callable
        Seed of a call by turn, call and attempt; by default a hash of these and the run.
    limit : int
        Maximum number of calls in flight over all runs.
    made, answered, cost : int, float
        Replies of models, replies from the journal, and money spent so far.
    """

    def __init__(
        self,
        run_id: str,
        journal: Journal,
        answering: Client | Sequence[Endpoint | Seat],
        slots: SlotPool,
        *,
        retry: RetryPolicy | None = None,
        timeout_s: float = 120.0,
        budget: Budget | None = None,
        batches: BatchQueues | None = None,
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self.answering = answering if isinstance(answering, Sequence) else Endpoint(answering)
        self.limit = slots.limit
        self._attempts = Attempts(journal, slots, retry or RetryPolicy(), timeout_s, batches)
        self._budget = budget
        self.longest_prompt, self.names_steps = float("inf"), True
        self.seed_of: Callable[[int, str, int], int] = partial(call_seed, run_id)
        self.made, self.answered, self.cost = 0, 0, 0.0
        self.prompts: dict[int, Prompt] | None = None
        self._people = People(journal)

    @property
    def repeated(self) -> int:
        """Number of repeated attempts."""
        return self._attempts.repeated

    def stop(self) -> None:
        """Stop new calls and waits at seats and for batches; calls in flight finish and enter the journal."""
        self._attempts.stop()

    async def ask(
        self,
        turn: CallSite,
        call: str,
        messages: Iterable[ChatMessage],
        *,
        reading: Parsing = AS_IS,
        priority: float = 0.0,
        dropped: int = 0,
        endpoint: Endpoint | None = None,
    ) -> Reply:
        """Answer one call of a turn.

        Parameters
        ----------
        turn : CallSite
            The turn that asks.
        call : str
            Name of the call inside its turn.
        messages : iterable of ChatMessage
            The prompt, oldest first. For a :class:`opinionsim.messages.Prompt`, only new messages take time.
        reading : Parsing
            How to read answers; by default unchanged.
        priority : float
            Larger is served first.
        dropped : int
            Number of memory events that a token budget left out of the prompt.
        endpoint : Endpoint, optional
            The model that answers; default the endpoint or seat of the turn's agent.

        Raises
        ------
        ModelCallError
            If the call fails, no attempt is acceptable, or prompt or reply is too long. The message names run, turn and
            agent.
        ScheduleError
            If `parse` raises an unexpected error. The message names turn and call; the journal keeps the reply.
        BudgetExceeded
            If the call could exceed the budget.
        JournalMismatch
            If the journal contains something else under the call's key, or a reply that `parse` now rejects.
        """
        prompt = Prompt.of(messages)
        everybody = endpoint or self.answering
        asked = everybody[turn.agent] if isinstance(everybody, Sequence) else everybody
        person = isinstance(asked, Seat)
        rejected, told, first, parse = 0, "", prompt, partial(parsed, reading, call)
        again: Counter[str] = Counter()
        if call == REPLY and self.prompts is not None:
            self.prompts[turn.index] = prompt
        for attempt in count():
            key = EntryKey(turn.index, call, attempt)
            entry = self.journal.lookup(key)
            stored = entry is not None
            if entry is not None:
                _verify(entry, turn, prompt, self.seed_of(*key), self._at)
                self.answered += 1
                judged = read_again(entry, reading, self._at(turn))
            else:
                self._require_short(turn, prompt.characters, "the prompt")
                question = NewCall(self.run_id, key, prompt, self.seed_of(*key), priority, again["truncated"])
                looked: dict[str, Any] = {}
                latency_s: float | None
                if isinstance(asked, Seat):
                    reply, latency_s, unfit = await self._answer(turn, question, asked, reading, rejected, told)
                    judged = judge(reply.text, reply.status, (), None, parse)
                    judged = Judgement("rejected", "rejected", unfit) if unfit else judged
                else:
                    reply, latency_s = await self._reply(turn, question, asked)
                    judged, looked = await treated(reply, prompt, asked, again, reading, parse)
                entry = Entry(
                    key,
                    turn.step,
                    turn.agent,
                    turn.act,
                    prompt.identity,
                    **{**reply._asdict(), **looked, "status": judged.status or reply.status},
                    acceptance=judged.acceptance,
                    cause=judged.cause,
                    reason=judged.reason,
                    prompt=prompt,
                    seed=None if person else question.seed,
                    dropped=dropped,
                    latency_s=latency_s,
                    arrived_at=time.time(),
                    **_money(asked, reply),
                    source="person" if person else "model",
                )
                self.journal.append(entry)
                self.made += not person
                self.cost += entry.cost or 0.0
                # The slot is free again: let the next call leave before this reply is processed. Otherwise replies
                # that arrive together would delay each other's next calls.
                await asyncio.sleep(0)
            if entry.source == "person":
                self._people.note(turn.agent, entry.finish_reason, reading.form)
            if judged.failure is not None:
                mend = "to reject a reply, raise opinionsim.errors.Rejected"
                raise ScheduleError(
                    judged.reason,
                    advice=f"The reply is kept; {mend if person or entry.rules else 'the engine asks again'}",
                    **self._at(turn, f", call {call!r}"),
                ) from judged.failure
            if judged.acceptance == "accepted":
                self._require_short(turn, len(entry.text), "the reply, which is kept,")
                return reply_of(entry, judged.decision, parse)
            if entry.source == "person":
                # A person may try again, whatever the act allows a model.
                rejected, told = rejected + 1, judged.reason
                continue
            if not judged.cause:
                continue  # nobody has looked at it, so there is nothing to tell: the same is asked again
            prompt = asked_again(first, reading, judged)
            if judged.cause != "rejected":
                again[judged.cause] += 1
                failure = judged.reason if judged.ends else ""
            else:
                rejected += 1
                if reading.after == "none" and rejected == reading.attempts:
                    return reply_of(entry)
                none = f"none of {reading.attempts} replies was acceptable; the last one: {judged.reason}"
                failure = none if rejected % reading.attempts == 0 else ""
            # A stored failure does not stop the run again: a resumed run asks anew.
            if failure and not stored:
                raise ModelCallError(failure, **self._at(turn))
        raise AssertionError("attempts never run out")  # for the type checker: count() has no end

    async def _reply(self, turn: CallSite, question: NewCall, asked: Endpoint) -> tuple[ParsedReply, float | None]:
        """What a model answers, and the seconds it took."""
        attempts = self._attempts
        try:
            if self._budget is None:
                return await attempts.call(question, asked)
            longest, queued = asked.longest(question.cut_off), attempts.queued(question, asked)
            worst = asked.worst(question.prompt, longest, queued=queued)
            reservation = attempts.reserved(question)
            if reservation is None:
                reservation = await self._budget.reserve(worst, (self.run_id, *question.key))
            try:
                reply, latency_s = await attempts.call(question, asked)
                reservation.settle(_used(asked, reply, worst))
                return reply, latency_s
            finally:
                reservation.cancel()
        except ModelCallError as error:
            raise error.at(**self._at(turn)) from error.__cause__

    async def _answer(
        self, turn: CallSite, question: NewCall, seat: Seat, reading: Parsing, rejected: int, told: str
    ) -> tuple[ParsedReply, float, str]:
        """A person's answer, the seconds it took, and why it does not fit its form; takes no slot and no budget."""
        attempts = self._attempts
        if attempts.stopped:
            raise asyncio.CancelledError
        asking = seat.question(self.run_id, turn, *question.key[1:], question.prompt, reading, told)
        try:
            return await self._people.answer(seat, asking, rejected, self.longest_prompt, attempts.stoppable)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if attempts.stopped or (task is not None and task.cancelling()):
                raise
            raise ModelCallError("the person left the seat before they answered", **self._at(turn)) from None
        except OpinionSimError:
            raise
        except RAISED as error:  # a person's interface may raise anything
            raise ModelCallError(f"the seat failed with {raised(error)}", **self._at(turn)) from error

    def _require_short(self, turn: CallSite, characters: int, what: str) -> None:
        """Refuse to go on with more characters than a prompt may have."""
        if characters > self.longest_prompt:
            allowed = f"execution.max_prompt_characters is {self.longest_prompt:,}; raise it to continue"
            raise ModelCallError(f"{what} has {characters:,} characters, and {allowed}", **self._at(turn))

    def _at(self, turn: CallSite, call: str = "") -> dict[str, Any]:
        """The place of an error of a turn, and the values that name it."""
        step = f"step {turn.step}, " if self.names_steps else ""
        place = f"run {self.run_id}, {step}turn {turn.index}, agent {turn.agent} ({turn.act}){call}"
        values = {"step": turn.step, "turn": turn.index, "agent": turn.agent, "act": turn.act}
        return {"place": place, "run": self.run_id, **values}


def _verify(record: Entry, turn: CallSite, prompt: Prompt, seed: int, at: Callable[[CallSite], dict[str, Any]]) -> None:
    """Refuse a journal entry that answers another question or belongs to another run."""
    # What is taken over from another run may have been asked in other words there.
    asked = (turn.act, turn.agent, record.prompt_hash if record.source == "import" else prompt.identity)
    stored = (record.act, record.agent, record.prompt_hash)
    if asked != stored:
        raise JournalMismatch(
            f"the store has a reply to a different question for this call: stored act {stored[0]!r}, agent "
            f"{stored[1]}, prompt {stored[2][:12]}; now asked act {asked[0]!r}, agent {asked[1]}, prompt "
            f"{asked[2][:12]}",
            advice="The prompts have changed since; undo the change, or start these runs anew with --fresh",
            code="journal-prompt",
            **at(turn),
        )
    if record.seed is not None and record.seed != seed:
        raise JournalMismatch("the journal belongs to another run; give each run its own", **at(turn))


def _money(endpoint: Endpoint | Seat, reply: ParsedReply) -> dict[str, Any]:
    """What a call cost, and what the provider's cache saved of it; None where prices or tokens are not known."""
    price = None if isinstance(endpoint, Seat) or endpoint.price is None else endpoint.price.at(reply.lane)
    given, said, cached = reply.input_tokens, reply.output_tokens, reply.cached_tokens
    cost = None if price is None or given is None or said is None else price.cost(given, said, cached or 0)
    return {"cost": cost, "saved": None if price is None or cached is None else price.saved(cached)}


def _used(endpoint: Endpoint, reply: ParsedReply, worst: Usage) -> Usage:
    """What a call used; `worst` where the provider does not say."""
    if reply.finish_reason == FILTERED and reply.input_tokens is None:
        return Usage(1)  # refused before any token was made
    if reply.input_tokens is None or reply.output_tokens is None:
        return worst
    return Usage(1, reply.input_tokens + reply.output_tokens, _money(endpoint, reply)["cost"] or 0.0)
