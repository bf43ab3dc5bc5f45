"""Hard limits on calls, tokens and money: what a call may cost is set aside before it is made."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from opinionsim.errors import BudgetExceeded
from opinionsim.messages import ChatMessage, Prompt

if TYPE_CHECKING:
    from opinionsim.llm._policy import Limits


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost.

    Attributes
    ----------
    calls : int
        Number of calls, >= 0.
    tokens : int
        Tokens of prompts and replies together, >= 0.
    money : float
        In the currency of the price table, >= 0.
    """

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


#: A call as everybody knows it: its run and its key in the journal.
Call = tuple[str, int, str, int]


class Tally(Protocol):
    """What all processes that spend under one name have paid and reserved, kept where all of them see it."""

    async def reserve(self, call: Call, worst: Usage) -> tuple[bool, Usage]:
        """Reserve the most a call may cost if that, what is paid and what is reserved exceed no limit.

        Returns
        -------
        reserved : bool
            Whether it was. The reservation ends when the reply is on record, or is released.
        paid : Usage
            What all processes have paid so far.
        """

    def release(self, call: Call) -> None:
        """End the reservation of a call that cost nothing, soon and without waiting for it."""

    async def pause(self) -> None:
        """Wait before the next look at what others hold; raises CancelledError where no call is to be made any more."""


class Budget:
    """Keeps usage within hard limits: what is paid, plus the most that calls in flight may cost.

    Parameters
    ----------
    limits : Limits
        Limits over everything paid.
    paid : Usage, optional
        What was paid before.

    Attributes
    ----------
    limits : Limits
        As given.
    limited : bool
        Whether there is any limit; without one, no call waits and nothing is reserved.

    Notes
    -----
    The sum of what is paid and reserved exceeds no limit, as long as no call costs more than its reservation. Used
    from one event loop. Waiting calls are served in order of arrival, so that small calls do not keep a large one
    waiting for ever.
    """

    def __init__(self, limits: Limits, paid: Usage | None = None) -> None:
        self.limits = limits
        self.limited = any(limit is not None for _, limit in limits)
        self._paid = paid or Usage()
        self._reserved = Usage()
        self._in_flight = 0
        self._waiting: deque[tuple[Usage, asyncio.Future[None]]] = deque()

    @property
    def paid(self) -> Usage:
        """Usage paid so far, earlier payments included."""
        return self._paid

    def remaining(self) -> Limits:
        """What is left of each limit; the cost of calls in flight is not subtracted."""
        return self.limits.less(self._paid)

    async def reserve(self, worst: Usage, call: Call) -> Reservation:
        """Reserve the most a call may cost, as soon as the limits leave room for it.

        Waits while calls in flight may still leave that room by costing less than was reserved for them.

        Parameters
        ----------
        worst : Usage
            The most the call may cost.
        call : tuple
            The call.

        Returns
        -------
        Reservation
            To be settled or cancelled by the caller.

        Raises
        ------
        BudgetExceeded
            If there can never be room; names the limit, what is paid and what the call may cost.
        """
        if self.limited and (self._waiting or not self._fits(worst)):
            await self._queue(worst, call)
        else:
            self._open(worst)
        return Reservation(self, worst, call)

    def _fits(self, worst: Usage) -> bool:
        return not self.limits.exceeded_by(self._paid + self._reserved + worst)

    def _open(self, worst: Usage) -> None:
        self._in_flight += 1
        if self.limited:
            self._reserved += worst

    def _close(self, call: Call, worst: Usage, actual: Usage | None) -> None:
        self._in_flight -= 1
        self._paid += actual or Usage()
        if self.limited:
            # Sums of money are rounded; with no call in flight, exactly nothing is reserved.
            self._reserved = self._reserved - worst if self._in_flight else Usage()
            self._serve()

    async def _queue(self, worst: Usage, call: Call) -> None:
        """Wait in the queue for room; on return the reservation is open."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((worst, waiter))
        self._serve()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._close(call, worst, None)
            else:
                # The next call in the queue may fit.
                self._serve()
            raise

    def _serve(self) -> None:
        """Admit or refuse waiting calls in order of arrival, up to the first that must go on waiting."""
        while self._waiting:
            worst, waiter = self._waiting[0]
            if waiter.done():
                pass
            elif self._fits(worst):
                self._open(worst)
                waiter.set_result(None)
            elif self.limits.exceeded_by(self._paid + worst):
                # Payments never shrink: there can be no room.
                waiter.set_exception(self._exceeded(worst))
            else:
                return
            self._waiting.popleft()

    def _exceeded(self, worst: Usage) -> BudgetExceeded:
        names = self.limits.exceeded_by(self._paid + worst)
        parts = [
            f"{name}: {_shown(getattr(self._paid, name))} of {_shown(getattr(self.limits, name))} paid, and the next "
            f"call could cost {_shown(getattr(worst, name))}; to continue, raise execution.budget.{name}"
            for name in names
        ]
        values: dict[str, Any] = {
            "limits": self.limits.model_dump(),
            "paid": asdict(self._paid),
            "next_call": asdict(worst),
        }
        told = f"the budget is used up: {'; '.join(parts)}"
        return BudgetExceeded(told, advice="The store keeps every reply", code=f"budget-{names[0]}", **values)


class SharedBudget(Budget):
    """A budget that several processes spend: what counts is what all of them have paid and reserved.

    Parameters
    ----------
    limits, paid
        As of :class:`Budget`.
    tally : Tally
        Shared by all processes.

    Notes
    -----
    A call waits while only what others hold for calls in flight keeps it from fitting. Waiting calls of one process are
    served in order of arrival.
    """

    def __init__(self, limits: Limits, paid: Usage, tally: Tally) -> None:
        super().__init__(limits, paid)
        self._tally = tally
        self._turn = asyncio.Lock()

    async def reserve(self, worst: Usage, call: Call) -> Reservation:
        """Reserve the most a call may cost; see :meth:`Budget.reserve`."""
        async with self._turn:
            while True:
                reserved, self._paid = await self._tally.reserve(call, worst)
                if reserved:
                    return Reservation(self, worst, call)
                if self.limits.exceeded_by(self._paid + worst):
                    raise self._exceeded(worst)
                await self._tally.pause()

    def _close(self, call: Call, worst: Usage, actual: Usage | None) -> None:
        # A reply ends its reservation when it is on record, and counts from then on.
        if actual is None:
            self._tally.release(call)


class Reservation:
    """The most one call in flight may cost, until it is settled or cancelled; made by :meth:`Budget.reserve`."""

    __slots__ = ("_budget", "_call", "_open", "_worst")

    def __init__(self, budget: Budget, worst: Usage, call: Call) -> None:
        self._budget = budget
        self._worst = worst
        self._call = call
        self._open = True

    def settle(self, actual: Usage) -> None:
        """Replace the reservation by the actual cost of the call, which counts in full even if it is higher."""
        if not self._open:
            raise RuntimeError("a reservation can be settled only once, and not after it was cancelled")
        self._open = False
        self._budget._close(self._call, self._worst, actual)

    def cancel(self) -> None:
        """Return the reservation: the call cost nothing. Does nothing when it is settled or cancelled already."""
        if self._open:
            self._open = False
            self._budget._close(self._call, self._worst, None)


def _shown(amount: float) -> str:
    return f"{amount:,}" if isinstance(amount, int) else f"{amount:,.6g}"


def bound_tokens(messages: Iterable[ChatMessage]) -> int:
    """Upper bound on the tokens of a prompt, estimated without its tokenizer.

    Parameters
    ----------
    messages : iterable of ChatMessage
        The prompt. For a :class:`opinionsim.messages.Prompt`, the bound takes the same time at any length.

    Returns
    -------
    int
        One token for every two ASCII characters, one for every byte of other characters, 8 for the role and delimiters
        of each message, and 16.

    Notes
    -----
    English prose has about one token for four characters, so the bound is twice too high for it; other languages in
    Latin script have one for two to three. Tokenizers that work on bytes make at most one token of a byte, so that for
    other scripts the bound holds and is up to three times too high. Long random strings of digits or signs can exceed
    it. It serves to reserve, never to forecast or bill.
    """
    prompt = Prompt.of(messages)
    return 16 + 8 * prompt.length + prompt.weight
