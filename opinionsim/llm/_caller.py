"""The caller: everything between an actor's question and a chat model's reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np
from langchain_core.messages import AIMessage

from opinionsim.errors import JournalMismatch, ModelCallError, StoreError
from opinionsim.llm._budget import Budget, Usage, bound_tokens
from opinionsim.llm._failures import Failure, classify_failure, wait_s
from opinionsim.llm._journal import CallKey, CallRecord, Journal
from opinionsim.llm._prices import Price
from opinionsim.llm._reply import Arrival, read_reply
from opinionsim.llm._slots import Lane, SlotPool
from opinionsim.messages import ChatMessage, Condition, Reply, prompt_hash
from opinionsim.streams import call_seed

__all__ = [
    "FILTERED",
    "KEEP_ALL",
    "CallSite",
    "Checks",
    "Client",
    "Endpoint",
    "Patience",
    "ReplayOnly",
    "ReplyPolicy",
    "RunCalls",
]

#: What is done about replies that are no answers: ``keep``, ``fail``, or ask again so many times and then keep.
ReplyPolicy = Mapping[Condition, Literal["keep", "fail"] | int]

#: The finish reason on record where a provider refused the prompt with an error instead of a reply.
FILTERED = "content_filter"

#: The default: they stay, are measured as missing, and are flagged to their readers.
KEEP_ALL: ReplyPolicy = MappingProxyType({"refused": "keep", "empty": "keep", "truncated": "keep"})


class CallSite(Protocol):
    """The turn a call belongs to."""

    @property
    def index(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def agent(self) -> int: ...
    @property
    def act(self) -> str: ...


class Checks(Protocol):
    """What an act demands of its replies."""

    @property
    def validator(self) -> Callable[[str], str | None] | None: ...
    @property
    def attempts(self) -> int: ...


class Client(Protocol):
    """Whoever makes single calls: :class:`opinionsim.llm.ModelClient`, or what stands in for it."""

    async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
        """One attempt at one call; raises whatever the model raises."""
        ...


class ReplayOnly:
    """Stands in for the chat model where a run must be answered by its journal alone."""

    async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
        """Refuse."""
        raise StoreError("replay needs a call that the store does not hold; finish the run with `opinionsim run`")


@dataclass(frozen=True)
class Endpoint:
    """Who answers an agent, and on what terms.

    Attributes
    ----------
    client : Client
        Makes the calls.
    account : str
        Calls of one account share its provider's rate limit.
    networked : bool
        Whether the account has a limit to be found out.
    price : Price or None
        Of its tokens; None where it is not known.
    max_tokens : int or None
        Longest reply; None where it is left to the provider.
    replies : ReplyPolicy
        What is done about replies that are no answers.
    """

    client: Client
    account: str = "local"
    networked: bool = False
    price: Price | None = None
    max_tokens: int | None = None
    replies: ReplyPolicy = field(default_factory=lambda: KEEP_ALL)

    def worst(self, prompt: Iterable[ChatMessage]) -> Usage:
        """What a call can use at most, as far as it can be bounded beforehand."""
        tokens, longest = bound_tokens(prompt), self.max_tokens or 0
        return Usage(1, tokens + longest, self.cost(tokens, longest) or 0.0)

    def cost(
        self, input_tokens: int | None, output_tokens: int | None, cached_tokens: int | None = None
    ) -> float | None:
        """Money for a call; None where its price or its tokens are not known."""
        if self.price is None or input_tokens is None or output_tokens is None:
            return None
        return self.price.cost(input_tokens, output_tokens, cached_tokens or 0)


@dataclass(frozen=True)
class Patience:
    """How long a call is waited for, and how often it is tried again after a failure of transport.

    Attributes
    ----------
    timeout_s : float
        Longest wait for one attempt, seconds.
    transient, rate_limited : int
        Attempts repeated after a passing failure, and after a provider's "too many requests".
    first_wait_s, longest_wait_s : float
        Back-off before the first repetition, doubled from one to the next, seconds.
    """

    timeout_s: float = 120.0
    transient: int = 5
    rate_limited: int = 20
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0


class RunCalls:
    """Answers the questions of one run: journal, budget, slot, model, policy, validator, journal, in this order.

    Parameters
    ----------
    run_id : str
        Identity of the run; part of every call's key.
    journal : Journal
        Answers what was asked before, keeps what arrives.
    answering : Client, or sequence of Endpoint
        Who answers every agent, or who answers each.
    slots : SlotPool
        Shared with all other runs.
    patience : Patience
        Time-outs and repetitions.
    budget : Budget, optional
        Shared with all other runs; default none.

    Attributes
    ----------
    made, answered, repeated : int
        Calls the model answered, calls the journal answered, and attempts that failed and were repeated, so far.
    """

    def __init__(
        self,
        run_id: str,
        journal: Journal,
        answering: Client | Sequence[Endpoint],
        slots: SlotPool,
        *,
        patience: Patience | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self._endpoints = answering if isinstance(answering, Sequence) else None
        self._everybody = None if isinstance(answering, Sequence) else Endpoint(answering)
        self._slots = slots
        self._patience = patience or Patience()
        self._budget = budget
        self.made = 0
        self.answered = 0
        self.repeated = 0
        self._stopped = False
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def limit(self) -> int:
        """Calls in flight at most, over all runs."""
        return self._slots.limit

    def stop(self) -> None:
        """Dispatch nothing more; calls in flight go on to their end and are journalled."""
        self._stopped = True
        for waiter in self._waiting:
            waiter.cancel()

    async def ask(
        self,
        turn: CallSite,
        spec: Checks,
        priority: float,
        part: str,
        messages: Iterable[ChatMessage],
        *,
        dropped: int = 0,
        endpoint: Endpoint | None = None,
    ) -> Reply:
        """Answer one part of a turn.

        Parameters
        ----------
        turn : CallSite
            The turn that asks.
        spec : Checks
            Validator, applied to parts named ``reply...``, and how many replies it may see.
        priority : float
            Larger is served first.
        part : str
            Name of the call inside its turn.
        messages : iterable of ChatMessage
            The prompt.
        dropped : int
            Memory events a token budget left out of the prompt.
        endpoint : Endpoint, optional
            Who answers; default whoever answers the turn's agent.

        Raises
        ------
        ModelCallError
            If the call fails or no attempt is acceptable; names run, step and agent.
        BudgetExceeded
            If the call could exceed the budget.
        JournalMismatch
            If the journal holds something else under the call's key.
        """
        prompt = tuple(messages)
        hashed = prompt_hash(prompt)
        endpoint = endpoint or self._endpoint(turn.agent)
        validator = spec.validator if part.startswith("reply") else None
        refused = missing = 0
        for attempt in count():
            key = CallKey(turn.index, part, attempt)
            record = self.journal.lookup(key)
            if stored := record is not None:
                self._verify(record, turn, hashed)
                self.answered += 1
            else:
                judge = _Judge(endpoint.replies, missing, validator)
                record = await self._request(key, turn, prompt, hashed, priority, dropped, endpoint, judge)
            if record.outcome == "accepted":
                return Reply(record.text, record.condition)
            if record.condition != "answered":
                missing += 1
                failure = record.reason if endpoint.replies[record.condition] == "fail" else ""
            else:
                refused += 1
                none = f"none of {spec.attempts} replies was acceptable; the last one: {record.reason}"
                failure = none if refused % spec.attempts == 0 else ""
            # What stopped the run before does not stop it again: whoever carries it out anew asks anew.
            if failure and not stored:
                raise ModelCallError(f"{self._place(turn)}: {failure}")
        raise AssertionError("attempts never run out")  # for the type checker: count() has no end

    def _endpoint(self, agent: int) -> Endpoint:
        if self._everybody is not None:
            return self._everybody
        return self._endpoints[agent]  # type: ignore[index]

    async def _request(
        self,
        key: CallKey,
        turn: CallSite,
        prompt: tuple[ChatMessage, ...],
        hashed: str,
        priority: float,
        dropped: int,
        endpoint: Endpoint,
        judge: _Judge,
    ) -> CallRecord:
        """Make the call and journal whatever arrives."""
        seed = call_seed(self.run_id, *key)
        if self._budget is None:
            arrival, latency_s = await self._arrival(turn, prompt, seed, priority, endpoint)
        else:
            worst = endpoint.worst(prompt)
            reservation = await self._budget.reserve(worst)
            try:
                arrival, latency_s = await self._arrival(turn, prompt, seed, priority, endpoint)
                reservation.settle(_used(endpoint, arrival, worst))
            finally:
                reservation.cancel()
        outcome, reason, failure = judge(arrival)
        cost = endpoint.cost(arrival.input_tokens, arrival.output_tokens, arrival.cached_tokens)
        self.journal.append(
            record := CallRecord(
                key,
                turn.step,
                turn.agent,
                turn.act,
                hashed,
                arrival.text,
                outcome=outcome,
                reason=reason,
                prompt=prompt,
                seed=seed,
                dropped=dropped,
                finish_reason=arrival.finish_reason,
                model=arrival.model,
                input_tokens=arrival.input_tokens,
                output_tokens=arrival.output_tokens,
                latency_s=latency_s,
                arrived_at=time.time(),
                condition=arrival.condition,
                reasoning=arrival.reasoning,
                cached_tokens=arrival.cached_tokens,
                reasoning_tokens=arrival.reasoning_tokens,
                cost=cost,
            )
        )
        self.made += 1
        # The slot was handed on before: let the next call leave before this reply is worked on. Replies that
        # arrive together would otherwise hold back each other's successors.
        await asyncio.sleep(0)
        if failure is not None:
            raise ModelCallError(f"{self._place(turn)}: {reason}") from failure
        return record

    async def _arrival(
        self,
        turn: CallSite,
        prompt: tuple[ChatMessage, ...],
        seed: int,
        priority: float,
        endpoint: Endpoint,
    ) -> tuple[Arrival, float]:
        """What arrives for a call, and the seconds it took; passing failures are repeated with the same seed."""
        failed = {"transient": 0, "rate-limited": 0}
        allowed = {"transient": self._patience.transient, "rate-limited": self._patience.rate_limited}
        lane = self._slots.lane(endpoint.account, adaptive=endpoint.networked)
        clock = asyncio.get_running_loop().time
        while True:
            await self._take_slot(lane, priority)
            began = clock()
            got = await self._attempt(lane, prompt, seed, endpoint)
            if isinstance(got, AIMessage):
                return _read(got), clock() - began
            if got.kind == "content-filter":
                return Arrival("", condition="refused", finish_reason=FILTERED), clock() - began
            if got.kind == "permanent" or failed[got.kind] >= allowed[got.kind]:
                tries = sum(failed.values()) + 1
                after = f" (after {tries} tries)" if tries > 1 else ""
                raise ModelCallError(f"{self._place(turn)}: {got.reason}{after}")
            failed[got.kind] += 1
            self.repeated += 1
            await self._pause(sum(failed.values()), got, seed)

    async def _attempt(
        self, lane: Lane, prompt: tuple[ChatMessage, ...], seed: int, endpoint: Endpoint
    ) -> AIMessage | Failure:
        """One attempt under a slot that is taken already, and free afterwards."""
        verdict: Literal["ok", "failed", "rate-limited"] = "failed"
        retry_after_s = None
        try:
            if self._stopped:
                raise asyncio.CancelledError
            got = await self._called(prompt, seed, endpoint)
            if isinstance(got, AIMessage):
                verdict = "ok"
            elif got.kind == "rate-limited":
                verdict, retry_after_s = "rate-limited", got.retry_after_s
            return got
        finally:
            lane.release(verdict, retry_after_s=retry_after_s)

    async def _called(self, prompt: tuple[ChatMessage, ...], seed: int, endpoint: Endpoint) -> AIMessage | Failure:
        """What the model returns, or why it did not."""
        timeout_s = self._patience.timeout_s
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return await endpoint.client.call(prompt, seed)
        except StoreError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return Failure("transient", f"no reply within {timeout_s:g} s", None)
            return classify_failure(error, networked=endpoint.networked)

    async def _take_slot(self, lane: Lane, priority: float) -> None:
        if self._stopped:
            raise asyncio.CancelledError
        if lane.take():
            return
        waiter = lane.enqueue(priority)
        try:
            await self._stoppable(waiter)
        except asyncio.CancelledError:
            # The slot may have been handed over in the same moment: then it must go on to the next.
            if waiter.done() and not waiter.cancelled():
                lane.release("failed")
            raise

    async def _pause(self, repetitions: int, failure: Failure, seed: int) -> None:
        """Back off, without a slot. The jitter is drawn from the call's seed: it changes no result, only when."""
        first_s, longest_s = self._patience.first_wait_s, self._patience.longest_wait_s
        rng = np.random.default_rng((seed, repetitions))
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seconds = wait_s(repetitions, failure, first_s=first_s, longest_s=longest_s, rng=rng)
        alarm = asyncio.get_running_loop().call_later(seconds, _finish, over)
        try:
            await self._stoppable(over)
        finally:
            alarm.cancel()

    async def _stoppable(self, waiter: asyncio.Future[None]) -> None:
        """Wait for something that is not worth waiting for once the run is to stop."""
        if self._stopped:
            waiter.cancel()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    def _verify(self, record: CallRecord, turn: CallSite, hashed: str) -> None:
        """A journal entry is used only for the question it answered."""
        asked = (turn.act, turn.agent, hashed)
        stored = (record.act, record.agent, record.prompt_hash)
        if asked != stored:
            raise JournalMismatch(
                f"{self._place(turn)}: the store holds a reply to another question under this call: "
                f"stored act {stored[0]!r}, agent {stored[1]}, prompt {stored[2][:12]}; "
                f"now asked act {asked[0]!r}, agent {asked[1]}, prompt {asked[2][:12]}. "
                "The wording of the prompts was changed since; undo the change, or start these runs anew with --fresh"
            )
        if record.seed is not None and record.seed != call_seed(self.run_id, *record.key):
            raise JournalMismatch(f"{self._place(turn)}: the journal is that of another run; give each its own")

    def _place(self, turn: CallSite) -> str:
        return f"run {self.run_id}, step {turn.step}, agent {turn.agent} ({turn.act})"


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _read(message: AIMessage) -> Arrival:
    """A reply taken apart; whole, in whatever shape it came, if it cannot be: it was paid for."""
    try:
        return read_reply(message)
    except Exception:
        return Arrival(str(message.content))


def _used(endpoint: Endpoint, arrival: Arrival, worst: Usage) -> Usage:
    """What a call used; the most it could have where the provider does not say."""
    if arrival.finish_reason == FILTERED and arrival.input_tokens is None:
        return Usage(1)  # refused before any token was made
    if arrival.input_tokens is None or arrival.output_tokens is None:
        return worst
    cost = endpoint.cost(arrival.input_tokens, arrival.output_tokens, arrival.cached_tokens)
    return Usage(1, arrival.input_tokens + arrival.output_tokens, cost or 0.0)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Whether a reply is taken: by the policy on replies that are no answers, else by the act's validator.

    Attributes
    ----------
    policy : ReplyPolicy
        Of the endpoint.
    missing : int
        How many replies to this part were no answers before.
    validator : callable or None
        Of the act.
    """

    policy: ReplyPolicy
    missing: int
    validator: Callable[[str], str | None] | None

    def __call__(self, arrival: Arrival) -> tuple[str, str, Exception | None]:
        """Outcome, reason, and the error of a validator that broke.

        A broken validator must lose no reply that was paid for, so its error is raised after the journal has it.
        """
        if arrival.condition != "answered":
            todo = self.policy[arrival.condition]
            if todo == "keep" or (isinstance(todo, int) and self.missing >= todo):
                return "accepted", "", None
            return "rejected", f"the reply was {arrival.condition}", None
        if self.validator is None:
            return "accepted", "", None
        try:
            reason = self.validator(arrival.text) or ""
        except Exception as error:
            return "rejected", f"the validator failed with {type(error).__name__}: {error}", error
        return ("rejected" if reason else "accepted"), reason, None
