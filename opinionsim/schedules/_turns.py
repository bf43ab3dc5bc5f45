"""Turns, the acts they name, and the two kinds of schedule that yield them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from opinionsim.errors import ScheduleError
from opinionsim.messages import Message

__all__ = [
    "ACTS",
    "NO_EXTERNALS",
    "ActSpec",
    "AdaptiveSchedule",
    "External",
    "Outcomes",
    "Ref",
    "StaticSchedule",
    "Turn",
    "outline",
]


class External(NamedTuple):
    """Reference to a message from outside the run, by its name in the schedule's `externals`."""

    name: str


#: What a turn may read: the message of an earlier turn (its index) or an external message.
Ref = int | External


@dataclass(frozen=True, slots=True)
class Turn:
    """One act by one agent.

    A turn depends on the turns it reads and, when its act uses memory, on the previous memory-keeping
    turn of the same agent, and on nothing else.
    """

    index: int
    """Position; the sequential order and all ties follow it."""
    step: int
    """Model time from 1 (0: before the first step): one dyad, one broadcast, one cycle."""
    agent: int
    """Who acts, from 0, population first."""
    act: str
    """Names an :class:`ActSpec` of the run: ``write``, ``review``, ``report``, ``probe``, ``self-report``, ..."""
    reads: tuple[Ref, ...] = ()
    """Messages shown, in order."""


@dataclass(frozen=True, slots=True)
class ActSpec:
    """How an act is carried out.

    Attributes
    ----------
    name : str
        What turns call it.
    template : str
        Template of the prompt pack that states the task.
    kind : str
        Kind of text it produces: ``post``, ``report``, ``response``, ``probe`` or ``self-report``, which is a
        closed answer.
    labelling : str
        How received messages are introduced: ``anonymous``, ``numbered`` or ``named``.
    memory : str
        ``keep`` reads the agent's memory and adds to it; ``fork`` reads it and leaves no trace; ``none``
        does neither.
    draws : int
        Replies drawn per turn (parts ``reply``, ``reply.2``, ...), at least 1.
    selector : callable or None
        Picks one of the drawn texts; None takes the first.
    validator : callable or None
        Given a reply, says in words why it is not acceptable, or returns None.
    attempts : int
        How many replies may arrive for one part before the run is stopped, at least 1.
    """

    name: str
    template: str
    kind: str
    labelling: Literal["anonymous", "numbered", "named"] = "anonymous"
    memory: Literal["keep", "fork", "none"] = "keep"
    draws: int = 1
    selector: Callable[[Sequence[str]], int] | None = None
    validator: Callable[[str], str | None] | None = None
    attempts: int = 3


#: The acts of the dyadic family (Chuang et al. 2023, Algorithm 1; A6, A12).
ACTS: Mapping[str, ActSpec] = {
    "write": ActSpec("write", template="write", kind="post"),
    "review": ActSpec("review", template="review", kind="report"),
    "report": ActSpec("report", template="report", kind="report"),
    "report-once": ActSpec("report-once", template="report", kind="report", memory="none"),
    "probe": ActSpec("probe", template="probe", kind="probe", memory="fork"),
    "self-report": ActSpec("self-report", template="self-report", kind="self-report", memory="fork"),
}


#: The externals of a schedule that shows nothing from outside.
NO_EXTERNALS: Mapping[str, Message] = MappingProxyType({})


class Outcomes(Protocol):
    """What an adaptive schedule may wait for. Never "now", a clock or an order of completion."""

    async def message(self, turn: int) -> str:
        """Text of the message of a turn already yielded."""
        ...

    async def opinion(self, turn: int) -> float:
        """Measured opinion of a turn already yielded; NaN where it gave no answer."""
        ...


@runtime_checkable
class StaticSchedule(Protocol):
    """A schedule whose turns do not depend on what agents say: known before the first call."""

    n_agents: int
    steps: int
    externals: Mapping[str, Message]

    def turns(self) -> Iterator[Turn]:
        """All turns, by index; the same ones at every call."""
        ...


@runtime_checkable
class AdaptiveSchedule(Protocol):
    """A schedule that decides later turns from the outcome of earlier ones."""

    n_agents: int
    steps: int
    externals: Mapping[str, Message]

    def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Turns in index order; may await outcomes of turns it has already yielded."""
        ...


@runtime_checkable
class _Outlined(Protocol):
    def outline(self) -> Iterator[Turn]: ...


def outline(schedule: StaticSchedule | AdaptiveSchedule) -> Iterator[Turn]:
    """The turns of a schedule as far as they are known before the first call: what forecasts count.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        An adaptive one says by a method `outline` what turns it can have at most; whom they fall on may be another
        question.

    Returns
    -------
    iterator of Turn
        All turns of a static schedule.

    Raises
    ------
    ScheduleError
        If an adaptive schedule has no such method.
    """
    if isinstance(schedule, StaticSchedule):
        return schedule.turns()
    if isinstance(schedule, _Outlined):
        return schedule.outline()
    raise ScheduleError(f"{type(schedule).__name__} has no outline, so that its turns cannot be forecast")
