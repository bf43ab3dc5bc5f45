"""The record of everything that entered a run from outside, and the port it is kept behind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from opinionsim.messages import ChatMessage, Condition

__all__ = ["CallKey", "CallRecord", "Journal", "MemoryJournal"]


class CallKey(NamedTuple):
    """Identity of a call within its run."""

    turn: int
    """Index of the turn."""
    part: str
    """Name of the call inside its turn: ``reply``, ``reply.2``, ``reflect``, ``rating``, ..."""
    attempt: int
    """How many replies to this part arrived before and were rejected."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One journal entry: what was asked under a key, and what arrived.

    Attributes
    ----------
    key : CallKey
        Identity within the run.
    step, agent, act : int, int, str
        Of the turn; checked, with `prompt_hash`, when the entry is used again.
    prompt_hash : str
        :func:`opinionsim.messages.prompt_hash` of the literal prompt.
    text : str
        What arrived.
    outcome : str
        ``accepted``, ``rejected`` (the act's validator refused it) or ``rating`` (a measured opinion an
        adaptive schedule acted on; no model was called).
    reason : str
        Why it was rejected; empty otherwise.
    condition : str
        ``answered``, ``refused``, ``empty`` or ``truncated``.
    reasoning : str
        What the model thought aloud before it answered; part of no message and no memory.
    prompt : tuple of ChatMessage or None
        The literal prompt; None when read back from a store, which keeps it content-addressed.
    seed : int or None
        Seed sent with the call, in [0, 2**31).
    dropped : int
        Memory events left out of the prompt by a token budget.
    finish_reason, model : str
        As the provider returned them; empty when it did not.
    input_tokens, output_tokens : int or None
        As the provider counted them; output includes reasoning.
    cached_tokens, reasoning_tokens : int or None
        Of these, input the provider had in its cache, and output that is reasoning.
    cost : float or None
        Money, by the price table in use at the time; None where it has no price for the model.
    latency_s : float or None
        Seconds from dispatch to arrival of the attempt that succeeded.
    arrived_at : float or None
        Unix time of arrival.
    """

    key: CallKey
    step: int
    agent: int
    act: str
    prompt_hash: str
    text: str
    outcome: str = "accepted"
    reason: str = ""
    prompt: tuple[ChatMessage, ...] | None = None
    seed: int | None = None
    dropped: int = 0
    finish_reason: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_s: float | None = None
    arrived_at: float | None = None
    condition: Condition = "answered"
    reasoning: str = ""
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


class Journal(Protocol):
    """Append-only record of one run's calls.

    `append` returns at once; entries become durable in the order they were appended, within 0.2 s, so
    that whatever survives a crash is closed under dependencies. An entry is visible to `lookup` as soon
    as it is appended.
    """

    def lookup(self, key: CallKey) -> CallRecord | None:
        """The entry under `key`, or None."""
        ...

    def append(self, record: CallRecord) -> None:
        """Add an entry.

        Raises
        ------
        StoreError
            If the claim under which the run is executed has passed to somebody else, or the store
            failed to keep an earlier entry.
        """
        ...


class MemoryJournal:
    """A journal that lives as long as the process."""

    def __init__(self, records: Iterable[CallRecord] = ()) -> None:
        self._records: dict[CallKey, CallRecord] = {}
        for record in records:
            self.append(record)

    def lookup(self, key: CallKey) -> CallRecord | None:
        """The entry under `key`, or None."""
        return self._records.get(key)

    def append(self, record: CallRecord) -> None:
        """Add an entry; the first under a key stays."""
        self._records.setdefault(record.key, record)

    @property
    def records(self) -> list[CallRecord]:
        """All entries in the order they arrived."""
        return list(self._records.values())
