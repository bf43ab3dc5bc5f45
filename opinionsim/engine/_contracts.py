"""Protocols of what the engine is given: actors, the calls of a run, and a witness."""

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

    An actor that makes calls to remember a turn has an attribute `calls_per_event`; see :func:`calls_per_event`.
    """

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Carry out one turn.

        Parameters
        ----------
        turn : Turn
            What to do.
        received : sequence of Message
            The messages the turn reads, in order, without those that are refused, empty, skipped or silent.
        ask : Ask
            The only way to a chat model or a person.
        publish : callable
            Hands over the turn's message, exactly once; its readers start at once. Returning frees the agent.
        """
        ...

    def fork(self) -> Actor:
        """A copy of this actor with its present context; acts of the copy leave this actor unchanged.

        Called as soon as the memory-keeping turn before a forking turn is done, so that the agent can go on
        while the fork waits for the messages it reads.
        """
        ...


def calls_per_event(actor: Actor) -> int:
    """Number of calls an actor makes in sequence to remember a turn: its attribute `calls_per_event`, or 0."""
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
        """Answer one call of a turn; larger `priority` is served first."""
        ...

    def stop(self) -> None:
        """Dispatch no further call; calls in flight run to their end."""
        ...


class Witness(Protocol):
    """Keeps a record of a run while it is carried out."""

    @property
    def full(self) -> bool:
        """Whether turns should wait until the witness has written what it was told."""
        ...

    def published(self, turn: Turn, message: Message) -> None:
        """Record that a turn has published; called before its readers start."""
        ...

    def moved(self) -> None:
        """Record that an adaptive schedule has moved on and may have changed its ties."""
        ...

    async def room(self) -> None:
        """Wait until the witness is no longer full."""
        ...
