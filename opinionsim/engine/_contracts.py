"""What the engine needs of others: actors, somebody who answers their questions, and a witness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from opinionsim.messages import Ask, ChatMessage, Message, Reading, Reply
from opinionsim.schedules import Turn

Publish = Callable[[Message], None]
#: ``await rate(turn, message, instrument)`` gives the opinion an instrument measures in a message; NaN for none.
Rate = Callable[[Turn, Message, str], Awaitable[float]]


class Actor(Protocol):
    """A member of the cast that carries out turns: a persona, a moderator, an equation, a person at a seat.

    An actor that asks to remember what it did says how often in an attribute `calls_per_event`; see
    :func:`calls_per_event`.
    """

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Carry out one turn.

        Parameters
        ----------
        turn : Turn
            What to do.
        received : sequence of Message
            The messages the turn reads, in order, without those that are refused, empty or skipped.
        ask : Ask
            The only way to a chat model or a person.
        publish : callable
            Hands over the turn's message, exactly once; its readers start at once. Returning frees the agent.
        """
        ...

    def fork(self) -> Actor:
        """An actor with the context this one has now, whose acts leave no trace on this one.

        Called the moment the memory-keeping turn before a forking turn is done, so that the agent itself
        may go on at once, however long the fork waits for what it reads.
        """
        ...


def calls_per_event(actor: Actor) -> int:
    """Calls an actor makes, one after another, to remember a turn: its attribute of that name, or 0."""
    return int(getattr(actor, "calls_per_event", 0))


class TurnCalls(Protocol):
    """Where an actor's questions go: the journal, slots, budget and model of one run."""

    def ask(
        self,
        turn: Turn,
        part: str,
        messages: Iterable[ChatMessage],
        *,
        reading: Reading,
        priority: float,
        dropped: int = 0,
    ) -> Awaitable[Reply]:
        """Answer one part of a turn; larger `priority` is served first."""
        ...

    def stop(self) -> None:
        """Dispatch nothing more; calls in flight go on to their end."""
        ...


class Witness(Protocol):
    """Keeps a record of a run while it is carried out."""

    @property
    def full(self) -> bool:
        """Whether turns should wait until what was told has been written."""
        ...

    def published(self, turn: Turn, message: Message) -> None:
        """A turn has published; told before its readers start."""
        ...

    def moved(self) -> None:
        """An adaptive schedule has gone on, and may have changed its ties."""
        ...

    async def room(self) -> None:
        """Wait until it is not full any more."""
        ...
