"""The errors opinionsim raises on purpose.

Every one derives from :class:`OpinionSimError`, carries one message written for the person at the
keyboard, and knows the exit code the command line answers with.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "DamagedError",
    "JournalMismatch",
    "MeasurementError",
    "ModelCallError",
    "OpinionSimError",
    "Rejected",
    "ScheduleError",
    "SpecError",
    "StoreError",
    "SurveyError",
]


class OpinionSimError(Exception):
    """Base of all deliberate errors.

    Attributes
    ----------
    exit_code : int
        What the command line exits with: 1 some runs incomplete, 2 bad input, 3 budget.
    """

    exit_code = 2


class SpecError(OpinionSimError):
    """A specification, topic, persona, prompt pack or argument is not valid."""


class ScheduleError(OpinionSimError):
    """A schedule breaks its contract: forward reads, unknown agents, steps out of order."""


class ModelCallError(OpinionSimError):
    """A chat model call failed for good; the message names run, step and agent."""

    exit_code = 1


class Rejected(OpinionSimError):
    """A reply that an act cannot use; raised by its `parse`, with the reason in words. Another reply is asked for."""

    exit_code = 1


class MeasurementError(OpinionSimError):
    """A classifier could not be loaded or returned something that is not a distribution."""


class BudgetExceeded(OpinionSimError):
    """The next call could exceed the stated budget."""

    exit_code = 3


class StoreError(OpinionSimError):
    """The store cannot be opened, is in use, is foreign, or disagrees with the run."""


class DamagedError(StoreError):
    """Something in a store is missing, or not as it was written; the message says what."""

    def __str__(self) -> str:
        return f"the store is damaged: {super().__str__()}"


class JournalMismatch(StoreError):
    """The store holds a reply to another question than the one now asked under the same call.

    Parameters
    ----------
    problem : str
        What differs.
    advice : str
        Why that may be, and what can be done about it.

    Attributes
    ----------
    problem : str
        The first of them.
    """

    exit_code = 1

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}. {advice}" if advice else problem)
        self.problem = problem


class SurveyError(OpinionSimError):
    """A survey table or its mapping is not valid."""
