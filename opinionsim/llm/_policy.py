"""Users' settings for calls: limits of usage, and retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import MAX_INT, DocumentModel

if TYPE_CHECKING:
    from opinionsim.llm._budget import Usage


class Limits(DocumentModel):
    """Limits on the usage of an experiment over all its stored calls. Null sets no limit."""

    calls: int | None = Field(None, ge=0, le=MAX_INT)
    """Maximum number of replies from models."""
    tokens: int | None = Field(None, ge=0, le=MAX_INT)
    """Maximum number of input and output tokens."""
    money: float | None = Field(None, ge=0)
    """Maximum cost, in the currency of the price table."""

    def exceeded_by(self, usage: Usage) -> list[str]:
        """Names of the limits that a usage exceeds."""
        return [name for name, limit in self if limit is not None and getattr(usage, name) > limit]

    def less(self, usage: Usage) -> Limits:
        """The remainder of each limit after a usage."""
        limited = ((name, limit) for name, limit in self if limit is not None)
        return Limits(**{name: max(limit - getattr(usage, name), 0) for name, limit in limited})


#: How calls are bought, and what follows if a provider's flexible tier has no room.
Lane = Literal["now", "flex", "batch"]
Fallback = Literal["wait", "now"]


class Lanes(DocumentModel):
    """How replies are bought."""

    lane: Lane | dict[str, Lane] = "now"
    """How to buy replies: `now` at the list price; `flex` through the provider's flexible tier, which is slower and
    costs less; or `batch` through the provider's batch queue, which may take hours for each round of replies. A mapping
    gives the lane of each model by its name."""
    fallback: Fallback = "wait"
    """What to do when the flexible tier has no room: `wait` for it, or ask again `now`, at the list price."""
    patience_s: float | None = Field(None, ge=60)
    """Age in seconds at which a batch is cancelled; its other calls go into the next one. Null waits for its end."""
    tail: int = Field(0, ge=0, le=MAX_INT)
    """Smallest number of calls for a batch. Fewer calls are bought now, at the list price, if no batch is under way."""

    def require_alone(self, shared: bool) -> None:
        """Refuse the batch lane in a store that several processes write.

        Raises
        ------
        SpecError
            If so.
        """
        if shared and "batch" in (self.lane.values() if isinstance(self.lane, dict) else [self.lane]):
            raise SpecError(
                "execution.lane: batch needs a SQLite store, because one process must submit and fetch all batches; "
                "give another store, or another lane"
            )

    def lane_of(self, model: str) -> Lane:
        """How the replies of a model are bought."""
        return self.lane.get(model, "now") if isinstance(self.lane, dict) else self.lane


class RetryPolicy(DocumentModel):
    """How often to repeat calls after temporary failures."""

    transient: int = Field(5, ge=0, le=1000)
    """Maximum number of retries after time-outs, lost connections and server errors."""
    rate_limited: int = Field(20, ge=0, le=1000)
    """Maximum number of retries after a provider's "too many requests"."""
    first_wait_s: float = Field(0.5, gt=0)
    """Maximum wait before the first retry, in seconds. It doubles with every retry."""
    longest_wait_s: float = Field(60.0, gt=0)
    """Maximum wait before any retry, in seconds, unless the provider asks for more."""

    @property
    def allowed(self) -> dict[str, int]:
        """Maximum number of retries by kind of failure."""
        return {"transient": self.transient, "rate-limited": self.rate_limited, "no-room": self.rate_limited}
