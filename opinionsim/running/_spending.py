"""The stored usage of an experiment, and what is left of its budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.llm import Budget, Call, Limits, SharedBudget, Usage
from opinionsim.store import Paid, Store


class Spending:
    """The money, tokens and calls that an experiment has used and may still use, if they are limited.

    Limits apply to all designs of the experiment and all workers that share its store.

    Parameters
    ----------
    store : Store
        The store, with the usage so far.
    experiment_id : str
        Identity of the experiment.
    limits : Limits
        Limits of the usage.
    owner : str
        The worker that spends.
    pause : callable
        Waits before the next look at what other workers hold; raises CancelledError once the sweep is to stop.

    Attributes
    ----------
    limits : Limits
        As given.
    budget : Budget or None
        The budget within these limits; None if nothing is limited, and before :meth:`open`.
    """

    def __init__(
        self,
        store: Store,
        experiment_id: str,
        limits: Limits,
        owner: str,
        pause: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self.limits = limits
        self.budget: Budget | None = None
        self.pause = pause
        self._store = store
        self._experiment_id = experiment_id
        self._owner = owner
        #: Reservations in a shared store wait for no other work with it.
        self._thread = ThreadPoolExecutor(1, "opinionsim-budget")
        #: Calls left in the budget at the start, less those promised to runs that begin anew.
        self._unpromised: int | None = None

    def open(self) -> None:
        """Open the budget with the stored usage.

        Raises
        ------
        SpecError
            As :meth:`paid`.
        """
        if self.limits != Limits():
            paid = self.paid()
            self.budget = SharedBudget(self.limits, paid, self) if self._store.shared else Budget(self.limits, paid)
            self._unpromised = self.budget.remaining().calls

    async def reserve(self, call: Call, worst: Usage) -> tuple[bool, Usage]:
        """Reserve the maximum cost of a call, in addition to what all workers have paid and reserved; see `Tally`."""
        reserved = partial(self._store.reserve, self._experiment_id, self._owner, call, worst, self.limits)
        return await asyncio.get_running_loop().run_in_executor(self._thread, reserved)

    def release(self, call: Call) -> None:
        """End the reservation of a call that cost nothing."""
        self._thread.submit(self._store.release_call, call)

    def close(self) -> None:
        """Wait until all reservations that are being released have ended."""
        self._thread.shutdown()

    def left(self) -> Limits:
        """The rest of each limit."""
        return Limits() if self.budget is None else self.budget.remaining()

    def paid(self) -> Usage:
        """Stored usage of the experiment, over all its designs; zero if nothing is limited.

        Raises
        ------
        SpecError
            If tokens or money are limited and the usage is not known.
        """
        if self.limits == Limits():
            return Usage()
        paid = self._store.spending().get(self._experiment_id, Paid())
        self._require_counts(paid.uncounted)
        return Usage(paid.calls, paid.input_tokens + paid.output_tokens, paid.cost)

    def promise(self, calls: int) -> str:
        """Set aside calls for a finished run that begins anew.

        Returns
        -------
        str
            The limit that is too small, in which case no call is set aside; otherwise empty.
        """
        left = self.left()
        if self._unpromised is not None and self._unpromised < calls:
            return "calls"
        if left.tokens is not None and left.tokens < 1:
            return "tokens"
        if left.money is not None and left.money <= 0:
            return "money"
        if self._unpromised is not None:
            self._unpromised -= calls
        return ""

    def _require_counts(self, uncounted: int) -> None:
        """Refuse to limit tokens or money if the usage is not known."""
        limited = "tokens" if self.limits.tokens is not None else "money"
        if uncounted and getattr(self.limits, limited) is not None:
            raise SpecError(
                f"execution.budget.{limited}: {uncounted:,} stored calls of this experiment have no token counts from "
                "their provider, so the tokens used are unknown; limit calls instead"
            )
