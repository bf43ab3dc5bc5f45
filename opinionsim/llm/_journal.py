"""Journal entries, which record everything that enters a run from outside, and the protocol of a journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from opinionsim.conduct import Sign, names_of, stripped
from opinionsim.llm._seat import Question
from opinionsim.messages import Prompt, ReplyStatus

#: Where an entry comes from: a chat model, judges' and selectors' answers among them; a person at a seat; an
#: instrument whose opinion a schedule awaited; or another run or a file, taken in at the start.
Source = Literal["model", "person", "instrument", "import"]


class EntryKey(NamedTuple):
    """Identity of a journal entry within its run."""

    turn: int
    """Index of the turn."""
    call: str
    """The name of the call inside its turn, the text of a :class:`opinionsim.llm.CallName`."""
    attempt: int
    """Number of earlier replies to this call that were rejected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A journal entry: something that entered the run from outside, with its key.

    Attributes
    ----------
    key : EntryKey
        Identity within the run.
    step, agent, act : int, int, str
        Those of the turn; checked, with `prompt_hash`, when the entry is used again.
    prompt_hash : str
        Identity of the literal prompt (:class:`opinionsim.messages.Prompt`).
    text : str
        The text that arrived.
    acceptance : str
        ``accepted``; ``rejected`` by the act's `parse`, or because the reply is not an answer; or ``unparsed``, if
        `parse` raised an unexpected error. A resumed run parses such replies again. It also asks again for replies
        without `rules`, because the check of their signs failed.
    cause : str
        Why it was rejected: its status, one of its signs, or ``rejected`` for the act's `parse`; empty otherwise.
    reason : str
        The same in words, or why it was accepted without being parsed; empty otherwise.
    source : str
        ``model``, ``person``, ``instrument`` or ``import``. Only replies of models are calls, which cost money and
        count against budgets.
    status : str
        ``answered``, ``refused``, ``filtered``, ``off_role``, ``empty``, ``truncated``, ``unreadable`` or ``left_out``.
    signs : tuple of Sign
        Signs of conduct and their places in the text; none for a person.
    taken : str
        Names of the signs that were removed from the text for readers because they are certain, separated by blanks.
    rules : str
        Name and version of the rules or the judge that found status and signs; empty for a person.
    reasoning : str
        The model's reasoning before its answer; it enters no message and no memory.
    prompt : Prompt or None
        The literal prompt; None if read from a store, which keeps prompts under their content hash.
    seed : int or None
        Seed sent with the call, in [0, 2**31).
    dropped : int
        Memory events left out of the prompt by a token budget.
    finish_reason, model, fingerprint : str
        As the provider returned them; empty if it returned none. The fingerprint identifies its configuration.
    input_tokens, output_tokens : int or None
        As the provider counted them; output includes reasoning.
    cached_tokens, reasoning_tokens : int or None
        Parts of these two: input from the provider's cache, and output that is reasoning.
    cost : float or None
        Money, by the price table used at the time; None if it has no price for the model.
    saved : float or None
        Money that the provider's cache saved, by the same table; None if cached tokens or prices are unknown.
    lane : str
        How a model's reply was bought: ``now`` or ``flex``; empty if no model replied.
    latency_s : float or None
        Seconds from dispatch to arrival of the attempt that succeeded.
    arrived_at : float or None
        Unix time of arrival.
    """

    key: EntryKey
    step: int
    agent: int
    act: str
    prompt_hash: str
    text: str
    acceptance: str = "accepted"
    cause: str = ""
    reason: str = ""
    prompt: Prompt | None = None
    seed: int | None = None
    dropped: int = 0
    finish_reason: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_s: float | None = None
    arrived_at: float | None = None
    status: ReplyStatus = "answered"
    signs: tuple[Sign, ...] = ()
    taken: str = ""
    rules: str = ""
    reasoning: str = ""
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    saved: float | None = None
    source: Source = "model"
    fingerprint: str = ""
    lane: str = ""

    def left_of(self, said: str) -> str:
        """A part of the text as readers get it, without the removed signs."""
        start = self.text.find(said)
        inside = [
            sign._replace(start=max(sign.start - start, 0), end=sign.end - start)
            for sign in self.signs
            if start >= 0 and start < sign.end and sign.start < start + len(said)
        ]
        return stripped(said, inside, self.taken.split())

    @property
    def shows(self) -> str:
        """Names of the signs."""
        return ", ".join(names_of(self.signs))

    @property
    def left(self) -> str:
        """The text as readers get it."""
        return self.left_of(self.text) if self.taken else self.text


class Journal(Protocol):
    """Append-only record of everything that entered one run from outside.

    `append` returns at once. Entries become durable within 0.2 s in the order of `append`, so no entry that survives a
    crash depends on a lost one. `lookup` sees an entry as soon as it is appended.
    """

    @property
    def behind(self) -> bool:
        """Whether entries cannot be made durable now. If so, make no further call."""
        ...

    def check(self) -> None:
        """Raise the error that prevents entries from being stored, if there is one.

        Raises
        ------
        StoreError
            As for :meth:`append`.
        """
        ...

    def lookup(self, key: EntryKey) -> Entry | None:
        """The entry under `key`, or None."""
        ...

    def append(self, record: Entry) -> None:
        """Add an entry.

        Raises
        ------
        StoreError
            If the lease on the run has passed to another owner, or the store failed to keep an earlier entry.
        """
        ...

    async def wait_for(self, question: Question) -> None:
        """Record that a person is about to be asked; returns when the record is durable.

        The wait ends with the entry under the question's key.

        Raises
        ------
        StoreError
            As for :meth:`append`.
        """
        ...


class MemoryJournal:
    """A journal that lives as long as the process."""

    behind = False

    def __init__(self, records: Iterable[Entry] = ()) -> None:
        self._records: dict[EntryKey, Entry] = {}
        for record in records:
            self.append(record)

    def lookup(self, key: EntryKey) -> Entry | None:
        """The entry under `key`, or None."""
        return self._records.get(key)

    def check(self) -> None:
        """Do nothing, because entries are always kept."""

    def append(self, record: Entry) -> None:
        """Add an entry unless its key already has one."""
        self._records.setdefault(record.key, record)

    async def wait_for(self, question: Question) -> None:
        """Do nothing, because waits end with the process."""

    @property
    def records(self) -> list[Entry]:
        """All entries in order of arrival."""
        return list(self._records.values())
