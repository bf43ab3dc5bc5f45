"""Makes calls to models: attempts, time limits, the journal, and the acceptance of replies."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from opinionsim.conduct import ReplyPolicy
from opinionsim.errors import (
    JournalMismatch,
    ModelCallError,
    OpinionSimError,
    ScheduleError,
    StoreError,
)
from opinionsim.foundation.streams import call_seed
from opinionsim.llm._budget import Budget, Usage, bound_tokens
from opinionsim.llm._call_name import REPLY
from opinionsim.llm._failures import Failure, classify_failure, wait_s
from opinionsim.llm._journal import Entry, EntryKey, Journal
from opinionsim.llm._judging import Judgement, asked_again, judge, parsed, read_again, reply_of, treated
from opinionsim.llm._policy import Fallback, Lane, RetryPolicy
from opinionsim.llm._prices import Price
from opinionsim.llm._reply import ParsedReply, read_reply
from opinionsim.llm._seat import People, Seat
from opinionsim.llm._slots import AccountSlots, Ending, SlotPool
from opinionsim.messages import AS_IS, ChatMessage, Parsing, Prompt, Reply
from opinionsim.registry import RAISED, raised

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    #: What an attempt brings.
    _Got = AIMessage | Failure

#: The finish reason on record where a provider refused the prompt with an error instead of a reply.
FILTERED = "content_filter"

#: Tokens of instructions that a provider may add to a prompt, and far more than any is known to add.
_PROVIDERS_OWN = 100_000

#: What asks for the flexible tier of a provider, and its usual time limit, seconds.
_FLEX: Mapping[str, Any] = {"service_tier": "flex", "timeout": 900.0}

#: Seconds between two looks at a journal that is behind.
_LOOK_S = 0.02


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


class Client(Protocol):
    """Makes single calls: :class:`opinionsim.llm.ModelClient`, or a substitute."""

    async def call(self, messages: Prompt, seed: int, max_tokens: int | None = None, **options: Any) -> AIMessage:
        """Make one attempt at one call; raises whatever the model raises.

        `max_tokens` is set if the reply may be longer than the model's own limit, and `options` are those of a lane.
        """
        ...


class _NewCall(NamedTuple):
    """A call that the journal does not hold."""

    key: EntryKey
    prompt: Prompt
    seed: int
    priority: float
    asked: Endpoint | Seat
    cut_off: int
    """Number of earlier replies to the same call that were cut off."""


class ReplayOnly:
    """Replaces the chat model in a run that may use only its journal."""

    async def call(
        self, messages: Iterable[ChatMessage], seed: int, max_tokens: int | None = None, **options: Any
    ) -> AIMessage:
        """Refuse."""
        raise StoreError("replay needs a call that the store lacks; complete the run with `opinionsim run`")


@dataclass(frozen=True)
class Endpoint:
    """A model that answers agents, with its account, price and limits.

    Attributes
    ----------
    client : Client
        Makes the calls.
    account : str
        Calls of one account share its provider's rate limit.
    networked : bool
        Whether a provider answers over a network, with an unknown rate limit.
    price : Price or None
        Price of its tokens; None if unknown.
    max_tokens : int or None
        Maximum length of a reply; None for the provider's default.
    replies : ReplyPolicy
        How to treat replies that are not answers.
    lane : str
        How to buy calls: ``now``, or ``flex``, the provider's flexible tier.
    fallback : str
        What to do if that tier refuses a call: ``wait``, or ask again ``now``, at the list price.
    """

    client: Client
    account: str = "local"
    networked: bool = False
    price: Price | None = None
    max_tokens: int | None = None
    replies: ReplyPolicy = field(default_factory=ReplyPolicy)
    lane: Lane = "now"
    fallback: Fallback = "wait"

    def longest(self, cut_off: int) -> int | None:
        """Maximum length of a reply after `cut_off` replies to the question were cut off; it doubles each time."""
        return None if self.max_tokens is None else self.max_tokens * 2**cut_off

    def options(self, cut_off: int, flex_s: float | None) -> dict[str, Any]:
        """Options of a call after replies that were cut off; `flex_s` asks for the flexible tier, and is its limit."""
        asked = {} if flex_s is None else {**_FLEX, "timeout": flex_s}
        return {**asked, "max_tokens": self.longest(cut_off)} if cut_off else asked

    def worst(self, prompt: Iterable[ChatMessage], longest: int | None = None) -> Usage:
        """Maximum usage of a call, as far as it can be bounded beforehand; `longest` is by default `max_tokens`."""
        tokens, longest = bound_tokens(prompt), longest or self.max_tokens or 0
        # A reply through the flexible tier may state another one, and costs the list price then.
        return Usage(1, tokens + longest, 0.0 if self.price is None else self.price.cost(tokens, longest))


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
    made, answered, repeated, cost : int, float
        Replies of models, replies from the journal, repeated attempts, and money spent so far.
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
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self.answering = answering if isinstance(answering, Sequence) else Endpoint(answering)
        self._slots = slots
        self._retry, self._timeout_s = retry or RetryPolicy(), timeout_s
        self._budget = budget
        self.longest_prompt, self.names_steps = float("inf"), True
        self.seed_of: Callable[[int, str, int], int] = partial(call_seed, run_id)
        self.made, self.answered, self.repeated, self.cost = 0, 0, 0, 0.0
        self.prompts: dict[int, Prompt] | None = None
        self._people = People(journal)
        self._stopped = False
        self._waiting: set[asyncio.Future[Any]] = set()

    @property
    def limit(self) -> int:
        """Maximum number of calls in flight over all runs."""
        return self._slots.limit

    def stop(self) -> None:
        """Stop new calls and waits at seats; calls in flight finish and enter the journal."""
        self._stopped = True
        for waiter in self._waiting:
            waiter.cancel()

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
                question = _NewCall(key, prompt, self.seed_of(*key), priority, asked, again["truncated"])
                looked: dict[str, Any] = {}
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

    async def _reply(self, turn: CallSite, question: _NewCall, asked: Endpoint) -> tuple[ParsedReply, float]:
        """What a model answers, and the seconds it took."""
        try:
            if self._budget is None:
                return await self._call(question, asked)
            worst = asked.worst(question.prompt, asked.longest(question.cut_off))
            reservation = await self._budget.reserve(worst, (self.run_id, *question.key))
            try:
                reply, latency_s = await self._call(question, asked)
                reservation.settle(_used(asked, reply, worst))
                return reply, latency_s
            finally:
                reservation.cancel()
        except ModelCallError as error:
            raise error.at(**self._at(turn)) from error.__cause__

    async def _answer(
        self, turn: CallSite, question: _NewCall, seat: Seat, reading: Parsing, rejected: int, told: str
    ) -> tuple[ParsedReply, float, str]:
        """A person's answer, the seconds it took, and why it does not fit its form; takes no slot and no budget."""
        if self._stopped:
            raise asyncio.CancelledError
        asking = seat.question(self.run_id, turn, *question.key[1:], question.prompt, reading, told)
        try:
            return await self._people.answer(seat, asking, rejected, self.longest_prompt, self._stoppable)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._stopped or (task is not None and task.cancelling()):
                raise
            raise ModelCallError("the person left the seat before they answered", **self._at(turn)) from None
        except OpinionSimError:
            raise
        except RAISED as error:  # a person's interface may raise anything
            raise ModelCallError(f"the seat failed with {raised(error)}", **self._at(turn)) from error

    async def _call(self, question: _NewCall, endpoint: Endpoint) -> tuple[ParsedReply, float]:
        """A model's reply, and the seconds it took; attempts that failed are repeated with the same seed."""
        allowed: dict[str, int] = self._retry.allowed
        failed, flex = dict.fromkeys(allowed, 0), endpoint.lane == "flex"
        pool, client, clock = self._slots, endpoint.client, asyncio.get_running_loop().time
        # What waits for a model in this process waits here, where its time does not run yet.
        most = getattr(getattr(client, "behind", client), "slots", None)
        account = pool.account(endpoint.account, adaptive=endpoint.networked, most=most)
        while True:
            pool.check(client)
            await self._until_kept()
            await self._take_slot(account, question.priority, client)
            if self.journal.behind or pool.refuses(client):
                account.release("failed")
                continue
            began = clock()
            got = await self._attempt(account, question, endpoint, flex)
            if not isinstance(got, Failure):
                return _read(got, question.prompt), clock() - began
            if got.kind == "content-filter":
                return ParsedReply("", status="filtered", finish_reason=FILTERED), clock() - began
            if got.kind == "any-request":
                # Without the probabilities that a study reads, nothing more is asked of the model behind them either.
                pool.refuse(getattr(client, "behind", client), got.reason)
                pool.refuse(client, got.reason)
                pool.check(client)
            if flex and got.kind == "no-room":
                # That costs nothing: the call waits for the tier as long as it takes.
                if not (flex := endpoint.fallback == "wait"):
                    continue
            elif failed.get(got.kind, 0) >= allowed.get(got.kind, 0):
                tries = sum(failed.values()) + 1
                raise ModelCallError(got.reason + (f" (after {tries} tries)" if tries > 1 else ""))
            failed[got.kind] += 1
            self.repeated += 1
            await self._pause(sum(failed.values()), got, question.seed, client)

    async def _attempt(self, account: AccountSlots, question: _NewCall, endpoint: Endpoint, flex: bool) -> _Got:
        """The model's message, or its failure; uses a slot that is already taken, and frees it."""
        ending: Ending = "failed"
        retry_after_s = None
        timeout_s = max(self._timeout_s, _FLEX["timeout"] * flex)
        options = endpoint.options(question.cut_off, timeout_s if flex else None)
        try:
            if self._stopped:
                raise asyncio.CancelledError
            try:
                async with asyncio.timeout(timeout_s) as limit:
                    message = await endpoint.client.call(question.prompt, question.seed, **options)
                ending = "ok"
                return message
            except StoreError:
                raise
            except RAISED as error:
                if isinstance(error, TimeoutError) and limit.expired():
                    return Failure("transient", f"no reply within {timeout_s:g} s")
                failure = classify_failure(error, networked=endpoint.networked)
            if failure.kind == "rate-limited":
                ending, retry_after_s = "rate-limited", failure.retry_after_s
            return failure
        finally:
            account.release(ending, retry_after_s=retry_after_s)

    async def _until_kept(self) -> None:
        """Wait as long as replies cannot be made durable: nothing is bought that cannot be kept."""
        self.journal.check()
        while self.journal.behind and not self._stopped:
            await asyncio.sleep(_LOOK_S)
            self.journal.check()

    async def _take_slot(self, account: AccountSlots, priority: float, client: Client) -> None:
        if self._stopped:
            raise asyncio.CancelledError
        if account.take():
            return
        waiter = account.enqueue(priority)
        try:
            await self._stoppable(waiter, client)
        except asyncio.CancelledError:
            # The slot may have been handed over in the same moment: then it must go to the next call.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                account.release("failed")
            raise

    async def _pause(self, repetitions: int, failure: Failure, seed: int, client: Client) -> None:
        """Back off without a slot. The jitter is drawn from the call's seed and changes no result."""
        rng = np.random.default_rng((seed, repetitions))
        first_s, longest_s = self._retry.first_wait_s, self._retry.longest_wait_s
        seconds = wait_s(repetitions, failure, first_s=first_s, longest_s=longest_s, rng=rng)
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        alarm = loop.call_later(seconds, _finish, over)
        try:
            await self._stoppable(over, client)
        finally:
            alarm.cancel()

    async def _stoppable(self, waiter: asyncio.Future[Any], client: Client | None = None) -> None:
        """Await `waiter`, unless the run is stopped or its client refused."""
        if self._stopped:
            waiter.cancel()
        self._waiting.add(waiter)
        waiter.add_done_callback(self._waiting.discard)
        if client is not None:
            self._slots.until_refused(client, waiter)
        await waiter

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


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _read(message: AIMessage, prompt: Prompt) -> ParsedReply:
    """A reply taken apart; if that fails, its whole content as text, since it was paid for.

    Tokens that cannot be those of the prompt, even beside instructions of the provider's own, count as not reported.
    """
    try:
        reply = read_reply(message)
    except Exception:
        return ParsedReply(str(message.content))
    if (reply.input_tokens or 0) > _PROVIDERS_OWN + 20 * bound_tokens(prompt):
        return reply._replace(input_tokens=None, cached_tokens=None)
    return reply


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
