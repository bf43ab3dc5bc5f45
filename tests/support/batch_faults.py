"""What goes wrong at a provider of batches, and how often."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any, TypeAlias

from opinionsim.foundation.streams import canonical_json

#: Which things of a kind are hit, numbered from 0: the first few, those listed, all (True), or what a function says.
Which: TypeAlias = bool | int | Collection[int] | Callable[[int], bool]


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong; nothing by default.

    Batches are numbered as they come into being, requests to create one as they arrive, fetches of results as they are
    made, each over all dialects of a provider.

    Parameters
    ----------
    expire : float or callable
        Share of the items of a batch that expire, or a function of the batch's number. Such a batch ends when it would
        have been done, as expired, with the results of its other items.
    item_errors : mapping of str to float
        Share of items with an error in the results, by the status of the error: ``500``, ``429``, or ``400`` for a
        prompt that the content filter stops. The first two are drawn for each batch anew; the last stays with the
        prompt.
    fails_validation : which
        Batches that fail before they begin.
    validation_code : str
        Code of that failure, such as ``token_limit_exceeded``.
    enqueued_tokens : int, optional
        Largest number of tokens of prompts in unfinished batches of one account; a batch beyond it fails.
    list_lag_s : float
        For this long a new batch is in no list. It can be looked up by its id.
    late_creation_s : float
        Requests to create a batch lose their connection at once, and are carried out so much later; those whose input
        file was deleted meanwhile are not.
    late : which
        Requests to which that happens, while `late_creation_s` is positive.
    drop_after_create : which
        Requests to create a batch that are carried out, and whose reply is lost.
    drop_before_create : which
        Requests to create a batch that are lost.
    fetch_fails : which
        Fetches of results that fail.
    fetch_status : int
        Their status: 500, or 403 for a right that is missing.
    cut_off : which
        Fetches of results that end in the middle of a line.
    vanish : which
        Batches that succeed and whose results are not there.
    duplicate_ids : which
        Batches with a result twice.
    foreign_ids : which
        Batches with a result that nobody asked for.
    stuck : which
        Batches that never end until they are cancelled.
    stuck_done : float
        Share of the items of a stuck batch that are done in its time nevertheless.
    """

    expire: float | Callable[[int], float] = 0.0
    item_errors: Mapping[str, float] = field(default_factory=dict)
    fails_validation: Which = False
    validation_code: str = "token_limit_exceeded"
    enqueued_tokens: int | None = None
    list_lag_s: float = 0.0
    late_creation_s: float = 0.0
    late: Which = True
    drop_after_create: Which = False
    drop_before_create: Which = False
    fetch_fails: Which = False
    fetch_status: int = 500
    cut_off: Which = False
    vanish: Which = False
    duplicate_ids: Which = False
    foreign_ids: Which = False
    stuck: Which = False
    stuck_done: float = 0.0

    def changed(self, given: Mapping[str, Any]) -> Faults:
        """These faults with some replaced; a name that is none of theirs raises a TypeError."""
        if unknown := given.keys() - {each.name for each in fields(self)}:
            raise TypeError(f"no such faults: {sorted(unknown)}")
        return replace(self, **given)

    def expired_share(self, batch: int) -> float:
        """Share of the items of a batch that expire."""
        return self.expire(batch) if callable(self.expire) else self.expire

    def error_of(self, digest: str, batch: int) -> str | None:
        """Status of the error that an item meets in a batch, if it meets one."""
        for status, share in sorted(self.item_errors.items()):
            if draw("error", status, digest, 0 if status == "400" else batch) < share:
                return status
        return None


def hits(which: Which, number: int) -> bool:
    """Whether a numbered thing is one of those that are hit."""
    if isinstance(which, bool):
        return which
    if callable(which):
        return which(number)
    return number < which if isinstance(which, int) else number in which


def draw(*key: Any) -> float:
    """A number in [0, 1) that depends on a key alone."""
    return int(sha256(canonical_json(list(key)).encode()).hexdigest()[:12], 16) / 16**12
