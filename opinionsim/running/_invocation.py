"""The parameters of :func:`run`: what to carry out, and how."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from opinionsim.assembly import LoadedParts
from opinionsim.errors import SpecError, whole_number
from opinionsim.lanes import Pace
from opinionsim.llm import Entry, Person, Seat
from opinionsim.specification import Experiment


def default_store(experiment: Experiment) -> str:
    """Address of the default store of an experiment: ``sqlite:///results/NAME.sqlite``."""
    return f"sqlite:///results/{experiment.spec.name}.sqlite"


@dataclass(frozen=True)
class Invocation:
    """One execution of an experiment: which runs, in which store, with which models and people.

    Attributes
    ----------
    experiment, store, max_concurrency, fresh, chat_model, seats, people, only, cluster, records
        As for :func:`run`.
    leave, resubmit
        As for :func:`run`.
    pace : Pace
        Times of batches.
    loaded : LoadedParts, optional
        Models, seats and classifiers that are loaded already, instead of `chat_model`, `seats` and `people`.
    ready : callable, optional
        ``await ready(run_id)`` returns when the people of a run with seats are there; until then the run stays
        pending. By default, such runs start at once.

    Raises
    ------
    SpecError
        If a field is not valid, or objects of this process are given to a cluster.
    """

    experiment: Experiment
    store: str | Path | None = None
    _: KW_ONLY
    max_concurrency: int | None = None
    fresh: bool = False
    chat_model: BaseChatModel | None = None
    seats: Mapping[int | str, Seat] | None = None
    people: Person | None = None
    only: Collection[str] | None = None
    cluster: str | None = None
    records: Mapping[str, Sequence[Entry]] | None = None
    leave: bool = False
    resubmit: bool = False
    pace: Pace = field(default_factory=Pace)
    loaded: LoadedParts | None = None
    ready: Callable[[str], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, Experiment):
            raise SpecError(f"expected an experiment from load_experiment; got {type(self.experiment).__name__}")
        if self.max_concurrency is not None:
            whole_number("max_concurrency", self.max_concurrency, 1)
        seated = bool(self.seats) or self.people is not None
        if self.cluster is not None and (self.chat_model is not None or seated):
            given = "seats are objects" if seated else "chat_model is an object"
            raise SpecError(f"cluster: {given} of this process; name the model in the specification instead")

    @property
    def url(self) -> str:
        """Address or path of the store."""
        return str(self.store or default_store(self.experiment))

    @cached_property
    def parts(self) -> LoadedParts:
        """Models, seats and classifiers, loaded once.

        Raises
        ------
        SpecError, MeasurementError
            As :class:`LoadedParts` does.
        """
        return self.loaded or LoadedParts(self.experiment, self.chat_model, seats=self.seats, people=self.people)
