"""Protocols of the objects that the engine uses: actors, the calls of a run, and a witness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from opinionsim.messages import Ask, ChatMessage, Message, Parsing, Reply
from opinionsim.schedules import Turn

Publish = Callable[[Message], None]
#: ``await rate(turn, message, instrument, about)`` gives the opinion an instrument measures in a message, which is
#: judged together with that of the turn `about` if it is not None; NaN for none.
Rate = Callable[[Turn, Message, str, int | None], Awaitable[float]]


class Actor(Protocol):
    """A member of the cast that carries out turns: a persona, a moderator, an equation, a person at a seat.

    An actor that makes calls to remember a turn needs an attribute `calls_per_event`; see :func:`calls_per_event`.
    """

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Carry out one turn.

        Parameters
        ----------
        turn : Turn
            The turn.
        received : sequence of Message
            The messages that the turn reads, in order, except refused, empty, skipped and silent ones.
        ask : Ask
            Asks a chat model or a person. Actors must use nothing else for this.
        publish : callable
            Publishes the turn's message; call it exactly once. Its readers start at once. The agent is free when
            `act` returns.
        """
        ...

    def fork(self) -> Actor:
        """Copy this actor with its current context; acts of the copy do not change this actor.

        The engine calls it as soon as the memory-keeping turn before a forking turn is done. The agent can then go on
        while the fork waits for the messages it reads.
        """
        ...


def calls_per_event(actor: Actor) -> int:
    """Number of successive calls that an actor makes to remember a turn: its attribute `calls_per_event`, or 0."""
    return int(getattr(actor, "calls_per_event", 0))


class TurnCalls(Protocol):
    """The calls of one run, with its journal, slots, budget and models."""

    def ask(
        self,
        turn: Turn,
        call: str,
        messages: Iterable[ChatMessage],
        *,
        reading: Parsing,
        priority: float,
        dropped: int = 0,
    ) -> Awaitable[Reply]:
        """Answer one call of a turn; calls with larger `priority` come first."""
        ...

    def stop(self) -> None:
        """Start no further call; calls in flight finish."""
        ...


class Witness(Protocol):
    """Keeps a record of a run while it is carried out."""

    @property
    def full(self) -> bool:
        """Whether turns should wait until the witness has written its records."""
        ...

    def published(self, turn: Turn, message: Message) -> None:
        """Record that a turn has published; the engine calls it before readers start."""
        ...

    def moved(self) -> None:
        """Record that an adaptive schedule has moved on and may have changed its ties."""
        ...

    async def room(self) -> None:
        """Wait until the witness is no longer full."""
        ...
