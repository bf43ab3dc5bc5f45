"""The queue of a provider of batches, whatever its dialect: files, batches, time, and what was bought."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from opinionsim.messages import ChatMessage
from tests.support.batch_answers import REFUSAL, Answer, Asked, sentence
from tests.support.batch_faults import Faults, draw, hits

Phase: TypeAlias = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]

#: Phases in which a batch has ended.
ENDED = frozenset({"failed", "completed", "expired", "cancelled"})
#: Share of the time of a batch in which its items get done; the rest of the time it is being finalized.
_WORKING = 0.95


class Refusal(Exception):
    """A request that a provider refuses.

    `code` is a word for the reason; each dialect puts the three into its own form.
    """

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class Dropped(Exception):
    """A request whose connection breaks before a reply."""


@dataclass(eq=False)
class StoredFile:
    """A file with a provider."""

    id: str
    name: str
    purpose: str
    account: str
    dialect: str
    created_s: float
    content: bytes

    def belongs(self, dialect: str, account: str) -> bool:
        """Whether an account made it by a dialect."""
        return (self.dialect, self.account) == (dialect, account)


@dataclass(eq=False)
class Item:
    """A request in a batch."""

    custom_id: str
    asked: Asked | None
    """None where the request is not valid."""
    problem: str = ""
    """What is wrong with it then."""
    error: str | None = None
    """Status of the error it meets."""
    done_s: float = math.inf
    done: bool = False
    """Whether it was done before its batch ended."""
    answer: Answer | None = None
    """What it was answered then."""


class Outcome(NamedTuple):
    """What the results of a batch say of one item."""

    custom_id: str
    kind: Literal["answer", "error", "expired", "cancelled"]
    answer: Answer | None = None
    status: int = 200
    message: str = ""


@dataclass(eq=False)
class Batch:
    """A batch: what was asked, and when it ends."""

    id: str
    number: int
    account: str
    dialect: str
    items: Sequence[Item]
    created_s: float
    ends_s: float
    """When it ends by itself, done or expired; infinite for one that is stuck."""
    expires_s: float
    lapses: bool
    """Whether it ends as expired."""
    label: Mapping[str, Any]
    """What its creator gave it: metadata, a name, the model, the endpoint."""
    input_file: str | None = None
    failure: Refusal | None = None
    validated_s: float = -math.inf
    cancelled_s: float | None = None
    cancel_s: float = 0.0
    kept: dict[str, str] = field(default_factory=dict)
    """Ids of files made from its results."""

    def __post_init__(self) -> None:
        self._order, self._next = sorted(self.items, key=lambda each: each.done_s), 0

    def belongs(self, dialect: str, account: str) -> bool:
        """Whether an account made it by a dialect."""
        return (self.dialect, self.account) == (dialect, account)

    @property
    def _stops_s(self) -> float:
        """From when on none of its items gets done."""
        return self.ends_s if self.cancelled_s is None else min(self.ends_s, self.cancelled_s)

    @property
    def ended_s(self) -> float:
        """When it ends, as things stand."""
        if self.failure is not None:
            return self.validated_s
        if self.cancelled_s is not None and self.cancelled_s < self.ends_s:
            return self.cancelled_s + self.cancel_s
        return self.ends_s

    def phase(self, now_s: float) -> Phase:
        """What is going on with it."""
        if now_s < self.validated_s:
            return "validating"
        if self.failure is not None:
            return "failed"
        if self.cancelled_s is not None and self.cancelled_s < self.ends_s:
            return "cancelled" if now_s >= self.ended_s else "cancelling"
        if now_s >= self.ends_s:
            return "expired" if self.lapses else "completed"
        working_s = _WORKING * (self.ends_s - self.created_s)
        return "finalizing" if now_s >= self.created_s + working_s and not self.lapses else "in_progress"

    def newly_done(self, now_s: float) -> list[Item]:
        """The items done since this was last asked."""
        until, before = min(now_s, self._stops_s), self._next
        if self.failure is not None:
            return []
        while self._next < len(self._order) and self._order[self._next].done_s <= until:
            self._order[self._next].done = True
            self._next += 1
        return self._order[before : self._next]

    def tally(self) -> tuple[int, int]:
        """The numbers of items done, with an answer and with an error."""
        failed = sum(each.done and each.error is not None for each in self.items)
        return sum(each.done for each in self.items) - failed, failed


@dataclass(eq=False, repr=False)
class Queue:
    """Files and batches of any number of accounts, and a count of everything that a provider would charge for.

    Parameters
    ----------
    answer : callable
        ``answer(messages, seed) -> str``, the same at once and in a batch.
    refuse : float
        Share of answers that refuse, drawn by the messages and the seed; never twice in a row in a conversation.
    faults : Faults
        What goes wrong; it may be replaced at any time.
    delay : float, sequence of float or callable
        Seconds until a batch is done; by the number of the batch, beginning anew at the end of a sequence.
    prices : (float, float)
        Price of a token of a prompt and of an answer.
    factor : float
        What a batch costs of these prices.
    scale : float
        How many seconds pass for the provider in one second; with 0 only :meth:`advance` lets time pass.
    validating_s, cancel_s : float
        How long a batch is validated, and how long a cancelled one takes to end.
    window_s : float, optional
        When a batch expires; by default what its dialect and its creator say.
    page : int
        Most entries on a page of a list.
    most_requests : int, optional
        Most requests in a batch; by default what the dialect allows.

    Attributes
    ----------
    bought, at_once : Counter of str
        Answers charged for in batches, fetched or not, and at once, by the digest of the request without its id.
    ids : Counter of str
        The former by the id of the request.
    batches, files : dict
        All batches, and the files that were not deleted, by id.
    """

    answer: Callable[[tuple[ChatMessage, ...], int | None], str] = sentence
    _: KW_ONLY
    refuse: float = 0.0
    faults: Faults = field(default_factory=Faults)
    delay: float | Sequence[float] | Callable[[int], float] = 0.0
    prices: tuple[float, float] = (1e-6, 4e-6)
    factor: float = 0.5
    scale: float = 1.0
    validating_s: float = 0.0
    cancel_s: float = 0.0
    window_s: float | None = None
    page: int = 20
    most_requests: int | None = None

    def __post_init__(self) -> None:
        self.bought: Counter[str] = Counter()
        self.at_once: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, StoredFile] = {}
        self.lock = threading.RLock()
        self.epoch = time.time()
        self._spent = {"batch": 0.0, "now": 0.0}
        self._began, self._advanced = time.monotonic(), 0.0
        self._moment: float | None = None
        self._numbered = self._creates = self._fetches = 0
        self._open: list[Batch] = []
        self._late: list[tuple[float, Callable[[float], object]]] = []

    # --- time --------------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the queue came into being, on its own clock."""
        clock = time.monotonic() if self._moment is None else self._moment
        return (clock - self._began) * self.scale + self._advanced

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let everything happen that is due, and no time pass by itself while the block lasts.

        If the clock ran on, a batch could end after the server counts its items and before it reports them.
        """
        with self.lock:
            self._moment = time.monotonic()
            try:
                self.settle()
                yield
            finally:
                self._moment = None

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self.lock:
            self._advanced += seconds
            self.settle()

    def settle(self) -> None:
        """Let everything happen that is due."""
        with self.lock:
            now_s = self.now_s
            due = [each for each in self._late if each[0] <= now_s]
            self._late = [each for each in self._late if each[0] > now_s]
            for due_s, make in due:
                with suppress(Refusal):
                    make(due_s)
            for batch in self._open:
                for item in batch.newly_done(now_s):
                    if item.error is None and item.asked is not None:
                        self.ids[item.custom_id] += 1
                        item.answer = self._sell(item.asked, "batch")
            self._open = [each for each in self._open if each.phase(now_s) not in ENDED]

    # --- what it charges ---------------------------------------------------------------------------------

    def answered(self, asked: Asked) -> Answer:
        """What the model says to a request."""
        spoken = [each.content for each in asked.messages if each.role == "assistant"]
        refused = spoken[-1:] != [REFUSAL] and self.refuse > draw(
            "refuse", [list(each) for each in asked.messages], asked.seed
        )
        return Answer(REFUSAL if refused else self.answer(asked.messages, asked.seed), refused, asked)

    def call(self, asked: Asked) -> Answer:
        """Answer at once, and charge for it."""
        return self._sell(asked, "now")

    def _sell(self, asked: Asked, lane: Literal["batch", "now"]) -> Answer:
        answer = self.answered(asked)
        (self.bought if lane == "batch" else self.at_once)[asked.digest] += 1
        price = asked.tokens * self.prices[0] + answer.tokens * self.prices[1]
        self._spent[lane] += price * (self.factor if lane == "batch" else 1)
        return answer

    def cost(self, lane: Literal["batch", "now"] | None = None) -> float:
        """Money charged so far, in all or by lane."""
        self.settle()
        return sum(self._spent.values()) if lane is None else self._spent[lane]

    def twice(self) -> dict[str, int]:
        """Requests bought more than once, in batches or at once, and how often."""
        self.settle()
        return {digest: count for digest, count in (self.bought + self.at_once).items() if count > 1}

    def counts(self) -> dict[str, Any]:
        """The counts as JSON can hold them."""
        with self.lock:
            self.settle()
            return {
                "now_s": self.now_s,
                "creates": self._creates,
                "fetches": self._fetches,
                "files": len(self.files),
                "bought": self.bought.total(),
                "at_once": self.at_once.total(),
                "different": len(self.bought + self.at_once),
                "twice": self.twice(),
                "ids_twice": {custom_id: count for custom_id, count in self.ids.items() if count > 1},
                "cost": self.cost(),
                "cost_batch": self.cost("batch"),
                "batches": [
                    {
                        **{"id": each.id, "number": each.number, "dialect": each.dialect},
                        **{"phase": each.phase(self.now_s), "total": len(each.items)},
                        **dict(zip(("completed", "failed"), each.tally(), strict=True)),
                    }
                    for each in self.batches.values()
                ],
            }

    # --- files -------------------------------------------------------------------------------------------

    def keep(self, dialect: str, account: str, name: str, purpose: str, content: bytes, file_id: str) -> StoredFile:
        """Store a file."""
        stored = StoredFile(file_id, name, purpose, account, dialect, self.now_s, content)
        self.files[file_id] = stored
        return stored

    def file(self, dialect: str, account: str, file_id: str) -> StoredFile:
        """A file of an account; a Refusal where there is none."""
        found = self.files.get(file_id)
        if found is None or not found.belongs(dialect, account):
            raise Refusal(404, f"No such File object: {file_id}")
        return found

    # --- batches -----------------------------------------------------------------------------------------

    def submit(self, make: Callable[[float], Batch]) -> Batch:
        """Create a batch by `make(seconds)`, unless the request or its reply is lost."""
        number, faults = self._creates, self.faults
        self._creates += 1
        if hits(faults.drop_before_create, number):
            raise Dropped
        if faults.late_creation_s > 0 and hits(faults.late, number):
            self._late.append((self.now_s + faults.late_creation_s, make))
            raise Dropped
        batch = make(self.now_s)
        if hits(faults.drop_after_create, number):
            raise Dropped
        return batch

    def create(
        self,
        batch_id: str,
        items: Sequence[Item],
        created_s: float,
        *,
        dialect: str,
        account: str,
        window_s: float,
        label: Mapping[str, Any],
        input_file: str | None = None,
        problem: Refusal | None = None,
        refuses: Callable[[Refusal], bool] = lambda problem: False,
        keeps_expired: bool = True,
        cancellable: bool = True,
    ) -> Batch:
        """A new batch.

        `problem` is what is wrong with its items. A batch that fails, for this reason or by a fault, fails later,
        unless the dialect `refuses` it. Without `keeps_expired` nothing in a batch that expires is ever done. One that
        is stuck and not `cancellable` expires.
        """
        number = self._numbered
        self._numbered += 1
        failure = problem or self._failure(dialect, account, items, number)
        if failure is not None and refuses(failure):
            raise failure
        expires_s = created_s + (window_s if self.window_s is None else self.window_s)
        ends_s, lapses = self._plan(items, number, created_s, expires_s, keeps_expired)
        if math.isinf(ends_s) and not cancellable:
            ends_s, lapses = expires_s, True
        batch = Batch(
            batch_id, number, account, dialect, items, created_s, ends_s, expires_s, lapses, label, input_file, failure
        )
        batch.validated_s, batch.cancel_s = created_s + self.validating_s, self.cancel_s
        self.batches[batch_id] = batch
        self._open.append(batch)
        self.settle()
        return batch

    def _failure(self, dialect: str, account: str, items: Sequence[Item], number: int) -> Refusal | None:
        faults = self.faults
        if hits(faults.fails_validation, number):
            if faults.validation_code == "token_limit_exceeded":
                return Refusal(429, "Enqueued token limit reached.", faults.validation_code)
            return Refusal(400, "The batch failed.", faults.validation_code)
        if faults.enqueued_tokens is None:
            return None
        waiting = [each for each in self._open if each.belongs(dialect, account)]
        tokens = sum(_tokens(each.items) for each in waiting) + _tokens(items)
        if tokens <= faults.enqueued_tokens:
            return None
        limit = f"Limit: {faults.enqueued_tokens:,} enqueued tokens."
        return Refusal(
            429,
            f"Enqueued token limit reached. {limit} Please try again once some batches have been completed.",
            "token_limit_exceeded",
        )

    def _plan(
        self, items: Sequence[Item], number: int, created_s: float, expires_s: float, keeps_expired: bool
    ) -> tuple[float, bool]:
        """When a batch ends, and whether it expires then; its items learn their fate."""
        delay = self.delay
        if callable(delay):
            lasts_s = delay(number)
        else:
            lasts_s = delay[number % len(delay)] if isinstance(delay, Sequence) else delay
        share, lapses = self.faults.expired_share(number), created_s + lasts_s > expires_s
        stuck_from = len(items) * self.faults.stuck_done if hits(self.faults.stuck, number) else math.inf
        for place, item in enumerate(items, 1):
            item.error = "400" if item.asked is None else self.faults.error_of(item.asked.digest, number)
            expired = share > draw("expire", item.custom_id, number)
            lapses |= expired
            if not expired and place <= stuck_from:
                item.done_s = created_s + _WORKING * lasts_s * place / len(items)
        if math.isfinite(stuck_from):
            return math.inf, False
        if lapses and not keeps_expired:
            for item in items:
                item.done_s = math.inf
        return min(created_s + lasts_s, expires_s), lapses

    def batch(self, dialect: str, account: str, batch_id: str) -> Batch:
        """A batch of an account; a Refusal where there is none."""
        found = self.batches.get(batch_id)
        if found is None or not found.belongs(dialect, account):
            raise Refusal(404, f"No batch found with id '{batch_id}'.")
        return found

    def listed(self, dialect: str, account: str) -> list[Batch]:
        """The batches of an account that lists show, newest first."""
        until = self.now_s - self.faults.list_lag_s
        shown = [each for each in self.batches.values() if each.belongs(dialect, account) and each.created_s <= until]
        return shown[::-1]

    def cancel(self, batch: Batch) -> bool:
        """Cancel a batch; whether it had not ended."""
        if batch.phase(self.now_s) in ENDED:
            return False
        if batch.cancelled_s is None:
            batch.cancelled_s = self.now_s
        return True

    def outcomes(self, batch: Batch, *, in_order: bool = False) -> list[Outcome]:
        """What the results of a batch that has ended say, in the order of its items or in any order."""
        left: Any = "expired" if batch.phase(self.now_s) == "expired" else "cancelled"
        found = [self._outcome(item, left) for item in batch.items]
        if not in_order:
            found.sort(key=lambda each: draw("order", each.custom_id))
        if hits(self.faults.duplicate_ids, batch.number):
            found.append(found[0])
        valid = next((each.asked for each in batch.items if each.asked is not None), None)
        if valid is not None and hits(self.faults.foreign_ids, batch.number):
            found.append(Outcome(uuid.uuid4().hex, "answer", self.answered(valid)))
        return found

    def _outcome(self, item: Item, left: Any) -> Outcome:
        if not item.done:
            return Outcome(item.custom_id, left)
        if item.asked is None:
            return Outcome(item.custom_id, "error", None, 400, item.problem)
        if item.error is not None:
            return Outcome(item.custom_id, "error", None, int(item.error), _ERRORS[item.error])
        return Outcome(item.custom_id, "answer", item.answer)

    def fetch(self, batch: Batch, content: bytes) -> bytes:
        """Results on their way to a client; a Refusal where a fault withholds them."""
        number, faults = self._fetches, self.faults
        self._fetches += 1
        if hits(faults.fetch_fails, number):
            raise Refusal(faults.fetch_status, "The results cannot be read.")
        if self.vanished(batch):
            raise Refusal(404, "The results are not available.")
        return content[: len(content) * 2 // 3].rstrip(b"\n")[:-1] if hits(faults.cut_off, number) else content

    def vanished(self, batch: Batch) -> bool:
        """Whether the results of a batch are not there."""
        return hits(self.faults.vanish, batch.number)


#: What errors of items say.
_ERRORS = {
    "400": "The content filter stopped the prompt.",
    "429": "Too many requests.",
    "500": "The server had an error while processing your request.",
}


def _tokens(items: Sequence[Item]) -> int:
    return sum(each.asked.tokens for each in items if each.asked is not None)
