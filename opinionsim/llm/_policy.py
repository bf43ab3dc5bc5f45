"""Settings of calls that users make: limits of usage, and further tries."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
