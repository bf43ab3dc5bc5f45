"""Dataflow graph of a run's turns: the turns that each turn waits for, and the length of its remaining path."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from opinionsim.engine._contracts import Actor, calls_per_event
from opinionsim.errors import ScheduleError
from opinionsim.messages import Message, as_message
from opinionsim.schedules import ActSpec, AnySchedule, Turn, TurnCheck


@dataclass(slots=True, eq=False)
class Node:
    """A turn in the dataflow graph, with its state."""

    turn: Turn
    spec: ActSpec
    actor: Actor
    waiting: int = 0
    readers: list[Node] = field(default_factory=list)
    followers: list[Node] = field(default_factory=list)
    priority: float = 0.0
    rest: float = 0.0
    message: Message | None = None
    published: asyncio.Future[Message] | None = None
    done: bool = False


class TurnGraph:
    """The turns of a run, each linked to the turns it depends on.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        Declares acts, steps and external messages.
    actors : sequence of Actor
        By agent number.
    seats : collection of int
        Agents played by people. A person answers one question at a time. Its turns follow each other by index, and
        their order does not depend on timing.

    Attributes
    ----------
    nodes : list of Node
        The turns so far, by index.
    """

    def __init__(self, schedule: AnySchedule, actors: Sequence[Actor], seats: Collection[int] = ()) -> None:
        self.nodes: list[Node] = []
        self._check = TurnCheck(schedule)
        self._actors = actors
        self._after = [calls_per_event(actor) for actor in actors]
        self._externals = {name: as_message(value) for name, value in schedule.externals.items()}
        self._seats = frozenset(seats)
        #: The last turn of each agent that its later turns follow.
        self._last: dict[int, Node] = {}

    def take(self, turn: Turn) -> Node:
        """Check a turn against the contract and link it to the turns it depends on."""
        nodes = self.nodes
        spec = self._check(turn)
        node = Node(turn, spec, self._actors[turn.agent])
        for ref in turn.reads:
            if isinstance(ref, int) and nodes[ref].message is None:
                nodes[ref].readers.append(node)
                node.waiting += 1
        seated = turn.agent in self._seats
        if spec.memory != "none" or seated:
            before = self._last.get(turn.agent)
            if before is not None and not before.done:
                before.followers.append(node)
                node.waiting += 1
            elif spec.memory == "fork":
                node.actor = node.actor.fork()
            if spec.memory == "keep" or seated:
                self._last[turn.agent] = node
        nodes.append(node)
        return node

    def set_priorities(self) -> None:
        """Set the priority of every turn to its longest remaining path, in calls."""
        for node in reversed(self.nodes):
            after = self._after[node.turn.agent] if node.spec.memory == "keep" else 0
            rest = max([other.priority for other in node.readers], default=0.0)
            own = max([other.priority for other in node.followers], default=0.0)
            node.rest = after + own
            node.priority = 1.0 + max(rest, node.rest)

    def transcript(self, start: int = 0, until: int | None = None) -> Iterator[tuple[Turn, Message]]:
        """Published turns from index `start` to step `until`, with their messages, by index."""
        for index in range(start, len(self.nodes)):
            node = self.nodes[index]
            if until is not None and node.turn.step > until:
                return
            if node.message is not None:
                yield node.turn, node.message

    def received(self, turn: Turn) -> list[Message]:
        """The messages that a turn sees: those it reads and that are passed on.

        Raises
        ------
        ScheduleError
            If one of them has not been published.
        """
        found = []
        for ref in turn.reads:
            message = self.nodes[ref].message if isinstance(ref, int) else self._externals[ref.name]
            if message is None:
                raise ScheduleError(f"a turn reads turn {ref}, which has not published yet")
            if message.status == "answered" or message.passed_on:
                found.append(message)
        return found

    def published(self, index: int) -> tuple[Turn, Message]:
        """A published turn with its message."""
        node = self.nodes[index]
        if node.message is None:
            raise ScheduleError(f"turn {index} has not published")
        return node.turn, node.message
