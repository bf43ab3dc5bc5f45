"""Models that answer agents, with their accounts, prices and ways of buying, and single calls to them."""

from __future__ import annotations

import hashlib
from asyncio import Future
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from opinionsim.conduct import ReplyPolicy
from opinionsim.errors import StoreError
from opinionsim.llm._budget import Reservation, Usage, bound_tokens
from opinionsim.llm._failures import Failure
from opinionsim.llm._journal import EntryKey
from opinionsim.llm._policy import Lane, Lanes
from opinionsim.llm._prices import Price
from opinionsim.messages import ChatMessage, Prompt

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

#: What asks for the flexible tier of a provider, and its usual time limit, seconds.
FLEX: Mapping[str, Any] = {"service_tier": "flex", "timeout": 900.0}


class Client(Protocol):
    """Makes single calls: :class:`opinionsim.llm.ModelClient`, or a substitute."""

    async def call(self, messages: Prompt, seed: int, max_tokens: int | None = None, **options: Any) -> AIMessage:
        """Make one attempt at one call; raises whatever the model raises.

        `max_tokens` is set if the reply may be longer than the model's own limit, and `options` are those of a lane.
        """
        ...


class ReplayOnly:
    """Replaces the chat model in a run that may use only its journal."""

    async def call(
        self, messages: Iterable[ChatMessage], seed: int, max_tokens: int | None = None, **options: Any
    ) -> AIMessage:
        """Refuse."""
        raise StoreError("replay needs a call that the store lacks; complete the run with `opinionsim run`")


class NewCall(NamedTuple):
    """A call that the journal does not hold."""

    run_id: str
    key: EntryKey
    prompt: Prompt
    seed: int
    priority: float
    cut_off: int
    """Number of earlier replies to the same call that were cut off."""

    @property
    def custom_id(self) -> str:
        """32 hexadecimal digits that name the call in a batch; other words in the prompt make another name."""
        named = "\0".join(map(str, (self.run_id, *self.key, self.prompt.identity)))
        return hashlib.sha256(named.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Endpoint:
    """A model that answers agents, with its account, price and limits.

    Attributes
    ----------
    client : Client
        Makes the calls.
    account : str
        Calls of one account share its provider's rate limit.
    networked : bool
        Whether a provider answers over a network, with an unknown rate limit.
    price : Price or None
        Price of its tokens; None if unknown.
    max_tokens : int or None
        Maximum length of a reply; None for the provider's default.
    replies : ReplyPolicy
        How to treat replies that are not answers.
    lane : str
        How to buy calls: ``now``; ``flex``, the provider's flexible tier; or ``batch``, the provider's batch queue.
    terms : Lanes
        What to do if a lane is slow or has no room.
    """

    client: Client
    account: str = "local"
    networked: bool = False
    price: Price | None = None
    max_tokens: int | None = None
    replies: ReplyPolicy = field(default_factory=ReplyPolicy)
    lane: Lane = "now"
    terms: Lanes = field(default_factory=Lanes)

    @property
    def queue(self) -> str:
        """Name of the part of kind ``lane`` that submits batches, by default that of the provider."""
        rebate = None if self.price is None else self.price.lanes.get("batch")
        named = None if rebate is None else rebate.part
        return named or str(getattr(self.client, "name", "")).partition(":")[0]

    def longest(self, cut_off: int) -> int | None:
        """Maximum length of a reply after `cut_off` replies to the question were cut off; it doubles each time."""
        return None if self.max_tokens is None else self.max_tokens * 2**cut_off

    def options(self, cut_off: int, flex_s: float | None) -> dict[str, Any]:
        """Options of a call after replies that were cut off; `flex_s` asks for the flexible tier, and is its limit."""
        asked = {} if flex_s is None else {**FLEX, "timeout": flex_s}
        return {**asked, "max_tokens": self.longest(cut_off)} if cut_off else asked

    def worst(self, prompt: Iterable[ChatMessage], longest: int | None = None, *, queued: bool = False) -> Usage:
        """Maximum usage of a call, as far as it can be bounded beforehand.

        `longest` is by default `max_tokens`. A call that is `queued` for a batch costs the price of that lane, unless
        it may be bought now after all.
        """
        tokens, longest = bound_tokens(prompt), longest or self.max_tokens or 0
        # A reply through the flexible tier may state another one, and costs the list price then.
        price = self.price.at("batch") if self.price is not None and queued and not self.terms.tail else self.price
        return Usage(1, tokens + longest, 0.0 if price is None else price.cost(tokens, longest))


class BatchQueues(Protocol):
    """Buys calls through the batch queues of providers."""

    def takes(self, call: NewCall, endpoint: Endpoint) -> bool:
        """Whether a call goes through a queue, or is in a batch that was submitted earlier."""
        ...

    def reserved(self, call: NewCall) -> Reservation | None:
        """The reservation of a call that is in a batch of an earlier process."""
        ...

    def join(self, call: NewCall, endpoint: Endpoint) -> Future[AIMessage | Failure | None]:
        """What a batch brings for a call; None if it is to be made now. Cancelled once nobody waits for it."""
        ...
