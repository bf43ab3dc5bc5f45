"""The errors opinionsim raises on purpose.

Each derives from :class:`OpinionSimError` and has a message for the user and an exit code of the command line.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral
from typing import Any, NamedTuple, Self


def meant(given: object, valid: Iterable[str]) -> str:
    """The valid name closest to a wrong one, as errors show it after the wrong one; empty if none is close."""
    close = get_close_matches(str(given), list(valid), 1)
    return f" (did you mean {close[0]}?)" if close else ""


class Cause(NamedTuple):
    """The cause of an error as a value, which a store keeps in addition to the sentence."""

    code: str = ""
    """What is wrong, as a short name that stays when the sentence changes: ``budget-money``, ``journal-prompt``."""
    about: str = ""
    """What tells causes of one code apart."""
    fields: Mapping[str, Any] = {}
    """Values that the sentence was made of, as JSON has them; errors of one cause may differ in them."""


class OpinionSimError(Exception):
    """Base of all deliberate errors. Contains a sentence for the user, and values for programs that handle the error.

    Parameters
    ----------
    problem : str
        What is wrong.
    place : str or tuple of str
        Where, from the outermost place inwards; the sentence begins with it.
    advice : str
        Remedy, as a separate sentence without its full stop.
    code : str
        Code of the cause if it describes the cause completely; by default that of the class, in addition to the
        sentence.
    **fields
        Values in the sentence, as JSON values.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 1 some runs incomplete, 2 bad input, 3 budget.
    opening : str
        Beginning of the problems of all errors of the class.
    anew : bool
        Whether the stopped run can be restarted with ``--fresh``, as its advice says.
    """

    exit_code = 2
    code = "failure"
    opening = ""
    anew = False

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__.strip("_").removesuffix("Error")).lower()

    def __init__(
        self, problem: str = "", place: str | tuple[str, ...] = (), advice: str = "", code: str = "", **fields: Any
    ) -> None:
        super().__init__(problem)
        self.problem, self.advice, self.fields = problem, advice, fields
        self.places = (place,) if isinstance(place, str) else place
        if code:
            self.code = code
        self._several: tuple[OpinionSimError, ...] = ()

    def __str__(self) -> str:
        if self._several:
            return "\n".join(map(str, self._several))
        return ": ".join(filter(None, (*self.places, self.unplaced)))

    @classmethod
    def joined(cls, errors: Iterable[OpinionSimError]) -> OpinionSimError:
        """Combine several errors into one with a line for each problem; return a single error unchanged."""
        several = tuple(problem for error in errors for problem in error.problems)
        found = cls()
        found._several = several
        return several[0] if len(several) == 1 else found

    @property
    def problems(self) -> tuple[OpinionSimError, ...]:
        """The errors that it combines, one per line; usually only itself."""
        return self._several or (self,)

    @property
    def unplaced(self) -> str:
        """The sentence without the place."""
        told = ": ".join(filter(None, (self.opening, str(self.problem))))
        return f"{told}. {self.advice}" if self.advice else told

    @property
    def cause(self) -> Cause:
        """The cause as a value."""
        about = "" if "code" in vars(self) else "; ".join(each.unplaced for each in self.problems)
        return Cause(self.code, about, self.fields)

    def at(self, place: str, advice: str = "", **fields: Any) -> Self:
        """The error with a place in front of each of its problems, and with further advice and fields."""
        # Subclasses may take other arguments than their message.
        found = type(self).__new__(type(self), *self.args)
        vars(found).update(vars(self))
        found.places = (place, *self.places)
        found.advice = ". ".join(filter(None, (self.advice, advice)))
        found.fields = {**self.fields, **fields}
        found._several = tuple(each.at(place, advice, **fields) for each in self._several)
        return found


class Interrupt(KeyboardInterrupt):
    """A Ctrl-C, as the handler of its signal raises it; user code only ever raises KeyboardInterrupt."""

    @classmethod
    def taken(cls, *_: object) -> None:
        """The handler of the signal."""
        raise cls


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception is a Ctrl-C, or was caused by one that user code caught.

    Under Python's own handler, as in a script or notebook, every KeyboardInterrupt of the main thread counts as one.
    """
    main = threading.current_thread() is threading.main_thread()
    untold = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    while error is not None and not isinstance(error, KeyboardInterrupt if untold else Interrupt):
        error = error.__cause__ or error.__context__
    return error is not None


class SpecError(OpinionSimError):
    """A specification, topic, persona, prompt pack or argument is not valid."""


class ScheduleError(OpinionSimError):
    """A schedule breaks its contract: forward reads, unknown agents, steps out of order."""


class ModelCallError(OpinionSimError):
    """A call of a chat model failed permanently; the message names run, step and agent."""

    exit_code = 1


class Rejected(OpinionSimError):
    """A reply that an act cannot use; raised by its `parse` with the reason. The model is asked again."""

    exit_code = 1


class NothingSaid(Rejected):
    """A reply without any text to publish; it counts as empty."""


class MeasurementError(OpinionSimError):
    """A classifier could not be loaded, or returned a result that is not a distribution."""


class BudgetExceeded(OpinionSimError):
    """The next call could exceed the budget."""

    exit_code = 3


class StoreError(OpinionSimError):
    """The store cannot be opened, is in use, belongs to another program, or does not match the run."""


class DamagedError(StoreError):
    """Data in a store are missing or changed; the message names them."""

    opening = "the store is damaged"
    anew = True


class JournalMismatch(StoreError):
    """The store holds the reply to another prompt under the key of the call now made."""

    exit_code = 1
    anew = True


class SurveyError(SpecError):
    """A survey, its mapping, a query on it or given margins are not valid."""


def in_short(error: object) -> str:
    """The message of an error, often from another library, on one shortened line; the type's name if it has none."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def quoted(text: str, most: int = 40) -> str:
    """A text in quotes; a long text is cut and ends in an ellipsis."""
    return repr(text if len(text) <= most else f"{text[:most]}...")


def whole_number(name: str, value: Any, least: int, error: type[OpinionSimError] = SpecError) -> int:
    """Return a whole number, Python's or numpy's, of at least `least`; raise `error` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise error(f"{name} must be a whole number of at least {least}; got {value!r:.60}")
    return int(value)


def packages(
    what: str, extra: str, *modules: str, otherwise: str = "", kind: type[OpinionSimError] = MeasurementError
) -> list[Any]:
    """Import modules of packages that only an extra installs.

    Parameters
    ----------
    what : str
        The feature that needs them, as the subject of a sentence.
    extra : str
        The extra.
    *modules : str
        Their names.
    otherwise : str
        What you can do without them, as the end of the message.
    kind : type of OpinionSimError
        The error.

    Raises
    ------
    MeasurementError
        If a package is missing; `kind` replaces this error.
    """
    # No telemetry unless the user asks for it; the library of the model hub reads this variable on import.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        return [import_module(each) for each in modules]
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0].replace("sklearn", "scikit-learn").replace("_", "-")
        raise kind(
            f"{what} needs the packages of the extra {extra!r} ({missing} is missing); "
            f"install with pip install 'opinionsim[{extra}]'{otherwise}"
        ) from None
