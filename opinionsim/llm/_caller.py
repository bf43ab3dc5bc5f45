"""The caller: everything between an actor's question and a chat model's reply."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from langchain_core.messages import AIMessage

from opinionsim.errors import JournalMismatch, ModelCallError, StoreError
from opinionsim.llm._journal import CallKey, CallRecord, Journal
from opinionsim.llm._slots import SlotPool
from opinionsim.messages import ChatMessage, Reply, prompt_hash
from opinionsim.streams import call_seed

__all__ = ["CallSite", "Checks", "Client", "ReplayOnly", "RunCalls"]


_CREDENTIAL = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)", re.IGNORECASE)
_QUERY = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\"]*")
_KEY = re.compile(r"\b(sk|pk|key|token|Bearer)[-_ ][A-Za-z0-9_\-*.]{8,}")
#: Shorter values of such variables are flags and names, and stand in ordinary text.
_SHORTEST = 8


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


class RunCalls:
    """Answers the questions of one run: journal, slot, model, journal, validator, in this order.

    Parameters
    ----------
    run_id : str
        Identity of the run; part of every call's key.
    journal : Journal
        Answers what was asked before, keeps what arrives.
    client : Client
        Makes the calls.
    slots : SlotPool
        Shared with all other runs.
    timeout_s : float
        Longest wait for one attempt, seconds.

    Attributes
    ----------
    made, answered : int
        Calls the model answered, and calls the journal answered, so far.
    """

    def __init__(
        self,
        run_id: str,
        journal: Journal,
        client: Client,
        slots: SlotPool,
        *,
        timeout_s: float = 120.0,
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self._client = client
        self._slots = slots
        self._timeout_s = timeout_s
        self.made = 0
        self.answered = 0
        self._stopped = False
        self._queued: set[asyncio.Future[None]] = set()

    @property
    def limit(self) -> int:
        """Calls in flight at most, over all runs."""
        return self._slots.limit

    def stop(self) -> None:
        """Dispatch nothing more; calls in flight go on to their end and are journalled."""
        self._stopped = True
        for waiter in self._queued:
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
    ) -> Reply:
        """Answer one part of a turn.

        Parameters
        ----------
        turn : CallSite
            The turn that asks.
        spec : Checks
            Validator, applied to parts named ``reply...``, and number of attempts.
        priority : float
            Larger is served first.
        part : str
            Name of the call inside its turn.
        messages : iterable of ChatMessage
            The prompt.
        dropped : int
            Memory events a token budget left out of the prompt.

        Raises
        ------
        ModelCallError
            If the call fails or no attempt is acceptable; names run, step and agent.
        JournalMismatch
            If the journal holds something else under the call's key.
        """
        prompt = tuple(messages)
        hashed = prompt_hash(prompt)
        validator = spec.validator if part.startswith("reply") else None
        reason = ""
        for attempt in range(spec.attempts):
            key = CallKey(turn.index, part, attempt)
            record = self.journal.lookup(key)
            if record is None:
                record = await self._request(key, turn, prompt, hashed, priority, dropped, validator)
            else:
                self._verify(record, turn, hashed)
                self.answered += 1
            if record.outcome == "accepted":
                return Reply(record.text)
            reason = record.reason
        raise ModelCallError(
            f"{self._place(turn)}: none of {spec.attempts} replies was acceptable; the last one: {reason}"
        )

    async def _request(
        self,
        key: CallKey,
        turn: CallSite,
        prompt: tuple[ChatMessage, ...],
        hashed: str,
        priority: float,
        dropped: int,
        validator: Callable[[str], str | None] | None,
    ) -> CallRecord:
        """Make the call under a slot and journal whatever arrives."""
        await self._take_slot(priority)
        seed = call_seed(self.run_id, *key)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            if self._stopped:
                raise asyncio.CancelledError
            async with asyncio.timeout(self._timeout_s) as limit:
                reply = await self._client.call(prompt, seed)
        except StoreError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                raise ModelCallError(f"{self._place(turn)}: no reply within {self._timeout_s:g} s") from None
            raise ModelCallError(f"{self._place(turn)}: {type(error).__name__}: {_redacted(str(error))}") from error
        finally:
            self._slots.release()
        text = reply.text
        usage: Any = reply.usage_metadata or {}
        about = reply.response_metadata
        reason, failure = _judge(validator, text)
        self.journal.append(
            record := CallRecord(
                key,
                turn.step,
                turn.agent,
                turn.act,
                hashed,
                text,
                outcome="rejected" if reason else "accepted",
                reason=reason,
                prompt=prompt,
                seed=seed,
                dropped=dropped,
                finish_reason=str(about.get("finish_reason") or about.get("stop_reason") or ""),
                model=str(about.get("model_name") or about.get("model") or ""),
                input_tokens=usage.get("input_tokens"),
                output_tokens=usage.get("output_tokens"),
                latency_s=clock() - began,
                arrived_at=time.time(),
            )
        )
        self.made += 1
        # The slot was handed on before: let the next call leave before this reply is worked on. Replies that
        # arrive together would otherwise hold back each other's successors.
        await asyncio.sleep(0)
        if failure is not None:
            raise ModelCallError(f"{self._place(turn)}: {reason}") from failure
        return record

    async def _take_slot(self, priority: float) -> None:
        if self._stopped:
            raise asyncio.CancelledError
        if self._slots.take():
            return
        waiter = self._slots.enqueue(priority)
        self._queued.add(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # The slot may have been handed over in the same moment: then it must go on to the next.
            if waiter.done() and not waiter.cancelled():
                self._slots.release()
            raise
        finally:
            self._queued.discard(waiter)

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


def _judge(validator: Callable[[str], str | None] | None, text: str) -> tuple[str, Exception | None]:
    """Why a reply is refused ('' when it is not), and the error of a validator that broke on it.

    A broken validator must lose no reply that was paid for, so its error is raised after the journal has it.
    """
    if validator is None:
        return "", None
    try:
        return validator(text) or "", None
    except Exception as error:
        return f"the validator failed with {type(error).__name__}: {error}", error


def _redacted(text: str) -> str:
    """An error's text without credentials: errors are kept in stores and shown to others.

    Left out are values of environment variables that are named like credentials, query strings of addresses, and
    what looks like a key.
    """
    secrets = [value for name, value in os.environ.items() if _CREDENTIAL.search(name) and len(value) >= _SHORTEST]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _KEY.sub("***", _QUERY.sub(r"\1?***", text))
