"""Journal entries, which record everything that entered a run from outside, and the protocol of a journal."""

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
    """Its name inside its turn, the text of a :class:`opinionsim.llm.CallName`."""
    attempt: int
    """Number of earlier replies to this call that were rejected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal entry: something that entered the run from outside, under a key.

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
        ``accepted``; ``rejected`` by the act's `parse`, or asked for again since it is no answer; or ``unparsed``,
        where `parse` failed with an error of its own: it is read again when the run is resumed. So is a reply without
        `rules`, where what looks at it failed: it is asked for again.
    cause : str
        Why it was rejected: its status, one of its signs, or ``rejected`` by the act's `parse`; empty otherwise.
    reason : str
        The same in words, or why it was taken without being read; empty otherwise.
    source : str
        ``model``, ``person``, ``instrument`` or ``import``. Only replies of models are calls: they alone cost money
        and count against budgets.
    status : str
        ``answered``, ``refused``, ``filtered``, ``off_role``, ``empty``, ``truncated``, ``unreadable`` or ``left_out``.
    signs : tuple of Sign
        Signs of conduct and where they stand in the text; none of a person's.
    taken : str
        Names of the signs that were taken out of what readers get, one blank apart: where they are sure.
    rules : str
        Name and version of the rules by which status and signs were found, or of what judged them; empty of a
        person's.
    reasoning : str
        The model's reasoning before its answer; part of no message and no memory.
    prompt : Prompt or None
        The literal prompt; None when read back from a store, which keeps it content-addressed.
    seed : int or None
        Seed sent with the call, in [0, 2**31).
    dropped : int
        Memory events left out of the prompt by a token budget.
    finish_reason, model, fingerprint : str
        As the provider returned them; empty when it did not. The fingerprint is that of its configuration.
    input_tokens, output_tokens : int or None
        As the provider counted them; output includes reasoning.
    cached_tokens, reasoning_tokens : int or None
        Parts of these two: input the provider had in its cache, and output that is reasoning.
    cost : float or None
        Money, by the price table in use at the time; None where it has no price for the model.
    saved : float or None
        Money that the provider's cache saved, by the same table; None where cached tokens or prices are not known.
    lane : str
        How a model's reply was bought: ``now`` or ``flex``; empty of any other.
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
        """What readers get of a part of the text that is said: without what was taken out."""
        start = self.text.find(said)
        inside = [
            sign._replace(start=max(sign.start - start, 0), end=sign.end - start)
            for sign in self.signs
            if start >= 0 and start < sign.end and sign.start < start + len(said)
        ]
        return stripped(said, inside, self.taken.split())

    @property
    def shows(self) -> str:
        """Names of its signs."""
        return ", ".join(names_of(self.signs))

    @property
    def left(self) -> str:
        """What readers get of the text."""
        return self.left_of(self.text) if self.taken else self.text


class Journal(Protocol):
    """Append-only record of everything that entered one run from outside.

    `append` returns at once; entries become durable in the order they were appended, within 0.2 s, so
    that no entry that survives a crash depends on a lost one. An entry is visible to `lookup` as soon
    as it is appended.
    """

    @property
    def behind(self) -> bool:
        """Whether entries cannot be made durable now, so that no further call should be made."""
        ...

    def check(self) -> None:
        """Raise the error that keeps entries from being stored, if there is one.

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
            If the claim under which the run is executed has passed to another owner, or the store
            failed to keep an earlier entry.
        """
        ...

    async def wait_for(self, question: Question) -> None:
        """Put on record that a person is about to be asked; returns when that is durable.

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
        """Do nothing: entries are always kept."""

    def append(self, record: Entry) -> None:
        """Add an entry; the first under a key stays."""
        self._records.setdefault(record.key, record)

    async def wait_for(self, question: Question) -> None:
        """Do nothing: a wait ends with the process."""

    @property
    def records(self) -> list[Entry]:
        """All entries in the order they arrived."""
        return list(self._records.values())
