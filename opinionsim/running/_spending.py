"""What an experiment has paid so far, on record, and the budget that is left of it."""

from __future__ import annotations

from collections.abc import Collection

from opinionsim.errors import SpecError
from opinionsim.llm import Budget, Limits, Usage
from opinionsim.store import Paid, Store


class Spending:
    """The money, tokens and calls that an experiment has used and may use, as far as they are limited.

    Parameters
    ----------
    store : Store
        The store, with the usage so far.
    experiment_id : str
        Identity of the experiment.
    limits : Limits
        Limits of the usage.
    run_ids : collection of str, optional
        Runs to which the limits apply; default the whole experiment, with the runs of its other designs.

    Attributes
    ----------
    limits : Limits
        As given.
    budget : Budget or None
        The budget within these limits; None if nothing is limited, and before :meth:`open`.
    """

    def __init__(
        self, store: Store, experiment_id: str, limits: Limits, run_ids: Collection[str] | None = None
    ) -> None:
        self.limits = limits
        self.budget: Budget | None = None
        self._store = store
        self._experiment_id = experiment_id
        self._run_ids = run_ids
        #: Calls left in the budget at the start, less those promised to runs that begin anew.
        self._unpromised: int | None = None

    def open(self) -> None:
        """Open the budget with the usage on record.

        Raises
        ------
        SpecError
            As :meth:`paid`.
        """
        if self.limits != Limits():
            self.budget = Budget(self.limits, self.paid(self._run_ids))
            self._unpromised = self.budget.remaining().calls

    def left(self) -> Limits:
        """The rest of each limit."""
        return Limits() if self.budget is None else self.budget.remaining()

    def paid(self, run_ids: Collection[str] | None = None) -> Usage:
        """Usage of runs on record, zero if nothing is limited; by default of the experiment, over all its designs.

        Raises
        ------
        SpecError
            If tokens or money are limited and the usage is not known.
        """
        if self.limits == Limits():
            return Usage()
        if run_ids is None:
            paid = self._store.spending().get(self._experiment_id, Paid(0, 0, 0, 0.0))
        else:
            paid = self._store.usage(run_ids)
        self._require_counts(paid.uncounted)
        return Usage(paid.calls, paid.input_tokens + paid.output_tokens, paid.cost)

    def promise(self, calls: int) -> str:
        """Set calls aside for a finished run that is to begin anew.

        Returns
        -------
        str
            The limit that is too small, in which case no call is set aside; else empty.
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
                f"execution.budget.{limited}: {uncounted:,} stored calls of this experiment have no token counts, for "
                "their provider told none, so that it is not known what was used; limit calls instead"
            )
