"""Settings of calls that users make: limits of usage, further tries, and treatment of replies that are no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from opinionsim.foundation.documents import MAX_INT, DocumentModel

if TYPE_CHECKING:
    from opinionsim.llm._budget import Usage


class Limits(DocumentModel):
    """Limits on the usage of an experiment, over all its calls on record. Null sets no limit."""

    calls: int | None = Field(None, ge=0, le=MAX_INT)
    """Replies of models."""
    tokens: int | None = Field(None, ge=0, le=MAX_INT)
    """Tokens in and out."""
    money: float | None = Field(None, ge=0)
    """Money in the currency of the price table."""

    def exceeded_by(self, usage: Usage) -> list[str]:
        """Names of the limits that a usage exceeds."""
        return [name for name, limit in self if limit is not None and getattr(usage, name) > limit]

    def less(self, usage: Usage) -> Limits:
        """What a usage leaves of each limit."""
        limited = ((name, limit) for name, limit in self if limit is not None)
        return Limits(**{name: max(limit - getattr(usage, name), 0) for name, limit in limited})


class RetryPolicy(DocumentModel):
    """Repetition of calls that fail in passing."""

    transient: int = Field(5, ge=0, le=1000)
    """Further tries after time-outs, lost connections and server errors."""
    rate_limited: int = Field(20, ge=0, le=1000)
    """Further tries after a provider's "too many requests"."""
    first_wait_s: float = Field(0.5, gt=0)
    """Longest wait before the first further try, in seconds; it doubles with every further try."""
    longest_wait_s: float = Field(60.0, gt=0)
    """Longest wait before any further try, in seconds, unless the provider asks for more."""


class NoAnswer(DocumentModel):
    """Treatment of refused, or of empty replies."""

    reask: int = Field(2, ge=0, le=100)
    """Most times to ask again, each with another seed."""
    then: Literal["skip", "fail"] = "skip"
    """`skip` leaves the last one out of what others receive and counts it as missing; `fail` ends its run."""


class CutOff(DocumentModel):
    """Treatment of replies cut off at max_tokens."""

    reask: int = Field(1, ge=0, le=10)
    """Most times to ask again, each time with double the length; never where max_tokens is null."""
    then: Literal["missing", "measure", "fail"] = "missing"
    """The last one is passed on as it stands, and coded. In tables and figures it is `missing`, or counts (`measure`);
    this changes no run. `fail` ends its run."""


class ReplyPolicy(DocumentModel):
    """Treatment of replies that are no answers."""

    refused: NoAnswer = Field(default_factory=NoAnswer)
    """The model declined, left its role without an answer, or a filter of its provider withheld the text."""
    empty: NoAnswer = Field(default_factory=NoAnswer)
    """No text arrived."""
    truncated: CutOff = Field(default_factory=CutOff)
    """The reply was cut off at max_tokens."""

    def identity(self) -> dict[str, Any]:
        """What enters the identity of a run: how often questions are asked again."""
        stated = self.model_dump(mode="json", exclude_defaults=True)
        return {name: {"reask": each["reask"]} for name, each in stated.items() if "reask" in each}
