"""Hard limits on calls, tokens and money. Each call reserves its maximum cost beforehand."""

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
        Total number of tokens of prompts and replies, >= 0.
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
    """What all processes that share a budget have paid and reserved, in a place that all of them can read."""

    async def reserve(self, call: Call, worst: Usage) -> tuple[bool, Usage]:
        """Reserve the maximum cost of a call if the total of paid and reserved usage then exceeds no limit.

        Returns
        -------
        reserved : bool
            Whether it was reserved. The reservation ends when the reply is on record, or when it is released.
        paid : Usage
            What all processes have paid so far.
        """

    def release(self, call: Call) -> None:
        """End the reservation of a call that cost nothing, without waiting."""

    async def pause(self) -> None:
        """Wait before checking other reservations again; raises CancelledError if no more calls will be made."""


class Budget:
    """Keeps usage within hard limits. Usage includes the maximum cost of calls in flight.

    Parameters
    ----------
    limits : Limits
        Limits of the total usage.
    paid : Usage, optional
        Earlier usage.

    Attributes
    ----------
    limits : Limits
        As given.
    limited : bool
        Whether there is any limit. Without a limit, no call waits and nothing is reserved.

    Notes
    -----
    The sum of paid and reserved usage exceeds no limit, provided that no call costs more than its reservation. Use a
    budget from one event loop. It serves waiting calls in order of arrival, so small calls cannot delay a large one
    forever.
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
        """The remainder of each limit, without subtracting the cost of calls in flight."""
        return self.limits.less(self._paid)

    async def reserve(self, worst: Usage, call: Call) -> Reservation:
        """Reserve the maximum cost of a call as soon as the limits allow it.

        Waits as long as calls in flight may cost less than their reservations and thereby make the call possible.

        Parameters
        ----------
        worst : Usage
            The maximum cost of the call.
        call : tuple
            The call.

        Returns
        -------
        Reservation
            The caller must settle or cancel it.

        Raises
        ------
        BudgetExceeded
            If the call can never fit; the message names the limit, the usage and the maximum cost of the call.
        """
        if self.limited and (self._waiting or not self._fits(worst)):
            await self._queue(worst, call)
        else:
            self._open(worst)
        return Reservation(self, worst, call)

    def hold(self, worst: Usage, call: Call) -> Reservation:
        """Reserve the maximum cost of a call that is in flight already, whether or not it fits."""
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
    """A budget that several processes share. Its usage is what all of them have paid and reserved.

    Parameters
    ----------
    limits, paid As for :class:`Budget`. tally : Tally
        Shared by all processes.

    Notes
    -----
    A call waits if it would fit without the reservations of other calls in flight. Waiting calls of one process are
    served in order of arrival.
    """

    def __init__(self, limits: Limits, paid: Usage, tally: Tally) -> None:
        super().__init__(limits, paid)
        self._tally = tally
        self._turn = asyncio.Lock()

    async def reserve(self, worst: Usage, call: Call) -> Reservation:
        """Reserve the maximum cost of a call; see :meth:`Budget.reserve`."""
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
    """The maximum cost of one call in flight, until settled or cancelled; made by :meth:`Budget.reserve`."""

    __slots__ = ("_budget", "_call", "_open", "_worst")

    def __init__(self, budget: Budget, worst: Usage, call: Call) -> None:
        self._budget = budget
        self._worst = worst
        self._call = call
        self._open = True

    def settle(self, actual: Usage) -> None:
        """Replace the reservation with the actual cost of the call, which counts in full even if it is higher."""
        if not self._open:
            raise RuntimeError("a reservation can be settled only once, and not after cancellation")
        self._open = False
        self._budget._close(self._call, self._worst, actual)

    def cancel(self) -> None:
        """Cancel the reservation of a call that cost nothing. Does nothing if it is already settled or cancelled."""
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
    English prose has about one token for four characters, so the bound is about twice the true number. Other languages
    in Latin script have one token for two to three characters. Tokenizers that work on bytes make at most one token
    from each byte, so the bound is valid for other scripts and up to three times too high. Long random strings of
    digits or signs can exceed it. Use the bound only for reservations, never for forecasts or bills.
    """
    prompt = Prompt.of(messages)
    return 16 + 8 * prompt.length + prompt.weight
